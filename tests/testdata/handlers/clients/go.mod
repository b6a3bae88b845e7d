module clients

go 1.25.0

require (
	github.com/go-resty/resty/v2 v2.17.2
	github.com/google/go-github/v66 v66.0.0
	github.com/hashicorp/go-retryablehttp v0.7.8
	runner.example/sdk/go v0.0.0
)

require (
	github.com/google/go-querystring v1.1.0 // indirect
	github.com/hashicorp/go-cleanhttp v0.5.2 // indirect
	golang.org/x/net v0.43.0 // indirect
)

replace runner.example/sdk/go => ../../../../sdk/go
