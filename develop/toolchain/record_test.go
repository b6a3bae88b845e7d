package toolchain_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"runner.example/develop/toolchain"
	"runner.example/develop/toolchain/toolchaintest"
)

// rebuild builds an app and returns the content of its directory build, and the removed
// files.
func rebuild(t *testing.T, dir, name string) (left, removed []string, err error) {
	t.Helper()
	_, _, err = toolchain.Build(context.Background(), toolchain.Options{
		Dir: dir, Name: name, CacheDir: toolchaintest.EngineCache(t),
		Removed: func(file string) { removed = append(removed, filepath.ToSlash(file)) },
	})
	paths, _ := filepath.Glob(filepath.Join(dir, "build", "*.wasm"))
	for _, path := range paths {
		left = append(left, filepath.Base(path))
	}
	return left, removed, err
}

func TestRenamingAnAppRemovesItsOldModule(t *testing.T) {
	dir := toolchaintest.App(t, map[string]string{"handlers/a.ts": "export const a = () => 1;\n", "build/other.wasm": "put there by hand"})
	if left, removed, err := rebuild(t, dir, "ren"); err != nil || !slices.Equal(left, []string{"other.wasm", "ren.wasm"}) || removed != nil {
		t.Fatal(left, removed, err)
	}
	left, removed, err := rebuild(t, dir, "renamed")
	if err != nil || !slices.Equal(left, []string{"other.wasm", "renamed.wasm"}) || !slices.Equal(removed, []string{"build/ren.wasm"}) {
		t.Errorf("left %v, removed %v, %v", left, removed, err)
	}
	record, err := os.ReadFile(filepath.Join(dir, "build", ".built"))
	if err != nil || strings.Contains(string(record), dir) || strings.Contains(string(record), "ren.wasm") {
		t.Errorf("the record is %s, %v", record, err)
	}
}

func TestAModuleIsRemovedWithItsSource(t *testing.T) {
	dir := toolchaintest.App(t, map[string]string{
		"handlers/a.ts":          "export const fromGo = () => 1;\n",
		"handlers/plain/go.mod":  "module plain.example\n\ngo 1.24\n",
		"handlers/plain/main.go": goHandler,
	})
	if _, _, err := rebuild(t, dir, "n"); err != nil {
		t.Fatal(err)
	}
	if _, err := toolchain.Exports(dir, "fromGo"); err == nil || err.Error() != `handler "fromGo" is exported by build/n.wasm and by build/plain.wasm: keep one of them` {
		t.Errorf("two modules with one handler: %v", err)
	}
	if _, err := toolchain.Exports(dir, "other"); err != nil {
		t.Errorf("no route calls it: %v", err)
	}
	if err := os.Remove(filepath.Join(dir, "handlers", "a.ts")); err != nil {
		t.Fatal(err)
	}
	removed, err := toolchain.Clean(dir)
	if err != nil || !slices.Equal(removed, []string{"build/n.wasm"}) {
		t.Errorf("removed %v, %v", removed, err)
	}
	if _, err := toolchain.Exports(dir, "fromGo"); err != nil {
		t.Error(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "build", "by-hand.wasm"), mustRead(t, filepath.Join(dir, "build", "plain.wasm")), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := toolchain.Exports(dir, "fromGo"); err == nil || !strings.Contains(err.Error(), `exported by build/by-hand.wasm, which is not built from a source here and by build/plain.wasm: keep one`) {
		t.Errorf("beside one that was put there: %v", err)
	}
}

func mustRead(t testing.TB, path string) []byte {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func TestModulesFromElsewhereAreKept(t *testing.T) {
	dir := toolchaintest.App(t, map[string]string{"handlers/a.ts": "export const a = () => 1;\n"})
	if _, _, err := rebuild(t, dir, "n"); err != nil {
		t.Fatal(err)
	}
	module := filepath.Join(dir, "build", "n.wasm")
	own := mustRead(t, module)
	handlers := filepath.Join(dir, "handlers")
	if err := os.Rename(handlers, handlers+"-away"); err != nil {
		t.Fatal(err)
	}
	if removed, err := toolchain.Clean(dir); len(removed) > 0 || err != nil {
		t.Errorf("where an app was copied to be served: removed %v, %v", removed, err)
	}
	if err := os.Mkdir(handlers, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(module, append(own, 0, 2, 1, 'x'), 0o600); err != nil { // with one more section
		t.Fatal(err)
	}
	if removed, err := toolchain.Clean(dir); len(removed) > 0 || err != nil {
		t.Errorf("another one was put in its place: removed %v, %v", removed, err)
	}
	outside := filepath.Join(dir, "outside.wasm")
	for name, text := range map[string]string{
		outside:                               "",
		filepath.Join(dir, "build", ".built"): `{"../outside.wasm": {"source": "handlers", "sha256": "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"}}`,
	} {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if removed, err := toolchain.Clean(dir); len(removed) > 0 || err != nil {
		t.Errorf("a record that no build has written: removed %v, %v", removed, err)
	}
	mustRead(t, outside)
}

func TestAModuleThatCannotBeLoadedDoesNotReplaceTheOldOne(t *testing.T) {
	dir := toolchaintest.App(t, map[string]string{"handlers/a.ts": "const table = new Uint8Array(20 << 20).fill(1);\nexport const a = () => table[0];\n", "build/n.wasm": "old"})
	for _, row := range []struct {
		memory int64
		source string
		want   string
	}{
		{16 << 20, "const table = new Uint8Array(20 << 20).fill(1);\nexport const a = () => table[0];\n",
			"handlers: error: too much data at the top level of the handlers' files: 22 MiB, and a request may have 16 MiB"},
		{128 << 20, "const table = new Uint8Array(70 << 20).fill(1);\nexport const a = () => table[0];\n",
			"handlers: error: too much data at the top level of the handlers' files: the module has 71 MiB, the limit is 64 MiB"},
	} {
		if err := os.WriteFile(filepath.Join(dir, "handlers", "a.ts"), []byte(row.source), 0o600); err != nil {
			t.Fatal(err)
		}
		_, _, err := toolchain.Build(context.Background(), toolchain.Options{Dir: dir, Name: "n", CacheDir: toolchaintest.EngineCache(t), MemoryBytes: row.memory})
		if _, ok := errors.AsType[*toolchain.DiagnosticsError](err); !ok || !strings.HasPrefix(err.Error(), row.want) {
			t.Errorf("got %v, want %s", err, row.want)
		}
		if old := mustRead(t, filepath.Join(dir, "build", "n.wasm")); string(old) != "old" {
			t.Errorf("the module was replaced by one of %d bytes", len(old))
		}
	}
}
