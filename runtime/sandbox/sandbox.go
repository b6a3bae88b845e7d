package sandbox

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/experimental"

	"runner.example/hostabi"
	"runner.example/hostabi/wasi"
	"runner.example/runtime/cpuqueue"
	"runner.example/runtime/guard"
)

// sandbox is an instance of a module with its memory and its state. One goroutine at a time
// may use it.
type sandbox struct {
	account
	module *Module

	guest    guest
	memory   memory
	instance api.Module
	linear   api.Memory
	fuel     api.MutableGlobal
	depth    api.MutableGlobal
	globals  []api.MutableGlobal // as in program.globals
	// functions are those of the handlers; nil: not used yet. To look one up costs more
	// than a small request.
	functions []api.Function
	random    random
	reseed    api.Function // nil: the module does not export it
	result    [1]uint64    // of the host function that a program is continued from
	running   api.Function // that the guest is in; nil: none
	last      api.Function // that the guest was in
	steps     uint64       // of native stack beyond maxStack; see stack.go
	stop      stop
	block     int32 // that Go's code continues with after a refill; -1: it is elsewhere

	// owed is the CPU time for making the sandbox, until it is charged to the call that it
	// was made for.
	owed time.Duration
	// ended is how the guest's last function ended, before a command interprets it.
	ended  error
	thread threadRun

	used    int64 // the Engine.idleTick of its last use
	trimmed bool
}

// guest is the context of a sandbox's calls.
type guest struct {
	hostabi.Guest
	sandbox *sandbox
}

// instantiate makes an instance of a module. It has no memory yet, and no code of the guest
// has run.
func (m *Module) instantiate(call *hostabi.Call) (_ *sandbox, err error) {
	s := &sandbox{account: account{engine: m.engine}, module: m, functions: make([]api.Function, max(1, len(m.handlers)))}
	s.task.Reset(&m.initializing, 0)
	spare := uint64(0)
	if m.program.Reports {
		spare = sparePages * pageBytes
	}
	for {
		err := s.memory.reserve(m.engine.pages, m.engine.optimizations.guard, m.memoryBytes(), spare, &m.engine.memory)
		if err == nil {
			break
		}
		if !errors.Is(err, guard.ErrNone) {
			return nil, err
		}
		if _, ok := discardOldest(m.engine.loaded()); !ok {
			return nil, errNoMemory
		}
	}
	defer func() {
		if err != nil {
			s.discard()
		}
	}()
	if !s.memory.charge(int64(m.program.MinPages) * pageBytes) {
		return nil, errNoMemory
	}
	s.guest = guest{
		Guest:   hostabi.Guest{Context: experimental.WithMemoryAllocator(context.Background(), &s.memory), Sandbox: s},
		sandbox: s,
	}
	s.guest.Bind(call)
	s.meter = meter{slices: 1}
	defer s.end()
	if s.instance, err = m.engine.compiler.Runtime.InstantiateModule(&s.guest, m.code.Compiled, guestConfig); err != nil {
		return nil, err
	}
	s.guest.Context = context.Background()
	s.linear = s.instance.Memory()
	if s.fuel, err = s.global(m.program.Fuel); err != nil {
		return nil, err
	}
	if s.depth, err = s.global(m.program.Depth); err != nil {
		return nil, err
	}
	s.globals = make([]api.MutableGlobal, len(m.program.Globals))
	for i, name := range m.program.Globals {
		if s.globals[i], err = s.global(name); err != nil {
			return nil, err
		}
	}
	if m.program.Reseeds {
		s.reseed = s.function(exportReseed)
	}
	return s, nil
}

// function returns a function that the module exports; nil: there is none.
func (s *sandbox) function(name string) api.Function {
	if as, ok := s.module.program.Exports[name]; ok {
		name = as
	}
	return s.instance.ExportedFunction(name)
}

// grow makes the memory at least so large.
func (s *sandbox) grow(size uint64) error {
	if more := int64(size-s.memory.Size()) / pageBytes; more > 0 {
		if _, ok := s.linear.Grow(uint32(more)); !ok {
			return errNoMemory
		}
	}
	return nil
}

func (s *sandbox) global(name string) (api.MutableGlobal, error) {
	g, ok := s.instance.ExportedGlobal(name).(api.MutableGlobal)
	if !ok {
		return nil, fmt.Errorf("BUG: the rewritten module does not export the global %q", name)
	}
	return g, nil
}

