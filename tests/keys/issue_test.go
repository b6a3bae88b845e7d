package keys_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"runner.example/tests/harness"
)

const issueSchema = `
auth {
  session cookie { }
  roles: [admin, staff]
}
entity Thing {
  id: id
  name: string
}
apiKeys {
  maxLifetime: 90d
  scopes: {
    reader: @system("reader") { @grant read on Thing  @issue when auth.role in ["admin", "staff"] },
    writer: @system("writer") {
      @grant write on Thing
      @issue when auth.role == "admin"
      @manage when auth.role in ["admin", "staff"]
    },
    minter: @system("minter") { @grant read on Thing  @manage when auth.scope == "minter" },
    minted: @system("minted") { @grant read on Thing  @issue when auth.scope == "minter" }
  }
}
routes("/", rateLimit: none, auth: none) {
  POST /session -> op (auth: session)
  POST /key -> op (auth: apiKey(reader, writer, minter, minted))
  POST /open -> op
  POST /as -> op (as: minter)
}
`

// principal is a caller that manages keys: its route, its credential and its identity.
type principal struct {
	name, path, credential string
	tenant, owner, kind    string
	may, manages           string // the scopes whose keys it may issue, and reaches in its tenant
}

type managedKey struct {
	ID, Scope                string
	Tenant, Owner, OwnerKind *string
	Token                    string
}

// reaches reports whether the caller must reach a key that an operator made.
func (p principal) reaches(key managedKey) bool {
	return text(key.Tenant) == p.tenant && (p.kind == "key" && key.ID == p.owner || slices.Contains(strings.Fields(p.manages), key.Scope))
}

// newIssueApp returns a server, all callers, and a key of each scope and tenant that an
// operator created.
func newIssueApp(t *testing.T) (s *harness.Server, callers []principal, there []managedKey) {
	t.Helper()
	a := harness.NewApp(t, issueSchema, "", "echo")
	s = a.Serve()
	for _, scope := range []string{"reader", "writer", "minter", "minted"} {
		for _, tenant := range []string{"", "red", "blue"} {
			args := []string{"api-keys", "create", "--scope", scope, "--name", scope + " of " + tenant, "--json"}
			if tenant != "" {
				args = append(args, "--tenant", tenant)
			}
			var key managedKey
			if err := json.Unmarshal([]byte(a.Must(args...)), &key); err != nil {
				t.Fatal(err)
			}
			there = append(there, key)
			if tenant != "blue" {
				p := principal{fmt.Sprintf("a %s of %q", scope, tenant), "/key", "X-API-Key: " + key.Token, tenant, key.ID, "key", "", ""}
				if scope == "minter" {
					p.may, p.manages = "minted", "minter"
				}
				callers = append(callers, p)
			}
		}
	}
	for _, row := range []struct{ user, tenant, role, may, manages string }{
		{"ada", "red", "admin", "reader writer", "writer"}, {"bo", "red", "staff", "reader", "writer"}, {"cy", "red", "", "", ""},
		{"di", "blue", "admin", "reader writer", "writer"}, {"ed", "", "admin", "reader writer", "writer"},
		// The id of a user may be that of a key, here of the minter of red.
		{there[slices.IndexFunc(there, func(k managedKey) bool { return k.Scope == "minter" && text(k.Tenant) == "red" })].ID, "red", "", "", ""},
	} {
		var args []string
		if row.tenant != "" {
			args = append(args, "--tenant", row.tenant)
		}
		if row.role != "" {
			args = append(args, "--role", row.role)
		}
		callers = append(callers, principal{fmt.Sprintf("%s (%s) of %q", row.user, row.role, row.tenant), "/session",
			"Cookie: " + a.Session(row.user, args...).Cookie, row.tenant, row.user, "user", row.may, row.manages})
	}
	return s, append(callers,
		principal{name: "anonymous", path: "/open"}, principal{name: "anonymous under a scope", path: "/as"}), there
}

// call runs an operation as the principal. The code is empty on success.
func (p principal) call(s *harness.Server, op, args string) (a harness.Answer, code string) {
	s.T.Helper()
	headers := []string{"X-Op: " + op}
	if p.credential != "" {
		headers = append(headers, p.credential)
	}
	a = s.Do("POST", p.path, args, headers...)
	if a.Status == 200 {
		return a, ""
	}
	var failed struct{ Code string }
	if err := json.Unmarshal([]byte(a.Body), &failed); a.Status != 299 || err != nil || failed.Code == "" {
		s.T.Fatalf("%s, %s %s: %d %s", p.name, op, args, a.Status, a.Body)
	}
	return a, failed.Code
}

