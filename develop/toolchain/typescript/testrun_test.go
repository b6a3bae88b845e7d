package typescript_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"runner.example/develop/toolchain/toolchaintest"
	"runner.example/develop/toolchain/typescript"
	"runner.example/hostabi"
	"runner.example/hostabi/abi"
	"runner.example/internal/caller"
	"runner.example/internal/fault"
	"runner.example/runtime/sandbox"
)

// message is what a module of tests tells its host.
type message struct {
	Do     string
	Tests  []listed
	Test   int
	Turn   int
	Status string
	Error  *reported

	Kind, Scope  string
	Client       int
	Method, Path string
	Headers      [][2]string
	Body         *string

	Entity, Op string
	Args       struct {
		Values json.RawMessage
		Set    map[string]any
		Where  [][]any
		ID     string
		Limit  int
		Cursor string
	}
	Set      string
	Advance  float64
	Function string
	Params   map[string]any
	ID       int
	Fault    string `json:"-"`

	Write  map[string]string
	Unused []string
}

type listed struct {
	Name         []string
	Line, Column int
	Mode         string
}

type reported struct {
	Message, Diff string
	Place         *struct {
		File         string
		Line, Column int
	}
	Stack []string
}

// testHost is the host of one run of a test file. Its app has rows, which each test has a copy of, and these
// routes: GET /rows answers with the rows, GET /slow waits for one GET /fast, GET /fetch sends a request, and any
// other answers with the request.
type testHost struct {
	file      string
	run       []int
	update    bool
	snapshots map[string]string

	mu      sync.Mutex
	told    []string // what the module did, in order
	listed  []listed
	results []string
	errors  map[string]*reported // by the test's name
	failed  []*reported
	end     message
	bases   [][]map[string]any
	rows    []map[string]any
	clients []string // kinds and scopes
	now     time.Time
	fast    chan struct{}
	fetches chan fetch
	waiting map[int]chan message
	turn    int
	over    chan struct{} // closed when the turn is over
}

type fetch struct {
	ID      int         `json:"id"`
	Method  string      `json:"method"`
	URL     string      `json:"url"`
	Headers [][2]string `json:"headers"`
	Body    *string     `json:"body"`
}

