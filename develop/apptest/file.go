package apptest

import (
	"context"
	"errors"
	"log/slog"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"time"

	"runner.example/develop/toolchain/typescript"
	"runner.example/hostabi"
	"runner.example/hostabi/abi"
	"runner.example/hostabi/recording"
	"runner.example/internal/caller"
	"runner.example/internal/fault"
)

// declared is a test as its file declares it.
type declared struct {
	Name   []string `json:"name"` // of its describe blocks, and its own
	Line   int      `json:"line"`
	Column int      `json:"column"`
	File   string   `json:"file"` // that has its call, empty: the test file
	Mode   string   `json:"mode"` // run, skip, only or todo
}

func (d declared) fullName() string { return strings.Join(d.Name, " › ") }

// fileRun is the run of a test file: of its module, and again after a test that had to be stopped.
type fileRun struct {
	app         *suite
	file        string
	snapshots   map[string]string // as the file has them
	written     int
	problem     *Problem // of a hook afterAll
	snapshotErr error    // why the snapshots could not be written

	mu      sync.Mutex
	tests   []declared
	done    map[int]TestResult
	rest    []int // that the present run of the module runs; nil: it asks
	running int   // the test; -1: none
	began   time.Time
}

// all runs the file. The error is about the file as a whole.
func (r *fileRun) all(ctx context.Context) error {
	var err error
	if r.snapshots, err = readSnapshots(r.snapshotFile()); err != nil {
		return err
	}
	r.done, r.running = map[int]TestResult{}, -1
	for {
		stopped, err := r.once(ctx)
		switch {
		case err != nil && ctx.Err() != nil:
			return context.Cause(ctx)
		case err == nil:
			if len(r.tests) == 0 {
				return errNoTests
			}
			return r.snapshotErr
		case !stopped:
			return err
		}
		if r.rest = slices.DeleteFunc(r.chosen(), func(i int) bool { _, done := r.done[i]; return done }); len(r.rest) == 0 {
			return nil
		}
	}
}

// once runs the module once. stopped says that a test failed with err, as the run of the module ended, and that the others
// can still run.
func (r *fileRun) once(ctx context.Context) (stopped bool, err error) {
	w, err := r.app.environment.fork(ctx, r.file)
	if err != nil {
		return false, err
	}
	run, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	s := &session{run: r, stop: stop, bases: []*environment{w}}
	host := hostabi.NewHost(hostabi.Host{
		Test: s.answerTest, Logger: slog.New(output{s}), Limits: limits(), Schema: r.app.Bundle.Schema,
	})
	call := &hostabi.Call{Input: hostabi.Input{
		Context: run, Host: host, Attempt: 1, Caller: caller.Caller{Kind: caller.System, UserID: "test"},
		Request: &abi.Request{ID: "00000000000000000000000000", Method: []byte("POST"), Path: []byte("/"), Route: "/", Body: []byte("{}")},
		Address: netip.AddrFrom4([4]byte{127, 0, 0, 1}), Draws: &recording.Draws{Seeds: newSeeds(r.app.Seed, r.file).next},
	}}
	err = r.app.module.Run(call, typescript.TestHandler)
	failure, _ := call.Failures()
	if err == nil && call.Response.Status >= 400 {
		err = errors.New("the file failed: " + string(call.Response.Body))
	}
	if err != nil && failure != nil {
		problem := &Problem{Message: failure.Message}
		for _, frame := range failure.Frames {
			problem.Stack = append(problem.Stack, frame.String())
		}
		err = &fileError{problem}
	}
	if cause := context.Cause(run); err != nil && cause != nil && ctx.Err() == nil {
		err = cause
	}
	r.mu.Lock()
	test, began := r.running, r.began
	r.running = -1
	r.mu.Unlock()
	if err != nil && test >= 0 && ctx.Err() == nil { // it did not end
		problem := &Problem{Message: err.Error(), Place: r.placeOf(test)}
		if failed, ok := errors.AsType[*fileError](err); ok {
			problem = failed.Problem
		}
		r.add(test, TestResult{
			Status: Failed, Problem: problem, Seconds: time.Since(began).Seconds(), Output: s.takeOutput(),
		}, s.test)
		stopped = true
	}
	if f := fault.Of(err); err != nil && f.Cause != nil && !stopped {
		err = f.Cause
	}
	return stopped, errors.Join(err, s.close())
}

// fileError is the failure of a file outside of its tests.
type fileError struct{ *Problem }

func (e *fileError) Error() string { return e.Message }

// choose decides which of the tests run.
func (r *fileRun) choose(tests []declared) []int {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.tests = tests
	if r.rest != nil {
		return r.rest
	}
	return r.chosenLocked()
}

func (r *fileRun) chosen() []int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.chosenLocked()
}

func (r *fileRun) chosenLocked() (run []int) {
	run = []int{}
	only := slices.ContainsFunc(r.tests, func(d declared) bool { return d.Mode == "only" })
	for i, d := range r.tests {
		if (d.Mode == "only" || d.Mode == "run" && !only) && (r.app.Filter == nil || r.app.Filter.MatchString(d.fullName())) {
			run = append(run, i)
		}
	}
	return run
}

func (r *fileRun) begin(test int, began time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.running, r.began = test, began
}

// end records how a test has ended.
func (r *fileRun) end(test int, status Status, problem *Problem, w *environment, output []string) {
	r.mu.Lock()
	took := time.Since(r.began)
	r.running = -1
	r.mu.Unlock()
	if unexpected := w.fetches.takeUnexpected(); len(unexpected) > 0 {
		status = Failed
		text := "a handler sent a request that the test does not answer with outbound.on:\n" + strings.Join(unexpected, "\n")
		if problem == nil {
			problem = &Problem{Place: r.placeOf(test), Message: text}
		} else {
			problem.Message += "\n" + text
		}
	}
	r.add(test, TestResult{Status: status, Problem: problem, Seconds: took.Seconds(), Output: output}, w)
}

// fail records a failure outside of the tests.
func (r *fileRun) fail(problem *Problem) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.problem = problem
}

// nameOf returns the file and the name of a test.
func (r *fileRun) nameOf(test int) string {
	r.mu.Lock()
	defer r.mu.Unlock()
	if test >= len(r.tests) {
		return r.file
	}
	return r.file + " " + r.tests[test].fullName()
}

func (r *fileRun) placeOf(test int) *Place {
	r.mu.Lock()
	defer r.mu.Unlock()
	if test >= len(r.tests) {
		return nil
	}
	d := r.tests[test]
	return &Place{File: r.fileOf(d), Line: d.Line, Column: d.Column}
}

func (r *fileRun) fileOf(d declared) string {
	if d.File != "" {
		return d.File
	}
	return r.file
}

func (r *fileRun) add(test int, result TestResult, w *environment) {
	if result.Status == Failed && w != nil {
		result.Log = w.log.lines()
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.done[test] = result
}

// results returns the tests of the file, in their order.
func (r *fileRun) results() (all []TestResult) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for i, d := range r.tests {
		result, done := r.done[i]
		if !done {
			result.Status = Skipped
			if d.Mode == "todo" {
				result.Status = Todo
			}
		}
		result.Name, result.Place = d.Name, Place{File: r.fileOf(d), Line: d.Line, Column: d.Column}
		all = append(all, result)
	}
	return all
}
