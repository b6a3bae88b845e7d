package sandbox_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"runner.example/hostabi"
	"runner.example/hostabi/files"
	"runner.example/internal/fault"
	"runner.example/runtime/sandbox"
)

// The model of a program that is continued is the same program, started for each request alone: its answer, its
// error with the frames, and its log must be the same, whichever requests a sandbox has served before.
//
// The programs are random. Each writes memory and globals, grows its memory, reads files and calls the host through
// its file, at random depths of calls, before it waits and after. Its answer is a digest of all that it can
// see: memory, globals, locals of all active calls, and the offsets of its files. A handler may also fail or end early.

// waits writes random programs.
type waits struct {
	*rand.Rand
	text   strings.Builder
	byFile bool // it waits by a message to the host's file
	// handlers are the ends that the program's handlers have.
	handlers []waitEnd
}

// waitEnd is how a handler ends: in the call that has waited, and in _start after all calls have returned.
type waitEnd struct{ inner, outer string }

// innerEnds end a request in the call that has waited; the empty one does not.
var innerEnds = map[string]string{
	"":          "",
	"trap":      "unreachable",
	"outside":   "(drop (i32.load (i32.const -8)))",
	"divide":    "(drop (i32.div_u (i32.const 1) (i32.load (i32.const 4000))))",
	"null":      "(drop (call_indirect (type $mix) (i64.const 1) (i64.const 2) (i32.const 7)))",
	"exit":      "(call $exit (i32.const 0))",
	"exit 3":    "(call $exit (i32.const 3))",
	"next":      "(drop (call $wait))",
	"spin":      "(loop (br 0))",
	"memory":    "(loop (br_if 0 (i32.ne (memory.grow (i32.const 3)) (i32.const -1)))) unreachable",
	"recursion": "(drop (call $endless (i64.const 1)))",
}

// outerEnds end a request after its answer.
var outerEnds = map[string]string{
	"return":  "return",
	"next":    "(drop (call $wait))",
	"exit":    "(call $exit (i32.const 0))",
	"exit 4":  "(call $exit (i32.const 4))",
	"trap":    "unreachable",
	"deep":    "(drop (call $deep (i32.const 3000)))",
	"outside": "(drop (i64.load (i32.const -3)))",
}

// expectedEnd is the fault of a handler that ends so.
func expectedEnd(e waitEnd) fault.Code {
	switch {
	case e.inner == "spin":
		return fault.HandlerTimeout
	case e.inner == "memory":
		return fault.HandlerOutOfMemory
	case e.inner != "", e.outer == "exit 4", e.outer == "trap", e.outer == "outside":
		return fault.HandlerFailed
	}
	return ""
}

func (w *waits) add(format string, args ...any) { fmt.Fprintf(&w.text, format+"\n", args...) }

