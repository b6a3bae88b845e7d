package sandbox

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
	"golang.org/x/sys/unix"

	"runner.example/hostabi"
	"runner.example/hostabi/abi"
	"runner.example/internal/cpuqueue"
	"runner.example/internal/fault"
	"runner.example/internal/wasm"
	"runner.example/runtime/compile"
)

// pageBytes is the unit of linear memory.
const pageBytes = wasm.PageBytes

// Options of an Engine. The zero value takes every default.
type Options struct {
	// MemoryBytes is how much memory one sandbox may have, in whole pages of
	// 64 KiB; 64 MiB by default.
	MemoryBytes int64
	// TotalMemoryBytes is how much all sandboxes together may have, with what each
	// module's initialization left; by default MemoryBytes for each of Instances.
	TotalMemoryBytes int64
	// Instances is how many guests may run at once; by default four for each
	// CPU, and 16 at least. One handler alone may have three quarters of them.
	// Eight times as many may wait for something beside them, with half of the
	// memory of all.
	Instances int
	// QueueWait is how long a request waits for a free place; 1 s by default.
	QueueWait time.Duration
	// NoBreaker lets handlers run however often they ran out of time.
	NoBreaker bool
	// InitTime is how long a module may take for what comes before its first
	// request; 10 s by default.
	InitTime time.Duration
	// CompileTime and CompileBytes are the processor time and the memory that
	// compiling one module may take; 30 s and 768 MiB by default.
	CompileTime  time.Duration
	CompileBytes int64
	// Compiler is the command that runs compile.Main with the arguments that follow it,
	// for modules that may come near these bounds. Empty: such modules are refused if
	// they are certain to pass them, and else compiled in this process.
	Compiler []string
	// IdleTime is how long a sandbox may be idle before it gives memory back;
	// 10 s by default. After six times as long it goes, but for one of a module.
	IdleTime time.Duration
	// CacheDir keeps what was compiled from one start to the next. What lies
	// there is run as it is, so nobody else may write to it. Empty: every start
	// compiles.
	CacheDir string
	// CacheBytes is the most that is kept there: what was not used for the longest
	// goes first. 1 GiB by default.
	CacheBytes int64
	// Logger gets what modules log before their first request, and what the
	// Engine cannot do on this machine. It must be the redacting one; nil: nobody.
	Logger *slog.Logger
	// Disable names optimizations (OptWatch and others) that are disabled, as if their
	// self-test had failed.
	Disable []string
	// Now is the clock, the time since any moment; CPUTime is the processor time of the
	// thread that calls it. By default those of the system.
	Now, CPUTime func() time.Duration
}

func (o Options) filled() Options {
	if o.MemoryBytes == 0 {
		o.MemoryBytes = 64 << 20
	}
	if o.Instances == 0 {
		o.Instances = max(16, 4*runtime.GOMAXPROCS(0))
	}
	if o.TotalMemoryBytes == 0 {
		o.TotalMemoryBytes = o.MemoryBytes * int64(max(o.Instances, 0))
	}
	if o.QueueWait == 0 {
		o.QueueWait = time.Second
	}
	if o.InitTime == 0 {
		o.InitTime = 10 * time.Second
	}
	if o.CompileTime == 0 {
		o.CompileTime = 30 * time.Second
	}
	if o.CompileBytes == 0 {
		o.CompileBytes = 768 << 20
	}
	if o.IdleTime == 0 {
		o.IdleTime = 10 * time.Second
	}
	if o.CacheBytes == 0 {
		o.CacheBytes = 1 << 30
	}
	if o.Now == nil {
		started := time.Now()
		o.Now = func() time.Duration { return time.Since(started) }
	}
	if o.CPUTime == nil {
		o.CPUTime = threadTime
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	return o
}

// Validate reports the first option that cannot be.
func (o Options) Validate() error {
	switch o = o.filled(); {
	case o.MemoryBytes < pageBytes || o.MemoryBytes >= 4<<30 || o.MemoryBytes%pageBytes != 0:
		return fault.New(fault.Invalid, "[sandbox] memory must be from 64kb to less than 4096mb, in whole 64kb")
	case o.Instances < 0:
		return fault.New(fault.Invalid, "[sandbox] instances must be positive")
	case o.TotalMemoryBytes < o.MemoryBytes:
		return fault.New(fault.Invalid, "[sandbox] total_memory must be [sandbox] memory at least")
	case o.QueueWait < 0:
		return fault.New(fault.Invalid, "[sandbox] queue_wait must be positive")
	case o.CacheBytes < 0:
		return fault.New(fault.Invalid, "the size of the cache of compiled modules must be positive")
	case o.CompileTime < 0 || o.CompileBytes < 0:
		return fault.New(fault.Invalid, "[sandbox] compile_timeout and compile_memory must be positive")
	case o.InitTime < 0 || o.IdleTime < 0:
		return fault.New(fault.Invalid, "the times of a sandbox must be positive")
	}
	return nil
}

// Engine compiles modules and runs them. It is safe for concurrent use.
type Engine struct {
	options       Options
	compiler      *compile.Compiler
	optimizations optimizations
	table         int      // file descriptor of the page table; -1 if it cannot be read
	watch         *watcher // nil: the page table tells which pages were written
	// offered are the functions that guests may import, by module and name.
	offered map[string]map[string]hostabi.Function
	slots   *instanceSlots
	cpu     *cpuqueue.Queue
	memory  budget

	beat  atomic.Int64 // counts quarters of IdleTime
	stop  chan struct{}
	ended sync.WaitGroup

	mu      sync.Mutex
	modules map[*Module]struct{}
}

// fuelModule is what rewritten modules import refill and stackUsed from. No guest can import
// it: its own imports are checked before they are rewritten.
const fuelModule = "\x00runner"

// The functions of fuelModule.
const (
	fuelFunction  = "refill"
	stackFunction = "stack"
)

// guestConfig is for all instances: no name, so that there can be many, and no
// start function, as we call it ourselves.
var guestConfig = wazero.NewModuleConfig().WithName("").WithStartFunctions()

// New makes an Engine. Close it when none of its modules runs any more.
func New(ctx context.Context, options Options) (_ *Engine, err error) {
	if err := options.Validate(); err != nil {
		return nil, err
	}
	options = options.filled()
	e := &Engine{
		options: options,
		table:   -1,
		offered: map[string]map[string]hostabi.Function{},
		slots:   newInstanceSlots(options.Instances, options.TotalMemoryBytes),
		stop:    make(chan struct{}),
		modules: map[*Module]struct{}{},
	}
	// One processor stays free for short requests, the network and the collector.
	e.cpu = cpuqueue.New(max(1, runtime.GOMAXPROCS(0)-1), options.Now)
	e.memory.limit, e.memory.reclaim = options.TotalMemoryBytes, e.reclaim
	e.compiler, err = compile.New(ctx, compile.Options{
		Time: options.CompileTime, Bytes: options.CompileBytes, Command: options.Compiler,
		CacheDir: options.CacheDir, CacheBytes: options.CacheBytes,
	})
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, e.release(ctx))
		}
	}()
	if err := e.offer(ctx, abi.Module, hostabi.Functions()); err != nil {
		return nil, err
	}
	if err := e.offer(ctx, hostabi.WASIModule, hostabi.WASI()); err != nil {
		return nil, err
	}
	number := []api.ValueType{api.ValueTypeI32}
	own := []hostabi.Function{
		{Name: fuelFunction, Results: number, Fn: refill},
		{Name: stackFunction, Results: number, Fn: stackUsed},
	}
	if err := e.provide(ctx, fuelModule, own); err != nil {
		return nil, err
	}
	if err := e.test(ctx); err != nil {
		return nil, err
	}
	e.ended.Go(e.tend)
	return e, nil
}

