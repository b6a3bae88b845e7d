package toolchain_test

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"runner.example/develop/toolchain"
	"runner.example/hostabi/abi"
	"runner.example/internal/fault"
	"runner.example/runtime/sandbox"
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
	return app(t, all)
}

// A handler that exhausts the stack or the memory fails its own request; the next one
// succeeds.
func TestCAndGoRecursionAndAllocationFailOnlyTheRequest(t *testing.T) {
	engine, err := sandbox.New(t.Context(), sandbox.Options{NoBreaker: true, MemoryBytes: 16 << 20})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := engine.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	for language, dir := range map[string]string{"C": cDirectory(t, map[string]string{"traps.c": cTraps}), "Go": goDirectory(t, map[string]string{"main.go": goTraps})} {
		t.Run(language, func(t *testing.T) {
			modules, warnings, err := toolchain.Build(t.Context(), toolchain.Options{Dir: dir, Name: "app"})
			if err != nil || warnings != nil {
				t.Fatal(warnings, err)
			}
			m := load(t, engine, filepath.Join(dir, modules[0].File))
			for _, handler := range []string{"recurses", "hoards"} {
				got := ask(t, m, handler, abi.Request{})
				if got.err == nil || handler == "hoards" && fault.CodeOf(got.err) != fault.HandlerOutOfMemory {
					t.Errorf("%s answers %d %s, %v", handler, got.status, got.body, got.err)
				}
				if got := ask(t, m, "fine", abi.Request{}); got.status != 204 {
					t.Errorf("the request behind %s: %d %v", handler, got.status, got.err)
				}
			}
			if language != "C" {
				return
			}
			first, second := ask(t, m, "draws", abi.Request{}), ask(t, m, "draws", abi.Request{})
			form := regexp.MustCompile(`^\{"fresh":(.+),"drawn":(\d+)\}$`)
			a, b := form.FindStringSubmatch(first.body), form.FindStringSubmatch(second.body)
			if a == nil || b == nil {
				t.Fatalf("draws answers %d %s and %d %s", first.status, first.body, second.status, second.body)
			}
			if a[1] == b[1] || a[2] == b[2] {
				t.Errorf("two requests draw alike: %s and %s", first.body, second.body)
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

// Code outside functions has a fixed clock, so that equal sources make equal modules; a
// handler has the real one.
func TestTimeOutsideHandlersIsFixed(t *testing.T) {
	if testing.Short() {
		t.Skip("compiles every language: left out by -short")
	}
	const source = "const born = Date.now();\nexport const times = () => [born, Date.now()];\n"
	answers := map[string]bool{}
	for range 2 {
		dir := app(t, map[string]string{"handlers/a.ts": source})
		modules, _, err := toolchain.Build(t.Context(), toolchain.Options{Dir: dir, Name: "n", CacheDir: engineCache})
		if err != nil {
			t.Fatal(err)
		}
		m := load(t, builtApp(t).engine, filepath.Join(dir, modules[0].File))
		got := ask(t, m, "times", abi.Request{})
		if err := m.Close(context.Background()); err != nil {
			t.Error(err)
		}
		born, now, ok := strings.Cut(strings.Trim(got.body, "[]"), ",")
		if !ok {
			t.Fatalf("answers %d %s %v", got.status, got.body, got.err)
		}
		answers[born] = true
		ms, err := strconv.ParseInt(now, 10, 64)
		if age := time.Since(time.UnixMilli(ms)); err != nil || age < 0 || age > time.Minute || born == now {
			t.Errorf("a handler's time is %s, and the module's %s", now, born)
		}
	}
	if len(answers) != 1 {
		t.Errorf("two builds were made at %v", answers)
	}
}

func TestAMissingToolchainIsOneErrorLine(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	t.Setenv("HOME", t.TempDir())
	for directory, want := range map[string]string{
		"go.mod":     "handlers/x is written in Go, and the command go is missing: install Go 1.24 or later",
		"Cargo.toml": "handlers/x is written in Rust, and the command cargo is missing: install Rust 1.63 or later",
	} {
		dir := app(t, map[string]string{"handlers/x/" + directory: ""})
		_, _, err := toolchain.Build(t.Context(), toolchain.Options{Dir: dir, Name: "n"})
		if err == nil || !strings.HasPrefix(err.Error(), want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: reported %v, want %q in one line", directory, err, want)
		}
	}
}
