// Command go has the handlers in Go.
package main

import (
	"runner.example/sdk/go"
	"runner.example/tests/bench/tasks/work"
)

func main() {}

//go:wasmexport runner_warm
func exportWarm() {
	for _, handler := range []func(*runner.Context, *runner.Request) (runner.Response, error){logs, group, table, sha} {
		runner.Warm(handler)
	}
}

//go:wasmexport goLogs
func exportLogs() { runner.Handle(logs) }

func logs(*runner.Context, *runner.Request) (runner.Response, error) {
	return runner.OK(work.Logs()), nil
}

//go:wasmexport goGroup
func exportGroup() { runner.Handle(group) }

func group(*runner.Context, *runner.Request) (runner.Response, error) {
	return runner.OK(work.Group()), nil
}

//go:wasmexport goTable
func exportTable() { runner.Handle(table) }

func table(*runner.Context, *runner.Request) (runner.Response, error) {
	page, err := work.Table()
	return runner.OK(page).WithHeader("Content-Type", "text/html; charset=utf-8"), err
}

//go:wasmexport goSha
func exportSha() { runner.Handle(sha) }

func sha(*runner.Context, *runner.Request) (runner.Response, error) {
	return runner.OK(work.Sha()), nil
}
