package component

import "runner.example/internal/wasm"

// Plan is what a component comes to: core instances, in the order in which they are
// instantiated, and functions of the canonical ABI. It is read-only.
type Plan struct {
	Instances []*CoreInstance
	// Components is how many component instances there are. They have numbers from 0, the file's own.
	// Each has a handle table of its own.
	Components int
	// Imports are the functions and resources that the host must supply, in order. What no core
	// module uses is among them.
	Imports   []*Import
	Resources []*Resource // that component instances define, in order
	Canons    []*Canon    // in order of their definition; a Canon that no core module uses is among them
	Exports   []*Export
}

// CoreInstance is an instance of a core module. Its start function runs when it is instantiated.
type CoreInstance struct {
	Owner  int // the component instance that it is in, by its number
	Module *Module
	// Imports says what each import of the module is, in the order of its Externals.
	Imports []CoreItem
}

// Module is a core module in the file. Several instances may have the same.
type Module struct {
	At     int          // of its first byte in the file
	Parsed *wasm.Module // by wasm.ParsePart

	imports []coreExtern
	exports []coreExtern
	byName  map[string]int // exports
}

// Import is a function or a resource that the host supplies. The interface is a name such as
// "wasi:http/types@0.2.0", or empty for imports without interface. An instance that is imported
// under a label of its own has the name of the interface that it implements, if it says so.
type Import struct {
	Interface, Name string
	Func            *FuncType // or
	Resource        *Resource
}

// Export is what the host may use: a function, or a resource. The interface is as in Import.
type Export struct {
	Interface, Name string
	Func            *Func // or
	Resource        *Resource
}

// Func is a function of a component. Exactly one of Import and Lift is there. The functions that
// a plan has are the host's or lifted ones; what a component only hands on is resolved.
type Func struct {
	Type   *FuncType
	Import *Import
	Lift   *Lift
}

// Lift is the definition of a function by a core function.
type Lift struct {
	Owner   int       // the component instance, by its number
	Type    *FuncType // as defined; the Func's names other types if an export says so, but equal ones
	Core    CoreItem
	Shape   CoreShape
	Options Options
}

// Encoding is how strings are stored.
type Encoding byte

// The encodings of strings.
const (
	UTF8 Encoding = iota
	UTF16
	Latin1UTF16 // Latin-1, or UTF-16 if the highest bit of the length is set
)

// Options are those of a canonical definition. Items that are not there are zero.
type Options struct {
	Encoding                              Encoding
	Memory, Realloc, PostReturn, Callback CoreItem
	Async                                 bool
}

// Canon is a core function that the canonical ABI defines.
type Canon struct {
	Op      Op
	Owner   int // the component instance that it acts for, by its number
	Core    wasm.FuncType
	Options Options // of Lower, TaskReturn, reads, writes and messages; waits and polls have a memory

	Func     *Func      // Lower
	Shape    CoreShape  // Lower and TaskReturn
	Resource *Resource  // ResourceNew, ResourceDrop, ResourceRep
	Type     *ValueType // the type of the stream or future; for TaskReturn that of the result, or nil
	Slot     uint32     // ContextGet and ContextSet
	Async    bool       // cancelling: does not wait until the other side has answered
}

// Op is what a Canon does, by its byte in the binary format.
type Op byte

// The definitions of the canonical ABI.
const (
	lift                     Op = 0x00
	Lower                    Op = 0x01
	ResourceNew              Op = 0x02
	ResourceDrop             Op = 0x03
	ResourceRep              Op = 0x04
	TaskCancel               Op = 0x05
	SubtaskCancel            Op = 0x06
	TaskReturn               Op = 0x09
	ContextGet               Op = 0x0a
	ContextSet               Op = 0x0b
	ThreadYield              Op = 0x0c
	SubtaskDrop              Op = 0x0d
	StreamNew                Op = 0x0e
	StreamRead               Op = 0x0f
	StreamWrite              Op = 0x10
	StreamCancelRead         Op = 0x11
	StreamCancelWrite        Op = 0x12
	StreamDropReadable       Op = 0x13
	StreamDropWritable       Op = 0x14
	FutureNew                Op = 0x15
	FutureRead               Op = 0x16
	FutureWrite              Op = 0x17
	FutureCancelRead         Op = 0x18
	FutureCancelWrite        Op = 0x19
	FutureDropReadable       Op = 0x1a
	FutureDropWritable       Op = 0x1b
	ErrorContextNew          Op = 0x1c
	ErrorContextDebugMessage Op = 0x1d
	ErrorContextDrop         Op = 0x1e
	WaitableSetNew           Op = 0x1f
	WaitableSetWait          Op = 0x20
	WaitableSetPoll          Op = 0x21
	WaitableSetDrop          Op = 0x22
	WaitableJoin             Op = 0x23
	BackpressureInc          Op = 0x24
	BackpressureDec          Op = 0x25
)

