package layout

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"

	"runner.example/schema"
)

// A row in the store:
//
//	row   = 0x01 { field }                      in the order of their numbers
//	field = uvarint number<<4 | kind, payload
//
//	null             nothing
//	bool             one byte
//	int, time, date, duration   varint
//	float            8 bytes, little endian
//	decimal, text, bytes, JSON  uvarint length, the bytes
//	file             varint size, uvarint length, the rest of it (see schema.UnpackFile)
//	list             uvarint count, count × (kind byte, payload)
//
// Kinds are those of schema.Value. A row has every stored field that its entity declared when
// it was written, also those that are null. So a missing number is a field that was not
// declared then; it has the value that the catalog records for such rows. Numbers without a
// slot are skipped: they are fields that only another schema declares, and stay in the row. The
// id and the tenant are in the key.
const rowFormat = 1

// ErrDamaged means that stored bytes cannot be decoded.
var ErrDamaged = errors.New("a stored row is damaged")

// appendValue appends the payload of a value.
func appendValue(dst []byte, v schema.Value) []byte {
	switch v.Kind() {
	case schema.KindBool:
		if v.Bool() {
			return append(dst, 1)
		}
		return append(dst, 0)
	case schema.KindInt, schema.KindTime, schema.KindDate, schema.KindDuration:
		return binary.AppendVarint(dst, v.Int())
	case schema.KindFloat:
		return binary.LittleEndian.AppendUint64(dst, math.Float64bits(v.Float()))
	case schema.KindDecimal, schema.KindText, schema.KindBytes, schema.KindJSON:
		dst = binary.AppendUvarint(dst, uint64(len(v.Text())))
		return append(dst, v.Text()...)
	case schema.KindFile:
		dst = binary.AppendVarint(dst, v.File().Size)
		dst = binary.AppendUvarint(dst, uint64(len(v.Text())))
		return append(dst, v.Text()...)
	case schema.KindList:
		list := v.List()
		dst = binary.AppendUvarint(dst, uint64(len(list)))
		for _, elem := range list {
			dst = appendValue(append(dst, byte(elem.Kind())), elem)
		}
	}
	return dst
}

// MaxRowBytes is the limit of a stored row's length, as AppendRow returns it.
const MaxRowBytes = 1 << 20

// AppendRow appends the fields of a row, given its values by position. before is the row as it is
// stored, empty for a new one: its kept fields are copied unchanged.
func (t *Table) AppendRow(dst []byte, values []schema.Value, before string) []byte {
	dst = append(dst, rowFormat)
	kept := t.keptFields(before)
	for _, pos := range t.stored {
		number := uint64(t.Slots[pos].Number)
		for ; len(kept) > 0 && kept[0].number < number; kept = kept[1:] {
			dst = append(dst, kept[0].raw...)
		}
		v := values[pos]
		if renamed := t.Slots[pos].Renamed; renamed != nil {
			v = renamed.Stored(v)
		}
		dst = binary.AppendUvarint(dst, number<<4|uint64(v.Kind()))
		dst = appendValue(dst, v)
	}
	for _, f := range kept {
		dst = append(dst, f.raw...)
	}
	return dst
}

// keptField is a field of a stored row without a slot.
type keptField struct {
	number uint64
	raw    string // the number and the value, as stored
}

// keptFields returns the kept fields of a stored row, in the order of their numbers.
func (t *Table) keptFields(raw string) (kept []keptField) {
	if len(t.kept) == 0 || raw == "" {
		return nil
	}
	r := reading{rest: raw[1:]} // after the format
	for r.rest != "" {
		from := r.rest
		tag := r.uvarint()
		r.value(schema.ValueKind(tag&15), 0)
		if number := tag >> 4; slices.Contains(t.kept, uint32(number)) {
			kept = append(kept, keptField{number, from[:len(from)-len(r.rest)]})
		}
	}
	return kept
}

// WithoutField returns a stored row without the field of that number; ok is false if it has none.
func WithoutField(raw string, number uint32) (rest []byte, ok bool, err error) {
	r := reading{rest: raw}
	if r.byte() != rowFormat {
		return nil, false, ErrDamaged
	}
	for r.rest != "" && !r.broken {
		from := r.rest
		tag := r.uvarint()
		r.value(schema.ValueKind(tag&15), 0)
		if tag>>4 == uint64(number) && !r.broken {
			rest, ok = append([]byte(raw[:len(raw)-len(from)]), r.rest...), true
		}
	}
	if r.broken {
		return nil, false, ErrDamaged
	}
	return rest, ok, nil
}