// The layout of memory: names of handlers at 0, paths at 512, the message by which it waits at 640, a list of
// buffers at 1024, results at 1040, descriptors at 1200, what is read from the host at 2048. Random bytes are from 4096 on.
const waitsBegin = `(module
  (import "runner" "request_next" (func $next (param i32 i32) (result i32)))
  (import "runner" "request_body" (func $body (param i32 i32 i32) (result i32)))
  (import "runner" "response_send" (func $send (param i32 i32 i32) (result i32)))
  (import "wasi_snapshot_preview1" "proc_exit" (func $exit (param i32)))
  (import "wasi_snapshot_preview1" "path_open" (func $path_open (param i32 i32 i32 i32 i32 i64 i64 i32 i32) (result i32)))
  (import "wasi_snapshot_preview1" "fd_read" (func $fd_read (param i32 i32 i32 i32) (result i32)))
  (import "wasi_snapshot_preview1" "fd_write" (func $fd_write (param i32 i32 i32 i32) (result i32)))
  (import "wasi_snapshot_preview1" "fd_seek" (func $fd_seek (param i32 i64 i32 i32) (result i32)))
  (import "wasi_snapshot_preview1" "fd_tell" (func $fd_tell (param i32 i32) (result i32)))
  (import "wasi_snapshot_preview1" "fd_close" (func $fd_close (param i32) (result i32)))
  (import "wasi_snapshot_preview1" "fd_renumber" (func $fd_renumber (param i32 i32) (result i32)))
  (import "wasi_snapshot_preview1" "fd_readdir" (func $fd_readdir (param i32 i32 i32 i64 i32) (result i32)))
  (memory (export "memory") 2)
  (type $mix (func (param i64 i64) (result i64)))
  (table 8 funcref)
  (elem (i32.const 0) $mix0 $mix1 $mix2)
  (global $g0 (mut i64) (i64.const 3))
  (global $g1 (mut i32) (i32.const 4))
  (global $g2 (mut f64) (f64.const 0.5))
  (global $which (mut i32) (i32.const -1))
  (global $host (mut i32) (i32.const -1))
  (func $mix0 (type $mix) (i64.add (i64.mul (local.get 0) (i64.const 0x9e3779b97f4a7c15)) (local.get 1)))
  (func $mix1 (type $mix) (i64.xor (i64.rotl (local.get 0) (i64.const 23)) (local.get 1)))
  (func $mix2 (type $mix) (global.set $g0 (i64.add (global.get $g0) (local.get 1)))
    (i64.sub (local.get 0) (global.get $g0)))
  (func $endless (param i64) (result i64) (i64.add (local.get 0) (call $endless (i64.add (local.get 0) (i64.const 1)))))
  (func $deep (param i32) (result i32)
    (if (result i32) (local.get 0)
      (then (i32.add (i32.const 1) (call $deep (i32.sub (local.get 0) (i32.const 1)))))
      (else (i32.const 0))))
  ;; a place for eight bytes in the first two pages
  (func $at (param i64) (result i32)
    (i32.add (i32.const 4096) (i32.wrap_i64 (i64.rem_u (local.get 0) (i64.const 126968)))))
  (func $open (param $path i32) (param $length i32) (param $slot i32) (result i32)
    (call $path_open (i32.const 3) (i32.const 0) (local.get $path) (local.get $length) (i32.const 0)
      (i64.const 0) (i64.const 0) (i32.const 0) (i32.add (i32.const 1200) (i32.shl (local.get $slot) (i32.const 2)))))
  (func $fd (param $slot i32) (result i32) (i32.load (i32.add (i32.const 1200) (i32.shl (local.get $slot) (i32.const 2)))))
  (func $buffer (param $at i32) (param $length i32)
    (i32.store (i32.const 1024) (local.get $at)) (i32.store (i32.const 1028) (local.get $length)))
  ;; what a function returned, and what it has written at 1040
  (func $seen (param i32) (result i64)
    (i64.add (i64.mul (i64.extend_i32_u (local.get 0)) (i64.const 1000003)) (i64.load (i32.const 1040))))
  (func $read (param $fd i32) (param $at i32) (param $length i32) (result i64)
    (call $buffer (local.get $at) (local.get $length))
    (call $seen (call $fd_read (local.get $fd) (i32.const 1024) (i32.const 1) (i32.const 1040))))
  (func $write (param $fd i32) (param $at i32) (param $length i32) (result i64)
    (call $buffer (local.get $at) (local.get $length))
    (call $seen (call $fd_write (local.get $fd) (i32.const 1024) (i32.const 1) (i32.const 1040))))
  ;; a message to the host's file, and its answer
  (func $message (param $at i32) (param $length i32) (result i64)
    (if (i32.lt_s (global.get $host) (i32.const 0)) (then
      (drop (call $open (i32.const 544) (i32.const 11) (i32.const 7)))
      (global.set $host (call $fd (i32.const 7)))))
    (memory.fill (i32.const 2048) (i32.const 0) (i32.const 1024))
    (i64.add (call $write (global.get $host) (local.get $at) (local.get $length))
      (call $read (global.get $host) (i32.const 2048) (i32.const 1024))))
  ;; a digest of the memory, 64 bytes at a time
  (func $digest (result i64) (local $at i32) (local $end i32) (local $h i64)
    (local.set $end (i32.shl (memory.size) (i32.const 16)))
    (loop $again
      (local.set $h (i64.mul (i64.xor (local.get $h) (i64.add
        (i64.add (i64.mul (i64.load (local.get $at)) (i64.const 3)) (i64.mul (i64.load offset=8 (local.get $at)) (i64.const 5)))
        (i64.add (i64.mul (i64.load offset=16 (local.get $at)) (i64.const 7)) (i64.mul (i64.load offset=24 (local.get $at)) (i64.const 11)))))
        (i64.const 0x100000001b3)))
      (local.set $h (i64.mul (i64.xor (i64.rotl (local.get $h) (i64.const 29)) (i64.add
        (i64.add (i64.mul (i64.load offset=32 (local.get $at)) (i64.const 13)) (i64.mul (i64.load offset=40 (local.get $at)) (i64.const 17)))
        (i64.add (i64.mul (i64.load offset=48 (local.get $at)) (i64.const 19)) (i64.mul (i64.load offset=56 (local.get $at)) (i64.const 23)))))
        (i64.const 0x100000001b3)))
      (br_if $again (i32.lt_u (local.tee $at (i32.add (local.get $at) (i32.const 64))) (local.get $end))))
    (local.get $h))`

