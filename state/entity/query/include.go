package query

import (
	"slices"
	"strings"

	"runner.example/internal/diag"
	"runner.example/internal/fault"
	"runner.example/schema"
)

// Limits of the includes of one query.
const (
	maxIncludeLevels = 2
	maxIncludes      = 16 // of all levels
)

// Include is a relation whose rows a query returns in each of its own rows.
type Include struct {
	// Field is the relation, of the entity whose rows include others.
	Field *schema.Field
	// Auth is what the caller may do with the included rows.
	Auth *Authority
	// Query selects fields of the included rows. For a to-many relation it selects the rows
	// too, once Bind has named the row that includes them.
	Query *Query

	id, tenant int // positions in the including row; tenant is -1 unless both rows have one
}

// IsMany reports whether the relation has several rows.
func (x *Include) IsMany() bool { return x.Field.Type.Kind == schema.ToMany }

// Bind makes the query of a to-many relation that for the rows which refer to this row.
func (x *Include) Bind(row []schema.Value) {
	parts := x.Query.Where.parts
	parts[0].value = row[x.id]
	if x.tenant >= 0 {
		parts[1].value = row[x.tenant]
	}
}

// Relate makes the rights of other entities, by name, known to each other. Without it a query
// cannot include rows of other entities.
func Relate(all map[string]*Rights) {
	for _, r := range all {
		r.others = all
	}
}

// related returns the caller's authority over the rows that a relation refers to.
func (a *Authority) related(f *schema.Field) *Authority {
	other := a.others[f.Type.Entity.Name].For(a.Input)
	other.Work = a.Work
	return &other
}

// readIncludes parses include, nil when omitted: an object with the relations' names. count is
// the number of includes in the whole query.
func (r *reader) readIncludes(raw []byte, q *Query, level int, count *int) error {
	switch {
	case raw == nil:
		return nil
	case raw[0] != '{':
		return Invalidf("include: must be an object of relations and what to include of each")
	case r.entity == nil:
		return Invalidf("include: rows of %s have no relations, because no entity is declared", r.Authority.name)
	case level > maxIncludeLevels:
		return Invalidf("include: at most %d levels are allowed", maxIncludeLevels)
	}
	for name, options := range membersOf(raw) {
		if *count++; *count > maxIncludes {
			return Invalidf("include: at most %d relations are allowed in one query", maxIncludes)
		}
		at := "include." + name
		f, err := r.readable(r.right, name, "include")
		switch {
		case err != nil:
			return err
		case f.Type.Kind != schema.Relation && f.Type.Kind != schema.ToMany:
			return unknownName(name, "is not a relation", "%s: %s.%s is not a relation: name it in select", at, r.Authority.name, name)
		case options[0] != '{':
			return Invalidf("%s: must be an object", at)
		}
		x := &Include{
			Field: f, Auth: r.related(f), Query: &Query{
				entity: f.Type.Entity.Name, Where: Condition{op: opAnd}, Limit: defaultLimit,
			},
		}
		if err := r.readInclude(x, options, level, count); err != nil {
			return inside(at, err)
		}
		q.Includes = append(q.Includes, x)
	}
	q.Selected = slices.DeleteFunc(slices.Clone(q.Selected), func(pos int) bool {
		return slices.ContainsFunc(q.Includes, func(x *Include) bool { return x.Field.Pos == pos })
	})
	return nil
}

// readInclude parses what a query includes by one relation.
func (r *reader) readInclude(x *Include, options []byte, level int, count *int) error {
	if _, err := x.Auth.may(schema.ActRead); err != nil {
		return err
	}
	known := toOneMembers
	if x.IsMany() {
		known = toManyMembers
	}
	var a Arguments
	if err := a.readMembers(options, known); err != nil {
		return err
	}
	inner := &reader{Authority: x.Auth, right: x.Auth.Read, names: &x.Query.Names}
	inner.id = inner.columns[inner.entity.ID.Pos]
	if x.IsMany() {
		if err := r.readMany(x, inner, &a); err != nil {
			return err
		}
	}
	if err := inner.readSelect(a.members[memberSelect], x.Query); err != nil {
		return err
	}
	return inner.readIncludes(a.members[memberInclude], x.Query, level+1, count)
}

// readMany parses which rows a query includes by a to-many relation.
func (r *reader) readMany(x *Include, inner *reader, a *Arguments) error {
	back, err := inner.readable(inner.right, x.Field.Inverse.Name, "where")
	if err != nil {
		return err
	}
	x.id, x.tenant = r.entity.ID.Pos, -1
	x.Query.Where.parts = []Condition{{op: opEqual, column: inner.columns[back.Pos]}}
	if r.entity.Tenant != nil && inner.entity.Tenant != nil {
		x.tenant = r.entity.Tenant.Pos
		x.Query.Where.parts = append(x.Query.Where.parts, Condition{
			op: opEqual, column: inner.columns[inner.entity.Tenant.Pos],
		})
	}
	return a.readRows(inner, x.Query)
}

// inside adds the path of an include to the error of its arguments.
func inside(at string, err error) error {
	f := fault.Of(err)
	if f.Code != fault.Invalid {
		return err
	}
	return fault.New(fault.Invalid, "%s: %s", at, f.Detail).About(f.Subject)
}

var (
	toOneMembers  = []member{memberSelect, memberInclude}
	toManyMembers = []member{memberSelect, memberWhere, memberOrderBy, memberLimit, memberInclude}
)

// readMembers reads the members of an object, which are those known.
func (a *Arguments) readMembers(object []byte, known []member) error {
	for name, raw := range membersOf(object) {
		m := member(slices.Index(memberNames[:], name))
		if !slices.Contains(known, m) {
			all := names(known)
			return Invalidf("unknown member %q%s; known: %s", name, diag.DidYouMean(name, all), strings.Join(all, ", "))
		}
		switch {
		case raw[0] != 'n':
			a.members[m] = raw
		case m == memberWhere || m == memberLimit || m == memberAtMost:
			// A number that is NaN becomes null in many languages, and so does a missing list of
			// conditions: they must not mean more rows.
			return Invalidf("%s: must not be null: leave it out", m)
		}
	}
	return nil
}
