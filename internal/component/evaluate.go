package component

import (
	"fmt"

	"runner.example/internal/wasm"
)

// Read reads a component, checks it, and evaluates it to a plan. The errors are *Error. The
// limits are those of each core module in it, and ModuleBytes that of the whole file.
func Read(file []byte, limits wasm.Limits) (*Plan, error) {
	if len(file) > limits.ModuleBytes {
		return nil, refuse(0, "%d bytes, and there may be %d", len(file), limits.ModuleBytes)
	}
	d := &decoder{bytes: file, limits: limits}
	root, err := d.component(0, len(file), 0)
	if err != nil {
		return nil, err
	}
	m := &machine{plan: &Plan{}}
	s, err := m.component(&closure{def: root}, nil, binding{})
	if err != nil {
		return nil, err
	}
	m.exports("", s.outs)
	return m.plan, nil
}

// machine evaluates components.
type machine struct {
	plan  *Plan
	steps int
	depth int
	host  bool // imports of two plans are compared: resources are the same if their names are
}

// step counts what is done, so that all of it is bounded.
func (m *machine) step(at int) *Error {
	if m.steps++; m.steps > maxSteps {
		return refuse(at, "its types and instances come to more than %d steps (maxSteps)", maxSteps)
	}
	return nil
}

// enter counts evaluations within each other. Each call needs one of leave.
func (m *machine) enter(at int) *Error {
	if m.depth++; m.depth > maxNesting {
		return refuse(at, "instances and types are nested more than %d deep (maxNesting)", maxNesting)
	}
	return nil
}

func (m *machine) leave() { m.depth-- }

// aside evaluates something without adding to the plan.
func (m *machine) aside(evaluate func() *Error) *Error {
	plan := m.plan
	m.plan = &Plan{Components: plan.Components}
	err := evaluate()
	m.plan = plan
	return err
}

// component evaluates a component, or the type of a component or instance. It has arguments by the
// names of its imports; nil: the imports are what is declared. Exports of a type are bound.
func (m *machine) component(c *closure, args map[string]entry, outs binding) (*scope, *Error) {
	at := outs.at
	defer m.leave()
	if err := m.enter(at); err != nil {
		return nil, err
	}
	owner := -1
	if c.def.sort == noSort {
		owner = m.plan.Components
		if m.plan.Components++; owner > maxInstances {
			return nil, refuse(at, "more than %d component instances (maxInstances)", maxInstances)
		}
	}
	s := newScope(c.outer, c.def.sort, owner)
	for _, d := range c.def.entries {
		if err := m.step(d.at); err != nil {
			return nil, err
		}
		var err *Error
		switch e, ok := d.body.(*extern); {
		case ok && e.imported && args != nil:
			err = m.supply(s, e, args, at)
		case ok && !e.imported && e.item == nil:
			err = m.boundExport(s, e, outs)
		default:
			err = m.define(s, d)
		}
		if err != nil {
			return nil, err
		}
	}
	return s, nil
}

// supply adds an import from the arguments.
func (m *machine) supply(s *scope, e *extern, args map[string]entry, at int) *Error {
	arg, ok := args[e.text]
	switch {
	case !ok:
		return fail(at, "the import %.100q has no argument", e.text)
	case arg.sort != e.sort:
		return fail(at, "the argument %.100q is %s, and %s is expected", e.text, arg.sort.one(), e.sort.one())
	}
	value, err := m.declared(s, e, binding{actual: arg.value, at: at})
	if err != nil {
		err.What = fmt.Sprintf("the argument %.100q: %s", e.text, err.What)
		return err
	}
	return m.imported(s, e, value)
}

