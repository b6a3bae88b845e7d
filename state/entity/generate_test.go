package entity_test

import (
	"encoding/json"
	"fmt"
	"math/big"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"runner.example/internal/caller"
)

// dice makes random schemas, callers and operations.
type dice struct {
	*rand.Rand
}

// sequential skips a test in the short form, which the race detector uses: the test has no
// concurrency and takes long with it.
func sequential(t *testing.T) {
	t.Helper()
	if testing.Short() {
		t.Skip("the test has no concurrency for the race detector")
	}
}

// newSeed returns the seed of a test: random, or ENTITY_TEST_SEED. It is printed if the
// test fails.
func newSeed(t testing.TB) uint64 {
	seed := uint64(time.Now().UnixNano())
	if text := os.Getenv("ENTITY_TEST_SEED"); text != "" {
		n, err := strconv.ParseUint(text, 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		seed = n
	}
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("to repeat this run: ENTITY_TEST_SEED=%d", seed)
		}
	})
	return seed
}

func newDice(seed, stream uint64) dice { return dice{rand.New(rand.NewPCG(seed, stream))} }

func (d dice) percent(n int) bool { return d.IntN(100) < n }

func pick[T any](d dice, from ...T) T { return from[d.IntN(len(from))] }

// some keeps each element with that probability.
func some[T any](d dice, percent int, from []T) []T {
	var out []T
	for _, v := range from {
		if d.percent(percent) {
			out = append(out, v)
		}
	}
	return out
}

var (
	users   = []string{"u1", "u2", "u3"}
	tenants = []string{"t1", "t2"}
	roles   = []string{"admin", "member", "guest"}
)

// ---- schemas ----

func (d dice) app() *refApp {
	a := &refApp{enums: map[string][]string{"Color": {"red", "green", "blue"}}}
	org := &refEntity{name: "Org", named: true}
	user := &refEntity{name: "User", named: true}
	a.entities = []*refEntity{org, user}
	for i := range 2 + d.IntN(2) {
		a.entities = append(a.entities, &refEntity{name: string(rune('A' + i))})
	}
	for _, e := range a.entities {
		e.fields = append(e.fields, &refField{name: "id", kind: "id", typ: "id"})
		if !e.named && d.percent(60) {
			e.fields = append(e.fields, &refField{name: "org", kind: "relation", typ: "Org", target: "Org", tenant: true})
		}
	}
	for i, e := range a.entities {
		d.fields(a, i)
		d.indexes(e)
	}
	for i := range 2 {
		a.scopes = append(a.scopes, &refScope{name: fmt.Sprintf("k%d", i+1), allTenants: i == 1 && d.percent(60)})
	}
	for _, e := range a.entities {
		d.policies(a, e)
		for _, s := range a.scopes {
			d.grants(a, e, s)
		}
	}
	return a
}

func (d dice) fields(a *refApp, at int) {
	e := a.entities[at]
	add := func(f *refField) { e.fields = append(e.fields, f) }
	count := 2 + d.IntN(5)
	if e.named {
		count = d.IntN(3)
	}
	for i := range count {
		f := &refField{name: fmt.Sprintf("f%d", i)}
		f.kind = pick(d, "string", "string", "string", "int", "int", "int", "decimal", "bool", "enum", "enum", "time", "date", "duration", "float", "text", "uuid", "json", "bytes", "tags")
		f.typ = f.kind
		switch f.kind {
		case "string":
			f.typ, f.lo, f.hi = "string(0..6)", 0, 6
		case "decimal":
			f.typ = "decimal(6,2)"
			if d.percent(30) {
				f.lo, f.hi = 0, 100
			}
		case "int":
			if d.percent(30) {
				f.lo, f.hi = -3, 4
			}
		case "enum":
			f.typ = "Color"
		case "tags":
			f.kind, f.typ, f.list = "string", "string", true
		}
		f.optional = d.percent(40)
		if !f.optional && !f.list && d.percent(35) {
			d.setDefault(a, f)
		}
		free := f.optional || f.defText != ""
		f.hidden = free && d.percent(15)
		f.readonly = free && !f.hidden && d.percent(10)
		if d.indexable(f) {
			f.index = d.percent(20)
			f.folded = (f.kind == "string" || f.kind == "text") && d.percent(50)
			if d.percent(12) {
				e.uniques = append(e.uniques, refUnique{fields: []string{f.name}, attr: true})
			}
		}
		add(f)
	}
	if d.percent(30) {
		add(&refField{name: "createdAt", kind: "time", typ: "time", created: true})
	}
	if d.percent(30) {
		add(&refField{name: "updatedAt", kind: "time", typ: "time", updated: true})
	}
	if e.named {
		return
	}
	for i := range d.IntN(3) {
		target := a.entities[1+d.IntN(len(a.entities)-1)] // any but Org
		f := &refField{name: fmt.Sprintf("r%d", i), kind: "relation", typ: target.name, target: target.name}
		f.optional = target == e || d.percent(50)
		if target.tenantField() != nil && e.tenantField() == nil {
			f.optional, f.readonly = true, true
		}
		f.onDelete = pick(d, "", "restrict", "cascade", "clear")
		if f.onDelete == "clear" && !f.optional {
			f.onDelete = "cascade"
		}
		f.index = d.percent(20)
		add(f)
		if d.percent(25) {
			target.fields = append(target.fields, &refField{name: fmt.Sprintf("many%s%d", e.name, i), kind: "many", typ: e.name, list: true, inverse: f.name})
		}
	}
}

