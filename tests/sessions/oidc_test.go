package sessions_test

import (
	"bufio"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"os/exec"
	"regexp"
	"strings"
	"testing"
	"time"

	"runner.example/tests/harness"
)

// identityProvider is the process of testdata/oidc/provider.mjs.
type identityProvider struct {
	t      testing.TB
	issuer string
	stdin  io.Writer
	said   *bufio.Reader
}

// startIdentityProvider starts a provider that ends with the test.
func startIdentityProvider(t testing.TB) *identityProvider {
	t.Helper()
	dir, err := exec.Command(harness.RepoFile("tools/fetch-oidc-provider.sh")).Output()
	if err != nil {
		t.Fatalf("get the identity provider: %v", err)
	}
	cmd := exec.Command("node", "testdata/oidc/provider.mjs", strings.TrimSpace(string(dir)))
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	var stderr harness.LockedBuffer
	cmd.Stderr = &stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		stdin.Close()
		if err := cmd.Wait(); err != nil || t.Failed() {
			t.Logf("the identity provider ended: %v\n%s", err, stderr.String())
		}
	})
	p := &identityProvider{t: t, stdin: stdin, said: bufio.NewReader(stdout)}
	p.issuer = p.line()
	return p
}

func (p *identityProvider) line() string {
	p.t.Helper()
	line, err := p.said.ReadString('\n')
	if err != nil {
		p.t.Fatalf("the identity provider printed nothing: %v", err)
	}
	return strings.TrimSpace(line)
}

// rotate makes the provider sign with new keys.
func (p *identityProvider) rotate() {
	p.t.Helper()
	fmt.Fprintln(p.stdin)
	p.line()
}

type tokens struct {
	Access string `json:"access_token"`
	ID     string `json:"id_token"`
}

