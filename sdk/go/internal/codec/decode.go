package codec

import (
	"encoding/json"
	"math/bits"
	"reflect"
	"strconv"
	"strings"
	"time"
	"unicode/utf16"
	"unicode/utf8"
	"unsafe"
)

// padding is how many zero bytes must follow a text, so that whole words can be read from
// it.
const padding = 8

// Padded returns n bytes to be filled with a text for Unmarshal, which then need not copy it.
func Padded(n int) []byte { return make([]byte, n, n+padding) }

// maxDepth is how deep structs and slices may nest in a plan. maxNesting is the limit for
// all objects and arrays.
const (
	maxDepth   = 16
	maxNesting = 64
)

// Unmarshal reads a text as json.Unmarshal does. The strings of v share the text's bytes,
// which must not change afterwards.
func Unmarshal(text []byte, v any) error {
	if Decode(text, v) {
		return nil
	}
	return json.Unmarshal(text, v)
}

// Decode is Unmarshal for texts and types that a plan can read: if it returns false, it has
// not changed what v points to.
func Decode(text []byte, v any) bool {
	if !usable || v == nil {
		return false
	}
	e := (*eface)(unsafe.Pointer(&v))
	p := plans.table.Load().find(e.typ)
	if p == nil {
		p = planOf(reflect.TypeOf(v))
	}
	if p.op != opPointer || e.data == nil || p.elem.op == opOther {
		return false
	}
	d := decoder{text: base(text), length: uintptr(len(text))}
	i, ok := d.into(p.elem, e.data, 0)
	if !ok {
		return false
	}
	if i = d.space(i); i == uintptr(len(text)) {
		return true
	}
	p.elem.reset(e.data)
	return false
}

// base returns the address of a text with the padding. It copies the text if the padding is
// missing.
func base(text []byte) unsafe.Pointer {
	if cap(text)-len(text) < padding || load(unsafe.Pointer(unsafe.SliceData(text)), uintptr(len(text))) != 0 {
		text = append(Padded(len(text))[:0], text...)[: len(text) : len(text)+padding]
	}
	return unsafe.Pointer(unsafe.SliceData(text))
}

func load(base unsafe.Pointer, i uintptr) uint64 { return *(*uint64)(unsafe.Add(base, i)) }

// isZero reports whether the value at p has no bits set.
func (pl *plan) isZero(p unsafe.Pointer) bool {
	for _, b := range unsafe.Slice((*byte)(p), pl.size) {
		if b != 0 {
			return false
		}
	}
	return true
}

func (pl *plan) reset(p unsafe.Pointer) { reflect.NewAt(pl.typ, p).Elem().SetZero() }

// decoder reads one text.
type decoder struct {
	text   unsafe.Pointer
	length uintptr
	depth  int // of open
	nested int // objects and arrays besides
	open   [maxDepth]open
}

// open is an object or an array that is being read.
type open struct {
	plan *plan
	to   unsafe.Pointer
	// Of an object: the fields that were read, and the one that is expected next.
	seen uint64
	next int
	// Of an array: where its current item begins, and how many are before it.
	began uintptr
	count int
	room  int
}

// into reads a value into p, whose plan is pl. What p points to must be zero. If into
// returns false, it is zero again.
func (d *decoder) into(pl *plan, p unsafe.Pointer, i uintptr) (uintptr, bool) {
	if !pl.isZero(p) {
		return 0, false
	}
	i, ok := d.value(pl, p, i)
	if !ok {
		pl.reset(p)
	}
	return i, ok
}

// space is the position of the next byte from i on that is not white space.
func (d *decoder) space(i uintptr) uintptr {
	for c := *(*byte)(unsafe.Add(d.text, i)); c == ' ' || c == '\n' || c == '\t' || c == '\r'; c = *(*byte)(unsafe.Add(d.text, i)) {
		i++
	}
	return i
}

const (
	ones  = 0x0101010101010101
	highs = 0x8080808080808080
)

// special has a bit set in the first byte of a word that is not plain text of a string: a
// quote, a backslash, a control character, or not ASCII. Later bytes may be wrong.
func special(w uint64) uint64 {
	quote, backslash, control := (w^'"'*ones)-ones, (w^'\\'*ones)-ones, w-' '*ones
	return (quote | backslash | control | w) & highs
}

