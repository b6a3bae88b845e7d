package sandbox_test

import (
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"runner.example/internal/patches"

	"runner.example/hostabi"
	"runner.example/hostabi/abi"
	"runner.example/internal/fault"
	"runner.example/runtime/pages"
	"runner.example/runtime/sandbox"
)

// assemble makes a module of testdata/<name>.wat.
func assemble(t testing.TB, name string) []byte {
	t.Helper()
	return assembleFile(t, filepath.Join("testdata", name+".wat"), "--enable-threads")
}

func assembleText(t testing.TB, wat string) []byte {
	t.Helper()
	in := filepath.Join(t.TempDir(), "module.wat")
	if err := os.WriteFile(in, []byte(wat), 0o600); err != nil {
		t.Fatal(err)
	}
	return assembleFile(t, in, "--enable-threads", "--enable-memory64", "--enable-tail-call", "--enable-extended-const")
}

func assembleFile(t testing.TB, in string, flags ...string) []byte {
	t.Helper()
	if _, err := exec.LookPath("wat2wasm"); err != nil && testing.Short() {
		t.Skip("wat2wasm is missing: apt-get install wabt")
	}
	out := filepath.Join(t.TempDir(), "module.wasm")
	text, err := exec.Command("wat2wasm", append(flags, in, "-o", out)...).CombinedOutput()
	if errors.Is(err, exec.ErrNotFound) {
		t.Fatal("wat2wasm is missing: apt-get install wabt")
	}
	if err != nil {
		t.Fatalf("wat2wasm %s: %v\n%s", in, err, text)
	}
	wasm, err := os.ReadFile(out)
	if err != nil {
		t.Fatal(err)
	}
	return wasm
}

// native in Options.Disable has newEngine use portable memory.
const native = "native"

// memoryBackend is the [sandbox] memory_backend of all engines that do not say theirs. RUNNER_TEST_MEMORY sets it.
var memoryBackend = func() string {
	of := pages.Open(cmp.Or(os.Getenv("RUNNER_TEST_MEMORY"), pages.Native))
	defer of.Close()
	if of.Finder() == pages.ByComparison {
		return pages.Portable
	}
	return pages.Native
}()

// onlyNative skips a test of what portable memory does not have.
func onlyNative(t *testing.T) {
	t.Helper()
	if memoryBackend != pages.Native {
		t.Skip("portable memory is always compared with its image")
	}
}

