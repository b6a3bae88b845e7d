package entity_test

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"

	"runner.example/internal/caller"
	"runner.example/internal/fault"
	"runner.example/state/entity"
	"runner.example/state/store"
)

// TestPolicyMatrix tries each action of each caller on each row and, for updates, each new
// value. The reference decides which are allowed.
func TestPolicyMatrix(t *testing.T) {
	sequential(t)
	seed := newSeed(t)
	schemas := 6
	if long() {
		schemas = 300
	}
	answers := map[string]int{}
	missing := func() (all []string) {
		for _, want := range []string{"get ok", "get not_found", "get denied", "update ok", "update denied", "delete ok", "delete denied", "insert ok", "insert denied"} {
			if answers[want] == 0 {
				all = append(all, want)
			}
		}
		return all
	}
	for i := 0; i < schemas || i < 10*schemas && len(missing()) > 0; i++ { // in one of fifty schemas every row may be updated
		d := newDice(seed, uint64(i))
		app := d.app()
		w := &twin{rig: newRig(t, app.schema()), app: app, db: refDB{}, agreed: answers}
		w.seed(d)
		w.matrix(d)
		w.close()
		if t.Failed() {
			return
		}
	}
	t.Logf("answers: %v", answers)
	if none := missing(); len(none) > 0 {
		t.Errorf("no %s: the matrix is too small", strings.Join(none, ", no "))
	}
}

// everybody returns a caller of each kind in the app.
func everybody(app *refApp) (all []*caller.Caller) {
	add := func(c caller.Caller) {
		fitted := callerOf(c)
		all = append(all, fitted.fit(app))
	}
	add(caller.Caller{})
	for _, s := range app.scopes {
		add(caller.Caller{As: s.name})
		add(caller.Caller{Kind: caller.APIKey, KeyID: "key_1", Scope: s.name, Capability: "test." + s.name})
		add(caller.Caller{Kind: caller.APIKey, KeyID: "key_2", Scope: s.name, Capability: "test." + s.name, Tenant: "t1"})
	}
	for _, roles := range [][]string{nil, {"admin"}, {"member", "guest"}} {
		for _, tenant := range []string{"", "t1", "t2"} {
			for _, user := range []string{"", "u1", "u2"} {
				if len(roles) == 0 || user == "u1" || tenant == "t1" {
					add(caller.Caller{Kind: caller.Session, UserID: user, Tenant: tenant, Roles: roles})
				}
			}
		}
	}
	return all
}

func (w *twin) matrix(d dice) {
	w.Helper()
	for _, who := range everybody(w.app) {
		for _, e := range w.app.entities {
			one := func(o operationKind) bool {
				return w.requestOf(d, who, []func() operationKind{func() operationKind { return o }}, true)
			}
			for _, id := range w.ids(e.name) {
				if !one(operationKind{"get", map[string]any{"from": e.name, "id": id}}) ||
					!one(operationKind{"update", map[string]any{"in": e.name, "set": d.set(w.app, e, w.ids), "where": byID(id)}}) ||
					!one(operationKind{"delete", map[string]any{"from": e.name, "where": byID(id)}}) {
					return
				}
			}
			for range 3 {
				if !one(operationKind{"insert", map[string]any{"into": e.name, "values": d.row(w.app, e, who, w.ids)}}) {
					return
				}
			}
		}
	}
}

const desk = `
auth {
  session cookie { idle: 30m, absolute: 12h }
  roles: [admin, staff]
  user: User
  tenant: Org
}
enum State { open, closed }
entity Org { id: id @@allow read to session when id == auth.tenant }
entity User { id: id name: string = "x" @@allow read to session }
entity Note {
  id: id
  org: Org @tenant
  owner: User
  title: string(1..20)
  state: State = open
  rank: int = 0
  secret: string = "s3cret" @hidden
  code: string? @hidden @unique
  locked: bool = false @readonly
  createdAt: time @created
  updatedAt: time @updated
  replies: Reply[] @inverse(note)
  @@unique(title)
  @@index(rank)
  @@allow all to session when owner == auth.userId or auth.role == "admin"
  @@deny update when old.state == "closed" and new.state == "open" and auth.role != "admin"
}
entity Reply {
  id: id
  org: Org @tenant
  note: Note
  text: string
  @@allow all to session when note.owner == auth.userId
}
entity Log {
  id: id
  text: string
  @@allow insert, update, delete to session
}
entity Outside {
  id: id
  text: string
  @@deny all
}
entity Heavy {
  id: id
  n: int @index
  m: int = 0
  @@allow read to session when exists(Weight where w == outer.m)
}
entity Weight {
  id: id
  w: int
  v: int = 0
  @@index(v)
  @@allow read to session
}
apiKeys {
  scopes: {
    narrow: @system("desk.narrow") {
      @grant read on Note fields (id, title)
      @grant insert on Note fields (title, owner)
      @grant update on Note fields (title) where state == "open"
    },
    wide: @system("desk.wide") {
      @grant read on Note fields (id, title, secret)
      @grant read on Reply
    },
    every: @system("desk.every") {
      @grant read, insert, update, delete on Note
      @grant read on User
      @allTenants
    }
  }
}
`

func session(user, tenant string, roles ...string) *caller.Caller {
	return &caller.Caller{Kind: caller.Session, UserID: user, Tenant: tenant, Roles: roles}
}

func key(scope, tenant string) *caller.Caller {
	return &caller.Caller{Kind: caller.APIKey, KeyID: "key_1", Scope: scope, Capability: "desk." + scope, Tenant: tenant}
}

