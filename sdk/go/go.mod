module runner.example/sdk/go

go 1.24
