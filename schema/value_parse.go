package schema

import (
	"encoding/base64"
	"errors"
	"fmt"
	"math"
	"net/mail"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"runner.example/internal/cost"
)

// The errors of Parse are for the author of the value. Their text continues the field's
// name: "must be at most 32 characters".
var (
	errRequired   = errors.New("is required")
	errNull       = errors.New("must not be null")
	errString     = errors.New("must be a string")
	errNumber     = errors.New("must be a number")
	errWhole      = errors.New("must be a whole number")
	errBeyond     = errors.New("must be within ±9007199254740991")
	errFinite     = errors.New("must be a finite number")
	errBool       = errors.New("must be true or false")
	errUTF8       = errors.New("must be valid UTF-8")
	errID         = errors.New("must be an id: 26 lower-case letters and digits")
	errExternalID = errors.New("must be an id: letters, digits and . _ - | @ : (1 to 64 of them)")
	errUUID       = errors.New("must be a UUID")
	errEmail      = errors.New("must be an email address")
	errURL        = errors.New("must be a URL with a scheme and a host")
	errLeapSecond = errors.New("must have seconds from 00 to 59: a leap second cannot be stored")
	errTime       = errors.New("must be an RFC 3339 time, such as 2026-01-31T09:30:00Z")
	errDate       = errors.New("must be a date, such as 2026-01-31")
	errBytes      = errors.New("must be base64 with padding")
	errList       = errors.New("must be a list")
	errDigits     = errors.New("must be a decimal, such as 12.50")
	errRounded    = errors.New(
		`must be a string, such as "12.50": a JSON number with more than 15 digits, its places included, may have been rounded`)
)

// Parse reads a JSON value of the type and checks its bounds. The result shares no memory
// with raw. Only optional types accept null.
func (t *Type) Parse(raw []byte) (Value, error) { return t.ParseMetered(raw, nil) }

// ParseMetered is Parse that counts its work with m. When m fails, ParseMetered fails too or
// its result is not valid: check m.
func (t *Type) ParseMetered(raw []byte, m *cost.Meter) (Value, error) {
	if err := m.Spend(len(raw)); err != nil {
		return Value{}, err
	}
	raw = trimBlanks(raw)
	if isNull(raw) {
		if t.Optional {
			return Value{}, nil
		}
		return Value{}, errNull
	}
	if t.List {
		return t.parseList(raw, m)
	}
	return t.parseOne(raw, true, m)
}

// ParseOperand reads a JSON value to compare with values of the type, or with elements of a
// list of them. It checks no bounds: a text may be any text, a decimal may have any number
// of places. It accepts null.
func (t *Type) ParseOperand(raw []byte) (Value, error) {
	raw = trimBlanks(raw)
	if isNull(raw) {
		return Value{}, nil
	}
	return t.parseOne(raw, false, nil)
}

// ParseText reads a value of a CSV file or a command line: a string without quotes, anything
// else as in JSON. For an optional type an empty text is null.
func (t *Type) ParseText(s string) (Value, error) {
	switch {
	case s == "" && t.Optional:
		return Value{}, nil
	case !utf8.ValidString(s):
		return Value{}, errUTF8
	case t.List, !t.isString():
		return t.Parse([]byte(s))
	}
	v, err := t.fromText(s)
	return t.checked(v, err, nil)
}

// ParseUntyped reads a JSON value of any type, for rows of untyped mode. A number is an int
// or, if it is not whole or too large, a decimal. An object is JSON.
func ParseUntyped(raw []byte) (Value, error) {
	raw = trimBlanks(raw)
	if len(raw) == 0 {
		return Value{}, errors.New("is not JSON: the text is empty")
	}
	switch raw[0] {
	case 'n':
		if isNull(raw) {
			return Value{}, nil
		}
	case 't', 'f':
		return readBool(raw)
	case '"':
		if s, ok := readString(raw); ok {
			return TextValue(s), nil
		}
	case '[':
		return freeList(raw)
	case '{':
		return (&Type{Kind: JSON}).Parse(raw)
	default:
		return freeNumber(raw)
	}
	return Value{}, errors.New("is not JSON")
}

