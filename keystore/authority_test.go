package keystore_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"runner.example/internal/caller"
	"runner.example/internal/fault"
	"runner.example/keystore"
	"runner.example/schema"
	"runner.example/state/store"
)

func apiKey(s *schema.Schema, tenant, id, scope, capability string) keystore.Authority {
	return keystore.Authority{Schema: s, Caller: caller.Caller{
		Kind: caller.APIKey, KeyID: id, Tenant: tenant, Scope: scope, Capability: capability,
	}}
}

// TestIssueMatrix compares every pair of principal and scope with a table written by hand.
func TestIssueMatrix(t *testing.T) {
	s, plain := compile(t, typed), compile(t, untyped)
	scopes := []string{"orders_read", "orders_write", "minted", "minter", "everywhere"}
	for _, c := range []struct {
		name string
		by   keystore.Authority
		may  string // one letter for each scope: y or -
	}{
		{"operator", operator(s), "yyyyy"},
		{"admin of a", session(s, "a", "u1", "admin"), "yy---"},
		{"admin of b", session(s, "b", "u2", "admin"), "yy---"},
		{"admin without a tenant", session(s, "", "u3", "admin"), "yy---"},
		{"staff of a", session(s, "a", "u4", "staff"), "y----"},
		{"user of a", session(s, "a", "u5"), "-----"},
		{"made-up role", session(s, "a", "u6", "administrator"), "-----"},
		{"anonymous", keystore.Authority{Schema: s}, "-----"},
		{"anonymous with a tenant", keystore.Authority{Schema: s, Caller: caller.Caller{Tenant: "a", UserID: "u1", Roles: []string{"admin"}}}, "-----"},
		{"minter of a", apiKey(s, "a", "key_1", "minter", "minter"), "--y--"},
		{"reader of a", apiKey(s, "a", "key_2", "orders_read", "orders.read"), "-----"},
		{"untyped: operator", operator(plain), "y---y"},
		{"untyped: user of a", session(plain, "a", "u1"), "y----"},
		{"untyped: user without a tenant", session(plain, "", "u1"), "y----"},
		{"untyped: key", apiKey(plain, "a", "key_3", "orders_read", "orders.read"), "-----"},
		{"untyped: anonymous", keystore.Authority{Schema: plain}, "-----"},
		{"without a schema", keystore.Authority{Caller: caller.Caller{Kind: caller.Session, UserID: "u1", Tenant: "a"}}, "-----"},
	} {
		w := inMemory(t)
		system := c.by.Caller.Kind == caller.System
		for i, scope := range scopes {
			may := c.may[i] == 'y'
			key, err := w.create(c.by, keystore.CreateRequest{Scope: scope})
			if (err == nil) != may {
				t.Errorf("%s creates %s: %v", c.name, scope, err)
			}
			if err != nil {
				if code := fault.CodeOf(err); code != fault.Denied && code != fault.Invalid {
					t.Errorf("%s creates %s: refused with %v", c.name, scope, code)
				}
			} else if !system && (key.Tenant != c.by.Caller.Tenant || key.Owner != c.by.Caller.UserID+c.by.Caller.KeyID) {
				t.Errorf("%s creates a key of tenant %q, owner %q", c.name, key.Tenant, key.Owner)
			}
			// Only an operator may set a tenant.
			for _, tenant := range []string{"a", "b"} {
				_, err := w.create(c.by, keystore.CreateRequest{Scope: scope, Tenant: tenant})
				if ok := system && may && scope != "everywhere"; (err == nil) != ok {
					t.Errorf("%s creates %s for tenant %s: %v", c.name, scope, tenant, err)
				}
			}
		}
	}
}

