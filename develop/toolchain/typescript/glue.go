package typescript

import (
	"fmt"
	"math"
	"strconv"

	"runner.example/hostabi/abi"
	"runner.example/internal/wasm"
)

// The glue connects the engine with the ABI. It consists of functions that are added to the
// module:
//
//	export <handler>  ->  invoke(n)   calls dispatch(n), which usually completes the
//	                                  request; otherwise runs pending jobs until none
//	                                  is left, and calls finish(), which may ask to
//	                                  wait and continue, or to trap
//	job failed         ->  threw(error), unless the run is over
//	runner_stopped     ->  calls stopped(), which logs where the run was
//	interrupt          ->  interrupted(), when the run is over: what the engine throws
//	                       then stores the position in its frames
//	promise rejected  ->  rejected(promise, reason, handled)
//	host.<function>   ->  one binding for each function of the ABI: converts its
//	                      JavaScript arguments, calls the import, and converts the
//	                      result
//	JSON.parse, JSON.stringify  ->  json_parse, json_stringify
//	a match of an expression    ->  regexp_execute
//	replace, match and split    ->  regexp_replace, regexp_match, regexp_split
//
// The last three lines are compiled from functions/json.c and functions/regexp.c. With AsyncLocalStorage there are
// also the functions of functions/flow.c.
//
// The code contains nothing of the handlers. Modules with the same number of handlers,
// rounded up to a multiple of handlersStep, have the same code; they differ in their data
// and in the names of their exports.
//
// During a build the engine calls other host functions, by text. Those of the module have
// names of one letter.
const firstBinding = 'A'

// The number of exports for handlers is a multiple of handlersStep. Unused ones are named
// unusedPrefix and their number.
const (
	handlersStep = 8
	unusedPrefix = "_unused"
)

// A JavaScript value has eight bytes. The upper four are its kind; a number that is not an
// integer uses all eight. The lower four are the integer or an address.
const (
	kindInt       = 0
	kindException = 6
	kindObject    = 0xffffffff
	undefined     = 3 << 32
)

// The class of an object, and that of the functions that resolve a promise.
const (
	objectClass  = 10
	classResolve = 53
)

// form is the JavaScript form of a result.
type form int

const (
	asText  form = iota
	asBytes      // a Uint8Array
	asPairs      // a list of names and values, from request_pairs
	asValue      // the value of a JSON text; undefined: JSON.parse must parse the text
)

// binding is one host function of JavaScript.
type binding struct {
	name     string
	function abi.Function // without a name: a function that the engine implements alone
	form     form
}

// bindings returns all host functions: those of the ABI under their names, those whose
// bytes have another form, the conversions between text and bytes, the nesting depth of a
// text, and what the engine does not offer for promises. JavaScript passes numbers, strings and non-empty Uint8Arrays. It gets a number
// for a count or a negative errno, or the bytes that were written.
//
// The last argument of call and response_send may also be a list or an object, which is
// written as JSON. They return undefined, and do nothing, if only JSON.stringify can do it. So does
// call if JSON.stringify would change a value to null.
func bindings() []binding {
	var all []binding
	for _, f := range abi.Functions() {
		b := binding{name: f.Name, function: f}
		switch f.Name {
		case "request_pairs":
			b.form = asPairs
		case "request_read":
			b.form = asBytes
		}
		all = append(all, b)
		switch f.Name {
		case "request_body":
			all = append(all, binding{"request_body_bytes", f, asBytes}, binding{"request_body_value", f, asValue})
		case "call_result":
			all = append(all, binding{"call_result_value", f, asValue})
		}
	}
	for _, name := range []string{"random", "encode", "decode", "nesting", "react", "resolves", "exhausted"} {
		all = append(all, binding{name: name})
	}
	return all
}

