package schema

import (
	"cmp"
	"encoding/base64"
	"math"
	"strconv"
	"strings"
	"time"
)

// ValueKind is the kind of a Value. The zero value is KindNull.
type ValueKind uint8

// The kinds of values. Types can share a kind: values of ID, UUID, String, Text, Email, URL,
// EnumKind and Relation are KindText.
const (
	KindNull ValueKind = iota
	KindBool
	KindInt
	KindFloat
	KindDecimal
	KindText
	KindTime
	KindDate
	KindDuration
	KindBytes
	KindJSON
	KindList
	KindFile

	// The other kinds are used only in rules.
	absentKind   // a value that an input does not have
	someRoleKind // auth.role: each of the caller's roles
	allRolesKind // auth.roles: the list of them
)

// Value is the value of a field. The zero Value is null. Values are immutable and cheap to
// copy; copies share memory. Compare values with Equal, not with ==.
type Value struct {
	kind ValueKind
	// num is a bool (0, 1), an int, the bits of a float, the milliseconds since 1970 of a
	// time, the days since 1970 of a date, the milliseconds of a duration, or the size of a file.
	num int64
	// text is a text, the digits of a decimal, bytes, JSON, or a packed file.
	text string
	list *[]Value
}

var absent = Value{kind: absentKind}

// BoolValue is true or false.
func BoolValue(b bool) Value {
	v := Value{kind: KindBool}
	if b {
		v.num = 1
	}
	return v
}

// IntValue is a whole number.
func IntValue(n int64) Value { return Value{kind: KindInt, num: n} }

// FloatValue is a finite number. It panics if f is not finite. Negative zero becomes zero.
func FloatValue(f float64) Value {
	if math.IsNaN(f) || math.IsInf(f, 0) {
		panic("BUG: float value is not finite")
	}
	v := Value{kind: KindFloat}
	if f != 0 {
		v.num = int64(math.Float64bits(f))
	}
	return v
}

// DecimalValue is a decimal from the text of another decimal Value: "-12.50", with exactly
// its places, without leading zeros and never "-0.00". For other input use Type.Parse.
func DecimalValue(digits string) Value { return Value{kind: KindDecimal, text: digits} }

// TextValue is a text; an id, an enum's value and a relation are texts too.
func TextValue(s string) Value { return Value{kind: KindText, text: s} }

// TimeValue is a time, in milliseconds since 1970 UTC.
func TimeValue(ms int64) Value { return Value{kind: KindTime, num: ms} }

// DateValue is a date, in days since 1970-01-01.
func DateValue(days int64) Value { return Value{kind: KindDate, num: days} }

// DurationValue is a duration in whole seconds, within ±(2^53−1).
func DurationValue(seconds int64) Value { return Value{kind: KindDuration, num: seconds * 1000} }

// SpanValue is a duration in whole milliseconds. Only rules use fractions of a second.
func SpanValue(d time.Duration) Value { return Value{kind: KindDuration, num: d.Milliseconds()} }

// BytesValue has the bytes of s.
func BytesValue(s string) Value { return Value{kind: KindBytes, text: s} }

// JSONValue is a JSON value from the text of another JSON Value, in compact form. For other
// input use Type.Parse.
func JSONValue(compact string) Value { return Value{kind: KindJSON, text: compact} }

// ListValue is a list. It takes ownership of elems: they must not change afterwards.
func ListValue(elems []Value) Value { return Value{kind: KindList, list: &elems} }

// Now is the time of t as a value.
func Now(t time.Time) Value { return TimeValue(t.UnixMilli()) }

// Now returns the time as a value of the type: a date, or a time.
func (t *Type) Now(now time.Time) Value {
	if t.Kind == Date {
		return Today(now)
	}
	return Now(now)
}

// Today is the date of t, in UTC, as a value.
func Today(t time.Time) Value { return DateValue(floorDiv(t.Unix(), 24*60*60)) }

func floorDiv(n, by int64) int64 {
	q := n / by
	if n%by < 0 {
		q--
	}
	return q
}

// Kind is the kind of v; it decides which of the methods below returns its value.
func (v Value) Kind() ValueKind { return v.kind }

