package keystore_test

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"runtime"
	"slices"
	"strings"
	"testing"

	"runner.example/internal/caller"
	"runner.example/internal/cost"
	"runner.example/internal/fault"
	"runner.example/keystore"
	"runner.example/state/store"
)

// generous lets everybody create keys of the scopes of typed and of untyped: what a caller reaches
// does not follow from the schema under which keys were made.
const generous = `
auth { session cookie {} roles: [admin, staff] }
entity Order { id: id }
apiKeys { scopes: {
  orders_read: @system("orders.read") { @grant read on Order @issue when auth.kind != "anonymous" },
  orders_write: @system("orders.write") { @grant read on Order @issue when auth.kind != "anonymous" },
  minted: @system("minted") { @grant read on Order @issue when auth.kind != "anonymous" },
  minter: @system("minter") { @grant read on Order @issue when auth.kind != "anonymous" }
} }
`

// seen is what the model knows of a key.
type seen struct {
	keystore.Key
	kind, owner string
}

// asker is a caller. issues and manages are the scopes that its schema lets it, by hand.
type asker struct {
	name            string
	by              keystore.Authority
	issues, manages string
}

// reaches is the model: a user reaches what it made, a key itself and what it made, and others
// what @manage names; all in their tenant.
func (a asker) reaches(key seen) bool {
	c := a.by.Caller
	switch {
	case c.Kind == caller.System:
		return c.Tenant == "" || c.Tenant == key.Tenant
	case a.by.Schema == nil || c.Kind == caller.Anonymous || c.Tenant != key.Tenant:
		return false
	case c.Kind == caller.Session && key.kind == "user" && key.owner == c.UserID:
		return true
	case c.Kind == caller.APIKey && (key.ID == c.KeyID || key.kind == "key" && key.owner == c.KeyID):
		return true
	}
	return slices.Contains(strings.Fields(a.manages), key.Scope)
}