// newDesk returns a desk with users, notes of two tenants, and their ids.
func newDesk(t testing.TB) (r *rig, mine, theirs string) {
	t.Helper()
	r = newRig(t, desk)
	for _, id := range []string{"u1", "u2"} {
		r.insert("User", map[string]any{"id": id})
	}
	mine = r.insert("Note", map[string]any{"org": "t1", "owner": "u1", "title": "mine", "secret": "abc", "code": "taken"})
	theirs = r.insert("Note", map[string]any{"org": "t2", "owner": "u2", "title": "theirs"})
	return r, mine, theirs
}

// list makes [a, b, …] of its arguments.
func list(elems ...any) []any { return append([]any{}, elems...) }

func object(pairs ...any) map[string]any {
	m := map[string]any{}
	for i := 0; i < len(pairs); i += 2 {
		m[pairs[i].(string)] = pairs[i+1]
	}
	return m
}

// A hidden field gets the same answers as a field that does not exist, so guessing its
// value letter by letter fails.
func TestHiddenFieldsAnswerAsFieldsThatDoNotExist(t *testing.T) {
	r, mine, _ := newDesk(t)
	defer r.close()
	for _, who := range []*caller.Caller{session("u1", "t1"), session("u2", "t1", "admin"), key("narrow", "t1"), key("every", "")} {
		for _, args := range []struct {
			op   string
			args func(field string) map[string]any
		}{
			{"query", func(f string) map[string]any {
				return object("from", "Note", "where", list(list(f, "startsWith", "a")))
			}},
			{"query", func(f string) map[string]any {
				return object("from", "Note", "where", list(list("not", list(f, "contains", "b"))))
			}},
			{"query", func(f string) map[string]any {
				return object("from", "Note", "where", list(list("or", list("title", "=", "x"), list(f, "=", nil))))
			}},
			{"query", func(f string) map[string]any { return object("from", "Note", "orderBy", list(list(f, "asc"))) }},
			{"query", func(f string) map[string]any { return object("from", "Note", "select", list("id", f)) }},
			{"get", func(f string) map[string]any { return object("from", "Note", "id", mine, "select", list(f)) }},
			{"count", func(f string) map[string]any { return object("from", "Note", "where", list(list(f, ">", "a"))) }},
			{"query", func(f string) map[string]any {
				return object("from", "Note", "where", list(list(f, "=", "ABC", "ignoreCase")))
			}},
			{"query", func(f string) map[string]any { return object("from", "Note", "include", object(f, object())) }},
			{"aggregate", func(f string) map[string]any { return object("from", "Note", "groupBy", list(f), "count", true) }},
			{"aggregate", func(f string) map[string]any { return object("from", "Note", "max", list(f)) }},
			{"aggregate", func(f string) map[string]any { return object("from", "Note", "sum", list(f)) }},
			{"aggregate", func(f string) map[string]any {
				return object("from", "Note", "count", true, "where", list(list(f, "contains", "b")))
			}},
			{"update", func(f string) map[string]any {
				return object("in", "Note", "set", object("title", "new"), "where", list(list(f, "=", "abc")))
			}},
			{"update", func(f string) map[string]any {
				return object("in", "Note", "set", object(f, "abc"), "where", byID(mine))
			}},
			{"insert", func(f string) map[string]any {
				return object("into", "Note", "values", object("owner", "u1", "title", "n", f, "abc"))
			}},
		} {
			hidden := r.do(who, args.op, args.args("secret"))
			absent := r.do(who, args.op, args.args("sacred"))
			if hidden.code != fault.Invalid && hidden.code != fault.Denied || hidden.String() != strings.ReplaceAll(absent.String(), "sacred", "secret") {
				t.Errorf("%s, %s %v:\nhidden %v\nabsent %v", describe(who), args.op, args.args("secret"), hidden, absent)
			}
		}
		got := r.do(who, "get", object("from", "Note", "id", mine))
		if strings.Contains(got.String(), "secret") || strings.Contains(got.String(), `"abc"`) {
			t.Errorf("%s: %v", describe(who), got)
		}
	}
	// A grant that names the field makes it readable, and only that field.
	if got := r.do(key("wide", "t1"), "query", object("from", "Note", "where", list(list("secret", "startsWith", "ab")))); len(got.result["rows"].([]any)) != 1 {
		t.Errorf("the grant that names the field: %v", got)
	}
	if got := r.do(key("wide", "t1"), "query", object("from", "Note", "where", list(list("code", "=", "taken")))); got.code != fault.Invalid {
		t.Errorf("another hidden field: %v", got)
	}
}

// A unique error names the fields, but no value and no row of others.
func TestAUniqueErrorDoesNotRevealOtherRows(t *testing.T) {
	r, mine, _ := newDesk(t)
	defer r.close()
	got := r.do(session("u1", "t1"), "insert", object("into", "Note", "values", object("owner", "u1", "title", "mine")))
	if got.code != fault.Conflict || !strings.Contains(got.detail, "title") || strings.Contains(got.detail, mine) {
		t.Errorf("the same title again: %v", got)
	}
	// A value of another tenant is available.
	r.must(session("u1", "t1"), "insert", object("into", "Note", "values", object("owner", "u1", "title", "theirs")))
	// The error for a row that may not be written does not depend on duplicates.
	got = r.do(session("u2", "t1"), "insert", object("into", "Note", "values", object("owner", "u1", "title", "mine")))
	if got.code != fault.Denied {
		t.Errorf("a row for another owner, its title taken: %v", got)
	}
	free := r.do(session("u2", "t1"), "insert", object("into", "Note", "values", object("owner", "u1", "title", "free")))
	if got.String() != free.String() {
		t.Errorf("the error of a denied row depends on whether its title is taken:\n%v\n%v", got, free)
	}
}