// Numbers of up to so many digits fit into a uint64.
const maxDigits = 18

var powers = [...]float64{
	1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19,
	1e20, 1e21, 1e22,
}

// skipped is the plan of a value that is ignored.
var skipped = &plan{op: opSkip}

// value reads one value, with all that is in it, from i on. It is one function because
// calls and returns cost more in WebAssembly than what they would do here.
func (d *decoder) value(pl *plan, p unsafe.Pointer, i uintptr) (uintptr, bool) {
	text := d.text
	bottom := d.depth
	var (
		top    *open
		c      byte
		fields []field
		at     int
	)
value:
	c = *(*byte)(unsafe.Add(text, i))
	if c <= ' ' {
		i = d.space(i)
		c = *(*byte)(unsafe.Add(text, i))
	}
	if c == 'n' {
		switch pl.op {
		case opOther, opRaw, opTime, opInto:
		default: // the value is zero
			if *(*uint32)(unsafe.Add(text, i)) != 'n'|'u'<<8|'l'<<16|'l'<<24 {
				return 0, false
			}
			i += 4
			goto done
		}
	}
	switch pl.op {
	case opString, opSkip:
		if c != '"' {
			if pl.op == opSkip {
				break
			}
			return 0, false
		}
		i++
		begin := i
		for {
			m := special(load(text, i))
			if m == 0 {
				i += 8
				continue
			}
			i += uintptr(bits.TrailingZeros64(m)) / 8
			break
		}
		if *(*byte)(unsafe.Add(text, i)) == '"' {
			if pl.op == opString {
				*(*string)(p) = unsafe.String((*byte)(unsafe.Add(text, begin)), int(i-begin))
			}
			i++
			goto done
		}
		s, end, ok := d.quoted(begin, i)
		if !ok {
			return 0, false
		}
		if pl.op == opString {
			*(*string)(p) = s
		}
		i = end
		goto done
	case opInt, opUint, opFloat64, opFloat32:
		begin := i
		negative := c == '-'
		if negative {
			i++
		}
		first := i
		n := uint64(0)
		for {
			digit := uint64(*(*byte)(unsafe.Add(text, i))) - '0'
			if digit > 9 {
				break
			}
			n = n*10 + digit
			i++
		}
		digits := i - first
		if digits == 0 || digits > 1 && *(*byte)(unsafe.Add(text, first)) == '0' {
			return 0, false
		}
		c = *(*byte)(unsafe.Add(text, i))
		if pl.op == opFloat64 || pl.op == opFloat32 {
			point := uintptr(0) // digits behind it
			if c == '.' {
				i++
				from := i
				for {
					digit := uint64(*(*byte)(unsafe.Add(text, i))) - '0'
					if digit > 9 {
						break
					}
					n = n*10 + digit
					i++
				}
				point = i - from
				if point == 0 {
					return 0, false
				}
				c = *(*byte)(unsafe.Add(text, i))
			}
			if c|0x20 == 'e' || digits+point > maxDigits || n > 1<<53 || point >= uintptr(len(powers)) || pl.op == opFloat32 {
				size := 64
				if pl.op == opFloat32 {
					size = 32
				}
				f, end, ok := d.float(begin, size)
				if !ok {
					return 0, false
				}
				if pl.op == opFloat32 {
					*(*float32)(p) = float32(f)
				} else {
					*(*float64)(p) = f
				}
				i = end
				goto done
			}
			// Both are exact, so the quotient is the nearest number.
			f := float64(n)
			if point > 0 {
				f /= powers[point]
			}
			if negative {
				f = -f
			}
			*(*float64)(p) = f
			goto done
		}
		if c == '.' || c|0x20 == 'e' || digits > maxDigits {
			return 0, false
		}
		if pl.op == opUint {
			if negative || pl.bits < 64 && n>>pl.bits != 0 {
				return 0, false
			}
		} else {
			limit := uint64(1) << (pl.bits - 1)
			if negative {
				if n > limit {
					return 0, false
				}
				n = -n
			} else if n >= limit {
				return 0, false
			}
		}
		switch pl.bits {
		case 64:
			*(*uint64)(p) = n
		case 32:
			*(*uint32)(p) = uint32(n)
		case 16:
			*(*uint16)(p) = uint16(n)
		default:
			*(*uint8)(p) = uint8(n)
		}
		goto done
	case opStruct:
		if c != '{' || d.depth == maxDepth {
			return 0, false
		}
		top = &d.open[d.depth]
		d.depth++
		*top = open{plan: pl, to: p}
		i = d.space(i + 1)
		if *(*byte)(unsafe.Add(text, i)) == '}' {
			i++
			goto close
		}
		goto key
	case opSlice:
		if c != '[' || d.depth == maxDepth {
			return 0, false
		}
		i = d.space(i + 1)
		if *(*byte)(unsafe.Add(text, i)) == ']' {
			i++
			s := reflect.NewAt(pl.typ, p).Elem()
			s.Set(reflect.MakeSlice(pl.typ, 0, 0))
			goto done
		}
		top = &d.open[d.depth]
		d.depth++
		*top = open{plan: pl, to: p}
		goto item
	case opPointer:
		made := reflect.New(pl.elem.typ).UnsafePointer()
		*(*unsafe.Pointer)(p) = made
		pl, p = pl.elem, made
		goto value
	case opBool:
		switch *(*uint32)(unsafe.Add(text, i)) {
		case 't' | 'r'<<8 | 'u'<<16 | 'e'<<24:
			*(*bool)(p) = true
			i += 4
			goto done
		case 'f' | 'a'<<8 | 'l'<<16 | 's'<<24:
			if *(*byte)(unsafe.Add(text, i+4)) == 'e' {
				i += 5
				goto done
			}
		}
		return 0, false
	case opAny:
		v, end, ok := d.any(i)
		if !ok {
			return 0, false
		}
		*(*any)(p) = v
		i = end
		goto done
	case opAnyMap:
		if c != '{' {
			return 0, false
		}
		v, end, ok := d.any(i)
		if !ok {
			return 0, false
		}
		*(*map[string]any)(p) = v.(map[string]any)
		i = end
		goto done
	case opStringMap:
		if c != '{' {
			return 0, false
		}
		m, end, ok := d.stringMap(i)
		if !ok {
			return 0, false
		}
		*(*map[string]string)(p) = m
		i = end
		goto done
	default:
		end, ok := d.other(pl, p, i)
		if !ok {
			return 0, false
		}
		i = end
		goto done
	}
	// The value is skipped, and is not a string.
	{
		end, ok := d.skip(i)
		if !ok {
			return 0, false
		}
		i = end
	}

done:
	if d.depth == bottom {
		return i, true
	}
	top = &d.open[d.depth-1]
	c = *(*byte)(unsafe.Add(text, i))
	if c <= ' ' {
		i = d.space(i)
		c = *(*byte)(unsafe.Add(text, i))
	}
	i++
	if top.plan.op == opSlice {
		switch c {
		case ',':
			top.count++
			goto item
		case ']':
			(*slice)(top.to).length = top.count + 1
			goto close
		}
		return 0, false
	}
	if c == '}' {
		goto close
	}
	if c != ',' {
		return 0, false
	}
	if c = *(*byte)(unsafe.Add(text, i)); c <= ' ' {
		i = d.space(i)
	}

key:
	if *(*byte)(unsafe.Add(text, i)) != '"' {
		return 0, false
	}
	i++
	fields = top.plan.fields
	at = top.next
	for range fields {
		if at >= len(fields) {
			at = 0
		}
		f := &fields[at]
		w := f.key.words
		last := len(w) - 1
		k := 0
		for k < last && load(text, i+uintptr(k)*8) == w[k] {
			k++
		}
		if k == last && load(text, i+uintptr(k)*8)&f.key.mask == w[k] {
			i += uintptr(f.key.length)
			goto found
		}
		at++
	}
	at, i = d.slowName(top.plan, i)
	if at < 0 {
		if i == 0 {
			return 0, false
		}
		pl, p = skipped, nil
		goto colon
	}
found:
	top.next = at + 1
	if top.seen&(1<<at) != 0 {
		return 0, false
	}
	top.seen |= 1 << at
	pl, p = fields[at].plan, unsafe.Add(top.to, fields[at].offset)
colon:
	if *(*byte)(unsafe.Add(text, i)) != ':' {
		if i = d.space(i); *(*byte)(unsafe.Add(text, i)) != ':' {
			return 0, false
		}
	}
	i++
	goto value

item:
	pl = top.plan.elem
	if top.count == top.room {
		d.grow(top, i)
	}
	top.began = i
	p = unsafe.Add((*slice)(top.to).data, uintptr(top.count)*pl.size)
	goto value

close:
	d.depth--
	goto done
}

