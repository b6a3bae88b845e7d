package keystore_test

import (
	"context"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"runner.example/keystore"
	"runner.example/state/store"
)

func TestAKeyIsValidUntilTheMillisecondOfItsEnd(t *testing.T) {
	w := inMemory(t)
	key := w.must(w.create(operator(compile(t, typed)), keystore.CreateRequest{Scope: "orders_read", ExpiresIn: lasting(time.Hour)}))
	w.clock.advance(time.Hour - time.Millisecond)
	w.accepts(key)
	w.clock.advance(time.Millisecond)
	w.rejects(key, keystore.KeyExpired)
}

func TestEveryRefusalIsTheSameError(t *testing.T) {
	w := inMemory(t)
	op := operator(compile(t, typed))
	create := func() keystore.Key {
		return w.must(w.create(op, keystore.CreateRequest{Scope: "orders_read", ExpiresIn: lasting(time.Hour), Metadata: []byte(`{"a":1}`)}))
	}
	expired := create()
	w.clock.advance(time.Hour)
	revoked, disabled, rotated, graced := create(), create(), create(), create()
	w.must(w.revoke(op, revoked.ID))
	w.must(w.disable(op, disabled.ID))
	w.must(w.rotate(op, rotated.ID, 0))
	w.must(w.rotate(op, graced.ID, time.Minute))
	w.accepts(graced)
	w.clock.advance(time.Minute)

	w.rejects(expired, keystore.KeyExpired)
	w.rejects(revoked, keystore.KeyRevoked)
	w.rejects(disabled, keystore.KeyOff)
	w.rejects(rotated, keystore.Unknown)
	w.rejects(graced, keystore.GraceOver)
	w.rejects(keystore.Key{Token: keystore.NewToken("ord")}, keystore.Unknown)
	w.rejects(keystore.Key{}, keystore.Malformed)
	if text := keystore.ErrInvalidToken.Error(); strings.Contains(text, "expired") || strings.Contains(text, "revoked") {
		t.Errorf("the refusal says %q", text)
	}
}

func TestTheIndexIsBuiltFromTheStore(t *testing.T) {
	w := onDisk(t)
	op := operator(compile(t, typed))
	kept := w.must(w.create(op, keystore.CreateRequest{Scope: "orders_read", Tenant: "t", Metadata: []byte(`{"a":1}`)}))
	revoked := w.must(w.create(op, keystore.CreateRequest{Scope: "orders_read"}))
	disabled := w.must(w.create(op, keystore.CreateRequest{Scope: "orders_read"}))
	old := w.must(w.create(op, keystore.CreateRequest{Scope: "orders_write"}))
	w.must(w.revoke(op, revoked.ID))
	w.must(w.disable(op, disabled.ID))
	next := w.must(w.rotate(op, old.ID, time.Hour))
	w.reopen()
	w.accepts(kept)
	w.accepts(old)
	w.accepts(next)
	w.rejects(revoked, keystore.KeyRevoked)
	w.rejects(disabled, keystore.KeyOff)
	w.clock.advance(time.Hour)
	w.rejects(old, keystore.GraceOver)
	w.accepts(next)
}

func TestAnUncommittedChangeHasNoEffect(t *testing.T) {
	w := inMemory(t)
	op := operator(compile(t, typed))
	key := w.must(w.create(op, keystore.CreateRequest{Scope: "orders_read"}))
	epoch := w.keys.Epoch()
	undone := fmt.Errorf("undone")
	var made keystore.Key
	_, err := w.store.Update(t.Context(), func(tx *store.Tx) (err error) {
		if made, err = w.keys.Create(tx, op, keystore.CreateRequest{Scope: "orders_read"}); err != nil {
			return err
		}
		if _, err := w.keys.Revoke(tx, op, key.ID); err != nil {
			return err
		}
		if got, err := w.keys.Get(tx, op, key.ID); err != nil || got.Status != keystore.Revoked {
			t.Errorf("the transaction does not see its own change: %+v, %v", got, err)
		}
		w.accepts(key) // and other readers do not see it
		return undone
	})
	if err != undone {
		t.Fatal(err)
	}
	w.accepts(key)
	w.rejects(made, keystore.Unknown)
	if w.keys.Epoch() != epoch {
		t.Error("the epoch grew")
	}
}

func TestTheEpochGrowsWithEveryChange(t *testing.T) {
	w := inMemory(t)
	op := operator(compile(t, typed))
	epoch := w.keys.Epoch()
	grown := func(what string) {
		t.Helper()
		now := w.keys.Epoch()
		if now <= epoch {
			t.Errorf("%s: the epoch stays %d", what, now)
		}
		epoch = now
	}
	key := w.must(w.create(op, keystore.CreateRequest{Scope: "orders_read"}))
	grown("create")
	w.must(w.rotate(op, key.ID, day))
	grown("rotate")
	w.must(w.disable(op, key.ID))
	grown("disable")
	w.must(w.enable(op, key.ID))
	grown("enable")
	w.must(w.revoke(op, key.ID))
	grown("revoke")
	w.rejects(key, keystore.KeyRevoked)
	if w.keys.Epoch() != epoch {
		t.Error("a verification moves the epoch")
	}
}

