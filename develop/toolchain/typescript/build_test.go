package typescript_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"runner.example/develop/toolchain"
	"runner.example/develop/toolchain/toolchaintest"
	"runner.example/hostabi"
	"runner.example/hostabi/abi"
	"runner.example/internal/caller"
	"runner.example/internal/fault"
	"runner.example/runtime/sandbox"
)

func TestMain(m *testing.M) { toolchaintest.Main(m) }

// common is the module of testdata/app, built once.
var common struct {
	sync.Once
	dir    string // where it was built
	wasm   []byte
	module *sandbox.Module
}

// appModule builds and loads testdata/app on the first call.
func appModule(t testing.TB) *sandbox.Module {
	t.Helper()
	common.Do(func() {
		common.dir = t.TempDir()
		if err := os.CopyFS(common.dir, os.DirFS("testdata/app")); err != nil {
			t.Fatal(err)
		}
		built := toolchaintest.Build(t, common.dir)
		var err error
		if common.wasm, err = os.ReadFile(filepath.Join(common.dir, built.File)); err != nil {
			t.Fatal(err)
		}
		common.module = toolchaintest.Load(t, toolchaintest.Engine(t), filepath.Join(common.dir, built.File))
	})
	if common.module == nil {
		t.Fatal("the module of testdata/app could not be made: see the first test that failed")
	}
	return common.module
}

func TestAHandlersResultIsTheResponse(t *testing.T) {
	m := appModule(t)
	for _, row := range []struct {
		handler string
		status  int
		body    string // or the detail of an error
		more    string // expected in the headers or in the log
	}{
		{"okBody", 200, `{"a":1}`, ""},
		{"okNothing", 200, `null`, ""},
		{"okText", 200, `"text"`, ""},
		{"asText", 200, "grüße\ufffd", "content-type: text/plain; charset=utf-8\n"},
		{"asPage", 410, "<h1>gone</h1>", "content-type: text/html; charset=utf-8\n"},
		{"noText", 200, "", "content-type: text/plain; charset=utf-8\n"},
		{"csv", 200, "a,b\n", "Content-Type: text/csv\n"},
		{"csvLater", 200, "a,b\n", "content-type: text/csv\n"},
		{"problem", 200, `"json"`, "content-type: application/problem+json; charset=utf-8\n"},
		{"csvText", 200, "a,b\n", "Content-Type: text/csv\n"},
		{"movedAgain", 308, "", "location: /here\nx-a: 1\nX-A: 2\n"},
		{"rowsAsCSV", 200, "[1]", "content-type: text/csv\n"},
		{"okBytes", 200, "\xff\x00\x01", "content-type: application/octet-stream"},
		{"okNoBytes", 200, "", ""},
		{"createdAt", 201, `{"id":7}`, "location: /orders/7"},
		{"nothing", 204, "", ""},
		{"moved", 308, "", "location: /there"},
		{"movedNowhere", 500, "", "failed: exception: RangeError: redirect: 200 is none: use 301, 302, 303, 307 or 308"},
		{"bad", 400, "missing field: item", ""},
		{"unknown", 401, "who are you", ""},
		{"forbids", 403, "not you", ""},
		{"lost", 404, "no such order", ""},
		{"teapot", 418, "short and stout", ""},
		{"noError", 500, "", "failed: exception: AnswerError: the status of an error must be from 400 to 599, not 200"},
		{"plain", 200, `{"plain":true}`, ""},
		{"later", 200, `[1,2,3]`, ""},
		{"laterBody", 200, `[1]`, ""},
		{"silent", 500, "", "failed: exception: Error: it returned nothing: return ok("},
		{"rejects", 500, "", "failed: exception: Error: no luck\n    at rejects (handlers/answers.ts:24:13)\n"},
		{"throwsText", 500, "", "failed: exception: thrown: a text"},
		{"throwsObject", 500, "", `failed: exception: thrown: {"why":"no reason"}`},
		{"throwsCircle", 500, "", "failed: exception: Error: round"},
		{"refusedHeader", 500, "", `failed: exception: AnswerError: set header "date": denied`},
		{"circular", 500, "", "failed: exception: TypeError: circular reference"},
		{"okBuffer", 200, "\x02\x03", ""},
		{"okView", 200, "AB", ""},
		{"okData", 200, "A", ""},
		{"okMap", 500, "", "TypeError: a Map cannot be a body: Object.fromEntries(map) is an object"},
		{"okSet", 500, "", "TypeError: a Set cannot be part of a body: [...set] is a list"},
		{"okGenerator", 500, "", "TypeError: an iterator cannot be a body"},
		{"okError", 500, "", "TypeError: an Error cannot be a body"},
		{"okAnswer", 500, "", "TypeError: an answer cannot be a body: return it as it is"},
		{"okPromise", 500, "", "TypeError: a promise cannot be part of a body: await it"},
		{"okEmpty", 200, `{"a":{},"b":[{}],"c":{},"d":"1970-01-01T00:00:00.000Z","e":{"n":1}}`, ""},
		{"okMade", 200, `{"constructor":1,"a":[]}`, ""},
		{"throwsAnswer", 404, "no such thing", ""},
		{"rejectsAnswer", 200, `{"early":true}`, "x-early: 1"},
		{"throwsTwice", 500, "", "failed: exception: thrown: an object"},
		{"throwsOdd", 500, "", "failed: exception: thrown: an error that cannot be described"},
		{"secretThrown", 404, "of my own", ""},
		{"secretInside", 500, "", "TypeError: secret was not awaited, and only its result can be part of a body: add await"},
		{"insertForgotten", 200, "1", `level=WARN msg="handler insertForgotten: an insert into Order was never awaited, so nothing was written: add await"`},
		{"changesForgotten", 200, "1", "handler changesForgotten: an update of Order was never awaited"},
		{"changesForgotten", 200, "1", "handler changesForgotten: a removal from Order was never awaited"},
		{"rowsInside", 500, "", "TypeError: a query of Order was not awaited, and only its result can be part of a body"},
		{"keyForgotten", 200, "1", "handler keyForgotten: apiKeys.revoke was never awaited, so nothing was written: add await"},
		{"big", 200, `"` + strings.Repeat("x", 100_000) + `"`, ""},
	} {
		t.Run(row.handler, func(t *testing.T) {
			got := toolchaintest.Ask(t, m, row.handler, abi.Request{})
			text := got.Body + got.Detail // a response has one of them
			if got.Err != nil || got.Status != row.status || text != row.body && row.body != "" {
				t.Errorf("answers %d %.200q (%v), want %d %.200q\n%s", got.Status, text, got.Err, row.status, row.body, got.Log)
			}
			if !strings.Contains(got.Headers+got.Log, row.more) {
				t.Errorf("%q is neither in the headers nor in the log:\n%s%s", row.more, got.Headers, got.Log)
			}
			if got.Status == 500 && got.Code != "handler_failed" {
				t.Errorf("the code is %q", got.Code)
			}
		})
	}
}

