package toolchain_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"runner.example/develop/toolchain"
	"runner.example/develop/toolchain/toolchaintest"
	"runner.example/hostabi"
	"runner.example/hostabi/abi"
	"runner.example/internal/caller"
	"runner.example/internal/fault"
	"runner.example/runtime/sandbox"
	"runner.example/sdk/assemblyscript"
)

const scriptManifest = `{"dependencies":{"@runner/assemblyscript":"1.0.0","assemblyscript":"0.28.20","json-as":"1.6.0"}}`

// scriptHandlers are the handlers of the tests; the comment marks a place.
const scriptHandlers = `import { ApiKey, ApiKeyPage, created, fail, fetch, fetchAll, fields, ok, randomBytes, Response, RouteRequest } from "@runner/assemblyscript";
import { base64, fromBase64 } from "@runner/assemblyscript/assembly/octets";
export { renamed as fromElsewhere } from "./lib/more";

const early = Math.random();

export function dice(): Response {
  return ok(fields().set("early", early).set("now", Math.random()).set("bytes", randomBytes(16)));
}

export function boom(): Response {
  throw new Error("boom"); // the place
}

export function assertion(req: RouteRequest): Response {
  const list = [1, 2, 3];
  return ok(list[req.rawBody.length + 3]);
}

function depth(n: i32): i32 {
  return n == 0 ? 0 : depth(n - 1) + 1;
}

export function recurse(): Response {
  return ok(depth(i32.MAX_VALUE));
}

export function hoard(): Response {
  let n = 0;
  for (let i = 0; i < i32.MAX_VALUE; i++) n += new Uint8Array(1 << 20).length;
  return ok(n);
}

export function valid(req: RouteRequest): Response {
  return ok(req.isJSON);
}

export function texts(req: RouteRequest): Response {
  return ok(req.body<string[]>());
}

export function floats(req: RouteRequest): Response {
  return ok(req.body<f64[]>());
}

export function wholes(req: RouteRequest): Response {
  return ok(req.body<i64[]>());
}

@json
class Part {
  name: string = "";
  tags: string[] = [];
  next: Part | null = null;
}

export function parts(req: RouteRequest): Response {
  return ok(req.body<Part>());
}

export function unlike(req: RouteRequest): Response {
  return ok(req.body<Part[]>().length);
}

@json
class Line extends Part {
  total: f64 = 0;
  @alias("when") date: i32 = 0;
}

@json
class Bill {
  lines: Line[] = [];
  paid: bool = false;
  first: Line | null = null;
}

export function bill(req: RouteRequest): Response {
  return ok(req.body<Bill>());
}

export function notANumber(): Response {
  return ok(fields().set("n", parseFloat("abc")));
}

export function oneKey(): Response {
  return created(new ApiKey('{"id":"key_1"}'));
}

export function keyLists(): Response {
  return ok(fields().set("page", new ApiKeyPage('{"keys":[]}')).set("all", [new ApiKey('{"id":"a"}'), new ApiKey('{"id":"b"}')]));
}

export function list(req: RouteRequest): Response {
  const one = fields().set("name", req.params["id"]).set("none", changetype<string | null>(0));
  return ok([one, fields(), one]);
}

export function coded(req: RouteRequest): Response {
  return ok(base64(req.rawBody)).withHeader("x-same", base64(fromBase64(base64(req.rawBody))));
}

export function fetching(req: RouteRequest): Response {
  const origin = req.headers["x-origin"];
  const one = fetch(origin + "/one").method("POST").header("X-A", "1").body("h\u00e9").timeout(5).send();
  const all = [fetch(origin + "/a").method("PUT").body(req.rawBody), fetch("https://elsewhere.example/"), fetch(origin + "/b")];
  fetchAll(all);
  const refused = all[1].outcome.error;
  const answers = fields().set("status", one.status).set("saw", one.header("x-saw")).set("text", one.text())
    .set("bytes", base64(all[0].response.body)).set("refused", refused === null ? "" : refused.code).set("last", all[2].response.text());
  if (req.rawBody.length == 0 && refused !== null) fail(refused);
  return ok(answers);
}

let warmed = false;
export function runner_warm(): void {
  warmed = true;
}

export function warm(): Response {
  return ok(warmed);
}

export function helper(n: i32): i32 {
  return n;
}
`

