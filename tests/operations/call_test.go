package operations_test

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"runner.example/tests/harness"
)

const callSchema = `
app books
auth {
  session cookie { }
  tenant: Org
}
type Closed { month: string count: int by: string kind: string tenant: string? }
entity Org { id: id name: string(1..20) }
entity Entry {
  id: id
  org: Org @tenant
  month: string(7..7)
  closed: bool = false
  note: string? @hidden
  @@allow read, write to session
}
apiKeys {
  scopes: {
    desk: @system("desk") { @grant read on Entry },
    everywhere: @system("everywhere") { @grant read on Entry @allTenants }
  }
}
functions(auth: apiKey(desk), rateLimit: 1/day) {
  closeMonth(month: string(7..7), dry: bool = false) -> Closed (timeout: 5s)
  @expose closedMonths() -> json
  book(month: string(7..7), org: string?) -> Entry
  wrong(month: string(7..7)) -> Closed
  traps()
  refuses(keep: bool = false)
  mints() -> json (mints: session)
  issues() -> json
  keys(ids: string(1..40)[]) -> json
  closeEntry(entry: Entry)
  bytes()
  loop() (timeout: 100ms)
  trap()
  spins() (timeout: 60s)
}
routes("/", auth: none, rateLimit: none) {
  POST /close -> closeMonth
}
`

const callHandlers = `
import { error, getContext, insert, noContent, ok, query, update, type RouteRequest } from "@runner/sdk";
export async function closeMonth(req: RouteRequest) {
  const { month, dry } = req.body<{ month: string; dry: boolean }>();
  const { auth } = getContext();
  const count = dry ? 0 : await update("Entry", { closed: true, note: "by " + auth.userId }).where("month", "=", month);
  console.log("closing " + month);
  return { month, count, by: auth.userId, kind: auth.kind, tenant: auth.tenant };
}
export function closedMonths() { return ok(query("Entry").select("org", "month").where("closed", "=", true).orderBy("month").orderBy("org")); }
export function book(req: RouteRequest) { return insert("Entry", req.body()); }
export async function wrong(req: RouteRequest) { await insert("Entry", { org: "acme", month: req.body().month }); return { month: 1 }; }
export async function traps() { await insert("Entry", { org: "acme", month: "1999-01" }); throw new Error("the ledger is torn"); }
export async function refuses(req: RouteRequest) {
  await insert("Entry", { org: "acme", month: "1998-01" });
  if (req.body().keep) getContext().keepWrites();
  return error(409, "October is closed already");
}
export function mints() { return getContext().client.sessions.create({ userId: "ada" }); }
export async function issues() { const key = await getContext().client.apiKeys.create({ scope: "desk" }); return { tenant: key.tenant, owner: key.owner }; }
export async function closeEntry(req: RouteRequest) {
  await update("Entry", { closed: true }).where("id", "=", req.body<{ entry: string }>().entry);
  return noContent();
}
export async function keys(req: RouteRequest) {
  const { apiKeys } = getContext().client;
  const listed = [], reached = [];
  for (const key of await apiKeys.list()) listed.push(key.id);
  for (const id of req.body<{ ids: string[] }>().ids) {
    try { await apiKeys.get(id); reached.push(id); } catch (e) { if (e.code !== "not_found") throw e; }
  }
  return { listed, reached };
}
export function spins() { console.log("spinning"); for (;;); }
export function bytes() { return ok(new Uint8Array([255, 0, 1])).withHeader("content-type", "application/octet-stream"); }
`

// callModule builds the handlers.
var callModule = sync.OnceValues(func() ([]byte, error) {
	hostile, err := os.ReadFile(harness.GuestFile("hostile"))
	if err != nil {
		return nil, err
	}
	return harness.BuildModule("books", map[string]string{"app.schema": callSchema, "handlers/books.ts": callHandlers, "build/hostile.wasm": string(hostile)})
})

