package keystore_test

import (
	"encoding/binary"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"runner.example/keystore"
	"runner.example/state/store"
)

func TestTheLastUseIsVisibleAtOnceAndAfterARestart(t *testing.T) {
	w := onDisk(t)
	op := operator(compile(t, typed))
	used := w.must(w.create(op, keystore.CreateRequest{Scope: "orders_read"}))
	unused := w.must(w.create(op, keystore.CreateRequest{Scope: "orders_read"}))
	w.clock.advance(time.Hour)
	w.accepts(used)
	w.rejects(keystore.Key{Token: keystore.NewToken("ord")}, keystore.Unknown)
	check := func() {
		t.Helper()
		if got := w.must(w.get(op, used.ID)); !got.LastUsedAt.Equal(noon.Add(time.Hour)) {
			t.Errorf("last used %v", got.LastUsedAt)
		}
		if got := w.must(w.get(op, unused.ID)); !got.LastUsedAt.IsZero() {
			t.Errorf("never used, and yet at %v", got.LastUsedAt)
		}
	}
	check()
	w.reopen()
	check()
	w.must(w.rotate(op, used.ID, 0))
	check()
	if n := len(w.audit()); n != 3 {
		t.Errorf("%d audit records of three changes: a use must not be recorded", n)
	}
}

func TestARefusedTokenDoesNotCountAsAUse(t *testing.T) {
	w := inMemory(t)
	op := operator(compile(t, typed))
	key := w.must(w.create(op, keystore.CreateRequest{Scope: "orders_read"}))
	w.must(w.disable(op, key.ID))
	w.rejects(key, keystore.KeyOff)
	if got := w.must(w.get(op, key.ID)); !got.LastUsedAt.IsZero() {
		t.Errorf("last used %v", got.LastUsedAt)
	}
}

func TestALastUseIsWrittenAtMostOnceAMinute(t *testing.T) {
	s := compile(t, typed)
	synctest.Test(t, func(t *testing.T) {
		st, err := store.Open(store.Options{})
		if err != nil {
			t.Fatal(err)
		}
		keys, err := keystore.Open(t.Context(), st, keystore.Options{})
		if err != nil {
			t.Fatal(err)
		}
		var writes atomic.Int64
		defer st.OnApply([]byte("keystore/use/"), func(store.Seq, store.Change) { writes.Add(1) })()
		var tokens []string
		for range 2 {
			_, err = st.Update(t.Context(), func(tx *store.Tx) error {
				key, err := keys.Create(tx, operator(s), keystore.CreateRequest{Scope: "orders_read"})
				tokens = append(tokens, key.Token.Reveal())
				return err
			})
			if err != nil {
				t.Fatal(err)
			}
		}
		for range 200 { // over 10 minutes, one key all the time, the other once
			if _, err := keys.Verify([]byte(tokens[0])); err != nil {
				t.Fatal(err)
			}
			if _, err := keys.Verify([]byte(tokens[len(tokens)-1])); err != nil {
				t.Fatal(err)
			}
			tokens = tokens[:1]
			time.Sleep(3 * time.Second)
		}
		if got := writes.Load(); got < 10 || got > 11 {
			t.Errorf("%d writes in ten minutes", got)
		}
		if err := keys.Close(); err != nil {
			t.Error(err)
		}
		if err := st.Close(); err != nil {
			t.Error(err)
		}
	})
}

func TestAnOlderLastUseDoesNotReplaceANewerOne(t *testing.T) {
	w := inMemory(t)
	op := operator(compile(t, typed))
	key := w.must(w.create(op, keystore.CreateRequest{Scope: "orders_read"}))
	w.accepts(key)
	for _, c := range []struct{ written, want time.Duration }{{-time.Hour, 0}, {time.Hour, time.Hour}} {
		at := binary.BigEndian.AppendUint64(nil, uint64(noon.Add(c.written).UnixMilli()))
		_, err := w.store.Update(t.Context(), func(tx *store.Tx) error { return tx.Set([]byte("keystore/use/"+key.ID), at) })
		if err != nil {
			t.Fatal(err)
		}
		if got := w.must(w.get(op, key.ID)); !got.LastUsedAt.Equal(noon.Add(c.want)) {
			t.Errorf("last used %v, want %v", got.LastUsedAt, noon.Add(c.want))
		}
	}
}

func TestLastUsesDoNotConflictWithChangesOfAKey(t *testing.T) {
	w := inMemory(t)
	op := operator(compile(t, typed))
	key := w.must(w.create(op, keystore.CreateRequest{Scope: "orders_read"}))
	tries := 0
	_, err := w.store.Update(t.Context(), func(tx *store.Tx) error {
		tries++
		if _, err := w.keys.Rotate(tx, op, key.ID, 0); err != nil {
			return err
		}
		// What the writer in the background does, in the midst of it.
		_, err := w.store.Update(t.Context(), func(tx *store.Tx) error {
			return tx.Set([]byte("keystore/use/"+key.ID), []byte(strings.Repeat("\x01", 8)))
		})
		return err
	})
	if err != nil || tries != 1 {
		t.Errorf("ran %d times, %v", tries, err)
	}
}