func (d dice) setDefault(a *refApp, f *refField) {
	switch f.kind {
	case "string", "text":
		f.def, f.defText = "d", `"d"`
	case "int":
		f.def, f.defText = 2.0, "2"
	case "decimal":
		f.def, f.defText = "1.50", "1.50"
	case "bool":
		f.def, f.defText = true, "true"
	case "enum":
		f.def, f.defText = "green", "green"
	case "time":
		f.defText = "now"
	case "duration":
		f.def, f.defText = 90.0, "90s"
	}
}

func (dice) indexable(f *refField) bool {
	return !f.list && f.kind != "json" && f.kind != "bytes" && f.inverse == ""
}

func (d dice) indexes(e *refEntity) {
	var names []string
	for _, f := range e.fields {
		if d.indexable(f) && f.kind != "id" {
			names = append(names, f.name)
		}
	}
	if len(names) < 2 {
		return
	}
	columns := func() []string {
		d.Shuffle(len(names), func(i, j int) { names[i], names[j] = names[j], names[i] })
		return slices.Clone(names[:2+d.IntN(min(2, len(names)-1))])
	}
	if d.percent(25) {
		e.uniques = append(e.uniques, refUnique{fields: columns(), global: d.percent(20)})
	}
	for range d.IntN(3) {
		written := columns()
		for i := range written {
			written[i] += pick(d, "", "", " desc", " asc")
		}
		e.indexes = append(e.indexes, strings.Join(written, ", "))
	}
}

func (d dice) policies(a *refApp, e *refEntity) {
	for _, action := range []string{"read", "insert", "update", "delete"} {
		if d.percent(12) {
			continue // no caller may
		}
		p := &refPolicy{actions: []string{action}}
		if d.percent(20) {
			p.actions = pick(d, []string{"all"}, []string{"write"}, []string{action, "read"}, []string{"write", "delete"})
		}
		p.to = pick(d, []string{"session"}, []string{"session"}, []string{"session", "anonymous"}, nil)
		if p.to == nil || d.percent(45) {
			p.when = d.rule(a, e, p.actions, 2)
		}
		e.policies = append(e.policies, p)
		if d.percent(20) {
			e.policies = append(e.policies, &refPolicy{actions: []string{action}, to: []string{"session"}, when: d.rule(a, e, []string{action}, 1)})
		}
	}
	for range d.IntN(3) {
		p := &refPolicy{deny: true, actions: pick(d, []string{"update"}, []string{"delete"}, []string{"write"}, []string{"insert"}, []string{"read"}, []string{"update", "delete"}, []string{"all"})}
		p.to = pick(d, nil, nil, []string{"session"}, []string{"apiKey"}, []string{"apiKey(k1)", "session"}, []string{"anonymous"})
		p.when = d.rule(a, e, p.actions, 2)
		e.policies = append(e.policies, p)
	}
}

func (d dice) grants(a *refApp, e *refEntity, s *refScope) {
	left := []string{"read", "insert", "update", "delete"}
	for len(left) > 0 {
		n := 1 + d.IntN(len(left))
		actions := left[:n]
		left = left[n:]
		if d.percent(15) {
			continue
		}
		g := &refGrant{actions: slices.Clone(actions), entity: e.name}
		if d.percent(30) {
			g.fields = []string{}
			for _, f := range e.stored() {
				if d.percent(75) || f.kind == "id" {
					g.fields = append(g.fields, f.name)
				}
			}
		}
		if d.percent(35) {
			g.where = d.rule(a, e, actions, 1)
		}
		s.grants = append(s.grants, g)
	}
}

