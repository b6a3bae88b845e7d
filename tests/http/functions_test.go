package http_test

import (
	"encoding/hex"
	"encoding/json"
	"strings"
	"testing"

	"runner.example/tests/harness"
)

const functionsSchema = `
app calls
secret HOOK
auth {
  session cookie { }
  roles: [admin]
}
enum Mood { good bad }
type Part { name: string(1..8) amount: int = 1 }
type Sum { total: int parts: Part[]? }
type Batch { name: string(1..8) parts: Part[]? mood: Mood = good at: time = now }
type Plain { name: string(1..8) }
entity Note {
  id: id
  text: string(1..20)
  secret: string? @hidden
  at: time @created
}
apiKeys {
  scopes: {
    desk: @system("desk") { @grant read, write on Note },
    other: @system("other") { @grant read on Note }
  }
}
functions(auth: apiKey(desk), rateLimit: none) {
  @expose echo(name: string(1..8), amount: int(1..9) = 3, mood: Mood = good, parts: Part[]?, at: time = now, note: string?) -> json
  @expose sum(parts: Part[]) -> Sum
  @expose wrongSum(parts: Part[]) -> Sum
  @expose write(text: string) -> Note
  @expose writeWrong(text: string) -> Note
  @expose notes() -> Note[]
  @expose nothing() -> int?
  @expose refuses() -> int
  @expose free()
  @expose mine() -> string? (auth: session(admin))
  @expose limited() -> int? (rateLimit: 2/minute)
  inside() -> int
}
functions(auth: none, rateLimit: none, verify: webhook(github, HOOK)) {
  @expose hook(number: int) -> json
  @expose later(number: int) -> json (verify: webhook(github, HOOK))
}
routes("/", auth: none, rateLimit: none) {
  GET /x -> free
  GET /:page -> free
  POST /:page/*rest -> free
  POST /batch -> body (input: Batch)
  POST /plain -> body (input: Plain)
}
`

const functionsHandlers = `
import { getContext, insert, noContent, notFound, ok, query, type RouteRequest } from "@runner/sdk";
export function echo(req: RouteRequest) { return ok(req.body()); }
export function body(req: RouteRequest) { return ok(req.text()).withHeader("content-type", "text/plain"); }
export function sum(req: RouteRequest) {
  const { parts } = req.body<{ parts: { name: string; amount: number }[] }>();
  return { total: parts.reduce((n, p) => n + p.amount, 0), parts };
}
export async function wrongSum() { return { totals: 1, parts: [{ name: "a", amount: "1" }] }; }
export async function write(req: RouteRequest) { return insert("Note", { text: req.body().text }); }
export async function writeWrong(req: RouteRequest) { await insert("Note", { text: req.body().text }); return { text: 1, shade: 2 }; }
export function notes() { return ok(query("Note").select("text").orderBy("text").limit(10)); }
export function nothing() { return null; }
export function refuses() { return notFound("there is none"); }
export function free() { return noContent(); }
export function mine() { return getContext().auth.userId; }
export function limited() { return 1; }
export function hook(req: RouteRequest) { return req.body(); }
export function later(req: RouteRequest) { return req.body(); }
export function inside() { return 1; }
`

func newFunctionsApp(t *testing.T) *harness.App {
	a := harness.NewApp(t, functionsSchema, "")
	a.Write("handlers/calls.ts", functionsHandlers)
	a.Env = append(a.Env, "RUNNER_SECRETS_HOOK="+harness.OtherSecret)
	a.Must("build")
	return a
}

