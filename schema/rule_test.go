package schema_test

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"math/big"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"runner.example/internal/caller"
	"runner.example/internal/diag"
	"runner.example/schema"
	"runner.example/schema/compiler"
	"runner.example/schema/syntax"
)

// ruleWorld is a schema whose entity Row has fields of all kinds. Its policies are the rules
// under test.
const ruleWorld = `auth { session cookie { idle: 30m } roles: [admin, staff, other] user: User tenant: Org }
enum Color { red, green, blue }
entity Org { id: id @@allow read to session }
entity User { id: id name: string? @@allow read to session }
entity Other {
  id: id
  flag: bool?
  n: int?
  s: string?
  c: Color?
  at: time?
  d: decimal(10,3)?
  back: Row?
  @@allow read to session
}
entity Row {
  id: id
  flag: bool?
  n: int?
  m: int?
  f: float?
  d: decimal(10,3)?
  e: decimal(12,2)?
  s: string?
  t: text?
  c: Color?
  c2: Color?
  at: time?
  at2: time?
  day: date?
  span: duration?
  data: bytes?
  u: uuid?
  tags: string[]?
  nums: int[]?
  meta: json?
  rel: Other?
  rel2: Other?
  owner: User?
`

// compileRules compiles each rule as a policy for updates of Row, and returns the rules and
// their trees.
func compileRules(t *testing.T, rules ...string) (*schema.Entity, []*schema.Rule, []syntax.Expr) {
	t.Helper()
	var text strings.Builder
	text.WriteString(ruleWorld)
	for _, rule := range rules {
		fmt.Fprintf(&text, "  @@allow update to session when %s\n", rule)
	}
	text.WriteString("}\n")
	src := diag.Source{Name: "app.schema", Text: []byte(text.String())}
	s, found := compiler.Compile([]diag.Source{src}, compiler.Options{})
	if s == nil {
		t.Fatalf("%s\n%v", text.String(), found)
	}
	file, _ := syntax.Parse(src)
	row := s.Entity("Row")
	var compiled []*schema.Rule
	var trees []syntax.Expr
	for _, d := range file.Decls {
		if d, ok := d.(*syntax.EntityDecl); ok && d.Name.Name == "Row" {
			for i, p := range d.Policies {
				compiled, trees = append(compiled, row.Policies[i].When), append(trees, p.When)
			}
		}
	}
	return row, compiled, trees
}

// ---- a naive interpreter of the tree ----

// record is a row as plain data: null is nil, a number is a *big.Rat, a time a time.Time, a
// duration a time.Duration, and other values have the types below.
type record map[string]any

type (
	dateText string
	uuidText string
	jsonText string
	byteText string
	noValue  struct{}
	anyRole  []string
)

// naive is an interpreter with the same inputs as a rule.
type naive struct {
	row, old, new, outer record
	who                  *caller.Caller
	now                  time.Time
	others, rows, users  map[string]record
}

func (w naive) truth(e syntax.Expr) schema.Truth {
	if b, ok := w.value(e).(bool); ok {
		return truth(b)
	}
	return schema.Unknown
}

func truth(b bool) schema.Truth {
	if b {
		return schema.True
	}
	return schema.False
}

func fromTruth(t schema.Truth) any {
	if t == schema.Unknown {
		return noValue{}
	}
	return t == schema.True
}

func (w naive) value(e syntax.Expr) any {
	switch e := e.(type) {
	case *syntax.ParenExpr:
		return w.value(e.X)
	case *syntax.NullExpr:
		return nil
	case *syntax.NowExpr:
		if w.now.IsZero() {
			return noValue{}
		}
		return w.now.Truncate(time.Millisecond)
	case *syntax.Literal:
		return literalValue(e)
	case *syntax.NameExpr:
		return w.name(e)
	case *syntax.ListExpr:
		list := []any{}
		for _, elem := range e.Elems {
			list = append(list, w.value(elem))
		}
		return list
	case *syntax.NotExpr:
		return fromTruth(w.truth(e.X).Not())
	case *syntax.ExistsExpr:
		for _, other := range w.others {
			inner := w
			inner.outer, inner.row = w.row, other
			if inner.truth(e.Where) == schema.True {
				return true
			}
		}
		return false
	case *syntax.BinaryExpr:
		switch e.Op {
		case syntax.OpAnd:
			return fromTruth(min(w.truth(e.X), w.truth(e.Y)))
		case syntax.OpOr:
			return fromTruth(max(w.truth(e.X), w.truth(e.Y)))
		}
		return fromTruth(comparison(e.Op, w.value(e.X), w.value(e.Y)))
	}
	panic(fmt.Sprintf("%T", e))
}

