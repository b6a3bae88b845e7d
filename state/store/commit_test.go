package store_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"runner.example/state/store"
)

// gate holds the log at the commit of key "gate" until it is opened. It returns
// when that commit is being applied; open waits until its Update returned.
func gate(t *testing.T, s *store.Store) (open func()) {
	reached, goOn, returned := make(chan struct{}), make(chan struct{}), make(chan struct{})
	stop := s.OnApply([]byte("gate"), func(store.Seq, store.Change) {
		close(reached)
		<-goOn
	})
	go func() {
		defer close(returned)
		if _, err := s.Update(t.Context(), setter("gate", "")); err != nil {
			t.Error(err)
		}
	}()
	<-reached
	return sync.OnceFunc(func() { close(goOn); <-returned; stop() })
}

// queued waits until n commits are queued after the gate.
func queued(s *store.Store, n int) {
	for s.Health().Waiting < n {
		runtime.Gosched()
	}
}

func TestQueuedCommitsBecomeOneEntry(t *testing.T) {
	each(t, func(t *testing.T, open opener) {
		s := open(store.Options{})
		open1 := gate(t, s)
		const writers = 64
		var seqs [writers]store.Seq
		var done sync.WaitGroup
		for w := range writers {
			done.Go(func() { seqs[w] = put(t, s, fmt.Sprintf("k%02d", w), "") })
		}
		queued(s, writers)
		open1()
		done.Wait()
		for w, seq := range seqs {
			if seq != 2 {
				t.Errorf("writer %d is in commit %d, want 2", w, seq)
			}
		}
		if got := s.Health().Applied; got != 2 {
			t.Errorf("%d commits to the disk for %d writers and the gate, want 2", got, writers)
		}
	})
}

// In a synctest bubble a slow machine cannot end a wait in the queue early.
func TestOneOfConflictingTransactionsInAnEntryCommitsAndTheOthersRetryInTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := mustOpen(t, store.Options{Dir: t.TempDir()}) // during a sync the others queue up
		openGate := gate(t, s)
		const writers = 64
		var done sync.WaitGroup
		for range writers {
			done.Go(func() { update(t, s, increment) })
		}
		synctest.Wait()
		if got := s.Health().Waiting; got != writers {
			t.Errorf("%d commits wait, want %d", got, writers)
		}
		openGate()
		done.Wait()
		if got := read(t, s, "n"); got != fmt.Sprint(writers) {
			t.Errorf("counter is %s", got)
		}
		if got := s.Health().Applied; got != 1+writers {
			t.Errorf("%d commits, want one for each writer and the gate's", got)
		}
	})
}

// Transactions of one entry that read beside what the others write do not run again.
func TestTransactionsOfAnEntryConflictOnlyInWhatTheyRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := mustOpen(t, store.Options{})
		openGate := gate(t, s)
		const writers = 12
		var runs [writers]int
		var done sync.WaitGroup
		for i := range writers {
			w := i / 2 // in both orders: the keys of the others are above and below
			if i%2 == 1 {
				w = writers - 1 - i/2
			}
			done.Go(func() {
				update(t, s, func(tx *store.Tx) error {
					runs[w]++
					for _, key := range []string{"k%02d-", "k%02d+"} {
						if got := get(tx, fmt.Sprintf(key, w)); got != "<none>" {
							t.Errorf("writer %d reads %q", w, got)
						}
					}
					if got := scan(tx, fmt.Sprintf("k%02d.", w), "", w%2 == 0); got != "" {
						t.Errorf("writer %d scans %q", w, got)
					}
					return tx.Set(fmt.Appendf(nil, "k%02d", w), []byte("v"))
				})
			})
			synctest.Wait()
		}
		openGate()
		done.Wait()
		for w, n := range runs {
			if n != 1 {
				t.Errorf("writer %d ran %d times", w, n)
			}
		}
		if got := s.Health().Applied; got != 2 {
			t.Errorf("%d commits, want that of the gate and one", got)
		}
	})
}

