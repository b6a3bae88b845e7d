package sandbox

import (
	"context"
	"crypto/rand"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/tetratelabs/wazero/api"

	"runner.example/hostabi"
	"runner.example/hostabi/abi"
	"runner.example/hostabi/recording"
	"runner.example/internal/clock"
	"runner.example/internal/fault"
	"runner.example/internal/wasm"
	"runner.example/runtime/capture"
	"runner.example/runtime/compile"
)

// A program, which exports _start, may wait for its requests: it calls request_next. Then it runs once up to
// that call. Its memory, globals and native stack are kept, and each request continues from there in
// a sandbox of its own. The State of package capture has the stack, and the image has the memory.
//
// The stack is known only if two starts left the same (see package capture), so the program starts
// twice, side by side: both starts read the same times and random bytes.

// waiting is a program that waits for a request.
type waiting struct {
	*hostabi.Waiting
	state *capture.State
	depth uint64 // of the active calls, as the module counts it
}

// startStack limits the stack with which a program waits. Each sandbox keeps up to four times of it (see
// Module.keptStack), and no budget counts it.
const startStack = 256 << 10

// waits reports whether the program calls request_next.
func (p *program) waits(m *wasm.Module) bool {
	return p.Command && slices.ContainsFunc(m.Imports(), func(i wasm.Import) bool {
		return i.Module == abi.Module && i.Name == "request_next"
	})
}

// started is one start of a program.
type started struct {
	sandbox *sandbox
	asked   bool // it opened the file that calls the host
	waiting *hostabi.Waiting
	call    *capture.Capture
	depth   uint64
	drawn   recording.Drawn
}

// startProgram starts the program twice, and keeps the state in which it waits. It returns false if the program is a
// CGI program, which does not wait.
func (m *Module) startProgram(load context.Context, with *Program) (waits bool, err error) {
	e := m.engine
	timeout, must := e.options.InitTime, m.program.Waits
	if with != nil && with.Timeout > 0 {
		timeout, must = with.Timeout, true
	}
	if problem := m.cannotWait(); problem != nil {
		if must {
			return false, problem
		}
		return false, nil
	}
	first, second, err := m.startTwice(load, timeout, must)
	if err != nil || first == nil {
		return false, err
	}
	kept := false
	defer func() {
		if !kept {
			first.sandbox.discard()
		}
		second.sandbox.discard()
	}()
	state, err := capture.Compare(first.call, second.call)
	switch {
	case err != nil:
		return false, refuse("waits for requests, and cannot be continued: two starts of it did not do the same: %v", err)
	case state.Size().Stack > startStack:
		return false, refuse("waits for requests with %d KiB of active calls, the limit is %d KiB: call request_next in fewer calls",
			state.Size().Stack>>10, startStack>>10)
	case !slices.Equal(first.waiting.Handlers, second.waiting.Handlers), first.depth != second.depth:
		return false, refuse("waits for requests, and cannot be continued: two starts of it did not do the same")
	}
	m.drawn = first.drawn
	m.waiting = &waiting{first.waiting, state, first.depth}
	if m.handlers = first.waiting.Handlers; m.handlers == nil {
		m.handlers = []string{commandName(m.name)}
	}
	if err := m.keep(first.sandbox); err != nil {
		if errors.Is(err, errNoMemory) {
			return false, noMemory()
		}
		return false, err
	}
	kept = true
	m.pool.add(first.sandbox)
	m.program.dropData() // it is in the image
	return true, nil
}

// startTwice starts the program twice, side by side if there is memory for two of the largest. It returns nil if the
// program is a CGI program and may be one.
func (m *Module) startTwice(load context.Context, timeout time.Duration, must bool) (first, second *started, err error) {
	input := newStartInput()
	if m.repeats != nil && m.repeats.Program != nil {
		input = hostabi.RepeatedStart(m.repeats)
	}
	ctx, cancel := context.WithCancel(load)
	defer cancel()
	var secondErr error
	startSecond := func() {
		second, secondErr = m.startOnce(ctx, input, timeout, slog.New(slog.DiscardHandler)) // its log is the same
	}
	var other sync.WaitGroup
	limit, used := m.engine.Memory()
	beside := limit-used-m.engine.memory.reserve >= 2*int64(m.memoryBytes())
	if beside {
		other.Go(startSecond)
	}
	first, err = m.startOnce(load, input, timeout, m.engine.options.Logger)
	cgi := first != nil && !first.asked && !must
	switch {
	case cgi, err != nil:
		cancel()
	case !beside:
		startSecond()
	}
	other.Wait()
	if first != nil {
		first.drawn = input.Drawn()
	}
	switch {
	case err != nil && second != nil && secondErr == nil:
		second.sandbox.discard()
	case err == nil && secondErr != nil:
		first.sandbox.discard()
		err = secondErr
	}
	if cgi {
		return nil, nil, nil
	}
	return first, second, err
}