func freeList(raw []byte) (Value, error) {
	compact, err := compactJSON(nil, raw)
	if err != nil {
		return Value{}, err
	}
	values := []Value{}
	for _, raw := range elements(compact) {
		v, err := ParseUntyped(raw)
		if err != nil {
			return Value{}, err
		}
		values = append(values, v)
	}
	return ListValue(values), nil
}

func freeNumber(raw []byte) (Value, error) {
	if n, err := readWhole(raw); err == nil {
		return IntValue(n), nil
	}
	return (&Type{Kind: Decimal}).anyDecimal(raw, false)
}

// isString reports whether values of the type are strings in JSON.
func (t *Type) isString() bool {
	switch t.Kind {
	case Int, Float, Bool, Duration, JSON, FileKind, ToMany, Object:
		return false
	}
	return true
}

// parseOne reads a single value that is not null, ignoring Type.List.
func (t *Type) parseOne(raw []byte, bounded bool, m *cost.Meter) (Value, error) {
	v, err := t.read(raw, bounded, m)
	if bounded || err != nil {
		return t.checked(v, err, m)
	}
	return v, nil
}

func (t *Type) read(raw []byte, bounded bool, m *cost.Meter) (Value, error) {
	switch t.Kind {
	case Int:
		n, err := readWhole(raw)
		return IntValue(n), err
	case Duration:
		n, err := readWhole(raw)
		return DurationValue(n), err
	case Float:
		return readFloat(raw)
	case Bool:
		return readBool(raw)
	case Decimal:
		return t.readDecimal(raw, bounded)
	case JSON:
		compact, err := compactJSON(nil, raw)
		return JSONValue(string(compact)), err
	case Object:
		return t.Object.read(raw, m)
	case FileKind:
		f, err := parseFile(raw)
		if err != nil {
			return Value{}, err
		}
		return FileValue(f), nil
	case ToMany:
		return Value{}, fmt.Errorf("cannot be set: it is the other side of a relation in %s", t.Entity.Name)
	case EnumKind:
		if v, ok := t.readEnum(raw); ok {
			return v, nil
		}
	}
	s, ok := readString(raw)
	if !ok {
		return Value{}, errString
	}
	if !bounded && t.isFree() {
		return TextValue(s), nil
	}
	return t.fromText(s)
}

// isFree reports whether any text may be compared with values of the type.
func (t *Type) isFree() bool {
	switch t.Kind {
	case ID, String, Text, Email, URL, Relation:
		return true
	}
	return false
}

// readEnum reads an enum's value without copying it.
func (t *Type) readEnum(raw []byte) (Value, bool) {
	if len(raw) < 2 || raw[0] != '"' || raw[len(raw)-1] != '"' {
		return Value{}, false
	}
	for _, name := range t.Enum.Values {
		if string(raw[1:len(raw)-1]) == name {
			return TextValue(name), true
		}
	}
	return Value{}, false
}

func (t *Type) parseList(raw []byte, m *cost.Meter) (Value, error) {
	if len(raw) == 0 || raw[0] != '[' {
		return Value{}, errList
	}
	compact, err := compactJSON(nil, raw)
	if err != nil {
		return Value{}, err
	}
	elem := *t
	elem.List, elem.Optional = false, false
	values := []Value{}
	for i, raw := range elements(compact) {
		v, err := elem.ParseMetered(raw, m)
		if err != nil {
			return Value{}, fmt.Errorf("%w, at position %d of the list", err, i+1)
		}
		values = append(values, v)
	}
	return ListValue(values), nil
}

