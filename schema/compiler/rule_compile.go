package compiler

import (
	"slices"

	"runner.example/schema"
	"runner.example/schema/syntax"
)

// rulePlace says what names mean in the rule that is compiled.
type rulePlace struct {
	// entity owns the bare names; nil in @issue and in untyped mode.
	entity *schema.Entity
	// outer is the row at hand inside exists.
	outer    *schema.Entity
	inExists bool
	model    *schema.Schema
	// names collects the members that a rule of untyped mode looks at; nil in
	// typed mode.
	names *[]string
}

// compileRule makes a rule of an expression that was checked. What cannot be
// resolved is absent.
func compileRule(e syntax.Expr, in rulePlace) *schema.Rule {
	var names []string
	if in.entity == nil {
		in.names = &names
	}
	top := in.compile(e)
	return schema.NewRule(top, names)
}

var operators = map[syntax.Op]schema.Operator{
	syntax.OpOr: schema.Or, syntax.OpAnd: schema.And, syntax.OpEqual: schema.Equal, syntax.OpNotEqual: schema.NotEqual,
	syntax.OpLess: schema.Less, syntax.OpLessEq: schema.LessOrEqual, syntax.OpGreater: schema.Greater, syntax.OpGreaterEq: schema.GreaterOrEqual,
	syntax.OpIn: schema.In, syntax.OpNotIn: schema.NotIn, syntax.OpStartsWith: schema.StartsWith, syntax.OpContains: schema.Contains,
}

func (in rulePlace) compile(e syntax.Expr) *schema.Term {
	switch e := e.(type) {
	case *syntax.ParenExpr:
		return in.compile(e.X)
	case *syntax.Literal:
		return schema.ConstantTerm(constantOf(e))
	case *syntax.NullExpr:
		return schema.ConstantTerm(schema.Value{})
	case *syntax.NowExpr:
		return schema.NowTerm()
	case *syntax.NameExpr:
		return in.name(e)
	case *syntax.ListExpr:
		return in.list(e)
	case *syntax.ExistsExpr:
		return in.exists(e)
	case *syntax.NotExpr:
		return schema.NotTerm(in.compile(e.X))
	case *syntax.BinaryExpr:
		return schema.BinaryTerm(operators[e.Op], in.compile(e.X), in.compile(e.Y))
	}
	return schema.AbsentTerm()
}

func (in rulePlace) list(e *syntax.ListExpr) *schema.Term {
	elems := make([]*schema.Term, len(e.Elems))
	for i, elem := range e.Elems {
		elems[i] = in.compile(elem)
	}
	return schema.ListTerm(elems)
}

func (in rulePlace) name(e *syntax.NameExpr) *schema.Term {
	path := namesOf(e.Parts)
	switch head := path[0]; {
	case head == "auth":
		switch {
		case len(path) == 2:
			return schema.AuthTerm(path[1], "")
		case len(path) == 3 && path[1] == "claims":
			return schema.AuthTerm(path[1], path[2])
		}
		return schema.AbsentTerm()
	case head == "old" || head == "new":
		owner := in.entity
		if in.inExists {
			owner = in.outer
		}
		row := schema.OldRow
		if head == "new" {
			row = schema.NewRow
		}
		return in.path(row, owner, path[1:])
	case head == "outer" && in.inExists:
		return in.path(schema.OuterRow, in.outer, path[1:])
	}
	return in.path(schema.ThisRow, in.entity, path)
}

// path resolves the field that names lead to, seen from a row of the entity.
func (in rulePlace) path(row schema.RowRole, owner *schema.Entity, names []string) *schema.Term {
	if owner == nil {
		return in.member(row, names)
	}
	if len(names) == 0 || len(names) > 2 {
		return schema.AbsentTerm()
	}
	f := owner.Field(names[0])
	switch {
	case f == nil:
		return schema.AbsentTerm()
	case len(names) == 1:
		return schema.FieldTerm(row, f)
	case f.Type.Kind != schema.Relation || f.Type.List:
		return schema.AbsentTerm()
	}
	want := f.Type.Entity.Field(names[1])
	if want == nil {
		return schema.AbsentTerm()
	}
	return schema.HopTerm(row, f, want)
}

// member is a name of untyped mode: a member of the row, known by its place
// among those that the rule looks at.
func (in rulePlace) member(row schema.RowRole, names []string) *schema.Term {
	if len(names) != 1 || in.names == nil || in.inExists {
		return schema.AbsentTerm()
	}
	pos := slices.Index(*in.names, names[0])
	if pos < 0 {
		pos = len(*in.names)
		*in.names = append(*in.names, names[0])
	}
	return schema.MemberTerm(row, pos)
}

func (in rulePlace) exists(e *syntax.ExistsExpr) *schema.Term {
	if in.model == nil || in.entity == nil {
		return schema.AbsentTerm()
	}
	target := in.model.Entity(e.Entity.Name)
	if target == nil {
		return schema.AbsentTerm()
	}
	inner := rulePlace{entity: target, outer: in.entity, inExists: true, model: in.model}
	return schema.ExistsTerm(target, schema.NewRule(inner.compile(e.Where), nil))
}