func TestTheRequestReachesTheHandlerUnchanged(t *testing.T) {
	m := appModule(t)
	long := strings.Repeat("ä", 10_000)
	got := toolchaintest.Ask(t, m, "request", abi.Request{
		Method: []byte("PUT"), Path: []byte("/x/%C3%B6"),
		Params:  []abi.Pair{{Name: []byte("id"), Value: []byte("ö")}},
		Query:   []abi.Pair{{Name: []byte("a"), Value: []byte("1")}, {Name: []byte("__proto__"), Value: []byte("p")}, {Name: []byte("a"), Value: nil}, {Name: []byte("long"), Value: []byte(long)}},
		Headers: []abi.Pair{{Name: []byte("x-a"), Value: []byte("b, c")}},
		Body:    []byte("\xff\x00\xfeabc"),
	})
	want := `{"method":"PUT","path":"/x/%C3%B6","params":{"id":"ö"},"query":{"a":"1","__proto__":"p","long":"` + long + `"},` +
		`"queryAll":{"a":["1",""],"__proto__":["p"],"long":["` + long + `"]},"headers":{"x-a":"b, c"},"raw":[255,0,254,97],"length":6}`
	if got.Status != 200 || got.Body != want {
		t.Errorf("answers %d %.1000s %v\n%s", got.Status, got.Body, got.Err, got.Log)
	}
	empty := toolchaintest.Ask(t, m, "request", abi.Request{})
	if want := `{"method":"GET","path":"/x/1","params":{},"query":{},"queryAll":{},"headers":{},"raw":[],"length":0}`; empty.Body != want {
		t.Errorf("of an empty request it sees %s\n%s", empty.Body, empty.Log)
	}
	if got := toolchaintest.Ask(t, m, "text", abi.Request{Body: []byte(`"` + long)}); got.Body != `"\"`+long+`"` {
		t.Errorf("a long body is %.100q", got.Body)
	}
	if got := toolchaintest.Ask(t, m, "context", abi.Request{}); got.Body != `{"requestId":"01request","route":"/x/:id","kind":"anonymous","roles":[],"deadline":true}` {
		t.Errorf("the context is %s\n%s", got.Body, got.Log)
	}
}

func TestABodyIsJSONOrRefused(t *testing.T) {
	m := appModule(t)
	for _, row := range []struct {
		handler, body string
		status        int
		want          string
	}{
		{"body", `{"item":"tea"}`, 200, `"tea"`},
		{"body", ``, 200, `"none"`},
		{"body", " \r\n\t", 200, `"none"`},
		{"body", `null`, 200, `"none"`},
		{"body", `{"item":`, 400, "invalid_json"},
		{"body", `{"item":"tea"} x`, 400, "invalid_json"},
		{"bodyCaught", `{`, 400, "bad_request"},
		{"bodyEchoed", nested(64), 200, nested(64)},
		{"bodyEchoed", `[` + strings.Repeat(`"[\"{[",`, 100) + `{}]`, 200, `[` + strings.Repeat(`"[\"{[",`, 100) + `{}]`},
		{"bodyEchoed", `[` + strings.Repeat(`[{}],`, 100) + `{}]`, 200, `[` + strings.Repeat(`[{}],`, 100) + `{}]`},
		{"bodyEchoed", nested(65), 400, "invalid_json"},
		{"bodyEchoed", strings.Repeat("[", 65) + strings.Repeat("]", 65), 400, "invalid_json"},
		{"bodyEchoed", strings.Repeat("[", 1<<20), 400, "invalid_json"},
		{"bodyEchoed", strings.Repeat("]", 1<<20), 400, "invalid_json"},
	} {
		got := toolchaintest.Ask(t, m, row.handler, abi.Request{Body: []byte(row.body)})
		if got.Status != row.status || got.Body+got.Code != row.want || got.Log != "" {
			t.Errorf("%s with %.40q answers %d %.40s %s, want %d %.40s\n%s", row.handler, row.body, got.Status, got.Body, got.Code, row.status, row.want, got.Log)
		}
	}
}

// nested returns objects nested that many levels deep.
func nested(levels int) string {
	return strings.Repeat(`{"level":`, levels-1) + "{}" + strings.Repeat("}", levels-1)
}

func TestABodyLargerThanTheMemoryIsOutOfMemoryAndNotInvalidJSON(t *testing.T) {
	m := appModule(t)
	for what, body := range map[string]string{
		"numbers": "[" + strings.Repeat("1,", 4<<20) + "1]",
		"objects": "[" + strings.Repeat(`{"a":1},`, 1<<20) + "1]",
		"text":    `"` + strings.Repeat("é", 3<<20) + `"`,
	} {
		got := toolchaintest.Ask(t, m, "bodyEchoed", abi.Request{Body: []byte(body)})
		if fault.CodeOf(got.Err) != fault.HandlerOutOfMemory {
			t.Errorf("8 MiB of %s answer %d %s (%v), want %s\n%s", what, got.Status, got.Code, got.Err, fault.HandlerOutOfMemory, got.Log)
		}
	}
	whole := bytes.Repeat([]byte(" "), 40<<20)
	for _, handler := range []string{"bodyEchoed", "text", "bytesCounted"} { // no memory for the bytes
		got := toolchaintest.Ask(t, m, handler, abi.Request{Body: whole})
		want := "memory limit: InternalError: out of memory\n    at " + handler + " (handlers/answers.ts:"
		if fault.CodeOf(got.Err) != fault.HandlerOutOfMemory || !strings.Contains(got.Log, want) {
			t.Errorf("40 MiB: %s answers %d %s (%v), and the log does not have %q\n%s", handler, got.Status, got.Code, got.Err, want, got.Log)
		}
	}
	if got := toolchaintest.Ask(t, m, "bytesTooMany", abi.Request{Body: whole}); got.Status != 413 || got.Log != "" {
		t.Errorf("a handler that catches the error answers %d %s (%v)\n%s", got.Status, got.Code, got.Err, got.Log)
	}
}

// A response may repeat the client's input, so the check whether a value has a JSON form
// must be linear in its depth and size. Only responses with empty objects are checked.
func TestCheckingAnAnswerIsLinear(t *testing.T) {
	m := appModule(t)
	for _, handler := range []string{"okDeep", "okWide"} {
		fuel := func(n int, last string) int64 {
			request := abi.Request{Body: fmt.Appendf(nil, `{"n":%d,"last":%s}`, n, last)}
			call := toolchaintest.NewCall(t.Context(), &request, slog.DiscardHandler)
			usage, err := m.Measure(call, handler)
			if err != nil || call.Response.Status != 200 {
				t.Fatalf("%s of %d answers %d %v", handler, n, call.Response.Status, err)
			}
			return usage.Fuel
		}
		looking := func(n int) int64 { return fuel(n, "{}") - fuel(n, `{"a":1}`) }
		half, whole := looking(1000), looking(2000)
		if ratio := float64(whole) / float64(half); ratio > 2.3 {
			t.Errorf("%s: twice as much takes %.1f times as much fuel: %d and %d", handler, ratio, half, whole)
		}
	}
}

func TestRandomnessIsNewInEveryRequest(t *testing.T) {
	m := appModule(t)
	seen := map[string]bool{}
	for range 20 {
		got := toolchaintest.Ask(t, m, "random", abi.Request{})
		var parts []json.RawMessage // the last one has four numbers of 32 bits
		if err := json.Unmarshal([]byte(got.Body), &parts); got.Status != 200 || err != nil || len(parts) != 4 {
			t.Fatalf("answers %d %s: %v", got.Status, got.Body, err)
		}
		for _, part := range parts {
			if seen[string(part)] {
				t.Errorf("%s came before", part)
			}
			seen[string(part)] = true
		}
	}
}

func TestEveryRequestStartsFromTheEvaluatedState(t *testing.T) {
	m := appModule(t)
	for range 3 {
		if got := toolchaintest.Ask(t, m, "counts", abi.Request{}); got.Body != "[1,1]" {
			t.Fatalf("a request counts %s", got.Body)
		}
	}
}