// The scratch area. The engine's allocator reserves it before anything of the handlers, so
// it has the same address in every module:
//
//	0    one slot of 8 bytes for each argument: u32 length · u32 string to free, or
//	     other memory to free, with the lowest bit set
//	64   a number in conversion
//	72   the argument of dispatch
//	80   the arguments of rejected
//	104  the functions dispatch, finish, rejected, interrupted, stopped and threw, which are
//	     values
//	152  u32: 1 if memory was refused
//	156  u32: the address of the object with the state of AsyncLocalStorage, see functions/flow.c
//	160  words of the linked functions: see functions/shapes.c
//	424  the cache of regular expressions: see functions/matches.c
//	552  the buffer for the host's output and for JSON, and a byte after it
const (
	slotBytes    = 8
	numberAt     = 64
	argumentAt   = 72
	rejectedAt   = 80
	functionsAt  = 104
	exhaustedAt  = 152
	flowAt       = 156
	stepsAt      = 160
	cacheAt      = 424
	outputAt     = 552
	outputBytes  = 8 << 10
	scratchBytes = outputAt + outputBytes + 1
	valueBytes   = 8
	dispatchAt   = functionsAt
	finishAt     = functionsAt + valueBytes
	rejectedFunc = functionsAt + 2*valueBytes
	interruptAt  = functionsAt + 3*valueBytes
	stoppedAt    = functionsAt + 4*valueBytes
	threwAt      = functionsAt + 5*valueBytes
)

// program describes an evaluated program.
type program struct {
	handlers []string // in the order in which dispatch counts them; empty: no export
	scratch  uint32
	context  uint32 // the engine's context
	flow     bool   // the script has AsyncLocalStorage
	entries  uint32 // how many entries the engine's table of functions has
}

// link returns the functions that make a module of the program.
func (p *program) link() (wasm.Link, error) {
	value := wasm.FuncType{Params: words(0, 1), Results: words(1, 0)}
	l := wasm.Link{Imports: imports(), Internal: engineFunctions, Reduce: reduction, Functions: []wasm.Function{
		{Name: "take", Type: wasm.FuncType{Params: []wasm.ValueType{wasm.I64, wasm.I32}, Results: words(1, 0)}, Code: assemble(p.take)},
		{Name: "drop", Type: typeOf(1, 0), Code: assemble(p.drop)},
		{Name: "number", Type: value, Code: assemble(p.number)},
		{Name: "pairs", Type: wasm.FuncType{Params: words(3, 0), Results: words(0, 1)}, Locals: words(5, 1), Code: assemble(p.pairs)},
		{Name: "deepest", Type: typeOf(2, 1), Locals: words(4, 0), Code: assemble(deepest)},
		{Name: "invoke", Type: typeOf(1, 0), Locals: words(0, 1), Code: assemble(p.invoke)},
		{Name: "cache", Type: typeOf(0, 1), Code: assemble(func(a *assembler) { a.i32(p.scratch + cacheAt) })},
		{Name: "steps", Type: typeOf(0, 1), Code: assemble(func(a *assembler) { a.i32(p.scratch + stepsAt) })},
		{Name: "out of memory", Replaces: "JS_ThrowOutOfMemory", Type: wasm.FuncType{Params: words(1, 0), Results: words(0, 1)}, Code: assemble(p.outOfMemory)},
		{Replaces: "env.host_call", Type: typeOf(5, 1), Code: assemble(func(a *assembler) { a.op(opUnreachable) })},
		{Name: "interrupt", Replaces: "env.host_interrupt", Type: typeOf(0, 1), Code: assemble(p.interrupt)},
		{Replaces: "env.host_promise_rejection", Type: typeOf(3, 0), Code: assemble(p.reject)},
		{Replaces: "env.host_module_normalize", Type: typeOf(2, 1), Code: assemble(zero)},
		{Replaces: "env.host_module_load", Type: typeOf(2, 1), Code: assemble(zero)},
		{Replaces: "env.host_get_timezone_offset", Type: typeOf(2, 1), Code: assemble(zero)},
	}}
	for _, b := range bindings() {
		l.Functions = append(l.Functions, wasm.Function{
			Name: b.local(), Type: bindingType, Locals: words(b.params()+2, 1),
			Code: assemble(func(a *assembler) { p.bind(a, b) }),
		})
		l.Table = append(l.Table, b.local())
	}
	linked, err := linkedFunctions(functionsModule, "linked ")
	if err != nil {
		return wasm.Link{}, err
	}
	l.Functions = append(l.Functions, linked...)
	if p.flow {
		if linked, err = linkedFunctions(flowModule, "flow "); err != nil {
			return wasm.Link{}, err
		}
		l.Functions = append(l.Functions, linked...)
		entry := p.entries + uint32(len(l.Table))
		l.Table = append(l.Table, "flow_call")
		l.Functions = append(l.Functions,
			wasm.Function{Name: "flow", Type: typeOf(0, 1), Code: assemble(func(a *assembler) { a.i32(p.scratch + flowAt) })},
			wasm.Function{Name: "flow_entry", Type: typeOf(0, 1), Code: assemble(func(a *assembler) { a.i32(entry) })},
		)
	}
	l.Functions = append(l.Functions, wasm.Function{Export: "runner_stopped", Type: unit, Code: assemble(p.stopped)})
	for i := range (len(p.handlers) + handlersStep - 1) / handlersStep * handlersStep {
		name := unusedPrefix + strconv.Itoa(i)
		if i < len(p.handlers) && p.handlers[i] != "" {
			name = p.handlers[i]
		}
		l.Functions = append(l.Functions, wasm.Function{
			Export: name, Type: unit,
			Code: assemble(func(a *assembler) { a.i32(uint32(i)).call("invoke") }),
		})
	}
	return l, nil
}

