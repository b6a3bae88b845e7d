package sandbox

import (
	"errors"
	"fmt"
	"strings"

	"runner.example/hostabi"
	"runner.example/internal/fault"
	"runner.example/internal/symbols"
	"runner.example/internal/wasm"
	"runner.example/runtime/compile"
)

// failure is how a run failed, before its active calls are named.
type failure struct {
	kind  string // in plain words; empty: the run did not fail
	limit bool   // a limit of the host ended the run
	// message says more than the kind; empty: nothing does.
	message string
	// calls are the instructions of the active calls, innermost first.
	calls []compile.Instruction
	// memory is the size of the guest's memory, for a trap at an access to it.
	memory uint64
	// crash is what Go's runtime wrote to standard error; nil: nothing.
	crash *hostabi.Failure
	// goCalls are the active calls of a module from Go. They are used instead of calls.
	goCalls []symbols.GoCall
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
	kindTrap        = "invalid call of the host"
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
	"unaligned atomic":              "unaligned atomic access",
	"expected shared memory":        "wait on a memory that is not shared",
}

// classify returns how a run failed that ended with err, and its fault. refused is the error of
// the guest's last request for memory, or nil.
func classify(call *hostabi.Call, refused, err error) (failure, error) {
	exit, exited := errors.AsType[*hostabi.Exit](err)
	trap, trapped := errors.AsType[*hostabi.Trap](err)
	if exited && exit.Status == 0 && call.Response.Status != 0 {
		err, exited = nil, false // exit(0) after an answer counts as a return
	}
	if uncommitted, ok := errors.AsType[*hostabi.NotCommitted](err); ok {
		return failure{}, uncommitted.Cause
	}
	if body, ok := errors.AsType[*hostabi.BodyRefused](err); ok {
		return failure{}, body.Fault
	}
	switch {
	case errors.Is(err, errNoStream):
		return failure{}, errNoStream
	case errors.Is(err, hostabi.ErrTimeOver):
		return failure{kind: kindTime, limit: true}, timedOut(hostabi.ErrTimeOver)
	case errors.Is(err, hostabi.ErrCPUSpent):
		return failure{kind: kindCPU, limit: true}, timedOut(usedUp(call.Host.Limits.CPU, hostabi.ErrCPUSpent))
	case err == nil && call.Context.Err() != nil:
		return failure{kind: kindTime, limit: true}, timedOut(call.Context.Err())
	case err != nil && refused != nil:
		cause := fmt.Errorf("%w: %w", refused, oneLine{err})
		return failure{kind: kindMemory, limit: true}, fault.Wrap(cause, fault.HandlerOutOfMemory,
			"the handler ran out of memory")
	case exited:
		kind := fmt.Sprintf("exit code %d", exit.Status)
		return failure{kind: kind}, failed(fmt.Errorf("handler exited with status %d", exit.Status))
	case trapped:
		return failure{kind: kindTrap, message: trap.Reason}, failed(trap)
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

// locate adds the active calls to a failure. The sandbox must not have been restored yet.
func (s *sandbox) locate(f *failure) {
	if s.engine.optimizations.trace {
		f.calls = s.activeCalls()
	}
	s.goCalls(f)
	if f.kind != kindOutOfBounds {
		return
	}
	f.memory = s.memory.Size()
	if s.linearStackExhausted() {
		f.kind = kindLinearStack
	}
}

// activeCalls returns the instructions of the active calls of the function that failed, innermost
// first. It leaves out functions that rewriting added.
func (s *sandbox) activeCalls() (all []compile.Instruction) {
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
	return pointer < uint64(p.Lowest)+redZone || pointer > s.memory.Size() // it wraps below 0
}

// describe names the active calls of a failure, and passes it to the call.
func (m *Module) describe(call *hostabi.Call, f *failure) {
	described := hostabi.Failure{Kind: f.kind, Message: f.message}
	var code []byte // of the innermost instruction
	if len(f.goCalls) > 0 {
		described.Frames = m.goFrames(f)
	} else {
		described.Frames, code = m.frames(f.calls)
	}
	if access := wasm.Access(code); access != "" {
		switch f.kind {
		case kindOutOfBounds, kindLinearStack:
			described.Message = fmt.Sprintf("%s: %s, memory of %d bytes", f.kind, access, f.memory)
		case kindTable:
			described.Message = fmt.Sprintf("%s: %s", f.kind, access)
			if access == "call_indirect" || access == "return_call_indirect" {
				described.Message = "indirect call to null, or outside of the table"
			}
		}
	}
	if f.crash != nil {
		addCrash(&described, f.crash, f.limit)
	}
	call.SetFailure(described, f.limit)
}
