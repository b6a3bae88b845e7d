package store_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"runner.example/state/store"
	"runner.example/state/store/commitlog"
)

// nodes are stores that share a log, each with a data directory.
type nodes struct {
	t      *testing.T
	log    *store.SimLog
	window int
	dirs   []string
	stores []*store.Store
}

// startNodes starts n nodes in a synctest bubble. They are closed when the test ends.
func startNodes(t *testing.T, log *store.SimLog, n, window int) *nodes {
	c := &nodes{t: t, log: log, window: window, stores: make([]*store.Store, n)}
	t.Cleanup(log.Close)
	for i := range n {
		c.dirs = append(c.dirs, t.TempDir())
		c.open(i)
		t.Cleanup(func() { c.close(i) })
	}
	return c
}

func (c *nodes) open(i int) {
	s, err := c.log.Open(store.Options{Dir: c.dirs[i]}, c.window)
	if err != nil {
		c.t.Fatal(err)
	}
	c.stores[i] = s
}

func (c *nodes) close(i int) {
	if err := c.stores[i].Close(); err != nil {
		c.t.Error(err)
	}
}

// agree waits until all nodes have applied the same, and compares them.
func (c *nodes) agree() {
	c.t.Helper()
	for _, s := range c.stores {
		if err := s.Barrier(c.t.Context()); err != nil {
			c.t.Fatal(err)
		}
	}
	applied, chain, content := c.stores[0].Health().Applied, c.stores[0].Chain(), contentOf(c.t, c.stores[0])
	for i, s := range c.stores {
		if got := s.Health().Applied; got != applied || s.Chain() != chain || contentOf(c.t, s) != content {
			c.t.Errorf("node %d has commit %d, chain %.8s, and other keys: %v; node 0 has commit %d, chain %.8s", i, got, s.Chain(), contentOf(c.t, s) != content, applied, chain)
		}
	}
}

