package wasi

import (
	"encoding/binary"
	"fmt"
	"slices"
	"time"

	"github.com/tetratelabs/wazero/api"

	"runner.example/hostabi"
	"runner.example/internal/component"
	"runner.example/internal/component/canon"
)

// A run of a component of WASI 0.3 is one task: the call of its handler, until its callback says that it has ended. The
// guest waits in the host, for subtasks, which are calls of the host that have not returned, and for operations on
// streams and futures.

// The codes of events.
const (
	eventNone = iota
	eventSubtask
	eventStreamRead
	eventStreamWrite
	eventFutureRead
	eventFutureWrite
)

// The states of a subtask.
const (
	subtaskStarted   = 1
	subtaskReturned  = 2
	subtaskCancelled = 4 // after it has started
)

// The codes of a callback, in the lowest bits. The handle of the set is above them.
const (
	callbackYield = 1
	callbackWait  = 2
)

// waitable is what the guest can wait for.
type waitable interface {
	resource
	// ready reports whether there is an event. If not, it returns the time after which to ask again, as that of pollable
	// does.
	ready(r *run, now time.Time) (bool, time.Duration)
	// event takes the event that is ready, and returns its code and its payload.
	event(r *run) (code, number uint32)
	// set returns a pointer to the handle of the set that it is in; 0: none.
	set() *uint32
}

// member is the part of a waitable that knows its set.
type member struct{ of uint32 }

func (m *member) set() *uint32 { return &m.of }

// waitableSet has the handles of its members, in the order in which they joined.
type waitableSet struct{ members []uint32 }

func (*waitableSet) kind() string { return "a waitable set" }

// waitable returns the waitable of a handle.
func (r *run) waitable(h uint32) waitable {
	if h == 0 || uint64(h) > uint64(len(r.table)) {
		r.call.Trap("handle %d is unknown, or was dropped", h)
	}
	w, ok := r.table[h-1].resource.(waitable)
	if !ok {
		r.call.Trap("handle %d cannot be waited for, or was dropped", h)
	}
	return w
}

// join puts a waitable in a set, and takes it out of the one that it is in. Set 0 is none.
func (r *run) join(h, set uint32) {
	w := r.waitable(h)
	if set != 0 {
		use[*waitableSet](r, set)
	}
	if was := *w.set(); was != 0 {
		s := use[*waitableSet](r, was)
		s.members = slices.DeleteFunc(s.members, func(m uint32) bool { return m == h })
	}
	if *w.set() = set; set != 0 {
		s := use[*waitableSet](r, set)
		s.members = append(s.members, h)
	}
}

// dropWaitable takes a waitable out of the table.
func (r *run) dropWaitable(h uint32, kind string) {
	r.join(h, 0)
	r.remove(h, kind)
}

// block waits until a waitable is ready, and returns its index.
func (r *run) block(all []waitable) int {
	for {
		if i, after := r.first(all); i >= 0 {
			return i
		} else if after == never {
			r.call.Trap("the component waits for something that cannot happen")
		} else {
			r.call.WaitFetch(after)
		}
	}
}

// first returns the index of the first waitable that is ready, or -1 and the time after which one may be ready.
func (r *run) first(all []waitable) (int, time.Duration) {
	now, first := r.call.Mark(), never
	for i, w := range all {
		ready, after := w.ready(r, now)
		if ready {
			return i, 0
		}
		first = min(first, after)
	}
	return -1, first
}

// event returns the next event of a set: its code, the handle of its waitable, and its payload. Without wait it may be
// eventNone.
func (r *run) event(set uint32, wait bool) (code, handle, number uint32) {
	members := use[*waitableSet](r, set).members
	r.call.CountMoved(16 * len(members)) // each member is asked
	all := make([]waitable, len(members))
	for i, h := range members {
		all[i] = r.waitable(h)
	}
	i := 0
	if wait {
		i = r.block(all)
	} else if i, _ = r.first(all); i < 0 {
		return eventNone, 0, 0
	}
	code, number = all[i].event(r)
	return code, members[i], number
}

