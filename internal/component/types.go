package component

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"runner.example/internal/wasm"
)

// Kind is the kind of a value type. Those up to ErrorContext have no parts.
type Kind byte

// The kinds of value types.
const (
	Bool Kind = iota
	S8
	U8
	S16
	U16
	S32
	U32
	S64
	U64
	F32
	F64
	Char
	String
	ErrorContext
	Record    // Fields
	Variant   // Fields are the cases
	List      // Element
	FixedList // Element, Length
	Map       // Element is the tuple of key and value: a map is laid out as the list of them
	Tuple     // Fields without names
	Flags     // Fields without types
	Enum      // Fields are the cases, without types
	Option    // Element
	Result    // Fields are the cases "ok" and "error"
	Own       // Resource
	Borrow    // Resource
	Stream    // Element, or nil
	Future    // Element, or nil
)

var kindNames = [...]string{
	"bool", "s8", "u8", "s16", "u16", "s32", "u32", "s64", "u64", "f32", "f64", "char", "string",
	"error-context", "record", "variant", "list", "list of fixed length", "map", "tuple", "flags", "enum",
	"option", "result", "own", "borrow", "stream", "future",
}

func (k Kind) String() string { return kindNames[k] }

// Field is a field of a record or tuple, a case of a variant, a flag, or a parameter.
type Field struct {
	Name string     // empty in a tuple
	Type *ValueType // nil: the case has no payload
}

// ValueType is the type of a value, with its layout. It is read-only, and never contains itself.
// Two that are equal may be different pointers.
type ValueType struct {
	Kind     Kind
	Fields   []Field
	Element  *ValueType
	Length   uint32
	Resource *Resource

	layout
}

// Resource is a resource type, as one name sees it. Each import and each export of a resource is a
// name of its own. Identity tells which of them are the same type, and has the fields.
type Resource struct {
	Import *Import // nil if a component instance defines the resource
	// Owner is the component instance that defines the resource, by its number in the plan; -1 if it is
	// imported.
	Owner int
	// Destructor runs when an owned handle is dropped; its zero value: nothing runs.
	Destructor CoreItem

	seen *Resource // another name of the same type, which this one is known to equal
	same *Resource // the type that this one hides: other scopes do not know that they are equal
}

// Identity is the resource that all names of it have in common. Handle tables and destructors
// go by it.
func (r *Resource) Identity() *Resource {
	for {
		switch {
		case r.seen != nil:
			r = r.seen
		case r.same != nil:
			r = r.same
		default:
			return r
		}
	}
}

// known is the resource as the type checker knows it: what hides another is a type of its own.
func (r *Resource) known() *Resource {
	for r.seen != nil {
		r = r.seen
	}
	return r
}

// FuncType is the type of a component's function.
type FuncType struct {
	Async  bool
	Params []Field
	Result *ValueType // nil: none
}

// New makes a value type from its kind and parts and computes its layout. The parts must come from
// New. The errors say what is wrong with the type, for example a record without fields.
func New(t ValueType) (*ValueType, error) {
	if err := t.checkParts(); err != nil {
		return nil, err
	}
	if err := t.computeLayout(); err != nil {
		return nil, err
	}
	return &t, nil
}

// Primitive is the type of a kind up to ErrorContext.
func Primitive(k Kind) *ValueType { return &primitives[k] }

var primitives = func() (all [ErrorContext + 1]ValueType) {
	for i := range all {
		all[i].Kind = Kind(i)
		if err := all[i].computeLayout(); err != nil {
			panic("BUG: " + err.Error())
		}
	}
	return all
}()

func (t *ValueType) checkParts() error {
	switch t.Kind {
	case Record, Variant, Tuple, Flags, Enum:
		switch {
		case len(t.Fields) == 0:
			return fmt.Errorf("a %s needs at least one part", t.Kind)
		case len(t.Fields) > maxFields:
			return fmt.Errorf("a %s of %d parts, and it may have %d (maxFields)", t.Kind, len(t.Fields), maxFields)
		case t.Kind == Flags && len(t.Fields) > 32:
			return fmt.Errorf("%d flags, and there may be 32", len(t.Fields))
		}
	case FixedList:
		if t.Length == 0 {
			return errors.New("a list of fixed length 0")
		}
	case Stream:
		if t.Element != nil && t.Element.Kind == Char {
			return errors.New("a stream of char: use string or u32")
		}
	}
	if t.Kind != Tuple {
		if err := checkLabels(t.Kind.String(), t.Fields); err != nil {
			return err
		}
	}
	if (t.Kind == Stream || t.Kind == Future) && t.Element != nil && t.Element.borrows {
		return fmt.Errorf("a %s of borrowed handles", t.Kind)
	}
	if t.Kind == Map && !mapKey(t.Element.Fields[0].Type.Kind) {
		return fmt.Errorf("a map with keys of type %s", t.Element.Fields[0].Type)
	}
	return nil
}

// mapKey reports whether a map can have keys of the kind: all primitive types but floats.
func mapKey(k Kind) bool { return k <= String && k != F32 && k != F64 }

// checkLabels checks that names are labels and that no two are equal but for case.
func checkLabels(of string, fields []Field) error {
	seen := make(map[string]bool, len(fields))
	for _, f := range fields {
		if !isLabel(f.Name) {
			return fmt.Errorf("%s: %.100q is not a name in kebab-case", of, f.Name)
		}
		lower := strings.ToLower(f.Name)
		if seen[lower] {
			return fmt.Errorf("%s: the name %.100q is there twice", of, f.Name)
		}
		seen[lower] = true
	}
	return nil
}

// String shows the type as WIT does, cut off where it is long.
func (t *ValueType) String() string {
	if t == nil {
		return "_"
	}
	var parts []string
	for _, f := range t.Fields {
		if len(parts) == 3 {
			parts = append(parts, "…")
			break
		}
		part := f.Name
		if f.Type != nil {
			part += ": " + f.Type.Kind.String()
		}
		parts = append(parts, strings.TrimPrefix(part, ": "))
	}
	switch {
	case parts != nil:
		return t.Kind.String() + "<" + strings.Join(parts, ", ") + ">"
	case t.Element != nil:
		return t.Kind.String() + "<" + t.Element.Kind.String() + ">"
	}
	return t.Kind.String()
}

func (t *FuncType) fields() []Field {
	if t.Result == nil {
		return t.Params
	}
	return append(slices.Clip(t.Params), Field{Type: t.Result})
}

// CoreItem is a function, table, memory or global of a core module. The zero value is none.
type CoreItem struct {
	Kind wasm.Kind
	// Instance is the number, from 1, of the core instance in Plan.Instances that exports the item as
	// Name; 0 if Canon defines it.
	Instance int
	Name     string
	Canon    *Canon // the function comes from the canonical ABI
}

// IsZero reports whether the item is absent.
func (c CoreItem) IsZero() bool { return c.Instance == 0 && c.Canon == nil }