func TestRetriedTransactionsComeFirstInAnEntry(t *testing.T) {
	s := mustOpen(t, store.Options{})
	var openGate func()
	var done sync.WaitGroup
	loserRuns, otherRuns, otherWaits := 0, 0, make(chan struct{})
	done.Go(func() {
		update(t, s, func(tx *store.Tx) error {
			loserRuns++
			if err := increment(tx); err != nil {
				return err
			}
			switch loserRuns {
			case 1: // loses
				update(t, s, increment)
			case 2: // the other one asks first
				openGate = gate(t, s)
				done.Go(func() {
					update(t, s, func(tx *store.Tx) error { otherRuns++; return increment(tx) })
				})
				queued(s, 1)
				close(otherWaits)
			}
			return nil
		})
	})
	<-otherWaits
	queued(s, 2)
	openGate()
	done.Wait()
	if loserRuns != 2 || otherRuns != 2 {
		t.Errorf("the loser ran %d times, the other %d, want 2 and 2", loserRuns, otherRuns)
	}
}

func TestLargeQueuedTransactionsAreSplitOverEntries(t *testing.T) {
	s := mustOpen(t, store.Options{})
	openGate := gate(t, s)
	const writers = 5
	var done sync.WaitGroup
	for w := range writers {
		done.Go(func() { put(t, s, fmt.Sprintf("large%d", w), strings.Repeat("v", 5<<20)) })
	}
	queued(s, writers)
	openGate()
	done.Wait()
	if got := s.Health().Applied; got != 1+writers {
		t.Errorf("%d commits, want %d", got, 1+writers)
	}
	if got := len(scanAll(t, s, "large")); got < writers*5<<20 {
		t.Errorf("only %d bytes are there", got)
	}
}

func TestManyLongValuesCanBeDeletedAtOnce(t *testing.T) {
	sequential(t)
	s := mustOpen(t, store.Options{})
	for i := range 40 {
		put(t, s, fmt.Sprintf("long%d", i), strings.Repeat("v", 1<<20))
	}
	update(t, s, func(tx *store.Tx) error {
		for i := range 40 {
			if err := tx.Delete(fmt.Appendf(nil, "long%d", i)); err != nil {
				return err
			}
		}
		return nil
	})
	if got := scanAll(t, s, ""); got != "" || s.Pieces() != 0 {
		t.Errorf("%d bytes and %d pieces are left", len(got), s.Pieces())
	}
}

func TestACancelledQueuedTransactionWritesNothing(t *testing.T) {
	s := mustOpen(t, store.Options{})
	openGate := gate(t, s)
	ctx, cancel := context.WithCancel(t.Context())
	result := make(chan error)
	go func() {
		_, err := s.Update(ctx, setter("k", "1"))
		result <- err
	}()
	queued(s, 1)
	cancel()
	err := <-result
	if !errors.Is(err, store.ErrUnavailable) || !errors.Is(err, context.Canceled) || errors.Is(err, store.ErrUnknown) {
		t.Errorf("error is %v", err)
	}
	openGate()
	put(t, s, "l", "2")
	if got := scanAll(t, s, ""); got != "gate= l=2" {
		t.Errorf("store holds %q", got)
	}
}

func TestATransactionCancelledDuringItsCommitIsUnknown(t *testing.T) {
	eachLog(t, func(t *testing.T, open opener) {
		s := open(store.Options{})
		reached, goOn := make(chan struct{}), make(chan struct{})
		s.OnApply(nil, func(store.Seq, store.Change) { close(reached); <-goOn })
		ctx, cancel := context.WithCancel(t.Context())
		result := make(chan error)
		go func() {
			_, err := s.Update(ctx, setter("k", "1"))
			result <- err
		}()
		<-reached
		cancel()
		err := <-result
		if !errors.Is(err, store.ErrUnknown) || !errors.Is(err, context.Canceled) || errors.Is(err, store.ErrUnavailable) {
			t.Errorf("error is %v", err)
		}
		close(goOn)
		if err := s.WaitFor(t.Context(), 1); err != nil {
			t.Fatal(err)
		}
		if got := read(t, s, "k"); got != "1" {
			t.Errorf("k reads %q, want what was under way", got)
		}
	})
}

