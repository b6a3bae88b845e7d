package main

import (
	"context"
	"errors"
	"fmt"
	"os/signal"
	"time"

	"github.com/spf13/cobra"

	"runner.example/cmd/runner/cli"
	"runner.example/develop/toolchain"
	"runner.example/develop/toolchain/python"
	"runner.example/internal/clock"
	"runner.example/internal/console"
	"runner.example/internal/diag"
	"runner.example/internal/system/process"
	"runner.example/node/app"
	"runner.example/schema"
)

const buildHelp = `Build the handlers of an app into modules in its directory build:

  handlers/*.ts, *.js         are built into one module, build/<app>.wasm, without other
                              tools; so are *.mts, *.cts, *.tsx, *.mjs, *.cjs and *.jsx,
                              but not *.d.ts, *.test.ts and *.spec.ts
  handlers/*.py               are built into build/python.wasm, which is CPython, and its files
                              build/python: with the packages of handlers/requirements.txt, or
                              of the directory python_packages
  handlers/<name>/            is built into build/<name>.wasm by the toolchain of its
                              language: Go with a go.mod, cargo with a Cargo.toml, the
                              AssemblyScript compiler with a package.json that names
                              assemblyscript, clang with *.c, *.cc or *.cpp, wat2wasm with
                              one *.wat. Or its build.sh builds it, in any language: the script
                              runs as your user, and writes the module to "$OUT"

Beside a module in C, C++, Rust or AssemblyScript it writes build/<name>.debug, with the lines for
the record of a failure. This file is part of a release, and is read only when a handler fails.

Before all this, the line [build] command of runner.toml is run in the app directory, such as
"npm run build": by sh, on Windows by cmd. Its output is shown, and if it fails, nothing is built.

Any other build/*.wasm is served too, including WASI programs, which get a request and
answer it like CGI programs.

A warning (W554) reports random values that a module draws before its first request: every request
gets the same ones. "module <name> { fresh: true }" in the schema initializes a module in each request.

If the app has the package typescript in node_modules, and a tsconfig.json, the type checker runs
too, and its errors are reported (TS2322 and the like); the modules are built all the same.

<app> is the app name in the schema, otherwise the name of the directory. Errors are
reported with their places. The exit status is 3 after an error, when a route has no
handler, or when two modules export it. Modules of deleted sources are removed.

The first build of TypeScript takes 0.7 to 2 s, because it compiles the JavaScript engine
and stores it in your cache directory (runner/engine in $XDG_CACHE_HOME or ~/.cache).
Later builds take less than 0.3 s. The first build of Python takes some ten seconds in the same
way (runner/code), later ones less than a second.`

// builtRow is one module of `runner build --json`.
type builtRow struct {
	Module  string   `json:"module"`
	Sources []string `json:"sources"`
	// Handlers are the handlers of a module in TypeScript or Python; null for other modules.
	Handlers []string `json:"handlers"`
	Bytes    int      `json:"bytes"`
	Seconds  float64  `json:"seconds"`
}

func buildCommand(c *program) *cobra.Command {
	return &cobra.Command{
		Use:   "build [dir]",
		Short: "build the handlers into modules",
		Long:  buildHelp,
		Args:  cli.AtMost(1, "one directory"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := c.AppDir(cmd, args); err != nil {
				return err
			}
			a, err := c.ReadAppOnly(cmd)
			if err != nil {
				return err
			}
			if err := c.runBuildCommand(cmd.Context(), a); err != nil {
				return err
			}
			return c.build(cmd.Context(), a)
		},
	}
}

// runBuildCommand runs the build command of the configuration, if there is one. What it prints goes to stderr.
func (c *program) runBuildCommand(ctx context.Context, a *app.App) error {
	command := a.Config.Development.BuildCommand
	if command == "" {
		return nil
	}
	c.WritesApp()
	ctx, stop := signal.NotifyContext(ctx, process.Terminate) // the processes of the command end too
	defer stop()
	began := clock.Mark()
	c.Say("", "running "+console.Harmless(command))
	if err := toolchain.RunCommand(ctx, a.Dir, command, c.Stderr); err != nil {
		return err
	}
	c.Say("", fmt.Sprintf("build command finished after %s", time.Since(began).Round(time.Millisecond)))
	return nil
}

