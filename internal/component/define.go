package component

import (
	"fmt"

	"runner.example/internal/wasm"
)

// part resolves a reference to a type.
func (m *machine) part(s *scope, r reference) (*ValueType, *Error) {
	switch {
	case !r.some:
		return nil, nil
	case r.to < 0:
		k, _ := primitive(byte(r.to + 0x80))
		return Primitive(k), nil
	}
	return get[*ValueType](s, sortType, uint32(r.to), r.at)
}

func (m *machine) fields(s *scope, refs []fieldRef) ([]Field, *Error) {
	fields := make([]Field, len(refs))
	for i, r := range refs {
		t, err := m.part(s, r.reference)
		if err != nil {
			return nil, err
		}
		fields[i] = Field{r.name, t}
	}
	m.steps += len(refs)
	return fields, nil
}

func (m *machine) valueType(s *scope, d *valueDef, at int) (*ValueType, *Error) {
	if d.kind <= ErrorContext {
		return Primitive(d.kind), nil
	}
	t := ValueType{Kind: d.kind, Length: d.length}
	var err *Error
	if t.Fields, err = m.fields(s, d.fields); err == nil {
		t.Element, err = m.part(s, d.part)
	}
	if err == nil && (d.kind == Own || d.kind == Borrow) {
		t.Resource, err = get[*Resource](s, sortType, d.handle, at)
	}
	if err == nil && d.kind == Map {
		var key *ValueType
		if key, err = m.part(s, d.key); err == nil {
			t.Element, err = m.newType(ValueType{Kind: Tuple, Fields: []Field{{Type: key}, {Type: t.Element}}}, at)
		}
	}
	if err != nil {
		return nil, err
	}
	return m.newType(t, at)
}

func (m *machine) newType(t ValueType, at int) (*ValueType, *Error) {
	made, err := New(t)
	if err != nil {
		return nil, fail(at, "%v", err)
	}
	return made, nil
}

func (m *machine) funcType(s *scope, d *funcDef, at int) (*FuncType, *Error) {
	t := &FuncType{Async: d.async}
	var err *Error
	if t.Params, err = m.fields(s, d.params); err == nil {
		t.Result, err = m.part(s, d.result)
	}
	if err != nil {
		return nil, err
	}
	if err := checkLabels("parameters", t.Params); err != nil {
		return nil, fail(at, "%v", err)
	}
	if t.Result != nil && t.Result.borrows {
		return nil, fail(at, "the result of a function has borrowed handles")
	}
	return t, nil
}

func (m *machine) resource(s *scope, d *resourceDef, at int) *Error {
	if s.sort != noSort {
		return fail(at, "a resource is defined in the type of %s", s.sort.one())
	}
	r := &Resource{Owner: s.owner}
	if d.hasDestructor {
		f, err := coreFunc(s, d.destructor, at, "the destructor", wasm.FuncType{Params: []wasm.ValueType{wasm.I32}})
		if err != nil {
			return err
		}
		r.Destructor = f
	}
	s.local[r] = true
	m.plan.Resources = append(m.plan.Resources, r)
	s.add(sortType, r)
	return nil
}

// coreFunc returns a core function, which must be of a type.
func coreFunc(s *scope, index uint32, at int, what string, want wasm.FuncType) (CoreItem, *Error) {
	f, err := get[*coreValue](s, sortCoreFunc, index, at)
	if err != nil {
		return CoreItem{}, err
	}
	if !sameFunc(f.is.Func, want) {
		return CoreItem{}, fail(at, "%s is a core function of type %s, and %s is expected", what, show(f.is.Func), show(want))
	}
	return f.item, nil
}

func show(t wasm.FuncType) string { return fmt.Sprintf("%v -> %v", t.Params, t.Results) }

func showExtern(e *coreExtern) string {
	switch e.Kind {
	case wasm.FunctionKind:
		return "function " + show(e.Func)
	case wasm.GlobalKind:
		return fmt.Sprintf("global %s (mutable: %t)", e.Global.Type, e.Global.Mutable)
	case wasm.MemoryKind:
		return fmt.Sprintf("memory of %d to %d pages", e.Memory.MinPages, e.Memory.MaxPages)
	}
	return fmt.Sprintf("table of %d or more %s", e.Table.Min, e.Table.Type)
}

