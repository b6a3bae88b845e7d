package sandbox

import (
	"bytes"
	"context"
	"crypto/sha256"
	_ "embed"
	"errors"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strings"
	"time"

	"runner.example/hostabi"
	"runner.example/hostabi/abi"
	"runner.example/internal/clock"
	"runner.example/internal/deadline"
	"runner.example/internal/patches"
	"runner.example/internal/system/process"
	"runner.example/internal/wasm/opcode"
	"runner.example/runtime/capture"
	"runner.example/runtime/compile"
	"runner.example/runtime/guard"
	"runner.example/runtime/pages"
)

// optimizations rely on how the compiler or the kernel works inside. Each is tested when
// the engine starts, and disabled if its test fails.
type optimizations struct {
	// snapshot: a sandbox is restored after a request, by mapping the image under the
	// living instance and setting its globals. Otherwise each request initializes its own
	// sandbox.
	snapshot bool
	// shrink: memory that grew is made smaller again. Otherwise a sandbox whose memory
	// grew is discarded.
	shrink bool
	// reuse: a function is called again after it was unwound. Otherwise it is looked up
	// again.
	reuse bool
	// stack: the size of a function's native stack is known, and how much of it is in
	// use. Otherwise large stacks are kept, and recursion ends sooner.
	stack stackLayout
	// faults: page faults show that a run wrote to no other pages than the runs before it.
	// Otherwise each restore scans the memory.
	faults bool
	// guard: accesses of memory are not compared with its size. Otherwise all are.
	guard bool
	// trace: the active calls of a trap are found. Otherwise failures have no frames.
	trace bool
	// programs: a program that waits for requests can be continued. Otherwise its module is refused.
	programs bool
	// How changed pages are found says Engine.pages.
}

// Names of optimizations in Options.Disable, in the order of their tests. OptPatches are those of the
// compiler (package patches), which a program has or has not.
const (
	OptPatches  = "patches"
	OptGuard    = "guard"
	OptWatch    = "watch"
	OptPagemap  = "pagemap"
	OptCompare  = "compare"
	OptSnapshot = "snapshot"
	OptShrink   = "shrink"
	OptReuse    = "reuse"
	OptStack    = "stack"
	OptFaults   = "faults"
	OptTrace    = "trace"
	OptPrograms = "programs"
)

// selftest.wasm is made from selftest.wat.
//
//go:embed selftest.wasm
var selftestWasm []byte

// selftest_program.wasm is made from selftest_program.wat.
//
//go:embed selftest_program.wasm
var selftestProgram []byte

// test tests the optimizations, and disables and logs those that fail. An error means that
// not even plain instances work.
func (e *Engine) test(ctx context.Context) error {
	options, limit := e.options, e.memory.limit
	defer func() { e.options, e.memory.limit = options, limit }()
	e.options.MemoryBytes, e.options.InitTime, e.memory.limit = 16*pageBytes, plenty, 1<<40
	e.optimizations = optimizations{snapshot: true, shrink: true, reuse: true}
	if err := e.testGuard(ctx); err != nil {
		return err
	}
	m, err := e.load(ctx, "self-test", selftestWasm, sha256.Sum256(selftestWasm), &Settings{})
	if err != nil {
		e.optimizations.snapshot = false
		if m, err = e.load(ctx, "self-test", selftestWasm, sha256.Sum256(selftestWasm), &Settings{}); err != nil {
			return fmt.Errorf("self-test of the sandboxes: %w", err)
		}
	}
	defer m.Close(ctx)
	t := &selfTest{engine: e, module: m}
	const noSnapshot = "each request initializes its own sandbox"
	if !t.testFinders() {
		e.optimizations.snapshot = false
		t.disabled(OptSnapshot, noSnapshot, errors.New("changed pages cannot be found"))
		return nil
	}
	if e.optimizations.snapshot = t.passes(OptSnapshot, noSnapshot, t.snapshot); !e.optimizations.snapshot {
		return nil
	}
	e.optimizations.shrink = t.passes(OptShrink, "a sandbox whose memory grew is discarded", t.shrinks)
	e.optimizations.reuse = t.passes(OptReuse, "a function that failed is looked up again", t.reuses)
	if !t.passes(OptStack, "deep recursion ends sooner, and its stack is kept", t.stack) {
		e.optimizations.stack = stackLayout{}
	}
	if !comparesAll(e.pages) {
		e.optimizations.faults = t.passes(OptFaults, "each restore scans the memory", t.faults)
	}
	e.optimizations.trace = t.passes(OptTrace, "failures are logged without frames", t.traces)
	return t.testPrograms(ctx)
}