// newEngine makes an engine. It ends the test if the self-test disables an optimization that the test does
// not: with the fallback, which hides what is wrong, the test would test nothing.
func newEngine(t testing.TB, options sandbox.Options) *sandbox.Engine {
	t.Helper()
	if at := slices.Index(options.Disable, native); at >= 0 {
		options.Disable = slices.Delete(slices.Clone(options.Disable), at, at+1)
		options.MemoryBackend = pages.Portable
	}
	if options.MemoryBackend == "" {
		options.MemoryBackend = memoryBackend
	}
	if options.InitTime == 0 {
		options.InitTime = plenty
	}
	selfTest := &selfTestLog{}
	if options.Logger == nil {
		options.Logger = slog.New(selfTest)
	}
	e, err := sandbox.New(context.Background(), options)
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range selfTest.disabled {
		without := d.name == sandbox.OptSnapshot && slices.Contains(options.Disable, sandbox.OptPagemap) ||
			d.name == sandbox.OptTrace && slices.Contains(options.Disable, sandbox.OptStack) ||
			d.name == sandbox.OptPatches && !patches.Applied ||
			d.name == sandbox.OptGuard && (runtime.GOARCH != "amd64" || options.MemoryBackend == pages.Portable)
		if !without && !slices.Contains(options.Disable, d.name) && !(d.name == sandbox.OptWatch && strings.HasPrefix(d.cause, "watch memory:")) {
			t.Fatalf("the self-test of the engine disables %q: %s", d.name, d.cause)
		}
	}
	t.Cleanup(func() {
		if err := e.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return e
}

// selfTestLog collects which optimizations the self-test of an engine has disabled. On a machine without
// userfaultfd, the cause begins with "watch memory:".
type selfTestLog struct {
	slog.Handler
	disabled []struct{ name, cause string }
}

func (l *selfTestLog) Enabled(context.Context, slog.Level) bool { return true }

func (l *selfTestLog) Handle(_ context.Context, r slog.Record) error {
	if r.Message != "optimization disabled" {
		return nil
	}
	values := map[string]string{}
	r.Attrs(func(a slog.Attr) bool {
		values[a.Key] = a.Value.String()
		return true
	})
	l.disabled = append(l.disabled, struct{ name, cause string }{values["optimization"], values["cause"]})
	return nil
}

func load(t testing.TB, e *sandbox.Engine, wasm []byte) *sandbox.Module {
	t.Helper()
	return loadAs(t, e, "build/test.wasm", wasm)
}

// loadAs loads a module by its own name: the engine shares one with an equal name and equal bytes.
func loadAs(t testing.TB, e *sandbox.Engine, name string, wasm []byte) *sandbox.Module {
	t.Helper()
	m, err := e.Load(context.Background(), name, wasm)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// newCall returns the Call of a small request without a CPU limit; log receives its log
// lines.
func newCall(ctx context.Context, log *bytes.Buffer) *hostabi.Call {
	return &hostabi.Call{Input: hostabi.Input{
		Context: ctx,
		Host:    hostabi.NewHost(hostabi.Host{Logger: slog.New(slog.NewJSONHandler(log, nil)), Limits: hostabi.Limits{CPU: time.Hour}}),
		Request: &abi.Request{ID: "01hello", Method: []byte("GET"), Path: []byte("/x"), Route: "/x"},
		Attempt: 1,
	}}
}

// within runs a handler with some time; the answer is the call's.
func within(t testing.TB, d time.Duration, m *sandbox.Module, handler string) (*hostabi.Call, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), d)
	defer cancel()
	call := newCall(ctx, new(bytes.Buffer))
	return call, m.Run(call, handler)
}

// plenty is more than any handler here needs, even on a busy machine.
const plenty = time.Minute

func TestEachEndOfAHandlerHasItsFaultCode(t *testing.T) {
	m := load(t, newEngine(t, sandbox.Options{MemoryBytes: 2 << 20}), assemble(t, "guest"))
	for _, row := range []struct {
		handler string
		time    time.Duration
		want    fault.Code // empty: it answers
		cause   string     // in the cause alone
	}{
		{"hello", plenty, "", ""},
		{"trap", plenty, fault.HandlerFailed, "unreachable"},
		{"answerAndTrap", plenty, fault.HandlerFailed, "unreachable"},
		{"silent", plenty, fault.HandlerFailed, "without an answer"},
		{"twice", plenty, "", ""},
		{"exit0", plenty, fault.HandlerFailed, "status 0"},
		{"exit1", plenty, fault.HandlerFailed, "status 1"},
		{"answerAndExit0", plenty, "", ""},
		{"answerAndExit1", plenty, fault.HandlerFailed, "status 1"},
		{"exitAsIfLate", plenty, fault.HandlerFailed, "status"},
		{"growAndTrap", plenty, fault.HandlerOutOfMemory, "unreachable"},
		{"growAndExit", plenty, fault.HandlerOutOfMemory, "2"},
		{"growAndAnswer", plenty, "", ""},
		{"growToLimit", plenty, "", ""},
		{"loop", 30 * time.Millisecond, fault.HandlerTimeout, "time is over"},
		{"loopCalling", 30 * time.Millisecond, fault.HandlerTimeout, "time is over"},
		{"answerAndLoop", 30 * time.Millisecond, fault.HandlerTimeout, "time is over"},
		{"nowhere", plenty, fault.HandlerFailed, "no handler"},
		{"takes", plenty, fault.HandlerFailed, "no handler"},
	} {
		t.Run(row.handler, func(t *testing.T) {
			call, err := within(t, row.time, m, row.handler)
			if fault.CodeOf(err) != row.want {
				t.Fatalf("ends with %q (%v), want %q", fault.CodeOf(err), err, row.want)
			}
			if row.want == "" {
				if call.Response.Status != 200 || string(call.Response.Body) != "hello" {
					t.Errorf("answers %d %q", call.Response.Status, call.Response.Body)
				}
			} else if f := fault.Of(err); f.Cause == nil || !strings.Contains(f.Cause.Error(), row.cause) || strings.Contains(f.Detail, "wasm") {
				t.Errorf("detail %q, cause %v: want %q in the cause alone", f.Detail, f.Cause, row.cause)
			}
			if call, err := within(t, plenty, m, "hello"); err != nil || string(call.Response.Body) != "hello" {
				t.Errorf("the next request: %v, %q", err, call.Response.Body)
			}
		})
	}
}

func TestGuestRecursion(t *testing.T) {
	m := load(t, newEngine(t, sandbox.Options{}), assemble(t, "guest"))
	_, err := within(t, plenty, m, "recurse")
	if f := fault.Of(err); f == nil || f.Code != fault.HandlerFailed || !strings.Contains(f.Cause.Error(), "stack overflow") {
		t.Errorf("endless recursion ends with %v", err)
	}
}

func TestInfiniteLoop(t *testing.T) {
	m := load(t, newEngine(t, sandbox.Options{}), assemble(t, "guest"))
	start := time.Now()
	if _, err := within(t, 50*time.Millisecond, m, "loop"); fault.CodeOf(err) != fault.HandlerTimeout {
		t.Errorf("an endless loop ends with %v", err)
	}
	if took := time.Since(start); took > plenty {
		t.Errorf("stopped after %s, want some 50 ms", took)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if err := m.Run(newCall(ctx, new(bytes.Buffer)), "loop"); fault.CodeOf(err) != fault.HandlerTimeout {
		t.Errorf("a loop begun when the time was over ends with %v", err)
	}
}

func TestEveryRequestFindsAFreshSandbox(t *testing.T) {
	m := load(t, newEngine(t, sandbox.Options{}), assemble(t, "guest"))
	for i := range 20 {
		call, err := within(t, plenty, m, "count")
		if err != nil || string(call.Response.Body) != "1" {
			t.Fatalf("run %d: %v, the instance counts %q runs", i, err, call.Response.Body)
		}
	}
}

// TestGuestCannotSeeCredential: a request cannot find data of another one in memory, not
// even in memory that has just grown.
func TestGuestCannotSeeCredential(t *testing.T) {
	const canary = "rnk_CANARYcanaryCANARYcanary"
	m := load(t, newEngine(t, sandbox.Options{}), assemble(t, "guest"))
	clean, err := within(t, plenty, m, "dump")
	if err != nil {
		t.Fatal(err)
	}
	want := slices.Clone(clean.Response.Body)
	call := newCall(context.Background(), new(bytes.Buffer))
	for range 20 {
		call.Request.Body = bytes.Repeat([]byte(canary), 200)
		if err := m.Run(call, "smear"); err != nil {
			t.Fatal(err)
		}
		call.Request.Body = nil
		if err := m.Run(call, "dump"); err != nil {
			t.Fatal(err)
		}
		if got := call.Response.Body; bytes.Contains(got, []byte(canary)) || !bytes.Equal(got, want) {
			t.Fatalf("the memory of a run after another differs from that of a first run (canary in it: %v)", bytes.Contains(got, []byte(canary)))
		}
	}
}

// A host without a logger is a bug of the host: the host function panics. Only this
// request may fail.
func TestAPanicOfTheHostIsAFailedHandler(t *testing.T) {
	m := load(t, newEngine(t, sandbox.Options{}), assemble(t, "guest"))
	call := newCall(context.Background(), nil)
	call.Host.Logger = nil
	err := m.Run(call, "speak")
	if f := fault.Of(err); f == nil || f.Code != fault.HandlerFailed || !strings.Contains(f.Cause.Error(), "nil pointer") {
		t.Errorf("ends with %v", err)
	}
	if call, err := within(t, plenty, m, "hello"); err != nil || string(call.Response.Body) != "hello" {
		t.Errorf("the next request: %v, %q", err, call.Response.Body)
	}
}

func TestInvalidPointersAreErrnos(t *testing.T) {
	m := load(t, newEngine(t, sandbox.Options{}), assemble(t, "lies"))
	call, err := within(t, plenty, m, "lies")
	if err != nil || call.Response.Status != 200 || len(call.Response.Headers) != 0 {
		t.Errorf("%v, answer %+v", err, call.Response)
	}
}

func TestOnlyTheLogWorksDuringInitialization(t *testing.T) {
	for _, disabled := range []string{"", sandbox.OptSnapshot} {
		var log bytes.Buffer
		logger := slog.New(slog.NewJSONHandler(&log, nil))
		m := load(t, newEngine(t, sandbox.Options{Logger: logger, Disable: []string{disabled}}), assemble(t, "initialize"))
		if n := strings.Count(log.String(), `"msg":"starting"`); n != 2 {
			t.Errorf("%d log lines, want 2:\n%s", n, &log)
		}
		log.Reset()
		call := newCall(context.Background(), &log)
		if err := m.Run(call, "denied"); err != nil {
			t.Fatal(err)
		}
		if string(call.Response.Body) != "6" {
			t.Errorf("%s of 6 host calls were denied", call.Response.Body)
		}
		want := 0
		if disabled != "" { // then it initializes itself anew
			want = 2
		}
		if n := strings.Count(log.String(), `"msg":"starting"`); n != want {
			t.Errorf("%d log lines of the request, want %d:\n%s", n, want, &log)
		}
	}
}

func TestAModuleThatCannotBeInitializedIsRefusedAndKeepsNothing(t *testing.T) {
	patient := newEngine(t, sandbox.Options{MemoryBytes: 64 << 20, InitTime: plenty})
	hasty := newEngine(t, sandbox.Options{MemoryBytes: 64 << 20, InitTime: 30 * time.Millisecond})
	for name, row := range map[string]struct{ wat, want string }{
		"_initialize traps": {`(module (memory (export "memory") 1) (func (export "_initialize") unreachable) (func (export "h")))`,
			"fails before its first request: _initialize: wasm error: unreachable"},
		"_initialize traps and has said why": {`(module (import "runner" "log" (func $log (param i32 i32 i32)))
			(memory (export "memory") 1) (data (i32.const 0) "no \n good")
			(func (export "_initialize") (call $log (i32.const 3) (i32.const 0) (i32.const 9)) unreachable) (func (export "h")))`,
			`fails before its first request: _initialize: wasm error: unreachable; its last log lines: no \n good`},
		"start traps": {`(module (memory (export "memory") 1) (func $s unreachable) (start $s) (func (export "h")))`,
			"fails before its first request: its start function: wasm error: unreachable"},
		"runner_warm traps": {`(module (memory (export "memory") 1) (func (export "runner_warm") unreachable) (func (export "h")))`,
			"fails before its first request: runner_warm: wasm error: unreachable"},
		"runner_prepare traps": {`(module (memory (export "memory") 1) (func (export "runner_prepare") unreachable) (func (export "h")))`,
			"fails before its first request: runner_prepare: wasm error: unreachable"},
		"data outside of memory": {`(module (memory (export "memory") 1) (data (i32.const 65535) "ab") (func (export "h")))`,
			"fails before its first request: data segment 0 lies outside of memory"},
		"_initialize exits": {`(module (import "wasi_snapshot_preview1" "proc_exit" (func $x (param i32)))
			(memory (export "memory") 1) (func (export "_initialize") (call $x (i32.const 3))) (func (export "h")))`,
			"fails before its first request: _initialize: exited with status 3"},
		"_initialize does not end": {`(module (memory (export "memory") 1) (func (export "_initialize") (loop (br 0))) (func (export "h")))`,
			"takes longer than 30ms before its first request"},
		"_initialize takes something": {`(module (memory (export "memory") 1) (func (export "_initialize") (param i32)) (func (export "h")))`,
			"exports _initialize with parameters or results"},
	} {
		t.Run(name, func(t *testing.T) {
			wasm, e := assembleText(t, row.wat), patient
			if name == "_initialize does not end" {
				e = hasty
			}
			before := mappedBytes(t)
			for range 20 {
				_, err := e.Load(context.Background(), "build/x.wasm", wasm)
				if fault.CodeOf(err) != fault.Invalid || !strings.HasPrefix(err.Error(), "build/x.wasm: "+row.want) || strings.Contains(err.Error(), "\n") {
					t.Fatalf("refused with %q, want one line with %q", err, row.want)
				}
			}
			if grown := mappedBytes(t) - before; grown > 1<<30 {
				t.Errorf("20 modules left %d MiB mapped", grown>>20)
			}
		})
	}
}

func TestAThousandRunsLeaveNothingBehind(t *testing.T) {
	m := load(t, newEngine(t, sandbox.Options{MemoryBytes: 64 << 20}), assemble(t, "guest"))
	ways := []string{"hello", "trap", "silent", "exit1", "growToLimit", "answerAndTrap", "loop"}
	run := func(n int) {
		var group sync.WaitGroup
		for worker := range 4 {
			group.Go(func() {
				for i := range n / 4 {
					way := ways[(i+worker)%len(ways)]
					d := plenty
					if way == "loop" {
						d = time.Millisecond
					}
					_, _ = within(t, d, m, way)
				}
			})
		}
		group.Wait()
	}
	run(50)
	goroutines, mapped := settled(0), mappedBytes(t)
	run(1000)
	if now := settled(goroutines + 4); now > goroutines+4 { // a leak would be hundreds; a few may still be ending
		t.Errorf("%d goroutines before, %d after", goroutines, now)
	}
	if grown := mappedBytes(t) - mapped; grown > 1<<30 { // leaked, it would be 64 GiB
		t.Errorf("1,000 runs left %d MiB mapped", grown>>20)
	}
	if call, err := within(t, plenty, m, "hello"); err != nil || string(call.Response.Body) != "hello" {
		t.Errorf("the next request: %v", err)
	}
}

// settled returns the number of goroutines, after it has waited for ending ones until at
// most enough are left.
func settled(enough int) int {
	n := runtime.NumGoroutine()
	for range 10_000 {
		if n = runtime.NumGoroutine(); n <= enough {
			break
		}
		runtime.Gosched()
	}
	return n
}

// mappedBytes is the address space of this process (statm's first number).
func mappedBytes(t testing.TB) int64 {
	t.Helper()
	text, err := os.ReadFile("/proc/self/statm")
	if errors.Is(err, fs.ErrNotExist) {
		t.Skip("this system does not show what the process has in /proc")
	}
	if err != nil {
		t.Fatal(err)
	}
	var pages int64
	for _, b := range text[:bytes.IndexByte(text, ' ')] {
		pages = pages*10 + int64(b-'0')
	}
	return pages * int64(os.Getpagesize())
}

func TestARequestWithoutAnInstanceSlotIsRefusedAfterQueueWait(t *testing.T) {
	wasm := assemble(t, "guest")
	synctest.Test(t, func(t *testing.T) {
		e := newEngine(t, sandbox.Options{Instances: 1, QueueWait: time.Second})
		m := load(t, e, wasm)
		release := e.Occupy()
		for range 2 { // later requests wait as long again
			start := time.Now()
			call, err := within(t, plenty, m, "hello")
			if waited := time.Since(start); fault.CodeOf(err) != fault.Overloaded || waited != time.Second || call.Response.Status != 0 {
				t.Errorf("beside a guest that has the only slot: %v after %s", err, waited)
			}
		}
		start := time.Now()
		_, err := within(t, 300*time.Millisecond, m, "hello")
		if waited := time.Since(start); fault.CodeOf(err) != fault.Overloaded || waited != 300*time.Millisecond {
			t.Errorf("with less time than the queue's wait: %v after %s", err, waited)
		}
		release()
		if _, err := within(t, plenty, m, "hello"); err != nil {
			t.Errorf("when the slot is free again: %v", err)
		}
	})
}

func TestASleepLastsAsLongAsAskedAndNoLongerThanTheRequest(t *testing.T) {
	wasm := assemble(t, "guest")
	synctest.Test(t, func(t *testing.T) {
		m := load(t, newEngine(t, sandbox.Options{}), wasm)
		start := time.Now()
		if _, err := within(t, time.Minute, m, "sleep"); err != nil || time.Since(start) != 5*time.Second {
			t.Errorf("sleeping 5 s took %s: %v", time.Since(start), err)
		}
		start = time.Now()
		if _, err := within(t, time.Second, m, "sleep"); fault.CodeOf(err) != fault.HandlerTimeout || time.Since(start) != time.Second {
			t.Errorf("sleeping 5 s within 1 s took %s: %v", time.Since(start), err)
		}
	})
}

func TestStandardOutputBecomesLogLines(t *testing.T) {
	m := load(t, newEngine(t, sandbox.Options{}), assemble(t, "guest"))
	var log bytes.Buffer
	if err := m.Run(newCall(context.Background(), &log), "speak"); err != nil {
		t.Fatal(err)
	}
	want := []string{
		`"level":"ERROR","msg":"hello","source":"guest","requestId":"01hello","route":"/x","attempt":1`,
		`"level":"INFO","msg":"line one"`,
		`"level":"INFO","msg":"line\\x1b[2Jtwo"`,
		`"level":"WARN","msg":"line one"`,
		`"level":"WARN","msg":"line\\x1b[2Jtwo"`,
		`"level":"INFO","msg":"no end"`,
		`"level":"WARN","msg":"no end"`,
	}
	lines := strings.Split(strings.TrimSpace(log.String()), "\n")
	if len(lines) != len(want) {
		t.Fatalf("%d lines, want %d:\n%s", len(lines), len(want), &log)
	}
	for i, line := range lines {
		if !strings.Contains(line, want[i]) {
			t.Errorf("line %d is %s, want %s", i, line, want[i])
		}
	}
}

func TestWASISurface(t *testing.T) {
	m := load(t, newEngine(t, sandbox.Options{}), assemble(t, "wasi"))
	t.Setenv("RUNNER_CANARY", "must not be seen")
	const badf, noFile = 8, 44
	look := func() []byte {
		call, err := within(t, plenty, m, "look")
		if err != nil {
			t.Fatal(err)
		}
		return slices.Clone(call.Response.Body)
	}
	b := look()
	word := func(at int) uint32 { return binary.LittleEndian.Uint32(b[at:]) }
	for at, want := range map[int]uint32{0: 0, 4: 0, 8: 0, 12: 0, 16: 0, 20: noFile, 24: badf, 28: 0, 32: 0, 36: 0, 48: 0} {
		if word(at) != want {
			t.Errorf("word at %d is %d, want %d", at, word(at), want)
		}
	}
	now := int64(binary.LittleEndian.Uint64(b[40:]))
	if d := time.Since(time.Unix(0, now)); now%int64(time.Millisecond) != 0 || d < 0 || d > time.Minute {
		t.Errorf("the clock says %d, %s ago: want now, in whole milliseconds", now, d)
	}
	if again := look(); bytes.Equal(b[52:60], again[52:60]) {
		t.Errorf("two requests got the same random bytes %x", b[52:60])
	}
}

func TestHandlersAreTheExportsWithoutParametersAndReservedNames(t *testing.T) {
	m := load(t, newEngine(t, sandbox.Options{}), assemble(t, "guest"))
	got := m.Handlers()
	if !slices.IsSorted(got) || !slices.Contains(got, "hello") {
		t.Errorf("handlers are %q", got)
	}
	for _, name := range []string{"", "_hidden", "runner_warm", "runner_prepare", "takes", "gives", "memory"} {
		if slices.Contains(got, name) {
			t.Errorf("%s is a handler", name)
		}
	}
}

func manyImports(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, `(import "env" "i%d" (func))`, i)
	}
	return b.String()
}

