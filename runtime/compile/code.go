package compile

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"sync"
	"time"
	"unsafe"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/experimental"

	"runner.example/internal/fault"
	"runner.example/internal/system/memory"
	"runner.example/internal/wasm"
	_ "runner.example/internal/wazerofix"
)

// Options of a Compiler.
type Options struct {
	// Time and Bytes are the CPU time and the memory that compiling a module with up to 8 MiB
	// of code may take. More code may take more: see Compiler.Limits.
	Time  time.Duration
	Bytes int64
	// Command is the command that runs Main with the arguments that follow it. Empty, or CanLimit is false: all
	// modules are compiled in this process.
	Command []string
	// OnCommand is called before that command runs, which may take many seconds; nil: nothing is called.
	OnCommand func()
	// CacheDir is the cache's directory; empty: there is no cache. CacheBytes is its limit.
	CacheDir   string
	CacheBytes int64
	// CacheFrom is the directory of another cache, from which code is copied that this one does not have; empty: there
	// is none. It is not used if another user can write to it.
	CacheFrom string
}

// Interpreters have up to 14 MiB of code, of which each MiB takes up to 1.6 s and 36 MiB to compile.
const (
	smallCode    = 8 << 20
	timePerMiB   = 2 * time.Second
	memoryPerMiB = 32 << 20
)

// Compiler compiles modules and shares their code. Close it after all Codes are released.
type Compiler struct {
	// Runtime compiles and instantiates modules.
	Runtime wazero.Runtime

	options Options
	guarded bool
	cache   *cache // nil without a CacheDir

	mu    sync.Mutex
	codes map[string]*Code // by key
}

// features are those of rewritten modules, which do not compute constants any more.
const features = api.CoreFeaturesV2 | experimental.CoreFeaturesTailCall | experimental.CoreFeaturesThreads

// New returns a Compiler and opens its cache.
func New(ctx context.Context, options Options) (*Compiler, error) {
	if !CanLimit {
		options.Command = nil
	}
	c := &Compiler{options: options, codes: map[string]*Code{}}
	config := wazero.NewRuntimeConfig().WithCoreFeatures(features)
	if options.CacheDir != "" {
		var err error
		if c.cache, err = openCache(options.CacheDir, options.CacheFrom, options.CacheBytes); err != nil {
			return nil, err
		}
		config = config.WithCompilationCache(c.cache.compiled)
	}
	c.Runtime = wazero.NewRuntimeWithConfig(ctx, config)
	return c, nil
}

// SetGuarded has modules compiled to code for guarded memories (package guard), or for any. It must not be
// called while a module is compiled.
func (c *Compiler) SetGuarded(on bool) { c.guarded = on }

// Limits returns the CPU time and the memory that compiling a module with so many bytes of code may take: Time and
// Bytes, and more for code beyond smallCode.
func (c *Compiler) Limits(code int) (time.Duration, int64) {
	large := (max(0, code-smallCode) + 1<<20 - 1) >> 20
	return c.options.Time + time.Duration(large)*timePerMiB, c.options.Bytes + int64(large)*memoryPerMiB
}

// Close closes the runtime and the cache.
func (c *Compiler) Close(ctx context.Context) error {
	err := c.Runtime.Close(ctx)
	if c.cache != nil {
		err = errors.Join(err, c.cache.compiled.Close(ctx))
	}
	return err
}

// Source is a rewritten module, the largest cost of compiling it, and a map of its offsets to the module before.
type Source struct {
	Wasm    []byte
	Cost    wasm.Cost
	Offsets *wasm.Offsets
}

// Code is the native code of a rewritten module. Modules that are rewritten to the same
// bytes share it, such as those of one interpreter that differ only in their data. Modules
// that are rewritten for another target have other bytes, or need no change for it.
type Code struct {
	// Compiled is what the runtime instantiates.
	Compiled wazero.CompiledModule

	base    uintptr // of the native code
	size    uintptr
	offsets offsetTable // of the native code; nil: not known
	mapped  bool        // offsets is a mapped file

	key  string
	refs int           // modules; guarded by Compiler.mu
	done chan struct{} // closed when Compiled or err is set
	err  error
}

// Code returns the code of a module, compiled if no other module has it. Release it.
func (c *Compiler) Code(ctx context.Context, s Source) (*Code, error) {
	sum := sha256.New()
	sum.Write(s.Wasm)
	if c.guarded {
		sum.Write([]byte("guarded"))
	}
	key := hex.EncodeToString(sum.Sum(nil))
	for {
		c.mu.Lock()
		code, found := c.codes[key]
		if !found {
			code = &Code{key: key, done: make(chan struct{})}
			c.codes[key] = code
		}
		code.refs++
		c.mu.Unlock()
		if !found {
			return c.fill(ctx, code, s)
		}
		select {
		case <-code.done:
		case <-ctx.Done():
			c.mu.Lock()
			code.refs-- // not the last one: the caller that compiles has one
			c.mu.Unlock()
			return nil, Cancelled(ctx)
		}
		if code.err == nil {
			return code, nil
		} // the caller that compiled may have been cancelled: try again
	}
}

// fill compiles new code, or takes it from the cache.
func (c *Compiler) fill(ctx context.Context, code *Code, s Source) (*Code, error) {
	dir := ""
	if c.cache != nil {
		dir = c.cache.dir
		code.err = c.cache.make(ctx, code, s, c.compile)
	} else {
		code.Compiled, code.err = c.compile(ctx, s, false)
		if code.err == nil {
			code.offsets = nativeOf(code.Compiled).takeOffsets(s.Offsets)
		}
	}
	if code.err == nil {
		native := nativeOf(code.Compiled)
		native.releaseMemory(dir)
		if code.size = uintptr(len(native.code)); code.size > 0 {
			code.base = uintptr(unsafe.Pointer(&native.code[0]))
		}
	} else {
		c.mu.Lock()
		delete(c.codes, code.key)
		c.mu.Unlock()
	}
	close(code.done)
	return code, code.err
}

// Original returns the instruction in the module as uploaded that native code at an address belongs
// to: the call that returns there, or the trap that ends there. ok is false for other code, and for
// functions that rewriting added. It must not be called after Release.
func (c *Code) Original(address uintptr) (p Instruction, ok bool) {
	if address-c.base > c.size {
		return p, false
	}
	return c.offsets.find(uint64(address - c.base))
}

// Share adds a use of code that a module has. Release it.
func (c *Compiler) Share(code *Code) {
	c.mu.Lock()
	defer c.mu.Unlock()
	code.refs++
}

// Release ends a module's use of the code.
func (c *Compiler) Release(ctx context.Context, code *Code) error {
	c.mu.Lock()
	code.refs--
	last := code.refs == 0
	if last {
		delete(c.codes, code.key)
	}
	c.mu.Unlock()
	if !last {
		return nil
	}
	err := code.Compiled.Close(ctx)
	if code.mapped {
		err = errors.Join(err, memory.Unmap(code.offsets))
	}
	return err
}

// Cancelled is the error of a module whose loading was cancelled.
func Cancelled(load context.Context) error {
	return fault.Wrap(context.Cause(load), fault.Invalid, "was not loaded, as that was cancelled")
}

func refuse(format string, args ...any) error { return fault.New(fault.Invalid, format, args...) }
