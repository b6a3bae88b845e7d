package audit_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"runner.example/internal/caller"
	"runner.example/state/audit"
	"runner.example/state/store"
)

var noon = time.Date(2026, 5, 1, 12, 0, 0, 123_456_789, time.UTC)

func openStore(t *testing.T, dir string) *store.Store {
	t.Helper()
	st, err := store.Open(store.Options{Dir: dir, Clock: func() time.Time { return noon }})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = st.Close() })
	return st
}

func openLog(t *testing.T, st *store.Store) *audit.Log {
	t.Helper()
	log, err := audit.Open(t.Context(), st)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(log.Close)
	return log
}

func update(t *testing.T, st *store.Store, fn func(*store.Tx) error) {
	t.Helper()
	if _, err := st.Update(t.Context(), fn); err != nil {
		t.Fatal(err)
	}
}

func add(t *testing.T, st *store.Store, target string) {
	t.Helper()
	update(t, st, func(tx *store.Tx) error {
		return audit.Append(tx, audit.Record{Action: "apiKeys.create", Target: target, Result: audit.OK})
	})
}

func verify(t *testing.T, st *store.Store, want ...audit.Head) audit.Head {
	t.Helper()
	head, err := audit.Verify(t.Context(), st, want...)
	if err != nil {
		t.Fatal(err)
	}
	return head
}

func TestARecordIsReadUnchanged(t *testing.T) {
	st := openStore(t, "")
	in := audit.Record{
		RequestID: "01j9", Actor: audit.ActorOf(caller.Caller{Kind: caller.Session, UserID: "u1"}),
		Action: "apiKeys.revoke", Target: "key_1", Result: audit.OK, Reason: "left", Address: "192.0.2.1",
	}
	update(t, st, func(tx *store.Tx) error { return audit.Append(tx, in) })
	got, err := audit.List(t.Context(), st, 0, 10)
	if err != nil || len(got) != 1 {
		t.Fatalf("%v, %v", got, err)
	}
	in.Time.Time = noon.Truncate(time.Millisecond)
	if diff := cmp.Diff(in, got[0].Record); diff != "" {
		t.Error(diff)
	}
	text, err := json.Marshal(got[0])
	if err != nil {
		t.Fatal(err)
	}
	want := `{"sequence":1,"time":"2026-05-01T12:00:00.123Z","requestId":"01j9","actor":{"kind":"session","id":"u1"},` +
		`"action":"apiKeys.revoke","target":"key_1","result":"ok","reason":"left","address":"192.0.2.1","hash":"` + got[0].Hash + `"}`
	if string(text) != want {
		t.Errorf("as JSON\n%s\nwant\n%s", text, want)
	}
	if head := verify(t, st); head.String() != "1:"+got[0].Hash {
		t.Errorf("the hash of the last record is %s, the head %v", got[0].Hash, head)
	}
}

func TestTheActorIsTheKeyOrTheUser(t *testing.T) {
	for _, c := range []struct {
		by   caller.Caller
		want audit.Actor
	}{
		{caller.Caller{}, audit.Actor{Kind: "anonymous"}},
		{caller.Caller{Kind: caller.Session, UserID: "u"}, audit.Actor{Kind: "session", ID: "u"}},
		{caller.Caller{Kind: caller.APIKey, UserID: "u", KeyID: "key_1"}, audit.Actor{Kind: "apiKey", ID: "key_1"}},
		{caller.Caller{Kind: caller.System, UserID: "uid:1000"}, audit.Actor{Kind: "system", ID: "uid:1000"}},
	} {
		if got := audit.ActorOf(c.by); got != c.want {
			t.Errorf("%+v is recorded as %+v, want %+v", c.by, got, c.want)
		}
	}
}

