package canon

import "runner.example/internal/component"

// Reader reads values part by part, without a Go value for each.
type Reader struct {
	Lifter
	// Fail is called with the error of what is not valid. It must not return.
	Fail func(error)
}

// Place is where a value lies in a guest's memory.
type Place struct {
	reader *Reader
	typ    *component.ValueType
	at     uint32
}

// Place is the value of a type at an address.
func (r *Reader) Place(t *component.ValueType, at uint32) Place {
	r.must(r.check(at, uint64(t.Size()), t.Align()))
	return Place{r, t, at}
}

func (r *Reader) must(err error) {
	if err != nil {
		r.Fail(err)
	}
}

// Field is a field of a record or tuple.
func (p Place) Field(i int) Place {
	return Place{p.reader, p.typ.Fields[i].Type, p.at + p.typ.Offset(i)}
}

// Case is the number of the case of a variant, enum, option or result, and its payload.
func (p Place) Case() (uint32, Place) {
	c, payload, err := caseOf(p.typ, p.reader.number(p.at, p.typ.DiscriminantSize()))
	p.reader.must(err)
	return c.Index, Place{p.reader, payload, p.at + p.typ.PayloadOffset()}
}

// Unsigned is an unsigned integer.
func (p Place) Unsigned() uint64 { return p.reader.number(p.at, p.typ.Size()) }

// Bytes are those of a string or a list<u8>: guest memory, valid until the guest runs again.
func (p Place) Bytes() []byte {
	length := p.Length()
	return p.reader.Memory[p.elements():][:length:length]
}

// Length is that of a string or list, in bytes or elements.
func (p Place) Length() int {
	length := uint32(p.reader.number(p.at+4, 4))
	p.reader.must(p.reader.checkList(p.typ, p.elements(), length))
	return int(length)
}

// Element is an element of a list whose length is known.
func (p Place) Element(i int) Place {
	return Place{p.reader, p.typ.Element, p.elements() + uint32(i)*p.typ.Element.Size()}
}

// elements is where those of a string or list begin.
func (p Place) elements() uint32 { return uint32(p.reader.number(p.at, 4)) }
