package audit_test

import (
	"bytes"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"runner.example/state/audit"
	"runner.example/state/store"
)

func seal(t *testing.T, log *audit.Log) {
	t.Helper()
	if err := log.Seal(t.Context()); err != nil {
		t.Fatal(err)
	}
}

func targets(t *testing.T, entries []audit.Entry, err error) (out []string) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		out = append(out, fmt.Sprint(e.Sequence, " ", e.Target))
	}
	return out
}

// TestSealingDoesNotChangeTheChain seals after every few records, and compares with a
// store in which nothing is sealed.
func TestSealingDoesNotChangeTheChain(t *testing.T) {
	st := openStore(t, "")
	log := openLog(t, st)
	var heads []audit.Head
	var want []string
	for i := range 20 {
		add(t, st, fmt.Sprint("t", i))
		heads = append(heads, log.Head())
		want = append(want, fmt.Sprint(i+1, " t", i))
		if i%7 == 6 {
			before, err := audit.List(t.Context(), st, 1, 100)
			if err != nil {
				t.Fatal(err)
			}
			seal(t, log)
			after, err := audit.List(t.Context(), st, 1, 100)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(before, after); diff != "" {
				t.Fatal(diff)
			}
		}
	}
	if head := verify(t, st, heads...); head != heads[19] {
		t.Errorf("head %v, want %v", head, heads[19])
	}
	if again := openLog(t, st).Head(); again != heads[19] {
		t.Errorf("opened again it is %v, want %v", again, heads[19])
	}
	for from := 1; from <= 20; from++ {
		entries, err := audit.List(t.Context(), st, uint64(from), 4)
		if diff := cmp.Diff(want[from-1:min(from+3, 20)], targets(t, entries, err)); diff != "" {
			t.Errorf("from %d: %s", from, diff)
		}
		entries, err = audit.Newest(t.Context(), st, from)
		if diff := cmp.Diff(want[20-from:], targets(t, entries, err)); diff != "" {
			t.Errorf("the newest %d: %s", from, diff)
		}
	}
}

func TestVerifyFindsChangesOfSealedRecords(t *testing.T) {
	for name, c := range map[string]struct {
		tamper func(*store.Tx, [][]byte) error
		want   string
	}{
		"changed": {func(tx *store.Tx, keys [][]byte) error {
			value, err := tx.Get(keys[2])
			if err != nil {
				return err
			}
			return tx.Set(keys[2], bytes.Replace(value, []byte("t2"), []byte("t9"), 1))
		}, "record 3 was changed"},
		"removed": {func(tx *store.Tx, keys [][]byte) error { return tx.Delete(keys[1]) }, "records 2 to 2 are missing"},
		"the first ones removed": {func(tx *store.Tx, keys [][]byte) error {
			if err := tx.Delete(keys[0]); err != nil {
				return err
			}
			return tx.Delete(keys[1])
		}, "records 1 to 2 are missing"},
		"the last one removed": {func(tx *store.Tx, keys [][]byte) error { return tx.Delete(keys[4]) }, "it ends after 4 records"},
		"cut off":              {func(tx *store.Tx, keys [][]byte) error { return tx.Set(keys[3], []byte("r")) }, "record 4 cannot be read"},
		"two swapped": {func(tx *store.Tx, keys [][]byte) error {
			a, err := tx.Get(keys[0])
			if err != nil {
				return err
			}
			b, err := tx.Get(keys[1])
			if err != nil {
				return err
			}
			if err := tx.Set(keys[0], b); err != nil {
				return err
			}
			return tx.Set(keys[1], a)
		}, "record 1 was changed"},
	} {
		t.Run(name, func(t *testing.T) {
			st := openStore(t, "")
			log := openLog(t, st)
			for i := range 5 {
				add(t, st, fmt.Sprint("t", i))
			}
			seal(t, log)
			head := verify(t, st)
			keys := keysUnder(t, st, "auditlog/")
			if len(keys) != 5 || len(keysUnder(t, st, "audit/")) != 0 {
				t.Fatalf("%d records are sealed, want 5, and %d are not", len(keys), len(keysUnder(t, st, "audit/")))
			}
			update(t, st, func(tx *store.Tx) error { return c.tamper(tx, keys) })
			if _, err := audit.Verify(t.Context(), st, head); err == nil || !strings.Contains(err.Error(), "audit chain is broken: "+c.want) {
				t.Errorf("verified with %v, want %q", err, c.want)
			}
		})
	}
}

// TestOpeningTakesNoLongerWithMoreRecords alternately opens a short log and a much longer
// one. Both are written as earlier versions wrote them, without sealing.
func TestOpeningTakesNoLongerWithMoreRecords(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds: left out by -short")
	}
	const few = 1000
	many := 50 * few
	if os.Getenv("RUNNER_SOAK") != "" {
		many = 2_000_000
	}
	write := func(n int) (dir string, head audit.Head) {
		dir = t.TempDir()
		ticks := 0
		st, err := store.Open(store.Options{Dir: dir, Clock: func() time.Time { ticks++; return noon.Add(time.Duration(ticks) * time.Second) }})
		if err != nil {
			t.Fatal(err)
		}
		for left := n; left > 0; left -= 500 {
			update(t, st, func(tx *store.Tx) error {
				for i := range min(left, 500) {
					if err := audit.Append(tx, audit.Record{Action: "credentials.refuse", Target: fmt.Sprint(i)}); err != nil {
						return err
					}
				}
				return nil
			})
		}
		began := time.Now()
		log := openLog(t, st)
		t.Logf("%d records that are not sealed: opened in %v", n, time.Since(began))
		head = log.Head()
		seal(t, log)
		seal(t, log) // behind which the next ones begin
		if got := verify(t, st); got != head || head.Count != uint64(n) {
			t.Fatalf("sealing %d records changed the head from %v to %v", n, head, got)
		}
		if err := st.Close(); err != nil {
			t.Fatal(err)
		}
		return dir, head
	}
	var dirs [2]string
	var heads [2]audit.Head
	dirs[0], heads[0] = write(few)
	dirs[1], heads[1] = write(many)
	var times, stores [2][]time.Duration
	for range 9 {
		for i, dir := range dirs {
			began := time.Now()
			st := openStore(t, dir)
			opened := time.Now()
			log, err := audit.Open(t.Context(), st)
			times[i] = append(times[i], time.Since(opened))
			stores[i] = append(stores[i], opened.Sub(began))
			if err != nil {
				t.Fatal(err)
			}
			if log.Head() != heads[i] {
				t.Fatalf("opened at %v, want %v", log.Head(), heads[i])
			}
			log.Close()
			if err := st.Close(); err != nil {
				t.Fatal(err)
			}
		}
	}
	for i := range times {
		slices.Sort(times[i])
		slices.Sort(stores[i])
		t.Logf("%d sealed records: opened in %v, the store in %v", []int{few, many}[i], times[i][4], stores[i][4])
	}
	if small, large := times[0][4], times[1][4]; large > 3*small+time.Millisecond {
		t.Errorf("opened in %v with %d sealed records, in %v with %d", small, few, large, many)
	}
}