func TestMassAssignment(t *testing.T) {
	r, mine, _ := newDesk(t)
	defer r.close()
	who := session("u1", "t1", "admin")
	foreign := map[string]any{
		"id": unknownID, "org": "t2", "locked": true, "createdAt": "2020-01-01T00:00:00Z", "updatedAt": "2020-01-01T00:00:00Z",
		"secret": "x", "code": "x", "replies": list(), "tenant": "t2", "_id": "x", "role": "admin", "ID": "x", "__proto__": object(), "": "x",
	}
	before := r.all("Note")
	for name, v := range foreign {
		for op, args := range map[string]map[string]any{
			"insert": object("into", "Note", "values", object("owner", "u1", "title", "t", name, v)),
			"update": object("in", "Note", "set", object("title", "t", name, v), "where", byID(mine)),
		} {
			got := r.do(who, op, args)
			if got.code != fault.Invalid || !strings.Contains(got.detail, name) {
				t.Errorf("%s with %q: %v", op, name, got)
			}
			got = r.do(who, op, object(append(slices.Clone(pairsOf(args)), name, v)...))
			if got.code != fault.Invalid {
				t.Errorf("%s with a member %q beside the values: %v", op, name, got)
			}
		}
	}
	if after := r.all("Note"); !reflect.DeepEqual(before, after) {
		t.Errorf("rows were\n%v\nand are\n%v", before, after)
	}
	// The host sets the caller's tenant and the transaction's time.
	row := r.must(who, "insert", object("into", "Note", "values", object("owner", "u1", "title", "t")))["rows"].([]any)[0].(map[string]any)
	now := r.now.Format(refTime)
	if row["org"] != "t1" || row["createdAt"] != now || row["updatedAt"] != now || row["locked"] != false {
		t.Errorf("the row is %v", row)
	}
	// The fields of a grant limit what is written.
	got := r.do(key("narrow", "t1"), "update", object("in", "Note", "set", object("rank", 1), "where", byID(mine)))
	if got.code != fault.Invalid && got.code != fault.Denied {
		t.Errorf("a field that the grant does not name: %v", got)
	}
}

func pairsOf(m map[string]any) (pairs []any) {
	for _, name := range slices.Sorted(maps.Keys(m)) {
		pairs = append(pairs, name, m[name])
	}
	return pairs
}

// all returns an entity's rows as an operator sees them.
func (r *rig) all(name string) []any {
	r.Helper()
	return r.must(system, "query", object("from", name, "limit", 1000))["rows"].([]any)
}

// No insert, update or relation can place a row where its writer has no access.
func TestRowsCannotBeInsertedIntoOrMovedToOtherTenants(t *testing.T) {
	r, mine, theirs := newDesk(t)
	defer r.close()
	u1, u2, admin := session("u1", "t1"), session("u2", "t1"), session("u1", "t1", "admin")
	other := r.insert("Note", map[string]any{"org": "t1", "owner": "u2", "title": "u2's"})
	shut := r.insert("Note", map[string]any{"org": "t1", "owner": "u1", "title": "shut", "state": "closed"})
	before := r.all("Note")
	for _, row := range []struct {
		name string
		who  *caller.Caller
		op   string
		args map[string]any
		code fault.Code
	}{
		{"insert for another owner", u1, "insert", object("into", "Note", "values", object("owner", "u2", "title", "x")), fault.Denied},
		{"one of two for another owner", u1, "insert", object("into", "Note", "values", list(object("owner", "u1", "title", "x"), object("owner", "u2", "title", "y"))), fault.Denied},
		{"move out by update", u1, "update", object("in", "Note", "set", object("owner", "u2"), "where", byID(mine)), fault.Denied},
		{"reopen a closed one", u1, "update", object("in", "Note", "set", object("state", "open"), "where", byID(shut)), fault.Denied},
		{"update of a row of another", u1, "update", object("in", "Note", "set", object("title", "x"), "where", byID(other)), ""},
		{"delete of a row of another", u1, "delete", object("from", "Note", "where", byID(other)), ""},
		{"update of a row of another tenant", admin, "update", object("in", "Note", "set", object("title", "x"), "where", byID(theirs)), ""},
		{"relation to a row of another", u1, "insert", object("into", "Reply", "values", object("note", other, "text", "x")), fault.NotFound},
		{"relation to a row of another tenant", admin, "insert", object("into", "Reply", "values", object("note", theirs, "text", "x")), fault.NotFound},
		{"relation to a missing row", u2, "insert", object("into", "Reply", "values", object("note", unknownID, "text", "x")), fault.NotFound},
		{"a key over all tenants, no tenant named", key("every", ""), "insert", object("into", "Note", "values", object("owner", "u1", "title", "x")), fault.Invalid},
		{"a key whose grant does not reach the owner's row", key("narrow", "t1"), "insert", object("into", "Note", "values", object("owner", "u1", "title", "x")), fault.NotFound},
		{"a session without a tenant", session("u1", ""), "insert", object("into", "Note", "values", object("owner", "u1", "title", "x")), fault.Denied},
	} {
		got := r.do(row.who, row.op, row.args)
		if got.code != row.code {
			t.Errorf("%s: %v, want %q", row.name, got, row.code)
		}
		if row.code == "" && got.result["count"] != 0.0 {
			t.Errorf("%s: %v", row.name, got)
		}
	}
	after := r.all("Note")
	if !reflect.DeepEqual(before, after) {
		t.Errorf("rows were\n%v\nand are\n%v", before, after)
	}
	// A relation may refer to a row inserted earlier in the same transaction.
	r.update(u1, func(a *entity.Access) {
		got := call(t, a, "insert", object("into", "Note", "values", object("owner", "u1", "title", "parent")))
		id := got.result["rows"].([]any)[0].(map[string]any)["id"]
		if got := call(t, a, "insert", object("into", "Reply", "values", object("note", id, "text", "x"))); got.code != "" {
			t.Errorf("a relation to a row of the same transaction: %v", got)
		}
	})
}

