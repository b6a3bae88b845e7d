package compile

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"runtime/debug"
	"runtime/metrics"
	"strconv"
	"strings"
	"time"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/experimental"

	"runner.example/internal/fault"
	"runner.example/internal/system/process"
	"runner.example/internal/wasm"
	"runner.example/runtime/guard"
)

// The compiler cannot be stopped within a function, and the memory that it needs for one
// can be thousands of times the size of its code. So modules that certainly need little
// time and memory are compiled in this process. All others are compiled in a separate
// process whose CPU time and memory the kernel limits. It writes the code to the
// cache, where this process finds it. Without a cache the separate process only proves
// that the module can be compiled within the limits. Where the system cannot limit a process, all modules are compiled in
// this one, without limits.
const (
	// workers is the number of functions that are compiled at a time.
	workers = 2
	// ownMemory is the memory that compiling in this process may take.
	ownMemory = 256 << 20
	// baseMemory is what the separate process has before it compiles, with what Go
	// reserves.
	baseMemory = 192 << 20
	// waitFactor times the limit of its CPU time is the limit of the separate process's wall-clock
	// time, on a machine with other load.
	waitFactor = 12
	// niceness is that of the separate process, which is a process group of its own.
	niceness = 5
)

// CanLimit reports whether the system can limit the separate process, so that Options.Command is used.
const CanLimit = process.CanLimit

// isLight reports whether the module may be compiled in this process.
func (c *Compiler) isLight(cost wasm.Cost) bool {
	return cost.Time <= c.options.Time && workers*cost.Memory <= min(ownMemory, c.options.Bytes)
}

// compile compiles s, first in a separate process unless the code is cached or s is light.
func (c *Compiler) compile(load context.Context, s Source, cached bool) (wazero.CompiledModule, error) {
	if len(c.options.Command) > 0 && !cached && !c.isLight(s.Cost) {
		if c.options.OnCommand != nil {
			c.options.OnCommand()
		}
		if err := c.compileSeparately(load, s); err != nil {
			return nil, err
		}
	}
	ctx := compiling(load, c.guarded)
	compiled, err := c.Runtime.CompileModule(ctx, s.Wasm)
	if _, files := errors.AsType[*fs.PathError](err); files || isLinkError(err) {
		// The cache could not be read or written; the second time the code is in memory.
		compiled, err = c.Runtime.CompileModule(ctx, s.Wasm)
	}
	switch {
	case err != nil && load.Err() != nil:
		return nil, Cancelled(load)
	case err != nil && strings.HasPrefix(err.Error(), "compilationcache: "):
		return nil, errUnreadable
	case err != nil:
		return nil, notValid(FirstLine(err))
	}
	return compiled, nil
}

// compiling returns a context for compiling a module.
func compiling(ctx context.Context, guarded bool) context.Context {
	if guarded {
		ctx = guard.Compile(ctx)
	}
	return experimental.WithCompilationWorkers(ctx, workers) // without it, compiling does not end with its context
}

func notValid(why string) error {
	return refuse("is not a valid WebAssembly module: %s", Quote(why, 500))
}

// errUnreadable: the compiler cannot read the code that it has cached.
var errUnreadable = fault.New(fault.Internal, "its compiled code cannot be read: empty the cache of compiled modules")

func isLinkError(err error) bool {
	_, is := errors.AsType[*os.LinkError](err)
	return is
}

// Exit statuses of the separate process.
const (
	exitDone    = 0
	exitRefused = 10 // stdout has why the module is not valid
	exitTime    = 11
	exitMemory  = 12
	exitFailed  = 13 // stderr has why
)