func newStartInput() *hostabi.StartInput {
	var seed [32]byte
	_, _ = rand.Read(seed[:]) // never fails
	return hostabi.NewStartInput(seed, clock.System())
}

// cannotWait says why the program cannot be continued.
func (m *Module) cannotWait() error {
	const begin = "waits for requests, and cannot be continued: "
	switch {
	case !capture.Available():
		return refuse(begin+"%v", capture.ErrUnavailable)
	case m.fresh:
		return refuse(begin + "the schema says that it is fresh")
	case len(m.program.Unrestorable) > 0:
		return refuse(begin+"it %s", strings.Join(m.program.Unrestorable, "; "))
	case !m.engine.optimizations.programs:
		return refuse(begin + "a self-test failed: see the line with optimization=programs in the log")
	}
	return nil
}

// startOnce starts the program in a sandbox of its own.
func (m *Module) startOnce(
	load context.Context, input *hostabi.StartInput, timeout time.Duration, log *slog.Logger) (result *started, err error) {
	ctx, cancel := context.WithTimeout(load, timeout)
	defer cancel()
	last := &lastLines{Handler: log.Handler()}
	call := &hostabi.Call{Input: hostabi.Input{Context: ctx, Host: hostabi.NewHost(hostabi.Host{
		Logger: slog.New(last),
		Limits: hostabi.StartLimits(timeout),
	})}}
	call.Begin()
	s, err := m.boot(call)
	if errors.Is(err, errNoMemory) {
		return nil, noMemory()
	} else if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			s.discard()
		}
	}()
	result = &started{sandbox: s}
	program := s.function(exportStart)
	start := &hostabi.Start{StartInput: input, Waits: func(w *hostabi.Waiting) (err error) {
		if s.running != program {
			return refuse("calls request_next before _start: call it in _start, or in what _start calls")
		}
		result.waiting, result.depth = w, s.depth.Get()
		result.call, err = capture.Take(program)
		return err
	}}
	call.BeginStart(m.start, start)
	s.begin(claim{call: call}, &m.initializing)
	for _, name := range m.program.First {
		if err = s.invoke(s.function(name)); err != nil {
			break
		}
	}
	if err == nil {
		s.enter(program)
		err = s.checkStack(s.leave(capture.Call(&s.guest, program)))
	}
	s.end()
	call.End()
	result.asked = m.program.Waits || call.OpenedHostFile()
	if start.Unread != nil { // whatever the program has made of it
		return result, fault.Wrap(start.Unread, fault.Invalid, "cannot start: %v", start.Unread)
	}
	return result, startError(load, call, last, timeout, s.memory.refused, err)
}

// startError returns the error of a start that ended with err; nil: the program waits. refused is the error of its last
// request for memory, or nil.
func startError(
	load context.Context, call *hostabi.Call, last *lastLines, timeout time.Duration, refused, err error) error {
	exit, exited := errors.AsType[*hostabi.Exit](err)
	told, isFault := errors.AsType[*fault.Fault](err)
	switch {
	case errors.Is(err, hostabi.ErrWaits):
		return nil
	case err != nil && load.Err() != nil:
		return compile.Cancelled(load)
	case errors.Is(err, hostabi.ErrTimeOver), errors.Is(err, hostabi.ErrCPUSpent):
		return refuse("takes longer than %s (startTimeout) before it waits for a request%s", timeout, last.suffix())
	case refused != nil:
		return refuse("fails before it waits for a request: %v%s", refused, last.suffix())
	case isFault:
		return told
	case exited:
		return refuse("exits with status %d before it waits for a request%s", exit.Status, last.suffix())
	case err == nil:
		return refuse("ends before it waits for a request%s", last.suffix())
	}
	if crash, ok := call.Crash(); ok {
		return refuse("fails before it waits for a request: %s", compile.Quote(crash.String(), 500))
	}
	return refuse("fails before it waits for a request: %s%s", compile.Quote(compile.FirstLine(err), 500), last.suffix())
}

// resume continues the program, for a request of a handler.
func (s *sandbox) resume(call *hostabi.Call, f api.Function, handler int) error {
	w := s.module.waiting
	call.BeginResumed(s.module.start, w.Waiting, handler)
	s.depth.Set(w.depth)
	s.result[0] = w.Result(handler)
	s.enter(f)
	return s.leave(w.state.Resume(&s.guest, f, s.result[:]))
}

// functionOf is the index in sandbox.functions of a handler's function. A program that waits has one for all.
func (m *Module) functionOf(handler int) int {
	if m.waiting != nil {
		return 0
	}
	return handler
}
