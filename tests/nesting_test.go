package tests

import (
	"strings"
	"testing"
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

// nested is an empty object within others, so many levels deep.
func nested(levels int) string {
	return strings.Repeat(`{"a":`, levels-1) + "{}" + strings.Repeat("}", levels-1)
}

func TestJSONThatNestsTooDeepIsRefusedWhereverItComesIn(t *testing.T) {
	a := newApp(t, nestingSchema, "")
	a.env = append(a.env, "RUNNER_SECRETS_HOOK=the secret of the hook")
	a.write("handlers/deep.ts", nestingHandlers)
	a.must("build")
	s := a.serve()
	token := "Authorization: Bearer " + a.token("desk")
	signed := func(body string) string { return "X-Hub-Signature-256: " + signature("the secret of the hook", body) }
	const asJSON = "Content-Type: application/vnd.deep+json; charset=utf-8"
	refused := func(what string, got answer) {
		t.Helper()
		if p := got.problem(t); p.Status != 400 || p.Code != "invalid_json" || !strings.Contains(p.Detail, "64 levels deep") {
			t.Errorf("%s answers %d %s", what, got.status, got.body)
		}
	}
	accepted := func(what string, status int, got answer) {
		t.Helper()
		if got.status != status {
			t.Errorf("%s answers %d %.200s", what, got.status, got.body)
		}
	}
	good, deep := nested(64), nested(65)
	for _, bad := range []string{deep, nested(2000), strings.Repeat("[", 500_000), strings.Repeat("[", 250_000) + "{}" + strings.Repeat("]", 250_000)} {
		refused("a body", s.do("POST", "/echo", bad))
		refused("a body that says it is JSON", s.do("POST", "/text", bad, asJSON))
		refused("a body that says it is none", s.do("POST", "/echo", bad, "Content-Type: image/png"))
		refused("a delivery", s.do("POST", "/hook", bad, signed(bad)))
		refused("an input", s.do("POST", "/shape", `{"data":`+bad+`}`))
		refused("a row", s.do("POST", "/docs", bad, token))
		refused("a parameter", s.do("POST", "/_call/keepOne", `{"data":`+bad+`}`, token))
		accepted("text", 200, s.do("POST", "/text", bad, "Content-Type: text/plain"))
		accepted("what is packed", 200, s.do("POST", "/text", bad, asJSON, "Content-Encoding: gzip"))
	}
	if r := a.run("call", "keepOne", `{"data":`+deep+`}`); r.status == 0 || !strings.Contains(r.stdout+r.stderr, "64 levels deep") {
		t.Errorf("an operator's call ends with %d\n%s%s", r.status, r.stdout, r.stderr)
	}
	accepted("a body", 200, s.do("POST", "/echo", good, asJSON))
	accepted("a delivery", 200, s.do("POST", "/hook", good, signed(good)))
	accepted("an input", 200, s.do("POST", "/shape", `{"data":`+nested(63)+`}`))
	row := nested(62) // in the operation's arguments it lies two levels deep
	accepted("a row", 201, s.do("POST", "/docs", row, token))
	accepted("a parameter", 200, s.do("POST", "/_call/keepOne", `{"data":`+row+`}`, token))
	// What is in the rows is no reason to refuse what the handler has made of them.
	for _, path := range []string{"/_call/docs", "/_call/wrapped"} {
		if got := s.do("POST", path, "", token); got.status != 200 || !strings.Contains(got.body, row) {
			t.Errorf("%s answers %d %.300s", path, got.status, got.body)
		}
	}
}

// Three rows of 90 kB are what one caller may keep. They are shown to others.
func TestRowsOfManyEmptyObjectsAreAnsweredInTime(t *testing.T) {
	a := newApp(t, nestingSchema, "")
	a.env = append(a.env, "RUNNER_SECRETS_HOOK=the secret of the hook")
	a.write("handlers/deep.ts", nestingHandlers)
	a.must("build")
	s := a.serve()
	token := "Authorization: Bearer " + a.token("desk")
	level := func(inner string) string { return strings.Repeat(`{"a":`, 56) + inner + strings.Repeat("}", 56) }
	for _, row := range []string{
		"[" + strings.Repeat("{},", 30_000) + "{}]",
		"[" + strings.Repeat(level("{}")+",", 220) + "{}]",
		level("[" + strings.Repeat(`{"b":{}},`, 10_000) + "{}]"),
	} {
		if got := s.do("POST", "/docs", row, token); got.status != 201 {
			t.Fatalf("a row of %d bytes: %d %.200s", len(row), got.status, got.body)
		}
	}
	for range 3 {
		if got := s.do("GET", "/docs", "", token); got.status != 200 || len(got.body) < 250_000 {
			t.Errorf("the list of them: %d with %d bytes", got.status, len(got.body))
		}
	}
}
