// Package observe makes what operators load into Prometheus and Grafana, from the metrics that the code
// registers: docs/prometheus-rules.yml, docs/grafana.json and docs/metrics.md. Its test compares the files, and
// `go test ./tests/observe -update` writes them. A rule or a panel with a metric or a label that the code does not
// register is an error.
package observe
