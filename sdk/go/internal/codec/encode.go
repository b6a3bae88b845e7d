package codec

import (
	"encoding/base64"
	"encoding/json"
	"maps"
	"math"
	"reflect"
	"slices"
	"strconv"
	"time"
	"unicode/utf8"
	"unsafe"
)

// Marshal writes a value as json.Marshal does.
func Marshal(v any) ([]byte, error) { return Append(nil, v) }

// Append appends a value to dst as json.Marshal writes it.
func Append(dst []byte, v any) ([]byte, error) {
	text, _, err := appendValue(dst, v)
	return text, err
}

// appendValue is Append that also reports whether AppendExact may refuse a part of the value.
func appendValue(dst []byte, v any) (out []byte, suspect bool, err error) {
	if usable && v != nil {
		e := (*eface)(unsafe.Pointer(&v))
		p := plans.table.Load().find(e.typ)
		if p == nil {
			p = planOf(reflect.TypeOf(v))
		}
		if p.op != opOther {
			w := encoder{text: dst}
			at := e.data
			if p.direct {
				at = unsafe.Pointer(&e.data)
			}
			if w.value(p, at, false) {
				return w.text, w.suspect, nil
			}
		}
	}
	text, err := json.Marshal(v)
	if err != nil {
		return nil, true, err
	}
	return append(dst, text...), true, nil
}

// encoder writes one text.
type encoder struct {
	text  []byte
	depth int
	// suspect: a part was written that AppendExact may refuse.
	suspect bool
	open    [maxDepth]written
}

// written is a struct or a slice that is being written.
type written struct {
	plan *plan
	from unsafe.Pointer
	next int // field or item
	// Of a slice: its length, and where its text begins. Of a struct: whether it has no
	// member yet.
	count, began int
	empty        bool
	addressable  bool
}

// slack is how many bytes after the text may be overwritten. They are not part of it.
const slack = 8

// reserve allocates space for n bytes and the slack.
func (w *encoder) reserve(n int) {
	w.text = slices.Grow(w.text, max(n+slack, min(len(w.text), 1<<20), 512))
}

// textPlan, numberBase: see value.
const (
	longestNumber = 24
	longestExact  = 1e15 // numbers below it have at most 15 digits
	mostDecimals  = 6
)

var tens = [...]uint64{
	1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19,
}

// escaped has a bit set in the first byte of a word that a string's text does not have as it
// is: see special; with <, > and &. Later bytes may be wrong.
func escaped(w uint64) uint64 {
	quote := ((w | 4*ones) ^ '&'*ones) - ones // or an ampersand
	angle := ((w | 2*ones) ^ '>'*ones) - ones // in either direction
	backslash, control := (w^'\\'*ones)-ones, w-' '*ones
	return (quote | angle | backslash | control | w) & highs
}

func store(base unsafe.Pointer, i int, w uint64) { *(*uint64)(unsafe.Add(base, i)) = w }