// build builds the handlers, checks the modules, and prints what was built.
func (c *program) build(ctx context.Context, a *app.App) error {
	s, sources, err := a.Compile()
	if err != nil {
		return err
	}
	modules, err := c.buildModules(ctx, a, s)
	if err != nil {
		return err
	}
	exports, programs, err := toolchain.ExportsAndPrograms(a.Dir, handlersOf(s)...)
	if err != nil {
		var all []error
		for _, one := range console.Parts(err) {
			all = append(all, &console.Failure{Status: console.StatusInvalid, Err: one})
		}
		return errors.Join(append([]error{printBuilt(&c.Console, modules)}, all...)...)
	}
	unbound := s.CheckHandlers(exports, programs...)
	python.ExplainUnbound(a.Dir, s, unbound)
	unbound.Append(s.CheckModules(a.ModuleNames()))
	unbound.Append(a.CheckTrees(s))
	types, err := c.checkTypes(ctx, a.Dir)
	if err != nil {
		return errors.Join(printBuilt(&c.Console, modules), err)
	}
	var wrong []*console.Problems
	if unbound.HasErrors() {
		what := "the modules do not match the schema: " + console.Counted(unbound)
		wrong = append(wrong, &console.Problems{What: what, Sources: sources, List: unbound})
	}
	if len(types.List) > 0 {
		what := "the handlers have type errors: " + console.Counted(types.List)
		wrong = append(wrong, &console.Problems{What: what, Sources: types.Sources, List: types.List})
	}
	if len(wrong) > 0 {
		return c.invalidBuild(modules, wrong)
	}
	drawn, err := a.FindDraws(ctx, s)
	if err == nil {
		err = c.PrintDiagnostics(c.Stderr, nil, drawn.Excerpt())
	}
	return errors.Join(err, printBuilt(&c.Console, modules))
}

// invalidBuild reports what is wrong about modules that were built: with --json it is the document, instead of them.
func (c *program) invalidBuild(modules []*toolchain.Module, wrong []*console.Problems) error {
	if !c.JSON {
		all := []error{printBuilt(&c.Console, modules)}
		for _, one := range wrong {
			all = append(all, one)
		}
		return errors.Join(all...)
	}
	var list diag.List
	all := []error{nil}
	for _, one := range wrong {
		list.Append(one.List)
		all = append(all, console.Invalid("%s", one.What))
	}
	all[0] = c.PrintJSON(list.Excerpt())
	return errors.Join(all...)
}

// checkTypes returns the errors that the type checker of TypeScript finds in the handlers of an app, or says why it does not run.
func (c *program) checkTypes(ctx context.Context, dir string) (toolchain.DiagnosticsError, error) {
	found, missing, err := toolchain.CheckTypes(ctx, dir)
	if missing != "" {
		c.Say("", missing)
	}
	if found == nil {
		found = &toolchain.DiagnosticsError{}
	}
	return *found, err
}

// handlersOf returns the names of the handlers that the routes of a schema call.
func handlersOf(s *schema.Schema) (names []string) { return s.HandlersOfRoutes() }

// buildModules builds the handlers into modules. It writes to stderr alone, except errors in sources with --json.
func (c *program) buildModules(ctx context.Context, a *app.App, s *schema.Schema) (modules []*toolchain.Module, err error) {
	c.WritesApp()
	name, err := a.Name(s)
	if err != nil {
		return nil, err
	}
	if err := app.RefreshTypes(a.Dir, s); err != nil {
		return nil, err
	}
	interpreter := python.NewInterpreter(a.ToolOptions(), func(text string) { c.Say("", text) })
	defer func() { err = errors.Join(err, interpreter.Close(context.WithoutCancel(ctx))) }()
	options := toolchain.Options{
		Dir: a.Dir, Name: name, CacheDir: toolchain.EngineCache(), MemoryBytes: a.Config.Runtime.Sandbox.MemoryBytes,
		Schema: s, Interpreter: interpreter, Handlers: handlersOf(s),
		Log: func(text string) { c.Say("log: ", text) },
	}
	options.Built = func(m *toolchain.Module) {
		c.Say("", fmt.Sprintf("built %s in %s", m.File, m.Took.Round(time.Millisecond)))
	}
	options.Removed = func(file string) { c.Say("", "removed "+file+": its source was deleted") }
	modules, warnings, err := toolchain.Build(ctx, options)
	if err != nil {
		return nil, c.buildFailure("the handlers", err)
	}
	if warnings != nil {
		err = c.PrintDiagnostics(c.Stderr, warnings.Sources, warnings.List.Excerpt())
	}
	return modules, err
}

// buildFailure reports problems of what was built as check does: with --json they are the document.
func (c *program) buildFailure(what string, err error) error {
	if wrong, ok := errors.AsType[*toolchain.DiagnosticsError](err); ok {
		what += " cannot be built: " + console.Counted(wrong.List)
		if !c.JSON {
			return &console.Problems{What: what, Sources: wrong.Sources, List: wrong.List}
		}
		return errors.Join(c.PrintJSON(wrong.List.Excerpt()), console.Invalid("%s", what))
	}
	if errors.Is(err, toolchain.ErrNothing) {
		return &console.Failure{
			Status: console.StatusInvalid, Err: err, Hint: "write handlers/hello.ts, or name the app directory",
		}
	}
	return err
}

func printBuilt(c *console.Console, modules []*toolchain.Module) error {
	if c.JSON {
		rows := make([]builtRow, len(modules))
		for i, m := range modules {
			rows[i] = builtRow{m.File, m.Sources, m.Handlers, m.Bytes, m.Took.Seconds()}
		}
		return c.PrintJSON(rows)
	}
	var rows [][]string
	for _, m := range modules {
		rows = append(rows, []string{m.File, console.FewOf(m.Sources), fmt.Sprintf("%d KiB", m.Bytes>>10)})
	}
	return c.PrintTable([]string{"module", "of", "size"}, rows, "nothing was built")
}
