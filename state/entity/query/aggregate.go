package query

import (
	"slices"

	"runner.example/schema"
)

// MaxGroupFields is the limit of fields that an aggregate groups by.
const MaxGroupFields = 2

// maxComputed is the limit of values that an aggregate computes for a group.
const maxComputed = 16

// Function is a function over the values of a field in a group of rows. It ignores nulls.
type Function uint8

const (
	Sum Function = iota
	Avg
	Min
	Max
	functions
)

var functionMembers = [functions]member{memberSum, memberAvg, memberMin, memberMax}

// String returns the name of the function, as handlers call it.
func (f Function) String() string { return functionMembers[f].String() }

// Aggregation is a parsed aggregate.
type Aggregation struct {
	// Query selects the rows.
	Query *Query
	// By is what rows of a group have in common; without any all rows are one group.
	By []Grouping
	// Count: the number of rows is returned.
	Count bool
	// Computed are in the order of the functions.
	Computed []Computed
}

// Computed is a function of a field.
type Computed struct {
	Function Function
	Field    *schema.Field
}

// aggregation parses the arguments of an aggregate of an entity.
func (a *Arguments) aggregation(auth *Authority) (*Aggregation, error) {
	q, err := a.query(auth, nil)
	if err != nil {
		return nil, err
	}
	if auth.entity == nil {
		return nil, Invalidf("aggregate: rows of %s have no declared fields: declare it as an entity", auth.name)
	}
	g := &Aggregation{Query: q}
	r := &reader{Authority: auth, right: auth.Read}
	if g.By, err = r.readGroupBy(a.members[memberGroupBy]); err != nil {
		return nil, err
	}
	if raw := a.members[memberCount]; raw != nil {
		if raw[0] != 't' && raw[0] != 'f' {
			return nil, Invalidf("count: must be true or false")
		}
		g.Count = raw[0] == 't'
	}
	for f, m := range functionMembers {
		takes := (*Column).adds
		if Function(f) == Min || Function(f) == Max {
			takes = func(c *Column) bool { return c.takes(opLess) }
		}
		fields, err := r.readFields(m, a.members[m], maxComputed-len(g.Computed), takes)
		if err != nil {
			return nil, err
		}
		for _, field := range fields {
			g.Computed = append(g.Computed, Computed{Function(f), field})
		}
	}
	if g.By == nil && !g.Count && g.Computed == nil {
		return nil, Invalidf("aggregate: nothing is computed: name groupBy, count, sum, avg, min or max")
	}
	return g, nil
}

// readFields parses a list of at most that many fields, nil when omitted. Their columns must
// be taken.
func (r *reader) readFields(m member, raw []byte, most int, takes func(*Column) bool) ([]*schema.Field, error) {
	if raw == nil {
		return nil, nil
	}
	if raw[0] != '[' {
		return nil, Invalidf("%s: must be a list of fields", m)
	}
	var list []*schema.Field
	for i, elem := range elementsOf(raw) {
		at := ElementPath(m.String(), i)
		if i == most {
			return nil, Invalidf("%s: at most %d computed values are allowed", at, maxComputed)
		}
		f, err := r.readField(m, elem, at, takes)
		if err != nil {
			return nil, err
		}
		if slices.Contains(list, f) {
			return nil, unknownName(f.Name, "is given twice", "%s: %q is given twice", at, f.Name)
		}
		list = append(list, f)
	}
	return list, nil
}

// readField parses the name of a field whose column must be taken.
func (r *reader) readField(m member, raw []byte, at string, takes func(*Column) bool) (*schema.Field, error) {
	name, ok := textOf(raw)
	if !ok {
		return nil, Invalidf("%s: must be the name of a field", at)
	}
	column, err := r.column(name, at)
	if err != nil {
		return nil, err
	}
	if !takes(&column) {
		return nil, unknownName(name, m.String()+" does not apply to this field",
			"%s: %s does not apply to a field of type %s", at, m, column.typ)
	}
	return r.entity.Fields[column.Pos], nil
}

// adds reports whether values of the column can be added up.
func (c *Column) adds() bool {
	return !c.isList() &&
		slices.Contains([]schema.TypeKind{schema.Int, schema.Float, schema.Decimal, schema.Duration}, c.kind())
}
