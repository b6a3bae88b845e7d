package toolchain

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"runner.example/develop/toolchain/python"
	"runner.example/develop/toolchain/typescript"
	"runner.example/internal/symbols"
	"runner.example/runtime/sandbox"
)

// language builds modules of the sources of one language.
type language struct {
	// marker describes a directory in this language in messages.
	marker string
	// matches reports whether a directory is written in this language.
	matches func(dir string) bool
	// compile makes a module of a source: its bytes and its debug file's, and for files in handlers/
	// also Sources and Handlers. It adds errors and warnings in the source to the builder's list; after
	// an error the module is nil. An error that it returns is not about the source: a compiler is
	// missing, or was interrupted.
	compile func(b *builder, ctx context.Context, s source) (*Module, error)
	// missing says what to do about a function that the module imports and the runner does not have. It is empty for
	// languages whose modules import what the runner chooses.
	missing string
}

// explain returns what is wrong with a module that was built. If an import is missing, and is not known to be of another
// host, it says what to do in this language.
func (l *language) explain(err error) string {
	missing, ok := errors.AsType[*sandbox.ImportError](err)
	if ok && l.missing != "" && missing.Host == "" {
		return missing.What() + ": " + l.missing
	}
	return err.Error()
}

// source is what one module is built from.
type source struct {
	language *language
	// name is the name of the module, build/<name>.wasm.
	name string
	// path is "handlers" for the files in TypeScript and JavaScript there, PythonSource for those in Python, and
	// handlers/<name> for a directory.
	path string
	// files are the files in handlers/, which one module has all of.
	files []string
}

// typeScript builds the files in handlers/ itself.
var typeScript = language{compile: func(b *builder, ctx context.Context, s source) (*Module, error) {
	m, found, err := typescript.Build(ctx, typescript.Options{
		Dir: b.options.Dir, Files: s.files, Handlers: b.options.Handlers, CacheDir: b.options.privateCache(), Log: b.options.log,
	})
	b.found.Append(found)
	if err != nil || m == nil {
		return nil, err
	}
	return &Module{Sources: m.Sources, Handlers: m.Handlers, wasm: m.Wasm}, nil
}}

// pythonFiles builds the files handlers/*.py, with what else is in handlers/.
var pythonFiles = language{compile: func(b *builder, ctx context.Context, s source) (*Module, error) {
	if b.options.Interpreter == nil {
		panic("BUG: handlers in Python are built without an interpreter")
	}
	cache := b.options.privateCache()
	if cache != "" {
		cache = filepath.Join(cache, "python")
	}
	beside, _ := find(b.options.Dir) // which has found this source
	m, found, err := python.Build(ctx, python.Options{
		Dir: b.options.Dir, Schema: b.options.Schema, Interpreter: b.options.Interpreter,
		Other: func(name string) bool { return beside.isOtherThanPython(b.options.Dir, name) },
		Known: knownHandlers(b.options.Dir, b.options.Schema.Python), NoStart: b.options.NoStart, CacheDir: cache, Log: b.options.log,
	})
	b.found.Append(found)
	if err != nil || m == nil {
		return nil, err
	}
	return &Module{Sources: s.files, Handlers: m.Handlers, wasm: m.Wasm, tree: m}, nil
}}

// languages are those of directories handlers/<name>, in the order in which they are tried.
var languages = []language{
	{"a " + buildScript, has(buildScript), (*builder).script, ""},
	{
		"a go.mod", has("go.mod"), (*builder).golang,
		"write the function in Go, or remove the //go:wasmimport that declares it",
	},
	{
		"a Cargo.toml", has("Cargo.toml"), (*builder).rust,
		"write the function in Rust, remove the extern block or the crate that declares it, or link the C library that has it",
	},
	{
		"a package.json that names assemblyscript", isAssemblyScript, (*builder).assemblyScript,
		"write the function, or remove the `declare function` or the @external that declares it",
	},
	// The last, because directories of other languages may have such files too.
	{
		"*.c, *.cc or *.cpp", has("*.c", "*.cc", "*.cpp", "*.cxx"), (*builder).clang,
		"define the function, or link its library: add a line -l<name> to compile_flags.txt (-Wl,--allow-undefined hides missing functions)",
	},
	{"a *.wat", has("*.wat"), (*builder).text, ""},
}