// define evaluates an entry of a section or a declarator.
func (m *machine) define(s *scope, d definition) *Error {
	switch b := d.body.(type) {
	case *moduleDef:
		s.add(sortCoreModule, b.module)
	case *scopeDef:
		return m.scopeDef(s, b, d.at)
	case *coreFuncDef:
		s.add(sortCoreType, &b.FuncType)
	case *coreModuleDef:
		return m.moduleType(s, b)
	case *instantiation:
		return m.instantiation(s, b, d.at)
	case *alias:
		return m.alias(s, b, d.at)
	case *valueDef:
		t, err := m.valueType(s, b, d.at)
		if err != nil {
			return err
		}
		s.add(sortType, t)
	case *funcDef:
		t, err := m.funcType(s, b, d.at)
		if err != nil {
			return err
		}
		s.add(sortType, t)
	case *resourceDef:
		return m.resource(s, b, d.at)
	case *canonDef:
		return m.canon(s, b, d.at)
	case *extern:
		return m.extern(s, b, d.at)
	}
	return nil
}

// scopeDef adds a component or a type. It is checked the first time, when it cannot see itself and
// what comes later.
func (m *machine) scopeDef(s *scope, def *scopeDef, at int) *Error {
	c := &closure{def, s}
	if !def.checked {
		def.checked = true
		err := m.aside(func() *Error {
			_, err := m.component(c, nil, binding{at: at})
			return err
		})
		if err != nil {
			return err
		}
	}
	if def.sort == noSort {
		s.add(sortComponent, c)
	} else {
		s.add(sortType, c)
	}
	return nil
}

func (m *machine) instantiation(s *scope, i *instantiation, at int) *Error {
	switch {
	case i.core && i.exportsOnly:
		return coreExports(s, i)
	case i.core:
		return m.instantiateModule(s, i, at)
	case i.exportsOnly:
		return m.exportsOnly(s, i)
	}
	c, err := get[*closure](s, sortComponent, i.of, at)
	if err != nil {
		return err
	}
	args := make(map[string]entry, len(i.args))
	for _, a := range i.args {
		if _, twice := args[a.name]; twice {
			return fail(a.at, "the argument %.100q is there twice", a.name)
		}
		value, err := get[any](s, a.sort, a.index, a.at)
		if err != nil {
			return err
		}
		args[a.name] = entry{sort: a.sort, value: value}
	}
	inner, err := m.component(c, args, binding{at: at})
	if err != nil {
		return err
	}
	s.add(sortInstance, inner.outs)
	return nil
}

// exportsOnly adds an instance that is made of items of the scope.
func (m *machine) exportsOnly(s *scope, i *instantiation) *Error {
	made := newInstance()
	for _, a := range i.args {
		if a.sort != sortCoreModule && a.sort < sortFunc {
			return fail(a.at, "%s is exported by an instance", a.sort.one())
		}
		value, err := get[any](s, a.sort, a.index, a.at)
		if err != nil {
			return err
		}
		if err := made.add("export", a.externName, a.sort, value); err != nil {
			return err
		}
	}
	s.add(sortInstance, made)
	return nil
}

// coreExports adds a core instance that is made of items of the scope.
func coreExports(s *scope, i *instantiation) *Error {
	made := make(map[string]*coreValue, len(i.args))
	for _, a := range i.args {
		if a.sort > sortCoreGlobal {
			return fail(a.at, "%s is exported by a core instance", a.sort.one())
		}
		value, err := get[*coreValue](s, a.sort, a.index, a.at)
		if err != nil {
			return err
		}
		if made[a.name] != nil {
			return fail(a.at, "%.100q is exported twice", a.name)
		}
		made[a.name] = value
	}
	s.add(sortCoreInstance, made)
	return nil
}

// instantiateModule adds an instance of a core module to the scope and the plan.
func (m *machine) instantiateModule(s *scope, i *instantiation, at int) *Error {
	module, err := get[*Module](s, sortCoreModule, i.of, at)
	if err != nil {
		return err
	}
	args := make(map[string]map[string]*coreValue, len(i.args))
	for _, a := range i.args {
		if args[a.name] != nil {
			return fail(a.at, "the argument %.100q is there twice", a.name)
		}
		if args[a.name], err = get[map[string]*coreValue](s, sortCoreInstance, a.index, a.at); err != nil {
			return err
		}
	}
	made := &CoreInstance{Owner: s.owner, Module: module}
	for n := range module.imports {
		if err := m.step(at); err != nil {
			return err
		}
		want := &module.imports[n]
		have := args[want.Module][want.Name]
		switch {
		case have == nil:
			return fail(at, "the core module's import %.100q %.100q has no argument", want.Module, want.Name)
		case !fits(have.is, want):
			return fail(at, "the core module's import %.100q %.100q is a %s, and its argument is a %s",
				want.Module, want.Name, showExtern(want), showExtern(have.is))
		}
		made.Imports = append(made.Imports, have.item)
	}
	m.plan.Instances = append(m.plan.Instances, made)
	if len(m.plan.Instances) > maxInstances {
		return refuse(at, "more than %d core instances (maxInstances)", maxInstances)
	}
	exports := make(map[string]*coreValue, len(module.exports))
	for n := range module.exports {
		if err := m.step(at); err != nil {
			return err
		}
		e := &module.exports[n]
		exports[e.Name] = &coreValue{CoreItem{Kind: e.Kind, Instance: len(m.plan.Instances), Name: e.Name}, e}
	}
	s.add(sortCoreInstance, exports)
	return nil
}