// decode reads a row into values, one for each slot. Texts are parts of raw; the values
// that are in the key do not change.
func (t *Table) decode(values []schema.Value, raw string) error {
	r := reading{rest: raw}
	if r.byte() != rowFormat {
		return ErrDamaged
	}
	for _, pos := range t.stored {
		values[pos] = t.Slots[pos].Missing
	}
	for r.rest != "" && !r.broken {
		tag := r.uvarint()
		v := r.value(schema.ValueKind(tag&15), 0)
		if number := tag >> 4; number < uint64(len(t.byNumber)) {
			if pos := t.byNumber[number]; pos >= 0 {
				if renamed := t.Slots[pos].Renamed; renamed != nil {
					v = renamed.Named(v)
				}
				values[pos] = v
			}
		}
	}
	if r.broken {
		return ErrDamaged
	}
	return nil
}

// maxSeconds is the limit of a duration, because every number that is written is a whole
// number that JSON can represent.
const maxSeconds = 1 << 53

// DecodeValue decodes a value that begins with its kind, as AppendKinded writes it.
func DecodeValue(raw string) (schema.Value, error) {
	r := reading{rest: raw}
	v := r.value(schema.ValueKind(r.byte()), 0)
	if r.broken || r.rest != "" {
		return schema.Value{}, fmt.Errorf("read value: %w", ErrDamaged)
	}
	return v, nil
}

// AppendKinded appends a value with its kind in front, for DecodeValue.
func AppendKinded(dst []byte, v schema.Value) []byte {
	return appendValue(append(dst, byte(v.Kind())), v)
}

// reading decodes values from the start of a text. After an error it returns zeros.
type reading struct {
	rest   string
	broken bool
}

func (r *reading) take(n uint64) string {
	if n > uint64(len(r.rest)) {
		r.broken, r.rest = true, ""
		return ""
	}
	taken := r.rest[:n]
	r.rest = r.rest[n:]
	return taken
}

func (r *reading) byte() byte {
	if b := r.take(1); b != "" {
		return b[0]
	}
	return 0
}

func (r *reading) uvarint() uint64 {
	var n uint64
	for shift := 0; shift < 64; shift += 7 {
		b := r.byte()
		n |= uint64(b&0x7f) << shift
		if b < 0x80 {
			return n
		}
	}
	r.broken = true
	return 0
}

func (r *reading) varint() int64 {
	n := r.uvarint()
	return int64(n>>1) ^ -int64(n&1)
}

// value reads a payload; depth is the number of lists around it.
func (r *reading) value(kind schema.ValueKind, depth int) schema.Value {
	switch kind {
	case schema.KindNull:
		return schema.Value{}
	case schema.KindBool:
		return schema.BoolValue(r.byte() != 0)
	case schema.KindInt:
		return schema.IntValue(r.varint())
	case schema.KindTime:
		return schema.TimeValue(r.varint())
	case schema.KindDate:
		return schema.DateValue(r.varint())
	case schema.KindDuration:
		seconds := r.varint()
		if seconds < -maxSeconds || seconds > maxSeconds {
			r.broken = true
			seconds = 0
		}
		return schema.DurationValue(seconds)
	case schema.KindFloat:
		return r.float()
	case schema.KindDecimal:
		return schema.DecimalValue(r.take(r.uvarint()))
	case schema.KindText:
		return schema.TextValue(r.take(r.uvarint()))
	case schema.KindBytes:
		return schema.BytesValue(r.take(r.uvarint()))
	case schema.KindJSON:
		return schema.JSONValue(r.take(r.uvarint()))
	case schema.KindFile:
		return r.file()
	case schema.KindList:
		return r.list(depth)
	}
	r.broken = true
	return schema.Value{}
}

func (r *reading) float() schema.Value {
	b := r.take(8)
	if b == "" {
		return schema.Value{}
	}
	var n uint64
	for i := range 8 {
		n |= uint64(b[i]) << (8 * i)
	}
	f := math.Float64frombits(n)
	if math.IsNaN(f) || math.IsInf(f, 0) {
		r.broken = true
		return schema.Value{}
	}
	return schema.FloatValue(f)
}

func (r *reading) file() schema.Value {
	size := r.varint()
	v, ok := schema.UnpackFile(size, r.take(r.uvarint()))
	if !ok {
		r.broken = true
		return schema.Value{}
	}
	return v
}

func (r *reading) list(depth int) schema.Value {
	n := r.uvarint()
	if n > uint64(len(r.rest)) || depth > 0 { // an element takes at least a byte; a list does not contain lists
		r.broken = true
		return schema.Value{}
	}
	list := make([]schema.Value, 0, n)
	for range n {
		list = append(list, r.value(schema.ValueKind(r.byte()), depth+1))
	}
	return schema.ListValue(list)
}
