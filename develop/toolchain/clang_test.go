package toolchain_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"runner.example/develop/toolchain"
	"runner.example/sdk/c"
)

// cDirectory writes files into handlers/native of a new app.
func cDirectory(t *testing.T, files map[string]string) (dir string) {
	t.Helper()
	if testing.Short() {
		t.Skip("compiles C: left out by -short")
	}
	dir = t.TempDir()
	for name, text := range files {
		path := filepath.Join(dir, "handlers", "native", name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(text), 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// cBuild builds an app and returns its errors and warnings as text, one per line.
func cBuild(t *testing.T, dir string) (reported []string) {
	t.Helper()
	_, warnings, err := toolchain.Build(context.Background(), toolchain.Options{Dir: dir, Name: "app"})
	problems, ok := errors.AsType[*toolchain.DiagnosticsError](err)
	switch {
	case ok:
		warnings = problems
	case err != nil:
		t.Fatal(err)
	}
	if warnings == nil {
		return nil
	}
	for _, d := range warnings.List.Sorted() {
		reported = append(reported, d.String())
	}
	return reported
}

const cHello = `#include "runner.h"
#include "lib/greet.h"
RUNNER_HANDLER(hello) { return runner_ok(runner_str(greeting())); }
`

func TestACDirectoryIsBuiltIntoItsOwnModule(t *testing.T) {
	files := map[string]string{
		"hello.c": cHello, "lib/greet.h": "const char *greeting(void);\n", "lib/greet.c": "#include \"greet.h\"\nconst char *greeting(void) { return GREETING; }\n",
		"compile_flags.txt": "-DGREETING=\"hi\"\n-lm\n", "hello_test.c": "no C", "tests/more.c": "no C",
	}
	var modules [2][]byte
	for i := range modules {
		dir := cDirectory(t, files)
		if reported := cBuild(t, dir); reported != nil {
			t.Fatal(strings.Join(reported, "\n"))
		}
		exports, err := toolchain.Exports(dir)
		if err != nil || !slices.Contains(exports, "hello") {
			t.Fatalf("it exports %q: %v", exports, err)
		}
		if modules[i], err = os.ReadFile(filepath.Join(dir, "build", "native.wasm")); err != nil {
			t.Fatal(err)
		}
		if left, _ := filepath.Glob(filepath.Join(dir, "build", ".*")); len(left) != 1 || filepath.Base(left[0]) != ".built" {
			t.Errorf("beside the module there is %q", left)
		}
	}
	if !bytes.Equal(modules[0], modules[1]) {
		t.Error("equal sources in two directories make different modules")
	}
	if bytes.Contains(modules[0], []byte(os.TempDir()+"/")) {
		t.Error("a path of this machine is in the module")
	}
}

func TestTheHandlersInTheSDKReadmeBuild(t *testing.T) {
	text, err := c.Files.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	files := map[string]string{}
	for i, block := range strings.Split(string(text), "```") {
		for language, ending := range map[string]string{"c\n": ".c", "cpp\n": ".cc"} {
			if source, ok := strings.CutPrefix(block, language); ok && i%2 == 1 {
				files[fmt.Sprint("block", i, ending)] = strings.ReplaceAll(source, "listOrders) {\n  runner::", "listOrdersInCxx) {\n  runner::")
			}
		}
	}
	dir := cDirectory(t, files)
	if reported := cBuild(t, dir); reported != nil {
		t.Fatal(strings.Join(reported, "\n"))
	}
	exports, err := toolchain.Exports(dir)
	for _, name := range []string{"createOrder", "listOrders", "listOrdersInCxx"} {
		if err != nil || !slices.Contains(exports, name) {
			t.Errorf("%s is not exported: %q, %v", name, exports, err)
		}
	}
}

func TestCErrorsHavePlaces(t *testing.T) {
	for _, row := range []struct{ files, want map[string]string }{
		{map[string]string{
			"a.c":     "#include \"runner.h\"\nRUNNER_HANDLER(hello) { return nothing; }\n",
			"b.c":     "#include \"nowhere.h\"\n",
			"c.c":     "#include \"runner.h\"\nRUNNER_HANDLER(hello) { return runner_not_found(runner_path().data); }\n",
			"d.cc":    "#include <string>\n#include \"runner.h\"\nRUNNER_HANDLER(hello) { throw std::string(); }\n",
			"lib/a.c": "void f(void) { g(); }\n",
			"z.c":     "int z;\n",
		}, map[string]string{
			"handlers/native/a.c:":     "2:32: error: use of undeclared identifier 'nothing'",
			"handlers/native/b.c:":     "1:10: error: 'nowhere.h' file not found",
			"handlers/native/c.c:":     "2:49: error: format string is not a string literal",
			"handlers/native/d.cc:":    "3:25: error: cannot use 'throw' with exceptions disabled",
			"handlers/native/lib/a.c:": "1:16: error: ",
		}},
		{map[string]string{
			"a.c": "#include \"runner.h\"\nRUNNER_HANDLER(hello) { int unused; return runner_no_content(); }\n",
			"b.c": "int elsewhere(void);\n__attribute__((export_name(\"again\"))) void again(void) { elsewhere(); }\n",
		}, map[string]string{
			"handlers/native/a.c:":    "2:29: warning: unused variable 'unused'",
			"handlers/native: error:": " undefined symbol: elsewhere",
		}},
	} {
		reported := cBuild(t, cDirectory(t, row.files))
		for place, want := range row.want {
			i := slices.IndexFunc(reported, func(line string) bool { return strings.HasPrefix(line, place) })
			if i < 0 || !strings.HasPrefix(reported[i], place+want) {
				t.Errorf("reported %q, want the first of %s to be %q", reported, place, want)
			}
		}
		if slices.ContainsFunc(reported, func(line string) bool { return strings.Contains(line, "z.c") }) {
			t.Errorf("of a valid file: %q", reported)
		}
	}
}

func TestAMissingClangIsOneErrorLine(t *testing.T) {
	dir := cDirectory(t, map[string]string{"hello.c": cHello})
	empty := t.TempDir()
	t.Setenv("PATH", empty)
	t.Setenv("WASI_SDK_PATH", "")
	check := func(want string) {
		t.Helper()
		_, _, err := toolchain.Build(context.Background(), toolchain.Options{Dir: dir, Name: "app"})
		if err == nil || !strings.HasPrefix(err.Error(), want) || !strings.Contains(err.Error(), "apt-get install clang") || strings.Contains(err.Error(), "\n") {
			t.Errorf("%v, want %q and what to install, in one line", err, want)
		}
	}
	check("handlers/native is written in C, and the command clang is missing: ")
	if err := os.WriteFile(filepath.Join(empty, "clang"), []byte("#!/bin/sh\nexit 1\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	check("handlers/native is written in C, and clang cannot compile to WebAssembly here")
}
