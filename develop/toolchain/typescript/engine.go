package typescript

import (
	"context"
	"crypto/sha256"
	"embed"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/imports/wasi_snapshot_preview1"

	"runner.example/hostabi/abi"
	"runner.example/hostabi/octets"
	"runner.example/internal/charset"
	"runner.example/internal/idn"
	"runner.example/internal/timezone"
	"runner.example/internal/wasm"
	_ "runner.example/internal/wazerofix"
)

// engineDigest is the SHA-256 of engine/quickjs.wasm: QuickJS-NG 0.17.0 from the npm
// package quickjs-wasi 3.6.2. tools/fetch-engine.sh reads this line.
const engineDigest = "d4c9375f2b1ca4dc95f72c8aa2982a7a9951ac8011490d79c6582df732b4bbd9"

// engineFunctions are functions of the engine that it does not export, by their names in its
// source.
var engineFunctions = map[string]uint32{
	"add_property":                   158,
	"define_value":                   148, // JS_DefinePropertyValue
	"find_own_property":              99,
	"fmod":                           288,
	"free_gc_object":                 46,
	"free_property":                  52,
	"free_shape":                     53,
	"hash_string8":                   386,
	"js_alloc_string":                322,
	"js_array_iterator_next":         132,
	"js_array_sort":                  1279, // Array.prototype.sort
	"js_binary_logic_slow":           123,
	"js_for_of_start":                167,
	"js_free":                        82,
	"js_free_rt":                     22,
	"JS_EnqueueJob":                  60,
	"JS_ExecutePendingJob":           631,
	"JS_FreeValue":                   39,
	"JS_FreeValueRT":                 40,
	"JS_GetPropertyValue":            142,
	"JS_IteratorClose":               137,
	"JS_IteratorNext":                136,
	"js_json_parse":                  921, // JSON.parse
	"js_json_stringify":              928, // JSON.stringify
	"js_malloc":                      63,
	"js_malloc_rt":                   21,
	"JS_NewObjectFromShape":          103,
	"js_number_toFixed":              1242, // Number.prototype.toFixed
	"js_poll_interrupts":             93,
	"js_regexp_exec":                 961,
	"js_regexp_get_flags":            966,
	"js_regexp_string_iterator_next": 958,
	"js_regexp_Symbol_match":         976,
	"js_regexp_Symbol_matchAll":      977,
	"js_regexp_Symbol_replace":       972,
	"js_regexp_Symbol_search":        978,
	"js_regexp_Symbol_split":         979,
	"js_regexp_test":                 970,
	"JS_RegExpExec":                  959,
	"js_relational_slow":             122,
	"js_string_concat":               1205, // String.prototype.concat
	"js_string_indexof_char":         973,
	"js_string_match":                1212, // and matchAll
	"js_sub_string":                  931,
	"JS_ThrowOutOfMemory":            30,
	"lre_canonicalize":               1488,
	"lre_exec":                       963, // one match of a regular expression
	"lre_is_space":                   331,
	"lre_realloc":                    948,
	"map_find_record":                504,
	"memcmp":                         365,
	"perform_promise_then":           438,
	"set_value":                      109,
	"string_units":                   51,
	"to_float":                       273,
	"to_numeric":                     282,
}

// engineFiles always has the licence notices, and the engine if it was present when this
// program was built.
//
//go:embed engine
var engineFiles embed.FS

// ErrNoEngine means that this program was built without the JavaScript engine.
var ErrNoEngine = errors.New("this runner was built without the JavaScript engine, which TypeScript needs: in its source directory, run make build, or tools/fetch-engine.sh && go install ./cmd/runner")

func engineFile() ([]byte, error) {
	file, err := engineFiles.ReadFile("engine/quickjs.wasm")
	if errors.Is(err, fs.ErrNotExist) {
		return nil, ErrNoEngine
	}
	if err != nil {
		return nil, err
	}
	if sum := sha256.Sum256(file); hex.EncodeToString(sum[:]) != engineDigest {
		return nil, errors.New("this runner was built with another version of the JavaScript engine: in its source directory, run make build, or tools/fetch-engine.sh && go install ./cmd/runner")
	}
	return file, nil
}

