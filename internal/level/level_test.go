package level_test

import (
	"strings"
	"testing"

	"runner.example/internal/fault"
	"runner.example/internal/level"
)

func TestARunnerCanUseTheLevelsThatItKnows(t *testing.T) {
	for _, row := range []struct {
		known level.Range
		level int
		by    string
		want  string // in the remedy; "": it can
	}{
		{level.Range{Oldest: 1, Newest: 1}, 1, "", ""},
		{level.Range{Oldest: 1, Newest: 3}, 2, "v2.0.0", ""},
		{level.Range{}, 1, "", ""}, // a runner that says nothing
		{level.Range{}, 2, "v2.0.0", "this runner knows level 1: install runner v2.0.0, which raised the level, or a newer one"},
		{level.Range{Oldest: 1, Newest: 2}, 3, "", "the data has level 3, and this runner knows levels 1 to 2: install a newer runner"},
		{level.Range{Oldest: 2, Newest: 3}, 1, "", "use the release before, which knows both, for runner level raise"},
	} {
		err := row.known.Remedy(row.level, row.by)
		if row.known.Has(row.level) != (row.want == "") || (err == nil) != (row.want == "") {
			t.Errorf("%v, level %d: has %v, %v", row.known, row.level, row.known.Has(row.level), err)
		}
		if err != nil && (!strings.Contains(err.Error(), row.want) || fault.CodeOf(err) != fault.Invalid) {
			t.Errorf("%v, level %d: %v (%s), want %q", row.known, row.level, err, fault.CodeOf(err), row.want)
		}
	}
	if known := level.Known(); !known.Has(level.First) {
		t.Errorf("this program knows %v, and does not read the data of the first release", known)
	}
}
