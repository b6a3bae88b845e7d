package codec

import (
	"encoding/json"
	"reflect"
	"sync"
	"sync/atomic"
	"time"
	"unsafe"
)

// op is what a plan does with a value.
type op uint8

const (
	opOther op = iota // encoding/json reads and writes it
	opSkip            // decode only: nothing is kept
	opString
	opBool
	opInt
	opUint
	opFloat64
	opFloat32
	opStruct
	opSlice
	opBytes // []byte; encode only
	opPointer
	opAny
	opStringMap // map[string]string
	opAnyMap    // map[string]any
	opRaw       // json.RawMessage
	opTime
	opInto // an Into
)

// plan is how the values of one type are read and written.
type plan struct {
	op   op
	bits uint8 // of a number
	// direct: an interface holds the value itself, and not a pointer to it.
	direct bool
	// byPointer: only the pointer has methods for encoding/json.
	byPointer bool
	// suspect: a value may have a part that encoding/json writes, but that AppendExact refuses.
	suspect bool
	size    uintptr
	typ     reflect.Type
	elem    *plan   // of a slice or a pointer
	fields  []field // of a struct
}

// field is a member of a struct's object.
type field struct {
	name    string
	plan    *plan
	offset  uintptr
	key     words // `name"`, as an object has it behind the first quote
	prefix  words // `,"name":`, as it is written
	omit    omit
	ordinal int
}

// omit is when a field is left out.
type omit uint8

const (
	omitNever omit = iota
	omitEmpty
	omitZero
)

// words is a text in words of eight bytes, to be compared and copied without calls.
type words struct {
	words  []uint64 // the last one ends with zeros
	length int
	mask   uint64 // the bits of the last word that belong to the text
}

func wordsOf(text string) words {
	w := words{length: len(text), mask: ^uint64(0)}
	for i := 0; i < len(text); i += 8 {
		var word uint64
		for j, c := range []byte(text[i:min(i+8, len(text))]) {
			word |= uint64(c) << (8 * j)
		}
		w.words = append(w.words, word)
	}
	if rest := len(text) % 8; rest > 0 {
		w.mask = 1<<(8*rest) - 1
	}
	return w
}

// maxFields is how many fields of a struct a plan can tell apart in one word.
const maxFields = 64

// usable: words are compared as a little-endian processor loads them.
var usable = func() bool {
	one := uint16(1)
	return *(*byte)(unsafe.Pointer(&one)) == 1
}()

// plans are all plans that were made, by the address of their type.
var plans struct {
	table atomic.Pointer[table]
	mu    sync.Mutex // of writers
	known map[reflect.Type]*plan
}

func init() { plans.known = map[reflect.Type]*plan{} }

// table is an open hash table. It is never changed.
type table struct {
	slots []slot
	mask  uintptr
}

type slot struct {
	typ  unsafe.Pointer
	plan *plan
}

// eface is the layout of an interface without methods.
type eface struct{ typ, data unsafe.Pointer }

func pointerOf(t reflect.Type) unsafe.Pointer { return (*eface)(unsafe.Pointer(&t)).data }

// find returns the plan of a type, by its address.
func (t *table) find(typ unsafe.Pointer) *plan {
	if t == nil {
		return nil
	}
	for i := uintptr(typ) >> 5; ; i++ {
		s := &t.slots[i&t.mask]
		if s.typ == typ || s.typ == nil {
			return s.plan
		}
	}
}

// Prepare makes the plan of a type. It panics with nil.
func Prepare(t reflect.Type) { planOf(t) }

func planOf(t reflect.Type) *plan {
	if p := plans.table.Load().find(pointerOf(t)); p != nil {
		return p
	}
	plans.mu.Lock()
	defer plans.mu.Unlock()
	before := len(plans.known)
	p := makePlan(t)
	if len(plans.known) > before {
		publish()
	}
	return p
}

// publish makes the known plans those that are found. It needs the lock.
func publish() {
	size := 16
	for size < 2*len(plans.known) {
		size *= 2
	}
	made := &table{slots: make([]slot, size), mask: uintptr(size - 1)}
	for t, p := range plans.known {
		i := uintptr(pointerOf(t)) >> 5
		for made.slots[i&made.mask].typ != nil {
			i++
		}
		made.slots[i&made.mask] = slot{pointerOf(t), p}
	}
	plans.table.Store(made)
}

