package schema

import (
	"bytes"
	"fmt"
	"slices"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"runner.example/internal/cost"
)

// callPrefix is the prefix of the paths of exposed functions. Routes cannot use it.
const callPrefix = "/_call/"

// Route is the route of an exposed function.
func (f *Function) Route() *Route {
	return &Route{
		Method: "POST", Path: callPrefix + f.Name, Handler: f.Name,
		Auth: f.Auth, Limits: f.Limits, BodyBytes: f.BodyBytes, Timeout: f.Timeout, As: f.As,
		Verify: f.Verify, CSRFOff: f.CSRFOff, CreatesSession: f.CreatesSession, CORS: f.CORS, Doc: f.Doc, Span: f.Span,
	}
}

// Input is the type of the body of a call: an object of the parameters.
func (f *Function) Input() *ObjectType {
	return &ObjectType{Name: f.Name, Fields: f.Params, Span: f.Span}
}

// Fill appends body to dst in compact form, with the defaults of omitted fields at every
// depth and with whole numbers written as digits. now is the value of `= now`. The body must
// have passed Check. m counts the work; when it fails, so does Fill.
func (t *ObjectType) Fill(dst, body []byte, now time.Time, m *cost.Meter) ([]byte, error) {
	f := filler{dec: jsontext.NewDecoder(bytes.NewReader(body)), out: dst, now: TimeValue(now.UnixMilli()), meter: m}
	if err := f.object(t); err != nil {
		return dst, fmt.Errorf("fill in defaults: %w", err)
	}
	return f.out, nil
}

// HasDefaults reports whether Fill may add something to a body.
func (t *ObjectType) HasDefaults() bool {
	return t.hasField(map[*ObjectType]bool{}, func(f *Field) bool { return f.HasDefault || f.DefaultNow })
}

// HasDefaultNow reports whether Fill may add the time.
func (t *ObjectType) HasDefaultNow() bool {
	return t.hasField(map[*ObjectType]bool{}, func(f *Field) bool { return f.DefaultNow })
}

// hasField reports whether a field of the type, or of one inside of it, is such a field.
func (t *ObjectType) hasField(seen map[*ObjectType]bool, is func(*Field) bool) bool {
	if t == nil || seen[t] {
		return false
	}
	seen[t] = true
	return slices.ContainsFunc(t.Fields, func(f *Field) bool { return is(f) || f.Type.Object.hasField(seen, is) })
}

type filler struct {
	dec   *jsontext.Decoder
	out   []byte
	now   Value
	meter *cost.Meter
}

func (f *filler) object(t *ObjectType) error {
	if _, err := f.dec.ReadToken(); err != nil {
		return err
	}
	f.out = append(f.out, '{')
	given := make([]bool, len(t.Fields))
	for f.dec.PeekKind() == '"' {
		token, err := f.dec.ReadToken()
		if err != nil {
			return err
		}
		field := fieldOf(t.Fields, token.String())
		if field == nil {
			return fmt.Errorf("%q is not a field of %s", token.String(), t.Name)
		}
		given[field.Pos] = true
		f.name(field)
		if err := f.value(&field.Type); err != nil {
			return err
		}
	}
	for _, field := range t.Fields {
		if !given[field.Pos] && (field.HasDefault || field.DefaultNow) {
			value := field.Default
			if field.DefaultNow {
				value = f.now
			}
			f.name(field)
			f.out = field.Type.AppendJSON(f.out, value)
		}
	}
	f.out = append(f.out, '}')
	_, err := f.dec.ReadToken()
	return err
}

func (f *filler) name(field *Field) {
	if f.out[len(f.out)-1] != '{' {
		f.out = append(f.out, ',')
	}
	f.out = append(TextValue(field.Name).appendJSON(f.out), ':')
}

func (f *filler) value(t *Type) error {
	switch kind := f.dec.PeekKind(); {
	case kind == '[' && t.List && t.Kind == Object:
		return f.list(t.Object)
	case kind == '{' && !t.List && t.Kind == Object:
		return f.object(t.Object)
	}
	raw, err := f.dec.ReadValue()
	if err == nil {
		err = f.meter.Spend(tokenUnits + 4*len(raw)) // compactJSON reads it again
	}
	if err != nil {
		return err
	}
	if (t.Kind == Int || t.Kind == Duration) && bytes.ContainsAny(raw, ".eE") {
		v, err := t.Parse(raw)
		f.out = t.AppendJSON(f.out, v)
		return err
	}
	f.out, err = compactJSON(f.out, raw)
	return err
}

func (f *filler) list(elem *ObjectType) error {
	if _, err := f.dec.ReadToken(); err != nil {
		return err
	}
	f.out = append(f.out, '[')
	for first := true; f.dec.PeekKind() == '{'; first = false {
		if !first {
			f.out = append(f.out, ',')
		}
		if err := f.object(elem); err != nil {
			return err
		}
	}
	f.out = append(f.out, ']')
	_, err := f.dec.ReadToken()
	return err
}

// CheckResult reads body as a function's result of the type and returns its errors, as
// ObjectType.Check does. An empty body is null. A value of an entity is a row with any of
// its fields; hidden fields are allowed only with hidden. m has the same meaning as in
// ObjectType.Check.
func (t *Type) CheckResult(body []byte, hidden bool, m *cost.Meter) []FieldError {
	if body = bytes.TrimSpace(body); len(body) == 0 {
		body = []byte("null")
	}
	if err := checkDepth(body, maxResultDepth, m); err != nil {
		return []FieldError{{"", err.Error()}}
	}
	c := inputChecker{dec: jsontext.NewDecoder(bytes.NewReader(body)), meter: m, result: true, hidden: hidden}
	if c.resultValue(t) {
		c.end("value")
	}
	return c.found
}

func (c *inputChecker) resultValue(t *Type) bool {
	if t.Kind != Relation || c.dec.PeekKind() == 'n' {
		return c.value(t)
	}
	if t.List {
		return c.list(t, c.resultValue)
	}
	_, more := c.members(func(name string) bool {
		f := t.Entity.Field(name)
		if f == nil || f.Hidden && !c.hidden || f.Type.Kind == ToMany {
			return c.skip() && c.reportMember(name, "is not a readable field of %s%s",
				t.Entity.Name, c.didYouMean(name, t.Entity.FieldNames))
		}
		here := c.enter(name)
		defer c.leave(here)
		if c.spend() != nil {
			return false
		}
		raw, err := c.dec.ReadValue()
		if err != nil {
			return c.broken(err)
		}
		parse := f.Type.ParseOperand // without bounds: a row may be older than them
		if f.Type.List {
			parse = f.Type.Parse
		}
		if _, err := parse(raw); err != nil {
			return c.report("%s", err)
		}
		return true
	})
	return more
}
