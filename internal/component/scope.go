package component

// scope is what a component, or the type of a component or instance, has defined so far.
type scope struct {
	outer  *scope
	sort   sort // as in scopeDef
	owner  int  // the component instance, by its number; -1 in types
	spaces [sorts][]any
	ins    *instance
	outs   *instance
	local  map[*Resource]bool // resources that the component defines
	// imported are the types that have names by imports, and exported those that have any: functions
	// of the interface may use them.
	imported, exported map[any]bool
}

// What the index spaces hold, by their sort:
//
//	core function, table, memory, global  *coreValue
//	core type                             *wasm.FuncType, *Module (a type: it is not parsed)
//	core module                           *Module
//	core instance                         map[string]*coreValue
//	function                              *Func
//	type                                  *ValueType, *Resource, *FuncType, *closure
//	component                             *closure
//	instance                              *instance

type coreValue struct {
	item CoreItem
	is   *coreExtern
}

// closure is a component, or the type of a component or instance, with the scope around it.
type closure struct {
	def   *scopeDef
	outer *scope
}

// instance are named items, in order: of an instance, or the imports or exports of a scope.
type instance struct {
	names []string
	items map[string]entry
	keys  map[string]string // names by what makes them unique
	// resources are the names of resources among the items.
	resources map[*Resource]string
}

type entry struct {
	sort  sort
	value any
	from  string // the interface that an instance is
}

func newInstance() *instance {
	return &instance{items: map[string]entry{}, keys: map[string]string{}, resources: map[*Resource]string{}}
}

func newScope(outer *scope, sort sort, owner int) *scope {
	return &scope{
		outer: outer, sort: sort, owner: owner, ins: newInstance(), outs: newInstance(),
		local: map[*Resource]bool{}, imported: map[any]bool{}, exported: map[any]bool{},
	}
}

func (s *scope) add(to sort, value any) { s.spaces[to] = append(s.spaces[to], value) }

// get returns the item of an index.
func get[T any](s *scope, from sort, index uint32, at int) (value T, err *Error) {
	if int64(index) >= int64(len(s.spaces[from])) {
		return value, fail(at, "%s %d is named, and there are %d", from, index, len(s.spaces[from]))
	}
	value, ok := s.spaces[from][index].(T)
	if !ok {
		return value, fail(at, "%s %d is %s, and not %s", from, index, describe(s.spaces[from][index]), describe(value))
	}
	return value, nil
}

// describe says what an item of an index space is.
func describe(value any) string {
	switch v := value.(type) {
	case *ValueType:
		return "a value type"
	case *Resource:
		return "a resource type"
	case *FuncType:
		return "a function type"
	case *closure:
		if v != nil {
			return "the type of " + max(v.def.sort, sortComponent).one()
		}
		return "the type of a component or instance"
	case *Module:
		return "the type of a core module"
	}
	return "a core function type"
}

// register gives the types of an imported or exported item names, and reports whether all types in
// it have names. Records, variants, enums, flags and resources need names; what is made of them
// does not.
func (s *scope) register(value any, imported bool) bool {
	set := s.exported
	if imported {
		set = s.imported
	}
	switch v := value.(type) {
	case *Func:
		return partsNamed(v.Type, set)
	case *instance:
		for _, name := range v.names {
			if !s.register(v.items[name].value, imported) {
				return false
			}
		}
	case *ValueType, *Resource, *FuncType:
		if r, ok := v.(*Resource); !partsNamed(v, set) || ok && imported && s.local[r.known()] {
			return false
		}
		s.exported[v] = true
		if imported {
			s.imported[v] = true
		}
	}
	return true
}

func partsNamed(value any, set map[any]bool) bool {
	switch t := value.(type) {
	case *FuncType:
		for _, f := range t.fields() {
			if !named(f.Type, set) {
				return false
			}
		}
	case *ValueType:
		for _, f := range t.Fields {
			if f.Type != nil && !named(f.Type, set) {
				return false
			}
		}
		return (t.Element == nil || named(t.Element, set)) && (t.Resource == nil || set[t.Resource])
	}
	return true
}

func named(t *ValueType, set map[any]bool) bool {
	switch {
	case t.Kind <= ErrorContext:
		return true
	case t.Kind == Record || t.Kind == Variant || t.Kind == Flags || t.Kind == Enum:
		return set[t]
	}
	return partsNamed(t, set)
}
