package store_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"runner.example/state/store"
	"runner.example/state/store/commitlog"
)

// opener opens a store as mustOpen does.
type opener func(o store.Options, window ...int) *store.Store

// each runs test on a store on disk, on one in memory, and on forks of both.
func each(t *testing.T, test func(t *testing.T, open opener)) {
	for _, kind := range []string{"disk", "memory"} {
		for forks, name := range []string{kind, "fork of " + kind, "fork of a fork of " + kind} {
			t.Run(name, func(t *testing.T) {
				test(t, func(o store.Options, window ...int) *store.Store {
					if kind == "disk" {
						o.Dir = t.TempDir()
					}
					s := mustOpen(t, o, window...)
					for range forks {
						s = mustFork(t, s)
					}
					return s
				})
			})
		}
	}
}

// mustFork forks s, and closes the fork when the test ends.
func mustFork(t testing.TB, s *store.Store) *store.Store {
	t.Helper()
	f, err := s.Fork(store.ForkOptions{})
	return opened(t, f, err)
}

// eachLog is each, and runs test on a store with a simulated log with faults, too: in a
// synctest bubble, so test must not wait for the store in a busy loop. There an entry may take
// several numbers.
func eachLog(t *testing.T, test func(t *testing.T, open opener)) {
	each(t, test)
	t.Run("simulated", func(t *testing.T) {
		random := newRandom(t)
		synctest.Test(t, func(t *testing.T) {
			test(t, func(o store.Options, window ...int) *store.Store {
				log := store.NewSimLog(random())
				t.Cleanup(log.Close)
				s, err := log.Open(o, windowOf(window))
				return opened(t, s, err)
			})
		})
	})
}

// sequential skips a test with -short, which the race detector runs: the test has no
// concurrency, and is slow with it.
func sequential(t *testing.T) {
	t.Helper()
	if testing.Short() {
		t.Skip("one thing after the other: nothing for the race detector")
	}
}

// mustOpen opens a store and closes it when the test ends, if the test did not. The size of
// the window, in entries, may be given.
func mustOpen(t testing.TB, o store.Options, window ...int) *store.Store {
	t.Helper()
	s, err := store.OpenWindow(o, windowOf(window))
	return opened(t, s, err)
}

func windowOf(given []int) int {
	if len(given) > 0 {
		return given[0]
	}
	return commitlog.MaxWindowEntries
}

