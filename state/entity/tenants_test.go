package entity_test

import (
	"fmt"
	"strings"
	"testing"

	"runner.example/internal/caller"
	"runner.example/internal/fault"
)

// Rows of one tenant with one of several values of a relation are found in its index.
func TestRowsThatReferToOneOfSeveralAreFoundInTheIndex(t *testing.T) {
	h := newFixture(t, `app a
auth {
  session cookie {}
  user: User
  tenant: Org
}
entity Org { id: id
  @@allow read to session }
entity User { id: id, org: Org @tenant
  @@allow all to session }
entity Topic { id: id
  @@allow all to session }
entity Note { id: id, org: Org @tenant, topic: Topic, author: User?
  @@allow all to session }
`)
	for _, org := range []string{"a", "b"} {
		h.insert(system, "Org", fmt.Sprintf(`{"id":%q}`, org))
		h.insert(system, "User", fmt.Sprintf(`{"id":"u","org":%q}`, org))
	}
	var topics []string
	for range 10 {
		topics = append(topics, h.insert(system, "Topic", `{}`))
	}
	for i := range 200 {
		h.insert(system, "Note", fmt.Sprintf(`{"org":%q,"topic":%q}`, string("ab"[i%2]), topics[i/2%10]))
	}
	buildAll(h)
	member := &caller.Caller{Kind: caller.Session, UserID: "u", Tenant: "a"}
	for _, c := range []struct {
		query string
		want  int
	}{
		{`"where":[["topic","=","t1"]]`, 10},
		{`"where":[["topic","in",["t1","t2"]]]`, 20},
		{`"where":[["topic","in",["t1","t2"]]],"orderBy":[["id","desc"]]`, 20},
		{`"where":[["topic","in",["t1","none"]]]`, 11}, // one more for the value that no row has
	} {
		query := strings.NewReplacer("t1", topics[1], "t2", topics[2]).Replace(c.query)
		if got := h.touchedBy(member, `{"from":"Note",`+query+`}`); got != c.want {
			t.Errorf("%s: %d rows are touched, want %d", c.query, got, c.want)
		}
	}
}

// sameIDs returns a fixture in which two tenants have a user with the same id, who is the
// boss in one of them.
func sameIDs(t *testing.T) *fixture {
	h := newFixture(t, `app a
auth {
  session cookie {}
  user: User
  tenant: Org
}
entity Org {
  id: id
  @@allow read to session
}
entity User {
  id: id
  org: Org @tenant
  boss: bool = false
  @@allow all to session
}
entity Note {
  id: id
  org: Org @tenant
  author: User?
  v: int = 0
  @@allow all to session
}
entity Post {
  id: id
  author: User? @readonly
  @@allow all to session
}
apiKeys { scopes: {
  every: @system("h") {
    @grant read, update, delete on Note where author.boss == true
    @grant read on Post where author.boss == true
    @grant read on User where boss == true
    @allTenants
  },
  all: @system("i") {
    @grant read on User
    @allTenants
  }
} }
routes("/", auth: apiKey(every), rateLimit: none) { GET /x -> x }`)
	operator := &caller.Caller{Kind: caller.System}
	h.must(operator, "insert", `{"into":"Org","values":[{"id":"a"},{"id":"b"}]}`)
	h.must(operator, "insert", `{"into":"User","values":{"id":"u","org":"a","boss":true}}`)
	h.must(operator, "insert", `{"into":"Post","values":{"author":"u"}}`)
	if got := h.must(everyTenant, "count", `{"from":"Post"}`); got != `{"count":1}` {
		t.Errorf("while one tenant has the author: %s", got)
	}
	h.must(operator, "insert", `{"into":"User","values":{"id":"u","org":"b"}}`)
	return h
}

var (
	everyTenant = &caller.Caller{Kind: caller.APIKey, Scope: "every", Capability: "h", KeyID: "k"}
	everyAll    = &caller.Caller{Kind: caller.APIKey, Scope: "all", Capability: "i", KeyID: "l"}
)