// The types of functions that are options.
var (
	reallocType  = wasm.FuncType{Params: []wasm.ValueType{wasm.I32, wasm.I32, wasm.I32, wasm.I32}, Results: []wasm.ValueType{wasm.I32}}
	callbackType = wasm.FuncType{Params: []wasm.ValueType{wasm.I32, wasm.I32, wasm.I32}, Results: []wasm.ValueType{wasm.I32}}
)

// optionNames are the options by their byte.
var optionNames = [...]string{
	"string-encoding", "string-encoding", "string-encoding", "memory", "realloc", "post-return", "async", "callback",
}

// options resolves canonical options. The type of post-return is given.
func (m *machine) options(s *scope, d *canonDef, postReturn wasm.FuncType) (o Options, err *Error) {
	seen := map[string]bool{}
	for _, opt := range d.options {
		name := optionNames[opt.code]
		if seen[name] {
			return o, fail(opt.at, "the option %s is there twice", name)
		}
		seen[name] = true
		switch opt.code {
		case optMemory:
			var v *coreValue
			if v, err = get[*coreValue](s, sortCoreMemory, opt.index, opt.at); err == nil {
				o.Memory = v.item
			}
		case optRealloc:
			o.Realloc, err = coreFunc(s, opt.index, opt.at, name, reallocType)
		case optPostReturn:
			if d.op != lift {
				return o, fail(opt.at, "%s has the option %s", d.op, name)
			}
			o.PostReturn, err = coreFunc(s, opt.index, opt.at, name, postReturn)
		case optAsync:
			o.Async = true
		case optCallback:
			if d.op != lift {
				return o, fail(opt.at, "%s has the option %s", d.op, name)
			}
			o.Callback, err = coreFunc(s, opt.index, opt.at, name, callbackType)
		default:
			o.Encoding = Encoding(opt.code)
		}
		if err != nil {
			return o, err
		}
	}
	return o, o.check(d)
}

// check checks which options there are together.
func (o Options) check(d *canonDef) *Error {
	at := 0
	if len(d.options) > 0 {
		at = d.options[0].at
	}
	switch {
	case !o.Realloc.IsZero() && o.Memory.IsZero():
		return fail(at, "%s has the option realloc and no memory", d.op)
	case !o.Callback.IsZero() && !o.Async:
		return fail(at, "%s has the option callback and is not async", d.op)
	case !o.PostReturn.IsZero() && o.Async:
		return fail(at, "%s has the option post-return and is async", d.op)
	}
	return nil
}

// needs checks that options are there that values need.
func (o Options) needs(memory, realloc bool, op Op, at int) *Error {
	switch {
	case (memory || realloc) && o.Memory.IsZero():
		return fail(at, "%s needs the option memory", op)
	case realloc && o.Realloc.IsZero():
		return fail(at, "%s needs the option realloc", op)
	}
	return nil
}

func (m *machine) canon(s *scope, d *canonDef, at int) *Error {
	switch d.op {
	case lift:
		return m.lift(s, d, at)
	case Lower:
		return m.lower(s, d, at)
	}
	c := &Canon{Op: d.op, Owner: s.owner, Core: forms[d.op].signature(), Slot: d.slot, Async: d.async}
	var err *Error
	switch d.op {
	case ResourceNew, ResourceDrop, ResourceRep:
		if c.Resource, err = get[*Resource](s, sortType, d.index, at); err == nil && d.op != ResourceDrop && !s.local[c.Resource.known()] {
			err = fail(at, "%s of a resource that the component does not define", d.op)
		}
	case TaskReturn:
		err = m.taskReturn(s, d, c, at)
	case ContextGet, ContextSet:
		if d.slot > 1 {
			err = fail(at, "%s of slot %d: there are two", d.op, d.slot)
		}
	case WaitableSetWait, WaitableSetPoll:
		var v *coreValue
		if v, err = get[*coreValue](s, sortCoreMemory, d.memory, at); err == nil {
			c.Options.Memory = v.item
		}
	case ErrorContextNew, ErrorContextDebugMessage:
		if c.Options, err = m.options(s, d, wasm.FuncType{}); err == nil {
			err = c.Options.needs(true, d.op == ErrorContextDebugMessage, d.op, at)
		}
	default:
		if d.op >= StreamNew && d.op <= FutureDropWritable {
			err = m.streamOrFuture(s, d, c, at)
		}
	}
	if err != nil {
		return err
	}
	m.addCanon(s, c)
	return nil
}

