package sessions_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"runner.example/tests/harness"
)

func TestSessionLifecycle(t *testing.T) {
	a := harness.NewApp(t, harness.PortalSchema, "", "echo")
	before := a.Session("early")
	s := a.Serve()
	ada := a.Session("ada", "--tenant", "acme", "--role", "admin", "--role", "staff")
	status := func(cookie string) int { return s.Do("GET", "/v1/dump", "", "Cookie: "+cookie).Status }

	if status(before.Cookie) != 200 || status(ada.Cookie) != 200 {
		t.Errorf("created without and with a running server: %d, %d", status(before.Cookie), status(ada.Cookie))
	}
	got := harness.ReadDump(t, s.Do("GET", "/v1/admin", "", "Cookie: theme=dark; "+ada.Cookie))
	if auth := got.Context.Auth; auth["kind"] != "session" || auth["userId"] != "ada" || auth["tenant"] != "acme" || fmt.Sprint(auth["roles"]) != "[admin staff]" {
		t.Errorf("the handler is called by %v", auth)
	}

	// A session ends when it is revoked or expires, and does not end with another one.
	again, short := a.Session("ada"), a.Session("ada", "--ttl", "1s")
	a.Must("sessions", "revoke", ada.ID)
	if status(ada.Cookie) != 401 || status(again.Cookie) != 200 {
		t.Errorf("revoked: %d, another of the user: %d", status(ada.Cookie), status(again.Cookie))
	}
	deadline := time.Now().Add(harness.Timeout)
	for status(short.Cookie) != 401 {
		if time.Now().After(deadline) {
			t.Fatal("a session with a lifetime of one second does not expire")
		}
	}

	// The sessions are the same after a crash.
	s.Kill()
	s = a.Serve()
	if status(again.Cookie) != 200 || status(ada.Cookie) != 401 || status(short.Cookie) != 401 {
		t.Errorf("after a crash: %d, %d, %d", status(again.Cookie), status(ada.Cookie), status(short.Cookie))
	}
	var all []harness.Session
	if err := json.Unmarshal([]byte(a.Must("sessions", "list", "--all", "--json")), &all); err != nil {
		t.Fatal(err)
	}
	states := map[string]string{}
	for _, one := range all {
		states[one.ID] = one.Status
		if one.Cookie != "" {
			t.Error("the list has a cookie")
		}
	}
	want := map[string]string{before.ID: "active", ada.ID: "revoked", again.ID: "active", short.ID: "expired"}
	if fmt.Sprint(states) != fmt.Sprint(want) {
		t.Errorf("listed as %v, want %v", states, want)
	}
}

