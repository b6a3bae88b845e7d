package docs_test

import (
	"debug/buildinfo"
	"os"
	"strings"
	"testing"

	"runner.example/tests/harness"
)

// The binary must include the licences of all modules that are linked into it.
func TestTheNoticesNameAllLinkedModules(t *testing.T) {
	info, err := buildinfo.ReadFile(harness.Binary)
	if err != nil {
		t.Fatal(err)
	}
	if len(info.Deps) < 20 {
		t.Fatalf("the binary names only %d modules", len(info.Deps))
	}
	a := &harness.App{T: t, Dir: t.TempDir()}
	got := a.Run("version", "--notices")
	if got.Status != 0 {
		t.Fatalf("status %d: %s", got.Status, got.Stderr)
	}
	for _, m := range info.Deps {
		if strings.HasPrefix(m.Path, "runner.example/") {
			continue
		}
		if !strings.Contains(got.Stdout, "\n"+m.Path+" "+m.Version+" (") {
			t.Errorf("the licence of %s %s is missing: run make generate", m.Path, m.Version)
		}
	}
	own, err := os.ReadFile(harness.RepoFile("LICENSE"))
	if err != nil {
		t.Fatal(err)
	}
	for what, part := range map[string]string{
		"the project's licence": strings.Trim(string(own), "\n"),
		"Go's licence":          "\nGo's library and runtime, go",
		"what wazero notes":     "Copyright 2020-2023 wazero authors",
		"the engine's licence":  "Fabrice Bellard",
		"LLVM's exception":      "with the LLVM Exceptions",
	} {
		if !strings.Contains(got.Stdout, part) {
			t.Errorf("%s is missing in the notices", what)
		}
	}
}
