package hostabi_test

import (
	"fmt"
	"strings"
	"testing"

	"runner.example/hostabi"
	"runner.example/hostabi/abi"
)

// A handler that fails for an invalid value is answered 400 if the caller sent the value.
func TestAnInvalidValueOfTheCallerIsNotTheHandlersFailure(t *testing.T) {
	pair := func(value string) []abi.Pair { return []abi.Pair{{Name: []byte("a"), Value: []byte(value)}} }
	const bad = `{"into":"Note","values":{"size":"large"}}`
	const half = `{"into":"Note","values":{"size":7.5}}`
	long := `"` + strings.Repeat("x", 600<<10) + `"`
	tooLong := []string{ // an update that makes the row longer than 1 MiB
		`{"into":"Note","values":{"size":1,"first":"` + strings.Repeat("y", 500<<10) + `"}}`,
		`{"in":"Note","where":[],"set":{"second":` + long + `}}`,
	}
	form := func(contentType, body string) abi.Request {
		return abi.Request{Body: []byte(body), Headers: []abi.Pair{{Name: []byte("Content-Type"), Value: []byte(contentType)}}}
	}
	const multipart = "--B\r\nContent-Disposition: form-data; name=\"n\"; filename=\"large\"\r\n\r\nx\r\n--B\r\nContent-Disposition: form-data; name=\"a\"\r\n\r\nlarge\r\n--B--\r\n"
	for name, tt := range map[string]struct {
		request abi.Request
		ops     []string
		want    int
	}{
		"in the body":                  {abi.Request{Body: []byte(`{"a":[{"b":"\u006carge"}]}`)}, []string{bad}, 400},
		"in the query":                 {abi.Request{Query: pair("large")}, []string{bad}, 400},
		"in the path":                  {abi.Request{Params: pair("large")}, []string{bad}, 400},
		"a number":                     {abi.Request{Body: []byte(` [1, 7.5]`)}, []string{`{"into":"Note","values":{"size":7.5}}`}, 400},
		"an object":                    {abi.Request{Body: []byte(`{"a": {"b": [1, 2]}}`)}, []string{`{"into":"Note","values":{"size":{"b":[1,2]}}}`}, 400},
		"another number of that value": {abi.Request{Body: []byte(`{"a":7.50}`)}, []string{half}, 400},
		"a number in the query":        {abi.Request{Query: pair("7.50")}, []string{half}, 400},
		"an object, written otherwise": {abi.Request{Body: []byte(`{"a": {"c": 1e2, "b": "\u0041"}}`)}, []string{`{"into":"Note","values":{"size":{"b":"A","c":100}}}`}, 400},
		"a limit":                      {abi.Request{Query: pair("5000")}, []string{`{"from":"Note","limit":5000}`}, 400},
		"a limit of the handler":       {abi.Request{Query: pair("500")}, []string{`{"from":"Note","limit":5000}`}, 500},
		"in a form":                    {form("application/x-www-form-urlencoded;charset=UTF-8", "b=1&a=l%61rge"), []string{bad}, 400},
		"a number in a form":           {form("application/x-www-form-urlencoded", "a=7.50"), []string{half}, 400},
		"JSON that is called a form":   {form("application/x-www-form-urlencoded", `{"a":"large"}`), []string{bad}, 400},
		"not in a form":                {form("application/x-www-form-urlencoded", "large=1"), []string{bad}, 500},
		"in a part of a form":          {form("multipart/form-data; boundary=B", multipart), []string{bad}, 400},
		"not in a part of a form":      {form("multipart/form-data; boundary=B", multipart), []string{half}, 500},
		"an operand":                   {abi.Request{Query: pair("large")}, []string{`{"from":"Note","where":[["size","=","large"]]}`}, 400},
		"a cursor":                     {abi.Request{Query: pair("forged")}, []string{`{"from":"Note","cursor":"forged"}`}, 400},
		"of the handler":               {abi.Request{Body: []byte(`{"a":"larger"}`), Query: pair("big")}, []string{bad}, 500},
		"in a broken body":             {abi.Request{Body: []byte(`{"b":1,`)}, []string{bad}, 500},
		"an unknown field":             {abi.Request{Query: pair("large")}, []string{`{"into":"Note","values":{"none":"large"}}`}, 500},
		"before an operation":          {abi.Request{Query: pair("large")}, []string{bad, `{"from":"Note"}`}, 500},
		"before another mistake":       {abi.Request{Query: pair("large")}, []string{bad, `{"from":"None"}`}, 500},
		"without any operation":        {abi.Request{Query: pair("large")}, nil, 500},
		"a scope":                      {abi.Request{Query: pair("large")}, []string{`{"scope":"large"}`}, 400},
		"a scope of the handler":       {abi.Request{Query: pair("larger")}, []string{`{"scope":"large"}`}, 500},
		"a scope of another type":      {abi.Request{Body: []byte(`{"scope":[7]}`)}, []string{`{"scope":[7]}`}, 400},
		"the name of a key":            {abi.Request{Body: []byte(`{"name":"a\nb"}`)}, []string{`{"scope":"read_only","name":"a\nb"}`}, 400},
		"the lifetime of a key":        {abi.Request{Query: pair("99999999")}, []string{`{"scope":"read_only","expiresIn":99999999}`}, 400},
		"a member of the handler":      {abi.Request{Query: pair("large")}, []string{`{"scope":"read_only","none":"large"}`}, 500},
		"a long text":                  {abi.Request{Body: []byte(`{"text":` + long + `}`)}, tooLong, 400},
		"a long text of the handler":   {abi.Request{Body: []byte(`{"text":"x"}`)}, tooLong, 500},
		"after another operation":      {abi.Request{Query: pair("large")}, []string{`{"from":"Note"}`, bad}, 400},
		"a parameter of a job":         {abi.Request{Query: pair("large")}, []string{`{"name":"mail","params":{"n":"large"}}`}, 400},
		"one of the handler":           {abi.Request{Query: pair("larger")}, []string{`{"name":"mail","params":{"n":"large"}}`}, 500},
		"in a list of a job":           {abi.Request{Body: []byte(`{"list":[ "a", 1 ]}`)}, []string{`{"name":"mail","params":{"n":1,"list":["a",1]}}`}, 400},
		"parameters without one":       {abi.Request{Body: []byte(`{"params": {"list": []}}`)}, []string{`{"name":"mail","params":{"list":[]}}`}, 400},
		"an unknown parameter":         {abi.Request{Body: []byte(`{"n": 1, "m": 2}`)}, []string{`{"name":"mail","params":{"m":2,"n":1}}`}, 400},
		"one that the handler omitted": {abi.Request{Body: []byte(`{"l": 1}`)}, []string{`{"name":"mail","params":{"list":[]}}`}, 500},
		"no parameters":                {abi.Request{Body: []byte(`{}`)}, []string{`{"name":"mail"}`}, 500},
		"a long list of a job":         {abi.Request{Body: []byte(`{"name":"mail","params":{"n":1,"list":[` + long + `]}}`)}, []string{`{"name":"mail","params":{"n":1,"list":[` + long + `]}}`}, 400},
		"the name of a job":            {abi.Request{Query: pair("male")}, []string{`{"name":"male","params":{}}`}, 400},
		"the key of a job":             {abi.Request{Body: []byte(`{"a":` + long + `}`)}, []string{`{"name":"mail","params":{"n":1},"key":` + long + `}`}, 400},
		"a time too far":               {abi.Request{Query: pair("9999-01-01T00:00:00Z")}, []string{`{"name":"mail","params":{"n":1},"at":"9999-01-01T00:00:00Z"}`}, 400},
		"a time and a delay":           {abi.Request{Query: pair("5")}, []string{`{"name":"mail","params":{"n":1},"at":"0001-01-01T00:00:00Z","delay":5}`}, 500},
	} {
		g := newGuest(t, hostabi.Limits{HostCalls: 10_000, MovedBytes: 8 << 20})
		g.module.Memory().Grow(32)
		app, model := activate(t, g.store, appSchema+"entity Thing { id: id }\nentity Note { id: id size: int first: text? second: text? @@allow all to session }\njobs(retries: 1) { mail(n: int, list: string[]?) }\n")
		g.call.Host.Schema, g.call.Host.Entities = app, model
		request := tt.request
		request.Method, request.Path, request.ID = []byte("POST"), []byte("/x"), "r"
		g.call.Request = &request
		var failure map[string]any
		for _, args := range tt.ops {
			op := "query"
			switch {
			case strings.HasPrefix(args, `{"into"`):
				op = "insert"
			case strings.HasPrefix(args, `{"in"`):
				op = "update"
			case strings.HasPrefix(args, `{"scope"`):
				op = "apiKeys.create"
			case strings.HasPrefix(args, `{"name"`):
				op = "jobs.enqueue"
			}
			failure, _ = g.op(op, args)
		}
		g.log.Reset()
		g.do("log", 4, fmt.Sprintf("exception\ninvalid: %v\n    at x.ts:1:2", failure["message"]))
		if info := strings.Contains(g.log.String(), `"INFO"`); info != (tt.want == 400) {
			t.Errorf("%s: the log has %s", name, g.log.String())
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

// A handler that fails because too many rows are affected is answered 422.
func TestTooManyRowsAreNotTheHandlersFailure(t *testing.T) {
	g := newGuest(t, hostabi.Limits{HostCalls: 10_000, MovedBytes: 8 << 20, Rows: 3})
	app, model := activate(t, g.store, appSchema+"entity Thing { id: id }\nentity Note { id: id size: int @@allow all to session }\n")
	g.call.Host.Schema, g.call.Host.Entities = app, model
	g.call.Request = &abi.Request{Method: []byte("POST"), Path: []byte("/x"), ID: "r"}
	if answer, n := g.op("insert", `{"into":"Note","values":[{"size":1},{"size":2},{"size":3},{"size":4}]}`); n < 0 {
		t.Fatal(answer)
	}
	if answer, n := g.op("count", `{"from":"Note","atMost":2}`); n < 0 || answer["count"] != 2.0 || answer["more"] != true {
		t.Errorf("at most 2: %v", answer)
	}
	failure, n := g.op("count", `{"from":"Note"}`)
	if abi.Errno(n) != abi.Limit || failure["code"] != "limit" {
		t.Errorf("%d, %v", n, failure)
	}
	g.log.Reset()
	g.do("log", 4, fmt.Sprintf("exception\nlimit: %v\n    at x.ts:1:2", failure["message"]))
	if !strings.Contains(g.log.String(), `"INFO"`) {
		t.Errorf("the log has %s", g.log.String())
	}
	if n := g.do("response_error", 500, "handler_failed", ""); n != 0 {
		t.Errorf("response_error returns %d", n)
	}
	if got := &g.call.Response; got.Status != 422 || got.Code != "too_many_rows" || got.Detail != failure["message"] {
		t.Errorf("%d %s %q", got.Status, got.Code, got.Detail)
	}
}
