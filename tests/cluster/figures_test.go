package cluster_test

import (
	"fmt"
	"os"
	"slices"
	"testing"
	"time"

	"runner.example/tests/harness"
)

// clusterOf makes a cluster of a server that was alone.
func clusterOf(t *testing.T, founder *harness.App) *harness.Cluster {
	next := founder
	return harness.NewCluster(t, nil, func() *harness.App {
		a := next
		next = newLedger(t)
		return a
	})
}

// A request that reads takes a node of a cluster as much CPU time as a server that is alone.
func TestAReadCostsWhatItCostsAlone(t *testing.T) {
	if !harness.Soak {
		t.Skip("compares speeds: make soak does it")
	}
	prepare := func() (a *harness.App, token string) {
		a = newLedger(t)
		token = a.Key("create", "--scope", "worker", "--name", "load").Token
		a.Write("counters.jsonl", "{\"name\":\"c\"}\n")
		a.Must("data", "import", "Counter", "counters.jsonl")
		return a, token
	}
	app, tokenAlone := prepare()
	alone := app.Serve()
	founder, token := prepare()
	c := clusterOf(t, founder)
	c.Nodes[0].Serve()
	for range 2 {
		c.Add().Serve()
	}
	for _, n := range c.Nodes {
		n.WaitReady()
	}
	const length = 2 * time.Second
	used := func(s *harness.Server, during func()) time.Duration {
		before := s.Resources().CPU
		during()
		return s.Resources().CPU - before
	}
	// perRequest is the CPU time of the server's process for a request, in microseconds, without what
	// the process takes when there are no requests.
	perRequest := func(s *harness.Server, token string) float64 {
		idle := used(s, func() { <-time.After(length) })
		var requests float64
		busy := used(s, func() { requests = s.RequestsPerSecond("/counters/c", token, length) * length.Seconds() })
		return float64((busy - idle).Microseconds()) / requests
	}
	follower := slices.IndexFunc(c.Nodes, func(n *harness.Node) bool { return n != c.Leader(c.Nodes[0]) })
	var ratios []float64
	for range 15 {
		one, inCluster := perRequest(alone, tokenAlone), perRequest(c.Nodes[follower].Server, token)
		ratios = append(ratios, inCluster/one)
		t.Logf("%.1f µs alone, %.1f µs on a node of three: %.3f", one, inCluster, inCluster/one)
	}
	slices.Sort(ratios)
	if median := ratios[len(ratios)/2]; median > 1.05 {
		t.Errorf("a read takes %.3f times the CPU time", median)
	}
}

// How long a node takes to join a cluster with a million rows.
func TestJoinOfAMillionRows(t *testing.T) {
	if !harness.Soak {
		t.Skip("imports a million rows")
	}
	founder := newLedger(t)
	file, err := os.Create(founder.Path("counters.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	for i := range 1_000_000 {
		if _, err := fmt.Fprintf(file, "{\"name\":\"counter %d\",\"n\":%d}\n", i, i); err != nil {
			t.Fatal(err)
		}
	}
	if err := file.Close(); err != nil {
		t.Fatal(err)
	}
	token := founder.Key("create", "--scope", "worker", "--name", "load").Token
	founder.Must("data", "import", "Counter", "counters.jsonl")
	c := clusterOf(t, founder)
	c.Nodes[0].Serve()
	began := time.Now()
	n := c.Add()
	joined := time.Now()
	n.Serve()
	n.WaitReady()
	t.Logf("joined in %s, ready after %s more", joined.Sub(began).Round(time.Millisecond), time.Since(joined).Round(time.Millisecond))
	if got := n.Server.Get("/counters/counter%20999999", token); got.Body != "999999" {
		t.Errorf("the newest row is %d %s", got.Status, got.Body)
	}
}
