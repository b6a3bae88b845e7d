package sandbox_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"runner.example/tests/harness"
)

// sent is a request and how it ended.
type sent struct {
	begun, took time.Duration // begun since the first one
	status      int           // 0: without an answer
	problem     string        // in an answer other than 200, and 503 with Retry-After
}

// arrive sends requests with random pauses, so many per second on average, whether or not
// earlier ones have been answered. It calls watch, if that is not nil, sixty times.
func arrive(s *harness.Server, random *rand.Rand, path string, perSecond float64, length time.Duration, watch func()) (all []sent) {
	s.T.Helper()
	var mu sync.Mutex
	var requests sync.WaitGroup
	first := time.Now()
	for next, due := first, length/60; ; {
		next = next.Add(time.Duration(random.ExpFloat64() / perSecond * float64(time.Second)))
		if next.Sub(first) > length {
			break
		}
		<-time.After(time.Until(next))
		if watch != nil && next.Sub(first) > due {
			watch()
			due += length / 60
		}
		requests.Go(func() {
			began := time.Now()
			got, err := s.Try("GET", path, "")
			r := sent{begun: began.Sub(first), took: time.Since(began), status: got.Status}
			if err != nil {
				r.problem = err.Error()
			} else if got.Status != 200 && (got.Status != 503 || got.Header.Get("Retry-After") == "") {
				r.problem = got.Body
			}
			mu.Lock()
			defer mu.Unlock()
			all = append(all, r)
		})
	}
	requests.Wait()
	return all
}

// served returns how many requests were refused, and the times of the others in ascending
// order, of those that began after the given time. It reports all that were neither.
func served(t *testing.T, all []sent, after time.Duration) (times []time.Duration, refused int) {
	t.Helper()
	for _, r := range all {
		switch {
		case r.problem != "":
			t.Errorf("a request after %s got %d after %s: %s", r.begun, r.status, r.took, r.problem)
		case r.begun < after:
		case r.status == 200:
			times = append(times, r.took)
		default:
			refused++
		}
	}
	slices.Sort(times)
	return times, refused
}

// median returns the median of the values.
func median(values []int64) int64 { return slices.Sorted(slices.Values(values))[len(values)/2] }

// capacity returns how many requests per second are served to callers that send the next one
// when they have an answer.
func capacity(s *harness.Server, path string, length time.Duration) float64 {
	var served atomic.Int64
	began := time.Now()
	var callers sync.WaitGroup
	for range 6 {
		callers.Go(func() {
			for time.Since(began) < length {
				if got, err := s.Try("GET", path, ""); err == nil && got.Status == 200 {
					served.Add(1)
				}
			}
		})
	}
	callers.Wait()
	return float64(served.Load()) / time.Since(began).Seconds()
}

// Under twice the load that fits, some requests are served and the others refused with
// Retry-After, and nothing else happens. The long form wants that those served take at most
// twice as long as under a load that fits, and that the server needs no more memory after ten
// minutes than after one.
func TestTwiceTheLoadThatFits(t *testing.T) {
	length, times, wait := 2*time.Second, 10.0, "50ms" // what fits is measured too shortly to be sure of twice
	if harness.Soak {
		length, times, wait = 10*time.Minute, 2.0, "1s"
	}
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	s := harness.NewApp(t, `routes("/", auth: none, rateLimit: none) { GET /shortWork -> shortWork }`, fmt.Sprintf("[sandbox]\nqueue_wait = %q\n", wait), "bounds").Serve()
	const path = "/shortWork"
	capacity(s, path, length/20)
	fits := capacity(s, path, length/20)
	below := arrive(s, random, path, 0.8*fits, length/5, nil)
	var memory []int64
	above := arrive(s, random, path, times*fits, length, func() { memory = append(memory, s.Resources().OwnBytes) })
	before, after := median(memory[5:10]), median(memory[len(memory)-5:]) // around a garbage collection it varies

	quick, refusedBelow := served(t, below, 0)
	all, refused := served(t, above, 0)
	late, _ := served(t, above, length/10)
	if len(quick) == 0 || len(all) == 0 || refused == 0 {
		t.Fatalf("of %d requests %d are served and %d refused; want some of both", len(above), len(all), refused)
	}
	p99 := func(times []time.Duration) time.Duration { return times[len(times)*99/100] }
	ratio := float64(p99(all)) / float64(p99(quick))
	grown := float64(after) / float64(before)
	t.Logf("%.0f requests per second fit. At 0.8 of that %d are served and %d refused, p99 %s. At %.0f times that %d are served and %d refused, p99 %s, %.2f times; %s after the first tenth. Memory %d MiB, %.2f times that after the first tenth",
		fits, len(quick), refusedBelow, p99(quick), times, len(all), refused, p99(all), ratio, p99(late), after>>20, grown)
	if harness.Soak && (ratio > 2 || grown > 1.1) {
		t.Errorf("p99 is %.2f times that under a load that fits, and memory %.2f times that after a minute; want at most 2 and 1.1", ratio, grown)
	}
}