// testPrograms tests that a program is continued, in two sandboxes and twice in each.
func (t *selfTest) testPrograms(ctx context.Context) error {
	if !capture.Available() {
		return nil // OptPatches has told
	}
	const instead = "programs that wait for requests are refused"
	t.engine.optimizations.programs = true
	program := &selfTest{engine: t.engine}
	var err error
	if program.module, err = t.engine.load(ctx, "self-test", selftestProgram, sha256.Sum256(selftestProgram), &Settings{}); err != nil {
		t.engine.optimizations.programs = false
		t.disabled(OptPrograms, instead, err)
		return nil
	}
	continues := func(s *sandbox) error {
		for range 2 {
			handler, err := program.run(s, "second", plenty)
			if exit, exited := errors.AsType[*hostabi.Exit](err); !exited || exit.Status != 0 {
				return fmt.Errorf("it ends with %v", err)
			}
			if err := s.restore(&hostabi.Call{}, handler, err); err != nil {
				return err
			}
		}
		return nil
	}
	for range 2 { // two sandboxes
		if !program.passes(OptPrograms, instead, continues) {
			t.engine.optimizations.programs = false
			break
		}
	}
	return program.module.Close(ctx)
}

// testGuard finds out whether memories can be guarded.
func (e *Engine) testGuard(ctx context.Context) error {
	t := &selfTest{engine: e}
	if !patches.Applied {
		t.disabled(OptPatches, "handlers compute more slowly", errors.New("built without tools/go.sh: run make build"))
		return nil
	}
	if !e.pages.Guards() { // portable memory: that is how it works, and no warning
		return nil
	}
	const instead = "each memory access is compared with the memory's size"
	err := errors.New("[sandbox] guard is off")
	if e.options.Guard == "on" {
		var region *guard.Region
		if region, err = guard.Take(pageBytes); err == nil {
			region.Release()
			// Those that wait or are idle have memories too.
			if most := guard.Available() / 4; e.options.Instances > most {
				err = fmt.Errorf("[sandbox] instances is %d, and memories are guarded for at most %d", e.options.Instances, most)
			}
		}
	}
	if err != nil {
		t.disabled(OptGuard, instead, err)
		return nil
	}
	e.setGuard(true)
	if t.module, err = e.load(ctx, "self-test", selftestWasm, sha256.Sum256(selftestWasm), &Settings{}); err != nil {
		e.setGuard(false)
		t.disabled(OptGuard, instead, err)
		return nil
	}
	e.setGuard(t.passes(OptGuard, instead, t.guarded))
	return t.module.Close(ctx)
}

func (e *Engine) setGuard(on bool) {
	e.optimizations.guard = on
	e.compiler.SetGuarded(on)
}

// comparesAll reports whether each restore compares all of the memory.
func comparesAll(s pages.System) bool { return s.Finder() == pages.ByComparison }

// testFinders finds the best way to find changed pages, and reports whether there is one.
func (t *selfTest) testFinders() bool {
	in := t.engine.pages
	for _, finder := range in.Finders() {
		name, instead := OptCompare, "no page is restored"
		switch finder {
		case pages.ByMarks:
			name, instead = OptWatch, "the page table is read"
		case pages.ByTable:
			name = OptPagemap
		}
		unusable := in.Use(finder)
		if t.passes(name, instead, func(s *sandbox) error {
			if unusable != nil {
				return unusable
			}
			return t.finds(s)
		}) {
			return true
		}
	}
	return false
}

type selfTest struct {
	engine *Engine
	module *Module
}

// passes runs one test on a new sandbox.
func (t *selfTest) passes(name, instead string, test func(*sandbox) error) bool {
	err := errors.New("it is disabled by an option")
	if !slices.Contains(t.engine.options.Disable, name) {
		err = t.try(test)
	}
	if err != nil {
		t.disabled(name, instead, err)
	}
	return err == nil
}

func (t *selfTest) disabled(name, instead string, cause error) {
	t.engine.options.Logger.Warn("optimization disabled", "optimization", name, "instead", instead,
		"cause", compile.FirstLine(cause))
}

func (t *selfTest) try(test func(*sandbox) error) (err error) {
	if t.module.image == nil {
		return errors.New("no image can be made")
	}
	s, err := t.module.clone()
	if err != nil {
		return err
	}
	defer s.discard()
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("panic: %v", r)
		}
	}()
	return test(s)
}

