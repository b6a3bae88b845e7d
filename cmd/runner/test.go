package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"runner.example/cmd/runner/cli"
	"runner.example/develop/apptest"
	"runner.example/develop/dev"
	"runner.example/develop/toolchain"
	"runner.example/internal/console"
	"runner.example/internal/diag"
	"runner.example/node"
	"runner.example/node/admin"
	"runner.example/node/app"
	"runner.example/schema"
)

const testHelp = `Build the app and run its tests: the files test/**/*.test.ts and *.test.js that import
@runner/test. Tests send requests to the app, read and write rows as an operator, set the clock,
and answer the requests that handlers send. Handlers may be in any language.

The app runs in this process, without a port. Its routes, credentials, limits, sandboxes, rows and
jobs work as on a server. Each test begins with an empty store, and with the rows that beforeAll of
its file has written. Tests do not see the data of other tests. Secrets have test values; the values
of a server are not read.

Arguments select test files by the end of their paths. --filter is a regular expression that selects
tests by their full names: the names of the describe blocks and of the test, joined by " › ".

The last line has the seed of the run. --seed repeats the random values of a run. --coverage 80 fails
if the tests cover fewer than 80 percent of the access decisions that the schema can make. --rules
lists the decisions.

--from writes a test that repeats a recorded request. The recording is on the node of the app, or on
the node that --to names.

The exit status is 1 if a test failed, and 3 if the app or a test file cannot be built.`

// testFlags are the flags of test.
type testFlags struct {
	filter, junit   string
	update, verbose bool
	watch, rules    bool
	from            string
	coverage        float64
	seed            uint64
	timeout         time.Duration
}

