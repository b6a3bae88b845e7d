package leveltest

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"runner.example/internal/level"
)

// Golden compares text, the forms of shared records, with testdata/<name>-level<N>.golden of the test's
// package, N being the newest level. Ids are numbered in the order in which they appear, so random ones make
// no difference. A file that does not exist is written, and the test fails once.
func Golden(t testing.TB, name, text string) {
	t.Helper()
	text = numbered(text)
	path := filepath.Join("testdata", fmt.Sprintf("%s-level%d.golden", name, level.Known().Newest))
	want, err := os.ReadFile(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		if err := errors.Join(os.MkdirAll("testdata", 0o755), os.WriteFile(path, []byte(text), 0o644)); err != nil {
			t.Fatal(err)
		}
		t.Errorf("%s did not exist and was written: read it, and commit it", path)
	case err != nil:
		t.Fatal(err)
	case text != string(want):
		t.Errorf("%s: nodes of other releases read and write another form:\n%s\nIf a release has this level, raise released in internal/level, "+
			"write the new form from that level on only, and keep this file. If none has, remove the file and run the test twice.",
			path, difference(string(want), text))
	}
}

var id = regexp.MustCompile(`(?i)\b[0-7][0-9a-hjkmnp-tv-z]{25}\b|_[0-7][0-9a-hjkmnp-tv-z]{25}`)

// numbered replaces ids, which are ULIDs.
func numbered(text string) string {
	numbers := map[string]int{}
	return id.ReplaceAllStringFunc(text, func(found string) string {
		bare := strings.TrimPrefix(found, "_")
		if numbers[bare] == 0 {
			numbers[bare] = len(numbers) + 1
		}
		return fmt.Sprintf("%s<id %d>", strings.TrimSuffix(found, bare), numbers[bare])
	})
}

// difference returns the first lines that differ.
func difference(want, got string) string {
	before, after := strings.Split(want, "\n"), strings.Split(got, "\n")
	for i := range min(len(before), len(after)) {
		if before[i] != after[i] {
			return fmt.Sprintf("line %d was  %s\nand is now %s", i+1, before[i], after[i])
		}
	}
	return fmt.Sprintf("it had %d lines, and has %d now", len(before), len(after))
}
