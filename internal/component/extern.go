package component

import "strings"

// binding is what a declared item stands for.
type binding struct {
	at     int    // of the definition that needs the item, for messages
	actual any    // an item that must be of the declared type; nil: some item
	hide   bool   // of a declared resource, others do not know that it is the actual one
	host   bool   // the host supplies the item
	from   string // the interface that the item is in
}

// extern evaluates an import that is what it declares, or an export of a component.
func (m *machine) extern(s *scope, e *extern, at int) *Error {
	if e.imported {
		value, err := m.declared(s, e, binding{at: at, host: s.outer == nil})
		if err != nil {
			return err
		}
		return m.imported(s, e, value)
	}
	value, err := get[any](s, e.item.sort, e.item.index, e.item.at)
	if err != nil {
		return err
	}
	if e.typed {
		if e.sort != e.item.sort {
			return fail(at, "%s is exported as %s", e.item.sort.one(), e.sort.one())
		}
		if value, err = m.declared(s, e, binding{at: at, actual: value, hide: true}); err != nil {
			return err
		}
	} else {
		value = rename(value)
	}
	return m.exported(s, e, e.item.sort, value)
}

// boundExport evaluates an export that a type declares.
func (m *machine) boundExport(s *scope, e *extern, outs binding) *Error {
	if outs.actual != nil {
		have, ok := outs.actual.(*instance).items[e.text]
		switch {
		case !ok:
			return fail(outs.at, "%s %.100q is expected and is not exported", e.sort.one(), e.text)
		case have.sort != e.sort:
			return fail(outs.at, "%.100q is exported as %s, and %s is expected", e.text, have.sort.one(), e.sort.one())
		}
		outs.actual = have.value
	}
	value, err := m.declared(s, e, outs)
	if err != nil {
		return err
	}
	return m.exported(s, e, e.sort, value)
}

// imported adds an import to a scope.
func (m *machine) imported(s *scope, e *extern, value any) *Error {
	if err := s.ins.add("import", e.externName, e.sort, value); err != nil {
		return err
	}
	if !s.register(value, true) {
		return fail(e.nameAt, "the import %.100q uses a type that is not imported", e.text)
	}
	s.add(e.sort, value)
	return nil
}

// exported adds an export to a scope, where what follows can use it.
func (m *machine) exported(s *scope, e *extern, sort sort, value any) *Error {
	if err := s.outs.add("export", e.externName, sort, value); err != nil {
		return err
	}
	if s.sort != sortInstance && !s.register(value, false) {
		return fail(e.nameAt, "the export %.100q uses a type that is not imported or exported", e.text)
	}
	s.add(sort, value)
	return nil
}

// rename gives a type a name of its own; other items stay as they are.
func rename(value any) any {
	switch v := value.(type) {
	case *ValueType:
		t := *v
		return &t
	case *FuncType:
		t := *v
		return &t
	case *Resource:
		return &Resource{seen: v}
	case *closure:
		if v.def.sort != noSort {
			t := *v
			return &t
		}
	}
	return value
}

// add adds an item under a name, and checks the name.
func (i *instance) add(what string, n externName, sort sort, value any) *Error {
	if otherName.MatchString(n.text) {
		return refuse(n.nameAt, "the %s %.100q is a dependency by its place, which is not supported", what, n.text)
	}
	says, err := n.check()
	if err != nil {
		return fail(n.nameAt, "the %s %v", what, err)
	}
	key := n.key()
	if other, twice := i.keys[key]; twice {
		return fail(n.nameAt, "the %s %.100q is too like another, %.100q", what, n.text, other)
	}
	i.keys[key] = n.text
	if err := i.checkAnnotation(says, sort, value); err != "" {
		return fail(n.nameAt, "the %s %.100q %s", what, n.text, err)
	}
	if r, ok := value.(*Resource); ok && i.resources != nil {
		i.resources[r] = n.text
	}
	i.names = append(i.names, n.text)
	i.items[n.text] = entry{sort, value, n.from()}
	return nil
}

// checkAnnotation checks that a function is what its name says, and an instance too.
func (i *instance) checkAnnotation(n annotation, sort sort, value any) string {
	if n.kind == "implements" && sort != sortInstance {
		return "is not an instance"
	}
	if n.resource == "" {
		return ""
	}
	f, ok := value.(*Func)
	if !ok {
		return "is not a function"
	}
	var r *Resource
	switch params := f.Type.Params; n.kind {
	case "constructor":
		t := f.Type.Result
		if t != nil && t.Kind == Result {
			t = t.Fields[0].Type
		}
		if t == nil || t.Kind != Own {
			return "does not return a handle that is owned"
		}
		r = t.Resource
	case "method":
		if len(params) == 0 || params[0].Name != "self" || params[0].Type.Kind != Borrow {
			return `does not have a first parameter "self" that is a borrowed handle`
		}
		r = params[0].Type.Resource
	default:
		for _, name := range i.resources {
			if name == n.resource {
				return ""
			}
		}
		return "belongs to a resource that has no name here"
	}
	if i.resources[r] != n.resource {
		return "belongs to another resource than its name says"
	}
	return ""
}