// change writes a statement that changes what the program can see. Each function has $x, $y (i64), $i (i32), $f (f64).
func (w *waits) change(request bool) {
	slot, x := w.IntN(6), fmt.Sprintf("(i64.xor (local.get $x) (i64.const %d))", int64(w.Uint64()))
	seen := func(s string) { w.add("(local.set $y (i64.add (i64.rotl (local.get $y) (i64.const 5)) %s))", s) }
	fd := fmt.Sprintf("(call $fd (i32.const %d))", slot)
	kinds := 17
	if request {
		kinds += 2
	}
	switch w.IntN(kinds) {
	case 0, 1:
		w.add("(i64.store (call $at %s) %s)", x, x)
	case 2:
		seen(fmt.Sprintf("(i64.load (call $at %s))", x))
	case 3:
		w.add("(global.set $g%d %s)", []int{0, 1, 2}[slot%3],
			[]string{x, "(i32.wrap_i64 " + x + ")", "(f64.add (global.get $g2) (f64.convert_i64_s " + x + "))"}[slot%3])
	case 4:
		w.add("(local.set $x (i64.add (i64.mul (local.get $x) (i64.const 31)) (local.get $y)))")
	case 5:
		w.add("(local.set $f (f64.add (f64.mul (local.get $f) (f64.const 0.5)) (f64.convert_i64_s (local.get $x))))")
	case 6:
		w.add("(if (i32.lt_u (memory.size) (i32.const 12)) (then (local.set $i (i32.add (local.get $i) (memory.grow (i32.const %d))))))", w.IntN(2)+1)
	case 7:
		seen(fmt.Sprintf("(call_indirect (type $mix) (local.get $x) (local.get $y) (i32.const %d))", w.IntN(3)))
	case 8:
		w.add("(memory.copy (call $at %s) (i32.const %d) (i32.const 8))", x, 4096+w.IntN(100000))
	case 9:
		w.add("(drop (call $fd_close %s))", fd) // recursion would use up all descriptors
		seen(fmt.Sprintf("(call $seen (call $open (i32.const %d) (i32.const 5) (i32.const %d)))", 512+8*w.IntN(3), slot))
	case 10, 11:
		seen(fmt.Sprintf("(call $read %s (i32.const %d) (i32.const %d))", fd, 4096+w.IntN(60000), w.IntN(900)))
	case 12:
		seen(fmt.Sprintf("(call $seen (call $fd_seek %s (i64.const %d) (i32.const %d) (i32.const 1040)))", fd, w.IntN(3000)-500, w.IntN(3)))
	case 13:
		switch w.IntN(4) {
		case 0:
			seen(fmt.Sprintf("(call $seen (call $fd_close %s))", fd))
		case 1:
			seen(fmt.Sprintf("(call $seen (call $fd_renumber %s (call $fd (i32.const %d))))", fd, w.IntN(6)))
		default:
			seen(fmt.Sprintf("(call $seen (call $fd_tell %s (i32.const 1040)))", fd))
		}
	case 14:
		seen(fmt.Sprintf("(call $seen (call $fd_readdir (i32.const 3) (i32.const %d) (i32.const 200) (i64.const 2) (i32.const 1040)))", 4096+w.IntN(60000)))
	case 15: // to the log, with a line end or without
		seen(fmt.Sprintf("(call $write (i32.const %d) (i32.const 560) (i32.const %d))", 1+w.IntN(2), 1+w.IntN(9)))
	case 16: // "log 1 5", or a message that is not valid
		seen(fmt.Sprintf("(call $message (i32.const %d) (i32.const 13))", []int{576, 592}[w.IntN(2)]))
	case 17:
		seen(fmt.Sprintf("(i64.extend_i32_u (call $body (i32.const 0) (i32.const %d) (i32.const 16)))", 4096+w.IntN(60000)))
	case 18: // "request_body 0 0"
		seen("(call $message (i32.const 608) (i32.const 17))")
	}
}

