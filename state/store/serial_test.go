package store_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"runner.example/state/store"
)

// newRandom returns a source of randomness with a seed that the test prints if it
// fails.
func newRandom(t testing.TB) func() *rand.Rand {
	seed := uint64(time.Now().UnixNano())
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("seed %d", seed)
		}
	})
	var mu sync.Mutex
	stream := uint64(0)
	return func() *rand.Rand {
		mu.Lock()
		defer mu.Unlock()
		stream++
		return rand.New(rand.NewPCG(seed, stream))
	}
}

// between runs an Update whose function calls first, then, in its first run
// only, commits what other does in another transaction, then calls last.
// It returns how often the function ran.
func between(t *testing.T, s *store.Store, first, other, last func(*store.Tx) error) (runs int) {
	t.Helper()
	update(t, s, func(tx *store.Tx) error {
		runs++
		if tx.Attempt() != runs {
			t.Errorf("run %d is attempt %d", runs, tx.Attempt())
		}
		if err := first(tx); err != nil {
			return err
		}
		if runs == 1 {
			if _, err := s.Update(t.Context(), other); err != nil {
				return err
			}
		}
		return last(tx)
	})
	return runs
}

func setter(key, value string) func(*store.Tx) error {
	return func(tx *store.Tx) error { return tx.Set([]byte(key), []byte(value)) }
}

func deleter(key string) func(*store.Tx) error {
	return func(tx *store.Tx) error { return tx.Delete([]byte(key)) }
}

func getter(key string) func(*store.Tx) error {
	return func(tx *store.Tx) error {
		_, err := tx.Get([]byte(key))
		if errors.Is(err, store.ErrNotFound) {
			return nil
		}
		return err
	}
}

// scanner scans keys with prefix p/ and stops after n of them, if n > 0.
func scanner(reverse bool, from string, n int) func(*store.Tx) error {
	return func(tx *store.Tx) error {
		left := n
		for _, err := range tx.Scan([]byte("p/"), []byte(from), reverse) {
			if err != nil {
				return err
			}
			if left--; left == 0 {
				break
			}
		}
		return nil
	}
}

func both(fns ...func(*store.Tx) error) func(*store.Tx) error {
	return func(tx *store.Tx) error {
		for _, fn := range fns {
			if err := fn(tx); err != nil {
				return err
			}
		}
		return nil
	}
}

