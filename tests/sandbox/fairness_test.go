package sandbox_test

import (
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"runner.example/tests/harness"
)

const fairnessSchema = `
routes("/", auth: none, rateLimit: none) {
  GET /hello -> hello
  GET /loop -> loop (timeout: 60s)
  GET /tree -> tree (timeout: 200ms)
  GET /longTree -> tree (timeout: 60s)
}
`

// latencies requests the path n times, one after the other, and returns the times in
// ascending order.
func latencies(s *harness.Server, path string, n int) []time.Duration {
	s.T.Helper()
	all := make([]time.Duration, n)
	for i := range all {
		began := time.Now()
		if got := s.Do("GET", path, ""); got.Status != 200 {
			s.T.Fatalf("%s: %d %s", path, got.Status, got.Body)
		}
		all[i] = time.Since(began)
	}
	slices.Sort(all)
	return all
}

// While spinning guests hold all instance slots but one, another route is served. In the
// long form its slowest requests are compared with those of an idle server.
func TestAHandlerIsServedBesideSpinningOnes(t *testing.T) {
	n := 100
	if harness.Soak {
		n = 2000
	}
	for _, row := range []struct {
		slots, loops, trees int // one handler may not take all slots
	}{{4, 3, 0}, {16, 12, 3}} {
		a := harness.NewApp(t, fairnessSchema, fmt.Sprintf("[sandbox]\ninstances = %d\ncpu = \"60s\"\n[runtime]\nshutdown_timeout = \"100ms\"\n", row.slots), "echo", "hostile")
		s := a.Serve()
		quiet := latencies(s, "/hello", n)
		var guests sync.WaitGroup
		for path, n := range map[string]int{"/loop": row.loops, "/longTree": row.trees} {
			for range n {
				guests.Go(func() { _, _ = s.Try("GET", path, "") }) // ends when the server stops
			}
		}
		latencies(s, "/hello", 20) // until the others run
		busy := latencies(s, "/hello", n)
		p99 := func(sorted []time.Duration) time.Duration { return sorted[len(sorted)*99/100] }
		t.Logf("%d of %d slots spin: p50 %s quiet, %s beside them; p99 %s quiet, %s beside them: %.1f times",
			row.loops+row.trees, row.slots, quiet[n/2], busy[n/2], p99(quiet), p99(busy), float64(p99(busy))/float64(p99(quiet)))
		if harness.Soak && p99(busy) > 10*p99(quiet) {
			t.Errorf("p99 is %s beside loops and %s without: more than 10 times", p99(busy), p99(quiet))
		}
		s.Stop()
		guests.Wait()
	}
}

func TestALoopFreeCallTreeEndsAtItsDeadline(t *testing.T) {
	s := harness.NewApp(t, fairnessSchema, "", "echo", "hostile").Serve()
	if got := s.Do("GET", "/tree", ""); harness.CheckAnswer(t, got) != "504 handler_timeout" {
		t.Errorf("%d %s", got.Status, got.Body)
	}
	if got := s.Do("GET", "/hello", ""); got.Status != 200 {
		t.Errorf("afterwards: %d", got.Status)
	}
}

// A handler that used all its CPU time five times is unavailable for a while; other
// handlers are not.
func TestAHandlerThatKeepsRunningOutOfTimeIsUnavailable(t *testing.T) {
	s := harness.NewApp(t, fairnessSchema, "[sandbox]\ncpu = \"200ms\"\n", "echo", "hostile").Serve()
	for n := range 5 {
		if got := s.Do("GET", "/loop", ""); harness.CheckAnswer(t, got) != "504 handler_timeout" {
			t.Fatalf("request %d: %d %s", n+1, got.Status, got.Body)
		}
	}
	if got := s.Do("GET", "/loop", ""); harness.CheckAnswer(t, got) != "503 handler_unavailable" || got.Header.Get("Retry-After") == "" {
		t.Errorf("the sixth request: %d %s, Retry-After %q", got.Status, got.Body, got.Header.Get("Retry-After"))
	}
	if got := s.Do("GET", "/hello", ""); got.Status != 200 {
		t.Errorf("another handler: %d", got.Status)
	}
}

