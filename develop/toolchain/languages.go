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

	"runner.example/internal/clock"
	"runner.example/internal/diag"
	"runner.example/internal/symbols"
)

// toolchain builds the module build/<name>.wasm from a directory handlers/<name> with the
// tools of one language.
type toolchain struct {
	// marker describes such a directory in messages.
	marker string
	// builds reports whether a directory is written in this language.
	builds func(dir string) bool
	// module builds a directory of handlers/. Errors in the sources are added to the
	// builder's list; then there is no module.
	module func(b *builder, ctx context.Context, name string) (*Module, error)
}

// toolchains are all supported toolchains, in the order in which they are tried.
var toolchains = []toolchain{
	{"a go.mod", has("go.mod"), (*builder).goModule},
	{"a Cargo.toml", has("Cargo.toml"), (*builder).rust},
	{"a package.json that names assemblyscript", isAssemblyScript, (*builder).assemblyScript},
	{"*.c, *.cc or *.cpp", has("*.c", "*.cc", "*.cpp", "*.cxx"), (*builder).cModule}, // last, because directories of other languages may have such files too
}

// toolchainOf returns the toolchain for a directory, or nil.
func toolchainOf(dir string) *toolchain {
	for i := range toolchains {
		if toolchains[i].builds(dir) {
			return &toolchains[i]
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

// markers lists the descriptions of all toolchains.
func markers() string {
	all := make([]string, len(toolchains))
	for i, t := range toolchains {
		all[i] = t.marker
	}
	return strings.Join(all, " or ")
}

// fromDirectory builds the module of a directory. compile gets the path to write to, and
// reports whether it succeeded. It may write a source map too (sourceMapOf). Debug information is moved to the
// debug file. Files are written only when the module is complete and can be loaded, because compilers write
// their output in pieces.
func (b *builder) fromDirectory(name string, compile func(building string) (bool, error)) (*Module, error) {
	began := clock.Mark()
	out, err := filepath.Abs(filepath.Join(b.options.Dir, "build"))
	if err == nil {
		err = os.MkdirAll(out, 0o755)
	}
	if err != nil {
		return nil, fmt.Errorf("write the module: %w", err)
	}
	building := filepath.Join(out, "."+name+".building")
	defer os.Remove(building)
	defer os.Remove(sourceMapOf(building))
	if done, err := compile(building); err != nil || !done {
		return nil, err
	}
	m := &Module{File: filepath.Join("build", name+".wasm"), Sources: []string{"handlers/" + name}}
	if m.wasm, m.debug, err = readAndSplit(name, building); err != nil {
		return nil, err
	}
	if !b.loadable("handlers/"+name, "build/"+name+".wasm", m.wasm) {
		return nil, nil
	}
	if len(m.debug) > maxDebugBytes {
		b.found.Warnf("", diag.Span{File: "handlers/" + name}, "its debug information has %d MiB, and a debug file can have at most %d MiB: frames of failures will have no lines", len(m.debug)>>20, maxDebugBytes>>20)
		m.debug = nil
	}
	m.Bytes, m.Took = len(m.wasm), time.Since(began)
	return m, nil
}

// sourceMapOf returns the file to which the compiler of AssemblyScript writes the source map of a module.
func sourceMapOf(building string) string {
	return strings.TrimSuffix(building, filepath.Ext(building)) + ".wasm.map"
}

// maxDebugBytes limits debug files.
const maxDebugBytes = symbols.MaxDebugBytes

// readAndSplit reads a module that was built, and moves its debug information to a debug file.
func readAndSplit(name, building string) (module, debug []byte, err error) {
	built, err := os.ReadFile(building)
	if err != nil {
		return nil, nil, fmt.Errorf("read the module: %w", err)
	}
	sourceMap, err := os.ReadFile(sourceMapOf(building))
	if err == nil {
		module, debug, err = symbols.SplitSourceMap(built, sourceMap, func(source string) string { return mappedSource(name, source) })
	} else if module, debug, err = symbols.Split(built); err != nil {
		return built, nil, nil // it cannot be loaded, which is reported
	}
	return module, debug, err
}

// run runs a command of a toolchain in handlers/<name>, with additional environment
// variables. It returns the output of both streams, and whether the command succeeded. An
// error means that the command could not be run or was interrupted.
func (b *builder) run(ctx context.Context, name string, variables []string, command string, args ...string) (output string, ok bool, err error) {
	cmd := exec.CommandContext(ctx, command, args...)
	cmd.Dir = filepath.Join(b.options.Dir, "handlers", name)
	cmd.Env = append(environ(), variables...)
	cmd.WaitDelay = time.Second // for the command's own child processes
	var both bytes.Buffer
	cmd.Stdout, cmd.Stderr = &both, &both
	err = cmd.Run()
	if _, ended := errors.AsType[*exec.ExitError](err); ended && ctx.Err() == nil {
		return both.String(), false, nil
	}
	if err != nil {
		return "", false, fmt.Errorf("build handlers/%s: %w", name, errors.Join(err, ctx.Err()))
	}
	return both.String(), true, nil
}

// environ returns the environment without the app's secrets, which no tool needs.
func environ() []string {
	return slices.DeleteFunc(os.Environ(), func(entry string) bool { return strings.HasPrefix(entry, "RUNNER_SECRETS_") })
}
