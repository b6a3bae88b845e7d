package sandbox

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"runner.example/hostabi"
	"runner.example/hostabi/abi"
	"runner.example/runtime/compile"
)

// tricks are what the engine does that rests on how its compiler, or the
// kernel, works inside. Each is proved when the engine starts.
type tricks struct {
	// snapshot: an image can be mapped under a living instance, and globals be
	// set from outside. Without it every request initializes its own sandbox.
	snapshot bool
	// find is the best way to find changed pages that works.
	find method
	// shrink: memory that grew can be made smaller. Without it a sandbox whose
	// memory grew is thrown away.
	shrink bool
	// reuse: a function works again after it was unwound. Without it such a
	// function is looked up anew.
	reuse bool
	// stack: it can be seen how large a function's native stack is, and how much
	// of it is in use. Without it what recursion took is kept, and a guest's calls
	// may not even nest so deep that they could take too much.
	stack stackTrick
}

// Names of tricks in Options.Distrust, in the order of their tests.
const (
	TrickSnapshot = "snapshot"
	TrickWatch    = "watch"
	TrickScan     = "scan"
	TrickPagemap  = "pagemap"
	TrickShrink   = "shrink"
	TrickReuse    = "reuse"
	TrickStack    = "stack"
)

// selftest.wasm is made of selftest.wat.
//
//go:embed selftest.wasm
var selftestWasm []byte

// test proves the tricks. What fails is logged and not used; an error means that
// not even plain instances work.
func (e *Engine) test(ctx context.Context) error {
	options, limit := e.options, e.memory.limit
	defer func() { e.options, e.memory.limit = options, limit }()
	e.options.MemoryBytes, e.options.InitTime, e.memory.limit = 16*pageBytes, plenty, 1<<40
	e.tricks = tricks{snapshot: true, find: byComparing, shrink: true, reuse: true}
	m, err := e.load(ctx, "self-test", selftestWasm)
	if err != nil {
		e.tricks.snapshot = false
		if m, err = e.load(ctx, "self-test", selftestWasm); err != nil {
			return fmt.Errorf("self-test of the sandboxes: %w", err)
		}
		e.tricks.snapshot = true
	}
	defer m.Close(ctx)
	if e.table, err = openTable(); err != nil {
		e.options.Logger.Warn("the kernel does not show its page table", "cause", err)
	}
	t := &selfTest{engine: e, module: m}
	if e.tricks.snapshot = t.passes(TrickSnapshot, "each request initializes its own sandbox", t.snapshot); !e.tricks.snapshot {
		return nil
	}
	e.watch, t.unwatched = openWatcher()
	for _, way := range []struct {
		find           method
		trick, instead string
	}{
		{byWatching, TrickWatch, "all pages that are there are scanned"},
		{byScan, TrickScan, "the page table is read"},
		{byTable, TrickPagemap, "memory is compared byte by byte"},
	} {
		if e.tricks.find = way.find; t.passes(way.trick, way.instead, t.finds) {
			break
		}
		e.tricks.find = byComparing
	}
	e.tricks.shrink = t.passes(TrickShrink, "a sandbox whose memory grew is thrown away", t.shrinks)
	e.tricks.reuse = t.passes(TrickReuse, "a function that failed is looked up anew", t.reuses)
	if !t.passes(TrickStack, "deep recursion ends sooner, and its stack is kept", t.stack) {
		e.tricks.stack = stackTrick{}
	}
	return nil
}

type selfTest struct {
	engine *Engine
	module *Module
	// unwatched is why the kernel does not watch memory.
	unwatched error
}

// passes runs one test on a new sandbox.
func (t *selfTest) passes(trick, instead string, test func(*sandbox) error) bool {
	err := errors.New("it is not to be used")
	if !slices.Contains(t.engine.options.Distrust, trick) {
		err = t.try(test)
	}
	if err != nil {
		t.engine.options.Logger.Warn("a trick of the sandboxes does not work here", "trick", trick, "instead", instead, "cause", compile.FirstLine(err))
	}
	return err == nil
}