func TestRoutesAcceptOnlyTheirCredentials(t *testing.T) {
	a := harness.NewApp(t, harness.PortalSchema, "", "echo")
	s := a.Serve()
	admin, plain, token := a.Session("ada", "--role", "admin").Cookie, a.Session("bob").Cookie, a.Token("reader")
	stale := "__Host-session=" + harness.WithChecksum("rns", strings.Repeat("0", 30))
	bearer, apiKey := "Authorization: Bearer "+token, "X-API-Key: "+token
	for _, row := range []struct {
		name, method, path string
		headers            []string
		want               string
	}{
		{"nothing", "GET", "/v1/dump", nil, "401 missing_credentials"},
		{"another cookie", "GET", "/v1/dump", []string{"Cookie: sid=x"}, "401 missing_credentials"},
		{"any user", "GET", "/v1/dump", []string{"Cookie: " + plain}, "200"},
		{"among other cookies", "GET", "/v1/dump", []string{"Cookie: a=1; " + plain + "; b=2"}, "200"},
		{"in the second line", "GET", "/v1/dump", []string{"Cookie: a=1", "Cookie: " + plain}, "200"},
		{"HEAD", "HEAD", "/v1/dump", []string{"Cookie: " + plain}, "200"},
		{"the role", "GET", "/v1/admin", []string{"Cookie: " + admin}, "200"},
		{"no role", "GET", "/v1/admin", []string{"Cookie: " + plain}, "403 insufficient_role"},
		{"twice", "GET", "/v1/dump", []string{"Cookie: " + plain + "; " + plain}, "400 invalid_request"},
		{"twice in two lines", "GET", "/v1/dump", []string{"Cookie: " + plain, "Cookie: " + admin}, "400 invalid_request"},
		{"unknown", "GET", "/v1/dump", []string{"Cookie: " + stale}, "401 invalid_token"},
		{"empty", "GET", "/v1/dump", []string{"Cookie: __Host-session="}, "401 invalid_token"},
		{"quoted", "GET", "/v1/dump", []string{`Cookie: __Host-session="` + plain[len("__Host-session="):] + `"`}, "401 invalid_token"},
		{"a key in the cookie", "GET", "/v1/dump", []string{"Cookie: __Host-session=" + token}, "401 invalid_token"},
		{"the cookie as a bearer", "POST", "/v1/any", []string{"Authorization: Bearer " + admin[len("__Host-session="):]}, "401 invalid_token"},
		{"a session for either", "POST", "/v1/any", []string{"Cookie: " + admin}, "200"},
		{"a key for either", "POST", "/v1/any", []string{bearer}, "200"},
		{"a key beside an invalid cookie", "POST", "/v1/any", []string{apiKey, "Cookie: " + stale}, "200"},
		{"an invalid key beside a valid cookie", "POST", "/v1/any", []string{"X-API-Key: x", "Cookie: " + admin}, "401 invalid_token"},
		{"a good key beside a good cookie for sessions alone", "GET", "/v1/dump", []string{bearer, "Cookie: " + plain}, "401 invalid_token"},
		{"a JWT beside a good cookie", "GET", "/v1/dump", []string{"Authorization: Bearer a.b.c", "Cookie: " + plain}, "401 invalid_token"},
		{"a cookie where a key is asked", "GET", "/v1/key", []string{"Cookie: " + admin}, "401 missing_credentials"},
		{"a cookie where nothing is asked", "GET", "/v1/open", []string{"Cookie: " + stale}, "200"},
		{"the route is checked first", "GET", "/v1/nowhere", []string{"Cookie: " + stale}, "404 route_not_found"},
	} {
		got := s.Do(row.method, row.path, "", row.headers...)
		text := fmt.Sprint(got.Status)
		if got.Status >= 400 {
			text += " " + got.Problem(t).Code
		}
		if text != row.want {
			t.Errorf("%s: %s, want %s", row.name, text, row.want)
		}
		if strings.HasPrefix(text, "40") && got.Status != 404 && got.Header.Get("Cache-Control") != "no-store" ||
			got.Status == 401 && !strings.HasPrefix(got.Header.Get("WWW-Authenticate"), `Bearer realm="portal"`) {
			t.Errorf("%s: headers %v", row.name, got.Header)
		}
	}
	if auth := harness.ReadDump(t, s.Do("GET", "/v1/public", "")).Context.Auth; auth["kind"] != "anonymous" || auth["capability"] != "reader" {
		t.Errorf("a route with as: is called by %v", auth)
	}
}