func literalValue(l *syntax.Literal) any {
	switch l.Kind {
	case syntax.StringLit:
		return l.Text
	case syntax.BoolLit:
		return l.Bool
	case syntax.DurationLit:
		return l.Duration
	case syntax.DecimalLit:
		r, _ := new(big.Rat).SetString(l.Text)
		return r
	}
	return new(big.Rat).SetInt64(l.Int)
}

func (w naive) name(e *syntax.NameExpr) any {
	var path []string
	for _, p := range e.Parts {
		path = append(path, p.Name)
	}
	row := w.row
	switch path[0] {
	case "auth":
		if path[1] == "claims" {
			return w.claim(path[2])
		}
		return w.auth(path[1])
	case "old":
		row, path = w.old, path[1:]
	case "new":
		row, path = w.new, path[1:]
	case "outer":
		row, path = w.outer, path[1:]
	}
	if row == nil {
		return noValue{}
	}
	if len(path) == 1 {
		return row[path[0]]
	}
	id, ok := row[path[0]].(string)
	if !ok {
		return nil
	}
	table := map[string]map[string]record{"rel": w.others, "rel2": w.others, "back": w.rows, "owner": w.users}[path[0]]
	return table[id][path[1]] // null without such a row
}

func (w naive) auth(name string) any {
	if w.who == nil {
		return noValue{}
	}
	text := map[string]string{
		"kind": w.who.Kind.String(), "userId": w.who.UserID, "tenant": w.who.Tenant,
		"keyId": w.who.KeyID, "scope": w.who.Scope, "capability": w.who.Capability,
	}
	switch name {
	case "role":
		return anyRole(w.who.Roles)
	case "roles":
		list := []any{}
		for _, r := range w.who.Roles {
			list = append(list, r)
		}
		return list
	}
	if text[name] == "" {
		return noValue{}
	}
	return text[name]
}

// claim reads the JSON of the claims.
func (w naive) claim(name string) any {
	if w.who == nil || w.who.Claims == nil {
		return noValue{}
	}
	var all map[string]any
	numbers := json.NewDecoder(strings.NewReader(string(w.who.Claims)))
	numbers.UseNumber()
	if err := numbers.Decode(&all); err != nil {
		panic(err)
	}
	return plainClaim(all[name])
}

func plainClaim(v any) any {
	switch v := v.(type) {
	case nil:
		return noValue{}
	case json.Number:
		r, _ := new(big.Rat).SetString(v.String())
		return r
	case []any:
		list := []any{}
		for _, elem := range v {
			if elem != nil {
				list = append(list, plainClaim(elem))
			}
		}
		return list
	}
	return v
}

func comparison(op syntax.Op, x, y any) schema.Truth {
	switch op {
	case syntax.OpEqual:
		return same(x, y)
	case syntax.OpNotEqual:
		return same(x, y).Not()
	case syntax.OpIn:
		return member(x, y)
	case syntax.OpNotIn:
		return member(x, y).Not()
	case syntax.OpContains:
		if _, ok := x.([]any); ok {
			return member(y, x)
		}
	}
	if x == any(noValue{}) || y == any(noValue{}) {
		return schema.Unknown
	}
	if x == nil || y == nil {
		return schema.False
	}
	x, y = alike(x, y)
	a, isText := x.(string)
	b, isText2 := y.(string)
	switch op {
	case syntax.OpContains, syntax.OpStartsWith:
		if !isText || !isText2 {
			return schema.Unknown
		}
		return truth(op == syntax.OpContains && strings.Contains(a, b) || op == syntax.OpStartsWith && strings.HasPrefix(a, b))
	}
	order, ok := order(x, y)
	if !ok {
		return schema.Unknown
	}
	return truth(map[syntax.Op]bool{
		syntax.OpLess: order < 0, syntax.OpLessEq: order <= 0, syntax.OpGreater: order > 0, syntax.OpGreaterEq: order >= 0,
	}[op])
}

func order(x, y any) (int, bool) {
	switch x := x.(type) {
	case *big.Rat:
		if y, ok := y.(*big.Rat); ok {
			return x.Cmp(y), true
		}
	case string:
		if y, ok := y.(string); ok {
			return strings.Compare(x, y), true
		}
	case dateText:
		if y, ok := y.(dateText); ok {
			return strings.Compare(string(x), string(y)), true
		}
	case time.Time:
		if y, ok := y.(time.Time); ok {
			return x.Compare(y), true
		}
	case time.Duration:
		if y, ok := y.(time.Duration); ok {
			return int(x - y), true
		}
	}
	return 0, false
}

