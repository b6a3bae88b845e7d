package sandbox

import (
	"cmp"
	"context"
	"crypto/sha256"
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

	"runner.example/hostabi"
	"runner.example/internal/clock"
	"runner.example/internal/fault"
	"runner.example/internal/settings"
	"runner.example/internal/system/process"
	"runner.example/internal/telemetry"
	"runner.example/internal/wasm"
	_ "runner.example/internal/wazerofix"
	"runner.example/runtime/compile"
	"runner.example/runtime/cpuqueue"
	"runner.example/runtime/pages"
)

// pageBytes is the unit of linear memory.
const pageBytes = wasm.PageBytes

// Options of an Engine. The zero value takes every default.
type Options struct {
	// MemoryBytes limits the memory of one handler. Beyond that it fails. A multiple of 64kb.
	MemoryBytes int64 `toml:"sandbox.memory" unit:"size" default:"64mb" min:"64kb" max:"4gb" multiple:"64kb"`
	// TotalMemoryBytes limits the memory of all handlers together (0b: MemoryBytes for each
	// of Instances), including the memory that each module has before its first request.
	// Idle memory is returned first. A reload needs memory for the old and the new modules
	// for a moment, and is refused without it.
	TotalMemoryBytes int64 `toml:"sandbox.total_memory" unit:"size" max:"4096gb"`
	// Instances limits the handlers that run at once (0: four for each CPU, at least 16).
	// One handler alone can have three quarters of them. Handlers that wait, also for CPU
	// time, do not count; up to eight times as many may wait, with half of the total memory.
	// One handler alone, or one caller alone, can have three quarters of that.
	Instances int `toml:"sandbox.instances" max:"100000"`
	// Streams limits the answers that are sent while their handlers run. They have places and memory of their own: a
	// quarter of the total memory. One caller alone can have three quarters of the places.
	Streams int `toml:"runtime.streams" default:"1000" min:"1" max:"100000"`
	// QueueWait limits the time that a request waits for a free sandbox; beyond that the
	// answer is 503. Soon after such an answer, requests to the same handler wait at most a
	// hundredth as long, if the handler already had its share of the instances.
	QueueWait time.Duration `toml:"sandbox.queue_wait" default:"1s" min:"1ms" max:"1m"`
	// The circuit breaker counts requests that ran out of time or of stack within a minute.
	// When a caller has five of them, to any handlers, each of these handlers answers it 503
	// for a while. When a handler has them from five callers, it answers all callers 503.
	// Callers are distinguished as in rate limits.
	NoBreaker bool `toml:"sandbox.breaker,not" default:"true"`
	// InitTime is how long the initialization of a module may take.
	InitTime time.Duration `default:"10s"`
	// CompileTime limits the CPU time for compiling one module, CompileBytes the memory.
	// Beyond that the module is refused. Each MiB of code beyond 8 MiB may take 2s and 32mb more.
	CompileTime  time.Duration `toml:"sandbox.compile_timeout" default:"30s" min:"10ms" max:"1h"`
	CompileBytes int64         `toml:"sandbox.compile_memory" unit:"size" default:"768mb" min:"64mb" max:"1024gb"`
	// Compiler is the command that runs compile.Main with the arguments that follow it,
	// for modules that may come near these limits. Empty, or not compile.CanLimit: all modules are
	// compiled in this process, without limits.
	Compiler []string
	// OnCompiler is called before that command runs, which may take many seconds; nil: nothing is called.
	OnCompiler func()
	// IdleTime is how long a sandbox may be idle before it releases memory. After six times
	// as long it is discarded, except one for each module.
	IdleTime time.Duration `default:"10s"`
	// CacheDir is the directory of compiled code. Code there is run without further
	// checks, so no other user may write to it. Empty: there is no cache.
	CacheDir string
	// CacheFrom is the directory of another cache, from which code is copied that this one does not have. It is not used
	// if another user can write to it.
	CacheFrom string
	// CacheBytes is the limit of the cache; the least recently used code is removed first.
	CacheBytes int64 `unit:"size" default:"1gb"`
	// Guard: the memory accesses of handlers are not compared with the size of their memory; one out of
	// bounds is a memory fault, which ends the handler with the same error. "off" compares each, as
	// machines do that have no such memory.
	Guard string `toml:"sandbox.guard" default:"on" oneof:"on|off"`
	// MemoryBackend is how the memory of handlers is restored after a request: "native" has the kernel find the
	// changed pages, if the system is Linux; "portable" compares all of the memory with what it was before, and is
	// what other systems always have. It takes longer, guard is off, and the result is the same.
	MemoryBackend string `toml:"sandbox.memory_backend" default:"native" oneof:"native|portable"`
	// Logger logs what modules log during their initialization, and the optimizations
	// that are disabled on this machine. It must redact secrets; nil: nothing is logged.
	Logger *slog.Logger
	// Disable names optimizations (OptWatch and others) that are disabled, as if their
	// self-test had failed.
	Disable []string
	// ReadModule returns the file of a module and its debug file (see package symbols), nil if
	// it has none, by the SHA-256 of the module. It is called when a handler fails, by any
	// goroutine. Without it frames have only offsets, and the names of exports.
	ReadModule func(sum [sha256.Size]byte) (module, debug []byte, err error)
	// Metrics measures waits and restores; nil: nothing is measured.
	Metrics *telemetry.Metrics
	// Now is the clock, the time since any moment; CPUTime is the CPU time of the
	// thread that calls it. By default those of the system; where it does not tell the CPU time, all time counts.
	Now, CPUTime func() time.Duration
}

