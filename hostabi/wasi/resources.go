package wasi

import (
	"fmt"
	"unicode/utf8"

	"github.com/tetratelabs/wazero/api"

	"runner.example/hostabi"
)

// Handles of several component instances in a file, and of the resources that they define.

const (
	maxHandles = 1 << 16 // of handles in the tables of a run, and of handles that are lent at the same time
	// maxInstances is more than the limits of package component permit.
	maxInstances = 1 << 10
	keptHandles  = 1 << 12 // the capacity of a table that is kept for the next run
)

// ownResource is a resource that the component defines: the number of its type, and its representation.
type ownResource struct{ typ, rep uint32 }

func (o ownResource) kind() string       { return ownKind(o.typ) }
func (o ownResource) keep(*run) resource { return o }

func ownKind(typ uint32) string { return fmt.Sprintf("the component's resource %d", typ) }

// scope is a call that lends handles.
type scope struct {
	borrowed int         // how many borrowed handles the callee must still drop
	lent     []handleRef // the caller's handles that are borrowed
}

// switchTo makes the handles of a component instance those of the run.
func (r *run) switchTo(instance uint32) {
	if instance == r.instance {
		return
	}
	for uint32(len(r.others)) <= max(instance, r.instance) {
		if len(r.others) == maxInstances {
			r.call.Trap("component instance %d does not exist", instance)
		}
		r.others = append(r.others, handleTable{})
	}
	r.others[r.instance] = r.handleTable
	r.handleTable, r.instance = r.others[instance], instance
}

// at is the entry of a handle that is in use.
func (r *run) at(h handleRef) *entry {
	if h.instance == r.instance {
		return &r.table[h.number-1]
	}
	return &r.others[h.instance].table[h.number-1]
}

// owned returns the owned handle behind a handle of the current instance: itself, or the one that it borrows.
func (r *run) owned(number uint32) handleRef {
	if e := &r.table[number-1]; e.borrowed != 0 {
		return e.parent
	}
	return handleRef{r.instance, number}
}

// own returns the entry of a handle of a resource that the component defines.
func (r *run) own(h, typ uint32) (*entry, ownResource) {
	e := r.known(h, "a resource of the component")
	o, ok := e.resource.(ownResource)
	if !ok || o.typ != typ {
		r.call.Trap("handle %d is of %s, not of %s", h, e.resource.kind(), ownKind(typ))
	}
	return e, o
}

// passed takes an entry out of the table, because its owner passes it on or drops it.
func (r *run) passed(h uint32, e *entry, kind string) entry {
	switch {
	case e.borrowed != 0:
		r.call.Trap("handle %d of %s is borrowed: only its owner can pass it on", h, kind)
	case e.lent > 0:
		r.call.Trap("handle %d of %s cannot be dropped or passed on: a call has borrowed it", h, kind)
	case e.children > 0:
		r.call.Trap("the %s of handle %d cannot be dropped or passed on: %d of its children are there", kind, h, e.children)
	}
	out := *e
	r.release(h, e)
	return out
}

func (r *run) release(h uint32, e *entry) {
	*e = entry{}
	r.free = append(r.free, h)
}

// receive puts an entry of another table in that of an instance.
func (r *run) receive(to uint32, e entry) uint32 {
	r.switchTo(to)
	h := r.add(e.resource, 0)
	r.table[h-1] = e
	return h
}

// lend makes a borrowed handle of another instance, for the call that has begun.
func (r *run) lend(h uint32, e *entry, to uint32) uint32 {
	r.lendTo(h, e)
	r.scopes[len(r.scopes)-1].borrowed++
	return r.receive(to, entry{resource: e.resource, parent: r.owned(h), borrowed: int32(len(r.scopes))})
}

func (r *run) lendTo(h uint32, e *entry) {
	if len(r.scopes) == 0 {
		r.call.Trap("handle %d is borrowed outside of a call", h)
	}
	if r.lent++; r.lent > maxHandles {
		r.call.Trap("calls may borrow %d handles at the same time", maxHandles)
	}
	e.lent++
	s := &r.scopes[len(r.scopes)-1]
	s.lent = append(s.lent, handleRef{r.instance, h})
}

// dropBorrowed drops a handle if it is borrowed.
func (r *run) dropBorrowed(h uint32, e *entry) bool {
	if e.borrowed == 0 {
		return false
	}
	if e.lent > 0 {
		r.call.Trap("handle %d cannot be dropped: a call has borrowed it", h)
	}
	r.scopes[e.borrowed-1].borrowed--
	r.release(h, e)
	return true
}

// mover is the function that passes an owned handle from one instance to another:
// (from, to, handle) -> handle.
func mover(resource string) hostabi.Function {
	return hostabi.Function{
		Name: "[resource-move]" + resource, Params: i32s(3), Results: i32s(1),
		Fn: hostabi.Bind(true, func(c *hostabi.Call, _ api.Memory, core []uint64) {
			r := runOf(c)
			r.switchTo(uint32(core[0]))
			h := uint32(core[2])
			core[0] = uint64(r.receive(uint32(core[1]), r.passed(h, r.entry(h, resource), resource)))
		}),
	}
}

