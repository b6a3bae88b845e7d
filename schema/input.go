package schema

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"

	"runner.example/internal/cost"
	"runner.example/internal/diag"
)

// FieldError is one mistake in a JSON object from outside.
type FieldError struct {
	// Field is the path of the member: "total", "lines[2].sku". It is empty for
	// a mistake of the whole.
	Field string `json:"field"`
	// Message goes on from the name: "must be at most 32 characters".
	Message string `json:"message"`
}

const (
	// maxFieldErrors and maxErrorBytes bound what is told of one body: behind them
	// nothing more is read. The bytes may be passed by one mistake.
	maxFieldErrors = 100
	maxErrorBytes  = 16 << 10
	// maxFieldChars is where FieldError.Field is cut.
	maxFieldChars = 100
	// maxSuggestions bounds how many unknown members are told what they may stand for.
	maxSuggestions = 5
)

// Check reads body as an object of the type and reports its mistakes, in the
// order of the members and then of the fields that are missing, up to a hundred;
// nil when there is none. Members that the type does not have are mistakes. A field
// may be left out when it is optional or has a default. m counts the work: when it
// fails, what is reported means nothing.
func (t *ObjectType) Check(body []byte, m *cost.Meter) []FieldError {
	if err := CheckDepth(body, m); err != nil {
		return []FieldError{{"", err.Error()}}
	}
	c := inputChecker{dec: jsontext.NewDecoder(bytes.NewReader(body)), meter: m}
	if c.object(t) {
		c.end("object")
	}
	return c.found
}

// BrokenJSON tells why text is not one JSON value, and where; nil when it is one. m is
// as in ObjectType.Check.
func BrokenJSON(text []byte, m *cost.Meter) *FieldError {
	c := inputChecker{dec: jsontext.NewDecoder(bytes.NewReader(text)), meter: m}
	read := c.skip
	if len(text) <= maxAtOnce {
		read = c.skipAtOnce
	}
	if read() {
		c.end("value")
	}
	if len(c.found) == 0 {
		return nil
	}
	return &c.found[0]
}

// read reads a value of the type, which is kept as JSON.
func (t *ObjectType) read(raw []byte, m *cost.Meter) (Value, error) {
	if found := t.Check(raw, m); len(found) > 0 {
		first := found[0]
		if first.Field == "" {
			return Value{}, errors.New(first.Message)
		}
		return Value{}, fmt.Errorf("has an invalid %s: %s", first.Field, first.Message)
	}
	compact, err := compactJSON(nil, raw)
	return JSONValue(string(compact)), err
}

// inputChecker walks through one JSON value. What reads returns false when nothing
// more is to be read.
type inputChecker struct {
	dec       *jsontext.Decoder
	meter     *cost.Meter
	result    bool   // it is one of a function
	hidden    bool   // fields may stand in it
	path      []byte // of the value at hand
	found     []FieldError
	foundSize int   // in bytes
	counted   int64 // of the input, in bytes
	suggested int
}

// report reports a mistake of the value at hand.
func (c *inputChecker) report(format string, args ...any) bool {
	e := FieldError{shortField(c.path), fmt.Sprintf(format, args...)}
	c.found = append(c.found, e)
	c.foundSize += len(e.Field) + len(e.Message)
	return len(c.found) < maxFieldErrors && c.foundSize < maxErrorBytes
}

// reportMember reports a mistake of a member of the object at hand.
func (c *inputChecker) reportMember(name, format string, args ...any) bool {
	here := c.enter(name)
	more := c.report(format, args...)
	c.leave(here)
	return more
}

// enter makes a member of the object at hand the value at hand, until leave.
func (c *inputChecker) enter(name string) (here int) {
	here = len(c.path)
	c.path = appendMember(c.path, name)
	return here
}

func (c *inputChecker) leave(here int) { c.path = c.path[:here] }

// didYouMean suggests what the name of an unknown member may stand for. Only the
// first few are looked for: comparing names takes its time.
func (c *inputChecker) didYouMean(name string, known func() []string) string {
	if c.suggested == maxSuggestions || len(name) > maxFieldChars {
		return ""
	}
	c.suggested++
	return diag.DidYouMean(name, known())
}

// broken reports what is not JSON at all, behind which nothing can be read.
func (c *inputChecker) broken(err error) bool {
	var syntax *jsontext.SyntacticError
	switch {
	case err == io.EOF:
		c.report("must be a JSON object")
	case errors.Is(err, jsontext.ErrDuplicateName) && errors.As(err, &syntax):
		here := c.path
		if c.path = appendPointer(nil, syntax.JSONPointer); len(c.path) > 0 {
			c.report("must not be given twice")
		} else {
			c.report("%s", describeJSON(err))
		}
		c.path = here // those who entered it leave it
	default:
		c.report("%s", describeJSON(err))
	}
	return false
}

// end reports what stands behind the value that was read.
func (c *inputChecker) end(what string) {
	if _, err := c.dec.ReadToken(); err != io.EOF {
		c.report("must be one JSON %s and nothing else", what)
	}
}