var (
	rawType       = reflect.TypeFor[json.RawMessage]()
	timeType      = reflect.TypeFor[time.Time]()
	intoType      = reflect.TypeFor[Into]()
	byteType      = reflect.TypeFor[byte]()
	stringType    = reflect.TypeFor[string]()
	anyType       = reflect.TypeFor[any]()
	marshaler     = reflect.TypeFor[json.Marshaler]()
	unmarshaler   = reflect.TypeFor[json.Unmarshaler]()
	textMarshal   = reflect.TypeFor[interface{ MarshalText() ([]byte, error) }]()
	textUnmarshal = reflect.TypeFor[interface{ UnmarshalText([]byte) error }]()
	errorType     = reflect.TypeFor[error]()
	numberType    = reflect.TypeFor[json.Number]()
)

// makePlan makes the plan of a type and those of its parts. A type that contains itself
// finds the plan that is being made.
func makePlan(t reflect.Type) *plan {
	if p, ok := plans.known[t]; ok {
		return p
	}
	p := &plan{typ: t, size: t.Size(), direct: isDirect(t)}
	plans.known[t] = p
	switch t {
	case rawType:
		p.op = opRaw
		return p
	case timeType:
		p.op = opTime
		return p
	case intoType:
		p.op = opInto
		return p
	case numberType:
		return p
	}
	own, byPointer := hasMethods(t)
	p.byPointer = byPointer && !own
	p.suspect = isError(t)
	if own || byPointer || p.suspect {
		return p
	}
	switch t.Kind() {
	case reflect.String:
		p.op = opString
	case reflect.Bool:
		p.op = opBool
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		p.op, p.bits = opInt, uint8(t.Bits())
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		p.op, p.bits = opUint, uint8(t.Bits())
	case reflect.Float64:
		p.op = opFloat64
	case reflect.Float32:
		p.op = opFloat32
	case reflect.Interface:
		if t.NumMethod() == 0 {
			p.op = opAny
		}
	case reflect.Pointer:
		p.elem = makePlan(t.Elem())
		p.op = opPointer
	case reflect.Slice:
		switch {
		case t.Elem() == byteType:
			p.op = opBytes
		case t.Elem().Kind() != reflect.Uint8:
			p.elem = makePlan(t.Elem())
			p.op = opSlice
		}
	case reflect.Map:
		switch {
		case t.Key() != stringType:
		case t.Elem() == stringType:
			p.op = opStringMap
		case t.Elem() == anyType:
			p.op = opAnyMap
		}
	case reflect.Struct:
		if fields, ok := fieldsOf(t); ok {
			p.fields = fields
			p.op = opStruct
		}
	}
	if p.op == opOther {
		p.suspect = mayHide(t, map[reflect.Type]bool{})
	}
	return p
}

// isError reports whether values of the type are errors that have no form of their own in JSON.
func isError(t reflect.Type) bool {
	return t.Kind() != reflect.Interface && t.Implements(errorType) && !t.Implements(marshaler) &&
		!t.Implements(textMarshal)
}

// mayHide reports whether a value of a type that encoding/json writes as a whole may have an error
// or an empty json.Number in it.
func mayHide(t reflect.Type, seen map[reflect.Type]bool) bool {
	if seen[t] {
		return false
	}
	seen[t] = true
	if t == numberType || isError(t) {
		return true
	}
	if own, byPointer := hasMethods(t); own || byPointer {
		return false
	}
	switch t.Kind() {
	case reflect.Interface:
		return true
	case reflect.Pointer, reflect.Slice, reflect.Array, reflect.Map:
		return mayHide(t.Elem(), seen)
	case reflect.Struct:
		for i := range t.NumField() {
			if mayHide(t.Field(i).Type, seen) {
				return true
			}
		}
	}
	return false
}

// hasMethods reports whether encoding/json calls a method of the type, and whether it calls one of
// the pointer to it.
func hasMethods(t reflect.Type) (own, byPointer bool) {
	calls := func(t reflect.Type) bool {
		return t.NumMethod() > 0 &&
			(t.Implements(marshaler) || t.Implements(unmarshaler) || t.Implements(textMarshal) || t.Implements(textUnmarshal))
	}
	if t.Kind() == reflect.Interface {
		return false, false
	}
	own = calls(t)
	return own, t.Kind() != reflect.Pointer && (t.Name() != "" || t.Kind() == reflect.Struct) &&
		calls(reflect.PointerTo(t))
}

// isDirect reports whether an interface holds values of the type in its own word: then that
// word is nil for the zero value.
func isDirect(t reflect.Type) bool {
	zero := reflect.Zero(t).Interface()
	return (*eface)(unsafe.Pointer(&zero)).data == nil
}
