package entity_test

import (
	"context"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"runner.example/internal/caller"
	"runner.example/internal/fault"
	"runner.example/state/entity"
	"runner.example/state/store"
)

// A side is one of two stores with the same schema and the same operations. One of them
// also has the rows of another tenant.
type side struct {
	*rig
	// symbols name the ids of this side: "#3" is the fourth row that is on both sides, "!3"
	// a row of the other tenant.
	symbols map[string]string // id: symbol
	ids     map[string]string // symbol: id
	made    int
	cursor  string // of the last page that had a cursor
}

func newSide(t testing.TB, schema string) *side {
	return &side{rig: newRig(t, schema), symbols: map[string]string{}, ids: map[string]string{}}
}

func (s *side) name(symbol, id string) {
	s.symbols[id], s.ids[symbol] = symbol, id
}

var (
	anyID     = regexp.MustCompile(`\b[0-9a-hjkmnp-tv-z]{26}\b`)
	anySymbol = regexp.MustCompile(`[#!][0-9]+\b`)
	anyCursor = regexp.MustCompile(`"nextCursor":"([^"]*)"`)
)

// masked replaces ids by symbols and cursors by their length, because both are random.
// Everything else must be equal.
func (s *side) masked(text string) string {
	text = anyCursor.ReplaceAllStringFunc(text, func(m string) string {
		return fmt.Sprintf(`"nextCursor":%d`, len(m))
	})
	return anyID.ReplaceAllStringFunc(text, func(id string) string {
		if symbol := s.symbols[id]; symbol != "" {
			return symbol
		}
		return "?"
	})
}

// run runs a program in one transaction and returns its results exactly. meanwhile commits
// before the program does, and must not make it run again.
func (s *side) run(who *caller.Caller, maxRows int, program []operationKind, commit bool, meanwhile func()) (observed []string) {
	s.Helper()
	_, err := s.store.Update(context.Background(), func(tx *store.Tx) error {
		if tx.Attempt() > 1 {
			s.Errorf("%s: the program runs again because of another tenant's write: %v", describe(who), program)
			return errGivenUp
		}
		var a entity.Access
		a.Reset(s.model, tx, who, maxRows)
		for _, o := range program {
			observed = append(observed, s.observed(&a, o))
		}
		meanwhile()
		if err := tx.Set([]byte("marker"), nil); err != nil {
			return err
		}
		if !commit {
			return errGivenUp
		}
		return nil
	})
	if err != nil && commit {
		observed = append(observed, "commit: "+string(fault.CodeOf(err)))
	}
	for _, o := range program {
		s.nameNew(o)
	}
	for i := range observed {
		observed[i] = s.masked(observed[i])
	}
	return observed
}

func (s *side) observed(a *entity.Access, o operationKind) string {
	s.Helper()
	encoded, err := json.Marshal(o.args)
	if err != nil {
		s.Fatal(err)
	}
	args := anySymbol.ReplaceAllStringFunc(string(encoded), func(symbol string) string { return s.ids[symbol] })
	args = strings.ReplaceAll(args, "LAST CURSOR", s.cursor)
	var out entity.Result
	if err := a.Do(o.op, []byte(args), &out); err != nil {
		f := fault.Of(err)
		return fmt.Sprintf("%s %q, %d rows touched", f.Code, f.Detail, a.Touched())
	}
	if o.op == "query" {
		if m := anyCursor.FindSubmatch(out.JSON); m != nil {
			s.cursor = string(m[1])
		}
	}
	return fmt.Sprintf("%s, %d rows touched", out.JSON, a.Touched())
}

// nameNew assigns symbols to the rows of an insert.
func (s *side) nameNew(o operationKind) {
	s.Helper()
	if o.op != "insert" {
		return
	}
	err := s.store.View(context.Background(), func(tx *store.Tx) error {
		for _, id := range s.idsOf(tx, o.args["into"].(string)) {
			if s.symbols[id] == "" {
				s.name(fmt.Sprintf("#%d", s.made), id)
				s.made++
			}
		}
		return nil
	})
	if err != nil {
		s.Error(err)
	}
}