func TestRecordsOfOneTransactionKeepTheirOrder(t *testing.T) {
	st := openStore(t, "")
	var want, got []string
	update(t, st, func(tx *store.Tx) error {
		want = want[:0]
		for i := range 50 {
			want = append(want, fmt.Sprint(i))
			if err := audit.Append(tx, audit.Record{Target: want[i]}); err != nil {
				return err
			}
		}
		return nil
	})
	entries, err := audit.List(t.Context(), st, 1, 1000)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		got = append(got, e.Target)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestARecordOfATransactionThatFailsIsNotKept(t *testing.T) {
	st := openStore(t, "")
	log := openLog(t, st)
	failed := fmt.Errorf("no")
	_, err := st.Update(t.Context(), func(tx *store.Tx) error {
		if err := audit.Append(tx, audit.Record{Action: "x"}); err != nil {
			return err
		}
		return failed
	})
	if err != failed {
		t.Fatal(err)
	}
	if head := log.Head(); head != (audit.Head{}) || verify(t, st) != head {
		t.Errorf("head %v", head)
	}
}

func TestTheFollowedHeadIsTheRecomputedOne(t *testing.T) {
	for name, dir := range map[string]string{"memory": "", "disk": t.TempDir()} {
		t.Run(name, func(t *testing.T) { followUnderLoad(t, dir) })
	}
}

// followUnderLoad has writers write while logs are opened and heads are read.
func followUnderLoad(t *testing.T, dir string) {
	// A clock that jumps: records committed together are not in order of their keys.
	var ticks atomic.Int64
	jumping := func() time.Time { return noon.Add(time.Duration(ticks.Add(7919)%10007) * time.Millisecond) }
	open := func() *store.Store {
		st, err := store.Open(store.Options{Dir: dir, Clock: jumping})
		if err != nil {
			t.Fatal(err)
		}
		return st
	}
	st := open()
	log := openLog(t, st)
	var writers, readers sync.WaitGroup
	var done atomic.Bool
	var written atomic.Uint64
	for w := range 8 {
		writers.Go(func() {
			for i := 0; !done.Load(); i++ {
				_, err := st.Update(context.Background(), func(tx *store.Tx) error {
					for range 1 + i%3 {
						if err := audit.Append(tx, audit.Record{Target: fmt.Sprint(w, i)}); err != nil {
							return err
						}
					}
					return nil
				})
				if err != nil {
					t.Error(err)
					return
				}
				written.Add(uint64(1 + i%3))
			}
		})
	}
	readers.Go(func() {
		for range 30 {
			if err := log.Seal(context.Background()); err != nil {
				t.Error(err)
				return
			}
			if err := log.RaiseFloor(context.Background()); err != nil && !errors.Is(err, store.ErrConflict) {
				t.Error(err)
				return
			}
		}
	})
	var mu sync.Mutex
	var seen []audit.Head
	var late []*audit.Log
	for range 2 {
		readers.Go(func() {
			for range 30 {
				l, err := audit.Open(context.Background(), st)
				if err != nil {
					t.Error(err)
					return
				}
				mu.Lock()
				seen = append(seen, log.Head(), l.Head())
				late = append(late, l)
				mu.Unlock()
			}
		})
	}
	readers.Wait()
	done.Store(true)
	writers.Wait()

	// Every head ever shown is a place in the chain.
	head := verify(t, st, seen...)
	if want := written.Load(); head.Count != want {
		t.Fatalf("%d records, want %d", head.Count, want)
	}
	for _, l := range append(late, log) {
		if got := l.Head(); got != head {
			t.Errorf("a log that follows is at %v, the store at %v", got, head)
		}
		l.Close()
	}
	if err := st.Close(); err != nil {
		t.Fatal(err)
	}
	if dir == "" {
		return
	}
	st = open()
	defer func() { _ = st.Close() }()
	if got := openLog(t, st).Head(); got != head {
		t.Errorf("after a restart the head is %v, before it was %v", got, head)
	}
}

func TestTheHeadHasOnlyRecordsThatCanBeRead(t *testing.T) {
	st := openStore(t, "")
	log := openLog(t, st)
	add(t, st, "before")
	applied := 0
	defer st.OnApply([]byte("audit/"), func(store.Seq, store.Change) {
		applied++
		if head := log.Head(); head.Count != 1 {
			t.Errorf("while %d of 3 records were applied, the head counts %d", applied, head.Count)
		}
	})()
	update(t, st, func(tx *store.Tx) error {
		for range 3 {
			if err := audit.Append(tx, audit.Record{}); err != nil {
				return err
			}
		}
		return nil
	})
	if head := log.Head(); applied != 3 || head.Count != 4 || head != verify(t, st) {
		t.Errorf("%d applied, head %v", applied, head)
	}
}

func TestVerifyFindsChangedRecords(t *testing.T) {
	keys := func(st *store.Store) [][]byte { return keysUnder(t, st, "audit/") }
	for name, tamper := range map[string]func(*store.Tx, [][]byte) error{
		"changed": func(tx *store.Tx, keys [][]byte) error {
			value, err := tx.Get(keys[2])
			if err != nil {
				return err
			}
			return tx.Set(keys[2], bytes.Replace(value, []byte("t2"), []byte("t9"), 1))
		},
		"removed":               func(tx *store.Tx, keys [][]byte) error { return tx.Delete(keys[1]) },
		"the last ones removed": func(tx *store.Tx, keys [][]byte) error { return tx.Delete(keys[4]) },
		"two swapped": func(tx *store.Tx, keys [][]byte) error {
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
		},
	} {
		st := openStore(t, "")
		var heads []audit.Head
		for i := range 5 {
			add(t, st, fmt.Sprint("t", i))
			heads = append(heads, verify(t, st))
		}
		verify(t, st, heads...)
		update(t, st, func(tx *store.Tx) error { return tamper(tx, keys(st)) })
		if _, err := audit.Verify(t.Context(), st, heads[4]); err == nil || !strings.Contains(err.Error(), "audit chain is broken") {
			t.Errorf("%s: verified with %v", name, err)
		}
	}
}

func keysUnder(t *testing.T, st *store.Store, prefix string) (out [][]byte) {
	t.Helper()
	err := st.View(t.Context(), func(tx *store.Tx) error {
		for item, err := range tx.Scan([]byte(prefix), nil, false) {
			if err != nil {
				return err
			}
			out = append(out, slices.Clone(item.Key))
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func TestAddingRecordsCausesNoConflicts(t *testing.T) {
	st := openStore(t, "")
	tries := 0
	update(t, st, func(tx *store.Tx) error {
		tries++
		if _, err := tx.Get([]byte("unrelated")); err != store.ErrNotFound {
			return err
		}
		if err := audit.Append(tx, audit.Record{Target: "outer"}); err != nil {
			return err
		}
		add(t, st, "inner")
		return nil
	})
	if tries != 1 {
		t.Errorf("ran %d times", tries)
	}
	if head := verify(t, st); head.Count != 2 {
		t.Errorf("%d records", head.Count)
	}
}

func TestListReturnsPagesInTheOrderOfTheChain(t *testing.T) {
	st := openStore(t, "")
	for i := range 7 {
		add(t, st, fmt.Sprint(i))
	}
	var got []string
	for from := uint64(1); ; {
		page, err := audit.List(t.Context(), st, from, 3)
		if err != nil {
			t.Fatal(err)
		}
		if len(page) == 0 {
			break
		}
		for _, e := range page {
			if e.Sequence != from {
				t.Errorf("sequence %d where %d is expected", e.Sequence, from)
			}
			got = append(got, e.Target)
			from++
		}
	}
	if diff := cmp.Diff([]string{"0", "1", "2", "3", "4", "5", "6"}, got); diff != "" {
		t.Error(diff)
	}
}

func TestAHeadIsParsedAsPrinted(t *testing.T) {
	st := openStore(t, "")
	add(t, st, "x")
	head := verify(t, st)
	got, err := audit.ParseHead(head.String())
	if err != nil || got != head {
		t.Errorf("%v is read as %v, %v", head, got, err)
	}
	for _, bad := range []string{"", "1", "1:", ":ab", "x:" + strings.Repeat("0", 64), "1:" + strings.Repeat("0", 63), "1:" + strings.Repeat("g", 64), "-1:" + strings.Repeat("0", 64)} {
		if _, err := audit.ParseHead(bad); err == nil {
			t.Errorf("%q is read as a head", bad)
		}
	}
}

func TestTheHeadIsLoggedAtEveryInterval(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := openStore(t, "")
		log := openLog(t, st)
		add(t, st, "x")
		head := log.Head()
		var out bytes.Buffer
		ctx, cancel := context.WithTimeout(t.Context(), 150*time.Second)
		defer cancel()
		log.Run(ctx, audit.RunOptions{
			Logger: slog.New(slog.NewTextHandler(&out, nil)), Every: time.Minute, KeepRefused: time.Hour, Now: time.Now,
		})
		if got := strings.Count(out.String(), "head="+head.String()); got != 3 { // after 60 s, 120 s and at the end
			t.Errorf("logged %d times:\n%s", got, out.String())
		}
		if verify(t, st) != head {
			t.Error("sealing changed the chain")
		}
	})
}
