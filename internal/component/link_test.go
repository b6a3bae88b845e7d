package component_test

import (
	"slices"
	"strings"
	"testing"

	"runner.example/hostabi/wasi"
	"runner.example/internal/component"
	"runner.example/internal/wasm"
)

// TestComponentsThatCannotBeLinkedSayWhy: they are valid.
func TestComponentsThatCannotBeLinkedSayWhy(t *testing.T) {
	for _, c := range specCases(t, "link") {
		_, what, _ := strings.Cut(c.What, ": ")
		what, want, _ := strings.Cut(what, ": ")
		_, err := wasi.Link(c.Wasm, wasm.DefaultLimits())
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v, want %q", what, err, want)
		}
	}
}

// TestInterfacesMatchAsSemanticVersionsSay compares names with semver.org 2.0.0.
func TestInterfacesMatchAsSemanticVersionsSay(t *testing.T) {
	for _, row := range [][2]string{
		{"wasi:io/poll@0.2.0", "wasi:io/poll@0.2"}, {"wasi:io/poll@0.2.12", "wasi:io/poll@0.2"},
		{"wasi:io/poll@0.3.0", "wasi:io/poll@0.3"}, {"a:b/c@1.0.0", "a:b/c@1"}, {"a:b/c@12.3.4", "a:b/c@12"},
		{"a:b/c@0.0.7", "a:b/c@0.0.7"}, {"a:b/c@0.2.0-rc.1", "a:b/c@0.2.0-rc.1"}, {"a:b/c@0.2.0+x", "a:b/c@0.2.0+x"}, {"a:b/c", "a:b/c"},
	} {
		if got := component.HostInterface(row[0]); got != row[1] {
			t.Errorf("%s is %s, want %s", row[0], got, row[1])
		}
	}
}

// TestAComponentOfAToolIsLinked: it has the functions of the host that it uses, and one that answers a request.
func TestAComponentOfAToolIsLinked(t *testing.T) {
	linked, err := wasi.Link(sampleFile(t, "starlingmonkey-0.2"), wasm.DefaultLimits())
	if err != nil {
		t.Fatal(err)
	}
	m, err := wasm.Parse(linked, wasm.DefaultLimits())
	if err != nil {
		t.Fatal(err)
	}
	var exports []string
	for _, x := range m.Exports() {
		exports = append(exports, x.Name)
	}
	slices.Sort(exports)
	if got := strings.Join(exports, " "); got != "memory runner_request" {
		t.Errorf("it exports %s", got)
	}
	offered := map[string]bool{}
	for _, module := range wasi.Modules() {
		for _, f := range module.Functions {
			offered[module.Name+"."+f.Name] = true
		}
	}
	for _, i := range m.Imports() {
		if !offered[i.Module+"."+i.Name] {
			t.Errorf("it imports %s.%s", i.Module, i.Name)
		}
	}
	if len(m.Imports()) < 50 {
		t.Errorf("it imports %d functions", len(m.Imports()))
	}
}