// moduleType adds the type of a core module.
func (m *machine) moduleType(s *scope, def *coreModuleDef) *Error {
	inner := newScope(s, sortCoreModule, -1)
	made := &Module{}
	seen := map[[2]string]bool{}
	for _, d := range def.entries {
		if err := m.step(d.at); err != nil {
			return err
		}
		decl, ok := d.body.(*coreDecl)
		if !ok {
			if err := m.define(inner, d); err != nil {
				return err
			}
			continue
		}
		e := decl.coreExtern
		if e.Kind == wasm.FunctionKind {
			t, err := get[*wasm.FuncType](inner, sortCoreType, decl.typeIndex, d.at)
			if err != nil {
				return err
			}
			e.Func = *t
		}
		key := [2]string{e.Module, e.Name}
		if !decl.imported {
			key[0] = "\xff" // no name of a module
			made.exports = append(made.exports, e)
		} else {
			made.imports = append(made.imports, e)
		}
		if seen[key] {
			return fail(d.at, "the core module's type has %.100q twice", e.Name)
		}
		seen[key] = true
	}
	s.add(sortCoreType, made)
	return nil
}

// alias adds an item of an instance, or of a scope further out.
func (m *machine) alias(s *scope, a *alias, at int) *Error {
	if s.sort != noSort && a.sort != sortType && (a.outer && a.sort != sortCoreType || !a.outer && a.sort != sortInstance) {
		return fail(at, "an alias of %s in the type of %s", a.sort.one(), s.sort.one())
	}
	if a.outer {
		return m.outer(s, a, at)
	}
	if a.sort >= sortCoreFunc && a.sort <= sortCoreGlobal {
		from, err := get[map[string]*coreValue](s, sortCoreInstance, a.instance, at)
		if err != nil {
			return err
		}
		value := from[a.name]
		if value == nil || value.item.Kind != coreKinds[a.sort] {
			return fail(at, "core instance %d does not export %s %.100q", a.instance, a.sort.one(), a.name)
		}
		s.add(a.sort, value)
		return nil
	}
	from, err := get[*instance](s, sortInstance, a.instance, at)
	if err != nil {
		return err
	}
	e, ok := from.items[a.name]
	if !ok || e.sort != a.sort {
		return fail(at, "instance %d does not export %s %.100q", a.instance, a.sort.one(), a.name)
	}
	s.add(a.sort, e.value)
	return nil
}

func (m *machine) outer(s *scope, a *alias, at int) *Error {
	switch a.sort {
	case sortType, sortCoreType, sortCoreModule, sortComponent:
	default:
		return fail(at, "an alias of an outer %s", a.sort)
	}
	from := s
	crossed := false // out of a component, which may be instantiated elsewhere
	for range a.instance {
		crossed = crossed || from.sort == noSort
		if from = from.outer; from == nil {
			return fail(at, "an alias of something %d scopes further out", a.instance)
		}
	}
	value, err := get[any](from, a.sort, a.index, at)
	if err != nil {
		return err
	}
	if crossed {
		if has, err := m.hasResources(value, at); err != nil {
			return err
		} else if has {
			return fail(at, "an alias of an outer type that has resources of the outer component")
		}
	}
	s.add(a.sort, value)
	return nil
}
