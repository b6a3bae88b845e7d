package hostabi_test

import (
	"testing"

	"runner.example/hostabi"
	"runner.example/hostabi/abi"
)

// A handler that fails for an invalid value is answered 400 if the caller sent the value.
func TestAnInvalidValueOfTheCallerIsNotTheHandlersFailure(t *testing.T) {
	pair := func(value string) []abi.Pair { return []abi.Pair{{Name: []byte("a"), Value: []byte(value)}} }
	const bad = `{"into":"Note","values":{"size":"large"}}`
	for name, tt := range map[string]struct {
		request abi.Request
		ops     []string
		want    int
	}{
		"in the body":             {abi.Request{Body: []byte(`{"a":[{"b":"\u006carge"}]}`)}, []string{bad}, 400},
		"in the query":            {abi.Request{Query: pair("large")}, []string{bad}, 400},
		"in the path":             {abi.Request{Params: pair("large")}, []string{bad}, 400},
		"a number":                {abi.Request{Body: []byte(` [1, 7.5]`)}, []string{`{"into":"Note","values":{"size":7.5}}`}, 400},
		"an object":               {abi.Request{Body: []byte(`{"a": {"b": [1, 2]}}`)}, []string{`{"into":"Note","values":{"size":{"b":[1,2]}}}`}, 400},
		"an operand":              {abi.Request{Query: pair("large")}, []string{`{"from":"Note","where":[["size","=","large"]]}`}, 400},
		"a cursor":                {abi.Request{Query: pair("forged")}, []string{`{"from":"Note","cursor":"forged"}`}, 400},
		"of the handler":          {abi.Request{Body: []byte(`{"a":"larger"}`), Query: pair("big")}, []string{bad}, 500},
		"in a broken body":        {abi.Request{Body: []byte(`{"b":1,`)}, []string{bad}, 500},
		"an unknown field":        {abi.Request{Query: pair("large")}, []string{`{"into":"Note","values":{"none":"large"}}`}, 500},
		"before an operation":     {abi.Request{Query: pair("large")}, []string{bad, `{"from":"Note"}`}, 500},
		"before another mistake":  {abi.Request{Query: pair("large")}, []string{bad, `{"from":"None"}`}, 500},
		"without any operation":   {abi.Request{Query: pair("large")}, nil, 500},
		"after another operation": {abi.Request{Query: pair("large")}, []string{`{"from":"Note"}`, bad}, 400},
	} {
		g := newGuest(t, hostabi.Limits{})
		app, model := activate(t, g.store, appSchema+"entity Thing { id: id }\nentity Note { id: id size: int @@allow all to session }\n")
		g.call.Host.Schema, g.call.Host.Entities = app, model
		request := tt.request
		request.Method, request.Path, request.ID = []byte("POST"), []byte("/x"), "r"
		g.call.Request = &request
		for _, args := range tt.ops {
			op := "query"
			if args[2] == 'i' {
				op = "insert"
			}
			g.op(op, args)
		}
		if n := g.do("response_error", 500, "handler_failed", ""); n != 0 {
			t.Errorf("%s: response_error returns %d", name, n)
		}
		got := &g.call.Response
		if got.Status != tt.want || tt.want == 400 && (got.Code != "invalid_input" || got.Detail == "") || tt.want == 500 && got.Code != "handler_failed" {
			t.Errorf("%s: %d %s %q, want %d", name, got.Status, got.Code, got.Detail, tt.want)
		}
	}
}
