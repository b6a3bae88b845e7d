package wasi

import (
	"fmt"
	"slices"

	"github.com/tetratelabs/wazero/api"

	"runner.example/hostabi"
	"runner.example/internal/component"
	"runner.example/internal/component/canon"
)

// run is the state of one run of a component.
type run struct {
	call        *hostabi.Call
	program     *hostabi.Program // what the component finds; nil: nothing
	handleTable                  // of the component instance whose functions run
	instance    uint32           // its number
	others      []handleTable    // those of the other instances, by their numbers
	handles     int              // entries of all tables
	scopes      []scope          // of calls between instances that lend handles
	lent        int              // handles in scopes
	result      canon.Lowered    // the last one, whose blocks the guest must allocate
	asked       int              // how many of the blocks it has been asked for
	http        exchange
	reader      canon.Reader                    // of the result of a handler
	command     struct{ returned, failed bool } // of wasi:cli/run
	memory      api.Memory                      // of the guest, while it calls the host
}

// resource is what a handle stands for. kind is its name in WIT.
type resource interface{ kind() string }

// handleTable are the handles of a component instance.
type handleTable struct {
	table []entry  // handle 1 is the first
	free  []uint32 // handles that are not in use
	// context is what context.get returns in that instance: each has a task of its own.
	context [2]uint64
}

// entry is a resource in the table.
type entry struct {
	resource resource // nil: the handle is not in use
	// parent is the handle of the resource that may not be dropped before; 0: none. Of a borrowed handle it
	// is the handle that is borrowed.
	parent   handleRef
	children int32
	lent     int32 // how many calls have borrowed the handle
	borrowed int32 // by the call of this number in run.scopes; 0: the handle is owned
}

// handleRef is a handle of a component instance.
type handleRef struct{ instance, number uint32 }

// Begin makes the run of call, which has begun, that of a component. program is what it finds: its
// arguments, variables and files; nil: nothing. handles are those of Handles; nil: none.
func Begin(call *hostabi.Call, program *hostabi.Program, handles *Handles) {
	r, ok := call.Extension().(*run)
	if !ok {
		r = &run{call: call}
		r.reader.Fail = func(err error) { call.Trap("result of the handler: %v", err) }
		call.Extend(r)
	}
	r.End()
	r.program = program
	if handles != nil {
		for i := len(handles.tables) - 1; i >= 0; i-- {
			r.switchTo(uint32(i))
			for _, e := range handles.tables[i].table {
				if e.resource != nil {
					e.resource = e.resource.(keepable).keep(r)
				}
				r.table = append(r.table, e)
				r.handles++
			}
			r.free = append(r.free, handles.tables[i].free...)
		}
	}
}

// End clears what the run has left.
func (r *run) End() {
	clear(r.table)
	if len(r.table) > keptHandles {
		r.handleTable = handleTable{}
	}
	r.result.Reset()
	*r = run{
		call: r.call, handleTable: handleTable{table: r.table[:0], free: r.free[:0]},
		result: r.result, reader: canon.Reader{Fail: r.reader.Fail},
	}
}

// Handles are those that a component holds before its first request: its memory has their numbers.
type Handles struct{ tables []handleTable } // by component instances

// keepable is a resource whose handle a component may keep for its requests.
type keepable interface {
	// keep returns the resource for another run; nil: it has state that belongs to this run.
	keep(r *run) resource
}

// HandlesOf returns the handles of a run that has initialized a component, before the call ends. The
// error names a resource that cannot be kept.
func HandlesOf(call *hostabi.Call) (*Handles, error) {
	r := runOf(call)
	kept := &Handles{}
	for i := range uint32(max(1, len(r.others))) {
		r.switchTo(i)
		for _, e := range r.table {
			if e.resource == nil {
				continue
			}
			if k, ok := e.resource.(keepable); !ok || k.keep(r) == nil {
				return nil, fmt.Errorf("a handle of the resource %s cannot be kept for requests: drop it", e.resource.kind())
			}
		}
		kept.tables = append(kept.tables, handleTable{table: slices.Clone(r.table), free: slices.Clone(r.free)})
	}
	return kept, nil
}

func runOf(c *hostabi.Call) *run { return c.Extension().(*run) }

// add puts a resource in the table, and returns its handle. parent is a handle, or 0.
func (r *run) add(v resource, parent uint32) uint32 {
	if n := len(r.free); n > 0 {
		h := r.free[n-1]
		r.free = r.free[:n-1]
		r.put(h, v, parent)
		return h
	}
	return r.push(v, parent)
}

// push puts a resource at the end of the table.
func (r *run) push(v resource, parent uint32) uint32 {
	if r.handles++; r.handles > maxHandles {
		r.call.Trap("a request may have %d handles", maxHandles)
	}
	r.table = append(r.table, entry{})
	h := uint32(len(r.table))
	r.put(h, v, parent)
	return h
}

