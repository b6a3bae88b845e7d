package wasi_test

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"net/http"
	"os"
	"strings"
	"testing"

	"runner.example/hostabi"
	"runner.example/hostabi/abi"
	"runner.example/hostabi/wasi"
	"runner.example/internal/component"
	"runner.example/internal/component/canon"
	"runner.example/internal/component/canon/canontest"
)

// Interfaces of runner:app, with the blank before a function.
const (
	current    = "runner:app/current-request@1 "
	logging    = "runner:app/logging@1 "
	operations = "runner:app/operations@1 "
	crypto     = "runner:app/crypto@1 "
)

// The cases of the enum code.
const (
	notFound = iota
	invalid
	denied
	conflict
	tooLarge
	limit
	unavailable
	deadline
	internal
)

const emptyDigest = `{"hex":"e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855","base64":"47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU="}`

func TestTheTypesOfRunnerAppAreThoseOfTheWITFile(t *testing.T) {
	text, err := os.ReadFile("../../sdk/wit/runner.wit")
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Contains(wasi.AppFile, fmt.Appendf(nil, "%x", sha256.Sum256(text))) {
		t.Error("hostabi/wasi/app.wasm is not of sdk/wit/runner.wit: run tools/app-types.sh")
	}
}

func TestEachOperationIsAFunctionOfRunnerApp(t *testing.T) {
	g := newGuest(t, hostabi.Limits{HostCalls: 500, StoreOps: 1})
	for _, op := range abi.Ops() {
		in, name, err := op.WIT()
		if err != nil {
			t.Fatal(err)
		}
		result := g.do("runner:app/"+in+"@1 "+name, `{"nonsense":1}`).(canon.Case)
		failed, ok := result.Value.([]any)
		if !ok || result.Index != 1 || failed[2] != op.Name {
			t.Errorf("%s: %s", op.Name, show(result))
		}
		// The message names the operation, unless the limit of the store is what refuses it.
		if text := failed[1].(string); !strings.HasPrefix(text, op.Name+": ") && !strings.HasPrefix(text, "a request may use the store at most 1 times") {
			t.Errorf("%s: %s", op.Name, text)
		}
	}
}

func TestOperationsGiveTheirResultOrTheirError(t *testing.T) {
	g := newGuest(t, hostabi.Limits{})
	const args = `{"algorithm":"SHA-256","data":""}`
	g.expect("#0 "+emptyDigest, crypto+"digest", args)
	g.expect("#1 [#1 digest: member \"algorithm\" is missing digest]", crypto+"digest", `{}`)
	g.expect(fmt.Sprintf("#0 %d", len(emptyDigest)), operations+"call", "digest", args)
	g.expect("#0 "+emptyDigest, operations+"last-result")
	g.expect(`#1 [#1 unknown operation "diges" (did you mean "digest"?) diges]`, operations+"call", "diges", args)
	g.expect("#1 [#2 secret: \"x\" is not declared (add `secret x` to the schema) secret]", "runner:app/config@1 secret", `{"name":"x"}`)
	long := `{"secret":"` + strings.Repeat("x", 300<<10) + `"}`
	g.expect("#1 [#4 the arguments of secret are 301 KiB; the limit is 256 KiB secret]", "runner:app/config@1 secret", long)
}

func TestOperationsRunBesideEachOther(t *testing.T) {
	g := newGuest(t, hostabi.Limits{})
	g.expect("#0 #0", operations+"wait")
	g.expect("#0 0", operations+"start", "digest", `{"algorithm":"SHA-256","data":""}`)
	g.expect("#0 1", operations+"start", "digest", `{}`)
	g.expect("#0 2", operations+"start", "sleep", `{"seconds":0.02}`)
	g.expect("#0 #1 0", operations+"wait")
	g.expect("#0 #1 1", operations+"wait")
	g.expect("#0 #1 2", operations+"wait")
	g.expect("#0 #0", operations+"wait")
	g.expect(fmt.Sprintf("#0 %d", len(emptyDigest)), operations+"take", uint64(0))
	g.expect("#0 "+emptyDigest, operations+"last-result")
	g.expect(`#1 [#1 digest: member "algorithm" is missing ]`, operations+"take", uint64(1))
	g.expect("#0 2", operations+"take", uint64(2))
	g.expect("#0 {}", operations+"last-result")
	g.expect("#1 [#1 the pending operation 2 is unknown, or its result was already taken ]", operations+"take", uint64(2))
}