// IsNull reports whether v is null.
func (v Value) IsNull() bool { return v.kind == KindNull }

// Bool returns a KindBool; for other kinds it returns false.
func (v Value) Bool() bool { return v.kind == KindBool && v.num != 0 }

// Int returns the number of a KindInt, the milliseconds of a KindTime, the days of a KindDate
// and the seconds of a KindDuration. For other kinds it returns 0.
func (v Value) Int() int64 {
	switch v.kind {
	case KindInt, KindTime, KindDate:
		return v.num
	case KindDuration:
		return v.num / 1000
	}
	return 0
}

// Float returns a KindFloat; for other kinds it returns 0.
func (v Value) Float() float64 {
	if v.kind != KindFloat {
		return 0
	}
	return math.Float64frombits(uint64(v.num))
}

// Text returns a KindText, the digits of a KindDecimal, the bytes of a KindBytes, the
// compact JSON of a KindJSON or, for UnpackFile, a KindFile without its size. For other kinds it is empty.
//
// To order decimals of one type, compare their signs, then the lengths of the texts, then
// the texts. For negative numbers, reverse the last two.
func (v Value) Text() string { return v.text }

// List returns the elements of a KindList, which must not be changed. For other kinds it
// returns nil.
func (v Value) List() []Value {
	if v.list == nil {
		return nil
	}
	return *v.list
}

// IsNumber reports whether v is an int, a float or a decimal.
func (v Value) IsNumber() bool { return v.kind >= KindInt && v.kind <= KindDecimal }

// Equal reports whether two values are equal. Numbers of different kinds are compared
// exactly; other values of different kinds are unequal. JSON values are equal if their
// compact texts are. Equal does not allocate.
func (v Value) Equal(w Value) bool {
	switch {
	case v.IsNumber() && w.IsNumber():
		return compareNumbers(v, w) == 0
	case v.kind != w.kind:
		return false
	case v.kind == KindList:
		return equalLists(v.List(), w.List())
	}
	return v.num == w.num && v.text == w.text
}

func equalLists(a, b []Value) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if !a[i].Equal(b[i]) {
			return false
		}
	}
	return true
}

// Compare orders two values of one kind, or two numbers of any kinds: -1, 0 or 1. Texts are
// ordered by code points, and false is before true. It returns false for null, JSON and
// lists, and for values of different kinds. Compare does not allocate.
func (v Value) Compare(w Value) (int, bool) {
	switch {
	case v.IsNumber() && w.IsNumber():
		return compareNumbers(v, w), true
	case v.kind != w.kind:
		return 0, false
	}
	switch v.kind {
	case KindText, KindBytes:
		return strings.Compare(v.text, w.text), true
	case KindBool, KindTime, KindDate, KindDuration:
		return cmp.Compare(v.num, w.num), true
	}
	return 0, false
}

// ---- numbers ----

// digitBuffer has space for the digits of ordinary numbers; longer ones are allocated.
type digitBuffer [64]byte

// compareNumbers compares numbers of any kinds exactly.
func compareNumbers(v, w Value) int {
	switch {
	case v.kind == KindInt && w.kind == KindInt:
		return cmp.Compare(v.num, w.num)
	case v.kind == KindFloat && w.kind == KindFloat:
		return cmp.Compare(v.Float(), w.Float())
	case w.kind == KindFloat:
		return -compareFloat(w.Float(), v)
	case v.kind == KindFloat:
		return compareFloat(v.Float(), w)
	}
	var a, b digitBuffer
	return compareDigits(v.appendDigits(a[:0]), w.appendDigits(b[:0]))
}

// appendDigits appends an int or a decimal in digits.
func (v Value) appendDigits(dst []byte) []byte {
	if v.kind == KindInt {
		return strconv.AppendInt(dst, v.num, 10)
	}
	return append(dst, v.text...)
}

// compareFloat compares a float with an int or a decimal. If the float nearest to w is f
// itself, it compares all digits of f.
func compareFloat(f float64, w Value) int {
	near := float64(w.num)
	if w.kind == KindDecimal {
		near, _ = strconv.ParseFloat(w.text, 64) // out of range: an infinity
	}
	if f != near {
		return cmp.Compare(f, near)
	}
	var a, b digitBuffer
	return compareDigits(strconv.AppendFloat(a[:0], f, 'f', floatPlaces(f), 64), w.appendDigits(b[:0]))
}

