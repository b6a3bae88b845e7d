package sessions_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"runner.example/tests/harness"
)

const mintsSchema = `
auth {
  session cookie { absolute: 1h }
  roles: [admin, staff]
}
apiKeys { scopes: { desk: @system("desk") { @grant read on Thing } } }
routes("/", auth: none, rateLimit: none) {
  POST /signin -> op (mints: session, as: desk)
  POST /fails -> opFail (mints: session, as: desk)
  POST /keeps -> opKeep (mints: session, as: desk)
  POST /elsewhere -> op (as: desk)
  POST /change -> op (auth: session, mints: session)
  POST /inside -> op (auth: session)
  GET /me -> dump (auth: session)
}
`

func TestAHandlerOpensSessionsOnlyWhereItsRouteAllows(t *testing.T) {
	a := harness.NewApp(t, mintsSchema, "", "echo")
	s := a.Serve()
	op := func(path, name, args string, headers ...string) harness.Answer {
		return s.Do("POST", path, args, append(headers, "X-Op: "+name)...)
	}
	me := func(cookie string) int { return s.Do("GET", "/me", "", "Cookie: "+cookie).Status }

	opened := op("/signin", "sessions.create", `{"userId":"ann","tenant":"acme","roles":["staff"],"ttl":600}`)
	cookie, attributes := opened.CookieAndAttributes(t)
	if opened.Status != 200 || attributes != "Path=/; Max-Age=600; Secure; HttpOnly; SameSite=Lax" || !strings.HasPrefix(cookie, "__Host-session=") {
		t.Errorf("%d %s: %s; %s", opened.Status, opened.Body, cookie, attributes)
	}
	if opened.Header.Get("Cache-Control") != "no-store" {
		t.Errorf("an answer with a cookie may be kept: %q", opened.Header.Get("Cache-Control"))
	}
	if value := strings.TrimPrefix(cookie, "__Host-session="); strings.Contains(opened.Body, value) {
		t.Error("the handler sees the cookie's value")
	}
	var made struct{ ID, ExpiresAt string }
	if err := json.Unmarshal([]byte(opened.Body), &made); err != nil || !strings.HasPrefix(made.ID, "ses_") || made.ExpiresAt == "" {
		t.Errorf("%s: %v", opened.Body, err)
	}
	got := s.Do("GET", "/me", "", "Cookie: "+cookie)
	if got.Status != 200 || !strings.Contains(got.Body, `"userId":"ann"`) || !strings.Contains(got.Body, `"tenant":"acme"`) || strings.Contains(got.Body, "rns_") {
		t.Errorf("who it is: %d %s", got.Status, got.Body)
	}

	for _, row := range []struct{ path, name, args, code string }{
		{"/elsewhere", "sessions.create", `{"userId":"ann"}`, "denied"},
		{"/elsewhere", "sessions.revoke", `{"id":"` + made.ID + `"}`, "not_found"},
		{"/signin", "sessions.create", `{}`, "invalid"},
		{"/signin", "sessions.create", `{"userId":"ann","roles":["root"]}`, "invalid"},
		{"/signin", "sessions.create", `{"userId":"ann","roles":"staff"}`, "invalid"},
		{"/signin", "sessions.create", `{"userId":"ann","ttl":7200}`, "invalid"},
		{"/signin", "sessions.create", `{"userId":"ann","cookie":"x"}`, "invalid"},
		{"/signin", "sessions.revoke", `{"id":"` + made.ID + `"}`, "not_found"}, // an anonymous caller has no session
		{"/signin", "sessions.revoke", `{}`, "not_found"},
		{"/signin", "sessions.revoke", `{"id":""}`, "invalid"},
		{"/signin", "sessions.revoke", `{"id":null}`, "invalid"}, // a missing id is not the session that calls
		{"/signin", "sessions.revokeAll", `{"user":"ann","allTenants":null}`, "invalid"},
		{"/signin", "sessions.list", `{"user":"ann","allTenants":null}`, "invalid"},
	} {
		got := op(row.path, row.name, row.args)
		if got.Status != 299 || !strings.Contains(got.Body, `"code":"`+row.code+`"`) || got.Header.Get("Set-Cookie") != "" {
			t.Errorf("%s %s %s: %d %s %q", row.path, row.name, row.args, got.Status, got.Body, got.Header.Get("Set-Cookie"))
		}
	}
	if got := op("/fails", "sessions.create", `{"userId":"ann"}`); got.Header.Get("Set-Cookie") != "" {
		t.Error("a session whose making was dropped has a cookie")
	}
	if got := op("/keeps", "sessions.create", `{"userId":"ann"}`); me(got.Cookie(t)) != 200 {
		t.Error("a session that was kept does not count")
	}

	// A new session replaces the user's previous one.
	changed := op("/change", "sessions.create", `{"userId":"ann","tenant":"acme","roles":["admin"]}`, "Cookie: "+cookie)
	fresh, attributes := changed.CookieAndAttributes(t)
	if changed.Status != 200 || fresh == cookie || !strings.Contains(attributes, "Max-Age=3600;") || me(cookie) != 401 || me(fresh) != 200 {
		t.Errorf("%d %s; old %d, new %d", changed.Status, attributes, me(cookie), me(fresh))
	}
	if got := op("/inside", "sessions.create", `{"userId":"ann"}`, "Cookie: "+fresh); !strings.Contains(got.Body, "denied") || me(fresh) != 200 {
		t.Errorf("a route without mints: %d %s", got.Status, got.Body)
	}
	others := op("/signin", "sessions.create", `{"userId":"bob","tenant":"acme"}`).Cookie(t)
	if got := op("/change", "sessions.revoke", `{"id":"`+made.ID+`"}`, "Cookie: "+others); !strings.Contains(got.Body, "not_found") {
		t.Errorf("another user's session: %d %s", got.Status, got.Body)
	}
	ended := op("/inside", "sessions.revoke", `{}`, "Cookie: "+fresh)
	if pair, attributes := ended.CookieAndAttributes(t); pair != "__Host-session=" || !strings.HasPrefix(attributes, "Path=/; Max-Age=0;") || me(fresh) != 401 || me(others) != 200 {
		t.Errorf("signed out: %d %s %s", ended.Status, pair, attributes)
	}
	if audit := a.Must("audit", "list", "--json"); strings.Count(audit, `"sessions.create"`) != 4 || strings.Count(audit, `"sessions.revoke"`) != 2 || strings.Contains(audit, "rns_") {
		t.Errorf("audit:\n%s", audit)
	}
}