func imports() []wasm.Import {
	all := []wasm.Import{
		{Module: "wasi_snapshot_preview1", Name: "poll_oneoff", Type: typeOf(4, 1)},
		{Module: "wasi_snapshot_preview1", Name: "sched_yield", Type: typeOf(0, 1)},
	}
	for _, f := range abi.Functions() {
		results := 0
		if f.Result {
			results = 1
		}
		all = append(all, wasm.Import{Module: abi.Module, Name: f.Name, Type: typeOf(f.Words(), results)})
	}
	return all
}

func assemble(write func(*assembler)) func(func(string) uint32) []byte {
	return func(index func(string) uint32) []byte {
		a := &assembler{index: index}
		write(a)
		return a.code
	}
}

func zero(a *assembler) { a.i32(0) }

// outOfMemory(context) is called when memory is refused. It notes that and throws the error.
func (p *program) outOfMemory(a *assembler) {
	a.i32(p.scratch+exhaustedAt, 1).store(0)
	a.get(0).call("JS_ThrowOutOfMemory")
}

// kind takes a value and leaves its kind.
func (a *assembler) kind() *assembler { return a.i64(32).op(opI64ShrU, opI32FromI64) }

// invoke(n) answers one request with handler n:
//
//	if dispatch(n) == 0 and no job is pending { return }
//	loop {
//		run jobs until none is pending; threw(what a job throws), or trap if the run is over
//		n = finish(); if n < 0 { trap }; if n == 0 { return }
//		wait n-1 ms; dispatch(-1)
//	}
func (p *program) invoke(a *assembler) {
	const n, result = 0, 1
	call := func(function, args uint32) {
		a.i32(p.context, p.scratch+function).loadValue(0).i64(undefined)
		a.i32(args, p.scratch+argumentAt).call("JS_Call").set(result)
		trapIf(a, func() { a.get(result).kind().i32(kindException).op(opI32Eq) })
	}
	a.i32(p.scratch + argumentAt).get(n).op(opI64FromU32).storeValue(0)
	call(dispatchAt, 1)
	a.get(result).call("number").op(opI32Eqz, opIf, noResult)
	a.call("qjs_is_job_pending").op(opI32Eqz, opIf, noResult, opReturn, opEnd, opEnd)
	a.op(opLoop, noResult)
	a.op(opLoop, noResult).call("qjs_is_job_pending").op(opIf, noResult)
	a.call("qjs_execute_pending_job").i32(0).op(opI32LtS, opIf, noResult)
	a.i32(p.scratch+argumentAt, p.context).call("JS_GetException").with(opLocalTee, result).storeValue(0)
	trapIf(a, func() { a.get(result).call("JS_IsUncatchableError") })
	a.i32(p.context, p.context, p.scratch+threwAt).loadValue(0).i64(undefined).i32(1, p.scratch+argumentAt).call("JS_Call").call("JS_FreeValue")
	a.i32(p.context, p.scratch+argumentAt).loadValue(0).call("JS_FreeValue")
	a.op(opEnd, opBr, 1, opEnd, opEnd)
	call(finishAt, 0)
	a.get(result).call("number").set(n)
	trapIf(a, func() { a.get(n).i32(0).op(opI32LtS) })
	a.get(n).op(opI32Eqz, opIf, noResult, opReturn, opEnd)
	p.wait(a, n)
	a.i32(p.scratch+argumentAt, 0xffffffff).op(opI64FromU32).storeValue(0)
	call(dispatchAt, 1)
	a.op(opBr, 0, opEnd)
}