// ---- rules ----

// scope is the names that a rule may use.
type ruleNames struct {
	entity, outer *refEntity
	old           bool
}

func (d dice) rule(a *refApp, e *refEntity, actions []string, depth int) *refExpr {
	old := true
	for _, action := range actions {
		old = old && (action == "update" || action == "write" || action == "all")
	}
	return d.boolean(a, ruleNames{entity: e, old: old}, depth)
}

func (d dice) boolean(a *refApp, in ruleNames, depth int) *refExpr {
	if depth > 0 {
		switch d.IntN(7) {
		case 0:
			return &refExpr{op: "and", args: []*refExpr{d.boolean(a, in, depth-1), d.boolean(a, in, depth-1)}}
		case 1, 2:
			return &refExpr{op: "or", args: []*refExpr{d.boolean(a, in, depth-1), d.boolean(a, in, depth-1)}}
		case 3:
			return &refExpr{op: "not", args: []*refExpr{d.boolean(a, in, depth-1)}}
		case 4:
			if in.outer == nil {
				return d.existsRule(a, in, depth-1)
			}
		}
	}
	if d.percent(25) {
		return d.aboutCaller()
	}
	return d.comparison(a, in)
}

func (d dice) existsRule(a *refApp, in ruleNames, depth int) *refExpr {
	inner := a.entities[d.IntN(len(a.entities))]
	names := ruleNames{entity: inner, outer: in.entity, old: in.old}
	var links []*refExpr
	for _, f := range inner.stored() {
		if f.kind == "relation" && f.target == in.entity.name {
			links = append(links, binary("==", field(f.name), field("outer.id")))
		}
	}
	for _, f := range in.entity.stored() {
		if f.kind == "relation" && f.target == inner.name {
			links = append(links, binary("==", field("id"), field("outer."+f.name)))
		}
	}
	rule := d.boolean(a, names, depth)
	if len(links) > 0 && d.percent(80) {
		rule = &refExpr{op: "and", args: []*refExpr{pick(d, links...), rule}}
		if d.percent(40) {
			rule = rule.args[0]
		}
	}
	return &refExpr{op: "exists", entity: inner.name, args: []*refExpr{rule}}
}

func field(path string) *refExpr               { return &refExpr{op: "name", path: path} }
func text(s string) *refExpr                   { return &refExpr{op: "lit", value: s, text: strconv.Quote(s)} }
func binary(op string, x, y *refExpr) *refExpr { return &refExpr{op: op, args: []*refExpr{x, y}} }
func null() *refExpr                           { return &refExpr{op: "null"} }

func listOf(elems ...*refExpr) *refExpr { return &refExpr{op: "list", args: elems} }

func (d dice) aboutCaller() *refExpr {
	role := text(pick(d, roles...))
	switch d.IntN(8) {
	case 0, 1, 2:
		return binary(pick(d, "==", "==", "!="), field("auth.role"), role)
	case 3:
		return binary(pick(d, "in", "not in"), field("auth.role"), listOf(role, text(pick(d, roles...))))
	case 4:
		return binary("contains", field("auth.roles"), role)
	case 5:
		return binary(pick(d, "==", "!="), field("auth.kind"), text(pick(d, "session", "apiKey", "anonymous")))
	case 6:
		return binary(pick(d, "==", "!="), field("auth."+pick(d, "userId", "tenant", "keyId", "claims.x")), null())
	}
	return binary("==", field("auth.scope"), text("k1"))
}

// operands returns the names that can be used, with their fields.
func (d dice) operand(a *refApp, in ruleNames) (string, *refField) {
	e, prefix := in.entity, ""
	if in.outer != nil && d.percent(30) {
		e, prefix = in.outer, "outer."
	}
	if in.old && d.percent(40) {
		e, prefix = in.entity, pick(d, "old.", "new.")
		if in.outer != nil {
			e = in.outer
		}
	}
	f := pick(d, e.stored()...)
	if f.kind == "relation" && d.percent(60) {
		target := a.entity(f.target)
		inner := pick(d, target.stored()...)
		return prefix + f.name + "." + inner.name, inner
	}
	return prefix + f.name, f
}