// contentOf returns all keys with their values and versions.
func contentOf(t testing.TB, s *store.Store) string {
	t.Helper()
	var all strings.Builder
	err := s.View(t.Context(), func(tx *store.Tx) error {
		for item, err := range tx.Scan(nil, nil, false) {
			if err != nil {
				return err
			}
			fmt.Fprintf(&all, "%d:%q=%q\n", item.Version, item.Key, item.Value)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return all.String()
}

// inBubble runs test in a synctest bubble, with a log with faults.
func inBubble(t *testing.T, test func(t *testing.T, log *store.SimLog)) {
	random := newRandom(t)()
	synctest.Test(t, func(t *testing.T) { test(t, store.NewSimLog(random)) })
}

// Writers on three nodes run random transactions, and the nodes restart, while the log delays,
// loses and doubles entries. The history must be serializable in the order of the log.
func TestNodesThatShareALogAgree(t *testing.T) {
	random := newRandom(t)
	synctest.Test(t, func(t *testing.T) {
		log := store.NewSimLog(random())
		c := startNodes(t, log, 3, 30)
		var mu sync.Mutex // for the stores and what follows
		var order []string
		history, unknown := map[string][]act{}, map[string][]act{}
		follow := func(s *store.Store) {
			s.OnApply([]byte("id/"), func(_ store.Seq, ch store.Change) { order = append(order, string(ch.Key)) })
		}
		follow(c.stores[0]) // does not restart
		var done sync.WaitGroup
		for w := range 6 {
			r := random()
			done.Go(func() {
				for n := range 40 {
					id := fmt.Sprintf("id/%d/%d", w, n)
					plan := randomActs(r, id)
					mu.Lock()
					s := c.stores[w%3]
					mu.Unlock()
					_, err := s.Update(t.Context(), func(tx *store.Tx) error { return perform(tx, plan, id) })
					mu.Lock()
					switch {
					case err == nil:
						history[id] = plan
					case errors.Is(err, store.ErrUnknown):
						unknown[id] = plan
					case !errors.Is(err, store.ErrConflict) && !errors.Is(err, store.ErrUnavailable):
						t.Error(err)
					}
					mu.Unlock()
				}
			})
		}
		restarts := random()
		for range 6 {
			time.Sleep(time.Duration(restarts.Int64N(int64(time.Second))))
			i := 1 + restarts.IntN(2)
			c.close(i)
			mu.Lock()
			c.open(i)
			mu.Unlock()
		}
		done.Wait()
		time.Sleep(2 * time.Minute) // the late entries come
		c.agree()
		possible := maps.Clone(unknown)
		maps.Copy(possible, history)
		replay(t, order, possible)
		for id := range history {
			if !slices.Contains(order, id) {
				t.Errorf("%s was acknowledged, but is not in the log", id)
			}
		}
		if len(order) < 60 {
			t.Errorf("only %d transactions committed", len(order))
		}
		doubles, lost, redelivered := log.Faults()
		t.Logf("%d commits, %d unknown, %d entries doubled, %d lost, %d deliveries repeated", len(order), len(unknown), doubles, lost, redelivered)
		if doubles == 0 || lost == 0 || redelivered == 0 {
			t.Error("the log had no faults of a kind")
		}
	})
}

func TestBarrierWaitsForWhatOtherNodesAcknowledged(t *testing.T) {
	inBubble(t, func(t *testing.T, log *store.SimLog) {
		c := startNodes(t, log, 2, 100)
		behind := 0
		for n := range 50 {
			put(t, c.stores[0], "k", fmt.Sprint(n))
			if read(t, c.stores[1], "k") != fmt.Sprint(n) {
				behind++
			}
			if err := c.stores[1].Barrier(t.Context()); err != nil {
				t.Fatal(err)
			}
			if got := read(t, c.stores[1], "k"); got != fmt.Sprint(n) {
				t.Fatalf("after a barrier the other node reads %s, want %d", got, n)
			}
		}
		if behind == 0 {
			t.Error("without a barrier the other node was never behind")
		}
		seq := put(t, c.stores[0], "k", "last")
		if err := c.stores[1].WaitFor(t.Context(), seq); err != nil || read(t, c.stores[1], "k") != "last" {
			t.Errorf("after waiting for a commit the other node reads %s, %v", read(t, c.stores[1], "k"), err)
		}
	})
}

// A silence of the log is no reason to stop reads, but it is known within three seconds that nothing can be stored.
func TestASilentLogIsNotWritableWithinThreeSeconds(t *testing.T) {
	inBubble(t, func(t *testing.T, log *store.SimLog) {
		c := startNodes(t, log, 2, 100)
		s := c.stores[0]
		want := func(when string, writable bool, says string) {
			t.Helper()
			h := s.Health()
			if h.Writable != writable || (h.NotWritable == nil) != writable || !strings.Contains(fmt.Sprint(h.NotWritable), says) {
				t.Errorf("%s: writable is %v, because of %v; want %v, %q", when, h.Writable, h.NotWritable, writable, says)
			}
			if h.Reason != nil {
				t.Errorf("%s: %v", when, h.Reason)
			}
		}
		time.Sleep(time.Second)
		want("connected", true, "nil")
		for i := range 10 { // at different times between two questions
			log.Cut(s, true)
			time.Sleep(time.Second)
			want("after a second", true, "nil")
			time.Sleep(2 * time.Second)
			want("after three seconds", false, "no majority of the voters has answered for")
			time.Sleep(time.Minute)
			want("after a minute", false, "has answered for 1m")
			log.Cut(s, false)
			time.Sleep(3 * time.Second) // the question that hangs ends first
			want("connected again", true, "nil")
			time.Sleep(time.Duration(i) * 53 * time.Millisecond)
		}
	})
}

func TestANodeThatIsCutOffBecomesStaleAndDoesNotWrite(t *testing.T) {
	inBubble(t, func(t *testing.T, log *store.SimLog) {
		c := startNodes(t, log, 2, 100)
		other := c.stores[1]
		put(t, other, "k", "1")
		c.close(0)
		put(t, other, "k", "1")
		c.open(0)
		s := c.stores[0]
		if got := s.Health().Staleness; got != math.MaxInt64 {
			t.Errorf("at its start the staleness is %v, want the longest", got)
		}
		time.Sleep(2 * time.Second)
		if got := s.Health().Staleness; got > time.Second {
			t.Errorf("a connected node is stale for %v", got)
		}
		log.Cut(s, true)
		cut := time.Now()
		put(t, other, "k", "2") // takes seconds if the log loses entries
		time.Sleep(10 * time.Second)
		if got, without := s.Health().Staleness, time.Since(cut); got < without-time.Second || got > without+2*time.Second {
			t.Errorf("a node without a connection for %v is stale for %v", without, got)
		}
		if got := read(t, s, "k"); got != "1" {
			t.Errorf("it reads %s, want what it has", got)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
		defer cancel()
		if err := s.Barrier(ctx); !errors.Is(err, store.ErrUnavailable) || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("its barrier: %v", err)
		}
		ctx, cancel = context.WithTimeout(t.Context(), 3*time.Second)
		defer cancel()
		first := make(chan error)
		go func() {
			_, err := s.Update(ctx, setter("first", ""))
			first <- err
		}()
		synctest.Wait()
		if _, err := s.Update(ctx, setter("second", "")); !errors.Is(err, store.ErrUnavailable) || errors.Is(err, store.ErrUnknown) {
			t.Errorf("a commit that waits in the queue: %v", err)
		}
		if err := <-first; !errors.Is(err, store.ErrUnknown) {
			t.Errorf("a commit that was sent: %v", err)
		}
		log.Cut(s, false)
		time.Sleep(10 * time.Second)
		if got := s.Health().Staleness; got > time.Second {
			t.Errorf("connected again it is stale for %v", got)
		}
		if got := scanAll(t, s, ""); got != "first= k=2" {
			t.Errorf("it has %s, want the unknown commit and not the other", got)
		}
		c.agree()
	})
}

func TestANodeWithoutAConnectionCloses(t *testing.T) {
	inBubble(t, func(t *testing.T, log *store.SimLog) {
		c := startNodes(t, log, 2, 100)
		log.Cut(c.stores[0], true)
		var results [2]chan error
		for i := range results {
			results[i] = make(chan error, 1)
			go func() {
				_, err := c.stores[0].Update(t.Context(), setter(fmt.Sprint(i), ""))
				results[i] <- err
			}()
			synctest.Wait()
		}
		began := time.Now()
		closed := make(chan error)
		go func() { closed <- c.stores[0].Close() }()
		for n, want := range []error{store.ErrUnknown, store.ErrUnavailable} {
			if err := <-results[n]; !errors.Is(err, want) {
				t.Errorf("commit %d: %v, want %v", n, err, want)
			}
		}
		if err := <-closed; err != nil || time.Since(began) > 11*time.Second {
			t.Errorf("closed with %v after %v", err, time.Since(began))
		}
		c.open(0)
		c.agree()
	})
}

// Without faults, an entry with the given batch number is in the log exactly where it is put.
func TestAnOlderBatchOfAProposerChangesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log := store.NewSimLog(nil)
		c := startNodes(t, log, 1, 5)
		s := c.stores[0]
		seq := store.Seq(0)
		add := func(batch uint64, base store.Seq, value, want string) {
			t.Helper()
			e := commitlog.Entry{ID: commitlog.ID{Proposer: 7, Batch: batch}, Base: base}
			e.Proposals = []*commitlog.Proposal{{Writes: []commitlog.Write{{Key: "k", Value: []byte(value)}}}}
			log.Put(e.Encode(nil))
			seq++
			if err := s.WaitFor(t.Context(), seq); err != nil {
				t.Fatal(err)
			}
			if got := read(t, s, "k"); got != want {
				t.Errorf("after batch %d with base %d, k reads %s, want %s", batch, base, got, want)
			}
		}
		add(1, 0, "a", "a")
		add(1, 0, "a", "a")
		add(3, 1, "b", "b")
		add(2, 1, "c", "b") // 3 is in the log: 2 never commits
		add(3, 1, "b", "b")
		c.close(0)
		c.open(0)
		s = c.stores[0]
		add(3, 1, "d", "b")
		for batch := range uint64(6) {
			add(10+batch, seq, "e", "e")
		}
		add(3, 1, "b", "e")  // the window has no batch 3 any more
		add(20, 3, "f", "e") // its base is before the window
		add(21, seq, "f", "f")
	})
}

func TestAnEntryOfANewerVersionStopsTheStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log := store.NewSimLog(nil)
		c := startNodes(t, log, 1, 5)
		s := c.stores[0]
		put(t, s, "k", "1")
		log.Put([]byte{99})
		synctest.Wait()
		if h := s.Health(); h.Writable || !errors.Is(h.Reason, commitlog.ErrFormat) || h.Applied != 1 || strings.Contains(h.Reason.Error(), "restart") {
			t.Errorf("health is %+v", h)
		}
		if _, err := s.Update(t.Context(), setter("k", "2")); !errors.Is(err, store.ErrUnavailable) {
			t.Errorf("a commit afterwards: %v", err)
		}
		if got := read(t, s, "k"); got != "1" {
			t.Errorf("it reads %s", got)
		}
	})
}