// TestCVE202561928 is after better-auth's hole: a call without a session that
// named a user in its body made a key for that user.
func TestCVE202561928(t *testing.T) {
	w := inMemory(t)
	s := compile(t, typed)
	anonymous := keystore.Authority{Schema: s}
	for _, req := range []keystore.CreateRequest{
		{Scope: "orders_read"}, {Scope: "orders_read", Tenant: "victim"}, {Scope: "orders_write", Metadata: []byte(`{"userId":"victim","tenant":"victim"}`)},
	} {
		_, err := w.create(anonymous, req)
		w.refuses(fault.Denied, err)
	}
	// With a session, the body still does not select a user.
	key := w.must(w.create(session(s, "a", "u1", "admin"), keystore.CreateRequest{
		Scope: "orders_read", Name: "userId=victim", Metadata: []byte(`{"userId":"victim","owner":"victim","tenant":"victim"}`),
	}))
	if key.Tenant != "a" || key.Owner != "u1" {
		t.Errorf("made for %q of %q", key.Owner, key.Tenant)
	}
	_, err := w.create(session(s, "a", "u1", "admin"), keystore.CreateRequest{Scope: "orders_read", Tenant: "a"})
	w.refuses(fault.Denied, err)
	page, err := w.list(operator(s), keystore.Filter{All: true})
	if err != nil || len(page.Keys) != 1 {
		t.Errorf("%d keys, %v", len(page.Keys), err)
	}
}

func TestForeignKeyIdsNotFound(t *testing.T) {
	w := inMemory(t)
	s := compile(t, typed)
	op := operator(s)
	foreign := w.must(w.create(op, keystore.CreateRequest{Scope: "orders_read", Tenant: "b"}))
	withoutTenant := w.must(w.create(op, keystore.CreateRequest{Scope: "orders_read"}))
	higher := w.must(w.create(op, keystore.CreateRequest{Scope: "minted", Tenant: "a"}))
	dead := w.must(w.create(op, keystore.CreateRequest{Scope: "orders_read", Tenant: "b"}))
	w.must(w.revoke(op, dead.ID))
	admin := session(s, "a", "u1", "admin")
	answer := func(err error) string { return fmt.Sprintf("%#v|%v", *fault.Of(err), err) }
	_, err := w.get(admin, "key_01arz3ndektsv4rrffq69g5fav")
	random := answer(err)
	before := len(w.audit())
	for _, key := range []keystore.Key{foreign, withoutTenant, higher, dead} {
		for name, call := range map[string]func() (keystore.Key, error){
			"get":    func() (keystore.Key, error) { return w.get(admin, key.ID) },
			"rotate": func() (keystore.Key, error) { return w.rotate(admin, key.ID, 0) },
			"revoke": func() (keystore.Key, error) { return w.revoke(admin, key.ID) },
			// Also with arguments that would be refused of a key in reach.
			"rotate with a bad grace": func() (keystore.Key, error) { return w.rotate(admin, key.ID, -1) },
		} {
			if got, err := call(); fault.CodeOf(err) != fault.NotFound || answer(err) != random || got.ID != "" {
				t.Errorf("%s of %s in %q: %v; of a random id: %s", name, key.Scope, key.Tenant, err, random)
			}
		}
	}
	page, err := w.list(admin, keystore.Filter{All: true})
	if err != nil || len(page.Keys) != 0 {
		t.Errorf("%d keys listed, %v", len(page.Keys), err)
	}
	if after := len(w.audit()); after != before {
		t.Errorf("%d changes", after-before)
	}
	w.accepts(foreign)
	w.accepts(withoutTenant)
	w.accepts(higher)
}

func TestOnlyAnOperatorDisablesAndEnables(t *testing.T) {
	w := inMemory(t)
	s := compile(t, typed)
	admin := session(s, "a", "u1", "admin")
	key := w.must(w.create(admin, keystore.CreateRequest{Scope: "orders_read"}))
	for _, id := range []string{key.ID, "key_01arz3ndektsv4rrffq69g5fav"} {
		_, err := w.disable(admin, id)
		w.refuses(fault.Denied, err)
		_, err = w.enable(admin, id)
		w.refuses(fault.Denied, err)
	}
	w.accepts(key)
}

