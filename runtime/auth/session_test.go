package auth_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"runner.example/hostabi/abi"
	"runner.example/internal/caller"
	"runner.example/internal/fault"
	"runner.example/keystore"
	"runner.example/runtime/auth"
	"runner.example/schema"
	"runner.example/state/store"
)

// portal is an app whose users have sessions.
const portal = `
auth {
  session cookie { }
  roles: [admin, staff, guest]
  origins: ["https://trusted.example"]
}
apiKeys {
  prefix: "ord",
  scopes: {
    orders_read: @system("orders.read") { @grant read on Order },
    other: @system("other") { @grant read on Order }
  }
}
routes("/v1", auth: session) {
  GET /me -> a
  POST /me -> a
  POST /loose -> a (csrf: off)
  GET /admin -> b (auth: session(admin, staff))
  POST /any -> c (auth: anyOf(session(admin), apiKey(orders_read)))
  GET /read -> d (auth: apiKey(orders_read))
  GET /open -> e (auth: none, rateLimit: none)
  GET /public -> e (auth: none, rateLimit: none, as: other)
  POST /page -> e (auth: anyOf(session, none), rateLimit: none, as: other)
  POST /either -> e (auth: anyOf(none, session, apiKey(orders_read)), rateLimit: none)
}
`

func newPortal(t testing.TB) *world {
	w := newWorld(t)
	w.schema = compile(t, portal)
	return w
}

// session creates a session and returns it with the credentials that a browser sends.
func (w *world) session(roles ...string) (keystore.Session, auth.Presented) {
	w.Helper()
	operator := keystore.Authority{Schema: w.schema, Caller: caller.Caller{Kind: caller.System}}
	var s keystore.Session
	_, err := w.store.Update(context.Background(), func(tx *store.Tx) (err error) {
		s, err = w.keys.CreateSession(tx, operator, keystore.CreateSessionRequest{UserID: "ada", Tenant: "acme", Roles: roles})
		return err
	})
	if err != nil {
		w.Fatal(err)
	}
	_, value, _ := strings.Cut(s.Cookie.Reveal(), "=")
	return s, cookie(value)
}

// cookie presents a session's cookie in a GET.
func cookie(value string) auth.Presented {
	return auth.Presented{
		Cookie: []byte(value), Cookies: 1, Method: []byte("GET"), Host: []byte("example.com"), Address: somewhere, Request: &abi.Request{ID: "01jtest"},
	}
}

func (w *world) revokeSession(id string) {
	w.Helper()
	operator := keystore.Authority{Caller: caller.Caller{Kind: caller.System}}
	_, err := w.store.Update(context.Background(), func(tx *store.Tx) error {
		_, err := w.keys.RevokeSession(tx, operator, id)
		return err
	})
	if err != nil {
		w.Fatal(err)
	}
}

func TestACookieIsACallerOfKindSession(t *testing.T) {
	w := newPortal(t)
	session, p := w.session("staff", "guest")
	want := caller.Caller{Kind: caller.Session, UserID: "ada", Tenant: "acme", Roles: []string{"staff", "guest"}, SessionID: session.ID}
	for _, path := range []string{"me", "admin"} {
		if got, err := w.check(path, p); err != nil || !cmp.Equal(want, got) {
			t.Errorf("%s: %v %s", path, err, cmp.Diff(want, got))
		}
	}
}

