package operations_test

import (
	"encoding/json"
	"regexp"
	"slices"
	"strings"
	"testing"

	"runner.example/tests/harness"
)

const varsSchema = `app shop
var SHOP_ORIGIN: url
var LIMIT: rate = 600/minute
var NOTE: string = "the default"
var SIZE: int = 20
var PRICE: decimal = 19.50
var OPEN: bool = false
var IDLE: duration = 30s
outbound { allow: [SHOP_ORIGIN] }
auth {
  session cookie {}
  origins: [SHOP_ORIGIN]
}
routes("/", auth: none, rateLimit: LIMIT by ip, cors: [SHOP_ORIGIN]) {
  GET /vars -> read
  GET /other -> other
}
`

const varsHandlers = `
import { call, ok, vars } from "@runner/sdk";
export const read = () => ok({ ...{ origin: vars.SHOP_ORIGIN, limit: vars.LIMIT, note: vars.NOTE, size: vars.SIZE + 1, price: vars.PRICE, open: !vars.OPEN, idle: vars.IDLE } });
export const other = () => call("var", { name: "HOME" });
`

// shopWithVars is an app whose handlers read its variables.
func shopWithVars(t *testing.T, toml string, env ...string) *harness.App {
	t.Helper()
	a := harness.NewApp(t, varsSchema, toml)
	a.Env = env
	a.Write("handlers/shop.ts", varsHandlers)
	return a
}

func TestAVariableIsThatOfTheEnvironmentOfTheFileOrTheDefault(t *testing.T) {
	toml := "[vars]\nSHOP_ORIGIN = \"https://file.example.com\"\nSIZE = 50\nOPEN = true\nPRICE = \"007.50\"\nOLD = 1\n"
	a := shopWithVars(t, toml, "RUNNER_VARS_SHOP_ORIGIN=https://env.example.com", "RUNNER_VARS_IDLE=2d", "RUNNER_VARS_NOTE=", "RUNNER_VARS_HOME=/root")
	a.Must("build")
	s := a.Serve()
	got := s.Do("GET", "/vars", "", "Origin: https://env.example.com")
	want := `{"origin":"https://env.example.com","limit":"600/minute","note":"","size":51,"price":"7.50","open":false,"idle":172800}`
	if got.Status != 200 || string(got.Body) != want {
		t.Errorf("%d %s\nwant %s", got.Status, got.Body, want)
	}
	if h := got.Header.Get("Access-Control-Allow-Origin"); h != "https://env.example.com" {
		t.Errorf("cors allows %q", h)
	}
	if text := a.Must("status"); !regexp.MustCompile(`(?m)^var SHOP_ORIGIN +RUNNER_VARS_SHOP_ORIGIN$`).MatchString(text) ||
		!regexp.MustCompile(`(?m)^var LIMIT +the default at app.schema:3$`).MatchString(text) || !regexp.MustCompile(`(?m)^var SIZE +runner.toml:\d+:1$`).MatchString(text) ||
		strings.Contains(text, "https://env.example.com") {
		t.Errorf("the status:\n%s", text)
	}
	if h := s.Do("GET", "/vars", "", "Origin: https://file.example.com").Header.Get("Access-Control-Allow-Origin"); h != "" {
		t.Errorf("cors also allows %q", h)
	}
	if h := got.Header.Get("RateLimit-Policy"); !strings.Contains(h, "q=600;w=60") {
		t.Errorf("RateLimit-Policy: %s", h)
	}
	// One that the schema does not declare cannot be read, although it is set.
	if got := s.Do("GET", "/other", ""); got.Status != 500 || !strings.Contains(s.Stderr.String(), "variable \\\"HOME\\\" is not declared (add `var HOME: string` to the schema)") {
		t.Errorf("%d %s\n%s", got.Status, got.Body, s.Stderr.String())
	}
	for _, warning := range []string{"runner.toml:6:1: warning: the schema declares no variable \\\"OLD\\\"", "RUNNER_VARS_HOME: warning: the schema declares no variable \\\"HOME\\\""} {
		if !strings.Contains(s.Stderr.String(), warning) {
			t.Errorf("the log does not have %s:\n%s", warning, s.Stderr.String())
		}
	}
}

