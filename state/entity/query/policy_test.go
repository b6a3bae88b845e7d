package query_test

import (
	"testing"

	"runner.example/internal/caller"
	"runner.example/schema"
	"runner.example/state/entity/query"
)

const ruleSchema = `
auth { session cookie { idle: 30m } roles: [boss, staff] user: Person tenant: Firm }
enum State { open, paid }
entity Firm { id: id }
entity Person { id: id }
entity Bill { id: id
  firm: Firm @tenant
  owner: Person?
  state: State
  total: int
  @@allow read to session when owner == auth.userId or auth.role == "staff"
  @@allow read to anonymous when state == "open"
  @@allow insert to session when owner == auth.userId
  @@allow update to session when owner == auth.userId or auth.role == "staff"
  @@allow delete to session when auth.role == "boss" or state == "paid"
  @@deny update when old.state == "paid" and new.total != old.total
  @@deny delete to session when total > 100
  @@deny read to apiKey(fenced) when total > 100
  @@deny insert to anonymous
}
apiKeys { scopes: {
  plain: @system("plain") { @grant read, write on Bill where total >= 0 },
  fenced: @system("fenced") { @grant read, insert on Bill },
  roaming: @system("roaming") { @grant read on Bill @allTenants }
} }
routes("/", auth: none, rateLimit: none) { GET / -> home }
`

// The scope of a job is that of all tenants, unless a caller of one tenant has enqueued the job.
func TestOnlyCallersOfNoTenantReachAllTenants(t *testing.T) {
	rights := query.NewRights(compiled(t, ruleSchema), "Bill")
	for _, row := range []struct {
		who caller.Caller
		any bool
	}{
		{caller.Caller{Kind: caller.System}, true}, {caller.Caller{Kind: caller.System, Tenant: "a"}, false},
		{caller.Caller{As: "roaming"}, true}, {caller.Caller{As: "roaming", Tenant: "a"}, false},
		{caller.Caller{As: "plain"}, false}, {caller.Caller{As: "plain", Tenant: "a"}, false}, {caller.Caller{}, false},
		{caller.Caller{Kind: caller.APIKey, Scope: "roaming"}, true}, {caller.Caller{Kind: caller.APIKey, Scope: "plain", Tenant: "a"}, false},
		{caller.Caller{Kind: caller.APIKey, Scope: "renamed", Capability: "roaming"}, true}, {caller.Caller{Kind: caller.APIKey, Scope: "unknown"}, false},
		{caller.Caller{Kind: caller.Session, UserID: "u", Tenant: "a"}, false}, {caller.Caller{Kind: caller.Session, UserID: "u"}, false},
	} {
		if got := rights.AnyTenantFor(&row.who); got != row.any {
			t.Errorf("%+v reaches all tenants: %v", row.who, got)
		}
	}
}