func TestInfiniteRecursionIsACatchableError(t *testing.T) {
	m := appModule(t)
	if got := toolchaintest.Ask(t, m, "deepCaught", abi.Request{}); got.Body != `["RangeError",true]` {
		t.Errorf("caught: %d %s %v", got.Status, got.Body, got.Err)
	}
	if got := toolchaintest.Ask(t, m, "deepCallbacks", abi.Request{}); got.Body != `["RangeError","RangeError","RangeError"]` {
		t.Errorf("through callbacks: %d %s %v", got.Status, got.Body, got.Err)
	}
	got := toolchaintest.Ask(t, m, "deep", abi.Request{})
	if got.Err != nil || got.Status != 500 || !strings.Contains(got.Log, "failed: exception: RangeError: Maximum call stack size exceeded\n    at down (handlers/traps.ts:14:") {
		t.Errorf("not caught: %d %v\n%s", got.Status, got.Err, got.Log)
	}
	got = toolchaintest.Ask(t, m, "depth", abi.Request{})
	if n, err := strconv.Atoi(got.Body); err != nil || n < 2500 {
		t.Errorf("a recursion goes %d calls deep (%v, %v), want 2500 at least", n, err, got.Err)
	}
}

// JavaScript's stack limit is reached before the native one, at which a handler only traps,
// for every kind of recursion.
func TestEveryKindOfRecursionIsACatchableError(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds: left out by -short")
	}
	m := appModule(t)
	var ways []string
	if err := json.Unmarshal([]byte(toolchaintest.Ask(t, m, "deepWays", abi.Request{}).Body), &ways); err != nil || len(ways) < 30 {
		t.Fatalf("%d ways: %v", len(ways), err)
	}
	for _, way := range ways {
		got := toolchaintest.Ask(t, m, "deepWays", abi.Request{Query: []abi.Pair{{Name: []byte("way"), Value: []byte(way)}}})
		switch got.Body {
		case `"RangeError"`, `"InternalError"`, `"SyntaxError"`, `"done"`:
		default:
			t.Errorf("%s ends with %d %.100q %.300v", way, got.Status, got.Body, got.Err)
		}
	}
}

// The limit of host calls refuses the operation and leaves its message, which is read at no
// cost; so are the messages of the operations before.
func TestPastTheLimitOfHostCallsTheLogHasTheMessage(t *testing.T) {
	m := appModule(t)
	const spent = "a request may call the host at most 1000 times"
	got := toolchaintest.Ask(t, m, "callsForever", abi.Request{})
	if got.Status != 500 || !strings.Contains(got.Log, "exception: limit: "+spent+"\n    at callsForever (handlers/traps.ts:") {
		t.Errorf("answers %d %v\n%s", got.Status, got.Err, got.Log)
	}
	got = toolchaintest.Ask(t, m, "callsForever", abi.Request{Query: []abi.Pair{{Name: []byte("read"), Value: []byte("1")}}})
	if !strings.Contains(got.Log, "exception: limit: the request has used its budget of host calls") {
		t.Errorf("a request that is read then: %d %v\n%s", got.Status, got.Err, got.Log)
	}
}

func TestAPromiseThatNeverSettlesFails(t *testing.T) {
	m := appModule(t)
	for _, handler := range []string{"never", "neverHalf"} {
		got := toolchaintest.Ask(t, m, handler, abi.Request{})
		if got.Status != 500 || got.Code != "handler_failed" || !strings.Contains(got.Log, "failed: exception: the promise that the handler returned can never settle\n") {
			t.Errorf("%s: %d %v\n%s", handler, got.Status, got.Err, got.Log)
		}
	}
}

func TestTimersRunWhileAHandlerWaits(t *testing.T) {
	m := appModule(t)
	if got := toolchaintest.Ask(t, m, "waits", abi.Request{}); got.Body != `[["first","second","third"],3,true]` {
		t.Errorf("answers %d %s %v\n%s", got.Status, got.Body, got.Err, got.Log)
	}
	const discarded = ": it still ran when the handler had answered, and was discarded: await it or call clear"
	for handler, want := range map[string]string{
		"answersFirst":      "level=WARN msg=\"handler answersFirst: setTimeout" + discarded + "Timeout at answersFirst (handlers/traps.ts:",
		"answersAtInterval": "level=WARN msg=\"handler answersAtInterval: setInterval" + discarded + "Interval at answersAtInterval (handlers/traps.ts:",
	} {
		if got := toolchaintest.Ask(t, m, handler, abi.Request{}); got.Body != "1" || !strings.Contains(got.Log, want) || strings.Count(got.Log, "\n") != 1 {
			t.Errorf("%s: %s %v, want one line with %q\n%s", handler, got.Body, got.Err, want, got.Log)
		}
	}
	if got := toolchaintest.Ask(t, m, "answersAtTimeout", abi.Request{}); got.Body != "1" || got.Log != "" {
		t.Errorf("AbortSignal.timeout: %s %v\n%s", got.Body, got.Err, got.Log)
	}
	if got := toolchaintest.Ask(t, m, "failsInTimer", abi.Request{}); got.Status != 500 || !strings.Contains(got.Log, "failed: exception: Error: in a timer\n    at handlers/traps.ts:") {
		t.Errorf("a timer that throws: %d %v\n%s", got.Status, got.Err, got.Log)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 100*time.Millisecond)
	defer cancel()
	if got := toolchaintest.AskWithin(t, ctx, m, "waitsTooLong", abi.Request{}); fault.CodeOf(got.Err) != fault.HandlerTimeout {
		t.Errorf("a wait of an hour: %d %v", got.Status, got.Err)
	}
}

