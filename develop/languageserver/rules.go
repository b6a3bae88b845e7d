package languageserver

import "runner.example/schema/syntax"

// rows are the entities that names in a rule refer to: bare names, and those after `outer.`. Both are empty
// in a rule about the caller alone.
type rows struct{ row, outer string }

// words is what the texts that an expression is compared with mean: values of an enum, or roles.
type words struct {
	kind  kind
	owner string
}

// rule records the names in a rule.
func (r *referrer) rule(e syntax.Expr, in rows) words {
	switch e := e.(type) {
	case *syntax.NameExpr:
		return r.path(e, in)
	case *syntax.ParenExpr:
		return r.rule(e.X, in)
	case *syntax.NotExpr:
		r.rule(e.X, in)
	case *syntax.ListExpr:
		for _, elem := range e.Elems {
			r.rule(elem, in)
		}
	case *syntax.ExistsExpr:
		r.refer(kindEntity, "", e.Entity)
		r.rule(e.Where, rows{row: e.Entity.Name, outer: in.row})
	case *syntax.BinaryExpr:
		x, y := r.rule(e.X, in), r.rule(e.Y, in)
		r.texts(e.Y, x)
		r.texts(e.X, y)
	}
	return words{}
}

// texts records the texts of an expression that are compared with something.
func (r *referrer) texts(e syntax.Expr, w words) {
	switch e := e.(type) {
	case *syntax.Literal:
		if w.kind != kindUnknown && e.Kind == syntax.StringLit && e.Var == "" {
			r.refer(w.kind, w.owner, syntax.Ident{Node: e.Node, Name: e.Text})
		}
	case *syntax.ListExpr:
		for _, elem := range e.Elems {
			r.texts(elem, w)
		}
	case *syntax.ParenExpr:
		r.texts(e.X, w)
	}
}

// path records the fields in a name with dots.
func (r *referrer) path(e *syntax.NameExpr, in rows) words {
	parts, row := e.Parts, in.row
	switch head := parts[0].Name; {
	case head == "auth":
		if len(parts) == 2 && (parts[1].Name == "role" || parts[1].Name == "roles") {
			return words{kind: kindRole}
		}
		return words{}
	case len(parts) > 1 && (head == "old" || head == "new"):
		parts = parts[1:]
	case len(parts) > 1 && head == "outer":
		parts, row = parts[1:], in.outer
	}
	for _, part := range parts {
		if r.field(row, part.Name) == nil {
			return words{}
		}
		r.refer(kindField, row, part)
		row = r.target(row, part.Name)
	}
	if r.isEnum(row) {
		return words{kindValue, row}
	}
	return words{}
}
