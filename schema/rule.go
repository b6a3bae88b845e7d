package schema

import (
	"slices"
	"strings"
	"time"

	"runner.example/internal/caller"
)

// Truth is a value of three-valued logic, ordered so that `and` is the smaller
// and `or` the larger of two.
type Truth int8

// The three values.
const (
	False Truth = iota
	Unknown
	True
)

// String gives "false", "unknown" or "true".
func (t Truth) String() string { return [...]string{"false", "unknown", "true"}[t] }

// Not is true for false, false for true and unknown for unknown.
func (t Truth) Not() Truth { return True - t }

func truthOf(b bool) Truth {
	if b {
		return True
	}
	return False
}

// value is t where a rule compares it with something.
func (t Truth) value() Value {
	if t == Unknown {
		return absent
	}
	return BoolValue(t == True)
}

// Scene is what a rule can see. What a scene does not have is absent, and
// absence makes a comparison unknown. A Scene may be used again for other rows;
// Eval keeps nothing of it.
type Scene struct {
	// Caller is who asks; nil when nothing is known about that.
	Caller *caller.Caller
	// Now is the time of the request; zero when there is none.
	Now time.Time
	// Row is the row at hand, its values by Field.Pos. Old and New are the rows
	// of an update. Outer is, inside exists, the row that the rule is about.
	// Nil: not there. In untyped mode the values stand as Rule.Names tells.
	Row, Old, New, Outer []Value
	// Hop returns the value of a field of the row that a row's relation leads to,
	// null when there is no such row. Nil: such values are absent.
	Hop func(row []Value, relation *Field, id string, want *Field) (Value, error)
	// Exists reports that a row of x.Entity, of the tenant at hand, makes x.Where
	// true, seen from scene. The scene for x.Where is InExists of it with Row
	// set. Nil: exists is unknown.
	Exists func(x *Exists, scene *Scene) (bool, error)
}

// InExists is the scene that an exists searches in, as yet without a Row.
func (s *Scene) InExists() Scene {
	inner := *s
	inner.Row, inner.Outer = nil, s.Row
	return inner
}

// Rule is a compiled expression that is true or false of a scene. It is
// immutable and safe for concurrent use.
type Rule struct {
	top   Term
	names []string
}

// NewRule makes a rule of top. names are, in untyped mode, the members of a row that
// top looks at.
func NewRule(top *Term, names []string) *Rule { return &Rule{top: *top, names: names} }

// Names are, in untyped mode, the members of a row that the rule looks at: the
// rows of a Scene hold the values of these members, in this order. In typed
// mode there are none.
func (r *Rule) Names() []string { return r.names }

// Eval evaluates the rule. Whatever cannot be evaluated is Unknown. An error
// comes from Hop or Exists alone, and the operation fails with it; the truth is
// then Unknown. What `and`, `or` and a list in brackets need not look at, from
// the left, is not looked at. Eval allocates nothing.
func (r *Rule) Eval(s *Scene) (Truth, error) {
	e := evaluation{scene: s}
	t := e.truth(&r.top)
	if e.err != nil {
		return Unknown, e.err
	}
	return t, nil
}

// Exists is an `exists(Entity where …)`.
type Exists struct {
	Entity *Entity
	// Where is about a row of Entity.
	Where *Rule
	// Equal are the equalities that every row must meet for Where to be true: an
	// index may be chosen by them. Where still decides.
	Equal []Equality
}

// Equality is `field == value` in an exists, where the value does not depend on
// the row searched for and is of the field's own kind, or null.
type Equality struct {
	Field *Field
	value *Term
}

// Value is what the field must be equal to, given the scene of InExists. It is
// false when that is absent, or a claim that is no text: then no row makes the exists
// true.
func (q Equality) Value(s *Scene) (Value, bool) {
	e := evaluation{scene: s}
	v := e.value(q.value)
	if q.value.kind == authTerm {
		return v, v.kind == KindText
	}
	return v, v.kind != absentKind
}

// termKind says what a node of a compiled rule is.
type termKind uint8

