package model

import (
	"slices"

	"runner.example/schema"
	"runner.example/schema/syntax"
)

// ruleBuilder resolves the names of a rule and builds its terms.
type ruleBuilder struct {
	// entity is the entity of bare names; nil in @issue, @manage and in untyped mode.
	entity *schema.Entity
	// outer is, inside exists, the entity of the rule around it.
	outer    *schema.Entity
	inExists bool
	model    *schema.Schema
	// names collects the members that a rule reads in untyped mode; nil in typed mode.
	names *[]string
}

// Rule builds a rule from a checked expression without the entity that it is about: its names
// are members of any row.
func Rule(e syntax.Expr) *schema.Rule { return buildRule(e, ruleBuilder{}) }

// buildRule builds a rule from a checked expression. Names that cannot be resolved are absent.
func buildRule(e syntax.Expr, b ruleBuilder) *schema.Rule {
	var names []string
	if b.entity == nil {
		b.names = &names
	}
	top := b.compile(e)
	return schema.NewRule(top, names)
}

var operators = map[syntax.Op]schema.Operator{
	syntax.OpOr: schema.Or, syntax.OpAnd: schema.And, syntax.OpEqual: schema.Equal, syntax.OpNotEqual: schema.NotEqual,
	syntax.OpLess: schema.Less, syntax.OpLessEq: schema.LessOrEqual,
	syntax.OpGreater: schema.Greater, syntax.OpGreaterEq: schema.GreaterOrEqual,
	syntax.OpIn: schema.In, syntax.OpNotIn: schema.NotIn,
	syntax.OpStartsWith: schema.StartsWith, syntax.OpContains: schema.Contains,
}

func (b ruleBuilder) compile(e syntax.Expr) *schema.Term {
	switch e := e.(type) {
	case *syntax.ParenExpr:
		return b.compile(e.X)
	case *syntax.Literal:
		return schema.ConstantTerm(Value(e))
	case *syntax.NullExpr:
		return schema.ConstantTerm(schema.Value{})
	case *syntax.NowExpr:
		return schema.NowTerm()
	case *syntax.NameExpr:
		return b.name(e)
	case *syntax.ListExpr:
		return b.list(e)
	case *syntax.ExistsExpr:
		return b.exists(e)
	case *syntax.NotExpr:
		return schema.NotTerm(b.compile(e.X))
	case *syntax.BinaryExpr:
		return schema.BinaryTerm(operators[e.Op], b.compile(e.X), b.compile(e.Y))
	}
	return schema.AbsentTerm()
}

func (b ruleBuilder) list(e *syntax.ListExpr) *schema.Term {
	elems := make([]*schema.Term, len(e.Elems))
	for i, elem := range e.Elems {
		elems[i] = b.compile(elem)
	}
	return schema.ListTerm(elems)
}

func (b ruleBuilder) name(e *syntax.NameExpr) *schema.Term {
	path := Names(e.Parts)
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
		owner := b.entity
		if b.inExists {
			owner = b.outer
		}
		row := schema.OldRow
		if head == "new" {
			row = schema.NewRow
		}
		return b.path(row, owner, path[1:])
	case head == "outer" && b.inExists:
		return b.path(schema.OuterRow, b.outer, path[1:])
	}
	return b.path(schema.ThisRow, b.entity, path)
}

// path resolves a field, or a field over one relation, of the entity owner.
func (b ruleBuilder) path(row schema.RowRole, owner *schema.Entity, names []string) *schema.Term {
	if owner == nil {
		return b.member(row, names)
	}
	if len(names) == 0 {
		return schema.AbsentTerm()
	}
	f := owner.Field(names[0])
	if f == nil {
		return schema.AbsentTerm()
	}
	term, names := schema.FieldTerm(row, f), names[1:]
	if len(names) > 0 && f.Type.Kind == schema.Relation && !f.Type.List {
		want := f.Type.Entity.Field(names[0])
		if want == nil {
			return schema.AbsentTerm()
		}
		f, term, names = want, schema.HopTerm(row, f, want), names[1:]
	}
	switch {
	case len(names) == 0:
		return term
	case len(names) == 1 && f.Type.Kind == schema.FileKind && slices.Contains(schema.FileMembers, names[0]):
		return schema.FileTerm(term, names[0])
	}
	return schema.AbsentTerm()
}

// member resolves a name in untyped mode: a member of the row, identified by its index in
// names.
func (b ruleBuilder) member(row schema.RowRole, names []string) *schema.Term {
	if len(names) != 1 || b.names == nil || b.inExists {
		return schema.AbsentTerm()
	}
	pos := slices.Index(*b.names, names[0])
	if pos < 0 {
		pos = len(*b.names)
		*b.names = append(*b.names, names[0])
	}
	return schema.MemberTerm(row, pos)
}

func (b ruleBuilder) exists(e *syntax.ExistsExpr) *schema.Term {
	if b.model == nil || b.entity == nil {
		return schema.AbsentTerm()
	}
	target := b.model.Entity(e.Entity.Name)
	if target == nil {
		return schema.AbsentTerm()
	}
	inner := ruleBuilder{entity: target, outer: b.entity, inExists: true, model: b.model}
	return schema.ExistsTerm(target, schema.NewRule(inner.compile(e.Where), nil))
}