const signInSchema = `
auth {
  session cookie { }
  roles: [admin]
  origins: ["https://trusted.example"]
}
apiKeys { scopes: { desk: @system("desk") { @grant read on Thing } } }
routes("/", auth: none, rateLimit: none) {
  POST /cached -> cached (mints: session)
  POST /twice -> twice (mints: session)
  GET /twice -> twice (mints: session)
  POST /anywhere -> twice (mints: session, csrf: off)
  POST /twiceIn -> twice (mints: session, auth: session)
  POST /byKey -> twice (mints: session, auth: apiKey(desk))
  POST /other -> dump
  GET /me -> dump (auth: session)
  GET /set -> setHeader
  GET /setMine -> setHeader (auth: session)
  GET /setAny -> setHeader (cors: ["*"])
}
functions(auth: none, rateLimit: none) {
  @expose twice() -> json (mints: session)
}
`

// sessionIDs returns the ids of the active sessions.
func sessionIDs(a *harness.App) (ids []string) {
	a.T.Helper()
	var all []harness.Session
	if err := json.Unmarshal([]byte(a.Must("sessions", "list", "--json")), &all); err != nil {
		a.T.Fatal(err)
	}
	for _, one := range all {
		ids = append(ids, one.ID)
	}
	return ids
}

// Otherwise another site could sign a user in to an account of its own.
func TestPagesOfOtherOriginsCannotSignIn(t *testing.T) {
	t.Parallel()
	a := harness.NewApp(t, signInSchema, "", "signin", "echo")
	s := a.Serve()
	key := "X-API-Key: " + a.Token("desk")
	for _, row := range []struct {
		method, path string
		headers      []string
		want         int
	}{
		{"POST", "/twice", nil, 200}, // no browser
		{"POST", "/twice", []string{"Sec-Fetch-Site: same-origin"}, 200},
		{"POST", "/twice", []string{"Origin: " + s.URL}, 200},
		{"POST", "/twice", []string{"Sec-Fetch-Site: cross-site", "Origin: https://trusted.example"}, 200},
		{"POST", "/twice", []string{"Sec-Fetch-Site: cross-site"}, 403},
		{"POST", "/twice", []string{"Sec-Fetch-Site: same-site"}, 403},
		{"POST", "/twice", []string{"Origin: https://evil.example"}, 403},
		{"POST", "/twice", []string{"Origin: null"}, 403},
		{"POST", "/_call/twice", []string{"Sec-Fetch-Site: cross-site"}, 403},
		{"POST", "/byKey", []string{"Sec-Fetch-Site: cross-site", key}, 403},
		{"POST", "/byKey", []string{key}, 200},
		{"POST", "/byKey", []string{"Sec-Fetch-Site: cross-site"}, 401}, // the credential is checked first
		{"POST", "/anywhere", []string{"Sec-Fetch-Site: cross-site"}, 200},
		{"GET", "/twice", []string{"Sec-Fetch-Site: cross-site"}, 200}, // a link, for example in a mail
		{"POST", "/other", []string{"Sec-Fetch-Site: cross-site"}, 200},
	} {
		got := s.Do(row.method, row.path, "{}", row.headers...)
		if got.Status != row.want || got.Status == 403 && got.Problem(t).Code != "cross_origin" || (got.Header.Get("Set-Cookie") != "") != (row.want == 200 && row.path != "/other") {
			t.Errorf("%s %s with %q: %d %s, want %d", row.method, row.path, row.headers, got.Status, got.Body, row.want)
		}
	}
}