func TestMemoryAndTimeAreLimited(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds: left out by -short")
	}
	m := appModule(t)
	if got := toolchaintest.Ask(t, m, "hoards", abi.Request{}); fault.CodeOf(got.Err) != fault.HandlerOutOfMemory || !strings.Contains(got.Log, "memory limit: InternalError: out of memory\n    at hoards (handlers/traps.ts:") {
		t.Errorf("without memory: %d %v\n%s", got.Status, got.Err, got.Log)
	}
	for _, handler := range []string{"hoardsSmall", "hoardsChain"} { // they fill the memory until even an error has none
		if got := toolchaintest.Ask(t, m, handler, abi.Request{}); fault.CodeOf(got.Err) != fault.HandlerOutOfMemory || !strings.Contains(got.Log, " at "+handler+" (handlers/traps.ts:") {
			t.Errorf("%s: %d %v\n%s", handler, got.Status, got.Err, got.Log)
		}
	}
	if got := toolchaintest.Ask(t, m, "hoardsCaught", abi.Request{}); got.Body != `"out of memory"` {
		t.Errorf("without memory, caught: %d %s %v", got.Status, got.Body, got.Err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	if got := toolchaintest.AskWithin(t, ctx, m, "spins", abi.Request{}); fault.CodeOf(got.Err) != fault.HandlerTimeout {
		t.Errorf("without an end: %d %v", got.Status, got.Err)
	}
	if got := toolchaintest.Ask(t, m, "okBody", abi.Request{}); got.Body != `{"a":1}` {
		t.Errorf("after them: %d %s %v", got.Status, got.Body, got.Err)
	}
}

// countdown is a context that ends when Err was called so often.
type countdown struct {
	context.Context
	left int
}

func (c *countdown) Err() error {
	if c.left--; c.left < 0 {
		return context.DeadlineExceeded
	}
	return nil
}

// The log of a run that the host stops has the interpreter's position: that of the last call,
// or else one near the loop.
func TestAStoppedRunIsLoggedWithItsPlace(t *testing.T) {
	appModule(t)
	source, err := os.ReadFile("testdata/app/handlers/traps.ts")
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(string(source), "\n")
	engine := func(t *testing.T) *sandbox.Module {
		// The clock advances whenever the engine reads it: a run gets as far on any machine, however busy.
		var clock atomic.Int64
		now := func() time.Duration { return time.Duration(clock.Add(int64(10 * time.Microsecond))) }
		m, err := toolchaintest.NewEngine(t, sandbox.Options{MemoryBytes: 16 << 20, Now: now, CPUTime: now}).Load(t.Context(), "app", common.wasm)
		if err != nil {
			t.Fatal(err)
		}
		return m
	}
	module := engine(t)
	for _, row := range []struct{ handler, before, mark string }{
		{"parsesForever", "at parsesForever (", "// parsing"},
		{"matchesForever", "at matchesForever (", "// matching"},
		{"loopsLater", "at ", "// looping"},
		{"sortsForever", "at ", "// comparing"},
		{"replacesForever", "at ", "// replacing"},
		{"revivesForever", "at ", "// reviving"},
		{"fromForever", "at ", "// from"},
		{"sortsEmptyForever", "at ", "// comparing without a call"},
		{"logsForever", "at logsForever (", "// logging"},
		{"spins", "at spins (", "export function spins() {"},
		{"callsInLoop", "at callsInLoop (", "// calling"},
		{"waitsForever", "at ", "// waiting"},
	} {
		line := 1 + slices.IndexFunc(lines, func(line string) bool { return strings.HasSuffix(line, row.mark) })
		// A callback without a name, or the function that has called it, on the same line.
		want, place := " limit: "+map[bool]string{true: "while it waited for setTimeout"}[row.handler == "waitsForever"]+"\n    "+row.before, fmt.Sprintf("handlers/traps.ts:%d:", line)
		missing := func(what string, module *sandbox.Module, ctx context.Context, cpu time.Duration) string {
			var log bytes.Buffer
			call := toolchaintest.NewCall(ctx, &abi.Request{}, slog.NewTextHandler(&log, nil))
			call.Host = hostabi.NewHost(hostabi.Host{Logger: call.Host.Logger, Limits: hostabi.Limits{CPU: cpu, HostCalls: 1 << 30, LogLines: 8}})
			err := module.Run(call, row.handler)
			if text := log.String() + toolchaintest.Reports(call); fault.CodeOf(err) != fault.HandlerTimeout || !strings.Contains(text, want) || !strings.Contains(text, place) {
				return fmt.Sprintf("the limit %s: %v, and the log does not have %q and %q:\n%s", what, err, want, place, text)
			}
			if strings.Contains(fmt.Sprint(err), "\n") {
				return fmt.Sprintf("the error has several lines: %q", err)
			}
			return ""
		}
		stopped := func(what string, module *sandbox.Module, ctx context.Context, cpu time.Duration) {
			t.Helper()
			if text := missing(what, module, ctx, cpu); text != "" {
				t.Error(text)
			}
		}
		if row.handler == "waitsForever" {
			synctest.Test(t, func(t *testing.T) { // computing takes no time
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				stopped("of all time", engine(t), ctx, time.Minute)
			})
			continue
		}
		// At one step of 21 this clock is over while the place is written.
		if missing("of all time", module, &countdown{Context: t.Context(), left: 2000}, time.Minute) != "" {
			stopped("of all time", module, &countdown{Context: t.Context(), left: 2010}, time.Minute)
		}
		stopped("of CPU time", module, t.Context(), 20*time.Millisecond)
	}
	if got := toolchaintest.Ask(t, module, "okBody", abi.Request{}); got.Body != `{"a":1}` {
		t.Errorf("after them: %d %s %v", got.Status, got.Body, got.Err)
	}
}

func TestAnErrorNamesItsPlaceInTheSource(t *testing.T) {
	m := appModule(t)
	got := toolchaintest.Ask(t, m, "fails", abi.Request{})
	if want := "failed: exception: TypeError: Cannot read properties of undefined (reading 'length')\n    at lengthOf (handlers/lib/length.ts:4:10)\n    at fails (handlers/traps.ts:"; !strings.Contains(got.Log, want) {
		t.Errorf("the log has no %q:\n%s", want, got.Log)
	}
	got = toolchaintest.Ask(t, m, "failsLater", abi.Request{})
	if want := "failed: exception: Error: could not measure\\nbecause of "; !strings.Contains(got.Log, want) {
		t.Errorf("the log has no %q:\n%s", want, got.Log)
	}
	if want := "because of TypeError: Cannot read properties of null (reading 'length') at handlers/lib/length.ts:4:10\n    at failsLater (handlers/traps.ts:"; !strings.Contains(got.Log, want) {
		t.Errorf("the log has no %q:\n%s", want, got.Log)
	}
	if strings.Contains(got.Body+got.Detail, "measure") {
		t.Errorf("the caller sees: %s %s", got.Body, got.Detail)
	}
}

// A handler may import large libraries. A request does not pay for them, and neither does
// one that fails, whose error is logged with its place.
func TestARequestCostsTheSameInALargeApp(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds: left out by -short")
	}
	const functions = 4000
	var many, line strings.Builder
	for i := range functions {
		fmt.Fprintf(&many, "export function f%d(given: any) { const a = () => given.one.length, b = () => given.two.length; return %d < 0 ? b() : a() + b(); }\n", i, i)
	}
	line.WriteString("export const line = { down: (n) => n ? line.down(n - 1) + 1 : line.gone.deep")
	for i := range functions {
		fmt.Fprintf(&line, ",f%d:(a,b)=>a?b.x+a.y:line.f1(b,a)", i)
	}
	line.WriteString(" };\n")
	dir := toolchaintest.App(t, map[string]string{
		"handlers/lib/many.ts": many.String(),
		"handlers/lib/line.js": line.String(),
		"handlers/a.ts": `import * as many from "./lib/many.ts";
import { line } from "./lib/line.js";
import { ok, type RouteRequest } from "@runner/sdk";
export const deep = () => ok(line.down(20));
const given: any = { "/one": { two: [] }, "/two": { one: [] }, "/none": { one: [], two: [] } };
export const count = (req: RouteRequest) => ok((many as any)[req.text()](given[req.path]));
`,
	})
	modules, _, err := toolchain.Build(t.Context(), toolchain.Options{Dir: dir, Name: "app", CacheDir: toolchaintest.EngineCache(t)})
	if err != nil {
		t.Fatal(err)
	}
	engine := toolchaintest.NewEngine(t, sandbox.Options{})
	m := toolchaintest.Load(t, engine, filepath.Join(dir, modules[0].File))
	measure := func(handler, path, body string, status int, most int64) (log string) {
		t.Helper()
		var lines bytes.Buffer
		call := &hostabi.Call{Input: hostabi.Input{
			Context: t.Context(), Attempt: 1,
			Host:    hostabi.NewHost(hostabi.Host{Logger: slog.New(slog.NewTextHandler(&lines, nil)), Limits: toolchaintest.Patient}),
			Request: &abi.Request{ID: "01request", Route: "/x", Method: []byte("POST"), Path: []byte(path), Body: []byte(body)},
			Caller:  caller.Caller{Kind: caller.Anonymous},
		}}
		usage, err := m.Measure(call, handler)
		if err != nil || call.Response.Status != status {
			t.Fatal(handler, path, body, call.Response.Status, err)
		}
		if usage.Fuel > most {
			t.Errorf("%s %s %s: %d units of fuel, want at most %d", handler, path, body, usage.Fuel, most)
		}
		return lines.String() + toolchaintest.Reports(call)
	}
	for _, n := range []int{0, 1, functions / 2, functions - 1} {
		name := fmt.Sprint("f", n)
		measure("count", "/none", name, 200, 200_000)
		for path, column := range map[string]int{"/one": 50, "/two": 78} { // in a name of one digit
			log := measure("count", path, name, 500, 2_000_000)
			if want := fmt.Sprintf(" (handlers/lib/many.ts:%d:%d)", n+1, column+len(name)-len("f0")); !strings.Contains(log, want) {
				t.Errorf("%s %s: the log has no %q:\n%s", name, path, want, log)
			}
		}
	}
	log := measure("deep", "/x", "", 500, 15_000_000)
	if want := "    at down (handlers/lib/line.js:1:63)\n    at down (handlers/lib/line.js:1:54)\n    at down "; !strings.Contains(log, want) {
		t.Errorf("the log has no %q:\n%s", want, log)
	}
}

