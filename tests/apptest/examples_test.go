package apptest_test

import (
	"encoding/json"
	"testing"

	"runner.example/tests/harness"
)

// The tests of the example are run as its README says, and see most of what its schema decides.
func TestTheTestsOfTheTrackerPass(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("it runs a compiler")
	}
	tracker := &harness.App{T: t, Dir: harness.RepoFile("plugins/examples/tracker")}
	done := tracker.Run("test", "--json", "--timeout", patient)
	var r result
	if err := json.Unmarshal([]byte(done.Stdout), &r); err != nil {
		t.Fatalf("%v: %s%s", err, done.Stdout, done.Stderr)
	}
	for name, one := range r.all() {
		if one.Status != "passed" {
			t.Errorf("%s: %s %+v %v", name, one.Status, one.Problem, one.Log)
		}
	}
	if n := len(r.all()); n < 200 || r.Coverage.Seen*10 < r.Coverage.Of*7 {
		t.Errorf("%d tests have seen %d of %d decisions", n, r.Coverage.Seen, r.Coverage.Of)
	}
}
