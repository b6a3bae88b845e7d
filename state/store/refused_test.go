package store_test

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"runner.example/internal/fault"
	"runner.example/state/store"
	"runner.example/state/store/storetest"
)

// refusals makes a log refuse entries of more than limit bytes with err, and counts how often.
func refusals(log *store.SimLog, limit int, err error) *int {
	n := new(int)
	log.Refuse(func(encoded []byte) error {
		if len(encoded) <= limit {
			return nil
		}
		*n++
		return err
	})
	return n
}

var errLarge = fault.New(fault.TooLarge, "the entry is too large")

func TestATransactionThatIsTooLargeForTheLogIsRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log := store.NewSimLog(nil)
		s := startNodes(t, log, 1, 50).stores[0]
		refusals(log, 1000, errLarge)
		if _, err := s.Update(t.Context(), setter("k", strings.Repeat("v", 2000))); !errors.Is(err, store.ErrTooLarge) {
			t.Errorf("it ends with %v", err)
		}
		put(t, s, "l", "1")
		if got := scanAll(t, s, ""); got != "l=1" {
			t.Errorf("the store has %.50s", got)
		}
	})
}

// Each transaction of an entry that the log refuses gets an entry of its own.
func TestAnEntryThatIsTooLargeIsDivided(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log := store.NewSimLog(nil)
		c := startNodes(t, log, 2, 50)
		s := c.stores[0]
		log.Cut(s, true)
		var done sync.WaitGroup
		update := func(n, bytes int, want error) {
			done.Go(func() {
				if _, err := s.Update(t.Context(), setter(fmt.Sprintf("k%02d", n), strings.Repeat("v", bytes))); !errors.Is(err, want) {
					t.Errorf("transaction %d ends with %v", n, err)
				}
			})
		}
		update(0, 1, nil)
		synctest.Wait() // its entry is under way, and the next transactions wait for one
		for n := range 20 {
			update(n+1, 400, nil)
		}
		update(21, 2000, store.ErrTooLarge)
		synctest.Wait()
		refused := refusals(log, 1000, errLarge)
		log.Cut(s, false)
		done.Wait()
		if *refused != 2 { // the whole, and the one alone
			t.Errorf("%d entries were refused", *refused)
		}
		if got := strings.Count(scanAll(t, s, "k"), "="); got != 21 {
			t.Errorf("the store has %d of 21 keys", got)
		}
		c.agree()
	})
}

// A full log refuses transactions, and takes them again when it has space.
func TestAFullLogRefusesAndRecovers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log := store.NewSimLog(nil)
		c := startNodes(t, log, 2, 50)
		put(t, c.stores[0], "k", "1")
		refusals(log, 0, fault.New(fault.Unavailable, "the log is full"))
		for range 2 {
			_, err := c.stores[0].Update(t.Context(), setter("k", "2"))
			if !errors.Is(err, store.ErrUnavailable) || errors.Is(err, store.ErrUnknown) {
				t.Errorf("it ends with %v", err)
			}
		}
		log.Refuse(nil)
		put(t, c.stores[0], "l", "3")
		if got := scanAll(t, c.stores[0], ""); got != "k=1 l=3" {
			t.Errorf("the store has %s", got)
		}
		c.agree()
	})
}

// An entry that may have been added is never divided, whatever the log says to a later try.
func TestAnEntryThatMayBeInTheLogIsNotRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log := store.NewSimLog(nil)
		s := startNodes(t, log, 1, 50).stores[0]
		log.Cut(s, true)
		ended := make(chan error)
		go func() {
			_, err := s.Update(t.Context(), setter("k", "1"))
			ended <- err
		}()
		synctest.Wait()
		tries := 0
		log.Refuse(func([]byte) error {
			if tries++; tries < 3 {
				return errLarge
			}
			return nil
		})
		log.Cut(s, false)
		if err := <-ended; err != nil || tries != 3 {
			t.Errorf("it ends after %d tries with %v", tries, err)
		}
	})
}

// A store that stops while its entry is under way does not say that nothing was committed: the log has it.
func TestAnEntryThatTheLogHasIsUnknownWhenTheStoreStops(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log := storetest.NewLog()
		stores := log.Nodes(t, "a", "b")
		release := log.Hold("a")
		ended := make(chan error)
		go func() {
			_, err := stores[0].Update(t.Context(), setter("k", "1"))
			ended <- err
		}()
		synctest.Wait()
		stores[0].StopDiverged("in a test")
		release()
		if err := <-ended; !errors.Is(err, store.ErrUnknown) || errors.Is(err, store.ErrUnavailable) {
			t.Errorf("it ends with %v", err)
		}
		storetest.CatchUp(t, stores[1])
		if got := scanAll(t, stores[1], "k"); got != "k=1" {
			t.Errorf("the other node has %q", got)
		}
		if _, err := stores[0].Update(t.Context(), setter("k", "2")); !errors.Is(err, store.ErrUnavailable) || errors.Is(err, store.ErrUnknown) {
			t.Errorf("the next one ends with %v", err)
		}
	})
}