func (d dice) comparison(a *refApp, in ruleNames) *refExpr {
	path, f := d.operand(a, in)
	x := field(path)
	if f.list && f.inverse == "" {
		if d.percent(50) {
			return binary("contains", x, text(d.word()))
		}
		return binary(pick(d, "in", "not in"), text(d.word()), x)
	}
	if d.percent(10) {
		return binary(pick(d, "==", "!="), x, null())
	}
	var ops []string
	switch f.kind {
	case "string", "text":
		ops = []string{"==", "!=", "<", ">=", "in", "not in", "startsWith", "contains"}
	case "int", "float", "decimal", "time", "date", "duration":
		ops = []string{"==", "!=", "<", "<=", ">", ">=", "in"}
	case "bool":
		if d.percent(30) {
			return x
		}
		ops = []string{"==", "!="}
	case "enum", "uuid":
		ops = []string{"==", "!=", "in", "not in"}
	case "id", "relation":
		return d.identity(a, in, x, f)
	default: // json, bytes
		return binary(pick(d, "==", "!="), x, null())
	}
	op := pick(d, ops...)
	if (op == "in" || op == "not in") && f.kind != "duration" {
		return binary(op, x, listOf(d.literal(a, f), d.literal(a, f)))
	} else if op == "in" {
		op = "=="
	}
	if op != "startsWith" && op != "contains" && d.percent(20) {
		if other, g := d.operand(a, in); g.kind == f.kind && !g.list && g.typ == f.typ {
			return binary(op, x, field(other))
		}
	}
	if f.kind == "time" && d.percent(30) {
		return binary(pick(d, "<", "<=", ">", ">="), x, &refExpr{op: "now"})
	}
	return binary(op, x, d.literal(a, f))
}

// identity compares an id with one of the same entity.
func (d dice) identity(a *refApp, in ruleNames, x *refExpr, f *refField) *refExpr {
	entity := f.target
	if f.kind == "id" {
		for _, e := range a.entities {
			if slices.Contains(e.fields, f) {
				entity = e.name
			}
		}
	}
	op := pick(d, "==", "==", "==", "!=")
	switch {
	case entity == "User" && d.percent(70):
		return binary(op, x, field("auth.userId"))
	case entity == "User":
		return binary(op, x, text(pick(d, users...)))
	case entity == "Org" && d.percent(70):
		return binary(op, x, field("auth.tenant"))
	case entity == "Org":
		return binary(op, x, text(pick(d, tenants...)))
	case in.old && in.outer == nil && f.kind == "relation" && !strings.Contains(x.path, "."):
		return binary(op, field("old."+x.path), field("new."+x.path))
	}
	return binary(pick(d, "==", "!="), x, null())
}

// literal returns a value of the field's type, as written in rules.
func (d dice) literal(a *refApp, f *refField) *refExpr {
	number := func(s string) *refExpr {
		n, ok := new(big.Rat).SetString(s)
		if !ok {
			panic(s)
		}
		return &refExpr{op: "lit", value: n, text: s}
	}
	switch f.kind {
	case "int":
		return number(strconv.Itoa(d.small()))
	case "float":
		return number(pick(d, "0.5", "1.25", "2", "-0.5"))
	case "decimal":
		return number(pick(d, "0", "1.50", "12.50", "99.99", "12.5"))
	case "bool":
		b := d.percent(50)
		return &refExpr{op: "lit", value: b, text: strconv.FormatBool(b)}
	case "duration":
		n := int64(pick(d, 30, 90, 3600))
		return &refExpr{op: "lit", value: new(big.Rat).SetInt64(n), text: fmt.Sprintf("%ds", n)}
	}
	if f.kind == "string" || f.kind == "text" {
		return text(d.word()) // rules cannot escape other characters
	}
	v, _ := d.value(a, f).(string)
	return text(v)
}

// ---- values ----

func (d dice) word() string {
	return pick(d, "", "a", "b", "ab", "abc", "ba", "é", "aé", "d", "\U0001F600", "A", "Ab", "É", "ß", "SS", "\u212a")
}

func (d dice) small() int { return d.IntN(9) - 3 }

