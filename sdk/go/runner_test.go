package runner_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	runner "runner.example/sdk/go"
	"runner.example/sdk/go/runnertest"
)

type newOrder struct {
	Item string `json:"item"`
	Qty  int    `json:"qty"`
}

func TestEachHelperAnswersItsStatus(t *testing.T) {
	rows := []struct {
		name     string
		response runner.Response
		status   int
		code     string
		body     string
	}{
		{"ok", runner.OK(map[string]int{"n": 1}), 200, "", `{"n":1}`},
		{"ok of raw bytes", runner.OK([]byte(`[1]`)), 200, "", `[1]`},
		{"ok of nothing", runner.OK(nil), 200, "", `null`},
		{"created", runner.Created("x", "/x/1"), 201, "", `"x"`},
		{"created nowhere", runner.Created("x", ""), 201, "", `"x"`},
		{"noContent", runner.NoContent(), 204, "", ""},
		{"redirect", runner.Redirect("/there"), 302, "", ""},
		{"redirect 308", runner.Redirect("/there", 308), 308, "", ""},
		{"badRequest", runner.BadRequest("m"), 400, "bad_request", ""},
		{"unauthorized", runner.Unauthorized("m"), 401, "unauthorized", ""},
		{"forbidden", runner.Forbidden("m"), 403, "forbidden", ""},
		{"notFound", runner.NotFound("m"), 404, "not_found", ""},
		{"error", runner.Error(422, "m"), 422, "error", ""},
		{"conflict", runner.Error(409, "m"), 409, "conflict", ""},
		{"error with a code", runner.Error(402, "m").WithCode("no_credit").WithMember("balance", 3), 402, "no_credit", ""},
		{"error with members", runner.Error(402, "m").WithMember("balance", 3), 402, "error", ""},
		{"error with a member of the runner's", runner.Error(402, "m").WithMember("title", "x"), 500, "handler_failed", ""},
		{"error with a status that is none", runner.Error(200, "m"), 500, "handler_failed", ""},
		{"a body that is not a JSON value", runner.OK(func() {}), 500, "handler_failed", ""},
	}
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			result := runnertest.Run(t, func(*runner.Context, *runner.Request) (runner.Response, error) { return row.response, nil }, runnertest.Request{})
			if result.Status != row.status || result.Code != row.code || string(result.Body) != row.body {
				t.Errorf("got %d %q %q", result.Status, result.Code, result.Body)
			}
			if row.status < 400 && row.code != "" || row.code != "" && row.code != "handler_failed" && result.Message != "m" {
				t.Errorf("message %q", result.Message)
			}
		})
	}
}

func TestBodyReadsJSONOrAnswers400(t *testing.T) {
	handler := func(_ *runner.Context, req *runner.Request) (runner.Response, error) {
		order, err := runner.Body[newOrder](req)
		if err != nil {
			return runner.Response{}, err
		}
		if order.Item == "" {
			return runner.BadRequest("missing field: item"), nil
		}
		return runner.Created(order), nil
	}
	rows := []struct {
		body   string
		status int
		code   string
	}{
		{`{"item":"tea","qty":2}`, 201, ""},
		{``, 400, "bad_request"},
		{`  null `, 400, "bad_request"},
		{`{}`, 400, "bad_request"},
		{`{"item"`, 400, "invalid_json"},
		{`{"item":1}`, 400, "invalid_json"},
		{`{} {}`, 400, "invalid_json"},
	}
	for _, row := range rows {
		result := runnertest.Run(t, handler, runnertest.Request{Body: row.body})
		if result.Status != row.status || result.Code != row.code {
			t.Errorf("body %q: got %d %q", row.body, result.Status, result.Code)
		}
	}
}

func TestRequestValuesAreFoundByName(t *testing.T) {
	handler := func(ctx *runner.Context, req *runner.Request) (runner.Response, error) {
		return runner.OK([]any{
			req.Method(), req.Path(), req.Param("id"), req.Query("a"), req.QueryAll("a"), req.HasQuery("b"), req.HasQuery("c"),
			req.Header("x-test"), len(req.Queries()), string(req.RawBody()), ctx.Auth().Kind, ctx.Auth().Scope,
		}), nil
	}
	result := runnertest.Run(t, handler, runnertest.Request{
		Method: "PUT", Path: "/x/1?a=1&b&a=2%20+3", Params: map[string]string{"id": "1"},
		Headers: map[string]string{"X-Test": "h"}, Body: "raw", Auth: runner.Auth{Kind: "apiKey", Scope: "s"},
	})
	if want := `["PUT","/x/1","1","1",["1","2  3"],true,false,"h",3,"raw","apiKey","s"]`; string(result.Body) != want {
		t.Errorf("got  %s\nwant %s", result.Body, want)
	}
}