// form is what follows a definition's byte, and how its core function looks.
type form struct {
	name string
	// immediates: z the byte 0, f a function, t a type, r a result list, o options, a async or not,
	// m a memory, v a core type, s a slot; "-": the definition is refused.
	immediates string
	core       string // parameters > results: i for i32, l for i64; empty: it depends on types
}

func (op Op) String() string { return forms[op].name }

var forms = map[Op]form{
	lift:                     {"lift", "zfot", ""},
	Lower:                    {"lower", "zfo", ""},
	ResourceNew:              {"resource.new", "t", "i>i"},
	ResourceDrop:             {"resource.drop", "t", "i>"},
	ResourceRep:              {"resource.rep", "t", "i>i"},
	TaskCancel:               {"task.cancel", "", ">"},
	SubtaskCancel:            {"subtask.cancel", "a", "i>i"},
	TaskReturn:               {"task.return", "ro", ""},
	ContextGet:               {"context.get", "vs", ">i"},
	ContextSet:               {"context.set", "vs", "i>"},
	ThreadYield:              {"thread.yield", "z", ">i"},
	SubtaskDrop:              {"subtask.drop", "", "i>"},
	StreamNew:                {"stream.new", "t", ">l"},
	StreamRead:               {"stream.read", "to", "iii>i"},
	StreamWrite:              {"stream.write", "to", "iii>i"},
	StreamCancelRead:         {"stream.cancel-read", "ta", "i>i"},
	StreamCancelWrite:        {"stream.cancel-write", "ta", "i>i"},
	StreamDropReadable:       {"stream.drop-readable", "t", "i>"},
	StreamDropWritable:       {"stream.drop-writable", "t", "i>"},
	FutureNew:                {"future.new", "t", ">l"},
	FutureRead:               {"future.read", "to", "ii>i"},
	FutureWrite:              {"future.write", "to", "ii>i"},
	FutureCancelRead:         {"future.cancel-read", "ta", "i>i"},
	FutureCancelWrite:        {"future.cancel-write", "ta", "i>i"},
	FutureDropReadable:       {"future.drop-readable", "t", "i>"},
	FutureDropWritable:       {"future.drop-writable", "t", "i>"},
	ErrorContextNew:          {"error-context.new", "o", "ii>i"},
	ErrorContextDebugMessage: {"error-context.debug-message", "o", "ii>"},
	ErrorContextDrop:         {"error-context.drop", "", "i>"},
	WaitableSetNew:           {"waitable-set.new", "", ">i"},
	WaitableSetWait:          {"waitable-set.wait", "zm", "ii>i"},
	WaitableSetPoll:          {"waitable-set.poll", "zm", "ii>i"},
	WaitableSetDrop:          {"waitable-set.drop", "", "i>"},
	WaitableJoin:             {"waitable.join", "", "ii>"},
	BackpressureInc:          {"backpressure.inc", "", ">"},
	BackpressureDec:          {"backpressure.dec", "", ">"},
	0x26:                     {"thread.index", "-", ""},
	0x27:                     {"thread.new-indirect", "-", ""},
	0x28:                     {"thread.resume-later", "-", ""},
	0x29:                     {"thread.suspend", "-", ""},
	0x2a:                     {"thread.suspend-then-resume", "-", ""},
	0x2b:                     {"thread.yield-then-resume", "-", ""},
	0x2c:                     {"thread.suspend-then-promote", "-", ""},
	0x2d:                     {"thread.yield-then-promote", "-", ""},
	0x2e:                     {"stream.forward", "-", ""},
	0x2f:                     {"future.forward", "-", ""},
	0x40:                     {"thread.spawn-ref", "-", ""},
	0x41:                     {"thread.spawn-indirect", "-", ""},
	0x42:                     {"thread.available-parallelism", "-", ""},
}

// signature is the core type that a form's text means.
func (f form) signature() (t wasm.FuncType) {
	to := &t.Params
	for _, c := range f.core {
		switch c {
		case 'i':
			*to = append(*to, wasm.I32)
		case 'l':
			*to = append(*to, wasm.I64)
		default:
			to = &t.Results
		}
	}
	return t
}
