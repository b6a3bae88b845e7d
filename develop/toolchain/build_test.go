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
	"runner.example/hostabi/abi"
	"runner.example/schema"
)

func TestMain(m *testing.M) { toolchaintest.Main(m) }

func TestNothingToBuildIsAnError(t *testing.T) {
	for _, files := range []map[string]string{nil, {"handlers/readme.md": "nothing"}, {"handlers/lib/a.ts": ""}} {
		if _, _, err := toolchain.Build(context.Background(), toolchain.Options{Dir: toolchaintest.App(t, files), Name: "n"}); !errors.Is(err, toolchain.ErrNothing) {
			t.Errorf("of %v: %v", files, err)
		}
	}
}

func TestAFailedBuildKeepsTheOldModule(t *testing.T) {
	dir := toolchaintest.App(t, map[string]string{"handlers/a.ts": "const = 1;\n", "build/n.wasm": "old"})
	if _, _, err := toolchain.Build(context.Background(), toolchain.Options{Dir: dir, Name: "n", CacheDir: toolchaintest.EngineCache(t)}); err == nil {
		t.Fatal("it was built")
	}
	if old, err := os.ReadFile(filepath.Join(dir, "build", "n.wasm")); err != nil || string(old) != "old" {
		t.Errorf("the module is %q, %v", old, err)
	}
}

func TestADirectoryAndTheFilesBesideItNeedDifferentNames(t *testing.T) {
	dir := toolchaintest.App(t, map[string]string{"handlers/a.ts": "export const a = () => 1;\n", "handlers/n/go.mod": "module n.example\n"})
	if _, _, err := toolchain.Build(context.Background(), toolchain.Options{Dir: dir, Name: "n", CacheDir: toolchaintest.EngineCache(t)}); err == nil || !strings.Contains(err.Error(), "rename the directory") {
		t.Errorf("got %v", err)
	}
}

// goHandler does not use the SDK, so it needs only the toolchain.
const goHandler = `package main

import "unsafe"

//go:wasmimport runner response_send
func send(status uint32, body unsafe.Pointer, length uint32) int32

//go:wasmexport fromGo
func fromGo() {
	body := []byte("\"go\"")
	send(200, unsafe.Pointer(unsafe.SliceData(body)), uint32(len(body)))
}

func main() {}
`

func TestAGoDirectoryIsBuiltIntoItsOwnModule(t *testing.T) {
	if testing.Short() {
		t.Skip("compiles Go: left out by -short")
	}
	dir := toolchaintest.App(t, map[string]string{
		"handlers/a.ts":          "export const fromTypeScript = () => 1;\n",
		"handlers/plain/go.mod":  "module plain.example\n\ngo 1.24\n",
		"handlers/plain/main.go": goHandler,
	})
	var reported []string
	modules, warnings, err := toolchain.Build(context.Background(), toolchain.Options{Dir: dir, Name: "n", CacheDir: toolchaintest.EngineCache(t), Built: func(m *toolchain.Module) { reported = append(reported, filepath.ToSlash(m.File)) }})
	if err != nil || warnings != nil || len(modules) != 2 || strings.Join(reported, " ") != "build/n.wasm build/plain.wasm" {
		t.Fatal(modules, warnings, err, reported)
	}
	exports, err := toolchain.Exports(dir)
	if err != nil || !strings.Contains(strings.Join(exports, " "), "fromGo") {
		t.Errorf("the modules export %v, %v", exports, err)
	}
	info, err := os.Stat(filepath.Join(dir, modules[1].File))
	if err != nil || int(info.Size()) != modules[1].Bytes {
		t.Errorf("%d bytes, %v, want %d", info.Size(), err, modules[1].Bytes)
	}
	m := toolchaintest.Load(t, toolchaintest.Engine(t), filepath.Join(dir, modules[1].File))
	defer m.Close(context.Background())
	if got := toolchaintest.Ask(t, m, "fromGo", abi.Request{}); got.Body != `"go"` {
		t.Errorf("answers %d %s %v", got.Status, got.Body, got.Err)
	}
	left, err := os.ReadDir(filepath.Join(dir, "build"))
	if err != nil || len(left) != 3 { // and the record of built modules
		t.Errorf("in build/ lie %v, %v", left, err)
	}
}