func TestAnUnhandledRejectionIsLogged(t *testing.T) {
	got := toolchaintest.Ask(t, appModule(t), "forgets", abi.Request{})
	want := "uncaught: unhandled rejection: Error: could not measure\\nbecause of "
	if got.Body != `"fine"` || strings.Count(got.Log, want) != 1 {
		t.Errorf("answers %d %s, and the log is\n%s", got.Status, got.Body, got.Log)
	}
	if got := toolchaintest.Ask(t, appModule(t), "rejects", abi.Request{}); strings.Contains(got.Log, "nothing waits") {
		t.Errorf("one that was answered for is logged too:\n%s", got.Log)
	}
}

func TestConsoleWritesToTheLog(t *testing.T) {
	got := toolchaintest.Ask(t, appModule(t), "logs", abi.Request{})
	for _, want := range []string{
		"level=DEBUG msg=debug ",
		`level=INFO msg="text 1 null undefined {a: [1, \"x\"], \"b-c\": Map {1 => {d: 2n}}} 1970-01-01T00:00:00.000Z /x/g"`,
		`level=WARN msg="RangeError: too far at logs (handlers/traps.ts:`,
		`level=ERROR msg="{self: [circular]} [Set {1}] [function without a name] Symbol(s) Uint8Array(3)"`,
	} {
		if !strings.Contains(got.Log, want) {
			t.Errorf("the log has no %s:\n%s", want, got.Log)
		}
	}
}

func TestConsoleHasTheUsualMethods(t *testing.T) {
	got := toolchaintest.Ask(t, appModule(t), "logsMore", abi.Request{})
	for _, want := range []string{
		`msg="Ann is 41 years and 3 days, {a: 1} % %s" `, `msg="100% 1 %s"`, `msg="[what throws when it is looked at]"`,
		`msg="[what throws when it is looked at] {} {toString: 1}"`, `msg="[{a: 1}]"`, `msg="outer 1"`, `level=WARN msg="  inner"`, `msg="    innermost"`, `msg=outside`,
		`msg="default: 1"`, `msg="default: 2"`, `msg="x: 1"`, ` ms 7"`, `level=WARN msg="timer never does not exist: start it with console.time"`,
		`level=ERROR msg="assertion failed: because 1"`, `level=DEBUG msg="trace: here at logsMore (handlers/traps.ts:`, `msg="" `,
	} {
		if !strings.Contains(got.Log, want) {
			t.Errorf("the log has no %s", want)
		}
	}
	if got.Status != 200 || strings.Contains(got.Log, "not this") || t.Failed() {
		t.Errorf("answers %d %v\n%s", got.Status, got.Err, got.Log)
	}
}

// Details of a failed operation other than on rows and keys are only for the log.
func TestAnUncaughtOperationErrorIsLoggedWithItsPlace(t *testing.T) {
	m := appModule(t)
	got := toolchaintest.Ask(t, m, "secretUncaught", abi.Request{})
	if got.Status != 500 || got.Code != "handler_failed" || got.Detail != "" {
		t.Errorf("answers %d %s %q", got.Status, got.Code, got.Detail)
	}
	if !strings.Contains(got.Log, "exception: denied: ") || !strings.Contains(got.Log, " at secretUncaught (handlers/answers.ts:") {
		t.Errorf("the log is\n%s", got.Log)
	}
	if got := toolchaintest.Ask(t, m, "secretHandedOn", abi.Request{}); !strings.Contains(got.Log, " at secretHandedOn (handlers/answers.ts:") {
		t.Errorf("handed on, the log is\n%s", got.Log)
	}
	if got := toolchaintest.Ask(t, m, "secretCaught", abi.Request{}); got.Body != `["denied","secret",true]` || got.Log != "" {
		t.Errorf("caught: %d %s\n%s", got.Status, got.Body, got.Log)
	}
	if got := toolchaintest.Ask(t, m, "keyForgottenFails", abi.Request{}); got.Status != 500 || strings.Contains(got.Log, "put await") {
		t.Errorf("what is left because of an error is complained of: %d\n%s", got.Status, got.Log)
	}
}

func TestAModuleWithoutIntlHasNoMethodsThatNeedIt(t *testing.T) {
	m := appModule(t)
	for what, want := range map[string]string{
		"number": "toLocaleString needs Intl, which this module has not", "date": "toLocaleString needs Intl", "big": "toLocaleString needs Intl",
		"compare": "localeCompare has no locale and options in this module", "upper": "toLocaleUpperCase does not support a locale",
	} {
		got := toolchaintest.Ask(t, m, "language", abi.Request{Query: []abi.Pair{{Name: []byte("what"), Value: []byte(what)}}})
		if !strings.HasPrefix(got.Body, `"TypeError: `) || !strings.Contains(got.Body, want) {
			t.Errorf("%s answers %d %s", what, got.Status, got.Body)
		}
	}
	if got := toolchaintest.Ask(t, m, "language", abi.Request{Query: []abi.Pair{{Name: []byte("what"), Value: []byte("plain")}}}); got.Body != `[-1,1,"I","undefined"]` {
		t.Errorf("without a language it answers %d %s", got.Status, got.Body)
	}
}

func TestTheUsualGlobalsExist(t *testing.T) {
	if got := toolchaintest.Ask(t, appModule(t), "platform", abi.Request{}); got.Status != 200 || got.Body != "[]" {
		t.Errorf("what, what it is, what it should be: %d %s %v\n%s", got.Status, got.Body, got.Err, got.Log)
	}
}

func TestEqualSourcesMakeEqualModules(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds: left out by -short")
	}
	appModule(t)
	first := common.wasm
	dir := t.TempDir() // another directory, another time
	if err := os.CopyFS(dir, os.DirFS("testdata/app")); err != nil {
		t.Fatal(err)
	}
	again := func(cache string) {
		t.Helper()
		modules, _, err := toolchain.Build(context.Background(), toolchain.Options{Dir: dir, Name: "app", CacheDir: cache})
		if err != nil {
			t.Fatal(err)
		}
		if second, err := os.ReadFile(filepath.Join(dir, modules[0].File)); err != nil || !bytes.Equal(first, second) {
			t.Errorf("with the cache %q, modules of %d and %d bytes differ, %v", cache, len(first), len(second), err)
		}
	}
	again("")
	cache := filepath.Join(t.TempDir(), "cache") // with the engine compiled and cached
	again(cache)
	again(cache)
	if kept, err := os.ReadDir(cache); err != nil || len(kept) == 0 {
		t.Errorf("nothing is kept: %v", err)
	}
	if bytes.Contains(first, []byte(common.dir)) {
		t.Error("the module names the directory that it was built in")
	}
}