// Every principal with every operation on keys of every owner, tenant and scope, compared with a
// model. A user whose id is that of a key is not that key.
func TestReachMatrix(t *testing.T) {
	w := inMemory(t)
	s, plain, open := compile(t, typed), compile(t, untyped), compile(t, generous)
	op := operator(open)
	scopes := []string{"orders_read", "orders_write", "minted", "minter"}
	var all []seen
	add := func(by keystore.Authority, req keystore.CreateRequest, kind, owner string) keystore.Key {
		t.Helper()
		key := w.must(w.create(by, req))
		all = append(all, seen{key, kind, owner})
		return key
	}
	machines := map[string]keystore.Key{} // by tenant and scope
	for _, tenant := range []string{"", "a", "b"} {
		for _, scope := range scopes {
			machines[tenant+"/"+scope] = add(op, keystore.CreateRequest{Scope: scope, Tenant: tenant}, "", "")
		}
	}
	machine := machines["a/minter"]
	for _, tenant := range []string{"", "a", "b"} {
		for _, scope := range scopes {
			for _, user := range []string{"ada", "bob", machine.ID} {
				add(session(open, tenant, user), keystore.CreateRequest{Scope: scope}, "user", user)
			}
			// Another tenant cannot have a key of the same id, but an error could let one pass.
			add(apiKey(open, tenant, machine.ID, "minter", "minter"), keystore.CreateRequest{Scope: scope}, "key", machine.ID)
			other := machines[tenant+"/orders_read"]
			add(apiKey(open, tenant, other.ID, "orders_read", "orders.read"), keystore.CreateRequest{Scope: scope}, "key", other.ID)
		}
	}
	dead := add(session(open, "a", "ada"), keystore.CreateRequest{Scope: "orders_read"}, "user", "ada")
	w.must(w.revoke(op, dead.ID))

	within := operator(s)
	within.Caller.Tenant = "a"
	anonymous := keystore.Authority{Schema: s, Caller: caller.Caller{Tenant: "a", UserID: "ada", KeyID: machine.ID, Roles: []string{"admin"}}}
	under := keystore.Authority{Schema: s, Caller: caller.Caller{Tenant: "a", As: "minter", Capability: "minter"}}
	for _, who := range []asker{
		{"operator", operator(s), "orders_read orders_write minted minter", ""},
		{"operator of a", within, "orders_read orders_write minted minter", ""},
		{"ada of a", session(s, "a", "ada"), "", ""},
		{"ada of b", session(s, "b", "ada"), "", ""},
		{"ada without a tenant", session(s, "", "ada"), "", ""},
		{"ada, admin of a", session(s, "a", "ada", "admin"), "orders_read orders_write", "orders_write minter"},
		{"bob, staff of a", session(s, "a", "bob", "staff"), "orders_read", "orders_write"},
		{"bob, staff of b", session(s, "b", "bob", "staff"), "orders_read", "orders_write"},
		{"eve of a, who has no keys", session(s, "a", "eve"), "", ""},
		{"a user with the id of a key", session(s, "a", machine.ID), "", ""},
		{"an admin with the id of a key", session(s, "a", machine.ID, "admin"), "orders_read orders_write", "orders_write minter"},
		{"the minter of a", apiKey(s, "a", machine.ID, "minter", "minter"), "minted", "orders_write"},
		{"the reader of a", apiKey(s, "a", machines["a/orders_read"].ID, "orders_read", "orders.read"), "", ""},
		{"the reader without a tenant", apiKey(s, "", machines["/orders_read"].ID, "orders_read", "orders.read"), "", ""},
		{"anonymous, as ada", anonymous, "", ""},
		{"a job under the minter's scope", under, "", ""},
		{"untyped: ada of a", session(plain, "a", "ada"), "orders_read", ""},
		{"untyped: ada without a tenant", session(plain, "", "ada"), "orders_read", ""},
		{"untyped: the reader of a", apiKey(plain, "a", machines["a/orders_read"].ID, "orders_read", "orders.read"), "", ""},
		{"ada of a without a schema", keystore.Authority{Caller: caller.Caller{Kind: caller.Session, UserID: "ada", Tenant: "a"}}, "", ""},
	} {
		w.compare(who, all, dead.ID)
	}
}

// compare runs every operation on every key as the caller, and none of them is kept.
func (w *fixture) compare(who asker, all []seen, dead string) {
	w.Helper()
	answer := func(err error) string {
		if err == nil {
			return ""
		}
		return fmt.Sprintf("%v|%v", fault.CodeOf(err), err)
	}
	operations := map[string]func(*store.Tx, string) error{
		"get":    func(tx *store.Tx, id string) error { _, err := w.keys.Get(tx, who.by, id); return err },
		"revoke": func(tx *store.Tx, id string) error { _, err := w.keys.Revoke(tx, who.by, id); return err },
		"rotate": func(tx *store.Tx, id string) error { _, err := w.keys.Rotate(tx, who.by, id, 0); return err },
		// Also with arguments that would be refused of a key in reach.
		"rotate badly": func(tx *store.Tx, id string) error { _, err := w.keys.Rotate(tx, who.by, id, -1); return err },
	}
	for name, do := range operations {
		unknown := answer(w.dry(func(tx *store.Tx) error { return do(tx, "key_01arz3ndektsv4rrffq69g5fav") }))
		for _, key := range all {
			got := answer(w.dry(func(tx *store.Tx) error { return do(tx, key.ID) }))
			want := ""
			switch reaches := who.reaches(key); {
			case !reaches:
				want = unknown
			case name == "rotate" && !slices.Contains(strings.Fields(who.issues), key.Scope), name == "rotate badly" && !slices.Contains(strings.Fields(who.issues), key.Scope):
				want = "denied"
			case name == "rotate badly":
				want = "invalid"
			case name == "rotate" && key.ID == dead:
				want = "conflict"
			}
			if code, _, _ := strings.Cut(got, "|"); got != want && code != want {
				w.Errorf("%s, %s of a %s of %q, tenant %q: %q, want %q", who.name, name, key.Scope, key.kind+" "+key.owner, key.Tenant, got, want)
			}
		}
	}
	for _, scope := range []string{"", "orders_read", "orders_write", "minted", "minter"} {
		if who.by.Schema == nil || scope != "" && who.by.Schema.Scope(scope) == nil {
			continue
		}
		for _, f := range []keystore.Filter{{Scope: scope}, {Scope: scope, All: true}, {Scope: scope, Owner: "ada"}, {Scope: scope, Limit: 2}} {
			var want, got []string
			for _, key := range all {
				if who.reaches(key) && (scope == "" || key.Scope == scope) && (f.All || key.ID != dead) && (f.Owner == "" || f.Owner == key.owner) {
					want = append(want, key.ID)
				}
			}
			slices.Sort(want)
			for {
				page, err := w.list(who.by, f)
				if err != nil {
					w.Fatal(err)
				}
				for _, key := range page.Keys {
					got = append(got, key.ID)
					i := slices.IndexFunc(all, func(k seen) bool { return k.ID == key.ID })
					if key.Owner != all[i].owner || string(key.OwnerKind) != all[i].kind {
						w.Errorf("%s: %s is listed as owned by the %s %q", who.name, key.ID, key.OwnerKind, key.Owner)
					}
				}
				if f.Cursor = page.NextCursor; f.Cursor == "" {
					break
				}
			}
			if !slices.Equal(got, want) {
				w.Errorf("%s lists %+v: %d keys %v, want %d %v", who.name, f, len(got), got, len(want), want)
			}
		}
	}
}