// wait waits n-1 milliseconds with poll_oneoff of WASI. A subscription is:
//
//	u64 user data · at 8: u8 type, 0 is a clock · at 16: u32 clock, 1 is the
//	monotonic one · at 24: u64 nanoseconds · at 40: u16 flags
func (p *program) wait(a *assembler, n uint32) {
	const subscription, event, events = outputAt, outputAt + 64, outputAt + 128
	const millisecond = 1_000_000
	a.get(n).i32(1).op(opI32GtS, opIf, noResult)
	for at := uint32(0); at < 48; at += 4 {
		a.i32(p.scratch+subscription, 0).store(at)
	}
	a.i32(p.scratch+subscription, 1).store(16)
	a.i32(p.scratch+subscription).get(n).i32(0xffffffff).op(opI32Add, opI64FromU32).i64(millisecond)
	a.op(opI64Mul).storeValue(24)
	a.i32(p.scratch+subscription, p.scratch+event, 1, p.scratch+events).call("wasi_snapshot_preview1.poll_oneoff").op(opDrop, opEnd)
}

// reject(promise, reason, handled) calls rejected in JavaScript. Both are handles that it
// frees.
func (p *program) reject(a *assembler) {
	const promise, reason, handled = 0, 1, 2
	list := p.scratch + rejectedAt
	a.i32(list).get(promise).loadValue(0).storeValue(0)
	a.i32(list).get(reason).loadValue(0).storeValue(valueBytes)
	a.i32(list).get(handled).op(opI64FromU32).storeValue(2 * valueBytes)
	a.i32(p.context, p.context, p.scratch+rejectedFunc).loadValue(0).i64(undefined).i32(3, list).call("JS_Call").call("JS_FreeValue")
	a.get(promise).call("qjs_free_value").get(reason).call("qjs_free_value")
}

// interrupt is called by the engine in loops and calls, each 10,000 times, and returns 1 to throw
// an error.
func (p *program) interrupt(a *assembler) {
	a.call("wasi_snapshot_preview1.sched_yield").op(opI32Eqz, opIf, noResult).i32(0).op(opReturn, opEnd)
	p.callFunction(a, interruptAt)
	a.i32(1)
}

// contextInterrupt is the offset of the count of loops and calls until the next interrupt in the engine's context.
const contextInterrupt = 292

// stopped is runner_stopped. An interrupt would end it at once, because the run is over. So it sets the count to
// the maximum, and only fuel limits the function.
func (p *program) stopped(a *assembler) {
	a.i32(p.context, math.MaxInt32).store(contextInterrupt)
	p.callFunction(a, stoppedAt)
}

// callFunction calls a function without arguments, and ignores its result.
func (p *program) callFunction(a *assembler, function uint32) {
	a.i32(p.context, p.context, p.scratch+function).loadValue(0).i64(undefined).i32(0, 0).call("JS_Call").call("JS_FreeValue")
}

func trapIf(a *assembler, condition func()) {
	condition()
	a.op(opIf, noResult, opUnreachable, opEnd)
}

// number(value) converts a number to an integer, rounding toward zero.
func (p *program) number(a *assembler) {
	const value = 0
	a.get(value).kind().op(opI32Eqz, opIf, noResult).get(value).op(opI32FromI64, opReturn, opEnd)
	a.i32(p.context, p.scratch+numberAt).get(value).call("JS_ToFloat64").op(opDrop)
	a.i32(p.scratch+numberAt).op(opF64Load, 3, 0, opMisc, 2)
}

// take(value, slot) returns the address of the bytes of a Uint8Array or of a value
// converted to a string. It stores into the slot their length and what drop must free. 0 is
// an exception.
func (p *program) take(a *assembler) {
	const value, slot = 0, 1
	a.get(slot).i32(0).store(4)
	a.get(value).kind().i32(kindObject).op(opI32Eq, opIf, noResult)
	a.i32(p.context).get(slot, value).call("JS_GetUint8Array").op(opReturn, opEnd)
	a.get(slot).i32(p.context).get(slot, value).i32(0).call("JS_ToCStringLen2").store(4)
	a.get(slot).load(4)
}

