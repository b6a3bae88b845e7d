package sandbox_test

import (
	"encoding/json"
	"os/exec"
	"reflect"
	"strings"
	"testing"

	"runner.example/tests/harness"
)

// newer is a module of newer features: $count tail calls itself a million times, and $forever without end.
const newer = `(module
  (import "runner" "response_send" (func $send (param i32 i32 i32) (result i32)))
  (memory (export "memory") 1)
  (global $at i32 (i32.add (i32.const 8) (i32.const 8)))
  (data (offset (i32.add (i32.const 8) (i32.const 8))) "counted")
  (func $count (param $n i32)
    (if (i32.eqz (local.get $n)) (then
      (drop (call $send (i32.const 200) (global.get $at) (i32.atomic.rmw.add (i32.const 4) (i32.const 1))))
      (return)))
    (return_call $count (i32.sub (local.get $n) (i32.const 1))))
  (func $forever (return_call $forever))
  (func (export "counted") (i32.atomic.store (i32.const 4) (i32.const 7)) (return_call $count (i32.const 1000000)))
  (func (export "endless") (return_call $forever)))`

const newerSchema = `app newer

routes("/", auth: none, rateLimit: none, timeout: 1s) {
  GET /counted -> counted
  GET /endless -> endless
}
`

// writeNewer assembles a text as a module of an app.
func writeNewer(t *testing.T, a *harness.App, text string) {
	t.Helper()
	a.Write("newer.wat", text)
	a.Write("build/newer.wasm", "")
	assemble := exec.Command("wat2wasm", "--enable-all", a.Path("newer.wat"), "-o", a.Path("build/newer.wasm"))
	if out, err := assemble.CombinedOutput(); err != nil {
		t.Fatalf("wat2wasm: %v (apt-get install wabt)\n%s", err, out)
	}
}

func TestModulesUseNewerFeaturesAndCheckPrintsThem(t *testing.T) {
	a := harness.NewApp(t, newerSchema, "")
	writeNewer(t, a, newer)
	const want = "module  features\nnewer   extended constant expressions, tail calls, atomics\n"
	if out := a.Must("check", "--modules"); !strings.Contains(out, want) {
		t.Errorf("check --modules prints\n%s, want\n%s", out, want)
	}
	var printed struct {
		Findings []any
		Modules  []struct {
			Module   string
			Features []string
		}
	}
	if err := json.Unmarshal([]byte(a.Must("check", "--modules", "--json")), &printed); err != nil || printed.Findings == nil {
		t.Errorf("%v, %+v", err, printed)
	} else if m := printed.Modules; len(m) != 1 || m[0].Module != "newer" ||
		!reflect.DeepEqual(m[0].Features, []string{"extended constant expressions", "tail calls", "atomics"}) {
		t.Errorf("%+v", m)
	}
	s := a.Serve()
	for range 3 {
		if got := s.Do("GET", "/counted", ""); got.Status != 200 || got.Body != "counted" {
			t.Errorf("a million tail calls: %d %q", got.Status, got.Body)
		}
		if got := s.Do("GET", "/endless", ""); got.Status != 504 && got.Status != 503 {
			t.Errorf("tail calls without end: %d %q", got.Status, got.Body)
		}
	}
}

// What cannot be run is named, with what to do.
func TestFeaturesThatCannotBeRunAreRefusedByName(t *testing.T) {
	a := harness.NewApp(t, newerSchema, "")
	for text, want := range map[string]string{
		`(module (memory 1) (memory 1))`:         "has 2 memories, and may have one: build it without multi-memory",
		`(module (memory 1 1 shared))`:           "has a shared memory: build it without threads (wasm32-wasip1, no -pthread and no --shared-memory)",
		`(module (memory i64 1))`:                "has a 64-bit memory: build it for wasm32, not wasm64 (no -sMEMORY64)",
		`(module (tag))`:                         "uses exception handling, which cannot be run: build it without WebAssembly exceptions (-fno-exceptions, -sSUPPORT_LONGJMP=0, panic=abort)",
		`(module (func (try (do) (catch_all))))`: "uses exception handling, which cannot be run: build it without WebAssembly exceptions (-fno-exceptions, -sSUPPORT_LONGJMP=0, panic=abort)",
		`(module (func (param v128) (result v128) local.get 0 local.get 0 i8x16.relaxed_swizzle))`: "uses relaxed SIMD, which cannot be run: build it with -mno-relaxed-simd",
	} {
		writeNewer(t, a, text)
		r := a.Run("check", "--modules")
		if line := "runner: error: build/newer.wasm: " + want + "\n"; r.Status != 3 || r.Stderr != line {
			t.Errorf("%s: %d %q, want %q", text, r.Status, r.Stderr, line)
		}
	}
}