// The handler's own Cache-Control does not matter.
func TestASignInResponseIsNotCached(t *testing.T) {
	t.Parallel()
	a := harness.NewApp(t, signInSchema, "", "signin", "echo")
	s := a.Serve()
	got := s.Do("POST", "/cached", "{}")
	got.CookieAndAttributes(t)
	if lines := got.Header.Values("Cache-Control"); got.Status != 200 || len(lines) != 1 || lines[0] != "no-store" || got.Header.Get("CDN-Cache-Control") != "" {
		t.Errorf("%d %v", got.Status, got.Header)
	}
}

// A sign-in ends the session that the browser had before.
func TestABrowserHasOneSession(t *testing.T) {
	t.Parallel()
	a := harness.NewApp(t, signInSchema, "", "signin", "echo")
	s := a.Serve()
	me := func(cookie string) int { return s.Do("GET", "/me", "", "Cookie: "+cookie).Status }
	was := s.Do("POST", "/twice", "{}").Cookie(t)
	if live := sessionIDs(a); len(live) != 1 || me(was) != 200 {
		t.Errorf("two sessions created for one browser leave %q, its cookie answers %d", live, me(was))
	}
	for _, path := range []string{"/twiceIn", "/twice"} {
		now := s.Do("POST", path, "{}", "Cookie: "+was).Cookie(t)
		if live := sessionIDs(a); len(live) != 1 || me(was) != 401 || me(now) != 200 {
			t.Errorf("%s leaves %q, the cookie before %d, now %d", path, live, me(was), me(now))
		}
		was = now
	}
	// An invalid cookie ends no session and does not prevent a sign-in.
	for _, cookie := range []string{"__Host-session=x", was + "; " + was, "__Host-session="} {
		if got := s.Do("POST", "/twice", "{}", "Cookie: "+cookie); got.Status != 200 || me(was) != 200 {
			t.Errorf("with %.20s…: %d, the session %d", cookie, got.Status, me(was))
		}
	}
}

func TestTheAuditNamesTheSignedInUser(t *testing.T) {
	t.Parallel()
	a := harness.NewApp(t, signInSchema, "", "signin", "echo")
	made := a.Session("ann", "--tenant", "acme")
	s := a.Serve()
	s.Do("POST", "/twice", "{}", "Cookie: "+made.Cookie).CookieAndAttributes(t)
	said := map[string]int{}
	for _, record := range a.Audit(t) {
		if strings.HasPrefix(fmt.Sprint(record["action"]), "sessions.") {
			said[fmt.Sprint(record["action"], " ", record["reason"])]++
		}
	}
	want := map[string]int{`sessions.create user "ann", tenant "acme"`: 1, `sessions.revoke user "ann", tenant "acme"`: 1, `sessions.create user "ann"`: 2, `sessions.revoke user "ann"`: 1}
	if fmt.Sprint(said) != fmt.Sprint(want) {
		t.Errorf("the audit has %v, want %v", said, want)
	}
}