func (w *waits) changes(request bool) {
	for range w.IntN(9) {
		w.change(request)
	}
}

const waitsLocals = "(local $x i64) (local $y i64) (local $i i32) (local $f f64)"

// fold is an i64 of all locals.
const waitsFold = "(i64.xor (i64.add (local.get $x) (i64.rotl (local.get $y) (i64.const 7))) (i64.add (i64.extend_i32_u (local.get $i)) (i64.reinterpret_f64 (local.get $f))))"

// program writes a random program.
func (w *waits) program() string {
	names := make([]string, len(w.handlers))
	for i := range names {
		names[i] = fmt.Sprintf("h%d", i)
	}
	list := strings.Join(names, "\n")
	message := fmt.Sprintf("request_next %d\n%s", len(list), list)
	w.add("%s", waitsBegin)
	for at, text := range map[int]string{
		0: list, 512: "app/a", 520: "app/b", 528: "app/c", 544: "runner/host", 560: "hel\nlo wo", 576: "log 1 5\nhello", 592: "no such xyz0\n",
		608: "request_body 0 0\n", 640: message,
	} {
		w.add("(data (i32.const %d) %q)", at, text)
	}
	// $wait returns the handler's index.
	if w.byFile {
		w.add(`(func $wait (result i32)
		  (global.set $host (i32.const -1)) ;; its descriptor may be closed
		  (drop (call $message (i32.const 640) (i32.const %d)))
		  (i32.sub (i32.load8_u (i32.const 2053)) (i32.const 48)))`, len(message))
	} else {
		w.add(`(func $wait (result i32) (call $next (i32.const 0) (i32.const %d)))`, len(list))
	}
	// $act is what the call that has waited does.
	w.add("(func $act (param $x i64) (result i64) (local $y i64) (local $i i32) (local $f f64)")
	w.add("(drop (call $body (i32.const 0) (i32.const 1064) (i32.const 8))) (local.set $x (i64.xor (local.get $x) (i64.load (i32.const 1064))))")
	for i, end := range w.handlers {
		w.add("(if (i32.eq (global.get $which) (i32.const %d)) (then", i)
		w.changes(true)
		w.add("%s))", innerEnds[end.inner])
	}
	w.add("%s)", waitsFold)
	// $down calls itself until it waits, and goes on at each level.
	levels := 1 + w.IntN(3)
	for level := range levels {
		w.add("(func $down%d (param $n i32) (param $x i64) (result i64) (local $y i64) (local $i i32) (local $f f64)", level)
		w.changes(false)
		w.add("(local.set $x (if (result i64) (local.get $n)")
		w.add("  (then (call $down%d (i32.sub (local.get $n) (i32.const 1)) %s))", level, waitsFold)
		if level+1 < levels {
			w.add("  (else (call $down%d (i32.const %d) (i64.add (local.get $x) (i64.const 1))))))", level+1, w.depth())
		} else {
			w.add("  (else (global.set $which (call $wait)) (call $act (local.get $x)))))")
		}
		w.changes(true)
		w.add("%s)", waitsFold)
	}
	w.add(`(func (export "_start") %s`, waitsLocals)
	for range 4 {
		w.changes(false)
	}
	w.add("(local.set $x (i64.xor (local.get $x) (call $down0 (i32.const %d) %s)))", w.depth(), waitsFold)
	w.changes(true)
	for slot := range 6 { // the offsets
		w.add("(local.set $y (i64.add (i64.mul (local.get $y) (i64.const 37)) (call $seen (call $fd_tell (call $fd (i32.const %d)) (i32.const 1040)))))", slot)
	}
	w.add("(i64.store (i32.const 1064) (call $digest)) (i64.store (i32.const 1072) %s)", waitsFold)
	w.add("(i64.store (i32.const 1080) (i64.add (global.get $g0) (i64.extend_i32_u (global.get $g1)))) (f64.store (i32.const 1088) (global.get $g2))")
	w.add("(drop (call $send (i32.const 200) (i32.const 1064) (i32.const 32)))")
	for i, end := range w.handlers {
		w.add("(if (i32.eq (global.get $which) (i32.const %d)) (then %s))", i, outerEnds[end.outer])
	}
	w.add("))")
	return w.text.String()
}