func TestAnEndedContextReadsAndWritesNothing(t *testing.T) {
	s := mustOpen(t, store.Options{})
	put(t, s, "k", "1")
	ctx, cancel := context.WithCancelCause(t.Context())
	cause := errors.New("the client left")
	cancel(cause)
	err := s.View(ctx, getter("k"))
	_, err2 := s.Update(ctx, setter("k", "2"))
	for _, err := range []error{err, err2, s.Barrier(ctx)} {
		if !errors.Is(err, store.ErrUnavailable) || !errors.Is(err, cause) {
			t.Errorf("error is %v", err)
		}
	}
	if got := read(t, s, "k"); got != "1" {
		t.Errorf("k reads %q", got)
	}
}

func TestALongScanEndsWithItsContext(t *testing.T) {
	s := mustOpen(t, store.Options{})
	update(t, s, func(tx *store.Tx) error {
		for i := range 2000 {
			if err := tx.Set(fmt.Appendf(nil, "k%04d", i), nil); err != nil {
				return err
			}
		}
		return nil
	})
	ctx, cancel := context.WithCancel(t.Context())
	n := 0
	err := s.View(ctx, func(tx *store.Tx) error {
		for _, err := range tx.Scan(nil, nil, false) {
			if err != nil {
				return err
			}
			n++
			cancel()
		}
		return nil
	})
	if !errors.Is(err, context.Canceled) || n > 256 {
		t.Errorf("%d keys, then %v", n, err)
	}
}

func TestFollowersGetEachChangeInOrderBeforeItIsReadable(t *testing.T) {
	each(t, func(t *testing.T, open opener) {
		s := open(store.Options{})
		put(t, s, "k0", "before")
		var heard []string
		stop := s.OnApply([]byte("k"), func(seq store.Seq, c store.Change) {
			heard = append(heard, fmt.Sprintf("%d:%s=%s,%v", seq, c.Key, c.Value, c.Deleted))
			if got := s.Health().Applied; got != seq-1 {
				t.Errorf("during the call for %d, %d can be read", seq, got)
			}
			if got := read(t, s, string(c.Key)); got == string(c.Value) {
				t.Errorf("%s reads %q already", c.Key, got)
			}
		})
		put(t, s, "k2", "b", "j", "x", "k1", "a", "l", "y")
		update(t, s, deleter("k2"))
		if got, want := strings.Join(heard, " "), "2:k1=a,false 2:k2=b,false 3:k2=,true"; got != want {
			t.Errorf("heard %s, want %s", got, want)
		}
		stop()
		put(t, s, "k3", "c")
		if len(heard) != 3 {
			t.Errorf("heard after stop: %v", heard[3:])
		}
	})
}

func TestAFollowerThatRegistersDuringACommitGetsOrReadsIt(t *testing.T) {
	s := mustOpen(t, store.Options{})
	openGate := gate(t, s)
	called, found := false, make(chan string, 1)
	go func() {
		stop := s.OnApply(nil, func(store.Seq, store.Change) { called = true })
		found <- read(t, s, "gate")
		stop()
	}()
	for range 1000 { // while it waits, nothing else happens
		runtime.Gosched()
	}
	openGate()
	if got := <-found; got != "" && !called {
		t.Errorf("neither called for the commit nor able to read it: %s", got)
	}
}

