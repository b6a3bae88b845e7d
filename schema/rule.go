package schema

import (
	"slices"
	"strings"
	"time"

	"runner.example/internal/caller"
)

// Truth is a value of three-valued logic, ordered so that `and` is the minimum and `or` the
// maximum.
type Truth int8

// The three values.
const (
	False Truth = iota
	Unknown
	True
)

// String returns "false", "unknown" or "true".
func (t Truth) String() string { return [...]string{"false", "unknown", "true"}[t] }

// Not negates t; the negation of Unknown is Unknown.
func (t Truth) Not() Truth { return True - t }

func truthOf(b bool) Truth {
	if b {
		return True
	}
	return False
}

// value is t as the operand of a comparison.
func (t Truth) value() Value {
	if t == Unknown {
		return absent
	}
	return BoolValue(t == True)
}

// RuleInput is the input of a rule. A value that it does not have is absent, and a comparison
// with an absent value is unknown. A RuleInput may be reused for other rows: Eval keeps no
// reference to it.
type RuleInput struct {
	// Caller is the caller of the request; nil if unknown.
	Caller *caller.Caller
	// Now is the time of the request; zero if unknown. A rule that reads it sets ReadsNow, if that is not nil.
	Now      time.Time
	ReadsNow *bool
	// Row is the current row, its values by Field.Pos. Old and New are the rows of an
	// update. Inside exists, Outer is the row that the rule is about. A row that does not
	// exist is nil. In untyped mode the values are in the order of Rule.Names.
	Row, Old, New, Outer []Value
	// NewUnknown reports that the row will be changed and New is not known yet. An exists that reads New is then
	// unknown, unless a row makes it true.
	NewUnknown bool
	// Related returns the value of a field of the row that a row's relation refers to, null if
	// there is no such row. If Related is nil, such values are absent.
	Related func(row []Value, relation *Field, id string, want *Field) (Value, error)
	// Observe is told of each rule that decides; nil: nobody is.
	Observe Observer
	// Exists reports whether x.Where is true for a row of x.Entity in the current tenant.
	// x.Where is evaluated with input.ForExists and its Row set. If Exists is nil, exists is
	// unknown.
	Exists func(x *Exists, input *RuleInput) (bool, error)
}

// An Observer is told that a part of the schema has allowed something, or has refused it: a *Policy or a *Grant for rows of
// the entity that what names, a *Scope whose keys were issued, the method and path of a route by
// its auth, its input or its query, or a rate limit with the ID that what names. Any goroutine may call it. `runner test` finds out what no test has seen with it.
type Observer func(part any, what string, allowed bool)

// ForExists is the input for the Where of an exists, without its Row.
func (s *RuleInput) ForExists() RuleInput {
	inner := *s
	inner.Row, inner.Outer = nil, s.Row
	return inner
}

// Rule is a compiled expression that is true, false or unknown for an input. It is immutable
// and safe for concurrent use.
type Rule struct {
	top      Term
	names    []string
	readsNew bool
}

// NewRule returns a rule. In untyped mode, names are the members of a row that top reads.
func NewRule(top *Term, names []string) *Rule {
	return &Rule{top: *top, names: names, readsNew: top.readsNew()}
}

// ReadsNew reports whether the rule reads the new row of an update.
func (r *Rule) ReadsNew() bool { return r.readsNew }

func (n *Term) readsNew() bool {
	switch n.kind {
	case fieldTerm, hopTerm:
		return n.row == NewRow
	case existsTerm:
		return n.exists.Where.readsNew
	case notTerm, fileTerm:
		return n.x.readsNew()
	case binaryTerm:
		return n.x.readsNew() || n.y.readsNew()
	}
	return slices.ContainsFunc(n.elems, func(elem Term) bool { return elem.readsNew() })
}

// Names are, in untyped mode, the members of a row that the rule reads: the rows of a RuleInput
// have the values of these members, in this order. In typed mode there are none.
func (r *Rule) Names() []string { return r.names }

// Eval evaluates the rule. The result is Unknown if it cannot be evaluated. Errors come only
// from Related and Exists; the result is then Unknown, and the caller must fail its operation.
// `and`, `or` and lists are evaluated from the left, and only as far as needed. Eval does
// not allocate.
func (r *Rule) Eval(s *RuleInput) (Truth, error) {
	e := evaluation{input: s}
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
	// Equal are equalities that every row must satisfy for Where to be true. They can
	// select an index; Where still decides.
	Equal []Equality
}

// Equality is `field == value` in an exists. The value does not depend on the rows of the
// exists, and it is null or of the field's kind.
type Equality struct {
	Field *Field
	value *Term
}

