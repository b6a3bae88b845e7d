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
	"runner.example/tests/harness"
)

func TestEveryFileOfTypeScriptAndJavaScriptIsBuilt(t *testing.T) {
	dir := toolchaintest.App(t, map[string]string{
		"handlers/orders.controller.ts": "import { one } from './lib/one.ts';\nexport const a = () => one;\n",
		"handlers/b.mts":                "export const b = (): number => 1;\n",
		"handlers/c.mjs":                "export const c = () => 1;\n",
		"handlers/d.cts":                "export const d = (): number => 1;\n",
		"handlers/e.cjs":                "exports.e = () => 1;\n",
		"handlers/f.tsx":                "const h = (tag: string) => tag;\n/** @jsx h */\nexport const f = () => <b></b>;\n",
		"handlers/g.jsx":                "export const g = () => 1;\n",
		"handlers/h.v2.js":              "export const h = () => 1;\n",
		"handlers/not.d.ts":             "export const x: number;\n",
		"handlers/not.d.mts":            "export const x: number;\n",
		"handlers/a.controller.test.ts": "throw new Error('a test is not a handler');\n",
		"handlers/a.spec.mjs":           "throw new Error('a test is not a handler');\n",
		"handlers/.hidden.ts":           "throw new Error('hidden');\n",
		"handlers/lib/one.ts":           "export const one = 1;\n",
		"handlers/test/more.ts":         "export const two = 2;\n",
	})
	modules, warnings, err := toolchain.Build(context.Background(), toolchain.Options{Dir: dir, Name: "n", CacheDir: toolchaintest.EngineCache(t)})
	if err != nil || warnings != nil {
		t.Fatal(warnings, err)
	}
	if got := slices.Sorted(slices.Values(modules[0].Handlers)); strings.Join(got, "") != "abcdefgh" {
		t.Errorf("the handlers are %v", got)
	}
}

func TestSourcesThatNothingBuildsAreWarnings(t *testing.T) {
	dir := toolchaintest.App(t, map[string]string{
		"handlers/a.ts":           "export const a = () => 1;\n",
		"handlers/lost/b.ts":      "export const b = () => 1;\n",
		"handlers/main.go":        "package main\n",
		"handlers/crate/main.rs":  "fn main() {}\n",
		"handlers/crate/note.txt": "",
		"handlers/shop.zig":       "",
		"handlers/deep/src/x.nim": "",
		"handlers/x.wat":          "",
		"handlers/.hidden.kt":     "",
	})
	_, warnings, err := toolchain.Build(context.Background(), toolchain.Options{Dir: dir, Name: "n", CacheDir: toolchaintest.EngineCache(t)})
	if err != nil || warnings == nil {
		t.Fatal(warnings, err)
	}
	var all []string
	for _, d := range warnings.List.Sorted() {
		all = append(all, d.String())
	}
	want := []string{
		"handlers/crate/main.rs: warning: this file is not built: a handler in this language needs its own directory, handlers/<name>, with a Cargo.toml",
		"handlers/deep/src/x.nim: warning: this file is not built: a directory with a handler in Nim needs a build.sh that writes the module to \"$OUT\" (docs/languages.md)",
		"handlers/lost: warning: no handler imports these files, so they are not built: only files in handlers/ itself are handlers, and those in subdirectories must be imported",
		"handlers/main.go: warning: this file is not built: a handler in this language needs its own directory, handlers/<name>, with a go.mod",
		"handlers/shop.zig: warning: this file is not built: a directory with a handler in Zig needs a build.sh that writes the module to \"$OUT\" (docs/languages.md)",
		"handlers/x.wat: warning: this file is not built: a handler in WebAssembly text needs its own directory, handlers/<name>, with this file alone",
	}
	if !slices.Equal(all, want) {
		t.Errorf("reported %q", all)
	}
}

func TestUnreadableSourcesAreErrorsWithTheirPlace(t *testing.T) {
	dir := toolchaintest.App(t, map[string]string{"handlers/a.ts": "export const a = () => 1;\n"})
	if err := os.Symlink("../nowhere.ts", filepath.Join(dir, "handlers", "link.ts")); err != nil {
		t.Fatal(err)
	}
	harness.NamedPipe(t, filepath.Join(dir, "handlers", "pipe.ts"))
	_, _, err := toolchain.Build(context.Background(), toolchain.Options{Dir: dir, Name: "n", CacheDir: toolchaintest.EngineCache(t)})
	wrong, ok := errors.AsType[*toolchain.DiagnosticsError](err)
	if !ok || len(wrong.List) != 2 {
		t.Fatal(err)
	}
	for i, want := range []string{
		"handlers/link.ts: error: the link's target ../nowhere.ts does not exist: correct the link, or remove it",
		"handlers/pipe.ts: error: a named pipe is not a source file: remove it",
	} {
		if got := wrong.List.Sorted()[i].String(); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}

func TestGoSaysHowToGetAPackage(t *testing.T) {
	t.Setenv("GOPROXY", "off")
	dir := toolchaintest.App(t, map[string]string{
		"handlers/plain/go.mod":  "module plain.example\n\ngo 1.24\n",
		"handlers/plain/main.go": "package main\n\nimport _ \"other.example/x\"\n\nfunc main() {}\n",
	})
	t.Setenv("GOFLAGS", "")
	_, _, err := toolchain.Build(context.Background(), toolchain.Options{Dir: dir, Name: "n"})
	if want := "handlers/plain/main.go:3:8: error: no required module provides package other.example/x; to add it: go get other.example/x"; err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}