const scriptElsewhere = `import { ok, Response, RouteRequest } from "@runner/assemblyscript";
export function renamed(req: RouteRequest): Response { return ok(req.params["id"]); }
`

// scriptApp creates an app with a directory of AssemblyScript and its compiler.
func scriptApp(t testing.TB, files map[string]string) string {
	t.Helper()
	if testing.Short() {
		t.Skip("compiles AssemblyScript: left out by -short")
	}
	dir := toolchaintest.App(t, files)
	modules, err := filepath.Abs("../../tests/conformance/guests/as/handlers/guest/node_modules")
	if err == nil {
		_, err = os.Stat(filepath.Join(modules, "assemblyscript", "package.json"))
	}
	if err == nil {
		err = os.Symlink(modules, filepath.Join(dir, "handlers", "script", "node_modules"))
	}
	if err != nil {
		t.Fatalf("the compiler is not there: run tools/assemblyscript.sh (%v)", err)
	}
	return dir
}

// scripts is the module of scriptHandlers, built once.
var scripts struct {
	sync.Once
	dir         string // where it was built
	wasm, debug []byte
	module      *sandbox.Module
}

func scriptModule(t testing.TB) *sandbox.Module {
	t.Helper()
	if testing.Short() {
		t.Skip("compiles AssemblyScript: left out by -short")
	}
	scripts.Do(func() {
		dir := scriptApp(t, map[string]string{
			"handlers/script/package.json": scriptManifest,
			"handlers/script/shop.ts":      scriptHandlers,
			"handlers/script/lib/more.ts":  scriptElsewhere,
			"handlers/script/shop.test.ts": "this is not a handler",
			"handlers/script/readme.ts":    scriptExample(t, 0),
			"handlers/script/files.ts":     scriptExample(t, 1),
		})
		modules, warnings, err := toolchain.Build(context.Background(), toolchain.Options{Dir: dir, Name: "n"})
		if err != nil || warnings != nil || len(modules) != 1 {
			t.Fatal(modules, warnings, err)
		}
		scripts.dir = dir
		scripts.wasm, scripts.debug = builtFiles(t, dir, "script")
		scripts.module = toolchaintest.Load(t, toolchaintest.Engine(t), filepath.Join(dir, modules[0].File))
	})
	if scripts.module == nil {
		t.Fatal("the module could not be made: see the first test that failed")
	}
	return scripts.module
}

// scriptExample returns an example with handlers of the README of the SDK.
func scriptExample(t testing.TB, n int) string {
	t.Helper()
	page, err := assemblyscript.Package.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	blocks := strings.Split(string(page), "```ts\n")
	if len(blocks) < n+2 {
		t.Fatalf("the page of the SDK shows %d handlers", len(blocks)-1)
	}
	code, _, _ := strings.Cut(blocks[n+1], "```")
	return code
}

func TestAssemblyScriptFunctionsThatReturnAResponseAreHandlers(t *testing.T) {
	m := scriptModule(t)
	var answering []string
	for _, name := range m.Handlers() {
		if !strings.HasPrefix(name, "runner_") && name != "_initialize" {
			answering = append(answering, name)
		}
	}
	slices.Sort(answering)
	want := []string{"assertion", "bill", "boom", "coded", "createOrder", "createPost", "dice", "fetching", "floats", "fromElsewhere", "hoard", "keyLists", "list", "listOrders", "notANumber", "oneKey", "parts", "photo", "recurse", "texts", "unlike", "valid", "warm", "wholes"}
	if !slices.Equal(answering, want) {
		t.Errorf("the module's handlers are %v, want %v", answering, want)
	}
	id := abi.Request{Params: []abi.Pair{{Name: []byte("id"), Value: []byte("7")}}}
	if got := toolchaintest.Ask(t, m, "fromElsewhere", id); got.Body != `"7"` {
		t.Errorf("a handler of another file answers %d %s %v", got.Status, got.Body, got.Err)
	}
	if got := toolchaintest.Ask(t, m, "warm", abi.Request{}); got.Body != `true` {
		t.Errorf("after warming up: %d %s %v", got.Status, got.Body, got.Err)
	}
}