func TestHandlersCannotSetSessionAndOriginHeaders(t *testing.T) {
	t.Parallel()
	a := harness.NewApp(t, signInSchema, "", "signin", "echo")
	s := a.Serve()
	cookie := a.Session("ann").Cookie
	for _, row := range []struct {
		path, name, value string
		want              bool // the header is sent
	}{
		{"/set", "Set-Cookie", "theme=dark; Path=/", true},
		{"/set", "Set-Cookie", "__Host-session2=x; Path=/; Secure", true},
		{"/set", "Set-Cookie", "theme=__Host-session; Path=/", true},
		{"/set", "Set-Cookie", "__Host-session=rns_fixed; Path=/; Secure", false},
		{"/set", "set-cookie", "__Host-session=; Max-Age=0; Path=/; Secure", false},
		{"/set", "Set-Cookie", "__host-SESSION=x", false},
		{"/set", "Set-Cookie", "__Host-session =x", false},
		{"/set", "Set-Cookie", "=__Host-session=x", false},
		{"/set", "Set-Cookie", "= __Host-session=x", false},
		{"/set", "Set-Cookie", "__Host-session", false},
		{"/setMine", "Set-Cookie", "__Host-session=x; Path=/; Secure", false},
		{"/set", "Access-Control-Allow-Origin", "https://partner.example", true},
		{"/setAny", "Access-Control-Allow-Origin", "https://evil.example", false},
		{"/setAny", "access-control-allow-credentials", "true", false},
		{"/setMine", "Access-Control-Allow-Origin", "https://evil.example", false},
		{"/setMine", "Access-Control-Allow-Credentials", "true", false},
	} {
		got := s.Do("GET", row.path, "", "X-Name: "+row.name, "X-Value: "+row.value, "Cookie: "+cookie)
		if sent := got.Header.Get(row.name) == row.value; got.Status != 200 && got.Status != 299 || (got.Status == 200) != row.want || sent != row.want {
			t.Errorf("%s %s: %s: %d, sent %v", row.path, row.name, row.value, got.Status, sent)
		}
	}
}

func TestEarlyRefusalsHaveCORSHeaders(t *testing.T) {
	t.Parallel()
	a := harness.NewApp(t, corsSchema, "", "echo")
	s := a.Serve()
	const app = "https://app.example.com"
	for _, row := range []struct{ path, origin, want string }{
		{"/v1/things?" + strings.Repeat("a&", 101), app, app},
		{"/v1/things?a=%zz", app, app},
		{"/v1/things?a=%zz", "https://evil.example", ""},
		{"/v1/nowhere?a=%zz", app, ""},
		{"/v2/things?a=%zz", app, ""},
		{"/v1/any?a=%zz", "https://evil.example", "*"},
	} {
		got := s.Do("GET", row.path, "", "Origin: "+row.origin)
		if origin := got.Header.Get("Access-Control-Allow-Origin"); got.Status != 400 || origin != row.want || row.want == app && got.Header.Get("Vary") != "Origin" {
			t.Errorf("%.20s from %s: %d, allowed %q, Vary %q", row.path, row.origin, got.Status, origin, got.Header.Get("Vary"))
		}
	}
}

const corsSchema = `
auth {
  session cookie { }
  roles: [admin]
}
apiKeys { scopes: { desk: @system("desk") { @grant read on Thing } } }
routes("/v1", auth: apiKey(desk), rateLimit: none, cors: ["https://app.example.com", "http://localhost:5173"]) {
  GET /things -> dump
  DELETE /things -> dump
  GET /limited -> dump (rateLimit: 1/minute)
  GET /any -> dump (cors: ["*"])
  GET /mine -> dump (auth: session)
}
routes("/v2", auth: apiKey(desk), rateLimit: none) {
  GET /things -> dump
  OPTIONS /own -> dump
}
functions(auth: apiKey(desk), rateLimit: none, cors: ["https://app.example.com"]) {
  @expose hello() -> json
}
`