// run calls an export with a deadline.
func (t *selfTest) run(s *sandbox, export string, limit time.Duration) (int, error) {
	deadline := deadline.New(context.Background(), clock.In(limit))
	defer deadline.Stop()
	// Only the deadline may end a run: on a busy machine an export may take more CPU time than a request has.
	host := hostabi.NewHost(hostabi.Host{Logger: t.engine.options.Logger, Limits: hostabi.Limits{CPU: plenty}})
	call := &hostabi.Call{Input: hostabi.Input{Context: deadline, Host: host, Request: &abi.Request{}}}
	call.Begin()
	handler := t.module.byName[export]
	defer s.releaseCPU()
	s.lockThread()
	defer s.unlockThread()
	return handler, s.call(s.module.claim(call, handler), handler)
}

// plenty is more time than any export of the self-test takes.
const plenty = time.Minute

// expect runs an export that must not trap.
func (t *selfTest) expect(s *sandbox, export string) error {
	if _, err := t.run(s, export, plenty); err != nil {
		return fmt.Errorf("%s: %w", export, err)
	}
	return nil
}

// restored restores the sandbox, and checks that all is as it was.
func (t *selfTest) restored(s *sandbox) error {
	if err := s.memory.restore(keptPages); err != nil {
		return err
	}
	s.resetGlobals()
	if err := s.memory.Look(func() error {
		for at := uint64(0); at < s.memory.Reached(); at += pages.Size {
			if !s.memory.Same(at) {
				return fmt.Errorf("the page at %d is not restored", at)
			}
		}
		return nil
	}); err != nil {
		return err
	}
	for i, g := range s.globals {
		if g.Get() != s.module.values[i] {
			return fmt.Errorf("the global %q is not restored", s.module.program.Globals[i])
		}
	}
	return t.expect(s, "pristine")
}

func (t *selfTest) snapshot(s *sandbox) error {
	for range 2 {
		if err := t.expect(s, "pristine"); err != nil {
			return err
		}
		if err := t.expect(s, "dirty"); err != nil {
			return err
		}
		if err := t.restored(s); err != nil {
			return err
		}
	}
	return nil
}

// finds tests how changed pages are found. It also counts them: to find too many would
// restore the sandbox, but slowly.
func (t *selfTest) finds(s *sandbox) error {
	if err := s.memory.trim(); err != nil {
		return err
	}
	if err := t.expect(s, "dirty"); err != nil {
		return err
	}
	// A write by the kernel itself, as of a system call that fills a buffer.
	const buffer = 12288
	kernel, err := newKernelWriter()
	if err != nil {
		return err
	}
	defer kernel.close()
	if err := kernel.write(s.memory.Bytes()[buffer:]); err != nil {
		return err
	}
	changed := map[uint64]bool{}
	for _, at := range []uint64{4096, 8192, 65532, buffer} {
		changed[at/pages.Size] = true
	}
	if err := s.memory.restore(keptPages); err != nil {
		return err
	}
	if found, want := s.memory.restored, len(changed); found != want {
		return fmt.Errorf("%d changed pages are found, and there are %d", found, want)
	}
	return t.restored(s)
}

// kernelWriter has the kernel write to memory.
type kernelWriter struct{ out, in *os.File } // a pipe, which has what it writes

const kernelWrites = "by the kernel"

func newKernelWriter() (w kernelWriter, err error) {
	if w.out, w.in, err = os.Pipe(); err != nil {
		return w, err
	}
	if _, err := w.in.WriteString(kernelWrites); err != nil {
		w.close()
		return w, err
	}
	return w, nil
}

// write writes once, to the beginning of b.
func (w kernelWriter) write(b []byte) error {
	_, err := w.out.Read(b[:len(kernelWrites)])
	return err
}

func (w kernelWriter) close() { _, _ = w.in.Close(), w.out.Close() } // nothing is buffered

// guarded checks that an access beyond the memory is an error of the guest, at its end and far behind it,
// and that the sandbox can be used after that.
func (t *selfTest) guarded(s *sandbox) error {
	for range 2 {
		for _, export := range []string{"beyond", "far beyond"} {
			if _, err := t.run(s, export, plenty); err == nil || !strings.Contains(err.Error(), "out of bounds memory access") {
				return fmt.Errorf("an access beyond the memory ends with %v", err)
			}
		}
		if err := t.expect(s, "pristine"); err != nil {
			return err
		}
	}
	return nil
}