// A user with three keys pays for three, whatever others have; so does a key.
func TestAListReadsOnlyTheKeysOfItsCaller(t *testing.T) {
	open, others := inMemory, 2000
	if os.Getenv("RUNNER_SOAK") != "" {
		open, others = onDisk, 1_000_000
	}
	w := open(t)
	s := compile(t, generous)
	ada, bob := session(s, "", "ada"), session(s, "", "bob")
	machine := apiKey(s, "", "", "minter", "minter")
	for range 3 {
		w.must(w.create(ada, keystore.CreateRequest{Scope: "orders_read"}))
		machine.Caller.KeyID = w.must(w.create(operator(s), keystore.CreateRequest{Scope: "minter"})).ID
	}
	for range 2 {
		w.must(w.create(machine, keystore.CreateRequest{Scope: "minted"}))
	}
	// units returns how much a thousand lists spend, of three keys each.
	units := func(by keystore.Authority) (checks int) {
		meter := &cost.Meter{}
		meter.Reset(func() error { checks++; return nil })
		by.Work = meter
		for range 1000 {
			if page, err := w.list(by, keystore.Filter{}); err != nil || len(page.Keys) != 3 {
				t.Fatalf("%d keys, %v", len(page.Keys), err)
			}
		}
		return checks
	}
	before := []int{units(ada), units(machine)}
	if before[0] == 0 || before[1] == 0 {
		t.Fatal("lists cost nothing: the meter does not see them")
	}
	n := 0
	w.createMany(bob, others, keystore.CreateRequest{Scope: "orders_read"}, func(tx *store.Tx, key keystore.Key) (err error) {
		if n++; n%10 == 0 {
			_, err = w.keys.Revoke(tx, bob, key.ID)
		}
		return err
	})
	if after := []int{units(ada), units(machine)}; !slices.Equal(after, before) {
		t.Errorf("a thousand lists spend %d checks beside %d keys of others, %d without", after, others, before)
	}
}