// fromText reads a value from the text of its JSON string.
func (t *Type) fromText(s string) (Value, error) {
	switch t.Kind {
	case String, Text:
		return TextValue(s), nil
	case ID, Relation:
		return t.idFrom(s)
	case UUID:
		if !isUUID(s) {
			return Value{}, errUUID
		}
		return TextValue(strings.ToLower(s)), nil
	case Email:
		if !isEmail(s) {
			return Value{}, errEmail
		}
		return TextValue(s), nil
	case URL:
		if !isURL(s) {
			return Value{}, errURL
		}
		return TextValue(s), nil
	case EnumKind:
		if i := slices.Index(t.Enum.Values, s); i >= 0 {
			return TextValue(t.Enum.Values[i]), nil
		}
		return Value{}, fmt.Errorf("must be one of %s", strings.Join(t.Enum.Values, ", "))
	case Time:
		return timeFrom(s)
	case Date:
		return dateFrom(s)
	case Bytes:
		data, err := base64.StdEncoding.Strict().DecodeString(s)
		if err != nil || strings.ContainsAny(s, "\r\n") {
			return Value{}, errBytes
		}
		return BytesValue(string(data)), nil
	case Decimal:
		return t.decimalFrom(s, true)
	}
	return Value{}, errString
}

// idFrom reads an id. The host creates ids as ULIDs; an identity provider may create the ids
// of users and tenants.
func (t *Type) idFrom(s string) (Value, error) {
	switch {
	case t.ExternalIDs && !isExternalID(s):
		return Value{}, errExternalID
	case !t.ExternalIDs && !IsULID(s):
		return Value{}, errID
	}
	return TextValue(s), nil
}

const ulidLength = 26

// IsULID reports whether s is an id as the host creates it: a lower-case ULID.
func IsULID(s string) bool {
	if len(s) != ulidLength || s[0] > '7' {
		return false
	}
	for i := range len(s) {
		if c := s[i]; !isDigitByte(c) && (c < 'a' || c > 'z' || c == 'i' || c == 'l' || c == 'o' || c == 'u') {
			return false
		}
	}
	return true
}

// maxExternalID is the maximum length of ids of users and tenants, in bytes.
const maxExternalID = 64

// isExternalID reports whether s is valid as an id of an identity provider.
func isExternalID(s string) bool {
	if s == "" || len(s) > maxExternalID {
		return false
	}
	for i := range len(s) {
		c := s[i] | 0x20
		if (c < 'a' || c > 'z') && !isDigitByte(s[i]) && strings.IndexByte("._-|@:", s[i]) < 0 {
			return false
		}
	}
	return true
}

func isDigitByte(c byte) bool { return '0' <= c && c <= '9' }

func isUUID(s string) bool {
	if len(s) != 36 {
		return false
	}
	for i := range len(s) {
		switch c := s[i] | 0x20; {
		case i == 8 || i == 13 || i == 18 || i == 23:
			if s[i] != '-' {
				return false
			}
		case !isDigitByte(s[i]) && (c < 'a' || c > 'f'):
			return false
		}
	}
	return true
}

// The maximum lengths of an email address and a URL, in bytes. An email address has a local
// part of 64 bytes and a domain of 255 (RFC 5321); a URL may be as long as a request target.
const (
	maxEmail = 320
	maxURL   = 8 << 10
)

func isEmail(s string) bool {
	if len(s) > maxEmail {
		return false
	}
	addr, err := mail.ParseAddress(s)
	return err == nil && addr.Address == s
}

func isURL(s string) bool {
	if len(s) > maxURL {
		return false
	}
	u, err := url.Parse(s)
	return err == nil && u.Scheme != "" && u.Host != ""
}

// The first and the last time that RFC 3339 can represent, in milliseconds since 1970.
const (
	minTime = -62167219200000
	maxTime = 253402300799999
)

func timeFrom(s string) (Value, error) {
	at, err := ReadTime(s)
	if err != nil {
		return Value{}, err
	}
	ms := at.UnixMilli()
	if ms < minTime || ms > maxTime {
		return Value{}, errTime
	}
	return TimeValue(ms), nil
}

