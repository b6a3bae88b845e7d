package sandbox

import (
	"errors"
	"fmt"
	"strings"

	"runner.example/hostabi"
	"runner.example/internal/fault"
	"runner.example/internal/wasm"
	"runner.example/runtime/compile"
)

// failure is how a run failed, before its places have names.
type failure struct {
	kind  string // in plain words; empty: the run did not fail
	limit bool   // of the host
	// places are the active calls, innermost first.
	places []compile.Place
	// memory is the size of the guest's memory, for a trap at an access to it.
	memory uint64
}

// The kinds of failures that are decided here. Traps have others: see trapKinds.
const (
	kindTime        = "time limit"
	kindCPU         = "CPU limit"
	kindMemory      = "memory limit"
	kindNoAnswer    = "returned without an answer"
	kindStack       = "stack exhausted"
	kindLinearStack = "linear stack exhausted"
	kindOutOfBounds = "out of bounds memory access"
	kindTable       = "invalid table access"
	kindHost        = "failure of the host"
)

// trapKinds are the kinds of traps by wazero's texts.
var trapKinds = map[string]string{
	"unreachable":                   "unreachable",
	"out of bounds memory access":   kindOutOfBounds,
	"invalid table access":          kindTable,
	"indirect call type mismatch":   "indirect call type mismatch",
	"integer divide by zero":        "integer divide by zero",
	"integer overflow":              "integer overflow",
	"invalid conversion to integer": "invalid conversion to integer",
	"stack overflow":                kindStack,
}

// judge returns how a run failed that ended with err, and its fault.
func judge(call *hostabi.Call, refused, err error) (failure, error) {
	exit, exited := errors.AsType[*hostabi.Exit](err)
	if exited && exit.Status == 0 && call.Response.Status != 0 {
		err, exited = nil, false // exit(0) after an answer counts as a return
	}
	switch {
	case errors.Is(err, hostabi.ErrTimeOver):
		return failure{kind: kindTime, limit: true}, timedOut(hostabi.ErrTimeOver)
	case errors.Is(err, hostabi.ErrCPUSpent):
		return failure{kind: kindCPU, limit: true}, timedOut(usedUp(call.Host.CPU(), hostabi.ErrCPUSpent))
	case err == nil && call.Context.Err() != nil:
		return failure{kind: kindTime, limit: true}, timedOut(call.Context.Err())
	case err != nil && refused != nil:
		cause := fmt.Errorf("%w: %w", refused, oneLine{err})
		return failure{kind: kindMemory, limit: true}, fault.Wrap(cause, fault.HandlerOutOfMemory, "the handler ran out of memory")
	case exited:
		return failure{kind: fmt.Sprintf("exit code %d", exit.Status)}, failed(fmt.Errorf("handler exited with status %d", exit.Status))
	case err != nil:
		return failure{kind: trapKind(err)}, failed(oneLine{err})
	case call.Response.Status == 0:
		return failure{kind: kindNoAnswer}, failed(errors.New("handler returned without an answer"))
	}
	return failure{}, nil
}

// trapKind returns the kind of a run that ended with err.
func trapKind(err error) string {
	if errors.Is(err, errStack) {
		return kindStack
	}
	text := compile.FirstLine(err)
	if i := strings.LastIndex(text, trapPrefix); i >= 0 {
		if kind, ok := trapKinds[text[i+len(trapPrefix):]]; ok {
			return kind
		}
	}
	return kindHost
}

// trapPrefix is before a trap in the errors of wazero.
const trapPrefix = "wasm error: "

// locate adds to a failure where the guest is. It has not been restored.
func (s *sandbox) locate(f *failure) {
	if s.engine.optimizations.trace {
		f.places = s.places()
	}
	if f.kind != kindOutOfBounds {
		return
	}
	f.memory = s.memory.size
	if s.linearStackExhausted() {
		f.kind = kindLinearStack
	}
}

// places are the active calls of the function that the guest was in, innermost first.
func (s *sandbox) places() (all []compile.Place) {
	for _, address := range s.engine.optimizations.stack.calls(s.last) {
		if p, ok := s.module.code.Original(address); ok {
			all = append(all, p)
		}
	}
	return all
}

// redZone is how many bytes beyond its stack pointer a function of LLVM may use.
const redZone = 128

// linearStackExhausted reports whether the guest's stack pointer has left its stack.
func (s *sandbox) linearStackExhausted() bool {
	p := s.module.program.Stack
	if p == nil {
		return false
	}
	pointer := uint64(uint32(s.globals[p.Global].Get()))
	return pointer < uint64(p.Lowest)+redZone || pointer > s.memory.size // it wraps below 0
}

// report tells the call how its run failed.
func (m *Module) report(call *hostabi.Call, f *failure) {
	told := hostabi.Failure{Kind: f.kind}
	var code []byte // of the innermost instruction
	told.Frames, code = m.frames(f.places)
	if access := wasm.Access(code); access != "" {
		switch f.kind {
		case kindOutOfBounds, kindLinearStack:
			told.Message = fmt.Sprintf("%s: %s, memory of %d bytes", f.kind, access, f.memory)
		case kindTable:
			told.Message = fmt.Sprintf("%s: %s", f.kind, access)
			if access == "call_indirect" {
				told.Message = "indirect call to null, or outside of the table"
			}
		}
	}
	call.Fail(told, f.limit)
}
