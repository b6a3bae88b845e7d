package sandbox_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"runner.example/hostabi"
	"runner.example/internal/symbols"
	"runner.example/runtime/sandbox"
)

// goLines are the lines of testdata/gocrash that end with a comment "line name".
func goLines(t *testing.T) map[string]int {
	t.Helper()
	source, err := os.ReadFile("testdata/gocrash/main.go")
	if err != nil {
		t.Fatal(err)
	}
	lines := map[string]int{}
	number := 0
	for line := range strings.Lines(string(source)) {
		number++
		if _, name, ok := strings.Cut(strings.TrimSpace(line), "// line "); ok {
			lines[name] = number
		}
	}
	return lines
}

// TestAFailureOfAGoHandlerHasItsFrames runs handlers in Go that fail. The frames of each must begin with
// those that are expected: functions of package main, with the name of a line where that is fixed.
func TestAFailureOfAGoHandlerHasItsFrames(t *testing.T) {
	if testing.Short() {
		t.Skip("runs the Go compiler")
	}
	wasm := buildGo(t, "gocrash")
	m := load(t, newEngine(t, sandbox.Options{NoBreaker: true, ReadModule: func([sha256.Size]byte) ([]byte, []byte, error) {
		return wasm, nil, nil
	}}), wasm)
	lines := goLines(t)
	const cpu, wait = "CPU limit", "time limit"
	for _, row := range []struct{ handler, kind, message, frames string }{
		{"panics", "panic", "the cart is empty", "fail:fail, panics"},
		{"manyLines", "panic", `first\nsecond`, "fail:fail, manyLines"},
		{"customError", "panic", "invalid total", "fail:fail, customError"},
		{"customValue", "panic", "(main.plain) 0x", "fail:fail, customValue"},
		{"nested", "panic", `once [recovered]\npanic: again: once`, "fail:fail, nested.func1, panic, fail:fail, nested"},
		{"whilePanicking", "panic", `first\npanic: second`, "fail:fail, whilePanicking.func1, panic, fail:fail, whilePanicking"},
		{"nilMap", "panic", "assignment to entry in nil map", "count:nilMap, nilMap"},
		{"nilPointer", "panic", "runtime error: invalid memory address or nil pointer dereference", "(*cart).total:nilPointer, nilPointer"},
		{"index", "panic", "runtime error: index out of range [5] with length 0", "(*cart).item:index, index"},
		{"divide", "panic", "runtime error: integer divide by zero", "divide:divide"},
		{"inClosure", "panic", "cannot compare", "fallsOver, inClosure.func1:inClosure, slices.insertionSortCmpFunc[...], slices.pdqsortCmpFunc[...], slices.SortFunc[...], inClosure"},
		{"deadlock", "fatal error", "all goroutines are asleep - deadlock!", "deadlock:deadlock"},
		{"overflow", "fatal error", "stack overflow: goroutine stack exceeds 65536-byte limit", "depth:overflow, depth:overflow, depth:overflow"},
		{"allocatesAll", "memory limit", "out of memory", "memory:memory"},
		{"panicsLater", "panic", "assignment to entry in nil map", "count:nilMap, panicsLater"},
		{"panicsInGoroutine", "panic", "in a goroutine", "fail:fail, panicsInGoroutine.func1"},
		{"exits", "exit code 3", "", "syscall.Exit, os.Exit, exits"},
		{"loop", cpu, "", "spin:loop, loop"},
		{"inlineLoop", cpu, "", "work, inlineLoop:inlineLoop"},
		{"inGoroutine", cpu, "", "spin:loop, inGoroutine.func1"},
		{"recurses", cpu, "", "fibonacci"},
		{"allocates", cpu, "", ""},
		{"collects", cpu, "", "runtime.GC, collects:collects"},
		{"sleeps", wait, "", "time.Sleep, sleeps:sleeps"},
		{"waits", wait, "", "waits:waits"},
	} {
		f := failureWithin(t, m, row.handler, row.kind == wait)
		if len(f.Frames) > 0 && f.Frames[0].Function == "runtime.Gosched" { // the collector sometimes lets others run
			f.Frames = f.Frames[1:]
		}
		var got []string
		for i, want := range strings.Split(row.frames, ", ") {
			if i == len(f.Frames) {
				break
			}
			frame := f.Frames[i]
			text := strings.TrimPrefix(frame.Function, "main.")
			name, line, ok := strings.Cut(want, ":")
			if ok && frame.Line == lines[line] && frame.File == "runtime/sandbox/testdata/gocrash/main.go" {
				text += ":" + line
			} else if ok || name != text {
				text += fmt.Sprintf(" (%s:%d)", frame.File, frame.Line)
			}
			got = append(got, text)
		}
		exact := row.message == f.Message || strings.HasPrefix(f.Message, row.message) && strings.HasSuffix(row.message, "0x") || row.kind == "memory limit"
		if f.Kind != row.kind || !exact || row.frames != "" && strings.Join(got, ", ") != row.frames {
			t.Errorf("%s: %s (%s) at\n%s\nwant %s (%s) at\n%s\nall: %v", row.handler, f.Kind, f.Message, strings.Join(got, ", "), row.kind, row.message, row.frames, f.Frames)
		}
		checkGoFrames(t, row.handler, wasm, f, row.kind == cpu || row.kind == wait)
	}
}

