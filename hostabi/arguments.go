package hostabi

import (
	"bytes"
	"encoding/json"
	"io"
	"math"
	"slices"
	"strings"
	"unicode/utf8"

	"runner.example/internal/diag"
	"runner.example/internal/fault"
)

// maxDepth is how deep JSON from a guest may nest.
const maxDepth = 64

// arguments are the members of the one JSON object an operation is called with.
// Each is asked for by name and type; the first mistake is kept, and what
// nobody asked for is one. Members that are null count as left out.
type arguments struct {
	members map[string]json.RawMessage
	known   []string
	mistake error
}

// readArguments reads the object; no text at all is the empty one.
func readArguments(text []byte) (*arguments, error) {
	if len(text) == 0 {
		return &arguments{}, nil
	}
	if err := checkJSON(text); err != nil {
		return nil, err
	}
	var members map[string]json.RawMessage
	if text[0] == 'n' || json.Unmarshal(text, &members) != nil {
		return nil, invalid("arguments must be a JSON object")
	}
	return &arguments{members: members}, nil
}

// checkJSON refuses what the JSON of a guest must not hold, at any depth:
// invalid UTF-8, repeated members, too much nesting, more than one value.
func checkJSON(text []byte) error {
	if !utf8.Valid(text) {
		return invalid("arguments are not UTF-8")
	}
	if !json.Valid(text) {
		return invalid("arguments are not JSON")
	}
	dec := json.NewDecoder(bytes.NewReader(text))
	dec.UseNumber()
	type level struct {
		seen map[string]bool // nil in a list
		name bool            // the next string is a member's name
	}
	var open []level
	for {
		token, err := dec.Token()
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return invalid("arguments are not JSON")
		}
		top := len(open) - 1
		switch token {
		case json.Delim('{'), json.Delim('['):
			if len(open) == maxDepth {
				return invalid("arguments nest deeper than %d", maxDepth)
			}
			if top >= 0 {
				open[top].name = open[top].seen != nil
			}
			if token == json.Delim('{') {
				open = append(open, level{map[string]bool{}, true})
			} else {
				open = append(open, level{})
			}
			continue
		case json.Delim('}'), json.Delim(']'):
			open = open[:top]
			continue
		}
		if top < 0 || open[top].seen == nil {
			continue
		}
		if open[top].name {
			name := token.(string)
			if open[top].seen[name] {
				return invalid("member %q is repeated", name)
			}
			open[top].seen[name] = true
		}
		open[top].name = !open[top].name
	}
}

// take gives a member's JSON, nil when it is left out.
func (a *arguments) take(name string) json.RawMessage {
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
	var s string
	if json.Unmarshal(raw, &s) != nil {
		a.wrong("member %q must be a string", name)
	}
	return s, true
}

// optionalWhole gives a whole number and whether it is there.
func (a *arguments) optionalWhole(name string) (int64, bool) {
	const most = 1 << 53 // beyond it a float64 is no longer exact
	raw := a.take(name)
	if raw == nil {
		return 0, false
	}
	var n float64
	if json.Unmarshal(raw, &n) != nil || n != math.Trunc(n) || math.Abs(n) >= most {
		a.wrong("member %q must be a whole number", name)
		return 0, true
	}
	return int64(n), true
}

// optionalObject gives the JSON of an object, nil when it is left out.
func (a *arguments) optionalObject(name string) json.RawMessage {
	raw := a.take(name)
	if raw != nil && raw[0] != '{' {
		a.wrong("member %q must be an object", name)
		return nil
	}
	return raw
}

// end returns the first mistake; call it when every member was asked for.
func (a *arguments) end() error {
	names := make([]string, 0, len(a.members))
	for name := range a.members {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		if !slices.Contains(a.known, name) {
			a.wrong("unknown member %q%s; known: %s", name, diag.DidYouMean(name, a.known), strings.Join(a.known, ", "))
		}
	}
	return a.mistake
}

func invalid(format string, args ...any) error { return fault.New(fault.Invalid, format, args...) }
