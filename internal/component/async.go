package component

import (
	"errors"
	"fmt"

	"runner.example/internal/wasm"
	"runner.example/internal/wasm/opcode"
)

// Functions of the host for async functions, in HostModule. One that has the type of a stream or future has the
// number of that type, among Host.Payloads, at the end of its name. That of a call that does not wait ends
// with async.
const (
	taskReturn = "task.return" // gets the result of the handler
	taskResult = "task.result" // gets a pointer to it, of a handler that returns it
	taskNext   = "task.next"   // gets the code of a callback; returns the next event, and its two numbers
)

// builtin returns the name of the function that a canonical definition of WASI 0.3 becomes.
func (l *linker) builtin(c *Canon) (string, error) {
	name, reads := c.Op.String(), false
	switch c.Op {
	case TaskReturn:
		return l.taskReturn(c)
	case ContextGet, ContextSet:
		name = fmt.Sprintf("%s %d", name, c.Slot)
	case StreamRead, FutureRead:
		reads = c.Type.Element != nil && c.Type.Element.HasPointers()
		fallthrough
	case StreamWrite, FutureWrite:
		if err := l.useMemory(c.Options); err != nil {
			return "", fmt.Errorf("%s: %w", c.Op, err)
		}
		fallthrough
	case StreamNew, StreamCancelRead, StreamCancelWrite, StreamDropReadable, StreamDropWritable,
		FutureNew, FutureCancelRead, FutureCancelWrite, FutureDropReadable, FutureDropWritable:
		number, err := l.host.Payload(c.Type)
		if err != nil {
			return "", err
		}
		if c.Options.Async {
			name += " async"
		}
		name = fmt.Sprintf("%s %d", name, number)
	case ErrorContextNew, ErrorContextDebugMessage, WaitableSetWait, WaitableSetPoll:
		if err := l.useMemory(c.Options); err != nil {
			return "", fmt.Errorf("%s: %w", c.Op, err)
		}
	}
	host, err := l.hostFunction(HostModule, name, c.Core)
	switch {
	case err != nil:
		return "", err
	case c.Op == WaitableSetWait, c.Op == WaitableSetPoll:
		return l.allocating(c.Owner, c.Core, host, l.eventRealloc)
	case c.Op == ErrorContextDebugMessage, reads:
		return l.allocatingBy(c, host)
	}
	return l.guarded(c, host), nil
}

// taskReturn returns the name of the function that gets the result of the handler. That of another async function
// is never called.
func (l *linker) taskReturn(c *Canon) (string, error) {
	if !l.host.answers(c.Type) {
		name := fmt.Sprintf("task.return %d", len(l.merge.Functions))
		l.add(name, "", c.Core, nil, func(a *assembler) { a.op(opcode.Unreachable) })
		return name, nil
	}
	if err := l.useMemory(c.Options); err != nil {
		return "", fmt.Errorf("%s: %w", c.Op, err)
	}
	host, err := l.hostFunction(HostModule, taskReturn, c.Core)
	if err != nil {
		return "", err
	}
	return l.guarded(c, host), nil
}

// allocatingBy adds a function that calls the host, and allocates what it writes with the realloc of c. What
// an async function writes later is allocated where the guest waits for it.
func (l *linker) allocatingBy(c *Canon, host string) (string, error) {
	realloc, err := l.named(c.Options.Realloc)
	if err != nil {
		return "", err
	}
	if c.Options.Async {
		if l.realloc != "" && l.realloc != realloc {
			return "", errors.New("has async functions with different realloc functions, which is not supported")
		}
		l.realloc = realloc
	}
	return l.allocating(c.Owner, c.Core, host, func() string { return realloc })
}

// eventRealloc is the function that allocates what comes with an event; empty: nothing does.
func (l *linker) eventRealloc() string { return l.realloc }

// exportAsync adds the function that the runtime calls, for a handler of WASI 0.3. It returns when the task has
// ended: the loop of callbacks is in it.
func (l *linker) exportAsync(x *Export) error {
	f := x.Func
	if err := l.host.exports(x); err != nil {
		return err
	}
	handle, err := l.lifted(f)
	if err != nil {
		return err
	}
	one := wasm.FuncType{Results: []wasm.ValueType{wasm.I32}}
	begin, err := l.hostFunction(HostModule, "begin_request", one)
	if err != nil {
		return err
	}
	end, err := l.hostFunction(HostModule, "end_request", wasm.FuncType{})
	if err != nil {
		return err
	}
	o := f.Lift.Options
	switch {
	case !o.Async:
		return l.exportReturning(f, handle, begin, end)
	case o.Callback.IsZero():
		enter := l.prologue(f.Lift.Owner)
		l.add("", ExportRequest, wasm.FuncType{}, nil, func(a *assembler) {
			enter(a)
			a.call(begin).call(handle).call(end)
		})
		return nil
	}
	return l.exportCallback(f, handle, begin, end)
}

// exportReturning is exportAsync for a handler that returns its result.
func (l *linker) exportReturning(f *Func, handle, begin, end string) error {
	result, err := l.hostFunction(HostModule, taskResult, wasm.FuncType{Params: []wasm.ValueType{wasm.I32}})
	if err != nil {
		return err
	}
	postReturn, err := l.postReturn(f.Lift)
	if err != nil {
		return err
	}
	enter := l.prologue(f.Lift.Owner)
	const pointer = 0 // the local with the result's address
	l.add("", ExportRequest, wasm.FuncType{}, []wasm.ValueType{wasm.I32}, func(a *assembler) {
		enter(a)
		a.call(begin).call(handle).n(opcode.LocalSet, pointer)
		enter(a)
		a.n(opcode.LocalGet, pointer).call(result)
		postReturn(a, pointer)
		a.call(end)
	})
	return nil
}

// exportCallback is exportAsync for a handler with a callback.
func (l *linker) exportCallback(f *Func, handle, begin, end string) error {
	callback, err := l.named(f.Lift.Options.Callback)
	if err != nil {
		return err
	}
	numbers := []wasm.ValueType{wasm.I32, wasm.I32, wasm.I32}
	next, err := l.hostFunction(HostModule, taskNext, wasm.FuncType{Params: numbers[:1], Results: numbers})
	if err != nil {
		return err
	}
	if next, err = l.allocating(f.Lift.Owner, wasm.FuncType{Params: numbers[:1], Results: numbers}, next, l.eventRealloc); err != nil {
		return err
	}
	enter := l.prologue(f.Lift.Owner)
	const code = 0 // the local with what the callback has returned: 0 when the task has ended
	l.add("", ExportRequest, wasm.FuncType{}, numbers[:1], func(a *assembler) {
		enter(a)
		a.call(begin).call(handle).n(opcode.LocalSet, code)
		a.op(opcode.Loop, opcode.BlockEmpty).n(opcode.LocalGet, code).op(opcode.If, opcode.BlockEmpty)
		a.n(opcode.LocalGet, code).call(next).call(callback).n(opcode.LocalSet, code)
		a.n(opcode.Br, 1).op(opcode.End, opcode.End).call(end)
	})
	return nil
}
