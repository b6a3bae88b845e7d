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
)

// maxDepth is how deep JSON from a guest may nest, and maxMembers how many members an
// operation's arguments may have: none knows so many.
const (
	maxDepth   = 64
	maxMembers = 64
)

// tokenUnits is what reading a token of JSON costs, in units of a cost.Meter; its bytes
// come on top.
const tokenUnits = 64

// arguments are the members of the one JSON object an operation is called with.
// Each is asked for by name and type; the first mistake is kept, and what
// nobody asked for is one. Members that are null count as left out. The texts
// lie in the guest's memory: what outlives the host call is copied.
type arguments struct {
	members map[string]jsontext.Value
	meter   *cost.Meter
	known   []string
	mistake error
}

// readArguments reads the object; no text at all is the empty one. It refuses
// what JSON from a guest must not hold, at any depth: invalid UTF-8, repeated
// members, too much nesting, more than one value. m counts what is read here and of
// the members; when it fails so does the reading.
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

// reading reads tokens that a meter counts.
type reading struct {
	*jsontext.Decoder
	meter *cost.Meter
}

// readMember gives the text of the value that comes next.
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

// readRest reads on to the end of the one value that text is.
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
	}
	return invalid("arguments are not JSON")
}

// take gives a member's JSON, nil when it is left out.
func (a *arguments) take(name string) jsontext.Value {
	a.known = append(a.known, name)
	raw := a.members[name]
	if string(raw) == "null" {
		return nil
	}
	return raw
}

func (a *arguments) wrong(format string, args ...any) {
	if a.mistake == nil {
		a.mistake = invalid(format, args...)
	}
}

// text gives a string that must be there.
func (a *arguments) text(name string) string {
	s, ok := a.optionalText(name)
	if !ok {
		a.wrong("member %q is missing", name)
	}
	return s
}

// optionalText gives a string and whether it is there.
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

// optionalTexts gives a list of strings, nil when it is left out.
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

// optionalWhole gives a whole number and whether it is there.
func (a *arguments) optionalWhole(name string) (int64, bool) {
	const most = 1 << 53 // beyond it a float64 is no longer exact
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

// optionalObject gives a copy of the JSON of an object, nil when it is left out.
func (a *arguments) optionalObject(name string) json.RawMessage {
	raw := a.take(name)
	if raw != nil && raw[0] != '{' {
		a.wrong("member %q must be an object", name)
		return nil
	}
	return json.RawMessage(bytes.Clone(raw))
}

// end returns the first mistake; call it when every member was asked for.
func (a *arguments) end() error {
	names := make([]string, 0, len(a.members))
	for name := range a.members {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		if a.mistake != nil {
			break
		}
		if !slices.Contains(a.known, name) {
			shown := shorten(name)
			a.wrong("unknown member %q%s; known: %s", shown, diag.DidYouMean(shown, a.known), strings.Join(a.known, ", "))
		}
	}
	return a.mistake
}

// shorten keeps a text of the guest's out of a message that has enough of it.
func shorten(text string) string {
	const most = 100
	if len(text) > most {
		return strings.ToValidUTF8(text[:most], "") + "…"
	}
	return text
}

func invalid(format string, args ...any) error { return fault.New(fault.Invalid, format, args...) }
