package store_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"

	"runner.example/internal/fault"
	"runner.example/state/store"
)

// openNode opens the store of a node that shares log.
func openNode(t *testing.T, log *store.SimLog, name, dir string) *store.Store {
	t.Helper()
	s, err := log.Open(store.Options{Name: name, Dir: dir}, 100)
	return opened(t, s, err)
}

func becomeOwner(t *testing.T, s *store.Store) {
	t.Helper()
	if err := s.BecomeOwner(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// checkOwner returns what CheckOwner says about what s has applied.
func checkOwner(t *testing.T, s *store.Store) error {
	t.Helper()
	var owner error
	if err := s.View(t.Context(), func(tx *store.Tx) error { owner = tx.CheckOwner(); return nil }); err != nil {
		t.Fatal(err)
	}
	return owner
}

// catchUp waits until s has applied what the log has.
func catchUp(t *testing.T, s *store.Store) {
	t.Helper()
	if err := s.Barrier(t.Context()); err != nil {
		t.Fatal(err)
	}
}

func TestOneNodeIsTheOwner(t *testing.T) {
	random := newRandom(t)
	synctest.Test(t, func(t *testing.T) {
		log := store.NewSimLog(random())
		t.Cleanup(log.Close)
		dir := t.TempDir()
		a, b := openNode(t, log, "a", dir), openNode(t, log, "b", "")
		expect := func(when string, owner *store.Store) {
			t.Helper()
			for name, s := range map[string]*store.Store{"a": a, "b": b} {
				catchUp(t, s)
				err := checkOwner(t, s)
				if is := s.IsOwner(); is != (s == owner) || (err == nil) != is {
					t.Errorf("%s: %s is the owner: %v, checked: %v", when, name, is, err)
				}
				if err != nil && (!errors.Is(err, store.ErrNotOwner) || fault.CodeOf(err) != fault.Unavailable) {
					t.Errorf("%s: %v", when, err)
				}
			}
		}
		expect("at first", nil)
		becomeOwner(t, a)
		expect("after an election", a)
		becomeOwner(t, b)
		expect("after another one", b)
		if err := a.Close(); err != nil {
			t.Fatal(err)
		}
		becomeOwner(t, b) // again
		a = openNode(t, log, "a", dir)
		expect("opened again", b)
		becomeOwner(t, a)
		expect("after a third one", a)
		if err := a.Close(); err != nil {
			t.Fatal(err)
		}
		a = openNode(t, log, "a", dir)
		if !a.IsOwner() {
			t.Error("a was the owner when it was closed, and is not when it is opened")
		}
		expect("opened as the owner", a)
	})
}

// A node that is disowned is not the owner for anything here, although the store still says so. It is again
// when it becomes the owner, and not before.
func TestADisownedNodeIsNotTheOwner(t *testing.T) {
	random := newRandom(t)
	synctest.Test(t, func(t *testing.T) {
		log := store.NewSimLog(random())
		t.Cleanup(log.Close)
		a, b := openNode(t, log, "a", ""), openNode(t, log, "b", "")
		becomeOwner(t, a)
		owns := func(when string, want bool) {
			t.Helper()
			catchUp(t, a)
			ran := false
			_, err := a.UpdateAsOwner(t.Context(), func(tx *store.Tx) error {
				ran = true
				return tx.Set([]byte("as owner"), []byte(when))
			})
			if ran != want || want && err != nil || !want && !errors.Is(err, store.ErrNotOwner) {
				t.Errorf("%s: UpdateAsOwner ran %v: %v", when, ran, err)
			}
			if got := read(t, a, "as owner") == when; got != want {
				t.Errorf("%s: written as owner: %v", when, got)
			}
			if err := checkOwner(t, a); want && err != nil || !want && !errors.Is(err, store.ErrNotOwner) {
				t.Errorf("%s: CheckOwner: %v", when, err)
			}
			if got := a.IsOwner(); got != want {
				t.Errorf("%s: IsOwner: %v", when, got)
			}
			ctx, cancel := context.WithCancel(t.Context())
			waited := make(chan error, 1)
			go func() {
				_, err := a.WaitOwner(ctx, 0)
				waited <- err
			}()
			synctest.Wait()
			if got := len(waited) > 0; got != want {
				t.Errorf("%s: WaitOwner returned: %v", when, got)
			}
			cancel()
			if err := <-waited; (err == nil) != want {
				t.Errorf("%s: WaitOwner: %v", when, err)
			}
		}
		owns("the owner", true)
		a.Disown()
		owns("disowned", false)
		a.Disown()
		owns("disowned again", false)
		put(t, b, "k", "v")
		owns("after a commit of another node", false)
		becomeOwner(t, a)
		owns("the owner again", true)
		a.Disown()
		becomeOwner(t, b)
		owns("after another one became the owner", false)
		becomeOwner(t, a)
		owns("the owner a third time", true)
	})
	alone := mustOpen(t, store.Options{})
	alone.Disown()
	if err := checkOwner(t, alone); err != nil || !alone.IsOwner() {
		t.Errorf("a store that is standalone is disowned: %v", err)
	}
	if _, err := alone.WaitOwner(t.Context(), 0); err != nil {
		t.Error(err)
	}
}

// The former owner has read that it is the owner, and has not committed yet.
func TestAFormerOwnerCommitsNothing(t *testing.T) {
	random := newRandom(t)
	synctest.Test(t, func(t *testing.T) {
		log := store.NewSimLog(random())
		t.Cleanup(log.Close)
		a, b := openNode(t, log, "a", ""), openNode(t, log, "b", "")
		becomeOwner(t, a)
		runs := 0
		_, err := a.Update(t.Context(), func(tx *store.Tx) error {
			runs++
			if err := tx.CheckOwner(); err != nil {
				return err
			}
			becomeOwner(t, b)
			return tx.Set([]byte("k"), []byte("of a"))
		})
		if !errors.Is(err, store.ErrNotOwner) || runs < 2 {
			t.Errorf("after %d runs: %v", runs, err)
		}
		update(t, b, func(tx *store.Tx) error {
			if err := tx.CheckOwner(); err != nil {
				return err
			}
			return tx.Set([]byte("other"), []byte("of b"))
		})
		if got := read(t, b, "k") + read(t, b, "other"); got != "<none>of b" {
			t.Errorf("k and other read %q", got)
		}
		// The node is the owner again, but not the transaction that began before.
		becomeOwner(t, a)
		runs = 0
		update(t, a, func(tx *store.Tx) error {
			if err := tx.CheckOwner(); err != nil {
				return err
			}
			if runs++; runs == 1 {
				becomeOwner(t, b)
				becomeOwner(t, a)
			}
			return tx.Set([]byte("k"), fmt.Append(nil, runs))
		})
		if got := read(t, a, "k"); got != "2" {
			t.Errorf("committed by run %s, want the second", got)
		}
	})
}

func TestAStoreAloneIsTheOwner(t *testing.T) {
	s := mustOpen(t, store.Options{})
	becomeOwner(t, s)
	if seq := s.Health().Applied; seq != 0 {
		t.Errorf("it wrote commit %d", seq)
	}
	since, err := s.WaitOwner(t.Context(), 0)
	if err != nil || !s.IsOwner() {
		t.Errorf("it is the owner: %v, waited: %v", s.IsOwner(), err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := s.WaitOwner(ctx, since); !errors.Is(err, context.Canceled) {
		t.Errorf("it became the owner again: %v", err)
	}
	before := s.Health().Snapshots
	if err := checkOwner(t, s); err != nil {
		t.Error(err)
	}
	if n := s.Health().Snapshots - before; n != 0 {
		t.Errorf("CheckOwner took %d snapshots", n)
	}
}

func TestWaitOwnerReturnsEachTimeThatTheNodeBecomesTheOwner(t *testing.T) {
	random := newRandom(t)
	synctest.Test(t, func(t *testing.T) {
		log := store.NewSimLog(random())
		t.Cleanup(log.Close)
		a, b := openNode(t, log, "a", ""), openNode(t, log, "b", "")
		type waited struct {
			since store.Seq
			err   error
		}
		results := make(chan waited, 1)
		wait := func(ctx context.Context, s *store.Store, after store.Seq) {
			since, err := s.WaitOwner(ctx, after)
			if err == nil {
				err = s.View(ctx, func(tx *store.Tx) error {
					tenure, err := tx.Tenure()
					if tenure != since {
						t.Errorf("the tenure began at %d, and not at %d", tenure, since)
					}
					return err
				})
			}
			results <- waited{since, err}
		}
		notYet := func(when string) {
			t.Helper()
			synctest.Wait()
			if len(results) > 0 {
				t.Errorf("%s the wait ended: %+v", when, <-results)
			}
		}
		go wait(t.Context(), b, 0)
		becomeOwner(t, a)
		catchUp(t, b)
		notYet("when another node became the owner")
		becomeOwner(t, b)
		first := <-results
		go wait(t.Context(), b, first.since)
		notYet("in the same tenure")
		becomeOwner(t, b) // it won another election
		if second := <-results; first.err != nil || second.err != nil || second.since <= first.since {
			t.Errorf("waited %+v, then %+v", first, second)
		}
		catchUp(t, a)
		ctx, cancel := context.WithCancel(t.Context())
		go wait(ctx, a, 0)
		notYet("after another node won")
		cancel()
		if got := <-results; !errors.Is(got.err, store.ErrUnavailable) || !errors.Is(got.err, context.Canceled) {
			t.Errorf("cancelled: %v", got.err)
		}
		go wait(t.Context(), a, 0)
		notYet("again")
		if err := a.Close(); err != nil {
			t.Fatal(err)
		}
		if got := <-results; !errors.Is(got.err, store.ErrUnavailable) {
			t.Errorf("closed: %v", got.err)
		}
	})
}