func (s *side) idsOf(tx *store.Tx, name string) (ids []string) {
	s.Helper()
	var a entity.Access
	a.Reset(s.model, tx, system, 100_000)
	got := call(s, &a, "query", map[string]any{"from": name, "select": []any{"id"}, "orderBy": []any{[]any{"id", "asc"}}, "limit": 1000})
	if got.code != "" {
		s.Fatal(got)
	}
	for _, row := range got.result["rows"].([]any) {
		if id := row.(map[string]any)["id"].(string); anyID.MatchString(id) {
			ids = append(ids, id)
		}
	}
	return ids
}

// pair is a store with the rows of tenant t2 and one without.
type pair struct {
	app            *refApp
	schema         string
	names          []string // of the entities
	alone, crowded *side
	// symbols are the rows by entity that programs may name, also those of the other
	// tenant.
	symbols map[string][]string
	count   int
}

// TestTenantNoninterference compares a store with the rows of another tenant and one
// without: results, faults, texts and the number of rows touched are equal.
func TestTenantNoninterference(t *testing.T) {
	sequential(t)
	seed := newSeed(t)
	programs, perSchema := 300, 25
	if long() {
		programs = 10_000
	}
	answers := map[string]int{}
	for i := range programs / perSchema {
		d := newDice(seed, uint64(i))
		p := newPair(t, d)
		for range perSchema {
			if !p.program(t, d, answers) {
				break
			}
		}
		p.close()
		if t.Failed() {
			return
		}
	}
	t.Logf("answers: %v", answers)
	for _, want := range []string{"ok", "not_found", "denied", "conflict", "limit", "invalid"} {
		if long() && answers[want] < programs/100 {
			t.Errorf("only %d answers were %s: the programs cover too little", answers[want], want)
		}
	}
}

// tenantApp is a random app with tenant entities and without declared indexes that are
// unique across tenants.
func tenantApp(d dice) *refApp {
	for {
		app := d.app()
		tenants := 0
		for _, e := range app.entities {
			for i := range e.uniques {
				e.uniques[i].global = false
			}
			if e.tenantField() != nil {
				tenants++
			}
		}
		for _, s := range app.scopes {
			s.allTenants = false
		}
		if tenants >= 2 {
			return app
		}
	}
}

func newPair(t *testing.T, d dice) *pair {
	app := tenantApp(d)
	p := pairOf(t, app.schema())
	p.app = app
	for _, e := range app.entities {
		p.names = append(p.names, e.name)
	}
	for _, e := range app.entities {
		for range 4 {
			p.sameRow(t, d, e)
		}
		if e.tenantField() != nil {
			for range 3 + d.IntN(20) {
				p.foreignRow(d, e)
			}
		}
	}
	return p
}

func pairOf(t *testing.T, schema string) *pair {
	return &pair{schema: schema, alone: newSide(t, schema), crowded: newSide(t, schema), symbols: map[string][]string{}}
}

func (p *pair) close() {
	p.alone.close()
	p.crowded.close()
}

func (p *pair) known(name string) []string { return p.symbols[name] }

// sameRow inserts a row of t1, or of no tenant, into both stores.
func (p *pair) sameRow(t *testing.T, d dice, e *refEntity) {
	t.Helper()
	mine := func(name string) (ids []string) {
		for _, s := range p.symbols[name] {
			if s[0] != '!' {
				ids = append(ids, s)
			}
		}
		return ids
	}
	values := d.row(p.app, e, system, mine)
	if f := e.tenantField(); f != nil {
		values[f.name] = "t1"
	}
	o := operationKind{"insert", map[string]any{"into": e.name, "values": values}}
	p.both(t, system, 0, []operationKind{o}, true, func() {})
}