func same(x, y any) schema.Truth {
	if x == any(noValue{}) || y == any(noValue{}) {
		return schema.Unknown
	}
	if _, ok := y.(anyRole); ok {
		x, y = y, x
	}
	if roles, ok := x.(anyRole); ok {
		text, _ := y.(string)
		return truth(slices.Contains(roles, text))
	}
	if x == nil || y == nil {
		return truth(x == y)
	}
	_, list := x.([]any)
	_, list2 := y.([]any)
	if list || list2 {
		return schema.Unknown
	}
	x, y = alike(x, y)
	if a, ok := x.(*big.Rat); ok {
		b, ok := y.(*big.Rat)
		return truth(ok && a.Cmp(b) == 0)
	}
	if a, ok := x.(time.Time); ok {
		b, ok := y.(time.Time)
		return truth(ok && a.Equal(b))
	}
	return truth(x == y)
}

// alike converts a literal to the type of the other side.
func alike(x, y any) (any, any) { return like(x, y), like(y, x) }

func like(x, y any) any {
	text, ok := x.(string)
	if _, isJSON := y.(jsonText); isJSON {
		if n, ok := x.(*big.Rat); ok {
			return jsonText(n.RatString())
		}
		if ok {
			quoted, _ := json.Marshal(text)
			return jsonText(quoted)
		}
	}
	if !ok {
		return x
	}
	switch y.(type) {
	case time.Time:
		if at, err := time.Parse(time.RFC3339, text); err == nil {
			return at
		}
	case dateText:
		return dateText(text)
	case uuidText:
		return uuidText(strings.ToLower(text))
	case byteText:
		if data, err := base64.StdEncoding.DecodeString(text); err == nil {
			return byteText(data)
		}
	}
	return x
}

func member(x, list any) schema.Truth {
	if x == any(noValue{}) {
		return schema.Unknown
	}
	if list == nil {
		return schema.False
	}
	elems, ok := list.([]any)
	if !ok {
		return schema.Unknown
	}
	found := schema.False
	for _, elem := range elems {
		found = max(found, same(x, elem))
	}
	return found
}

// ---- random rules and inputs ----

type dice struct{ *rand.Rand }

func pick[T any](d dice, from ...T) T { return from[d.IntN(len(from))] }

const (
	idA = "01j9zzzzzzzzzzzzzzzzzzzzza"
	idB = "01j9zzzzzzzzzzzzzzzzzzzzzb"
	idC = "01j9zzzzzzzzzzzzzzzzzzzzzc" // of no row
)

// names are the operands of a group that a rule can use, outside and inside exists.
var names = map[string][2][]string{
	"number": {
		{"n", "m", "f", "d", "e", "old.n", "new.d", "new.n", "rel.n", "rel.d", "old.rel.n", "auth.claims.one"},
		{"n", "d", "outer.n", "outer.f", "outer.d", "old.n", "new.e", "back.n", "outer.rel.n"},
	},
	"text": {
		{"s", "t", "old.s", "new.t", "rel.s", "auth.keyId", "auth.capability", "owner.name", "auth.claims.one"},
		{"s", "outer.s", "outer.t", "old.s", "back.s", "auth.keyId", "auth.claims.one"},
	},
	"enum": {{"c", "c2", "old.c", "rel.c"}, {"c", "outer.c", "outer.c2", "back.c"}},
	"time": {{"at", "at2", "now", "new.at", "rel.at"}, {"at", "outer.at", "now", "back.at2"}},
	"date": {{"day", "old.day"}, {"outer.day", "back.day"}},
	"span": {{"span", "new.span"}, {"outer.span", "back.span"}},
	"data": {{"data"}, {"outer.data"}},
	"uuid": {{"u", "new.u"}, {"outer.u"}},
	"bool": {{"flag", "old.flag", "rel.flag", "auth.claims.one"}, {"flag", "outer.flag", "back.flag"}},
	"rel":  {{"rel", "rel2", "old.rel"}, {"id", "outer.rel", "outer.rel2"}},
	"user": {{"owner", "auth.userId", "new.owner"}, {"outer.owner", "auth.userId"}},
	"tags": {{"tags", "old.tags", "auth.claims.many"}, {"outer.tags", "auth.claims.many"}},
	"nums": {{"nums", "new.nums", "auth.claims.many"}, {"outer.nums"}},
	"meta": {{"meta", "old.meta"}, {"outer.meta"}},
}