// A spinning handler is stopped soon after its deadline. The test logs the delay, compared
// with a sleeping handler and with other spinning handlers.
func TestDeadlinesAreKept(t *testing.T) {
	n := 10
	if harness.Soak {
		n = 200
	}
	const limit = 50 * time.Millisecond
	a := harness.NewApp(t, fairnessSchema+`
routes("/", auth: none, rateLimit: none, timeout: 50ms) {
  GET /sleep -> nap
  GET /tight -> loop
  GET /treeTight -> tree
}
`, "[sandbox]\nbreaker = false\ncpu = \"60s\"\n[runtime]\nshutdown_timeout = \"100ms\"\n", "echo", "hostile", "bounds")
	s := a.Serve()
	overshoot := func(path string) string {
		all := make([]time.Duration, n)
		for i := range all {
			began := time.Now()
			// Beside others, the deadline may pass while the request is queued.
			if got := s.Do("GET", path, ""); got.Status != 504 && got.Status != 503 {
				t.Fatalf("%s: %d %s", path, got.Status, got.Body)
			}
			all[i] = max(0, time.Since(began)-limit)
		}
		slices.Sort(all)
		if worst := all[n-1]; worst > harness.Timeout/3 {
			t.Errorf("%s overshoots its deadline by %s", path, worst)
		}
		return fmt.Sprintf("%s (worst %s)", all[n/2], all[n-1])
	}
	latencies(s, "/hello", 10)
	t.Logf("a deadline of %s is overshot, median of %d: a sleep by %s, a loop by %s, a tree of calls by %s",
		limit, n, overshoot("/sleep"), overshoot("/tight"), overshoot("/treeTight"))
	var loops sync.WaitGroup
	for range 3 {
		loops.Go(func() { _, _ = s.Try("GET", "/loop", "") })
	}
	latencies(s, "/hello", 20)
	// Another loop would be refused at once.
	t.Logf("beside three loops: a sleep by %s, a tree of calls by %s", overshoot("/sleep"), overshoot("/treeTight"))
	s.Stop()
	loops.Wait()
}

// Under a burst of long requests that cannot all be served in time, some are served, the
// others are refused with Retry-After, and short requests are served beside them. The long
// form measures the share of what fits that is served.
func TestOverloadedHandlersServeWhatFits(t *testing.T) {
	rounds := 60
	if harness.Soak {
		rounds = 600
	}
	start := func(timeout time.Duration) *harness.Server {
		return harness.NewApp(t, fmt.Sprintf(`
routes("/", auth: none, rateLimit: none) {
  GET /hello -> hello
  GET /work -> work (timeout: %dms)
}
`, timeout.Milliseconds()), "[sandbox]\nbreaker = false\ncpu = \"60s\"\n", "echo", "bounds").Serve()
	}
	s := start(time.Minute)
	latencies(s, "/work", 10)
	alone := latencies(s, "/work", 5)[2] // the time of one request
	s.Stop()
	// The processors serve at most 8 × GOMAXPROCS of the requests before the timeout.
	s = start(min(max(time.Second, 8*alone), time.Minute))
	defer s.Stop()
	quiet := latencies(s, "/hello", 50)
	var served, refused, other atomic.Int32
	var requests sync.WaitGroup
	began := time.Now()
	var pause <-chan time.Time
	if harness.Soak { // four times the load that fits
		tick := time.NewTicker(alone / 4)
		defer tick.Stop()
		pause = tick.C
	}
	var busy []time.Duration
	for range rounds {
		if pause != nil {
			<-pause
		}
		requests.Go(func() {
			got, err := s.Try("GET", "/work", "")
			switch {
			case err == nil && got.Status == 200:
				served.Add(1)
			case err == nil && got.Status == 503 && got.Header.Get("Retry-After") != "":
				refused.Add(1)
			default:
				other.Add(1)
			}
		})
		busy = append(busy, latencies(s, "/hello", 1)...)
	}
	requests.Wait()
	slices.Sort(busy)
	fits := float64(time.Since(began)) / float64(alone)
	t.Logf("%d requests of %s: %d served (%.0f %% of what fits), %d refused, %d ended otherwise; short requests take %s, without them %s (medians)",
		rounds, alone, served.Load(), 100*float64(served.Load())/fits, refused.Load(), other.Load(), busy[len(busy)/2], quiet[25])
	if served.Load() == 0 || refused.Load() == 0 {
		t.Errorf("of %d requests %d are served and %d refused; want some of both", rounds, served.Load(), refused.Load())
	}
	if harness.Soak && (float64(served.Load()) < 0.8*fits || other.Load() > int32(rounds/10)) {
		t.Errorf("%d requests are served, and %.1f fit; %d are neither served nor refused with Retry-After", served.Load(), fits, other.Load())
	}
}
