package apptest_test

import (
	"bufio"
	"encoding/json"
	"encoding/xml"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"runner.example/tests/harness"
)

const shopSchema = `app shop

auth {
  session cookie("__Host-sid") { idle: 1h, absolute: 1d, sameSite: lax }
  roles: [clerk, boss]
}

outbound { allow: ["https://pay.example.com"] }
secret PAY_KEY

entity Order {
  id: id
  number: string(1..20)
  total: int
  owner: string(1..40)?
  createdAt: time @created

  @@index(createdAt)
  @@allow read to session when owner == auth.userId or auth.role == "boss"
  @@allow insert to session
  @@deny delete
}

type OrderInput {
  number: string(1..20)
  total: int @min(0)
}

apiKeys {
  scopes: {
    reader: @system("reader") { @grant read on Order where total > 0 },
    writer: @system("writer") { @grant read, insert on Order }
  }
}

routes("/", rateLimit: 3/minute by key) {
  GET  /orders       -> list (auth: anyOf(apiKey(reader, writer), session))
  POST /orders       -> add (auth: apiKey(writer), input: OrderInput)
  POST /pay          -> pay (auth: none, rateLimit: none)
  GET  /nap          -> nap (auth: none, rateLimit: none)
  GET  /draw         -> draw (auth: none, rateLimit: none)
  GET  /broken       -> broken (auth: none, rateLimit: none)
}

functions { close(month: string) -> json }

jobs {
  ship(number: string)
  tidy() (schedule: "0 3 * * *", as: writer)
}
`

const shopHandlers = `import { created, getContext, insert, jobs, ok, query } from "@runner/sdk";

export const sum = (...all: number[]): number => all.reduce((a, b) => a + b, 0);

export async function list() { return ok(await query("Order").orderBy("createdAt")); }
export async function add(req: any) {
  const row = await insert("Order", req.body());
  await jobs.enqueue("ship", { number: row.number }, { delay: 3600 });
  console.log("order added", row.number);
  return created(row);
}
export async function pay() {
  const answer = await fetch("https://pay.example.com/charge", {
    method: "POST", body: "42", headers: { authorization: "Bearer " + (await getContext().secret("PAY_KEY")) },
  });
  return ok({ status: answer.status, text: await answer.text() });
}
export async function nap() {
  const before = Date.now();
  await new Promise((done) => setTimeout(done, 30_000));
  return ok({ slept: Date.now() - before });
}
export function draw() { return ok([Math.random(), crypto.randomUUID()]); }
export function broken() { throw new TypeError("this is broken"); }
export function close(req: any) { return ok({ closed: req.body().month }); }
export async function ship(req: any) { return ok(await insert("Order", { number: "S-" + req.body().number, total: 1 })); }
export function tidy() { return ok({}); }
`

// result is what runner test --json prints.
type result struct {
	Seed  uint64
	Files []struct {
		File    string
		Tests   []tested
		Problem *problem
	}
	Coverage struct {
		Rules []struct {
			Part, Rule       string
			Allowed, Refused *bool
		}
		Seen, Of int
	}
}

type tested struct {
	Name        []string
	Place       struct{ Line, Column int }
	Status      string
	Problem     *problem
	Output, Log []string
}

type problem struct {
	Message, Diff string
	Place         *struct {
		File         string
		Line, Column int
	}
	Stack []string
}

// shop returns an app with tests, each file with its imports.
func shop(t *testing.T, files map[string]string) *harness.App {
	a := harness.NewApp(t, shopSchema, "")
	a.Write("handlers/shop.ts", shopHandlers)
	for name, text := range files {
		const imports = "import { afterAll, as, beforeAll, beforeEach, call, clock, describe, expect, jobs, outbound, request, rows, test } from \"@runner/test\"; "
		a.Write("test/"+name, imports+text)
	}
	return a
}

// patient is a limit that a test does not reach on a busy machine.
const patient = "1m"