func TestARowPassesTenantDeniesAndOneAllow(t *testing.T) {
	s := compiled(t, ruleSchema)
	e := s.Entity("Bill")
	bill := func(firm, owner, state string, total int64) []schema.Value {
		row := make([]schema.Value, len(e.Fields))
		row[e.Field("firm").Pos] = schema.TextValue(firm)
		if owner != "" {
			row[e.Field("owner").Pos] = schema.TextValue(owner)
		}
		row[e.Field("state").Pos] = schema.TextValue(state)
		row[e.Field("total").Pos] = schema.IntValue(total)
		return row
	}
	ask := func(who *caller.Caller, op, args string) query.Asked {
		t.Helper()
		asked, err := query.Ask(s, who, op, args)
		if err != nil {
			t.Fatalf("%s as %s %s: %v", op, who.Kind, who.Scope, err)
		}
		return asked
	}
	session := func(user string, roles ...string) *caller.Caller {
		return &caller.Caller{Kind: caller.Session, UserID: user, Tenant: "f1", Roles: roles}
	}
	in := func(c caller.Caller) *caller.Caller { c.Tenant = "f1"; return &c }

	const query = `{"from":"Bill"}`
	for _, c := range []struct {
		what string
		who  *caller.Caller
		row  []schema.Value
		want bool
	}{
		{"own", session("u1"), bill("f1", "u1", "open", 1), true},
		{"another's", session("u1"), bill("f1", "u2", "open", 1), false},
		{"another's, as staff", session("u1", "staff"), bill("f1", "u2", "open", 1), true},
		{"nobody's", session("u1"), bill("f1", "", "open", 1), false},
		{"nobody's, without a user", session(""), bill("f1", "", "open", 1), false},
		{"own, of another firm", session("u1", "staff"), bill("f2", "u1", "open", 1), false},
		{"open, anonymous", in(caller.Caller{}), bill("f1", "u1", "open", 1), true},
		{"paid, anonymous", in(caller.Caller{}), bill("f1", "u1", "paid", 1), false},
		{"granted", in(caller.Caller{Kind: caller.APIKey, Scope: "plain"}), bill("f1", "", "paid", 0), true},
		{"not granted", in(caller.Caller{Kind: caller.APIKey, Scope: "plain"}), bill("f1", "", "paid", -1), false},
		{"granted, of another firm", in(caller.Caller{Kind: caller.APIKey, Scope: "plain"}), bill("f2", "", "paid", 1), false},
		{"denied to the key", in(caller.Caller{Kind: caller.APIKey, Scope: "fenced"}), bill("f1", "", "paid", 101), false},
		{"not denied to the key", in(caller.Caller{Kind: caller.APIKey, Scope: "fenced"}), bill("f1", "", "paid", 100), true},
		{"denied to keys alone", in(caller.Caller{Kind: caller.APIKey, Scope: "plain"}), bill("f1", "", "paid", 101), true},
		{"under a scope what policies allow is not added", in(caller.Caller{As: "plain"}), bill("f1", "", "open", -1), false},
		{"under a scope", in(caller.Caller{As: "plain"}), bill("f1", "", "paid", 1), true},
		{"of any firm", &caller.Caller{Kind: caller.APIKey, Scope: "roaming"}, bill("f2", "", "paid", 1), true},
		{"operator", &caller.Caller{Kind: caller.System}, bill("f2", "", "paid", -1), true},
	} {
		if got := ask(c.who, "query", query).MayRead(c.row); got != c.want {
			t.Errorf("reading a bill, %s: %v", c.what, got)
		}
	}

	const insert = `{"into":"Bill","values":{}}`
	if !ask(session("u1"), "insert", insert).MayInsert(bill("f1", "u1", "open", 1)) {
		t.Error("an own bill cannot be added")
	}
	if ask(session("u1"), "insert", insert).MayInsert(bill("f1", "u2", "open", 1)) {
		t.Error("a bill of another can be planted")
	}
	if ask(in(caller.Caller{As: "fenced"}), "insert", insert).MayInsert(bill("f1", "", "open", 1)) {
		t.Error("a denial without a condition lets pass")
	}

	const remove = `{"from":"Bill","where":[]}`
	for _, c := range []struct {
		what string
		who  *caller.Caller
		row  []schema.Value
		want bool
	}{
		{"readable and allowed", session("u1"), bill("f1", "u1", "paid", 1), true},
		{"allowed, but out of sight", session("u1", "boss"), bill("f1", "u2", "paid", 1), false},
		{"in sight, but not allowed", session("u1"), bill("f1", "u1", "open", 1), false},
		{"denied", session("u1"), bill("f1", "u1", "paid", 101), false},
	} {
		if got := ask(c.who, "delete", remove).MayDelete(c.row); got != c.want {
			t.Errorf("deleting a bill, %s: %v", c.what, got)
		}
	}

	const update = `{"in":"Bill","set":{},"where":[]}`
	for _, c := range []struct {
		what         string
		who          *caller.Caller
		old, new     []schema.Value
		finds, makes bool
	}{
		{"own", session("u1"), bill("f1", "u1", "open", 1), bill("f1", "u1", "paid", 2), true, true},
		{"own, given away", session("u1"), bill("f1", "u1", "open", 1), bill("f1", "u2", "open", 1), true, false},
		{"another's, taken", session("u1"), bill("f1", "u2", "open", 1), bill("f1", "u1", "open", 1), false, false},
		{"paid, as it was", session("u1"), bill("f1", "u1", "paid", 1), bill("f1", "u1", "open", 1), true, true},
		{"paid, with another total", session("u1"), bill("f1", "u1", "paid", 1), bill("f1", "u1", "paid", 2), true, false},
		{"paid, of another", session("u1"), bill("f1", "u2", "paid", 1), bill("f1", "u2", "paid", 2), false, false},
		{"into another firm", session("u1", "staff"), bill("f1", "u1", "open", 1), bill("f2", "u1", "open", 1), true, false},
		{"out of the grant", in(caller.Caller{Kind: caller.APIKey, Scope: "plain"}), bill("f1", "", "open", 1), bill("f1", "", "open", -1), true, false},
	} {
		if finds, makes := ask(c.who, "update", update).MayUpdate(c.old, c.new); finds != c.finds || makes != c.makes {
			t.Errorf("updating a bill, %s: found %v, made %v", c.what, finds, makes)
		}
	}
}

func TestAnUnknownRuleResultDeniesAccess(t *testing.T) {
	s := compiled(t, `
auth { session cookie { idle: 30m } user: Person }
entity Person { id: id }
entity Note { id: id
  owner: Person?
  @@allow read, insert to session
  @@deny read when owner != auth.userId
  @@deny insert, update when auth.tenant == "t1"
}
routes("/", auth: none, rateLimit: none) { GET / -> home }`)
	row := make([]schema.Value, 2)
	for _, c := range []struct {
		who  caller.Caller
		want bool
	}{
		{caller.Caller{Kind: caller.Session, UserID: "u1"}, false}, // null != u1
		{caller.Caller{Kind: caller.Session}, false},               // null != nobody is unknown
	} {
		asked, err := query.Ask(s, &c.who, "query", `{"from":"Note"}`)
		if err != nil {
			t.Fatal(err)
		}
		if got := asked.MayRead(row); got != c.want {
			t.Errorf("user %q reads it: %v", c.who.UserID, got)
		}
	}
	for tenant, want := range map[string]bool{"": false, "t1": false, "t2": true} {
		asked, err := query.Ask(s, &caller.Caller{Kind: caller.Session, UserID: "u1", Tenant: tenant}, "insert", `{"into":"Note","values":{}}`)
		if err != nil {
			t.Fatal(err)
		}
		if got := asked.MayInsert(row); got != want {
			t.Errorf("a caller of tenant %q inserts: %v", tenant, got)
		}
	}
}