func TestASessionOpensOnlySessionRoutes(t *testing.T) {
	w := newPortal(t)
	_, admin := w.session("admin")
	_, guest := w.session("guest")
	_, plain := w.session()
	token := w.create(keystore.CreateRequest{Scope: "orders_read", Name: "n"}).Token.Reveal()
	beside := func(p, header auth.Presented) auth.Presented {
		header.Cookie, header.Cookies, header.Method, header.Host = p.Cookie, p.Cookies, p.Method, p.Host
		return header
	}
	twice := admin
	twice.Cookies = 2
	stale := cookie("rns_" + goodToken[4:])
	for _, row := range []struct {
		name string
		path string
		p    auth.Presented
		want fault.Code
	}{
		{"no cookie", "me", auth.Presented{}, fault.MissingCredentials},
		{"no cookie for either", "any", auth.Presented{}, fault.MissingCredentials},
		{"any user", "me", plain, ""},
		{"one of the roles", "admin", admin, ""},
		{"another role", "admin", guest, fault.InsufficientRole},
		{"no role", "admin", plain, fault.InsufficientRole},
		{"a session for either", "any", admin, ""},
		{"the wrong role for either", "any", guest, fault.InsufficientRole},
		{"a session where a key is asked", "read", admin, fault.MissingCredentials},
		{"a session where nothing is asked", "open", admin, ""},
		{"the cookie twice", "me", twice, fault.InvalidRequest},
		{"the cookie twice where a key is asked", "read", twice, fault.MissingCredentials},
		{"an empty cookie", "me", cookie(""), fault.InvalidToken},
		{"junk", "me", cookie("junk"), fault.InvalidToken},
		{"a cookie of no session", "me", stale, fault.InvalidToken},
		{"a key in the cookie", "any", cookie(token), fault.InvalidToken},
		{"a cookie for a bearer", "me", bearer("Bearer " + string(admin.Cookie)), fault.InvalidToken},
		{"a cookie for a key", "any", header(string(admin.Cookie)), fault.InvalidToken},
		{"a good key beside a bad cookie", "any", beside(stale, header(token)), ""},
		{"a good key beside two cookies", "any", beside(twice, bearer("Bearer "+token)), ""},
		{"a bad key beside a good cookie", "any", beside(admin, header(goodToken)), fault.InvalidToken},
		{"a good key beside a good cookie where a session is asked", "me", beside(admin, header(token)), fault.InvalidToken},
		{"a JWT beside a good cookie", "me", beside(admin, bearer("Bearer a.b.c")), fault.InvalidToken},
		{"an empty header beside a good cookie", "me", beside(admin, bearer("")), fault.InvalidToken},
	} {
		w.now = w.now.Add(4 * time.Second) // fewer failures than are too many
		who, err := w.check(row.path, row.p)
		if fault.CodeOf(err) != row.want {
			t.Errorf("%s: %v (%s), want %q", row.name, err, fault.CodeOf(err), row.want)
		}
		if err != nil && who.Kind != caller.Anonymous {
			t.Errorf("%s: refused as %+v", row.name, who)
		}
	}
}

func TestAnAppWithoutCookieSessionsAcceptsNone(t *testing.T) {
	w := newWorld(t)
	if _, err := w.check("user", cookie("")); fault.CodeOf(err) != fault.InvalidToken {
		t.Errorf("%v, want an invalid token", err)
	}
	if _, err := w.check("user", auth.Presented{}); fault.CodeOf(err) != fault.MissingCredentials {
		t.Errorf("%v, want missing credentials", err)
	}
}

func TestDeadSessionsAreIndistinguishable(t *testing.T) {
	w := newPortal(t)
	idle, first := w.session()
	revoked, second := w.session()
	w.revokeSession(revoked.ID)
	w.now = w.now.Add(30 * time.Minute)
	var all []error
	for _, p := range []auth.Presented{first, second, cookie("rns_" + goodToken[4:]), cookie("junk")} {
		_, err := w.check("me", p)
		all = append(all, err)
	}
	for i, err := range all {
		if fault.CodeOf(err) != fault.InvalidToken || err != all[0] {
			t.Errorf("refusal %d is %#v, want the very same error as the first", i, err)
		}
	}
	var got []string
	for line := range strings.Lines(w.log.String()) {
		var entry struct{ Reason, SessionID, Prefix string }
		if err := json.Unmarshal([]byte(line), &entry); err != nil {
			t.Fatal(err)
		}
		got = append(got, strings.TrimRight(entry.Reason+" "+entry.SessionID, " "))
	}
	want := []string{"idle " + idle.ID, "revoked " + revoked.ID, "unknown", "malformed"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the log (-want +got):\n%s", diff)
	}
	if strings.Contains(w.log.String(), string(first.Cookie[4:])) || strings.Contains(w.log.String(), string(second.Cookie[4:])) {
		t.Errorf("the log holds a cookie:\n%s", w.log.String())
	}
}

func TestGuessedCookiesAreThrottledAsGuessedKeysAre(t *testing.T) {
	w := newPortal(t)
	_, good := w.session()
	for i := range 30 {
		want := fault.InvalidToken
		if i >= 20 {
			want = fault.RateLimited
		}
		if _, err := w.check("me", cookie("rns_"+goodToken[4:])); fault.CodeOf(err) != want {
			t.Fatalf("failure %d: %v, want %s", i+1, err, want)
		}
	}
	if _, err := w.check("me", good); err != nil {
		t.Errorf("a good session from the same address: %v", err)
	}
}