// run runs the tests, and returns the result and the exit status.
func run(t *testing.T, a *harness.App, args ...string) (r result, status int) {
	t.Helper()
	done := a.Run(append([]string{"test", "--json", "--timeout", patient}, args...)...)
	if err := json.Unmarshal([]byte(done.Stdout), &r); err != nil {
		t.Fatalf("%v: %s%s", err, done.Stdout, done.Stderr)
	}
	return r, done.Status
}

// all returns the tests of all files by their full names.
func (r result) all() map[string]tested {
	found := map[string]tested{}
	for _, f := range r.Files {
		for _, one := range f.Tests {
			found[strings.Join(one.Name, " > ")] = one
		}
	}
	return found
}

// passes requires that all tests pass.
func passes(t *testing.T, text string, args ...string) result {
	t.Helper()
	r, status := run(t, shop(t, map[string]string{"a.test.ts": text}), args...)
	for name, one := range r.all() {
		if one.Status == "failed" {
			t.Errorf("%s: %s\n%s\n%s", name, one.Problem.Message, one.Problem.Diff, strings.Join(one.Log, "\n"))
		}
	}
	for _, f := range r.Files {
		if f.Problem != nil {
			t.Errorf("%s: %s", f.File, f.Problem.Message)
		}
	}
	if status != 0 && !t.Failed() {
		t.Errorf("exit status %d", status)
	}
	return r
}

func TestEachTestBeginsWithTheStoreThatBeforeAllHasLeft(t *testing.T) {
	t.Parallel()
	passes(t, `
const writer = as.key("writer");
beforeAll(async () => { await rows("Order").insert({ number: "A", total: 1 }); });
for (const i of [1, 2, 3]) test("adds one " + i, async () => {
  expect((await writer.post("/orders", { number: "B" + i, total: 2 })).status).toBe(201);
  expect((await (await writer.get("/orders")).json()).map((o: any) => o.number)).toEqual(["A", "B" + i]);
  expect(await rows("Order").count()).toBe(2);
});
describe("in a block", () => {
  beforeAll(async () => { await rows("Order").insert({ number: "C", total: 1 }); });
  test("its rows are there too", async () => { expect(await rows("Order").count()).toBe(2); });
  afterAll(async () => { await rows("Order").insert({ number: "D", total: 1 }); });
});
test("and not outside of it", async () => { expect(await rows("Order").count()).toBe(1); });
test("limits are new in each test", async () => {
  for (const status of [200, 200, 200, 429]) expect((await writer.get("/orders")).status).toBe(status);
  await clock.advance("1m");
  expect((await writer.get("/orders")).status).toBe(200);
});
test("the last test has counted for nobody", async () => { expect((await writer.get("/orders")).status).toBe(200); });
test("requests run beside each other", async () => {
  const all = await Promise.all([1, 2, 3].map((n) => as.key("writer").post("/orders", { number: "P" + n, total: n })));
  expect(all.map((a) => a.status)).toEqual([201, 201, 201]);
});`)
}

func TestCallersOfEachKind(t *testing.T) {
	t.Parallel()
	passes(t, `
beforeAll(async () => { await rows("Order").insert([{ number: "A", total: 1, owner: "ada" }, { number: "B", total: 0, owner: "bob" }]); });
const numbers = async (who: any) => (await (await who.get("/orders")).json()).map((o: any) => o.number).sort();
test("a key sees what its grant says", async () => { expect(await numbers(as.key("reader"))).toEqual(["A"]); });
test("a user sees its own", async () => { expect(await numbers(as.session({ user: "bob", roles: ["clerk"] }))).toEqual(["B"]); });
test("the boss sees all", async () => { expect(await numbers(as.session({ user: "eve", roles: ["boss"] }))).toEqual(["A", "B"]); });
test("nobody sees nothing", async () => { expect((await request.get("/orders")).status).toBe(401); });
test("a session ends", async () => {
  const ada = as.session({ user: "ada" });
  expect(await numbers(ada)).toEqual(["A"]);
  await clock.advance("2h");
  expect((await ada.get("/orders")).status).toBe(401);
});
test("back in time clients get new credentials", async () => {
  const ada = as.session({ user: "ada" });
  expect(await numbers(ada)).toEqual(["A"]);
  await clock.set("2020-02-29T12:00:00Z");
  expect(await numbers(ada)).toEqual(["A"]);
  expect(await numbers(as.key("reader"))).toEqual(["A"]);
});
test("a function is called as an operator", async () => {
  expect(await call("close", { month: "may" })).toMatchObject({ status: 200, body: { closed: "may" } });
});`)
}