// Notices returns the licences of the parts of a TypeScript module and of the tools that
// build it.
func Notices() string {
	text, err := engineFiles.ReadFile("engine/NOTICE.md")
	if err != nil {
		panic("BUG: the notices are embedded: " + err.Error())
	}
	return string(text)
}

// javascriptStack is the part of the engine's 1 MiB of stack that JavaScript may use.
// Deeper recursion is a RangeError. It must occur before the sandbox's limit of the native
// stack, of which each byte here takes up to 20 (measured with some forty kinds of
// recursion, callbacks and conversions among them). At that limit a handler traps.
const javascriptStack = 610_000

// Flags of qjs_compile.
const (
	stripSource = 16
	stripDebug  = 32 // places and the names of variables
)

// engine is the JavaScript engine during a build. Values in it are handles: addresses in
// its memory. One goroutine uses it.
type engine struct {
	ctx        context.Context
	runtime    wazero.Runtime
	cache      wazero.CompilationCache // may be nil
	module     api.Module
	idle       map[string][]api.Function // exports that no call uses; a new one takes 12 KiB
	parsed     *wasm.Module
	failed     error  // the first call that failed
	scratch    uint32 // see glue.go
	runner     uint64 // the handle of globalThis.__runner, once it exists
	result     string // of the last operation
	evaluating bool   // the handlers' files are being evaluated
	clockReads uint64
	// log receives the log lines of the evaluation.
	log func(text string)
}

// startEngine starts the engine; see engineConfig for the directory. Clock and randomness
// are fixed, so that equal sources make equal modules.
func startEngine(ctx context.Context, cacheDir string, log func(text string)) (*engine, error) {
	file, err := engineFile()
	if err != nil {
		return nil, err
	}
	parsed, err := wasm.Parse(file, wasm.DefaultLimits())
	if err != nil {
		return nil, fmt.Errorf("the JavaScript engine %w", err)
	}
	file, _, err = parsed.Rewrite(wasm.Options{}) // for the target: see wasm.Options
	if err != nil {
		return nil, fmt.Errorf("the JavaScript engine %w", err)
	}
	e := &engine{ctx: ctx, parsed: parsed, log: log, idle: map[string][]api.Function{}}
	config, cache := engineConfig(cacheDir)
	e.runtime, e.cache = wazero.NewRuntimeWithConfig(ctx, config), cache
	if err := e.boot(file); err != nil {
		return nil, errors.Join(err, e.close())
	}
	return e, nil
}

func (e *engine) close() error {
	ctx := context.WithoutCancel(e.ctx)
	err := e.runtime.Close(ctx)
	if e.cache != nil {
		err = errors.Join(err, e.cache.Close(ctx))
	}
	return err
}

func (e *engine) boot(file []byte) error {
	wasi := e.runtime.NewHostModuleBuilder(wasi_snapshot_preview1.ModuleName)
	wasi_snapshot_preview1.NewFunctionExporter().ExportFunctions(wasi)
	wasi.NewFunctionBuilder().WithFunc(e.clock).Export("clock_time_get")
	if _, err := wasi.Instantiate(e.ctx); err != nil {
		return err
	}
	env := e.runtime.NewHostModuleBuilder("env")
	i32 := func(n int) []api.ValueType { return slices.Repeat([]api.ValueType{api.ValueTypeI32}, n) }
	for name, f := range map[string]struct {
		params, results int
		do              func(stack []uint64)
	}{
		"host_call":                {5, 1, e.hostCall},
		"host_interrupt":           {0, 1, e.interrupt},
		"host_promise_rejection":   {3, 0, e.reject},
		"host_module_normalize":    {2, 1, func(stack []uint64) { stack[0] = 0 }},
		"host_module_load":         {2, 1, func(stack []uint64) { stack[0] = 0 }},
		"host_get_timezone_offset": {2, 1, func(stack []uint64) { stack[0] = 0 }},
	} {
		do := f.do
		env.NewFunctionBuilder().WithGoFunction(api.GoFunc(func(_ context.Context, stack []uint64) { do(stack) }), i32(f.params), i32(f.results)).Export(name)
	}
	if _, err := env.Instantiate(e.ctx); err != nil {
		return err
	}
	module, err := e.runtime.InstantiateWithConfig(e.ctx, file, wazero.NewModuleConfig().WithName("").WithStartFunctions())
	if err != nil {
		return fmt.Errorf("start the JavaScript engine: %w", err)
	}
	e.module = module
	e.do("_initialize")
	if e.do("qjs_init") != 0 && e.failed == nil {
		return errors.New("start the JavaScript engine: it exports no memory")
	}
	e.do("qjs_set_max_stack_size", javascriptStack)
	e.do("qjs_set_interrupt_handler", 1)
	e.do("qjs_set_promise_rejection_handler", 1)
	e.scratch = uint32(e.place(make([]byte, scratchBytes)))
	return e.failed
}