func TestHostileModules(t *testing.T) {
	e := newEngine(t, sandbox.Options{MemoryBytes: 2 << 20})
	good := assemble(t, "guest")
	for _, row := range []struct {
		name string
		wasm []byte
		want string
	}{
		{"a component", []byte("\x00asm\x0d\x00\x01\x00"), "is a component that does not export wasi:http/incoming-handler@0.2"},
		{"another version", []byte("\x00asm\x02\x00\x00\x00"), "version 2"},
		{"nothing", nil, "is empty"},
		{"a script", []byte("#!/bin/sh\nexit 1\n"), "is not a WebAssembly module"},
		{"half a module", good[:len(good)/2], "is cut off or damaged"},
		{"a module of 65 MiB", append([]byte("\x00asm\x01\x00\x00\x00"), make([]byte, 65<<20-8)...), "is 68157440 bytes large, and a module may have 67108864"},
		{"imported memory", assembleText(t, `(module (import "env" "memory" (memory 1)) (func (export "h")))`), `imports its memory ("env.memory")`},
		{"imported global", assembleText(t, `(module (import "env" "g" (global i32)) (func (export "h")))`), `imports "env.g", which is not a function`},
		{"shared memory", assembleText(t, `(module (memory (export "memory") 1 1 shared) (func (export "h")))`), "has a shared memory"},
		{"64-bit memory", assembleText(t, `(module (memory (export "memory") i64 1) (func (export "h")))`), "has a 64-bit memory"},
		{"no memory", assembleText(t, `(module (func (export "h")))`), `does not export its memory`},
		{"hidden memory", assembleText(t, `(module (memory 1) (func (export "h")))`), `does not export its memory`},
		{"too much memory", assembleText(t, `(module (memory (export "memory") 33) (func (export "h")))`), "needs 2112 KiB of memory to begin with, and the limit is 2 MiB"},
		{"no handler", assembleText(t, `(module (memory (export "memory") 1))`), "exports no handler"},
		{"a command with parameters", assembleText(t, `(module (memory (export "memory") 1) (func (export "_start") (param i32)))`), "exports no handler"},
		{"unknown imports", assembleText(t, `(module (import "runner" "fly" (func)) (import "env" "abort" (func)) (memory (export "memory") 1) (func (export "h")))`),
			"imports runner.fly, env.abort, which guest ABI 1 does not have: build it with an SDK"},
		{"another host's imports", assembleText(t, `(module (import "dprint" "host_write" (func)) (import "env" "abort" (func)) (memory (export "memory") 1) (func (export "h")))`),
			"imports dprint.host_write, env.abort, which guest ABI 1 does not have: it was made for another host; a handler imports only from runner and wasi_snapshot_preview1"},
		{"AssemblyScript's imports", assembleText(t, `(module (import "env" "abort" (func (param i32 i32 i32 i32))) (memory (export "memory") 1) (func (export "h")))`), "AssemblyScript adds these imports by default"},
		{"many unknown imports", assembleText(t, `(module `+manyImports(40)+` (memory (export "memory") 1) (func (export "h")))`), "imports env.i0, env.i1, env.i2, env.i3, env.i4, env.i5 and 34 others"},
		{"imports that are not text", assembleText(t, `(module (import "e\1b[31mv" "a\u{202e}b" (func)) (import "env" "`+strings.Repeat("x", 5000)+`" (func)) (memory (export "memory") 1) (func (export "h")))`),
			`imports "e\x1b[31mv.a\u202eb", "env.` + strings.Repeat("x", 96) + `", which guest ABI 1`},
		{"an extension of WASI", assembleText(t, `(module (import "wasi_snapshot_preview1" "sock_accept" (func (param i32 i32) (result i32))) (memory (export "memory") 1) (func (export "h")))`),
			"imports wasi_snapshot_preview1.sock_accept as (i32, i32) -> (i32), which is (i32, i32, i32) -> (i32) in guest ABI 1: build it for wasm32-wasip1"},
		{"a module for JavaScript", assembleText(t, `(module (import "wbg" "__wbg_log_1" (func)) (memory (export "memory") 1) (func (export "h")))`), "imports wbg.__wbg_log_1, which guest ABI 1 does not have: it was made for JavaScript (wasm-bindgen: browsers, Node.js, Cloudflare Workers): build it for wasm32-wasip1 without the crate"},
		{"another signature", assembleText(t, `(module (import "runner" "log" (func (param i32))) (memory (export "memory") 1) (func (export "h")))`),
			"imports runner.log as (i32) -> (), which is (i32, i32, i32) -> () in guest ABI 1"},
		{"a huge table", assembleText(t, `(module (table 70000 funcref) (memory (export "memory") 1) (func (export "h")))`), "has tables of 70000 elements, and may have 65536"},
		{"many tables", assembleText(t, `(module `+strings.Repeat("(table 1 funcref)", 9)+`(memory (export "memory") 1) (func (export "h")))`), "has 9 tables"},
		{"many locals", assembleText(t, `(module (memory (export "memory") 1) (func (export "h") (local `+strings.Repeat("i32 ", 10_001)+`)))`), "more than 10000 locals"},
		{"a long function", assembleText(t, `(module (memory (export "memory") 1) (func (export "h") `+strings.Repeat("nop ", 1<<20)+`))`), "has a function of 1024 KiB"},
		{"many functions", assembleText(t, `(module (memory (export "memory") 1) (func (export "h")) `+strings.Repeat("(func)", 100_000)+`)`), "has 100001 functions"},
		{"damaged code", []byte("\x00asm\x01\x00\x00\x00\x01\x04\x01\x60\x00\x00\x03\x02\x01\x00\x0a\x04\x01\x02\x00\x6a"), "is damaged: code section"},
		{"invalid code", []byte("\x00asm\x01\x00\x00\x00\x01\x04\x01\x60\x00\x00\x03\x02\x01\x00\x05\x03\x01\x00\x01\x07\x0e\x02\x01h\x00\x00\x06memory\x02\x00\x0a\x05\x01\x03\x00\x6a\x0b"), "is not a valid WebAssembly module"},
	} {
		t.Run(row.name, func(t *testing.T) {
			m, err := e.Load(context.Background(), "build/x.wasm", row.wasm)
			if m != nil || fault.CodeOf(err) != fault.Invalid || !strings.HasPrefix(err.Error(), "build/x.wasm: ") ||
				!strings.Contains(err.Error(), row.want) || strings.Contains(err.Error(), "\n") {
				t.Errorf("refused with %q, want one line with %q", err, row.want)
			}
		})
	}
}