// foreignRow inserts a row of t2, with values like those of t1, into the crowded store.
func (p *pair) foreignRow(d dice, e *refEntity) {
	foreign := func(name string) (ids []string) {
		shared := p.app.entity(name).tenantField() == nil
		for _, symbol := range p.symbols[name] {
			if shared == (symbol[0] != '!') {
				ids = append(ids, symbol)
			}
		}
		return ids
	}
	values := d.row(p.app, e, system, foreign)
	values["org"] = "t2"
	p.foreign(system, e.name, values)
}

// foreign inserts a row of t2 into the crowded store.
func (p *pair) foreign(who *caller.Caller, name string, values map[string]any) {
	s := p.crowded
	encoded, err := json.Marshal(map[string]any{"into": name, "values": values})
	if err != nil {
		s.Fatal(err)
	}
	args := anySymbol.ReplaceAllStringFunc(string(encoded), func(symbol string) string { return s.ids[symbol] })
	got := s.do(who, "insert", []byte(args))
	if got.code != "" {
		return // the schema refuses this row
	}
	id := got.result["rows"].([]any)[0].(map[string]any)["id"].(string)
	symbol := fmt.Sprintf("!%d", p.count)
	p.count++
	s.name(symbol, id)
	// A store without the row gets an unused id of the same form.
	p.alone.name(symbol, fmt.Sprintf("01%024d", p.count))
	p.symbols[name] = append(p.symbols[name], symbol)
}

// both runs a program in both stores and compares the results. meanwhile runs in the
// crowded store before the program commits.
func (p *pair) both(t *testing.T, who *caller.Caller, maxRows int, program []operationKind, commit bool, meanwhile func()) (observed []string) {
	t.Helper()
	if p.alone.now.Before(p.crowded.now) {
		p.alone.now = p.crowded.now
	}
	p.alone.now = p.alone.now.Add(1000 * 1000 * 1000)
	p.crowded.now = p.alone.now
	a := p.alone.run(who, maxRows, program, commit, func() {})
	b := p.crowded.run(who, maxRows, program, commit, meanwhile)
	if !slices.Equal(a, b) {
		t.Errorf("%s, at most %d rows:", describe(who), maxRows)
		for i, o := range program {
			t.Errorf("%v\nalone   %s\ncrowded %s", o, a[i], b[i])
			if a[i] != b[i] {
				break
			}
		}
		t.Logf("%s", p.schema)
		return nil
	}
	p.learn(t)
	return a
}

// learn adds the rows that both sides have named to those that programs choose from.
func (p *pair) learn(t *testing.T) {
	t.Helper()
	for _, s := range []*side{p.alone, p.crowded} {
		err := s.store.View(context.Background(), func(tx *store.Tx) error {
			for _, name := range p.names {
				there := slices.DeleteFunc(slices.Clone(p.symbols[name]), func(symbol string) bool { return symbol[0] == '#' })
				for _, id := range s.idsOf(tx, name) {
					if symbol := s.symbols[id]; symbol != "" && symbol[0] == '#' {
						there = append(there, symbol)
					}
				}
				p.symbols[name] = there
			}
			return nil
		})
		if err != nil {
			t.Error(err)
		}
	}
}

// program runs a random program for a caller of t1, or for one without a tenant.
func (p *pair) program(t *testing.T, d dice, answers map[string]int) bool {
	t.Helper()
	who := d.caller()
	if who.Tenant != "" {
		who.Tenant = "t1"
	}
	maxRows := 100_000
	if d.percent(30) {
		maxRows = 1 + d.IntN(30)
	}
	var program []operationKind
	for len(program) < 1+d.IntN(5) {
		o := d.operation(p.app, who, p.known)
		if from, ok := o.args["from"].(string); ok && o.op == "delete" && p.sharedTarget(from) {
			continue
		}
		program = append(program, o)
		if o.op == "query" && d.percent(40) {
			next := map[string]any{"cursor": "LAST CURSOR"}
			for name, v := range o.args {
				next[name] = v
			}
			program = append(program, operationKind{"query", next})
		}
	}
	count(answers, p.both(t, who, maxRows, program, d.percent(80), func() {
		for _, e := range p.app.entities {
			if e.tenantField() != nil && d.percent(15) {
				p.foreignRow(d, e)
			}
		}
	}))
	return !t.Failed()
}