// cpuSlots is the number of guests that may compute for long at once. One processor stays
// free for short requests, the network and the collector.
func cpuSlots() int { return max(1, runtime.GOMAXPROCS(0)-1) }

// TotalMemory returns TotalMemoryBytes, or its default.
func (o Options) TotalMemory() int64 { return o.filled().TotalMemoryBytes }

func (o Options) filled() Options {
	settings.FillZero(&o)
	if o.Instances == 0 {
		o.Instances = max(16, 4*runtime.GOMAXPROCS(0))
	}
	if o.TotalMemoryBytes == 0 {
		o.TotalMemoryBytes = o.MemoryBytes * int64(max(o.Instances, 0))
	}
	if o.Now == nil {
		started := clock.Mark()
		o.Now = func() time.Duration { return time.Since(started) }
	}
	if o.CPUTime == nil {
		o.CPUTime = o.Now
		if _, known := process.ThreadTime(); known {
			o.CPUTime = threadTime
		}
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	return o
}

// Validate reports the first option that is not valid.
func (o Options) Validate() error {
	switch o = o.filled(); {
	case o.MemoryBytes < pageBytes || o.MemoryBytes >= 4<<30 || o.MemoryBytes%pageBytes != 0:
		return fault.New(fault.Invalid, "[sandbox] memory must be from 64kb to less than 4096mb, in whole 64kb")
	case o.Instances < 0:
		return fault.New(fault.Invalid, "[sandbox] instances must be positive")
	case o.TotalMemoryBytes < o.MemoryBytes:
		return fault.New(fault.Invalid, "[sandbox] total_memory must be at least [sandbox] memory")
	case o.QueueWait < 0:
		return fault.New(fault.Invalid, "[sandbox] queue_wait must be positive")
	case o.CacheBytes < 0:
		return fault.New(fault.Invalid, "the size of the cache of compiled modules must be positive")
	case o.CompileTime < 0 || o.CompileBytes < 0:
		return fault.New(fault.Invalid, "[sandbox] compile_timeout and compile_memory must be positive")
	case o.Guard != "on" && o.Guard != "off":
		return fault.New(fault.Invalid, `[sandbox] guard must be "on" or "off"`)
	case o.MemoryBackend != pages.Native && o.MemoryBackend != pages.Portable:
		return fault.New(fault.Invalid, `[sandbox] memory_backend must be "native" or "portable"`)
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
	pages         pages.System
	slots         *instanceSlots
	cpu           *cpuqueue.Queue
	memory        budget
	strikes       strikes
	symbols       symbolTables
	metrics       metrics

	idleTick atomic.Int64 // counts quarters of IdleTime
	stop     chan struct{}
	ended    sync.WaitGroup

	mu      sync.Mutex
	modules map[*Module]struct{}
	stubs   map[string]int // how many modules use each stub
}

// fuelModule is the module that rewritten modules import refill and stackUsed from. A guest
// cannot import it: its imports are checked before it is rewritten.
const fuelModule = "\x00runner"

// The functions of fuelModule.
const (
	fuelFunction  = "refill"
	stackFunction = "stack"
)

// guestConfig is for all instances: no name, so that there can be many, and no start
// function, as boot calls it.
var guestConfig = wazero.NewModuleConfig().WithName("").WithStartFunctions()

// New makes an Engine. Close it.
func New(ctx context.Context, options Options) (_ *Engine, err error) {
	if err := options.Validate(); err != nil {
		return nil, err
	}
	options = options.filled()
	e := &Engine{
		options: options,
		pages:   pages.Open(options.MemoryBackend),
		slots: newInstanceSlots(options.Instances, options.Streams,
			max(options.TotalMemoryBytes/parkedMemory, options.MemoryBytes), options.Now),
		stop:    make(chan struct{}),
		metrics: newMetrics(options.Metrics),
		modules: map[*Module]struct{}{},
		stubs:   map[string]int{},
	}
	e.cpu = cpuqueue.New(cpuSlots(), options.Now)
	e.memory.set(options.TotalMemoryBytes, options.MemoryBytes, options.Instances)
	e.memory.reclaim = e.reclaim
	e.compiler, err = compile.New(ctx, compile.Options{
		Time: options.CompileTime, Bytes: options.CompileBytes, Command: options.Compiler, OnCommand: options.OnCompiler,
		CacheDir: options.CacheDir, CacheFrom: options.CacheFrom, CacheBytes: options.CacheBytes,
	})
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, e.release(ctx))
		}
	}()
	for _, m := range hostModules() {
		if err := e.provide(ctx, m.name, m.functions); err != nil {
			return nil, err
		}
	}
	number := []api.ValueType{api.ValueTypeI32}
	own := []hostabi.Function{
		{Name: fuelFunction, Params: number, Results: number, Fn: refill},
		{Name: stackFunction, Results: number, Fn: stackUsed},
	}
	if err := e.provide(ctx, fuelModule, own); err != nil {
		return nil, err
	}
	if len(options.Compiler) > 0 && !compile.CanLimit {
		options.Logger.Info("modules are compiled in this process", "cause", "this system cannot limit the memory of another one")
	}
	if err := e.test(ctx); err != nil {
		return nil, err
	}
	e.ended.Go(e.tidyIdle)
	return e, nil
}