// token gets tokens from the provider's token endpoint (RFC 6749, section 3.2).
func (p *identityProvider) token(user, password string, form url.Values) (all tokens) {
	p.t.Helper()
	request, err := http.NewRequest("POST", p.issuer+"/token", strings.NewReader(form.Encode()))
	if err != nil {
		p.t.Fatal(err)
	}
	request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	if user != "" {
		request.SetBasicAuth(user, password)
	}
	answer, err := harness.Client.Do(request)
	if err != nil {
		p.t.Fatal(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err == nil {
		err = json.Unmarshal(text, &all)
	}
	if err != nil || all.Access == "" {
		p.t.Fatalf("the provider's token endpoint: %d %s, %v", answer.StatusCode, text, err)
	}
	return all
}

// robot returns the access token of a program, signed with the algorithm.
func (p *identityProvider) robot(algorithm, resource string) string {
	p.t.Helper()
	form := url.Values{"grant_type": {"client_credentials"}}
	if resource != "" {
		form.Set("resource", resource)
	}
	return p.token("robot-"+algorithm, "of-robot-"+algorithm, form).Access
}

// login runs the authorization code flow with PKCE (OpenID Connect Core, section 3.1), as a
// browser does, through the provider's own pages.
func (p *identityProvider) login(user string) tokens {
	p.t.Helper()
	jar, err := cookiejar.New(nil)
	if err != nil {
		p.t.Fatal(err)
	}
	browser := &http.Client{Jar: jar, Timeout: time.Minute, CheckRedirect: func(r *http.Request, _ []*http.Request) error {
		if r.URL.Path == "/callback" {
			return http.ErrUseLastResponse
		}
		return nil
	}}
	const verifier = "a-verifier-of-at-least-forty-three-characters-as-rfc-7636-asks"
	challenge := sha256.Sum256([]byte(verifier))
	here := p.issuer + "/auth?" + url.Values{
		"client_id": {"web"}, "response_type": {"code"}, "scope": {"openid api"}, "resource": {"urn:tracker"},
		"redirect_uri": {"http://127.0.0.1/callback"}, "state": {"s"},
		"code_challenge": {base64.RawURLEncoding.EncodeToString(challenge[:])}, "code_challenge_method": {"S256"},
	}.Encode()
	answer, err := browser.Get(here)
	action := regexp.MustCompile(`<form[^>]* action="([^"]+)"[^>]*>\s*<input type="hidden" name="prompt" value="(login|consent)"`)
	for pages := 0; err == nil && pages < 3; pages++ {
		text, _ := io.ReadAll(answer.Body)
		answer.Body.Close()
		if to, err := answer.Location(); err == nil && to.Path == "/callback" {
			return p.token("", "", url.Values{
				"grant_type": {"authorization_code"}, "client_id": {"web"}, "code": {to.Query().Get("code")},
				"redirect_uri": {"http://127.0.0.1/callback"}, "code_verifier": {verifier},
			})
		}
		form := action.FindSubmatch(text)
		if form == nil {
			p.t.Fatalf("the provider's page: %d\n%s", answer.StatusCode, text)
		}
		answer, err = browser.PostForm(string(form[1]), url.Values{"prompt": {string(form[2])}, "login": {user}, "password": {"x"}})
	}
	p.t.Fatalf("log %s in at the provider: no code, %v", user, err)
	return tokens{}
}

// newTrackerWithProvider is the tracker example with sessions of the provider.
func newTrackerWithProvider(t *testing.T, p *identityProvider) *harness.App {
	t.Helper()
	a := harness.ExampleApp(t, "tracker")
	session := fmt.Sprintf(`
  session jwt {
    issuer: %q,
    audience: "urn:tracker",
    jwks: %q,
    tenant: claim("org"),
    roles: claim("org_roles")
  }
  roles: [`, p.issuer, p.issuer+"/jwks")
	text := strings.Replace(harness.MustRead(t, a.Path("app.schema")), "\n  roles: [", session, 1)
	a.Write("app.schema", text+"routes(\"/probe\", auth: session, rateLimit: none) { GET / -> dump }\n")
	a.Write("build/echo.wasm", harness.MustRead(t, harness.GuestFile("echo")))
	return a
}

func TestTokensOfAnOpenIDProviderAreSessions(t *testing.T) {
	t.Parallel()
	p := startIdentityProvider(t)
	a := newTrackerWithProvider(t, p)
	s := a.Serve()
	a.Write("orgs.jsonl", `{"id":"acme","slug":"acme","name":"Acme"}`)
	a.Write("users.jsonl", `{"id":"ada","email":"ada@example.com","name":"Ada"}`)
	a.Must("data", "import", "Org", "orgs.jsonl")
	a.Must("data", "import", "User", "users.jsonl")
	bearer := func(token string) string { return "Authorization: Bearer " + token }
	ada, bo, cy := p.login("ada"), p.login("bo"), p.login("cy")

	t.Run("a user of the provider is a user here", func(t *testing.T) {
		got := harness.ReadDump(t, s.Do("GET", "/probe", "", bearer(ada.Access)))
		auth := got.Context.Auth
		if auth["kind"] != "session" || auth["userId"] != "ada" || auth["tenant"] != "acme" || fmt.Sprint(auth["roles"]) != "[owner]" {
			t.Errorf("the handler is called by %v", auth)
		}
		claims, _ := auth["claims"].(map[string]any)
		if claims["iss"] != p.issuer || claims["client_id"] != "web" || fmt.Sprint(claims["org_roles"]) != "[owner chief]" {
			t.Errorf("what the token claims: %v", claims)
		}
		if strings.Contains(fmt.Sprint(got), ada.Access) {
			t.Error("the handler sees the token")
		}
		var project struct{ ID, Owner string }
		if s.Want(201, &project, "POST", "/api/projects", `{"key":"ONE","name":"First"}`, bearer(ada.Access)); project.Owner != "ada" {
			t.Errorf("the project belongs to %q", project.Owner)
		}
		s.Want(200, nil, "GET", "/api/projects/"+project.ID, "", bearer(bo.Access))
		s.Want(404, nil, "GET", "/api/projects/"+project.ID, "", bearer(cy.Access))
	})
	t.Run("roles decide who manages keys", func(t *testing.T) {
		var key struct {
			Tenant, Owner, Token string
		}
		s.Want(200, &key, "POST", "/_call/createKey", `{"name":"ada's","scope":"tasks_read"}`, bearer(ada.Access))
		if key.Tenant != "acme" || key.Owner != "ada" {
			t.Errorf("the key is of %q in %q", key.Owner, key.Tenant)
		}
		s.Want(200, nil, "GET", "/api/v1/tasks", "", "X-API-Key: "+key.Token)
		if p := s.Want(403, nil, "POST", "/_call/createKey", `{"name":"bo's","scope":"tasks_read"}`, bearer(bo.Access)).Problem(t); p.Code != "insufficient_role" {
			t.Errorf("a viewer creates a key: %+v", p)
		}
	})
	t.Run("every algorithm is accepted", func(t *testing.T) {
		for _, algorithm := range []string{"ES256", "EdDSA", "RS256", "PS256"} {
			got := harness.ReadDump(t, s.Do("GET", "/probe", "", bearer(p.robot(algorithm, "urn:tracker"))))
			if auth := got.Context.Auth; auth["userId"] != "robot-"+algorithm || fmt.Sprint(auth["roles"]) != "[admin]" {
				t.Errorf("%s: %v", algorithm, auth)
			}
		}
	})
	t.Run("new keys of the provider are accepted at once", func(t *testing.T) {
		p.rotate()
		fresh := p.login("ada").Access
		s.Want(200, nil, "GET", "/probe", "", bearer(fresh))
		s.Want(200, nil, "GET", "/probe", "", bearer(ada.Access)) // signed with a key that is still published
	})
	t.Run("tokens that are not for this app are refused", func(t *testing.T) {
		another := startIdentityProvider(t)
		parts := strings.Split(ada.Access, ".")
		for name, token := range map[string]string{
			"an ID token":                            ada.ID,
			"an opaque access token":                 p.robot("ES256", ""),
			"a token for another resource":           p.robot("ES256", "urn:another"),
			"another provider's token":               another.robot("ES256", "urn:tracker"),
			"ada's signature under bo's claims":      parts[0] + "." + strings.Split(bo.Access, ".")[1] + "." + parts[2],
			"a token without its signature":          parts[0] + "." + parts[1] + ".",
			"a token under another key's header":     strings.Split(p.robot("RS256", "urn:tracker"), ".")[0] + "." + parts[1] + "." + parts[2],
			"a token whose header says no algorithm": base64.RawURLEncoding.EncodeToString([]byte(`{"alg":"none"}`)) + "." + parts[1] + ".",
		} {
			if got := s.Do("GET", "/probe", "", bearer(token)); got.Status != 401 || got.Problem(t).Code != "invalid_token" {
				t.Errorf("%s: %d %s", name, got.Status, got.Body)
			}
		}
		s.Want(200, nil, "GET", "/probe", "", bearer(ada.Access))
	})
}

// edKey is a signing key of a provider.
type edKey struct {
	id      string
	public  ed25519.PublicKey
	private ed25519.PrivateKey
}

func newEdKey(t testing.TB, id string) edKey {
	t.Helper()
	public, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return edKey{id, public, private}
}

func (k edKey) set() string {
	return fmt.Sprintf(`{"keys":[{"kty":"OKP","crv":"Ed25519","kid":%q,"x":%q}]}`, k.id, base64.RawURLEncoding.EncodeToString(k.public))
}

// bearer returns the header with a token that has the required claims and these.
func (k edKey) bearer(claims string) string {
	return k.bearerUntil(time.Now().Add(time.Hour), claims)
}

// bearerUntil is bearer with the end of the token.
func (k edKey) bearerUntil(end time.Time, claims string) string {
	encode := base64.RawURLEncoding.EncodeToString
	text := encode(fmt.Appendf(nil, `{"alg":"EdDSA","kid":%q}`, k.id)) + "." +
		encode(fmt.Appendf(nil, `{"iss":"https://login.example","aud":"plans","exp":%d,%s}`, end.Unix(), claims))
	return "Authorization: Bearer " + text + "." + encode(ed25519.Sign(k.private, []byte(text)))
}

const plansSchema = `
app plans
auth {
  session jwt { issuer: "https://login.example", audience: "plans", jwks: "keys.json" }
  session cookie { }
}
entity Thing {
  id: id
  name: string
  @@allow read to session
  @@allow insert to session when auth.claims.plan == "pro" or name in auth.claims.names
  @@deny insert to session when auth.claims.blocked == true and name == "x"
}
routes("/", auth: session, rateLimit: none) {
  POST /op -> op
  GET /dump -> dump
}
`

// A condition on a missing claim is unknown, and an unknown condition does not allow.
func TestRulesUseTheClaimsOfTheToken(t *testing.T) {
	a, key := harness.NewApp(t, plansSchema, "", "echo"), newEdKey(t, "k1")
	a.Write("keys.json", key.set())
	s := a.Serve()
	for _, row := range []struct {
		claims, name string
		want         bool
	}{
		{`"sub":"ada","plan":"pro","blocked":false`, "x", true},
		{`"sub":"ada","plan":"free","blocked":false`, "x", false},
		{`"sub":"ada","blocked":false`, "x", false},
		{`"sub":"ada","plan":null,"blocked":false`, "x", false},
		{`"sub":"ada","plan":["pro"],"blocked":false`, "x", false},
		{`"sub":"ada","names":["x","y"],"blocked":false`, "x", true},
		{`"sub":"ada","names":["y"],"blocked":false`, "x", false},
		{`"sub":"ada","plan":"pro","blocked":true`, "x", false},
		{`"sub":"ada","plan":"pro"`, "x", false}, // the claim `blocked` is missing
		{`"sub":"ada","plan":"pro"`, "z", true},
	} {
		header := key.bearer(row.claims)
		for range 2 { // the second request uses the cached verification
			got := s.Do("POST", "/op", `{"into":"Thing","values":{"name":"`+row.name+`"}}`, "X-Op: insert", header)
			if (got.Status == 200) != row.want || !row.want && !strings.Contains(got.Body, "denied") {
				t.Errorf("%s, %s: %d %s", row.claims, row.name, got.Status, got.Body)
			}
		}
	}
	if got := s.Do("POST", "/op", `{"into":"Thing","values":{"name":"z"}}`, "X-Op: insert", "Cookie: "+a.Session("ada").Cookie); got.Status == 200 {
		t.Errorf("a cookie's user has no claims: %s", got.Body)
	}
}

// The directory in which the server starts does not matter.
func TestAKeySetFileIsRelativeToTheSchema(t *testing.T) {
	a, key := harness.NewApp(t, plansSchema, "", "echo"), newEdKey(t, "k1")
	for _, c := range []struct{ file, text string }{{"", "no such file"}, {"junk", "invalid JWKS"}} {
		if c.file != "" {
			a.Write("keys.json", c.file)
		}
		if got := a.Run("serve", "--listen", "127.0.0.1:0"); got.Status != 3 || !strings.Contains(got.Stderr, `jwks "keys.json"`) || !strings.Contains(got.Stderr, c.text) {
			t.Errorf("%q: status %d\n%s", c.file, got.Status, got.Stderr)
		}
	}
	a.Write("keys.json", key.set())
	elsewhere := &harness.App{T: t, Dir: t.TempDir()}
	s := elsewhere.Serve(a.Dir)
	if got := s.Do("GET", "/dump", "", key.bearer(`"sub":"ada"`)); got.Status != 200 {
		t.Errorf("started elsewhere: %d %s", got.Status, got.Body)
	}
}
