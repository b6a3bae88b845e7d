package hostabi

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"

	"runner.example/internal/cost"
	"runner.example/internal/diag"
	"runner.example/internal/fault"
	"runner.example/state/entity/query"
)

// maxDepth is how deep JSON from a guest may nest. maxMembers is how many members an
// operation's arguments may have; no operation has as many.
const (
	maxDepth   = 64
	maxMembers = 64
)

// tokenUnits is the cost of reading a token of JSON, in units of a cost.Meter, beside that
// of its bytes.
const tokenUnits = 64

// arguments are the members of the JSON object that an operation is called with. Each is
// read by name and type. The first error is kept; a member that is never read is an error
// too. A member that is null counts as absent, except for numbers and times. The texts are guest memory: what outlives
// the host call must be copied.
type arguments struct {
	members map[string]jsontext.Value
	meter   *cost.Meter
	known   []string
	err     error
}

// readArguments reads the object; an empty text is an empty object. It refuses invalid
// UTF-8, repeated members and too deep nesting at any depth, and more than one value. m
// counts the work, that of reading members included; its error ends the reading.
func readArguments(text []byte, m *cost.Meter) (*arguments, error) {
	if len(text) == 0 {
		return &arguments{}, nil
	}
	if err := m.Spend(len(text)); err != nil {
		return nil, err
	}
	if !utf8.Valid(text) {
		return nil, invalid("arguments are not UTF-8")
	}
	dec := reading{jsontext.NewDecoder(bytes.NewBuffer(text)), m} // which it reads in place
	a := &arguments{meter: m}
	object := dec.PeekKind() == '{'
	if object {
		a.members = map[string]jsontext.Value{}
		if _, err := dec.ReadToken(); err != nil {
			return nil, notJSON(err)
		}
		for dec.PeekKind() == '"' {
			name, err := dec.ReadToken()
			if err != nil {
				return nil, notJSON(err)
			}
			member := name.String() // the token holds until the next read
			if len(a.members) == maxMembers {
				return nil, invalid("arguments have more than %d members", maxMembers)
			}
			if a.members[member], err = readMember(dec, text); err != nil {
				return nil, err
			}
		}
	}
	if err := readRest(dec); err != nil {
		return nil, err
	}
	if !object {
		return nil, invalid("arguments must be a JSON object")
	}
	return a, nil
}

// reading reads tokens, and a meter counts them.
type reading struct {
	*jsontext.Decoder
	meter *cost.Meter
}

// readMember returns the text of the next value.
func readMember(dec reading, text []byte) (jsontext.Value, error) {
	start, depth := dec.InputOffset(), dec.StackDepth()
	for {
		if err := readToken(dec); err != nil {
			return nil, err
		}
		if dec.StackDepth() == depth {
			return jsontext.Value(bytes.TrimLeft(text[start:dec.InputOffset()], ": \t\r\n")), nil
		}
	}
}

// readRest reads to the end of the value, which must be the end of the text.
func readRest(dec reading) error {
	for {
		if err := readToken(dec); err != nil {
			return err
		}
		if dec.StackDepth() == 0 {
			break
		}
	}
	if _, err := dec.ReadToken(); err != io.EOF {
		return invalid("arguments are not JSON")
	}
	return nil
}

func readToken(dec reading) error {
	start := dec.InputOffset()
	if _, err := dec.ReadToken(); err != nil {
		return notJSON(err)
	}
	if err := dec.meter.Spend(tokenUnits + int(dec.InputOffset()-start)); err != nil {
		return err
	}
	if dec.StackDepth() > maxDepth {
		return invalid("arguments nest deeper than %d", maxDepth)
	}
	return nil
}

func notJSON(err error) error {
	if wrong, ok := errors.AsType[*jsontext.SyntacticError](err); ok && wrong.Err == jsontext.ErrDuplicateName {
		return invalid("member %q is repeated", shorten(wrong.JSONPointer.LastToken()))
	} else if ok && query.IsHalfPair(wrong) {
		return invalid("%s %s", shorten(query.PlaceOf(wrong)), query.NoHalfPair)
	}
	return invalid("arguments are not JSON")
}

// take returns a member's JSON, or nil if it is absent.
func (a *arguments) take(name string) jsontext.Value {
	a.known = append(a.known, name)
	raw := a.members[name]
	if string(raw) == "null" {
		return nil
	}
	return raw
}