// provide makes functions available to compiled modules.
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

// Slots returns how many guests run, how many wait for a slot, and how many have parked.
func (e *Engine) Slots() (running, waiting, parked int) {
	free, waiting := e.slots.State()
	e.slots.mu.Lock()
	defer e.slots.mu.Unlock()
	return e.options.Instances - free, waiting, e.slots.parkMax - e.slots.parkFree
}

// Memory returns the limit of all handlers' memory and how much is in use, in bytes.
func (e *Engine) Memory() (limit, used int64) { return e.memory.limit, e.memory.used.Load() }

// Close releases the Engine and its modules. It waits for runs in progress.
func (e *Engine) Close(ctx context.Context) error {
	close(e.stop)
	e.ended.Wait()
	var all []error
	for _, m := range e.loaded() {
		all = append(all, m.release(ctx))
	}
	return errors.Join(append(all, e.release(ctx))...)
}

func (e *Engine) release(ctx context.Context) error {
	return errors.Join(e.compiler.Close(ctx), e.pages.Close())
}

func (e *Engine) loaded() []*Module {
	e.mu.Lock()
	defer e.mu.Unlock()
	return slices.Collect(maps.Keys(e.modules))
}

// tidyIdle releases what idle sandboxes hold, until Close.
func (e *Engine) tidyIdle() {
	const quarters = 4
	clock := time.NewTicker(max(1, e.options.IdleTime/quarters))
	defer clock.Stop()
	for {
		select {
		case <-e.stop:
			return
		case <-clock.C:
		}
		now := e.idleTick.Add(1)
		for _, m := range e.loaded() {
			m.pool.tidy(now-quarters, now-6*quarters)
		}
		e.symbols.tidy(now - 6*quarters)
	}
}

// reclaim discards idle sandboxes, the least recently used first, until n bytes are free. It
// discards none if all of them together have too little.
func (e *Engine) reclaim(n int64) {
	modules := e.loaded()
	var idle int64
	for _, m := range modules {
		idle += m.pool.charged()
	}
	for len(modules) > 0 && e.memory.used.Load()+n-idle <= e.memory.limit && e.memory.used.Load()+n > e.memory.limit {
		charged, ok := discardOldest(modules)
		if !ok {
			return
		}
		idle -= charged
	}
}

// discardOldest discards the idle sandbox that was used least recently, and returns what it was charged. ok is
// false if none is idle.
func discardOldest(modules []*Module) (charged int64, ok bool) {
	if len(modules) == 0 {
		return 0, false
	}
	m := slices.MinFunc(modules, func(a, b *Module) int { return cmp.Compare(a.pool.oldest(), b.pool.oldest()) })
	s := m.pool.takeIdle(func(*sandbox) bool { return true })
	if s == nil {
		return 0, false
	}
	charged = s.memory.charged
	s.discard()
	m.pool.giveBack(nil)
	return charged, true
}
