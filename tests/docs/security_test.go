package docs_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"runner.example/tests/harness"
)

// The page names tests with their directory: `TestA`, `TestB` (`directory`). Each of them
// must exist.
func TestTheTestsThatSecurityNamesExist(t *testing.T) {
	page, err := os.ReadFile(harness.RepoFile("docs/security.md"))
	if err != nil {
		t.Fatal(err)
	}
	group := regexp.MustCompile("(`Test[A-Za-z0-9]+`(?:, `Test[A-Za-z0-9]+`)*) \\((`[a-z/]+`(?:, `[a-z/]+`)*)\\)")
	name := regexp.MustCompile("`([A-Za-z0-9/]+)`")
	named := 0
	for _, list := range group.FindAllStringSubmatch(string(page), -1) {
		for _, folder := range name.FindAllStringSubmatch(list[2], -1) {
			code := testCode(t, harness.RepoFile(folder[1]))
			for _, test := range name.FindAllStringSubmatch(list[1], -1) {
				named++
				if !strings.Contains(code, "func "+test[1]+"(") {
					t.Errorf("%s has no test %s", folder[1], test[1])
				}
			}
		}
	}
	if all := len(regexp.MustCompile("`Test").FindAll(page, -1)); named < all {
		t.Errorf("%d tests are named, but only %d with their directory", all, named)
	}
}

func testCode(t *testing.T, folder string) string {
	files, err := filepath.Glob(filepath.Join(folder, "*_test.go"))
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
