package audit_test

import (
	"bytes"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"runner.example/state/audit"
	"runner.example/state/store"
)

const day = 24 * time.Hour

func refuse(t *testing.T, st *store.Store, at time.Time) {
	t.Helper()
	update(t, st, func(tx *store.Tx) error {
		return audit.Append(tx, audit.Record{Time: audit.Timestamp{Time: at}, Action: audit.RefuseCredentials, Result: "invalid_token", Count: 3})
	})
}

func expireAt(t *testing.T, log *audit.Log, before time.Time) int {
	t.Helper()
	n, err := log.Expire(t.Context(), before, noon)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// actions lists the records as "<sequence> <first letter of the action>".
func actions(t *testing.T, st *store.Store) (out []string) {
	t.Helper()
	entries, err := audit.List(t.Context(), st, 1, 1000)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		out = append(out, fmt.Sprint(e.Sequence, " ", e.Action))
	}
	return out
}

// mixed writes four old counts with a change between them, a count of today and
// another change.
func mixed(t *testing.T, st *store.Store) {
	t.Helper()
	refuse(t, st, noon.Add(-31*day))
	refuse(t, st, noon.Add(-31*day))
	add(t, st, "kept")
	refuse(t, st, noon.Add(-31*day))
	refuse(t, st, noon.Add(-31*day))
	refuse(t, st, noon)
	add(t, st, "last")
}

func TestOnlyOldCountsOfRefusalsExpire(t *testing.T) {
	st := openStore(t, t.TempDir())
	log := openLog(t, st)
	mixed(t, st)
	if n := expireAt(t, log, noon.Add(-30*day)); n != 0 {
		t.Fatalf("%d records expired that are not sealed", n)
	}
	seal(t, log)
	if n := expireAt(t, log, noon.Add(-30*day)); n != 4 {
		t.Fatalf("%d records expired, want 4", n)
	}
	want := []string{"3 apiKeys.create", "6 credentials.refuse", "7 apiKeys.create", "8 audit.expire"}
	for range 2 {
		if diff := cmp.Diff(want, actions(t, st)); diff != "" {
			t.Fatal(diff)
		}
		if head := verify(t, st); head.Count != 8 || head != log.Head() || head != openLog(t, st).Head() {
			t.Fatalf("head %v, the log says %v", head, log.Head())
		}
		seal(t, log)
	}
	if n := expireAt(t, log, noon.Add(-30*day)); n != 0 || log.Head().Count != 8 {
		t.Errorf("%d records expired again", n)
	}
	if n := expireAt(t, log, noon.Add(time.Hour)); n != 1 {
		t.Errorf("%d records expired an hour later, want 1", n)
	}
	if diff := cmp.Diff([]string{"3 apiKeys.create", "7 apiKeys.create", "8 audit.expire", "9 audit.expire"}, actions(t, st)); diff != "" {
		t.Fatal(diff)
	}
	verify(t, st, log.Head())
}

func TestCountsAreKeptAsLongAsTheOptionSays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st, err := store.Open(store.Options{})
		if err != nil {
			t.Fatal(err)
		}
		defer st.Close()
		log := openLog(t, st)
		ctx, stop := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() {
			log.Run(ctx, audit.RunOptions{
				Logger: slog.New(slog.DiscardHandler), Every: time.Minute, KeepRefused: time.Hour, Now: time.Now,
			})
			close(done)
		}()
		refuse(t, st, time.Now())
		time.Sleep(time.Hour)
		if n := len(actions(t, st)); n != 1 {
			t.Errorf("after an hour there are %d records, want the count", n)
		}
		time.Sleep(2 * time.Minute)
		if diff := cmp.Diff([]string{"2 audit.expire"}, actions(t, st)); diff != "" {
			t.Error(diff)
		}
		stop()
		<-done
		verify(t, st, log.Head())
	})
}

// A clock that was once far ahead must not keep all later records forever.
func TestACountFromTheFutureExpiresWithThoseBeforeIt(t *testing.T) {
	st := openStore(t, "")
	log := openLog(t, st)
	refuse(t, st, noon.Add(400*day))
	refuse(t, st, noon.Add(-31*day))
	refuse(t, st, noon.Add(-29*day))
	refuse(t, st, noon.Add(400*day))
	seal(t, log)
	if n := expireAt(t, log, noon.Add(-30*day)); n != 2 {
		t.Errorf("%d records expired, want 2", n)
	}
	verify(t, st, log.Head())
}

