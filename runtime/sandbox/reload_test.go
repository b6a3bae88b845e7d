package sandbox_test

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"

	"runner.example/internal/fault"
	"runner.example/internal/patches"
	"runner.example/runtime/sandbox"
)

// resources are the resources of the process that a leak would increase.
type resources struct{ rss, mappings, files, goroutines int }

func take(t testing.TB) (r resources) {
	t.Helper()
	runtime.GC() // code of closed modules goes with the collector
	runtime.GC()
	maps, err := os.ReadFile("/proc/self/maps")
	if errors.Is(err, fs.ErrNotExist) {
		t.Skip("this system does not show what the process has in /proc")
	}
	if err != nil {
		t.Fatal(err)
	}
	files, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	statm, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		t.Fatal(err)
	}
	for _, b := range strings.Fields(string(statm))[1] {
		r.rss = r.rss*10 + int(b-'0')
	}
	r.rss *= os.Getpagesize()
	r.mappings, r.files, r.goroutines = bytes.Count(maps, []byte("\n")), len(files), runtime.NumGoroutine()
	return r
}

// A module that is loaded again with the same name and bytes is shared, with its sandboxes, until
// each Load has its Close.
func TestAModuleThatIsLoadedAgainIsShared(t *testing.T) {
	e := newEngine(t, sandbox.Options{})
	wasm := assemble(t, "cases")
	first := load(t, e, wasm)
	one := e.GuestMemory()
	second := load(t, e, wasm)
	if second != first || e.GuestMemory() != one {
		t.Errorf("another module was made: %d bytes of guests after %d", e.GuestMemory(), one)
	}
	changed := bytes.Clone(wasm)
	changed = append(changed, 0, 2, 1, 'x') // a custom section
	named, err := e.Load(t.Context(), "build/other.wasm", wasm)
	if err != nil {
		t.Fatal(err)
	}
	if other := load(t, e, changed); other == first || named == first {
		t.Error("a module with another name or other bytes is shared")
	}
	if err := first.Close(t.Context()); err != nil {
		t.Error(err)
	}
	if got, err := within(t, plenty, second, "normal"); err != nil {
		t.Errorf("after one of two was closed: %v, %v", got, err)
	}
	if err := second.Close(t.Context()); err != nil {
		t.Error(err)
	}
	if _, err := within(t, plenty, second, "normal"); fault.CodeOf(err) != fault.NotReady {
		t.Errorf("after both were closed: %v", err)
	}
	if again := load(t, e, wasm); again == first {
		t.Error("a closed module is shared")
	}
}

func TestReloadingAModuleLeaksNothing(t *testing.T) {
	rounds := 100
	switch {
	case soak:
		rounds = 1000
	case testing.Short():
		rounds = 30
	}
	e := newEngine(t, sandbox.Options{NoBreaker: true})
	wasm := assemble(t, "cases")
	reload := func() {
		m := load(t, e, wasm)
		for _, way := range []string{"normal", "trap", "growMuch", "deep"} {
			_, _ = within(t, plenty, m, way)
		}
		if err := m.Close(context.Background()); err != nil {
			t.Fatal(err)
		}
	}
	for range 20 {
		reload()
	}
	before := take(t)
	for range rounds {
		reload()
	}
	more := func(after resources) bool {
		return after.files > before.files+2 || after.mappings > before.mappings+20 || after.goroutines > before.goroutines+2 || after.rss > before.rss+64<<20
	}
	after := take(t)
	for end := time.Now().Add(plenty); more(after) && time.Now().Before(end); after = take(t) { // finalizers run in another goroutine
	}
	t.Logf("%d reloads: %+v before, %+v after", rounds, before, after)
	if more(after) {
		t.Errorf("%d reloads: %+v before, %+v after", rounds, before, after)
	}
	if n := e.GuestMemory(); n != 0 {
		t.Errorf("%d bytes of guests are still taken", n)
	}
}

// A module with state outside of memory and globals is served, too, with a new instance for
// each request.
func TestAModuleThatCannotBeRestoredGetsAnInstanceForEachRequest(t *testing.T) {
	for name, row := range map[string]struct{ wat, because string }{
		"a table that is written to": {`
			(table $t 4 funcref) (elem declare func $f)
			(func $f) (func $fresh (result i32) (ref.is_null (table.get $t (i32.const 2))))
			(func $dirty (table.set $t (i32.const 2) (ref.func $f)))`, "table.set"},
		"a table that grows": {`
			(table $t 4 100 funcref)
			(func $fresh (result i32) (i32.eq (table.size $t) (i32.const 4)))
			(func $dirty (drop (table.grow $t (ref.null func) (i32.const 3))))`, "table.grow"},
		"data that is dropped": {`
			(data $d "x")
			(func $fresh (result i32) (memory.init $d (i32.const 0) (i32.const 0) (i32.const 1)) (i32.const 1))
			(func $dirty (data.drop $d))`, "data.drop"},
		"a global vector": {`
			(global $v (mut v128) (v128.const i64x2 1 2))
			(func $fresh (result i32) (i64.eq (i64x2.extract_lane 1 (global.get $v)) (i64.const 2)))
			(func $dirty (global.set $v (v128.const i64x2 3 4)))`, "v128"},
		"a global reference": {`
			(elem declare func $f) (func $f)
			(global $r (mut funcref) (ref.null func))
			(func $fresh (result i32) (ref.is_null (global.get $r)))
			(func $dirty (global.set $r (ref.func $f)))`, "funcref"},
	} {
		t.Run(name, func(t *testing.T) {
			var log bytes.Buffer
			e := newEngine(t, sandbox.Options{Logger: slog.New(slog.NewTextHandler(&log, nil))})
			m := load(t, e, assembleText(t, `(module
				(import "runner" "response_send" (func $send (param i32 i32 i32) (result i32)))
				(memory (export "memory") 1) (global $started (mut i32) (i32.const 0))
				(func (export "_initialize") (global.set $started (i32.add (global.get $started) (i32.const 1))))
				`+row.wat+`
				(func (export "h")
					(if (i32.eqz (call $fresh)) (then unreachable))
					(if (i32.ne (global.get $started) (i32.const 1)) (then unreachable))
					(call $dirty)
					(drop (call $send (i32.const 200) (i32.const 0) (i32.const 0)))))`))
			if !strings.Contains(log.String(), "cannot be restored") || !strings.Contains(log.String(), row.because) {
				t.Errorf("the log does not tell of it: %s", &log)
			}
			for i := range 20 {
				if _, err := within(t, plenty, m, "h"); err != nil {
					t.Fatalf("request %d: %v", i, err)
				}
			}
			if idle, _ := m.Restored(); idle != 0 {
				t.Errorf("%d instances are kept", idle)
			}
			if n := e.GuestMemory(); n != 0 {
				t.Errorf("%d bytes of guests are still taken", n)
			}
		})
	}
}