// do calls a function of the engine that returns an i32 or nothing. After a failed call it
// does nothing.
func (e *engine) do(name string, args ...uint64) uint64 {
	return uint64(uint32(e.invoke(name, args...))) // the upper half of an i32 result is undefined
}

func (e *engine) invoke(name string, args ...uint64) uint64 {
	if e.failed != nil {
		return 0
	}
	var f api.Function
	if idle := e.idle[name]; len(idle) > 0 {
		f, e.idle[name] = idle[len(idle)-1], idle[:len(idle)-1] // a call within it needs another one
	} else if f = e.module.ExportedFunction(name); f == nil {
		e.failed = fmt.Errorf("the JavaScript engine has no function %s", name)
		return 0
	}
	results, err := f.Call(e.ctx, args...)
	if err != nil {
		e.failed = fmt.Errorf("the JavaScript engine failed in %s: %w", name, err)
		return 0
	}
	e.idle[name] = append(e.idle[name], f)
	if len(results) == 0 {
		return 0
	}
	return results[0]
}

// builtAt is the time at which the clock of a build begins, in nanoseconds: 2022-01-01.
const builtAt = 1_640_995_200_000_000_000

// clock is clock_time_get during a build. The time is the same in every build, and advances by a
// millisecond with each read. A value that the handlers' files compute from it is the same in every
// request, so each read is a warning.
func (e *engine) clock(_ context.Context, m api.Module, _ uint32, _ uint64, result uint32) uint32 {
	const ok, fault = 0, 21
	e.clockReads++
	if !m.Memory().WriteUint64Le(result, builtAt+e.clockReads*uint64(time.Millisecond)) {
		return fault
	}
	if e.evaluating {
		what := e.withBytes([]byte("Date: this time is the build's, not a request's, and is"), "qjs_new_string")
		e.do("qjs_free_value", e.apply(e.runner, e.property(e.runner, "freeze"), what))
		e.do("qjs_free_value", what)
	}
	return ok
}

// interrupt is called regularly and ends the evaluation when its time is over.
func (e *engine) interrupt(stack []uint64) {
	stack[0] = 0
	if e.ctx.Err() != nil {
		stack[0] = 1
	}
}

// reject reports a rejected promise to JavaScript, as the glue does in the module.
func (e *engine) reject(stack []uint64) {
	promise, reason, handled := uint64(uint32(stack[0])), uint64(uint32(stack[1])), float64(uint32(stack[2]))
	if rejected := e.property(e.runner, "rejected"); e.do("qjs_is_function", rejected) != 0 {
		e.do("qjs_free_value", e.apply(e.runner, rejected, promise, reason, e.newNumber(handled)))
	}
	e.do("qjs_free_value", promise)
	e.do("qjs_free_value", reason)
}