// For every operation, a missing row, a row of another tenant and a row that policies hide
// give the same answer, byte for byte.
func TestExistenceIndistinguishable(t *testing.T) {
	r, mine, theirs := newDesk(t)
	defer r.close()
	other := r.insert("Note", map[string]any{"org": "t1", "owner": "u2", "title": "u2's", "code": "taken2"})
	for _, who := range []*caller.Caller{session("u1", "t1"), key("narrow", "t1"), key("narrow", "t2"), key("every", ""), session("u1", ""), {}, {As: "narrow"}} {
		forbidden := []string{theirs, other}
		switch {
		case who.Scope == "narrow" && who.Tenant == "t1":
			forbidden = []string{theirs}
		case who.Scope == "narrow":
			forbidden = []string{mine, other}
		case who.Scope == "every":
			forbidden = nil
		}
		for _, id := range forbidden {
			for op, args := range map[string]func(id string) map[string]any{
				"get":   func(id string) map[string]any { return object("from", "Note", "id", id) },
				"query": func(id string) map[string]any { return object("from", "Note", "where", byID(id)) },
				"count": func(id string) map[string]any {
					return object("from", "Note", "where", list(list("id", "in", list(id))))
				},
				"delete": func(id string) map[string]any { return object("from", "Note", "where", byID(id)) },
				"update": func(id string) map[string]any {
					return object("in", "Note", "set", object("title", "taken"), "where", byID(id))
				},
				"insert": func(id string) map[string]any {
					return object("into", "Reply", "values", object("note", id, "text", "x"))
				},
			} {
				forbiddenAnswer, absentAnswer := r.do(who, op, args(id)), r.do(who, op, args(unknownID))
				if forbiddenAnswer.String() != absentAnswer.String() {
					t.Errorf("%s, %s:\nforbidden %v\nabsent    %v", describe(who), op, forbiddenAnswer, absentAnswer)
				}
				if strings.Contains(forbiddenAnswer.String(), id) {
					t.Errorf("%s, %s names the row: %v", describe(who), op, forbiddenAnswer)
				}
			}
		}
	}
	// The cost is the same too: with a limit of one row, both end alike.
	for _, id := range []string{theirs, other, unknownID} {
		_, err := r.store.Update(t.Context(), func(tx *store.Tx) error {
			var a entity.Access
			a.Reset(r.model, tx, session("u1", "t1"), 1)
			first, second := call(t, &a, "get", object("from", "Note", "id", id)), call(t, &a, "get", object("from", "Note", "id", id))
			if first.code != fault.NotFound || second.code != fault.Limit {
				t.Errorf("two lookups with a limit of one: %v, then %v", first, second)
			}
			return nil
		})
		if err != nil {
			t.Error(err)
		}
	}
}

// A right that is removed while a handler runs has no effect afterwards: either the handler
// committed first, or it is refused.
func TestConcurrentPolicyFlip(t *testing.T) {
	r, _, _ := newDesk(t)
	defer r.close()
	rounds := 20
	if long() {
		rounds = 1000
	}
	u1 := session("u1", "t1")
	for n := range rounds {
		id := r.insert("Note", map[string]any{"org": "t1", "owner": "u1", "title": fmt.Sprint("n", n)})
		var mu sync.Mutex
		var order []string
		stop := r.store.OnApply([]byte("marker/"), func(_ store.Seq, c store.Change) {
			mu.Lock()
			defer mu.Unlock()
			order = append(order, string(c.Key))
		})
		var written answer
		var done sync.WaitGroup
		done.Go(func() {
			_, err := r.store.Update(context.Background(), func(tx *store.Tx) error {
				var a entity.Access
				a.Reset(r.model, tx, u1, 100_000)
				written = call(t, &a, "update", object("in", "Note", "set", object("rank", 7), "where", byID(id)))
				return tx.Set([]byte("marker/write"), nil)
			})
			if err != nil {
				t.Error(err)
			}
		})
		done.Go(func() {
			_, err := r.store.Update(context.Background(), func(tx *store.Tx) error {
				var a entity.Access
				a.Reset(r.model, tx, session("u9", "t1", "admin"), 100_000)
				if got := call(t, &a, "update", object("in", "Note", "set", object("owner", "u2"), "where", byID(id))); got.code != "" {
					t.Errorf("the owner cannot be changed: %v", got)
				}
				return tx.Set([]byte("marker/flip"), nil)
			})
			if err != nil {
				t.Error(err)
			}
		})
		done.Wait()
		stop()
		row := r.must(system, "get", object("from", "Note", "id", id))["row"].(map[string]any)
		want := object("owner", "u2", "rank", 0.0)
		if order[0] == "marker/write" {
			want["rank"] = 7.0
		}
		if row["owner"] != want["owner"] || row["rank"] != want["rank"] || (written.result["count"] == 1.0) != (want["rank"] == 7.0) {
			t.Fatalf("round %d, in the order %v: written %v, the row is %v", n, order, written, row)
		}
		if got := r.do(u1, "get", object("from", "Note", "id", id)); got.code != fault.NotFound {
			t.Fatalf("after the flip the old owner reads %v", got)
		}
	}
}