// slice is the layout of a slice.
type slice struct {
	data             unsafe.Pointer
	length, capacity int
}

// firstRoom is how many bytes a slice gets at most before half of its items are there.
const firstRoom = 16 << 10

// grow allocates space for more items of a slice. The space after its items is zero.
func (d *decoder) grow(top *open, i uintptr) {
	s := (*slice)(top.to)
	more := max(1, top.count)
	if top.count == 1 { // the rest may be as long as the first
		likely := (d.length-i)/(i-top.began) + 1
		more = int(min(likely, 1+firstRoom/max(1, top.plan.elem.size)))
	}
	s.length = top.count
	reflect.NewAt(top.plan.typ, top.to).Elem().Grow(more)
	s.length = s.capacity
	top.room = s.capacity
}

// str reads a string from i on, with its quotes.
func (d *decoder) str(i uintptr) (string, uintptr, bool) {
	if *(*byte)(unsafe.Add(d.text, i)) != '"' {
		return "", 0, false
	}
	return d.quoted(i+1, i+1)
}

// quoted reads a string from begin on, behind its quote. What is before i is plain.
func (d *decoder) quoted(begin, i uintptr) (string, uintptr, bool) {
	var made []byte // what is before begin, if it differs from the text
	for {
		m := special(load(d.text, i))
		if m == 0 {
			i += 8
			continue
		}
		i += uintptr(bits.TrailingZeros64(m)) / 8
		c := *(*byte)(unsafe.Add(d.text, i))
		switch {
		case c == '"':
			rest := unsafe.String((*byte)(unsafe.Add(d.text, begin)), int(i-begin))
			if made == nil {
				return rest, i + 1, true
			}
			return string(append(made, rest...)), i + 1, true
		case c < ' ':
			return "", 0, false
		case c != '\\':
			r, size := utf8.DecodeRune(unsafe.Slice((*byte)(unsafe.Add(d.text, i)), utf8.UTFMax))
			if r != utf8.RuneError || size > 1 {
				i += uintptr(size)
				continue
			}
			made = append(made, d.span(begin, i)...)
			made = utf8.AppendRune(made, utf8.RuneError)
			i++
			begin = i
		default:
			made = append(made, d.span(begin, i)...)
			var r rune
			var ok bool
			if r, i, ok = d.escape(i + 1); !ok {
				return "", 0, false
			}
			made = utf8.AppendRune(made, r)
			begin = i
		}
	}
}