func (h *testHost) answer(ctx context.Context, args []byte) ([]byte, error) {
	var m message
	if bytes.HasPrefix(args, []byte(`{"do":"answer"`)) {
		var answer struct{ ID int }
		if err := json.Unmarshal(args, &answer); err != nil {
			return nil, err
		}
		m.Do, m.ID = "answer", answer.ID
	} else if err := json.Unmarshal(args, &m); err != nil {
		return nil, err
	}
	h.mu.Lock()
	h.told = append(h.told, strings.TrimSpace(m.Do+" "+m.Op))
	h.mu.Unlock()
	var result any
	var err error
	switch m.Do {
	case "request":
		result, err = h.request(ctx, m)
	case "fetches":
		h.mu.Lock()
		over := h.over
		if m.Turn != h.turn {
			over = closed
		}
		h.mu.Unlock()
		select {
		case <-over:
			return []byte("null"), nil
		default:
		}
		select {
		case f := <-h.fetches:
			result = f
		case <-over:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	default:
		h.mu.Lock()
		defer h.mu.Unlock()
		if inTurn := []string{"client", "rows", "clock", "jobs", "call"}; slices.Contains(inTurn, m.Do) && m.Turn != h.turn {
			return nil, fault.New(fault.Invalid, "the test has ended")
		}
		result, err = h.do(m, args)
	}
	if err != nil {
		return nil, err
	}
	return json.Marshal(result)
}

// closed is a turn that is over.
var closed = func() chan struct{} {
	c := make(chan struct{})
	close(c)
	return c
}()

func (h *testHost) nextTurn() {
	close(h.over)
	h.over, h.turn = make(chan struct{}), h.turn+1
}

func (h *testHost) do(m message, args []byte) (any, error) {
	ok := map[string]any{}
	switch m.Do {
	case "file":
		return map[string]any{"file": h.file, "run": h.run, "update": h.update, "snapshots": h.snapshots, "seed": 1}, nil
	case "tests":
		h.listed = m.Tests
		only := slices.ContainsFunc(m.Tests, func(t listed) bool { return t.Mode == "only" })
		run := []int{}
		for i, t := range m.Tests {
			if t.Mode == "only" || t.Mode == "run" && !only {
				run = append(run, i)
			}
		}
		return map[string]any{"run": run}, nil
	case "base":
		h.bases = append(h.bases, slices.Clone(h.rows))
	case "unbase":
		h.bases = h.bases[:len(h.bases)-1]
		h.fork()
	case "step":
		return struct{}{}, nil
	case "begin":
		h.fork()
		h.fast = make(chan struct{})
		h.nextTurn()
	case "end":
		name := fmt.Sprint(m.Test)
		if h.listed != nil {
			name = strings.Join(h.listed[m.Test].Name, " > ")
		}
		h.results = append(h.results, m.Status+" "+name)
		if m.Error != nil {
			h.errors[name] = m.Error
		}
		h.nextTurn()
		h.fork()
	case "failed":
		h.failed = append(h.failed, m.Error)
	case "client":
		if m.Scope == "unknown" {
			return nil, fault.New(fault.Invalid, `the schema has no scope "unknown"`)
		}
		h.clients = append(h.clients, m.Kind+" "+m.Scope)
		return map[string]any{"client": len(h.clients) - 1}, nil
	case "rows":
		return h.rowsOf(m)
	case "clock":
		if m.Set != "" {
			h.now, _ = time.Parse(time.RFC3339, m.Set)
		}
		h.now = h.now.Add(time.Duration(m.Advance) * time.Millisecond)
		return map[string]any{"now": h.now.UnixMilli()}, nil
	case "jobs":
		return []map[string]any{{"id": "1", "name": "mail", "state": m.Op, "attempt": 1}}, nil
	case "call":
		return map[string]any{"status": 200, "body": map[string]any{"function": m.Function, "params": m.Params}}, nil
	case "answer":
		m.Fault = string(args)
		h.waiting[m.ID] <- m
	case "snapshots":
		h.end = m
	default:
		return nil, fault.New(fault.Invalid, "unknown do %q", m.Do)
	}
	return ok, nil
}

func (h *testHost) fork() {
	h.rows = nil
	if len(h.bases) > 0 {
		h.rows = slices.Clone(h.bases[len(h.bases)-1])
	}
}

func (h *testHost) rowsOf(m message) (any, error) {
	of := func(row map[string]any) bool {
		if m.Args.ID != "" {
			return row["id"] == m.Args.ID
		}
		for _, where := range m.Args.Where {
			if row[where[0].(string)] != where[2] {
				return false
			}
		}
		return true
	}
	found := []map[string]any{}
	for _, row := range h.rows {
		if of(row) {
			found = append(found, row)
		}
	}
	switch m.Op {
	case "insert":
		var many []map[string]any
		if json.Unmarshal(m.Args.Values, &many) != nil {
			many = make([]map[string]any, 1)
			_ = json.Unmarshal(m.Args.Values, &many[0])
		}
		for i, row := range many {
			if row["number"] == nil {
				return nil, fault.New(fault.Invalid, "number is missing")
			}
			row["id"] = fmt.Sprint("id", len(h.rows)+i)
		}
		h.rows = append(h.rows, many...)
		return map[string]any{"rows": many}, nil
	case "get":
		if len(found) == 0 {
			return nil, fault.New(fault.NotFound, "the row does not exist")
		}
		return map[string]any{"row": found[0]}, nil
	case "query":
		var next any
		begin := 0
		_, _ = fmt.Sscan(m.Args.Cursor, &begin)
		found = found[begin:]
		if limit := m.Args.Limit; limit > 0 && len(found) > limit {
			found, next = found[:limit], fmt.Sprint(begin+limit)
		}
		return map[string]any{"rows": found, "nextCursor": next}, nil
	case "count":
		return map[string]any{"count": len(found)}, nil
	case "update":
		for i := range found {
			at := slices.IndexFunc(h.rows, func(row map[string]any) bool { return row["id"] == found[i]["id"] })
			found[i] = maps.Clone(found[i])
			maps.Copy(found[i], m.Args.Set)
			h.rows[at] = found[i]
		}
		return map[string]any{"count": len(found), "rows": found}, nil
	}
	h.rows = slices.DeleteFunc(slices.Clone(h.rows), of)
	return map[string]any{"count": len(found)}, nil
}

func (h *testHost) request(ctx context.Context, m message) (any, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	body := ""
	if m.Body != nil {
		decoded, _ := base64.StdEncoding.DecodeString(*m.Body)
		body = string(decoded)
	}
	given := map[string]any{"method": m.Method, "path": m.Path, "headers": m.Headers, "body": body, "client": h.clients[m.Client]}
	status, headers := 200, [][2]string{{"content-type", "application/json"}, {"set-cookie", "a=1"}, {"set-cookie", "b=2"}}
	wait := func(on <-chan struct{}) {
		h.mu.Unlock()
		defer h.mu.Lock()
		select {
		case <-on:
		case <-ctx.Done():
		}
	}
	switch m.Path {
	case "/rows":
		given = map[string]any{"rows": h.rows}
	case "/none":
		return map[string]any{"status": 204, "headers": headers[:0], "body": ""}, nil
	case "/slow":
		wait(h.fast)
	case "/fast":
		close(h.fast)
	case "/hang":
		wait(h.over)
	case "/fetch":
		text := base64.StdEncoding.EncodeToString([]byte(`{"amount":5}`))
		id := len(h.waiting) + 1
		answers := make(chan message, 1)
		h.waiting[id] = answers
		h.mu.Unlock()
		sent := fetch{id, "POST", "https://pay.example.com/charges?x=1", [][2]string{{"content-type", "application/json"}}, &text}
		var answer message
		select {
		case h.fetches <- sent:
			select {
			case answer = <-answers:
			case <-ctx.Done():
			}
		case <-ctx.Done():
		}
		h.mu.Lock()
		given = map[string]any{"answer": json.RawMessage(answer.Fault)}
	}
	text, _ := json.Marshal(given)
	return map[string]any{"status": status, "headers": headers, "body": base64.StdEncoding.EncodeToString(text)}, nil
}

// buildTests builds test files and loads their module.
func buildTests(t testing.TB, dir string, files ...string) *sandbox.Module {
	t.Helper()
	m, found, err := typescript.BuildTests(t.Context(), typescript.Options{
		Dir: dir, Files: files, CacheDir: toolchaintest.EngineCache(t), Log: func(text string) { t.Log(text) },
	})
	if err != nil || len(found) > 0 {
		t.Fatalf("%v, %v", found, err)
	}
	if !slices.Equal(m.Handlers, []string{typescript.TestHandler}) {
		t.Errorf("the handlers are %v", m.Handlers)
	}
	module, err := toolchaintest.Engine(t).Load(context.Background(), "test", m.Wasm)
	if err != nil {
		t.Fatal(err)
	}
	return module
}

// runTests runs a test file in a module. The log is that of the run.
func runTests(t testing.TB, m *sandbox.Module, h *testHost) (log string) {
	t.Helper()
	h.errors, h.fetches, h.waiting, h.over = map[string]*reported{}, make(chan fetch), map[int]chan message{}, make(chan struct{})
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	var out bytes.Buffer
	limits := toolchaintest.Patient
	limits.HostCalls = 1 << 30
	call := &hostabi.Call{Input: hostabi.Input{
		Context: ctx,
		Host: hostabi.NewHost(hostabi.Host{
			Logger: slog.New(slog.NewTextHandler(&out, nil)), Limits: limits, Test: h.answer,
		}),
		Request: &abi.Request{ID: "01request", Route: "/", Method: []byte("POST"), Path: []byte("/")},
		Caller:  caller.Caller{Kind: caller.Anonymous},
		Attempt: 1,
	}}
	err := m.Run(call, typescript.TestHandler)
	log = out.String() + toolchaintest.Reports(call)
	if err != nil || call.Response.Status != 204 {
		t.Fatalf("the run ended with %v, %d\n%s\n%s", err, call.Response.Status, log, strings.Join(h.results, "\n"))
	}
	return log
}

// runTest builds and runs one file.
func runTest(t *testing.T, text string) *testHost {
	t.Helper()
	const file = "test/app.test.ts"
	h := &testHost{file: file}
	if log := runTests(t, buildTests(t, toolchaintest.App(t, map[string]string{file: text}), file), h); log != "" {
		t.Errorf("the log has\n%s", log)
	}
	return h
}

// passes runs a file whose tests all pass.
func passes(t *testing.T, text string) *testHost {
	t.Helper()
	h := runTest(t, text)
	for name, e := range h.errors {
		t.Errorf("%s: %s\n%s\n%s", name, e.Message, e.Diff, strings.Join(e.Stack, "\n"))
	}
	for _, e := range h.failed {
		t.Errorf("%s\n%s", e.Message, strings.Join(e.Stack, "\n"))
	}
	if len(h.results) == 0 {
		t.Error("no test ran")
	}
	return h
}

func TestTestsAskTheAppAndSeeItsRows(t *testing.T) {
	h := passes(t, `import { test, expect, as, rows, clock, jobs, call, request } from "@runner/test";
const partner = as.key("partner_sync", { tenant: "acme" });
test("a partner sees orders", async () => {
  const made = await rows("Order").insert([{ number: "A-1", total: "5" }, { number: "A-2", total: "0" }]);
  expect(made).toEqual([{ id: expect.any(String), number: "A-1", total: "5" }, expect.objectContaining({ number: "A-2" })]);
  const answer = await partner.get("/rows");
  expect(answer.status).toBe(200);
  expect(answer.headers.get("content-type")).toMatch("json");
  expect(answer.headers.getSetCookie()).toEqual(["a=1", "b=2"]);
  expect((await answer.json()).rows.map((o: any) => o.number)).toEqual(["A-1", "A-2"]);
  expect((await request.get("/none")).status).toBe(204);
});
test("each test has its own rows", async () => {
  expect(await rows("Order").count()).toBe(0);
  const one = await rows("Order").insert({ number: "B-1" });
  expect(await rows("Order").get(one.id)).toEqual(one);
  expect((await rows("Order").update(one.id, { total: "7" })).total).toBe("7");
  expect(await rows("Order").where("total", "=", "7").first()).toMatchObject({ number: "B-1" });
  expect(await rows("Order").where("total", "=", "8").first()).toBeNull();
  await rows("Order").delete(one.id);
  await expect(rows("Order").delete(one.id)).rejects.toThrow("no row of Order has the id id0");
  await rows("Order").insert(Array.from({ length: 2500 }, (_, i) => ({ number: "N" + i })));
  expect(await rows("Order")).toHaveLength(2500);
  expect(await rows("Order").limit(3)).toHaveLength(3);
});
test("requests have bodies, headers and a query", async () => {
  const echo = async (answer: Promise<Response>) => (await answer).json();
  expect(await echo(partner.post("/x?a=1", { item: "lamp" }, { query: { b: [2, 3], c: undefined }, headers: { "X-A": "1" } }))).toEqual({
    method: "POST", path: "/x?a=1&b=2&b=3", client: "key partner_sync", body: '{"item":"lamp"}',
    headers: [["content-type", "application/json"], ["x-a", "1"]],
  });
  expect(await echo(request.put("/x", "text"))).toMatchObject({ method: "PUT", body: "text", headers: [["content-type", "text/plain;charset=UTF-8"]], client: "anonymous " });
  expect(await echo(request.patch("/x", new URLSearchParams("a=b")))).toMatchObject({ body: "a=b" });
  expect(await echo(request.delete("/x"))).toMatchObject({ method: "DELETE", body: "" });
  expect(await echo(as.session({ user: "ada" }).fetch("/x", { method: "QUERY", body: new Uint8Array([65]) }))).toMatchObject({ method: "QUERY", body: "A" });
  await expect(partner.get("x")).rejects.toThrow('begins with "/"');
});
test("requests run at once", async () => {
  const [slow, fast] = await Promise.all([request.get("/slow"), request.get("/fast")]);
  expect([slow.status, fast.status]).toEqual([200, 200]);
  expect(await Promise.all(Array.from({ length: 200 }, () => request.get("/x")))).toHaveLength(200);
});
test("clock, jobs and functions", async () => {
  expect(await clock.set("2026-01-01T00:00:00Z")).toEqual(new Date("2026-01-01T00:00:00Z"));
  expect((await clock.advance("1h")).toISOString()).toBe("2026-01-01T01:00:00.000Z");
  expect((await clock.advance(1)).getTime()).toBe(Date.parse("2026-01-01T01:00:00.001Z"));
  expect(await jobs.run()).toMatchObject([{ name: "mail", state: "run" }]);
  expect(await call("closeMonth", { month: 1 }, { tenant: "acme" })).toEqual({ status: 200, body: { function: "closeMonth", params: { month: 1 } } });
});
`)
	if h.clients[0] != "key partner_sync" || h.clients[1] != "anonymous " || h.clients[2] != "key partner_sync" {
		t.Errorf("the clients are %q: one for each object and test", h.clients)
	}
	if l := h.listed[1]; l.Line != 13 || l.Column != 1 || l.Mode != "run" {
		t.Errorf("listed %+v", l)
	}
}

// failures is what the failed tests of a run say.
func (h *testHost) failures() string {
	var out strings.Builder
	for _, l := range h.listed {
		name := strings.Join(l.Name, " > ")
		e := h.errors[name]
		if e == nil {
			continue
		}
		fmt.Fprintf(&out, "%s\n  %s\n", name, strings.ReplaceAll(e.Message, "\n", "\n  "))
		if e.Place == nil {
			out.WriteString("  without a place\n")
		} else {
			fmt.Fprintf(&out, "  at %s:%d:%d\n", e.Place.File, e.Place.Line, e.Place.Column)
		}
		if e.Diff != "" {
			fmt.Fprintf(&out, "    %s\n", strings.ReplaceAll(e.Diff, "\n", "\n    "))
		}
	}
	return out.String()
}

// wants compares what the failed tests say.
func wants(t *testing.T, h *testHost, want string) {
	t.Helper()
	if got := h.failures(); got != want {
		t.Errorf("the tests failed with\n%s\nwant\n%s", got, want)
	}
}

func TestFailedComparisonsSayWhatDiffersAndWhere(t *testing.T) {
	h := runTest(t, `import { test, expect } from "@runner/test";
test("toBe", () => { expect(404).toBe(200); });
test("not", () => { expect("a").not.toBe("a"); });
test("toBe of objects", () => { expect({ a: 1 }).toBe({ a: 1 } as any); });
test("toEqual", () => {
  expect({ id: "7", number: "A-1", lines: [{ sku: "x", count: 1 }, { sku: "y", count: 2 }], note: undefined, at: new Date(0) }).toEqual({
    id: expect.any(String), number: "A-1", lines: [{ sku: "x", count: 1 }, { sku: "z", count: 2 }], at: new Date(5),
  });
});
test("toMatchObject", () => { expect({ a: 1, b: { c: [1, 2] }, more: "of this" }).toMatchObject({ b: { c: [1, 3] } }); });
test("toStrictEqual", () => { expect({ a: undefined }).toStrictEqual({}); });
test("a class", () => { class P { x = 1; } expect(new P()).toStrictEqual({ x: 1 }); });
test("urls", () => { expect(new URL("https://a.example/")).toEqual(new URL("https://b.example/")); });
test("long texts", () => { expect("a\nb\nc\nd\ne\nf\ng\nh").toBe("a\nb\nc\nd\ne\nF\ng\nh"); });
test("toContain", () => { expect([1, 2]).toContain(3); });
test("toHaveLength", () => { expect([1, 2]).toHaveLength(3); });
test("toHaveProperty", () => { expect({ a: { b: [{ c: 1 }] } }).toHaveProperty("a.b[0].c", 2); });
test("toMatch", () => { expect("abc").toMatch(/^b/); });
test("toThrow nothing", () => { expect(() => {}).toThrow(); });
test("toThrow another", () => { expect(() => { throw new RangeError("far"); }).toThrow("near"); });
test("toThrow a promise", () => { expect(async () => {}).toThrow(); });
test("numbers", () => { expect(1).toBeGreaterThan(2); });
test("not a number", () => { expect("1").toBeGreaterThan(0); });
test("close", () => { expect(0.1 + 0.2).toBeCloseTo(0.4); });
test("any", () => { expect({ a: "x" }).toEqual({ a: expect.any(Number) }); });
test("promises", async () => { expect(Promise.resolve(1)).toEqual(1); });
test("resolves", async () => {
  await expect(Promise.resolve(1)).resolves.toBe(2);
});
test("rejects", async () => {
  await expect(Promise.resolve(1)).rejects.toThrow();
});
test("was rejected", async () => {
  await expect(Promise.reject(new Error("no"))).resolves.toBe(2);
});
test("assertions", async () => { expect.assertions(2); expect(1).toBe(1); });
test("an error", () => { const none: any = {}; none.call(); });
test("an error with a cause", () => { throw new Error("outer", { cause: new TypeError("inner") }); });
test("a value", () => { throw { code: 5 }; });
`)
	wants(t, h, `toBe
  toBe: expected 200, received 404
  at test/app.test.ts:2:34
not
  not.toBe: received "a"
  at test/app.test.ts:3:37
toBe of objects
  toBe: these are two objects with equal content, { a: 1 }: use toEqual
  at test/app.test.ts:4:50
toEqual
  toEqual: the values differ
  at test/app.test.ts:7:109
      {
    -   at: 1970-01-01T00:00:00.005Z,
    +   at: 1970-01-01T00:00:00.000Z,
        id: "7",
        lines: [
          {
      …
          },
          {
            count: 2,
    -       sku: "z",
    +       sku: "y",
          },
        ],
        number: "A-1",
      }
toMatchObject
  toMatchObject: expected { b: { c: [1, 3] } }, received { b: { c: [1, 2] } }
  at test/app.test.ts:10:83
toStrictEqual
  toStrictEqual: expected {}, received { a: undefined }
  at test/app.test.ts:11:56
a class
  toStrictEqual: expected { x: 1 }, received P { x: 1 }
  at test/app.test.ts:12:60
urls
  toEqual: expected URL "https://b.example/", received URL "https://a.example/"
  at test/app.test.ts:13:72
long texts
  toBe: the texts differ
  at test/app.test.ts:14:61
      …
      c
      d
      e
    - F
    + f
      g
      h
toContain
  toContain: expected 3 in it, received [1, 2]
  at test/app.test.ts:15:42
toHaveLength
  toHaveLength: expected the length 3, received 2: [1, 2]
  at test/app.test.ts:16:45
toHaveProperty
  toHaveProperty: "a.b[0].c": expected 2, received 1
  at test/app.test.ts:17:65
toMatch
  toMatch: expected /^b/ in it, received "abc"
  at test/app.test.ts:18:39
toThrow nothing
  toThrow: the function threw nothing
  at test/app.test.ts:19:50
toThrow another
  toThrow: expected a message with "near", it threw RangeError: far
  at test/app.test.ts:20:80
toThrow a promise
  toThrow: the function returns a promise: write await expect(promise).rejects.toThrow()
  at test/app.test.ts:21:58
numbers
  toBeGreaterThan: expected a number > 2, received 1
  at test/app.test.ts:22:35
not a number
  toBeGreaterThan: it compares numbers, and "1" is none
  at test/app.test.ts:23:42
close
  toBeCloseTo: expected 0.4 to 2 digits, received 0.30000000000000004
  at test/app.test.ts:24:41
any
  toEqual: expected { a: any(Number) }, received { a: "x" }
  at test/app.test.ts:25:64
promises
  toEqual: the value is a promise: await it, or write await expect(…).resolves.toEqual(…)
  at test/app.test.ts:26:59
resolves
  toBe: expected 2, received 1
  at test/app.test.ts:28:45
rejects
  rejects: the promise was not rejected, it gave 1
  at test/app.test.ts:31:44
was rejected
  resolves: the promise was rejected with [Error: no]
  at test/app.test.ts:34:58
assertions
  expect.assertions: expected 2, there were 1
  at test/app.test.ts:36:1
an error
  TypeError: none.call is not a function
  at test/app.test.ts:37:53
an error with a cause
  Error: outer
  because of TypeError: inner at test/app.test.ts:38:77
  at test/app.test.ts:38:77
a value
  thrown: {"code":5}
  at test/app.test.ts:39:1
`)
}

func TestTestsThatDoNotAwaitFail(t *testing.T) {
	h := runTest(t, `import { test, expect, rows, request, beforeEach } from "@runner/test";
import { insert } from "@runner/sdk";
test("a change", async () => {
  rows("Order").insert({ number: "A-1" });
});
test("a request", async () => {
  request.get("/hang");
});
test("an expectation", async () => {
  expect(Promise.resolve(1)).resolves.toBe(2);
});
test("a change of the SDK", () => { insert("Order", {}); });
test("a rejected promise", async () => {
  Promise.reject(new Error("lost"));
  await null;
});
test("waits for nothing", async () => {
  await new Promise(() => {});
});
test("waits for a request", async () => {
  const answer = request.get("/hang");
  await answer;
}, "100ms");
test("waits for a timer", async () => {
  await new Promise((done) => setTimeout(done, 20_000));
}, 50);
test("runs on after its end", async () => {
  const late = async () => { await request.get("/hang"); throw new Error("it went on"); };
  late();
  setTimeout(() => { throw new Error("a timer went on"); }, 1);
  expect(1).toBe(2);
});
test("passes", async () => {
  await new Promise((done) => setTimeout(done, 20));
  expect(await rows("Order").count()).toBe(0);
});
test("the host refuses", async () => {
  await rows("Order").insert({ total: "5" });
});
test("a value without a form", async () => {
  await rows("Order").insert({ number: NaN });
});
test("an odd option", async () => {
  await request.get("/x", { header: {} } as any);
});
test("no such scope", async () => {
  const { as } = await import("@runner/test");
  const all = as.key("unknown");
  await all.get("/x");
});
`)
	wants(t, h, `a change
  rows("Order").insert(…) was never awaited, so it did not run: add await
  at test/app.test.ts:4:17
a request
  GET /hang was still under way at the end: await it
  at test/app.test.ts:7:11
an expectation
  expect(…).resolves.toBe was never awaited, so it did not run: add await
  at test/app.test.ts:10:39
a change of the SDK
  an insert into Order was never awaited, so nothing was written: add await
  at test/app.test.ts:12:1
a rejected promise
  Error: lost
  at test/app.test.ts:14:22
waits for nothing
  it waits for a promise that nothing settles
  at test/app.test.ts:17:1
waits for a request
  it did not end within 100 ms, while it waited for GET /hang
  at test/app.test.ts:21:26
waits for a timer
  it did not end within 50 ms
  at test/app.test.ts:24:1
runs on after its end
  toBe: expected 2, received 1
  at test/app.test.ts:31:13
the host refuses
  invalid: number is missing
  at test/app.test.ts:38:23
a value without a form
  invalid: insert: values.number is NaN: check it first, or use null on purpose
  at test/app.test.ts:41:40
an odd option
  TypeError: GET /x: unknown option "header"; known: headers, query, body, method
  at test/app.test.ts:44:17
no such scope
  invalid: the schema has no scope "unknown"
  at test/app.test.ts:49:13
`)
}

func TestBlocksAndHooksRunInOrder(t *testing.T) {
	h := passes(t, `import { afterAll, afterEach, as, beforeAll, beforeEach, describe, expect, it, outbound, request, rows, test } from "@runner/test";
const log: string[] = [];
let ada: ReturnType<typeof as.key>;
beforeAll(async () => {
  log.push("all");
  await rows("Order").insert({ number: "of the file" });
  ada = as.key("of the file");
  await ada.get("/rows");
  outbound.on("https://pay.example.com", () => Response.json("of the file"));
});
beforeEach(() => { log.push("each"); });
afterEach(() => { log.push("after each"); });
afterAll(() => { log.push("after all"); });
test("first", async () => {
  log.push("first");
  await rows("Order").insert({ number: "of the test" });
  expect(await rows("Order").count()).toBe(2);
  expect(await (await ada.get("/fetch")).json()).toMatchObject({ answer: { body: btoa('"of the file"') } });
});
describe("block", () => {
  beforeAll(async () => {
    log.push("block all");
    await rows("Order").insert({ number: "of the block" });
  });
  beforeEach(async () => { log.push("block each"); });
  afterEach(() => { log.push("block after each"); });
  afterAll(() => { log.push("block after all"); });
  it("second", async () => {
    log.push("second");
    expect(await rows("Order")).toMatchObject([{ number: "of the file" }, { number: "of the block" }]);
  });
  describe("within", () => {
    test.each([[1, 2], [3, 4]])("adds %d and %s", async (a, b) => { log.push("row " + (a + b)); });
    test.each([{ name: "a", of: { n: 1 } }])("has $name $of.n", ({ of }) => { log.push("of " + of.n); });
  });
});
describe.each(["x", "y"])("of %s", (letter) => {
  test("letter", () => { log.push(letter); });
});
test("last", async () => {
  expect(await rows("Order").count()).toBe(1);
  expect(log.join(", ")).toBe(
    "all, each, first, after each, " +
    "block all, each, block each, second, block after each, after each, " +
    "each, block each, row 3, block after each, after each, each, block each, row 7, block after each, after each, each, block each, of 1, block after each, after each, " +
    "block after all, " +
    "each, x, after each, each, y, after each, each",
  );
});
`)
	want := []string{"passed first", "passed block > second", "passed block > within > adds 1 and 2", "passed block > within > adds 3 and 4",
		"passed block > within > has a 1", "passed of x > letter", "passed of y > letter", "passed last"}
	if !slices.Equal(h.results, want) {
		t.Errorf("the results are\n%s", strings.Join(h.results, "\n"))
	}
	if !slices.Equal(h.clients, []string{"key of the file"}) {
		t.Errorf("the clients are %q: the one of beforeAll is used again", h.clients)
	}
	last := slices.DeleteFunc(slices.Clone(h.told), func(do string) bool { return do == "fetches" })
	if len(h.bases) != 0 || last[len(last)-1] != "snapshots" {
		t.Errorf("the run ended with %q", h.told)
	}
}

func TestModesSayWhatRuns(t *testing.T) {
	h := passes(t, `import { describe, expect, test } from "@runner/test";
test("plain", () => { throw 1; });
test.skip("skipped", () => { throw 1; });
test.todo("later");
test.only("alone", () => {});
test.only.each([1])("alone %d", () => {});
test.skip.each([1])("skipped %d", () => { throw 1; });
describe.skip("skipped block", () => { test.only("in it", () => { throw 1; }); });
describe.only("block alone", () => { test("in it", () => {}); test.skip("not it", () => { throw 1; }); });
describe.only("block with one alone", () => { test("not it", () => { throw 1; }); test.only("it", () => {}, "1m"); });
`)
	var modes []string
	for _, l := range h.listed {
		modes = append(modes, l.Mode+" "+strings.Join(l.Name, " > "))
	}
	want := []string{"run plain", "skip skipped", "todo later", "only alone", "only alone 1", "skip skipped 1", "skip skipped block > in it",
		"only block alone > in it", "skip block alone > not it", "run block with one alone > not it", "only block with one alone > it"}
	if !slices.Equal(modes, want) {
		t.Errorf("listed\n%s", strings.Join(modes, "\n"))
	}
	if len(h.results) != 4 {
		t.Errorf("the results are\n%s", strings.Join(h.results, "\n"))
	}
}

func TestFailedHooksFailTheirTests(t *testing.T) {
	h := runTest(t, `import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "@runner/test";
describe("all", () => {
  beforeAll(() => { throw new Error("no data"); });
  test("one", () => {});
  test("two", () => {});
});
describe("each", () => {
  let ran = false;
  beforeEach(() => { expect(1).toBe(2); });
  test("one", () => { ran = true; });
  afterAll(() => { expect(ran).toBe(false); });
});
describe("after each", () => {
  afterEach(() => { throw new Error("not clean"); });
  test("one", () => {});
  test("two", () => { throw new Error("first"); });
});
describe("after all", () => {
  afterAll(() => { throw new Error("nothing to remove"); });
  test("one", () => {});
});
`)
	wants(t, h, `all > one
  Error: no data
  at test/app.test.ts:3:31
all > two
  Error: no data
  at test/app.test.ts:3:31
each > one
  toBe: expected 2, received 1
  at test/app.test.ts:9:32
after each > one
  Error: not clean
  at test/app.test.ts:14:31
after each > two
  Error: first
  at test/app.test.ts:16:33
`)
	if len(h.failed) != 1 || h.failed[0].Message != "Error: nothing to remove" || h.failed[0].Place.Line != 19 {
		t.Errorf("of hooks after all tests: %+v", h.failed)
	}
}

func TestTestsAnswerTheRequestsOfHandlers(t *testing.T) {
	h := runTest(t, `import { expect, outbound, request, test } from "@runner/test";
const answered = async () => (await (await request.get("/fetch")).json()).answer;
test("by a prefix", async () => {
  outbound.on("https://pay.example.com/charges", async (sent) => {
    expect(await sent.json()).toEqual({ amount: 5 });
    return Response.json({ id: sent.url }, { status: 201, headers: { "x-a": "1" } });
  });
  expect(await answered()).toMatchObject({
    status: 201, headers: [["content-type", "application/json"], ["x-a", "1"]], body: btoa('{"id":"https://pay.example.com/charges?x=1"}'),
  });
  expect(outbound.requests).toHaveLength(1);
  expect(await outbound.requests[0].json()).toEqual({ amount: 5 });
});
test("by an expression, the last one first", async () => {
  expect(outbound.requests).toEqual([]);
  outbound.on(/pay\.example/g, () => new Response("one"));
  outbound.on(/pay\.example/g, () => new Response("two"));
  for (let i = 0; i < 3; i++) expect((await answered()).body).toBe(btoa("two"));
});
test("as a service that is down", async () => {
  outbound.on("https://pay.example.com", () => { throw new Error("connection refused"); });
  expect(await answered()).toMatchObject({ error: "connection refused" });
});
test("slowly", async () => {
  outbound.on("https://pay.example.com", async () => { await new Promise((done) => setTimeout(done, 10)); return new Response(null, { status: 204 }); });
  expect(await answered()).toMatchObject({ status: 204, body: "" });
});
test("waits for the request", async () => {
  const sent = new Promise<Request>((done) => outbound.on("https://pay.example.com", (request) => { done(request); return new Response(); }));
  const [one] = await Promise.all([sent, answered()]);
  expect(one.method).toBe("POST");
});
test("not at all", async () => {
  outbound.on("https://pay.example.com/charge", () => new Response());
  expect(await answered()).toMatchObject({ unexpected: true });
});
test("with a comparison that fails", async () => {
  outbound.on("https://pay.example.com/", async (sent) => {
    expect(sent.method).toBe("GET");
    return new Response();
  });
  await answered();
});
test("with no response", async () => {
  outbound.on("https://pay.example.com/", () => undefined as any);
  await answered();
});
`)
	wants(t, h, `with a comparison that fails
  toBe: expected "GET", received "POST"
  at test/app.test.ts:39:25
with no response
  outbound.on: the function for POST https://pay.example.com/charges?x=1 returned no Response: return Response.json({ … })
  at test/app.test.ts:44:1
`)
}

func TestSnapshotsAreComparedAndWritten(t *testing.T) {
	const file = "test/app.test.ts"
	dir := toolchaintest.App(t, map[string]string{file: `import { describe, expect, test } from "@runner/test";
describe("block", () => {
  test("one", () => {
    expect({ b: [1, "two", null], a: { id: 7 } }).toMatchSnapshot();
    expect("again").toMatchSnapshot();
    expect(5).toMatchSnapshot("named");
  });
});
test("other", () => { expect(1).toMatchSnapshot(); });
test("other not run", () => {});
`})
	m := buildTests(t, dir, file)
	first := &testHost{file: file}
	runTests(t, m, first)
	wants(t, first, "")
	want := map[string]string{
		"block one 1": "{\n  a: {\n    id: 7,\n  },\n  b: [\n    1,\n    \"two\",\n    null,\n  ],\n}", "block one 2": `"again"`,
		"block one: named 1": "5", "other 1": "1",
	}
	if !maps.Equal(first.end.Write, want) || len(first.end.Unused) != 0 {
		t.Errorf("wrote %q, unused %q", first.end.Write, first.end.Unused)
	}

	changed := maps.Clone(want)
	changed["block one 1"] = "{\n  a: {\n    id: 8,\n  },\n}"
	changed["block one 3"], changed["gone 1"], changed["other not run 1"] = "1", "1", "1"
	again := &testHost{file: file, snapshots: changed, run: []int{0, 1}}
	runTests(t, m, again)
	if e := again.errors["0"]; e == nil || e.Place.Line != 4 || !strings.Contains(e.Diff, "-     id: 8,\n+     id: 7,") {
		t.Errorf("the test with a changed snapshot: %+v", e)
	}
	if len(again.end.Write) != 0 || !slices.Equal(slices.Sorted(slices.Values(again.end.Unused)), []string{"gone 1"}) {
		t.Errorf("wrote %q, unused %q", again.end.Write, again.end.Unused)
	}

	update := &testHost{file: file, snapshots: changed, run: []int{0, 1}, update: true}
	runTests(t, m, update)
	if len(update.errors) != 0 || !slices.Equal(slices.Sorted(slices.Values(update.end.Unused)), []string{"block one 3", "gone 1"}) || !maps.Equal(update.end.Write, map[string]string{"block one 1": want["block one 1"]}) {
		t.Errorf("wrote %q, %v", update.end.Write, update.errors)
	}
}

func TestOneModuleHasTheTestsOfAllFiles(t *testing.T) {
	m := buildTests(t, toolchaintest.App(t, map[string]string{
		"test/a.test.ts":     "import { test } from \"@runner/test\";\nimport { both } from \"./both.ts\";\nboth();\ntest(\"a\", () => {});\n",
		"test/b.test.js":     "import { expect, test } from \"@runner/test\";\nimport { both } from \"./both.ts\";\nimport { total } from \"../handlers/orders.ts\";\nboth();\ntest(\"b\", () => { expect(total([2, 3])).toBe(5); });\n",
		"test/both.ts":       "import { test } from \"@runner/test\";\nlet runs = 0;\nexport const both = () => test(\"both\", () => { if (++runs > 1) throw new Error(\"of another run\"); });\n",
		"handlers/orders.ts": "import { ok } from \"@runner/sdk\";\nexport const total = (of: number[]) => of.reduce((a, b) => a + b);\nexport function list() { return ok([]); }\n",
	}), "test/a.test.ts", "test/b.test.js")
	for file, want := range map[string]string{"test/a.test.ts": "passed both, passed a", "test/b.test.js": "passed both, passed b"} {
		h := &testHost{file: file}
		runTests(t, m, h)
		if got := strings.Join(h.results, ", "); got != want {
			t.Errorf("%s: %s\n%s", file, got, h.failures())
		}
	}
}

func TestMistakesInTestFilesAreReportedByTheBuild(t *testing.T) {
	const file, top = "test/app.test.ts", "import { afterAll, as, beforeAll, clock, describe, expect, outbound, request, rows, test } from \"@runner/test\";\n"
	for _, row := range []struct{ text, want string }{
		{`request.get("/x");`, "test/app.test.ts:2:9: error: GET /x needs a test: call it inside of a test or of a hook such as beforeAll"},
		{`clock.now();`, "test/app.test.ts:2:7: error: clock.now() needs a test: call it inside of a test or of a hook such as beforeAll"},
		{`expect(1).toBe(1);`, "test/app.test.ts:2:11: error: expect(…).toBe needs a test: call it inside of a test or of a hook such as beforeAll"},
		{`test("a", (done: any) => done());`, "test/app.test.ts:2:1: error: TypeError: test: the function takes no parameter such as done: return a promise or use async"},
		{`test(() => {});`, `test/app.test.ts:2:1: error: TypeError: test: the second argument is a function`},
		{`describe("a", async () => {});`, "test/app.test.ts:2:1: error: TypeError: describe: the function is not async: prepare data in beforeAll"},
		{`test("a", () => {}, "soon");`, `test/app.test.ts:2:1: error: TypeError: test: "soon" is not a duration: use milliseconds, or text such as "90s", "15m" or "2d"`},
		{`test.each([])("a", () => {});`, "test/app.test.ts:2:6: error: TypeError: test.each: the table has no rows"},
		{`import { mock } from "@runner/test"; mock();`, `test/app.test.ts:2:10: error: no matching export in "@runner/test" for import "mock"`},
		{`throw new Error("not ready");`, "test/app.test.ts:2:11: error: not ready"},
	} {
		_, found, err := typescript.BuildTests(t.Context(), typescript.Options{
			Dir: toolchaintest.App(t, map[string]string{file: top + row.text + "\n"}), Files: []string{file}, CacheDir: toolchaintest.EngineCache(t), Log: func(string) {},
		})
		if err != nil || len(found) == 0 || found[0].String() != row.want {
			t.Errorf("%s\n  %v %v\n  want %s", row.text, found, err, row.want)
		}
	}
}

func TestHandlersCannotImportTheModuleOfTests(t *testing.T) {
	dir := toolchaintest.App(t, map[string]string{"handlers/a.ts": "import { test } from \"@runner/test\";\nexport const a = () => test;\n"})
	_, found, err := typescript.Build(t.Context(), typescript.Options{Dir: dir, Files: []string{"handlers/a.ts"}, CacheDir: toolchaintest.EngineCache(t), Log: func(string) {}})
	want := "handlers/a.ts:1:22: error: @runner/test is for the files of tests, test/*.test.ts: a handler cannot import it"
	if err != nil || len(found) != 1 || found[0].String() != want {
		t.Errorf("found %v %v, want %s", found, err, want)
	}
}

// BenchmarkTests builds 200 tests of an app in ten files, and runs one of these files.
func BenchmarkTests(b *testing.B) {
	sources := map[string]string{"handlers/hello.ts": helloFile}
	var files []string
	for i := range 10 {
		name := fmt.Sprintf("test/file%d.test.ts", i)
		var text strings.Builder
		text.WriteString("import { as, expect, rows, test } from \"@runner/test\";\nimport { hello } from \"../handlers/hello.ts\";\nconst partner = as.key(\"partner\");\n")
		for j := range 20 {
			fmt.Fprintf(&text, `test("number %d", async () => {
  await rows("Order").insert([{ number: "A-1", total: "5" }, { number: "A-2", total: "0" }]);
  const answer = await partner.get("/rows");
  expect(answer.status).toBe(200);
  expect(await answer.json()).toMatchObject({ rows: [{ number: "A-1" }, { number: "A-2" }] });
  expect(hello).toBeInstanceOf(Function);
});
`, j)
		}
		sources[name] = text.String()
		files = append(files, name)
	}
	dir := toolchaintest.App(b, sources)
	m := buildTests(b, dir, files...)
	b.Run("build", func(b *testing.B) {
		for b.Loop() {
			if _, _, err := typescript.BuildTests(b.Context(), typescript.Options{Dir: dir, Files: files, CacheDir: toolchaintest.EngineCache(b), Log: func(string) {}}); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("run", func(b *testing.B) {
		for b.Loop() {
			h := &testHost{file: files[0]}
			runTests(b, m, h)
			if len(h.results) != 20 || len(h.errors) > 0 {
				b.Fatal(h.results)
			}
		}
	})
}
