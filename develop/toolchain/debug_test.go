package toolchain_test

import (
	"bytes"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"runner.example/develop/toolchain"
	"runner.example/develop/toolchain/toolchaintest"
	"runner.example/hostabi"
	"runner.example/hostabi/abi"
	"runner.example/internal/symbols"
	"runner.example/internal/wasm"
	"runner.example/runtime/sandbox"
)

// builtFiles returns the module and the debug file of a directory.
func builtFiles(t testing.TB, dir, name string) (module, debug []byte) {
	t.Helper()
	return mustRead(t, filepath.Join(dir, "build", name+".wasm")), mustRead(t, filepath.Join(dir, "build", name+".debug"))
}

// chains returns the chains of calls that a module that was built in dir and its debug file have for
// their addresses: "function file:line < caller file:line".
func chains(t *testing.T, dir string, module, debug []byte) (all []string) {
	t.Helper()
	if bytes.Contains(module, []byte(".debug_")) || bytes.Contains(module, []byte("sourceMappingURL")) {
		t.Error("the module has debug information")
	}
	if bytes.Contains(debug, []byte(filepath.Dir(dir))) {
		t.Error("a path of this machine is in the debug file")
	}
	table, err := symbols.Read(module, debug)
	if err != nil {
		t.Fatal(err)
	}
	sections, err := wasm.Sections(module)
	if err != nil {
		t.Fatal(err)
	}
	code := sections[slices.IndexFunc(sections, wasm.Section.IsCode)]
	for offset := code.Body; offset < code.End; offset++ {
		var calls []string
		for _, f := range table.Frames(^uint32(0), int64(offset)) {
			calls = append(calls, fmt.Sprintf("%s %s:%d", f.Function, f.File, f.Line))
		}
		if chain := strings.Join(calls, " < "); len(all) == 0 || all[len(all)-1] != chain {
			all = append(all, chain)
		}
	}
	t.Logf("the module has %d bytes, its debug file %d", len(module), len(debug))
	return all
}

func checkChain(t *testing.T, all []string, want string) {
	t.Helper()
	if !slices.Contains(all, want) {
		own := slices.DeleteFunc(slices.Clone(all), func(c string) bool { return !strings.Contains(c, "handlers/") })
		t.Errorf("no address has the calls %q, but\n%s", want, strings.Join(own[:min(len(own), 40)], "\n"))
	}
}

