package store_test

import (
	"errors"
	"testing"

	"runner.example/state/store"
)

func TestATransactionCanCommitBeforeItsFunctionReturns(t *testing.T) {
	each(t, func(t *testing.T, open opener) {
		s := open(store.Options{})
		failed := errors.New("after the commit")
		runs := 0
		_, err := s.Update(t.Context(), func(tx *store.Tx) error {
			runs++
			_ = tx.Set([]byte("k"), []byte("1"))
			if err := tx.Commit(); err != nil {
				t.Error(err)
			}
			if got := read(t, s, "k"); got != "1" {
				t.Errorf("after the commit the value is %q", got)
			}
			if _, err := tx.Get([]byte("k")); err == nil {
				t.Error("a committed transaction reads")
			}
			if err := tx.Commit(); err == nil {
				t.Error("a transaction commits twice")
			}
			return failed
		})
		if !errors.Is(err, failed) || runs != 1 {
			t.Errorf("the update ends with %v after %d runs, want the function's error after one", err, runs)
		}
		if got := read(t, s, "k"); got != "1" {
			t.Errorf("after the error the value is %q", got)
		}
	})
}

func TestACommitInsideOfTheFunctionThatConflictsRunsItAgain(t *testing.T) {
	each(t, func(t *testing.T, open opener) {
		s := open(store.Options{})
		put(t, s, "n", "0")
		runs := 0
		update(t, s, func(tx *store.Tx) error {
			runs++
			before := get(tx, "n")
			if runs == 1 {
				put(t, s, "n", "7")
			}
			_ = tx.Set([]byte("n"), []byte(before+"!"))
			err := tx.Commit()
			if conflicts := errors.Is(err, store.ErrConflict); conflicts != (runs == 1) {
				t.Errorf("run %d commits with %v", runs, err)
			}
			return err
		})
		if got := read(t, s, "n"); got != "7!" || runs != 2 {
			t.Errorf("the value is %q after %d runs", got, runs)
		}
	})
}

func TestADroppedTransactionWritesNothing(t *testing.T) {
	each(t, func(t *testing.T, open opener) {
		s := open(store.Options{})
		seq := update(t, s, func(tx *store.Tx) error {
			_ = tx.Set([]byte("k"), []byte("1"))
			tx.Drop()
			return nil
		})
		if got := read(t, s, "k"); got != "<none>" || seq != 0 {
			t.Errorf("the value is %q, the commit %d", got, seq)
		}
	})
}
