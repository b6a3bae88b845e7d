package wasm_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// watModule assembles a module from its text form.
func watModule(t testing.TB, text string) []byte {
	t.Helper()
	if _, err := exec.LookPath("wat2wasm"); err != nil && testing.Short() {
		t.Skip("wat2wasm is missing: apt-get install wabt")
	}
	dir := t.TempDir()
	source, binary := filepath.Join(dir, "m.wat"), filepath.Join(dir, "m.wasm")
	if err := os.WriteFile(source, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command("wat2wasm", "--debug-names", "--enable-tail-call", "--enable-threads", "--enable-extended-const", source, "-o", binary).CombinedOutput()
	if err != nil {
		t.Fatalf("wat2wasm (tools/setup.sh installs it): %v\n%s", err, out)
	}
	wasm, err := os.ReadFile(binary)
	if err != nil {
		t.Fatal(err)
	}
	return wasm
}

// guests are the WAT modules of the black-box tests, by file name.
func guests(t testing.TB) map[string][]byte {
	t.Helper()
	paths, err := filepath.Glob("../../tests/testdata/guests/*.wat")
	if err != nil || len(paths) == 0 {
		t.Fatalf("no guests found: %v", err)
	}
	modules := map[string][]byte{}
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		modules[filepath.Base(path)] = watModule(t, string(text))
	}
	return modules
}