// A revoked or expired key leaves its owner's list, in the store too; the list is empty again at the
// end.
func TestTheListOfAnOwnerHasItsLiveKeys(t *testing.T) {
	w := inMemory(t)
	s := compile(t, typed)
	admin := session(s, "a", "u1", "admin")
	revoked := w.must(w.create(admin, keystore.CreateRequest{Scope: "orders_read"}))
	expiring := w.must(w.create(admin, keystore.CreateRequest{Scope: "orders_read", ExpiresIn: lasting(day)}))
	kept := w.must(w.create(admin, keystore.CreateRequest{Scope: "orders_read"}))
	if got := w.owned(); len(got) != 3 {
		t.Errorf("%q", got)
	}
	w.must(w.revoke(admin, revoked.ID))
	w.clock.advance(day)
	if page, err := w.list(admin, keystore.Filter{}); err != nil || !slices.Equal(ids(page), []string{kept.ID}) {
		t.Errorf("%v, %v", ids(page), err)
	}
	if err := w.keys.DropDead(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := w.owned(); len(got) != 1 || !strings.HasSuffix(got[0], kept.ID) {
		t.Errorf("%q, want that of %s", got, kept.ID)
	}
	// Dead keys are still reached by their id.
	w.must(w.get(admin, revoked.ID))
	w.must(w.get(admin, expiring.ID))
	w.must(w.revoke(admin, kept.ID))
	if got := w.owned(); len(got) != 0 {
		t.Errorf("%q", got)
	}
}

// owned returns the entries of the lists of owners.
func (w *fixture) owned() (keys []string) {
	w.Helper()
	if err := w.store.View(w.Context(), func(tx *store.Tx) error {
		for item, err := range tx.Scan([]byte("keystore/owner/"), nil, false) {
			if err != nil {
				return err
			}
			keys = append(keys, string(item.Key))
		}
		return nil
	}); err != nil {
		w.Fatal(err)
	}
	return keys
}

// age gives keys the form in which versions without kinds of owners wrote them.
func (w *fixture) age(keys ...keystore.Key) {
	w.Helper()
	if _, err := w.store.Update(w.Context(), func(tx *store.Tx) error {
		for item, err := range tx.Scan([]byte("keystore/owner/"), nil, false) {
			if err != nil {
				return err
			}
			if err := tx.Delete(slices.Clone(item.Key)); err != nil {
				return err
			}
		}
		for _, key := range keys {
			at := []byte("keystore/key/" + key.ID)
			value, err := tx.Get(at)
			if err != nil {
				return err
			}
			var fields map[string]json.RawMessage
			if err := json.Unmarshal(value, &fields); err != nil {
				return err
			}
			delete(fields, "ownerKind")
			if value, err = json.Marshal(fields); err != nil {
				return err
			}
			if err := tx.Set(at, value); err != nil {
				return err
			}
		}
		return nil
	}); err != nil {
		w.Fatal(err)
	}
}

// Keys of a version without kinds of owners belong to a user, or to a key if the owner has the form
// of a key's id. Their lists are complete at once, and are in the store soon.
func TestKeysOfAnOlderVersionHaveAnOwner(t *testing.T) {
	w := onDisk(t)
	s := compile(t, generous)
	ada := session(s, "a", "ada")
	machine := w.must(w.create(operator(s), keystore.CreateRequest{Scope: "minter", Tenant: "a"}))
	by := apiKey(s, "a", machine.ID, "minter", "minter")
	var all []keystore.Key
	all = append(all, w.createMany(session(s, "a", "bob"), 1200, keystore.CreateRequest{Scope: "minted"}, nil)...) // more than one transaction takes
	own := w.must(w.create(ada, keystore.CreateRequest{Scope: "minted"}))
	issued := w.must(w.create(by, keystore.CreateRequest{Scope: "minted"}))
	ended := w.must(w.create(ada, keystore.CreateRequest{Scope: "minted"}))
	w.must(w.revoke(ada, ended.ID))
	all = append(all, own, issued, ended, machine)
	check := func(state string) {
		t.Helper()
		for _, c := range []struct {
			by   keystore.Authority
			want []string
		}{
			{ada, []string{own.ID}}, {by, []string{machine.ID, issued.ID}},
			// The user whose id is that of the key does not get them, so no caller sees keys of another one.
			{session(s, "a", machine.ID), nil}, {session(s, "b", "ada"), nil},
		} {
			slices.Sort(c.want)
			if page, err := w.list(c.by, keystore.Filter{}); err != nil || !slices.Equal(ids(page), c.want) {
				t.Errorf("%s: %+v lists %v, %v; want %v", state, c.by.Caller, ids(page), err, c.want)
			}
		}
		if got := w.must(w.get(by, issued.ID)); got.OwnerKind != keystore.OwnerKey {
			t.Errorf("%s: %s is owned by a %s", state, issued.ID, got.OwnerKind)
		}
		if got := w.must(w.get(ada, ended.ID)); got.OwnerKind != keystore.OwnerUser || got.Status != keystore.Revoked {
			t.Errorf("%s: %+v", state, got)
		}
	}
	w.age(all...)
	check("before they are written again")
	audited := len(w.audit())
	w.reopen()
	check("after a restart")
	for len(w.owned()) < 1202 { // the background task writes them
		runtime.Gosched()
	}
	check("after they were written again")
	for range 2 { // the first forgets them, the second has nothing to do
		if err := w.keys.AddToOwnerLists(t.Context()); err != nil {
			t.Fatal(err)
		}
		check("with their lists")
	}
	if n := w.keys.Unlisted(); n != 0 {
		t.Errorf("%d keys count as without a list", n)
	}
	if got := len(w.audit()); got != audited {
		t.Errorf("%d records of the audit", got-audited)
	}
	w.accepts(own)
	w.accepts(issued)
	// A node of the older version writes once more, as in a cluster that is upgraded.
	w.age(own)
	check("when an older node wrote")
	if err := w.keys.AddToOwnerLists(t.Context()); err != nil || len(w.owned()) != 1 {
		t.Errorf("%v, %q", err, w.owned())
	}
}

// The refusal names the line that the schema needs, and so does the log, once for each schema.
func TestARefusalWithoutIssueNamesTheLine(t *testing.T) {
	const form = `auth { session cookie {} %s }
entity Order { id: id }
apiKeys { scopes: { plain: @system("plain") { }, reader: @system("reader") { @grant read on Order }, other: @system("other") { %s } } }
`
	for _, c := range []struct{ roles, other, line string }{
		{"", "", `@issue when auth.kind == "session"`},
		{"roles: [admin]", "", `@issue when auth.role == "…"`},
		{"roles: [admin]", `@issue when auth.role == "admin"`, `@issue when auth.role == "…"`},
	} {
		var log strings.Builder
		w := &fixture{TB: t, clock: newClock(), opt: keystore.Options{Logger: slog.New(slog.NewTextHandler(&log, nil))}}
		w.open()
		s := compile(t, fmt.Sprintf(form, c.roles, c.other))
		ada := session(s, "", "ada")
		for range 3 {
			_, err := w.create(ada, keystore.CreateRequest{Scope: "reader"})
			w.refuses(fault.Denied, err)
			if want := `keys of scope "reader": only operators may, until the scope has a line such as ` + c.line; err == nil || !strings.Contains(fault.Of(err).Detail, want) {
				t.Errorf("%v, want %q", err, want)
			}
		}
		_, err := w.create(ada, keystore.CreateRequest{Scope: "plain"})
		if may := c.other == ""; (err == nil) != may {
			t.Errorf("a scope without grants, @issue elsewhere %q: %v", c.other, err)
		}
		want := 1
		if c.other != "" { // for plain too
			want = 2
		}
		if n := strings.Count(log.String(), "key not issued: its scope has no @issue"); n != want || !strings.Contains(log.String(), "scope=reader") || !strings.Contains(log.String(), "line=") {
			t.Errorf("%d lines, want %d:\n%s", n, want, log.String())
		}
		// Another release logs it again.
		ada.Schema = compile(t, fmt.Sprintf(form, c.roles, c.other))
		_, err = w.create(ada, keystore.CreateRequest{Scope: "reader"})
		w.refuses(fault.Denied, err)
		if n := strings.Count(log.String(), "scope=reader"); n != 2 {
			t.Errorf("%d lines of two releases:\n%s", n, log.String())
		}
		w.close()
	}
}