// span is a part of the text.
func (d *decoder) span(from, to uintptr) []byte {
	return unsafe.Slice((*byte)(unsafe.Add(d.text, from)), int(to-from))
}

// escape reads what follows a backslash.
func (d *decoder) escape(i uintptr) (r rune, end uintptr, ok bool) {
	switch c := *(*byte)(unsafe.Add(d.text, i)); c {
	case '"', '\\', '/':
		r = rune(c)
	case 'b':
		r = '\b'
	case 'f':
		r = '\f'
	case 'n':
		r = '\n'
	case 'r':
		r = '\r'
	case 't':
		r = '\t'
	case 'u':
		if r, ok = d.hex(i + 1); !ok {
			return 0, 0, false
		}
		i += 5
		if !utf16.IsSurrogate(r) {
			return r, i, true
		}
		if *(*byte)(unsafe.Add(d.text, i)) == '\\' && *(*byte)(unsafe.Add(d.text, i+1)) == 'u' {
			second, ok := d.hex(i + 2)
			if !ok {
				return 0, 0, false
			}
			if pair := utf16.DecodeRune(r, second); pair != utf8.RuneError {
				return pair, i + 6, true
			}
		}
		return utf8.RuneError, i, true
	default:
		return 0, 0, false
	}
	return r, i + 1, true
}