func TestAModuleExportsTheFunctionsOfItsFiles(t *testing.T) {
	dir := toolchaintest.App(t, map[string]string{
		"handlers/a.ts":      "export const one = () => 1;\nexport const number = 5;\nexport default () => 1;\nexport function _hidden() {}\nexport function runner_x() {}\nexport function both() {}\n",
		"handlers/b.js":      "export async function two() {}\nexport function memory() {}\nexport function both() {}\n",
		"handlers/c.d.ts":    "export function three(): void;\n",
		"handlers/d.test.ts": "throw new Error('a test is not a handler');\n",
		"handlers/lib/e.ts":  "export function four() {}\n",
	})
	modules, warnings, err := toolchain.Build(context.Background(), toolchain.Options{Dir: dir, Name: "n", CacheDir: toolchaintest.EngineCache(t), Handlers: []string{"one", "two"}})
	if err != nil || warnings == nil || len(warnings.List) != 1 || !strings.HasPrefix(warnings.Error(), "handlers/lib: warning: no handler imports these files") {
		t.Fatal(warnings, err)
	}
	if got := strings.Join(modules[0].Handlers, " "); got != "one two" {
		t.Errorf("the handlers are %s", got)
	}
	exports, err := toolchain.Exports(dir)
	if got := strings.Join(exports, " "); err != nil || got != "one two" {
		t.Errorf("the module exports %s, %v", got, err)
	}
	if modules[0].File != "build/n.wasm" || strings.Join(modules[0].Sources, " ") != "handlers/a.ts handlers/b.js" {
		t.Errorf("%s of %v", modules[0].File, modules[0].Sources)
	}
}

func TestAPackagesBrowserFormIsPreferred(t *testing.T) {
	dir := toolchaintest.App(t, map[string]string{
		"handlers/a.ts":                   "import { where } from \"forms\";\nimport { old } from \"older\";\nimport { mapped } from \"mapped\";\nexport const a = () => where + old + mapped;\n",
		"node_modules/forms/package.json": `{"name": "forms", "type": "module", "exports": {".": {"node": "./node.js", "browser": "./browser.js", "default": "./node.js"}}}`,
		"node_modules/forms/node.js":      "import { webcrypto } from \"node:crypto\";\nexport const where = webcrypto;\n",
		"node_modules/forms/browser.js":   "export const where = \"browser\";\n",
		// A browser map replaces files and modules, or leaves them out.
		"node_modules/mapped/package.json": `{"name": "mapped", "main": "index.js", "browser": {"./node.js": "./web.js", "crypto": false, "stream": "./stream.js"}}`,
		"node_modules/mapped/index.js":     "const { form } = require(\"./node.js\");\nexports.mapped = form + Object.keys(require(\"crypto\")).length + require(\"stream\");\n",
		"node_modules/mapped/node.js":      "exports.form = require(\"fs\");\n",
		"node_modules/mapped/web.js":       "exports.form = \"web\";\n",
		"node_modules/mapped/stream.js":    "module.exports = \"stream\";\n",
		"node_modules/older/package.json":  `{"name": "older", "main": "index.js"}`,
		"node_modules/older/index.js":      "exports.old = process.env.NODE_ENV;\n",
	})
	modules, warnings, err := toolchain.Build(context.Background(), toolchain.Options{Dir: dir, Name: "n", CacheDir: toolchaintest.EngineCache(t)})
	if err != nil || warnings != nil {
		t.Fatal(warnings, err)
	}
	if got := strings.Join(modules[0].Sources, " "); got != "handlers/a.ts node_modules/forms/browser.js node_modules/mapped/index.js node_modules/mapped/stream.js node_modules/mapped/web.js node_modules/older/index.js" {
		t.Errorf("it is made of %s", got)
	}
	m := toolchaintest.Load(t, toolchaintest.Engine(t), filepath.Join(dir, modules[0].File))
	defer m.Close(context.Background())
	if got := toolchaintest.Ask(t, m, "a", abi.Request{}); got.Body != `"browserproductionweb0stream"` {
		t.Errorf("answers %d %s\n%s", got.Status, got.Body, got.Log)
	}
}

// Packages such as hono import modules of one platform by a name that the bundler does not see.
func TestAComputedImportInAPackageFailsWhenItRuns(t *testing.T) {
	dir := toolchaintest.App(t, map[string]string{
		"handlers/a.ts":                  "import { load } from \"lazy\";\nexport const a = () => load(\"cloudflare:workers\").catch((e: Error) => e.message);\n",
		"node_modules/lazy/package.json": `{"name": "lazy", "type": "module", "main": "index.js"}`,
		"node_modules/lazy/index.js":     "export const load = (name) => import(name);\n",
	})
	modules, warnings, err := toolchain.Build(context.Background(), toolchain.Options{Dir: dir, Name: "n", CacheDir: toolchaintest.EngineCache(t)})
	if err != nil || warnings != nil {
		t.Fatal(warnings, err)
	}
	m := toolchaintest.Load(t, toolchaintest.Engine(t), filepath.Join(dir, modules[0].File))
	defer m.Close(context.Background())
	if got := toolchaintest.Ask(t, m, "a", abi.Request{}); got.Body != `"could not load module 'cloudflare:workers'"` {
		t.Errorf("answers %d %s\n%s", got.Status, got.Body, got.Log)
	}
}

func TestFilesOfTextAreImportedAsStrings(t *testing.T) {
	files := map[string]string{"handlers/a.ts": "const wrong: unknown[] = [];\nexport const a = () => 1;\nif (wrong.length > 0) throw new Error(wrong.join(\" \"));\n", "handlers/x.conf": "<é>\n"}
	for i, kind := range []string{"txt", "md", "html", "sql", "csv", "xml", "svg", "graphql", `conf" with { type: "text`} {
		close := `";`
		if strings.HasPrefix(kind, "conf") {
			close = `" };`
		} else {
			files["handlers/x."+kind] = "<é>\n"
		}
		text := fmt.Sprintf("import text%d from \"./x.%s%s\n", i, kind, close)
		files["handlers/a.ts"] = text + strings.Replace(files["handlers/a.ts"], "[];", fmt.Sprintf("[];\nif (text%d !== \"<é>\\n\") wrong.push(text%[1]d);", i), 1)
	}
	_, warnings, err := toolchain.Build(context.Background(), toolchain.Options{Dir: toolchaintest.App(t, files), Name: "n", CacheDir: toolchaintest.EngineCache(t)})
	if err != nil || warnings != nil {
		t.Errorf("%v %v of\n%s", warnings, err, files["handlers/a.ts"])
	}
}

