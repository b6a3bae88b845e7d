package sandbox

import (
	"context"
	"math"
	"reflect"
	"runtime"
	_ "unsafe" // for go:linkname

	"github.com/tetratelabs/wazero/api"
)

// A guest's calls may take maxStack bytes of native stack: more than programs need that
// end, and little enough for every guest at once. Calls of interpreters take some
// kilobytes each, so a recursion may take up to mostStack, in steps of maxStack, while the
// guests' memory lasts. A step costs stepBytes of it, as stacks grow by doubling.
const (
	maxStack  = 4 << 20
	mostStack = 16 << 20
	stepBytes = 2 * maxStack
)

// stackUsed is the host function that a guest calls when the static bounds of its calls'
// frames add up to maxStack; most calls take a tenth of that. It returns what is in use
// beyond the granted steps, or the maximum if that is not known.
func stackUsed(ctx context.Context, _ api.Module, stack []uint64) {
	s := ctx.(*guest).sandbox
	used := s.engine.optimizations.stack.used(s.running)
	if used == 0 {
		stack[0] = math.MaxInt32
		return
	}
	for used > s.steps*maxStack+maxStack/2 && (s.steps+2)*maxStack <= mostStack &&
		s.engine.memory.take(stepBytes, s.engine.memory.limit) {
		s.steps++
	}
	stack[0] = used - min(used, s.steps*maxStack)
}

// releaseSteps releases what a deep recursion was granted.
func (s *sandbox) releaseSteps() {
	s.engine.memory.give(int64(s.steps) * stepBytes)
	s.steps = 0
}

// invoke calls a function of the guest, and records it and how it ended. It writes the results to
// stack, which has one word for each.
func (s *sandbox) invoke(f api.Function, stack ...uint64) error {
	s.enter(f)
	return s.leave(f.CallWithStack(&s.guest, stack))
}

// enter and leave are around each call of the guest, f is what is called, and err how it ended.
func (s *sandbox) enter(f api.Function) { s.running, s.last = f, f }

func (s *sandbox) leave(err error) error {
	s.ended = err
	s.running = nil
	if s.stop.because != nil {
		s.ended = s.stop.because
	}
	return s.ended
}

// stackLayout says where a function keeps its native stack, as indexes of the fields of
// wazero's unexported type: the stack, its top (it grows downwards), and how far it reached
// when the guest last called the host or trapped, with the frame pointer and the address of the
// code at that time. With the zero value nothing is known.
type stackLayout struct {
	of             reflect.Type
	stack, top     int
	state          int // the field that holds the others
	reached, frame int
	code           int
}

// findStack finds the fields of a function's native stack by their names.
func findStack(f api.Function) (t stackLayout, ok bool) {
	kind := reflect.TypeOf(f)
	if kind.Kind() != reflect.Pointer || kind.Elem().Kind() != reflect.Struct {
		return t, false
	}
	field := func(of reflect.Type, name string, kind reflect.Kind) int {
		f, found := of.FieldByName(name)
		ok = found && len(f.Index) == 1 && f.Type.Kind() == kind
		if !ok {
			return 0
		}
		return f.Index[0]
	}
	t.of = kind
	if t.stack = field(kind.Elem(), "stack", reflect.Slice); !ok ||
		kind.Elem().Field(t.stack).Type != reflect.TypeFor[[]byte]() {
		return t, false
	}
	if t.top = field(kind.Elem(), "stackTop", reflect.Uintptr); !ok {
		return t, false
	}
	if t.state = field(kind.Elem(), "execCtx", reflect.Struct); !ok {
		return t, false
	}
	state := kind.Elem().Field(t.state).Type
	if t.reached = field(state, "stackPointerBeforeGoCall", reflect.Pointer); !ok {
		return t, false
	}
	if t.frame = field(state, "framePointerBeforeGoCall", reflect.Uintptr); !ok {
		return t, false
	}
	t.code = field(state, "goCallReturnAddress", reflect.Pointer)
	return t, ok
}

// size is the size of a function's native stack; 0: it is not known.
func (t *stackLayout) size(f api.Function) int {
	if v, ok := t.value(f); ok {
		return v.Field(t.stack).Len()
	}
	return 0
}

// used is how much of it is in use while the guest calls the host; 0: it is not known.
func (t *stackLayout) used(f api.Function) uint64 {
	v, ok := t.value(f)
	if !ok {
		return 0
	}
	used := v.Field(t.top).Uint() - uint64(v.Field(t.state).Field(t.reached).Pointer())
	if used > uint64(v.Field(t.stack).Len()) {
		return 0
	}
	return used
}

// calls returns the addresses of native code of a function that has failed, innermost first: where
// it stopped, and where its active calls would have returned to.
func (t *stackLayout) calls(f api.Function) []uintptr {
	v, ok := t.value(f)
	if !ok {
		return nil
	}
	state := v.Field(t.state)
	reached, frame, top := state.Field(t.reached).Pointer(), uintptr(state.Field(t.frame).Uint()),
		uintptr(v.Field(t.top).Uint())
	bottom := v.Field(t.stack).Pointer()
	if reached < bottom || reached >= top || runtime.GOARCH == "amd64" && (frame < reached || frame >= top) {
		return nil
	}
	all := unwindStack(reached, frame, top, []uintptr{state.Field(t.code).Pointer()})
	runtime.KeepAlive(f)
	return all[:len(all)-1] // the last one is where all calls begin
}

// unwindStack appends the return addresses of the frames between the stack pointer and the top
// of a native stack, until there are 30.
//
//go:linkname unwindStack github.com/tetratelabs/wazero/internal/engine/wazevo.unwindStack
func unwindStack(sp, fp, top uintptr, addresses []uintptr) []uintptr

func (t *stackLayout) value(f api.Function) (v reflect.Value, ok bool) {
	if f == nil || t.of == nil {
		return v, false
	}
	if v = reflect.ValueOf(f); v.Type() != t.of {
		return v, false
	}
	return v.Elem(), true
}