func TestGoErrorsHavePlaces(t *testing.T) {
	if testing.Short() {
		t.Skip("compiles Go: left out by -short")
	}
	dir := toolchaintest.App(t, map[string]string{
		"handlers/plain/go.mod":  "module plain.example\n\ngo 1.24\n",
		"handlers/plain/main.go": "package main\n\nfunc main() {\n\tnothing()\n}\n",
		"handlers/other/go.mod":  "no module\n",
	})
	_, _, err := toolchain.Build(context.Background(), toolchain.Options{Dir: dir, Name: "n", CacheDir: toolchaintest.EngineCache(t)})
	wrong, ok := errors.AsType[*toolchain.DiagnosticsError](err)
	if !ok || len(wrong.List) != 2 {
		t.Fatalf("got %v", err)
	}
	var all []string
	for _, d := range wrong.List.Sorted() {
		all = append(all, d.String())
	}
	if !strings.HasPrefix(all[0], "handlers/other") || all[1] != "handlers/plain/main.go:4:2: error: undefined: nothing" {
		t.Errorf("got %q", all)
	}
}

// The module that was there before stays.
func TestAnImportThatTheRunnerDoesNotHaveIsAnErrorOfTheBuild(t *testing.T) {
	if testing.Short() {
		t.Skip("compiles Go and C: left out by -short")
	}
	dir := toolchaintest.App(t, map[string]string{
		"handlers/plain/go.mod":    "module plain.example\n\ngo 1.24\n",
		"handlers/plain/main.go":   strings.Replace(goHandler, "runner response_send", "env lost", 1),
		"handlers/c/c.c":           "__attribute__((import_module(\"env\"), import_name(\"lost\"))) void lost(void);\n__attribute__((export_name(\"h\"))) void h(void) { lost(); }\n",
		"handlers/filter/filter.c": "__attribute__((import_module(\"env\"), import_name(\"proxy_log\"))) void lost(void);\n__attribute__((export_name(\"g\"))) void h(void) { lost(); }\n",
		"handlers/nothing/none.c":  "int unused(void) { return 1; }\n",
		"handlers/known/c.c":       "__attribute__((import_module(\"known\"), import_name(\"lost\"))) void lost(void);\n__attribute__((export_name(\"k\"))) void h(void) { lost(); }\n",
		"build/c.wasm":             "old",
	})
	_, _, err := toolchain.Build(context.Background(), toolchain.Options{
		Dir: dir, Name: "n", Schema: &schema.Schema{Modules: []schema.Module{{Name: "known", Stub: []string{"known"}}}},
	})
	wrong, ok := errors.AsType[*toolchain.DiagnosticsError](err)
	if !ok {
		t.Fatalf("got %v", err)
	}
	var all []string
	for _, d := range wrong.List.Sorted() {
		all = append(all, d.String())
	}
	want := []string{
		"handlers/c: error: its module build/c.wasm imports env.lost, which guest ABI 1 does not have: define the function, or link its library: add a line -l<name> to compile_flags.txt (-Wl,--allow-undefined hides missing functions)",
		"handlers/filter: error: its module build/filter.wasm imports env.proxy_log, which guest ABI 1 does not have: it was made for a proxy (proxy-wasm: Envoy, Istio, nginx): use the runner's SDK, or write a WASI program: a filter of a proxy has no request of its own to answer",
		"handlers/nothing: error: its module build/nothing.wasm exports no handler: export a function () -> () for each, named as in the schema, or _start for a command",
		"handlers/plain: error: its module build/plain.wasm imports env.lost, which guest ABI 1 does not have: write the function in Go, or remove the //go:wasmimport that declares it",
	}
	if !slices.Equal(all, want) {
		t.Errorf("got %q", all)
	}
	if old, err := os.ReadFile(filepath.Join(dir, "build", "c.wasm")); err != nil || string(old) != "old" {
		t.Errorf("the module is %d bytes, %v", len(old), err)
	}
}