func TestAssemblyScriptRandomnessIsNewInEveryRequest(t *testing.T) {
	m := scriptModule(t)
	type thrown struct {
		Early, Now float64
		Bytes      []byte
	}
	read := func() (d thrown) {
		got := toolchaintest.Ask(t, m, "dice", abi.Request{})
		var list struct {
			Early, Now float64
			Bytes      []int
		}
		if err := json.Unmarshal([]byte(got.Body), &list); err != nil {
			t.Fatal(got, err)
		}
		d.Early, d.Now = list.Early, list.Now
		for _, b := range list.Bytes {
			d.Bytes = append(d.Bytes, byte(b))
		}
		return d
	}
	one, two := read(), read()
	if one.Early != two.Early {
		t.Errorf("what was thrown once for all is %v and %v", one.Early, two.Early)
	}
	if one.Now == two.Now || bytes.Equal(one.Bytes, two.Bytes) || len(one.Bytes) != 16 {
		t.Errorf("two requests throw %v and %v", one, two)
	}
}

func TestAssemblyScriptErrorsAreLoggedWithTheirPlace(t *testing.T) {
	m := scriptModule(t)
	line := strings.Count(scriptHandlers[:strings.Index(scriptHandlers, "// the place")], "\n") + 1
	got := toolchaintest.Ask(t, m, "boom", abi.Request{})
	want := fmt.Sprintf("abort: boom\n    at shop.ts:%d:", line)
	if got.Status != 500 || got.Code != "handler_failed" || got.Detail != "" || !strings.Contains(got.Log, want) {
		t.Errorf("answers %d %s %q, logs %s", got.Status, got.Code, got.Detail, got.Log)
	}
	if got := toolchaintest.Ask(t, m, "assertion", abi.Request{}); got.Status != 500 || !strings.Contains(got.Log, "abort: Index out of range") {
		t.Errorf("behind the end of an array: %d %s, logs %s", got.Status, got.Code, got.Log)
	}
}

func TestAssemblyScriptRecursionAndAllocationFailOnlyTheRequest(t *testing.T) {
	m := scriptModule(t)
	for handler, code := range map[string]fault.Code{"recurse": fault.HandlerFailed, "hoard": fault.HandlerOutOfMemory} {
		got := toolchaintest.Ask(t, m, handler, abi.Request{})
		if f, ok := errors.AsType[*fault.Fault](got.Err); !ok || f.Code != code {
			t.Errorf("%s ends with %v, want %s", handler, got.Err, code)
		}
		if got := toolchaintest.Ask(t, m, "warm", abi.Request{}); got.Body != "true" {
			t.Errorf("after %s: %d %s %v", handler, got.Status, got.Body, got.Err)
		}
	}
}

// awkward are texts that readers and writers of JSON often handle wrongly.
var awkward = []string{"", "/", "\\/", `"`, "\x00", "\x1f", "\x7f", "é", "ﬀ", "😀", "\U0010ffff", "\u2028", "\ufffd", "a", "0", "u0041", "\b\f\n\r\t", "<&>", strings.Repeat("x", 300)}

// randomText joins random awkward texts.
func randomText(r *rand.Rand) string {
	var b strings.Builder
	for range r.IntN(12) {
		if r.IntN(3) == 0 {
			b.WriteRune(rune(r.IntN(0x500)))
		} else {
			b.WriteString(awkward[r.IntN(len(awkward))])
		}
	}
	return b.String()
}

