package sandbox

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"time"

	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/experimental"

	"runner.example/hostabi"
	"runner.example/internal/cpuqueue"
)

// keptPages is the most that a sandbox keeps of private memory between two
// requests, in pages of the kernel: up to it, putting bytes back costs less
// than touching the pages anew.
const keptPages = 1024

// keptStack is the largest native stack that a function keeps between two
// requests. It begins at 10 KiB and doubles.
const keptStack = 64 << 10

// sandbox is one instance of a module with all that belongs to it. One goroutine
// at a time may use it.
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
	// functions are those of the handlers, as far as they have been used: looking one up
	// costs more than many a request.
	functions []api.Function
	reseed    api.Function // nil: the module has none
	running   api.Function // nil: none does
	steps     uint64       // of native stack that it has beyond maxStack

	// owed is the processor time that making the sandbox took, until the call that
	// it was made for has spent it: at the end of a slice, as all is spent.
	owed time.Duration
	// ended is how the guest's last function did, whatever a command makes of it.
	ended   error
	parking parking

	used    int64 // the beat of its last use
	trimmed bool
}

// guest is the context of a sandbox's calls.
type guest struct {
	hostabi.Guest
	sandbox *sandbox
}

// parking is where a run stands that gives its instance slot back while it waits.
type parking struct {
	handler *handlerState // whose slot the run has; nil: it needs none
	parked  bool
	bytes   int64         // of memory that it parked with
	waited  time.Duration // for a slot to go on, in this run
}