func testCommand(c *program) *cobra.Command {
	var what testFlags
	remote := cli.Remote{UsesApp: true}
	cmd := &cobra.Command{
		Use:   "test [file]...",
		Short: "run the tests of the app",
		Long:  testHelp,
		Example: "  runner test\n  runner test test/orders.test.ts --filter 'open orders'\n" +
			"  runner test --junit report.xml",
		RunE: func(cmd *cobra.Command, args []string) error {
			if what.from != "" {
				return c.testFrom(cmd, remote, what.from)
			}
			if what.watch {
				return c.watchedTest(cmd, what, args)
			}
			a, err := c.ReadAppOnly(cmd)
			if err == nil {
				_, err = c.test(cmd.Context(), a, what, args)
			}
			return err
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&what.filter, "filter", "", "regular expression for the full names of the tests to run")
	flags.BoolVar(&what.update, "update", false, "write snapshots that differ, and delete unused ones")
	flags.BoolVar(&what.verbose, "verbose", false, "print all tests, not only those that failed")
	flags.StringVar(&what.junit, "junit", "", "also write a JUnit XML report to this file")
	flags.Uint64Var(&what.seed, "seed", 0, "seed of the random values (default: a new seed, which is printed)")
	flags.Float64Var(&what.coverage, "coverage", 0, "fail if the tests cover fewer percent of the access decisions of the schema")
	flags.StringVar(&what.from, "from", "", "write a test from the recording of this request (an id) instead of running tests")
	flags.BoolVar(&what.rules, "rules", false, "list the rules of the schema, and whether the tests saw each allow and refuse")
	flags.BoolVar(&what.watch, "watch", false, "run the tests again after each save; only the changed files if all of them are tests")
	flags.DurationVar(&what.timeout, "timeout", 0, "timeout of a test that sets none (default: 5s)")
	cli.CompleteFlag(cmd, "junit", cli.AnyFile)
	remote.AddFlags(cmd)
	return cmd
}

// test builds and tests the app once.
func (c *program) test(ctx context.Context, a *app.App, what testFlags, names []string) (*schema.Schema, error) {
	files, err := testFiles(a.Dir, names)
	if err != nil {
		return nil, err
	}
	s, sources, err := a.Compile()
	if err != nil {
		return nil, err
	}
	tests := c.buildTests(ctx, a, files) // beside the modules
	if _, err = c.buildModules(ctx, a, s); err != nil {
		<-tests
		return s, err
	}
	return s, c.testBuilt(ctx, a, s, sources, what, files, tests)
}

// builtTests is the module of the test files, or why it cannot be built.
type builtTests struct {
	wasm     []byte
	warnings *toolchain.DiagnosticsError
	err      error
	log      []string
}

// buildTests builds the module of the test files, and sends one result.
func (c *program) buildTests(ctx context.Context, a *app.App, files []string) <-chan builtTests {
	done := make(chan builtTests, 1)
	go func() {
		var b builtTests
		b.wasm, b.warnings, b.err = toolchain.BuildTests(ctx, a.Dir, files, func(text string) { b.log = append(b.log, text) })
		done <- b
	}()
	return done
}

// testBuilt tests the app, whose modules are in build/.
func (c *program) testBuilt(ctx context.Context, a *app.App, s *schema.Schema, sources []diag.Source, what testFlags,
	files []string, tests <-chan builtTests) error {
	opt := apptest.Options{
		App: a, Runtime: c.runtimeOptions(a), Files: files, Timeout: what.timeout, Update: what.update, Seed: what.seed,
		Logger: slog.New(slog.DiscardHandler),
	}
	var err error
	if what.filter != "" {
		if opt.Filter, err = regexp.Compile(what.filter); err != nil {
			return console.Invalid("--filter: %v", err)
		}
	}
	if opt.Seed == 0 {
		opt.Seed = uint64(rand.Uint32())
	}
	if opt.Bundle, err = apptest.Bundle(a, s, sources); err != nil {
		return err
	}
	opt.Runtime.Sandbox.CacheDir = a.ToolOptions().CacheDir
	built := <-tests
	for _, text := range built.log {
		c.Say("log: ", text)
	}
	if built.err != nil {
		return c.buildFailure("the tests", built.err)
	}
	if built.warnings != nil {
		if err := c.PrintDiagnostics(c.Stderr, built.warnings.Sources, built.warnings.List.Excerpt()); err != nil {
			return err
		}
	}
	opt.Tests = built.wasm
	report := &apptest.Reporter{Out: c.Stdout, Color: c.ColorOut, Dir: a.Dir, Verbose: what.verbose}
	if !c.JSON {
		opt.Done = report.File
	}
	result, err := apptest.Run(ctx, opt)
	if err != nil {
		return err
	}
	return c.finishTests(result, what, report)
}

// watchedTest tests the app, and again after each save.
func (c *program) watchedTest(cmd *cobra.Command, what testFlags, names []string) error {
	also := []string{filepath.Join(c.App, dev.TestsDir)}
	return dev.Watch(cmd.Context(), c.App, c.configPath(cmd), also, func(changed []string) *schema.Schema {
		if len(changed) > 0 {
			c.Say("", console.FewOf(changed)+" changed")
		}
		a, err := c.ReadAppOnly(cmd)
		var s *schema.Schema
		if err == nil {
			s, err = c.test(cmd.Context(), a, what, testsToRun(a.Dir, changed, names))
		}
		if err != nil && cmd.Context().Err() == nil {
			c.report(err)
		}
		return s
	})
}

// testsToRun returns the changed files if all of them are test files, and otherwise names. The paths are relative to the
// app directory.
func testsToRun(dir string, changed, names []string) []string {
	all, err := apptest.Files(dir)
	if err != nil || len(changed) == 0 || slices.ContainsFunc(changed, func(name string) bool { return !slices.Contains(all, name) }) {
		return names
	}
	return changed
}

// testInDev returns the function that runs the tests for runner dev. It returns what the tests print.
func (c *program) testInDev(cmd *cobra.Command) func(context.Context, []string) string {
	return func(ctx context.Context, changed []string) string {
		var out bytes.Buffer
		own := *c.CLI
		own.Stdout, own.Stderr, own.JSON = &out, &out, false
		dev := &program{&own}
		a, err := dev.ReadAppOnly(cmd)
		if err == nil {
			var s *schema.Schema
			var sources []diag.Source
			var files []string
			if files, err = testFiles(a.Dir, testsToRun(a.Dir, changed, nil)); err == nil {
				if s, sources, err = a.Compile(); err == nil {
					err = dev.testBuilt(ctx, a, s, sources, testFlags{}, files, dev.buildTests(ctx, a, files))
				}
			}
		}
		if err != nil {
			dev.report(err)
		}
		return out.String()
	}
}

// finishTests writes the reports of a run, and returns the error of the command.
func (c *program) finishTests(result *apptest.Result, what testFlags, report *apptest.Reporter) error {
	if what.junit != "" {
		if err := writeJUnit(what.junit, result); err != nil {
			return err
		}
	}
	if c.JSON {
		if err := c.PrintJSON(result); err != nil {
			return err
		}
	} else {
		if err := c.printCoverage(result.Coverage, what.rules); err != nil {
			return err
		}
		report.Summary(result)
	}
	n := result.Counts()
	switch {
	case what.filter != "" && n.Passed+n.Failed+n.Files == 0:
		return &console.Failure{Status: console.StatusNotFound, Err: fmt.Errorf("no test has a name that matches --filter %q", what.filter)}
	case n.Files > 0:
		return errors.New(console.Plural(n.Files, "test file") + " failed outside of a test")
	case n.Failed > 0:
		return errors.New(console.Plural(n.Failed, "test") + " failed")
	case result.Coverage.Percent() < what.coverage:
		return fmt.Errorf("the tests cover %.1f %% of the access decisions of the schema, fewer than --coverage %g",
			result.Coverage.Percent(), what.coverage)
	}
	return nil
}

// printCoverage prints how many access decisions of the schema the tests saw, and with all each rule.
func (c *program) printCoverage(found *apptest.Coverage, all bool) error {
	if found.Of == 0 {
		return nil
	}
	if all {
		if err := c.Print("\n"); err != nil {
			return err
		}
		if err := c.PrintTable([]string{"part", "rule", "allowed", "refused"}, found.Rows(), "the schema has no rules"); err != nil {
			return err
		}
	}
	hint := ""
	if !all {
		hint = "; --rules lists them"
	}
	return c.Print(fmt.Sprintf("\ncoverage: %d of %d access decisions of the schema (%.0f %%)%s\n",
		found.Seen, found.Of, found.Percent(), hint))
}

func writeJUnit(path string, result *apptest.Result) error {
	file, err := os.Create(path)
	if err != nil {
		return fmt.Errorf("--junit: %w", err)
	}
	return errors.Join(result.WriteJUnit(file), file.Close())
}

// testFrom writes a test file from the recording of request id.
func (c *program) testFrom(cmd *cobra.Command, remote cli.Remote, id string) error {
	return c.OnRemote(cmd, remote, node.Task{Do: func(ctx context.Context, node *admin.Client) error {
		recorded, err := node.ShowRecorded(ctx, id)
		if err != nil {
			return err
		}
		a, err := c.ReadAppOnly(cmd)
		if err != nil {
			return err
		}
		s, _, err := a.Compile()
		if err != nil {
			return err
		}
		name, text := apptest.FromRecording(recorded, s)
		path := filepath.Join(a.Dir, filepath.FromSlash(name))
		if _, err := os.Lstat(path); err == nil {
			return console.Invalid("%s already exists: delete it first", name)
		}
		c.WritesApp()
		if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
			return err
		}
		if err := os.WriteFile(path, text, 0o666); err != nil {
			return err
		}
		return c.Print(name + "\n")
	}})
}

// testFiles returns the test files of an app, or those whose paths end with one of the names.
func testFiles(dir string, names []string) ([]string, error) {
	all, err := apptest.Files(dir)
	if err != nil {
		return nil, err
	}
	if len(all) == 0 {
		return nil, &console.Failure{
			Status: console.StatusNotFound, Err: errors.New("no tests found: no file below test/ imports @runner/test"),
			Hint: "create test/app.test.ts; runner new writes an example",
		}
	}
	if len(names) == 0 {
		return all, nil
	}
	var chosen []string
	for _, name := range names {
		found := false
		for _, file := range all {
			if strings.HasSuffix("/"+file, "/"+strings.TrimPrefix(filepath.ToSlash(name), "./")) {
				found = true
				if !slices.Contains(chosen, file) {
					chosen = append(chosen, file)
				}
			}
		}
		if !found {
			return nil, &console.Failure{
				Status: console.StatusNotFound,
				Err:    fmt.Errorf("%s is not one of the test files: %s", name, strings.Join(all, ", ")),
			}
		}
	}
	return chosen, nil
}