func TestAReloadAppliesVariablesAndNamesThem(t *testing.T) {
	const toml = "[vars]\nSHOP_ORIGIN = \"https://file.example.com\"\nLIMIT = \"9/hour\"\nNOTE = \"c4n4ry\"\n"
	a := shopWithVars(t, toml)
	a.Must("build")
	s := a.Serve()
	policy := func(want string) {
		t.Helper()
		got := s.Do("GET", "/vars", "")
		if h := got.Header.Get("RateLimit-Policy"); got.Status != 200 || !strings.Contains(h, want) {
			t.Errorf("%d, RateLimit-Policy: %s, want %s", got.Status, h, want)
		}
	}
	policy("q=9;w=3600")
	if done := reload(t, a); len(done.Changed) != 0 {
		t.Errorf("changed: %s", done.Changed)
	}
	a.Write("runner.toml", strings.NewReplacer("9/hour", "7/hour", "c4n4ry", "c4n4ry 2").Replace(toml))
	if done := reload(t, a); !slices.Equal(done.Changed, []string{"var LIMIT", "var NOTE"}) {
		t.Errorf("changed: %s", done.Changed)
	}
	policy("q=7;w=3600")

	// All errors at once, each with its place; nothing changes.
	a.Write("runner.toml", "[vars]\nLIMIT = \"c4n4ry\"\nNOTE = \"c4n4ry 3\"\nSHOPORIGIN = \"https://c4n4ry.example.com\"\nSIZE = \"c4n4ry\"\n")
	r := a.Run("reload")
	for _, want := range []string{
		"runner.toml:2:1: error[E542]: the value of variable LIMIT, which is declared at app.schema:3, is not a rate: write one such as 600/minute",
		"runner.toml:5:1: error[E542]: the value of variable SIZE, which is declared at app.schema:5, is not a whole number",
		"app.schema:2:5: error[E541]: variable SHOP_ORIGIN has no value: set RUNNER_VARS_SHOP_ORIGIN, or the name under [vars] in runner.toml, or give it a default (runner.toml:4:1 sets SHOPORIGIN: did you mean SHOP_ORIGIN?)",
	} {
		if r.Status != 3 || !strings.Contains(r.Stderr, want) {
			t.Errorf("%d %s\nwithout %s", r.Status, r.Stderr, want)
		}
	}
	policy("q=7;w=3600")
	// A value that is not valid where it stands: the message names the variable and the place.
	a.Write("runner.toml", "[vars]\nSHOP_ORIGIN = \"https://c4n4ry.example.com/\"\n")
	const place = "(it is from runner.toml:2:1)"
	if r := a.Run("reload"); r.Status != 3 || strings.Count(r.Stderr, place) != 3 || !strings.Contains(r.Stderr, "cors: the value of SHOP_ORIGIN is not an origin") {
		t.Errorf("%d %s", r.Status, r.Stderr)
	}
	s.Stop()
	if log := s.Stderr.String(); strings.Contains(log, "c4n4ry") || !strings.Contains(log, "is not a rate") {
		t.Errorf("the log shows a value:\n%s", log)
	}
	if r := a.Run("serve"); r.Status != 3 || strings.Count(r.Stderr, place) != 3 {
		t.Errorf("started: %d %s", r.Status, r.Stderr)
	}
}

func TestCommandsThatNeedNoValueWarn(t *testing.T) {
	a := shopWithVars(t, "")
	const warning = "app.schema:2:5: warning[W541]: variable SHOP_ORIGIN has no value: set RUNNER_VARS_SHOP_ORIGIN"
	for _, args := range [][]string{{"build"}, {"routes"}, {"generate", "openapi"}, {"generate", "types"}, {"check"}} {
		r := a.Run(args...)
		if r.Status != 0 || strings.Count(r.Stdout+r.Stderr, warning) != 1 || strings.Contains(r.Stdout+r.Stderr, "E520") {
			t.Errorf("%s: %d %s%s", args, r.Status, r.Stdout, r.Stderr)
		}
	}
	if r := a.Run("check", "--strict"); r.Status != 3 {
		t.Errorf("--strict: %d %s", r.Status, r.Stdout)
	}
	if r := a.Run("serve"); r.Status != 3 || !strings.Contains(r.Stderr, "error[E541]: variable SHOP_ORIGIN has no value") {
		t.Errorf("serve: %d %s", r.Status, r.Stderr)
	}
	a.Env = []string{"RUNNER_VARS_SHOP_ORIGIN=https://shop.example.com"}
	if r := a.Run("check", "--strict"); r.Status != 0 {
		t.Errorf("with a value: %d %s%s", r.Status, r.Stdout, r.Stderr)
	}
	a.Write("handlers/shop.ts", "import { ok, vars } from \"@runner/sdk\";\nconst size = vars.SIZE;\nexport const read = () => ok(size), other = read;\n")
	if r := a.Run("build"); r.Status == 0 || !strings.Contains(r.Stderr, "handlers/shop.ts:2:") || !strings.Contains(r.Stderr, "vars.SIZE belongs to a request") {
		t.Errorf("read while the module is built: %d %s", r.Status, r.Stderr)
	}
}

