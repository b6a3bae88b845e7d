package tests

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var (
	// Tests are named with their directories: `TestA`, `FuzzB` (`directory`, `another`).
	namedTests = regexp.MustCompile("(`(?:Test|Fuzz)[A-Za-z0-9]+`(?:, `(?:Test|Fuzz)[A-Za-z0-9]+`)*) \\((`[a-z/]+`(?:, `[a-z/]+`)*)\\)")
	quoted     = regexp.MustCompile("`([A-Za-z0-9/]+)`")
	testName   = regexp.MustCompile("`(?:Test|Fuzz)[A-Z]")
)

// lastAttack is the largest id of a row.
const lastAttack = 80

// Each row names tests, all of them exist, and each attack has one row.
func TestEachRowOfSecurityNamesItsTests(t *testing.T) {
	page, err := os.ReadFile(filepath.Join(repoRoot(t), "docs/security.md"))
	if err != nil {
		t.Fatal(err)
	}
	var attacks []string
	columns := 0 // of the table
	for i, line := range strings.Split(string(page), "\n") {
		cells := strings.Split(strings.Trim(line, "| "), " | ")
		switch {
		case !strings.HasPrefix(line, "|"):
			columns = 0
			continue
		case columns == 0:
			if columns = len(cells); cells[columns-1] != "Tests" {
				t.Errorf("line %d: the last column is not Tests", i+1)
			}
			continue
		case strings.HasPrefix(line, "|---"):
			continue
		}
		if len(cells) != columns {
			t.Errorf("line %d has %d columns, want %d", i+1, len(cells), columns)
		}
		if columns == 4 {
			attacks = append(attacks, cells[0])
		}
		tests := cells[len(cells)-1]
		if rest := namedTests.ReplaceAllString(tests, ""); strings.Trim(rest, ", ") != "" || rest == tests {
			t.Errorf("line %d: the tests are not named as `TestA` (`directory`): %q", i+1, rest)
		}
		for _, list := range namedTests.FindAllStringSubmatch(tests, -1) {
			for _, directory := range quoted.FindAllStringSubmatch(list[2], -1) {
				functions := testFunctions(t, filepath.Join(repoRoot(t), directory[1]))
				for _, test := range quoted.FindAllStringSubmatch(list[1], -1) {
					if !functions[test[1]] {
						t.Errorf("line %d: %s has no test %s", i+1, directory[1], test[1])
					}
				}
			}
		}
		if outside := strings.TrimSuffix(line, tests+" |"); testName.MatchString(outside) {
			t.Errorf("line %d names a test outside of the last column", i+1)
		}
	}
	var want []string
	for i := range lastAttack {
		want = append(want, fmt.Sprint("T", i+1))
	}
	slices.Sort(attacks)
	slices.Sort(want)
	if !slices.Equal(attacks, want) { // a row stands where its subject is, so the ids are not in order
		t.Errorf("the ids of the rows are %q, want T1 to T%d, each once", attacks, lastAttack)
	}
}

// testFunctions returns the names of the functions in the test files of a directory.
func testFunctions(t *testing.T, directory string) map[string]bool {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(directory, "*_test.go"))
	if err != nil || len(files) == 0 {
		t.Fatalf("%s: %d test files, %v", directory, len(files), err)
	}
	names := map[string]bool{}
	for _, name := range files {
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		for _, decl := range file.Decls {
			if f, ok := decl.(*ast.FuncDecl); ok && f.Recv == nil {
				names[f.Name.Name] = true
			}
		}
	}
	return names
}