func (w *waits) depth() int { return []int{0, 1, 5, 40, 150}[w.IntN(5)] }

// newWaits returns a program with random handlers. Those that take long are few.
func newWaits(chance *rand.Rand) *waits {
	w := &waits{Rand: chance, byFile: chance.IntN(2) == 0}
	inner := []string{"", "", "", "", "", "", "trap", "outside", "divide", "null", "exit", "exit 3", "next", "spin", "memory"}
	if chance.IntN(4) == 0 {
		inner = append(inner, "recursion")
	}
	outer := []string{"return", "return", "next", "next", "exit", "exit 4", "trap", "deep", "outside"}
	w.handlers = append(w.handlers, waitEnd{"", "return"})
	for range 5 {
		w.handlers = append(w.handlers, waitEnd{inner[chance.IntN(len(inner))], outer[chance.IntN(len(outer))]})
	}
	return w
}

// served is all that can be seen of a request.
type served struct{ answer, err, failure, log string }

// request is one of a few that a program serves.
type request struct {
	handler string
	body    [8]byte
	spins   bool
}

func (r *request) serve(run func(call *hostabi.Call, handler string) error) (s served) {
	log := new(bytes.Buffer)
	ctx := &countdown{Context: context.Background(), left: 1 << 30}
	if r.spins {
		ctx.left = 300
	}
	call := newCall(ctx, new(bytes.Buffer))
	call.Host.Logger = slog.New(slog.NewTextHandler(log, &slog.HandlerOptions{ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
		if a.Key == slog.TimeKey {
			return slog.Attr{}
		}
		return a
	}}))
	call.Request.Body = r.body[:]
	err := run(call, r.handler)
	if err == nil {
		s.answer = fmt.Sprintf("%d %x %s", call.Response.Status, call.Response.Body, call.Response.Headers)
	} else {
		s.err = fmt.Sprintf("%s: %v: %v", fault.CodeOf(err), err, fault.Of(err).Cause)
	}
	if failure, _ := call.Failures(); failure != nil {
		s.failure = fmt.Sprintf("%+v", *failure)
	}
	s.log = log.String()
	return s
}

