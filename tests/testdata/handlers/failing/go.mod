module failing.example/handlers

go 1.24

require runner.example/sdk/go v0.0.0

replace runner.example/sdk/go => ../../../../sdk/go