// value writes the value at p, whose plan is pl, with all that is in it. addressable is
// whether encoding/json would call methods of pointers into it. It is one function because
// calls and returns cost more in WebAssembly than what they would do here.
func (w *encoder) value(pl *plan, p unsafe.Pointer, addressable bool) bool {
	bottom := w.depth
	var top *written
	var number uint64
	var decimals int
	var negative bool
value:
	if cap(w.text)-len(w.text) < longestNumber+slack {
		w.reserve(longestNumber)
	}
	switch pl.op {
	case opString:
		s := *(*string)(p)
		n := len(s)
		if cap(w.text)-len(w.text) < n+2+slack {
			w.reserve(n + 2)
		}
		from := unsafe.Pointer(unsafe.StringData(s))
		begin := len(w.text)
		text := unsafe.Pointer(unsafe.SliceData(w.text))
		*(*byte)(unsafe.Add(text, begin)) = '"'
		begin++
		if n < 8 {
			var word uint64
			switch {
			case n >= 4:
				word = uint64(*(*uint32)(from)) | uint64(*(*uint32)(unsafe.Add(from, n-4)))<<(8*(n-4))
			case n >= 2:
				word = uint64(*(*uint16)(from)) | uint64(*(*uint16)(unsafe.Add(from, n-2)))<<(8*(n-2))
			case n == 1:
				word = uint64(*(*byte)(from))
			}
			if escaped(word)&(1<<(8*n)-1) != 0 {
				w.escape(s)
				goto done
			}
			store(text, begin, word)
		} else {
			last := n - 8
			for k := 0; ; k += 8 {
				if k > last {
					k = last
				}
				word := load(from, uintptr(k))
				if escaped(word) != 0 {
					w.escape(s)
					goto done
				}
				store(text, begin+k, word)
				if k == last {
					break
				}
			}
		}
		*(*byte)(unsafe.Add(text, begin+n)) = '"'
		w.text = w.text[:begin+n+1]
		goto done
	case opInt:
		var n int64
		switch pl.bits {
		case 64:
			n = *(*int64)(p)
		case 32:
			n = int64(*(*int32)(p))
		case 16:
			n = int64(*(*int16)(p))
		default:
			n = int64(*(*int8)(p))
		}
		negative = n < 0
		number, decimals = uint64(n), 0
		if negative {
			number = -number
		}
		goto number
	case opUint:
		switch pl.bits {
		case 64:
			number = *(*uint64)(p)
		case 32:
			number = uint64(*(*uint32)(p))
		case 16:
			number = uint64(*(*uint16)(p))
		default:
			number = uint64(*(*uint8)(p))
		}
		negative, decimals = false, 0
		goto number
	case opFloat64:
		f := *(*float64)(p)
		// A number of at most 15 digits is the shortest that reads as f if one does. The
		// quotient is exact: see decoder.value.
		negative = math.Float64bits(f)>>63 != 0
		abs := math.Abs(f)
		if abs < longestExact {
			for decimals = 0; decimals <= mostDecimals; decimals++ {
				scaled := abs * powers[decimals]
				if scaled >= longestExact {
					break
				}
				number = uint64(scaled + 0.5)
				if float64(number)/powers[decimals] == abs && (abs >= 1e-6 || abs == 0) {
					goto number
				}
			}
		}
		if !w.float(f, 64) {
			return false
		}
		goto done
	case opFloat32:
		if !w.float(float64(*(*float32)(p)), 32) {
			return false
		}
		goto done
	case opStruct:
		if w.depth == maxDepth {
			return false
		}
		top = &w.open[w.depth]
		w.depth++
		*top = written{plan: pl, from: p, empty: true, addressable: addressable}
		w.text = append(w.text, '{')
		goto member
	case opSlice:
		s := (*slice)(p)
		switch {
		case s.data == nil:
			goto null
		case s.length == 0:
			w.text = append(w.text, "[]"...)
			goto done
		case w.depth == maxDepth:
			return false
		}
		top = &w.open[w.depth]
		w.depth++
		*top = written{plan: pl, from: s.data, count: s.length, began: len(w.text)}
		w.text = append(w.text, '[')
		goto item
	case opPointer:
		if p = *(*unsafe.Pointer)(p); p == nil {
			goto null
		}
		if w.depth == maxDepth { // pointers may form a cycle
			return false
		}
		w.depth++
		ok := w.value(pl.elem, p, true)
		w.depth--
		if !ok {
			return false
		}
		goto done
	case opBool:
		if *(*bool)(p) {
			w.text = append(w.text, "true"...)
		} else {
			w.text = append(w.text, "false"...)
		}
		goto done
	case opAny:
		e := (*eface)(p)
		if e.typ == nil {
			goto null
		}
		if w.depth == maxDepth {
			return false
		}
		known := plans.table.Load().find(e.typ)
		if known == nil {
			known = planOf(reflect.TypeOf(*(*any)(p)))
		}
		at := e.data
		if known.direct {
			at = unsafe.Pointer(&e.data)
		}
		w.depth++
		ok := w.value(known, at, false)
		w.depth--
		if !ok {
			return false
		}
		goto done
	default:
		if !w.other(pl, p, addressable) {
			return false
		}
		goto done
	}

null:
	w.text = append(w.text, "null"...)
	goto done

number:
	{
		length := decimals + 1
		for length < len(tens) && number >= tens[length] {
			length++
		}
		at := unsafe.Add(unsafe.Pointer(unsafe.SliceData(w.text)), len(w.text))
		end := len(w.text) + length
		if negative {
			*(*byte)(at) = '-'
			at = unsafe.Add(at, 1)
			end++
		}
		if decimals > 0 {
			length++
			end++
		}
		for k := length - 1; k >= 0; k-- {
			if decimals > 0 && k == length-1-decimals {
				*(*byte)(unsafe.Add(at, k)) = '.'
				continue
			}
			var rest uint64
			if number>>32 == 0 {
				rest = number * 0xcccccccd >> 35
			} else {
				rest = number / 10
			}
			*(*byte)(unsafe.Add(at, k)) = byte('0' + number - rest*10)
			number = rest
		}
		w.text = w.text[:end]
	}

done:
	if w.depth == bottom {
		return true
	}
	top = &w.open[w.depth-1]
	if top.plan.op == opSlice {
		if top.next++; top.next == top.count {
			w.text = append(w.text, ']')
			w.depth--
			goto done
		}
		if top.next == 1 { // the rest may be as long as the first
			w.reserve(min((len(w.text)-top.began)*(top.count-1), 64<<10))
		}
		w.text = append(w.text, ',')
		goto item
	}

member:
	for top.next < len(top.plan.fields) {
		f := &top.plan.fields[top.next]
		top.next++
		p = unsafe.Add(top.from, f.offset)
		if f.omit != omitNever && f.absent(p) {
			continue
		}
		if cap(w.text)-len(w.text) < f.prefix.length+slack {
			w.reserve(f.prefix.length)
		}
		text := unsafe.Pointer(unsafe.SliceData(w.text))
		begin := len(w.text)
		if top.empty { // its comma is where the brace is
			begin--
		}
		for k, word := range f.prefix.words {
			store(text, begin+k*8, word)
		}
		if top.empty {
			top.empty = false
			*(*byte)(unsafe.Add(text, begin)) = '{'
		}
		w.text = w.text[:begin+f.prefix.length]
		pl, addressable = f.plan, top.addressable
		goto value
	}
	w.text = append(w.text, '}')
	w.depth--
	goto done

item:
	pl, addressable = top.plan.elem, true
	p = unsafe.Add(top.from, uintptr(top.next)*pl.size)
	goto value
}