// value returns a canonical value of the field, not null.
func (d dice) value(a *refApp, f *refField) any {
	if f.list {
		out := []any{}
		for range d.IntN(3) {
			out = append(out, d.word())
		}
		return out
	}
	switch f.kind {
	case "string", "text":
		if d.percent(4) {
			return pick(d, "a\x00", "a\x00b", "\x00", "a\uffff")
		}
		return d.word()
	case "int":
		return json.Number(strconv.Itoa(d.small()))
	case "float":
		return pick(d, json.Number("0.5"), "1.25", "-0.5", "2", "1e3", "-0.0", "0", "-1e300")
	case "decimal":
		return pick[any](d, "0.00", "1.50", "12.50", "99.99", "7.00", "-1.50", json.Number("12.5"), json.Number("3"))
	case "bool":
		return d.percent(50)
	case "time":
		return pick(d, "2026-01-01T00:00:00.000Z", "2025-06-30T12:30:00.250Z", "2030-12-31T23:59:59.999Z")
	case "date":
		return pick(d, "2026-01-31", "2025-06-30", "2030-12-31")
	case "duration":
		return pick(d, json.Number("0"), "30", "90", "3600")
	case "enum":
		return pick(d, a.enums[f.typ]...)
	case "uuid":
		return pick(d, "00000000-0000-4000-8000-000000000001", "00000000-0000-4000-8000-000000000002", "ffffffff-ffff-4fff-8fff-ffffffffffff")
	case "bytes":
		return pick(d, "", "AAE=", "/w==")
	case "json":
		return pick[any](d, map[string]any{"a": json.Number("1"), "b": []any{"x", nil}}, []any{}, "text", json.Number("1.5"), true)
	}
	panic("no values of kind " + f.kind)
}

// ---- callers ----

func (d dice) caller() *caller.Caller {
	c := &caller.Caller{}
	switch d.IntN(12) {
	case 0:
		return c
	case 1:
		c.As = pick(d, "k1", "k2")
	case 2, 3, 4, 5, 6, 7, 8:
		c.Kind = caller.Session
		c.UserID = pick(d, users...)
		if d.percent(90) {
			c.Tenant = pick(d, tenants...)
		}
		c.Roles = some(d, 40, roles)
	default:
		c.Kind, c.KeyID = caller.APIKey, "key_1"
		c.Scope = pick(d, "k1", "k2")
		c.Capability = "test." + c.Scope
		if d.percent(85) {
			c.Tenant = pick(d, tenants...)
		}
	}
	return c
}

// fit changes a caller to one that the app can have: keys of a scope over all tenants have
// no tenant.
func (c *callerOf) fit(a *refApp) *caller.Caller {
	if s := a.scope(c.Scope); s != nil && s.allTenants {
		c.Tenant = ""
	}
	return (*caller.Caller)(c)
}

type callerOf caller.Caller

// ---- operations ----

// operation is one call of a handler.
type operationKind struct {
	op   string
	args map[string]any
}

func (o operationKind) String() string {
	encoded, err := json.Marshal(o.args)
	if err != nil {
		panic(err)
	}
	return o.op + " " + string(encoded)
}

// known returns ids of rows of an entity, for operations to use.
type known func(entity string) []string

func (d dice) operation(a *refApp, who *caller.Caller, ids known) operationKind {
	e := pick(d, a.entities...)
	if e.named && d.percent(60) {
		e = pick(d, a.entities[2:]...)
	}
	switch d.IntN(14) {
	case 0, 1, 2, 3:
		return operationKind{"insert", map[string]any{"into": e.name, "values": d.values(a, e, who, ids)}}
	case 4, 5:
		return operationKind{"update", map[string]any{"in": e.name, "set": d.set(a, e, ids), "where": d.targets(a, e, ids)}}
	case 6:
		return operationKind{"delete", map[string]any{"from": e.name, "where": d.targets(a, e, ids)}}
	case 7:
		args := map[string]any{"from": e.name, "id": d.id(e.name, ids)}
		d.selection(e, args)
		d.includes(a, e, ids, args, 1)
		return operationKind{"get", args}
	case 8, 13:
		if d.percent(70) {
			return operationKind{"aggregate", d.aggregate(a, e, ids)}
		}
		return operationKind{"count", map[string]any{"from": e.name, "where": d.conditions(a, e, ids)}}
	}
	args := map[string]any{"from": e.name}
	if d.percent(70) {
		args["where"] = d.conditions(a, e, ids)
	}
	d.selection(e, args)
	d.includes(a, e, ids, args, 1)
	if d.percent(60) {
		args["orderBy"] = d.order(e)
	}
	if d.percent(60) {
		args["limit"] = 1 + d.IntN(4)
	}
	return operationKind{"query", args}
}

