package apptest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"runner.example/hostabi"
	"runner.example/internal/clock"
	"runner.example/internal/settings"
	"runner.example/keystore"
	"runner.example/node/app"
	apps "runner.example/runtime"
	"runner.example/runtime/sandbox"
	"runner.example/state/store"
)

// Options are the input of Run. App, Bundle and Runtime are required.
type Options struct {
	App *app.App
	// Bundle is the app: its schema, its modules, and the values of its secrets.
	Bundle *apps.Bundle
	// Runtime are the settings of its server. Run sets the store, the keystore, the logger and the calendar.
	Runtime apps.Options
	// Tests is the module of the test files: typescript.BuildTests makes one.
	Tests []byte
	// Files are the test files, in the order in which they are reported; see Files.
	Files []string
	// Filter selects the tests whose full name it matches; nil: all.
	Filter *regexp.Regexp
	// Timeout limits a test that names no other.
	Timeout time.Duration `default:"5s"`
	// Update writes the snapshots that differ.
	Update bool
	// Seed is what the random values of handlers and tests follow from.
	Seed uint64
	// Parallel is how many files run at once; zero: one for each processor.
	Parallel int
	// Logger gets what is not of one test.
	Logger *slog.Logger
	// Done is called after each file, by one goroutine at a time, in the order of Files; nil: nothing is called.
	Done func(FileResult)
}

// suite is the app that is tested.
type suite struct {
	Options
	host        string // that requests name
	issuer      *issuer
	engine      *sandbox.Engine // of the module of tests
	module      *sandbox.Module
	environment *environment
	seen        observations
}

// Files returns the test files of an app, by their paths in its directory: those below test/ that import
// @runner/test. Tests of other tools are left out.
func Files(dir string) (files []string, err error) {
	root := filepath.Join(dir, "test")
	err = filepath.WalkDir(root, func(path string, d os.DirEntry, err error) error {
		switch {
		case errors.Is(err, os.ErrNotExist) && path == root:
			return nil
		case err != nil:
			return err
		case d.IsDir() && (d.Name() == "node_modules" || strings.HasPrefix(d.Name(), ".")):
			return filepath.SkipDir
		case d.IsDir() || !testFile.MatchString(d.Name()):
			return nil
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		if importsTest.Match(text) {
			name, _ := filepath.Rel(dir, path)
			files = append(files, filepath.ToSlash(name))
		}
		return nil
	})
	slices.Sort(files)
	return files, err
}

var (
	testFile    = regexp.MustCompile(`\.(test|spec)\.[cm]?[jt]sx?$`)
	importsTest = regexp.MustCompile(`["']@runner/test["']`)
)

// Run runs the tests. An error is about the app or the machine; failed tests are in the result.
func Run(ctx context.Context, opt Options) (_ *Result, err error) {
	began := clock.Mark()
	settings.FillZero(&opt)
	b := &suite{Options: opt, host: "localhost"}
	if hosts := opt.Runtime.Front.Hosts; len(hosts) > 0 {
		b.host = hosts[0]
	}
	if b.issuer, err = newIssuer(ctx, opt.Bundle.Schema.Auth.JWT); err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, b.close()) }()
	if err := b.open(ctx); err != nil {
		return nil, err
	}
	result := &Result{Seed: opt.Seed, Files: make([]FileResult, len(opt.Files))}
	b.runFiles(ctx, result)
	result.Coverage = b.seen.coverage(opt.Bundle.Schema)
	result.Seconds = time.Since(began).Seconds()
	return result, context.Cause(ctx)
}

