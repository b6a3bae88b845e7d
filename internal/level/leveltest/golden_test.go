package leveltest_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"runner.example/internal/level"
	"runner.example/internal/level/leveltest"
)

// recorder is a test that notes its errors.
type recorder struct {
	testing.TB
	errors []string
}

func (r *recorder) Helper()                   {}
func (r *recorder) Errorf(f string, a ...any) { r.errors = append(r.errors, fmt.Sprintf(f, a...)) }

func TestAFormThatChangesFailsUnlessTheLevelDoes(t *testing.T) {
	t.Chdir(t.TempDir())
	check := func(text string) int {
		r := &recorder{TB: t}
		leveltest.Golden(r, "records", text)
		return len(r.errors)
	}
	form := "key_01j0000000000000000000000a \"v\"\n01J0000000000000000000000B 01j0000000000000000000000a\n"
	if check(form) != 1 {
		t.Error("a file that does not exist is not an error")
	}
	if check(form) != 0 {
		t.Error("the same form is an error")
	}
	if check("key_01j0000000000000000000000c \"v\"\n01J0000000000000000000000D 01j0000000000000000000000c\n") != 0 {
		t.Error("other ids are an error")
	}
	for _, other := range []string{form + "x", "key_01j0000000000000000000000a \"w\"\n", form[:20]} {
		if check(other) != 1 {
			t.Errorf("%q is not an error", other)
		}
	}
	if _, err := os.Stat(filepath.Join("testdata", fmt.Sprintf("records-level%d.golden", level.Known().Newest))); err != nil {
		t.Error(err)
	}
}