func (d dice) selection(e *refEntity, args map[string]any) {
	if d.percent(65) {
		return
	}
	var names []any
	for _, f := range e.stored() {
		if d.percent(50) && (!f.hidden || d.percent(10)) {
			names = append(names, f.name)
		}
	}
	if names != nil {
		args["select"] = names
	}
}

// aggregate returns the arguments of an aggregate.
func (d dice) aggregate(a *refApp, e *refEntity, ids known) map[string]any {
	args := map[string]any{"from": e.name, "count": d.percent(80)}
	if d.percent(50) {
		args["where"] = d.conditions(a, e, ids)
	}
	add := func(member string, percent, most int, kinds ...string) {
		var names []any
		for _, f := range e.stored() {
			if !f.list && slices.Contains(kinds, f.kind) && d.percent(percent) && len(names) < most && (!f.hidden || d.percent(10)) {
				names = append(names, f.name)
			}
		}
		if names != nil {
			args[member] = names
		}
	}
	add("groupBy", 25, 2, "string", "text", "int", "float", "decimal", "time", "date", "duration", "bool", "enum", "uuid", "id", "relation")
	add("sum", 50, 3, "int", "float", "decimal", "duration")
	add("avg", 50, 3, "int", "float", "decimal", "duration")
	add("min", 30, 3, "string", "text", "int", "float", "decimal", "time", "date", "duration")
	add("max", 30, 3, "string", "text", "int", "float", "decimal", "time", "date", "duration")
	if args["groupBy"] == nil && args["sum"] == nil {
		args["count"] = true
	}
	return args
}

// includes adds relations whose rows the query includes.
func (d dice) includes(a *refApp, e *refEntity, ids known, args map[string]any, level int) {
	include := map[string]any{}
	for _, f := range e.fields {
		if f.kind != "relation" && f.inverse == "" || d.percent(70) {
			continue
		}
		inner, target := map[string]any{}, a.entity(f.targetName())
		d.selection(target, inner)
		if f.inverse != "" {
			if d.percent(30) {
				inner["where"] = d.conditions(a, target, ids)
			}
			if d.percent(40) {
				inner["orderBy"] = d.order(target)
			}
			if d.percent(60) {
				inner["limit"] = 1 + d.IntN(4)
			}
		}
		if level < 2 && d.percent(50) {
			d.includes(a, target, ids, inner, level+1)
		}
		include[f.name] = inner
	}
	if len(include) > 0 {
		args["include"] = include
	}
}

func (d dice) order(e *refEntity) []any {
	var order []any
	var named []string
	for range 1 + d.IntN(2) {
		f := pick(d, e.stored()...)
		if !d.indexable(f) || slices.Contains(named, f.name) || f.hidden && d.percent(90) {
			continue
		}
		named = append(named, f.name)
		order = append(order, []any{f.name, pick(d, "asc", "desc")})
	}
	if order == nil {
		order = []any{[]any{"id", pick(d, "asc", "desc")}}
	}
	return order
}

// unknownID returns an unused id.
const unknownID = "01hzzzzzzzzzzzzzzzzzzzzzzz"

func (d dice) id(entity string, ids known) string {
	if there := ids(entity); len(there) > 0 && d.percent(93) {
		return pick(d, there...)
	}
	switch entity {
	case "User":
		return pick(d, users...)
	case "Org":
		return pick(d, tenants...)
	}
	return unknownID
}

func (d dice) targets(a *refApp, e *refEntity, ids known) []any {
	if d.percent(65) {
		return []any{[]any{"id", "=", d.id(e.name, ids)}}
	}
	return d.conditions(a, e, ids)
}

func (d dice) conditions(a *refApp, e *refEntity, ids known) []any {
	out := []any{}
	for range d.IntN(3) {
		out = append(out, d.condition(a, e, ids, 2))
	}
	return out
}