// On a route that none and sessions may call, the handler knows who is signed in.
func TestAPublicPageKnowsWhoIsSignedIn(t *testing.T) {
	a := harness.NewApp(t, harness.PortalSchema, "", "echo")
	s := a.Serve()
	ada, short, token := a.Session("ada"), a.Session("bob", "--ttl", "1s"), a.Token("reader")
	revoked := a.Session("ada")
	a.Must("sessions", "revoke", revoked.ID)
	const (
		removed   = "__Host-session=; Path=/; Max-Age=0; Secure; HttpOnly; SameSite=Lax"
		elsewhere = "Sec-Fetch-Site: cross-site"
	)
	stale := "Cookie: __Host-session=" + harness.WithChecksum("rns", strings.Repeat("0", 30))
	check := func(name, method string, headers []string, want, setCookie string) {
		t.Helper()
		got := s.Do(method, "/v1/page", "", headers...)
		text := fmt.Sprint(got.Status)
		if got.Status == 200 {
			dump := harness.ReadDump(t, got)
			text += fmt.Sprintf(" %v %v", dump.Context.Auth["kind"], dump.Context.Auth["userId"])
			if cookie := dump.Header("cookie"); cookie != "" && cookie != "a=1" {
				t.Errorf("%s: the handler sees the cookie %q", name, cookie)
			}
		} else {
			text += " " + got.Problem(t).Code
		}
		if cookie := strings.Join(got.Header.Values("Set-Cookie"), "|"); text != want || cookie != setCookie {
			t.Errorf("%s: %s, Set-Cookie %q; want %s, %q", name, text, cookie, want, setCookie)
		}
	}
	for _, row := range []struct {
		name, method string
		headers      []string
		want, cookie string
	}{
		{"nothing", "GET", nil, "200 anonymous <nil>", ""},
		{"another cookie", "GET", []string{"Cookie: a=1"}, "200 anonymous <nil>", ""},
		{"a session", "GET", []string{"Cookie: a=1; " + ada.Cookie}, "200 session ada", ""},
		{"an unknown session", "GET", []string{stale + "; a=1"}, "200 anonymous <nil>", removed},
		{"a revoked session", "POST", []string{"Cookie: " + revoked.Cookie}, "200 anonymous <nil>", removed},
		{"two sessions", "GET", []string{"Cookie: " + ada.Cookie + "; " + ada.Cookie}, "400 invalid_request", ""},
		{"a key where none is accepted", "GET", []string{"X-API-Key: " + token}, "401 invalid_token", ""},
		{"a key", "POST", []string{"X-API-Key: " + token, stale}, "200 apiKey <nil>", ""},
		{"an invalid key beside a session", "POST", []string{"X-API-Key: x", "Cookie: " + ada.Cookie}, "401 invalid_token", ""},
		{"an invalid bearer", "GET", []string{"Authorization: Bearer x"}, "401 invalid_token", ""},
		{"a session, from a page of another origin", "POST", []string{elsewhere, "Cookie: " + ada.Cookie}, "403 cross_origin", ""},
		{"nothing, from a page of another origin", "POST", []string{elsewhere}, "200 anonymous <nil>", ""},
	} {
		check(row.name, row.method, row.headers, row.want, row.cookie)
	}
	deadline := time.Now().Add(harness.Timeout)
	for s.Do("GET", "/v1/dump", "", "Cookie: "+short.Cookie).Status != 401 {
		if time.Now().After(deadline) {
			t.Fatal("a session with a lifetime of one second does not expire")
		}
	}
	check("an expired session", "GET", []string{"Cookie: " + short.Cookie}, "200 anonymous <nil>", removed)
	if auth := harness.ReadDump(t, s.Do("GET", "/v1/page", "")).Context.Auth; auth["capability"] != "reader" {
		t.Errorf("with as:, an anonymous caller is %v", auth)
	}
	if auth := harness.ReadDump(t, s.Do("GET", "/v1/page", "", "Cookie: "+ada.Cookie)).Context.Auth; auth["capability"] != nil {
		t.Errorf("with as:, a user is %v", auth)
	}
}