func TestErrorsOfTheHostBecomeAnswers(t *testing.T) {
	rows := []struct {
		err    error
		status int
		code   string
	}{
		{&runner.HostError{Code: "not_found"}, 404, "not_found"},
		{&runner.HostError{Code: "denied", Message: "m"}, 403, "forbidden"},
		{&runner.HostError{Code: "conflict"}, 409, "conflict"},
		{&runner.HostError{Code: "unavailable"}, 503, "unavailable"},
		{&runner.HostError{Code: "limit"}, 500, "handler_failed"},
		{errors.New("secret detail"), 500, "handler_failed"},
	}
	for _, row := range rows {
		result := runnertest.Run(t, func(ctx *runner.Context, _ *runner.Request) (runner.Response, error) {
			_, err := ctx.Client.APIKeys.Get("key_1")
			return runner.Response{}, err
		}, runnertest.Request{Calls: map[string]func(json.RawMessage) (any, error){
			"apiKeys.get": func(json.RawMessage) (any, error) { return nil, row.err },
		}})
		if result.Status != row.status || result.Code != row.code {
			t.Errorf("%v: got %d %q", row.err, result.Status, result.Code)
		}
		if row.status == 500 && (result.Message != "" || len(result.Logs) != 1) {
			t.Errorf("%v: message %q, logs %q", row.err, result.Message, result.Logs)
		}
	}
}

func TestAPIKeyOperationsSendWholeSeconds(t *testing.T) {
	var sent []string
	record := func(args json.RawMessage) (any, error) {
		sent = append(sent, string(args))
		return runner.APIKey{ID: "key_1", Token: "t"}, nil
	}
	result := runnertest.Run(t, func(ctx *runner.Context, _ *runner.Request) (runner.Response, error) {
		key, err := ctx.Client.APIKeys.Create(runner.APIKeyOptions{Scope: "s", Name: "n", ExpiresIn: 90 * 24 * time.Hour, Metadata: map[string]int{"a": 1}})
		if err != nil {
			return runner.Response{}, err
		}
		_, err = ctx.Client.APIKeys.Rotate(key.ID, 90*time.Minute)
		return runner.OK(key.Token), err
	}, runnertest.Request{Calls: map[string]func(json.RawMessage) (any, error){"apiKeys.create": record, "apiKeys.rotate": record}})
	want := []string{`{"expiresIn":7776000,"metadata":{"a":1},"name":"n","scope":"s"}`, `{"gracePeriod":5400,"id":"key_1"}`}
	if result.Status != 200 || len(sent) != 2 || sent[0] != want[0] || sent[1] != want[1] {
		t.Errorf("status %d, sent %q", result.Status, sent)
	}
}

func TestLogLinesCarryTheirAttributes(t *testing.T) {
	result := runnertest.Run(t, func(ctx *runner.Context, _ *runner.Request) (runner.Response, error) {
		ctx.Log().With("a", 1).Warn("careful", "b", "x y")
		ctx.Log().Debug("plain")
		return runner.NoContent(), nil
	}, runnertest.Request{})
	if len(result.Logs) != 2 || result.Logs[0] != `warn: careful a=1 b="x y"` || result.Logs[1] != "debug: plain" {
		t.Errorf("logs %q", result.Logs)
	}
}

func TestWarmRunsAHandlerOnceForEachBody(t *testing.T) {
	var bodies []string
	handler := func(ctx *runner.Context, req *runner.Request) (runner.Response, error) {
		bodies = append(bodies, string(req.RawBody())+ctx.Auth().Kind+req.Query("a"))
		_, err := ctx.Client.APIKeys.Get("key_1")
		return runner.OK(bodies), err
	}
	runner.Warm(handler)
	runner.Warm(handler, "a", "b")
	if len(bodies) != 3 || bodies[0] != "anonymous" || bodies[1] != "aanonymous" || bodies[2] != "banonymous" {
		t.Errorf("ran with %q", bodies)
	}
}

