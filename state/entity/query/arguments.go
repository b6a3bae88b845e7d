package query

import (
	"bytes"
	"cmp"
	"errors"
	"io"
	"iter"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"

	"runner.example/internal/diag"
	"runner.example/internal/fault"
)

// maxDepth is the limit of nesting in the JSON of arguments and rows.
const maxDepth = 64

// Operation is an operation on rows.
type Operation uint8

const (
	opQuery Operation = iota
	OpGet
	OpCount
	OpAggregate
	OpInsert
	OpUpdate
	OpDelete
)

// member is a member of an operation's arguments.
type member uint8

const (
	memberFrom member = iota
	memberInto
	memberIn
	memberID
	memberSelect
	memberWhere
	memberOrderBy
	memberLimit
	memberCursor
	memberValues
	memberSet
	memberInclude
	memberGroupBy
	memberCount
	memberSum
	memberAvg
	memberMin
	memberMax
	memberAtMost
	members
)

var memberNames = [members]string{
	"from", "into", "in", "id", "select", "where", "orderBy", "limit", "cursor", "values", "set", "include", "groupBy",
	"count", "sum", "avg", "min", "max", "atMost",
}

func (m member) String() string { return memberNames[m] }

// forms are the members of each operation's arguments: the required ones, and all. The
// first member names the entity.
var forms = [...]struct {
	name     string
	members  []member
	required []member
}{
	opQuery: {
		"query", []member{memberFrom, memberSelect, memberWhere, memberOrderBy, memberLimit, memberCursor,
			memberInclude}, []member{memberFrom},
	},
	OpGet:   {"get", []member{memberFrom, memberID, memberSelect, memberInclude}, []member{memberFrom, memberID}},
	OpCount: {"count", []member{memberFrom, memberWhere, memberAtMost}, []member{memberFrom}},
	OpAggregate: {
		"aggregate", []member{memberFrom, memberWhere, memberGroupBy, memberCount, memberSum, memberAvg, memberMin,
			memberMax}, []member{memberFrom},
	},
	OpInsert: {"insert", []member{memberInto, memberValues}, []member{memberInto, memberValues}},
	// A where that was omitted by mistake must not affect every row: [] does.
	OpUpdate: {
		"update", []member{memberIn, memberSet, memberWhere, memberLimit}, []member{memberIn, memberSet, memberWhere},
	},
	OpDelete: {"delete", []member{memberFrom, memberWhere, memberLimit}, []member{memberFrom, memberWhere}},
}

// OperationOf returns the operation with that name.
func OperationOf(name string) (Operation, bool) {
	for op, form := range forms {
		if form.name == name {
			return Operation(op), true
		}
	}
	return 0, false
}

// String returns the name of the operation, as handlers call it.
func (op Operation) String() string { return forms[op].name }

// Arguments are the members of an operation's JSON object, not parsed further. Null members
// count as missing, but limit and where must not be null. They borrow the text from which they were read.
type Arguments struct {
	op      Operation
	Entity  string
	members [members][]byte // nil: missing
}

// ReadArguments reads the members of an operation's arguments. The result is JSON within
// the host's limits, with no members except those of the operation. The fault is Invalid.
func ReadArguments(op Operation, text []byte) (Arguments, error) {
	a := Arguments{op: op}
	if err := checkJSON(text); err != nil {
		return a, err
	}
	text = bytes.TrimLeft(text, jsonSpace)
	if text[0] != '{' {
		return a, Invalidf("arguments must be a JSON object")
	}
	form := &forms[op]
	if err := a.readMembers(text, form.members); err != nil {
		return a, err
	}
	for _, m := range form.required {
		switch {
		case a.members[m] != nil:
		case m == memberWhere:
			return a, Invalidf("where is missing: add a condition with where(), or call every() to mean all rows (as JSON: \"where\": [])")
		default:
			return a, Invalidf("member %q is missing", m)
		}
	}
	var ok bool
	if a.Entity, ok = textOf(a.members[form.members[0]]); !ok {
		return a, Invalidf("%s: must be the name of an entity", form.members[0])
	}
	return a, nil
}

// IsList reports whether the values of an insert are a list of rows.
func (a *Arguments) IsList() bool { return a.members[memberValues][0] == '[' }

// UnknownEntity is the error for an entity that is not in the schema.
func (a *Arguments) UnknownEntity(known []string) error {
	return unknownName(a.Entity, "is not known",
		"%s: unknown entity %q%s", forms[a.op].members[0], a.Entity, diag.DidYouMean(a.Entity, known))
}

func names(members []member) []string {
	list := make([]string, len(members))
	for i, m := range members {
		list[i] = m.String()
	}
	return list
}

// Invalidf returns a fault Invalid.
func Invalidf(format string, args ...any) error { return fault.New(fault.Invalid, format, args...) }

// invalidValue returns a fault Invalid about the value of a field or an argument. It keeps value.
func invalidValue(field string, value []byte, why, format string, args ...any) error {
	return fault.New(fault.Invalid, format, args...).About(fault.Subject{Field: field, Value: value, Public: why})
}

// unknownName returns a fault Invalid about a name that cannot be used. why is the reason, in words for clients.
func unknownName(name, why, format string, args ...any) error {
	return fault.New(fault.Invalid, format, args...).
		About(fault.Subject{Field: name, Value: AppendText(nil, name), Named: true, Public: why})
}

