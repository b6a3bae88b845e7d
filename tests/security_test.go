package tests

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// The page names tests with their directory: `TestA`, `TestB` (`directory`). Each of them
// must exist.
func TestTheTestsThatSecurityNamesExist(t *testing.T) {
	page, err := os.ReadFile(filepath.Join(repoRoot(t), "docs/security.md"))
	if err != nil {
		t.Fatal(err)
	}
	group := regexp.MustCompile("(`Test[A-Za-z0-9]+`(?:, `Test[A-Za-z0-9]+`)*) \\((`[a-z/]+`(?:, `[a-z/]+`)*)\\)")
	name := regexp.MustCompile("`([A-Za-z0-9/]+)`")
	named := 0
	for _, list := range group.FindAllStringSubmatch(string(page), -1) {
		for _, directory := range name.FindAllStringSubmatch(list[2], -1) {
			code := testCode(t, filepath.Join(repoRoot(t), directory[1]))
			for _, test := range name.FindAllStringSubmatch(list[1], -1) {
				named++
				if !strings.Contains(code, "func "+test[1]+"(") {
					t.Errorf("%s has no test %s", directory[1], test[1])
				}
			}
		}
	}
	if all := len(regexp.MustCompile("`Test").FindAll(page, -1)); named < all {
		t.Errorf("%d tests are named, but only %d with their directory", all, named)
	}
}

func testCode(t *testing.T, directory string) string {
	files, err := filepath.Glob(filepath.Join(directory, "*_test.go"))
	if err != nil {
		t.Fatal(err)
	}
	var code strings.Builder
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		code.Write(text)
	}
	return code.String()
}