var literals = map[string][]string{
	"number": {"0", "1", "-1", "2", "1.5", "0.1", "1.50", "-1.0", "0.100", "9007199254740991", "9007199254740992.5", "00.10"},
	"text":   {`""`, `"a"`, `"ab"`, `"b"`, `"é"`},
	"enum":   {`"red"`, `"green"`},
	"time":   {`"2026-01-01T00:00:00Z"`, `"2026-01-01T01:00:00+01:00"`, `"2026-06-01T12:00:00.5Z"`},
	"date":   {`"2026-01-31"`, `"2025-12-31"`},
	"span":   {"1h", "60m", "500ms", "2s"},
	"data":   {`"aGk="`, `"no base64"`},
	"uuid":   {`"0B5F1D9E-0000-4000-8000-000000000001"`, `"0b5f1d9e-0000-4000-8000-000000000001"`, `"x"`},
	"bool":   {"true", "false"},
	"rel":    {`"` + idA + `"`, `"` + idC + `"`},
	"user":   {`"u1"`, `"` + idA + `"`},
	"meta":   {`"a"`, "1", `"{}"`},
}

// operand is a name or a literal of a group.
func (d dice) operand(group string, inside bool) string {
	where := 0
	if inside {
		where = 1
	}
	switch n := d.IntN(10); {
	case n == 0:
		return "null"
	case n < 4:
		return pick(d, literals[group]...)
	}
	return pick(d, names[group][where]...)
}

func (d dice) list(group string, inside bool) string {
	var elems []string
	for range d.IntN(4) {
		elems = append(elems, d.operand(group, inside))
	}
	return "[" + strings.Join(elems, ", ") + "]"
}

func (d dice) comparison(inside bool) string {
	group := pick(d, "number", "number", "text", "enum", "time", "date", "span", "data", "uuid", "bool", "rel", "user", "tags", "nums", "meta", "auth")
	x, y := "", ""
	if group != "tags" && group != "nums" && group != "auth" {
		x, y = d.operand(group, inside), d.operand(group, inside)
	}
	member := func(elem, list string) string {
		for group != "tags" && group != "nums" && strings.HasPrefix(elem, `"`) { // two literals are not a comparison of the group
			elem = pick(d, names[group][btoi(inside)]...)
		}
		return pick(d, elem+" in "+list, elem+" not in "+list, list+" contains "+elem)
	}
	ordered := x + pick(d, " < ", " <= ", " > ", " >= ") + y
	equal := x + pick(d, " == ", " != ") + y
	switch group {
	case "number", "time", "date", "span":
		return pick(d, ordered, equal, equal, member(x, d.list(group, inside)))
	case "text", "rel", "user":
		if x == "null" || y == "null" {
			return equal
		}
		return pick(d, ordered, equal, equal, member(x, d.list(group, inside)), x+pick(d, " startsWith ", " contains ")+y)
	case "tags", "nums":
		group, list := map[string]string{"tags": "text", "nums": "number"}[group], pick(d, names[group][btoi(inside)]...)
		return pick(d, member(d.operand(group, inside), list), list+pick(d, " == ", " != ")+"null")
	case "meta":
		if strings.HasPrefix(x, `"`) || strings.HasPrefix(x, "1") {
			x = "meta"
			if inside {
				x = "outer.meta"
			}
		}
		return x + pick(d, " == ", " != ") + pick(d, append(literals["meta"], "null")...)
	case "auth":
		return pick(d, `auth.role == "admin"`, `auth.role != "staff"`, `auth.role in ["admin", "staff"]`, `"other" in auth.roles`,
			`auth.roles contains "admin"`, `auth.kind == "session"`, `auth.kind in ["apiKey", "anonymous"]`, `auth.tenant == "t1"`,
			`auth.tenant != null`, `auth.role == null`, `auth.claims.plan == 1`, `auth.userId not in []`)
	}
	return pick(d, equal, equal, member(x, d.list(group, inside)))
}

func btoi(b bool) int {
	if b {
		return 1
	}
	return 0
}

func (d dice) rule(depth int, inside bool) string {
	if depth == 0 {
		return d.comparison(inside)
	}
	x := d.rule(depth-1, inside)
	switch d.IntN(9) {
	case 0, 1:
		return "(" + x + " and " + d.rule(depth-1, inside) + ")"
	case 2, 3:
		return "(" + x + " or " + d.rule(depth-1, inside) + ")"
	case 4:
		return "not (" + x + ")"
	case 5:
		return "(" + x + ") == " + d.operand("bool", inside)
	case 6:
		return pick(d, names["bool"][btoi(inside)]...)
	case 7:
		if !inside {
			return "exists(Other where " + d.rule(depth-1, true) + ")"
		}
	}
	return x
}