// The beginning of an import's name tells for which host a module was made.
func TestTheHostThatAModuleWasMadeForIsNamed(t *testing.T) {
	e := newEngine(t, sandbox.Options{})
	for imported, want := range map[string]string{
		`"extism:host/env" "input_length"`:        "it was made for Extism: use the runner's SDK",
		`"fermyon:spin/http" "send"`:              "it was made for Spin: export wasi:http/incoming-handler",
		`"wasi-outbound-http" "request"`:          "it was made for Spin:",
		`"fastly_http_req" "body_downstream_get"`: "it was made for Fastly Compute: use the runner's SDK",
		`"wapc" "__host_call"`:                    "it was made for wasmCloud:",
		`"wasi:keyvalue/store@0.2.0" "open"`:      "it was made for a host of WASI cloud interfaces: use the rows and jobs",
		`"env" "proxy_log"`:                       "it was made for a proxy (proxy-wasm: Envoy, Istio, nginx):",
		`"http_handler" "get_uri"`:                "it was made for http-wasm:",
		`"cloudflare:sockets" "connect"`:          "it was made for Cloudflare Workers: use the runner's SDK",
		`"./index_bg.js" "__wbg_now_1"`:           "it was made for JavaScript (wasm-bindgen: browsers, Node.js, Cloudflare Workers): build it for wasm32-wasip1 without the crate wasm-bindgen",
		`"gojs" "runtime.wasmExit"`:               "it was made for JavaScript (Go with GOOS=js): build it with GOOS=wasip1",
		`"env" "emscripten_resize_heap"`:          "it was made for JavaScript (Emscripten): build it with clang",
		`"wasix_32v1" "proc_fork"`:                "it was made for Wasmer (WASIX):",
		`"wasi_unstable" "fd_write"`:              "it was made for WASI before preview 1: build it for wasm32-wasip1",
		`"wasi_snapshot_preview1" "sock_connect"`: "it was made for WasmEdge: build it for wasm32-wasip1",
		`"wasi_snapshot_preview1" "fd_dream"`:     "build it for wasm32-wasip1, without extensions of another host",
		`"javy-default-plugin-v3" "invoke"`:       "it was made for Javy's plug-in:",
		`"somewhere" "else"`:                      "it was made for another host; a handler imports only from runner and wasi_snapshot_preview1",
	} {
		_, err := e.Load(context.Background(), "build/x.wasm", assembleText(t, `(module (import `+imported+` (func)) (memory (export "memory") 1) (func (export "h")))`))
		if err == nil || !strings.Contains(err.Error(), "which guest ABI 1 does not have: "+want) {
			t.Errorf("%s: %v, want %s", imported, err, want)
		}
	}
}

