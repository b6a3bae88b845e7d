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
const lastAttack = 87

// Each row names tests, all of them exist, and each attack has one row.
func TestEachRowOfSecurityNamesItsTests(t *testing.T) {
	pages, err := filepath.Glob(filepath.Join(repoRoot(t), "docs/security/*.md"))
	if err != nil {
		t.Fatal(err)
	}
	var attacks []string
	for _, page := range pages {
		if filepath.Base(page) != "README.md" { // the index
			attacks = append(attacks, attacksOf(t, page)...)
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

// attacksOf returns the ids of the rows of a page, and checks the tests that its rows name.
func attacksOf(t *testing.T, page string) (attacks []string) {
	t.Helper()
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	errorf := func(i int, format string, args ...any) {
		t.Helper()
		t.Errorf("%s:%d: %s", filepath.Base(page), i+1, fmt.Sprintf(format, args...))
	}
	columns := 0 // of the table
	for i, line := range strings.Split(string(text), "\n") {
		cells := strings.Split(strings.Trim(line, "| "), " | ")
		switch {
		case !strings.HasPrefix(line, "|"):
			columns = 0
			continue
		case columns == 0:
			if columns = len(cells); cells[columns-1] != "Tests" {
				errorf(i, "the last column is not Tests")
			}
			continue
		case strings.HasPrefix(line, "|---"):
			continue
		}
		if len(cells) != columns {
			errorf(i, "%d columns, want %d", len(cells), columns)
		}
		if columns == 4 {
			attacks = append(attacks, cells[0])
		}
		tests := cells[len(cells)-1]
		if rest := namedTests.ReplaceAllString(tests, ""); strings.Trim(rest, ", ") != "" || rest == tests {
			errorf(i, "the tests are not named as `TestA` (`directory`): %q", rest)
		}
		for _, list := range namedTests.FindAllStringSubmatch(tests, -1) {
			for _, directory := range quoted.FindAllStringSubmatch(list[2], -1) {
				functions := testFunctions(t, filepath.Join(repoRoot(t), directory[1]))
				for _, test := range quoted.FindAllStringSubmatch(list[1], -1) {
					if !functions[test[1]] {
						errorf(i, "%s has no test %s", directory[1], test[1])
					}
				}
			}
		}
		if outside := strings.TrimSuffix(line, tests+" |"); testName.MatchString(outside) {
			errorf(i, "a test is named outside of the last column")
		}
	}
	return attacks
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