// A key may do what its scope grants in the active schema; the key stores no rights. A key
// of a removed scope may do nothing.
func TestScopeRenamedRemoved(t *testing.T) {
	r, mine, _ := newDesk(t)
	defer r.close()
	narrow := key("narrow", "t1")
	get := object("from", "Note", "id", mine)
	if got := r.must(narrow, "get", get); len(got["row"].(map[string]any)) != 2 {
		t.Errorf("the scope reads %v", got)
	}
	old := r.model
	// Changed grants of the scope apply at once, also to a new field.
	desk := strings.Replace(desk, "  rank: int = 0\n", "  rank: int = 0\n  extra: int?\n", 1)
	r.activate(strings.Replace(desk, "@grant read on Note fields (id, title)\n      @grant insert", "@grant read on Note fields (id, title, extra)\n      @grant insert", 1))
	if got := r.must(narrow, "get", get); len(got["row"].(map[string]any)) != 3 {
		t.Errorf("the scope, with one field more, reads %v", got)
	}
	// A model of an earlier schema fails every operation.
	_, err := r.store.Update(t.Context(), func(tx *store.Tx) error {
		var a entity.Access
		a.Reset(old, tx, narrow, 100_000)
		encoded, _ := json.Marshal(get)
		return a.Do("get", encoded, &entity.Result{})
	})
	if err != entity.ErrOutdated {
		t.Errorf("the earlier model answers %v", err)
	}
	// The scope is renamed and keeps its capability: the key keeps working.
	r.activate(strings.Replace(desk, "narrow: @system", "slim: @system", 1))
	if got := r.do(narrow, "get", get); got.code != "" {
		t.Errorf("a key of a renamed scope: %v", got)
	}
	// Another scope has the old name: the capability decides, not the name.
	swapped := strings.NewReplacer("narrow: @system", "wide: @system", "wide: @system", "narrow: @system").Replace(desk)
	r.activate(swapped)
	if got := r.must(narrow, "get", get); got["row"].(map[string]any)["secret"] != "abc" {
		t.Errorf("a key whose name is another scope's reads %v", got)
	}
	// Name and capability are removed.
	r.activate(strings.Replace(strings.Replace(desk, "narrow: @system", "slim: @system", 1), "desk.narrow", "desk.slim", 1))
	for op, args := range map[string]map[string]any{
		"get": get, "query": object("from", "Note"), "count": object("from", "Note"),
		"update": object("in", "Note", "set", object("title", "x"), "where", byID(mine)),
		"insert": object("into", "Note", "values", object("owner", "u1", "title", "x")),
	} {
		if got := r.do(narrow, op, args); got.code != fault.Denied {
			t.Errorf("%s by a key of a removed scope: %v", op, got)
		}
	}
}

// Lookups of rules count: a rule that scans for every row ends the query at its row limit.
func TestRuleBudget(t *testing.T) {
	r := newRig(t, desk)
	defer r.close()
	who := session("u1", "t1")
	const rows, weights = 30, 200
	var values []any
	for n := range weights {
		values = append(values, object("w", n+1))
	}
	r.must(system, "insert", object("into", "Weight", "values", values))
	values = nil
	for n := range rows {
		values = append(values, object("n", n, "m", 0)) // no weight is 0, so each scan reads all rows
	}
	r.must(system, "insert", object("into", "Heavy", "values", values))
	within := func(budget int) (got answer) {
		_, err := r.store.Update(t.Context(), func(tx *store.Tx) error {
			var a entity.Access
			a.Reset(r.model, tx, who, budget)
			got = call(t, &a, "count", object("from", "Heavy"))
			// A limit that is reached stays reached.
			if again := call(t, &a, "get", object("from", "Weight", "id", unknownID)); got.code == fault.Limit && again.code != fault.Limit {
				t.Errorf("after the limit is reached: %v", again)
			}
			return nil
		})
		if err != nil {
			t.Error(err)
		}
		return got
	}
	for budget, code := range map[int]fault.Code{rows: fault.Limit, rows + weights: fault.Limit, rows * weights: fault.Limit, rows * (weights + 2): ""} {
		if got := within(budget); got.code != code {
			t.Errorf("with %d rows: %v, want %q", budget, got, code)
		}
	}
	if got := within(100_000); got.result["count"] != 0.0 {
		t.Errorf("with 100,000 rows: %v", got)
	}
	if got := within(0); got.code != fault.Limit { // not any number
		t.Errorf("without a limit: %v", got)
	}
}