func TestTheOwnerIsTheUserOrTheKeyThatIssued(t *testing.T) {
	w := inMemory(t)
	s := compile(t, typed)
	for _, c := range []struct {
		by    keystore.Authority
		scope string
		kind  keystore.OwnerKind
		owner string
	}{
		{apiKey(s, "a", "key_1", "minter", "minter"), "minted", keystore.OwnerKey, "key_1"},
		{session(s, "a", "u1", "admin"), "orders_read", keystore.OwnerUser, "u1"},
		{session(s, "a", "key_1", "admin"), "orders_read", keystore.OwnerUser, "key_1"},
		{operator(s), "minted", "", ""},
	} {
		key := w.must(w.create(c.by, keystore.CreateRequest{Scope: c.scope}))
		if key.OwnerKind != c.kind || key.Owner != c.owner || key.Tenant != c.by.Caller.Tenant {
			t.Errorf("by %+v: owned by the %s %q", c.by.Caller, key.OwnerKind, key.Owner)
		}
		again := w.must(w.get(operator(s), key.ID))
		if again.OwnerKind != c.kind || again.Owner != c.owner {
			t.Errorf("by %+v: read as owned by the %s %q", c.by.Caller, again.OwnerKind, again.Owner)
		}
	}
}

func TestAnOperatorCanRevokeKeysWithoutASchema(t *testing.T) {
	w := inMemory(t)
	op, bare := operator(compile(t, typed)), operator(nil)
	key := w.must(w.create(op, keystore.CreateRequest{Scope: "orders_read"}))
	w.must(w.get(bare, key.ID))
	w.must(w.disable(bare, key.ID))
	w.must(w.enable(bare, key.ID))
	for name, call := range map[string]func() (keystore.Key, error){
		"create": func() (keystore.Key, error) {
			return w.create(bare, keystore.CreateRequest{Scope: "orders_read"})
		},
		"rotate": func() (keystore.Key, error) { return w.rotate(bare, key.ID, 0) },
	} {
		_, err := call()
		w.refuses(fault.Invalid, err)
		if err != nil && !strings.Contains(err.Error(), "no schema is active") {
			t.Errorf("%s: %v", name, err)
		}
	}
	w.must(w.revoke(bare, key.ID))
	page, err := w.list(bare, keystore.Filter{All: true, Scope: "orders_read"})
	if err != nil || len(page.Keys) != 1 {
		t.Errorf("%d keys, %v", len(page.Keys), err)
	}
}

// TestScopeRenamedRemoved tests the keystore's part: who may manage and issue follows from the
// active schema, not from the key's record. The key's owner always reaches it.
func TestScopeRenamedRemoved(t *testing.T) {
	const form = `
auth {
  session jwt { issuer: "https://id.example.com", audience: "shop", jwks: "https://id.example.com/jwks", algorithms: [EdDSA] }
  roles: [admin]
}
apiKeys { scopes: { %s } }`
	scope := func(name, capability string) string {
		return fmt.Sprintf(`%s: @system("%s") { @grant read on Order @issue when auth.role == "admin" @manage when auth.role == "admin" }`, name, capability)
	}
	before := compile(t, fmt.Sprintf(form, scope("a", "cap.a")))
	renamed := compile(t, fmt.Sprintf(form, scope("b", "cap.a")))
	twice := compile(t, fmt.Sprintf(form, scope("b", "cap.a")+","+scope("c", "cap.a")))
	removed := compile(t, fmt.Sprintf(form, scope("x", "cap.x")))
	reused := compile(t, fmt.Sprintf(form, scope("a", "cap.other")))
	for _, c := range []struct {
		name    string
		schema  *schema.Schema
		reaches bool
		filter  string
	}{
		{"unchanged", before, true, "a"},
		{"renamed", renamed, true, "b"},
		{"renamed, by the old name", renamed, true, ""},
		{"two of its capability", twice, false, ""},
		{"removed", removed, false, ""},
		{"its name with another capability", reused, true, "a"},
	} {
		w := inMemory(t)
		owner, admin := session(before, "t", "u1", "admin"), session(c.schema, "t", "u2", "admin")
		key := w.must(w.create(owner, keystore.CreateRequest{Scope: "a"}))
		owner.Schema = c.schema
		for _, who := range []struct {
			keystore.Authority
			reaches bool
		}{{owner, true}, {admin, c.reaches}} {
			page, err := w.list(who.Authority, keystore.Filter{Scope: c.filter})
			if err != nil || (len(page.Keys) == 1) != who.reaches {
				t.Errorf("%s: %s lists %d keys, %v", c.name, who.Caller.UserID, len(page.Keys), err)
			}
			if _, err := w.get(who.Authority, key.ID); (err == nil) != who.reaches {
				t.Errorf("%s: %s gets %v", c.name, who.Caller.UserID, err)
			}
			want := fault.Code("")
			if !who.reaches {
				want = fault.NotFound
			} else if !c.reaches {
				want = fault.Denied // of a scope that is not there
			}
			if err := w.dry(func(tx *store.Tx) error { _, err := w.keys.Rotate(tx, who.Authority, key.ID, 0); return err }); err != nil && fault.CodeOf(err) != want || err == nil && want != "" {
				t.Errorf("%s: %s rotates with %v, want %q", c.name, who.Caller.UserID, err, want)
			}
		}
		// The key itself is what it was: what it opens is decided elsewhere.
		w.accepts(key)
		// An operator finds the keys of a scope that is gone.
		if page, err := w.list(operator(c.schema), keystore.Filter{Scope: "a"}); !c.reaches && (err != nil || len(page.Keys) != 1) {
			t.Errorf("%s: an operator lists %d keys, %v", c.name, len(page.Keys), err)
		}
		w.must(w.revoke(owner, key.ID))
	}
}