// record makes a random row of an entity, as plain data and as values.
func (d dice) record(t *testing.T, e *schema.Entity, id string) (record, []schema.Value) {
	t.Helper()
	plain, values := record{}, make([]schema.Value, len(e.Fields))
	for _, f := range e.Fields {
		var raw string
		var v any
		if f.Type.Kind == schema.ID {
			raw, v = `"`+id+`"`, id
		} else {
			raw, v = d.field(f)
		}
		value, err := f.Type.Parse([]byte(raw))
		if err != nil {
			t.Fatalf("%s.%s: %s: %v", e.Name, f.Name, raw, err)
		}
		plain[f.Name], values[f.Pos] = v, value
	}
	return plain, values
}

func (d dice) field(f *schema.Field) (string, any) {
	if d.IntN(4) == 0 {
		return "null", nil
	}
	if f.Type.List {
		elem := *f
		elem.Type.List = false
		var raws []string
		list := []any{}
		for range d.IntN(3) {
			raw, v := d.field(&elem)
			if v != nil {
				raws, list = append(raws, raw), append(list, v)
			}
		}
		return "[" + strings.Join(raws, ",") + "]", list
	}
	text := func(s string) (string, any) { return fmt.Sprintf("%q", s), s }
	number := func(s string) (string, any) {
		r, _ := new(big.Rat).SetString(s)
		return s, r
	}
	switch f.Type.Kind {
	case schema.Bool:
		b := pick(d, true, false)
		return fmt.Sprint(b), b
	case schema.Int:
		return number(pick(d, "0", "1", "-1", "2", "9007199254740991"))
	case schema.Float:
		raw := pick(d, "0", "1.5", "0.1", "-1", "9007199254740992", "1e300", "5e-324")
		var float float64
		if err := json.Unmarshal([]byte(raw), &float); err != nil {
			panic(err)
		}
		return raw, new(big.Rat).SetFloat64(float) // the number that the float is
	case schema.Decimal:
		return number(pick(d, "0", "1.5", "0.1", "-1.00", "1.50", "2"))
	case schema.String, schema.Text:
		return text(pick(d, "", "a", "ab", "b", "é", "ｚ"))
	case schema.EnumKind:
		return text(pick(d, "red", "green", "blue"))
	case schema.Time:
		at := time.Date(2026, 1, 1, 0, 0, pick(d, 0, 1), 0, time.UTC)
		return fmt.Sprintf("%q", at.Format(time.RFC3339)), at
	case schema.Date:
		day := pick(d, "2026-01-31", "2025-12-31", "2026-02-01")
		return fmt.Sprintf("%q", day), dateText(day)
	case schema.Duration:
		n := pick(d, 0, 2, 3600)
		return fmt.Sprint(n), time.Duration(n) * time.Second
	case schema.Bytes:
		data := pick(d, "hi", "", "x")
		return fmt.Sprintf("%q", base64.StdEncoding.EncodeToString([]byte(data))), byteText(data)
	case schema.UUID:
		u := fmt.Sprintf("0b5f1d9e-0000-4000-8000-00000000000%d", d.IntN(2))
		return fmt.Sprintf("%q", u), uuidText(u)
	case schema.JSON:
		raw := pick(d, `"a"`, "1", "{}", `[1]`)
		return raw, jsonText(raw)
	case schema.Relation:
		if f.Type.Entity.Name == "User" {
			return text(pick(d, "u1", "u2"))
		}
		return text(pick(d, idA, idB, idC))
	}
	panic(f.Type.Kind.String())
}

func (d dice) caller() *caller.Caller {
	who := caller.Caller{Kind: pick(d, caller.Session, caller.APIKey, caller.Anonymous)}
	if d.IntN(2) == 0 {
		who.UserID, who.Roles = pick(d, "u1", "u2"), pick(d, nil, []string{"admin"}, []string{"staff", "other"})
	}
	if d.IntN(2) == 0 {
		who.Tenant = "t1"
	}
	if d.IntN(2) == 0 {
		who.KeyID, who.Capability = pick(d, "a", "ab"), "b"
	}
	if who.Kind == caller.Session && d.IntN(3) > 0 {
		one := pick(d, `"a"`, `"ab"`, `""`, "1", "1.5", "-1.0", "1e2", "9007199254740993", "true", "false", "null", "[]", `["a"]`)
		many := pick(d, "[]", `["a", "b"]`, `["ab", null, 1]`, "[1, 1.50, 2]", `"a"`, "null")
		who.Claims = json.RawMessage(fmt.Sprintf(`{"one": %s, "many": %s, "sub": "ada"}`, one, many))
		var err error
		if who.Claimed, err = schema.ReadClaims(who.Claims); err != nil {
			panic(err)
		}
	}
	return pick(d, &who, &who, &who, nil)
}