// count counts results by their kind.
func count(answers map[string]int, observed []string) {
	for _, line := range observed {
		outcome, _, _ := strings.Cut(line, " ")
		if strings.HasPrefix(outcome, "{") {
			outcome = "ok"
		}
		answers[outcome]++
	}
}

// sharedTarget reports whether the entity belongs to no tenant and rows of tenants may
// refer to it. Deleting such a row affects them as @onDelete says, in every tenant.
func (p *pair) sharedTarget(name string) bool {
	if p.app.entity(name).tenantField() != nil {
		return false
	}
	for _, e := range p.app.entities {
		for _, f := range e.stored() {
			if e.tenantField() != nil && f.target == name {
				return true
			}
		}
	}
	// A cascade may reach it through a third entity.
	for _, e := range p.app.entities {
		for _, f := range e.stored() {
			if f.target == name && e.name != name && f.onDelete == "cascade" && p.sharedTarget(e.name) {
				return true
			}
		}
	}
	return false
}

const coded = `
auth {
  session cookie { idle: 30m, absolute: 12h }
  roles: [admin]
  user: User
  tenant: Org
}
entity Org { id: id @@allow read to session }
entity User { id: id @@allow read to session }
entity Item {
  id: id
  org: Org @tenant
  owner: User?
  code: string
  n: int = 0
  @@unique(code) global
  @@unique(n, code) global
  @@index(n)
  @@allow all to session
}
`

// A unique index over all tenants enforces uniqueness only. Queries do not use it, so their
// cost does not depend on rows of other tenants. (An insert reveals that a value is taken:
// that is what global means.)
func TestAGlobalUniqueIndexDoesNotRevealRowsOfOtherTenants(t *testing.T) {
	p := pairOf(t, coded)
	p.names = []string{"User", "Item"}
	defer p.close()
	none := func() {}
	u1 := session("u1", "t1")
	p.both(t, system, 0, []operationKind{{"insert", object("into", "User", "values", object("id", "u1"))}}, true, none)
	for n := range 5 {
		p.both(t, u1, 0, []operationKind{{"insert", object("into", "Item", "values", object("code", fmt.Sprint("a", n), "n", n, "owner", "u1"))}}, true, none)
	}
	for n := range 20 {
		p.foreign(system, "Item", object("org", "t2", "code", fmt.Sprint("b", n), "n", n, "owner", "u1"))
	}
	for _, where := range []any{
		list(), list(list("code", "=", "b1")), list(list("code", "=", "a1")), list(list("code", "in", list("a1", "b1", "b2"))),
		list(list("code", ">", "a3")), list(list("code", "startsWith", "b")), list(list("n", "=", 1), list("code", "=", "b1")),
		list(list("n", ">=", 3)), list(list("owner", "=", "u1")), list(list("owner", "=", "u1"), list("n", "<", 2)),
		list(list("id", "=", "!3")), list(list("id", "in", list("!3", "!4", "#2"))), list(list("id", ">", "#2")),
	} {
		program := []operationKind{{"count", object("from", "Item", "where", where)}}
		for _, order := range []any{list(), list(list("code", "asc")), list(list("code", "desc")), list(list("n", "asc"), list("code", "asc")), list(list("owner", "desc"))} {
			program = append(program, operationKind{"query", object("from", "Item", "where", where, "orderBy", order, "limit", 2)})
		}
		program = append(program,
			operationKind{"update", object("in", "Item", "set", object("owner", nil), "where", where)},
			operationKind{"delete", object("from", "Item", "where", where)})
		p.both(t, u1, 0, program, false, none)
	}
}