func TestARevokedSessionIsRefusedAtOnce(t *testing.T) {
	w := newPortal(t)
	s, p := w.session()
	epoch := w.keys.Epoch()
	if _, err := w.check("me", p); err != nil {
		t.Fatal(err)
	}
	w.revokeSession(s.ID)
	if w.keys.Epoch() == epoch {
		t.Error("the epoch did not move")
	}
	if _, err := w.check("me", p); fault.CodeOf(err) != fault.InvalidToken {
		t.Errorf("%v, want an invalid token", err)
	}
}

func TestAnonymousCallersHaveTheScopeOfTheRoute(t *testing.T) {
	w := newPortal(t)
	for path, want := range map[string]caller.Caller{"open": {}, "public": {As: "other", Capability: "other"}} {
		if got, err := w.check(path, auth.Presented{}); err != nil || !cmp.Equal(want, got) {
			t.Errorf("%s: %+v, %v, want %+v", path, got, err, want)
		}
	}
}

func TestNoneBesideOtherModesChecksWhatIsPresented(t *testing.T) {
	w := newPortal(t)
	session, good := w.session("guest")
	revoked, dead := w.session()
	w.revokeSession(revoked.ID)
	good.Method, dead.Method = []byte("POST"), []byte("POST")
	stale := cookie("rns_" + goodToken[4:])
	twice, elsewhere := good, good
	twice.Cookies = 2
	elsewhere.FetchSite, elsewhere.FetchSiteLines = []byte("cross-site"), 1
	staleElsewhere := stale
	staleElsewhere.Method, staleElsewhere.FetchSite, staleElsewhere.FetchSiteLines = []byte("POST"), []byte("cross-site"), 1
	beside := func(header auth.Presented) auth.Presented {
		header.Cookie, header.Cookies = good.Cookie, 1
		return header
	}
	token := w.create(keystore.CreateRequest{Scope: "orders_read", Name: "n"}).Token.Reveal()
	other := w.create(keystore.CreateRequest{Scope: "other", Name: "n"}).Token.Reveal()
	for _, row := range []struct {
		name, path string
		p          auth.Presented
		want       fault.Code
		kind       caller.Kind
	}{
		{"nothing", "page", auth.Presented{}, "", caller.Anonymous},
		{"a session", "page", good, "", caller.Session},
		{"a session for three", "either", good, "", caller.Session},
		{"a revoked session", "page", dead, "", caller.Anonymous},
		{"a cookie of no session", "either", stale, "", caller.Anonymous},
		{"junk", "page", cookie("junk"), "", caller.Anonymous},
		{"the cookie twice", "page", twice, fault.InvalidRequest, 0},
		{"from elsewhere", "page", elsewhere, fault.CrossOrigin, 0},
		{"a cookie of no session from elsewhere", "page", staleElsewhere, "", caller.Anonymous},
		{"a key where none is accepted", "page", header(token), fault.InvalidToken, 0},
		{"a key", "either", header(token), "", caller.APIKey},
		{"a key of another scope", "either", header(other), fault.InsufficientScope, 0},
		{"an invalid key", "either", header(goodToken), fault.InvalidToken, 0},
		{"another scheme", "page", bearer("Basic YQ=="), fault.InvalidToken, 0},
		{"an invalid bearer beside a good cookie", "page", beside(bearer("Bearer x")), fault.InvalidToken, 0},
		{"a JWT without an issuer", "page", bearer("Bearer a.b.c"), fault.InvalidToken, 0},
	} {
		w.now = w.now.Add(4 * time.Second) // fewer failures than are too many
		who, err := w.check(row.path, row.p)
		if fault.CodeOf(err) != row.want || who.Kind != row.kind {
			t.Errorf("%s: %+v %v, want %q and kind %s", row.name, who, err, row.want, row.kind)
		}
		if wantAs := row.path == "page" && err == nil && row.kind == caller.Anonymous; (who.As == "other") != wantAs {
			t.Errorf("%s: has the scope %q", row.name, who.As)
		}
		if row.kind == caller.Session && who.SessionID != session.ID {
			t.Errorf("%s: session %q", row.name, who.SessionID)
		}
	}

	// Guesses are counted although they are not refused.
	w.now = w.now.Add(time.Minute)
	for i := range 21 {
		want := fault.Code("")
		if i == 20 {
			want = fault.RateLimited
		}
		if _, err := w.check("page", stale); fault.CodeOf(err) != want {
			t.Fatalf("guess %d: %v, want %q", i+1, err, want)
		}
	}
}