// hex reads four hexadecimal digits.
func (d *decoder) hex(i uintptr) (r rune, ok bool) {
	for range 4 {
		c := *(*byte)(unsafe.Add(d.text, i))
		switch {
		case '0' <= c && c <= '9':
			c -= '0'
		case 'a' <= c|0x20 && c|0x20 <= 'f':
			c = c | 0x20 - 'a' + 10
		default:
			return 0, false
		}
		r = r<<4 | rune(c)
		i++
	}
	return r, true
}

// number is the end of the number that begins at i.
func (d *decoder) number(i uintptr) (end uintptr, ok bool) {
	digits := func() bool {
		from := i
		for *(*byte)(unsafe.Add(d.text, i))-'0' <= 9 {
			i++
		}
		return i > from
	}
	if *(*byte)(unsafe.Add(d.text, i)) == '-' {
		i++
	}
	zero := *(*byte)(unsafe.Add(d.text, i)) == '0'
	first := i
	if !digits() || zero && i > first+1 {
		return 0, false
	}
	if *(*byte)(unsafe.Add(d.text, i)) == '.' {
		if i++; !digits() {
			return 0, false
		}
	}
	if *(*byte)(unsafe.Add(d.text, i))|0x20 == 'e' {
		i++
		if c := *(*byte)(unsafe.Add(d.text, i)); c == '+' || c == '-' {
			i++
		}
		if !digits() {
			return 0, false
		}
	}
	return i, true
}

// float reads a number of any length and size.
func (d *decoder) float(i uintptr, size int) (float64, uintptr, bool) {
	end, ok := d.number(i)
	if !ok {
		return 0, 0, false
	}
	f, err := strconv.ParseFloat(unsafe.String((*byte)(unsafe.Add(d.text, i)), int(end-i)), size)
	return f, end, err == nil
}

// slowName reads the name of a member, behind its quote, to which no field is equal as the
// text is. It finds the field as encoding/json does; -1: there is none. The end is 0 if it is
// not a string.
func (d *decoder) slowName(p *plan, i uintptr) (at int, end uintptr) {
	name, end, ok := d.quoted(i, i)
	if !ok {
		return -1, 0
	}
	for i := range p.fields {
		if p.fields[i].name == name {
			return i, end
		}
	}
	for i := range p.fields {
		if strings.EqualFold(p.fields[i].name, name) {
			return i, end
		}
	}
	return -1, end
}

// nest begins an object or an array of the functions below.
func (d *decoder) nest(i uintptr) (uintptr, bool) {
	d.nested++
	return d.space(i + 1), d.depth+d.nested <= maxNesting
}

// next reads what follows an item or a member: the end is true at the closing bracket.
func (d *decoder) next(i uintptr, closing byte) (_ uintptr, end, ok bool) {
	i = d.space(i)
	switch *(*byte)(unsafe.Add(d.text, i)) {
	case ',':
		return d.space(i + 1), false, true
	case closing:
		d.nested--
		return i + 1, true, true
	}
	return 0, false, false
}

// member reads a member's name and its colon.
func (d *decoder) member(i uintptr) (name string, _ uintptr, ok bool) {
	if name, i, ok = d.str(i); !ok {
		return "", 0, false
	}
	i = d.space(i)
	return name, d.space(i + 1), *(*byte)(unsafe.Add(d.text, i)) == ':'
}

// literal is the end of null, true or false.
func (d *decoder) literal(i uintptr) (end uintptr, ok bool) {
	switch *(*uint32)(unsafe.Add(d.text, i)) {
	case 'n' | 'u'<<8 | 'l'<<16 | 'l'<<24, 't' | 'r'<<8 | 'u'<<16 | 'e'<<24:
		return i + 4, true
	case 'f' | 'a'<<8 | 'l'<<16 | 's'<<24:
		return i + 5, *(*byte)(unsafe.Add(d.text, i+4)) == 'e'
	}
	return 0, false
}

