package main

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"strings"
	"testing"

	runner "runner.example/sdk/go"
	"runner.example/sdk/go/runnertest"
)

type rows = map[string]any

// answering returns fake calls for a test, and records their arguments.
func answering(sent *[]string, answers map[string]any) map[string]func(json.RawMessage) (any, error) {
	calls := map[string]func(json.RawMessage) (any, error){}
	for op, answer := range answers {
		calls[op] = func(args json.RawMessage) (any, error) {
			*sent = append(*sent, op+" "+string(args))
			if err, ok := answer.(error); ok {
				return nil, err
			}
			return answer, nil
		}
	}
	return calls
}

func TestListEventsAsksForAPageAndHandsItOn(t *testing.T) {
	page := rows{"rows": []any{}, "nextCursor": nil}
	for _, row := range []struct {
		path   string
		answer any
		sent   string
		status int
	}{
		{"/v1/events", page, `query {"from":"Event","orderBy":[["receivedAt","desc"]],"limit":50}`, 200},
		{"/v1/events?type=paid&cursor=x", page, `query {"from":"Event","where":[["type","=","paid"]],"orderBy":[["receivedAt","desc"]],"limit":50,"cursor":"x"}`, 200},
		{"/v1/events?cursor=y", &runner.HostError{Code: "invalid", Message: "cursor"}, `query {"from":"Event","orderBy":[["receivedAt","desc"]],"limit":50,"cursor":"y"}`, 400},
		{"/v1/events", &runner.HostError{Code: "unavailable"}, `query {"from":"Event","orderBy":[["receivedAt","desc"]],"limit":50}`, 503},
	} {
		var sent []string
		result := runnertest.Run(t, listEvents, runnertest.Request{Path: row.path, Calls: answering(&sent, map[string]any{"query": row.answer})})
		if result.Status != row.status || len(sent) != 1 || sent[0] != row.sent {
			t.Errorf("%s: %d, sent %q", row.path, result.Status, sent)
		}
		if row.status == 200 && string(result.Body) != `{"nextCursor":null,"rows":[]}` {
			t.Errorf("%s: %s", row.path, result.Body)
		}
	}
}

func TestOneEventIsFoundByItsID(t *testing.T) {
	for _, row := range []struct {
		answer any
		status int
	}{{rows{"row": rows{"id": "e1"}}, 200}, {&runner.HostError{Code: "not_found"}, 404}} {
		var sent []string
		result := runnertest.Run(t, getEvent, runnertest.Request{Params: map[string]string{"id": "e1"}, Calls: answering(&sent, map[string]any{"get": row.answer})})
		if result.Status != row.status || len(sent) != 1 || sent[0] != `get {"from":"Event","id":"e1"}` {
			t.Errorf("%d, sent %q", result.Status, sent)
		}
	}
}

func TestASignedEventIsKept(t *testing.T) {
	const secret, full = "k", `{"id":"evt_1","type":"paid","data":{"n":[1.50]}}`
	const kept = `insert {"into":"Event","values":{"delivery":"evt_1","type":"paid","payload":{"n":[1.50]}}}`
	sign := func(body string) string {
		mac := hmac.New(sha256.New, []byte(secret))
		mac.Write([]byte(body))
		return "sha256=" + hex.EncodeToString(mac.Sum(nil))
	}
	for _, row := range []struct {
		body   string
		answer any
		sent   string
		status int
	}{
		{full, rows{"rows": []any{rows{}}}, kept, 204},
		{full, &runner.HostError{Code: "conflict"}, kept, 204}, // it came before
		{full, &runner.HostError{Code: "invalid", Message: "delivery"}, kept, 400},
		{full, &runner.HostError{Code: "unavailable"}, kept, 503},
		{`{"type":"paid","data":1}`, nil, "", 400},
		{`{"id":"evt_1","data":1}`, nil, "", 400},
		{`{"id":"evt_1","type":"paid"}`, nil, "", 400},
	} {
		var sent []string
		result := runnertest.Run(t, receiveEvent, runnertest.Request{
			Method: "POST", Body: row.body, Headers: map[string]string{"x-signature": sign(row.body)},
			Secrets: map[string]string{"INBOX_WEBHOOK_SECRET": secret}, Calls: answering(&sent, map[string]any{"insert": row.answer}),
		})
		if result.Status != row.status || strings.Join(sent, "\n") != row.sent {
			t.Errorf("%s: %d %s, sent %q", row.body, result.Status, result.Body, sent)
		}
	}
}

func TestWebhookTakesOnlySignedBodies(t *testing.T) {
	// The vector is GitHub's published example of this scheme.
	const secret, body = "It's a Secret to Everybody", "Hello, World!"
	const good = "sha256=757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17"
	for _, row := range []struct {
		signature, body string
		status          int
	}{
		{good, body, 400}, // signed, but no JSON
		{"", body, 400},
		{good, body + " ", 401},
		{"sha1=00", body, 401},
		{"sha256=zz", body, 401},
		{"sha256=", body, 401},
	} {
		headers := map[string]string{}
		if row.signature != "" {
			headers["x-signature"] = row.signature
		}
		result := runnertest.Run(t, receiveEvent, runnertest.Request{
			Method: "POST", Body: row.body, Headers: headers, Secrets: map[string]string{"INBOX_WEBHOOK_SECRET": secret},
		})
		if result.Status != row.status {
			t.Errorf("%q over %q: got %d, want %d", row.signature, row.body, result.Status, row.status)
		}
	}
}