func TestErrorsHavePlaces(t *testing.T) {
	for _, row := range []struct {
		name, source string
		want         string // the beginning of the only entry
	}{
		{"syntax", "export const a = () => {\n  const = 1;\n}\n", `handlers/a.ts:2:9: error: expected identifier but found "="`},
		{"a missing file", "import { x } from \"./nowhere.ts\";\nexport const a = x;\n", `handlers/a.ts:1:19: error: file "./nowhere.ts" does not exist`},
		{"a missing module", "import x from \"left-pad\";\nexport const a = x;\n", `handlers/a.ts:1:15: error: module "left-pad" not found: install it`},
		{"the client", "import { client } from \"@runner/client\";\nexport const a = () => client;\n", "handlers/a.ts:1:24: error: \"@runner/client\" is not a package: `runner generate client --out client.mts`"},
		{"another package of ours", "import { x } from \"@runner/db\";\nexport const a = () => x;\n", `handlers/a.ts:1:19: error: "@runner/db" is not a package: handlers import "@runner/sdk"`},
		{"@expose", "@expose\nexport function a() { return 1; }\n", `handlers/a.ts:1:1: error: @expose belongs in the schema: functions (auth: …) { @expose name() }`},
		{"a decorator", "@exposed() export const a = () => 1;\n", `handlers/a.ts:1:1: error: a decorator is allowed only on classes`},
		{"a part of Node.js", "import { readFileSync } from \"fs\";\nexport const a = () => readFileSync;\n", `handlers/a.ts:1:30: error: "fs" is a part of Node.js that handlers do not have: keep data in entities`},
		{"a part of Node.js for calls", "import http from \"node:https\";\nexport const a = () => http;\n", `handlers/a.ts:1:18: error: "node:https" is a part of Node.js that handlers do not have: call other servers with fetch`},
		{"an unknown part of Node.js", "import x from \"node:bogus\";\nexport const a = () => x;\n", `handlers/a.ts:1:15: error: "node:bogus" is a part of Node.js that handlers do not have: use what the SDK`},
		{"a package with the name of a part of Node.js", "import x from \"sqlite\";\nexport const a = () => x;\n", `handlers/a.ts:1:15: error: module "sqlite" not found: install it`},
		{"no such helper", "import { okay } from \"@runner/sdk\";\nexport const a = () => okay();\n", `handlers/a.ts:1:10: error: no matching export in "@runner/sdk" for import "okay"`},
		{"await at the top", "export const a = await 1;\n", `handlers/a.ts:1:18: error: await outside a function`},
		{"thrown", "export const a = () => 1;\n\nnull.x;\n", `handlers/a.ts:3:`},
		{"an operation at the top", "import { query } from \"@runner/sdk\";\nexport const a = () => 1;\nquery(\"Order\").then();\n", `handlers/a.ts:3:16: error: query belongs to a request, and there is none while the module is built: call it inside of a handler`},
		{"an operation at the top, caught", "import { getContext } from \"@runner/sdk\";\nexport const a = () => 1;\nfunction key() {\n  try { return getContext().auth.keyId; } catch { return null; }\n}\nconst k = key();\n", `handlers/a.ts:4:16: error: getContext belongs to a request`},
		{"an operation at the top, later", "import { query } from \"@runner/sdk\";\nexport const a = () => 1;\n(async () => {\n  await null;\n  await query(\"Order\");\n})();\n", `handlers/a.ts:`},
		{"randomness at the top", "export const a = () => 1;\nconst id = crypto.randomUUID();\n", `handlers/a.ts:2:19: error: crypto.randomUUID belongs to a request`},
		{"an unhandled rejection", "export const a = () => 1;\nconst start = async () => { await null; throw new TypeError(\"no start\"); };\nstart();\n", `handlers/a.ts:2:51: error: TypeError: no start`},
		{"an object that throws when it is printed", "export const a = () => 1;\nthrow { toString() { throw 1; }, get name() { throw 2; }, toJSON() { throw 3; } };\n", `handlers/a.ts: error: thrown: an object`},
		{"a style", "import \"./a.css\";\nexport const a = () => 1;\n", `handlers/a.ts:1:8: error: a file .css cannot be imported`},
		{"a style of a module", "export const a = () => 1;\nimport * as x from \"./b.module.css\";\na(x);\n", `handlers/a.ts:2:20: error: a file .module.css cannot be imported`},
		{"a computed import", "export const a = (x: string) =>\n  import(x);\n", `handlers/a.ts:2:3: error: the imported module must be known at build time`},
		{"other letters than UTF-8", "export const a = 1;\nexport const b = \"ä\xff\";\n", `handlers/a.ts:2:20: error: the file is not valid UTF-8: convert it`},
		{"after other letters", "/* äöü */ const x = \"ß\" const\n", `handlers/a.ts:1:25: error: expected ";" but found "const"`},
	} {
		t.Run(row.name, func(t *testing.T) {
			dir := toolchaintest.App(t, map[string]string{"handlers/a.ts": row.source, "handlers/a.css": "a { color: red }", "handlers/b.module.css": "a { color: red }"})
			_, _, err := toolchain.Build(context.Background(), toolchain.Options{Dir: dir, Name: "n", CacheDir: toolchaintest.EngineCache(t)})
			wrong, ok := errors.AsType[*toolchain.DiagnosticsError](err)
			if !ok || len(wrong.List) != 1 || !strings.HasPrefix(wrong.List[0].String(), row.want) {
				t.Fatalf("got %v, want %s", err, row.want)
			}
			if len(wrong.Sources) != 1 || string(wrong.Sources[0].Text) != row.source {
				t.Errorf("the source is %q", wrong.Sources)
			}
			if _, err := os.Stat(filepath.Join(dir, "build", "n.wasm")); !errors.Is(err, os.ErrNotExist) {
				t.Errorf("there is a module: %v", err)
			}
		})
	}
}

func TestAllErrorsAreReportedAtOnce(t *testing.T) {
	dir := toolchaintest.App(t, map[string]string{"handlers/a.ts": "const = 1;\n", "handlers/b.ts": "import \"./x\";\n", "handlers/c.ts": "let let;\n"})
	_, _, err := toolchain.Build(context.Background(), toolchain.Options{Dir: dir, Name: "n", CacheDir: toolchaintest.EngineCache(t)})
	if wrong, ok := errors.AsType[*toolchain.DiagnosticsError](err); !ok || len(wrong.List) < 3 || len(wrong.Sources) != 3 {
		t.Errorf("got %v", err)
	}
}

func TestExportsThatCannotBeCalledAreRefused(t *testing.T) {
	for source, want := range map[string]string{
		"export class h {}\n":                                    `handlers/a.ts:1:14: error: h is a class, and a handler must be a function: export function h(req)`,
		"\nexport function* h() { yield 1; }\n":                  `handlers/a.ts:2:18: error: h is a generator, and`,
		"export async function* h() { yield 1; }\n":              `handlers/a.ts:1:24: error: h is a generator, and`,
		"export default function h() {}\n":                       `handlers/a.ts:1:25: error: h is a default export, and a handler is exported by its name: remove the word default`,
		"async function h() {}\n/* ä */ export { h as default }": `handlers/a.ts:2:18: error: h is a default export, and`,
	} {
		dir := toolchaintest.App(t, map[string]string{"handlers/a.ts": source})
		_, _, err := toolchain.Build(context.Background(), toolchain.Options{Dir: dir, Name: "n", CacheDir: toolchaintest.EngineCache(t), Handlers: []string{"h"}})
		if wrong, ok := errors.AsType[*toolchain.DiagnosticsError](err); !ok || len(wrong.List) != 1 || !strings.HasPrefix(wrong.List[0].String(), want) {
			t.Errorf("of %q: %v, want %s", source, err, want)
		}
	}
	dir := toolchaintest.App(t, map[string]string{"handlers/a.ts": "export class Order {}\nexport default function h() {}\nexport { h };\n"})
	modules, _, err := toolchain.Build(context.Background(), toolchain.Options{Dir: dir, Name: "n", CacheDir: toolchaintest.EngineCache(t), Handlers: []string{"h"}})
	if err != nil || len(modules) != 1 || strings.Join(modules[0].Handlers, " ") != "h" {
		t.Errorf("a class beside a handler: %v, %v", modules, err)
	}
}