func text(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}

// All pairs of a caller and a scope, for keys of every tenant, are compared with a table. A
// caller cannot choose the owner of a key (compare CVE-2025-61928).
func TestOnlyAllowedCallersManageKeys(t *testing.T) {
	s, callers, there := newIssueApp(t)
	list := func(p principal) (ids []string) {
		t.Helper()
		var page struct{ Keys []managedKey }
		if a, code := p.call(s, "apiKeys.list", `{"limit":1000}`); code != "" || json.Unmarshal([]byte(a.Body), &page) != nil {
			t.Fatalf("%s lists: %s", p.name, a.Body)
		}
		for _, key := range page.Keys {
			ids = append(ids, key.ID)
		}
		return ids
	}
	for _, p := range callers {
		before := len(list(p))
		made := 0
		for _, scope := range []string{"reader", "writer", "minter", "minted", "none"} {
			may := slices.Contains(strings.Fields(p.may), scope)
			a, code := p.call(s, "apiKeys.create", fmt.Sprintf(`{"scope":%q,"name":"x"}`, scope))
			if (code == "") != may || !may && code != "denied" && (scope != "none" || code != "invalid") {
				t.Errorf("%s creates a key of %s: %q", p.name, scope, code)
			}
			if code == "" {
				made++
				var key managedKey
				if err := json.Unmarshal([]byte(a.Body), &key); err != nil || text(key.Tenant) != p.tenant || text(key.Owner) != p.owner || text(key.OwnerKind) != p.kind {
					t.Errorf("%s created a key of the %s %s in %s, %v", p.name, text(key.OwnerKind), text(key.Owner), text(key.Tenant), err)
				}
			}
			for _, other := range []string{`"userId":"ada"`, `"tenant":"blue"`, `"owner":"ada"`, `"tenant":null,"owner":null,"roles":["admin"]`} {
				if _, code := p.call(s, "apiKeys.create", fmt.Sprintf(`{"scope":%q,"name":"x",%s}`, scope, other)); code != "invalid" {
					t.Errorf("%s creates a key of %s with %s: %q", p.name, scope, other, code)
				}
			}
			for _, tooLong := range []string{"7776001", "0", "-1", "1.5"} {
				if _, code := p.call(s, "apiKeys.create", fmt.Sprintf(`{"scope":%q,"expiresIn":%s}`, scope, tooLong)); code != "invalid" && (may || code != "denied") {
					t.Errorf("%s creates a key of %s for %s s: %q", p.name, scope, tooLong, code)
				}
			}
		}
		if after := len(list(p)); after != before+made {
			t.Errorf("%s had %d keys, created %d and has %d", p.name, before, made, after)
		}
		for _, key := range there {
			reaches := p.reaches(key)
			want, rotates := "not_found", "not_found"
			if reaches {
				want, rotates = "", "denied"
			}
			if reaches && slices.Contains(strings.Fields(p.may), key.Scope) {
				rotates = ""
			}
			id := fmt.Sprintf(`{"id":%q}`, key.ID)
			if _, code := p.call(s, "apiKeys.get", id); code != want {
				t.Errorf("%s gets a %s of %q: %q, want %q", p.name, key.Scope, text(key.Tenant), code, want)
			}
			if listed := slices.Contains(list(p), key.ID); listed != reaches {
				t.Errorf("%s lists a %s of %q: %v", p.name, key.Scope, text(key.Tenant), listed)
			}
			rotate := fmt.Sprintf(`{"id":%q,"gracePeriod":3600}`, key.ID)
			if _, code := p.call(s, "apiKeys.rotate", rotate); code != rotates {
				t.Errorf("%s rotates a %s of %q: %q, want %q", p.name, key.Scope, text(key.Tenant), code, rotates)
			}
			if !reaches {
				if _, code := p.call(s, "apiKeys.revoke", id); code != want {
					t.Errorf("%s revokes a %s of %q: %q", p.name, key.Scope, text(key.Tenant), code)
				}
			}
		}
	}
	for _, key := range there { // all of them are still valid
		if got := s.Do("POST", "/key", `{}`, "X-Op: apiKeys.list", "X-API-Key: "+key.Token); got.Status != 200 {
			t.Errorf("a %s of %q: %d %s", key.Scope, text(key.Tenant), got.Status, got.Body)
		}
	}
	for _, p := range callers {
		if p.may == "" {
			continue
		}
		var key managedKey
		a, _ := p.call(s, "apiKeys.create", fmt.Sprintf(`{"scope":%q}`, strings.Fields(p.may)[0]))
		if err := json.Unmarshal([]byte(a.Body), &key); err != nil {
			t.Fatal(err)
		}
		if _, code := p.call(s, "apiKeys.revoke", fmt.Sprintf(`{"id":%q}`, key.ID)); code != "" {
			t.Errorf("%s revokes its own key: %s", p.name, code)
		}
		s.Want(401, nil, "POST", "/key", `{}`, "X-Op: apiKeys.list", "X-API-Key: "+key.Token)
	}
}