func (d dice) condition(a *refApp, e *refEntity, ids known, depth int) []any {
	if depth > 0 && d.percent(30) {
		if d.percent(40) {
			return []any{"not", d.condition(a, e, ids, depth-1)}
		}
		c := []any{"or"}
		for range 1 + d.IntN(3) {
			c = append(c, d.condition(a, e, ids, depth-1))
		}
		return c
	}
	f := pick(d, e.stored()...)
	if f.hidden && d.percent(90) {
		f = e.field("id")
	}
	value := func() any {
		if f.kind == "id" {
			return d.id(e.name, ids)
		}
		if f.kind == "relation" {
			return d.id(f.target, ids)
		}
		return d.value(a, f)
	}
	var ops []string
	switch {
	case f.list && d.percent(40):
		return []any{f.name, "contains", d.word(), "ignoreCase"}
	case f.list:
		return []any{f.name, "contains", d.word()}
	case (f.kind == "string" || f.kind == "text") && d.percent(40):
		return []any{f.name, pick(d, "=", "startsWith", "contains"), d.value(a, f), "ignoreCase"}
	case f.kind == "json" || f.kind == "bytes":
		return []any{f.name, pick(d, "=", "!="), nil}
	case f.kind == "string" || f.kind == "text":
		ops = []string{"=", "=", "!=", "<", "<=", ">", ">=", "in", "startsWith", "contains"}
	case f.kind == "bool" || f.kind == "enum" || f.kind == "id" || f.kind == "relation" || f.kind == "uuid":
		ops = []string{"=", "=", "!=", "in"}
	default:
		ops = []string{"=", "!=", "<", "<=", ">", ">=", "in"}
	}
	op := pick(d, ops...)
	switch {
	case op == "in":
		values := []any{}
		for range d.IntN(4) {
			values = append(values, value())
		}
		return []any{f.name, op, values}
	case (op == "=" || op == "!=") && d.percent(20):
		return []any{f.name, op, nil}
	}
	return []any{f.name, op, value()}
}

// fieldValue returns a value to write to the field, rarely an invalid one.
func (d dice) fieldValue(a *refApp, f *refField, ids known) any {
	switch {
	case f.optional && d.percent(20), d.percent(1):
		return nil
	case d.percent(1):
		return map[string]any{"not": "a value"}
	case f.kind == "relation":
		return d.id(f.target, ids)
	case f.kind == "id":
		return d.id("", func(string) []string { return users })
	}
	return d.value(a, f)
}

func (d dice) row(a *refApp, e *refEntity, who *caller.Caller, ids known) map[string]any {
	values := map[string]any{}
	for _, f := range e.stored() {
		chance := 96
		switch {
		case f.kind == "id" && e.named:
			values["id"] = pick(d, map[string][]string{"User": users, "Org": tenants}[e.name]...)
			continue
		case f.tenant:
			chance = 1
			if s := a.scope(who.Scope + who.As); who.Kind == caller.System || s != nil && s.allTenants {
				chance = 97
			}
		case f.hidden, f.readonly, f.kind == "id", f.created, f.updated:
			chance = 2
			if f.hidden && who.Kind != caller.Session {
				chance = 30
			}
			if f.kind == "id" && who.Kind == caller.System {
				chance = 0
			}
		case f.optional || f.def != nil || f.defText != "":
			chance = 55
		}
		if d.percent(chance) {
			values[f.name] = d.fieldValue(a, f, ids)
		}
		if f.tenant && values[f.name] != nil {
			values[f.name] = pick(d, tenants...)
		}
	}
	return values
}

func (d dice) values(a *refApp, e *refEntity, who *caller.Caller, ids known) any {
	if d.percent(75) {
		return d.row(a, e, who, ids)
	}
	list := []any{}
	for range 1 + d.IntN(3) {
		list = append(list, d.row(a, e, who, ids))
	}
	return list
}

func (d dice) set(a *refApp, e *refEntity, ids known) map[string]any {
	values := map[string]any{}
	for range 1 + d.IntN(2) {
		f := pick(d, e.stored()...)
		if f.kind == "id" || f.created || f.updated || f.readonly || f.hidden || f.tenant {
			if d.percent(93) {
				continue
			}
		}
		values[f.name] = d.fieldValue(a, f, ids)
		if f.tenant {
			values[f.name] = pick(d, tenants...)
		}
	}
	for _, f := range e.stored() {
		if len(values) == 0 && !f.readonly && !f.hidden && !f.tenant && !f.created && !f.updated && f.kind != "id" {
			values[f.name] = d.fieldValue(a, f, ids)
		}
	}
	if len(values) == 0 {
		values["id"] = unknownID
	}
	return values
}