// ReadTime reads a time in RFC 3339, whose T and Z may be in lower case. The error says what a
// time must be, without its name.
func ReadTime(s string) (time.Time, error) {
	const date, seconds = len("2026-01-31"), len("2026-01-31T09:30:")
	if len(s) > date && (s[date] == 't' || s[len(s)-1] == 'z') {
		s = strings.ToUpper(s) // it has no other letters
	}
	var at time.Time
	if err := at.UnmarshalText([]byte(s)); err == nil && isStrictTime(s) {
		return at, nil
	}
	if len(s) > seconds+2 && s[seconds:seconds+2] == "60" {
		if _, err := ReadTime(s[:seconds] + "59" + s[seconds+2:]); err == nil {
			return time.Time{}, errLeapSecond
		}
	}
	return time.Time{}, errTime
}

// isStrictTime refuses forms that package time accepts but RFC 3339 does not: one-digit
// hours, a comma instead of a point, offsets of a day or more.
func isStrictTime(s string) bool {
	if s[13] != ':' || strings.IndexByte(s, ',') >= 0 {
		return false
	}
	zone := s[len(s)-len("01:00"):]
	return s[len(s)-1] == 'Z' || zone[:2] <= "23" && zone[3:] <= "59"
}

func dateFrom(s string) (Value, error) {
	day, err := time.Parse(time.DateOnly, s)
	if err != nil || len(s) != len(time.DateOnly) {
		return Value{}, errDate
	}
	return Today(day), nil
}

// ---- numbers ----

// number is digits × 10^−scale, without zeros at either end of digits.
type number struct {
	negative bool
	digits   []byte
	scale    int
}

// maxExponent is the maximum exponent that is read; no type has larger numbers.
const maxExponent = 1_000_000

// readNumber reads a JSON number. It stores the digits in buf, unless buf is too small.
func readNumber(buf, raw []byte) (number, bool) {
	n := number{digits: buf}
	rest := raw
	if len(rest) > 0 && rest[0] == '-' {
		n.negative, rest = true, rest[1:]
	}
	whole := countDigits(rest)
	if whole == 0 || whole > 1 && rest[0] == '0' {
		return n, false
	}
	n.digits, rest = append(n.digits, rest[:whole]...), rest[whole:]
	if len(rest) > 0 && rest[0] == '.' {
		n.scale = countDigits(rest[1:])
		if n.scale == 0 {
			return n, false
		}
		n.digits, rest = append(n.digits, rest[1:1+n.scale]...), rest[1+n.scale:]
	}
	if len(rest) > 0 {
		exponent, ok := readExponent(rest)
		if !ok {
			return n, false
		}
		n.scale -= exponent
	}
	return n.trimmed(), true
}

func countDigits(b []byte) int {
	n := 0
	for n < len(b) && isDigitByte(b[n]) {
		n++
	}
	return n
}

func readExponent(b []byte) (int, bool) {
	if b[0] != 'e' && b[0] != 'E' {
		return 0, false
	}
	b = b[1:]
	sign := 1
	if len(b) > 0 && (b[0] == '+' || b[0] == '-') {
		if b[0] == '-' {
			sign = -1
		}
		b = b[1:]
	}
	if len(b) == 0 || countDigits(b) != len(b) {
		return 0, false
	}
	exponent := 0
	for _, c := range b {
		exponent = min(maxExponent, exponent*10+int(c-'0'))
	}
	return sign * exponent, true
}

func (n number) trimmed() number {
	for len(n.digits) > 0 && n.digits[0] == '0' {
		n.digits = n.digits[1:]
	}
	for len(n.digits) > 0 && n.digits[len(n.digits)-1] == '0' {
		n.digits = n.digits[:len(n.digits)-1]
		n.scale--
	}
	if len(n.digits) == 0 {
		return number{}
	}
	return n
}

// readWhole reads a whole number within ±MaxSafeInteger.
func readWhole(raw []byte) (int64, error) {
	var buf digitBuffer
	n, ok := readNumber(buf[:0], raw)
	switch {
	case !ok:
		return 0, errNumber
	case n.scale > 0:
		return 0, errWhole
	case len(n.digits)-n.scale > 16:
		return 0, errBeyond
	}
	var whole int64
	for _, c := range n.digits {
		whole = whole*10 + int64(c-'0')
	}
	for range -n.scale {
		whole *= 10
	}
	if whole > MaxSafeInteger {
		return 0, errBeyond
	}
	if n.negative {
		whole = -whole
	}
	return whole, nil
}

