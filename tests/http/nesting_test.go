package http_test

import (
	"strings"
	"testing"

	"runner.example/tests/harness"
)

const nestingSchema = `
app nesting
secret HOOK
entity Doc {
  id: id
  data: json
}
apiKeys {
  scopes: { desk: @system("desk") { @grant insert, read on Doc } }
}
type Shape { data: json }
routes("/", auth: none, rateLimit: none) {
  POST /echo -> echo
  POST /shape -> echo (input: Shape)
  POST /hook -> echo (verify: webhook(github, HOOK))
  POST /text -> text
}
routes("/", auth: apiKey(desk), rateLimit: none) {
  POST /docs -> keep
  GET /docs -> list
}
functions(auth: apiKey(desk), rateLimit: none) {
  @expose keepOne(data: json) -> Doc
  @expose docs() -> Doc[]
  @expose wrapped() -> json
}
`

const nestingHandlers = `
import { created, insert, ok, query, type RouteRequest } from "@runner/sdk";
export const echo = (req: RouteRequest) => ok(req.body());
export const text = (req: RouteRequest) => ok(req.text().length);
export const keep = async (req: RouteRequest) => created(await insert("Doc", { data: req.body() }));
export const list = async () => ok({ rows: await query("Doc") });
export const keepOne = async (req: RouteRequest) => ok(await insert("Doc", { data: req.body().data }));
export const docs = async () => ok(await query("Doc"));
export const wrapped = async () => ok({ rows: await query("Doc") });
`

// nested returns an empty object nested the given number of levels deep.
func nested(levels int) string {
	return strings.Repeat(`{"a":`, levels-1) + "{}" + strings.Repeat("}", levels-1)
}

func TestJSONNestedTooDeeplyIsRefusedEverywhere(t *testing.T) {
	a := harness.NewApp(t, nestingSchema, "")
	a.Env = append(a.Env, "RUNNER_SECRETS_HOOK=the secret of the hook")
	a.Write("handlers/deep.ts", nestingHandlers)
	a.Must("build")
	s := a.Serve()
	token := "Authorization: Bearer " + a.Token("desk")
	signed := func(body string) string {
		return "X-Hub-Signature-256: " + harness.Signature("the secret of the hook", body)
	}
	const asJSON = "Content-Type: application/vnd.deep+json; charset=utf-8"
	refused := func(what string, got harness.Answer) {
		t.Helper()
		if p := got.Problem(t); p.Status != 400 || p.Code != "invalid_json" || !strings.Contains(p.Detail, "64 levels deep") {
			t.Errorf("%s answers %d %s", what, got.Status, got.Body)
		}
	}
	accepted := func(what string, status int, got harness.Answer) {
		t.Helper()
		if got.Status != status {
			t.Errorf("%s answers %d %.200s", what, got.Status, got.Body)
		}
	}
	good, deep := nested(64), nested(65)
	for _, bad := range []string{deep, nested(2000), strings.Repeat("[", 500_000), strings.Repeat("[", 250_000) + "{}" + strings.Repeat("]", 250_000)} {
		refused("a body", s.Do("POST", "/echo", bad))
		refused("a body that says it is JSON", s.Do("POST", "/text", bad, asJSON))
		refused("a body that says it is none", s.Do("POST", "/echo", bad, "Content-Type: image/png"))
		refused("a delivery", s.Do("POST", "/hook", bad, signed(bad)))
		refused("an input", s.Do("POST", "/shape", `{"data":`+bad+`}`))
		refused("a row", s.Do("POST", "/docs", bad, token))
		refused("a parameter", s.Do("POST", "/_call/keepOne", `{"data":`+bad+`}`, token))
		accepted("text", 200, s.Do("POST", "/text", bad, "Content-Type: text/plain"))
		accepted("what is packed", 200, s.Do("POST", "/text", bad, asJSON, "Content-Encoding: gzip"))
	}
	if r := a.Run("call", "keepOne", `{"data":`+deep+`}`); r.Status == 0 || !strings.Contains(r.Stdout+r.Stderr, "64 levels deep") {
		t.Errorf("an operator's call ends with %d\n%s%s", r.Status, r.Stdout, r.Stderr)
	}
	accepted("a body", 200, s.Do("POST", "/echo", good, asJSON))
	accepted("a delivery", 200, s.Do("POST", "/hook", good, signed(good)))
	accepted("an input", 200, s.Do("POST", "/shape", `{"data":`+nested(63)+`}`))
	row := nested(62) // two levels deeper in the operation's arguments
	accepted("a row", 201, s.Do("POST", "/docs", row, token))
	accepted("a parameter", 200, s.Do("POST", "/_call/keepOne", `{"data":`+row+`}`, token))
	// A response may nest deeper than a request, because it contains whole rows.
	for _, path := range []string{"/_call/docs", "/_call/wrapped"} {
		if got := s.Do("POST", path, "", token); got.Status != 200 || !strings.Contains(got.Body, row) {
			t.Errorf("%s answers %d %.300s", path, got.Status, got.Body)
		}
	}
}

// One caller may store three rows of 90 kB, which other callers list.
func TestRowsWithManyEmptyObjectsAreServedInTime(t *testing.T) {
	a := harness.NewApp(t, nestingSchema, "")
	a.Env = append(a.Env, "RUNNER_SECRETS_HOOK=the secret of the hook")
	a.Write("handlers/deep.ts", nestingHandlers)
	a.Must("build")
	s := a.Serve()
	token := "Authorization: Bearer " + a.Token("desk")
	level := func(inner string) string { return strings.Repeat(`{"a":`, 56) + inner + strings.Repeat("}", 56) }
	for _, row := range []string{
		"[" + strings.Repeat("{},", 30_000) + "{}]",
		"[" + strings.Repeat(level("{}")+",", 220) + "{}]",
		level("[" + strings.Repeat(`{"b":{}},`, 10_000) + "{}]"),
	} {
		if got := s.Do("POST", "/docs", row, token); got.Status != 201 {
			t.Fatalf("a row of %d bytes: %d %.200s", len(row), got.Status, got.Body)
		}
	}
	for range 3 {
		if got := s.Do("GET", "/docs", "", token); got.Status != 200 || len(got.Body) < 250_000 {
			t.Errorf("the list of them: %d with %d bytes", got.Status, len(got.Body))
		}
	}
}