func TestAValidSessionAllocatesNothing(t *testing.T) {
	w := newPortal(t)
	_, p := w.session("guest", "staff")
	p.Method, p.FetchSite, p.FetchSiteLines = []byte("POST"), []byte("same-origin"), 1
	for _, path := range []string{"me", "admin"} {
		route := w.route(path)
		if n := testing.AllocsPerRun(5000, func() {
			if _, err := w.auth.Check(context.Background(), w.schema, w.tokens, route, p, w.now); err != nil {
				t.Fatal(err)
			}
		}); n != 0 && !raced {
			t.Errorf("%s: %v allocations, want 0", path, n)
		}
	}
}

// TestCSRFMatrix holds every combination of what a browser says against
// net/http.CrossOriginProtection, and the rows of its tests against their
// expectations.
func TestCSRFMatrix(t *testing.T) {
	w := newPortal(t)
	_, p := w.session("admin")
	token := w.create(keystore.CreateRequest{Scope: "orders_read", Name: "n"}).Token.Reveal()
	oracle := http.NewCrossOriginProtection()
	if err := oracle.AddTrustedOrigin("https://trusted.example"); err != nil {
		t.Fatal(err)
	}
	route := map[bool]*schema.Route{}
	for i := range w.schema.Routes {
		if rt := &w.schema.Routes[i]; rt.Method == "POST" && rt.Auth.Session && len(rt.Auth.Scopes) == 0 {
			route[rt.CSRFOff] = rt
		}
	}
	set := func(p auth.Presented, method, host, site, origin string) auth.Presented {
		p.Method, p.Host = []byte(method), []byte(host)
		if site != "" {
			p.FetchSite, p.FetchSiteLines = []byte(site), 1
		}
		if origin != "" {
			p.Origin, p.OriginLines = []byte(origin), 1
		}
		return p
	}
	methods := []string{"GET", "HEAD", "OPTIONS", "POST", "PUT", "PATCH", "DELETE"}
	hosts := []string{"example.com", "example.com:8080", "EXAMPLE.com", "[::1]:80"}
	sites := []string{"", "same-origin", "none", "same-site", "cross-site", "Same-Origin", "junk"}
	origins := []string{
		"", "null", "https://example.com", "http://example.com", "https://example.com:8080", "https://EXAMPLE.com", "https://[::1]:80",
		"https://attacker.example", "https://trusted.example", "https://trusted.example:443", "http://trusted.example",
		"https://example.com.attacker.example", "example.com", "//example.com", "https://user@example.com", "https://ex%zz", "https://example.com/",
	}
	rows, refused := 0, 0
	for _, method := range methods {
		for _, host := range hosts {
			for _, site := range sites {
				for _, origin := range origins {
					rows++
					r := &http.Request{Method: method, Host: host, Header: http.Header{}}
					if site != "" {
						r.Header.Set("Sec-Fetch-Site", site)
					}
					if origin != "" {
						r.Header.Set("Origin", origin)
					}
					want := fault.Code("")
					if oracle.Check(r) != nil {
						want = fault.CrossOrigin
						refused++
					}
					name := fmt.Sprintf("%s to %s, Sec-Fetch-Site %q, Origin %q", method, host, site, origin)
					if _, err := w.auth.Check(context.Background(), w.schema, w.tokens, route[false], set(p, method, host, site, origin), w.now); fault.CodeOf(err) != want {
						t.Errorf("%s: %v, want %q", name, err, want)
					}
					if _, err := w.auth.Check(context.Background(), w.schema, w.tokens, route[true], set(p, method, host, site, origin), w.now); err != nil {
						t.Errorf("%s with csrf: off: %v", name, err)
					}
					for _, key := range []auth.Presented{bearer("Bearer " + token), header(token)} {
						if _, err := w.auth.Check(context.Background(), w.schema, w.tokens, w.route("any"), set(key, method, host, site, origin), w.now); err != nil {
							t.Errorf("%s with a key: %v", name, err)
						}
					}
				}
			}
		}
	}
	if refused < 100 || rows-refused < 100 {
		t.Errorf("of %d rows %d are refused", rows, refused)
	}

	for _, row := range []struct {
		name, method, site, origin string
		allowed                    bool
	}{
		{"same-origin allowed", "POST", "same-origin", "", true},
		{"none allowed", "POST", "none", "", true},
		{"cross-site blocked", "POST", "cross-site", "", false},
		{"same-site blocked", "POST", "same-site", "", false},
		{"no header with no origin", "POST", "", "", true},
		{"no header with matching origin", "POST", "", "https://example.com", true},
		{"no header with mismatched origin", "POST", "", "https://attacker.example", false},
		{"no header with null origin", "POST", "", "null", false},
		{"GET allowed", "GET", "cross-site", "", true},
		{"HEAD allowed", "HEAD", "cross-site", "", true},
		{"OPTIONS allowed", "OPTIONS", "cross-site", "", true},
		{"PUT blocked", "PUT", "cross-site", "", false},
		{"trusted origin without sec-fetch-site", "POST", "", "https://trusted.example", true},
		{"trusted origin with cross-site", "POST", "cross-site", "https://trusted.example", true},
		{"untrusted origin without sec-fetch-site", "POST", "", "https://attacker.example", false},
		{"untrusted origin with cross-site", "POST", "cross-site", "https://attacker.example", false},
	} {
		_, err := w.auth.Check(context.Background(), w.schema, w.tokens, route[false], set(p, row.method, "example.com", row.site, row.origin), w.now)
		if (err == nil) != row.allowed || err != nil && fault.CodeOf(err) != fault.CrossOrigin {
			t.Errorf("%s: %v", row.name, err)
		}
	}

	// What comes from no browser is not decided in its favour: Origin without a
	// Host to compare it with, two lines of a name.
	if _, err := w.auth.Check(context.Background(), w.schema, w.tokens, route[false], set(p, "POST", "", "", "null"), w.now); fault.CodeOf(err) != fault.CrossOrigin {
		t.Errorf("Origin without Host: %v", err)
	}
	twice := set(p, "POST", "example.com", "same-origin", "https://trusted.example")
	twice.FetchSiteLines = 2
	if _, err := w.auth.Check(context.Background(), w.schema, w.tokens, route[false], twice, w.now); fault.CodeOf(err) != fault.CrossOrigin {
		t.Errorf("two lines of Sec-Fetch-Site: %v", err)
	}
	twice.FetchSiteLines, twice.OriginLines = 1, 2
	if _, err := w.auth.Check(context.Background(), w.schema, w.tokens, route[false], twice, w.now); fault.CodeOf(err) != fault.CrossOrigin {
		t.Errorf("two lines of Origin: %v", err)
	}
}

