package recorded_test

import (
	"os"
	"slices"
	"testing"
	"time"

	"runner.example/tests/harness"
)

// RUNNER_COST=1 measures when a soak does not.
func TestRecordingCostsFewRequests(t *testing.T) {
	if !harness.Soak && os.Getenv("RUNNER_COST") == "" {
		t.Skip("compares speeds: make soak does it")
	}
	start := func(settings string) func() float64 {
		a, token := newShop(t, settings)
		a.Write("runner.toml", "[runtime]\ntimeout = \"30s\"\n\n"+settings+"\n[secrets]\nPARTNER = \""+partner+"\"\n") // the machine may be busy
		s := a.Serve()
		for range 5 {
			s.Want(200, nil, "POST", "/v1/orders", `{"item":"tea","qty":2,"status":"open"}`, "X-API-Key: "+token)
		}
		return func() float64 { return s.RequestsPerSecond("/v1/total/open", token, 2*time.Second) }
	}
	off, on := start(""), start("[record]\nfailures = 100\nsample = 0.001\n")
	var without, with []float64
	for range 9 { // in turn
		without, with = append(without, off()), append(with, on())
	}
	slices.Sort(without)
	slices.Sort(with)
	a, b := without[4], with[4]
	t.Logf("%.0f requests per second without recording, %.0f with: %.3f times", a, b, b/a)
	if b < 0.97*a {
		t.Error("fewer than 0.97 of the requests")
	}
}