// drop(slot) frees what take, json_text or json_arguments has allocated.
func (p *program) drop(a *assembler) {
	a.get(0).load(4).op(opIf, noResult)
	a.get(0).load(4).i32(1).op(opI32And, opIf, noResult)
	a.i32(p.context).get(0).load(4).i32(0xffffffff).op(opI32Add).call("js_free")
	a.op(opElse).i32(p.context).get(0).load(4).call("JS_FreeCString")
	a.op(opEnd, opEnd)
}

// pairs(context, at, length) creates the list from the output of request_pairs: u32 length
// of the name · u32 length of the value · name · value.
func (p *program) pairs(a *assembler) {
	const context, at, length, list, end, next, count, size, result = 0, 1, 2, 3, 4, 5, 6, 7, 8
	walk := func(each func()) {
		a.get(at).set(next)
		a.op(opBlock, noResult, opLoop, noResult)
		a.get(next, end).op(opI32LtU, opI32Eqz, opBrIf, 1)
		each()
		a.get(next).load(0).get(next).load(4).op(opI32Add).i32(8).op(opI32Add).get(next).op(opI32Add).set(next)
		a.op(opBr, 0, opEnd, opEnd)
	}
	a.get(at, length).op(opI32Add).set(end)
	walk(func() { a.get(count).i32(2).op(opI32Add).set(count) })
	a.get(count).i32(1).op(opI32Add).i32(valueBytes).op(opI32Mul).call("wasm_malloc").with(opLocalTee, list)
	a.set(size)
	trapIf(a, func() { a.get(list).op(opI32Eqz) })
	walk(func() {
		a.get(size, context, next).i32(8).op(opI32Add).get(next).load(0).call("JS_NewStringLen").storeValue(0)
		a.get(size, context, next).i32(8).op(opI32Add).get(next).load(0).op(opI32Add).get(next).load(4).call("JS_NewStringLen").storeValue(valueBytes)
		a.get(size).i32(2 * valueBytes).op(opI32Add).set(size)
	})
	a.get(context, count, list).call("JS_NewArrayFrom").set(result)
	a.get(list).call("wasm_free").get(result)
}

// local is the name of the binding's function.
func (b binding) local() string { return "binding " + b.name }

// The signature of the engine's C functions: (context, this, number of arguments,
// arguments) -> value. The locals follow: one for each argument of the ABI's function, a
// count, the address of a large result, and the result.
var bindingType = wasm.FuncType{Params: []wasm.ValueType{wasm.I32, wasm.I64, wasm.I32, wasm.I32}, Results: words(0, 1)}

const (
	bindingContext = 0
	bindingArgs    = 3
	firstLocal     = 4
)

// params is the number of arguments, at least 1.
func (b binding) params() int { return max(1, len(b.function.Params)) }

// given is the number of arguments that JavaScript passes.
func (b binding) given() (n int) {
	switch {
	case b.name == "react":
		return 3
	case b.function.Name == "":
		return 1
	}
	for _, param := range b.function.Params {
		if param.Kind != abi.Buffer {
			n++
		}
	}
	return n
}

func (p *program) slot(i int) uint32 { return p.scratch + uint32(i)*slotBytes }

// bind writes the function of a binding.
func (p *program) bind(a *assembler, b binding) {
	switch b.name {
	case "random":
		p.random(a)
		return
	case "encode":
		p.convert(a, "JS_NewUint8ArrayCopy")
		return
	case "decode":
		p.convert(a, "JS_NewStringLen")
		return
	case "nesting":
		p.nesting(a)
		return
	case "react":
		p.react(a)
		return
	case "resolves":
		p.resolves(a)
		return
	case "exhausted":
		a.i32(p.scratch + exhaustedAt).load(0).op(opI64FromU32)
		return
	}
	n := uint32(firstLocal + b.params())
	hasOutput := p.takeArguments(a, b.function)
	p.pass(a, b.function, func() { a.i32(p.scratch+outputAt, outputBytes) })
	if b.function.Result {
		a.set(n)
	}
	if hasOutput {
		p.read(a, b, n)
	}
	p.dropBefore(a, b.function, len(b.function.Params))
	switch {
	case hasOutput:
		a.get(n + 2)
	case b.function.Result:
		a.get(n).op(opI64FromU32)
	default:
		a.i64(undefined)
	}
}

