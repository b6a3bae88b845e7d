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

// answering gives the calls of a test, and keeps what they are sent.
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

type rows = map[string]any

func TestListOrdersAsksForAPageAndHandsItOn(t *testing.T) {
	rows := []struct {
		path   string
		answer any
		sent   string
		status int
	}{
		{"/v1/orders", rows{"rows": []any{}, "nextCursor": nil}, `query {"from":"Order","orderBy":[["createdAt","desc"]],"limit":50}`, 200},
		{"/v1/orders?status=paid&cursor=x", rows{"rows": []any{}, "nextCursor": nil},
			`query {"from":"Order","where":[["status","=","paid"]],"orderBy":[["createdAt","desc"]],"limit":50,"cursor":"x"}`, 200},
		{"/v1/orders?status=lost", &runner.HostError{Code: "invalid", Message: "no such status"},
			`query {"from":"Order","where":[["status","=","lost"]],"orderBy":[["createdAt","desc"]],"limit":50}`, 400},
		{"/v1/orders", &runner.HostError{Code: "unavailable"}, `query {"from":"Order","orderBy":[["createdAt","desc"]],"limit":50}`, 503},
	}
	for _, row := range rows {
		var sent []string
		result := runnertest.Run(t, listOrders, runnertest.Request{Path: row.path, Calls: answering(&sent, map[string]any{"query": row.answer})})
		if result.Status != row.status || len(sent) != 1 || sent[0] != row.sent {
			t.Errorf("%s: %d, sent %q", row.path, result.Status, sent)
		}
		if row.status == 200 && string(result.Body) != `{"nextCursor":null,"rows":[]}` {
			t.Errorf("%s: %s", row.path, result.Body)
		}
	}
}

func TestCreateOrderPassesTheBodyOnAndSaysWhereTheOrderIs(t *testing.T) {
	var sent []string
	const body = `{"number":"A-1","partner":"p","total":"12.50"}`
	result := runnertest.Run(t, createOrder, runnertest.Request{Method: "POST", Body: body, Calls: answering(&sent, map[string]any{
		"insert": rows{"rows": []any{rows{"id": "o1", "number": "A-1", "total": "12.50"}}},
	})})
	if result.Status != 201 || result.Header("location") != "/v1/orders/o1" || string(result.Body) != `{"id":"o1","number":"A-1","total":"12.50"}` {
		t.Errorf("got %d %q %s", result.Status, result.Headers, result.Body)
	}
	if len(sent) != 1 || sent[0] != `insert {"into":"Order","values":`+body+`}` {
		t.Errorf("sent %q", sent)
	}
}

func TestUpdateOrderChangesWhatIsGiven(t *testing.T) {
	one := rows{"count": 1, "rows": []any{rows{"id": "o1"}}}
	rows := []struct {
		body, sent string
		answer     any
		status     int
	}{
		{`{"status":"open"}`, `update {"in":"Order","set":{"status":"open"},"where":[["id","=","o1"]]}`, one, 200},
		{`{"total":1.10,"meta":{"a":[1]}}`, `update {"in":"Order","set":{"total":1.10,"meta":{"a":[1]}},"where":[["id","=","o1"]]}`, one, 200},
		{`{"status":"open","id":"o2","number":"B"}`, `update {"in":"Order","set":{"status":"open"},"where":[["id","=","o1"]]}`, one, 200},
		{`{"status":"lost"}`, `update {"in":"Order","set":{"status":"lost"},"where":[["id","=","o1"]]}`, &runner.HostError{Code: "invalid", Message: "status"}, 400},
		{`{"status":"paid"}`, `update {"in":"Order","set":{"status":"paid"},"where":[["id","=","o1"]]}`, &runner.HostError{Code: "denied"}, 403},
		{`{}`, "", nil, 400},
		{`{`, "", nil, 400},
	}
	for _, row := range rows {
		var sent []string
		result := runnertest.Run(t, updateOrder, runnertest.Request{
			Method: "PATCH", Body: row.body, Params: map[string]string{"id": "o1"}, Calls: answering(&sent, map[string]any{"update": row.answer}),
		})
		if result.Status != row.status || strings.Join(sent, "\n") != row.sent {
			t.Errorf("%s: %d, sent %q", row.body, result.Status, sent)
		}
	}
}