func TestAModuleNeedsNoMemory(t *testing.T) {
	if testing.Short() {
		t.Skip("one thing after the other: nothing for the race detector")
	}
	for _, memory := range []string{"0 0", "0", "1 1"} {
		wasm := assembleText(t, `(module
			(import "runner" "response_send" (func $send (param i32 i32 i32) (result i32)))
			(memory (export "memory") `+memory+`)
			(func (export "h") (drop (memory.grow (i32.const 1))) (drop (call $send (i32.const 204) (i32.const 0) (i32.const 0)))))`)
		for name, disabled := range fallbacks {
			m := load(t, newEngine(t, sandbox.Options{Disable: disabled}), wasm)
			for range 3 {
				if call, err := within(t, plenty, m, "h"); err != nil || call.Response.Status != 204 {
					t.Errorf("memory %s, %s: %v", memory, name, err)
				}
				if _, err := m.Restored(); err != nil && restores(name) {
					t.Errorf("memory %s, %s: %v", memory, name, err)
				}
			}
		}
	}
}

func TestAnOptimizationThatDoesNotWorkIsDisabledAndLogged(t *testing.T) {
	for name, want := range map[string]string{
		"everything":         "snapshot true, watch true, shrink true, reuse true, stack true, faults true, trace true, guard true",
		"pagemap":            "snapshot true, watch false, shrink true, reuse true, stack true, faults true, trace true, guard true",
		"no shrinking":       "snapshot true, watch true, shrink false, reuse true, stack true, faults true, trace true, guard true",
		"no reused function": "snapshot true, watch true, shrink true, reuse false, stack true, faults true, trace true, guard true",
		"no stack":           "snapshot true, watch true, shrink true, reuse true, stack false, faults true, trace false, guard true",
		"no count of faults": "snapshot true, watch true, shrink true, reuse true, stack true, faults false, trace true, guard true",
		"no snapshot":        "snapshot false, watch true, shrink true, reuse true, stack false, faults false, trace false, guard true",
		"no guard":           "snapshot true, watch true, shrink true, reuse true, stack true, faults true, trace true, guard false",
		"no changed pages":   "snapshot false, watch false, shrink true, reuse true, stack false, faults false, trace false, guard true",
		"portable":           "snapshot true, watch false, shrink true, reuse true, stack true, faults false, trace true, guard false",
	} {
		disabled, known := fallbacks[name]
		if !known {
			continue // it is for native memory
		}
		var log bytes.Buffer
		e := newEngine(t, sandbox.Options{Logger: slog.New(slog.NewTextHandler(&log, nil)), MemoryBackend: memoryBackend, Disable: disabled})
		if e.Portable() {
			want = strings.NewReplacer("watch true", "watch false", "faults true", "faults false", "guard true", "guard false").Replace(want)
		}
		if emulator != "" { // it has no userfaultfd
			want = strings.Replace(want, "watch true", "watch false", 1)
		}
		if !patches.Applied || runtime.GOARCH != "amd64" {
			want = strings.Replace(want, "guard true", "guard false", 1)
		}
		if got := e.Optimizations(); got != want {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
		for _, optimization := range disabled {
			if optimization == native || optimization == sandbox.OptGuard && e.Portable() {
				continue // portable memory is never guarded
			}
			if optimization == sandbox.OptGuard && !patches.Applied {
				optimization = sandbox.OptPatches
			}
			if !strings.Contains(log.String(), "optimization="+optimization) {
				t.Errorf("the log does not say that %q is disabled:\n%s", optimization, &log)
			}
		}
		if len(disabled) == 0 && emulator == "" && patches.Applied && log.Len() > 0 {
			t.Errorf("all works, and the log says\n%s", &log)
		}
	}
}

func TestTheSelfTestMatchesItsSource(t *testing.T) {
	for _, name := range []string{"selftest", "selftest_program"} {
		embedded, err := os.ReadFile(name + ".wasm")
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(embedded, assembleFile(t, name+".wat")) {
			t.Errorf("%[1]s.wasm is not what wat2wasm makes of %[1]s.wat: run wat2wasm %[1]s.wat -o %[1]s.wasm", name)
		}
	}
}