func exception(a *assembler) { a.i64(kindException << 32) }

// takesValue reports whether a function's last argument may be a value that is written as
// JSON. It has no output, as both would be in the same buffer.
func takesValue(f abi.Function) bool { return f.Name == "call" || f.Name == "response_send" }

// writer returns the function of functions/json.c that writes the value. Arguments must keep their
// meaning; an answer is written as by JSON.stringify.
func writer(f abi.Function) string {
	if f.Name == "call" {
		return "json_arguments"
	}
	return "json_text"
}

// takeArguments converts the arguments into locals: numbers, or addresses of bytes. It
// reports whether the function writes output.
func (p *program) takeArguments(a *assembler, f abi.Function) (hasOutput bool) {
	given := uint32(0)
	for i, param := range f.Params {
		local := uint32(firstLocal + i)
		switch param.Kind {
		case abi.Number:
			a.get(bindingArgs).loadValue(valueBytes * given).call("number").set(local)
		case abi.Text, abi.Bytes:
			if takesValue(f) && i == len(f.Params)-1 {
				a.i32(p.context).get(bindingArgs).loadValue(valueBytes*given).i32(p.slot(i), p.scratch+outputAt, outputBytes).call(writer(f))
				a.with(opLocalTee, local).i32(1).op(opI32Eq, opIf, noResult)
				p.dropBefore(a, f, i)
				a.i64(undefined).op(opReturn, opEnd).get(local)
			} else {
				a.get(bindingArgs).loadValue(valueBytes*given).i32(p.slot(i)).call("take").with(opLocalTee, local)
			}
			a.op(opI32Eqz, opIf, noResult)
			p.dropBefore(a, f, i)
			exception(a)
			a.op(opReturn, opEnd)
		case abi.Buffer:
			hasOutput = true
			continue
		default:
			panic(fmt.Sprintf("BUG: %s has a parameter of an unknown kind", f.Name))
		}
		given++
	}
	return hasOutput
}

// dropBefore frees what was allocated for the first n arguments.
func (p *program) dropBefore(a *assembler, f abi.Function, n int) {
	for i, param := range f.Params[:n] {
		if param.Kind == abi.Text || param.Kind == abi.Bytes {
			a.i32(p.slot(i)).call("drop")
		}
	}
}

// pass calls the host with the converted arguments.
func (p *program) pass(a *assembler, f abi.Function, pushOutput func()) {
	for i, param := range f.Params {
		switch param.Kind {
		case abi.Number:
			a.get(uint32(firstLocal + i))
		case abi.Text, abi.Bytes:
			a.get(uint32(firstLocal + i)).i32(p.slot(i)).load(0)
		case abi.Buffer:
			pushOutput()
		}
	}
	a.call(abi.Module + "." + f.Name)
}

// read creates a value from the host's output, in local n+2: n bytes in the buffer or, if
// the buffer is too small, in larger memory that the host writes to again. A negative n, also
// of the second call, is itself the value. Without memory the value is an exception.
func (p *program) read(a *assembler, b binding, n uint32) {
	more, result := n+1, n+2
	value := map[form]string{asText: "JS_NewStringLen", asBytes: "JS_NewUint8ArrayCopy", asPairs: "pairs", asValue: "json_value"}[b.form]
	convert := func(pushAddress func()) {
		a.get(n).i32(0).op(opI32LtS, opIf, noResult)
		a.get(n).op(opI64FromU32).set(result)
		a.op(opElse).get(bindingContext)
		pushAddress()
		a.get(n).call(value).set(result)
		a.op(opEnd)
	}
	a.get(n).i32(outputBytes).op(opI32GtS, opIf, noResult)
	a.get(n).i32(1).op(opI32Add).call("wasm_malloc").set(more) // json_value needs a byte more
	a.get(more).op(opI32Eqz, opIf, noResult).get(bindingContext).call("out of memory").set(result).op(opElse)
	p.pass(a, b.function, func() { a.get(more, n) })
	a.set(n)
	convert(func() { a.get(more) })
	a.get(more).call("wasm_free").op(opEnd, opElse)
	convert(func() { a.i32(p.scratch + outputAt) })
	a.op(opEnd)
}

