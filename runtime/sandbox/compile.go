package sandbox

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
	"syscall"
	"time"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/experimental"
	"golang.org/x/sys/unix"

	"runner.example/internal/fault"
	"runner.example/internal/wasm"
)

// The compiler cannot be stopped within a function, and the memory that it needs for one
// can be thousands of times the size of its code. So modules that certainly need little
// time and memory are compiled in this process. All others are compiled by a helper, a
// process whose processor time and memory the kernel limits. It writes the code to the
// folder of compiled modules, where this process finds it. Without such a folder the
// helper only proves that the module can be compiled within the limits.
const (
	// compileWorkers compile as many functions at a time.
	compileWorkers = 2
	// ownMemory is how much memory compiling here may take.
	ownMemory = 256 << 20
	// helperBase is memory that the helper has before it compiles, what Go sets aside
	// for it included.
	helperBase = 192 << 20
	// compileWait times CompileTime is how long the helper may take in all, on a machine
	// that has other things to do.
	compileWait = 12
)

// source is a rewritten module.
type source struct {
	wasm []byte
	cost wasm.Cost
}

// isLight reports whether the module may be compiled in this process.
func (e *Engine) isLight(cost wasm.Cost) bool {
	return cost.Time <= e.options.CompileTime && compileWorkers*cost.Memory <= min(ownMemory, e.options.CompileBytes)
}

// compile compiles s, first in a helper unless the code is cached or s is light.
func (e *Engine) compile(load context.Context, s source, kept bool) (wazero.CompiledModule, error) {
	if len(e.options.Compiler) > 0 && !kept && !e.isLight(s.cost) {
		if err := e.help(load, s); err != nil {
			return nil, err
		}
	}
	ctx := experimental.WithCompilationWorkers(load, compileWorkers) // without, it does not end with its context
	compiled, err := e.runtime.CompileModule(ctx, s.wasm)
	if _, files := errors.AsType[*fs.PathError](err); files || isLinkError(err) {
		// The code could not be read or kept; what was compiled is there now.
		compiled, err = e.runtime.CompileModule(ctx, s.wasm)
	}
	switch {
	case err != nil && load.Err() != nil:
		return nil, cancelled(load)
	case err != nil && strings.HasPrefix(err.Error(), "compilationcache: "):
		return nil, errUnreadable
	case err != nil:
		return nil, notValid(firstLine(err))
	}
	return compiled, nil
}

func notValid(why string) error {
	return refuse("is not a valid WebAssembly module: %s", asText(why, 500))
}

// errUnreadable: the compiler cannot make anything of the code that it has kept.
var errUnreadable = fault.New(fault.Internal, "its compiled code cannot be read: empty the folder of compiled modules")

func isLinkError(err error) bool {
	_, is := errors.AsType[*os.LinkError](err)
	return is
}

// Exit statuses of the helper.
const (
	helperDone    = 0
	helperRefused = 10 // stdout has why the module is not valid
	helperLate    = 11
	helperFull    = 12
	helperFailed  = 13 // stderr has why
)

// help runs a helper that compiles the module. The error says why it cannot be compiled.
func (e *Engine) help(load context.Context, s source) (err error) {
	var dir string
	if e.cache != nil {
		dir = e.cache.codeDir()
	} else {
		if dir, err = os.MkdirTemp("", "runner-code-"); err != nil {
			return fault.Wrap(err, fault.Internal, "cannot be compiled: %v", err)
		}
		defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	}
	ctx, cancel := context.WithTimeout(load, compileWait*e.options.CompileTime)
	defer cancel()
	command := e.options.Compiler
	cmd := exec.CommandContext(ctx, command[0], append(command[1:len(command):len(command)],
		dir, e.options.CompileTime.String(), strconv.FormatInt(e.options.CompileBytes, 10))...)
	var stdout, stderr bytes.Buffer
	cmd.Stdin, cmd.Stdout, cmd.Stderr = bytes.NewReader(s.wasm), &stdout, &stderr
	cmd.Env = []string{} // which may hold secrets
	cmd.WaitDelay = time.Second
	// What ends us by the terminal ends it through load.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	err = cmd.Run()
	exit, exited := errors.AsType[*exec.ExitError](err)
	switch {
	case err == nil:
		return nil
	case load.Err() != nil:
		return cancelled(load)
	case !exited:
		return fault.Wrap(err, fault.Internal, "cannot be compiled: the compiler process did not start: %v", err)
	case ctx.Err() != nil, exit.ExitCode() == helperLate, killedBy(exit, syscall.SIGXCPU), killedBy(exit, syscall.SIGKILL) && exit.UserTime()+exit.SystemTime() >= e.options.CompileTime:
		return refuse("takes more than %s to compile, function %d most of it: split functions with many branches and locals, or raise [sandbox] compile_timeout",
			e.options.CompileTime, s.cost.Heaviest)
	case exit.ExitCode() == helperFull, bytes.Contains(stderr.Bytes(), []byte("out of memory")), bytes.Contains(stderr.Bytes(), []byte("cannot allocate memory")):
		return refuse("takes more than %s to compile, function %d most of it: split functions with many branches and locals, or raise [sandbox] compile_memory",
			size(e.options.CompileBytes), s.cost.Heaviest)
	case exit.ExitCode() == helperRefused:
		return notValid(stdout.String())
	}
	why, _, _ := strings.Cut(strings.TrimSpace(stderr.String()), "\n")
	return fault.Wrap(err, fault.Internal, "cannot be compiled: the compiler process failed: %v: %s", err, asText(why, 500))
}