// boot makes a sandbox with the module's data, for initialize.
func (m *Module) boot(call *hostabi.Call) (_ *sandbox, err error) {
	var making meter
	making.remark(m.engine, m.engine.options.Now(), call.Waited())
	s, err := m.instantiate(call)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			s.discard()
		}
	}()
	if err := s.grow(uint64(m.program.MinPages) * pageBytes); err != nil {
		return nil, err
	}
	for i, d := range m.program.Data {
		if end := uint64(d.Offset) + uint64(len(d.Bytes)); end > s.memory.Size() {
			return nil, fmt.Errorf("data segment %d lies outside of memory", i)
		}
		copy(s.memory.Bytes()[d.Offset:], d.Bytes)
	}
	s.owed = making.spent(m.engine, m.engine.options.Now(), call.Waited())
	return s, nil
}

// initialize runs everything that comes before the first request, as part of a run that has begun.
// call serves the host functions for it. Errors of the guest name the function that failed.
func (s *sandbox) initialize(call *hostabi.Call) error {
	call.Initializing(true)
	defer call.Initializing(false)
	if s.module.program.Component {
		wasi.Begin(call, s.module.start, nil)
	}
	for _, name := range s.module.program.First {
		if err := s.invoke(s.function(name)); err != nil {
			return fmt.Errorf("%s: %w", shown(name), err)
		}
	}
	if s.module.program.Random {
		if err := s.findRandom(); err != nil {
			return fmt.Errorf("%s: %w", exportRandom, err)
		}
	}
	return nil
}

// clone makes a sandbox from the image.
func (m *Module) clone() (_ *sandbox, err error) {
	s, err := m.instantiate(nil)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			s.discard()
		}
	}()
	if err := s.grow(m.image.Size()); err != nil {
		return nil, err
	}
	if err := s.memory.Attach(m.image.Image); err != nil {
		return nil, err
	}
	s.resetGlobals()
	s.random = newRandom(m.random)
	return s, nil
}

// begin prepares a run with the instance slot of the claim: it gives fuel and resets what is
// measured.
func (s *sandbox) begin(c claim, h *cpuqueue.Handler) {
	s.guest.Bind(c.call)
	s.slot = slot{claim: c, memory: &s.memory}
	s.meter = meter{slices: 1, granted: s.nextSlice()}
	s.task.Reset(h, s.engine.options.Now())
	s.fuel.Set(uint64(s.meter.granted))
	if s.owed > 0 {
		s.Worked(s.owed)
	}
	s.depth.Set(0)
	s.stop, s.block = stop{}, -1
	s.memory.refused, s.memory.refusals, s.memory.faulted = nil, 0, true
}

// end ends a run of the initialization.
func (s *sandbox) end() {
	s.finish()
	s.releaseSteps()
	s.guest.Bind(nil)
}

// call runs one handler. If the run got a CPU slot, it keeps it.
func (s *sandbox) call(c claim, handler int) error {
	call := c.call
	s.begin(c, &c.cpu)
	defer s.guest.Bind(nil)
	err := s.checkStack(s.runHandler(call, handler))
	if s.module.program.Reports && s.stopped(err) && !cancelled(call) {
		s.report(call, err)
	}
	return err
}

// runHandler runs what a request runs, up to the first error: the initialization, if the module is
// fresh or has no image, then runner_reseed with new random state, then the handler.
func (s *sandbox) runHandler(call *hostabi.Call, handler int) error {
	if s.module.image == nil || s.module.fresh {
		if err := s.initialize(call); err != nil {
			return err
		}
	} else if s.module.program.Component {
		wasi.Begin(call, s.module.start, s.module.handles)
	}
	s.renewRandom(call.Draws)
	if s.reseed != nil {
		call.Initializing(true)
		err := s.invoke(s.reseed)
		call.Initializing(false)
		if err != nil {
			return fmt.Errorf("%s: %w", exportReseed, err)
		}
	}
	return s.invokeHandler(call, handler)
}

// checkStack adds errStack to the error of a run whose calls nested too deep.
func (s *sandbox) checkStack(err error) error {
	if err != nil && (uint32(s.depth.Get()) > maxStack || overflowed(err)) {
		return fmt.Errorf("%w: %w", errStack, err)
	}
	return err
}

// overflowed reports whether an error is wazero's own trap at the end of the native stack,
// which has no exported error. Frames can be larger than they were counted.
func overflowed(err error) bool {
	return strings.HasPrefix(strings.TrimPrefix(err.Error(), "wasm error: "), "stack overflow")
}

// discard releases the sandbox. Its code must not run any more.
func (s *sandbox) discard() {
	s.leaveThread()
	if s.instance != nil {
		_ = s.instance.Close(context.Background()) // an instance has no resources beyond its memory
	}
	s.memory.release()
	s.releaseSteps()
	s.finish()
}

var (
	errBroken       = errors.New("the host failed within the sandbox")
	errCannotShrink = errors.New("the memory cannot shrink")
	errStack        = errors.New("stack overflow: calls nest too deep")
	errNoMemory     = errors.New("total_memory is used up")
)