func TestKeysOfAHandlerAreCommittedWithItsTransaction(t *testing.T) {
	w := inMemory(t)
	admin := session(compile(t, typed), "a", "u1", "admin")
	var made, next keystore.Key
	_, err := w.store.Update(t.Context(), func(tx *store.Tx) (err error) {
		if made, err = w.keys.Create(tx, admin, keystore.CreateRequest{Scope: "orders_read"}); err != nil {
			return err
		}
		if next, err = w.keys.Rotate(tx, admin, made.ID, 0); err != nil {
			return err
		}
		page, err := w.keys.List(tx, admin, keystore.Filter{})
		if len(page.Keys) != 1 {
			t.Errorf("the transaction lists %d of its keys", len(page.Keys))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	w.rejects(made, keystore.Unknown)
	w.accepts(next)
}

func TestAKeyThatWouldSeeNothingIsRefused(t *testing.T) {
	s := compile(t, `
auth { session cookie {} roles: [admin] tenant: Org }
entity Org { id: id }
entity Task { id: id org: Org @tenant }
entity Country { id: id }
apiKeys {
  scopes: {
    tasks: @system("tasks") { @grant read, write on Task @issue when auth.role == "admin" },
    mixed: @system("mixed") { @grant read on Task @grant read on Country },
    all: @system("all") { @grant read on Task @allTenants },
    plain: @system("plain") { @grant read on Country }
  }
}
routes("/v1", auth: apiKey(tasks, mixed, all, plain)) { GET /tasks -> listTasks }
`)
	w := inMemory(t)
	for _, c := range []struct {
		by            keystore.Authority
		scope, tenant string
		want          string // the error contains it
	}{
		{operator(s), "tasks", "", `scope "tasks" has only grants on rows of tenants, so a key without a tenant would see nothing: add --tenant, or @allTenants to the scope`},
		{operator(s), "tasks", "acme", ""},
		{operator(s), "mixed", "", ""},
		{operator(s), "all", "", ""},
		{operator(s), "plain", "", ""},
		{session(s, "", "ada", "admin"), "tasks", "", "a key of a caller without a tenant would see nothing"},
		{session(s, "acme", "ada", "admin"), "tasks", "", ""},
	} {
		_, err := w.create(c.by, keystore.CreateRequest{Scope: c.scope, Tenant: c.tenant})
		if c.want == "" && err != nil || c.want != "" && (fault.CodeOf(err) != fault.Invalid || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s by %+v with tenant %q: %v, want %q", c.scope, c.by.Caller, c.tenant, err, c.want)
		}
	}
}

// An operator's command that names a tenant reaches the keys and sessions of that tenant, not those of
// others and not those without a tenant; and it creates none for them.
func TestAnOperatorWithATenantReachesOnlyThatTenant(t *testing.T) {
	w := inMemory(t)
	s := compile(t, strings.Replace(typed, `session jwt { issuer: "https://id.example.com", audience: "shop", jwks: "https://id.example.com/jwks", algorithms: [EdDSA] }`, "session cookie { }", 1))
	all, bound := operator(s), operator(s)
	bound.Caller.Tenant = "a"
	keys, sessions := map[string]keystore.Key{}, map[string]keystore.Session{}
	for _, tenant := range []string{"", "a", "b"} {
		keys[tenant] = w.must(w.create(all, keystore.CreateRequest{Scope: "orders_read", Tenant: tenant}))
		sessions[tenant] = w.mustSession(w.createSession(all, keystore.CreateSessionRequest{UserID: "ada", Tenant: tenant}))
	}
	for tenant, key := range keys {
		want := fault.NotFound
		if tenant == "a" {
			want = ""
		}
		for name, do := range map[string]func(*store.Tx) error{
			"get":     func(tx *store.Tx) error { _, err := w.keys.Get(tx, bound, key.ID); return err },
			"rotate":  func(tx *store.Tx) error { _, err := w.keys.Rotate(tx, bound, key.ID, 0); return err },
			"disable": func(tx *store.Tx) error { _, err := w.keys.Disable(tx, bound, key.ID); return err },
			"enable":  func(tx *store.Tx) error { _, err := w.keys.Enable(tx, bound, key.ID); return err },
			"revoke":  func(tx *store.Tx) error { _, err := w.keys.Revoke(tx, bound, key.ID); return err },
			"revoke of a session": func(tx *store.Tx) error {
				_, err := w.keys.RevokeSession(tx, bound, sessions[tenant].ID)
				return err
			},
		} {
			if err := w.dry(do); fault.CodeOf(err) != want {
				t.Errorf("%s of tenant %q: %v, want %q", name, tenant, err, want)
			}
		}
	}
	for _, filter := range []keystore.Filter{{}, {All: true}, {Scope: "orders_read"}} {
		if page, err := w.list(bound, filter); err != nil || !slices.Equal(ids(page), []string{keys["a"].ID}) {
			t.Errorf("%+v lists %v, %v", filter, ids(page), err)
		}
	}
	for _, row := range []struct {
		filter keystore.SessionFilter
		denied bool
	}{
		{keystore.SessionFilter{UserID: "ada"}, false}, {keystore.SessionFilter{UserID: "ada", Tenant: new("a")}, false},
		{keystore.SessionFilter{UserID: "ada", Tenant: new("")}, true}, {keystore.SessionFilter{UserID: "ada", Tenant: new("b")}, true},
		{keystore.SessionFilter{UserID: "ada", AllTenants: true}, true},
	} {
		page, err := w.listSessions(bound, row.filter)
		var ended []string
		failed := w.dry(func(tx *store.Tx) (err error) {
			ended, _, err = w.keys.RevokeSessions(tx, bound, row.filter, "")
			return err
		})
		if row.denied {
			w.refuses(fault.Denied, err)
			w.refuses(fault.Denied, failed)
			continue
		}
		if err != nil || len(page.Sessions) != 1 || page.Sessions[0].ID != sessions["a"].ID || failed != nil || !slices.Equal(ended, []string{sessions["a"].ID}) {
			t.Errorf("%+v lists %+v, %v, and revokes %v, %v", row.filter, page.Sessions, err, ended, failed)
		}
	}
	for tenant, denied := range map[string]bool{"a": false, "b": true, "": false} {
		key, err := w.create(bound, keystore.CreateRequest{Scope: "orders_read", Tenant: tenant})
		if denied {
			w.refuses(fault.Denied, err)
		} else if err != nil || key.Tenant != "a" { // it need not be named
			t.Errorf("a key for %q is of %q, %v", tenant, key.Tenant, err)
		}
		_, err = w.createSession(bound, keystore.CreateSessionRequest{UserID: "ada", Tenant: tenant})
		if tenant == "a" && err != nil {
			t.Error(err)
		} else if tenant != "a" {
			w.refuses(fault.Denied, err)
		}
	}
	_, err := w.create(bound, keystore.CreateRequest{Scope: "everywhere"})
	w.refuses(fault.Denied, err)
}