func TestACancelledLoadIsReported(t *testing.T) {
	e := newEngine(t, sandbox.Options{})
	wasm := assembleText(t, `(module (memory (export "memory") 1) (func (export "_initialize") (loop (br 0))) (func (export "h")))`)
	ended, cancel := context.WithCancel(context.Background())
	cancel()
	soon, end := context.WithTimeout(context.Background(), 300*time.Millisecond)
	defer end()
	for name, ctx := range map[string]context.Context{"before it": ended, "in it": soon} {
		m, err := e.Load(ctx, "build/x.wasm", wasm)
		if m != nil || err == nil || !strings.Contains(err.Error(), "build/x.wasm: was not loaded, as that was cancelled") {
			t.Errorf("cancelled %s: %v", name, err)
		}
	}
}

// TestMemoryGrow: neither memory nor tables grow past their limits, even if the module
// declares a larger maximum.
func TestMemoryGrow(t *testing.T) {
	e := newEngine(t, sandbox.Options{MemoryBytes: 2 << 20})
	for name, limits := range map[string]string{"no maximum": "1", "a high maximum": "1 1000000000", "a low maximum": "1 20"} {
		m := load(t, e, assembleText(t, `(module
			(import "runner" "response_send" (func $send (param i32 i32 i32) (result i32)))
			(memory (export "memory") 1)
			(table $t `+limits+` funcref)
			(func (export "h")
				(loop (br_if 0 (i32.ne (table.grow $t (ref.null func) (i32.const 1)) (i32.const -1))))
				(i32.store (i32.const 0) (table.size $t))
				(if (i32.ne (memory.grow (i32.const 32)) (i32.const -1)) (then unreachable))
				(if (i32.ne (memory.grow (i32.const 31)) (i32.const 1)) (then unreachable))
				(drop (call $send (i32.const 200) (i32.const 0) (i32.const 4)))))`))
		call, err := within(t, plenty, m, "h")
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		want := uint32(1 << 16)
		if name == "a low maximum" {
			want = 20
		}
		if got := binary.LittleEndian.Uint32(call.Response.Body); got != want {
			t.Errorf("a table with %s grew to %d entries, want %d", name, got, want)
		}
	}
}

