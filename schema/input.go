package schema

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

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

// maxFieldErrors bounds how many mistakes are told of one body.
const maxFieldErrors = 100

// Check reads body as an object of the type and reports every mistake, in the
// order of the members and then of the fields that are missing; nil when there
// is none. Members that the type does not have are mistakes. A field may be
// left out when it is optional or has a default.
func (t *ObjectType) Check(body []byte) []FieldError {
	if err := checkDepth(body); err != nil {
		return []FieldError{{"", err.Error()}}
	}
	c := inputChecker{dec: jsontext.NewDecoder(bytes.NewReader(body))}
	if c.object(t, "") {
		if _, err := c.dec.ReadToken(); err != io.EOF {
			c.report("", "must be one JSON object and nothing else")
		}
	}
	return c.found
}

// read reads a value of the type, which is kept as JSON.
func (t *ObjectType) read(raw []byte) (Value, error) {
	if found := t.Check(raw); len(found) > 0 {
		first := found[0]
		if first.Field == "" {
			return Value{}, errors.New(first.Message)
		}
		return Value{}, fmt.Errorf("has a wrong %s: %s", first.Field, first.Message)
	}
	compact, err := compactJSON(nil, raw)
	return JSONValue(string(compact)), err
}

type inputChecker struct {
	dec   *jsontext.Decoder
	found []FieldError
}

func (c *inputChecker) report(path, format string, args ...any) {
	if len(c.found) < maxFieldErrors {
		c.found = append(c.found, FieldError{path, fmt.Sprintf(format, args...)})
	}
}

// broken reports what is not JSON at all, behind which nothing can be read.
func (c *inputChecker) broken(path string, err error) bool {
	var syntax *jsontext.SyntacticError
	switch {
	case err == io.EOF:
		c.report(path, "must be a JSON object")
	case errors.Is(err, jsontext.ErrDuplicateName) && errors.As(err, &syntax):
		c.report(pathOf(syntax.JSONPointer), "must not be given twice")
	default:
		c.report(path, "%s", describeJSON(err))
	}
	return false
}

// object checks the value at hand as an object. It returns false when what
// follows cannot be read.
func (c *inputChecker) object(t *ObjectType, path string) bool {
	given := make([]bool, len(t.Fields))
	isObject, readable := c.members(path, func(name string) bool {
		f := fieldOf(t.Fields, name)
		if f == nil {
			if !c.skip(path) {
				return false
			}
			c.report(join(path, name), "is not a field of %s%s", t.Name, diag.DidYouMean(name, fieldNames(t.Fields)))
			return true
		}
		given[f.Pos] = true
		return c.value(&f.Type, join(path, name))
	})
	if !isObject || !readable {
		return readable
	}
	for _, f := range t.Fields {
		if !given[f.Pos] && !f.Type.Optional && !f.HasDefault && !f.DefaultNow {
			c.report(join(path, f.Name), "%s", errRequired)
		}
	}
	return true
}

// members calls each with the name of every member of the value at hand, and the
// decoder before its value.
func (c *inputChecker) members(path string, each func(name string) bool) (isObject, readable bool) {
	if c.dec.PeekKind() != '{' {
		if !c.skip(path) {
			return false, false
		}
		c.report(path, "must be an object")
		return false, true
	}
	if _, err := c.dec.ReadToken(); err != nil {
		return true, c.broken(path, err)
	}
	for c.dec.PeekKind() != '}' {
		token, err := c.dec.ReadToken()
		if err != nil {
			return true, c.broken(path, err)
		}
		if !each(token.String()) {
			return true, false
		}
	}
	if _, err := c.dec.ReadToken(); err != nil {
		return true, c.broken(path, err)
	}
	return true, true
}

// skip reads over the value at hand.
func (c *inputChecker) skip(path string) bool {
	if _, err := c.dec.ReadValue(); err != nil {
		return c.broken(path, err)
	}
	return true
}

func (c *inputChecker) value(t *Type, path string) bool {
	switch kind := c.dec.PeekKind(); {
	case kind != 'n' && t.List:
		return c.list(t, path, c.value)
	case kind != 'n' && t.Kind == Object:
		return c.object(t.Object, path)
	}
	raw, err := c.dec.ReadValue()
	if err != nil {
		return c.broken(path, err)
	}
	if _, err := t.Parse(raw); err != nil {
		c.report(path, "%s", err)
	}
	return true
}

// list checks the value at hand as a list, each element by check.
func (c *inputChecker) list(t *Type, path string, check func(elem *Type, path string) bool) bool {
	if c.dec.PeekKind() != '[' {
		if !c.skip(path) {
			return false
		}
		c.report(path, "%s", errList)
		return true
	}
	if _, err := c.dec.ReadToken(); err != nil {
		return c.broken(path, err)
	}
	elem := *t
	elem.List, elem.Optional = false, false
	for i := 0; c.dec.PeekKind() != ']'; i++ {
		if !check(&elem, fmt.Sprintf("%s[%d]", path, i)) {
			return false
		}
	}
	if _, err := c.dec.ReadToken(); err != nil {
		return c.broken(path, err)
	}
	return true
}

// pathOf writes a place in the body as FieldError.Field does.
func pathOf(pointer jsontext.Pointer) string {
	path := ""
	for token := range pointer.Tokens() {
		if path != "" && strings.Trim(token, "0123456789") == "" {
			path += "[" + token + "]"
		} else {
			path = join(path, token)
		}
	}
	return path
}

func join(path, name string) string {
	if path == "" {
		return name
	}
	return path + "." + name
}

func fieldOf(fields []*Field, name string) *Field {
	for _, f := range fields {
		if f.Name == name {
			return f
		}
	}
	return nil
}

func fieldNames(fields []*Field) []string {
	var names []string
	for _, f := range fields {
		names = append(names, f.Name)
	}
	return names
}