// Defaults are filled in at every depth. A body of a type without defaults reaches the handler as it was sent.
func TestABodyHasTheDefaultsOfItsType(t *testing.T) {
	t.Parallel()
	s := newFunctionsApp(t).Serve()
	s.Matches(200, `\{"name":"a","parts":\[\{"name":"p","amount":1\}\],"mood":"good","at":"20[^"]*Z"\}`, "POST", "/batch", ` { "name" : "a", "parts":[{"name":"p"}] }`, "")
	s.Matches(200, `\{"name":"a","mood":"bad","at":"2026-01-02T03:04:05Z"\}`, "POST", "/batch", `{"name":"a","mood":"bad","at":"2026-01-02T03:04:05Z"}`, "")
	s.Matches(400, `.*"field":"parts\[0\]\.name","message":"is required".*`, "POST", "/batch", `{"name":"a","parts":[{}]}`, "")
	s.Matches(200, ` \{ "name" : "a" \} `, "POST", "/plain", ` { "name" : "a" } `, "")
}

func TestExposedFunctionsAreCalledWithCheckedParameters(t *testing.T) {
	t.Parallel()
	a := newFunctionsApp(t)
	s := a.Serve()
	key := "X-API-Key: " + a.Token("desk")
	var filled struct {
		Name, Mood, At string
		Amount         int
		Parts          []struct {
			Name   string
			Amount int
		}
	}
	s.Want(200, &filled, "POST", "/_call/echo", ` { "name" : "a", "parts":[{"name":"p"},{"name":"q","amount":2}] } `, key)
	if filled.Name != "a" || filled.Mood != "good" || filled.Amount != 3 || filled.At == "" || len(filled.Parts) != 2 || filled.Parts[0].Amount != 1 || filled.Parts[1].Amount != 2 {
		t.Errorf("defaults: %+v", filled)
	}
	if got := s.Do("POST", "/_call/echo", `{"name":"a","amount":9,"mood":"bad","at":"2026-01-02T03:04:05Z","note":null}`, key); got.Body != `{"name":"a","amount":9,"mood":"bad","at":"2026-01-02T03:04:05Z","note":null}` {
		t.Errorf("given values must not change: %s", got.Body)
	}
	if got := s.Do("POST", "/_call/echo", `{"name":"a","amount":0.9e1,"mood":"good","at":"2026-01-02T03:04:05Z"}`, key); got.Body != `{"name":"a","amount":9,"mood":"good","at":"2026-01-02T03:04:05Z"}` {
		t.Errorf("a whole number reaches the handler as %s", got.Body)
	}
	for body, fields := range map[string]string{
		``: "name", `{"name":""}`: "name", `{"name":"a","amount":10,"mood":"ugly","userId":"u"}`: "amount mood userId",
		`{"name":"a","parts":[{"amount":"x"}]}`: "parts[0].amount parts[0].name", `[1]`: "",
	} {
		var p struct {
			Code   string
			Errors []struct{ Field string }
		}
		s.Want(400, &p, "POST", "/_call/echo", body, key)
		var named []string
		for _, e := range p.Errors {
			named = append(named, e.Field)
		}
		if p.Code != "invalid_input" || strings.Join(named, " ") != fields {
			t.Errorf("%s: %s %q, want %q", body, p.Code, named, fields)
		}
	}
	if p := s.Do("POST", "/_call/echo", `{`, key).Problem(t); p.Code != "invalid_json" {
		t.Errorf("no JSON: %+v", p)
	}
}

func TestAResultOfTheWrongTypeIsNeitherSentNorCommitted(t *testing.T) {
	a := newFunctionsApp(t)
	s := a.Serve()
	key := "X-API-Key: " + a.Token("desk")
	for _, row := range []struct {
		name, body string
		status     int
		want       string
	}{
		{"sum", `{"parts":[{"name":"a"},{"name":"b","amount":4}]}`, 200, `{"total":5,"parts":[{"name":"a","amount":1},{"name":"b","amount":4}]}`},
		{"wrongSum", `{"parts":[]}`, 500, "handler_failed"},
		{"write", `{"text":"b"}`, 200, `"text":"b"`},
		{"writeWrong", `{"text":"a"}`, 500, "handler_failed"},
		{"notes", ``, 200, `[{"text":"b"}]`},
		{"nothing", ``, 200, "null"},
		{"refuses", ``, 404, "there is none"},
		{"free", ``, 204, ""},
	} {
		if got := s.Do("POST", "/_call/"+row.name, row.body, key); got.Status != row.status || !strings.Contains(got.Body, row.want) {
			t.Errorf("%s: %d %s, want %d %s", row.name, got.Status, got.Body, row.status, row.want)
		}
	}
	for _, detail := range []string{"totals", "parts[0].amount", "total"} {
		if !strings.Contains(s.Stderr.String(), detail) {
			t.Errorf("the log does not name %s", detail)
		}
	}
}