// The responses about a key of another owner and about an unknown key are equal.
func TestKeysOfOtherOwnersAreNotFound(t *testing.T) {
	s, callers, there := newIssueApp(t)
	masked := func(a harness.Answer) string {
		a.Header.Del("Date")
		a.Header.Del("X-Request-Id")
		return fmt.Sprint(a.Status, a.Header, a.Body)
	}
	for _, p := range callers {
		for _, call := range []struct{ op, more string }{
			{"apiKeys.get", ""}, {"apiKeys.revoke", ""}, {"apiKeys.rotate", ""}, {"apiKeys.rotate", `,"gracePeriod":60`}, {"apiKeys.rotate", `,"gracePeriod":-1`},
		} {
			absent, _ := p.call(s, call.op, `{"id":"key_01arz3ndektsv4rrffq69g5fav"`+call.more+`}`)
			for _, key := range there {
				if p.reaches(key) {
					continue
				}
				got, _ := p.call(s, call.op, fmt.Sprintf(`{"id":%q%s}`, key.ID, call.more))
				if masked(got) != masked(absent) {
					t.Errorf("%s, %s of a %s of %q:\n%s\nof an unknown key:\n%s", p.name, call.op, key.Scope, text(key.Tenant), masked(got), masked(absent))
				}
			}
		}
	}
}

// After a theft, a revocation is not the end: the thief's key may have made others.
func TestRevokingAKeyLeavesTheKeysThatItMade(t *testing.T) {
	t.Parallel()
	declared := strings.Replace(issueSchema, `@manage when auth.scope == "minter"`, `@issue when auth.role == "admin"`, 1)
	declared = strings.Replace(declared, `@issue when auth.scope == "minter"`, `@issue when auth.scope == "minter" @manage when auth.role == "staff"`, 1)
	a := harness.NewApp(t, declared, "", "echo")
	s := a.Serve()
	session := func(user, role string) principal {
		return principal{path: "/session", credential: "Cookie: " + a.Session(user, "--role", role).Cookie}
	}
	create := func(p principal, scope string) (key managedKey, as principal) {
		t.Helper()
		got, code := p.call(s, "apiKeys.create", fmt.Sprintf(`{"scope":%q}`, scope))
		if err := json.Unmarshal([]byte(got.Body), &key); err != nil || key.Token == "" {
			t.Fatalf("create a key of %s: %d %s %s", scope, got.Status, got.Body, code)
		}
		return key, principal{path: "/key", credential: "X-API-Key: " + key.Token}
	}
	ada, bo := session("ada", "admin"), session("bo", "staff")
	minter, asMinter := create(ada, "minter")
	minted, asMinted := create(asMinter, "minted")
	this := func(key managedKey) string { return fmt.Sprintf(`{"id":%q}`, key.ID) }
	for _, row := range []struct {
		who      principal
		op, args string
		code     string
	}{
		{ada, "apiKeys.revoke", this(minter), ""},
		{asMinted, "apiKeys.get", this(minted), ""},
		{ada, "apiKeys.get", this(minted), "not_found"},
		{bo, "apiKeys.get", this(minted), ""},
	} {
		if got, code := row.who.call(s, row.op, row.args); code != row.code {
			t.Errorf("%s of %s: %d %s, want the code %q", row.op, row.args, got.Status, got.Body, row.code)
		}
	}
	if got := s.Do("POST", "/key", "{}", asMinter.credential); got.Status != 401 {
		t.Errorf("the revoked key: %d %s", got.Status, got.Body)
	}
	var listed []managedKey
	if err := json.Unmarshal([]byte(a.Must("api-keys", "list", "--owner", minter.ID, "--json")), &listed); err != nil || len(listed) != 1 || listed[0].ID != minted.ID {
		t.Errorf("--owner %s lists %v, %v", minter.ID, listed, err)
	}
	a.Must("api-keys", "revoke", minted.ID)
	if got := s.Do("POST", "/key", "{}", asMinted.credential); got.Status != 401 {
		t.Errorf("the key that it made, revoked: %d %s", got.Status, got.Body)
	}
}
