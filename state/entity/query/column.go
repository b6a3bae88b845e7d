package query

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"runner.example/internal/casefold"
	"runner.example/internal/cost"
	"runner.example/schema"
)

// Column is a field as queries see it.
type Column struct {
	name string
	// Pos is the field's position in rows: Field.Pos, in untyped mode the position among
	// the names of the query.
	Pos int
	// typ is the field's type; nil in untyped mode, where any value is accepted.
	typ *schema.Type
}

func (c *Column) kind() schema.TypeKind {
	if c.typ == nil {
		return 0
	}
	return c.typ.Kind
}

func (c *Column) isList() bool { return c.typ != nil && c.typ.List }

// sorts reports whether rows can be ordered by the column.
func (c *Column) sorts() bool {
	return !c.isList() &&
		!slices.Contains([]schema.TypeKind{schema.JSON, schema.Bytes, schema.FileKind, schema.ToMany, schema.Object}, c.kind())
}

// takes reports whether the operator applies to values of the column that are not null.
func (c *Column) takes(op operator) bool {
	kind := c.kind()
	switch {
	case c.typ == nil:
		return true
	case kind == schema.JSON || kind == schema.FileKind || kind == schema.ToMany || kind == schema.Object:
		return false
	case c.typ.List:
		return op == opContains
	}
	switch op {
	case opStartsWith, opContains:
		return isText(kind)
	case opLess, opLessEqual, opGreater, opGreaterEqual:
		return c.sorts() && kind != schema.Bool && kind != schema.EnumKind
	}
	return true
}

func isText(kind schema.TypeKind) bool {
	return kind >= schema.ID && kind <= schema.URL || kind == schema.EnumKind || kind == schema.Relation
}

// readOperand reads the value of a comparison. The error is for people.
func (c *Condition) readOperand(raw []byte) error {
	switch {
	case c.ignoreCase:
		return c.readFolded(raw)
	case raw[0] == 'n' && (c.op == opEqual || c.op == opNotEqual):
		return nil
	case raw[0] == 'n':
		return errors.New("null is allowed only with = and !=")
	case !c.column.takes(c.op):
		return fmt.Errorf("this operator does not apply to a field of type %s%s", c.column.typ, c.instead())
	case c.op == opAmong:
		return c.readAmong(raw)
	case c.column.typ != nil && !c.column.typ.List && (c.op == opStartsWith || c.op == opContains), c.op == opStartsWith:
		text, ok := textOf(raw)
		if !ok {
			return errors.New("the value must be a string")
		}
		c.value = schema.TextValue(text)
		return nil
	}
	var err error
	c.value, err = c.column.read(raw)
	return err
}

// readFolded reads the value of a comparison without regard to case.
func (c *Condition) readFolded(raw []byte) error {
	text, ok := textOf(raw)
	switch {
	case c.op != opEqual && c.op != opStartsWith && c.op != opContains:
		return errors.New("ignoreCase is allowed only with =, startsWith and contains")
	case c.column.typ != nil && (!c.column.isFreeText() || !c.column.takes(c.op)):
		return fmt.Errorf("this operator with ignoreCase does not apply to a field of type %s", c.column.typ)
	case !ok:
		return errors.New("the value must be a string")
	}
	c.value = schema.TextValue(casefold.Fold(text))
	return nil
}

// isFreeText reports whether the column, or each element of its list, is a text in which case
// has no meaning for the host.
func (c *Column) isFreeText() bool { return c.kind() >= schema.String && c.kind() <= schema.URL }

// instead suggests other operators.
func (c *Condition) instead() string {
	if c.op == opEqual || c.op == opNotEqual {
		return ", except for null"
	}
	return ""
}

func (c *Condition) readAmong(raw []byte) error {
	if raw[0] != '[' {
		return errors.New("the value must be a list")
	}
	for i, elem := range elementsOf(raw) {
		if i == maxAmong {
			return fmt.Errorf("the list is longer than %d", maxAmong)
		}
		if elem[0] == 'n' {
			return fmt.Errorf("[%d]: null is allowed only with = and !=", i)
		}
		v, err := c.column.read(elem)
		if err != nil {
			return fmt.Errorf("[%d]: %w", i, err)
		}
		c.among = append(c.among, v)
	}
	if len(c.among) > 16 {
		c.sorted = slices.Clone(c.among)
		slices.SortFunc(c.sorted, compareValues)
	}
	return nil
}

// read reads one value, not null, of the column's type.
func (c *Column) read(raw []byte) (schema.Value, error) {
	if c.typ == nil {
		return readUntyped(raw)
	}
	return c.typ.ParseOperand(raw)
}

// readUntyped reads a value in untyped mode: a string, a number, a bool.
func readUntyped(raw []byte) (schema.Value, error) {
	if raw[0] == '[' || raw[0] == '{' {
		return schema.Value{}, errors.New("must be a string, a number or a bool")
	}
	v := untypedValue(raw, nil)
	if v.IsNull() && raw[0] != 'n' {
		return v, errors.New("is too large for a number")
	}
	return v, nil
}

// elementUnits is the cost of creating a value of a list's element.
const elementUnits = 100

// untypedValue creates a value of untyped mode from valid JSON. Numbers of any form are equal
// by value. Values without an order (an object, a number beyond floats) are null or JSON.
// When m fails, the result is undefined.
func untypedValue(raw []byte, m *cost.Meter) schema.Value {
	switch raw[0] {
	case 'n':
		return schema.Value{}
	case 't', 'f':
		return schema.BoolValue(raw[0] == 't')
	case '"':
		text, _ := textOf(raw)
		return schema.TextValue(text)
	case '{':
		return schema.JSONValue(string(raw))
	case '[':
		var list []schema.Value
		for _, elem := range elementsOf(raw) {
			if m.Spend(elementUnits) != nil {
				break
			}
			if elem[0] == '[' {
				list = append(list, schema.JSONValue(string(elem)))
				continue
			}
			list = append(list, untypedValue(elem, m))
		}
		return schema.ListValue(list)
	}
	text := string(raw)
	if !strings.ContainsAny(text, ".eE") {
		if n, err := strconv.ParseInt(text, 10, 64); err == nil {
			return schema.IntValue(n)
		}
	}
	f, err := strconv.ParseFloat(text, 64)
	if err != nil || math.IsInf(f, 0) {
		return schema.Value{}
	}
	return schema.FloatValue(f)
}
