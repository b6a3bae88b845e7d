package toolchain_test

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"runner.example/develop/toolchain"
	"runner.example/develop/toolchain/toolchaintest"
	"runner.example/hostabi/abi"
)

const textHandler = `(module
  (import "runner" "response_send" (func $send (param i32 i32 i32) (result i32)))
  (memory (export "memory") 1)
  (data (i32.const 0) "\"text\"")
  (func (export "fromText") (drop (call $send (i32.const 200) (i32.const 0) (i32.const 6)))))
`

// needCommands skips a test where a command is missing, as on Windows.
func needCommands(t *testing.T, names ...string) {
	t.Helper()
	for _, name := range names {
		if _, err := exec.LookPath(name); err != nil {
			t.Skipf("%s is missing", name)
		}
	}
}

// A build.sh builds its directory, and files in WebAssembly text are assembled. A process that a script leaves, such as a
// build server, does not matter.
func TestADirectoryIsBuiltByItsScript(t *testing.T) {
	needCommands(t, "sh", "wat2wasm")
	dir := toolchaintest.App(t, map[string]string{
		"handlers/text/text.wat":    textHandler,
		"handlers/own/build.sh":     "sed s/fromText/fromScript/ x.zig > .x.wat && wat2wasm .x.wat -o \"$OUT\"\n",
		"handlers/own/x.zig":        textHandler,
		"handlers/own/go.mod":       "this is not read",
		"handlers/program/build.sh": "#!/bin/sh\necho '(module (memory (export \"memory\") 1) (func (export \"_start\")))' > .x.wat; wat2wasm .x.wat -o \"$OUT\"; sleep 5 &\n",
	})
	if err := os.Chmod(filepath.Join(dir, "handlers/program/build.sh"), 0o700); err != nil {
		t.Fatal(err)
	}
	modules, warnings, err := toolchain.Build(context.Background(), toolchain.Options{Dir: dir, Name: "n"})
	if err != nil || warnings != nil || len(modules) != 3 {
		t.Fatal(modules, warnings, err)
	}
	if exports, err := toolchain.Exports(dir); err != nil || !slices.Equal(exports, []string{"fromScript", "program", "fromText"}) {
		t.Errorf("the modules export %v, %v", exports, err)
	}
	m := toolchaintest.Load(t, toolchaintest.Engine(t), filepath.Join(dir, modules[0].File))
	defer m.Close(context.Background())
	if got := toolchaintest.Ask(t, m, "fromScript", abi.Request{}); got.Body != `"text"` {
		t.Errorf("answers %d %s %v", got.Status, got.Body, got.Err)
	}
}

func TestErrorsOfScriptsAndOfWebAssemblyTextAreReported(t *testing.T) {
	needCommands(t, "sh", "wat2wasm")
	dir := toolchaintest.App(t, map[string]string{
		"handlers/fails/build.sh":  "echo one; echo two >&2; exit 3\n",
		"handlers/silent/build.sh": "exit 1\n",
		"handlers/lazy/build.sh":   "true\n",
		"handlers/other/build.sh":  "echo '<html>' > \"$OUT\"\n",
		"handlers/text/text.wat":   "(module\n  (func (result i32) (i32.cons 1)))\n",
		"handlers/two/a.wat":       "(module)", "handlers/two/b.wat": "(module)",
	})
	_, _, err := toolchain.Build(context.Background(), toolchain.Options{Dir: dir, Name: "n"})
	wrong, ok := errors.AsType[*toolchain.DiagnosticsError](err)
	if !ok {
		t.Fatalf("got %v", err)
	}
	var all []string
	for _, d := range wrong.List.Sorted() {
		all = append(all, d.String())
	}
	for i, want := range []string{
		"handlers/fails/build.sh: error: the script failed: one; two",
		`handlers/lazy/build.sh: error: the script did not write the module: write it to the file "$OUT"`,
		"handlers/other: error: its module build/other.wasm is not a WebAssembly module: build it for wasm32-wasip1, or copy the right file",
		"handlers/silent/build.sh: error: the script failed: it printed nothing",
		"handlers/text/text.wat:2:23: error: unexpected token \"i32.cons\"",
		"handlers/two: error: 2 files have the extension .wat, but a module is built from one: move each to its own directory, or write a build.sh",
	} {
		if i >= len(all) || !strings.HasPrefix(all[i], want) {
			t.Errorf("got %q, want %s", all, want)
		}
	}
}
