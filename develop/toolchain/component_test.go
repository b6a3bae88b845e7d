package toolchain_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"runner.example/develop/toolchain"
)

// TestHandlersOfComponentsAreKnown: a component exports functions, or answers requests itself, or does both.
func TestHandlersOfComponentsAreKnown(t *testing.T) {
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "build"), 0o755); err != nil {
		t.Fatal(err)
	}
	for name, from := range map[string]string{"things": "handlers", "counter": "counter"} {
		file, err := os.ReadFile("../../runtime/sandbox/testdata/component/" + from + ".wasm")
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, "build", name+".wasm"), file, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	names, err := toolchain.Exports(dir, "counter", "countUses", "digest_body")
	slices.Sort(names)
	const want = "countUses count_uses counter digest2 digestBody digest_2 digest_body echo late outside spin wrong"
	if got := strings.Join(names, " "); err != nil || got != want {
		t.Errorf("%v, %s, want %s", err, got, want)
	}
	_, err = toolchain.Exports(dir, "countUses", "count_uses")
	if err == nil || !strings.Contains(err.Error(), "module build/things.wasm has one handler for countUses and count_uses of the schema: rename one of them") {
		t.Errorf("with both names: %v", err)
	}
}
