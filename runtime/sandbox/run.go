package sandbox

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/tetratelabs/wazero/experimental"
	"github.com/tetratelabs/wazero/sys"

	"runner.example/hostabi"
	"runner.example/internal/fault"
)

// Run runs one handler in a fresh sandbox until it returns, fails, or the time
// of call.Context is over. nil says that it answered and returned: the answer
// is call.Response. Otherwise the error is a *fault.Fault:
//
//	HandlerFailed       it trapped, exited or returned without an answer
//	HandlerTimeout      call.Context ended
//	HandlerOutOfMemory  it failed after it was refused more memory
//	Overloaded          no place became free in time; nothing ran
//
// and the answer in call.Response must not be used. The call is begun and ended
// here; nothing of it is touched after Run returned.
func (m *Module) Run(call *hostabi.Call, handler string) error {
	call.Begin()
	m.running.RLock()
	defer m.running.RUnlock()
	if _, ok := slices.BinarySearch(m.handlers, handler); m.closed || !ok {
		return failed(fmt.Errorf("module %s has no handler %q, or was closed", m.name, handler))
	}
	if err := m.engine.take(call.Context); err != nil {
		return err
	}
	defer m.engine.free()
	defer call.End()
	memory, err := reserveMemory(m.engine.options.MemoryBytes)
	if err != nil {
		return failed(err)
	}
	defer memory.release()
	return judge(call, memory, m.run(call, memory, handler))
}

// take gets a place for one guest.
func (e *Engine) take(ctx context.Context) error {
	select {
	case e.places <- struct{}{}:
		return nil
	default:
	}
	wait := time.NewTimer(e.options.QueueWait)
	defer wait.Stop()
	select {
	case e.places <- struct{}{}:
		return nil
	case <-ctx.Done(): // nothing ran: it is not the handler that was slow
	case <-wait.C:
	}
	return fault.New(fault.Overloaded, "all sandboxes are busy; try again")
}

func (e *Engine) free() { <-e.places }

// run makes an instance, runs the handler in it and throws it away.
func (m *Module) run(call *hostabi.Call, memory *memory, handler string) error {
	ctx := call.GuestContext(experimental.WithMemoryAllocator(call.Context, memory))
	config := m.engine.config.
		WithStdout(call.Stdout()).
		WithStderr(call.Stderr()).
		WithNanosleep(sleeper(call.Context))
	call.Initializing(true)
	instance, err := m.engine.runtime.InstantiateModule(ctx, m.compiled, config)
	if err != nil {
		return err
	}
	defer instance.Close(context.Background())
	if initialize := instance.ExportedFunction("_initialize"); initialize != nil {
		if err := initialize.CallWithStack(ctx, nil); err != nil {
			return fmt.Errorf("_initialize: %w", err)
		}
	}
	call.Initializing(false)
	return instance.ExportedFunction(handler).CallWithStack(ctx, nil)
}

// sleeper lets a guest sleep for as long as it has time.
func sleeper(ctx context.Context) sys.Nanosleep {
	return func(ns int64) {
		wait := time.NewTimer(time.Duration(ns))
		defer wait.Stop()
		select {
		case <-wait.C:
		case <-ctx.Done():
		}
	}
}

// judge says what became of a run that ended with err.
func judge(call *hostabi.Call, memory *memory, err error) error {
	exit, exited := errors.AsType[*sys.ExitError](err)
	if exited && exit.ExitCode() == 0 && call.Response.Status != 0 {
		err, exited = nil, false // to exit well is a way to return
	}
	switch {
	case call.Context.Err() != nil && (err == nil || stopped(err)):
		return timedOut(call.Context)
	case err != nil && memory.refused:
		return fault.Wrap(err, fault.HandlerOutOfMemory, "the handler ran out of memory")
	case exited:
		return failed(fmt.Errorf("handler exited with status %d", exit.ExitCode()))
	case err != nil:
		return failed(err)
	case call.Response.Status == 0:
		return failed(errors.New("handler returned without an answer"))
	}
	return nil
}

// stopped reports whether err is how a guest ends that is out of time.
func stopped(err error) bool {
	if exit, ok := errors.AsType[*sys.ExitError](err); ok {
		return exit.ExitCode() == sys.ExitCodeDeadlineExceeded || exit.ExitCode() == sys.ExitCodeContextCanceled
	}
	return errors.Is(err, hostabi.ErrTimeOver)
}

func failed(cause error) error {
	return fault.Wrap(cause, fault.HandlerFailed, "the handler failed")
}

func timedOut(ctx context.Context) error {
	return fault.Wrap(context.Cause(ctx), fault.HandlerTimeout, "the handler did not answer in time")
}