func TestTimeIsTheTests(t *testing.T) {
	t.Parallel()
	passes(t, `
test("rows have the time that was set", async () => {
  await clock.set("2031-05-06T07:08:09.000Z");
  const row = await (await as.key("writer").post("/orders", { number: "A", total: 1 })).json();
  expect(row.createdAt).toMatch(/^2031-05-06T07:08:09/);
});
test("a sleep takes no time", async () => {
  const before = (await clock.now()).getTime();
  expect(await (await request.get("/nap")).json()).toEqual({ slept: expect.closeTo(30_000, -2) });
  expect((await clock.now()).getTime() - before).toBeGreaterThanOrEqual(30_000);
});
test("a job runs when it is due", async () => {
  await as.key("writer").post("/orders", { number: "A", total: 1 });
  expect(await jobs.run()).toEqual([]);
  expect(await jobs.waiting()).toMatchObject([{ name: "ship", state: "waiting" }]);
  await clock.advance("1h");
  expect(await jobs.run()).toMatchObject([{ name: "ship", state: "done" }]);
  expect(await rows("Order").where("number", "=", "S-A").count()).toBe(1);
});
test("a schedule fires", async () => {
  await jobs.run();
  await clock.advance("1d");
  expect(await jobs.run()).toMatchObject([{ name: "tidy", state: "done" }]);
});`)
}

func TestFetchesAreAnsweredByTheTest(t *testing.T) {
	t.Parallel()
	passes(t, `
test("an answer", async () => {
  outbound.on("https://pay.example.com", async (request) => {
    expect(request.headers.get("authorization")).toMatch(/^Bearer whsec_/);
    return new Response("paid " + (await request.text()), { status: 202 });
  });
  expect(await (await request.post("/pay")).json()).toEqual({ status: 202, text: "paid 42" });
  expect(outbound.requests).toHaveLength(1);
});`)
	r, status := run(t, shop(t, map[string]string{"a.test.ts": `
test("no answer", async () => { await request.post("/pay"); });
test("another url", async () => { outbound.on("https://other.example.com", () => new Response()); await request.post("/pay"); });`}))
	for name, one := range r.all() {
		if one.Status != "failed" || !strings.Contains(one.Problem.Message, "POST https://pay.example.com/charge") ||
			!strings.Contains(one.Problem.Message, "42") {
			t.Errorf("%s: %+v", name, one.Problem)
		}
	}
	if status != 1 {
		t.Errorf("exit status %d", status)
	}
}