func newCallApp(t *testing.T) *harness.App {
	module, err := callModule()
	if err != nil {
		t.Fatal(err)
	}
	a := harness.NewApp(t, callSchema, "[telemetry]\naccess_log = true\n[sandbox]\ncpu = \"60s\"\n", "hostile")
	a.Write("build/books.wasm", string(module))
	a.Token("desk", "--tenant", "acme") // creates the data directory
	a.Write("orgs.jsonl", `{"id":"acme","name":"Acme"}`+"\n"+`{"id":"blue","name":"Blue"}`+"\n")
	a.Must("data", "import", "Org", "orgs.jsonl")
	return a
}

// called is the output of runner call --json.
type called struct {
	RequestID, Code, Detail string
	Status                  int
	Errors                  []struct{ Field, Message string }
	Headers                 [][2]string
	Body                    json.RawMessage
}

// operatorCall runs runner call --json, which must end with the given status.
func operatorCall(a *harness.App, status int, args ...string) (called, string) {
	a.T.Helper()
	r := a.Run(append([]string{"call", "--json"}, args...)...)
	if r.Status != status {
		a.T.Fatalf("runner call %q: exit status %d, want %d\n%s%s", args, r.Status, status, r.Stdout, r.Stderr)
	}
	var got called
	if err := json.Unmarshal([]byte(r.Stdout), &got); err != nil {
		a.T.Fatalf("runner call %q: %v\n%s%s", args, err, r.Stdout, r.Stderr)
	}
	return got, r.Stderr
}

// inBoth runs a test on an app without a running server and with one.
func inBoth(t *testing.T, run func(t *testing.T, a *harness.App, log func(stderr string) string)) {
	t.Run("without a server", func(t *testing.T) {
		run(t, newCallApp(t), func(stderr string) string { return stderr })
	})
	t.Run("with a server", func(t *testing.T) {
		a := newCallApp(t)
		s := a.Serve()
		run(t, a, func(string) string { return s.Stderr.String() })
	})
}

func TestOperatorsCallFunctionsThatAreNotExposed(t *testing.T) {
	inBoth(t, func(t *testing.T, a *harness.App, log func(string) string) {
		for _, params := range []string{`{"month":"2026-09","org":"acme"}`, `{"month":"2026-10","org":"acme"}`, `{"month":"2026-10","org":"blue"}`} {
			a.Must("call", "book", params)
		}
		r := a.Run("call", "closeMonth", `{"month":"2026-10"}`)
		if want := regexp.MustCompile(`^\{"month":"2026-10","count":2,"by":"uid:\d+","kind":"system"\}\n$`); r.Status != 0 || !want.MatchString(r.Stdout) {
			t.Errorf("closeMonth: %d %q %s", r.Status, r.Stdout, r.Stderr)
		}
		if !strings.Contains(log(r.Stderr), "closing 2026-10") {
			t.Errorf("the log does not have what the function wrote:\n%s", log(r.Stderr))
		}
		// Operators may call an exposed function too, without its rate limit.
		for range 2 {
			if got := a.Must("call", "closedMonths"); got != `[{"org":"acme","month":"2026-10"},{"org":"blue","month":"2026-10"}]`+"\n" {
				t.Errorf("closedMonths: %s", got)
			}
		}
		got, _ := operatorCall(a, 0, "closeMonth", `{"month":"2026-09","dry":true}`)
		if got.Status != 200 || got.RequestID == "" || !strings.Contains(string(got.Body), `"count": 0`) {
			t.Errorf("closeMonth --json: %+v %s", got, got.Body)
		}
		if got, _ := operatorCall(a, 0, "bytes"); string(got.Body) != "{\n    \"base64\": \"/wAB\"\n  }" || len(got.Headers) != 1 || got.Headers[0][1] != "application/octet-stream" {
			t.Errorf("bytes --json: %s %q", got.Body, got.Headers)
		}
		if got := a.Must("call", "bytes"); got != "\xff\x00\x01" {
			t.Errorf("bytes: %q", got)
		}
	})
}