func TestTheCurrentRequestIsKnown(t *testing.T) {
	g := newGuest(t, hostabi.Limits{})
	g.call.Request.Params = []abi.Pair{{Name: []byte("id"), Value: []byte("a \xff")}}
	g.expect("#0 [[id a \ufffd]]", current+"params")
	g.call.Request.RawQuery = nil
	g.expect("#0 #0", current+"raw-query")
	g.call.Request.RawQuery = []byte("q=a%20b&&flag")
	g.expect("#0 #1 q=a%20b&&flag", current+"raw-query")
	if text := show(g.do(current + "context")); !strings.HasPrefix(text, `#0 {"requestId":"01j000000000000000000000aa","route":"/v1/things/:id"`) {
		t.Errorf("the context is %s", text)
	}
	g.call.Caller.UserID = strings.Repeat("u", 10<<10)
	g.begin(nil)
	if text := show(g.do(current + "context")); !strings.Contains(text, g.call.Caller.UserID) {
		t.Errorf("a long context is %s", text)
	}
	g.do(logging+"log", canon.Case{Index: 2}, "careful\nnow")
	if !strings.Contains(g.log.String(), `level=WARN msg=careful\nnow `) {
		t.Errorf("the log has %s", g.log)
	}
	g.do(current + "keep-writes")
	if !g.call.KeepsWrites() {
		t.Error("its writes are not kept")
	}
}

func TestFunctionsOfRunnerAppHaveTheLimitsOfTheABI(t *testing.T) {
	g := newGuest(t, hostabi.Limits{HostCalls: 3, MovedBytes: 10 << 10})
	const args = `{"algorithm":"SHA-256","data":""}`
	g.expect("#0 "+emptyDigest, crypto+"digest", args) // two calls: one for its result
	if g.call.HostCalls() != 2 || g.call.Moved() == 0 {
		t.Errorf("%d calls, %d bytes", g.call.HostCalls(), g.call.Moved())
	}
	g.expect("#1 [#5 a request may call the host at most 3 times digest]", crypto+"digest", args)
	g.expect("#1 [#5 a request may call the host at most 3 times digest]", crypto+"digest", args)
	g.expect("#1 [#5 a request may call the host at most 3 times ]", current+"params")
	g.begin(nil)
	g.expect("#1 [#5 the request has moved too many bytes between handler and host digest]", crypto+"digest", `{"algorithm":"`+strings.Repeat("x", 11<<10)+`"}`)
	g.expect("#1 [#5 the request has moved too many bytes between handler and host ]", operations+"wait")

	g.begin(nil)
	g.call.Initializing(true)
	g.expect("#1 [#2 not available before the first request digest]", crypto+"digest", args)
	g.expect("#1 [#2 not available before the first request ]", current+"context")
}

// answer ends a handler with its result.
func (g *guest) answer(result canon.Case) error {
	g.t.Helper()
	var handler *component.FuncType
	for _, i := range wasi.App().Imports {
		if i.Interface == "" {
			handler = i.Func
		}
	}
	heap := &canontest.Heap{Memory: g.memory, Free: 1024}
	return g.raw(g.functions["component end_handler"], []uint64{uint64(heap.Store(g.t, handler.Result, result))})
}

// TestRequestsOfWASIAreNoOperations: runner:app does not tell of them, and cannot take their responses.
func TestRequestsOfWASIAreNoOperations(t *testing.T) {
	g := newGuest(t, hostabi.Limits{})
	authority := g.serve(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "a response") })
	var sent []any
	for range 3 {
		future := value(g.do(outgoing+"handle", g.request(authority, "/"), none))
		g.do(poll+"[method]pollable.block", g.do(types+"[method]future-incoming-response.subscribe", future))
		sent = append(sent, future)
	}
	g.expect("#0 #0", operations+"wait")
	for n := range uint64(3) {
		if got := show(g.do(operations+"take", n)); !strings.Contains(got, "is unknown") {
			t.Errorf("take %d: %s", n, got)
		}
	}
	g.expect("#0 3", operations+"start", "sleep", `{"seconds":0.01}`)
	g.expect("#0 #1 3", operations+"wait")
	g.expect("#0 #0", operations+"wait")
	for _, future := range sent {
		response := value(value(value(g.do(types+"[method]future-incoming-response.get", future)).(canon.Case)).(canon.Case))
		g.expect("200", types+"[method]incoming-response.status", response)
	}
}

