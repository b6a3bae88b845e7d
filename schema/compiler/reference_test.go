package compiler_test

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"runner.example/internal/diag"
	"runner.example/schema/compiler"
	"runner.example/schema/format"
)

// referencePages returns the text of pages of the reference, in this order; without names of all
// but the tutorial.
func referencePages(t *testing.T, names ...string) string {
	t.Helper()
	const dir = "../../docs/schema/"
	if names == nil {
		paths, err := filepath.Glob(dir + "*.md")
		if err != nil || len(paths) < 5 {
			t.Fatalf("%s has the pages %v, %v", dir, paths, err)
		}
		for _, path := range paths {
			names = append(names, filepath.Base(path))
		}
		names = slices.DeleteFunc(names, func(name string) bool { return name == "tutorial.md" }) // tests/docs follows it
	}
	var all strings.Builder
	for _, name := range names {
		page, err := os.ReadFile(dir + name)
		if err != nil {
			t.Fatal(err)
		}
		all.Write(page)
	}
	return all.String()
}

func TestTheReferenceListsAllDiagnosticsInOrder(t *testing.T) {
	var codes []string
	var files []string
	for _, pattern := range []string{"*.go", "../*.go", "../syntax/*.go", "../format/*.go", "../model/*.go", "../changes/*.go", "../../runtime/*.go", "../../state/entity/catalog/*.go", "../../keystore/*.go"} {
		matches, err := filepath.Glob(pattern)
		if err != nil || len(matches) == 0 {
			t.Fatalf("%s: %v", pattern, err)
		}
		files = append(files, matches...)
	}
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range regexp.MustCompile(`"([EW]\d{3})"`).FindAllStringSubmatch(string(text), -1) {
			codes = append(codes, m[1])
		}
		for _, m := range regexp.MustCompile(`errorIfTyped\("(\d{3})"`).FindAllStringSubmatch(string(text), -1) {
			codes = append(codes, "E"+m[1], "W"+m[1])
		}
	}
	slices.SortFunc(codes, func(a, b string) int { return strings.Compare(a[1:]+a, b[1:]+b) })
	codes = slices.Compact(codes)
	var listed []string
	for _, m := range regexp.MustCompile(`(?m)^\| ([EW]\d{3}) \| .+ \|$`).FindAllStringSubmatch(referencePages(t, "diagnostics.md", "changes.md"), -1) {
		listed = append(listed, m[1])
	}
	for _, code := range codes {
		if !slices.Contains(listed, code) {
			t.Errorf("docs/schema/diagnostics.md and changes.md do not have %s", code)
		}
	}
	for _, code := range listed {
		if !slices.Contains(codes, code) {
			t.Errorf("docs/schema/ has %s, which nothing reports", code)
		}
	}
	if !t.Failed() && !slices.Equal(codes, listed) {
		t.Errorf("docs/schema/ has the codes in the order %v", listed)
	}
}

func TestExamplesOfTheReferenceAreValidAndFormatted(t *testing.T) {
	examples := regexp.MustCompile("(?ms)^```schema\n(.*?)^```$").FindAllStringSubmatch(referencePages(t), -1)
	if len(examples) < 9 {
		t.Fatalf("found %d examples", len(examples))
	}
	for i, m := range examples {
		src := diag.Source{Name: fmt.Sprintf("example%d.schema", i+1), Text: []byte(m[1])}
		s, found := compiler.Compile([]diag.Source{src}, compiler.Options{Unset: compiler.Assumed})
		if s == nil {
			t.Errorf("%s\n%s", m[1], found.Sorted()[0])
			continue
		}
		text, found := format.Format(src)
		if found.HasErrors() || string(text) != m[1] {
			t.Errorf("the formatted example is\n%s", text)
		}
	}
}