// waiting returns waitable-set.wait or waitable-set.poll. They write the handle and the payload of the event to the
// guest's memory, and return its code.
func waiting(wait bool) func(r *run, core []uint64) {
	return func(r *run, core []uint64) {
		at := uint32(core[1])
		if at&3 != 0 || uint64(at)+8 > uint64(r.memory.Size()) {
			r.call.Trap("the event at %#x is not aligned, or is outside of memory", at)
		}
		code, handle, number := r.event(uint32(core[0]), wait)
		memory := whole(r.memory)
		binary.LittleEndian.PutUint32(memory[at:], handle)
		binary.LittleEndian.PutUint32(memory[at+4:], number)
		core[0] = uint64(code)
	}
}

// next returns the event that a callback has asked for.
func next(r *run, core []uint64) {
	code, handle, number := uint32(eventNone), uint32(0), uint32(0)
	switch packed := uint32(core[0]); packed & 15 {
	case callbackYield:
	case callbackWait:
		code, handle, number = r.event(packed>>4, true)
	default:
		r.call.Trap("the callback returned %#x, which is unknown", packed)
	}
	core[0], core[1], core[2] = uint64(code), uint64(handle), uint64(number)
}

// subtask is a call of an async function that has not returned.
type subtask struct {
	member
	function *boundFunction
	at       uint32 // where the result goes
	later    later
	over     bool // the guest knows the end: it has returned, or was cancelled
}

func (*subtask) kind() string { return "a subtask" }

func (s *subtask) ready(_ *run, now time.Time) (bool, time.Duration) {
	if s.over {
		return false, never
	}
	return s.later.ready(now)
}

func (s *subtask) event(r *run) (code, number uint32) {
	s.over = true
	s.write(r, s.later.value(r))
	s.later.drop()
	s.later = nil // the guest may keep the handle for long
	return eventSubtask, subtaskReturned
}

func (s *subtask) isReady(r *run) bool {
	ready, _ := s.later.ready(r.call.Mark())
	return ready
}

// write writes the result where the guest wants it.
func (s *subtask) write(r *run, result any) {
	if t := s.function.typ.Result; t != nil {
		r.write("result of "+s.function.name, t, s.at, result, true)
	}
}

// finished waits for a later, and returns its value.
func (r *run) finished(l later) any {
	r.block([]waitable{&subtask{later: l}})
	defer l.drop()
	return l.value(r)
}

// errorContext is the message of an error.
type errorContext struct{ text string }

func (*errorContext) kind() string { return "an error context" }