func readFloat(raw []byte) (Value, error) {
	var buf digitBuffer
	if _, ok := readNumber(buf[:0], raw); !ok {
		return Value{}, errNumber
	}
	f, err := strconv.ParseFloat(string(raw), 64)
	if err != nil || math.IsInf(f, 0) {
		return Value{}, errFinite
	}
	return FloatValue(f), nil
}

func readBool(raw []byte) (Value, error) {
	switch string(raw) {
	case "true":
		return BoolValue(true), nil
	case "false":
		return BoolValue(false), nil
	}
	return Value{}, errBool
}

// readDecimal reads a decimal, written as a string or as a number.
func (t *Type) readDecimal(raw []byte, bounded bool) (Value, error) {
	if s, ok := readString(raw); ok {
		return t.decimalFrom(s, bounded)
	}
	var buf digitBuffer
	n, ok := readNumber(buf[:0], raw)
	if !ok {
		return Value{}, errDigits
	}
	v, err := t.fit(n, bounded)
	if err == nil && !t.survives(n, bounded) {
		err = errRounded
	}
	return v, err
}

// parseResult is ParseMetered for a value that a function returns. It is not stored, so a decimal
// may be a number of any length.
func (t *Type) parseResult(raw []byte, m *cost.Meter) (Value, error) {
	v, err := t.ParseMetered(raw, m)
	if err == errRounded {
		v, err = t.anyDecimal(trimBlanks(raw), true)
		return t.checked(v, err, m)
	}
	return v, err
}

// exactDigits is how many significant digits every number keeps in a float64, in which most
// programs read a JSON number: IEEE 754's DBL_DIG.
const exactDigits = 15

// survives reports whether a float64 holds the number with all places of the type. If it does
// not, digits of another number may have been rounded to it. A number that is only compared
// may have zeros there.
func (t *Type) survives(n number, bounded bool) bool {
	needed := len(n.digits) - n.scale + t.Places
	return needed <= exactDigits || len(n.digits) == 0 || !bounded && len(n.digits) <= exactDigits
}

// FromNumber returns a number as a value of the type, within its bounds.
func (t *Type) FromNumber(v Value) (Value, error) {
	raw := v.AppendPlain(nil)
	if t.Kind != Decimal {
		return t.Parse(raw)
	}
	w, err := t.anyDecimal(raw, true)
	return t.checked(w, err, nil)
}

// anyDecimal reads a decimal from a number of any length.
func (t *Type) anyDecimal(raw []byte, bounded bool) (Value, error) {
	var buf digitBuffer
	n, ok := readNumber(buf[:0], raw)
	if !ok {
		return Value{}, errDigits
	}
	return t.fit(n, bounded)
}

func (t *Type) decimalFrom(s string, bounded bool) (Value, error) {
	var buf digitBuffer
	digits := []byte(strings.TrimPrefix(s, "-"))
	for len(digits) > 1 && digits[0] == '0' && isDigitByte(digits[1]) {
		digits = digits[1:]
	}
	n, ok := readNumber(buf[:0], digits)
	if !ok || digits[0] == '-' || strings.ContainsAny(s, "eE") {
		return Value{}, errDigits
	}
	n.negative = len(n.digits) > 0 && s[0] == '-'
	return t.fit(n, bounded)
}

// maxOperandDigits limits a decimal that is only compared.
const maxOperandDigits = 1000

// fit converts a number to a decimal with the places of the type, or more if it has more.
func (t *Type) fit(n number, bounded bool) (Value, error) {
	places := t.Places
	switch whole := len(n.digits) - n.scale; {
	case bounded && n.scale > places:
		return Value{}, fmt.Errorf("must have at most %d decimal places", places)
	case bounded && whole > t.Digits-places:
		return Value{}, fmt.Errorf("must have at most %d digits before the decimal point", t.Digits-places)
	case max(whole, n.scale, len(n.digits)) > maxOperandDigits:
		return Value{}, fmt.Errorf("must have at most %d digits", maxOperandDigits)
	}
	return DecimalValue(n.text(max(places, n.scale))), nil
}