func TestRulesAgreeWithANaiveInterpreter(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	d := dice{rand.New(rand.NewPCG(seed, 0))}
	rounds := 30
	if os.Getenv("RUNNER_SOAK") == "1" {
		rounds = 3000
	}
	counts := map[schema.Truth]int{}
	for range rounds {
		var rules []string
		for range 40 {
			rules = append(rules, d.rule(d.IntN(4), false))
		}
		row, compiled, trees := compileRules(t, rules...)
		for range 15 {
			w, input := d.input(t, row)
			for i, rule := range compiled {
				got, err := rule.Eval(input)
				if err != nil {
					t.Fatalf("seed %d: %s: %v", seed, rules[i], err)
				}
				want := w.truth(trees[i])
				counts[want]++
				if got != want {
					t.Fatalf("seed %d: %s\nis %v, want %v\nrow %v\nold %v\nnew %v\nothers %v\ncaller %+v, now %v",
						seed, rules[i], got, want, w.row, w.old, w.new, w.others, w.who, w.now)
				}
			}
		}
	}
	for _, truth := range []schema.Truth{schema.False, schema.Unknown, schema.True} {
		if counts[truth] < 1000 {
			t.Errorf("the rules were %v only %d times", truth, counts[truth])
		}
	}
}

// input makes the same random input for both interpreters. Its Exists also checks every
// Equality.
func (d dice) input(t *testing.T, row *schema.Entity) (naive, *schema.RuleInput) {
	other, user := row.Field("rel").Type.Entity, row.Field("owner").Type.Entity
	w := naive{others: map[string]record{}, rows: map[string]record{}, users: map[string]record{}, who: d.caller()}
	values := map[string][]schema.Value{}
	for _, id := range []string{idA, idB} {
		w.others[id], values["Other"+id] = d.record(t, other, id)
		w.rows[id], values["Row"+id] = d.record(t, row, id)
	}
	w.users["u1"], values["Useru1"] = d.record(t, user, "u1")
	s := &schema.RuleInput{Caller: w.who}
	if d.IntN(4) > 0 {
		s.Now = time.Date(2026, 1, 1, 0, 0, 0, 999_999, time.UTC)
		w.now = s.Now
	}
	w.row, s.Row = d.record(t, row, idA)
	if d.IntN(2) == 0 {
		w.old, s.Old = d.record(t, row, idA)
		w.new, s.New = d.record(t, row, idA)
	}
	s.Related = func(_ []schema.Value, relation *schema.Field, id string, want *schema.Field) (schema.Value, error) {
		found := values[relation.Type.Entity.Name+id]
		if found == nil {
			return schema.Value{}, nil
		}
		return found[want.Pos], nil
	}
	s.Exists = func(x *schema.Exists, at *schema.RuleInput) (bool, error) {
		inner, exists := at.ForExists(), false
		for _, id := range []string{idA, idB} {
			inner.Row = nil
			met := true
			for _, equal := range x.Equal {
				v, ok := equal.Value(&inner)
				met = met && ok && v.Equal(values["Other"+id][equal.Field.Pos])
			}
			inner.Row = values["Other"+id]
			truth, err := x.Where.Eval(&inner)
			if err != nil {
				return false, err
			}
			if truth == schema.True && !met {
				t.Errorf("an exists is true for %v, which violates one of its equalities", inner.Row)
			}
			exists = exists || truth == schema.True
		}
		return exists, nil
	}
	return w, s
}

func TestEvalReturnsErrorsOfHopAndExists(t *testing.T) {
	row, rules, _ := compileRules(t,
		`rel.n == 1`, `flag or rel.n == 1`, `flag and rel.n == 1`, `not (rel.n == 1)`,
		`exists(Other where n == 1)`, `not exists(Other where n == 1)`, `n == 1 or exists(Other where n == 1) or true`, `rel == rel2`)
	broken := errors.New("the store is broken")
	input := &schema.RuleInput{
		Row: make([]schema.Value, len(row.Fields)),
		Related: func([]schema.Value, *schema.Field, string, *schema.Field) (schema.Value, error) {
			return schema.Value{}, broken
		},
		Exists: func(*schema.Exists, *schema.RuleInput) (bool, error) { return true, broken },
	}
	input.Row[row.Field("rel").Pos] = schema.TextValue(idA)
	for _, tt := range []struct {
		flag bool
		want string // one letter for each rule: e an error, t true, f false
	}{{true, "eteeeetf"}, {false, "eefeeetf"}} {
		input.Row[row.Field("flag").Pos] = schema.BoolValue(tt.flag)
		got := ""
		for _, rule := range rules {
			truth, err := rule.Eval(input)
			switch {
			case err == broken && truth == schema.Unknown:
				got += "e"
			case err == nil:
				got += truth.String()[:1]
			default:
				t.Errorf("%v, %v", truth, err)
			}
		}
		if got != tt.want {
			t.Errorf("flag %v: %s, want %s", tt.flag, got, tt.want)
		}
	}
	input.Related, input.Exists = nil, nil
	for i := range 6 {
		input.Row[row.Field("flag").Pos] = schema.Value{}
		if truth, err := rules[i].Eval(input); truth != schema.Unknown || err != nil {
			t.Errorf("rule %d without a store: %v, %v", i, truth, err)
		}
	}
}

