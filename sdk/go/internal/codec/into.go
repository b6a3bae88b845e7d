package codec

import (
	"encoding/json"
	"reflect"
	"unsafe"
)

// Into is a member that is read into what Dest points to, or, if One, a list whose first
// item is. With a nil Dest it is ignored.
type Into struct {
	Dest  any
	One   bool
	Found bool // there was an item
}

// UnmarshalJSON implements json.Unmarshaler.
func (t *Into) UnmarshalJSON(text []byte) error {
	if t.Dest == nil {
		return nil
	}
	if !t.One {
		t.Found = true
		return json.Unmarshal(text, t.Dest)
	}
	var items []json.RawMessage
	if err := json.Unmarshal(text, &items); err != nil || len(items) == 0 {
		return err
	}
	t.Found = true
	return json.Unmarshal(items[0], t.Dest)
}

// decode reads it from i on.
func (t *Into) decode(d *decoder, i uintptr) (end uintptr, ok bool) {
	if t.Dest == nil {
		return d.skip(i)
	}
	e := (*eface)(unsafe.Pointer(&t.Dest))
	p := planOf(reflect.TypeOf(t.Dest))
	if p.op != opPointer || e.data == nil {
		return 0, false
	}
	if !t.One {
		t.Found = true
		return d.into(p.elem, e.data, i)
	}
	if i = d.space(i); *(*byte)(unsafe.Add(d.text, i)) != '[' {
		return 0, false
	}
	if i, ok = d.nest(i); !ok {
		return 0, false
	}
	if *(*byte)(unsafe.Add(d.text, i)) == ']' {
		d.nested--
		return i + 1, true
	}
	if i, ok = d.into(p.elem, e.data, i); !ok {
		return 0, false
	}
	t.Found = true
	for {
		var over bool
		if i, over, ok = d.next(i, ']'); over || !ok {
			return i, ok
		}
		if i, ok = d.skip(i); !ok {
			return 0, false
		}
	}
}

// Envelope reads an object into a struct that may have members of type Into, as
// json.Unmarshal does.
func Envelope(text []byte, v any) error {
	if usable {
		d := decoder{text: base(text), length: uintptr(len(text))}
		p := planOf(reflect.TypeOf(v))
		if i, ok := d.value(p.elem, (*eface)(unsafe.Pointer(&v)).data, 0); ok && d.space(i) == d.length {
			return nil
		}
	}
	return json.Unmarshal(text, v)
}