const untyped = `
auth { session cookie { idle: 30m, absolute: 12h } }
apiKeys {
  scopes: {
    some: @system("some") {
      @grant read, insert on Order
      @grant update on Order where state != "shut"
      @grant read on Partner fields (id, n)
    }
  }
}
`

// TestTenantNoninterferenceWithoutEntities is the same test with a schema that declares no
// entities.
func TestTenantNoninterferenceWithoutEntities(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds: left out by -short")
	}
	seed := newSeed(t)
	programs := 80
	if long() {
		programs = 2_000
	}
	answers := map[string]int{}
	d := newDice(seed, 0)
	p := pairOf(t, untyped)
	p.names = []string{"Order", "Partner"}
	defer p.close()
	for range 10 {
		for _, name := range p.names {
			p.both(t, session("u1", "t1"), 0, []operationKind{{"insert", object("into", name, "values", d.free())}}, true, func() {})
			p.both(t, session("u1", ""), 0, []operationKind{{"insert", object("into", name, "values", d.free())}}, true, func() {})
			p.foreign(session("u2", "t2"), name, d.free())
			p.foreign(session("u2", "t2"), name, d.free())
		}
	}
	for range programs {
		who := pick(d, session("u1", "t1"), session("u3", "t1"), session("u1", ""), &caller.Caller{}, &caller.Caller{As: "some"},
			&caller.Caller{Kind: caller.APIKey, KeyID: "key_1", Scope: "some", Capability: "some", Tenant: "t1"})
		var program []operationKind
		for range 1 + d.IntN(4) {
			program = append(program, d.freeOperation(pick(d, p.names...), p.known))
		}
		count(answers, p.both(t, who, pick(d, 0, 0, 1+d.IntN(40)), program, d.percent(80), func() {
			if d.percent(20) {
				p.foreign(session("u2", "t2"), pick(d, p.names...), d.free())
			}
		}))
		if t.Failed() {
			return
		}
	}
	t.Logf("answers: %v", answers)
	for _, want := range []string{"ok", "not_found", "denied", "limit"} {
		if long() && answers[want] == 0 {
			t.Errorf("no answer was %s: the programs cover too little", want)
		}
	}
}

func (d dice) free() map[string]any {
	values := map[string]any{}
	for _, name := range some(d, 60, []string{"n", "state", "deep", "x"}) {
		values[name] = pick[any](d, 1, 2.5, "1", "shut", nil, true, []any{1, "a"}, map[string]any{"a": 1})
	}
	return values
}

func (d dice) freeOperation(name string, ids known) operationKind {
	symbol := unknownID
	if there := ids(name); len(there) > 0 {
		symbol = pick(d, there...)
	}
	condition := func() []any {
		return pick(d, list("n", pick(d, "=", "!=", "<", ">="), pick[any](d, 1, 2.5, "1")), list("state", "=", "shut"),
			list("id", pick(d, "=", "!="), symbol), list("x", "=", nil), list("not", list("n", "=", 1)))
	}
	switch d.IntN(6) {
	case 0:
		return operationKind{"insert", object("into", name, "values", d.free())}
	case 1:
		return operationKind{"update", object("in", name, "set", d.free(), "where", list(condition()))}
	case 2:
		return operationKind{"delete", object("from", name, "where", byID(symbol))}
	case 3:
		return operationKind{"get", object("from", name, "id", symbol)}
	case 4:
		return operationKind{"count", object("from", name, "where", list(condition(), condition()))}
	}
	return operationKind{"query", object("from", name, "where", list(condition()), "orderBy", list(list("n", pick(d, "asc", "desc"))), "limit", 1+d.IntN(5))}
}