const (
	constTerm termKind = iota // value
	fieldTerm                 // field pos of row
	hopTerm                   // want of the row that field leads to
	nowTerm
	authTerm // auth value
	listTerm // elems
	existsTerm
	notTerm    // x
	binaryTerm // x op y
)

// RowRole says which row of a scene a name is about.
type RowRole uint8

const (
	ThisRow RowRole = iota
	OldRow
	NewRow
	OuterRow
)

// node is a part of a compiled rule.
type Term struct {
	kind   termKind
	op     Operator // binaryTerm
	row    RowRole  // fieldTerm, hopTerm
	pos    int      // fieldTerm, hopTerm
	field  *Field
	want   *Field
	auth   string // authTerm
	claim  string // authTerm "claims"
	value  Value  // constTerm
	x, y   *Term
	elems  []Term
	exists *Exists
}

// evaluation is one run of a rule.
type evaluation struct {
	scene *Scene
	// err is the first error of Hop or Exists; nothing is looked up after it.
	err error
}

func (e *evaluation) truth(n *Term) Truth {
	switch n.kind {
	case notTerm:
		return e.truth(n.x).Not()
	case existsTerm:
		return e.exists(n.exists)
	case binaryTerm:
		return e.binary(n)
	}
	if v := e.value(n); v.kind == KindBool {
		return truthOf(v.num != 0)
	}
	return Unknown
}

func (e *evaluation) exists(x *Exists) Truth {
	if e.scene.Exists == nil || e.err != nil {
		return Unknown
	}
	found, err := e.scene.Exists(x, e.scene)
	if err != nil {
		e.err = err
		return Unknown
	}
	return truthOf(found)
}

func (e *evaluation) binary(n *Term) Truth {
	switch n.op {
	case And:
		x := e.truth(n.x)
		if x == False || e.err != nil {
			return x
		}
		return min(x, e.truth(n.y))
	case Or:
		x := e.truth(n.x)
		if x == True || e.err != nil {
			return x
		}
		return max(x, e.truth(n.y))
	case Equal:
		return e.equal(e.value(n.x), e.value(n.y))
	case NotEqual:
		return e.equal(e.value(n.x), e.value(n.y)).Not()
	case In:
		return e.in(n.x, n.y)
	case NotIn:
		return e.in(n.x, n.y).Not()
	case Contains:
		return e.contains(n.x, n.y)
	case StartsWith:
		return onText(e.value(n.x), e.value(n.y), strings.HasPrefix)
	}
	return ordered(n.op, e.value(n.x), e.value(n.y))
}

// value is what a node stands for. Of a list in brackets it tells only that it
// is one: who looks into it has the node.
func (e *evaluation) value(n *Term) Value {
	switch n.kind {
	case constTerm:
		return n.value
	case fieldTerm:
		return e.at(n)
	case hopTerm:
		return e.hop(n)
	case nowTerm:
		if e.scene.Now.IsZero() {
			return absent
		}
		return Now(e.scene.Now)
	case authTerm:
		return e.auth(n)
	case listTerm:
		return Value{kind: KindList}
	case notTerm, binaryTerm, existsTerm:
		return e.truth(n).value()
	}
	return absent
}

// at is the value of a field of one of the scene's rows.
func (e *evaluation) at(n *Term) Value {
	row := e.row(n)
	if n.pos >= len(row) {
		return absent
	}
	return row[n.pos]
}

// row is the one of the scene's that the node is about.
func (e *evaluation) row(n *Term) []Value {
	switch n.row {
	case OldRow:
		return e.scene.Old
	case NewRow:
		return e.scene.New
	case OuterRow:
		return e.scene.Outer
	}
	return e.scene.Row
}

func (e *evaluation) hop(n *Term) Value {
	relation := e.at(n)
	switch {
	case relation.kind == KindNull:
		return relation
	case relation.kind != KindText, e.scene.Hop == nil, e.err != nil:
		return absent
	}
	v, err := e.scene.Hop(e.row(n), n.field, relation.text, n.want)
	if err != nil {
		e.err = err
		return absent
	}
	return v
}

