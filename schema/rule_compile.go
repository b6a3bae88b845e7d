package schema

import (
	"slices"
	"strings"
)

// rulePlace says what names mean in the rule that is compiled.
type rulePlace struct {
	// entity owns the bare names; nil in @issue and in untyped mode.
	entity *Entity
	// outer is the row at hand inside exists.
	outer    *Entity
	inExists bool
	model    *Schema
	// names collects the members that a rule of untyped mode looks at; nil in
	// typed mode.
	names *[]string
}

// compileRule makes a rule of an expression that was checked. What cannot be
// resolved is absent.
func compileRule(e Expr, in rulePlace) *Rule {
	r := &Rule{}
	if in.entity == nil {
		in.names = &r.names
	}
	r.top = *in.compile(e)
	return r
}

func constant(v Value) *node { return &node{kind: constNode, value: v} }

func (in rulePlace) compile(e Expr) *node {
	switch e := e.(type) {
	case *ParenExpr:
		return in.compile(e.X)
	case *Literal:
		return constant(e.constant())
	case *NullExpr:
		return constant(Value{})
	case *NowExpr:
		return &node{kind: nowNode}
	case *NameExpr:
		return in.name(e)
	case *ListExpr:
		return in.list(e)
	case *ExistsExpr:
		return in.exists(e)
	case *NotExpr:
		return fold(&node{kind: notNode, x: in.compile(e.X)})
	case *BinaryExpr:
		n := &node{kind: binaryNode, op: e.Op, x: in.compile(e.X), y: in.compile(e.Y)}
		if e.Op == OpAnd || e.Op == OpOr {
			return foldLogic(n)
		}
		alignLiterals(n)
		return fold(n)
	}
	return constant(absent)
}

// constant is the value of a literal.
func (l *Literal) constant() Value {
	switch l.Kind {
	case StringLit:
		return TextValue(l.Text)
	case IntLit, SizeLit:
		return IntValue(l.Int)
	case DecimalLit:
		return DecimalValue(tidyDigits(l.Text))
	case DurationLit:
		return Value{kind: KindDuration, num: l.Duration.Milliseconds()}
	case BoolLit:
		return BoolValue(l.Bool)
	}
	return absent
}

// tidyDigits cuts needless zeros off the front of a decimal, and the sign off a
// zero.
func tidyDigits(text string) string {
	digits, negative := strings.CutPrefix(text, "-")
	whole, fraction, point := strings.Cut(digits, ".")
	whole = strings.TrimLeft(whole, "0")
	negative = negative && strings.Trim(whole+fraction, "0") != ""
	if whole == "" {
		whole = "0"
	}
	if point {
		whole += "." + fraction
	}
	if negative {
		return "-" + whole
	}
	return whole
}

func (in rulePlace) list(e *ListExpr) *node {
	n := &node{kind: listNode}
	for _, elem := range e.Elems {
		n.elems = append(n.elems, *in.compile(elem))
	}
	return n
}

func (in rulePlace) name(e *NameExpr) *node {
	path := namesOf(e.Parts)
	switch head := path[0]; {
	case head == "auth":
		switch {
		case len(path) == 2:
			return &node{kind: authNode, auth: path[1]}
		case len(path) == 3 && path[1] == "claims":
			return &node{kind: authNode, auth: path[1], claim: path[2]}
		}
		return constant(absent)
	case head == "old" || head == "new":
		owner := in.entity
		if in.inExists {
			owner = in.outer
		}
		row := oldRow
		if head == "new" {
			row = newRow
		}
		return in.path(row, owner, path[1:])
	case head == "outer" && in.inExists:
		return in.path(outerRow, in.outer, path[1:])
	}
	return in.path(theRow, in.entity, path)
}

// path resolves the field that names lead to, seen from a row of the entity.
func (in rulePlace) path(row rowOf, owner *Entity, names []string) *node {
	if owner == nil {
		return in.member(row, names)
	}
	if len(names) == 0 || len(names) > 2 {
		return constant(absent)
	}
	f := owner.Field(names[0])
	switch {
	case f == nil:
		return constant(absent)
	case len(names) == 1:
		return &node{kind: fieldNode, row: row, pos: f.Pos, field: f}
	case f.Type.Kind != Relation || f.Type.List:
		return constant(absent)
	}
	want := f.Type.Entity.Field(names[1])
	if want == nil {
		return constant(absent)
	}
	return &node{kind: hopNode, row: row, pos: f.Pos, field: f, want: want}
}

// member is a name of untyped mode: a member of the row, known by its place
// among those that the rule looks at.
func (in rulePlace) member(row rowOf, names []string) *node {
	if len(names) != 1 || in.names == nil || in.inExists {
		return constant(absent)
	}
	pos := slices.Index(*in.names, names[0])
	if pos < 0 {
		pos = len(*in.names)
		*in.names = append(*in.names, names[0])
	}
	return &node{kind: fieldNode, row: row, pos: pos}
}

func (in rulePlace) exists(e *ExistsExpr) *node {
	if in.model == nil || in.entity == nil {
		return constant(absent)
	}
	target := in.model.Entity(e.Entity.Name)
	if target == nil {
		return constant(absent)
	}
	where := &Rule{}
	inner := rulePlace{entity: target, outer: in.entity, inExists: true, model: in.model}
	where.top = *inner.compile(e.Where)
	x := &Exists{Entity: target, Where: where}
	x.findEqual(&where.top)
	return &node{kind: existsNode, exists: x}
}