// hostCall implements the host functions during a build: logging, text conversion, and the
// operations that need no request. Others are refused before.
func (e *engine) hostCall(stack []uint64) {
	name, argc, argv := uint32(stack[0]), uint32(stack[3]), uint32(stack[4])
	letter, _ := e.module.Memory().ReadByte(name)
	arg := func(i uint32) uint64 {
		if i >= argc {
			return 0
		}
		v, _ := e.module.Memory().ReadUint32Le(argv + 4*i)
		return uint64(v)
	}
	switch binding := bindings()[letter-firstBinding]; {
	case binding.name == "log":
		e.log(e.text(arg(1)))
		stack[0] = e.do("qjs_get_undefined")
	case binding.name == "encode":
		text := e.text(arg(0))
		stack[0] = e.withBytes([]byte(text), "qjs_new_uint8_array")
	case binding.name == "decode":
		stack[0] = e.withBytes(e.bytes(arg(0)), "qjs_new_string")
	case binding.form == asValue, binding.name == "resolves", takesValue(binding.function) && e.do("qjs_is_object", arg(1)) != 0:
		stack[0] = e.do("qjs_get_undefined")
	case binding.name == "exhausted":
		stack[0] = e.newNumber(0)
	case binding.name == "call":
		stack[0] = e.newNumber(float64(e.operation(e.text(arg(0)), e.text(arg(1)))))
	case binding.name == "call_result":
		stack[0] = e.withBytes([]byte(e.result), "qjs_new_string")
	default:
		stack[0] = e.newNumber(float64(abi.Unavailable))
	}
}

// operation runs an operation that needs no request, and returns what call does.
func (e *engine) operation(name, args string) int {
	var in struct {
		Domain, Zone, Encoding, State string
		At                            int64
		Data                          octets.Bytes
		More, Fatal                   bool
	}
	if json.Unmarshal([]byte(args), &in) != nil {
		return int(abi.Invalid)
	}
	var answer any
	var err error
	switch name {
	case "domainToASCII":
		var ascii string
		ascii, err = idn.ToASCII(in.Domain)
		answer = map[string]string{"ascii": ascii}
	case "timeZone":
		answer, err = timezone.At(in.Zone, in.At)
	case "encoding.decode":
		answer, err = charset.DecodeLabel(in.Encoding, in.Data, in.State, in.More, in.Fatal)
	default:
		return int(abi.Unavailable)
	}
	if err != nil {
		return int(abi.Invalid)
	}
	result, _ := json.Marshal(answer)
	e.result = string(result)
	return len(result)
}

func (e *engine) number(handle uint64) float64 {
	return api.DecodeF64(e.invoke("qjs_get_float64", handle))
}

func (e *engine) newNumber(n float64) uint64 { return e.do("qjs_new_number", api.EncodeF64(n)) }

// place copies bytes and a terminating zero into the engine's memory. The caller frees
// them.
func (e *engine) place(b []byte) uint64 {
	at := e.do("wasm_malloc", uint64(len(b)+1))
	if at == 0 && e.failed == nil {
		e.failed = errors.New("the handlers need more memory than a module can have")
	}
	if e.failed == nil {
		e.module.Memory().Write(uint32(at), append(slices.Clip(b), 0))
	}
	return at
}

// discard frees memory from place. It is zeroed first, because the module starts with this
// memory.
func (e *engine) discard(at uint64, size int) {
	if view, ok := e.module.Memory().Read(uint32(at), uint32(size)); ok && e.failed == nil {
		clear(view)
	}
	e.do("wasm_free", at)
}

// withBytes calls a function of an address and a length with a copy of b.
func (e *engine) withBytes(b []byte, function string) uint64 {
	at := e.place(b)
	result := e.do(function, at, uint64(len(b)))
	e.discard(at, len(b))
	return result
}

// text returns a value as a string.
func (e *engine) text(handle uint64) string {
	length := e.place(make([]byte, 4))
	at := e.do("qjs_get_string_len", handle, length)
	if e.failed != nil || at == 0 {
		return ""
	}
	n, _ := e.module.Memory().ReadUint32Le(uint32(length))
	b, _ := e.module.Memory().Read(uint32(at), n)
	s := string(b)
	e.do("qjs_free_cstring", at)
	e.do("wasm_free", length)
	return s
}

// bytes copies the content of a typed array.
func (e *engine) bytes(handle uint64) []byte {
	outputs := e.place(make([]byte, 16))
	defer func() { e.do("wasm_free", outputs) }()
	buffer := e.do("qjs_get_typed_array_buffer", handle, outputs, outputs+4, outputs+8)
	defer func() { e.do("qjs_free_value", buffer) }()
	if e.do("qjs_is_exception", buffer) != 0 {
		return nil
	}
	at := e.do("qjs_get_array_buffer", buffer, outputs+12)
	if e.failed != nil {
		return nil
	}
	offset, _ := e.module.Memory().ReadUint32Le(uint32(outputs))
	length, _ := e.module.Memory().ReadUint32Le(uint32(outputs) + 4)
	b, _ := e.module.Memory().Read(uint32(at)+offset, length)
	return slices.Clone(b)
}

