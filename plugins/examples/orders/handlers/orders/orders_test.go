package main

import (
	"encoding/json"
	"strings"
	"testing"

	runner "runner.example/sdk/go"
	"runner.example/sdk/go/runnertest"
)

func TestCreateOrderPricesItsLines(t *testing.T) {
	result := runnertest.Run(t, createOrder, runnertest.Request{
		Method: "POST", Path: "/v1/orders", Body: `{"number":"A-1","lines":[{"item":"tea","quantity":2},{"item":"cup","quantity":1}],"total":1}`,
	})
	var order Order
	result.JSON(t, &order)
	if result.Status != 201 || order.Total != 2100 || order.Status != "open" || result.Header("location") != "/v1/orders/"+order.ID {
		t.Errorf("got %d %+v %q", result.Status, order, result.Headers)
	}
}

func TestCreateOrderNamesWhatIsWrong(t *testing.T) {
	rows := []struct {
		body    string
		status  int
		message string
	}{
		{``, 400, "missing field: number"},
		{`{"number":"A"}`, 400, "missing field: lines"},
		{`{"number":"A","lines":[{"item":"gold","quantity":1}]}`, 422, `lines[0]: no item "gold"`},
		{`{"number":"A","lines":[{"item":"tea","quantity":0}]}`, 400, "lines[0]: quantity must be 1 to 10000"},
		{`{"number"`, 400, "read the JSON body"},
	}
	for _, row := range rows {
		result := runnertest.Run(t, createOrder, runnertest.Request{Method: "POST", Body: row.body})
		if result.Status != row.status || !strings.HasPrefix(result.Message, row.message) {
			t.Errorf("body %q: got %d %q", row.body, result.Status, result.Message)
		}
	}
}

func TestListOrdersFiltersByStatus(t *testing.T) {
	for query, want := range map[string]int{"": 3, "?status=paid": 1, "?status=lost": 0} {
		result := runnertest.Run(t, listOrders, runnertest.Request{Path: "/v1/orders" + query})
		var found []Order
		result.JSON(t, &found)
		if len(found) != want {
			t.Errorf("%q: %d orders, want %d", query, len(found), want)
		}
	}
}

func TestGetOrderAnswers404ForAnUnknownID(t *testing.T) {
	if result := runnertest.Run(t, getOrder, runnertest.Request{Params: map[string]string{"id": "ord-1002"}}); result.Status != 200 {
		t.Errorf("known: %d", result.Status)
	}
	if result := runnertest.Run(t, getOrder, runnertest.Request{Params: map[string]string{"id": "x"}}); result.Status != 404 {
		t.Errorf("unknown: %d", result.Status)
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