// instantiate makes an instance of a module: it has no memory yet, and nothing of
// the guest has run.
func (m *Module) instantiate(call *hostabi.Call) (_ *sandbox, err error) {
	s := &sandbox{account: account{engine: m.engine}, module: m, functions: make([]api.Function, len(m.handlers))}
	s.task.Reset(&m.initializing, 0)
	if err := s.memory.reserve(m.memoryBytes(), &m.engine.memory); err != nil {
		return nil, err
	}
	s.memory.scan.table = m.engine.table
	defer func() {
		if err != nil {
			s.discard()
		}
	}()
	if !s.memory.charge(int64(m.program.MinPages) * pageBytes) {
		return nil, errNoMemory
	}
	s.guest = guest{Guest: hostabi.Guest{Context: experimental.WithMemoryAllocator(context.Background(), &s.memory), Sandbox: s}, sandbox: s}
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

// function is one that the module exports, nil if it does not.
func (s *sandbox) function(name string) api.Function {
	if as, ok := s.module.program.Exports[name]; ok {
		name = as
	}
	return s.instance.ExportedFunction(name)
}

// grow makes the memory so large, if it is smaller.
func (s *sandbox) grow(size uint64) error {
	if more := int64(size-s.memory.size) / pageBytes; more > 0 {
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

// boot makes a sandbox in which everything has run that comes before the first
// request. call is what that may ask of the host; errors of the guest say what
// failed.
func (m *Module) boot(call *hostabi.Call) (_ *sandbox, err error) {
	call.Initializing(true)
	defer call.Initializing(false)
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
		if end := uint64(d.Offset) + uint64(len(d.Bytes)); end > s.memory.size {
			return nil, fmt.Errorf("data segment %d lies outside of memory", i)
		}
		copy(s.memory.region[d.Offset:], d.Bytes)
	}
	s.owed = making.spent(m.engine, m.engine.options.Now(), call.Waited())
	s.begin(call, &m.initializing)
	defer s.end()
	for _, name := range m.program.First {
		if err := s.invoke(s.function(name)); err != nil {
			return nil, fmt.Errorf("%s: %w", shown(name), err)
		}
	}
	return s, nil
}

// clone makes a sandbox that is as the template was when it was finished.
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
	if err := s.grow(m.image.size); err != nil {
		return nil, err
	}
	if err := s.memory.attach(m.image, m.engine.watch); err != nil {
		return nil, err
	}
	s.resetGlobals()
	return s, nil
}

// begin makes the sandbox run for call, in a lane: with fuel, and nothing
// measured.
func (s *sandbox) begin(call *hostabi.Call, h *cpuqueue.Handler) {
	s.guest.Bind(call)
	s.meter = meter{slices: 1, granted: s.nextSlice()}
	s.task.Reset(h, s.engine.options.Now())
	s.fuel.Set(uint64(s.meter.granted))
	if s.owed > 0 {
		s.Worked(s.owed)
	}
	s.depth.Set(0)
	s.memory.refused = false
}

// end is the end of a run before the first request, however it ended.
func (s *sandbox) end() {
	s.releaseCPU()
	s.giveSteps()
	s.guest.Bind(nil)
}

// call runs one handler, after what the guest wants to do first in a request. The
// turn that it may have had, it has still.
func (s *sandbox) call(call *hostabi.Call, handler int) error {
	h := &s.module.states[handler]
	s.begin(call, &h.cpu)
	s.parking = parking{handler: h}
	defer func() {
		s.parking.handler = nil
		s.guest.Bind(nil)
	}()
	if s.reseed != nil {
		call.Initializing(true)
		err := s.invoke(s.reseed)
		call.Initializing(false)
		if err != nil {
			return fmt.Errorf("%s: %w", exportReseed, err)
		}
	}
	err := s.invokeHandler(call, handler)
	if err != nil && (uint32(s.depth.Get()) > maxStack || overflowed(err)) {
		err = fmt.Errorf("%w: %w", errStack, err)
	}
	return err
}

// overflowed tells the compiler's own trap of a native stack that is at its end,
// which has no exported error: frames can be larger than they were counted.
func overflowed(err error) bool {
	return strings.HasPrefix(strings.TrimPrefix(err.Error(), "wasm error: "), "stack overflow")
}

// restore makes the sandbox what it was before the run of handler, which ended
// with err. When it fails the sandbox must be discarded.
func (s *sandbox) restore(call *hostabi.Call, handler int, err error) error {
	optimizations := &s.engine.optimizations
	if err != nil {
		if _, broken := errors.AsType[runtime.Error](err); broken || call.HostFailed() || s.instance.IsClosed() {
			return errBroken
		}
	}
	s.giveSteps()
	if s.memory.size != s.module.image.size {
		if !optimizations.shrink {
			return errCannotShrink
		}
		if err := s.shrink(); err != nil {
			return err
		}
	}
	if err := s.memory.restore(keptPages); err != nil {
		return err
	}
	s.resetGlobals()
	if optimizations.stack.size(s.functions[handler]) > keptStack || err != nil && !optimizations.reuse {
		s.functions[handler] = nil
	}
	if s.reseed != nil && optimizations.stack.size(s.reseed) > keptStack {
		s.reseed = s.function(exportReseed)
	}
	return nil
}

// shrink takes back what the memory has grown. To wazero this is a growth by a
// page for which the allocator returns less than there was.
func (s *sandbox) shrink() error {
	s.memory.shrinking = true
	_, ok := s.linear.Grow(1)
	s.memory.shrinking = false
	if !ok || uint64(s.linear.Size()) != s.module.image.size {
		return errCannotShrink
	}
	return nil
}

func (s *sandbox) resetGlobals() {
	for i, g := range s.globals {
		g.Set(s.module.values[i])
	}
}

// trim gives back what an idle sandbox can do without.
func (s *sandbox) trim() error {
	clear(s.functions)
	s.trimmed = true
	return s.memory.trim()
}

// discard gives back all of the sandbox. Nothing of it may run any more.
func (s *sandbox) discard() {
	if s.instance != nil {
		_ = s.instance.Close(context.Background()) // it has no resources of its own
	}
	s.memory.release()
	s.giveSteps()
	s.releaseCPU()
}

var (
	errBroken       = errors.New("the host failed within the sandbox")
	errCannotShrink = errors.New("the memory cannot be made smaller")
	errStack        = errors.New("stack overflow: calls nest too deep")
	errNoMemory     = errors.New("the memory for guests is used up")
)
