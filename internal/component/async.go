package component

import (
	"errors"
	"fmt"

	"runner.example/internal/wasm"
	"runner.example/internal/wasm/opcode"
)

// Functions of HostModule for async functions. The name of a function for streams or futures ends with the number of
// their type among Host.Payloads. Before the number there is "async" if the call does not wait.
const (
	taskReturn = "task.return" // gets the result of the handler
	taskResult = "task.result" // gets a pointer to it, of a handler that returns it
	taskExit   = "task.exit"   // gets the result of a command
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
		return l.allocating(c.Owner, c.Core, host, l.eventAllocator)
	case c.Op == ErrorContextDebugMessage, reads:
		return l.allocatingBy(c, host)
	}
	return l.guarded(c, host), nil
}

// taskReturn returns the name of the function that gets the result of a handler or a command. For any other async
// function it returns one that traps: the runtime never calls such functions.
func (l *linker) taskReturn(c *Canon) (string, error) {
	name := taskReturn
	switch {
	case l.host.returns(asyncHandler, "handle", c.Type):
	case l.host.returns(asyncRun, "run", c.Type):
		name = taskExit
	default:
		name = fmt.Sprintf("task.return %d", len(l.merge.Functions))
		l.add(name, "", c.Core, nil, func(a *assembler) { a.op(opcode.Unreachable) })
		return name, nil
	}
	if err := l.useMemory(c.Options); err != nil {
		return "", fmt.Errorf("%s: %w", c.Op, err)
	}
	host, err := l.hostFunction(HostModule, name, c.Core)
	if err != nil {
		return "", err
	}
	return l.guarded(c, host), nil
}

// allocatingBy adds a function that calls the host, and allocates what the host writes with the realloc of c. If c is
// async, memory for what the host writes later is allocated where the guest waits for it.
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
	allocator := l.allocator(realloc)
	return l.allocating(c.Owner, c.Core, host, func() string { return allocator })
}

// eventAllocator is the function that allocates what comes with an event; empty: nothing does.
func (l *linker) eventAllocator() string {
	if l.realloc == "" {
		return ""
	}
	return l.allocator(l.realloc)
}

// task has the names of an export that the runtime calls, and of the host functions that begin and end its task.
type task struct {
	export string
	begin  string // returns the argument; empty: there is none
	result string // gets what a function without the option async returns
	end    string
}

// exportAsync adds the function that the runtime calls, for a handler of WASI 0.3.
func (l *linker) exportAsync(x *Export) error {
	return l.exportTask(x, task{ExportRequest, "begin_request", taskResult, "end_request"})
}

// exportCommand adds the function that the runtime calls, for a command.
func (l *linker) exportCommand(x *Export) error {
	return l.exportTask(x, task{exportStart, "", taskExit, "end_command"})
}

// exportTask adds a function that returns when the task has ended. It contains the loop that calls the callback.
func (l *linker) exportTask(x *Export, t task) error {
	if err := l.host.exports(x); err != nil {
		return err
	}
	core, err := l.lifted(x.Func)
	if err != nil {
		return err
	}
	f, enter := x.Func.Lift, l.prologue(x.Func.Lift.Owner)
	if t.begin != "" {
		t.begin = l.hostBuiltin(t.begin, ">i")
	}
	t.end = l.hostBuiltin(t.end, ">")
	begin := func(a *assembler) {
		enter(a)
		if t.begin != "" {
			a.call(t.begin)
		}
		a.call(core)
	}
	const result = 0 // the local with what the function has returned
	local := []wasm.ValueType{wasm.I32}
	switch {
	case f.Options.Async && f.Options.Callback.IsZero():
		l.add("", t.export, wasm.FuncType{}, nil, func(a *assembler) {
			begin(a)
			a.call(t.end)
		})
	case f.Options.Async:
		next, callback, err := l.callback(f)
		if err != nil {
			return err
		}
		l.add("", t.export, wasm.FuncType{}, local, func(a *assembler) { // the lowest bits of the result are 0 when the task has ended
			begin(a)
			a.n(opcode.LocalSet, result)
			a.op(opcode.Loop, opcode.BlockEmpty).n(opcode.LocalGet, result).i32(15).op(opcode.I32And, opcode.If, opcode.BlockEmpty)
			a.n(opcode.LocalGet, result).call(next).call(callback).n(opcode.LocalSet, result)
			a.n(opcode.Br, 1).op(opcode.End, opcode.End).call(t.end)
		})
	default:
		t.result = l.hostBuiltin(t.result, "i>")
		postReturn, err := l.postReturn(f)
		if err != nil {
			return err
		}
		l.add("", t.export, wasm.FuncType{}, local, func(a *assembler) {
			begin(a)
			a.n(opcode.LocalSet, result)
			enter(a)
			a.n(opcode.LocalGet, result).call(t.result)
			postReturn(a, result)
			a.call(t.end)
		})
	}
	return nil
}

// callback returns the names of the function that waits for the next event, and of the callback that gets it.
func (l *linker) callback(f *Lift) (next, callback string, err error) {
	if callback, err = l.named(f.Options.Callback); err != nil {
		return "", "", err
	}
	host := l.hostBuiltin(taskNext, "i>iii")
	next, err = l.allocating(f.Owner, l.imports[host], host, l.eventAllocator)
	return next, callback, err
}