func TestAFollowerThatRegistersAndThenReadsMissesNothing(t *testing.T) {
	eachLog(t, func(t *testing.T, open opener) {
		s := open(store.Options{})
		const rounds = 200
		writing := make(chan struct{})
		go func() {
			defer close(writing)
			for i := range rounds * 5 {
				put(t, s, fmt.Sprintf("k%d", i%7), fmt.Sprint(i))
			}
		}()
		for range rounds {
			var mu sync.Mutex
			newest := map[string]store.Seq{}
			cache := map[string]string{}
			learn := func(seq store.Seq, key, value string) {
				mu.Lock()
				defer mu.Unlock()
				if seq >= newest[key] {
					newest[key], cache[key] = seq, value
				}
			}
			stop := s.OnApply(nil, func(seq store.Seq, c store.Change) { learn(seq, string(c.Key), string(c.Value)) })
			err := s.View(t.Context(), func(tx *store.Tx) error {
				for item, err := range tx.Scan(nil, nil, false) {
					if err != nil {
						return err
					}
					learn(item.Version, string(item.Key), string(item.Value))
				}
				return nil
			})
			if err != nil {
				t.Fatal(err)
			}
			err = s.View(t.Context(), func(tx *store.Tx) error {
				get(tx, "k0") // takes the snapshot, all of which was read or reported
				stop()
				mu.Lock()
				defer mu.Unlock()
				for item, err := range tx.Scan(nil, nil, false) {
					if err != nil {
						return err
					}
					if key := string(item.Key); newest[key] < item.Version {
						t.Errorf("cache has %s of commit %d, the store of %d", key, newest[key], item.Version)
					}
				}
				return nil
			})
			if err != nil {
				t.Fatal(err)
			}
		}
		<-writing
	})
}

func TestCloseCommitsQueuedTransactionsAndWaitsForOpenOnes(t *testing.T) {
	dir := t.TempDir()
	s := mustOpen(t, store.Options{Dir: dir})
	put(t, s, "k", "1")
	openGate := gate(t, s)
	const writers = 20
	var done sync.WaitGroup
	for w := range writers {
		done.Go(func() { put(t, s, fmt.Sprintf("w%02d", w), "") })
	}
	inView, endView := make(chan struct{}), make(chan struct{})
	done.Go(func() {
		err := s.View(t.Context(), func(tx *store.Tx) error {
			get(tx, "k")
			close(inView)
			<-endView
			if got := get(tx, "k"); got != "1" {
				t.Errorf("while closing, k reads %q", got)
			}
			return nil
		})
		if err != nil {
			t.Error(err)
		}
	})
	<-inView
	queued(s, writers)
	closed := make(chan error)
	go func() { closed <- s.Close() }()
	for s.Health().Reason == nil {
		runtime.Gosched()
	}
	openGate()
	close(endView)
	if err := <-closed; err != nil {
		t.Error(err)
	}
	done.Wait()
	again := mustOpen(t, store.Options{Dir: dir})
	if got := strings.Count(scanAll(t, again, "w"), "="); got != writers {
		t.Errorf("%d of %d are there", got, writers)
	}
}

func TestCloseGivesUpOnATransactionThatDoesNotEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, err := store.Open(store.Options{})
		if err != nil {
			t.Fatal(err)
		}
		end, ended := make(chan struct{}), make(chan error)
		go func() {
			ended <- s.View(t.Context(), func(tx *store.Tx) error { get(tx, "k"); <-end; return nil })
		}()
		synctest.Wait()
		begun := time.Now()
		if err := s.Close(); err == nil || time.Since(begun) != 10*time.Second {
			t.Errorf("Close gives %v after %v", err, time.Since(begun))
		}
		close(end)
		if err := <-ended; err != nil {
			t.Error(err)
		}
		if err := s.Close(); err != nil {
			t.Errorf("Close again: %v", err)
		}
	})
}

func TestAFailedCommitStopsWriting(t *testing.T) {
	s, err := store.Open(store.Options{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	put(t, s, "k", "1")
	if err := s.CloseBadger(); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Update(t.Context(), setter("k", "2")); !errors.Is(err, store.ErrUnknown) {
		t.Errorf("the commit that failed: %v", err)
	}
	if _, err := s.Update(t.Context(), setter("k", "3")); !errors.Is(err, store.ErrUnavailable) {
		t.Errorf("the next: %v", err)
	}
	if h := s.Health(); h.Writable || !errors.Is(h.Reason, store.ErrUnavailable) || h.Applied != 1 {
		t.Errorf("health is %+v", h)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}