func TestAFailureIsShownWithItsPlaceAndTheLogOfTheApp(t *testing.T) {
	t.Parallel()
	a := shop(t, map[string]string{"a.test.ts": `
test("passes", () => {});
test("differs", async () => {
  await as.key("writer").post("/orders", { number: "A", total: 1 });
  console.log("looking");
  expect(await rows("Order").first()).toMatchObject({ number: "B", total: 1, owner: "somebody with quite a long name", more: "and another member" });
});
test("throws", async () => { expect((await request.get("/broken")).status).toBe(200); });
test("loops", () => { for (;;) ; }, 300);
test("waits for nothing", async () => { await new Promise(() => {}); }, 400);
test("runs after those", () => {});
`})
	r, status := run(t, a)
	all := r.all()
	if status != 1 || all["passes"].Status != "passed" || all["runs after those"].Status != "passed" {
		t.Fatalf("exit status %d: %+v", status, all)
	}
	differs := all["differs"]
	if p := differs.Problem; p == nil || p.Place == nil || p.Place.File != "test/a.test.ts" || p.Place.Line != 6 ||
		!strings.Contains(p.Diff, `- `) || !strings.Contains(p.Diff, `+ `) || !strings.Contains(p.Diff, `"B"`) {
		t.Errorf("%+v", differs.Problem)
	}
	if log := strings.Join(differs.Log, "\n"); !strings.Contains(log, "status=201") || !strings.Contains(log, "order added") {
		t.Errorf("its log is %s", log)
	}
	if log := strings.Join(differs.Log, "\n"); !strings.Contains(log, "add: call 1: insert Order") {
		t.Errorf("its log has no host call: %s", log)
	}
	if fmt.Sprint(differs.Output) != "[looking]" {
		t.Errorf("its output is %q", differs.Output)
	}
	if log := strings.Join(all["throws"].Log, "\n"); !strings.Contains(log, "this is broken") || !strings.Contains(log, "handlers/shop.ts") {
		t.Errorf("the log of throws is %s", log)
	}
	if p := all["loops"].Problem; all["loops"].Status != "failed" || !strings.Contains(p.Message, "300ms") || p.Place.Line != 9 {
		t.Errorf("loops: %+v", p)
	}
	if p := all["waits for nothing"].Problem; all["waits for nothing"].Status != "failed" || p.Place == nil || p.Place.Line != 10 {
		t.Errorf("waits for nothing: %+v", p)
	}
	text := a.Run("test", "--timeout", patient)
	for _, want := range []string{"✗ test/a.test.ts", "✗ differs", "at test/a.test.ts:6:", ">    6 |", "log of the app:", "4 failed, 2 passed"} {
		if !strings.Contains(text.Stdout, want) {
			t.Errorf("the report has no %q:\n%s", want, text.Stdout)
		}
	}
}

func TestWhichTestsRun(t *testing.T) {
	t.Parallel()
	a := shop(t, map[string]string{
		"a.test.ts": `test("first", () => {}); test.skip("second", () => {}); test.todo("third"); describe("block", () => { test("fourth", () => {}); });`,
		"b.test.ts": `test.each([[1, 2], [3, 4]])("%i and %i", (a, b) => { expect(b - a).toBe(1); });`,
		"c.test.ts": `test("not this", () => { throw 1; }); test.only("this", () => {});`,
	})
	a.Write("test/other.test.mjs", `import { test } from "node:test"; test("of another tool", () => { throw 1; });`)
	states := func(args ...string) string {
		r, status := run(t, a, args...)
		var words []string
		for _, f := range r.Files {
			for _, one := range f.Tests {
				words = append(words, strings.Join(one.Name, ">")+":"+one.Status)
			}
		}
		return fmt.Sprint(status, words)
	}
	for _, c := range []struct{ want, args string }{
		{"0 [first:passed second:skipped third:todo block>fourth:passed 1 and 2:passed 3 and 4:passed not this:skipped this:passed]", ""},
		{"0 [1 and 2:passed 3 and 4:passed]", "test/b.test.ts"},
		{"0 [1 and 2:passed 3 and 4:passed]", "./test/b.test.ts b.test.ts"},
		{"0 [first:skipped second:skipped third:todo block>fourth:passed]", "a.test.ts --filter fourth"},
	} {
		if got := states(strings.Fields(c.args)...); got != c.want {
			t.Errorf("%s: %s", c.args, got)
		}
	}
	for _, c := range []struct {
		status int
		args   string
		want   string
	}{
		{4, ".test.ts", ".test.ts is not one of the test files"},
		{4, "nothing.test.ts", "nothing.test.ts is not one of the test files: test/a.test.ts, test/b.test.ts, test/c.test.ts"},
		{3, "--filter (", "--filter: "},
		{4, "--filter nosuch", "no test has a name that matches --filter \"nosuch\""},
	} {
		if got := a.Run(append([]string{"test"}, strings.Fields(c.args)...)...); got.Status != c.status || !strings.Contains(got.Stderr, c.want) {
			t.Errorf("%s: %d %s", c.args, got.Status, got.Stderr)
		}
	}
	a.Write("test/a.test.ts", `import { test } from "@runner/test"; test("x", () => { const = 1; });`)
	if got := a.Run("test"); got.Status != 3 || !strings.Contains(got.Stderr, "test/a.test.ts:1:") {
		t.Errorf("an error of the file: %d %s", got.Status, got.Stderr)
	}
	empty := harness.NewApp(t, "app empty", "")
	if got := empty.Run("test"); got.Status != 4 || !strings.Contains(got.Stderr, "no tests found") {
		t.Errorf("without tests: %d %s", got.Status, got.Stderr)
	}
}