func killedBy(exit *exec.ExitError, signal syscall.Signal) bool {
	status, ok := exit.Sys().(syscall.WaitStatus)
	return ok && status.Signaled() && status.Signal() == signal
}

// Compile is the main function of the helper process that an Engine starts (see
// Options.Compiler). It compiles the module on stdin into a folder of code, within the
// limits given in args. If it returns, it returns the process's exit status.
func Compile(args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	err := compileHelped(args, stdin)
	invalid, is := errors.AsType[*invalidModule](err)
	switch {
	case err == nil:
		return helperDone
	case is:
		fmt.Fprint(stdout, invalid.why)
		return helperRefused
	}
	fmt.Fprintln(stderr, err)
	return helperFailed
}

// invalidModule is the error for a module that the compiler refuses.
type invalidModule struct{ why string }

func (e *invalidModule) Error() string { return e.why }

func compileHelped(args []string, stdin io.Reader) error {
	if len(args) != 3 {
		return fmt.Errorf("%d arguments, want a folder, a time and a size", len(args))
	}
	limit, err := time.ParseDuration(args[1])
	if err != nil {
		return err
	}
	memory, err := strconv.ParseInt(args[2], 10, 64)
	if err != nil {
		return err
	}
	if err := bind(limit, memory); err != nil {
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
	ctx := experimental.WithCompilationWorkers(context.Background(), compileWorkers)
	r := wazero.NewRuntimeWithConfig(ctx, wazero.NewRuntimeConfig().WithCompilationCache(cache))
	_, err = r.CompileModule(ctx, wasm)
	if _, files := errors.AsType[*fs.PathError](err); files || isLinkError(err) {
		return err
	}
	if err != nil {
		return &invalidModule{firstLine(err)}
	}
	return nil
}

// bind bounds this process: the kernel ends it behind both limits, and before that it
// ends itself, to say which of them it was.
func bind(limit time.Duration, memory int64) error {
	seconds := uint64(limit/time.Second) + 2
	for resource, most := range map[int]uint64{
		unix.RLIMIT_CPU:  seconds,
		unix.RLIMIT_DATA: uint64(memory) + helperBase,
		unix.RLIMIT_CORE: 0,
	} {
		if err := unix.Setrlimit(resource, &unix.Rlimit{Cur: most, Max: most}); err != nil {
			return fmt.Errorf("bound the process: %w", err)
		}
	}
	debug.SetMemoryLimit(memory * 3 / 4) // near it, garbage is looked for more often
	go func() {
		held := []metrics.Sample{{Name: "/memory/classes/total:bytes"}, {Name: "/memory/classes/heap/released:bytes"}}
		for {
			time.Sleep(10 * time.Millisecond)
			var used unix.Rusage
			if unix.Getrusage(unix.RUSAGE_SELF, &used) == nil && time.Duration(used.Utime.Nano()+used.Stime.Nano()) > limit {
				os.Exit(helperLate)
			}
			if metrics.Read(held); held[0].Value.Uint64()-held[1].Value.Uint64() > uint64(memory) {
				os.Exit(helperFull)
			}
		}
	}()
	return nil
}