func TestRevokedKeyIsRefusedAtOnce(t *testing.T) {
	w := inMemory(t)
	op := operator(compile(t, typed))
	const clients = 64
	rounds := 1000
	if testing.Short() { // with the race detector
		rounds = 300
	}
	type round struct {
		token   []byte
		revoked atomic.Bool
		used    atomic.Int64
	}
	var current atomic.Pointer[round]
	ctx, cancel := context.WithCancel(t.Context())
	var hammers sync.WaitGroup
	for range clients {
		hammers.Go(func() {
			for ctx.Err() == nil {
				runtime.Gosched()
				r := current.Load()
				if r == nil {
					continue
				}
				late := r.revoked.Load()
				_, err := w.keys.Verify(r.token)
				switch {
				case late && err == nil:
					t.Error("a key was good after its revocation returned")
				case err == nil:
					r.used.Add(1)
				}
			}
		})
	}
	used := int64(0)
	for range rounds {
		key := w.must(w.create(op, keystore.CreateRequest{Scope: "orders_read"}))
		r := &round{token: []byte(key.Token.Reveal())}
		current.Store(r)
		for r.used.Load() == 0 { // until it is under fire
			runtime.Gosched()
		}
		epoch := w.keys.Epoch()
		w.must(w.revoke(op, key.ID))
		r.revoked.Store(true)
		if w.keys.Epoch() == epoch {
			t.Fatal("the epoch does not tell of the revocation")
		}
		w.rejects(key, keystore.KeyRevoked)
		used += r.used.Load()
	}
	cancel()
	hammers.Wait()
	t.Logf("%d good requests in %d rounds", used, rounds)
}

func TestAValidKeyIsNeverRefusedWhileOthersChange(t *testing.T) {
	w := inMemory(t)
	op := operator(compile(t, typed))
	steady := w.must(w.create(op, keystore.CreateRequest{Scope: "orders_read"}))
	graced := w.must(w.create(op, keystore.CreateRequest{Scope: "orders_read"}))
	var current atomic.Pointer[keystore.Key] // of graced: good until after the next is stored
	current.Store(&graced)
	ctx, cancel := context.WithCancel(t.Context())
	var readers sync.WaitGroup
	for range 4 {
		readers.Go(func() {
			for ctx.Err() == nil {
				newest := current.Load()
				for _, key := range []*keystore.Key{&steady, newest} {
					if got, err := w.keys.Verify([]byte(key.Token.Reveal())); err != nil && (key == &steady || current.Load() == key) {
						t.Errorf("a good key is refused: %v", got.Refused)
						return
					}
				}
				runtime.Gosched()
			}
		})
	}
	// The table doubles several times, and a good key's own entry is replaced
	// again and again.
	for range 2000 {
		next := w.must(w.rotate(op, graced.ID, time.Millisecond))
		current.Store(&next)
		w.clock.advance(time.Millisecond)
	}
	for i := range 400 {
		key := w.must(w.create(op, keystore.CreateRequest{Scope: "orders_read"}))
		if i%2 == 0 {
			w.must(w.rotate(op, key.ID, 0))
		}
		if i%3 == 0 {
			w.must(w.revoke(op, key.ID))
		}
	}
	cancel()
	readers.Wait()
	w.accepts(steady)
	w.accepts(*current.Load())
}

func TestVerifyAllocatesNothing(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector empties pools at random")
	}
	w := inMemory(t)
	key := w.must(w.create(operator(compile(t, typed)), keystore.CreateRequest{Scope: "orders_read", Metadata: []byte(`{"a":1}`)}))
	for name, token := range map[string]string{
		"good": key.Token.Reveal(), "unknown": keystore.NewToken("ord").Reveal(), "malformed": "ord_nonsense",
	} {
		presented := []byte(token)
		allocs := testing.AllocsPerRun(1000, func() {
			w.clock.advance(time.Second) // so that each run notes the use and the time
			_, _ = w.keys.Verify(presented)
		})
		if allocs != 0 {
			t.Errorf("%s: %v allocations", name, allocs)
		}
	}
}

func BenchmarkVerify(b *testing.B) {
	for _, n := range []int{1, 100_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			st, err := store.Open(store.Options{})
			if err != nil {
				b.Fatal(err)
			}
			b.Cleanup(func() { _ = st.Close() })
			keys, err := keystore.Open(b.Context(), st, keystore.Options{})
			if err != nil {
				b.Fatal(err)
			}
			b.Cleanup(func() { _ = keys.Close() })
			tokens := fill(b, st, keys, n)
			b.Run("one", func(b *testing.B) {
				b.ReportAllocs()
				for i := 0; b.Loop(); i++ {
					if _, err := keys.Verify(tokens[i%len(tokens)]); err != nil {
						b.Fatal(err)
					}
				}
			})
			b.Run("parallel", func(b *testing.B) {
				b.ReportAllocs()
				b.RunParallel(func(pb *testing.PB) {
					for i := 0; pb.Next(); i += 7919 {
						if _, err := keys.Verify(tokens[i%len(tokens)]); err != nil {
							b.Error(err)
							return
						}
					}
				})
			})
		})
	}
}

func fill(b *testing.B, st *store.Store, keys *keystore.Keystore, n int) (tokens [][]byte) {
	op := operator(compile(b, typed))
	for len(tokens) < n {
		var made [][]byte
		_, err := st.Update(b.Context(), func(tx *store.Tx) error {
			made = made[:0]
			for range min(1000, n-len(tokens)) {
				key, err := keys.Create(tx, op, keystore.CreateRequest{Scope: "orders_read"})
				if err != nil {
					return err
				}
				made = append(made, []byte(key.Token.Reveal()))
			}
			return nil
		})
		if err != nil {
			b.Fatal(err)
		}
		tokens = append(tokens, made...)
	}
	return tokens
}