func (m *machine) addCanon(s *scope, c *Canon) {
	m.plan.Canons = append(m.plan.Canons, c)
	s.add(sortCoreFunc, &coreValue{
		CoreItem{Kind: wasm.FunctionKind, Canon: c}, &coreExtern{Kind: wasm.FunctionKind, Func: c.Core},
	})
}

func (m *machine) taskReturn(s *scope, d *canonDef, c *Canon, at int) (err *Error) {
	if c.Type, err = m.part(s, d.result); err != nil {
		return err
	}
	if c.Type != nil && c.Type.borrows {
		return fail(at, "the result of task.return has borrowed handles")
	}
	if c.Options, err = m.options(s, d, wasm.FuncType{}); err != nil {
		return err
	}
	if c.Options.Async || !c.Options.Realloc.IsZero() {
		return fail(at, "task.return has an option other than memory and string-encoding")
	}
	c.Shape = Returned(c.Type)
	c.Core = c.Shape.FuncType
	return c.Options.needs(c.Shape.ParamsInMemory || c.Type != nil && c.Type.pointers, false, d.op, at)
}

func (m *machine) streamOrFuture(s *scope, d *canonDef, c *Canon, at int) (err *Error) {
	kind := Stream
	if d.op >= FutureNew {
		kind = Future
	}
	if c.Type, err = get[*ValueType](s, sortType, d.index, at); err != nil {
		return err
	}
	if c.Type.Kind != kind {
		return fail(at, "%s of a type %s", d.op, c.Type)
	}
	read := d.op == StreamRead || d.op == FutureRead
	if !read && d.op != StreamWrite && d.op != FutureWrite {
		return nil
	}
	if c.Options, err = m.options(s, d, wasm.FuncType{}); err != nil {
		return err
	}
	some := c.Type.Element != nil
	return c.Options.needs(some, some && read && c.Type.Element.pointers, d.op, at)
}

func (m *machine) lift(s *scope, d *canonDef, at int) *Error {
	t, err := get[*FuncType](s, sortType, d.index, at)
	if err != nil {
		return err
	}
	async, callback := false, false
	for _, o := range d.options {
		async, callback = async || o.code == optAsync, callback || o.code == optCallback
	}
	if async && !t.Async {
		return fail(at, "a function that is not async is lifted with the option async")
	}
	shape := t.Lifted(async, callback)
	l := &Lift{Owner: s.owner, Type: t, Shape: shape}
	if l.Core, err = coreFunc(s, d.function, at, "what is lifted", shape.FuncType); err != nil {
		return err
	}
	if l.Options, err = m.options(s, d, wasm.FuncType{Params: shape.Results}); err != nil {
		return err
	}
	params := shape.ParamsInMemory || anyPointers(t.Params)
	result := shape.ResultInMemory || async && Returned(t.Result).ParamsInMemory || t.Result != nil && t.Result.pointers
	if err := l.Options.needs(params || result, params, d.op, at); err != nil {
		return err
	}
	s.add(sortFunc, &Func{Type: t, Lift: l})
	return nil
}

func anyPointers(fields []Field) bool {
	for _, f := range fields {
		if f.Type.pointers {
			return true
		}
	}
	return false
}

func (m *machine) lower(s *scope, d *canonDef, at int) *Error {
	f, err := get[*Func](s, sortFunc, d.function, at)
	if err != nil {
		return err
	}
	c := &Canon{Op: Lower, Owner: s.owner, Func: f}
	if c.Options, err = m.options(s, d, wasm.FuncType{}); err != nil {
		return err
	}
	if c.Options.Async && !f.Type.Async {
		return fail(at, "a function that is not async is lowered with the option async")
	}
	c.Shape = f.Type.Lowered(c.Options.Async)
	c.Core = c.Shape.FuncType
	result := f.Type.Result != nil && f.Type.Result.pointers
	memory := c.Shape.ParamsInMemory || c.Shape.ResultInMemory || anyPointers(f.Type.Params)
	if err := c.Options.needs(memory, result, d.op, at); err != nil {
		return err
	}
	m.addCanon(s, c)
	return nil
}