// escaped writes a text as JSON with unnecessary escapes.
func escaped(r *rand.Rand, s string) string {
	var b strings.Builder
	b.WriteByte('"')
	for _, c := range s {
		switch short := strings.IndexRune("\"\\/\b\f\n\r\t", c); {
		case short >= 0 && r.IntN(2) == 0:
			b.WriteString(`\` + `"\/bfnrt`[short:short+1])
		case c > 0xffff && r.IntN(2) == 0:
			c -= 0x10000
			fmt.Fprintf(&b, `\u%04x\u%04X`, 0xd800+c>>10, 0xdc00+c&0x3ff)
		case c < 0x20 || c == '"' || c == '\\' || c < 0x10000 && r.IntN(4) == 0:
			fmt.Fprintf(&b, `\u%04x`, c)
		default:
			b.WriteRune(c)
		}
	}
	return b.String() + `"`
}

// same calls a handler that returns its body's value, and compares both values.
func same[T any](t *testing.T, m *sandbox.Module, handler, body string) bool {
	t.Helper()
	got := toolchaintest.Ask(t, m, handler, abi.Request{Body: []byte(body)})
	if !json.Valid([]byte(got.Body)) {
		t.Errorf("%s of %s answers %d %s %s %v", handler, body, got.Status, got.Body, got.Detail, got.Err)
		return false
	}
	// The language may round the last digit of a number differently.
	if diff := cmp.Diff(read[T](t, body), read[T](t, got.Body), cmpopts.EquateApprox(1e-14, 0)); diff != "" {
		t.Errorf("%s of %s answers another value (-want +got):\n%s", handler, body, diff)
		return false
	}
	return true
}

func read[T any](t *testing.T, text string) (v T) {
	t.Helper()
	if err := json.Unmarshal([]byte(text), &v); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return v
}

func TestAssemblyScriptReadsAndWritesJSONValuesUnchanged(t *testing.T) {
	m := scriptModule(t)
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	list := func(one func() string) string {
		var all []string
		for range r.IntN(8) {
			all = append(all, one())
		}
		return "[" + strings.Join(all, ", ") + "]"
	}
	type part struct {
		Name string   `json:"name"`
		Tags []string `json:"tags"`
		Next *part    `json:"next"`
	}
	text := func() string { return escaped(r, randomText(r)) }
	var parts func(deep int) string
	parts = func(deep int) string {
		members := []string{`"name" :` + text(), `"tags":` + list(text)}
		if deep > 0 {
			members = append(members, `"next": `+parts(deep-1))
		}
		if r.IntN(3) == 0 {
			members = append(members, `"unknown":[{"a":[1,{"b":null}]},"}"]`)
		}
		r.Shuffle(len(members), func(i, j int) { members[i], members[j] = members[j], members[i] })
		return "{\n" + strings.Join(members, ",\r\n\t") + "}"
	}
	rounds := 1000
	if os.Getenv("RUNNER_SOAK") != "" {
		rounds = 20_000
	}
	for range rounds {
		ok := same[[]string](t, m, "texts", list(text)) &&
			same[[]float64](t, m, "floats", list(func() string { return number(r) })) &&
			same[[]int64](t, m, "wholes", list(func() string { return fmt.Sprint(r.Int64() >> r.IntN(64) * int64(1-2*r.IntN(2))) })) &&
			same[part](t, m, "parts", parts(r.IntN(4)))
		if !ok {
			return
		}
	}
}

// number returns a finite number, in the forms that people and programs write.
func number(r *rand.Rand) string {
	switch r.IntN(4) {
	case 0:
		return fmt.Sprintf("%d.%d", r.IntN(2000)-1000, r.IntN(1000))
	case 1:
		return fmt.Sprintf("%de%d", r.IntN(20), r.IntN(40)-20)
	case 2:
		return fmt.Sprintf("%v", r.NormFloat64())
	}
	for {
		// The language loses a bit of subnormal numbers.
		if f := math.Float64frombits(r.Uint64()); math.Abs(f) > 1e-300 && math.Abs(f) <= math.MaxFloat64 {
			return fmt.Sprintf("%v", f)
		}
	}
}

func TestAssemblyScriptObjectsWithoutAClassAreEscaped(t *testing.T) {
	m := scriptModule(t)
	awkward := "\"},{\"\\\x00"
	id := abi.Request{Params: []abi.Pair{{Name: []byte("id"), Value: []byte(awkward)}}}
	name, _ := json.Marshal(awkward)
	one := `{"name":` + string(name) + `,"none":null}`
	if got := toolchaintest.Ask(t, m, "list", id); got.Body != "["+one+",{},"+one+"]" {
		t.Errorf("answers %d %s %v, want two of %s", got.Status, got.Body, got.Err, one)
	}
}

// json-as leaves a field as it was when its value is of another kind.
func TestAssemblyScriptRefusesValuesOfAnotherKind(t *testing.T) {
	m := scriptModule(t)
	for body, want := range map[string]string{
		`{"lines": [{"total": 1}, {"total": "abc"}]}`: "lines[1].total must be a number",
		`{"lines": [{"when": true}]}`:                 "lines[0].when must be a number",
		`{"lines": [{"name": 5}]}`:                    "lines[0].name must be text",
		`{"lines": {}}`:                               "lines must be a list",
		`{"first": {"total": {}}}`:                    "first.total must be a number",
		`{"first": 7}`:                                "first must be an object",
		`{"paid": "yes"}`:                             "paid must be true or false",
		`[]`:                                          "it must be an object",
	} {
		got := toolchaintest.Ask(t, m, "bill", abi.Request{Body: []byte(body)})
		if got.Status != 400 || got.Detail != "read the JSON body: "+want {
			t.Errorf("%s: %d %q, want %q", body, got.Status, got.Detail, want)
		}
	}
	const bill = `{"lines":[{"name":"a","tags":[],"next":null,"total":-1.5,"when":2}],"paid":true,"first":null}`
	if got := toolchaintest.Ask(t, m, "bill", abi.Request{Body: []byte(bill[:1] + ` "other": [{}], ` + bill[1:])}); got.Body != bill {
		t.Errorf("%d %s %s", got.Status, got.Body, got.Detail)
	}
	if got := toolchaintest.Ask(t, m, "notANumber", abi.Request{}); got.Status != 500 {
		t.Errorf("NaN: %d %s", got.Status, got.Body)
	}
}

func TestAssemblyScriptAnswersWithWhatTheClientGives(t *testing.T) {
	m := scriptModule(t)
	for handler, want := range map[string]string{"oneKey": `{"id":"key_1"}`, "keyLists": `{"page":{"keys":[]},"all":[{"id":"a"},{"id":"b"}]}`} {
		if got := toolchaintest.Ask(t, m, handler, abi.Request{}); got.Body != want {
			t.Errorf("%s: %d %s, want %s", handler, got.Status, got.Body, want)
		}
	}
}

func TestAssemblyScriptEncodesBytesAsBase64(t *testing.T) {
	m := scriptModule(t)
	for n := range 70 {
		body := make([]byte, n)
		for i := range body {
			body[i] = byte(i*89 + n*37)
		}
		want := base64.StdEncoding.EncodeToString(body)
		got := toolchaintest.Ask(t, m, "coded", abi.Request{Body: body})
		if got.Body != `"`+want+`"` || !strings.Contains(got.Headers, "x-same: "+want+"\n") {
			t.Fatalf("%x becomes %s and %q, want %s", body, got.Body, got.Headers, want)
		}
	}
}

func TestAssemblyScriptHandlersFetch(t *testing.T) {
	m := scriptModule(t)
	var meeting sync.WaitGroup // of the two concurrent requests
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		w.Header().Set("X-Saw", r.Method+" "+r.Header.Get("X-A"))
		if r.URL.Path == "/one" {
			w.WriteHeader(http.StatusTeapot)
		} else {
			meeting.Done()
			meeting.Wait()
		}
		_, _ = w.Write(append([]byte(r.URL.Path), body...))
	}))
	t.Cleanup(server.Close)
	origin, host := toolchaintest.Reaching(t, server)
	for body, want := range map[string]string{
		"\xff\x00": `200 {"status":418,"saw":"POST 1","text":"/onehé","bytes":"L2H/AA==","refused":"denied","last":"/b"}`,
		"":         `500 handler_failed`, // the cause is not shown to the client
	} {
		meeting.Add(2)
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		call := &hostabi.Call{Input: hostabi.Input{
			Context: ctx, Host: host(slog.New(slog.DiscardHandler)),
			Request: &abi.Request{Method: []byte("POST"), Path: []byte("/"), Body: []byte(body), Headers: []abi.Pair{{Name: []byte("x-origin"), Value: []byte(origin)}}},
			Caller:  caller.Caller{Kind: caller.Anonymous}, Attempt: 1,
		}}
		if err := m.Run(call, "fetching"); err != nil {
			t.Fatal(err)
		}
		if got := fmt.Sprint(call.Response.Status, " ", string(call.Response.Body), call.Response.Code); got != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
	}
}