func TestTheResultOfAHandlerIsTheAnswer(t *testing.T) {
	response := func(status int, body canon.Case, headers ...any) canon.Case {
		return ok([]any{uint64(status), headers, body})
	}
	text := func(s string) canon.Case { return canon.Case{Index: 1, Value: s} }
	problem := func(code, message string) canon.Case { return canon.Case{Index: 3, Value: []any{code, message}} }
	failed := func(code uint32, message, operation string) canon.Case {
		return canon.Case{Index: 1, Value: []any{canon.Case{Index: code}, message, operation}}
	}
	row := canon.Case{Index: 2, Value: canon.Case{Index: 2}}
	all := canon.Case{Index: 2, Value: canon.Case{Index: 0}}
	for _, c := range []struct {
		what   string
		result canon.Case
		want   string
		log    string // why the handler failed
	}{
		{"bytes", response(201, canon.Case{Value: []byte("\xff")}, []any{"content-type", "a/b"}, []any{"x-a", "1"}), "201 \"\" \"\" \"\\xff\" content-type=a/b x-a=1", ""},
		{"text", response(200, text("{}")), `200 "" "" "{}" content-type=application/json`, ""},
		{"nothing", response(204, text("")), `204 "" "" ""`, ""},
		{"a problem", response(422, problem("no_stock", "nothing is left"), []any{"retry-after", "9"}), `422 "no_stock" "nothing is left" "" retry-after=9`, ""},
		{"a problem with the code of its status", response(404, problem("", "")), `404 "not_found" "" ""`, ""},
		{"the last result", response(200, all), fmt.Sprintf(`200 "" "" %q content-type=application/json`, emptyDigest), ""},

		{"a row that the last result does not have", response(200, row), `500 "handler_failed" "" ""`, "invalid: answer with status 200: argument"},
		{"a body of a status without one", response(204, text("x")), `500 "handler_failed" "" ""`, "invalid: answer with status 204: argument"},
		{"a status of no error", response(200, problem("", "")), `500 "handler_failed" "" ""`, "invalid: answer with status 200: argument"},
		{"a large body", response(200, text(strings.Repeat("x", 2000))), `500 "handler_failed" "" ""`, "too_large: answer with status 200: over a size limit"},
		{"a header of the host", response(200, text(""), []any{"x-a", "1"}, []any{"Date", "x"}), `500 "handler_failed" "" ""`, `denied: header "Date" of the answer: grant`},

		{"no row", failed(notFound, "get: no Thing", "get"), `404 "not_found" "get: no Thing" ""`, ""},
		{"no right", failed(denied, "insert: no", "insert"), `403 "forbidden" "insert: no" ""`, ""},
		{"a conflict", failed(conflict, "c", "jobs.enqueue"), `409 "conflict" "c" ""`, ""},
		{"no store", failed(unavailable, "u", "apiKeys.create"), `503 "unavailable" "u" ""`, ""},
		{"an error of the handler", failed(notFound, "no such thing", ""), `404 "not_found" "no such thing" ""`, ""},
		{"another operation", failed(notFound, "fetch: https://internal", "fetch"), `500 "handler_failed" "" ""`, "not_found: fetch: https://internal"},
		{"a secret", failed(denied, "secret: x", "secret"), `500 "handler_failed" "" ""`, "denied: secret: x"},
		{"a limit", failed(limit, "query: l", "query"), `500 "handler_failed" "" ""`, "limit: query: l"},
		{"a deadline", failed(deadline, "query: d", "query"), `500 "handler_failed" "" ""`, "deadline: query: d"},
		{"too large", failed(tooLarge, "t", "insert"), `500 "handler_failed" "" ""`, "too_large: t"},
		{"not valid", failed(invalid, "i", "insert"), `500 "handler_failed" "" ""`, "invalid: i"},
		{"internal", failed(internal, "i", "insert"), `500 "handler_failed" "" ""`, "internal: i"},
	} {
		g := newGuest(t, hostabi.Limits{ResponseBytes: 1000})
		g.do(crypto+"digest", `{"algorithm":"SHA-256","data":""}`)
		if trap := g.answer(c.result); trap != nil {
			t.Errorf("%s: %v", c.what, trap)
			continue
		}
		r := &g.call.Response
		got := fmt.Sprintf("%d %q %q %q", r.Status, r.Code, r.Detail, r.Body)
		for _, h := range r.Headers {
			got += fmt.Sprintf(" %s=%s", h.Name, h.Value)
		}
		if got != c.want {
			t.Errorf("%s: %s, want %s", c.what, got, c.want)
		}
		g.call.End()
		failure, _ := g.call.Failures()
		if (failure == nil) != (c.log == "") || failure != nil && !strings.HasPrefix(failure.Message, c.log) {
			t.Errorf("%s: it failed with %v, want %s", c.what, failure, c.log)
		}
	}
}
