package sessions_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"runner.example/tests/harness"
)

const membersSchema = `
auth {
  session cookie { absolute: 1h, @manage when auth.role == "admin" or auth.scope == "desk" }
  roles: [admin, staff]
}
apiKeys { scopes: { desk: @system("desk") { @grant read on Thing }, other: @system("other") { @grant read on Thing } } }
routes("/", auth: session, rateLimit: none) {
  POST /op -> op
  POST /fails -> opFail
  GET /v1/dump -> dump
  POST /mine -> op (mints: session)
  POST /key -> op (auth: apiKey(desk, other))
  POST /reset -> op (auth: none, mints: session)
  POST /public -> op (auth: none)
}
`

// members is an app with the sessions of members of two organisations.
type members struct {
	*harness.App
	server *harness.Server
}

func newMembers(t *testing.T) members {
	a := harness.NewApp(t, membersSchema, "", "echo")
	return members{a, a.Serve()}
}

// op runs one operation in a request to the path, and returns the answer and its JSON.
func (m members) op(path, name, args string, headers ...string) (harness.Answer, map[string]any) {
	m.T.Helper()
	answer := m.server.Do("POST", path, args, append(headers, "X-Op: "+name)...)
	var result map[string]any
	if err := json.Unmarshal([]byte(answer.Body), &result); err != nil && answer.Status < 400 {
		m.T.Fatalf("%d %q: %v", answer.Status, answer.Body, err)
	}
	return answer, result
}

// holds reports whether the session's cookie is valid.
func (m members) holds(s harness.Session) bool {
	m.T.Helper()
	answer := m.server.Do("GET", "/v1/dump", "", "Cookie: "+s.Cookie)
	if answer.Status != 200 && answer.Status != 401 {
		m.T.Errorf("GET /v1/dump: %d %s", answer.Status, answer.Body)
	}
	return answer.Status == 200
}

func TestARemovedMemberIsRefusedAtOnce(t *testing.T) {
	m := newMembers(t)
	admin := m.Session("eve", "--tenant", "acme", "--role", "admin")
	rounds, callers := 3, 8
	if harness.Soak {
		rounds, callers = 300, 64
	}
	for round := range rounds {
		user := fmt.Sprint("ann ", round)
		phone, laptop := m.Session(user, "--tenant", "acme"), m.Session(user, "--tenant", "acme")
		elsewhere := m.Session(user, "--tenant", "beta")
		m.server.RevokeUnderLoad(callers, "Cookie: "+laptop.Cookie, func() {
			if answer, got := m.op("/op", "sessions.revokeAll", `{"user":"`+user+`"}`, "Cookie: "+admin.Cookie); answer.Status != 200 || got["count"] != 2.0 {
				t.Errorf("%d %s", answer.Status, answer.Body)
			}
		})
		live := sessionIDs(m.App)
		if slices.Contains(live, phone.ID) || slices.Contains(live, laptop.ID) || !slices.Contains(live, elsewhere.ID) || !slices.Contains(live, admin.ID) {
			t.Errorf("%s: live are %v, not those of another organisation and of the admin alone", user, live)
		}
	}
	reasons := 0
	for _, record := range m.Audit(t) {
		if record["action"] == "sessions.revoke" && strings.HasPrefix(fmt.Sprint(record["reason"]), `user "ann `) && strings.Contains(fmt.Sprint(record["actor"]), "eve") {
			reasons++
		}
	}
	if reasons != 2*rounds {
		t.Errorf("the audit has %d revocations by the admin, want %d", reasons, 2*rounds)
	}
}