// object checks the value at hand as an object.
func (c *inputChecker) object(t *ObjectType) bool {
	given := make([]bool, len(t.Fields))
	isObject, more := c.members(func(name string) bool {
		f := fieldOf(t.Fields, name)
		if f == nil {
			return c.skip() && c.reportMember(name, "is not a field of %s%s", t.Name, c.didYouMean(name, t.fieldNames))
		}
		given[f.Pos] = true
		here := c.enter(name)
		defer c.leave(here)
		return c.value(&f.Type)
	})
	if !isObject || !more {
		return more
	}
	for _, f := range t.Fields {
		if !given[f.Pos] && !f.Type.Optional && !f.HasDefault && !f.DefaultNow && !c.reportMember(f.Name, "%s", errRequired) {
			return false
		}
	}
	return true
}

// members calls each with the name of every member of the value at hand, and the
// decoder before its value.
func (c *inputChecker) members(each func(name string) bool) (isObject, more bool) {
	if c.dec.PeekKind() != '{' {
		return false, c.skip() && c.report("must be an object")
	}
	if _, err := c.dec.ReadToken(); err != nil {
		return true, c.broken(err)
	}
	for c.dec.PeekKind() != '}' {
		if c.spend() != nil {
			return true, false
		}
		token, err := c.dec.ReadToken()
		if err != nil {
			return true, c.broken(err)
		}
		if !each(token.String()) {
			return true, false
		}
	}
	if _, err := c.dec.ReadToken(); err != nil {
		return true, c.broken(err)
	}
	return true, true
}

// skip reads over the value at hand, token by token: it may be large.
func (c *inputChecker) skip() bool {
	for depth := c.dec.StackDepth(); ; {
		if c.spend() != nil {
			return false
		}
		if _, err := c.dec.ReadToken(); err != nil {
			return c.broken(err)
		}
		if c.dec.StackDepth() == depth {
			return true
		}
	}
}

// maxAtOnce is the longest text that is read at once.
const maxAtOnce = 256 << 10

// skipAtOnce is skip of a value that is not too long. Its errors are more exact.
func (c *inputChecker) skipAtOnce() bool {
	if _, err := c.dec.ReadValue(); err != nil {
		return c.broken(err)
	}
	return true
}

// tokenUnits is what reading a token costs; its bytes come on top.
const tokenUnits = 64

// spend counts a token that is about to be read.
func (c *inputChecker) spend() error {
	read := c.dec.InputOffset() - c.counted
	c.counted += read
	return c.meter.Spend(tokenUnits + int(read))
}

func (c *inputChecker) value(t *Type) bool {
	switch kind := c.dec.PeekKind(); {
	case kind != 'n' && t.List:
		return c.list(t, c.value)
	case kind != 'n' && t.Kind == Object:
		return c.object(t.Object)
	case kind != 'n' && t.Kind == JSON: // of which any value is one
		return c.skip()
	}
	if c.spend() != nil {
		return false
	}
	raw, err := c.dec.ReadValue()
	if err != nil {
		return c.broken(err)
	}
	if _, err := t.ParseMetered(raw, c.meter); err != nil {
		return c.report("%s", err)
	}
	return true
}

// list checks the value at hand as a list, each element by check.
func (c *inputChecker) list(t *Type, check func(elem *Type) bool) bool {
	if c.dec.PeekKind() != '[' {
		return c.skip() && c.report("%s", errList)
	}
	if _, err := c.dec.ReadToken(); err != nil {
		return c.broken(err)
	}
	elem := *t
	elem.List, elem.Optional = false, false
	here := len(c.path)
	defer c.leave(here)
	for i := 0; c.dec.PeekKind() != ']'; i++ {
		c.path = appendPlace(c.path[:here], strconv.Itoa(i))
		if !check(&elem) {
			return false
		}
	}
	c.leave(here)
	if _, err := c.dec.ReadToken(); err != nil {
		return c.broken(err)
	}
	return true
}

// appendPointer appends a place in the body as FieldError.Field has it, as far as
// that goes.
func appendPointer(path []byte, pointer jsontext.Pointer) []byte {
	for token := range pointer.Tokens() {
		if len(path) > maxFieldChars*utf8.UTFMax {
			break
		}
		if len(path) > 0 && strings.Trim(token, "0123456789") == "" {
			path = appendPlace(path, token)
		} else {
			path = appendMember(path, token)
		}
	}
	return path
}

func appendMember(path []byte, name string) []byte {
	if len(path) > 0 {
		path = append(path, '.')
	}
	return append(path, name...)
}

func appendPlace(path []byte, place string) []byte {
	return append(append(append(path, '['), place...), ']')
}

// shortField cuts a path that is longer than mistakes are told with.
func shortField(path []byte) string {
	chars := 0
	for i := range string(path) {
		if chars == maxFieldChars {
			return string(path[:i]) + "…"
		}
		chars++
	}
	return string(path)
}

func fieldOf(fields []*Field, name string) *Field {
	for _, f := range fields {
		if f.Name == name {
			return f
		}
	}
	return nil
}

func (t *ObjectType) fieldNames() []string {
	var names []string
	for _, f := range t.Fields {
		names = append(names, f.Name)
	}
	return names
}