// builtins returns the functions of the module "component" for async functions. A free function does not count as a
// call of the host. The types are as in form.core of package component: i for i32, l for i64, > before the results.
func builtins() (all []hostabi.Function) {
	add := func(name string, free bool, t string, run func(r *run, core []uint64)) {
		f := hostabi.Function{Name: name, Fn: hostabi.Bind(free, func(c *hostabi.Call, m api.Memory, core []uint64) {
			r := runOf(c)
			r.enter(m)
			run(r, core)
		})}
		to := &f.Params
		for _, kind := range t {
			switch kind {
			case 'i':
				*to = append(*to, api.ValueTypeI32)
			case 'l':
				*to = append(*to, api.ValueTypeI64)
			default:
				to = &f.Results
			}
		}
		all = append(all, f)
	}
	add("begin_request", true, ">i", beginRequest)
	add("end_request", true, ">", func(r *run, _ []uint64) { r.endRequest() })
	add("task.next", false, "i>iii", next)
	add("task.result", false, "i>", taskResult)
	add("task.exit", true, "i>", func(r *run, core []uint64) { r.exited(uint32(core[0])) })
	add("end_command", true, ">", func(r *run, _ []uint64) { r.endCommand() })
	add("task.cancel", true, ">", func(r *run, _ []uint64) { r.call.Trap("task.cancel: the host has not cancelled the task") })
	add("backpressure.inc", true, ">", func(*run, []uint64) {})
	add("backpressure.dec", true, ">", func(*run, []uint64) {})
	add("thread.yield", true, ">i", func(_ *run, core []uint64) { core[0] = 0 })
	for n := range 2 {
		add(fmt.Sprint("context.get ", n), true, ">i", func(r *run, core []uint64) { core[0] = r.context[n] })
		add(fmt.Sprint("context.set ", n), true, "i>", func(r *run, core []uint64) { r.context[n] = core[0] })
	}
	add("waitable-set.new", false, ">i", func(r *run, core []uint64) { core[0] = uint64(r.add(&waitableSet{}, 0)) })
	add("waitable-set.wait", false, "ii>i", waiting(true))
	add("waitable-set.poll", false, "ii>i", waiting(false))
	add("waitable-set.drop", true, "i>", func(r *run, core []uint64) {
		if s := use[*waitableSet](r, uint32(core[0])); len(s.members) > 0 {
			r.call.Trap("a waitable set is dropped that has %d members", len(s.members))
		}
		r.remove(uint32(core[0]), (*waitableSet)(nil).kind())
	})
	add("waitable.join", true, "ii>", func(r *run, core []uint64) { r.join(uint32(core[0]), uint32(core[1])) })
	add("subtask.cancel", true, "i>i", cancelSubtask)
	add("subtask.drop", true, "i>", func(r *run, core []uint64) {
		if !use[*subtask](r, uint32(core[0])).over {
			r.call.Trap("a subtask is dropped that has not returned")
		}
		r.dropWaitable(uint32(core[0]), (*subtask)(nil).kind())
	})
	add("error-context.new", false, "ii>i", func(r *run, core []uint64) {
		core[0] = uint64(r.add(&errorContext{r.text(uint32(core[0]), uint32(core[1]))}, 0))
	})
	add("error-context.debug-message", false, "ii>", func(r *run, core []uint64) {
		r.write("error-context.debug-message", component.Primitive(component.String), uint32(core[1]), use[*errorContext](r, uint32(core[0])).text, true)
	})
	add("error-context.drop", true, "i>", func(r *run, core []uint64) { take[*errorContext](r, uint32(core[0])) })

	taskReturn := boundFunction{name: "task.return", typ: &component.FuncType{
		Params: []component.Field{{Name: "result", Type: host().AsyncHandler().Result}},
	}}
	answer := component.Returned(host().AsyncHandler().Result)
	all = append(all, hostabi.Function{
		Name: "task.return", Params: coreTypes(answer.Params),
		Fn: hostabi.Bind(false, func(c *hostabi.Call, m api.Memory, core []uint64) {
			r := runOf(c)
			r.enter(m)
			r.returned(r.lift(&taskReturn, answer, core)[0])
		}),
	})
	for _, of := range payloads() {
		word, buffer := "stream", "iii>i"
		if of.future() {
			word, buffer = "future", "ii>i"
		}
		pipe := func(name string, free bool, t string, f pipeFunction) {
			add(fmt.Sprintf("%s.%s %d", word, name, of.number), free, t, func(r *run, core []uint64) { f(r, of, core) })
		}
		pipe("new", false, ">l", newPipe)
		pipe("read", false, buffer, copying(false, false))
		pipe("read async", false, buffer, copying(false, true))
		pipe("write", false, buffer, copying(true, false))
		pipe("write async", false, buffer, copying(true, true))
		pipe("cancel-read", true, "i>i", cancelling(false))
		pipe("cancel-write", true, "i>i", cancelling(true))
		pipe("drop-readable", true, "i>", dropping(false))
		pipe("drop-writable", true, "i>", dropping(true))
	}
	return all
}

// cancelSubtask ends a subtask whose result the guest no longer needs.
func cancelSubtask(r *run, core []uint64) {
	s := use[*subtask](r, uint32(core[0]))
	if s.over {
		r.call.Trap("subtask.cancel: the subtask has returned")
	}
	s.over = true
	s.later.drop()
	s.later = nil
	core[0] = subtaskCancelled
}

// text reads a string of the guest.
func (r *run) text(at, length uint32) string {
	lifter := canon.Lifter{Memory: whole(r.memory), Budget: r.call.MovedLeft()}
	v, _, err := lifter.Flat(component.Primitive(component.String), []uint64{uint64(at), uint64(length)})
	if err != nil {
		r.call.Trap("error-context.new: %v", err)
	}
	r.call.CountMoved(int(length))
	return v.(string)
}