// modelled loads a random program, and compares n requests of several goroutines with the model. look is called when a
// tenth of them have been served, and at the end.
func modelled(t *testing.T, e *sandbox.Engine, seed uint64, n int, look func()) {
	t.Helper()
	chance := rand.New(rand.NewPCG(seed, 0))
	w := newWaits(chance)
	text := w.program()
	defer func() {
		if t.Failed() {
			name := filepath.Join(os.TempDir(), fmt.Sprintf("waits-%d.wat", seed))
			_ = os.WriteFile(name, []byte(text), 0o600)
			t.Logf("seed %d: the program is in %s; its handlers end as %q", seed, name, w.handlers)
		}
	}()
	with := &sandbox.Program{Tree: fmt.Sprint(seed), Args: []string{"x"}}
	for i, size := range []int{0, 700, 2500} {
		content := make([]byte, size)
		for at := range content {
			content[at] = byte(chance.Uint32())
		}
		with.Files = append(with.Files, files.File{
			Path: string(rune('a' + i)), Size: int64(size), Read: func() ([]byte, error) { return content, nil },
		})
	}
	wasm := assembleText(t, text)
	m, err := e.LoadAs(t.Context(), "build/model.wasm", wasm, sandbox.Settings{Program: with})
	if err != nil {
		t.Fatalf("seed %d: %v", seed, err)
	}
	alone, err := m.Uninterrupted(t.Context(), wasm)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := errors.Join(alone.Close(context.Background()), m.Close(context.Background())); err != nil {
			t.Error(err)
		}
	}()
	var requests []request
	var want []served
	for i, end := range w.handlers {
		for range 2 {
			r := request{handler: fmt.Sprintf("h%d", i), spins: end.inner == "spin"}
			binary.LittleEndian.PutUint64(r.body[:], chance.Uint64())
			s := r.serve(alone.Run)
			if code, _, _ := strings.Cut(s.err, ":"); fault.Code(code) != expectedEnd(end) {
				t.Errorf("seed %d: a handler that ends as %q: %+v", seed, end, s)
			}
			requests, want = append(requests, r), append(want, s)
		}
	}
	serve := func(n int, seed uint64) {
		var workers sync.WaitGroup
		const parallel = 4
		for worker := range uint64(parallel) {
			workers.Go(func() {
				chance := rand.New(rand.NewPCG(seed, 1+worker))
				for range n / parallel {
					if chance.IntN(400) == 0 {
						runtime.GC()
					}
					i := chance.IntN(len(requests))
					if got := requests[i].serve(m.Run); got != want[i] {
						t.Errorf("seed %d: a request of %s, which ends as %q, differs\nfrom that of a program of its own\n%+v\nwant %+v",
							seed, requests[i].handler, w.handlers[i/2], got, want[i])
						return
					}
				}
			})
		}
		workers.Wait()
	}
	serve(n/10, seed)
	look()
	serve(n-n/10, seed+1)
	look()
	if _, err := m.Restored(); err != nil {
		t.Errorf("seed %d: %v", seed, err)
	}
}

// newModelled returns an engine for modelled.
func newModelled(t testing.TB) *sandbox.Engine {
	needCapture(t)
	still := func() time.Duration { return 0 } // so that no run is long
	e := newEngine(t, sandbox.Options{MemoryBytes: 2 << 20, Instances: 3, NoBreaker: true, Now: still, QueueWait: plenty})
	if err := e.AllowUninterrupted(context.Background()); err != nil {
		t.Fatal(err)
	}
	return e
}

func TestEachRequestOfAProgramIsServedAsIfItHadStartedForIt(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("first seed %d", seed)
	programs, requests := 8, 120
	switch {
	case soak:
		programs, requests = 60, 1000
	case testing.Short():
		programs = 4
	}
	e := newModelled(t)
	for i := range uint64(programs) {
		t.Run(fmt.Sprint(seed+i), func(t *testing.T) { modelled(t, e, seed+i, requests, func() {}) })
	}
	if !soak {
		return
	}
	var before resources
	var used int64
	modelled(t, e, seed, 40_000, func() {
		now, memory := take(t), e.GuestMemory()
		if before == (resources{}) {
			before, used = now, memory
			return
		}
		t.Logf("after 4,000 requests %+v, %d bytes of guests; after 40,000 %+v, %d", before, used, now, memory)
		if now.files > before.files || now.goroutines > before.goroutines+2 || now.mappings > before.mappings+20 ||
			now.rss > before.rss+32<<20 || memory > used+4<<20 {
			t.Error("resources have grown")
		}
	})
}

func FuzzWaitingPrograms(f *testing.F) {
	e := newModelled(f)
	for seed := range uint64(4) {
		f.Add(seed)
	}
	f.Add(uint64(15114016294335789432)) // has numbers in words that look like addresses of the memory
	f.Fuzz(func(t *testing.T, seed uint64) { modelled(t, e, seed, 40, func() {}) })
}