// absent reports whether a field is left out.
func (f *field) absent(p unsafe.Pointer) bool {
	switch f.plan.op {
	case opString:
		return len(*(*string)(p)) == 0
	case opBool, opInt, opUint, opPointer:
		return f.plan.isZero(p)
	case opTime:
		return f.omit&omitZero != 0 && (*time.Time)(p).IsZero()
	}
	v := reflect.NewAt(f.plan.typ, p).Elem()
	if f.omit&omitZero != 0 && v.IsZero() {
		return true
	}
	if f.omit&omitEmpty == 0 {
		return false
	}
	switch v.Kind() {
	case reflect.Array, reflect.Map, reflect.Slice, reflect.String:
		return v.Len() == 0
	case reflect.Struct:
		return false
	}
	return v.IsZero()
}

// escape appends a string that has more than plain text.
func (w *encoder) escape(s string) {
	text := append(w.text, '"')
	begin := 0
	for i := 0; i < len(s); {
		c, size := rune(s[i]), 1
		if c >= utf8.RuneSelf {
			c, size = utf8.DecodeRuneInString(s[i:])
			if c != '\u2028' && c != '\u2029' && (c != utf8.RuneError || size > 1) {
				i += size
				continue
			}
		} else if escaped(uint64(c)|(ones-1)*'a') == 0 {
			i++
			continue
		}
		text = append(text, s[begin:i]...)
		switch c {
		case '\\', '"':
			text = append(text, '\\', byte(c))
		case '\b':
			text = append(text, `\b`...)
		case '\f':
			text = append(text, `\f`...)
		case '\n':
			text = append(text, `\n`...)
		case '\r':
			text = append(text, `\r`...)
		case '\t':
			text = append(text, `\t`...)
		default:
			const digits = "0123456789abcdef"
			text = append(text, '\\', 'u', digits[c>>12], digits[c>>8&15], digits[c>>4&15], digits[c&15])
		}
		i += size
		begin = i
	}
	w.text = append(append(text, s[begin:]...), '"')
}

// quote appends any string.
func (w *encoder) quote(s string) { w.value(quoted, unsafe.Pointer(&s), false) }

var quoted = &plan{op: opString}

// float appends a number of any length and size.
func (w *encoder) float(f float64, size int) bool {
	if math.IsInf(f, 0) || math.IsNaN(f) {
		return false
	}
	format := byte('f')
	if abs := math.Abs(f); abs != 0 {
		if size == 64 && (abs < 1e-6 || abs >= 1e21) || size == 32 && (float32(abs) < 1e-6 || float32(abs) >= 1e21) {
			format = 'e'
		}
	}
	w.text = strconv.AppendFloat(w.text, f, format, -1, size)
	if n := len(w.text); format == 'e' && n >= 4 && string(w.text[n-4:n-1]) == "e-0" {
		w.text[n-2] = w.text[n-1] // 1e-7, and not 1e-07
		w.text = w.text[:n-1]
	}
	return true
}

// other writes a value that is rare, or that only encoding/json knows.
func (w *encoder) other(pl *plan, p unsafe.Pointer, addressable bool) bool {
	switch pl.op {
	case opBytes:
		b := *(*[]byte)(p)
		if b == nil {
			w.text = append(w.text, "null"...)
			return true
		}
		w.text = append(base64.StdEncoding.AppendEncode(append(w.text, '"'), b), '"')
		return true
	case opStringMap:
		return writeMap(w, *(*map[string]string)(p), quoted)
	case opAnyMap:
		return writeMap(w, *(*map[string]any)(p), planOf(anyType))
	case opTime:
		text, err := (*time.Time)(p).MarshalJSON()
		w.text = append(w.text, text...)
		return err == nil
	}
	if pl.suspect || pl.typ == numberType && *(*string)(p) == "" {
		w.suspect = true
	}
	v := reflect.NewAt(pl.typ, p)
	if !addressable {
		v = v.Elem()
	}
	text, err := json.Marshal(v.Interface())
	w.text = append(w.text, text...)
	return err == nil
}

// writeMap writes a map's members in the order of their names.
func writeMap[T any](w *encoder, m map[string]T, pl *plan) bool {
	if m == nil {
		w.text = append(w.text, "null"...)
		return true
	}
	if w.depth == maxDepth {
		return false
	}
	w.depth++
	w.text = append(w.text, '{')
	for i, name := range slices.Sorted(maps.Keys(m)) {
		if i > 0 {
			w.text = append(w.text, ',')
		}
		w.quote(name)
		w.text = append(w.text, ':')
		value := m[name]
		if !w.value(pl, unsafe.Pointer(&value), false) {
			return false
		}
	}
	w.text = append(w.text, '}')
	w.depth--
	return true
}