// open starts the app on a store in memory.
func (b *suite) open(ctx context.Context) error {
	w := &environment{app: b, calendar: newCalendar(clock.System()), log: &testLog{}, fetches: newFetches()}
	b.environment = w
	var err error
	if w.store, err = store.Open(store.Options{Clock: w.calendar.Now, Logger: b.Logger}); err != nil {
		return err
	}
	keyOptions := b.App.Config.Keystore
	keyOptions.Dir, keyOptions.PepperFile, keyOptions.Machine, keyOptions.Logger = "", "", w.calendar.machine(), b.Logger
	if w.keys, err = keystore.Open(ctx, w.store, keyOptions); err != nil {
		return err
	}
	opt := b.Runtime
	opt.Store, opt.Keystore, opt.Logger, opt.Calendar, opt.Metrics = w.store, w.keys, b.Logger, w.calendar.Now, nil
	opt.Sandbox.NoBreaker = true // one test would see what another did
	opt.Front.Certificate = nil
	if w.runtime, err = apps.New(opt); err != nil {
		return err
	}
	var loading sync.WaitGroup // beside the app
	var failed error
	loading.Go(func() { failed = b.loadTests(ctx) })
	if err = w.runtime.Activate(ctx, b.Bundle, apps.Activation{}); err != nil {
		err = b.Bundle.Explain(err)
	}
	loading.Wait()
	return errors.Join(err, failed)
}

// loadTests loads the module of the tests, in an engine of its own.
func (b *suite) loadTests(ctx context.Context) (err error) {
	tools := b.App.ToolOptions()
	tools.NoBreaker, tools.Logger = true, b.Logger
	tools.MemoryBytes, tools.TotalMemoryBytes = testMemory, 0
	if b.engine, err = sandbox.New(ctx, tools); err != nil {
		return err
	}
	b.module, err = b.engine.Load(ctx, "test", b.Tests)
	return err
}

// testMemory limits the memory of a test file.
const testMemory = 512 << 20

func (b *suite) close() error {
	var all []error
	if b.module != nil {
		all = append(all, b.module.Close(context.Background()))
	}
	if b.engine != nil {
		all = append(all, b.engine.Close(context.Background()))
	}
	if b.environment != nil {
		all = append(all, b.environment.close())
	}
	return errors.Join(all...)
}

// runFiles runs the files, several at once, and reports them in their order.
func (b *suite) runFiles(ctx context.Context, result *Result) {
	next := make(chan int)
	done := make([]chan struct{}, len(b.Files))
	for i := range done {
		done[i] = make(chan struct{})
	}
	var workers sync.WaitGroup
	for range min(len(b.Files), cmp.Or(b.Parallel, runtime.GOMAXPROCS(0))) {
		workers.Go(func() {
			for i := range next {
				result.Files[i] = b.runFile(ctx, b.Files[i])
				close(done[i])
			}
		})
	}
	go func() {
		defer close(next)
		for i := range b.Files {
			next <- i
		}
	}()
	for i := range b.Files {
		<-done[i]
		if b.Done != nil {
			b.Done(result.Files[i])
		}
	}
	workers.Wait()
}

// runFile runs a file.
func (b *suite) runFile(ctx context.Context, file string) FileResult {
	began := clock.Mark()
	run := &fileRun{app: b, file: file}
	err := ctx.Err()
	if err == nil {
		err = run.all(ctx)
	}
	result := FileResult{
		File: file, Tests: run.results(), Snapshots: run.written, Problem: run.problem, Seconds: time.Since(began).Seconds(),
	}
	if err != nil {
		result.Problem = &Problem{Message: err.Error()}
		if failed, ok := errors.AsType[*fileError](err); ok {
			result.Problem = failed.Problem
		}
	}
	return result
}

// limits are those of the module of a test file, whose author starts it: a mistake ends with the time of the test.
func limits() hostabi.Limits {
	const unlimited = 1 << 40
	return hostabi.Limits{
		CPU: 24 * time.Hour, HostCalls: unlimited, StoreOps: unlimited, MovedBytes: unlimited, LogLines: unlimited, LogBytes: unlimited,
	}
}

var errNoTests = fmt.Errorf("the file has no test: call test(\"what it does\", () => { … })")