func TestTheReportForContinuousIntegration(t *testing.T) {
	t.Parallel()
	a := shop(t, map[string]string{"a.test.ts": `test("passes", () => {}); test("fails", () => { expect("\u0000<a>").toBe("b"); }); test.skip("skipped", () => {});`})
	if got := a.Run("test", "--junit", "report.xml"); got.Status != 1 {
		t.Fatalf("exit status %d: %s", got.Status, got.Stderr)
	}
	text, err := os.ReadFile(a.Path("report.xml"))
	if err != nil {
		t.Fatal(err)
	}
	var report struct {
		Tests    int `xml:"tests,attr"`
		Failures int `xml:"failures,attr"`
		Suite    struct {
			Name    string `xml:"name,attr"`
			Skipped int    `xml:"skipped,attr"`
			Cases   []struct {
				Name    string `xml:"name,attr"`
				Failure *struct {
					Message string `xml:"message,attr"`
				} `xml:"failure"`
			} `xml:"testcase"`
		} `xml:"testsuite"`
	}
	if err := xml.Unmarshal(text, &report); err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	if report.Tests != 3 || report.Failures != 1 || report.Suite.Name != "test/a.test.ts" || report.Suite.Skipped != 1 ||
		report.Suite.Cases[1].Failure == nil {
		t.Errorf("%s", text)
	}
}

func TestSnapshots(t *testing.T) {
	t.Parallel()
	a := shop(t, map[string]string{"a.test.ts": "test(\"kept\", () => { expect({ a: \"`${x}\\\\\" }).toMatchSnapshot(); });"})
	a.Must("test")
	file := "test/__snapshots__/a.test.ts.snap"
	first, err := os.ReadFile(a.Path(file))
	if err != nil {
		t.Fatal(err)
	}
	a.Must("test")
	a.Write("test/a.test.ts", strings.Replace(`import { expect, test } from "@runner/test"; test("kept", () => { expect({ a: "changed" }).toMatchSnapshot(); });`, "", "", 1))
	r, status := run(t, a)
	if status != 1 || r.all()["kept"].Problem.Diff == "" {
		t.Errorf("exit status %d, %+v", status, r.all()["kept"].Problem)
	}
	if same, _ := os.ReadFile(a.Path(file)); string(same) != string(first) {
		t.Error("a snapshot that differs was written without --update")
	}
	a.Must("test", "--update")
	a.Must("test")
	if changed, _ := os.ReadFile(a.Path(file)); !strings.Contains(string(changed), "changed") {
		t.Errorf("--update has written %s", changed)
	}
}

// What no test has seen is named, and --coverage fails below a share.
func TestWhatTestsHaveSeenOfTheRules(t *testing.T) {
	t.Parallel()
	const text = `
test("reads", async () => {
  await rows("Order").insert([{ number: "A", total: 1 }, { number: "B", total: 0 }]);
  await as.key("reader").get("/orders");
  await as.key("reader").post("/orders", { number: "C", total: 1 });
  await as.key("writer").post("/orders", { number: "C", total: -1 });
});`
	r := passes(t, text)
	seen := map[string]string{}
	word := func(saw *bool) string {
		switch {
		case saw == nil:
			return "-"
		case *saw:
			return "seen"
		}
		return "not"
	}
	for _, rule := range r.Coverage.Rules {
		seen[rule.Part+"|"+rule.Rule] = word(rule.Allowed) + " " + word(rule.Refused)
	}
	for rule, want := range map[string]string{
		"GET /orders|auth: apiKey(reader, writer)":   "seen not",
		"GET /orders|auth: session":                  "not not",
		"POST /orders|auth: apiKey(writer)":          "seen seen",
		"POST /orders|input: OrderInput":             "not seen",
		"POST /pay|auth: none":                       "not -",
		"scope reader|@grant(read) on Order where …": "seen seen",
		"scope writer|@grant(read, insert) on Order": "not -",
		"entity Order|@@deny app.schema:21:3":        "- not",
	} {
		if seen[rule] != want {
			t.Errorf("%s: %q, want %q", rule, seen[rule], want)
		}
	}
	if t.Failed() {
		t.Logf("%v", seen)
	}
	a := shop(t, map[string]string{"a.test.ts": text})
	if got := a.Run("test", "--coverage", "90"); got.Status != 1 || !strings.Contains(got.Stderr, "fewer than --coverage 90") {
		t.Errorf("%d %s", got.Status, got.Stderr)
	}
	a.Must("test", "--coverage", "10")
}