// skip is the end of a value.
func (d *decoder) skip(i uintptr) (end uintptr, ok bool) {
	var over bool
	i = d.space(i)
	switch c := *(*byte)(unsafe.Add(d.text, i)); c {
	case '"':
		_, end, ok = d.str(i)
		return end, ok
	case '[':
		if i, ok = d.nest(i); !ok {
			return 0, false
		}
		if *(*byte)(unsafe.Add(d.text, i)) == ']' {
			d.nested--
			return i + 1, true
		}
		for {
			if i, ok = d.skip(i); !ok {
				return 0, false
			}
			if i, over, ok = d.next(i, ']'); over || !ok {
				return i, ok
			}
		}
	case '{':
		if i, ok = d.nest(i); !ok {
			return 0, false
		}
		if *(*byte)(unsafe.Add(d.text, i)) == '}' {
			d.nested--
			return i + 1, true
		}
		for {
			if _, i, ok = d.member(i); !ok {
				return 0, false
			}
			if i, ok = d.skip(i); !ok {
				return 0, false
			}
			if i, over, ok = d.next(i, '}'); over || !ok {
				return i, ok
			}
		}
	case 'n', 't', 'f':
		return d.literal(i)
	}
	return d.number(i)
}

// any reads a value for an interface.
func (d *decoder) any(i uintptr) (v any, end uintptr, ok bool) {
	var over bool
	switch c := *(*byte)(unsafe.Add(d.text, i)); c {
	case '"':
		s, end, ok := d.str(i)
		return s, end, ok
	case '[':
		if i, ok = d.nest(i); !ok {
			return nil, 0, false
		}
		list := []any{}
		if *(*byte)(unsafe.Add(d.text, i)) == ']' {
			d.nested--
			return list, i + 1, true
		}
		for {
			if v, i, ok = d.any(i); !ok {
				return nil, 0, false
			}
			list = append(list, v)
			if i, over, ok = d.next(i, ']'); over || !ok {
				return list, i, ok
			}
		}
	case '{':
		if i, ok = d.nest(i); !ok {
			return nil, 0, false
		}
		object := map[string]any{}
		if *(*byte)(unsafe.Add(d.text, i)) == '}' {
			d.nested--
			return object, i + 1, true
		}
		for {
			var name string
			if name, i, ok = d.member(i); !ok {
				return nil, 0, false
			}
			if v, i, ok = d.any(i); !ok {
				return nil, 0, false
			}
			object[name] = v
			if i, over, ok = d.next(i, '}'); over || !ok {
				return object, i, ok
			}
		}
	case 'n':
		end, ok = d.literal(i)
		return nil, end, ok
	case 't', 'f':
		end, ok = d.literal(i)
		return c == 't', end, ok
	}
	return d.float(i, 64)
}

// stringMap reads an object whose members are strings.
func (d *decoder) stringMap(i uintptr) (m map[string]string, _ uintptr, ok bool) {
	if i, ok = d.nest(i); !ok {
		return nil, 0, false
	}
	m = map[string]string{}
	if *(*byte)(unsafe.Add(d.text, i)) == '}' {
		d.nested--
		return m, i + 1, true
	}
	for {
		var name, value string
		var over bool
		if name, i, ok = d.member(i); !ok {
			return nil, 0, false
		}
		if value, i, ok = d.str(i); !ok {
			return nil, 0, false
		}
		m[name] = value
		if i, over, ok = d.next(i, '}'); over || !ok {
			return m, i, ok
		}
	}
}

// other reads a value that has methods of its own, or that only encoding/json knows.
func (d *decoder) other(pl *plan, p unsafe.Pointer, i uintptr) (uintptr, bool) {
	if pl.op == opInto {
		return (*Into)(p).decode(d, i)
	}
	end, ok := d.skip(i)
	if !ok {
		return 0, false
	}
	part := d.span(i, end)
	switch pl.op {
	case opRaw:
		*(*json.RawMessage)(p) = append(json.RawMessage{}, part...)
	case opTime:
		ok = (*time.Time)(p).UnmarshalJSON(part) == nil
	default:
		ok = json.Unmarshal(part, reflect.NewAt(pl.typ, p).Interface()) == nil
	}
	return end, ok
}
