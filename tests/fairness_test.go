package tests

import (
	"slices"
	"sync"
	"testing"
	"time"
)

const fairnessSchema = `
routes("/", auth: none, rateLimit: none) {
  GET /hello -> hello
  GET /loop -> loop (timeout: 60s)
  GET /tree -> tree (timeout: 200ms)
  GET /short -> loop (timeout: 50ms)
}
`

// latencies asks for the path n times, one after the other, and gives the
// times in order of length.
func (s *server) latencies(path string, n int) []time.Duration {
	s.t.Helper()
	all := make([]time.Duration, n)
	for i := range all {
		began := time.Now()
		if got := s.do("GET", path, ""); got.status != 200 {
			s.t.Fatalf("%s: %d %s", path, got.status, got.body)
		}
		all[i] = time.Since(began)
	}
	slices.Sort(all)
	return all
}

// With every sandbox but one taken by a loop, another route is served, and in
// the long form its slowest requests are not much slower than in a quiet
// server of the same run.
func TestNoisyNeighbour(t *testing.T) {
	const places = 4
	n := 100
	if soak {
		n = 2000
	}
	a := newApp(t, fairnessSchema, "[sandbox]\ninstances = 4\ncpu = \"60s\"\n[runtime]\nshutdown_timeout = \"100ms\"\n", "echo", "hostile")
	s := a.serve()
	quiet := s.latencies("/hello", n)
	var loops sync.WaitGroup
	for range places - 1 {
		loops.Go(func() { _, _ = s.try("GET", "/loop", "") }) // ended by the server's stop
	}
	busy := s.latencies("/hello", n)
	p99 := func(sorted []time.Duration) time.Duration { return sorted[len(sorted)*99/100] }
	t.Logf("p50 %s quiet, %s beside %d loops; p99 %s quiet, %s beside them: %.1f times",
		quiet[n/2], busy[n/2], places-1, p99(quiet), p99(busy), float64(p99(busy))/float64(p99(quiet)))
	if soak && p99(busy) > 10*p99(quiet) {
		t.Errorf("p99 is %s beside loops and %s without: more than 10 times", p99(busy), p99(quiet))
	}
	s.stop()
	loops.Wait()
}

func TestALoopFreeCallTreeEndsAtItsDeadline(t *testing.T) {
	s := newApp(t, fairnessSchema, "", "echo", "hostile").serve()
	if got := s.do("GET", "/tree", ""); checkAnswer(t, got) != "504 handler_timeout" {
		t.Errorf("%d %s", got.status, got.body)
	}
	if got := s.do("GET", "/hello", ""); got.status != 200 {
		t.Errorf("afterwards: %d", got.status)
	}
}

// A handler that keeps running out of time is not asked for a while; others are.
func TestAHandlerThatKeepsTimingOutIsRested(t *testing.T) {
	s := newApp(t, fairnessSchema, "", "echo", "hostile").serve()
	for i := range 5 {
		if got := s.do("GET", "/short", ""); checkAnswer(t, got) != "504 handler_timeout" {
			t.Fatalf("time-out %d: %d %s", i+1, got.status, got.body)
		}
	}
	got := s.do("GET", "/short", "")
	if checkAnswer(t, got) != "503 handler_unavailable" || got.header.Get("Retry-After") == "" {
		t.Errorf("the sixth: %d %s, Retry-After %q", got.status, got.body, got.header.Get("Retry-After"))
	}
	if got := s.do("GET", "/hello", ""); got.status != 200 {
		t.Errorf("another handler: %d", got.status)
	}
}

// overshoot is how much later than its deadline a spinning handler is ended;
// reported beside the same for an idle server in the long form.
func TestDeadlinesAreKept(t *testing.T) {
	if !soak {
		t.Skip("a measurement: it runs in make soak")
	}
	a := newApp(t, fairnessSchema+"routes(\"/\", auth: none, rateLimit: none) { GET /tight -> loop (timeout: 50ms) }\n", "[sandbox]\nbreaker = false\n", "echo", "hostile")
	s := a.serve()
	all := make([]time.Duration, 200)
	for i := range all {
		began := time.Now()
		if got := s.do("GET", "/tight", ""); got.status != 504 {
			t.Fatalf("%d %s", got.status, got.body)
		}
		all[i] = time.Since(began) - 50*time.Millisecond
	}
	slices.Sort(all)
	t.Logf("a 50 ms deadline is overshot by %s (median of 200), %s (worst)", all[100], all[199])
}