func TestTheRoleIsCheckedBeforeTheOrigin(t *testing.T) {
	w := newPortal(t)
	_, p := w.session("guest")
	p.Method, p.FetchSite, p.FetchSiteLines = []byte("POST"), []byte("cross-site"), 1
	if _, err := w.check("any", p); fault.CodeOf(err) != fault.InsufficientRole {
		t.Errorf("%v, want an insufficient role", err)
	}
	if _, err := w.check("me", p); fault.CodeOf(err) != fault.CrossOrigin {
		t.Errorf("%v, want cross origin", err)
	}
}

// A request that is refused after its cookie was accepted does not count as a use of the
// session: otherwise a page of another origin could keep the session alive.
func TestARefusedRequestDoesNotKeepASessionAlive(t *testing.T) {
	w := newPortal(t)
	_, p := w.session("guest")
	elsewhere := p
	elsewhere.Method, elsewhere.FetchSite, elsewhere.FetchSiteLines = []byte("POST"), []byte("cross-site"), 1
	w.now = w.now.Add(20 * time.Minute)
	if _, err := w.check("admin", p); fault.CodeOf(err) != fault.InsufficientRole {
		t.Errorf("another role: %v", err)
	}
	if _, err := w.check("me", elsewhere); fault.CodeOf(err) != fault.CrossOrigin {
		t.Errorf("from elsewhere: %v", err)
	}
	w.now = w.now.Add(11 * time.Minute)
	if _, err := w.check("me", p); fault.CodeOf(err) != fault.InvalidToken {
		t.Errorf("31 minutes after it was made: %v, want it idle", err)
	}
	_, p = w.session("guest")
	w.now = w.now.Add(20 * time.Minute)
	if _, err := w.check("me", p); err != nil {
		t.Error(err)
	}
	w.now = w.now.Add(11 * time.Minute)
	if _, err := w.check("me", p); err != nil {
		t.Errorf("11 minutes after it was used: %v", err)
	}
}
