package jobs_test

import (
	"errors"
	"fmt"
	"testing"

	"runner.example/state/jobs"
	"runner.example/state/store"
)

// A conflict is usual when several nodes claim. With any other error beside it, the error is one for the operator.
func TestAConflictOfAClaimIsNoError(t *testing.T) {
	conflict := fmt.Errorf("claim job x: %w", store.ErrConflict)
	other := fmt.Errorf("claim job y: %w", store.ErrUnavailable)
	for _, row := range []struct {
		err  error
		want bool
	}{
		{conflict, true},
		{errors.Join(conflict, errors.Join(conflict, nil)), true},
		{other, false},
		{errors.Join(conflict, other), false},
		{errors.Join(errors.Join(other), conflict), false},
	} {
		if got := jobs.OnlyConflicts(row.err); got != row.want {
			t.Errorf("%q: %v, want %v", row.err, got, row.want)
		}
	}
}
