module drawing

go 1.25.0

require (
	github.com/oklog/ulid/v2 v2.1.2
	github.com/rs/xid v1.6.0
	go.mongodb.org/mongo-driver/v2 v2.10.0
	runner.example/sdk/go v0.0.0
)

replace runner.example/sdk/go => ../../../../sdk/go