// value returns the value of a handle, which is the value's address.
func (e *engine) value(handle uint64) uint64 {
	v, _ := e.module.Memory().ReadUint64Le(uint32(handle))
	return v
}

// handle creates a handle for a value. The caller frees it with qjs_free_value, which frees
// both.
func (e *engine) handle(value uint64) uint64 {
	return e.place(binary.LittleEndian.AppendUint64(nil, value))
}

// property returns an object's property.
func (e *engine) property(object uint64, name string) uint64 {
	at := e.place([]byte(name))
	value := e.do("qjs_get_prop_string", object, at)
	e.do("wasm_free", at)
	return value
}

func (e *engine) setProperty(object uint64, name string, value uint64) {
	at := e.place([]byte(name))
	e.do("qjs_set_prop_string", object, at, value)
	e.do("wasm_free", at)
}

// thrown is a JavaScript exception.
type thrown struct{ name, message, stack string }

func (t *thrown) Error() string { return t.name + ": " + t.message }

// run evaluates a script and its pending jobs. Only the handlers' script has places for stack
// traces. For the others they would make each module larger.
func (e *engine) run(file, script string) (uint64, error) {
	code, name := e.place([]byte(script)), e.place([]byte(file))
	length := e.place(make([]byte, 4))
	flags := uint64(stripSource)
	if file != bundleFile {
		flags |= stripDebug
	}
	compiled := e.do("qjs_compile", code, uint64(len(script)), name, 0, flags, length)
	e.discard(code, len(script))
	e.discard(name, len(file))
	if e.failed != nil {
		return 0, e.failed
	}
	if compiled == 0 {
		return 0, e.exception()
	}
	n, _ := e.module.Memory().ReadUint32Le(uint32(length))
	result := e.do("qjs_eval_bytecode", compiled, uint64(n))
	e.discard(compiled, int(n))
	e.discard(length, 4)
	return e.settle(result)
}

// call calls a method of an object.
func (e *engine) call(object uint64, name string, args ...uint64) (uint64, error) {
	return e.settle(e.apply(object, e.property(object, name), args...))
}

// apply calls a function and frees it, without running pending jobs.
func (e *engine) apply(object, function uint64, args ...uint64) uint64 {
	var list []byte
	for _, arg := range args {
		list = binary.LittleEndian.AppendUint32(list, uint32(arg))
	}
	at := e.place(list)
	result := e.do("qjs_call", function, object, uint64(len(args)), at)
	e.discard(at, len(list))
	e.do("qjs_free_value", function)
	return result
}

// settle runs the pending jobs after a call.
func (e *engine) settle(result uint64) (uint64, error) {
	if e.do("qjs_is_exception", result) != 0 {
		return 0, e.exception()
	}
	for e.do("qjs_is_job_pending") != 0 {
		if int32(e.do("qjs_execute_pending_job")) < 0 {
			return 0, e.exception()
		}
	}
	return result, e.failed
}

// exception takes the pending exception of a call.
func (e *engine) exception() error {
	if e.failed != nil {
		return e.failed
	}
	if err := e.ctx.Err(); err != nil {
		return fmt.Errorf("evaluate the handlers: %w", err)
	}
	value := e.do("qjs_get_exception")
	t := e.thrown(value)
	e.do("qjs_free_value", value)
	return t
}

// thrown reads an exception.
func (e *engine) thrown(value uint64) *thrown {
	if e.do("qjs_is_object", value) == 0 {
		return &thrown{name: "thrown", message: e.text(value)}
	}
	if e.do("qjs_is_error", value) == 0 && e.runner != 0 { // reading it may throw again
		text := e.text(e.apply(e.runner, e.property(e.runner, "trace"), value))
		return &thrown{name: "thrown", message: strings.TrimPrefix(text, "thrown: ")}
	}
	member := func(name string) string { return e.text(e.property(value, name)) }
	return &thrown{name: member("name"), message: member("message"), stack: member("stack")}
}