func TestOneOrderIsFoundOrDeletedByItsID(t *testing.T) {
	rows := []struct {
		handler  runner.Handler
		op, sent string
		answer   any
		status   int
	}{
		{getOrder, "get", `get {"from":"Order","id":"o1"}`, rows{"row": rows{"id": "o1"}}, 200},
		{getOrder, "get", `get {"from":"Order","id":"o1"}`, &runner.HostError{Code: "not_found"}, 404},
		{deleteOrder, "delete", `delete {"from":"Order","where":[["id","=","o1"]]}`, rows{"count": 1}, 204},
		{deleteOrder, "delete", `delete {"from":"Order","where":[["id","=","o1"]]}`, &runner.HostError{Code: "denied"}, 403},
	}
	for _, row := range rows {
		var sent []string
		result := runnertest.Run(t, row.handler, runnertest.Request{
			Params: map[string]string{"id": "o1"}, Calls: answering(&sent, map[string]any{row.op: row.answer}),
		})
		if result.Status != row.status || len(sent) != 1 || sent[0] != row.sent {
			t.Errorf("%s: %d, sent %q", row.op, result.Status, sent)
		}
	}
}

func TestAnOrderThatStaysIsToldFromOneThatIsNotThere(t *testing.T) {
	for _, row := range []struct {
		found  any
		status int
	}{{rows{"row": rows{"id": "o1"}}, 403}, {&runner.HostError{Code: "not_found"}, 404}} {
		for _, handler := range []runner.Handler{updateOrder, deleteOrder} {
			var sent []string
			none := rows{"count": 0, "rows": []any{}}
			result := runnertest.Run(t, handler, runnertest.Request{
				Body: `{"status":"open"}`, Params: map[string]string{"id": "o1"},
				Calls: answering(&sent, map[string]any{"update": none, "delete": none, "get": row.found}),
			})
			if result.Status != row.status || len(sent) != 2 || sent[1] != `get {"from":"Order","id":"o1","select":["id"]}` {
				t.Errorf("%v: %d, sent %q", row.found, result.Status, sent)
			}
		}
	}
}

func TestPartnersAreFoundByTheirCode(t *testing.T) {
	for _, row := range []struct {
		found  []any
		status int
	}{{[]any{rows{"id": "p1", "code": "acme"}}, 200}, {[]any{}, 404}} {
		var sent []string
		result := runnertest.Run(t, getPartner, runnertest.Request{
			Params: map[string]string{"code": "acme"}, Calls: answering(&sent, map[string]any{"query": rows{"rows": row.found}}),
		})
		if result.Status != row.status || len(sent) != 1 || sent[0] != `query {"from":"Partner","where":[["code","=","acme"]],"limit":1}` {
			t.Errorf("%v: %d, sent %q", row.found, result.Status, sent)
		}
	}
	var sent []string
	result := runnertest.Run(t, createPartner, runnertest.Request{Body: `{"code":"a c","name":"A"}`, Calls: answering(&sent, map[string]any{
		"insert": rows{"rows": []any{rows{"id": "p1", "code": "a c"}}},
	})})
	if result.Status != 201 || result.Header("location") != "/v1/partners/a%20c" {
		t.Errorf("create: %d %q", result.Status, result.Headers)
	}
}

func TestMeTellsWhoIsSignedInWithOrWithoutARow(t *testing.T) {
	for _, row := range []struct {
		found []any
		body  string
	}{
		{[]any{}, `{"userId":"u1","roles":["admin"],"user":null}`},
		{[]any{User{"u1", "a@b.example", "Ada"}}, `{"userId":"u1","roles":["admin"],"user":{"id":"u1","email":"a@b.example","name":"Ada"}}`},
	} {
		var sent []string
		result := runnertest.Run(t, me, runnertest.Request{
			Auth: runner.Auth{Kind: "session", UserID: "u1", Roles: []string{"admin"}}, Calls: answering(&sent, map[string]any{"query": rows{"rows": row.found}}),
		})
		if result.Status != 200 || string(result.Body) != row.body {
			t.Errorf("got %d %s, want %s", result.Status, result.Body, row.body)
		}
	}
}