func TestAClosedModuleRefusesRuns(t *testing.T) {
	m := load(t, newEngine(t, sandbox.Options{}), assemble(t, "guest"))
	for range 2 {
		if err := m.Close(context.Background()); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := within(t, plenty, m, "hello"); fault.CodeOf(err) != fault.NotReady {
		t.Errorf("a run after Close: %v", err)
	}
}

func TestInvalidOptionsAreRefused(t *testing.T) {
	for _, o := range []sandbox.Options{{MemoryBytes: -1}, {MemoryBytes: 100_000}, {MemoryBytes: 5 << 30}, {Instances: -1}, {QueueWait: -1}} {
		if _, err := sandbox.New(context.Background(), o); fault.CodeOf(err) != fault.Invalid {
			t.Errorf("%+v: %v", o, err)
		}
	}
}

func FuzzLoad(f *testing.F) {
	for _, name := range []string{"guest", "initialize", "lies", "wasi"} {
		f.Add(assemble(f, name))
	}
	e := newEngine(f, sandbox.Options{MemoryBytes: 1 << 20, InitTime: 20 * time.Millisecond})
	f.Fuzz(func(t *testing.T, wasm []byte) {
		m, err := e.Load(context.Background(), "x.wasm", wasm)
		if err != nil {
			if fault.CodeOf(err) != fault.Invalid {
				t.Errorf("refused with %v", err)
			}
			return
		}
		if err := m.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
}

func BenchmarkRun(b *testing.B) {
	m := load(b, newEngine(b, sandbox.Options{}), assemble(b, "guest"))
	call := newCall(context.Background(), new(bytes.Buffer))
	b.ReportAllocs()
	for b.Loop() {
		if err := m.Run(call, "hello"); err != nil {
			b.Fatal(err)
		}
	}
}

func TestTheInitializationRunsInOrder(t *testing.T) {
	m := load(t, newEngine(t, sandbox.Options{}), assembleText(t, `(module
		(import "runner" "response_send" (func $send (param i32 i32 i32) (result i32)))
		(memory (export "memory") 1)
		(func $add (param $c i32)
			(i32.store8 (i32.add (i32.const 4) (i32.load (i32.const 0))) (local.get $c))
			(i32.store (i32.const 0) (i32.add (i32.load (i32.const 0)) (i32.const 1))))
		(func $start (call $add (i32.const 0x73))) (start $start)
		(func (export "runner_prepare") (call $add (i32.const 0x70)))
		(func (export "runner_warm") (call $add (i32.const 0x77)))
		(func (export "_initialize") (call $add (i32.const 0x69)))
		(func (export "h") (drop (call $send (i32.const 200) (i32.const 4) (i32.load (i32.const 0))))))`))
	for range 2 {
		call, err := within(t, plenty, m, "h")
		if err != nil || string(call.Response.Body) != "siwp" {
			t.Fatalf("%v, %q", err, call.Response.Body)
		}
	}
}
