package toolchain_test

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"runner.example/develop/toolchain"
	"runner.example/develop/toolchain/toolchaintest"
	"runner.example/hostabi/abi"
	"runner.example/internal/fault"
)

const cTraps = `#include <stdlib.h>
#include <unistd.h>
#include "runner.h"

__attribute__((noinline)) static int deep(int n, volatile char *at) {
  volatile char more[64];
  more[n % 64] = at[n % 64];
  return n < 0 ? 0 : deep(n + 1, more) + more[0];
}
RUNNER_HANDLER(recurses) {
  char at[64] = {0};
  return runner_ok(runner_int(deep(0, at)));
}

RUNNER_HANDLER(hoards) {
  for (;;) memset(runner_alloc(1 << 20), 1, 1 << 20);
}

RUNNER_HANDLER(draws) {
  unsigned char fresh[8];
  if (getentropy(fresh, sizeof fresh)) return runner_error(500, "no randomness");
  return runner_ok(runner_object("fresh", runner_bytes((runner_text){(const char *)fresh, sizeof fresh}), "drawn", runner_int(rand()), NULL));
}

RUNNER_HANDLER(fine) { return runner_no_content(); }
`

const goTraps = `package main

import runner "runner.example/sdk/go"

//go:noinline
func deep(n int, at *[64]byte) int {
	more := *at
	more[n%64] = byte(n)
	if n < 0 {
		return 0
	}
	return deep(n+1, &more) + int(more[0])
}

var kept [][]byte

//go:wasmexport recurses
func recurses() {
	runner.Handle(func(*runner.Context, *runner.Request) (runner.Response, error) {
		return runner.OK(deep(0, new([64]byte))), nil
	})
}

//go:wasmexport hoards
func hoards() {
	runner.Handle(func(*runner.Context, *runner.Request) (runner.Response, error) {
		for {
			kept = append(kept, make([]byte, 1<<20))
		}
	})
}

//go:wasmexport fine
func fine() {
	runner.Handle(func(*runner.Context, *runner.Request) (runner.Response, error) { return runner.NoContent(), nil })
}

func main() {}
`

// goDirectory creates an app with a directory of files of one module in Go with the SDK.
func goDirectory(t *testing.T, files map[string]string) string {
	if testing.Short() {
		t.Skip("compiles Go: left out by -short")
	}
	sdk, err := filepath.Abs("../../sdk/go")
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]string{
		"handlers/guest/go.mod": "module guest.example\n\ngo 1.24\n\nrequire runner.example/sdk/go v0.0.0\n\nreplace runner.example/sdk/go => " + strconv.Quote(sdk) + "\n",
	}
	for name, text := range files {
		all["handlers/guest/"+name] = text
	}
	return toolchaintest.App(t, all)
}

// A handler that exhausts the stack or the memory fails its own request; the next one
// succeeds.
func TestCAndGoRecursionAndAllocationFailOnlyTheRequest(t *testing.T) {
	engine := toolchaintest.Engine(t)
	for language, dir := range map[string]string{"C": cDirectory(t, map[string]string{"traps.c": cTraps}), "Go": goDirectory(t, map[string]string{"main.go": goTraps})} {
		t.Run(language, func(t *testing.T) {
			modules, warnings, err := toolchain.Build(t.Context(), toolchain.Options{Dir: dir, Name: "app"})
			if err != nil || warnings != nil {
				t.Fatal(warnings, err)
			}
			m := toolchaintest.Load(t, engine, filepath.Join(dir, modules[0].File))
			for _, handler := range []string{"recurses", "hoards"} {
				got := toolchaintest.Ask(t, m, handler, abi.Request{})
				if got.Err == nil || handler == "hoards" && fault.CodeOf(got.Err) != fault.HandlerOutOfMemory {
					t.Errorf("%s answers %d %s, %v", handler, got.Status, got.Body, got.Err)
				}
				if got := toolchaintest.Ask(t, m, "fine", abi.Request{}); got.Status != 204 {
					t.Errorf("the request behind %s: %d %v", handler, got.Status, got.Err)
				}
			}
			if language != "C" {
				return
			}
			first, second := toolchaintest.Ask(t, m, "draws", abi.Request{}), toolchaintest.Ask(t, m, "draws", abi.Request{})
			form := regexp.MustCompile(`^\{"fresh":(.+),"drawn":(\d+)\}$`)
			a, b := form.FindStringSubmatch(first.Body), form.FindStringSubmatch(second.Body)
			if a == nil || b == nil {
				t.Fatalf("draws answers %d %s and %d %s", first.Status, first.Body, second.Status, second.Body)
			}
			if a[1] == b[1] || a[2] == b[2] {
				t.Errorf("two requests draw alike: %s and %s", first.Body, second.Body)
			}
		})
	}
}

func TestEqualGoSourcesMakeEqualModules(t *testing.T) {
	var made [2][]byte
	for i := range made {
		dir := goDirectory(t, map[string]string{"main.go": goTraps}) // another directory each time
		modules, warnings, err := toolchain.Build(t.Context(), toolchain.Options{Dir: dir, Name: "app"})
		if err != nil || warnings != nil {
			t.Fatal(warnings, err)
		}
		if made[i], err = os.ReadFile(filepath.Join(dir, modules[0].File)); err != nil {
			t.Fatal(err)
		}
		if bytes.Contains(made[i], []byte(dir)) {
			t.Error("the module names the directory that it was built in")
		}
	}
	if !bytes.Equal(made[0], made[1]) {
		t.Errorf("two builds differ: %d and %d bytes", len(made[0]), len(made[1]))
	}
}

func TestAMissingToolchainIsOneErrorLine(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	t.Setenv("HOME", t.TempDir())
	for directory, want := range map[string]string{
		"go.mod":     "handlers/x is written in Go, and the command go is missing: install Go 1.24 or later",
		"Cargo.toml": "handlers/x is written in Rust, and the command cargo is missing: install Rust 1.63 or later",
		"build.sh":   "handlers/x has a build.sh, but the command sh is missing: on Windows, build this app in WSL",
		"x.wat":      "handlers/x is WebAssembly text, but the command wat2wasm is missing: install wabt",
	} {
		dir := toolchaintest.App(t, map[string]string{"handlers/x/" + directory: ""})
		_, _, err := toolchain.Build(t.Context(), toolchain.Options{Dir: dir, Name: "n"})
		if err == nil || !strings.HasPrefix(err.Error(), want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: reported %v, want %q in one line", directory, err, want)
		}
	}
}