func (r *run) put(h uint32, v resource, parent uint32) {
	e := entry{resource: v}
	if parent != 0 {
		e.parent = r.owned(parent)
		r.at(e.parent).children++
	}
	r.table[h-1] = e
}

// entry returns the entry of a handle of a kind of resource.
func (r *run) entry(h uint32, kind string) *entry {
	e := r.known(h, kind)
	if is := e.resource.kind(); is != kind {
		r.call.Trap("handle %d is of %s, not of %s", h, is, kind)
	}
	return e
}

// known returns the entry of a handle.
func (r *run) known(h uint32, kind string) *entry {
	if h == 0 || uint64(h) > uint64(len(r.table)) || r.table[h-1].resource == nil {
		r.call.Trap("handle %d of %s is unknown, or was dropped", h, kind)
	}
	return &r.table[h-1]
}

// remove takes a resource out of the table, as its owner.
func (r *run) remove(h uint32, kind string) resource {
	e := r.passed(h, r.entry(h, kind), kind)
	if e.parent.number != 0 {
		r.at(e.parent).children--
	}
	return e.resource
}

// use returns the resource of a handle that is borrowed.
func use[T resource](r *run, h any) T {
	var t T
	return r.entry(h.(uint32), t.kind()).resource.(T)
}

// take returns the resource of a handle that is passed to the host.
func take[T resource](r *run, h any) T {
	var t T
	return r.remove(h.(uint32), t.kind()).(T)
}

// enter is called when the guest calls the host, which it may not do while it allocates.
func (r *run) enter(m api.Memory) {
	r.memory = m
	if _, _, allocates := r.result.Next(0); allocates {
		r.call.Trap("the component calls the host while it allocates memory for a result")
	}
}

// protocol are the functions of the module "component".
func protocol() []hostabi.Function {
	i32, i64 := i32s(1), []api.ValueType{api.ValueTypeI64}
	blocks := slices.Repeat(i64, component.AllocatedAtOnce)
	return append(builtins(), []hostabi.Function{
		{Name: "allocate", Params: i32s(component.AllocatedAtOnce), Results: blocks, Fn: hostabi.BindUntimed(allocate)},
		{Name: "begin_http", Results: i32, Fn: hostabi.Bind(true, beginHTTP)},
		{Name: "end_http", Fn: hostabi.Bind(true, endHTTP)},
		{Name: "trap", Params: i32, Fn: hostabi.Bind(true, trap)},
		{Name: "utf8", Params: i32s(2), Fn: hostabi.Bind(true, checkUTF8)},
		{Name: "instance", Params: i32, Fn: hostabi.Bind(true, useInstance)},
		{Name: "begin_call", Fn: hostabi.Bind(true, beginCall)},
		{Name: "end_call", Fn: hostabi.Bind(true, endCall)},
		{Name: "resource_new", Params: i32s(3), Results: i32, Fn: hostabi.Bind(true, resourceNew)},
		{Name: "resource_rep", Params: i32s(3), Results: i32, Fn: hostabi.Bind(true, resourceRep)},
		{Name: "resource_drop", Params: i32s(3), Results: i64, Fn: hostabi.Bind(true, resourceDrop)},
		{Name: "resource_move", Params: i32s(4), Results: i32, Fn: hostabi.Bind(true, resourceMove)},
		{Name: "resource_lend", Params: i32s(4), Results: i32, Fn: hostabi.Bind(true, resourceLend)},
		{Name: "begin_handler", Params: i32, Results: blocks, Fn: hostabi.BindUntimed(beginHandler)},
		{Name: "end_handler", Params: i32, Fn: hostabi.BindUntimed(endHandler)},
	}...)
}

func i32s(n int) []api.ValueType { return slices.Repeat([]api.ValueType{api.ValueTypeI32}, n) }

// allocate gets the addresses of the blocks that it has asked for, and asks for the next ones. The addresses in the
// first call have no meaning.
func allocate(c *hostabi.Call, m api.Memory, core []uint64) {
	r, memory := runOf(c), whole(m)
	for i := range r.asked {
		if err := r.result.Write(memory, uint32(core[i])); err != nil {
			c.Trap("memory for a result: %v", err)
		}
	}
	r.ask(core)
}

// ask asks for blocks: with the alignment in the upper half, and the size in the lower half. It asks for 0 after the
// last one; what follows it has no meaning.
func (r *run) ask(core []uint64) {
	for r.asked = 0; r.asked < len(core); r.asked++ {
		size, align, more := r.result.Next(r.asked)
		if !more {
			core[r.asked] = 0
			break
		}
		core[r.asked] = uint64(align)<<32 | uint64(size)
	}
}