func TestATransactionRunsAgainIfWhatItReadWasWritten(t *testing.T) {
	const again, once = 2, 1
	rows := []struct {
		name        string
		read, other func(*store.Tx) error
		runs        int
	}{
		{"key read, then written", getter("k"), setter("k", "2"), again},
		{"key read, then written with the same value", getter("k"), setter("k", "1"), again},
		{"key read, then deleted", getter("k"), deleter("k"), again},
		{"absent key read, then written", getter("absent"), setter("absent", ""), again},
		{"absent key read, then deleted", getter("absent"), deleter("absent"), again},
		{"another key written", getter("k"), setter("l", ""), once},
		{"nothing read", setter("k", "3"), setter("k", "2"), once},
		{"own write read", both(setter("k", "3"), getter("k")), setter("k", "2"), once},
		{"key read, then written here", both(getter("k"), setter("k", "3")), setter("k", "2"), again},

		{"range scanned, then a key put into it", scanner(false, "", 0), setter("p/35", ""), again},
		{"range scanned, then one put at its end", scanner(false, "", 0), setter("p/\xff\xff", ""), again},
		{"range scanned, then one put at its start", scanner(false, "", 0), setter("p/", ""), again},
		{"range scanned, then one put before it", scanner(false, "", 0), setter("p.", ""), once},
		{"range scanned, then one put after it", scanner(false, "", 0), setter("p0", ""), once},
		{"range scanned, then a key of it deleted", scanner(false, "", 0), deleter("p/3"), again},
		{"range scanned in reverse, then one put at its end", scanner(true, "", 0), setter("p/\xff\xff", ""), again},
		{"range scanned in reverse, then one put at its start", scanner(true, "", 0), setter("p/", ""), again},
		{"range scanned in reverse, then one put before it", scanner(true, "", 0), setter("p.", ""), once},
		{"range scanned in reverse, then one put after it", scanner(true, "", 0), setter("p0", ""), once},

		{"two keys consumed, then one put between", scanner(false, "", 2), setter("p/15", ""), again},
		{"two keys consumed, then the second written", scanner(false, "", 2), setter("p/2", ""), again},
		{"two keys consumed, then one put right after", scanner(false, "", 2), setter("p/2\x00", ""), once},
		{"two keys consumed in reverse, then one put between", scanner(true, "", 2), setter("p/35", ""), again},
		{"two keys consumed in reverse, then the second written", scanner(true, "", 2), setter("p/3", ""), again},
		{"two keys consumed in reverse, then one put right before", scanner(true, "", 2), setter("p/29", ""), once},

		{"scanned from a key, then one put before it", scanner(false, "p/2", 0), setter("p/1", ""), once},
		{"scanned from a key, then that written", scanner(false, "p/2", 0), setter("p/2", ""), again},
		{"scanned down from a key, then one put after it", scanner(true, "p/2", 0), setter("p/2\x00", ""), once},
		{"scanned down from a key, then that written", scanner(true, "p/2", 0), setter("p/2", ""), again},

		{"own key yielded first, then one put before it", both(setter("p/0", ""), scanner(false, "", 1)), setter("p/00", ""), once},
		{"own key yielded first, then one put at the start", both(setter("p/0", ""), scanner(false, "", 1)), setter("p/", ""), again},
		{"own key yielded last, then one put before it", both(setter("p/5", ""), scanner(false, "", 0)), setter("p/45", ""), again},
		{"own deletion passed over, then one put next to it", both(deleter("p/2"), scanner(false, "", 0)), setter("p/25", ""), again},
		{"own key yielded in reverse, then one put after it", both(setter("p/5", ""), scanner(true, "", 1)), setter("p/6", ""), again},
	}
	eachLog(t, func(t *testing.T, open opener) {
		s := open(store.Options{})
		for _, row := range rows {
			update(t, s, clearAll)
			put(t, s, "k", "1", "p/1", "", "p/2", "", "p/3", "", "p/4", "")
			if runs := between(t, s, row.read, row.other, setter("mine", "")); runs != row.runs {
				t.Errorf("%s: the function ran %d times, want %d", row.name, runs, row.runs)
			}
		}
	})
}

