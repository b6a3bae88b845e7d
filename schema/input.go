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

// FieldError is an error in a JSON value from a client or a handler.
type FieldError struct {
	// Field is the path of the member: "total", "lines[2].sku". It is empty for an error of
	// the whole value.
	Field string `json:"field"`
	// Message continues the name: "must be at most 32 characters".
	Message string `json:"message"`
}

const (
	// maxFieldErrors and maxErrorBytes limit the errors reported for one body. Reading stops
	// there. The last error may exceed maxErrorBytes.
	maxFieldErrors = 100
	maxErrorBytes  = 16 << 10
	// maxFieldChars is the length at which FieldError.Field is cut.
	maxFieldChars = 100
	// maxSuggestions limits the suggestions for unknown members of one body.
	maxSuggestions = 5
)

// Check reads body as an object of the type and returns its errors, at most a hundred: first
// those of members, in the order of the body, then missing fields. Unknown members are
// errors. A field may be omitted if it is optional or has a default. m counts the work; when
// it fails, the result is not valid.
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

// JSONError says why and where text is not one JSON value. It returns nil if it is one. m
// has the same meaning as in ObjectType.Check.
func JSONError(text []byte, m *cost.Meter) *FieldError {
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

// read reads a value of the type as JSON.
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

// inputChecker reads one JSON value. Methods that read return false when reading must stop.
type inputChecker struct {
	dec       *jsontext.Decoder
	meter     *cost.Meter
	result    bool   // the value is a function's result
	hidden    bool   // hidden fields are allowed
	path      []byte // of the current value
	found     []FieldError
	foundSize int   // in bytes
	counted   int64 // bytes of the input that the meter has counted
	suggested int
}

// report records an error of the current value.
func (c *inputChecker) report(format string, args ...any) bool {
	e := FieldError{shortField(c.path), fmt.Sprintf(format, args...)}
	c.found = append(c.found, e)
	c.foundSize += len(e.Field) + len(e.Message)
	return len(c.found) < maxFieldErrors && c.foundSize < maxErrorBytes
}

// reportMember records an error of a member of the current object.
func (c *inputChecker) reportMember(name, format string, args ...any) bool {
	here := c.enter(name)
	more := c.report(format, args...)
	c.leave(here)
	return more
}

// enter descends into a member of the current object, until leave.
func (c *inputChecker) enter(name string) (here int) {
	here = len(c.path)
	c.path = appendMember(c.path, name)
	return here
}

func (c *inputChecker) leave(here int) { c.path = c.path[:here] }

// didYouMean suggests a name for an unknown member. Comparing names is slow, so only the
// first few unknown members get a suggestion.
func (c *inputChecker) didYouMean(name string, known func() []string) string {
	if c.suggested == maxSuggestions || len(name) > maxFieldChars {
		return ""
	}
	c.suggested++
	return diag.DidYouMean(name, known())
}

// broken records a JSON syntax error. Nothing after it can be read.
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
		c.path = here
	default:
		c.report("%s", describeJSON(err))
	}
	return false
}

// end records an error if the value is followed by anything.
func (c *inputChecker) end(what string) {
	if _, err := c.dec.ReadToken(); err != io.EOF {
		c.report("must be one JSON %s and nothing else", what)
	}
}

// object checks the current value as an object.
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
		if !given[f.Pos] && !f.MayOmit() && !c.reportMember(f.Name, "%s", errRequired) {
			return false
		}
	}
	return true
}

// members calls each with the name of every member of the current value. The decoder is then
// before the member's value.
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

// skip skips the current value token by token, because it may be large.
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

// maxAtOnce is the maximum length of a text that skipAtOnce reads.
const maxAtOnce = 256 << 10

// skipAtOnce is skip for short values. Its errors are more exact.
func (c *inputChecker) skipAtOnce() bool {
	if _, err := c.dec.ReadValue(); err != nil {
		return c.broken(err)
	}
	return true
}

// tokenUnits is the cost of reading a token, in addition to its bytes.
const tokenUnits = 64

// spend counts the next token.
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
	case kind != 'n' && t.Kind == JSON: // accepts any value
		return c.skip()
	}
	if c.spend() != nil {
		return false
	}
	raw, err := c.dec.ReadValue()
	if err != nil {
		return c.broken(err)
	}
	parse := t.ParseMetered
	if c.result {
		parse = t.parseResult
	}
	if _, err := parse(raw, c.meter); err != nil {
		return c.report("%s", err)
	}
	return true
}

// list checks the current value as a list, and each element with check.
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
		c.path = appendIndex(c.path[:here], strconv.Itoa(i))
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

// appendPointer appends a JSON pointer in the form of FieldError.Field, up to its maximum
// length.
func appendPointer(path []byte, pointer jsontext.Pointer) []byte {
	for token := range pointer.Tokens() {
		if len(path) > maxFieldChars*utf8.UTFMax {
			break
		}
		if len(path) > 0 && strings.Trim(token, "0123456789") == "" {
			path = appendIndex(path, token)
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

func appendIndex(path []byte, index string) []byte {
	return append(append(append(path, '['), index...), ']')
}

// shortField cuts a path at maxFieldChars.
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