// languageOf returns the language of a directory, or nil.
func languageOf(dir string) *language {
	for i := range languages {
		if languages[i].matches(dir) {
			return &languages[i]
		}
	}
	return nil
}

// has matches a directory with a file that matches one of the patterns.
func has(patterns ...string) func(dir string) bool {
	return func(dir string) bool {
		for _, pattern := range patterns {
			if found, _ := filepath.Glob(filepath.Join(dir, pattern)); len(found) > 0 {
				return true
			}
		}
		return false
	}
}

// markers lists the descriptions of directories in all languages.
func markers() string {
	all := make([]string, len(languages))
	for i, l := range languages {
		all[i] = l.marker
	}
	return strings.Join(all[:len(all)-1], ", ") + " or " + all[len(all)-1]
}

// fromFile makes a module with a compiler that writes a file. compile gets the path to write to, and
// reports whether it succeeded. It may write a source map too (sourceMapOf). Debug information is
// moved to the debug file. The path is not that of the module, because compilers write their output
// in pieces.
func (b *builder) fromFile(s source, compile func(building string) (bool, error)) (*Module, error) {
	out, err := filepath.Abs(filepath.Join(b.options.Dir, "build"))
	if err == nil {
		err = os.MkdirAll(out, 0o755)
	}
	if err != nil {
		return nil, fmt.Errorf("write the module: %w", err)
	}
	building := filepath.Join(out, "."+s.name+".building")
	defer os.Remove(building)
	defer os.Remove(sourceMapOf(building))
	if done, err := compile(building); err != nil || !done {
		return nil, err
	}
	m := &Module{}
	if m.wasm, m.debug, err = readAndSplit(s.path, building); err != nil {
		return nil, err
	}
	return m, nil
}

// sourceMapOf returns the file to which the compiler of AssemblyScript writes the source map of a module.
func sourceMapOf(building string) string {
	return strings.TrimSuffix(building, filepath.Ext(building)) + ".wasm.map"
}

// readAndSplit reads a module that was built, and moves its debug information to a debug file.
func readAndSplit(dir, building string) (module, debug []byte, err error) {
	built, err := os.ReadFile(building)
	if err != nil {
		return nil, nil, fmt.Errorf("read the module: %w", err)
	}
	sourceMap, err := os.ReadFile(sourceMapOf(building))
	if err == nil {
		module, debug, err = symbols.SplitSourceMap(built, sourceMap, func(source string) string { return mappedSource(dir, source) })
	} else if module, debug, err = symbols.Split(built); err != nil {
		return built, nil, nil // it cannot be loaded, which is reported
	}
	return module, debug, err
}

// run runs a command of a language's tools in the directory of a source, with additional environment
// variables. It returns the output of both streams, and whether the command succeeded. An
// error means that the command could not be run or was interrupted.
func (b *builder) run(ctx context.Context, s source, variables []string, command string,
	args ...string) (output string, ok bool, err error) {
	cmd := exec.CommandContext(ctx, command, args...)
	cmd.Dir = filepath.Join(b.options.Dir, s.path)
	cmd.Env = append(environ(), variables...)
	cmd.WaitDelay = time.Second // for the command's own child processes
	var both bytes.Buffer
	cmd.Stdout, cmd.Stderr = &both, &both
	err = cmd.Run()
	if errors.Is(err, exec.ErrWaitDelay) && ctx.Err() == nil {
		err = nil // the command succeeded, and a process that it started still runs: a build server
	}
	if _, ended := errors.AsType[*exec.ExitError](err); ended && ctx.Err() == nil {
		return both.String(), false, nil
	}
	if err != nil {
		return "", false, fmt.Errorf("build %s: %w", s.path, errors.Join(err, ctx.Err()))
	}
	return both.String(), true, nil
}

// environ returns the environment without the app's secrets, which no tool needs.
func environ() []string {
	return slices.DeleteFunc(os.Environ(), func(entry string) bool { return strings.HasPrefix(entry, "RUNNER_SECRETS_") })
}