func TestRulesFollowARelationWithinTheTenantOfItsRow(t *testing.T) {
	h := sameIDs(t)
	operator := &caller.Caller{Kind: caller.System}
	h.must(operator, "insert", `{"into":"Note","values":[{"org":"a","author":"u","v":1},{"org":"b","author":"u","v":2},{"org":"a","author":"u","v":3},{"org":"b","author":"u","v":4}]}`)
	if got := h.must(everyTenant, "query", `{"from":"Note","select":["v"],"orderBy":[["v","asc"]]}`); got != `{"rows":[{"v":1},{"v":3}],"nextCursor":null}` {
		t.Errorf("the boss's notes: %s", got)
	}
	if got := h.must(everyTenant, "update", `{"in":"Note","set":{"v":9},"where":[["v","<",3]]}`); got[:10] != `{"count":1` {
		t.Errorf("update: %s", got)
	}
	if got := h.must(everyTenant, "delete", `{"from":"Note","where":[]}`); got != `{"count":2}` {
		t.Errorf("delete: %s", got)
	}
	if got := h.must(operator, "count", `{"from":"Note"}`); got != `{"count":2}` {
		t.Errorf("then there are %s", got)
	}
}

func TestAnIDThatSeveralTenantsHaveIsAConflict(t *testing.T) {
	h := sameIDs(t)
	h.fails(everyAll, fault.Conflict, "get", `{"from":"User","id":"u"}`, "several tenants", "User")
	h.fails(&caller.Caller{Kind: caller.System}, fault.Conflict, "insert", `{"into":"Post","values":{"author":"u"}}`, "several tenants")
	if got := h.must(everyTenant, "get", `{"from":"User","id":"u","select":["org"]}`); got != `{"row":{"org":"a"}}` {
		t.Errorf("of two the caller sees one: %s", got)
	}
	member := &caller.Caller{Kind: caller.Session, UserID: "u", Tenant: "b"}
	if got := h.must(member, "get", `{"from":"User","id":"u","select":["org"]}`); got != `{"row":{"org":"b"}}` {
		t.Errorf("of its own tenant: %s", got)
	}
	h.fails(everyTenant, fault.Conflict, "query", `{"from":"Post"}`, "several tenants")
	h.fails(everyAll, fault.NotFound, "get", `{"from":"User","id":"nobody"}`)
}

func TestAnOperatorWithATenantReachesOnlyThatTenant(t *testing.T) {
	h := sameIDs(t)
	all, a := &caller.Caller{Kind: caller.System}, &caller.Caller{Kind: caller.System, Tenant: "a"}
	h.must(all, "insert", `{"into":"Note","values":[{"org":"a","v":1},{"org":"b","v":2}]}`)
	h.must(a, "insert", `{"into":"Note","values":{"v":3}}`)
	if got := h.must(a, "query", `{"from":"Note","select":["org","v"],"orderBy":[["v","asc"]]}`); got != `{"rows":[{"org":"a","v":1},{"org":"a","v":3}],"nextCursor":null}` {
		t.Errorf("sees %s", got)
	}
	if got := h.must(a, "update", `{"in":"Note","set":{"v":9},"where":[]}`); got[:10] != `{"count":2` {
		t.Errorf("updates %s", got)
	}
	if got := h.must(a, "get", `{"from":"User","id":"u","select":["org"]}`); got != `{"row":{"org":"a"}}` {
		t.Errorf("of two with one id: %s", got)
	}
	h.fails(a, fault.Invalid, "insert", `{"into":"Note","values":{"org":"b"}}`, "org")
	if got := h.must(a, "delete", `{"from":"Note","where":[]}`); got != `{"count":2}` {
		t.Errorf("deletes %s", got)
	}
	if got := h.must(all, "query", `{"from":"Note","select":["v"]}`); got != `{"rows":[{"v":2}],"nextCursor":null}` {
		t.Errorf("then there are %s", got)
	}
}
