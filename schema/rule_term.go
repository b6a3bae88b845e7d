package schema

import "slices"

// Operator is a binary operator of a Term.
type Operator uint8

// The operators of rules.
const (
	Or Operator = iota
	And
	Equal
	NotEqual
	Less
	LessOrEqual
	Greater
	GreaterOrEqual
	In
	NotIn
	StartsWith
	Contains
)

// ConstantTerm is a constant.
func ConstantTerm(v Value) *Term { return &Term{kind: constTerm, value: v} }

// AbsentTerm is absent in every scene.
func AbsentTerm() *Term { return ConstantTerm(absent) }

// NowTerm is the time of the request.
func NowTerm() *Term { return &Term{kind: nowTerm} }

// AuthTerm is auth.<name> of the caller; claim names the claim of "claims".
func AuthTerm(name, claim string) *Term { return &Term{kind: authTerm, auth: name, claim: claim} }

// FieldTerm is the value of a row's field.
func FieldTerm(row RowRole, f *Field) *Term {
	return &Term{kind: fieldTerm, row: row, pos: f.Pos, field: f}
}

// MemberTerm is, in untyped mode, the member of a row at index pos of Rule.Names.
func MemberTerm(row RowRole, pos int) *Term { return &Term{kind: fieldTerm, row: row, pos: pos} }

// HopTerm is the value of a field of the row that a row's relation refers to.
func HopTerm(row RowRole, relation, want *Field) *Term {
	return &Term{kind: hopTerm, row: row, pos: relation.Pos, field: relation, want: want}
}

// FileTerm is the size, the type or the name of a file: the value of a FieldTerm or a HopTerm. It is null if there is
// no file.
func FileTerm(of *Term, member string) *Term {
	return &Term{kind: fileTerm, x: of, member: member}
}

// FileMembers are the members of a file that rules can use.
var FileMembers = []string{"size", "type", "name"}

// ListTerm is a list in brackets.
func ListTerm(elems []*Term) *Term {
	t := &Term{kind: listTerm}
	for _, elem := range elems {
		t.elems = append(t.elems, *elem)
	}
	return t
}

// ExistsTerm is true if where is true for a row of e.
func ExistsTerm(e *Entity, where *Rule) *Term {
	x := &Exists{Entity: e, Where: where}
	x.findEqual(&where.top)
	return &Term{kind: existsTerm, exists: x}
}

// NotTerm negates x.
func NotTerm(x *Term) *Term { return fold(&Term{kind: notTerm, x: x}) }

// BinaryTerm is x op y. It takes ownership of x and y: a literal is converted to the type
// that it is compared with.
func BinaryTerm(op Operator, x, y *Term) *Term {
	t := &Term{kind: binaryTerm, op: op, x: x, y: y}
	if op == And || op == Or {
		return foldLogic(t)
	}
	alignLiterals(t)
	return fold(t)
}

// fold evaluates a term whose operands are constants.
func fold(n *Term) *Term {
	if !isConstant(n.x) || n.y != nil && !isConstant(n.y) {
		return n
	}
	e := evaluation{input: &RuleInput{}}
	return ConstantTerm(e.truth(n).value())
}

func isConstant(n *Term) bool {
	return n.kind == constTerm ||
		n.kind == listTerm && !slices.ContainsFunc(n.elems, func(elem Term) bool { return !isConstant(&elem) })
}

// isTruth reports whether a term can only be true, false or absent.
func (n *Term) isTruth() bool {
	switch n.kind {
	case notTerm, binaryTerm, existsTerm:
		return true
	}
	return n.kind == constTerm && (n.value.kind == KindBool || n.value.kind == absentKind)
}

// foldLogic removes a constant side of `and` and `or`.
func foldLogic(n *Term) *Term {
	for _, side := range []struct{ x, other *Term }{{n.x, n.y}, {n.y, n.x}} {
		if side.x.kind != constTerm || side.x.value.kind != KindBool {
			continue
		}
		if side.x.value.Bool() != (n.op == And) {
			return side.x
		}
		if side.other.isTruth() {
			return side.other
		}
	}
	return fold(n)
}

// alignLiterals converts the literals of a comparison to the type that they are compared
// with: a string to a time, a date, bytes or a lower-case UUID, and any literal to JSON if
// the other side is JSON.
func alignLiterals(n *Term) {
	t := comparedAs(n.x)
	if t == nil {
		t = comparedAs(n.y)
	}
	if t != nil {
		t.align(n.x)
		t.align(n.y)
	}
}

func (t *Type) align(n *Term) {
	for i := range n.elems {
		t.align(&n.elems[i])
	}
	if n.kind != constTerm || n.value.kind == KindNull || n.value.kind == absentKind {
		return
	}
	if t.Kind == JSON {
		n.value = JSONValue(string(n.value.AppendPlain(nil)))
	} else if n.value.kind == KindText {
		if v, err := t.fromText(n.value.text); err == nil {
			n.value = v
		}
	}
}

// comparedAs is the type of a term's values, if literals of that type are written in another
// form; otherwise nil.
func comparedAs(n *Term) *Type {
	switch n.kind {
	case nowTerm:
		return &Type{Kind: Time}
	case listTerm:
		for i := range n.elems {
			if t := comparedAs(&n.elems[i]); t != nil {
				return t
			}
		}
	case fieldTerm, hopTerm:
		f := n.field
		if n.kind == hopTerm {
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

// findEqual collects the equalities that must hold for n to be true.
func (x *Exists) findEqual(n *Term) {
	switch {
	case n.kind == binaryTerm && n.op == And:
		x.findEqual(n.x)
		x.findEqual(n.y)
	case n.kind == binaryTerm && n.op == Equal:
		if !x.addEqual(n.x, n.y) {
			x.addEqual(n.y, n.x)
		}
	}
}

func (x *Exists) addEqual(field, value *Term) bool {
	if field.kind != fieldTerm || field.row != ThisRow || field.field.Type.List {
		return false
	}
	if value = asStored(value, &field.field.Type); value == nil {
		return false
	}
	x.Equal = append(x.Equal, Equality{field.field, value})
	return true
}

// asStored returns a term whose value is null, absent or of the kind that a field of the
// type stores. It returns nil if there is none, or if the value depends on the rows of the
// exists.
func asStored(n *Term, t *Type) *Term {
	switch n.kind {
	case constTerm:
		v, ok := n.value.as(t)
		if !ok {
			return nil
		}
		return ConstantTerm(v)
	case nowTerm:
		if t.Kind == Time {
			return n
		}
	case authTerm:
		if t.stores() == KindText && n.auth != "role" && n.auth != "roles" {
			return n
		}
	case fieldTerm:
		if n.row != ThisRow && !n.field.Type.List && n.field.Type.stores() == t.stores() && n.field.Type.Places == t.Places {
			return n
		}
	}
	return nil
}

// stores is the kind of the values of a field of the type.
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
	case FileKind:
		return KindFile
	case ToMany:
		return KindNull
	}
	return KindText
}

// as returns a value of the type's kind that equals v, and false if there is none.
func (v Value) as(t *Type) (Value, bool) {
	want := t.stores()
	switch {
	case v.kind == KindNull, v.kind == want && want != KindDecimal:
		return v, true
	case !v.IsNumber() || want < KindInt || want > KindDecimal:
		return Value{}, false
	}
	w, err := (&Type{Kind: t.Kind, Digits: MaxDigits, Places: t.Places}).FromNumber(v)
	return w, err == nil && w.Equal(v)
}
