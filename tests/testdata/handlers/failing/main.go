// Handlers that fail, each at a line with its name.
package main

import (
	"time"

	runner "runner.example/sdk/go"
)

func main() {}

//go:wasmexport nilMap
func exportNilMap() { runner.Handle(nilMap) }

//go:wasmexport endless
func exportEndless() { runner.Handle(endless) }

//go:wasmexport slow
func exportSlow() { runner.Handle(slow) }

type totals map[string]int

//go:noinline
func (t totals) add(name string, n int) {
	t[name] += n // line nilMap
}

func nilMap(_ *runner.Context, req *runner.Request) (runner.Response, error) {
	var t totals
	t.add(req.Query("name"), 1)
	return runner.OK(t), nil
}

// endless computes without end after it was resumed.
func endless(*runner.Context, *runner.Request) (runner.Response, error) {
	ready := make(chan int)
	go func() {
		time.Sleep(time.Millisecond)
		ready <- 3
	}()
	return runner.OK(rounds(<-ready)), nil
}

//go:noinline
func rounds(n int) (rounds int) {
	for rounds%2 == 0 || n > 0 {
		rounds += 2 // line endless
	}
	return rounds
}

func slow(*runner.Context, *runner.Request) (runner.Response, error) {
	time.Sleep(time.Hour) // line slow
	return runner.NoContent(), nil
}
