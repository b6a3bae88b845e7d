package component

import "slices"

// fitsComponent checks that a component can be where a type of components is expected: it
// takes what that imports and has what that exports.
func (m *machine) fitsComponent(have, want *closure, at int) *Error {
	expected, err := m.component(want, nil, binding{at: at})
	if err != nil {
		return err
	}
	made, err := m.component(have, expected.ins.items, binding{at: at})
	if err != nil {
		return err
	}
	_, err = m.component(want, expected.ins.items, binding{at: at, actual: made.outs})
	return err
}

func (m *machine) fitsModule(have, want *Module, at int) *Error {
	m.steps += len(have.imports) + len(want.imports) + len(want.exports)
	given := make(map[[2]string]*coreExtern, len(want.imports))
	for i, w := range want.imports {
		given[[2]string{w.Module, w.Name}] = &want.imports[i]
	}
	for i, h := range have.imports {
		w := given[[2]string{h.Module, h.Name}]
		if w == nil || !fits(w, &have.imports[i]) {
			return m.mismatch(at, "the core module imports %.100q %.100q, which is not expected", h.Module, h.Name)
		}
	}
	for i, w := range want.exports {
		h := have.export(w.Name)
		if h == nil || !fits(h, &want.exports[i]) {
			return m.mismatch(at, "the core module does not export %.100q as is expected", w.Name)
		}
	}
	return m.step(at)
}

// mismatch is the error of what was compared and is different; unless the comparison was too long.
func (m *machine) mismatch(at int, format string, args ...any) *Error {
	if err := m.step(at); err != nil {
		return err
	}
	return fail(at, format, args...)
}

// differentType says how two types are different; empty if they are the same.
func (m *machine) differentType(have, want any, at int) string {
	switch w := want.(type) {
	case *ValueType:
		if h, ok := have.(*ValueType); ok {
			return m.different(h, w)
		}
	case *FuncType:
		if h, ok := have.(*FuncType); ok {
			return m.differentFunc(h, w)
		}
	case *Resource:
		if h, ok := have.(*Resource); ok {
			return m.differentResource(h, w)
		}
	case *closure:
		if h, ok := have.(*closure); ok && h.def.sort == w.def.sort {
			if err := m.aside(func() *Error { return m.sameClosure(h, w, at) }); err != nil {
				return err.What
			}
			return ""
		}
	}
	return "it is " + describe(have) + ", and " + describe(want) + " is expected"
}

// sameClosure checks that types of instances or components are the same: each fits where the
// other is expected.
func (m *machine) sameClosure(a, b *closure, at int) *Error {
	for range 2 {
		a, b = b, a
		if a.def.sort == sortComponent {
			if err := m.fitsComponent(a, b, at); err != nil {
				return err
			}
			continue
		}
		some, err := m.component(a, nil, binding{at: at})
		if err != nil {
			return err
		}
		if _, err := m.component(b, nil, binding{at: at, actual: some.outs}); err != nil {
			return err
		}
	}
	return nil
}

func (m *machine) differentResource(have, want *Resource) string {
	if m.host && sameImport(have.Identity().Import, want.Identity().Import) {
		return ""
	}
	if have.known() != want.known() {
		return "it is another resource type than is expected"
	}
	return ""
}

func (m *machine) differentFunc(have, want *FuncType) string {
	switch {
	case have.Async != want.Async:
		return "one is async, and the other is not"
	case len(have.Params) != len(want.Params):
		return "the numbers of parameters are different"
	case (have.Result == nil) != (want.Result == nil):
		return "one has a result, and the other has not"
	}
	for i, h := range have.Params {
		w := want.Params[i]
		if h.Name != w.Name {
			return "a parameter is " + h.Name + ", and " + w.Name + " is expected"
		}
		if what := m.different(h.Type, w.Type); what != "" {
			return "parameter " + h.Name + ": " + what
		}
	}
	if have.Result != nil {
		if what := m.different(have.Result, want.Result); what != "" {
			return "the result: " + what
		}
	}
	return ""
}

// different says how two value types are different; empty if they are the same. It counts its
// steps and ends with some text if they are too many: see mismatch.
func (m *machine) different(have, want *ValueType) string {
	if have == want {
		return ""
	}
	if m.steps++; m.steps > maxSteps {
		return "too much"
	}
	if have.Kind != want.Kind || have.Length != want.Length || len(have.Fields) != len(want.Fields) {
		return "it is " + have.String() + ", and " + want.String() + " is expected"
	}
	for i, h := range have.Fields {
		w := want.Fields[i]
		if h.Name != w.Name {
			return "it has " + h.Name + ", and " + w.Name + " is expected"
		}
		if what := m.differentPart(h.Type, w.Type); what != "" {
			return what
		}
	}
	if have.Resource != nil {
		return m.differentResource(have.Resource, want.Resource)
	}
	return m.differentPart(have.Element, want.Element)
}

func (m *machine) differentPart(have, want *ValueType) string {
	switch {
	case have != nil && want != nil:
		return m.different(have, want)
	case have != want:
		return "it has " + have.String() + ", and " + want.String() + " is expected"
	}
	return ""
}

// hasResources reports whether a type depends on resources that are defined outside of it.
func (m *machine) hasResources(value any, at int) (bool, *Error) {
	switch v := value.(type) {
	case *Resource:
		return true, nil
	case *ValueType:
		return v.resources, nil
	case *FuncType:
		return slices.ContainsFunc(v.fields(), func(f Field) bool { return f.Type.resources }), nil
	case *closure:
		if v.def.sort == noSort {
			return false, nil // its own aliases were checked
		}
		defer m.leave()
		if err := m.enter(at); err != nil {
			return false, err
		}
		return m.reaches(v.def, v.outer, 0, at)
	}
	return false, nil
}

// reaches reports whether a type of an instance or component has aliases of types outside of it
// that depend on resources. The definition is depth scopes within the one that outer is around.
func (m *machine) reaches(def *scopeDef, outer *scope, depth int, at int) (bool, *Error) {
	for _, d := range def.entries {
		if err := m.step(at); err != nil {
			return false, err
		}
		has, err := false, (*Error)(nil)
		switch b := d.body.(type) {
		case *scopeDef:
			has, err = m.reaches(b, outer, depth+1, at)
		case *alias:
			if !b.outer || int64(b.instance) <= int64(depth) {
				continue
			}
			from := outer
			for range int(b.instance) - depth - 1 {
				from = from.outer
			}
			has, err = m.hasResources(from.spaces[b.sort][b.index], at)
		}
		if has || err != nil {
			return has, err
		}
	}
	return false, nil
}