// offer makes functions available to guests, as a host module.
func (e *Engine) offer(ctx context.Context, module string, functions []hostabi.Function) error {
	e.offered[module] = map[string]hostabi.Function{}
	for _, f := range functions {
		e.offered[module][f.Name] = f
	}
	return e.provide(ctx, module, functions)
}

// provide makes functions available to what is compiled.
func (e *Engine) provide(ctx context.Context, module string, functions []hostabi.Function) error {
	b := e.compiler.Runtime.NewHostModuleBuilder(module)
	for _, f := range functions {
		b.NewFunctionBuilder().WithGoModuleFunction(f.Fn, f.Params, f.Results).Export(f.Name)
	}
	if _, err := b.Instantiate(ctx); err != nil {
		return fmt.Errorf("make host module %q: %w", module, err)
	}
	return nil
}

// Close frees what the Engine and its modules hold. It waits for runs that are
// under way.
func (e *Engine) Close(ctx context.Context) error {
	close(e.stop)
	e.ended.Wait()
	var all []error
	for _, m := range e.loaded() {
		all = append(all, m.Close(ctx))
	}
	return errors.Join(append(all, e.release(ctx))...)
}

func (e *Engine) release(ctx context.Context) error {
	err := e.compiler.Close(ctx)
	if e.watch != nil {
		e.watch.close()
	}
	if e.table >= 0 {
		err = errors.Join(err, unix.Close(e.table))
	}
	return err
}

func (e *Engine) loaded() []*Module {
	e.mu.Lock()
	defer e.mu.Unlock()
	return slices.Collect(maps.Keys(e.modules))
}

// tend gives back what idle sandboxes hold, until Close.
func (e *Engine) tend() {
	const quarters = 4
	clock := time.NewTicker(max(1, e.options.IdleTime/quarters))
	defer clock.Stop()
	for {
		select {
		case <-e.stop:
			return
		case <-clock.C:
		}
		now := e.beat.Add(1)
		for _, m := range e.loaded() {
			m.pool.tidy(now-quarters, now-6*quarters)
		}
	}
}

// reclaim gives back memory of idle sandboxes, of those first that have been
// idle for the longest, until so much is free. It leaves them alone when all of
// them have not enough.
func (e *Engine) reclaim(n int64) {
	modules := e.loaded()
	var idle int64
	for _, m := range modules {
		idle += m.pool.charged()
	}
	for len(modules) > 0 && e.memory.used.Load()+n-idle <= e.memory.limit && e.memory.used.Load()+n > e.memory.limit {
		m := slices.MinFunc(modules, func(a, b *Module) int { return cmp.Compare(a.pool.oldest(), b.pool.oldest()) })
		s := m.pool.takeIdle(func(*sandbox) bool { return true })
		if s == nil {
			return
		}
		idle -= s.memory.charged
		s.discard()
		m.pool.giveBack(nil)
	}
}