// compileSeparately compiles the module in a separate process. The error says why the
// module cannot be compiled.
func (c *Compiler) compileSeparately(load context.Context, s Source) (err error) {
	var dir string
	if c.cache != nil {
		dir = c.cache.codeDir()
	} else {
		if dir, err = os.MkdirTemp("", "runner-code-"); err != nil {
			return fault.Wrap(err, fault.Internal, "cannot be compiled: %v", err)
		}
		defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	}
	limit, memory := c.Limits(len(s.Wasm))
	ctx, cancel := context.WithTimeout(load, waitFactor*limit)
	defer cancel()
	command := c.options.Command
	cmd := exec.CommandContext(ctx, command[0], append(command[1:len(command):len(command)],
		dir, limit.String(), strconv.FormatInt(memory, 10), strconv.FormatBool(c.guarded))...)
	var stdout, stderr bytes.Buffer
	cmd.Stdin, cmd.Stdout, cmd.Stderr = bytes.NewReader(s.Wasm), &stdout, &stderr
	cmd.Env = []string{} // the environment may have secrets
	cmd.WaitDelay = time.Second
	// A signal from the terminal ends this process, which then ends load.
	process.Separate(cmd)
	err = cmd.Run()
	exit, exited := errors.AsType[*exec.ExitError](err)
	switch {
	case err == nil:
		return nil
	case load.Err() != nil:
		return Cancelled(load)
	case !exited:
		return fault.Wrap(err, fault.Internal, "cannot be compiled: the compiler process did not start: %v", err)
	case ctx.Err() != nil, exit.ExitCode() == exitTime, process.EndedByTime(exit, limit):
		return refuse(
			"takes more than %s to compile, function %d most of it: split functions with many branches and locals, or raise [sandbox] compile_timeout",
			limit, s.Cost.Heaviest)
	case exit.ExitCode() == exitMemory, bytes.Contains(stderr.Bytes(), []byte("out of memory")),
		bytes.Contains(stderr.Bytes(), []byte("cannot allocate memory")):
		return refuse(
			"takes more than %s to compile, function %d most of it: split functions with many branches and locals, or raise [sandbox] compile_memory",
			size(memory), s.Cost.Heaviest)
	case exit.ExitCode() == exitRefused:
		return notValid(stdout.String())
	}
	why, _, _ := strings.Cut(strings.TrimSpace(stderr.String()), "\n")
	return fault.Wrap(err, fault.Internal, "cannot be compiled: the compiler process failed: %v: %s", err, Quote(why, 500))
}

// Main is the main function of the separate process (see Options.Command). It compiles the
// module on stdin into a directory, within the limits given in args. If it returns, it
// returns the process's exit status.
func Main(args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	err := compileTo(args, stdin)
	invalid, is := errors.AsType[*invalidModule](err)
	switch {
	case err == nil:
		return exitDone
	case is:
		fmt.Fprint(stdout, invalid.why)
		return exitRefused
	}
	fmt.Fprintln(stderr, err)
	return exitFailed
}

// invalidModule is the error for a module that the compiler refuses.
type invalidModule struct{ why string }

func (e *invalidModule) Error() string { return e.why }

func compileTo(args []string, stdin io.Reader) error {
	if len(args) != 4 {
		return fmt.Errorf("%d arguments, want a directory, a time, a size, and whether memories are guarded", len(args))
	}
	limit, err := time.ParseDuration(args[1])
	if err != nil {
		return err
	}
	memory, err := strconv.ParseInt(args[2], 10, 64)
	if err != nil {
		return err
	}
	guarded, err := strconv.ParseBool(args[3])
	if err != nil {
		return err
	}
	if err := limitProcess(limit, memory); err != nil {
		return err
	}
	wasm, err := io.ReadAll(stdin)
	if err != nil {
		return fmt.Errorf("read the module: %w", err)
	}
	cache, err := wazero.NewCompilationCacheWithDir(args[0])
	if err != nil {
		return err
	}
	ctx := compiling(context.Background(), guarded)
	r := wazero.NewRuntimeWithConfig(ctx, wazero.NewRuntimeConfig().WithCoreFeatures(features).WithCompilationCache(cache))
	_, err = r.CompileModule(ctx, wasm)
	if _, files := errors.AsType[*fs.PathError](err); files || isLinkError(err) {
		return err
	}
	if err != nil {
		return &invalidModule{FirstLine(err)}
	}
	return nil
}

// limitProcess limits this process. It ends itself at a limit, with a status that says
// which limit it was; the kernel ends it a little later in any case.
func limitProcess(limit time.Duration, memory int64) error {
	// The server's requests come first. At a lower priority than this one, compiling beside many
	// of them could take longer than waitFactor allows.
	if err := process.Limit(limit.Truncate(time.Second)+2*time.Second, uint64(memory)+baseMemory, niceness); err != nil {
		return err
	}
	debug.SetMemoryLimit(memory * 3 / 4) // the collector runs more often near it
	go func() {
		held := []metrics.Sample{{Name: "/memory/classes/total:bytes"}, {Name: "/memory/classes/heap/released:bytes"}}
		for {
			time.Sleep(10 * time.Millisecond)
			if process.CPUTime() > limit {
				os.Exit(exitTime)
			}
			if metrics.Read(held); held[0].Value.Uint64()-held[1].Value.Uint64() > uint64(memory) {
				os.Exit(exitMemory)
			}
		}
	}()
	return nil
}