func TestCORS(t *testing.T) {
	t.Parallel()
	a := harness.NewApp(t, corsSchema, "", "echo")
	s := a.Serve()
	key := "X-API-Key: " + a.Token("desk")
	const app, evil = "Origin: https://app.example.com", "Origin: https://evil.example"
	for _, row := range []struct {
		method, path string
		headers      []string
		status       int
		origin       string // Access-Control-Allow-Origin
		methods      string
		credentials  string
	}{
		{"OPTIONS", "/v1/things", []string{app, "Access-Control-Request-Method: GET"}, 204, "https://app.example.com", "GET", ""},
		{"OPTIONS", "/v1/things", []string{"Origin: http://localhost:5173", "Access-Control-Request-Method: DELETE", "Access-Control-Request-Headers: x-api-key"}, 204, "http://localhost:5173", "DELETE", ""},
		{"OPTIONS", "/v1/things", []string{evil, "Access-Control-Request-Method: GET"}, 204, "", "", ""},
		{"OPTIONS", "/v1/things", []string{"Origin: null", "Access-Control-Request-Method: GET"}, 204, "", "", ""},
		{"OPTIONS", "/v1/things", []string{"Origin: https://app.example.com.evil.example", "Access-Control-Request-Method: GET"}, 204, "", "", ""},
		{"OPTIONS", "/v1/things", []string{app, "Access-Control-Request-Method: PUT"}, 204, "", "", ""}, // there is no PUT route, so this is a plain OPTIONS
		{"OPTIONS", "/v1/things", []string{app}, 204, "", "", ""},
		{"OPTIONS", "/v1/any", []string{evil, "Access-Control-Request-Method: GET"}, 204, "*", "GET", ""},
		{"OPTIONS", "/v1/mine", []string{app, "Access-Control-Request-Method: GET"}, 204, "https://app.example.com", "GET", "true"},
		{"OPTIONS", "/v2/things", []string{app, "Access-Control-Request-Method: GET"}, 204, "", "", ""},
		{"OPTIONS", "/v2/own", []string{app, "Access-Control-Request-Method: GET", key}, 200, "", "", ""},
		{"OPTIONS", "/_call/hello", []string{app, "Access-Control-Request-Method: POST"}, 204, "https://app.example.com", "POST", ""},
		{"GET", "/v1/things", []string{app, key}, 200, "https://app.example.com", "", ""},
		{"GET", "/v1/things", []string{evil, key}, 200, "", "", ""},
		{"GET", "/v1/things", []string{key}, 200, "", "", ""},
		{"GET", "/v1/things", []string{app}, 401, "https://app.example.com", "", ""},
		{"GET", "/v1/limited", []string{app, key}, 200, "https://app.example.com", "", ""},
		{"GET", "/v1/limited", []string{app, key}, 429, "https://app.example.com", "", ""},
		{"GET", "/v1/mine", []string{app}, 401, "https://app.example.com", "", "true"},
		{"GET", "/v1/any", []string{evil, key}, 200, "*", "", ""},
		{"GET", "/v2/things", []string{app, key}, 200, "", "", ""},
	} {
		got := s.Do(row.method, row.path, "", row.headers...)
		h := got.Header
		if got.Status != row.status || h.Get("Access-Control-Allow-Origin") != row.origin || h.Get("Access-Control-Allow-Methods") != row.methods || h.Get("Access-Control-Allow-Credentials") != row.credentials {
			t.Errorf("%s %s %q: %d, origin %q, methods %q, credentials %q", row.method, row.path, row.headers, got.Status,
				h.Get("Access-Control-Allow-Origin"), h.Get("Access-Control-Allow-Methods"), h.Get("Access-Control-Allow-Credentials"))
		}
		listed := strings.HasPrefix(row.path, "/v1") && row.path != "/v1/any" || row.path == "/_call/hello"
		if vary := strings.Contains(strings.Join(h.Values("Vary"), ", "), "Origin"); listed && (row.origin != "" || row.method == http.MethodGet) && !vary { // also of what a cache may serve to pages of other origins
			t.Errorf("%s %s %q: Vary %q", row.method, row.path, row.headers, h.Values("Vary"))
		}
		if row.origin != "" && row.method == http.MethodGet && !strings.Contains(h.Get("Access-Control-Expose-Headers"), "X-Request-Id") {
			t.Errorf("%s %s exposes %q", row.method, row.path, h.Get("Access-Control-Expose-Headers"))
		}
	}
	got := s.Do("OPTIONS", "/v1/things", "", app, "Access-Control-Request-Method: DELETE", "Access-Control-Request-Headers: x-api-key, content-type")
	if h := got.Header; h.Get("Access-Control-Allow-Headers") != "x-api-key, content-type" || h.Get("Access-Control-Max-Age") == "" {
		t.Errorf("preflight: %v", h)
	}
}