// The rows are those of net/http's tests of CrossOriginProtection, for each method and
// credential.
func TestCSRFMatrix(t *testing.T) {
	a := harness.NewApp(t, harness.PortalSchema, "", "echo")
	s := a.Serve()
	cookie, token := "Cookie: "+a.Session("ada", "--role", "admin").Cookie, a.Token("reader")
	for _, row := range []struct {
		site, origin string
		safe         bool // allowed with every method
	}{
		{"same-origin", "", true},
		{"none", "", true},
		{"cross-site", "", false},
		{"same-site", "", false},
		{"", "", true},
		{"", "{self}", true},
		{"", "https://attacker.example", false},
		{"", "null", false},
		{"same-origin", "https://attacker.example", true},
		{"", "https://trusted.example", true},
		{"cross-site", "https://trusted.example", true},
		{"cross-site", "https://attacker.example", false},
		{"cross-site", "{self}", false},
		{"junk", "", false},
	} {
		var headers []string
		if row.site != "" {
			headers = append(headers, "Sec-Fetch-Site: "+row.site)
		}
		if row.origin != "" {
			headers = append(headers, "Origin: "+strings.Replace(row.origin, "{self}", s.URL, 1))
		}
		for _, c := range []struct {
			method, path, credential string
			want                     bool
		}{
			{"GET", "/v1/dump", cookie, true},
			{"HEAD", "/v1/dump", cookie, true},
			{"OPTIONS", "/v1/dump", cookie, true},
			{"POST", "/v1/dump", cookie, row.safe},
			{"PUT", "/v1/dump", cookie, row.safe},
			{"DELETE", "/v1/dump", cookie, row.safe},
			{"POST", "/v1/any", cookie, row.safe},
			{"POST", "/v1/loose", cookie, true},
			{"POST", "/v1/any", "Authorization: Bearer " + token, true},
			{"POST", "/v1/any", "X-API-Key: " + token, true},
		} {
			got := s.Do(c.method, c.path, "", append([]string{c.credential}, headers...)...)
			if (got.Status < 300) != c.want {
				t.Errorf("%s %s with %.13s…, Sec-Fetch-Site %q, Origin %q: %d, want it done: %v", c.method, c.path, c.credential, row.site, row.origin, got.Status, c.want)
			}
			if got.Status >= 300 && (got.Status != 403 || got.Problem(t).Code != "cross_origin" || got.Header.Get("Cache-Control") != "no-store") {
				t.Errorf("%s %s: refused with %d %s", c.method, c.path, got.Status, got.Body)
			}
		}
	}
	// Other refusals come first, and a refused request uses no quota: one request a minute is
	// allowed, after refused ones.
	if got := s.Do("PUT", "/v1/limited", "", "Sec-Fetch-Site: cross-site"); got.Status != 401 {
		t.Errorf("without a cookie: %d", got.Status)
	}
	for _, want := range []int{403, 403} {
		if got := s.Do("PUT", "/v1/limited", "", cookie, "Sec-Fetch-Site: cross-site"); got.Status != want {
			t.Errorf("from another site: %d, want %d", got.Status, want)
		}
	}
	if got := s.Do("PUT", "/v1/limited", "", cookie); got.Status != 200 {
		t.Errorf("after refused ones: %d", got.Status)
	}
}

func TestHandlersSeeAllCookiesExceptTheSession(t *testing.T) {
	a := harness.NewApp(t, harness.PortalSchema, "", "echo")
	s := a.Serve()
	cookie, token := a.Session("ada", "--role", "admin").Cookie, a.Token("reader")
	value := cookie[len("__Host-session="):]
	for _, row := range []struct {
		name, path string
		headers    []string
		want       string
	}{
		{"between others", "/v1/dump", []string{"Cookie: a=1; " + cookie + "; b=2"}, "a=1; b=2"},
		{"in a line of its own", "/v1/dump", []string{"Cookie: a=1", "Cookie: " + cookie, "Cookie: b=2"}, "a=1; b=2"},
		{"alone", "/v1/dump", []string{"Cookie: " + cookie}, ""},
		{"with blanks", "/v1/dump", []string{"Cookie: a=1;  __Host-session = " + value + " ;b=2"}, "a=1; b=2"},
		{"beside one that is named alike", "/v1/dump", []string{"Cookie: " + cookie + "; __Host-session2=x; __host-session=y"}, "__Host-session2=x; __host-session=y"},
		{"beside a key", "/v1/key", []string{"X-API-Key: " + token, "Cookie: a=1; " + cookie}, "a=1"},
		{"where nothing is asked it passes", "/v1/open", []string{"Cookie: a=1; " + cookie}, "a=1; " + cookie},
	} {
		got := harness.ReadDump(t, s.Do("GET", row.path, "", row.headers...))
		if got.Header("cookie") != row.want {
			t.Errorf("%s: the handler sees %q, want %q", row.name, got.Header("cookie"), row.want)
		}
		if row.path != "/v1/open" && strings.Contains(fmt.Sprint(got), value) {
			t.Errorf("%s: the handler sees the session's value", row.name)
		}
	}
	named := harness.NewApp(t, strings.Replace(harness.PortalSchema, "session cookie {", `session cookie("__Host-sid") {`, 1), "", "echo")
	s = named.Serve()
	cookie = named.Session("ada").Cookie
	if !strings.HasPrefix(cookie, "__Host-sid=") {
		t.Fatalf("the cookie begins with %.15s", cookie)
	}
	if got := harness.ReadDump(t, s.Do("GET", "/v1/dump", "", "Cookie: __Host-session=mine; "+cookie)); got.Header("cookie") != "__Host-session=mine" {
		t.Errorf("the handler sees %q", got.Header("cookie"))
	}
}