// ---- folding ----

// fold evaluates what does not depend on a scene.
func fold(n *node) *node {
	if !isConstant(n.x) || n.y != nil && !isConstant(n.y) {
		return n
	}
	e := evaluation{scene: &Scene{}}
	return constant(e.truth(n).value())
}

func isConstant(n *node) bool {
	return n.kind == constNode || n.kind == listNode && !slices.ContainsFunc(n.elems, func(elem node) bool { return !isConstant(&elem) })
}

// isTruth reports a node that is true, false or absent, and nothing else.
func (n *node) isTruth() bool {
	switch n.kind {
	case notNode, binaryNode, existsNode:
		return true
	}
	return n.kind == constNode && (n.value.kind == KindBool || n.value.kind == absentKind)
}

// foldLogic drops the side of `and` and `or` that cannot matter.
func foldLogic(n *node) *node {
	for _, side := range []struct{ x, other *node }{{n.x, n.y}, {n.y, n.x}} {
		if side.x.kind != constNode || side.x.value.kind != KindBool {
			continue
		}
		if side.x.value.Bool() != (n.op == OpAnd) {
			return side.x
		}
		if side.other.isTruth() {
			return side.other
		}
	}
	return fold(n)
}

// alignLiterals makes the literals of a comparison what they are compared with:
// a string is a time, a date, bytes, or a UUID in small letters; beside JSON, any
// literal is a JSON value.
func alignLiterals(n *node) {
	t := comparedAs(n.x)
	if t == nil {
		t = comparedAs(n.y)
	}
	if t != nil {
		t.align(n.x)
		t.align(n.y)
	}
}

func (t *Type) align(n *node) {
	for i := range n.elems {
		t.align(&n.elems[i])
	}
	if n.kind != constNode || n.value.kind == KindNull || n.value.kind == absentKind {
		return
	}
	if t.Kind == JSON {
		n.value = JSONValue(string(n.value.appendPlain(nil)))
	} else if n.value.kind == KindText {
		if v, err := t.fromText(n.value.text); err == nil {
			n.value = v
		}
	}
}

// comparedAs is the type whose values a node has, if literals stand for them in
// another form.
func comparedAs(n *node) *Type {
	switch n.kind {
	case nowNode:
		return &Type{Kind: Time}
	case listNode:
		for i := range n.elems {
			if t := comparedAs(&n.elems[i]); t != nil {
				return t
			}
		}
	case fieldNode, hopNode:
		f := n.field
		if n.kind == hopNode {
			f = n.want
		}
		if f == nil {
			return nil
		}
		switch f.Type.Kind {
		case Time, Date, Bytes, UUID, JSON:
			return &Type{Kind: f.Type.Kind}
		}
	}
	return nil
}

// ---- what an exists asks for ----

// findEqual notes the equalities that n, all of it, cannot be true without.
func (x *Exists) findEqual(n *node) {
	switch {
	case n.kind == binaryNode && n.op == OpAnd:
		x.findEqual(n.x)
		x.findEqual(n.y)
	case n.kind == binaryNode && n.op == OpEqual:
		if !x.addEqual(n.x, n.y) {
			x.addEqual(n.y, n.x)
		}
	}
}

func (x *Exists) addEqual(field, value *node) bool {
	if field.kind != fieldNode || field.row != theRow || field.field.Type.List {
		return false
	}
	if value = asStored(value, &field.field.Type); value == nil {
		return false
	}
	x.Equal = append(x.Equal, Equality{field.field, value})
	return true
}

// asStored returns a node whose value is, if not null or absent, of the very
// kind that a field of the type stores; nil when there is none, or when it
// depends on the row searched for or on another.
func asStored(n *node, t *Type) *node {
	switch n.kind {
	case constNode:
		v, ok := n.value.as(t)
		if !ok {
			return nil
		}
		return constant(v)
	case nowNode:
		if t.Kind == Time {
			return n
		}
	case authNode:
		if t.stores() == KindText && n.auth != "role" && n.auth != "roles" {
			return n
		}
	case fieldNode:
		if n.row != theRow && !n.field.Type.List && n.field.Type.stores() == t.stores() && n.field.Type.Places == t.Places {
			return n
		}
	}
	return nil
}

// stores is the kind of the type's values.
func (t *Type) stores() ValueKind {
	switch t.Kind {
	case Int:
		return KindInt
	case Float:
		return KindFloat
	case Decimal:
		return KindDecimal
	case Bool:
		return KindBool
	case Time:
		return KindTime
	case Date:
		return KindDate
	case Duration:
		return KindDuration
	case JSON, Object:
		return KindJSON
	case Bytes:
		return KindBytes
	case ToMany:
		return KindNull
	}
	return KindText
}

// as returns v as a value of the type's kind that equals it. False when there
// is none.
func (v Value) as(t *Type) (Value, bool) {
	want := t.stores()
	switch {
	case v.kind == KindNull, v.kind == want && want != KindDecimal:
		return v, true
	case !v.isNumber() || want < KindInt || want > KindDecimal:
		return Value{}, false
	}
	raw := v.appendJSON(nil)
	if v.kind == KindDecimal {
		raw = []byte(v.text)
	}
	w, err := (&Type{Kind: t.Kind, Digits: maxDigits, Places: t.Places}).Parse(raw)
	return w, err == nil && w.Equal(v)
}