// random returns random bytes, at most as many as the buffer holds.
func (p *program) random(a *assembler) {
	const count = firstLocal
	a.get(bindingArgs).loadValue(0).call("number").with(opLocalTee, count)
	a.i32(outputBytes).op(opI32GtS, opIf, noResult).i32(outputBytes).set(count).op(opEnd)
	trapIf(a, func() { a.i32(p.scratch + outputAt).get(count).call("wasi_snapshot_preview1.random_get") })
	a.get(bindingContext).i32(p.scratch + outputAt).get(count).call("JS_NewUint8ArrayCopy")
}

// convert creates a value from the bytes of another one.
func (p *program) convert(a *assembler, function string) {
	const at, result = firstLocal, firstLocal + 3
	a.get(bindingArgs).loadValue(0).i32(p.slot(0)).call("take").with(opLocalTee, at)
	a.op(opI32Eqz, opIf, noResult)
	exception(a)
	a.op(opReturn, opEnd)
	a.get(bindingContext, at).i32(p.slot(0)).load(0).call(function).set(result)
	a.i32(p.slot(0)).call("drop").get(result)
}

// react(promise, done, failed) does what await does: it makes no promise of what the
// functions return.
func (p *program) react(a *assembler) {
	const none = rejectedAt // two values that are undefined
	a.i32(p.scratch + none).i64(undefined).storeValue(0)
	a.i32(p.scratch + none).i64(undefined).storeValue(valueBytes)
	a.get(bindingContext, bindingArgs).loadValue(0)
	a.get(bindingArgs).i32(valueBytes).op(opI32Add).i32(p.scratch + none).call("perform_promise_then")
	a.i32(0).op(opI32LtS, opIf, noResult)
	exception(a)
	a.op(opReturn, opEnd)
	a.i64(undefined)
}

// resolves returns whether a value is a function that resolves a promise.
func (p *program) resolves(a *assembler) {
	a.get(bindingArgs).loadValue(0).kind().i32(kindObject).op(opI32Eq, opIf, noResult)
	a.get(bindingArgs).load(0).op(opI32Load16U, 1).number(objectClass).i32(classResolve).op(opI32Eq, opI64FromU32, opReturn, opEnd)
	a.i64(0)
}

// nesting returns the nesting depth of a JSON text.
func (p *program) nesting(a *assembler) {
	const at = firstLocal
	a.get(bindingArgs).loadValue(0).i32(p.slot(0)).call("take").with(opLocalTee, at)
	a.op(opI32Eqz, opIf, noResult)
	exception(a)
	a.op(opReturn, opEnd)
	a.get(at).i32(p.slot(0)).load(0).call("deepest").op(opI64FromU32)
	a.i32(p.slot(0)).call("drop")
}

// deepest(at, length) counts the largest number of open brackets outside strings. For a
// text that is not JSON the number has no meaning: the parser refuses the text.
func deepest(a *assembler) {
	const at, length, depth, most, quoted, char = 0, 1, 2, 3, 4, 5
	const end = length
	const small = '{' &^ '[' // '[' | small is '{', and ']' | small is '}'
	add := func(local, n uint32) { a.get(local).i32(n).op(opI32Add).set(local) }
	is := func(c uint32) *assembler { return a.get(char).i32(c).op(opI32Eq) }
	a.get(at, length).op(opI32Add).set(end)
	a.op(opBlock, noResult, opLoop, noResult)
	a.get(at, end).op(opI32LtU, opI32Eqz, opBrIf, 1)
	a.get(at).op(opI32Load8U, 0, 0).set(char)
	add(at, 1)
	is('"').op(opIf, noResult).get(quoted).op(opI32Eqz).set(quoted).op(opBr, 1, opEnd)
	a.get(quoted).op(opIf, noResult)
	is('\\').op(opIf, noResult)
	add(at, 1)
	a.op(opEnd, opBr, 1, opEnd)
	a.get(char).i32(small).op(opI32Or).set(char)
	is('{').op(opIf, noResult)
	add(depth, 1)
	a.get(depth, most).op(opI32GtS, opIf, noResult).get(depth).set(most).op(opEnd, opEnd)
	is('}').op(opIf, noResult)
	add(depth, 0xffffffff)
	a.op(opEnd, opBr, 0, opEnd, opEnd)
	a.get(most)
}