// An invalid operation is refused with an error that names the cause, and changes nothing.
func TestInvalidInputIsReportedWithItsField(t *testing.T) {
	r, mine, _ := newDesk(t)
	defer r.close()
	who := session("u1", "t1")
	var thousandAndOne, many []any
	for n := range 1001 {
		thousandAndOne = append(thousandAndOne, object("owner", "u1", "title", fmt.Sprint(n)))
		many = append(many, list("rank", "=", n))
	}
	deep := func(n int) string {
		return `{"from":"Note","where":[` + strings.Repeat(`["not",`, n) + `["rank","=",1]` + strings.Repeat(`]`, n) + `]}`
	}
	before := r.all("Note")
	for _, row := range []struct {
		op   string
		args any
		word string // expected in the message
	}{
		{"query", object("from", "Nota"), "Nota"},
		{"insert", object("into", "Nota", "values", object()), "Nota"},
		{"query", object(), "from"},
		{"query", object("from", 7), "from"},
		{"query", object("from", "Note", "wear", list()), "wear"},
		{"query", object("from", "Note", "in", "Note"), "in"},
		{"query", object("from", "Note", "where", list(list("titel", "=", "x"))), "titel"},
		{"query", object("from", "Note", "where", list(list("title", "like", "x"))), "like"},
		{"query", object("from", "Note", "where", list(list("title", "=", 7))), "where[0]"},
		{"query", object("from", "Note", "where", list(list("title", "=", "x"), list("rank", ">", "x"))), "where[1]"},
		{"query", object("from", "Note", "where", list(list("rank", "=", 1.5))), "where[0]"},
		{"query", object("from", "Note", "where", list(list("rank", "<", nil))), "where[0]"},
		{"query", object("from", "Note", "where", list(list("rank", "in", 1))), "where[0]"},
		{"query", object("from", "Note", "where", list(list("rank", "startsWith", "1"))), "where[0]"},
		{"query", object("from", "Note", "where", list(list("state", "=", "ajar"))), "where[0]"},
		{"query", object("from", "Note", "where", list(list("replies", "=", "x"))), "replies"},
		{"query", object("from", "Note", "where", list(list("owner.name", "=", "x"))), "owner.name"},
		{"query", object("from", "Note", "where", list(list("title", "="))), "where[0]"},
		{"query", object("from", "Note", "where", list(list("title", "=", "x", "y"))), "where[0]"},
		{"query", object("from", "Note", "where", list("title", "=", "x")), "where"},
		{"query", object("from", "Note", "where", object("title", "x")), "where"},
		{"query", object("from", "Note", "where", list(list("or"))), "where[0]"},
		{"query", object("from", "Note", "where", many), "where"},
		{"query", []byte(deep(17)), "where"},
		{"query", []byte(deep(64)), "deep"},
		{"query", []byte(deep(100_000)), "deep"},
		{"query", object("from", "Note", "orderBy", list(list("titel", "asc"))), "titel"},
		{"query", object("from", "Note", "orderBy", list(list("title", "up"))), "orderBy[0]"},
		{"query", object("from", "Note", "orderBy", list("title")), "orderBy[0]"},
		{"query", object("from", "Note", "orderBy", list(list("replies", "asc"))), "replies"},
		{"query", object("from", "Note", "select", list("titel")), "titel"},
		{"query", object("from", "Note", "select", list("replies")), "replies"},
		{"query", object("from", "Note", "select", "title"), "select"},
		{"query", object("from", "Note", "limit", 0), "limit"},
		{"query", object("from", "Note", "limit", 1001), "limit"},
		{"query", object("from", "Note", "limit", -1), "limit"},
		{"query", object("from", "Note", "limit", 1.5), "limit"},
		{"query", object("from", "Note", "limit", "10"), "limit"},
		{"query", object("from", "Note", "cursor", "x"), "cursor"},
		{"query", object("from", "Note", "cursor", 7), "cursor"},
		{"get", object("from", "Note"), "id"},
		{"get", object("from", "Note", "id", 7), "id"},
		{"get", object("from", "Note", "id", mine, "where", list()), "where"},
		{"count", object("from", "Note", "limit", 1), "limit"},
		{"insert", object("into", "Note", "values", list(object("owner", "u1", "title", "x"), 7)), "values[1]"},
		{"insert", object("into", "Note", "values", "x"), "values"},
		{"insert", object("into", "Note"), "values"},
		{"insert", object("into", "Note", "values", object("owner", "u1")), "title"},
		{"insert", object("into", "Note", "values", object("owner", "u1", "title", nil)), "title"},
		{"insert", object("into", "Note", "values", object("owner", "u1", "title", "")), "title"},
		{"insert", object("into", "Note", "values", object("owner", "u1", "title", "123456789012345678901")), "title"},
		{"insert", object("into", "Note", "values", list(object("owner", "u1", "title", "x"), object("owner", "u1", "title", 7))), "values[1].title"},
		{"insert", object("into", "Note", "values", object("owner", "u1", "title", "x", "state", "ajar")), "state"},
		{"insert", object("into", "Note", "values", object("owner", "u1", "title", "x", "rank", 1<<53)), "rank"},
		{"update", object("in", "Note", "set", object("titel", "x"), "where", list()), "titel"},
		{"update", object("in", "Note", "set", object("title", nil), "where", list()), "title"},
		{"update", object("in", "Note", "set", list(), "where", list()), "set"},
		{"update", object("in", "Note", "where", list()), "set"},
		{"update", object("in", "Note", "set", object("title", "x")), "where"},
		{"update", object("in", "Note", "set", object("title", "x"), "where", list(list("secret", "=", "x"))), "secret"},
		{"delete", object("from", "Note"), "where"},
		{"delete", object("in", "Note", "where", list()), "in"},
		{"query", []byte(`{"from":"Note","from":"Note"}`), "from"},
		{"insert", []byte(`{"into":"Note","values":{"title":"x","title":"y","owner":"u1"}}`), "title"},
		{"query", []byte(`{"from":"Note"`), "JSON"},
		{"query", []byte(`{"from":"Note"} {}`), "JSON"},
		{"query", []byte("{\"from\":\"No\xffte\"}"), "UTF-8"},
		{"query", []byte(`[]`), "object"},
		{"query", []byte(``), "JSON"},
		{"query", []byte(`null`), "object"},
		{"insert", []byte(`{"into":"Note","values":{"owner":"u1","title":"\ud800"}}`), ""},
	} {
		got := r.do(who, row.op, row.args)
		text := fmt.Sprint(row.args)
		if raw, ok := row.args.([]byte); ok {
			text = string(raw)
		}
		if len(text) > 200 {
			text = text[:200] + "…"
		}
		if got.code != fault.Invalid || !strings.Contains(got.detail, row.word) {
			t.Errorf("%s %s: %v, which should say %q", row.op, text, got, row.word)
		}
		if len(got.detail) > 500 {
			t.Errorf("%s %s: a message of %d bytes", row.op, text, len(got.detail))
		}
	}
	if got := r.do(who, "upsert", object()); got.code != fault.Invalid {
		t.Errorf("an unknown operation: %v", got)
	}
	// Values at the limits are accepted.
	if got := r.do(who, "query", []byte(deep(16))); got.code != "" {
		t.Errorf("16 deep: %v", got)
	}
	if after := r.all("Note"); !reflect.DeepEqual(before, after) {
		t.Errorf("rows were\n%v\nand are\n%v", before, after)
	}
	if got := r.do(who, "insert", object("into", "Note", "values", thousandAndOne[:1000])); got.code != "" || len(got.result["rows"].([]any)) != 1000 {
		t.Errorf("1000 rows: %v", got.code)
	}
	for _, name := range []string{"Log", "Outside"} {
		got := r.do(session("u1", ""), "query", object("from", name))
		if got.code != fault.Denied || !strings.Contains(got.detail, name) {
			t.Errorf("an entity that permits no read: %v", got)
		}
	}
}