const enterSchema = `
auth { session cookie { } origins: ["https://app.example.com"] }
entity Counter {
  id: id
  name: string(1..40) @unique
  n: int = 0
}
apiKeys { scopes: { worker: @system("worker") { @grant read, insert, update on Counter } } }
routes("/", auth: none, rateLimit: none) {
  POST /enter/:name -> enter (mints: session, as: worker, rateLimit: 100000/day, cors: ["https://app.example.com"])
  POST /uncaught -> uncaught (as: worker)
  GET /me -> dump (auth: session)
}
`

// Headers that the host adds, such as a new session's cookie, are in the response once and
// come from the committed run, however often the handler ran.
func TestAConflictedRunLeavesNothingInTheResponse(t *testing.T) {
	t.Parallel()
	a := harness.NewApp(t, enterSchema, "", "echo")
	a.ShareCode()
	a.Write("build/rows.wasm", harness.GoModule(t, harness.Testdata("handlers/rows")))
	s := a.Serve()
	s.Want(201, nil, "POST", "/uncaught?op=insert&entity=Counter", `{"name":"door"}`)
	const origin = "https://app.example.com"
	seen := map[string]bool{} // users
	for ranAgain, end := 0, time.Now().Add(harness.Timeout); ranAgain == 0; {
		if time.Now().After(end) {
			t.Fatal("no two requests had a conflict")
		}
		var callers sync.WaitGroup
		answers := make([]harness.Answer, 8)
		for i := range answers {
			callers.Go(func() {
				var err error
				if answers[i], err = s.Try("POST", "/enter/door", "", "Origin: "+origin); err != nil {
					t.Error(err)
				}
			})
		}
		callers.Wait()
		for _, got := range answers {
			if got.Status == 409 {
				if got.Header.Get("Set-Cookie") != "" {
					t.Error("a request that was not committed signs in")
				}
				continue
			}
			cookie := got.Cookie(t)
			for name, want := range map[string]string{
				"Access-Control-Allow-Origin": origin, "Cache-Control": "no-store",
				"X-User": got.Body, "Ratelimit-Policy": got.Header.Get("RateLimit-Policy"), "Ratelimit": got.Header.Get("RateLimit"),
			} {
				if lines := got.Header.Values(name); len(lines) != 1 || lines[0] != want {
					t.Errorf("%d with %s %q, want %q", got.Status, name, lines, want)
				}
			}
			if vary := strings.Join(got.Header.Values("Vary"), ", "); strings.Count(vary, "Origin") != 1 {
				t.Errorf("Vary: %s", vary)
			}
			me := harness.ReadDump(t, s.Do("GET", "/me", "", "Cookie: "+cookie))
			if user := me.Context.Auth["userId"]; got.Status != 200 || user != got.Body || seen[got.Body] {
				t.Errorf("%d: the handler enters %s, the cookie is %v's", got.Status, got.Body, user)
			}
			seen[got.Body] = true
			if hasRunAgain(s, got.Header.Get("X-Request-Id")) {
				ranAgain++
			}
		}
	}
	var sessions []json.RawMessage
	if err := json.Unmarshal([]byte(a.Must("sessions", "list", "--json")), &sessions); err != nil || len(sessions) != len(seen) {
		t.Errorf("%d sessions for %d cookies, %v", len(sessions), len(seen), err)
	}
}

// hasRunAgain reports whether the log has a line of a second run of the request.
func hasRunAgain(s *harness.Server, id string) bool {
	for line := range strings.Lines(s.Stderr.String()) {
		if strings.Contains(line, id) && strings.Contains(line, `"attempt":`) && !strings.Contains(line, `"attempt":1`) {
			return true
		}
	}
	return false
}