func clearAll(tx *store.Tx) error {
	for item, err := range tx.Scan(nil, nil, false) {
		if err == nil {
			err = tx.Delete(item.Key)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func TestWriteSkewCannotHappen(t *testing.T) {
	eachLog(t, func(t *testing.T, open opener) {
		s := open(store.Options{})
		put(t, s, "alice", "on call", "bob", "on call")
		leave := func(who string) func(*store.Tx) error {
			return func(tx *store.Tx) error {
				if get(tx, "alice") == "on call" && get(tx, "bob") == "on call" {
					return tx.Set([]byte(who), []byte("off"))
				}
				return nil
			}
		}
		nothing := func(*store.Tx) error { return nil }
		between(t, s, leave("alice"), leave("bob"), nothing)
		if got := scanAll(t, s, ""); got != "alice=on call bob=off" {
			t.Errorf("on duty: %s", got)
		}
	})
}

func TestATransactionThatWroteNothingNeverConflicts(t *testing.T) {
	eachLog(t, func(t *testing.T, open opener) {
		s := open(store.Options{})
		put(t, s, "k", "1")
		runs := 0
		seq, err := s.Update(t.Context(), func(tx *store.Tx) error {
			runs++
			before := get(tx, "k")
			put(t, s, "k", "2")
			if after := get(tx, "k"); before != "1" || after != "1" {
				t.Errorf("reads %s, then %s, of one snapshot", before, after)
			}
			return nil
		})
		if runs != 1 || seq != 0 || err != nil {
			t.Errorf("%d runs, commit %d, error %v", runs, seq, err)
		}
	})
}

func TestAfterFiveTriesAConflictIsReported(t *testing.T) {
	eachLog(t, func(t *testing.T, open opener) {
		s := open(store.Options{})
		runs := 0
		seq, err := s.Update(t.Context(), func(tx *store.Tx) error {
			runs++
			get(tx, "k")
			put(t, s, "k", fmt.Sprint(runs))
			return tx.Set([]byte("mine"), nil)
		})
		if runs != 5 || seq != 0 || !errors.Is(err, store.ErrConflict) {
			t.Errorf("%d runs, commit %d, error %v", runs, seq, err)
		}
		if got := scanAll(t, s, ""); got != "k=5" {
			t.Errorf("store holds %q", got)
		}
	})
}

func TestATransactionOlderThanTheWindowRunsAgainOnlyIfWhatItReadWasWritten(t *testing.T) {
	const window = 4
	rows := []struct {
		name        string
		read, other func(*store.Tx) error
		runs        int
	}{
		{"other keys written", both(getter("k"), scanner(false, "", 0)), setter("l", ""), 1},
		{"key read, then written", getter("k"), setter("k", "1"), 2},
		{"key read, then deleted", getter("k"), deleter("k"), 2},
		{"absent key read, then deleted", getter("absent"), deleter("absent"), 2},
		{"key written that begins with one read", getter("k"), setter("k\x00", ""), 1},
		{"key written that one read begins with", getter("p/12"), setter("p/1", ""), 1},
		{"range scanned, then a key put into it", scanner(false, "", 0), setter("p/35", ""), 2},
		{"range scanned, then a key of it deleted", scanner(false, "", 0), deleter("p/3"), 2},
		{"range scanned, then one put before it", scanner(false, "", 0), setter("p.", ""), 1},
		{"range scanned, then one put after it", scanner(false, "", 0), setter("p0", ""), 1},
		{"two keys consumed, then one put right after", scanner(false, "", 2), setter("p/2\x00", ""), 1},
		{"all keys scanned, then a last one put", func(tx *store.Tx) error { scan(tx, "", "", false); return nil }, setter("\xff", ""), 2},
	}
	eachLog(t, func(t *testing.T, open opener) {
		s := open(store.Options{}, window)
		for _, row := range rows {
			update(t, s, clearAll)
			put(t, s, "k", "1", "p/1", "", "p/2", "", "p/3", "", "p/4", "")
			older := func(tx *store.Tx) error {
				for i := range window + 1 { // so that the window has dropped row.other
					if tx.Attempt() == 1 {
						put(t, s, fmt.Sprintf("filler%d", i), "")
					}
				}
				return tx.Set([]byte("mine"), nil)
			}
			if runs := between(t, s, row.read, row.other, older); runs != row.runs {
				t.Errorf("%s: the function ran %d times, want %d", row.name, runs, row.runs)
			}
		}
	})
}

// Transactions of seconds during continuous imports: each import has the largest size of a
// transaction, so that the window has a few of them and more are queued.
func TestLongTransactionsSurviveBulkCommitsOfOtherKeys(t *testing.T) {
	sequential(t)
	commits := store.Seq(12)
	if os.Getenv("RUNNER_SOAK") == "1" {
		commits = 60
	}
	s := mustOpen(t, store.Options{Dir: t.TempDir()})
	put(t, s, "k", "1", "p/1", "")
	ctx, stop := context.WithCancel(t.Context())
	var importers, requests sync.WaitGroup
	for w := range 8 {
		importers.Go(func() {
			for ctx.Err() == nil {
				_, err := s.Update(ctx, func(tx *store.Tx) error {
					for i := range 50_000 {
						if err := tx.Set(fmt.Appendf(nil, "import/%02d/%032d", w, i), []byte("value")); err != nil {
							return err
						}
					}
					return nil
				})
				if err != nil && ctx.Err() == nil {
					t.Error(err)
				}
			}
		})
	}
	for r := range 6 {
		requests.Go(func() {
			runs := 0
			_, err := s.Update(t.Context(), func(tx *store.Tx) error {
				runs++
				get(tx, "k")
				scan(tx, "p/", "", false)
				snap, err := tx.Snapshot()
				if err != nil {
					return err
				}
				if err := s.WaitFor(t.Context(), snap+commits); err != nil {
					return err
				}
				return tx.Set(fmt.Appendf(nil, "mine/%d", r), nil)
			})
			if err != nil || runs != 1 {
				t.Errorf("request %d ran %d times beside imports of other keys, want once: %v", r, runs, err)
			}
		})
	}
	requests.Wait()
	stop()
	importers.Wait()
}

func TestNoIncrementIsLost(t *testing.T) {
	eachLog(t, func(t *testing.T, open opener) {
		s := open(store.Options{})
		const writers, rounds = 16, 40
		var done sync.WaitGroup
		for range writers {
			done.Go(func() {
				for range rounds {
					for {
						_, err := s.Update(t.Context(), increment)
						if err == nil {
							break
						}
						if !errors.Is(err, store.ErrConflict) {
							t.Error(err)
							return
						}
					}
				}
			})
		}
		done.Wait()
		if got := read(t, s, "n"); got != fmt.Sprint(writers*rounds) {
			t.Errorf("counter is %s after %d increments", got, writers*rounds)
		}
	})
}

func increment(tx *store.Tx) error {
	n := 0
	v, err := tx.Get([]byte("n"))
	if err == nil {
		n, err = strconv.Atoi(string(v))
	}
	if err != nil && !errors.Is(err, store.ErrNotFound) {
		return err
	}
	return tx.Set([]byte("n"), strconv.AppendInt(nil, int64(n+1), 10))
}

func TestTransfersKeepTheTotal(t *testing.T) {
	eachLog(t, func(t *testing.T, open opener) {
		s := open(store.Options{}, 64)
		random := newRandom(t)
		const accounts, each = 10, 100
		account := func(i int) string { return fmt.Sprintf("acc%d", i) }
		for i := range accounts {
			put(t, s, account(i), fmt.Sprint(each))
		}
		total := func(tx *store.Tx) int {
			sum := 0
			for item, err := range tx.Scan([]byte("acc"), nil, false) {
				n, bad := strconv.Atoi(string(item.Value))
				if err != nil || bad != nil {
					t.Error(err, bad)
				}
				sum += n
			}
			return sum
		}
		var done sync.WaitGroup
		for range 8 {
			r := random()
			done.Go(func() {
				for range 100 {
					from, to, n := account(r.IntN(accounts)), account(r.IntN(accounts)), r.IntN(50)
					_, err := s.Update(t.Context(), func(tx *store.Tx) error { return transfer(tx, from, to, n) })
					if err != nil && !errors.Is(err, store.ErrConflict) {
						t.Error(err)
					}
					err = s.View(t.Context(), func(tx *store.Tx) error {
						if sum := total(tx); sum != accounts*each {
							t.Errorf("a view counts %d", sum)
						}
						return nil
					})
					if err != nil {
						t.Error(err)
					}
				}
			})
		}
		done.Wait()
	})
}

func transfer(tx *store.Tx, from, to string, n int) error {
	if from == to {
		return nil
	}
	a, err1 := strconv.Atoi(get(tx, from))
	b, err2 := strconv.Atoi(get(tx, to))
	if err := errors.Join(err1, err2); err != nil || a < n {
		return err
	}
	return errors.Join(tx.Set([]byte(from), fmt.Append(nil, a-n)), tx.Set([]byte(to), fmt.Append(nil, b+n)))
}

// act is one operation of a recorded transaction and what it saw.
type act struct {
	kind  string // get, scan, set, delete
	key   string
	value string // set: to write; get: that was read
	back  bool   // scan
	limit int
	saw   string
}

// TestRandomHistoriesAreSerializable runs random transactions
// concurrently, and then one by one on a map, in the order of the log. Each must read the
// same again.
func TestRandomHistoriesAreSerializable(t *testing.T) {
	eachLog(t, func(t *testing.T, open opener) {
		s := open(store.Options{}, 2)
		random := newRandom(t)
		var order []string
		stop := s.OnApply([]byte("id/"), func(_ store.Seq, c store.Change) { order = append(order, string(c.Key)) })
		defer stop()

		var mu sync.Mutex
		history := map[string][]act{}
		var done sync.WaitGroup
		for w := range 8 {
			r := random()
			done.Go(func() {
				for n := range 60 {
					id := fmt.Sprintf("id/%d/%d", w, n)
					plan := randomActs(r, id)
					_, err := s.Update(t.Context(), func(tx *store.Tx) error { return perform(tx, plan, id) })
					if errors.Is(err, store.ErrConflict) {
						continue
					}
					if err != nil {
						t.Error(err)
						return
					}
					mu.Lock()
					history[id] = plan
					mu.Unlock()
				}
			})
		}
		done.Wait()
		if len(order) != len(history) || len(history) < 100 {
			t.Fatalf("%d transactions acknowledged, %d in the log", len(history), len(order))
		}
		model := replay(t, order, history)
		var want []string
		for _, k := range slices.Sorted(maps.Keys(model)) {
			want = append(want, k+"="+model[k])
		}
		if got := scanAll(t, s, "k"); got != strings.Join(want, " ") {
			t.Errorf("store holds %s, want %v", got, want)
		}
	})
}

// replay runs the transactions on a map, in the order of the log, and returns it. Each must
// read the same again.
func replay(t *testing.T, order []string, history map[string][]act) map[string]string {
	t.Helper()
	model := map[string]string{}
	for i, id := range order {
		plan, ok := history[id]
		if !ok {
			t.Fatalf("transaction %d, %s, is in the log, but its Update failed", i, id)
		}
		for _, a := range plan {
			if saw := a.on(model); saw != a.saw {
				t.Fatalf("transaction %d, %s: %+v would have seen %q", i, id, a, saw)
			}
		}
	}
	return model
}

func randomActs(r *rand.Rand, id string) []act {
	acts := make([]act, 1+r.IntN(5))
	for i := range acts {
		a := act{key: "k" + strconv.Itoa(r.IntN(30)), value: id, back: r.IntN(2) == 0, limit: r.IntN(4)}
		a.kind = []string{"get", "get", "scan", "set", "set", "delete"}[r.IntN(6)]
		acts[i] = a
	}
	return acts
}

// perform runs the plan in tx, records what it reads, and writes id.
func perform(tx *store.Tx, plan []act, id string) error {
	for i := range plan {
		a := &plan[i]
		var err error
		switch a.kind {
		case "get":
			a.saw = get(tx, a.key)
		case "set":
			err = tx.Set([]byte(a.key), []byte(a.value))
		case "delete":
			err = tx.Delete([]byte(a.key))
		case "scan":
			a.saw = ""
			n := 0
			for item, err := range tx.ScanWithin([]byte("k"), []byte("k"), []byte(a.key), a.back) {
				if err != nil {
					return err
				}
				a.saw += fmt.Sprintf("%s=%s ", item.Key, item.Value)
				if n++; n == a.limit {
					break
				}
			}
		}
		if err != nil {
			return err
		}
	}
	return tx.Set([]byte(id), nil)
}

// on does the same on a map.
func (a *act) on(m map[string]string) (saw string) {
	switch a.kind {
	case "get":
		if v, ok := m[a.key]; ok {
			return v
		}
		return "<none>"
	case "set":
		m[a.key] = a.value
	case "delete":
		delete(m, a.key)
	case "scan":
		keys := slices.Sorted(maps.Keys(m))
		if a.back {
			slices.Reverse(keys)
		}
		n := 0
		for _, k := range keys {
			if c := strings.Compare(k, a.key); c < 0 && !a.back || c > 0 && a.back {
				continue
			}
			saw += k + "=" + m[k] + " "
			if n++; n == a.limit {
				break
			}
		}
	}
	return saw
}

func TestAnUnfinishedScanHoldsNoSnapshot(t *testing.T) {
	s := mustOpen(t, store.Options{})
	put(t, s, "a", "1", "b", "2")
	var next func() (store.Item, error, bool)
	err := s.View(t.Context(), func(tx *store.Tx) error {
		var stop func()
		next, stop = pull(tx)
		t.Cleanup(stop)
		item, err, ok := next()
		if err != nil || !ok || !bytes.Equal(item.Key, []byte("a")) {
			t.Errorf("first is %s, %v, %v", item.Key, err, ok)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, err, ok := next(); err == nil || !ok {
		t.Errorf("after the end of its transaction a scan continues: %v, %v", err, ok)
	}
}

func pull(tx *store.Tx) (func() (store.Item, error, bool), func()) {
	return iter.Pull2(tx.Scan(nil, nil, false))
}