func TestAHeadFromBeforeAnExpiryDoesNotVerify(t *testing.T) {
	st := openStore(t, "")
	log := openLog(t, st)
	var heads []audit.Head
	note := func() { heads = append(heads, log.Head()) }
	add(t, st, "first")
	note()
	refuse(t, st, noon.Add(-31*day))
	refuse(t, st, noon.Add(-31*day))
	note()
	add(t, st, "second")
	note()
	seal(t, log)
	verify(t, st, heads...)
	expireAt(t, log, noon)
	for range 2 {
		verify(t, st, heads[0], log.Head()) // nothing has expired before the first
		for _, head := range heads[1:] {
			if _, err := audit.Verify(t.Context(), st, head); !errors.Is(err, audit.ErrExpired) {
				t.Errorf("head %v verified with %v, want that it expired", head, err)
			}
		}
		between := heads[1]
		between.Count--
		if _, err := audit.Verify(t.Context(), st, between); !errors.Is(err, audit.ErrExpired) {
			t.Errorf("a head between expired records verified with %v, want that it expired", err)
		}
		seal(t, log)
	}
}

// TestACheckpointHidesNoChange tampers with a store as well as one can who may write to
// it: what was changed before a gap shows in the head, or at once.
func TestACheckpointHidesNoChange(t *testing.T) {
	for name, c := range map[string]struct {
		tamper func(*store.Tx, [][]byte) error
		want   string
	}{
		"a record before the gap changed": {func(tx *store.Tx, keys [][]byte) error {
			return replaceIn(tx, keys[1], "kept", "kepT")
		}, "record 3 was changed"},
		"a change removed as if it had expired": {func(tx *store.Tx, keys [][]byte) error {
			value, err := tx.Get(keys[1])
			if err != nil {
				return err
			}
			return tx.Set(keys[1], append(append([]byte("g"), value[1:33]...), 0, 0, 0, 0, 0, 0, 0, 1))
		}, "no checkpoint says so"},
		"a gap made longer": {func(tx *store.Tx, keys [][]byte) error {
			value, err := tx.Get(keys[2])
			if err != nil {
				return err
			}
			value[len(value)-1]++
			if err := tx.Delete(keys[1]); err != nil {
				return err
			}
			return tx.Set(keys[2], value)
		}, "no checkpoint says so"},
		"a gap removed": {func(tx *store.Tx, keys [][]byte) error { return tx.Delete(keys[2]) }, "records 4 to 5 are missing"},
		"the checkpoint changed": {func(tx *store.Tx, keys [][]byte) error {
			return replaceIn(tx, keys[5], `"count":4`, `"count":5`)
		}, "record 8 was changed"},
		"the checkpoint removed": {func(tx *store.Tx, keys [][]byte) error { return tx.Delete(keys[5]) }, "no checkpoint says so"},
	} {
		t.Run(name, func(t *testing.T) {
			st := openStore(t, "")
			log := openLog(t, st)
			mixed(t, st)
			seal(t, log)
			expireAt(t, log, noon.Add(-30*day))
			seal(t, log)
			head := verify(t, st)
			keys := keysUnder(t, st, "auditlog/")
			if len(keys) != 6 { // gap, change, gap, count, change, checkpoint
				t.Fatalf("%d rows, want 6", len(keys))
			}
			update(t, st, func(tx *store.Tx) error { return c.tamper(tx, keys) })
			if _, err := audit.Verify(t.Context(), st, head); err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), "audit chain is broken") {
				t.Errorf("verified with %v, want %q", err, c.want)
			}
		})
	}
}

func replaceIn(tx *store.Tx, key []byte, old, next string) error {
	value, err := tx.Get(key)
	if err != nil {
		return err
	}
	if !bytes.Contains(value, []byte(old)) {
		return fmt.Errorf("%q is not in %q", old, value)
	}
	return tx.Set(key, bytes.Replace(value, []byte(old), []byte(next), 1))
}