func TestInvalidSessionsAreIndistinguishable(t *testing.T) {
	a := harness.NewApp(t, harness.PortalSchema, "", "echo")
	s := a.Serve()
	revoked, short := a.Session("ada"), a.Session("ada", "--ttl", "1s")
	a.Must("sessions", "revoke", revoked.ID)
	deadline := time.Now().Add(harness.Timeout)
	for s.Do("GET", "/v1/dump", "", "Cookie: "+short.Cookie).Status != 401 {
		if time.Now().After(deadline) {
			t.Fatal("a session with a lifetime of one second does not expire")
		}
	}
	var first string
	for name, headers := range map[string]string{
		"revoked": "Cookie: " + revoked.Cookie, "expired": "Cookie: " + short.Cookie,
		"unknown":   "Cookie: __Host-session=" + harness.WithChecksum("rns", strings.Repeat("0", 30)),
		"malformed": "Cookie: __Host-session=x", "of the wrong kind": "Authorization: Bearer " + harness.WithChecksum("rnk", strings.Repeat("0", 30)),
		"a JWT": "Authorization: Bearer a.b.c",
	} {
		reply := s.Raw("GET /v1/dump HTTP/1.1\r\nHost: probe\r\nConnection: close\r\n"+headers+"\r\n\r\n", harness.Timeout)
		_, rest, _ := strings.Cut(harness.MaskedID.ReplaceAllString(reply, "ID"), "Date: ")
		before, _, _ := strings.Cut(harness.MaskedID.ReplaceAllString(reply, "ID"), "Date: ")
		masked := before + rest[len(http.TimeFormat):]
		if first == "" {
			first = masked
		}
		if masked != first || !strings.HasPrefix(reply, "HTTP/1.1 401 ") {
			t.Errorf("%s:\n%s\nwant\n%s", name, masked, first)
		}
	}
}

func TestLimitsCountSessionsByUser(t *testing.T) {
	a := harness.NewApp(t, harness.PortalSchema, "", "echo")
	s := a.Serve()
	first, second, other := a.Session("ada").Cookie, a.Session("ada").Cookie, a.Session("bob").Cookie
	for _, path := range []string{"/v1/limited", "/v1/limitedUser"} {
		for i, row := range []struct {
			cookie string
			want   int
		}{{first, 200}, {second, 200}, {first, 200}, {second, 429}, {first, 429}, {other, 200}} {
			if got := s.Do("GET", path, "", "Cookie: "+row.cookie).Status; got != row.want {
				t.Errorf("%s, request %d: %d, want %d", path, i+1, got, row.want)
			}
		}
	}
}

// @issue is evaluated with the session's roles.
func TestSessionsMayIssueKeysByTheirRole(t *testing.T) {
	a := harness.NewApp(t, harness.PortalSchema, "", "echo")
	s := a.Serve()
	create := func(cookie string) harness.Answer {
		return s.Do("POST", "/v1/op", `{"scope":"minted"}`, "Cookie: "+cookie, "X-Op: apiKeys.create")
	}
	if got := create(a.Session("ada", "--tenant", "acme", "--role", "admin").Cookie); got.Status != 200 ||
		!strings.Contains(got.Body, `"owner":"ada"`) || !strings.Contains(got.Body, `"tenant":"acme"`) {
		t.Errorf("an admin: %d %s", got.Status, harness.TokenForm.ReplaceAllString(got.Body, "TOKEN"))
	}
	if got := create(a.Session("bob", "--role", "staff").Cookie); got.Status != 299 || !strings.Contains(got.Body, "denied") {
		t.Errorf("another role: %d %s", got.Status, harness.TokenForm.ReplaceAllString(got.Body, "TOKEN"))
	}
}

func TestRevokingASessionIsImmediate(t *testing.T) {
	rounds, callers := 5, 16
	if harness.Soak {
		rounds, callers = 1000, 64
	}
	a := harness.NewApp(t, harness.PortalSchema, "", "echo")
	s := a.Serve()
	for round := range rounds {
		session := a.Session(fmt.Sprint("user ", round))
		s.RevokeUnderLoad(callers, "Cookie: "+session.Cookie, func() { a.Must("sessions", "revoke", session.ID) })
	}
}