func TestACallThatWritesIsOneAuditRecord(t *testing.T) {
	inBoth(t, func(t *testing.T, a *harness.App, _ func(string) string) {
		a.Must("call", "book", `{"month":"2026-10","org":"acme"}`)
		a.Must("call", "closedMonths", "--tenant", "acme")
		kept, _ := operatorCall(a, 1, "refuses", `{"keep":true}`)
		for _, params := range [][]string{{"refuses"}, {"traps"}, {"wrong", `{"month":"2000-01"}`}} {
			operatorCall(a, 1, params...)
		}
		var rows []struct{ Month string }
		if err := json.Unmarshal([]byte(a.Must("data", "list", "Entry", "--order", "month", "--json")), &rows); err != nil {
			t.Fatal(err)
		}
		if len(rows) != 2 || rows[0].Month != "1998-01" || rows[1].Month != "2026-10" {
			t.Errorf("of what failed only what keepWrites kept is there: %+v", rows)
		}
		var records []struct {
			RequestID, Action, Target, Result, Reason string
			Actor                                     struct{ Kind, ID string }
		}
		if err := json.Unmarshal([]byte(a.Must("audit", "list", "--json")), &records); err != nil {
			t.Fatal(err)
		}
		var calls []string
		for _, r := range records {
			if r.Action == "functions.call" {
				calls = append(calls, strings.TrimSpace(r.Target+" "+r.Result+" "+r.Reason))
				if r.Actor.Kind != "system" || !strings.HasPrefix(r.Actor.ID, "uid:") {
					t.Errorf("recorded actor: %+v", r.Actor)
				}
			}
		}
		if last := records[len(records)-1]; strings.Join(calls, ", ") != `book ok, closedMonths ok tenant "acme", refuses ok` || last.RequestID != kept.RequestID {
			t.Errorf("recorded calls: %q, the last as %s, want %s", calls, last.RequestID, kept.RequestID)
		}
	})
}

func TestACallThatFailsSaysWhy(t *testing.T) {
	inBoth(t, func(t *testing.T, a *harness.App, log func(string) string) {
		for _, row := range []struct {
			args   []string
			status int
			stderr string
		}{
			{[]string{"closeMonth", `{"month":"2026","dry":1,"mnth":2}`}, 3, `^(.*\n)*runner: error: closeMonth: month must .*\nrunner: error: closeMonth: dry must .*\nrunner: error: closeMonth: mnth is not a field of closeMonth \(did you mean "month"\?\)\n$`},
			{[]string{"closeMonth"}, 3, `runner: error: closeMonth: month is required\n$`},
			{[]string{"closeMonth", `{"month":"2026-10","\u001b[2Jb\u202ec":1}`}, 3, `^(.*\n)*runner: error: closeMonth: �\[2Jb�c is not a field of closeMonth\n$`},
			{[]string{"closeMonth", `[]`}, 3, `runner: error: closeMonth: the parameters must be an object\n$`},
			{[]string{"closeMonth", `{"month"`}, 3, `runner: error: closeMonth answered 400 invalid_json: .*\n$`},
			{[]string{"closeMonht", `{}`}, 4, `runner: error: the schema declares no function "closeMonht" \(did you mean "closeMonth"\?\)\nrunner: hint: .*\n$`},
			{[]string{"refuses"}, 1, `runner: error: refuses answered 409 conflict: October is closed already\n$`},
			{[]string{"mints"}, 1, `runner: error: mints answered 403 `},
			{[]string{"loop"}, 1, `runner: error: loop answered 504 handler_timeout: `},
			{[]string{"wrong", `{"month":"2000-01"}`}, 1, `runner: error: wrong answered 500 handler_failed: the handler failed\nrunner: hint: the log has more about requestId \w{26}\n$`},
		} {
			r := a.Run(append([]string{"call"}, row.args...)...)
			if r.Status != row.status || r.Stdout != "" || !regexp.MustCompile(row.stderr).MatchString(r.Stderr) {
				t.Errorf("call %q: exit status %d, %q, %s", row.args, r.Status, r.Stdout, r.Stderr)
			}
		}
		for name, cause := range map[string]string{"traps": `"requestId":"%s".*the ledger is torn`, "trap": `"requestId":"%s".*unreachable`} {
			r := a.Run("call", name)
			said := regexp.MustCompile(`runner: error: ` + name + ` answered 500 handler_failed.*\nrunner: hint: the log has more about requestId (\w{26})\n$`).FindStringSubmatch(r.Stderr)
			if r.Status != 1 || said == nil {
				t.Fatalf("%s: exit status %d, %s", name, r.Status, r.Stderr)
			}
			if logged := log(r.Stderr); !regexp.MustCompile(fmt.Sprintf(cause, said[1])).MatchString(logged) || strings.Contains(said[0], "torn") {
				t.Errorf("the log has no cause under %s:\n%s", said[1], logged)
			}
		}
		if got, _ := operatorCall(a, 3, "closeMonth", `{"dry":1}`); got.Status != 400 || got.Code != "invalid_input" || len(got.Errors) != 2 || got.Errors[0].Field != "dry" {
			t.Errorf("closeMonth --json: %+v", got)
		}
	})
}