// lender is mover for a handle that is borrowed.
func lender(resource string) hostabi.Function {
	return hostabi.Function{
		Name: "[resource-lend]" + resource, Params: i32s(3), Results: i32s(1),
		Fn: hostabi.Bind(true, func(c *hostabi.Call, _ api.Memory, core []uint64) {
			r := runOf(c)
			r.switchTo(uint32(core[0]))
			h := uint32(core[2])
			core[0] = uint64(r.lend(h, r.entry(h, resource), uint32(core[1])))
		}),
	}
}

// resourceNew has the parameters (instance, type, representation) and returns a handle.
func resourceNew(c *hostabi.Call, m api.Memory, core []uint64) {
	r := runOf(c)
	r.enter(m)
	r.switchTo(uint32(core[0]))
	core[0] = uint64(r.add(ownResource{uint32(core[1]), uint32(core[2])}, 0))
}

// resourceRep is (instance, type, handle) -> representation.
func resourceRep(c *hostabi.Call, _ api.Memory, core []uint64) {
	r := runOf(c)
	r.switchTo(uint32(core[0]))
	_, o := r.own(uint32(core[2]), uint32(core[1]))
	core[0] = uint64(o.rep)
}

// resourceDrop is (instance, type, handle) -> 1<<32 + representation, for the destructor, or 0 if the handle was
// borrowed.
func resourceDrop(c *hostabi.Call, m api.Memory, core []uint64) {
	r := runOf(c)
	r.enter(m)
	r.switchTo(uint32(core[0]))
	h, typ := uint32(core[2]), uint32(core[1])
	e, o := r.own(h, typ)
	if r.dropBorrowed(h, e) {
		core[0] = 0
		return
	}
	r.passed(h, e, ownKind(typ))
	core[0] = 1<<32 | uint64(o.rep)
}

// resourceMove is (from, to, type, handle) -> handle.
func resourceMove(c *hostabi.Call, _ api.Memory, core []uint64) {
	r := runOf(c)
	r.switchTo(uint32(core[0]))
	h, typ := uint32(core[3]), uint32(core[2])
	e, _ := r.own(h, typ)
	core[0] = uint64(r.receive(uint32(core[1]), r.passed(h, e, ownKind(typ))))
}

// definer stands for the instance that defines the resource, as the parameter to of resourceLend: it gets the
// representation instead of a handle.
const definer = 1<<32 - 1

// resourceLend is (from, to, type, handle) -> handle.
func resourceLend(c *hostabi.Call, _ api.Memory, core []uint64) {
	r := runOf(c)
	r.switchTo(uint32(core[0]))
	h, to := uint32(core[3]), uint32(core[1])
	e, o := r.own(h, uint32(core[2]))
	if to == definer {
		r.lendTo(h, e)
		core[0] = uint64(o.rep)
		return
	}
	core[0] = uint64(r.lend(h, e, to))
}

// useInstance says which component instance calls the host next.
func useInstance(c *hostabi.Call, _ api.Memory, core []uint64) { runOf(c).switchTo(uint32(core[0])) }

func beginCall(c *hostabi.Call, _ api.Memory, _ []uint64) {
	r := runOf(c)
	r.scopes = append(r.scopes, scope{})
}

// endCall releases what the call has borrowed.
func endCall(c *hostabi.Call, _ api.Memory, _ []uint64) {
	r := runOf(c)
	last := len(r.scopes) - 1
	if last < 0 {
		c.Trap("a call ends that has not begun")
	}
	s := r.scopes[last]
	if s.borrowed > 0 {
		c.Trap("a function has returned and not dropped %d of the handles that it had borrowed", s.borrowed)
	}
	for _, h := range s.lent {
		r.at(h).lent--
	}
	r.lent -= len(s.lent)
	r.scopes = r.scopes[:last]
}

// reasons are the reasons for which generated code ends a run, by number. Package component has the same numbers.
var reasons = [...]string{
	"the component has broken a rule of the canonical ABI",
	"the component calls out while it allocates memory for a value, or after it has returned",
	"a value is not a char",
	"a value has a case that its type does not have",
	"a pointer is not aligned, or a value is outside of the memory of its component",
	"a list or string is longer than the canonical ABI allows",
}

func trap(c *hostabi.Call, _ api.Memory, core []uint64) {
	c.Trap("%s", reasons[uint32(core[0])%uint32(len(reasons))])
}

// checkUTF8 is (address, length). It ends the run unless the bytes there are UTF-8.
func checkUTF8(c *hostabi.Call, m api.Memory, core []uint64) {
	text, ok := m.Read(uint32(core[0]), uint32(core[1]))
	c.CountMoved(len(text))
	if !ok || !utf8.Valid(text) {
		c.Trap("a string that is not UTF-8")
	}
}