func TestAssemblyScriptAcceptsExactlyValidJSON(t *testing.T) {
	m := scriptModule(t)
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	whole := []string{
		`{"a":[1,-2.5e+3,0,true,false,null,"\"\\\/\b\u00e9"],"b":{},"c":[]}`, `[[[{"x":[{}]}]]]`, `"text"`, `-0.0E-1`, `null`, ` [ 1 , 2 ] `,
	}
	check := func(body string) {
		want := strings.Trim(body, " \t\r\n") == "" || json.Valid([]byte(body))
		if got := toolchaintest.Ask(t, m, "valid", abi.Request{Body: []byte(body)}); got.Body != fmt.Sprint(want) {
			t.Errorf("of %q it says %s %v, want %v", body, got.Body, got.Err, want)
		}
	}
	for _, body := range whole {
		for i := range len(body) + 1 {
			check(body[:i])
		}
	}
	for range 1000 {
		body := []byte(whole[r.IntN(len(whole))])
		for range 1 + r.IntN(2) {
			i := r.IntN(len(body))
			switch r.IntN(3) {
			case 0:
				body[i] = "\x00\x1f \t\n\"\\/,:{}[]0159.eE+-tfnu"[r.IntN(27)]
			case 1:
				body = slices.Delete(body, i, i+1)
			default:
				body = slices.Insert(body, i, "[]{},:\"0e.\\"[r.IntN(11)])
			}
			if len(body) == 0 {
				break
			}
		}
		check(string(body))
	}
	deep := func(n int) string { return strings.Repeat("[", n) + strings.Repeat("]", n) }
	check(deep(64))
	if got := toolchaintest.Ask(t, m, "unlike", abi.Request{Body: []byte(deep(65))}); got.Status != 400 || got.Code != "invalid_json" || !strings.Contains(got.Detail, "64 levels deep") {
		t.Errorf("too deep: %d %s %s", got.Status, got.Code, got.Detail)
	}
	if got := toolchaintest.Ask(t, m, "unlike", abi.Request{Body: []byte(`{"a":1}`)}); got.Status != 400 || got.Code != "invalid_json" {
		t.Errorf("an object for a list: %d %s %s %v", got.Status, got.Code, got.Detail, got.Err)
	}
}