func TestACallWithATenantIsRestrictedToIt(t *testing.T) {
	inBoth(t, func(t *testing.T, a *harness.App, _ func(string) string) {
		for _, org := range []string{"acme", "blue"} {
			a.Must("call", "book", `{"month":"2026-10"}`, "--tenant", org)
		}
		if got, _ := operatorCall(a, 0, "closeMonth", `{"month":"2026-10"}`, "--tenant", "blue"); !strings.Contains(string(got.Body), `"count": 1`) || !strings.Contains(string(got.Body), `"tenant": "blue"`) {
			t.Errorf("closeMonth of one tenant: %s", got.Body)
		}
		if got := a.Must("call", "closedMonths"); got != `[{"org":"blue","month":"2026-10"}]`+"\n" {
			t.Errorf("closed: %s", got)
		}
		if got := a.Must("call", "closedMonths", "--tenant", "acme"); got != "[]\n" {
			t.Errorf("closed of acme: %s", got)
		}
		if r := a.Run("call", "book", `{"month":"2026-10","org":"blue"}`, "--tenant", "acme"); r.Status != 3 {
			t.Errorf("a row of another tenant: %d %s", r.Status, r.Stdout)
		}
		for _, tenant := range []string{strings.Repeat("x", 121), "a\u202eb", a.Token("desk", "--tenant", "acme")} {
			r := a.Run("call", "closedMonths", "--tenant", tenant)
			if r.Status != 3 || !strings.HasPrefix(r.Stderr, "runner: error: --tenant ") {
				t.Errorf("--tenant %q: exit status %d, %s", tenant, r.Status, r.Stderr)
			}
		}
		if r := a.Run("call", "book", `{"month":"2026-10"}`); r.Status != 3 {
			t.Errorf("a row of no tenant: %d %s", r.Status, r.Stdout)
		}
		if got := a.Must("call", "issues", "--tenant", "blue"); got != `{"tenant":"blue","owner":null}`+"\n" {
			t.Errorf("a key of one tenant: %s", got)
		}
		a.Must("call", "book", `{"month":"2026-11"}`, "--tenant", "blue")
		if r := a.Run("data", "each", "Entry", "--call", "closeEntry", "--all", "--tenant", "acme"); r.Status != 0 || !strings.Contains(r.Stdout+r.Stderr, "called closeEntry for 1 row") {
			t.Errorf("data each: %d %s%s", r.Status, r.Stdout, r.Stderr)
		}
		if got := a.Must("call", "closedMonths"); got != `[{"org":"acme","month":"2026-10"},{"org":"blue","month":"2026-10"}]`+"\n" {
			t.Errorf("closed after data each of acme: %s", got)
		}
	})
}