func (e *evaluation) auth(n *Term) Value {
	who := e.scene.Caller
	if who == nil {
		return absent
	}
	switch n.auth {
	case "role":
		return Value{kind: someRoleKind}
	case "roles":
		return Value{kind: allRolesKind}
	case "kind":
		return TextValue(who.Kind.String())
	case "userId":
		return present(who.UserID)
	case "tenant":
		return present(who.Tenant)
	case "keyId":
		return present(who.KeyID)
	case "scope":
		return present(who.Scope)
	case "capability":
		return present(who.Capability)
	case "claims":
		if v, ok := who.Claimed[n.claim].(Value); ok {
			return v
		}
	}
	return absent
}

func present(s string) Value {
	if s == "" {
		return absent
	}
	return TextValue(s)
}

// equal is ==: null is a value, and values of different kinds are unequal.
func (e *evaluation) equal(v, w Value) Truth {
	switch {
	case v.kind == absentKind || w.kind == absentKind:
		return Unknown
	case v.kind == someRoleKind:
		return e.haveRole(w)
	case w.kind == someRoleKind:
		return e.haveRole(v)
	case v.kind == KindNull || w.kind == KindNull:
		return truthOf(v.kind == w.kind)
	case v.isList() || w.isList():
		return Unknown
	}
	return truthOf(v.Equal(w))
}

func (v Value) isList() bool { return v.kind == KindList || v.kind == allRolesKind }

// haveRole reports that v is one of the caller's roles.
func (e *evaluation) haveRole(v Value) Truth {
	return truthOf(v.kind == KindText && slices.Contains(e.scene.Caller.Roles, v.text))
}

// in is `x in y`: x equals one of y. Of what is not there it is unknown, also
// in an empty list: it is a comparison.
func (e *evaluation) in(x, y *Term) Truth {
	v := e.value(x)
	if y.kind == listTerm {
		return e.inBrackets(v, y)
	}
	return e.among(v, e.value(y))
}

func (e *evaluation) inBrackets(v Value, list *Term) Truth {
	if v.kind == absentKind {
		return Unknown
	}
	found := False
	for i := 0; i < len(list.elems) && found != True; i++ {
		found = max(found, e.equal(v, e.value(&list.elems[i])))
	}
	return found
}

func (e *evaluation) among(v, list Value) Truth {
	switch {
	case v.kind == absentKind || list.kind == absentKind:
		return Unknown
	case list.kind == allRolesKind:
		return e.haveRole(v)
	case list.kind == KindNull:
		return False
	case list.kind != KindList:
		return Unknown
	}
	found := False
	for _, w := range list.List() {
		found = max(found, e.equal(v, w))
	}
	return found
}

// contains is of a list that it has an element, of a text that it has a part.
func (e *evaluation) contains(x, y *Term) Truth {
	if x.kind == listTerm {
		return e.inBrackets(e.value(y), x)
	}
	v, w := e.value(x), e.value(y)
	if v.isList() {
		return e.among(w, v)
	}
	return onText(v, w, strings.Contains)
}

func onText(v, w Value, test func(s, part string) bool) Truth {
	switch {
	case v.kind == absentKind || w.kind == absentKind:
		return Unknown
	case v.kind == KindNull || w.kind == KindNull:
		return False
	case v.kind != KindText || w.kind != KindText:
		return Unknown
	}
	return truthOf(test(v.text, w.text))
}

// ordered is <, <=, > and >=: false with null.
func ordered(op Operator, v, w Value) Truth {
	switch {
	case v.kind == absentKind || w.kind == absentKind:
		return Unknown
	case v.kind == KindNull || w.kind == KindNull:
		return False
	}
	order, ok := v.Compare(w)
	if !ok || v.kind == KindBool { // a claim's: of fields that is refused
		return Unknown
	}
	switch op {
	case Less:
		return truthOf(order < 0)
	case LessOrEqual:
		return truthOf(order <= 0)
	case Greater:
		return truthOf(order > 0)
	case GreaterOrEqual:
		return truthOf(order >= 0)
	}
	return Unknown
}