func TestNoCookieInAnyOutput(t *testing.T) {
	a := harness.NewApp(t, harness.PortalSchema, "[telemetry]\nlevel = \"debug\"\naccess_log = true\n", "echo")
	s := a.Serve()
	canary := a.Session("ada").Cookie[len("__Host-session="):]
	for _, request := range []string{
		"GET /v1/dump HTTP/1.1\nHost: probe\nCookie: __Host-session={c}\n\n",
		"GET /v1/dump HTTP/1.1\nHost: probe\nCookie: __Host-session={c}; __Host-session={c}\n\n",
		"GET /v1/dump HTTP/1.1\nHost: probe\nCookie: __Host-session=\"{c}\"\n\n",
		"GET /v1/dump HTTP/1.1\nHost: probe\nCookie: __Host-session={c}x\n\n",
		"GET /v1/dump HTTP/1.1\nHost: probe\nCookie: {c}\n\n",
		"GET /v1/dump HTTP/1.1\nHost: probe\nCookie : __Host-session={c}\n\n",
		"GET /v1/dump HTTP/1.1\nHost: probe\nCookie __Host-session={c}\n\n",
		"GET /v1/dump HTTP/1.1\nHost: probe\nAuthorization: Bearer {c}\n\n",
		"GET /v1/dump HTTP/1.1\nHost: probe\nX-API-Key: {c}\n\n",
		"GET /v1/admin HTTP/1.1\nHost: probe\nCookie: __Host-session={c}\n\n",
		"PUT /v1/dump HTTP/1.1\nHost: probe\nSec-Fetch-Site: cross-site\nOrigin: https://{c}\nContent-Length: 0\nCookie: __Host-session={c}\n\n",
		"GET /v1/dump?session={c} HTTP/1.1\nHost: probe\n\n",
		"GET /v1/{c} HTTP/1.1\nHost: probe\n\n",
		"{c}\n\n",
	} {
		s.Raw(strings.ReplaceAll(strings.ReplaceAll(request, "\n", "\r\n"), "{c}", canary), 100*time.Millisecond)
	}
	for _, args := range [][]string{{"sessions", "list"}, {"sessions", "list", "--all", "--json"}, {"audit", "list"}, {"audit", "list", "--json"}} {
		if r := a.Run(args...); r.Status != 0 || strings.Contains(r.Stdout+r.Stderr, canary[4:34]) {
			t.Errorf("%s: %d, or it shows the canary", strings.Join(args, " "), r.Status)
		}
	}
	// An error repeats a wrong argument, but not a secret in it.
	if r := a.Run("sessions", "revoke", canary); r.Status != 4 || strings.Contains(r.Stdout+r.Stderr, canary[4:34]) {
		t.Errorf("revoke by cookie: %d %s%s", r.Status, r.Stdout, r.Stderr)
	}
	s.Stop()
	if log := s.Stderr.String(); strings.Contains(log, canary) || strings.Contains(log, canary[4:34]) {
		t.Errorf("the log contains the canary:\n%s", log)
	}
	harness.AssertNotStored(t, a, canary)
}

// With insecure cookies the server does not listen on another address.
func TestInsecureCookiesAreAllowedOnlyOnLoopback(t *testing.T) {
	a := harness.NewApp(t, strings.Replace(harness.PortalSchema, "session cookie {", `session cookie("sid") {`, 1), "[auth]\ninsecure_cookies = true\n", "echo")
	for _, listen := range []string{"192.0.2.1:8099", "0.0.0.0:0", ":0", "[::]:0", "runner.example:80"} {
		for _, command := range []string{"serve", "dev"} {
			got := a.Run(command, "--listen", listen)
			if got.Status != 3 || !strings.Contains(got.Stderr, "insecure_cookies is for loopback only") || !strings.Contains(got.Stderr, listen) {
				t.Errorf("%s on %s: status %d\n%s", command, listen, got.Status, got.Stderr)
			}
		}
	}
	s := a.Serve()
	if got := s.Do("GET", "/v1/dump", "", "Cookie: "+a.Session("ada").Cookie); got.Status != 200 {
		t.Errorf("on loopback: %d", got.Status)
	}
}