// Value is the value that the field must equal, given the input of ForExists. It returns
// false if the value is absent, or a claim that is not a text: then the exists is not true
// for any row.
func (q Equality) Value(s *RuleInput) (Value, bool) {
	e := evaluation{input: s}
	v := e.value(q.value)
	if q.value.kind == authTerm {
		return v, v.kind == KindText
	}
	return v, v.kind != absentKind
}

// termKind is the kind of a Term; it decides which of its fields are set.
type termKind uint8

const (
	constTerm termKind = iota // value
	fieldTerm                 // field pos of row
	hopTerm                   // want of the row that field refers to
	fileTerm                  // member of the file x
	nowTerm
	authTerm // auth value
	listTerm // elems
	existsTerm
	notTerm    // x
	binaryTerm // x op y
)

// RowRole selects a row of a RuleInput.
type RowRole uint8

// The rows of a input.
const (
	ThisRow RowRole = iota
	OldRow
	NewRow
	OuterRow
)

// Term is a part of a rule: an expression with its names resolved.
type Term struct {
	kind   termKind
	op     Operator // binaryTerm
	row    RowRole  // fieldTerm, hopTerm
	pos    int      // fieldTerm, hopTerm
	field  *Field
	want   *Field
	auth   string // authTerm
	claim  string // authTerm "claims"
	member string // fileTerm
	value  Value  // constTerm
	x, y   *Term
	elems  []Term
	exists *Exists
}

// evaluation is one evaluation of a rule.
type evaluation struct {
	input *RuleInput
	// err is the first error of Related or Exists; neither is called after it.
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
	if e.input.Exists == nil || e.err != nil {
		return Unknown
	}
	found, err := e.input.Exists(x, e.input)
	if err != nil {
		e.err = err
		return Unknown
	}
	if !found && e.input.NewUnknown && x.Where.readsNew {
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

// value is the value of a term. For a list in brackets it has only the kind: callers that
// need the elements use the term.
func (e *evaluation) value(n *Term) Value {
	switch n.kind {
	case constTerm:
		return n.value
	case fieldTerm:
		return e.at(n)
	case hopTerm:
		return e.hop(n)
	case fileTerm:
		return e.value(n.x).fileMember(n.member)
	case nowTerm:
		if e.input.Now.IsZero() {
			return absent
		}
		if e.input.ReadsNow != nil {
			*e.input.ReadsNow = true
		}
		return Now(e.input.Now)
	case authTerm:
		return e.auth(n)
	case listTerm:
		return Value{kind: KindList}
	case notTerm, binaryTerm, existsTerm:
		return e.truth(n).value()
	}
	return absent
}

// at is the value of a field of a row of the input.
func (e *evaluation) at(n *Term) Value {
	row := e.row(n)
	if n.pos >= len(row) {
		return absent
	}
	return row[n.pos]
}

// row is the row of the input that the term reads.
func (e *evaluation) row(n *Term) []Value {
	switch n.row {
	case OldRow:
		return e.input.Old
	case NewRow:
		return e.input.New
	case OuterRow:
		return e.input.Outer
	}
	return e.input.Row
}

func (e *evaluation) hop(n *Term) Value {
	relation := e.at(n)
	switch {
	case relation.kind == KindNull:
		return relation
	case relation.kind != KindText, e.input.Related == nil, e.err != nil:
		return absent
	}
	v, err := e.input.Related(e.row(n), n.field, relation.text, n.want)
	if err != nil {
		e.err = err
		return absent
	}
	return v
}

func (e *evaluation) auth(n *Term) Value {
	by := e.input.Caller
	if by == nil {
		return absent
	}
	switch n.auth {
	case "role":
		return Value{kind: someRoleKind}
	case "roles":
		return Value{kind: allRolesKind}
	case "kind":
		return TextValue(by.Kind.String())
	case "userId":
		return present(by.UserID)
	case "tenant":
		return present(by.Tenant)
	case "keyId":
		return present(by.KeyID)
	case "scope":
		return present(by.Scope)
	case "capability":
		return present(by.Capability)
	case "claims":
		if v, ok := by.Claimed[n.claim].(Value); ok {
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

// equal is ==. null is a value, and values of different kinds are unequal.
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

// haveRole reports whether v is one of the caller's roles.
func (e *evaluation) haveRole(v Value) Truth {
	return truthOf(v.kind == KindText && slices.Contains(e.input.Caller.Roles, v.text))
}

// in is `x in y`: x equals an element of y. As every comparison, it is unknown if x is
// absent, even if y is empty.
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

// contains reports whether a list has an element, or a text a substring.
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

// ordered is <, <=, > and >=. They are false if a side is null.
func ordered(op Operator, v, w Value) Truth {
	switch {
	case v.kind == absentKind || w.kind == absentKind:
		return Unknown
	case v.kind == KindNull || w.kind == KindNull:
		return False
	}
	order, ok := v.Compare(w)
	if !ok || v.kind == KindBool { // from a claim: the compiler refuses it for fields
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