// Reasons of unknownName.
const (
	notReadable = "is not a field that the caller may read"
	notWritable = "is not a field that the caller may write"
)

// ---- JSON ----

const jsonSpace = " \t\r\n"

// checkJSON refuses text that is not one JSON value, invalid UTF-8, repeated members, and
// too much nesting. The fault is Invalid.
func checkJSON(text []byte) error {
	if !utf8.Valid(text) {
		return Invalidf("arguments are not UTF-8")
	}
	if depthOf(text) > maxDepth {
		return Invalidf("arguments nest deeper than %d", maxDepth)
	}
	if jsontext.Value(text).IsValid() {
		return nil
	}
	dec := jsontext.NewDecoder(bytes.NewBuffer(text)) // parsed again for the error message
	for {
		_, err := dec.ReadToken()
		if err == io.EOF {
			return Invalidf("arguments are not JSON")
		}
		wrong, ok := errors.AsType[*jsontext.SyntacticError](err)
		switch {
		case err == nil:
		case ok && wrong.Err == jsontext.ErrDuplicateName:
			return unknownName(wrong.JSONPointer.LastToken(), "is repeated", "member %q is repeated", wrong.JSONPointer.LastToken())
		case ok && IsHalfPair(wrong):
			return Invalidf("%s %s", PlaceOf(wrong), NoHalfPair)
		default:
			return Invalidf("arguments are not JSON")
		}
	}
}

// NoHalfPair is what is said of a value for which IsHalfPair is true.
const NoHalfPair = `must not have half of a surrogate pair, such as \ud800`

// IsHalfPair reports whether text in JSON has half of a surrogate pair.
func IsHalfPair(err *jsontext.SyntacticError) bool {
	return strings.Contains(err.Err.Error(), "surrogate pair")
}

// PlaceOf writes where the error is as the SDKs do: values.items[3].name.
func PlaceOf(err *jsontext.SyntacticError) string {
	place := ""
	for name := range err.JSONPointer.Tokens() {
		switch _, failed := strconv.ParseUint(name, 10, 32); {
		case failed == nil:
			place += "[" + name + "]"
		case place == "":
			place = name
		default:
			place += "." + name
		}
	}
	return cmp.Or(place, "a name")
}

// depthOf returns how deep brackets are nested in text, which may be invalid JSON.
func depthOf(text []byte) int {
	depth, most := 0, 0
	for i := 0; i < len(text); i++ {
		switch text[i] {
		case '"':
			i = stringEnd(text, i) - 1
		case '{', '[':
			depth++
			most = max(most, depth)
		case '}', ']':
			depth--
		}
	}
	return most
}

// stringEnd returns the end of the string that begins at i, after its closing quote; the
// end of the text if it is not closed.
func stringEnd(text []byte, i int) int {
	for i++; i < len(text); i++ {
		switch text[i] {
		case '\\':
			i++
		case '"':
			return i + 1
		}
	}
	return len(text)
}

// membersOf yields the members of an object that is valid JSON, in order: each name and the
// text of its value, which is a part of object.
func membersOf(object []byte) iter.Seq2[string, []byte] {
	return func(yield func(name string, value []byte) bool) {
		for rest := nextPart(object[1:]); rest[0] != '}'; {
			end := stringEnd(rest, 0)
			name, _ := textOf(rest[:end])
			value := nextPart(rest[end:])
			end = valueEnd(value)
			if !yield(name, value[:end]) {
				return
			}
			rest = nextPart(value[end:])
		}
	}
}

// elementsOf yields the elements of a list that is valid JSON, in order: each index and
// text, which is a part of list.
func elementsOf(list []byte) iter.Seq2[int, []byte] {
	return func(yield func(int, []byte) bool) {
		rest := nextPart(list[1:])
		for i := 0; rest[0] != ']'; i++ {
			end := valueEnd(rest)
			if !yield(i, rest[:end]) {
				return
			}
			rest = nextPart(rest[end:])
		}
	}
}

// nextPart skips spaces, a comma or a colon.
func nextPart(text []byte) []byte {
	for i, c := range text {
		switch c {
		case ' ', '\t', '\r', '\n', ',', ':':
		default:
			return text[i:]
		}
	}
	return nil
}

// valueEnd returns the end of the value at the start of text.
func valueEnd(text []byte) int {
	switch text[0] {
	case '"':
		return stringEnd(text, 0)
	case '{', '[':
		depth := 0
		for i := 0; i < len(text); i++ {
			switch text[i] {
			case '"':
				i = stringEnd(text, i) - 1
			case '{', '[':
				depth++
			case '}', ']':
				if depth--; depth == 0 {
					return i + 1
				}
			}
		}
		return len(text)
	}
	if end := bytes.IndexAny(text, jsonSpace+",]}"); end >= 0 {
		return end
	}
	return len(text)
}

// textOf returns a copy of the string that raw is; false if raw, valid JSON, is another
// value.
func textOf(raw []byte) (string, bool) {
	if len(raw) == 0 || raw[0] != '"' {
		return "", false
	}
	if bytes.IndexByte(raw, '\\') < 0 {
		return string(raw[1 : len(raw)-1]), true
	}
	text, err := jsontext.AppendUnquote(nil, raw)
	return string(text), err == nil
}
