// Handlers that call other services.
package main

import (
	"errors"
	"strings"
	"time"

	runner "runner.example/sdk/go"
)

func main() {}

//go:wasmexport fetchOne
func exportFetchOne() { runner.Handle(fetchOne) }

//go:wasmexport fetchAll
func exportFetchAll() { runner.Handle(fetchAll) }

//go:wasmexport busyFetch
func exportBusyFetch() { runner.Handle(busyFetch) }

//go:wasmexport countedFetch
func exportCountedFetch() { runner.Handle(countedFetch) }

//go:wasmexport bump
func exportBump() { runner.Handle(bump) }

// fetchOne requests the URL in the body, and returns the response or the host's code.
func fetchOne(ctx *runner.Context, req *runner.Request) (runner.Response, error) {
	timeout, _ := time.ParseDuration(req.Query("timeout"))
	response, err := ctx.Fetch(runner.FetchRequest{URL: string(req.RawBody()), Timeout: timeout, PublicOnly: req.Query("publicOnly") != ""})
	var told *runner.HostError
	if errors.As(err, &told) {
		return runner.OK(told), nil
	}
	return runner.OK(map[string]any{"status": response.Status, "body": string(response.Body)}), err
}

// fetchAll requests the URLs in the lines of the body, and returns the responses' bodies.
func fetchAll(ctx *runner.Context, req *runner.Request) (runner.Response, error) {
	var requests []runner.FetchRequest
	for _, line := range strings.Fields(string(req.RawBody())) {
		requests = append(requests, runner.FetchRequest{URL: line})
	}
	var bodies []string
	for _, result := range ctx.FetchAll(requests...) {
		if result.Err != nil {
			return runner.Response{}, result.Err
		}
		bodies = append(bodies, string(result.Body))
	}
	return runner.OK(bodies), nil
}

// busyFetch computes for long enough to need a CPU slot, and then fetches.
func busyFetch(ctx *runner.Context, req *runner.Request) (runner.Response, error) {
	sum := uint32(1)
	for began := time.Now(); time.Since(began) < 20*time.Millisecond; {
		for i := range uint32(100_000) {
			sum = sum*1664525 + i
		}
	}
	response, err := ctx.Fetch(runner.FetchRequest{URL: string(req.RawBody())})
	return runner.OK([]any{sum, string(response.Body)}), err
}

type counter struct {
	ID string `json:"id,omitempty"`
	N  int    `json:"n"`
}

// countedFetch adds one to the only counter and then fetches.
func countedFetch(ctx *runner.Context, req *runner.Request) (runner.Response, error) {
	if _, err := bump(ctx, req); err != nil {
		return runner.Response{}, err
	}
	response, err := ctx.Fetch(runner.FetchRequest{URL: string(req.RawBody()), Method: "POST"})
	return runner.OK(response.Status), err
}

// bump adds one to the only counter, which it creates if it is missing.
func bump(ctx *runner.Context, _ *runner.Request) (runner.Response, error) {
	var counters []counter
	if err := runner.Query("Counter").All(ctx, &counters); err != nil {
		return runner.Response{}, err
	}
	if len(counters) == 0 {
		err := runner.Insert("Counter", counter{N: 1}).Row(ctx, nil)
		return runner.OK(1), err
	}
	n := counters[0].N + 1
	_, err := runner.Update("Counter", map[string]any{"n": n}).Where("id", "=", counters[0].ID).Run(ctx)
	return runner.OK(n), err
}
