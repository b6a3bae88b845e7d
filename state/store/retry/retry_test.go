package retry_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"runner.example/state/store/retry"
)

// longest is how long a transaction waits for its turn.
const longest = 100 * time.Millisecond

func TestOneTransactionAtATimeHasTheTurnOfAKey(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		turns := retry.New()
		var order []int
		began := time.Now()
		for i := range 4 {
			go func() {
				var turn retry.Turn
				turns.Take(t.Context(), &turn, "key")
				turns.Take(t.Context(), &turn, "key") // it has it
				order = append(order, i)
				time.Sleep(20 * time.Millisecond)
				turn.Release()
				turn.Release() // once is enough
			}()
			synctest.Wait()
		}
		time.Sleep(longest)
		synctest.Wait()
		if fmt.Sprint(order) != "[0 1 2 3]" || time.Since(began) != longest {
			t.Errorf("the turns were %v, after %v", order, time.Since(began))
		}
	})
}

func TestATransactionGoesOnWithoutItsTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		turns := retry.New()
		var holder, other retry.Turn
		turns.Take(t.Context(), &holder, "key")
		began := time.Now()
		turns.Take(t.Context(), &other, "key")
		if waited := time.Since(began); waited != longest {
			t.Errorf("it has waited for %v", waited)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 30*time.Millisecond)
		defer cancel()
		began = time.Now()
		turns.Take(ctx, &other, "key")
		if waited := time.Since(began); waited != 30*time.Millisecond {
			t.Errorf("with an ending context it has waited for %v", waited)
		}
		other.Release() // what it does not have
		began = time.Now()
		turns.Take(t.Context(), &other, "key")
		if waited := time.Since(began); waited != longest {
			t.Errorf("a release of another transaction has ended the turn: %v", waited)
		}
		holder.Release()
		began = time.Now()
		turns.Take(t.Context(), &other, "key")
		if waited := time.Since(began); waited != 0 {
			t.Errorf("a free turn was waited for: %v", waited)
		}
	})
}

// A transaction has one turn: it gives the one of another key up before it waits.
func TestATransactionHasOneTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		turns := retry.New()
		other := "" // a key with another queue
		for n := 0; other == ""; n++ {
			var first, second retry.Turn
			turns.Take(t.Context(), &first, "key")
			began, key := time.Now(), fmt.Sprint(n)
			turns.Take(t.Context(), &second, key)
			if time.Since(began) == 0 {
				other = key
			}
			first.Release()
			second.Release()
		}
		var held, wanted, waiting retry.Turn
		turns.Take(t.Context(), &held, "key")
		turns.Take(t.Context(), &wanted, other)
		began := time.Now()
		go turns.Take(t.Context(), &held, other) // which is not free
		synctest.Wait()
		turns.Take(t.Context(), &waiting, "key")
		if waited := time.Since(began); waited != 0 {
			t.Errorf("the turn of another key was kept: %v", waited)
		}
		wanted.Release()
		waiting.Release()
		synctest.Wait()
		held.Release()
		turns.Take(t.Context(), &wanted, other)
		turns.Take(t.Context(), &waiting, "key")
		if waited := time.Since(began); waited != 0 {
			t.Errorf("a turn was not released: %v", waited)
		}
	})
}
