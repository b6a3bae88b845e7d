package live_test

import (
	"context"
	"fmt"
	"runtime"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"runner.example/runtime/live"
	"runner.example/state/store"
)

// world is a hub whose queries are names: the value of a query is the number of its runs, or a text that is set.
type world struct {
	*live.Hub[string]
	mu      sync.Mutex // guards what the hub's goroutines use
	runs    map[string]int
	values  map[string]string
	timed   bool
	fails   bool          // the next run gives no answer
	waits   chan struct{} // nil: runs do not wait
	changed []func(store.Seq)
}

func newWorld(t *testing.T, opt live.Options) *world {
	w := &world{runs: map[string]int{}, values: map[string]string{}}
	w.Hub = live.New(opt, live.Host[string]{
		Run: func(ctx context.Context, q *string) live.Answer {
			w.mu.Lock()
			w.runs[*q]++
			w.mu.Unlock()
			if w.waits != nil {
				<-w.waits
			}
			if w.fails {
				w.fails = false
				return live.Answer{}
			}
			w.mu.Lock()
			defer w.mu.Unlock()
			return live.Answer{Event: w.event(*q), Reads: new(store.Reads), Timed: w.timed}
		},
		Watch: func(_ context.Context, _ *store.Reads, changed func(store.Seq)) (*store.Watch, bool, error) {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.changed = append(w.changed, changed)
			return nil, true, nil
		},
		TooLarge: func(n int) live.Event {
			return live.Event{Kind: "problem", Hash: 1, Data: fmt.Appendf(nil, "%d bytes", n)}
		},
	})
	t.Cleanup(w.Close)
	return w
}

func (w *world) event(q string) live.Event {
	text, set := w.values[q]
	if !set {
		text = fmt.Sprint(w.runs[q])
	}
	var hash uint64
	for _, c := range text {
		hash = hash*31 + uint64(c)
	}
	return live.Event{Kind: "value", Hash: hash, Data: []byte(text)}
}

// commit says that all that was read has changed.
func (w *world) commit() {
	w.mu.Lock()
	all := w.changed
	w.changed = nil
	w.mu.Unlock()
	for _, changed := range all {
		changed(1)
	}
	synctest.Wait()
}

// ran returns how often a query has run.
func (w *world) ran(q string) int {
	synctest.Wait()
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.runs[q]
}

// taken returns the events of a listener since the last call.
func taken(l *live.Listener[string]) (all []string) {
	for {
		s, e, unchanged := l.Next()
		switch {
		case s == nil:
			return all
		case unchanged:
			all = append(all, s.Name+" unchanged")
		default:
			all = append(all, s.Name+" "+string(e.Data))
		}
	}
}

func want(t *testing.T, what string, got []string, want ...string) {
	t.Helper()
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("%s: %q, want %q", what, got, want)
	}
}

func TestEqualQueriesShareTheirRuns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, live.Options{})
		var all []*live.Listener[string]
		for i := range 50 {
			l := w.Listen()
			l.Subscribe(fmt.Sprint(i), "a", "a", 0, false)
			all = append(all, l)
		}
		synctest.Wait()
		for i, l := range all {
			want(t, "the first value", taken(l), fmt.Sprintf("%d 1", i))
		}
		time.Sleep(time.Second)
		w.commit()
		for i, l := range all {
			want(t, "the second value", taken(l), fmt.Sprintf("%d 2", i))
		}
		if w.ran("a") != 2 {
			t.Errorf("%d runs for 50 watchers and one change, want 2", w.ran("a"))
		}
	})
}

func TestAQueryRunsAtMostOnceInAnInterval(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, live.Options{Interval: 100 * time.Millisecond})
		l := w.Listen()
		l.Subscribe("x", "a", "a", 0, false)
		synctest.Wait()
		began := time.Now()
		for time.Since(began) < time.Second-time.Millisecond {
			w.commit()
			time.Sleep(time.Millisecond)
		}
		if n := w.ran("a"); n < 10 || n > 11 {
			t.Errorf("%d runs in a second, want 10", n)
		}
		time.Sleep(time.Second)
		before := w.ran("a")
		want(t, "a reader that took nothing meanwhile", taken(l), fmt.Sprintf("x %d", before))
	})
}

// A change during a run makes the query run again.
func TestAChangeDuringARunIsNotMissed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, live.Options{})
		l := w.Listen()
		l.Subscribe("x", "a", "a", 0, false)
		synctest.Wait()
		w.waits = make(chan struct{})
		old := w.changed
		w.commit()
		time.Sleep(time.Second)
		for _, changed := range old {
			changed(2)
		}
		close(w.waits)
		time.Sleep(time.Second)
		if w.ran("a") != 3 {
			t.Errorf("%d runs, want 3", w.ran("a"))
		}
		want(t, "the newest", taken(l), "x 3")
	})
}

func TestEqualValuesAreSentOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, live.Options{})
		w.values["a"] = "same"
		l := w.Listen()
		l.Subscribe("x", "a", "a", 0, false)
		synctest.Wait()
		want(t, "first", taken(l), "x same")
		time.Sleep(time.Second)
		w.commit()
		want(t, "after a run with the same value", taken(l))
		e := w.event("a")
		l.Subscribe("y", "a", "a", e.Hash, true)
		want(t, "a reader that has it", taken(l), "y unchanged")
		w.values["a"] = "other"
		time.Sleep(time.Second)
		w.commit()
		if got := taken(l); len(got) != 2 {
			t.Errorf("both get the other value: %q", got)
		}
	})
}

func TestATimedQueryRunsEverySecond(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, live.Options{})
		w.timed = true
		l := w.Listen()
		s := l.Subscribe("x", "a", "a", 0, false)
		time.Sleep(10*time.Second + time.Millisecond)
		if w.ran("a") != 11 {
			t.Errorf("%d runs in ten seconds, want 11", w.ran("a"))
		}
		s.End(nil)
		time.Sleep(10 * time.Second)
		if w.ran("a") != 11 {
			t.Errorf("without a watcher it ran %d times", w.ran("a")-11)
		}
	})
}

func TestARunWithoutAnAnswerIsRepeated(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, live.Options{})
		w.fails = true
		l := w.Listen()
		l.Subscribe("x", "a", "a", 0, false)
		synctest.Wait()
		want(t, "without an answer", taken(l))
		time.Sleep(time.Second)
		synctest.Wait()
		want(t, "a second later", taken(l), "x 2")
	})
}

func TestMovedAndEndedSubscriptions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, live.Options{})
		w.values["a"], w.values["b"] = "a", "b"
		l := w.Listen()
		s := l.Subscribe("x", "a", "a", 0, false)
		synctest.Wait()
		want(t, "before", taken(l), "x a")
		s.Move("b", "b")
		synctest.Wait()
		want(t, "moved", taken(l), "x b")
		last := live.Event{Kind: "end", Data: []byte("over"), Last: true}
		s.End(&last)
		s.End(&last)
		want(t, "ended", taken(l), "x over")
		l.Refuse("y", &last)
		want(t, "refused", taken(l), "y over")
		if got := w.Stats(); got.Queries != 0 || got.Subscriptions != 0 || got.Bytes != 0 {
			t.Errorf("what is left: %+v", got)
		}
	})
}

func TestTheMemoryOfValuesIsLimited(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, live.Options{ValueMemory: 100})
		w.values["a"], w.values["b"] = string(make([]byte, 60)), string(make([]byte, 61))
		l := w.Listen()
		a := l.Subscribe("a", "a", "a", 0, false)
		synctest.Wait()
		l.Subscribe("b", "b", "b", 0, false)
		synctest.Wait()
		want(t, "the second", taken(l)[1:], "b 61 bytes")
		a.End(nil)
		time.Sleep(time.Second) // without a commit
		synctest.Wait()
		if got := taken(l); len(got) != 1 || len(got[0]) != 63 {
			t.Errorf("when there is room again: %q", got)
		}
	})
}

// Next skips subscriptions that have ended without an event, however often their name was used.
func TestNextSkipsRemovedSubscriptions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, live.Options{})
		l := w.Listen()
		last := live.Event{Kind: "end", Data: []byte("over"), Last: true}
		for range 100 {
			s := l.Subscribe("x", "a", "a", 0, false)
			synctest.Wait()
			s.End(nil)
			l.Refuse("x", &last).End(nil)
			ended := l.Subscribe("x", "a", "a", 0, false)
			ended.End(&last)
			ended.End(nil)
		}
		l.Refuse("x", &last)
		want(t, "only the last one", taken(l), "x over")
	})
}

// Each listener gets a slot, but thousands do not wake at once. A listener that waits for its reader holds no slot.
func TestFewListenersSendAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, live.Options{})
		atOnce := max(1, runtime.GOMAXPROCS(0)/2)
		all := make([]*live.Listener[string], 10*atOnce)
		for i := range all {
			all[i] = w.Listen()
			all[i].Subscribe("x", "a", "a", 0, false)
			synctest.Wait()
			taken(all[i])
			all[i].Arm()
		}
		time.Sleep(time.Second)
		w.commit()
		for round := range 10 {
			var awake []*live.Listener[string]
			for _, l := range all {
				select {
				case <-l.Wake:
					awake = append(awake, l)
				default:
				}
			}
			if len(awake) != atOnce {
				t.Fatalf("%d listeners are awake in round %d, want %d", len(awake), round, atOnce)
			}
			for i, l := range awake {
				want(t, "the value", taken(l), "x 2")
				if (i+round)%2 == 0 {
					l.Disarm()
				} else {
					l.Arm()
				}
			}
		}
		for _, l := range all {
			if len(l.Wake) > 0 {
				t.Error("a listener without an event is awake")
			}
		}
		// A listener finds what came while it was disarmed.
		time.Sleep(time.Second)
		w.commit()
		for _, l := range all {
			taken(l)
			l.Arm()
		}
	})
}
