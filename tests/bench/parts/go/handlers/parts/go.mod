module measured.example/parts

go 1.24

require runner.example/sdk/go v0.0.0

require github.com/yuin/goldmark v1.8.7

replace runner.example/sdk/go => ../../../../../../sdk/go