// A cursor continues only its own query for its own caller.
func TestACursorOfAnotherCallerOrQueryIsRefused(t *testing.T) {
	r, mine, _ := newDesk(t)
	defer r.close()
	for n := range 5 {
		r.insert("Note", map[string]any{"org": "t1", "owner": "u1", "title": fmt.Sprint("n", n), "rank": n})
	}
	page := func(more ...any) map[string]any {
		return object(append([]any{"from", "Note", "orderBy", list(list("rank", "desc")), "limit", 2}, more...)...)
	}
	u1 := session("u1", "t1")
	first := r.must(u1, "query", page())
	cursor := first["nextCursor"].(string)
	if second := r.must(u1, "query", page("cursor", cursor)); reflect.DeepEqual(first["rows"], second["rows"]) {
		t.Errorf("the second page is the first: %v", second)
	}
	for name, try := range map[string]struct {
		who  *caller.Caller
		args map[string]any
	}{
		"another user":       {session("u2", "t1"), page("cursor", cursor)},
		"another tenant":     {session("u1", "t2"), page("cursor", cursor)},
		"a key":              {key("every", ""), page("cursor", cursor)},
		"an operator":        {system, page("cursor", cursor)},
		"another filter":     {u1, page("cursor", cursor, "where", list(list("rank", ">", 0)))},
		"another order":      {u1, object("from", "Note", "orderBy", list(list("rank", "asc")), "cursor", cursor)},
		"no order":           {u1, object("from", "Note", "cursor", cursor)},
		"another entity":     {u1, object("from", "Reply", "cursor", cursor)},
		"its end cut off":    {u1, page("cursor", cursor[:len(cursor)-2])},
		"something appended": {u1, page("cursor", cursor+"AA")},
		"an empty one":       {u1, page("cursor", "")},
		"an id for a cursor": {u1, page("cursor", mine)},
		"one letter changed": {u1, page("cursor", cursor[:9]+string(cursor[9]^1)+cursor[10:])},
	} {
		if got := r.do(try.who, "query", try.args); got.code != fault.Invalid || !strings.Contains(got.detail, "cursor") {
			t.Errorf("%s: %v", name, got)
		}
	}
	if strings.Contains(cursor, mine) || len(cursor) > 400 {
		t.Errorf("the cursor is %q", cursor)
	}
}

// Without the right to read, an insert returns the given and the generated values, updates
// and deletes return a count, and only the id can be named.
func TestAnInsertWithoutReadAccessReturnsWhatWasWritten(t *testing.T) {
	r := newRig(t, desk)
	defer r.close()
	who := session("u1", "t1")
	row := r.must(who, "insert", object("into", "Log", "values", object("text", "a")))["rows"].([]any)[0].(map[string]any)
	id, _ := row["id"].(string)
	if len(row) != 2 || row["text"] != "a" || id == "" {
		t.Errorf("the insert returns %v", row)
	}
	for op, args := range map[string]map[string]any{
		"query": object("from", "Log"), "get": object("from", "Log", "id", id), "count": object("from", "Log"),
	} {
		if got := r.do(who, op, args); got.code != fault.Denied {
			t.Errorf("%s: %v", op, got)
		}
	}
	for op, args := range map[string]map[string]any{
		"update": object("in", "Log", "set", object("text", "b"), "where", list(list("text", "=", "a"))),
		"delete": object("from", "Log", "where", list(list("id", "=", id), list("text", "=", "a"))),
	} {
		if got := r.do(who, op, args); got.code != fault.Invalid || !strings.Contains(got.detail, "text") {
			t.Errorf("%s by another field than id: %v", op, got)
		}
	}
	if got := r.must(who, "update", object("in", "Log", "set", object("text", "b"), "where", byID(id))); !reflect.DeepEqual(got, map[string]any{"count": 1.0}) {
		t.Errorf("the update returns %v", got)
	}
	if got := r.must(who, "delete", object("from", "Log", "where", byID(id))); !reflect.DeepEqual(got, map[string]any{"count": 1.0}) {
		t.Errorf("the delete returns %v", got)
	}
}

const club = `
auth {
  session cookie { idle: 30m, absolute: 12h }
  roles: [admin]
  user: User
  tenant: Org
}
entity Org { id: id @@allow read to session }
entity User { id: id @@allow read to session }
entity Member {
  id: id
  name: string
  head: bool = false
  boss: Member?
  seats: int = 0
  @@allow all to session
  @@deny insert when exists(Member where name == outer.name)
  @@deny update when new.seats != old.seats and exists(Member where seats > 0 and id != outer.id)
  @@deny update when boss.head and new.name != old.name
  @@deny delete when head and not exists(Member where head and id != outer.id)
}
`