// declared returns the item that an import or export declares. If it stands for an actual item,
// that must be of the declared type.
func (m *machine) declared(s *scope, e *extern, b binding) (any, *Error) {
	if err := m.step(b.at); err != nil {
		return nil, err
	}
	at := e.nameAt
	switch e.sort {
	case sortFunc:
		t, err := get[*FuncType](s, sortType, e.index, at)
		if err != nil {
			return nil, err
		}
		return m.declaredFunc(t, e, b)
	case sortType:
		return m.declaredType(s, e, b)
	case sortInstance:
		c, err := closureOf(s, e, sortInstance)
		if err != nil {
			return nil, err
		}
		b.from = strings.TrimPrefix(b.from+"/"+e.from(), "/")
		inner, err := m.component(c, nil, b)
		if err != nil {
			return nil, err
		}
		return inner.outs, nil
	case sortComponent:
		c, err := closureOf(s, e, sortComponent)
		if err != nil {
			return nil, err
		}
		if have, ok := b.actual.(*closure); ok {
			return have, m.aside(func() *Error { return m.fitsComponent(have, c, b.at) })
		}
		return c, b.notByHost(e)
	}
	want, err := get[*Module](s, sortCoreType, e.index, at)
	if err != nil {
		return nil, err
	}
	if have, ok := b.actual.(*Module); ok {
		return have, m.fitsModule(have, want, b.at)
	}
	return want, b.notByHost(e)
}

func (b binding) notByHost(e *extern) *Error {
	if !b.host {
		return nil
	}
	return refuse(e.nameAt, "it imports %s %.100q, and only functions and resources can be imported", e.sort.one(), e.text)
}

func closureOf(s *scope, e *extern, of sort) (*closure, *Error) {
	c, err := get[*closure](s, sortType, e.index, e.nameAt)
	if err == nil && c.def.sort != of {
		err = fail(e.nameAt, "type %d is the type of %s, and not of %s", e.index, c.def.sort.one(), of.one())
	}
	return c, err
}

func (m *machine) declaredFunc(t *FuncType, e *extern, b binding) (any, *Error) {
	if have, ok := b.actual.(*Func); ok {
		if what := m.differentFunc(have.Type, t); what != "" {
			return nil, m.mismatch(b.at, "the function %.100q: %s", e.text, what)
		}
		return &Func{Type: t, Import: have.Import, Lift: have.Lift}, nil
	}
	i := &Import{Interface: b.from, Name: e.text, Func: t}
	return &Func{Type: t, Import: i}, m.hostImport(i, b)
}

// hostImport adds an import to the plan if the host is what supplies it.
func (m *machine) hostImport(i *Import, b binding) *Error {
	if !b.host {
		return nil
	}
	if m.plan.Imports = append(m.plan.Imports, i); len(m.plan.Imports) > maxImports {
		return refuse(b.at, "more than %d imports (maxImports)", maxImports)
	}
	return nil
}

func (m *machine) declaredType(s *scope, e *extern, b binding) (any, *Error) {
	if !e.fresh {
		t, err := get[any](s, sortType, e.index, e.nameAt)
		if err != nil {
			return nil, err
		}
		if b.actual != nil {
			if what := m.differentType(b.actual, t, b.at); what != "" {
				return nil, m.mismatch(b.at, "the type %.100q: %s", e.text, what)
			}
			if !b.hide {
				return b.actual, nil
			}
		}
		return rename(t), nil
	}
	if b.actual == nil {
		i := &Import{Interface: b.from, Name: e.text}
		i.Resource = &Resource{Import: i, Owner: -1}
		return i.Resource, m.hostImport(i, b)
	}
	have, ok := b.actual.(*Resource)
	switch {
	case !ok:
		return nil, fail(b.at, "the type %.100q is %s, and a resource is expected", e.text, describe(b.actual))
	case b.hide:
		return &Resource{same: have}, nil
	}
	return have, nil
}

// exports adds what the host can use to the plan.
func (m *machine) exports(from string, of *instance) {
	for _, name := range of.names {
		e := of.items[name]
		switch v := e.value.(type) {
		case *Func:
			m.plan.Exports = append(m.plan.Exports, &Export{Interface: from, Name: name, Func: v})
		case *Resource:
			m.plan.Exports = append(m.plan.Exports, &Export{Interface: from, Name: name, Resource: v})
		case *instance:
			m.exports(strings.TrimPrefix(from+"/"+e.from, "/"), v)
		}
	}
}