func TestAUserEndsAllSessionsButThisOne(t *testing.T) {
	m := newMembers(t)
	this, phone, laptop := m.Session("ann", "--tenant", "acme", "--role", "staff"), m.Session("ann", "--tenant", "acme"), m.Session("ann", "--tenant", "acme")
	others := []harness.Session{m.Session("bob", "--tenant", "acme"), m.Session("ann", "--tenant", "beta"), m.Session("ann")}

	_, listed := m.op("/op", "sessions.list", `{}`, "Cookie: "+this.Cookie)
	sessions, _ := listed["sessions"].([]any)
	seen := map[string]bool{}
	for _, one := range sessions {
		s := one.(map[string]any)
		seen[fmt.Sprint(s["id"])] = s["current"] == true
		if len(s) != 8 || s["userId"] != "ann" || s["tenant"] != "acme" || s["createdAt"] == nil || s["lastSeenAt"] == nil || s["expiresAt"] == nil {
			t.Errorf("a listed session is %v", s)
		}
	}
	if want := map[string]bool{this.ID: true, phone.ID: false, laptop.ID: false}; fmt.Sprint(seen) != fmt.Sprint(want) || listed["nextCursor"] != nil {
		t.Errorf("lists %v, want %v", listed, want)
	}
	if _, page := m.op("/op", "sessions.list", `{"limit":2}`, "Cookie: "+this.Cookie); len(page["sessions"].([]any)) != 2 || page["nextCursor"] == nil {
		t.Errorf("a page is %v", page)
	}
	if _, got := m.op("/op", "sessions.revoke", `{"id":"`+phone.ID+`"}`, "Cookie: "+this.Cookie); got["id"] != phone.ID || m.holds(phone) {
		t.Errorf("one session: %v, it holds: %v", got, m.holds(phone))
	}
	answer, got := m.op("/op", "sessions.revokeAll", `{"except":"current"}`, "Cookie: "+this.Cookie)
	if got["count"] != 1.0 || answer.Header.Get("Set-Cookie") != "" || m.holds(laptop) || !m.holds(this) {
		t.Errorf("but this one: %d %s %q", answer.Status, answer.Body, answer.Header.Get("Set-Cookie"))
	}
	for _, s := range others {
		if !m.holds(s) {
			t.Errorf("the session of %s in %v has ended", s.UserID, s.Tenant)
		}
	}
	answer, got = m.op("/op", "sessions.revokeAll", `{}`, "Cookie: "+this.Cookie)
	if pair, attributes := answer.CookieAndAttributes(t); got["count"] != 1.0 || pair != "__Host-session=" || !strings.HasPrefix(attributes, "Path=/; Max-Age=0;") || m.holds(this) {
		t.Errorf("all: %d %s %s %s", answer.Status, answer.Body, pair, attributes)
	}
	if answer.Header.Get("Cache-Control") != "no-store" {
		t.Errorf("an answer that removes a cookie may be kept: %q", answer.Header.Get("Cache-Control"))
	}
}

