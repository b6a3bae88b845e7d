package draws_test

import (
	"context"
	"encoding/binary"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"runner.example/hostabi"
	"runner.example/runtime/draws"
)

// assemble assembles a module whose initialization is a body, with functions before it. names keeps the
// names of functions.
func assemble(t *testing.T, names bool, functions, body string) []byte {
	t.Helper()
	return assembleText(t, names, `(module
		`+hostImports+`
		(memory (export "memory") 1)
		`+drawFunctions+functions+`
		(func $_initialize (export "_initialize") `+body+`)
		(func (export "hello")))`)
}

const hostImports = `
		(import "wasi_snapshot_preview1" "random_get" (func $random_get (param i32 i32) (result i32)))
		(import "wasi_snapshot_preview1" "clock_time_get" (func $clock_time_get (param i32 i64 i32) (result i32)))`

const drawFunctions = `
		(func $bytes (drop (call $random_get (i32.const 0) (i32.const 8))))
		(func $time (result i32)
			(drop (call $clock_time_get (i32.const 0) (i64.const 0) (i32.const 16)))
			(i32.wrap_i64 (i64.load (i32.const 16))))
		`

func assembleText(t *testing.T, names bool, text string) []byte {
	t.Helper()
	if _, err := exec.LookPath("wat2wasm"); err != nil && testing.Short() {
		t.Skip("wat2wasm is missing: apt-get install wabt")
	}
	in, out := filepath.Join(t.TempDir(), "module.wat"), filepath.Join(t.TempDir(), "module.wasm")
	if err := os.WriteFile(in, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	args := []string{in, "-o", out, "--enable-tail-call", "--enable-threads", "--enable-extended-const"}
	if names {
		args = append(args, "--debug-names")
	}
	if text, err := exec.Command("wat2wasm", args...).CombinedOutput(); err != nil {
		t.Fatalf("wat2wasm (tools/setup.sh installs it): %v\n%s", err, text)
	}
	module, err := os.ReadFile(out)
	if err != nil {
		t.Fatal(err)
	}
	return module
}

func shown(found draws.Found) string {
	var lines []string
	for _, d := range found.Draws {
		lines = append(lines, fmt.Sprintf("%s: %s", d.Kind, strings.Join(d.Chain, " → ")))
	}
	return strings.Join(lines, "\n")
}

func TestDrawsAreFoundWithTheirChain(t *testing.T) {
	for _, row := range []struct{ name, functions, body, want string }{
		{"nothing", "", "", ""},
		{"each function that runs before the first request", `(func $a (call $bytes)) (func $b (call $bytes)) (func $c (call $bytes)) (func $d (call $bytes))
			(func $begin (call $a)) (start $begin)
			(func $runner_warm (export "runner_warm") (call $c)) (func $runner_prepare (export "runner_prepare") (call $d))
			(func $handler (export "handler") (call $bytes)) (func $runner_other (export "runner_other") (call $bytes))`,
			"(call $b)", "random bytes: begin → a → bytes\nrandom bytes: b → bytes\nrandom bytes: c → bytes\nrandom bytes: d → bytes"},
		{"C: a number of libc", "(func $rand) (func $setup (call $rand))", "(call $setup) (call $setup)", "random number: setup → rand"},
		{"C: random bytes through libc's generator", "(func $arc4random (call $bytes)) (func $setup (call $arc4random))", "(call $setup)", "random number: setup → arc4random"},
		{"C: a seed from the clock", "(func $srand (param i32)) (func $setup (call $srand (call $time)))", "(call $setup)", "random sequence: setup → srand"},
		{"C: a seed that is written", "(func $srand (param i32)) (func $setup (call $srand (i32.const 7)))", "(call $setup)", ""},
		{"C: the clock beside a seed that is written", "(func $srand (param i32)) (func $setup (drop (call $time)) (call $srand (i32.const 7)) (drop (call $time)))", "(call $setup)", ""},
		{"C: a guard of the stack", "(func $__init_ssp (call $bytes))", "(call $__init_ssp)", ""},
		{"C: a seed from random bytes", "(func $srandom (param i32)) (func $setup (call $bytes) (call $srandom (i32.load (i32.const 0))))", "(call $setup)", "random bytes: setup → bytes"},
		{"the second of two seeds", "(func $srand (param i32)) (func $setup (call $srand (i32.const 1)) (call $srand (call $time)))", "(call $setup)", "random sequence: setup → srand"},
		{"AssemblyScript", "(func $~lib/math/NativeMath.random (call $bytes)) (func $~start (call $~lib/math/NativeMath.random))", "(call $~start)", "random number: ~start → ~lib/math/NativeMath.random"},
		{"Rust: keys of maps", "(func $_ZN3std3sys6random19hashmap_random_keys17h0123456789abcdefE (call $bytes)) (func $warm (call $_ZN3std3sys6random19hashmap_random_keys17h0123456789abcdefE))", "(call $warm)", ""},
		{"Rust: a generator from the keys of maps", "(func $_ZN3std3sys6random19hashmap_random_keys17h0123456789abcdefE (call $bytes)) (func $_ZN8fastrand10global_rng11random_seed17h0123456789abcdefE (call $_ZN3std3sys6random19hashmap_random_keys17h0123456789abcdefE))",
			"(call $_ZN8fastrand10global_rng11random_seed17h0123456789abcdefE)", "random bytes: fastrand::global_rng::random_seed → std::sys::random::hashmap_random_keys → bytes"},
		{"Rust: a crate", "(func $_ZN9getrandom9getrandom17h0123456789abcdefE (call $bytes))", "(call $_ZN9getrandom9getrandom17h0123456789abcdefE)", "random bytes: getrandom::getrandom → bytes"},
	} {
		t.Run(row.name, func(t *testing.T) {
			found, err := draws.Find(t.Context(), assemble(t, true, row.functions, row.body), draws.Options{})
			if got := shown(found); err != nil || got != row.want || !found.Named {
				t.Errorf("%v, with names %v, found\n%s\nwant\n%s", err, found.Named, got, row.want)
			}
		})
	}
}

// A program that waits starts once, so what it draws until then is the same in every request.
func TestDrawsOfTheStartOfAProgramAreFound(t *testing.T) {
	const (
		next = `(import "runner" "request_next" (func $next (param i32 i32) (result i32)))`
		stub = `(import "other" "close" (func $close (param i64) (result f32)))`
		open = `(import "wasi_snapshot_preview1" "path_open" (func $open (param i32 i32 i32 i32 i32 i64 i64 i32 i32) (result i32)))`

		wait     = `(drop (call $next (i32.const 100) (i32.const 4)))`
		openHost = `(drop (call $open (i32.const 3) (i32.const 0) (i32.const 200) (i32.const 11) (i32.const 0) (i64.const 66) (i64.const 0) (i32.const 0) (i32.const 300)))`
		long     = `(loop $again (br $again))`
	)
	program := func(env ...string) *hostabi.Program {
		return &hostabi.Program{Args: []string{"program"}, Env: env, Root: hostabi.NewRoot()}
	}
	found := "random bytes: setup → bytes"
	for _, row := range []struct {
		name, imports, functions, body string
		options                        draws.Options
		want                           string
		waits                          bool
	}{
		{"it imports request_next", next, "", "(call $setup)" + wait + "(call $bytes)", draws.Options{Program: program()}, found, true},
		{"a seed from the clock", next, "(func $srand (param i32))", "(call $srand (call $time))" + wait, draws.Options{Program: program()}, "random sequence: srand", true},
		{"a start function", next, "(start $setup)", wait, draws.Options{Program: program()}, found, true},
		{"it fails before it waits", next, "", "(call $setup) (unreachable)", draws.Options{Program: program()}, found, true},
		{"a start that takes too long", next, "", "(call $setup)" + long, draws.Options{Program: program(), Time: time.Second}, found, true},
		{"it calls a stub", next + stub, "", "(call $setup) (drop (call $close (i64.const 0)))" + wait, draws.Options{Program: program(), Stub: []string{"other"}}, found, true},
		{"the host's file", open, "", "(call $setup)" + openHost, draws.Options{Program: program(), Start: true}, found, true},
		{"it must wait", "", "", "(call $setup)", draws.Options{Program: program(), Start: true, MustWait: true}, found, true},
		{"a CGI program", "", "", "(call $setup)", draws.Options{Program: program(), Start: true}, "", false},
		{"a program that is not started", open, "", "(call $setup)" + openHost, draws.Options{Program: program()}, "", false},
		{"the seed of CPython's hashes", next, `(data "PYTHONHASHSEED")`, "(call $hash)" + wait, draws.Options{Program: program()}, "", true},
		{"a second draw of as many bytes", next, `(data "PYTHONHASHSEED") (func $other (call $hash))`, "(call $hash) (call $other)" + wait, draws.Options{Program: program()}, "random bytes: other → hash", true},
		{"CPython with a seed", next, `(data "PYTHONHASHSEED")`, "(call $hash)" + wait, draws.Options{Program: program("PYTHONHASHSEED=7")}, "random bytes: hash", true},
	} {
		t.Run(row.name, func(t *testing.T) {
			module := assembleText(t, true, `(module
				`+hostImports+row.imports+`
				(memory (export "memory") 1)
				(data (i32.const 100) "wait")
				(data (i32.const 200) "runner/host")
				`+drawFunctions+row.functions+`
				(func $setup (call $bytes))
				(func $hash (drop (call $random_get (i32.const 0) (i32.const 24))))
				(func $_start (export "_start") `+row.body+`))`)
			got, err := draws.Find(t.Context(), module, row.options)
			if err != nil || shown(got) != row.want || got.Waits != row.waits {
				t.Errorf("%v, waits %v, found\n%s\nwant\n%s", err, got.Waits, shown(got), row.want)
			}
			if strings.Contains(row.body, wait) && !strings.Contains(row.body, "$close") && !slices.Equal(got.Handlers, []string{"wait"}) {
				t.Errorf("its handlers are %q", got.Handlers)
			}
		})
	}
}

func TestAModuleWithoutNamesIsReportedWithNumbers(t *testing.T) {
	found, err := draws.Find(t.Context(), assemble(t, false, "(func $setup (call $bytes))", "(call $setup)"), draws.Options{})
	if got := shown(found); err != nil || found.Named || got != "random bytes: function 4 → function 2" {
		t.Errorf("%v, with names %v, found %s", err, found.Named, got)
	}
}

// calls are functions without loops that take long, or do not end: a chain of tail calls, one through a table, and a
// tree of calls.
var calls = `(table funcref (elem $through)) (func $forever (return_call $forever)) (func $through (return_call_indirect (i32.const 0)))
	(func $million (param i32) (if (i32.eqz (local.get 0)) (then (return_call $bytes))) (return_call $million (i32.sub (local.get 0) (i32.const 1))))
	(func $tree ` + strings.Repeat("(call $b1)", 2) + ")" + treeOf(60)

// treeOf makes the functions $b1, $b2 and so on, each of which calls the next one twice.
func treeOf(depth int) (text string) {
	for i := 1; i < depth; i++ {
		text += fmt.Sprintf("(func $b%d (call $b%d) (call $b%[2]d))", i, i+1)
	}
	return text + fmt.Sprintf("(func $b%d)", depth)
}

// What failed or took too long until then has drawn.
func TestAnInitializationThatFailsOrDoesNotEnd(t *testing.T) {
	for body, limit := range map[string]time.Duration{
		"(call $setup) (unreachable)":                       0,
		"(call $setup) (loop $again (br $again))":           time.Second, // in which a loaded machine calls setup too
		"(call $setup) (call $forever)":                     time.Second,
		"(call $setup) (call $through)":                     time.Second,
		"(call $setup) (call $tree)":                        time.Second,
		"(call $setup) (call $million (i32.const 1000000))": time.Minute,
	} {
		found, err := draws.Find(t.Context(), assemble(t, true, calls+"(func $setup (call $bytes))", body), draws.Options{Time: limit})
		want := "random bytes: setup → bytes"
		if limit == time.Minute {
			want += "\nrandom bytes: bytes" // it is called last, by a tail call, and nothing is left of the others
		}
		if got := shown(found); err != nil || got != want {
			t.Errorf("%s: %v, found %s", body, err, got)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := draws.Find(ctx, assemble(t, true, "", "(loop $again (br $again))"), draws.Options{}); err == nil {
		t.Error("a cancelled search has no error")
	}
}

// A module may have anything where Go has the table of its functions.
func FuzzTablesOfGo(f *testing.F) {
	f.Add([]byte("\xf1\xff\xff\xff\x00\x00\x01\x08"))
	f.Add([]byte("\xf1\xff\xff\xff\x00\x00\x01\x08\xff\xff\xff\xff\x00\x00\x00\x00" + strings.Repeat("\x40\x00\x00\x00\x00\x00\x00\x00", 12)))
	f.Add([]byte("\xf0\xff\xff\xff\x00\x00\x01\x08\x01\x00\x00\x00\x00\x00\x00\x00" + strings.Repeat("\x00\x00\x00\x00\x00\x00\x00\x00", 12)))
	f.Fuzz(func(t *testing.T, table []byte) {
		section := func(id byte, content string) string {
			return string(binary.AppendUvarint([]byte{id}, uint64(len(content)))) + content
		}
		sized := string(binary.AppendUvarint(nil, uint64(len(table)))) + string(table)
		module := "\x00asm\x01\x00\x00\x00" + section(1, "\x01\x60\x00\x00") + section(3, "\x01\x00") + section(5, "\x01\x00\x10") +
			section(7, "\x01\x0b_initialize\x00\x00") + section(10, "\x01\x02\x00\x0b") + section(11, "\x01\x00\x41\x08\x0b"+sized)
		if found, err := draws.Find(t.Context(), []byte(module), draws.Options{}); len(table) < 1<<20 && (err != nil || len(found.Draws) > 0) {
			t.Errorf("found %v, %v", found, err)
		}
	})
}

// A module may name its functions as it likes.
func TestNamesOfFunctionsAreBounded(t *testing.T) {
	doubles := "_Z1f1AIiiE"
	for i := range 60 { // each template has the one before as both arguments
		n := strings.ToUpper(strconv.FormatInt(int64(i), 36))
		doubles += "S_IS" + n + "_S" + n + "_E"
	}
	for name, f := range map[string]string{"a name that is short before it is demangled": doubles, "a long name": strings.Repeat("long", 100_000)} {
		t.Run(name, func(t *testing.T) {
			found, err := draws.Find(t.Context(), assemble(t, true, "(func $"+f+" (call $bytes))", "(call $"+f+")"), draws.Options{})
			if err != nil || len(found.Draws) != 1 || len(shown(found)) > 5000 {
				t.Errorf("%v, %d draws with %d bytes", err, len(found.Draws), len(shown(found)))
			}
		})
	}
}

func TestWhatIsKeptOfManyDrawsIsBounded(t *testing.T) {
	deep := `(func $deep (param i32) (local $n i32)
		(if (local.get 0) (then (call $deep (i32.sub (local.get 0) (i32.const 1))) (return)))
		(local.set $n (i32.const 20000))
		(loop $next (call $bytes) (br_if $next (local.tee $n (i32.sub (local.get $n) (i32.const 1))))))`
	module := assemble(t, true, deep, "(call $deep (i32.const 1000))")
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	found, err := draws.Find(t.Context(), module, draws.Options{})
	runtime.ReadMemStats(&after)
	if err != nil || len(found.Draws) != 1 {
		t.Errorf("%v, %d draws", err, len(found.Draws))
	}
	const most = 64 << 20
	if got := after.HeapSys - before.HeapSys; after.HeapSys > before.HeapSys && got > most {
		t.Errorf("Find needs %d bytes, want at most %d", got, most)
	}
	var functions, calls strings.Builder
	for i := range 2000 {
		fmt.Fprintf(&functions, "(func $f%d (call $bytes))", i)
		fmt.Fprintf(&calls, "(call $f%d)", i)
	}
	found, err = draws.Find(t.Context(), assemble(t, true, functions.String(), calls.String()), draws.Options{})
	if err != nil || len(found.Draws) != 1000 {
		t.Errorf("%v, %d draws of 2,000 functions, want 1,000", err, len(found.Draws))
	}
}