func TestHeadersThatTheRunnerRefusesFailTheAnswerAndTheLogSaysWhy(t *testing.T) {
	const location = "a location is a URI reference that does not begin with //, without a tab, a backslash or a scheme that runs a script; the host of a URL is in ASCII, without a user name"
	rows := []struct{ name, value, says string }{
		{"X-Mine", "1", ""}, {"x-utf8", "grün", ""}, {"x-tab", "a\tb", ""}, {"x-empty", "", ""},
		{"Content-Type", "text/csv", ""}, {"Location", "/a//b?c", ""}, {"Location", "HTTPS://example.com", ""},
		{"Location", "there", ""}, {"Location", "?x=1", ""}, {"Location", "myapp://open", ""}, {"Location", "/ü b", ""},
		{"Location", "", `set header "Location": denied: ` + location}, {"location", "https:x", location},
		{"location", "//evil.example", `set header "location": denied: ` + location},
		{"location", `/\evil.example`, location}, {"location", "javascript:alert(1)", location}, {"location", "https:///x", location},
		{"Location", "https://example.com:8443/a?b#c", ""}, {"Location", "http://127.0.0.1", ""}, {"Location", "http://[::1]:80/", ""},
		{"location", `https://evil.example\@example.com`, location}, {"location", `/a\b`, location}, {"location", "https://example.com@evil.example", location},
		{"location", "https://evil。example", location}, {"location", "https://%65vil.example", location}, {"location", "https://0x7f.1", location},
		{"location", "https://[::1", location}, {"location", "https://a:x", location}, {"location", "https://127.1", location},
		{"", "x", `set header "": denied: a header's name`}, {"x a", "1", "a header's name"}, {"x-ä", "1", "a header's name"},
		{"x-a\r\nx-b", "1", `set header "x-a\r\nx-b": denied: `},
		{"x-b", "a\r\nx-c: 1", "no control characters"}, {"x-b", "\x7f", "no control characters"},
		{"x-b", " a", "no blanks around it"}, {"x-b", "\xff", `set header "x-b": invalid: `},
		{"x-b", strings.Repeat("x", 16<<10), `set header "x-b": too_large: `},
		{"Proxy-Authenticate", "x", "the runner sets this header"}, {"RateLimit-Policy", "x", "the runner sets this header"},
	}
	for _, row := range rows {
		result := answerOf(t, runner.OK("fine").WithHeader(row.name, row.value))
		if row.says == "" {
			if result.Status != 200 || result.Header(row.name) != row.value || len(result.Logs) != 0 {
				t.Errorf("%q: %q: got %d %q, logs %q", row.name, row.value, result.Status, result.Headers, result.Logs)
			}
			continue
		}
		if result.Status != 500 || result.Code != "handler_failed" || len(result.Logs) != 1 || !strings.Contains(result.Logs[0], row.says) {
			t.Errorf("%q: %q: got %d %q, logs %q, want %q", row.name, row.value, result.Status, result.Code, result.Logs, row.says)
		}
	}
}

// A page on the ABI lists the headers that are the runner's.
func TestHeadersOfTheRunnerAreThoseOfItsABI(t *testing.T) {
	page, err := os.ReadFile("../../docs/abi/functions.md")
	if err != nil {
		t.Fatal(err)
	}
	_, list, found := strings.Cut(string(page), "Headers that only the host sets: ")
	list, _, ended := strings.Cut(list, ".\n")
	names := regexp.MustCompile("`([^`]+)`").FindAllStringSubmatch(list, -1)
	if !found || !ended || len(names) < 11 {
		t.Fatalf("no list of headers in the page: %q", list)
	}
	for _, name := range names {
		header := strings.Replace(name[1], "*", "x", 1)
		result := answerOf(t, runner.NoContent().WithHeader(header, "x"))
		if result.Status != 500 || len(result.Logs) != 1 || !strings.Contains(result.Logs[0], "the runner sets this header") {
			t.Errorf("%s: got %d, logs %q", header, result.Status, result.Logs)
		}
	}
}

func TestAnswersThatTheRunnerRefusesFailAndTheLogSaysWhy(t *testing.T) {
	many := runner.NoContent()
	for range 101 {
		many = many.WithHeader("x-a", "1")
	}
	rows := []struct {
		response runner.Response
		says     string
	}{
		{runner.OK(1).WithHeader("content-type", "a/b").WithHeader("Content-Type", "c/d"), `set header "Content-Type": invalid: an answer has one of them`},
		{runner.Created(1, "/a", "/b"), `set header "Location": invalid: an answer has one of them`},
		{many, "at most 100 header lines"},
		{runner.Error(399, "m"), "answer with an error of status 399: invalid: the status of an error is 400 to 599"},
		{runner.Error(600, "m"), "400 to 599"},
		{runner.Error(400, "\xff"), "a message is UTF-8"},
		{runner.Error(400, strings.Repeat("m", 8<<10+1)), "at most 8 KiB"},
		{runner.OK(make([]byte, 8<<20+1)), "too_large: the body has 8388609 bytes"},
		{runner.Response{}, "answer with status 0 and 4 bytes: invalid: the status of an answer is 200 to 599"},
		{runner.OK(func() {}), "write the answer's body as JSON: "},
	}
	for _, row := range rows {
		result := answerOf(t, row.response)
		if result.Status != 500 || result.Code != "handler_failed" || len(result.Logs) != 1 || !strings.Contains(result.Logs[0], row.says) {
			t.Errorf("got %d %q, logs %.200q, want %q", result.Status, result.Code, result.Logs, row.says)
		}
	}
}