func TestTheEnvironmentOfAServerIsCheckedFromAFile(t *testing.T) {
	a := shopWithVars(t, "[vars]\nSIZE = 50\n", "RUNNER_VARS_SHOP_ORIGIN=https://shop.example.com")
	a.Write("staging.env", "# staging\nexport SHOP_ORIGIN='https://staging.example.com' # the pages\n\nRUNNER_VARS_LIMIT=5/second # few\nRUNNER_FRONT_LISTEN=127.0.0.1:9\nNOTE=\"a # b\"\n")
	if r := a.Run("check", "--env", "staging.env"); r.Status != 0 || !strings.Contains(r.Stderr, "schema is valid") {
		t.Errorf("%d %s%s", r.Status, r.Stdout, r.Stderr)
	}
	a.Write("windows.env", "\ufeffexport\tSHOP_ORIGIN=https://a.example.com\r\nNOTE=\"a \\\"b\\\" \\\\\"\r\n")
	if r := a.Run("check", "--env", "windows.env"); r.Status != 0 {
		t.Errorf("of another editor: %d %s%s", r.Status, r.Stdout, r.Stderr)
	}
	a.Write("bad.env", "LIMIT=often\nSHOP_ORIGN=https://a.example.com\nRUNNER_FRONT_BODY=1x\nwhat\nNOTE='open\nLIMIT=1/day\n")
	r := a.Run("check", "--env", "bad.env")
	for _, want := range []string{
		"bad.env:1:1: error[E542]: the value of variable LIMIT",
		"app.schema:2:5: error[E541]: variable SHOP_ORIGIN has no value",
		"(bad.env:2:1 sets SHOP_ORIGN: did you mean SHOP_ORIGIN?)",
		"[front] body: \"1x\" is not a size",
		"bad.env:4:1: error: not a line of the form NAME=value",
		"bad.env:5:1: error: the quote of the value does not end on this line",
		"bad.env:6:1: error: LIMIT is already set on line 1",
	} {
		if r.Status != 3 || !strings.Contains(r.Stdout, want) {
			t.Errorf("%d %s\nwithout %s", r.Status, r.Stdout, want)
		}
	}
	a.Write("more.env", "SHOP_ORIGIN=https://a.example.com\nSIZ=9\n")
	if r := a.Run("check", "--env", "more.env"); r.Status != 3 || !strings.Contains(r.Stdout, "more.env:2:1: error: the schema declares no variable \"SIZ\" (did you mean \"SIZE\"?)") {
		t.Errorf("unknown: %d %s", r.Status, r.Stdout)
	}
	if r := a.Run("check", "--env", "none.env"); r.Status != 3 || !strings.Contains(r.Stderr, "--env: open none.env: no such file") {
		t.Errorf("no file: %d %s", r.Status, r.Stderr)
	}
}

func TestANodeActivatesNoReleaseWhoseVariablesHaveNoValue(t *testing.T) {
	e := startEdge(t, "RUNNER_VARS_PAGE=https://page.example.com", "RUNNER_VARS_LIMIT=5/second")
	schema := "var LIMIT: rate\nroutes(\"/\", auth: none, rateLimit: LIMIT by ip) { GET /hello -> hello }\n"
	a := harness.NewApp(t, schema, "", "echo")
	first := e.must(a, "deploy", "--yes")
	if !first.Activated || !strings.Contains(first.changes(), "added var LIMIT") {
		t.Errorf("%+v", first)
	}
	if h := e.Do("GET", "/hello", "").Header.Get("RateLimit-Policy"); !strings.Contains(h, "q=5;w=1") {
		t.Errorf("RateLimit-Policy: %s", h)
	}
	a.Write("app.schema", "var PAGES: url\n"+strings.Replace(schema, "rate\n", "rate = 1/day\n", 1))
	r := e.run(a, "deploy", "--yes")
	if r.Status != 3 || !strings.Contains(r.Stderr, "variable PAGES has no value") || !strings.Contains(r.Stderr, "(RUNNER_VARS_PAGE sets PAGE: did you mean PAGES?)") {
		t.Errorf("%d %s", r.Status, r.Stderr)
	}
	e.Want(200, nil, "GET", "/hello", "")
	// The difference shows what is declared; a rate that a variable has is shown by its name. The warning about this machine
	// is printed once.
	r = e.run(a, "deploy", "--dry-run")
	if r.Status != 3 || strings.Count(r.Stderr, "W541") != 1 || !strings.Contains(r.Stderr, "E541") || !strings.Contains(r.Stdout, "+ PAGES  type: url") || !strings.Contains(r.Stdout, "~ LIMIT  default: not set → 1/day") || strings.Contains(r.Stdout, "GET /hello") {
		t.Errorf("%d %s%s", r.Status, r.Stdout, r.Stderr)
	}
	a.Write("app.schema", strings.Replace(schema, "LIMIT by ip", "LIMIT", 1))
	var diff struct {
		Changes []struct {
			Kind       string
			Properties []struct{ Name, Before, After string }
		}
	}
	r = e.run(a, "deploy", "--dry-run", "--json")
	if err := json.Unmarshal([]byte(r.Stdout), &diff); err != nil || len(diff.Changes) != 1 {
		t.Fatalf("%v %s", err, r.Stdout)
	}
	if p := diff.Changes[0].Properties; len(p) != 1 || p[0].Before != "LIMIT by ip" || p[0].After != "LIMIT" {
		t.Errorf("%+v", p)
	}
}