func TestExistsHasTheEqualitiesOfItsRule(t *testing.T) {
	for rule, want := range map[string]string{
		`n == 1 and s == outer.s and back == outer.id`:                    "n s back",
		`1.0 == n and "a" == s and c == "red"`:                            "n s c",
		`n == 1 or s == "a"`:                                              "",
		`not (n == 1) and s == "a"`:                                       "s",
		`n == 1.5 and d == 1.5 and flag == true`:                          "d flag",
		`n == outer.n and n == outer.d and d == outer.d and d == outer.e`: "n d",
		`at == now and at == "2026-01-01T00:00:00Z" and at == outer.at`:   "at at at",
		`n == d and n == outer.rel.n and s != "a"`:                        "",
		`back == null and (s == old.s and (c == new.c))`:                  "back s c",
		`s == auth.keyId`:                                                 "s",
	} {
		_, rules, _ := compileRules(t, "exists(Other where "+rule+")")
		var got []string
		input := &schema.RuleInput{Exists: func(x *schema.Exists, s *schema.RuleInput) (bool, error) {
			for _, equal := range x.Equal {
				got = append(got, equal.Field.Name)
			}
			return true, nil
		}}
		if truth, err := rules[0].Eval(input); truth != schema.True || err != nil {
			t.Errorf("%s: %v, %v", rule, truth, err)
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%s: equal are %v, want %s", rule, got, want)
		}
	}
}

func TestAnEqualityHasAValueOfTheFieldsKind(t *testing.T) {
	_, rules, _ := compileRules(t, `exists(Other where n == 1.0 and d == 2 and s == auth.keyId and at == "2026-01-01T01:00:00+01:00" and c == outer.c)`)
	input := &schema.RuleInput{Caller: &caller.Caller{}, Exists: func(x *schema.Exists, s *schema.RuleInput) (bool, error) {
		inner := s.ForExists()
		var got []string
		for _, equal := range x.Equal {
			v, ok := equal.Value(&inner)
			got = append(got, fmt.Sprintf("%d %s %v", v.Kind(), equal.Field.Type.AppendJSON(nil, v), ok))
		}
		absent := schema.KindFile + 1 // the first of the kinds that only rules use
		want := []string{
			fmt.Sprintf("%d 1 true", schema.KindInt), fmt.Sprintf("%d \"2.000\" true", schema.KindDecimal), fmt.Sprintf("%d null false", absent),
			fmt.Sprintf("%d \"2026-01-01T00:00:00.000Z\" true", schema.KindTime), fmt.Sprintf("%d null false", absent),
		}
		if !slices.Equal(got, want) {
			t.Errorf("got %q, want %q", got, want)
		}
		return false, nil
	}}
	if truth, err := rules[0].Eval(input); truth != schema.False || err != nil {
		t.Errorf("%v, %v", truth, err)
	}
}

func TestAGrantHasARuleForEachEntity(t *testing.T) {
	const keys = `apiKeys { scopes: { k: @system("k") {
  @grant update on A, B where n == 1 and old.n != 2
  @grant delete on A
} } }
`
	typed := mustCompile(t, keys+`entity A { id: id s: string n: int } entity B { id: id n: int }`)
	grants := typed.Scope("k").Grants
	for _, name := range []string{"A", "B"} {
		e := typed.Entity(name)
		row := make([]schema.Value, len(e.Fields))
		row[e.Field("n").Pos] = schema.IntValue(1)
		for i, want := range []schema.Truth{schema.True, schema.Unknown} {
			input := &schema.RuleInput{Row: row}
			if i == 0 {
				input.Old = row
			}
			if got, err := grants[0].Rule(e).Eval(input); got != want || err != nil {
				t.Errorf("%s: %v, %v, want %v", name, got, err, want)
			}
		}
	}
	if grants[1].Rule(typed.Entity("A")) != nil {
		t.Error("a grant without a where has a rule")
	}
}