// early calls the host outside a request.
const early = `import { ok, query, Response } from "@runner/assemblyscript";
const early = query("Order").count();
export function a(): Response { return ok(early); }
`

func TestEqualAssemblyScriptSourcesMakeEqualModules(t *testing.T) {
	one := buildEarly(t)
	t.Setenv("JSON_MODE", "SWAR")
	t.Setenv("JSON_STRICT", "true")
	if two := buildEarly(t); len(one) == 0 || !bytes.Equal(one, two) {
		t.Errorf("they have %d and %d bytes and are not the same", len(one), len(two))
	}
	_, err := toolchaintest.Engine(t).Load(context.Background(), "build/script.wasm", one)
	if err == nil || !strings.Contains(err.Error(), "its last log lines: operations are for handlers") {
		t.Errorf("what asks for rows outside of handlers is loaded with %v", err)
	}
}

func buildEarly(t *testing.T) []byte {
	t.Helper()
	dir := scriptApp(t, map[string]string{"handlers/script/package.json": scriptManifest, "handlers/script/a.ts": early})
	modules, _, err := toolchain.Build(context.Background(), toolchain.Options{Dir: dir, Name: "n"})
	if err != nil {
		t.Fatal(err)
	}
	wasm, err := os.ReadFile(filepath.Join(dir, modules[0].File))
	if err != nil {
		t.Fatal(err)
	}
	return wasm
}