// A list of rows may be written if each may be written after the previous ones: rules see
// the earlier rows.
func TestAListReturnsTheSameFieldsAsSingleReads(t *testing.T) {
	r := newRig(t, club)
	defer r.close()
	who := session("u1", "t1")
	member := func(name string, more ...any) map[string]any { return object(append(more, "name", name)...) }
	if got := r.do(who, "insert", object("into", "Member", "values", list(member("a"), member("a")))); got.code != fault.Denied {
		t.Errorf("two members of one name: %v", got)
	}
	r.must(who, "insert", object("into", "Member", "values", list(member("a", "head", true), member("b", "head", true), member("c"))))
	if got := r.do(who, "update", object("in", "Member", "set", object("seats", 1), "where", list())); got.result["count"] == 3.0 {
		t.Errorf("seats for all at once: %v", got)
	}
	if rows := r.must(system, "query", object("from", "Member", "where", list(list("seats", ">", 0))))["rows"].([]any); len(rows) > 1 {
		t.Errorf("members with seats: %v", rows)
	}
	if got := r.do(who, "delete", object("from", "Member", "where", list())); got.code != "" {
		t.Errorf("delete of all: %v", got)
	}
	rows := r.must(system, "query", object("from", "Member", "select", list("name"), "where", list(list("head", "=", true))))["rows"].([]any)
	if len(rows) != 1 {
		t.Errorf("the heads that are left: %v", rows)
	}
}

// Rules see what the transaction has written, also through relations.
func TestRulesSeeWhatTheTransactionHasWritten(t *testing.T) {
	r := newRig(t, club)
	defer r.close()
	boss := r.insert("Member", map[string]any{"name": "boss"})
	id := r.insert("Member", map[string]any{"name": "a", "boss": boss})
	rename := func(name string) map[string]any {
		return object("in", "Member", "set", object("name", name), "where", byID(id))
	}
	head := func(is bool) map[string]any {
		return object("in", "Member", "set", object("head", is), "where", byID(boss))
	}
	const denied = -1
	r.update(session("u1", "t1"), func(a *entity.Access) {
		for i, step := range []struct {
			op    string
			args  map[string]any
			count float64 // of changed rows, or denied
		}{
			{"update", rename("b"), 1},
			{"update", head(true), 1},
			{"update", rename("c"), denied},
			{"update", head(false), 1},
			{"update", rename("d"), 1},
			{"update", object("in", "Member", "set", object("boss", nil), "where", byID(id)), 1},
			{"delete", object("from", "Member", "where", byID(boss)), 1},
			{"update", rename("e"), denied}, // without a boss the rule is unknown, and a deny that is unknown denies
		} {
			got := call(t, a, step.op, step.args)
			if step.count == denied && got.code != fault.Denied || step.count != denied && got.result["count"] != step.count {
				t.Errorf("step %d: %v, want %v", i, got, step.count)
			}
		}
	})
}

// Pages are read one by one while rows are inserted and deleted. Every row that does not
// change is on exactly one page, in order.
func TestPagingContinuesWhileRowsChange(t *testing.T) {
	seed := newSeed(t)
	for i, order := range []any{
		list(list("v", "asc")), list(list("v", "desc")), list(list("w", "asc")), list(list("w", "desc"), list("v", "asc")), list(),
	} {
		d := newDice(seed, uint64(i))
		r := newRig(t, desk)
		who := session("u1", "t1")
		steady := map[string]bool{}
		var loose []string
		weight := func() map[string]any { return object("w", d.IntN(20), "v", d.IntN(10)) }
		for n := range 120 {
			id := r.insert("Weight", weight())
			if n%3 == 0 {
				loose = append(loose, id)
			} else {
				steady[id] = true
			}
		}
		seen := map[string]int{}
		var last map[string]any
		for cursor := any(nil); ; {
			page := r.must(who, "query", object("from", "Weight", "orderBy", order, "limit", 7, "cursor", cursor))
			for _, v := range page["rows"].([]any) {
				row := v.(map[string]any)
				seen[row["id"].(string)]++
				for _, term := range order.([]any) {
					name, c := term.([]any)[0].(string), 0
					if last != nil {
						c = refOrder("int", last[name], row[name])
					}
					if term.([]any)[1] == "desc" {
						c = -c
					}
					if c > 0 {
						t.Errorf("%v: %v comes after %v", order, row, last)
					}
					if c != 0 {
						break
					}
				}
				last = row
			}
			if cursor = page["nextCursor"]; cursor == nil {
				break
			}
			for range 3 {
				id := pick(d, loose...)
				switch d.IntN(3) {
				case 0:
					loose = append(loose, r.insert("Weight", weight()))
				case 1:
					r.must(system, "delete", object("from", "Weight", "where", byID(id)))
				case 2:
					r.must(system, "update", object("in", "Weight", "set", weight(), "where", byID(id)))
				}
			}
		}
		for id := range steady {
			if seen[id] != 1 {
				t.Errorf("%v: a row that stayed was on %d pages", order, seen[id])
			}
		}
		r.close()
	}
}

// An operation that is too large for a transaction changes nothing, and the transaction
// remains usable.
func TestAnOperationOverItsLimitChangesNothing(t *testing.T) {
	sequential(t)
	r := newRig(t, desk)
	defer r.close()
	long := strings.Repeat("x", 10_000)
	var values []any
	for range 1000 {
		values = append(values, object("text", long))
	}
	r.update(session("u1", "t1"), func(a *entity.Access) {
		if got := call(t, a, "insert", object("into", "Log", "values", object("text", "before"))); got.code != "" {
			t.Error(got)
		}
		for range 2 {
			if got := call(t, a, "insert", object("into", "Log", "values", values)); got.code != fault.TooLarge {
				t.Errorf("10 MB of rows: %.200s", got)
			}
		}
		if got := call(t, a, "insert", object("into", "Log", "values", object("text", "after"))); got.code != "" {
			t.Error(got)
		}
	})
	if rows := r.all("Log"); len(rows) != 2 {
		t.Errorf("%d rows are there", len(rows))
	}
}