func TestHandlersCanBeImportedByTests(t *testing.T) {
	t.Parallel()
	a := shop(t, nil)
	a.Write("test/a.test.ts", `import { expect, test } from "@runner/test"; import { sum } from "../handlers/shop.ts"; test("adds", () => { expect(sum(1, 2)).toBe(3); });`)
	a.Must("test")
	a.Write("handlers/wrong.ts", `import { expect } from "@runner/test"; export function wrong() { return expect; }`)
	if got := a.Run("build"); got.Status != 3 || !strings.Contains(got.Stderr, "@runner/test") {
		t.Errorf("a handler that imports @runner/test: %d %s", got.Status, got.Stderr)
	}
}

// The random values of handlers and of the test file follow from the seed.
func TestASeedRepeatsRandomValues(t *testing.T) {
	t.Parallel()
	a := shop(t, map[string]string{"a.test.ts": `
for (const name of ["one", "two"]) test(name, async () => {
  const draw = async () => (await request.get("/draw")).text();
  console.log([await draw(), await draw(), Math.random(), crypto.randomUUID()].join(" "));
});`})
	drawn := func(seed string) string {
		r, _ := run(t, a, "--seed", seed)
		return fmt.Sprint(r.all()["one"].Output, r.all()["two"].Output)
	}
	first := drawn("7")
	if again, other := drawn("7"), drawn("8"); again != first || other == first {
		t.Errorf("seed 7: %s, again: %s, seed 8: %s", first, again, other)
	}
	words := strings.Fields(strings.NewReplacer("[", " ", "]", " ", ",", " ").Replace(first))
	seen := map[string]bool{}
	for _, word := range words {
		if seen[word] {
			t.Errorf("%s was drawn twice", word)
		}
		seen[word] = true
	}
	if len(words) != 12 {
		t.Errorf("%d values: %q", len(words), words)
	}
}

func TestTokensOfTheIdentityProvider(t *testing.T) {
	t.Parallel()
	schema := strings.Replace(shopSchema, `session cookie("__Host-sid") { idle: 1h, absolute: 1d, sameSite: lax }`,
		`session jwt { issuer: "https://id.example.com", audience: "shop", jwks: "https://id.example.com/keys", roles: claim("roles") }`, 1)
	a := harness.NewApp(t, schema, "")
	a.Write("handlers/shop.ts", shopHandlers)
	a.Write("test/a.test.ts", `import { as, clock, expect, rows, test } from "@runner/test";
test("a token of the provider", async () => {
  await rows("Order").insert({ number: "A", total: 1 });
  const boss = as.jwt({ sub: "eve", roles: ["boss"] });
  expect((await (await boss.get("/orders")).json()).length).toBe(1);
  expect((await as.jwt({ sub: "eve", aud: "other" }).get("/orders")).status).toBe(401);
  await clock.advance("2h");
  expect((await boss.get("/orders")).status).toBe(401);
});`)
	r, status := run(t, a)
	if status != 0 {
		t.Errorf("%+v", r.all()["a token of the provider"].Problem)
	}
}