func TestRulesInUntypedModeNameTheirMembers(t *testing.T) {
	s := mustCompile(t, `apiKeys { scopes: { k: @system("k") {
  @grant read on A where status == "open" and (total > 1 or status in tags) and a.b == 1 or exists(B where x == 1)
  @grant update on B where old.total == new.total and total != 3 and owner == auth.userId
} } }`)
	if got := s.EntityNames(); !slices.Equal(got, []string{"A", "B"}) || s.Entity("A") != nil || s.Typed {
		t.Errorf("entities %v", got)
	}
	grants := s.Scope("k").Grants
	rule := grants[0].Rule(nil)
	if got := rule.Names(); !slices.Equal(got, []string{"status", "total", "tags"}) {
		t.Fatalf("names %v", got)
	}
	free := func(raws ...string) []schema.Value {
		var row []schema.Value
		for _, raw := range raws {
			v, err := schema.ParseUntyped([]byte(raw))
			if err != nil {
				t.Fatal(err)
			}
			row = append(row, v)
		}
		return row
	}
	// In untyped mode a relation is unknown, so the rule is never true.
	if got, _ := rule.Eval(&schema.RuleInput{Row: free(`"open"`, "2", "[]")}); got != schema.Unknown {
		t.Errorf("a rule with a.b: %v", got)
	}
	rule = grants[1].Rule(nil)
	if got := rule.Names(); !slices.Equal(got, []string{"total", "owner"}) {
		t.Fatalf("names %v", got)
	}
	who := &caller.Caller{UserID: "u1"}
	for _, tt := range []struct {
		row  []schema.Value
		old  string
		want schema.Truth
	}{
		{free("1.50", `"u1"`), "1.5", schema.True},
		{free("3", `"u1"`), "3", schema.False},
		{free(`"1.5"`, `"u1"`), "1.5", schema.False},
		{free("1", "null"), "1", schema.False},
	} {
		got, err := rule.Eval(&schema.RuleInput{Caller: who, Row: tt.row, Old: free(tt.old, "null"), New: tt.row})
		if got != tt.want || err != nil {
			t.Errorf("%v: %v, %v, want %v", tt.row, got, err, tt.want)
		}
	}
}

func TestEvalDoesNotAllocate(t *testing.T) {
	row, rules, _ := compileRules(t,
		`auth.role in ["admin", "staff"] and owner == auth.userId or n in [1, 2, m] and at < now`,
		`d >= 1.5 and f != 0.1 and e < d and s startsWith "a" and rel.n != null and tags contains s`,
		`exists(Other where n == outer.n and s == "a") and not (c == "red") and span > 500ms and day == "2026-01-31"`,
		`auth.claims.plan == s or n < auth.claims.seats or s in auth.claims.groups or auth.claims.absent == 1`)
	d := dice{rand.New(rand.NewPCG(1, 2))}
	who := &caller.Caller{Kind: caller.Session, UserID: "u1", Roles: []string{"staff"}}
	var err error
	if who.Claimed, err = schema.ReadClaims([]byte(`{"plan": "pro", "seats": 2.5, "groups": ["x", "y"]}`)); err != nil {
		t.Fatal(err)
	}
	input := &schema.RuleInput{
		Caller: who, Now: time.Now(),
		Related: func([]schema.Value, *schema.Field, string, *schema.Field) (schema.Value, error) {
			return schema.IntValue(1), nil
		},
		Exists: func(*schema.Exists, *schema.RuleInput) (bool, error) { return true, nil },
	}
	for range 50 {
		_, input.Row = d.record(t, row, idA)
		for i, rule := range rules {
			if n := testing.AllocsPerRun(20, func() { _, _ = rule.Eval(input) }); n > 0 {
				t.Fatalf("rule %d: %v allocations", i, n)
			}
		}
	}
}

func BenchmarkRule(b *testing.B) {
	const text = `auth { session cookie { idle: 30m } roles: [admin] user: User }
entity User { id: id @@allow read to session }
enum Status { draft, open, paid }
entity Order { id: id owner: User status: Status total: decimal(12,2)
  @@allow read to session when auth.role == "admin" or owner == auth.userId and status in ["open", "paid"] and total >= 10
}`
	s, _ := compiler.Compile([]diag.Source{{Name: "app.schema", Text: []byte(text)}}, compiler.Options{})
	rule := s.Entity("Order").Policies[0].When
	input := &schema.RuleInput{
		Caller: &caller.Caller{Kind: caller.Session, UserID: "u1"},
		Row:    []schema.Value{schema.TextValue(idA), schema.TextValue("u1"), schema.TextValue("paid"), schema.DecimalValue("12.50")},
	}
	b.ReportAllocs()
	for b.Loop() {
		if truth, _ := rule.Eval(input); truth != schema.True {
			b.Fatal(truth)
		}
	}
}