func TestAPaymentSettlesTheOrderItNames(t *testing.T) {
	const secret = "k"
	sign := func(body string) string {
		mac := hmac.New(sha256.New, []byte(secret))
		mac.Write([]byte(body))
		return "sha256=" + hex.EncodeToString(mac.Sum(nil))
	}
	for body, want := range map[string]struct{ sent, answer string }{
		`{"type":"payment.settled","order":"A-1","ref":"r"}`: {
			`update {"in":"Order","set":{"paymentRef":"r","status":"paid"},"where":[["number","=","A-1"],["status","in",["draft","open"]]]}`, `{"settled":1}`,
		},
		`{"type":"payment.failed","order":"A-1"}`: {"", `{"settled":0}`},
	} {
		var sent []string
		result := runnertest.Run(t, paymentsWebhook, runnertest.Request{
			Method: "POST", Body: body, Headers: map[string]string{"x-signature": sign(body)},
			Secrets: map[string]string{"PAYMENTS_WEBHOOK_SECRET": secret}, Calls: answering(&sent, map[string]any{"update": rows{"count": 1}}),
		})
		if result.Status != 200 || string(result.Body) != want.answer || strings.Join(sent, "\n") != want.sent {
			t.Errorf("%s: %d %s, sent %q", body, result.Status, result.Body, sent)
		}
	}
}

func TestWebhookTakesOnlySignedBodies(t *testing.T) {
	// The vector is GitHub's published example of this scheme.
	const secret, body = "It's a Secret to Everybody", "Hello, World!"
	const good = "sha256=757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17"
	rows := []struct {
		signature, body string
		status          int
	}{
		{good, body, 400}, // signed, but no JSON
		{"", body, 400},
		{good, body + " ", 401},
		{"sha1=00", body, 401},
		{"sha256=zz", body, 401},
		{"sha256=", body, 401},
	}
	for _, row := range rows {
		headers := map[string]string{}
		if row.signature != "" {
			headers["x-signature"] = row.signature
		}
		result := runnertest.Run(t, paymentsWebhook, runnertest.Request{
			Method: "POST", Body: row.body, Headers: headers, Secrets: map[string]string{"PAYMENTS_WEBHOOK_SECRET": secret},
		})
		if result.Status != row.status {
			t.Errorf("%q over %q: got %d, want %d", row.signature, row.body, result.Status, row.status)
		}
	}
}

func TestKeyRoutesPassTheHostsWordOn(t *testing.T) {
	calls := map[string]func(json.RawMessage) (any, error){
		"apiKeys.create": func(args json.RawMessage) (any, error) {
			if !strings.Contains(string(args), `"expiresIn":3600`) {
				t.Errorf("args %s", args)
			}
			return runner.APIKey{ID: "key_1", Token: "shown"}, nil
		},
		"apiKeys.rotate": func(json.RawMessage) (any, error) { return nil, &runner.HostError{Code: "not_found"} },
		"apiKeys.revoke": func(json.RawMessage) (any, error) { return runner.APIKey{ID: "key_1"}, nil },
		"apiKeys.list":   func(json.RawMessage) (any, error) { return runner.APIKeyPage{}, nil },
	}
	rows := []struct {
		handler runner.Handler
		body    string
		status  int
	}{
		{createKey, `{"scope":"orders_read","expiresIn":3600}`, 201},
		{createKey, `{}`, 400},
		{rotateKey, `{"gracePeriod":60}`, 404},
		{revokeKey, ``, 204},
		{listKeys, ``, 200},
	}
	for i, row := range rows {
		if result := runnertest.Run(t, row.handler, runnertest.Request{Body: row.body, Calls: calls}); result.Status != row.status {
			t.Errorf("row %d: got %d, want %d", i, result.Status, row.status)
		}
	}
}