func TestAHandlerIsExportedOnce(t *testing.T) {
	dir := toolchaintest.App(t, map[string]string{"handlers/a.ts": "export const both = () => 1;\n", "handlers/b.ts": "export const both = () => 2;\n"})
	_, _, err := toolchain.Build(context.Background(), toolchain.Options{Dir: dir, Name: "n", CacheDir: toolchaintest.EngineCache(t), Handlers: []string{"both"}})
	if want := "handlers/a.ts: error: both is exported by handlers/b.ts too"; err == nil || !strings.HasPrefix(err.Error(), want) {
		t.Errorf("got %v, want %s", err, want)
	}
}

// Code outside functions has a fixed clock, so that equal sources make equal modules; a
// handler has the real one.
func TestTimeOutsideHandlersIsFixed(t *testing.T) {
	if testing.Short() {
		t.Skip("compiles every language: left out by -short")
	}
	const source = "const born = Date.now();\nexport const times = () => [born, Date.now()];\n"
	answers := map[string]bool{}
	for range 2 {
		dir := toolchaintest.App(t, map[string]string{"handlers/a.ts": source})
		modules, _, err := toolchain.Build(t.Context(), toolchain.Options{Dir: dir, Name: "n", CacheDir: toolchaintest.EngineCache(t)})
		if err != nil {
			t.Fatal(err)
		}
		m := toolchaintest.Load(t, toolchaintest.Engine(t), filepath.Join(dir, modules[0].File))
		got := toolchaintest.Ask(t, m, "times", abi.Request{})
		if err := m.Close(context.Background()); err != nil {
			t.Error(err)
		}
		born, now, ok := strings.Cut(strings.Trim(got.Body, "[]"), ",")
		if !ok {
			t.Fatalf("answers %d %s %v", got.Status, got.Body, got.Err)
		}
		answers[born] = true
		ms, err := strconv.ParseInt(now, 10, 64)
		if age := time.Since(time.UnixMilli(ms)); err != nil || age < 0 || age > time.Minute || born == now {
			t.Errorf("a handler's time is %s, and the module's %s", now, born)
		}
	}
	if len(answers) != 1 {
		t.Errorf("two builds were made at %v", answers)
	}
}

func TestRandomNumbersAndTheTimeAtTheTopLevelAreWarnings(t *testing.T) {
	dir := toolchaintest.App(t, map[string]string{"handlers/a.ts": `const salt =
  Math.random();
const salts = [1, 2].map(() => Math.random());
const started = Date.now();
const also = new Date();
const fixed = [Date.UTC(2026, 1), new Date(2026, 1), new Date("2026-01-01")];
export const a = () => [salt, salts, started, also, fixed, Date.now(), Math.random()];
`})
	modules, warnings, err := toolchain.Build(context.Background(), toolchain.Options{Dir: dir, Name: "n", CacheDir: toolchaintest.EngineCache(t)})
	if err != nil || len(modules) != 1 || warnings == nil {
		t.Fatalf("got %v, %v", warnings, err)
	}
	var places []string
	for _, d := range warnings.List.Sorted() {
		what, _, _ := strings.Cut(d.String(), ": its numbers")
		what, _, _ = strings.Cut(what, ": this time")
		places = append(places, what)
	}
	want := []string{
		"handlers/a.ts:2:8: warning: Math.random", "handlers/a.ts:3:37: warning: Math.random",
		"handlers/a.ts:4:22: warning: Date", "handlers/a.ts:5:18: warning: Date",
	}
	if !slices.Equal(places, want) {
		t.Errorf("warnings at %q, want %q", places, want)
	}
}

func TestLogLinesOfTheEvaluationAreReported(t *testing.T) {
	dir := toolchaintest.App(t, map[string]string{"handlers/a.ts": "console.log(\"built\", { at: new Date(0).getFullYear() });\nconsole.log(\"\\x1b[31m\\nrunner: error: ä\\t\\u202e\");\nexport const a = () => 1;\n"})
	var reported []string
	_, _, err := toolchain.Build(context.Background(), toolchain.Options{Dir: dir, Name: "n", CacheDir: toolchaintest.EngineCache(t), Log: func(text string) { reported = append(reported, text) }})
	if err != nil || strings.Join(reported, "|") != `built {at: 1970}|\x1b[31m\nrunner: error: ä`+"\t"+`\u202e` {
		t.Errorf("reported %q, %v", reported, err)
	}
}

// overdue is a context that a test ends.
type overdue struct {
	context.Context
	over chan struct{}
}

func (o *overdue) Done() <-chan struct{} { return o.over }

func (o *overdue) Err() error {
	select {
	case <-o.over:
		return context.DeadlineExceeded
	default:
		return nil
	}
}

func TestEndlessEvaluationIsStopped(t *testing.T) {
	dir := toolchaintest.App(t, map[string]string{"handlers/a.ts": "export const a = () => 1;\nconsole.log(\"begun\");\nfor (;;);\n"})
	late := &overdue{context.Background(), make(chan struct{})}
	_, _, err := toolchain.Build(late, toolchain.Options{Dir: dir, Name: "n", CacheDir: toolchaintest.EngineCache(t), Log: func(string) { close(late.over) }})
	if wrong, ok := errors.AsType[*toolchain.DiagnosticsError](err); !ok || !strings.Contains(wrong.Error(), "without ending") {
		t.Errorf("got %v", err)
	}
	ctx, stop := context.WithCancel(context.Background())
	stop()
	if _, _, err := toolchain.Build(ctx, toolchain.Options{Dir: dir, Name: "n", CacheDir: toolchaintest.EngineCache(t)}); !errors.Is(err, context.Canceled) {
		t.Errorf("interrupted: %v", err)
	}
}

// The compiled code of a module does not depend on the handlers' files: the next build, or
// another app, finds it in the cache.
func TestTypeScriptModulesShareTheirCode(t *testing.T) {
	cache := filepath.Join(t.TempDir(), "cache")
	engine, err := sandbox.New(context.Background(), sandbox.Options{CacheDir: cache})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = engine.Close(context.Background()) })
	files := func() (n int) {
		_ = filepath.WalkDir(cache, func(_ string, d os.DirEntry, err error) error {
			if err == nil && d.Type().IsRegular() {
				n++
			}
			return nil
		})
		return n
	}
	one := func(text string) (*sandbox.Module, time.Duration) {
		dir := toolchaintest.App(t, map[string]string{"handlers/h.ts": text})
		modules, _, err := toolchain.Build(context.Background(), toolchain.Options{Dir: dir, Name: "app", CacheDir: toolchaintest.EngineCache(t)})
		if err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		return toolchaintest.Load(t, engine, filepath.Join(dir, modules[0].File)), time.Since(began)
	}
	first, cold := one(`export const a = () => ({ n: 1 });`)
	before := files()
	second, warm := one("const table = Array.from({ length: 20_000 }, (_, i) => `entry ${i}`);\nexport const a = () => ({ n: 2 });\nexport const b = () => table[19_999];\n")
	if now := files(); before == 0 || now != before {
		t.Errorf("the second module left %d files, the first %d", now, before)
	}
	t.Logf("loading the first took %s, the second %s", cold, warm)
	for _, row := range []struct {
		module        *sandbox.Module
		handler, want string
	}{{first, "a", `{"n":1}`}, {second, "a", `{"n":2}`}, {second, "b", `"entry 19999"`}, {first, "a", `{"n":1}`}} {
		if got := toolchaintest.Ask(t, row.module, row.handler, abi.Request{}); got.Body != row.want || got.Err != nil {
			t.Errorf("%s answers %q, %v, want %q", row.handler, got.Body, got.Err, row.want)
		}
	}
}
