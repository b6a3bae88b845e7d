package schema

import (
	"cmp"
	"math/big"
	"strings"
	"time"

	"runner.example/internal/caller"
)

// truth is a value of three-valued logic, ordered so that `and` is the smaller
// and `or` the larger of two.
type truth int8

const (
	isFalse truth = iota
	isUnknown
	isTrue
)

func truthOf(b bool) truth {
	if b {
		return isTrue
	}
	return isFalse
}

func (t truth) not() truth { return isTrue - t }

// scene is what a rule can see. What a scene does not have is absent, and
// absence makes a comparison unknown.
type scene struct {
	// caller is nil when nothing is known about who calls.
	caller *caller.Caller
}

// The values of expressions are nil (null), bool, string, *big.Rat (every
// number), time.Duration, list, roles and absent.
type (
	list []any
	// roles is auth.role: equal to each role that the caller has.
	roles []string
	// absent stands for what the scene does not have and for faults.
	absent struct{}
)

// truth evaluates a rule. Whatever cannot be evaluated is unknown.
func (s scene) truth(e Expr) truth {
	switch e := e.(type) {
	case *ParenExpr:
		return s.truth(e.X)
	case *NotExpr:
		return s.truth(e.X).not()
	case *BinaryExpr:
		return s.binary(e)
	}
	if b, ok := s.value(e).(bool); ok {
		return truthOf(b)
	}
	return isUnknown
}

func (s scene) binary(e *BinaryExpr) truth {
	switch e.Op {
	case OpAnd:
		return min(s.truth(e.X), s.truth(e.Y))
	case OpOr:
		return max(s.truth(e.X), s.truth(e.Y))
	}
	x, y := s.value(e.X), s.value(e.Y)
	switch e.Op {
	case OpEqual:
		return equal(x, y)
	case OpNotEqual:
		return equal(x, y).not()
	case OpIn:
		return among(x, y)
	case OpNotIn:
		return among(x, y).not()
	case OpContains:
		return contains(x, y)
	case OpStartsWith:
		return onText(x, y, strings.HasPrefix)
	}
	return ordered(e.Op, x, y)
}

func (s scene) value(e Expr) any {
	switch e := e.(type) {
	case *ParenExpr:
		return s.value(e.X)
	case *NullExpr:
		return nil
	case *Literal:
		return e.constant()
	case *ListExpr:
		values := make(list, len(e.Elems))
		for i, elem := range e.Elems {
			values[i] = s.value(elem)
		}
		return values
	case *NameExpr:
		return s.name(e)
	case *NotExpr, *BinaryExpr:
		switch s.truth(e) {
		case isTrue:
			return true
		case isFalse:
			return false
		}
	}
	return absent{}
}

func (s scene) name(e *NameExpr) any {
	if s.caller == nil || len(e.Parts) != 2 || e.Parts[0].Name != "auth" {
		return absent{}
	}
	who := s.caller
	switch e.Parts[1].Name {
	case "kind":
		return who.Kind.String()
	case "userId":
		return present(who.UserID)
	case "tenant":
		return present(who.Tenant)
	case "role":
		return roles(who.Roles)
	case "roles":
		values := make(list, len(who.Roles))
		for i, r := range who.Roles {
			values[i] = r
		}
		return values
	case "keyId":
		return present(who.KeyID)
	case "scope":
		return present(who.Scope)
	case "capability":
		return present(who.Capability)
	}
	return absent{}
}

func present(s string) any {
	if s == "" {
		return absent{}
	}
	return s
}

// constant is the value of a literal.
func (l *Literal) constant() any {
	switch l.Kind {
	case StringLit:
		return l.Text
	case IntLit, SizeLit:
		return new(big.Rat).SetInt64(l.Int)
	case DecimalLit:
		if r, ok := new(big.Rat).SetString(l.Text); ok {
			return r
		}
	case DurationLit:
		return l.Duration
	case BoolLit:
		return l.Bool
	}
	return absent{}
}

func isAbsent(v any) bool {
	_, yes := v.(absent)
	return yes
}

// equal is ==: null is a value, and values of different types are unequal.
func equal(x, y any) truth {
	if isAbsent(x) || isAbsent(y) {
		return isUnknown
	}
	if mine, ok := y.(roles); ok {
		return mine.have(x)
	}
	switch x := x.(type) {
	case nil:
		return truthOf(y == nil)
	case roles:
		return x.have(y)
	case list:
		if y == nil {
			return isFalse
		}
		return isUnknown
	case *big.Rat:
		n, ok := y.(*big.Rat)
		return truthOf(ok && x.Cmp(n) == 0)
	}
	if _, ok := y.(list); ok {
		return isUnknown
	}
	return truthOf(x == y)
}

func (r roles) have(v any) truth {
	for _, role := range r {
		if v == any(role) {
			return isTrue
		}
	}
	return isFalse
}

// among is `x in y`: x equals one of y.
func among(x, y any) truth {
	values, ok := y.(list)
	if !ok {
		return isUnknown
	}
	found := isFalse
	for _, v := range values {
		found = max(found, equal(x, v))
	}
	if isAbsent(x) {
		return isUnknown // also of an empty list: it is a comparison
	}
	return found
}

func contains(x, y any) truth {
	if _, ok := x.(list); ok {
		return among(y, x)
	}
	return onText(x, y, strings.Contains)
}

func onText(x, y any, test func(s, part string) bool) truth {
	if isAbsent(x) || isAbsent(y) {
		return isUnknown
	}
	if x == nil || y == nil {
		return isFalse
	}
	a, ok1 := x.(string)
	b, ok2 := y.(string)
	if !ok1 || !ok2 {
		return isUnknown
	}
	return truthOf(test(a, b))
}

// ordered is <, <=, > and >=: false with null.
func ordered(op Op, x, y any) truth {
	if isAbsent(x) || isAbsent(y) {
		return isUnknown
	}
	if x == nil || y == nil {
		return isFalse
	}
	order, ok := compare(x, y)
	if !ok {
		return isUnknown
	}
	switch op {
	case OpLess:
		return truthOf(order < 0)
	case OpLessEq:
		return truthOf(order <= 0)
	case OpGreater:
		return truthOf(order > 0)
	case OpGreaterEq:
		return truthOf(order >= 0)
	}
	return isUnknown
}

// compare orders two values of one type; false when they have no order.
func compare(x, y any) (int, bool) {
	switch x := x.(type) {
	case *big.Rat:
		if y, ok := y.(*big.Rat); ok {
			return x.Cmp(y), true
		}
	case string:
		if y, ok := y.(string); ok {
			return strings.Compare(x, y), true // the order of code points
		}
	case time.Duration:
		if y, ok := y.(time.Duration); ok {
			return cmp.Compare(x, y), true
		}
	}
	return 0, false
}
