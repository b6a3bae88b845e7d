package runner_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	runner "runner.example/sdk/go"
	"runner.example/sdk/go/runnertest"
)

func TestAHandlerOpensAndEndsSessions(t *testing.T) {
	var sent []string
	record := func(op string, result any) func(json.RawMessage) (any, error) {
		return func(args json.RawMessage) (any, error) {
			sent = append(sent, op+string(args))
			return result, nil
		}
	}
	calls := map[string]func(json.RawMessage) (any, error){
		"sessions.create": record("+", map[string]any{"id": "ses_1", "expiresAt": "2026-01-02T03:04:05.000Z"}),
		"sessions.revoke": record("-", map[string]any{"id": "ses_1"}),
	}
	result := runnertest.Run(t, func(ctx *runner.Context, _ *runner.Request) (runner.Response, error) {
		s, err := ctx.Client.Sessions.Create(runner.SessionOptions{UserID: "ann", Tenant: "acme", Roles: []string{"staff"}, TTL: 10 * time.Minute})
		if err != nil || !s.ExpiresAt.Equal(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)) {
			return runner.Response{}, fmt.Errorf("%+v, %v", s, err)
		}
		if _, err := ctx.Client.Sessions.Create(runner.SessionOptions{UserID: "bob"}); err != nil {
			return runner.Response{}, err
		}
		if err := ctx.Client.Sessions.Revoke(s.ID); err != nil {
			return runner.Response{}, err
		}
		if err := ctx.Client.Sessions.Revoke(""); err != nil { // for the host to refuse
			return runner.Response{}, err
		}
		return runner.NoContent(), ctx.Client.Sessions.Revoke(runner.CurrentSession)
	}, runnertest.Request{Calls: calls})
	want := `+{"roles":["staff"],"tenant":"acme","ttl":600,"userId":"ann"} +{"userId":"bob"} -{"id":"ses_1"} -{"id":""} -{}`
	if got := strings.Join(sent, " "); result.Status != 204 || got != want {
		t.Errorf("%d %q, sent %s", result.Status, result.Logs, got)
	}
}

func TestAHandlerListsAndEndsSessionsOfAUser(t *testing.T) {
	var sent []string
	calls := map[string]func(json.RawMessage) (any, error){
		"sessions.list": func(args json.RawMessage) (any, error) {
			sent = append(sent, string(args))
			one := map[string]any{"id": fmt.Sprint("ses_", len(sent)), "userId": "ann", "tenant": nil, "roles": []string{}, "createdAt": "2026-01-02T03:04:05.000Z",
				"lastSeenAt": "2026-01-02T03:04:05.000Z", "expiresAt": "2026-01-02T03:04:05.000Z", "current": len(sent) == 2}
			var next any
			if len(sent) == 1 || len(sent) == 3 {
				next = "ses_1"
			}
			return map[string]any{"sessions": []any{one}, "nextCursor": next}, nil
		},
		"sessions.revokeAll": func(args json.RawMessage) (any, error) {
			sent = append(sent, string(args))
			return map[string]any{"count": 2}, nil
		},
	}
	result := runnertest.Run(t, func(ctx *runner.Context, _ *runner.Request) (runner.Response, error) {
		sessions, none := ctx.Client.Sessions, ""
		all, err := sessions.Of("ann").List(runner.SessionFilter{})
		if err != nil || len(all.Sessions) != 2 || all.NextCursor != "" || all.Sessions[0].Current || !all.Sessions[1].Current {
			return runner.Response{}, fmt.Errorf("%+v, %v", all, err)
		}
		page, err := sessions.List(runner.SessionFilter{Tenant: &none, Limit: 1})
		if err != nil || len(page.Sessions) != 1 || page.NextCursor != "ses_1" {
			return runner.Response{}, fmt.Errorf("%+v, %v", page, err)
		}
		if n, err := sessions.RevokeAll(runner.RevokeOptions{}); err != nil || n != 2 {
			return runner.Response{}, fmt.Errorf("%d, %v", n, err)
		}
		_, err = sessions.Of("").RevokeAll(runner.RevokeOptions{AllTenants: true, Except: runner.CurrentSession})
		return runner.NoContent(), err
	}, runnertest.Request{Calls: calls})
	want := `{"user":"ann","limit":1000} {"user":"ann","limit":1000,"cursor":"ses_1"} {"tenant":"","limit":1} {} {"user":"","allTenants":true,"except":"current"}`
	if got := strings.Join(sent, " "); result.Status != 204 || got != want {
		t.Errorf("%d %q, sent %s", result.Status, result.Logs, got)
	}
}

func TestAWebhookIsSignedOrTheHandlerIsDenied(t *testing.T) {
	handler := func(ctx *runner.Context, _ *runner.Request) (runner.Response, error) {
		d, err := ctx.Client.Webhooks.Verify("standard", "HOOK")
		return runner.OK(fmt.Sprint(d.ID, " ", d.Time.IsZero(), " ", d.Time.Unix())), err
	}
	for _, row := range []struct {
		answer any
		err    error
		status int
		body   string
	}{
		{map[string]any{"id": "msg_1", "timestamp": 1614265330}, nil, 200, `"msg_1 false 1614265330"`},
		{map[string]any{"id": "sha256=00", "timestamp": nil}, nil, 200, `"sha256=00 true -62135596800"`},
		{nil, &runner.HostError{Code: "denied", Message: "m"}, 403, ``},
	} {
		var sent string
		result := runnertest.Run(t, handler, runnertest.Request{Calls: map[string]func(json.RawMessage) (any, error){
			"webhooks.verify": func(args json.RawMessage) (any, error) { sent = string(args); return row.answer, row.err },
		}})
		if result.Status != row.status || string(result.Body) != row.body || sent != `{"scheme":"standard","secret":"HOOK"}` {
			t.Errorf("%v: %d %s, sent %s", row.answer, result.Status, result.Body, sent)
		}
	}
}

func TestClaimsAreThoseOfTheCallersToken(t *testing.T) {
	handler := func(ctx *runner.Context, _ *runner.Request) (runner.Response, error) {
		return runner.OK(string(ctx.Auth().Claims)), nil
	}
	for claims, want := range map[string]string{`{"org":"acme"}`: `"{\"org\":\"acme\"}"`, ``: `""`} {
		auth := runner.Auth{Kind: "session", UserID: "ann"}
		if claims != "" {
			auth.Claims = json.RawMessage(claims)
		}
		if result := runnertest.Run(t, handler, runnertest.Request{Auth: auth}); string(result.Body) != want {
			t.Errorf("%s: %s, want %s", claims, result.Body, want)
		}
	}
}