func TestFunctionsAreProtectedLikeRoutes(t *testing.T) {
	t.Parallel()
	a := newFunctionsApp(t)
	s := a.Serve()
	key, other := "X-API-Key: "+a.Token("desk"), "X-API-Key: "+a.Token("other")
	var session harness.Session
	if err := json.Unmarshal([]byte(a.Must("sessions", "create", "--user", "ann", "--role", "admin", "--json")), &session); err != nil {
		t.Fatal(err)
	}
	cookie := "Cookie: " + session.Cookie
	for _, row := range []struct {
		method, path string
		headers      []string
		status       int
		code         string
	}{
		{"POST", "/_call/sum", nil, 401, "missing_credentials"},
		{"POST", "/_call/sum", []string{other}, 403, "insufficient_scope"},
		{"GET", "/_call/sum", []string{key}, 405, "method_not_allowed"},
		{"POST", "/_call/inside", []string{key}, 404, "route_not_found"},
		{"POST", "/_call/Sum", []string{key}, 404, "route_not_found"},
		{"POST", "/_call/", []string{key}, 404, "route_not_found"},
		{"POST", "/_call/mine", []string{key}, 401, "invalid_token"},
		{"POST", "/_call/mine", []string{cookie, "Sec-Fetch-Site: cross-site"}, 403, "cross_origin"},
		{"POST", "/_call/mine", []string{cookie, "Sec-Fetch-Site: same-origin"}, 200, ""},
		{"POST", "/_call/limited", []string{key}, 200, ""},
		{"POST", "/_call/limited", []string{key}, 200, ""},
		{"POST", "/_call/limited", []string{key}, 429, "rate_limited"},
		{"GET", "/page", nil, 204, ""},
		{"POST", "/page/inside", nil, 204, ""},
		{"GET", "/_health", nil, 200, ""},
	} {
		got := s.Do(row.method, row.path, "{}", row.headers...)
		if got.Status != row.status || row.code != "" && got.Problem(t).Code != row.code {
			t.Errorf("%s %s %q: %d %s, want %d %s", row.method, row.path, row.headers, got.Status, got.Body, row.status, row.code)
		}
	}
}

func TestASignedFunctionAcceptsOnlySignedRequests(t *testing.T) {
	s := newFunctionsApp(t).Serve()
	for _, path := range []string{"/_call/hook", "/_call/later"} {
		body := ` { "number" : 1 } `
		signed := []string{"X-GitHub-Delivery: d1", "X-Hub-Signature-256: sha256=" + hex.EncodeToString(harness.MAC([]byte(harness.OtherSecret), body))}
		if p := s.Do("POST", path, body).Problem(t); p.Status != 400 || p.Code != "missing_signature" {
			t.Errorf("%s without a signature: %+v", path, p)
		}
		if p := s.Do("POST", path, `{"number":1}`, signed...).Problem(t); p.Status != 401 || p.Code != "invalid_signature" {
			t.Errorf("%s with the signature of other bytes: %+v", path, p)
		}
		if got := s.Do("POST", path, body, signed...); got.Status != 200 || got.Body != `{"number":1}` {
			t.Errorf("%s signed: %d %s", path, got.Status, got.Body)
		}
		if got := s.Do("POST", path, body, signed...); got.Status != 204 || got.Body != "" {
			t.Errorf("%s again: %d %s", path, got.Status, got.Body)
		}
	}
}