// wrong keeps an error about a member, whose name is the first value of the format.
func (a *arguments) wrong(format, name string, values ...any) {
	if a.err == nil {
		a.err = fault.New(fault.Invalid, format, append([]any{name}, values...)...).
			About(fault.Subject{Field: name, Value: a.take(name)})
	}
}

// text returns a required string.
func (a *arguments) text(name string) string {
	s, ok := a.optionalText(name)
	if !ok {
		a.wrong("member %q is missing", name)
	}
	return s
}

// optionalText returns a string and whether it is present.
func (a *arguments) optionalText(name string) (string, bool) {
	raw := a.take(name)
	if raw == nil {
		return "", false
	}
	if raw.Kind() != '"' {
		a.wrong("member %q must be a string", name)
		return "", true
	}
	_ = a.meter.Spend(len(raw))
	s, _ := jsontext.AppendUnquote(nil, raw)
	return string(s), true
}

// presentText is optionalText for a member that may be absent, but not null: null may be a value
// that is missing by accident, and must not select the default.
func (a *arguments) presentText(name string) (string, bool) {
	if string(a.members[name]) == "null" {
		a.wrong("member %q must be a string, or left out", name)
	}
	return a.optionalText(name)
}

// optionalBool returns a boolean, false if it is absent.
func (a *arguments) optionalBool(name string) bool {
	raw := a.take(name)
	if raw != nil && raw.Kind() != 't' && raw.Kind() != 'f' {
		a.wrong("member %q must be true or false", name)
	}
	return raw.Kind() == 't'
}

// optionalTexts returns a list of strings, or nil if it is absent.
func (a *arguments) optionalTexts(name string) []string {
	raw := a.take(name)
	if raw == nil {
		return nil
	}
	var texts []string
	if raw[0] != '[' || json.Unmarshal(raw, &texts) != nil {
		a.wrong("member %q must be a list of strings", name)
	}
	return texts
}

// notNull refuses a member that is null. Many languages write NaN and invalid times as null. If
// null counted as absent, it would select a default: a key without an end, a job that runs at once.
func (a *arguments) notNull(name string) {
	if string(a.members[name]) == "null" {
		a.wrong("member %q must not be null: leave it out", name)
	}
}

// optionalWhole returns a whole number and whether it is present. It must not be null.
func (a *arguments) optionalWhole(name string) (int64, bool) {
	const most = 1 << 53 // beyond it a float64 is no longer exact
	a.notNull(name)
	raw := a.take(name)
	if raw == nil {
		return 0, false
	}
	n, err := strconv.ParseFloat(string(raw), 64)
	if raw.Kind() != '0' || err != nil || n != math.Trunc(n) || math.Abs(n) >= most {
		a.wrong("member %q must be a whole number", name)
		return 0, true
	}
	return int64(n), true
}

// pageLimit returns the limit of a page of keys or sessions, 0 if it is absent.
func (a *arguments) pageLimit() int {
	limit, ok := a.optionalWhole("limit")
	if ok && (limit < 1 || limit > 1000) {
		a.wrong("member %q must be from 1 to 1000", "limit")
	}
	return int(limit)
}

// optionalObject returns a copy of the JSON of an object, or nil if it is absent.
func (a *arguments) optionalObject(name string) json.RawMessage {
	raw := a.take(name)
	if raw != nil && raw[0] != '{' {
		a.wrong("member %q must be an object", name)
		return nil
	}
	return json.RawMessage(bytes.Clone(raw))
}

// end returns the first error. Call it after all members are read.
func (a *arguments) end() error {
	names := make([]string, 0, len(a.members))
	for name := range a.members {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		if a.err != nil {
			break
		}
		if !slices.Contains(a.known, name) {
			shown := shorten(name)
			a.err = invalid("unknown member %q%s; known: %s",
				shown, diag.DidYouMean(shown, a.known), strings.Join(a.known, ", "))
		}
	}
	return a.err
}

// shorten cuts a text of the guest for a message.
func shorten(text string) string {
	const most = 100
	if len(text) > most {
		return strings.ToValidUTF8(text[:most], "") + "…"
	}
	return text
}

func invalid(format string, args ...any) error { return fault.New(fault.Invalid, format, args...) }