// A recorded failure becomes a test, which fails as the request did until its author changes it.
func TestARecordingBecomesATest(t *testing.T) {
	t.Parallel()
	a := shop(t, nil)
	a.Write("runner.toml", "[record]\nfailures = 10\n[secrets]\nPAY_KEY = \"x\"\n")
	a.Write("handlers/shop.ts", strings.Replace(shopHandlers, `return ok(await query("Order").orderBy("createdAt"));`,
		`return ok((await query("Order")).map((order) => order.owner!.toUpperCase()));`, 1))
	a.Must("build")
	s, token := a.Serve(), a.Token("writer")
	s.Matches(201, ".*", "POST", "/orders", `{"number":"A-1","total":3}`, token)
	s.Matches(500, ".*", "GET", "/orders?x=1", "", token)
	var recorded []struct{ ID, Handler string }
	s.WaitUntil("the failure is recorded", func() bool {
		return json.Unmarshal([]byte(a.Must("recorded", "list", "--json")), &recorded) == nil && len(recorded) == 1
	})
	file := strings.TrimSpace(a.Must("test", "--from", recorded[0].ID))
	s.Stop()
	text, err := os.ReadFile(a.Path(file))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`await rows("Order").insert({`, `"number":"A-1"`, `as.key("writer")`, `caller.fetch("/orders?x=1"`, "// It was: exception"} {
		if !strings.Contains(string(text), want) {
			t.Errorf("the test has no %s:\n%s", want, text)
		}
	}
	r, status := run(t, a)
	if status != 1 || len(r.Files) != 1 || !strings.Contains(strings.Join(r.Files[0].Tests[0].Log, "\n"), "toUpperCase") {
		t.Errorf("exit status %d: %+v\n%s", status, r.Files, text)
	}
	a.Write("handlers/shop.ts", strings.Replace(shopHandlers, `return ok(await query("Order").orderBy("createdAt"));`,
		`return ok((await query("Order")).map((order) => order.owner));`, 1))
	a.Must("test")
}

// With --watch the tests run again after each save: all of them after one of a handler, and one file after its own.
func TestTestsRunAgainAfterASave(t *testing.T) {
	t.Parallel()
	a := shop(t, map[string]string{
		"a.test.ts": `test("health", async () => { expect((await request.post("/pay")).status).toBe(500); });`,
		"b.test.ts": `test("close", async () => { expect((await call("close", { month: "may" })).body).toEqual({ closed: "may" }); });`,
	})
	printed := watching(t, a, "test", "--watch")
	printed("1 failed, 1 passed")
	a.Write("test/a.test.ts", `import { test } from "@runner/test"; test("nothing", () => {});`)
	printed("test/a.test.ts changed")
	printed("1 passed")
	a.Write("handlers/shop.ts", strings.Replace(shopHandlers, "closed:", "shut:", 1))
	printed("handlers/shop.ts changed")
	printed("1 failed, 1 passed")
}

// runner dev --test serves the app, and runs what a save touches.
func TestTestsRunBesideTheDevelopmentServer(t *testing.T) {
	t.Parallel()
	a := shop(t, map[string]string{"a.test.ts": `test("close", async () => { expect((await call("close", { month: "may" })).body).toEqual({ closed: "may" }); });`})
	a.Write("runner.toml", "[secrets]\nPAY_KEY = \"x\"\n")
	printed := watching(t, a, "dev", "--test", "--listen", "127.0.0.1:0")
	printed("1 passed")
	a.Write("test/b.test.ts", `import { test } from "@runner/test"; test("one", () => {}); test("two", () => {});`)
	printed("2 passed")
	a.Write("handlers/shop.ts", strings.Replace(shopHandlers, "closed:", "shut:", 1))
	printed("1 failed, 2 passed")
}

// watching starts a command that runs until an interrupt. It returns a function that waits until a line has a text; an interrupt then ends
// the command with status 0.
func watching(t *testing.T, a *harness.App, args ...string) (printed func(text string)) {
	cmd := exec.Command(harness.Binary, args...)
	cmd.Dir = a.Dir
	read, both := io.Pipe()
	cmd.Stdout, cmd.Stderr = both, both
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines := make(chan string, 1000)
	go func() {
		defer close(lines)
		for scan := bufio.NewScanner(read); scan.Scan(); {
			lines <- scan.Text()
		}
	}()
	t.Cleanup(func() {
		_ = cmd.Process.Signal(os.Interrupt)
		if err := cmd.Wait(); err != nil && !t.Failed() {
			t.Errorf("after an interrupt: %v", err)
		}
		_ = both.Close()
		for range lines {
		}
	})
	return func(text string) {
		t.Helper()
		var seen []string
		for limit := time.After(harness.Timeout); ; {
			select {
			case line := <-lines:
				if seen = append(seen, line); strings.Contains(line, text) {
					return
				}
			case <-limit:
				t.Fatalf("no line has %q:\n%s", text, strings.Join(seen, "\n"))
			}
		}
	}
}

