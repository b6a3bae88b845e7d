package cost_test

import (
	"errors"
	"testing"

	"runner.example/internal/cost"
)

func TestAMeterAsksOnceInAWhileAndFailsFromThenOn(t *testing.T) {
	looks, over := 0, errors.New("over")
	var m cost.Meter
	m.Reset(func() error {
		if looks++; looks == 3 {
			return over
		}
		return nil
	})
	done := 0
	for m.Spend(1000) == nil {
		done += 1000
	}
	if looks != 3 || done < 2*cost.Every || done > 3*cost.Every+3000 {
		t.Errorf("%d checks, the third after %d units", looks, done)
	}
	if m.Spend(0) != over || m.Spend(1) != over || m.Err() != over || looks != 3 {
		t.Errorf("after the error it continues: %v, %d checks", m.Err(), looks)
	}
	m.Reset(nil)
	if m.Spend(10*cost.Every) != nil || m.Err() != nil {
		t.Error("a new meter without a check fails")
	}
}

func TestAMissingMeterNeverFails(t *testing.T) {
	var m *cost.Meter
	if m.Spend(1<<40) != nil || m.Err() != nil {
		t.Error("a nil meter fails")
	}
}
