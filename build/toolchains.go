package build

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
)

// toolchain is a language whose own tools make the module build/<name>.wasm of a
// folder handlers/<name>.
type toolchain struct {
	// sign is how people know such a folder, for messages.
	sign string
	// builds reports whether the folder at a path is one of the language.
	builds func(dir string) bool
	// module builds a folder of handlers/. What is wrong with the sources goes to
	// the builder's list, and then there is no module.
	module func(b *builder, ctx context.Context, folder string) (*Module, error)
}

// toolchains are all of them. The first one that knows a folder builds it.
var toolchains = []toolchain{
	{"a go.mod", has("go.mod"), (*builder).goModule},
	{"a Cargo.toml", has("Cargo.toml"), (*builder).rust},
	{"a package.json that names assemblyscript", isAssemblyScript, (*builder).assemblyScript},
	{"*.c, *.cc or *.cpp", has("*.c", "*.cc", "*.cpp", "*.cxx"), (*builder).cModule}, // last: others have such files as well
}

// toolchainOf is the one that builds the folder at a path, nil without any.
func toolchainOf(dir string) *toolchain {
	for i := range toolchains {
		if toolchains[i].builds(dir) {
			return &toolchains[i]
		}
	}
	return nil
}

// has knows a folder by a file whose name fits one of the patterns.
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

// signs tells how folders are known.
func signs() string {
	all := make([]string, len(toolchains))
	for i, t := range toolchains {
		all[i] = t.sign
	}
	return strings.Join(all, " or ")
}

// fromFolder makes the module of a folder: compile is told where to write it, as a
// whole path, and reports whether it did. What is being built is no module yet: a
// compiler writes piece by piece, and what comes of it may not fit.
func (b *builder) fromFolder(folder string, compile func(building string) (bool, error)) (*Module, error) {
	began := time.Now()
	out, err := filepath.Abs(filepath.Join(b.options.Dir, "build"))
	if err == nil {
		err = os.MkdirAll(out, 0o755)
	}
	if err != nil {
		return nil, fmt.Errorf("write the module: %w", err)
	}
	building := filepath.Join(out, "."+folder+".building")
	defer os.Remove(building) // it is gone when all went well
	if done, err := compile(building); err != nil || !done {
		return nil, err
	}
	module, err := os.ReadFile(building)
	if err != nil {
		return nil, fmt.Errorf("read the module: %w", err)
	}
	if !b.fits("handlers/"+folder, "build/"+folder+".wasm", module) {
		return nil, nil
	}
	if err := os.Rename(building, filepath.Join(out, folder+".wasm")); err != nil {
		return nil, fmt.Errorf("write the module: %w", err)
	}
	return &Module{
		File: filepath.Join("build", folder+".wasm"), Sources: []string{"handlers/" + folder},
		Bytes: len(module), Took: time.Since(began),
	}, nil
}

// run runs a command of a toolchain in handlers/<folder> with variables added to
// the environment. It gives what the command said on both of its streams, and
// whether it went well; an error says that it could not be run or was cut off.
func (b *builder) run(ctx context.Context, folder string, variables []string, command string, args ...string) (said string, ok bool, err error) {
	cmd := exec.CommandContext(ctx, command, args...)
	cmd.Dir = filepath.Join(b.options.Dir, "handlers", folder)
	cmd.Env = append(environ(), variables...)
	cmd.WaitDelay = time.Second // for what the command began itself
	var both bytes.Buffer
	cmd.Stdout, cmd.Stderr = &both, &both
	err = cmd.Run()
	if _, ended := errors.AsType[*exec.ExitError](err); ended && ctx.Err() == nil {
		return both.String(), false, nil
	}
	if err != nil {
		return "", false, fmt.Errorf("build handlers/%s: %w", folder, errors.Join(err, ctx.Err()))
	}
	return both.String(), true, nil
}

// environ is the environment without the app's secrets: no tool, and nothing that a
// tool runs for a dependency, has use for them.
func environ() []string {
	return slices.DeleteFunc(os.Environ(), func(entry string) bool { return strings.HasPrefix(entry, "RUNNER_SECRETS_") })
}