// collectAt is the number of allocated bytes at which the engine collects cyclic garbage,
// or 1.5 times the module's initial allocation if that is more. A collection writes to the
// whole heap, so few requests should reach it.
const collectAt = 4 << 20

// usageBytes is the size of the engine's memory usage record: 26 numbers of 8 bytes, the
// first of which is the number of allocated bytes.
const usageBytes = 26 * 8

// allocated returns the number of bytes that the engine has allocated.
func (e *engine) allocated() uint64 {
	at := e.place(make([]byte, usageBytes))
	e.do("qjs_compute_memory_usage", at)
	bytes, ok := e.module.Memory().ReadUint64Le(uint32(at))
	if !ok && e.failed == nil {
		e.failed = errors.New("read the JavaScript engine's memory usage: no record")
	}
	e.discard(at, usageBytes)
	return bytes
}

// memory returns the engine's memory when nothing runs, without the unused part of the
// stack, which lies below the data. The caller owns it.
func (e *engine) memory() (content []byte, stackPointer uint32, err error) {
	e.do("qjs_run_gc")
	e.do("qjs_set_gc_threshold", max(collectAt, e.allocated()/2*3))
	e.fillHoles()
	if e.failed != nil {
		return nil, 0, e.failed
	}
	pointer := e.module.ExportedGlobal("__stack_pointer")
	if pointer == nil {
		return nil, 0, errors.New("the JavaScript engine does not export its stack pointer")
	}
	stackPointer = uint32(pointer.Get())
	view, ok := e.module.Memory().Read(0, e.module.Memory().Size())
	if !ok || uint64(stackPointer) > uint64(len(view)) || stackPointer > math.MaxInt32 {
		return nil, 0, errors.New("the JavaScript engine's stack pointer is out of bounds")
	}
	content = slices.Clone(view)
	clear(content[:stackPointer])
	return content, stackPointer, nil
}

// fillHoles allocates all free memory between used blocks, so that later allocations are
// contiguous at the end: each page that a request writes, even to count a reference, must
// be restored after it. Large holes come first, because small blocks fit into them. It clears
// the blocks, so that the module does not contain their old data.
func (e *engine) fillHoles() {
	const most, least, header = 64 << 10, 8, 64
	var large []uint64 // until the memory grows: then no hole of this size is left
	for size := e.module.Memory().Size(); size == e.module.Memory().Size() && e.failed == nil; {
		large = append(large, e.do("wasm_malloc", most))
	}
	if e.failed != nil {
		return
	}
	for _, hole := range large {
		e.clear(hole, most)
	}
	end := large[len(large)-1] // the start of the new memory
	for i := len(large) - 1; i >= 0 && large[i] <= end && end-large[i] <= most+header; i-- {
		end = large[i]
		e.do("wasm_free", end)
	}
	for size := uint64(most); size >= least && e.failed == nil; size = size * 7 / 8 &^ 7 {
		for {
			at := e.do("wasm_malloc", size)
			if at >= end || at == 0 {
				e.do("wasm_free", at)
				break
			}
			e.clear(at, size)
		}
	}
	// JavaScript allocates blocks of less than blockMost bytes from pools, one per size.
	const blockMost = 504
	runtime := e.do("qjs_get_runtime_ptr")
	for size := uint64(blockMost); size >= least && e.failed == nil; size -= 8 {
		for at := uint64(1); at != 0 && at < end; {
			if at = e.do("js_malloc_rt", runtime, size); at != 0 && at < end {
				e.clear(at, size)
			}
		}
	}
}

// clear fills memory with zeros.
func (e *engine) clear(at, size uint64) {
	if block, ok := e.module.Memory().Read(uint32(at), uint32(size)); ok {
		clear(block)
	} else if e.failed == nil {
		e.failed = errors.New("clear the JavaScript engine's free memory: a block is out of bounds")
	}
}

// evaluationTime is the time limit for evaluating the handlers' files.
const evaluationTime = 10 * time.Second