// text returns the number with the given places, which are at least its scale.
func (n number) text(places int) string {
	var buf digitBuffer
	text := buf[:0]
	if n.negative {
		text = append(text, '-')
	}
	whole := len(n.digits) - n.scale
	for i := range whole {
		text = append(text, n.digit(i))
	}
	if whole <= 0 {
		text = append(text, '0')
	}
	if places > 0 {
		text = append(text, '.')
	}
	for i := range places {
		text = append(text, n.digit(whole+i))
	}
	return string(text)
}

func (n number) digit(i int) byte {
	if i < 0 || i >= len(n.digits) {
		return '0'
	}
	return n.digits[i]
}

// checked returns v if it is within the type's bounds.
func (t *Type) checked(v Value, err error, m *cost.Meter) (Value, error) {
	if err == nil {
		err = t.check(v, m)
	}
	if err != nil {
		return Value{}, err
	}
	return v, nil
}

// check returns an error if v is not within the type's bounds.
func (t *Type) check(v Value, m *cost.Meter) error {
	if v.kind == KindFile {
		return t.checkFile(v.File())
	}
	if order, ok := v.Compare(t.Min); ok && order < 0 {
		return fmt.Errorf("must be at least %s", t.Min.plain())
	}
	if order, ok := v.Compare(t.Max); ok && order > 0 {
		return fmt.Errorf("must be at most %s", t.Max.plain())
	}
	if err := t.checkLength(v.text); err != nil {
		return err
	}
	if t.Pattern != nil && !t.matches(v.text, m) {
		return fmt.Errorf("must match %s", t.Pattern)
	}
	return nil
}

// CheckBounds returns an error if v, a value of the type's kind, is not within its bounds:
// those of its length and digits, @min, @max and @pattern.
func (t *Type) CheckBounds(v Value) error {
	switch {
	case v.IsNull():
		return nil
	case t.List:
		elem := *t
		elem.List = false
		for i, v := range v.List() {
			if err := elem.CheckBounds(v); err != nil {
				return fmt.Errorf("%w, at position %d of the list", err, i+1)
			}
		}
		return nil
	case t.Kind == Decimal:
		if _, err := t.decimalFrom(v.text, true); err != nil {
			return err
		}
	case t.LongestText() > 0 && !t.HasMaxLen:
		if utf8.RuneCountInString(v.text) > t.LongestText() {
			return fmt.Errorf("must be at most %s", characters(t.LongestText()))
		}
	}
	return t.check(v, nil)
}

func (t *Type) checkLength(s string) error {
	if !t.HasMaxLen || len(s) <= t.MaxLen && len(s) >= t.MinLen*utf8.UTFMax {
		return nil
	}
	switch n := utf8.RuneCountInString(s); {
	case n < t.MinLen:
		return fmt.Errorf("must be at least %s", characters(t.MinLen))
	case n > t.MaxLen:
		return fmt.Errorf("must be at most %s", characters(t.MaxLen))
	}
	return nil
}

func characters(n int) string {
	if n == 1 {
		return "1 character"
	}
	return fmt.Sprintf("%d characters", n)
}

// plain is the form of a value in messages: as in JSON, without quotes.
func (v Value) plain() string { return strings.Trim(string(v.appendJSON(nil)), `"`) }

// elements splits a compact JSON array into its elements.
func elements(array []byte) [][]byte {
	var elems [][]byte
	depth, inString, start := 0, false, 1
	for i := 0; i < len(array); i++ {
		switch c := array[i]; {
		case inString && c == '\\':
			i++
		case c == '"':
			inString = !inString
		case inString:
		case c == '{' || c == '[':
			depth++
		case c == '}' || c == ']':
			depth--
			if depth == 0 && i > start {
				elems = append(elems, array[start:i])
			}
		case c == ',' && depth == 1:
			elems = append(elems, array[start:i])
			start = i + 1
		}
	}
	return elems
}
