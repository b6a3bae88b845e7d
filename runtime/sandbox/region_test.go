package sandbox_test

import (
	"errors"
	"strings"
	"testing"

	"runner.example/internal/fault"
	"runner.example/runtime/guard"
	"runner.example/runtime/sandbox"
)

// Where all regions for memories are in use, a module takes that of an idle sandbox; without one it is overloaded.
func TestAnIdleSandboxGivesItsRegion(t *testing.T) {
	e := newEngine(t, sandbox.Options{})
	if !strings.Contains(e.Optimizations(), "guard true") {
		t.Skip("memories are not guarded")
	}
	m := load(t, e, assemble(t, "initialize"))
	var taken []*guard.Region
	defer func() {
		for _, r := range taken {
			r.Release()
		}
	}()
	for {
		r, err := guard.Take(65536)
		if errors.Is(err, guard.ErrNone) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		taken = append(taken, r)
	}
	other, err := e.Load(t.Context(), "other", assemble(t, "cases"))
	if err != nil {
		t.Fatalf("beside an idle sandbox: %v", err)
	}
	if idle, _ := m.Restored(); idle != 0 {
		t.Errorf("%d sandboxes of the first module are idle", idle)
	}
	if err := other.Close(t.Context()); err != nil {
		t.Error(err)
	}
	last, err := guard.Take(65536)
	if err != nil {
		t.Fatal(err)
	}
	taken = append(taken, last)
	if _, err := e.Load(t.Context(), "third", assemble(t, "cases")); fault.CodeOf(err) != fault.Overloaded {
		t.Errorf("without an idle sandbox: %v", err)
	}
}
