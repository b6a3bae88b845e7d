package sandbox

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"

	"github.com/tetratelabs/wazero/api"

	"runner.example/hostabi"
	"runner.example/hostabi/abi"
	"runner.example/internal/clock"
)

// uninterrupted is one start of a program that serves a request in the same call: what a program that is
// continued is compared with. It ends a start as an error of Start.Waits.
type uninterrupted struct {
	first, call *hostabi.Call
	handler     int
	at          *hostabi.Waiting
}

func (u *uninterrupted) Error() string { return "the program waits, and goes on" }

// AllowUninterrupted gives the modules that are loaded from now on host functions with which RunUninterrupted works.
func (e *Engine) AllowUninterrupted(ctx context.Context) error {
	for module, functions := range map[string][]hostabi.Function{
		abi.Module: hostabi.Functions(), hostabi.WASIModule: hostabi.WASI(),
	} {
		for i := range functions {
			if f := &functions[i]; f.Name == "request_next" || f.Name == "fd_write" {
				f.Fn = goOn(f.Fn)
			}
		}
		if err := e.compiler.Runtime.Module(module).Close(ctx); err != nil {
			return err
		}
		if err := e.provide(ctx, module, functions); err != nil {
			return err
		}
	}
	return nil
}

// goOn returns the function, in which a start that waits becomes the run of a request.
func goOn(fn api.GoModuleFunc) api.GoModuleFunc {
	return func(ctx context.Context, m api.Module, stack []uint64) {
		defer func() {
			switch why := recover().(type) {
			case nil:
			case *uninterrupted:
				s := ctx.(*guest).sandbox
				s.guest.Bind(nil)
				why.first.End()
				why.call.Begin()
				s.guest.Bind(why.call)
				s.memory.refused, s.memory.refusals = nil, 0
				why.call.BeginResumed(s.module.start, why.at, why.handler)
				stack[0] = why.at.Result(why.handler)
			default:
				panic(why)
			}
		}()
		fn(ctx, m, stack)
	}
}

// Uninterrupted is a program that is started for each request alone, and neither captured nor continued.
type Uninterrupted struct{ m *Module }

// Uninterrupted loads a module that waits again, from the same bytes, as one that is started for each request. Both
// have the same files. The engine is one after AllowUninterrupted.
func (m *Module) Uninterrupted(ctx context.Context, wasm []byte) (Uninterrupted, error) {
	program, code, err := m.engine.prepare(ctx, wasm, false, nil)
	return Uninterrupted{&Module{
		name: m.name, engine: m.engine, program: program, code: code, handlers: m.handlers, byName: m.byName, start: m.start,
	}}, err
}

// Close releases the code.
func (u Uninterrupted) Close(ctx context.Context) error { return u.m.free(ctx) }

// Run runs a request as Module.Run does.
func (u Uninterrupted) Run(call *hostabi.Call, handler string) error {
	m := u.m
	first := &hostabi.Call{Input: hostabi.Input{Context: context.Background(), Host: hostabi.NewHost(hostabi.Host{
		Logger: slog.New(slog.DiscardHandler),
		Limits: hostabi.StartLimits(m.engine.options.InitTime),
	})}}
	first.Begin()
	s, err := m.boot(first)
	if err != nil {
		return err
	}
	defer s.discard()
	run := &uninterrupted{first: first, call: call, handler: m.byName[handler]}
	first.BeginStart(m.start, &hostabi.Start{
		StartInput: hostabi.NewStartInput([32]byte{}, clock.System()),
		Waits: func(w *hostabi.Waiting) error {
			run.at = w
			return run
		},
	})
	s.begin(claim{call: first}, &m.initializing)
	var outcome error
	for _, name := range append(slices.Clip(m.program.First), exportStart) {
		if outcome = s.invoke(s.function(name)); outcome != nil {
			break
		}
	}
	if run.at == nil {
		return fmt.Errorf("it did not wait: %w", outcome)
	}
	outcome = s.checkStack(outcome)
	if outcome != nil && !errors.Is(outcome, hostabi.ErrTimeOver) {
		_, _ = call.Crash() // as Run does: it logs lines of standard error
	}
	call.End()
	f, err := classify(call, s.memory.refused, outcome)
	if err != nil {
		s.locate(&f)
		m.describe(call, &f)
	}
	return err
}