// opened closes a store when the test ends.
func opened(t testing.TB, s *store.Store, err error) *store.Store {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

func update(t testing.TB, s *store.Store, fn func(*store.Tx) error) store.Seq {
	t.Helper()
	seq, err := s.Update(t.Context(), fn)
	if err != nil {
		t.Fatal(err)
	}
	return seq
}

// put sets keys to values, given alternately.
func put(t testing.TB, s *store.Store, pairs ...string) store.Seq {
	t.Helper()
	return update(t, s, func(tx *store.Tx) error {
		for i := 0; i < len(pairs); i += 2 {
			if err := tx.Set([]byte(pairs[i]), []byte(pairs[i+1])); err != nil {
				return err
			}
		}
		return nil
	})
}

// get returns the value of key, "<none>" if there is none.
func get(tx *store.Tx, key string) string {
	v, err := tx.Get([]byte(key))
	if errors.Is(err, store.ErrNotFound) {
		return "<none>"
	}
	if err != nil {
		return "error: " + err.Error()
	}
	return string(v)
}

func read(t testing.TB, s *store.Store, key string) (v string) {
	t.Helper()
	if err := s.View(t.Context(), func(tx *store.Tx) error { v = get(tx, key); return nil }); err != nil {
		t.Fatal(err)
	}
	return v
}

// scan returns what a scan yields as "k=v k=v".
func scan(tx *store.Tx, prefix, from string, reverse bool) string {
	return scanWithin(tx, "", prefix, from, reverse)
}

func scanWithin(tx *store.Tx, within, prefix, from string, reverse bool) string {
	var out []string
	for item, err := range tx.ScanWithin([]byte(within), []byte(prefix), []byte(from), reverse) {
		if err != nil {
			return "error: " + err.Error()
		}
		out = append(out, fmt.Sprintf("%s=%s", item.Key, item.Value))
	}
	return strings.Join(out, " ")
}

func scanAll(t testing.TB, s *store.Store, prefix string) (out string) {
	t.Helper()
	if err := s.View(t.Context(), func(tx *store.Tx) error { out = scan(tx, prefix, "", false); return nil }); err != nil {
		t.Fatal(err)
	}
	return out
}

func TestAcknowledgedWritesAreReadable(t *testing.T) {
	each(t, func(t *testing.T, open opener) {
		s := open(store.Options{})
		if seq := put(t, s, "a", "1", "b", ""); seq != 1 {
			t.Errorf("first commit is number %d", seq)
		}
		if seq := put(t, s, "a", "2"); seq != 2 {
			t.Errorf("second commit is number %d", seq)
		}
		update(t, s, func(tx *store.Tx) error { return tx.Delete([]byte("c")) })
		if got := scanAll(t, s, ""); got != "a=2 b=" {
			t.Errorf("store holds %q", got)
		}
		update(t, s, func(tx *store.Tx) error { return tx.Delete([]byte("a")) })
		if got := read(t, s, "a"); got != "<none>" {
			t.Errorf("deleted key reads %q", got)
		}
		if got := read(t, s, "b"); got != "" {
			t.Errorf("empty value reads %q", got)
		}
	})
}

func TestKeysOfUsersDoNotCollideWithInternalOnes(t *testing.T) {
	each(t, func(t *testing.T, open opener) {
		s := open(store.Options{})
		keys := []string{"\x00", "\x00log", "!badger!txn", "d", "mlog", "log", "p\x00\x01x\x00\x00", "\xff", "\xff\xff\xff",
			strings.Repeat("k", 64_000)}
		for _, k := range keys {
			put(t, s, k, "value of "+k)
		}
		for _, k := range keys {
			if got := read(t, s, k); got != "value of "+k {
				t.Errorf("key %.20q reads %.40q", k, got)
			}
		}
		n := 0
		err := s.View(t.Context(), func(tx *store.Tx) error {
			for _, err := range tx.Scan(nil, nil, n%2 == 1) {
				if err != nil {
					return err
				}
				n++
			}
			return nil
		})
		if err != nil || n != len(keys) {
			t.Errorf("scan yields %d keys of %d, error %v", n, len(keys), err)
		}
	})
}

func TestScanYieldsExactlyItsRange(t *testing.T) {
	each(t, func(t *testing.T, open opener) {
		s := open(store.Options{})
		put(t, s, "a", "0", "b", "1", "b/", "2", "b/1", "3", "b/2", "4", "b/\xff", "5", "b0", "6", "c", "7", "\xff\xff", "8")
		rows := []struct {
			prefix, from string
			reverse      bool
			want         string
		}{
			{"b/", "", false, "b/=2 b/1=3 b/2=4 b/\xff=5"},
			{"b/", "", true, "b/\xff=5 b/2=4 b/1=3 b/=2"},
			{"b/", "b/1", false, "b/1=3 b/2=4 b/\xff=5"},
			{"b/", "b/1", true, "b/1=3 b/=2"},
			{"b/", "b/11", false, "b/2=4 b/\xff=5"},
			{"b/", "b/11", true, "b/1=3 b/=2"},
			{"b/", "a", false, "b/=2 b/1=3 b/2=4 b/\xff=5"},
			{"b/", "a", true, ""},
			{"b/", "c", false, ""},
			{"b/", "c", true, "b/\xff=5 b/2=4 b/1=3 b/=2"},
			{"b/", "b0", true, "b/\xff=5 b/2=4 b/1=3 b/=2"},
			{"\xff", "", false, "\xff\xff=8"},
			{"\xff", "", true, "\xff\xff=8"},
			{"\xff", "\xff", true, ""},
			{"", "c", false, "c=7 \xff\xff=8"},
			{"", "a", true, "a=0"},
			{"x", "", false, ""},
			{"x", "", true, ""},
		}
		for _, row := range rows {
			err := s.View(t.Context(), func(tx *store.Tx) error {
				if got := scan(tx, row.prefix, row.from, row.reverse); got != row.want {
					t.Errorf("scan(%q, %q, %v) = %q, want %q", row.prefix, row.from, row.reverse, got, row.want)
				}
				return nil
			})
			if err != nil {
				t.Fatal(err)
			}
		}
		err := s.View(t.Context(), func(tx *store.Tx) error {
			for _, within := range []string{"b", "b/", "x", "b/1", "\xff"} {
				for _, row := range rows {
					if got := scanWithin(tx, within, row.prefix, row.from, row.reverse); got != row.want {
						t.Errorf("within %q, scan(%q, %q, %v) = %q, want %q", within, row.prefix, row.from, row.reverse, got, row.want)
					}
				}
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	})
}

// Scans within one prefix may be nested.
func TestNestedScansWithinAPrefixDoNotDisturbEachOther(t *testing.T) {
	each(t, func(t *testing.T, open opener) {
		s := open(store.Options{})
		put(t, s, "k1", "", "k2", "", "k3", "")
		err := s.View(t.Context(), func(tx *store.Tx) error {
			var got []string
			within := []byte("k")
			for outer, err := range tx.ScanWithin(within, within, nil, false) {
				if err != nil {
					return err
				}
				got = append(got, string(outer.Key))
				for inner, err := range tx.ScanWithin(within, within, outer.Key, false) {
					if err != nil {
						return err
					}
					got = append(got, string(inner.Key))
				}
			}
			if got, want := strings.Join(got, " "), "k1 k1 k2 k3 k2 k2 k3 k3 k3"; got != want {
				t.Errorf("scans yield %s, want %s", got, want)
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	})
}

func TestATransactionSeesItsOwnWrites(t *testing.T) {
	each(t, func(t *testing.T, open opener) {
		s := open(store.Options{})
		put(t, s, "k1", "a", "k3", "b", "k5", "c")
		update(t, s, func(tx *store.Tx) error {
			for _, err := range []error{
				tx.Set([]byte("k0"), []byte("new")), tx.Set([]byte("k3"), []byte("B")), tx.Delete([]byte("k5")),
				tx.Set([]byte("k9"), nil), tx.Set([]byte("k4"), []byte("gone")), tx.Delete([]byte("k4")),
			} {
				if err != nil {
					return err
				}
			}
			for key, want := range map[string]string{"k0": "new", "k1": "a", "k3": "B", "k4": "<none>", "k5": "<none>", "k9": ""} {
				if got := get(tx, key); got != want {
					t.Errorf("%s reads %q, want %q", key, got, want)
				}
			}
			if got, want := scan(tx, "k", "", false), "k0=new k1=a k3=B k9="; got != want {
				t.Errorf("scan %q, want %q", got, want)
			}
			if got, want := scan(tx, "k", "", true), "k9= k3=B k1=a k0=new"; got != want {
				t.Errorf("reverse scan %q, want %q", got, want)
			}
			return nil
		})
		if got, want := scanAll(t, s, "k"), "k0=new k1=a k3=B k9="; got != want {
			t.Errorf("afterwards %q, want %q", got, want)
		}
	})
}

func TestAScanSeesWritesOfItsLoopAheadOfIt(t *testing.T) {
	s := mustOpen(t, store.Options{})
	put(t, s, "k2", "", "k4", "", "k6", "")
	for _, row := range []struct {
		reverse bool
		want    string
	}{{false, "k2 k3 k4"}, {true, "k6 k4 k3 k2"}} {
		errStop := errors.New("stop")
		_, err := s.Update(t.Context(), func(tx *store.Tx) error {
			var got []string
			for item, err := range tx.Scan([]byte("k"), nil, row.reverse) {
				if err != nil {
					return err
				}
				got = append(got, string(item.Key))
				switch string(item.Key) {
				case "k2": // ascending, k1 is passed already and k3 is ahead
					err = errors.Join(tx.Set([]byte("k1"), nil), tx.Set([]byte("k3"), nil))
				case "k3":
					err = tx.Delete([]byte("k6"))
				case "k4":
					err = tx.Set([]byte("k3"), nil)
				}
				if err != nil {
					return err
				}
				if row.reverse && string(item.Key) == "k2" {
					break
				}
			}
			if got := strings.Join(got, " "); got != row.want {
				t.Errorf("reverse %v: yielded %s, want %s", row.reverse, got, row.want)
			}
			return errStop
		})
		if err != errStop {
			t.Fatal(err)
		}
	}
}

func TestItemsHaveTheVersionOfTheirCommit(t *testing.T) {
	each(t, func(t *testing.T, open opener) {
		s := open(store.Options{})
		first := put(t, s, "a", "1", "b", "1")
		second := put(t, s, "b", "2")
		update(t, s, func(tx *store.Tx) error {
			if err := tx.Set([]byte("c"), nil); err != nil {
				return err
			}
			want := map[string]store.Seq{"a": first, "b": second, "c": 0}
			for item, err := range tx.Scan(nil, nil, false) {
				if err != nil {
					return err
				}
				if item.Version != want[string(item.Key)] {
					t.Errorf("%s is of version %d, want %d", item.Key, item.Version, want[string(item.Key)])
				}
			}
			return nil
		})
	})
}

func TestValuesMayBeAsLongAsATransaction(t *testing.T) {
	sequential(t)
	each(t, func(t *testing.T, open opener) {
		s := open(store.Options{})
		lengths := []int{8<<20 - 1, 512<<10 + 1, 3 << 20, 512 << 10, 1 << 20, 0, 2 << 20}
		for _, n := range lengths {
			v := strings.Repeat("v", n-n/2) + strings.Repeat("w", n/2)
			put(t, s, "k", v)
			if got := read(t, s, "k"); got != v {
				t.Fatalf("value of %d bytes reads as %d others", n, len(got))
			}
			if got := scanAll(t, s, ""); got != "k="+v {
				t.Fatalf("value of %d bytes scans as %d others", n, len(got)-2)
			}
		}
		update(t, s, func(tx *store.Tx) error { return tx.Delete([]byte("k")) })
		if got := scanAll(t, s, ""); got != "" {
			t.Errorf("left after deletion: %d bytes", len(got))
		}
		if n := s.Pieces(); n != 0 {
			t.Errorf("%d pieces left after deletion", n)
		}
	})
}

func TestSetReturnsTooLarge(t *testing.T) {
	sequential(t)
	each(t, func(t *testing.T, open opener) {
		s := open(store.Options{})
		update(t, s, func(tx *store.Tx) error {
			if err := tx.Set([]byte("k"), make([]byte, 8<<20)); !errors.Is(err, store.ErrTooLarge) {
				t.Errorf("8 MiB and a key: %v", err)
			}
			if err := tx.Set([]byte("k"), make([]byte, 8<<20-1)); err != nil {
				t.Errorf("8 MiB: %v", err)
			}
			if err := tx.Set([]byte("l"), nil); !errors.Is(err, store.ErrTooLarge) {
				t.Errorf("one byte more: %v", err)
			}
			if err := tx.Set([]byte("k"), nil); err != nil {
				t.Errorf("replaced by less: %v", err)
			}
			if err := tx.Set(make([]byte, 64_001), nil); !errors.Is(err, store.ErrTooLarge) {
				t.Errorf("key of 64,001 bytes: %v", err)
			}
			return tx.Set([]byte("l"), []byte("fits again"))
		})
		if got := scanAll(t, s, ""); got != "k= l=fits again" {
			t.Errorf("store holds %.40q", got)
		}
		update(t, s, func(tx *store.Tx) error {
			for i := range 50_000 {
				if err := tx.Set(fmt.Appendf(nil, "n%08d", i*7919%50_000), make([]byte, 150)); err != nil {
					return err
				}
			}
			if err := tx.Delete([]byte("one more")); !errors.Is(err, store.ErrTooLarge) {
				t.Errorf("50,001 keys: %v", err)
			}
			return nil
		})
		n := 0
		err := s.View(t.Context(), func(tx *store.Tx) error {
			for item, err := range tx.Scan([]byte("n"), nil, false) {
				if err != nil {
					return err
				}
				if want := fmt.Sprintf("n%08d", n); string(item.Key) != want {
					return fmt.Errorf("key %s where %s should be", item.Key, want)
				}
				n++
			}
			return nil
		})
		if err != nil || n != 50_000 {
			t.Errorf("%d keys, error %v", n, err)
		}
	})
}

func TestAnErrorOfTheFunctionWritesNothing(t *testing.T) {
	each(t, func(t *testing.T, open opener) {
		s := open(store.Options{})
		mine := errors.New("mine")
		seq, err := s.Update(t.Context(), func(tx *store.Tx) error {
			if err := tx.Set([]byte("k"), nil); err != nil {
				return err
			}
			return mine
		})
		if err != mine || seq != 0 {
			t.Errorf("Update gives %d, %v", seq, err)
		}
		if err := s.View(t.Context(), func(*store.Tx) error { return mine }); err != mine {
			t.Errorf("View gives %v", err)
		}
		if got := scanAll(t, s, ""); got != "" {
			t.Errorf("store holds %q", got)
		}
	})
}

func TestAPanicInTheFunctionLeavesTheStoreUsable(t *testing.T) {
	each(t, func(t *testing.T, open opener) {
		s := open(store.Options{})
		put(t, s, "a", "1", "b", "2")
		runs := map[string]func(func(*store.Tx) error){
			"update": func(fn func(*store.Tx) error) { _, _ = s.Update(t.Context(), fn) },
			"view":   func(fn func(*store.Tx) error) { _ = s.View(t.Context(), fn) },
		}
		for name, run := range runs {
			func() {
				defer func() {
					if got := recover(); got != "mine" {
						t.Errorf("%s: recovered %v", name, got)
					}
				}()
				run(func(tx *store.Tx) error {
					_ = tx.Set([]byte("c"), nil)
					for range tx.Scan(nil, nil, false) {
						panic("mine")
					}
					return nil
				})
			}()
		}
		put(t, s, "d", "3")
		if got := scanAll(t, s, ""); got != "a=1 b=2 d=3" {
			t.Errorf("store holds %q", got)
		}
	})
}

func TestATransactionWithoutReadsAndWritesOpensNothing(t *testing.T) {
	s := mustOpen(t, store.Options{})
	put(t, s, "k", "v")
	before := s.Health().Snapshots
	idle := func(tx *store.Tx) error {
		if tx.Now().IsZero() || tx.Attempt() > 1 {
			return errors.New("wrong time or attempt")
		}
		return nil
	}
	ctx := t.Context()
	allocs := testing.AllocsPerRun(1000, func() {
		if seq, err := s.Update(ctx, idle); seq != 0 || err != nil {
			t.Fatal(seq, err)
		}
		if err := s.View(ctx, idle); err != nil {
			t.Fatal(err)
		}
	})
	if allocs > 2 {
		t.Errorf("an idle Update and an idle View allocate %v times, want the two Tx", allocs)
	}
	put(t, s, "k", "w") // writing alone reads no snapshot either
	h := s.Health()
	if h.Snapshots != before || h.Applied != 2 {
		t.Errorf("%d snapshots taken and %d commits made, want none and 2", h.Snapshots-before, h.Applied)
	}
	read(t, s, "k")
	if got := s.Health().Snapshots; got != before+1 {
		t.Errorf("a read took %d snapshots", got-before)
	}
}

func TestNowIsFixedDuringATransaction(t *testing.T) {
	var ticks int64
	s := mustOpen(t, store.Options{Clock: func() time.Time { ticks++; return time.Unix(ticks, 0) }})
	for want := int64(1); want <= 2; want++ {
		update(t, s, func(tx *store.Tx) error {
			for range 2 {
				if got := tx.Now().Unix(); got != want {
					t.Errorf("Now is %d, want %d", got, want)
				}
			}
			return nil
		})
	}
}

func TestAViewRefusesWrites(t *testing.T) {
	s := mustOpen(t, store.Options{})
	err := s.View(t.Context(), func(tx *store.Tx) error {
		return errors.Join(tx.Set([]byte("k"), nil), tx.Delete([]byte("k")))
	})
	if !errors.Is(err, store.ErrReadOnly) {
		t.Error(err)
	}
}

func TestAnEmptyKeyIsRefused(t *testing.T) {
	s := mustOpen(t, store.Options{})
	_, err := s.Update(t.Context(), func(tx *store.Tx) error {
		if _, err := tx.Get(nil); err == nil || errors.Is(err, store.ErrNotFound) {
			t.Errorf("Get: %v", err)
		}
		if err := tx.Delete([]byte{}); err == nil {
			t.Error("Delete: no error")
		}
		return tx.Set(nil, nil)
	})
	if err == nil || store.Seq(0) != s.Health().Applied {
		t.Errorf("Set: %v", err)
	}
}

func TestATransactionFailsAfterItsFunctionReturned(t *testing.T) {
	s := mustOpen(t, store.Options{})
	put(t, s, "k", "v")
	var kept *store.Tx
	update(t, s, func(tx *store.Tx) error { kept = tx; return nil })
	if _, err := kept.Get([]byte("k")); err == nil {
		t.Error("Get works")
	}
	if err := kept.Set([]byte("k"), nil); err == nil {
		t.Error("Set works")
	}
	if got := scan(kept, "", "", false); !strings.HasPrefix(got, "error: ") {
		t.Errorf("Scan yields %q", got)
	}
}

func TestBytesAreCopiedOnSetAndOnGet(t *testing.T) {
	each(t, func(t *testing.T, open opener) {
		s := open(store.Options{})
		key, value := []byte("key"), []byte("value")
		update(t, s, func(tx *store.Tx) error {
			if err := tx.Set(key, value); err != nil {
				return err
			}
			key[0], value[0] = 'X', 'X'
			got, err := tx.Get([]byte("key"))
			if err == nil {
				got[1] = 'Y'
			}
			return err
		})
		for range 2 {
			err := s.View(t.Context(), func(tx *store.Tx) error {
				got, err := tx.Get([]byte("key"))
				if string(got) != "value" {
					t.Errorf("reads %q", got)
				}
				clear(got)
				return err
			})
			if err != nil {
				t.Fatal(err)
			}
		}
	})
}

func TestReopenedStoresHaveAllData(t *testing.T) {
	dir := t.TempDir()
	want := ""
	long := strings.Repeat("long", 300_000)
	for round := range 4 {
		s := mustOpen(t, store.Options{Dir: dir}, 3)
		if got := scanAll(t, s, "r"); got != want {
			t.Fatalf("round %d: %q, want %q", round, got, want)
		}
		if got := s.Health().Applied; got != store.Seq(round*6) {
			t.Fatalf("round %d begins at commit %d", round, got)
		}
		for i := range 5 {
			put(t, s, fmt.Sprintf("r%d", i), fmt.Sprint(round))
		}
		put(t, s, "long", fmt.Sprint(round, long))
		if got := read(t, s, "long"); got != fmt.Sprint(round, long) {
			t.Fatalf("round %d: long value reads %d bytes", round, len(got))
		}
		want = scanAll(t, s, "r")
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

func TestASecondStoreOnTheSameDirectoryIsRefused(t *testing.T) {
	dir := t.TempDir()
	s := mustOpen(t, store.Options{Dir: dir})
	_, err := store.Open(store.Options{Dir: dir})
	if !errors.Is(err, store.ErrLocked) {
		t.Fatalf("second Open: %v", err)
	}
	if want := fmt.Sprintf("open store %q: locked by pid %d", dir, os.Getpid()); err.Error() != want {
		t.Errorf("it says %q, want %q", err, want)
	}
	if err := os.Remove(filepath.Join(dir, "lock")); err != nil {
		t.Fatal(err)
	}
	if _, err := store.Open(store.Options{Dir: dir}); !errors.Is(err, store.ErrLocked) {
		t.Errorf("without the file that says by whom: %v", err)
	}
	put(t, s, "k", "v")
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if got := read(t, mustOpen(t, store.Options{Dir: dir}), "k"); got != "v" {
		t.Errorf("reads %q", got)
	}
}

func TestAClosedStoreIsUnavailable(t *testing.T) {
	each(t, func(t *testing.T, open opener) {
		s := open(store.Options{})
		put(t, s, "k", "v")
		for range 2 {
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
		}
		ctx := t.Context()
		_, update := s.Update(ctx, func(tx *store.Tx) error { return tx.Set([]byte("k"), nil) })
		_, putBlob := s.PutBlob(ctx, strings.NewReader("x"))
		_, blob := s.Blob(ctx, store.Digest{})
		_, backup := s.Backup(ctx, io.Discard, nil, nil)
		for name, err := range map[string]error{
			"Update": update, "PutBlob": putBlob, "Blob": blob, "Backup": backup,
			"View":    s.View(ctx, func(tx *store.Tx) error { return nil }),
			"WaitFor": s.WaitFor(ctx, 99),
			"Barrier": s.Barrier(ctx),
			"Restore": s.Restore(ctx, nil),
			"Health":  s.Health().Reason,
		} {
			if !errors.Is(err, store.ErrUnavailable) {
				t.Errorf("%s: %v", name, err)
			}
		}
	})
}

func TestFilesAreReadableOnlyByTheOwner(t *testing.T) {
	dir := t.TempDir() + "/data"
	s := mustOpen(t, store.Options{Dir: dir})
	put(t, s, "k", "v")
	if _, err := s.PutBlob(t.Context(), strings.NewReader("x")); err != nil {
		t.Fatal(err)
	}
	checked := 0
	var walk func(string)
	walk = func(path string) {
		info, err := os.Lstat(path)
		if err != nil {
			t.Fatal(err)
		}
		checked++
		if mode := info.Mode().Perm(); mode&0o077 != 0 {
			t.Errorf("%s has mode %v", path, mode)
		}
		if !info.IsDir() {
			return
		}
		entries, err := os.ReadDir(path)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range entries {
			walk(path + "/" + e.Name())
		}
	}
	walk(dir)
	if checked < 8 {
		t.Errorf("only %d files checked", checked)
	}
}

func TestWaitForReturnsWhenTheCommitCanBeRead(t *testing.T) {
	s := mustOpen(t, store.Options{})
	waited := make(chan string, 1)
	go func() {
		if err := s.WaitFor(context.Background(), 2); err != nil {
			waited <- err.Error()
			return
		}
		waited <- read(t, s, "k")
	}()
	put(t, s, "k", "1")
	put(t, s, "k", "2")
	if got := <-waited; got != "2" {
		t.Errorf("after waiting, k reads %q", got)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := s.WaitFor(ctx, 3); !errors.Is(err, store.ErrUnavailable) || !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
	if err := s.WaitFor(ctx, 2); err != nil {
		t.Errorf("of what was reached: %v", err)
	}
}
