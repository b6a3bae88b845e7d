package runner_test

import (
	"encoding/json"
	"errors"
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
		{"noContent", runner.NoContent(), 204, "", ""},
		{"redirect", runner.Redirect("/there"), 302, "", ""},
		{"redirect 308", runner.Redirect("/there", 308), 308, "", ""},
		{"badRequest", runner.BadRequest("m"), 400, "bad_request", ""},
		{"unauthorized", runner.Unauthorized("m"), 401, "unauthorized", ""},
		{"forbidden", runner.Forbidden("m"), 403, "forbidden", ""},
		{"notFound", runner.NotFound("m"), 404, "not_found", ""},
		{"error", runner.Error(422, "m"), 422, "error", ""},
		{"error with a status that is none", runner.Error(200, "m"), 500, "handler_failed", ""},
		{"a body that is no JSON value", runner.OK(func() {}), 500, "handler_failed", ""},
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