// With --tenant a function reaches the keys of that tenant: neither those of others nor those without a
// tenant, listed or named. Without it, it reaches all.
func TestACallWithATenantReachesTheKeysOfThatTenant(t *testing.T) {
	inBoth(t, func(t *testing.T, a *harness.App, _ func(string) string) {
		a.Token("desk", "--tenant", "blue")
		a.Token("everywhere") // without a tenant
		var all []struct{ ID, Tenant string }
		if err := json.Unmarshal([]byte(a.Must("api-keys", "list", "--json")), &all); err != nil || len(all) != 3 {
			t.Fatalf("%+v, %v", all, err)
		}
		var ids []string
		for _, key := range all {
			ids = append(ids, key.ID)
		}
		params, err := json.Marshal(map[string]any{"ids": ids})
		if err != nil {
			t.Fatal(err)
		}
		for _, tenant := range []string{"", "acme", "blue", "other"} {
			var want []string
			for _, key := range all {
				if tenant == "" || key.Tenant == tenant {
					want = append(want, key.ID)
				}
			}
			args := []string{"call", "keys", string(params)}
			if tenant != "" {
				args = append(args, "--tenant", tenant)
			}
			var got struct{ Listed, Reached []string }
			if err := json.Unmarshal([]byte(a.Must(args...)), &got); err != nil {
				t.Fatal(err)
			}
			if !slices.Equal(got.Listed, want) || !slices.Equal(got.Reached, want) {
				t.Errorf("--tenant %q lists %q and reaches %q, want %q of %+v", tenant, got.Listed, got.Reached, want, all)
			}
		}
	})
}

func TestAnInterruptEndsACallWithoutAnErrorInTheLog(t *testing.T) {
	inBoth(t, func(t *testing.T, a *harness.App, log func(string) string) {
		var stderr harness.LockedBuffer
		cmd := exec.Command(harness.Binary, "call", "spins")
		cmd.Dir, cmd.Stderr = a.Dir, &stderr
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		wait := func(what, pattern string) {
			t.Helper()
			form := regexp.MustCompile(pattern)
			for end := time.Now().Add(harness.Timeout); !form.MatchString(log(stderr.String())); <-time.After(5 * time.Millisecond) {
				if time.Now().After(end) {
					_ = cmd.Process.Kill()
					_ = cmd.Wait()
					t.Fatalf("%s: not within %s\n%s", what, harness.Timeout, log(stderr.String()))
				}
			}
		}
		wait("it runs", `"msg":"spinning"`)
		if err := cmd.Process.Signal(os.Interrupt); err != nil {
			t.Fatal(err)
		}
		if err := cmd.Wait(); cmd.ProcessState.ExitCode() != 130 || !strings.HasSuffix(stderr.String(), "runner: error: interrupted\n") {
			t.Errorf("%v\n%s", err, stderr.String())
		}
		wait("its end", `"level":"INFO","msg":"handler failed",.*"cause":"context canceled".*"code":"handler_timeout"`)
		if text := log(stderr.String()); strings.Contains(text, `"level":"ERROR"`) || strings.Contains(text, "wasm stack") {
			t.Errorf("the log has more lines about it:\n%s", text)
		}
	})
}

func TestFunctionsWithoutExposeHaveNoURL(t *testing.T) {
	a := newCallApp(t)
	s := a.Serve()
	a.Must("call", "book", `{"month":"2026-10","org":"acme"}`)
	for _, method := range []string{"POST", "GET", "OPTIONS"} {
		if p := s.Do(method, "/_call/book", `{}`, "X-API-Key: "+a.Token("desk", "--tenant", "acme")).Problem(t); p.Code != "route_not_found" {
			t.Errorf("%s /_call/book: %+v", method, p)
		}
	}
	// As a route's handler, the same export runs with the caller of the route.
	if got := s.Do("POST", "/close", `{"month":"2026-10"}`); got.Status != 403 {
		t.Errorf("POST /close: %d %s", got.Status, got.Body)
	}
	s.WaitForOutput(`"msg":"request",.*"method":"POST","status":200,.*"route":"/_call/book","operator":"uid:\d+"`)
}