func TestTheDebugFileOfCxxHasLines(t *testing.T) {
	files := map[string]string{
		"lib/cart.h": `namespace shop {
struct Cart {
  int lines;
  inline int share(int sum) const {
    if (lines == 77) __builtin_trap();
    return sum / lines;
  }
};
}
`,
		"charge.cc": `#include "lib/cart.h"
namespace shop {
__attribute__((noinline)) int total(const Cart &cart, int sum) {
  return cart.share(sum) + 1;
}
}
extern "C" __attribute__((export_name("charge"))) void charge() {
  static volatile int n;
  n = shop::total(shop::Cart{n}, n);
}
`,
	}
	dir := cDirectory(t, files)
	if found := cBuild(t, dir); found != nil {
		t.Fatal(found)
	}
	module, debug := builtFiles(t, dir, "native")
	checkChain(t, chains(t, dir, module, debug), "shop::Cart::share(int) const handlers/native/lib/cart.h:5 < shop::total(shop::Cart const&, int) handlers/native/charge.cc:4")
	again := cDirectory(t, files)
	if found := cBuild(t, again); found != nil || !bytes.Equal(mustRead(t, filepath.Join(dir, "build/native.debug")), mustRead(t, filepath.Join(again, "build/native.debug"))) {
		t.Errorf("equal sources in two directories make different debug files: %v", found)
	}
	// The debug file goes with the source. One that was put there by hand stays.
	byHand := filepath.Join(dir, "build", "other.debug")
	if err := os.WriteFile(byHand, []byte("{}"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.RemoveAll(filepath.Join(dir, "handlers", "native")); err != nil {
		t.Fatal(err)
	}
	removed, err := toolchain.Clean(dir)
	if want := []string{"build/native.debug", "build/native.wasm"}; err != nil || !slices.Equal(removed, want) {
		t.Errorf("removed %v, %v, want %v", removed, err, want)
	}
	mustRead(t, byHand)
}

func TestTheDebugFileOfRustHasLines(t *testing.T) {
	dir := crate(t, "ledger", cdylib, map[string]string{"handlers/ledger/src/lib.rs": `pub struct Entry(Vec<u32>);

impl Entry {
    #[inline(always)]
    fn at(&self, i: usize) -> u32 {
        self.0[i]
    }
}

#[inline(never)]
pub fn last(e: &Entry) -> u32 {
    e.at(e.0.len() - 1)
}

#[no_mangle]
pub extern "C" fn book() {
    assert!(last(&Entry(std::env::args().map(|_| 7).collect())) > 0);
}
`})
	if _, lines := reported(t, dir); lines != nil {
		t.Fatal(lines)
	}
	module, debug := builtFiles(t, dir, "ledger")
	all := chains(t, dir, module, debug)
	inlined := func(c string) bool {
		return strings.Contains(c, "at handlers/ledger/src/lib.rs:6 < ledger::last handlers/ledger/src/lib.rs:12")
	}
	if !slices.ContainsFunc(all, inlined) {
		checkChain(t, all, "at handlers/ledger/src/lib.rs:6 < ledger::last handlers/ledger/src/lib.rs:12")
	}
}

func TestTheDebugFileOfAssemblyScriptHasLines(t *testing.T) {
	scriptModule(t)
	all := chains(t, scripts.dir, scripts.wasm, scripts.debug)
	line := strings.Count(scriptHandlers[:strings.Index(scriptHandlers, "depth(n - 1)")], "\n") + 1
	if want := fmt.Sprintf(" handlers/script/shop.ts:%d", line); !slices.ContainsFunc(all, func(c string) bool { return strings.HasSuffix(c, want) }) {
		checkChain(t, all, want)
	}
}

const cFailures = `#include <assert.h>
#include <stdlib.h>
#include "runner.h"
static volatile int n;
RUNNER_HANDLER(asserts) {
  assert(n == 77);
  return runner_no_content();
}
RUNNER_HANDLER(aborts) { abort(); }
`

const cxxFailures = `#include <vector>
#include "runner.hpp"
static volatile int n;
RUNNER_HANDLER(throws) {
  std::vector<int> list(3);
  return list.at(n + 3) ? runner_no_content() : runner_not_found("no");
}
`

// A failed assertion, abort and what would be an exception say what they are.
func TestFailuresOfCAreReported(t *testing.T) {
	dir := cDirectory(t, map[string]string{"a.c": cFailures, "b.cc": cxxFailures})
	if found := cBuild(t, dir); found != nil {
		t.Fatal(found)
	}
	engine := toolchaintest.NewEngine(t, sandbox.Options{})
	m := toolchaintest.Load(t, engine, filepath.Join(dir, "build", "native.wasm"))
	for handler, want := range map[string]struct {
		kind, message string
		frames        []symbols.Frame
	}{
		"asserts": {"assertion failed", "n == 77", []symbols.Frame{{File: "a.c", Line: 6}}},
		"aborts":  {"abort", "", nil},
		"throws":  {"abort", "vector", nil},
	} {
		call := toolchaintest.NewCall(t.Context(), &abi.Request{}, slog.DiscardHandler)
		err := m.Run(call, handler)
		call.SetFailure(hostabi.Failure{Kind: "unreachable"}, false)
		failure, _ := call.Failures()
		if err == nil || failure == nil || failure.Kind != want.kind || !strings.Contains(failure.Message, want.message) || !slices.Equal(failure.Frames, want.frames) {
			t.Errorf("%s: %+v, %v; want %+v", handler, failure, err, want)
		}
	}
}