func (t *selfTest) shrinks(s *sandbox) error {
	for range 2 {
		if err := t.expect(s, "grow"); err != nil {
			return err
		}
		if err := s.shrink(); err != nil {
			return err
		}
		if err := t.restored(s); err != nil {
			return err
		}
		if _, err := t.run(s, "beyond", plenty); err == nil {
			return errors.New("memory that was given back can be read")
		}
		if err := t.restored(s); err != nil {
			return err
		}
	}
	return nil
}

func (t *selfTest) reuses(s *sandbox) error {
	for range 2 {
		if _, err := t.run(s, "trap", plenty); err == nil || !strings.Contains(err.Error(), "unreachable") {
			return fmt.Errorf("a trap ends with %v", err)
		}
		if _, err := t.run(s, "spin", 0); !errors.Is(err, hostabi.ErrTimeOver) {
			return fmt.Errorf("a loop after its deadline ends with %v", err)
		}
		if err := t.restored(s); err != nil {
			return err
		}
	}
	return nil
}

// stack finds the fields of the native stack by their names, and checks that it grows as
// it must: deep needs a return address for each of its 2,000 calls. deeper and endless ask
// how much is in use.
func (t *selfTest) stack(s *sandbox) error {
	layout, ok := findStack(s.function("pristine"))
	if !ok {
		return errors.New("the stack of a function is not found")
	}
	t.engine.optimizations.stack = layout
	size := func(export string) (int, error) {
		handler, err := t.run(s, export, plenty)
		return layout.size(s.functions[handler]), err
	}
	flat, err1 := size("pristine")
	deep, err2 := size("deep")
	if err1 != nil || err2 != nil || flat == 0 || flat > keptStack || deep <= flat {
		return fmt.Errorf("the stacks of a flat and of a deep call are %d and %d bytes: %v, %v", flat, deep, err1, err2)
	}
	if err := t.expect(s, "deeper"); err != nil {
		return err
	}
	if _, err := t.run(s, "endless", plenty); !errors.Is(err, errStack) {
		return fmt.Errorf("endless recursion ends with %v", err)
	}
	if handler := t.module.byName["endless"]; layout.size(s.functions[handler]) > 2*mostStack {
		return fmt.Errorf("endless recursion took %d bytes of stack", layout.size(s.functions[handler]))
	}
	return nil
}

// traces checks that the instructions of a trap and of the active calls around it are found.
func (t *selfTest) traces(s *sandbox) error {
	if t.engine.optimizations.stack == (stackLayout{}) {
		return errors.New("the native stack is not known")
	}
	for _, row := range []struct {
		export string
		want   []byte // the instructions of the innermost calls
	}{
		{"trap", []byte{opcode.Unreachable}},
		{"beyond", []byte{opcode.I32Load}},
		{"endless", []byte{opcode.LocalGet, opcode.Call, opcode.Call}},
	} {
		if _, err := t.run(s, row.export, plenty); err == nil {
			return fmt.Errorf("%s does not trap", row.export)
		}
		var found []byte
		for _, p := range s.activeCalls() {
			if at := t.module.program.CodeStart + p.Offset; at < int64(len(selftestWasm)) {
				found = append(found, selftestWasm[at])
			}
		}
		if len(found) < len(row.want) || !bytes.Equal(found[:len(row.want)], row.want) {
			return fmt.Errorf("%s is found at instructions % x", row.export, found)
		}
		if err := t.restored(s); err != nil {
			return err
		}
	}
	return nil
}

// faults checks that the first write to a page is counted, by the guest and by the kernel,
// also after a page was restored and released.
func (t *selfTest) faults(s *sandbox) error {
	t.engine.optimizations.faults = true // for run
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	const buffer = 12288
	for range 2 {
		if err := s.memory.trim(); err != nil {
			return err
		}
		if err := t.expect(s, "dirty"); err != nil {
			return err
		}
		if !s.memory.faulted {
			return errors.New("the guest's first write to a page is not counted")
		}
		kernel, err := newKernelWriter()
		if err != nil {
			return err
		}
		defer kernel.close()
		before := process.ThreadFaults()
		if err := kernel.write(s.memory.Bytes()[buffer:]); err != nil {
			return err
		}
		if process.ThreadFaults() == before {
			return errors.New("the kernel's first write to a page is not counted")
		}
		for range 3 {
			if err := t.restored(s); err != nil {
				return err
			}
			if err := t.expect(s, "dirty"); err != nil {
				return err
			}
		}
	}
	return t.restored(s)
}