func (t *selfTest) try(test func(*sandbox) error) (err error) {
	switch {
	case t.module.image == nil:
		return errors.New("no image can be made")
	case t.engine.tricks.find == byWatching && t.engine.watch == nil:
		return t.unwatched
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

// run calls an export, and ends after the given time at the next refill.
func (t *selfTest) run(s *sandbox, export string, limit time.Duration) (int, error) {
	deadline := hostabi.NewDeadline(context.Background(), time.Now().Add(limit))
	defer deadline.Stop()
	call := &hostabi.Call{Context: deadline, Host: &hostabi.Host{Logger: t.engine.options.Logger}, Request: &abi.Request{}}
	call.Begin()
	handler := t.module.byName[export]
	defer s.releaseCPU()
	return handler, s.call(call, handler)
}

// plenty is more than each of the test's exports takes.
const plenty = time.Minute

// expect runs an export that must not trap.
func (t *selfTest) expect(s *sandbox, export string) error {
	if _, err := t.run(s, export, plenty); err != nil {
		return fmt.Errorf("%s: %w", export, err)
	}
	return nil
}

// restored restores and looks whether all is as it was.
func (t *selfTest) restored(s *sandbox) error {
	if err := s.memory.restore(keptPages); err != nil {
		return err
	}
	s.resetGlobals()
	for at := uint64(0); at < s.memory.reached; at += osPage {
		if !s.memory.same(at) {
			return fmt.Errorf("the page at %d is not restored", at)
		}
	}
	return t.expect(s, "pristine")
}

func (t *selfTest) snapshot(s *sandbox) error {
	for range 2 {
		if err := t.expect(s, "pristine"); err != nil {
			return err
		}
		if err := t.expect(s, "soil"); err != nil {
			return err
		}
		if err := t.restored(s); err != nil {
			return err
		}
	}
	return nil
}

// finds also counts: a method that finds too much restores, but is of no use.
func (t *selfTest) finds(s *sandbox) error {
	if err := s.memory.trim(); err != nil {
		return err
	}
	if err := t.expect(s, "soil"); err != nil {
		return err
	}
	// A write by the kernel itself, as of a system call that fills a buffer.
	const buffer = 12288
	if _, err := unix.Getrandom(s.memory.region[buffer:][:16], 0); err != nil {
		return err
	}
	changed := map[uint64]bool{}
	for _, at := range []uint64{4096, 8192, 65532, buffer} {
		changed[at/osPage] = true
	}
	pages, err := s.memory.scan.restore(&s.memory, keptPages)
	if err != nil {
		return err
	}
	if want := len(changed); pages != want {
		return fmt.Errorf("%d pages are found changed, and %d are", pages, want)
	}
	return t.restored(s)
}

func (t *selfTest) shrinks(s *sandbox) error {
	for range 2 {
		if err := t.expect(s, "grow"); err != nil {
			return err
		}
		if err := s.shrink(); err != nil {
			return err
		}
		if _, err := t.run(s, "beyond", plenty); err == nil {
			return errors.New("memory that was taken back can be read")
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
			return fmt.Errorf("a loop without time ends with %v", err)
		}
		if err := t.restored(s); err != nil {
			return err
		}
	}
	return nil
}

// stack finds the stack by its name, and believes it when it grows as it must:
// deep takes at least a return address for each of its 2,000 calls, and asks how
// much is in use by one that is too deep for what they may take.
func (t *selfTest) stack(s *sandbox) error {
	trick, ok := findStack(s.function("pristine"))
	if !ok {
		return errors.New("a function has no stack that is known")
	}
	t.engine.tricks.stack = trick
	size := func(export string) (int, error) {
		handler, err := t.run(s, export, plenty)
		return trick.size(s.functions[handler]), err
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
	if handler := t.module.byName["endless"]; trick.size(s.functions[handler]) > 2*mostStack {
		return fmt.Errorf("endless recursion took %d bytes of stack", trick.size(s.functions[handler]))
	}
	return nil
}