func TestSetsAndMapsWithUndefinedAreNotEqualToOthers(t *testing.T) {
	t.Parallel()
	passes(t, `
test("sets", () => {
  expect(new Set([1, undefined])).not.toEqual(new Set([1, 2]));
  expect(new Set([{ a: 1 }, undefined])).toEqual(new Set([undefined, { a: 1 }]));
});
test("maps", () => {
  expect(new Map([[undefined, 1]])).not.toEqual(new Map([["a", 1]]));
  expect(new Map([[{ a: 1 }, 1], [undefined, 2]])).toEqual(new Map([[undefined, 2], [{ a: 1 }, 1]]));
});
`)
}

// Each hook and each test has a time of its own, that of --timeout if it names none, and a hook that does not return is stopped.
func TestHooksAndTestsHaveTheirOwnTime(t *testing.T) {
	t.Parallel()
	a := shop(t, map[string]string{
		"a.test.ts": `
const sleep = (ms: number) => () => new Promise<void>((done) => setTimeout(done, ms));
describe("after a slow hook", () => {
  beforeEach(sleep(1500), 20_000);
  test("runs", () => {}, 300);
});
test("sleeps", sleep(20_000));
`,
		"b.test.ts": `beforeAll(() => { for (;;) ; }, 200); test("b", () => {});`,
		"c.test.ts": `afterAll(() => { for (;;) ; }, 200); test("c", () => {});`,
	})
	r, status := run(t, a, "--timeout", "400ms")
	all := r.all()
	if status != 1 || all["after a slow hook > runs"].Status != "passed" || all["c"].Status != "passed" || all["b"].Status == "passed" {
		t.Errorf("exit status %d: %+v", status, all)
	}
	if p := all["sleeps"].Problem; p == nil || !strings.Contains(p.Message, "400 ms") {
		t.Errorf("sleeps: %+v", p)
	}
	for i, want := range map[int]string{1: "beforeAll took longer than 200ms", 2: "afterAll took longer than 200ms"} {
		if r.Files[i].Problem == nil || r.Files[i].Problem.Message != want {
			t.Errorf("%s: %+v", r.Files[i].File, r.Files[i].Problem)
		}
	}
}

func TestTwoTestsCannotHaveTheSameSnapshot(t *testing.T) {
	t.Parallel()
	a := shop(t, map[string]string{"a.test.ts": `
test("same", () => { expect(1).toMatchSnapshot(); });
test("same", () => { expect(2).toMatchSnapshot(); });
test("odd \r\n name", () => { expect("x").toMatchSnapshot(); });
`})
	for range 2 { // also when they are there
		r, _ := run(t, a)
		tests := r.Files[0].Tests
		if p := tests[1].Problem; tests[0].Status != "passed" || p == nil || !strings.Contains(p.Message, "another test of the file has the snapshot") {
			t.Errorf("%+v", tests)
		}
	}
	text, err := os.ReadFile(a.Path("test/__snapshots__/a.test.ts.snap"))
	if err != nil || strings.Count(string(text), "exports[") != 2 || strings.Contains(string(text), "\r") {
		t.Errorf("written is %q, %v", text, err)
	}
}

func TestTimesThatTheAppCannotUseAreRefused(t *testing.T) {
	t.Parallel()
	passes(t, `
test("times", async () => {
  await expect(clock.set("1969-12-31T23:59:59Z")).rejects.toThrow("1970 to 9999");
  await expect(clock.advance(1e300)).rejects.toThrow("292 years");
  await clock.set("9999-12-31T00:00:00Z");
  await expect(clock.advance("2d")).rejects.toThrow("1970 to 9999");
  expect((await request.get("/draw")).status).toBe(200);
});
`)
}
