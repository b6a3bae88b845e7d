module tasks.example/handlers

go 1.26.0

require (
	runner.example v0.0.0
	runner.example/sdk/go v0.0.0
)

replace (
	runner.example => ../../../../..
	runner.example/sdk/go => ../../../../../sdk/go
)