func TestABodyIsJSONUnlessTheHandlerSaysOtherwise(t *testing.T) {
	rows := []struct {
		response runner.Response
		want     string
	}{
		{runner.OK(1), "application/json"},
		{runner.OK([]byte("a,b")).WithHeader("Content-Type", "text/csv"), "text/csv"},
		{runner.NoContent(), ""},
		{runner.BadRequest("m").WithHeader("Content-Type", "text/plain"), ""}, // the runner makes the body
	}
	for _, row := range rows {
		if result := answerOf(t, row.response); result.Header("content-type") != row.want {
			t.Errorf("got %q, want %q", result.Header("content-type"), row.want)
		}
	}
}

func TestTheLastPageOfKeysHasNullForItsCursor(t *testing.T) {
	rows := []struct {
		page runner.APIKeyPage
		want string
	}{
		{runner.APIKeyPage{}, `{"keys":[],"nextCursor":null}`},
		{runner.APIKeyPage{NextCursor: "key_1"}, `{"keys":[],"nextCursor":"key_1"}`},
	}
	for _, row := range rows {
		text, err := json.Marshal(row.page)
		if err != nil || string(text) != row.want {
			t.Errorf("got %s, %v, want %s", text, err, row.want)
		}
		var back runner.APIKeyPage
		if err := json.Unmarshal(text, &back); err != nil || back.NextCursor != row.page.NextCursor {
			t.Errorf("read %s as %+v, %v", text, back, err)
		}
	}
}

func answerOf(t *testing.T, response runner.Response) runnertest.Result {
	t.Helper()
	return runnertest.Run(t, func(*runner.Context, *runner.Request) (runner.Response, error) { return response, nil }, runnertest.Request{})
}

func TestAnOperationIsCalledByItsName(t *testing.T) {
	result := runnertest.Run(t, func(ctx *runner.Context, _ *runner.Request) (runner.Response, error) {
		var got struct{ Count int }
		if err := ctx.Call("count", map[string]any{"from": "Order"}, &got); err != nil {
			return runner.Response{}, err
		}
		return runner.OK(got.Count), ctx.Call("apiKeys.get", nil, nil)
	}, runnertest.Request{Calls: map[string]func(json.RawMessage) (any, error){
		"count": func(args json.RawMessage) (any, error) {
			if string(args) != `{"from":"Order"}` {
				t.Errorf("it asks %s", args)
			}
			return map[string]int{"count": 3}, nil
		},
		"apiKeys.get": func(json.RawMessage) (any, error) { return nil, &runner.HostError{Code: "not_found"} },
	}})
	if result.Status != 404 {
		t.Errorf("a call that failed answers %d %s", result.Status, result.Body)
	}
}

// Only errors of rows and keys are sent to the client; all others are only logged.
func TestOtherErrorsAreOnlyLogged(t *testing.T) {
	refuse := func(json.RawMessage) (any, error) {
		return nil, &runner.HostError{Code: "denied", Message: "inside.example"}
	}
	for op, want := range map[string]int{"query": 403, "apiKeys.rotate": 403, "fetch": 500, "secret": 500, "hmac": 500} {
		result := runnertest.Run(t, func(ctx *runner.Context, _ *runner.Request) (runner.Response, error) {
			return runner.NoContent(), ctx.Call(op, map[string]any{"name": "inside.example", "algorithm": "SHA-256", "secret": "inside.example", "data": ""}, nil)
		}, runnertest.Request{Calls: map[string]func(json.RawMessage) (any, error){"query": refuse, "apiKeys.rotate": refuse, "fetch": refuse}})
		if result.Status != want || strings.Contains(result.Message, "inside") != (want == 403) {
			t.Errorf("%s answers %d %s, want %d", op, result.Status, result.Message, want)
		}
		if logs := fmt.Sprint(result.Logs); strings.Contains(logs, "inside.example") != (want == 500) {
			t.Errorf("of %s the log says %s", op, logs)
		}
	}
}