// TestAForgedCheckpointDoesNotVerifyAnOlderHead changes a record before a gap, makes
// the chain valid again up to the gap, and adds a checkpoint that confirms it. The head
// from before that checkpoint is still on the chain, and must not verify.
func TestAForgedCheckpointDoesNotVerifyAnOlderHead(t *testing.T) {
	victim, double := openStore(t, ""), openStore(t, "")
	log := openLog(t, victim)
	add(t, victim, "honest")
	refuse(t, victim, noon.Add(-31*day))
	add(t, victim, "last")
	seal(t, log)
	before := log.Head()
	expireAt(t, log, noon)

	// What the changed record's head would be, from a store in which it is so.
	other := openLog(t, double)
	add(t, double, "forged")
	seal(t, other)
	forged := other.Head()
	rows, dup := keysUnder(t, victim, "auditlog/"), keysUnder(t, double, "auditlog/")
	var row []byte
	if err := double.View(t.Context(), func(tx *store.Tx) (err error) {
		row, err = tx.Get(dup[0])
		return err
	}); err != nil {
		t.Fatal(err)
	}
	update(t, victim, func(tx *store.Tx) error {
		gap, err := tx.Get(rows[1])
		if err != nil {
			return err
		}
		if err := tx.Set(rows[0], row); err != nil {
			return err
		}
		for _, key := range keysUnder(t, victim, "audit/") {
			if err := tx.Delete(key); err != nil {
				return err
			}
		}
		to := "2:" + hex.EncodeToString(gap[1:33])
		return audit.Append(tx, audit.Record{Action: "audit.expire", Count: 1, Removed: []audit.Gap{{From: forged.String(), To: to}}})
	})
	verify(t, victim) // without a head kept elsewhere it cannot be seen
	if _, err := audit.Verify(t.Context(), victim, before); !errors.Is(err, audit.ErrExpired) {
		t.Errorf("verified with %v, want that the head is too old to prove anything", err)
	}
}

// TestExpiryAgainstAModel writes, seals, expires and opens again in random order, and
// compares with a plain list.
func TestExpiryAgainstAModel(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		seed := rapid.Uint64().Draw(rt, "seed")
		rng := rand.New(rand.NewPCG(seed, 1))
		// A clock that goes forth and back, so that keys are in no order of commits.
		st, err := store.Open(store.Options{Clock: func() time.Time { return noon.Add(time.Duration(rng.Int64N(int64(day)))) }})
		if err != nil {
			rt.Fatal(err)
		}
		defer st.Close()
		ctx := context.Background()
		log, err := audit.Open(ctx, st)
		if err != nil {
			rt.Fatal(err)
		}
		defer func() { log.Close() }()
		type record struct {
			target string
			at     time.Time // of a count
			sealed bool
		}
		var model []record
		gone := map[int]bool{}
		at, cut := noon.Add(-100*day), noon.Add(-100*day)
		var last audit.Head // after the newest expiry
		for step := range 120 {
			switch rng.IntN(9) {
			case 0:
				if err := log.Seal(ctx); err != nil {
					rt.Fatal(err)
				}
				for i := range model {
					model[i].sealed = true
				}
			case 1:
				cut = cut.Add(time.Duration(rng.Int64N(int64(20 * day))))
				want := 0
				for i, m := range model {
					if !m.at.IsZero() && m.sealed && !gone[i] && m.at.UnixMilli() < cut.UnixMilli() {
						gone[i] = true
						want++
					}
				}
				// Milliseconds are what records keep of a time.
				got, err := log.Expire(ctx, time.UnixMilli(cut.UnixMilli()), noon)
				if err != nil || got != want {
					rt.Fatalf("step %d: %d records expired, want %d: %v", step, got, want, err)
				}
				if want > 0 {
					model = append(model, record{})
					last = log.Head()
				}
			case 2:
				log.Close()
				if log, err = audit.Open(ctx, st); err != nil {
					rt.Fatal(err)
				}
			case 3:
				if err := log.RaiseFloor(ctx); err != nil {
					rt.Fatal(err)
				}
			default:
				target := fmt.Sprint("t", step)
				r := audit.Record{Action: "x", Target: target}
				m := record{target: target}
				if rng.IntN(3) > 0 {
					at = at.Add(time.Duration(rng.Int64N(int64(3 * day))))
					at = time.UnixMilli(min(at.UnixMilli(), noon.UnixMilli()))
					r.Action, r.Time.Time, m.at = audit.RefuseCredentials, at, at
				}
				model = append(model, m)
				if _, err := st.Update(ctx, func(tx *store.Tx) error { return audit.Append(tx, r) }); err != nil {
					rt.Fatal(err)
				}
			}
		}
		head, err := audit.Verify(ctx, st, last, log.Head())
		if err != nil || head != log.Head() || head.Count != uint64(len(model)) {
			rt.Fatalf("head %v, the log is at %v, the model at %d: %v", head, log.Head(), len(model), err)
		}
		var want, got []string
		for i, m := range model {
			if !gone[i] {
				want = append(want, fmt.Sprint(i+1, " ", m.target))
			}
		}
		entries, err := audit.List(ctx, st, 1, 1000)
		if err != nil {
			rt.Fatal(err)
		}
		for _, e := range entries {
			got = append(got, fmt.Sprint(e.Sequence, " ", e.Target))
		}
		if diff := cmp.Diff(want, got); diff != "" {
			rt.Fatal(diff)
		}
	})
}
