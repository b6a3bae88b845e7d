package sandbox

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"runtime"
	"time"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/imports/wasi_snapshot_preview1"
	"github.com/tetratelabs/wazero/sys"

	"runner.example/hostabi"
	"runner.example/hostabi/abi"
	"runner.example/internal/fault"
)

// Options of an Engine. The zero value takes every default.
type Options struct {
	// MemoryBytes is how much memory one sandbox may have, in whole pages of
	// 64 KiB; 64 MiB by default.
	MemoryBytes int64
	// Instances is how many guests may run at once; by default four for each
	// CPU, and 16 at least.
	Instances int
	// QueueWait is how long a request waits for a free place; 1 s by default.
	QueueWait time.Duration
	// CacheDir keeps compiled code from one start to the next. What lies there is
	// run as it is, so nobody else may write to it. Empty: every start compiles.
	CacheDir string
}

func (o Options) filled() Options {
	if o.MemoryBytes == 0 {
		o.MemoryBytes = 64 << 20
	}
	if o.Instances == 0 {
		o.Instances = max(16, 4*runtime.GOMAXPROCS(0))
	}
	if o.QueueWait == 0 {
		o.QueueWait = time.Second
	}
	return o
}

// Validate reports the first option that cannot be.
func (o Options) Validate() error {
	switch o = o.filled(); {
	case o.MemoryBytes < pageBytes || o.MemoryBytes > 4<<30 || o.MemoryBytes%pageBytes != 0:
		return fault.New(fault.Invalid, "[sandbox] memory must be from 64kb to 4096mb, in whole 64kb")
	case o.Instances < 0:
		return fault.New(fault.Invalid, "[sandbox] instances must be positive")
	case o.QueueWait < 0:
		return fault.New(fault.Invalid, "[sandbox] queue_wait must be positive")
	}
	return nil
}

// Engine compiles modules and runs them. It is safe for concurrent use.
type Engine struct {
	options Options
	runtime wazero.Runtime
	cache   wazero.CompilationCache // nil without a CacheDir
	// offered are the functions that guests may import, by module and name.
	offered map[string]map[string]api.FunctionDefinition
	config  wazero.ModuleConfig
	places  chan struct{} // one token for each guest that runs
}

// New makes an Engine. Close it when none of its modules runs any more.
func New(ctx context.Context, options Options) (_ *Engine, err error) {
	if err := options.Validate(); err != nil {
		return nil, err
	}
	options = options.filled()
	e := &Engine{
		options: options,
		offered: map[string]map[string]api.FunctionDefinition{},
		config:  guestConfig(),
		places:  make(chan struct{}, options.Instances),
	}
	config := wazero.NewRuntimeConfig().WithCloseOnContextDone(true)
	if options.CacheDir != "" {
		if e.cache, err = openCache(options.CacheDir); err != nil {
			return nil, err
		}
		config = config.WithCompilationCache(e.cache)
	}
	e.runtime = wazero.NewRuntimeWithConfig(ctx, config)
	defer func() {
		if err != nil {
			err = errors.Join(err, e.Close(ctx))
		}
	}()
	host := e.runtime.NewHostModuleBuilder(abi.Module)
	for _, f := range hostabi.Functions() {
		host.NewFunctionBuilder().WithGoModuleFunction(f.Fn, f.Params, f.Results).Export(f.Name)
	}
	if err := e.offer(ctx, abi.Module, host); err != nil {
		return nil, err
	}
	return e, e.offer(ctx, wasi_snapshot_preview1.ModuleName, wasi_snapshot_preview1.NewBuilder(e.runtime))
}

// offer makes a host module available to guests.
func (e *Engine) offer(ctx context.Context, name string, b interface {
	Compile(context.Context) (wazero.CompiledModule, error)
}) error {
	compiled, err := b.Compile(ctx)
	if err != nil {
		return fmt.Errorf("compile host module %s: %w", name, err)
	}
	if _, err := e.runtime.InstantiateModule(ctx, compiled, wazero.NewModuleConfig().WithName(name)); err != nil {
		return fmt.Errorf("instantiate host module %s: %w", name, err)
	}
	e.offered[name] = compiled.ExportedFunctions()
	return nil
}

// openCache opens the folder of compiled code, which must be this user's alone.
func openCache(dir string) (wazero.CompilationCache, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("make the folder of compiled modules: %w", err)
	}
	info, err := os.Stat(dir)
	if err != nil {
		return nil, fmt.Errorf("open the folder of compiled modules: %w", err)
	}
	if mode := info.Mode().Perm(); mode&0o077 != 0 {
		return nil, fault.New(fault.Invalid, "the folder of compiled modules %q is open to others (mode %04o): empty it and set it to 0700", dir, mode)
	}
	cache, err := wazero.NewCompilationCacheWithDir(dir)
	if err != nil {
		return nil, fmt.Errorf("open the folder of compiled modules: %w", err)
	}
	return cache, nil
}

// Close frees what the Engine and its modules hold.
func (e *Engine) Close(ctx context.Context) error {
	err := e.runtime.Close(ctx)
	if e.cache != nil {
		err = errors.Join(err, e.cache.Close(ctx))
	}
	return err
}

// clockGrain is as finely as a guest can see time: fine enough to measure its
// own work, too coarse to measure its neighbours'.
const clockGrain = time.Millisecond

// guestConfig is what all guests have of WASI: time and chance. Arguments,
// environment, files and sockets they have none.
func guestConfig() wazero.ModuleConfig {
	start := time.Now()
	wall := func() (int64, int32) {
		now := time.Now().Truncate(clockGrain)
		return now.Unix(), int32(now.Nanosecond())
	}
	// Go's runtime takes 0 for a clock that does not work.
	mono := func() int64 { return int64(time.Since(start).Truncate(clockGrain) + time.Second) }
	return wazero.NewModuleConfig().
		WithName("").
		WithStartFunctions().
		WithRandSource(rand.Reader).
		WithWalltime(wall, sys.ClockResolution(clockGrain)).
		WithNanotime(mono, sys.ClockResolution(clockGrain))
}