// TestSessionsOfOthersNeedALineInTheSchema goes through the callers that the line does not name.
func TestSessionsOfOthersNeedALineInTheSchema(t *testing.T) {
	m := newMembers(t)
	target := m.Session("ann", "--tenant", "acme")
	bob, eve, beta := m.Session("bob", "--tenant", "acme", "--role", "staff"), m.Session("eve", "--tenant", "acme", "--role", "admin"), m.Session("eve", "--tenant", "beta", "--role", "admin")
	cookie := func(s harness.Session) string { return "Cookie: " + s.Cookie }
	own := m.Token("desk", "--tenant", "acme")
	away, other := m.Token("desk", "--tenant", "beta"), m.Token("other", "--tenant", "acme")
	byID, byName, inTenant := `{"id":"`+target.ID+`"}`, `{"user":"ann"}`, `{"user":"ann","tenant":"acme"}`
	unknown := `{"id":"ses_01hzzzzzzzzzzzzzzzzzzzzzzz"}`
	answers := map[string]bool{}
	for _, row := range []struct{ path, caller, name, args, code string }{
		{"/op", cookie(bob), "sessions.revoke", byID, "not_found"},
		{"/op", cookie(bob), "sessions.revoke", unknown, "not_found"},
		{"/op", cookie(bob), "sessions.revokeAll", byName, "denied"},
		{"/op", cookie(bob), "sessions.list", byName, "denied"},
		{"/op", cookie(bob), "sessions.list", `{"user":"nobody"}`, "denied"},
		{"/op", cookie(bob), "sessions.list", `{"allTenants":true}`, "denied"},
		{"/op", cookie(bob), "sessions.revokeAll", `{"tenant":"beta"}`, "denied"},
		{"/op", cookie(beta), "sessions.revoke", byID, "not_found"},
		{"/op", cookie(beta), "sessions.revokeAll", inTenant, "denied"},
		{"/op", cookie(beta), "sessions.revokeAll", `{"user":"ann","allTenants":true}`, "denied"},
		{"/op", cookie(eve), "sessions.revokeAll", `{"user":"ann","allTenants":true}`, "denied"},
		{"/mine", cookie(bob), "sessions.revoke", byID, "not_found"}, // an id may come from the client: a name is the handler's own
		{"/public", "", "sessions.revoke", byID, "not_found"},
		{"/public", "", "sessions.revokeAll", inTenant, "denied"},
		{"/public", "", "sessions.list", `{}`, "denied"},
		{"/reset", "", "sessions.revoke", byID, "not_found"},
		{"/reset", "", "sessions.revokeAll", `{}`, "invalid"},
		{"/reset", "", "sessions.revokeAll", `{"user":null}`, "invalid"},
		{"/reset", "", "sessions.revokeAll", `{"user":""}`, "invalid"},
		{"/reset", "", "sessions.revokeAll", `{"user":"ann","tenant":null}`, "invalid"},
		{"/reset", "", "sessions.revokeAll", `{"user":"ann","tenant":"acme","allTenants":true}`, "invalid"},
		{"/key", "X-API-Key: " + other, "sessions.revokeAll", byName, "denied"},
		{"/key", "X-API-Key: " + other, "sessions.revoke", byID, "not_found"},
		{"/key", "X-API-Key: " + away, "sessions.revoke", byID, "not_found"},
		{"/key", "X-API-Key: " + away, "sessions.revokeAll", inTenant, "denied"},
		{"/key", "X-API-Key: " + own, "sessions.list", `{}`, "invalid"},
		{"/op", cookie(bob), "sessions.list", `{"users":"ann"}`, "invalid"},
		{"/op", cookie(bob), "sessions.revokeAll", `{"expect":"current"}`, "invalid"},
		{"/op", cookie(bob), "sessions.revokeAll", `{"except":""}`, "invalid"},
		{"/op", cookie(bob), "sessions.revokeAll", `{"except":"this"}`, "invalid"},
	} {
		headers := []string{}
		if row.caller != "" {
			headers = append(headers, row.caller)
		}
		answer, got := m.op(row.path, row.name, row.args, headers...)
		if answer.Status != 299 || got["code"] != row.code {
			t.Errorf("%s by %.20s %s %s: %d %s, want %s", row.path, row.caller, row.name, row.args, answer.Status, answer.Body, row.code)
		}
		if row.path == "/op" && row.name == "sessions.revoke" {
			answers[answer.Body] = true
		}
	}
	if len(answers) != 1 {
		t.Errorf("an unknown session and that of another are told apart: %v", answers)
	}
	// An admin of another organisation reaches no session of this one.
	if _, got := m.op("/op", "sessions.revokeAll", byName, cookie(beta)); got["count"] != 0.0 {
		t.Errorf("another organisation's admin ended %v", got)
	}
	for _, s := range []harness.Session{target, bob, eve, beta} {
		if !m.holds(s) {
			t.Errorf("the session of %s has ended", s.UserID)
		}
	}

	// Those whom the line names, and routes that establish who the user is.
	for _, row := range []struct {
		path, caller, name, args string
		holds                    bool
	}{
		{"/op", cookie(eve), "sessions.list", byName, true},
		{"/key", "X-API-Key: " + own, "sessions.list", byName, true},
		{"/op", cookie(eve), "sessions.revoke", `{"id":"$"}`, false},
		{"/key", "X-API-Key: " + own, "sessions.revoke", `{"id":"$"}`, false},
		{"/op", cookie(eve), "sessions.revokeAll", byName, false},
		{"/key", "X-API-Key: " + own, "sessions.revokeAll", inTenant, false},
		{"/reset", "", "sessions.revokeAll", byName, true}, // one without a tenant
		{"/reset", "", "sessions.revokeAll", inTenant, false},
		{"/reset", "", "sessions.revokeAll", `{"user":"ann","allTenants":true}`, false},
		{"/reset", "", "sessions.revokeAll", `{"user":"ann","tenant":"acme","except":"$"}`, true},
		{"/mine", cookie(bob), "sessions.revokeAll", byName, false},
	} {
		one := m.Session("ann", "--tenant", "acme")
		headers := []string{}
		if row.caller != "" {
			headers = append(headers, row.caller)
		}
		answer, _ := m.op(row.path, row.name, strings.ReplaceAll(row.args, "$", one.ID), headers...)
		if answer.Status != 200 || m.holds(one) != row.holds || strings.Contains(answer.Body, "rns_") {
			t.Errorf("%s by %.20s %s %s: %d %s, the session holds: %v", row.path, row.caller, row.name, row.args, answer.Status, answer.Body, m.holds(one))
		}
	}
}

func TestARevocationIsPartOfItsRequest(t *testing.T) {
	m := newMembers(t)
	admin, one := m.Session("eve", "--tenant", "acme", "--role", "admin"), m.Session("ann", "--tenant", "acme")
	before := len(m.Audit(t))
	for _, name := range []string{"sessions.revokeAll {\"user\":\"ann\"}", "sessions.revoke {\"id\":\"" + one.ID + "\"}", "sessions.revokeAll {}"} {
		op, args, _ := strings.Cut(name, " ")
		answer, _ := m.op("/fails", op, args, "Cookie: "+admin.Cookie)
		if answer.Status < 400 || answer.Header.Get("Set-Cookie") != "" || !m.holds(one) || !m.holds(admin) {
			t.Errorf("%s in a request that fails: %d %q, the session holds: %v", name, answer.Status, answer.Header.Get("Set-Cookie"), m.holds(one))
		}
	}
	if after := len(m.Audit(t)); after != before {
		t.Errorf("the audit has %d more records", after-before)
	}
	if live := sessionIDs(m.App); !slices.Contains(live, one.ID) || len(live) != 2 {
		t.Errorf("live are %v", live)
	}
}