func TestAssemblyScriptErrorsHavePlaces(t *testing.T) {
	dir := scriptApp(t, map[string]string{
		"handlers/script/package.json": scriptManifest,
		"handlers/script/a.ts":         "import { ok, Response } from \"@runner/assemblyscript\";\nexport function a(): Response {\n  return ok(nothing);\n}\nexport function b(): Response { return 7; }\n",
		"handlers/script/c.ts":         "export function c(: void {}\n",
		"handlers/script/d.ts":         "import { ok, Response, RouteRequest } from \"@runner/assemblyscript\";\n\n@json\nclass Thing {\n  ok: bool = true;\n  count: i32 = \"x\";\n  total: f64 = nope();\n}\nexport function d(req: RouteRequest): Response { return ok(req.body<Thing>()); }\n",
	})
	for _, wants := range [][]string{
		{`^handlers/script/c\.ts:1:18: error: Identifier expected\.$`},
		{`^handlers/script/d\.ts:6:16: error: Type '~lib/string/String' is not assignable to type 'i32'\.$`, `^handlers/script/d\.ts:7:16: error: Cannot find name 'nope'\.$`,
			`^handlers/script/a\.ts:3:13: error: Cannot find name 'nothing'\.$`, `^handlers/script/a\.ts:5:40: error: Type 'i32' is not assignable to type `},
	} {
		_, _, err := toolchain.Build(context.Background(), toolchain.Options{Dir: dir, Name: "n"})
		wrong, ok := errors.AsType[*toolchain.DiagnosticsError](err)
		if !ok {
			t.Fatalf("got %v", err)
		}
		var all []string
		for _, d := range wrong.List.Sorted() {
			all = append(all, d.String())
		}
		for _, want := range wants {
			if !slices.ContainsFunc(all, regexp.MustCompile(want).MatchString) || len(wrong.Sources) == 0 {
				t.Errorf("got %q, want one like %s", all, want)
			}
		}
		// This removes the first error.
		if err := os.WriteFile(filepath.Join(dir, "handlers/script/c.ts"), []byte("export const c = 1;\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

func TestAnAssemblyScriptClassWithoutJSONHasItsPlace(t *testing.T) {
	dir := scriptApp(t, map[string]string{
		"handlers/script/package.json": scriptManifest,
		"handlers/script/a.ts":         "import { ok, Response, RouteRequest } from \"@runner/assemblyscript\";\n  class Inner { n: i32 = 0; }\n@json\nclass Thing { inner: Inner = new Inner(); }\nexport function a(req: RouteRequest): Response { return ok(req.body<Thing>()); }\n",
	})
	_, _, err := toolchain.Build(context.Background(), toolchain.Options{Dir: dir, Name: "n"})
	if err == nil || err.Error() != "handlers/script/a.ts:2:3: error: class Inner is used by a class with @json, but has no @json: write @json above it" {
		t.Errorf("got %v", err)
	}
}

func TestAnAssemblyScriptHandlerIsExportedOnce(t *testing.T) {
	dir := scriptApp(t, map[string]string{
		"handlers/script/package.json": scriptManifest,
		"handlers/script/a.ts":         scriptElsewhere,
		"handlers/script/b.ts":         scriptElsewhere,
	})
	_, _, err := toolchain.Build(context.Background(), toolchain.Options{Dir: dir, Name: "n"})
	if err == nil || !strings.Contains(err.Error(), "renamed is exported by a.ts and b.ts") {
		t.Errorf("got %v", err)
	}
}

func TestAMissingAssemblyScriptCompilerIsOneErrorLine(t *testing.T) {
	dir := toolchaintest.App(t, map[string]string{"handlers/script/package.json": scriptManifest, "handlers/script/a.ts": scriptElsewhere})
	_, _, err := toolchain.Build(context.Background(), toolchain.Options{Dir: dir, Name: "n"})
	if err == nil || err.Error() != "handlers/script: error: the package assemblyscript is missing: run `npm install` in handlers/script" {
		t.Errorf("without packages: %v", err)
	}
	t.Setenv("PATH", t.TempDir())
	_, _, err = toolchain.Build(context.Background(), toolchain.Options{Dir: dir, Name: "n"})
	if err == nil || !strings.Contains(err.Error(), "the command node is missing: install Node.js") {
		t.Errorf("without node: %v", err)
	}
}

func TestAssemblyScriptWorksWithoutTheSDKAndWithAnAsconfig(t *testing.T) {
	type row struct {
		config      string
		least, most int // bytes: more with a collector
	}
	rows := []row{{`{"options":{"runtime":"incremental"}}`, 2 << 10, 16 << 10}}
	if os.Getenv("RUNNER_SOAK") != "" { // each one compiles for seconds
		rows = append(rows, row{"{}", 1, 1 << 10})
	}
	for _, row := range rows {
		dir := scriptApp(t, map[string]string{
			"handlers/script/package.json":  `{"devDependencies":{"assemblyscript":"0.28.20"}}`,
			"handlers/script/asconfig.json": row.config,
			"handlers/script/other.ts":      "this is not an entry\n",
			"handlers/script/assembly/index.ts": `@external("runner", "response_send")
declare function send(status: i32, body: usize, length: i32): i32;
export function bare(): void { const body = String.UTF8.encode("1"); send(200, changetype<usize>(body), body.byteLength); }
`,
		})
		modules, _, err := toolchain.Build(context.Background(), toolchain.Options{Dir: dir, Name: "n"})
		if err != nil {
			t.Fatal(err)
		}
		m := toolchaintest.Load(t, toolchaintest.Engine(t), filepath.Join(dir, modules[0].File))
		defer m.Close(context.Background())
		if got := toolchaintest.Ask(t, m, "bare", abi.Request{}); got.Status != 200 || got.Body != "1" {
			t.Errorf("answers %d %s %v", got.Status, got.Body, got.Err)
		}
		if n := modules[0].Bytes; n < row.least || n > row.most {
			t.Errorf("with %s it has %d bytes, want %d to %d", row.config, n, row.least, row.most)
		}
	}
}