// TestGoContinuesWhereItLeft runs a handler that leaves functions and continues in them in all ways that Go has,
// several times in one sandbox.
func TestGoContinuesWhereItLeft(t *testing.T) {
	if testing.Short() {
		t.Skip("runs the Go compiler")
	}
	m := load(t, newEngine(t, sandbox.Options{}), buildGo(t, "goresumes"))
	for range 3 {
		if _, err := within(t, time.Minute, m, "resumes"); err != nil {
			t.Fatal(err)
		}
	}
}

// checkGoFrames checks what holds for all frames of handlers in Go: the outermost is the handler or the
// function of a goroutine, none is of the runtime, and callers have the offset of a call.
func checkGoFrames(t *testing.T, handler string, wasm []byte, f *hostabi.Failure, walked bool) {
	t.Helper()
	if len(f.Frames) == 0 || len(f.Frames) > symbols.MaxFrames {
		t.Errorf("%s: %d frames", handler, len(f.Frames))
		return
	}
	if last := f.Frames[len(f.Frames)-1].Function; !strings.HasPrefix(last, "main.") {
		t.Errorf("%s: the outermost frame is of %s", handler, last)
	}
	for i, frame := range f.Frames {
		calls := frame.Offset == f.Frames[0].Offset // inlined calls have one offset
		if frame.Offset > 0 && frame.Offset < int64(len(wasm)) {
			calls = calls || bytes.IndexByte([]byte{0x10, 0x42}, wasm[frame.Offset]) >= 0 // a call, or the counter of an indirect one
		}
		if walked && (frame.Offset == 0 || !calls) {
			t.Errorf("%s: frame %d (%v) has the offset %#x", handler, i, frame, frame.Offset)
		}
	}
}

// failureWithin runs a handler that fails: within little CPU time, or little time.
func failureWithin(t *testing.T, m *sandbox.Module, handler string, waits bool) *hostabi.Failure {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	if waits {
		ctx, cancel = context.WithTimeout(context.Background(), 100*time.Millisecond)
	}
	defer cancel()
	var log bytes.Buffer
	call := newCall(ctx, &log)
	if call.Host.Limits.CPU = 30 * time.Second; strings.Contains("loop inlineLoop inGoroutine recurses allocates collects", handler) {
		call.Host.Limits.CPU = 20 * time.Millisecond
	}
	err := m.Run(call, handler)
	failure, _ := call.Failures()
	if failure == nil {
		t.Fatalf("%s: no failure, and the error %v", handler, err)
	}
	if log.Len() > 0 {
		t.Errorf("%s: the log has %s", handler, log.String())
	}
	return failure
}
