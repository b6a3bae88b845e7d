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

func referencePage(t *testing.T) string {
	t.Helper()
	page, err := os.ReadFile("../../docs/schema.md")
	if err != nil {
		t.Fatal(err)
	}
	return string(page)
}

func TestTheReferenceListsAllDiagnosticsInOrder(t *testing.T) {
	var codes []string
	var files []string
	for _, pattern := range []string{"*.go", "../*.go", "../syntax/*.go", "../format/*.go", "../model/*.go", "../changes/*.go", "../../runtime/*.go"} {
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
	for _, m := range regexp.MustCompile(`(?m)^\| ([EW]\d{3}) \| .+ \|$`).FindAllStringSubmatch(referencePage(t), -1) {
		listed = append(listed, m[1])
	}
	for _, code := range codes {
		if !slices.Contains(listed, code) {
			t.Errorf("docs/schema.md does not have %s", code)
		}
	}
	for _, code := range listed {
		if !slices.Contains(codes, code) {
			t.Errorf("docs/schema.md has %s, which nothing reports", code)
		}
	}
	if !t.Failed() && !slices.Equal(codes, listed) {
		t.Errorf("docs/schema.md has the codes in the order %v", listed)
	}
}

func TestExamplesOfTheReferenceAreValidAndFormatted(t *testing.T) {
	examples := regexp.MustCompile("(?ms)^```schema\n(.*?)^```$").FindAllStringSubmatch(referencePage(t), -1)
	if len(examples) < 5 {
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