// floatPlaces is the number of decimal places of the exact value of f.
func floatPlaces(f float64) int {
	bits := math.Float64bits(f)
	fraction, exponent := bits&(1<<52-1), int(bits>>52&(1<<11-1))
	if exponent == 0 {
		exponent = 1
	} else {
		fraction |= 1 << 52
	}
	places := 1075 - exponent
	for ; places > 0 && fraction != 0 && fraction&1 == 0; places-- {
		fraction >>= 1
	}
	if fraction == 0 {
		return 0
	}
	return max(0, places)
}

// compareDigits compares two numbers of the form -12.50, without leading zeros.
func compareDigits(a, b []byte) int {
	switch negative := isNegative(a); {
	case negative != isNegative(b):
		if negative {
			return -1
		}
		return 1
	case negative:
		a, b = b[1:], a[1:]
	}
	wholeA, fractionA := cutPoint(a)
	wholeB, fractionB := cutPoint(b)
	if len(wholeA) != len(wholeB) {
		return cmp.Compare(len(wholeA), len(wholeB))
	}
	for i := range wholeA {
		if wholeA[i] != wholeB[i] {
			return cmp.Compare(wholeA[i], wholeB[i])
		}
	}
	for i := range max(len(fractionA), len(fractionB)) {
		if x, y := digitAt(fractionA, i), digitAt(fractionB, i); x != y {
			return cmp.Compare(x, y)
		}
	}
	return 0
}

// isNegative reports a minus sign; zero has none.
func isNegative(digits []byte) bool { return len(digits) > 0 && digits[0] == '-' }

func cutPoint(digits []byte) (whole, fraction []byte) {
	for i, c := range digits {
		if c == '.' {
			return digits[:i], digits[i+1:]
		}
	}
	return digits, nil
}

func digitAt(fraction []byte, i int) byte {
	if i < len(fraction) {
		return fraction[i]
	}
	return '0'
}

// AppendJSON appends v in the JSON form of rows, inputs and exports, which Parse reads: a
// decimal as a string with its places, a time in RFC 3339 in UTC with milliseconds, a
// duration in seconds, bytes in base64.
func (t *Type) AppendJSON(dst []byte, v Value) []byte { return v.appendJSON(dst) }

// AppendPlain is AppendJSON that writes a decimal as a number.
func (v Value) AppendPlain(dst []byte) []byte {
	if v.kind == KindDecimal {
		return append(dst, v.text...)
	}
	return v.appendJSON(dst)
}

func (v Value) appendJSON(dst []byte) []byte {
	switch v.kind {
	case KindBool:
		return strconv.AppendBool(dst, v.num != 0)
	case KindInt, KindDuration:
		return strconv.AppendInt(dst, v.Int(), 10)
	case KindFloat:
		return appendFloat(dst, v.Float())
	case KindDecimal:
		dst = append(dst, '"')
		dst = append(dst, v.text...)
		return append(dst, '"')
	case KindText:
		return appendString(dst, v.text)
	case KindTime:
		dst = append(dst, '"')
		dst = time.UnixMilli(v.num).UTC().AppendFormat(dst, "2006-01-02T15:04:05.000Z")
		return append(dst, '"')
	case KindDate:
		dst = append(dst, '"')
		dst = time.Unix(v.num*24*60*60, 0).UTC().AppendFormat(dst, time.DateOnly)
		return append(dst, '"')
	case KindBytes:
		dst = append(dst, '"')
		dst = base64.StdEncoding.AppendEncode(dst, []byte(v.text))
		return append(dst, '"')
	case KindJSON:
		return append(dst, v.text...)
	case KindFile:
		return v.File().appendJSON(dst)
	case KindList:
		dst = append(dst, '[')
		for i, elem := range v.List() {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = elem.appendJSON(dst)
		}
		return append(dst, ']')
	}
	return append(dst, "null"...)
}
