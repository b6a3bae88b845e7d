package hostabi_test

import (
	"fmt"
	"slices"
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
		"in the body":                    {abi.Request{Body: []byte(`{"a":[{"b":"\u006carge"}]}`)}, []string{bad}, 400},
		"in the query":                   {abi.Request{Query: pair("large")}, []string{bad}, 400},
		"in the path":                    {abi.Request{Params: pair("large")}, []string{bad}, 400},
		"a number":                       {abi.Request{Body: []byte(` [1, 7.5]`)}, []string{`{"into":"Note","values":{"size":7.5}}`}, 400},
		"an object":                      {abi.Request{Body: []byte(`{"a": {"b": [1, 2]}}`)}, []string{`{"into":"Note","values":{"size":{"b":[1,2]}}}`}, 400},
		"another number of that value":   {abi.Request{Body: []byte(`{"a":7.50}`)}, []string{half}, 400},
		"a number in the query":          {abi.Request{Query: pair("7.50")}, []string{half}, 400},
		"an object, written otherwise":   {abi.Request{Body: []byte(`{"a": {"c": 1e2, "b": "\u0041"}}`)}, []string{`{"into":"Note","values":{"size":{"b":"A","c":100}}}`}, 400},
		"a limit":                        {abi.Request{Query: pair("5000")}, []string{`{"from":"Note","limit":5000}`}, 400},
		"a limit of the handler":         {abi.Request{Query: pair("500")}, []string{`{"from":"Note","limit":5000}`}, 500},
		"in a form":                      {form("application/x-www-form-urlencoded;charset=UTF-8", "b=1&a=l%61rge"), []string{bad}, 400},
		"a number in a form":             {form("application/x-www-form-urlencoded", "a=7.50"), []string{half}, 400},
		"JSON that is called a form":     {form("application/x-www-form-urlencoded", `{"a":"large"}`), []string{bad}, 400},
		"not in a form":                  {form("application/x-www-form-urlencoded", "large=1"), []string{bad}, 500},
		"in a part of a form":            {form("multipart/form-data; boundary=B", multipart), []string{bad}, 400},
		"not in a part of a form":        {form("multipart/form-data; boundary=B", multipart), []string{half}, 500},
		"an operand":                     {abi.Request{Query: pair("large")}, []string{`{"from":"Note","where":[["size","=","large"]]}`}, 400},
		"a cursor":                       {abi.Request{Query: pair("forged")}, []string{`{"from":"Note","cursor":"forged"}`}, 400},
		"of the handler":                 {abi.Request{Body: []byte(`{"a":"larger"}`), Query: pair("big")}, []string{bad}, 500},
		"in a broken body":               {abi.Request{Body: []byte(`{"b":1,`)}, []string{bad}, 500},
		"an unknown field":               {abi.Request{Query: pair("large")}, []string{`{"into":"Note","values":{"none":"large"}}`}, 500},
		"an unknown field of the body":   {abi.Request{Body: []byte(`{"none":"large"}`)}, []string{`{"into":"Note","values":{"none":"large"}}`}, 400},
		"one of an update":               {abi.Request{Body: []byte(`{"none":1}`)}, []string{`{"in":"Note","where":[],"set":{"none":1}}`}, 400},
		"one of a form":                  {form("application/x-www-form-urlencoded", "none=large"), []string{`{"into":"Note","values":{"none":"large"}}`}, 400},
		"one of an order":                {abi.Request{Query: pair("none")}, []string{`{"from":"Note","orderBy":[["none","asc"]]}`}, 400},
		"one of an order with a sign":    {abi.Request{Query: pair("-none,size")}, []string{`{"from":"Note","orderBy":[["none","asc"]]}`}, 400},
		"a part of a word of an order":   {abi.Request{Query: pair("nonesuch")}, []string{`{"from":"Note","orderBy":[["none","asc"]]}`}, 500},
		"one of an order, the handler's": {abi.Request{Query: pair("size")}, []string{`{"from":"Note","orderBy":[["none","asc"]]}`}, 500},
		"a direction":                    {abi.Request{Query: pair("up")}, []string{`{"from":"Note","orderBy":[["size","up"]]}`}, 400},
		"one of a condition":             {abi.Request{Query: pair("none")}, []string{`{"from":"Note","where":[["none","=",1]]}`}, 400},
		"one of a selection":             {abi.Request{Query: pair("id,none")}, []string{`{"from":"Note","select":["id","none"]}`}, 400},
		"one of an include":              {abi.Request{Query: pair("none")}, []string{`{"from":"Note","include":{"none":{}}}`}, 400},
		"a field of the host":            {abi.Request{Body: []byte(`{"id":"x","size":1}`)}, []string{`{"into":"Note","values":{"id":"x","size":1}}`}, 400},
		"an entity":                      {abi.Request{Params: pair("None")}, []string{`{"from":"None"}`}, 400},
		"without a required field":       {abi.Request{Body: []byte(`{"first": "a"}`)}, []string{`{"into":"Note","values":{"first":"a"}}`}, 400},
		"one that the handler left out":  {abi.Request{Body: []byte(`{"second": "a"}`)}, []string{`{"into":"Note","values":{"first":"a"}}`}, 500},
		"too many rows":                  {abi.Request{Body: []byte(`[]`)}, []string{`{"into":"Note","values":[` + strings.Repeat(`{"size":1},`, 1000) + `{"size":1}]}`}, 422},
		"a budget of the handler":        {abi.Request{Query: pair("large")}, slices.Repeat([]string{`{"from":"Note"}`}, 201), 500},
		"before an operation":            {abi.Request{Query: pair("large")}, []string{bad, `{"from":"Note"}`}, 500},
		"before another mistake":         {abi.Request{Query: pair("large")}, []string{bad, `{"from":"None"}`}, 500},
		"without any operation":          {abi.Request{Query: pair("large")}, nil, 500},
		"a scope":                        {abi.Request{Query: pair("large")}, []string{`{"scope":"large"}`}, 400},
		"a scope of the handler":         {abi.Request{Query: pair("larger")}, []string{`{"scope":"large"}`}, 500},
		"a scope of another type":        {abi.Request{Body: []byte(`{"scope":[7]}`)}, []string{`{"scope":[7]}`}, 400},
		"the name of a key":              {abi.Request{Body: []byte(`{"name":"a\nb"}`)}, []string{`{"scope":"read_only","name":"a\nb"}`}, 400},
		"the lifetime of a key":          {abi.Request{Query: pair("99999999")}, []string{`{"scope":"read_only","expiresIn":99999999}`}, 400},
		"a member of the handler":        {abi.Request{Query: pair("large")}, []string{`{"scope":"read_only","none":"large"}`}, 500},
		"a long text":                    {abi.Request{Body: []byte(`{"text":` + long + `}`)}, tooLong, 413},
		"a long text of the handler":     {abi.Request{Body: []byte(`{"text":"x"}`)}, tooLong, 500},
		"after another operation":        {abi.Request{Query: pair("large")}, []string{`{"from":"Note"}`, bad}, 400},
		"a parameter of a job":           {abi.Request{Query: pair("large")}, []string{`{"name":"mail","params":{"n":"large"}}`}, 400},
		"one of the handler":             {abi.Request{Query: pair("larger")}, []string{`{"name":"mail","params":{"n":"large"}}`}, 500},
		"in a list of a job":             {abi.Request{Body: []byte(`{"list":[ "a", 1 ]}`)}, []string{`{"name":"mail","params":{"n":1,"list":["a",1]}}`}, 400},
		"parameters without one":         {abi.Request{Body: []byte(`{"params": {"list": []}}`)}, []string{`{"name":"mail","params":{"list":[]}}`}, 400},
		"an unknown parameter":           {abi.Request{Body: []byte(`{"n": 1, "m": 2}`)}, []string{`{"name":"mail","params":{"m":2,"n":1}}`}, 400},
		"one that the handler omitted":   {abi.Request{Body: []byte(`{"l": 1}`)}, []string{`{"name":"mail","params":{"list":[]}}`}, 500},
		"no parameters":                  {abi.Request{Body: []byte(`{}`)}, []string{`{"name":"mail"}`}, 500},
		"a long list of a job":           {abi.Request{Body: []byte(`{"name":"mail","params":{"n":1,"list":[` + long + `]}}`)}, []string{`{"name":"mail","params":{"n":1,"list":[` + long + `]}}`}, 413},
		"the name of a job":              {abi.Request{Query: pair("male")}, []string{`{"name":"male","params":{}}`}, 400},
		"the key of a job":               {abi.Request{Body: []byte(`{"a":` + long + `}`)}, []string{`{"name":"mail","params":{"n":1},"key":` + long + `}`}, 400},
		"a time too far":                 {abi.Request{Query: pair("9999-01-01T00:00:00Z")}, []string{`{"name":"mail","params":{"n":1},"at":"9999-01-01T00:00:00Z"}`}, 400},
		"a time and a delay":             {abi.Request{Query: pair("5")}, []string{`{"name":"mail","params":{"n":1},"at":"0001-01-01T00:00:00Z","delay":5}`}, 500},
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
		g.do("log", 4, fmt.Sprintf("exception\ninvalid: %v\n    at x.ts:1:2", failure["message"]))
		if n := g.do("response_error", 500, "handler_failed", ""); n != 0 {
			t.Errorf("%s: response_error returns %d", name, n)
		}
		got := &g.call.Response
		code := map[int]string{400: "invalid_input", 413: "too_large", 422: "limit", 500: "handler_failed"}[tt.want]
		if got.Status != tt.want || got.Code != code || (got.Detail == "") != (tt.want == 500) {
			t.Errorf("%s: %d %s %q, want %d", name, got.Status, got.Code, got.Detail, tt.want)
		}
		// The place in the source is there, as that of a failure or of an uncaught error.
		switch failed, others := g.call.Failures(); {
		case tt.want == 500 && (failed == nil || len(failed.Frames) != 1), tt.want != 500 && (failed != nil || len(others) != 1 || len(others[0].Frames) != 1):
			t.Errorf("%s: failure %v, others %v", name, failed, others)
		}
	}
}

// The client of a handler that does not catch an error learns which field is wrong, and no name of an entity.
func TestAnUncaughtErrorIsAnsweredWithoutTheEntity(t *testing.T) {
	const schema = "entity Note { id: id name: string(1..20) @unique email: text mail: Mail? @@unique(name, email) @@allow all to session }\nentity Mail { id: id note: Note? @onDelete(restrict) @@allow all to session }\n"
	for _, tt := range []struct {
		op, args           string
		status             int
		code, detail, want string
		errors             string
	}{
		{"insert", `{"into":"Note","values":{"name":"a","email":"b"}}`, 409, "conflict", "name must be unique: another Note has the same value",
			"name must be unique: another row has the same value", `[{"field":"name","message":"must be unique: another row has the same value"}]`},
		{"get", `{"from":"Note","id":"x"}`, 404, "not_found", "there is no Note with this id", "not found", ""},
		{"insert", `{"into":"Note","values":{"name":"c","email":"b","mail":"01k5zzzzzzzzzzzzzzzzzzzzzz"}}`, 404, "not_found",
			"mail: there is no Mail with this id", "mail does not exist, or the caller may not read it", `[{"field":"mail","message":"does not exist, or the caller may not read it"}]`},
	} {
		g := newGuest(t, hostabi.Limits{})
		app, model := activate(t, g.store, schema)
		g.call.Host.Schema, g.call.Host.Entities = app, model
		if _, n := g.op("insert", `{"into":"Note","values":{"name":"a","email":"b"}}`); n < 0 {
			t.Fatal(n)
		}
		failure, n := g.op(tt.op, tt.args)
		if n >= 0 || failure["entity"] != "Note" || tt.errors != "" && !strings.Contains(tt.errors, fmt.Sprintf(`"field":%q`, failure["field"])) {
			t.Errorf("%s: %v", tt.args, failure)
		}
		message, _ := failure["message"].(string)
		for _, caught := range []bool{false, true} {
			g.call.Response.Reset()
			code := tt.code
			if caught {
				code = ""
			}
			g.do("response_error", tt.status, code, message)
			got := &g.call.Response
			if got.Status != tt.status || got.Code != tt.code || !strings.Contains(got.Detail, tt.detail) {
				t.Errorf("%s: %d %s %q", tt.args, got.Status, got.Code, got.Detail)
			}
			if want, errors := tt.want, tt.errors; !caught && (got.Public != want || string(got.Errors) != errors) || caught && (got.Public != "" || got.Errors != nil) {
				t.Errorf("%s, caught %v: %q %s", tt.args, caught, got.Public, got.Errors)
			}
		}
	}
}

// An error of keys does not name an entity, and what a handler reports about something else is its own failure.
func TestOtherUncaughtErrorsStayAsTheyAre(t *testing.T) {
	g := newGuest(t, hostabi.Limits{})
	g.call.Request = &abi.Request{ID: "r", Query: []abi.Pair{{Name: []byte("a"), Value: []byte("large")}}}
	if failure, _ := g.op("apiKeys.get", `{"id":"key_01k5zzzzzzzzzzzzzzzzzzzzzz"}`); failure["code"] == "not_found" {
		g.do("response_error", 404, "not_found", failure["message"])
		if r := g.call.Response; r.Detail == "" || r.Public != "" || r.Errors != nil {
			t.Errorf("an unknown key: %+v", r)
		}
	} else {
		t.Errorf("an unknown key: %v", failure)
	}
	const another, own = "exception\nanother error\n    at x.ts:1:2", "that of the operation"
	for name, tt := range map[string]struct {
		op, args string
		reports  []string // "": the answer, which the SDK for TypeScript gives before the report
		want     int
	}{
		"another error":            {"apiKeys.create", `{"scope":"large"}`, []string{another, ""}, 500},
		"reported afterwards":      {"apiKeys.create", `{"scope":"large"}`, []string{"", another}, 500},
		"the same error":           {"apiKeys.create", `{"scope":"large"}`, []string{"", own}, 400},
		"the last of two reports":  {"apiKeys.create", `{"scope":"large"}`, []string{"", another, own}, 400},
		"another last one":         {"apiKeys.create", `{"scope":"large"}`, []string{"", own, another}, 500},
		"an answer of the handler": {"problem", `{"status":402,"code":"large","detail":1,"members":[]}`, []string{""}, 500},
		"a code of the handler":    {"problem", `{"status":402,"code":"LARGE"}`, []string{""}, 500},
	} {
		g := newGuest(t, hostabi.Limits{})
		g.call.Request = &abi.Request{ID: "r", Query: []abi.Pair{{Name: []byte("a"), Value: []byte("large")}, {Name: []byte("b"), Value: []byte("LARGE")}}}
		failure, _ := g.op(tt.op, tt.args)
		for _, report := range tt.reports {
			if report == "" {
				g.do("response_error", 500, "handler_failed", "")
				continue
			}
			if report == own {
				report = fmt.Sprintf("exception\ninvalid: %v\n    at x.ts:1:2", failure["message"])
			}
			g.do("log", 4, report)
		}
		code := map[int]string{400: "invalid_input", 500: "handler_failed"}[tt.want]
		if r := g.call.Response; r.Status != tt.want || r.Code != code || (r.Detail == "") != (tt.want == 500) || tt.want == 500 && r.Errors != nil {
			t.Errorf("%s: %+v", name, r)
		}
	}
}

// A default of the schema is in the body that the handler reads, and was not sent.
func TestADefaultOfTheSchemaIsNotTheCallers(t *testing.T) {
	for sent, want := range map[string]int32{`{}`: 500, `{"size":"large"}`: 400} {
		g := newGuest(t, hostabi.Limits{HostCalls: 10, MovedBytes: 1 << 20, Rows: 10})
		app, model := activate(t, g.store, appSchema+"entity Thing { id: id }\nentity Note { id: id size: int @@allow all to session }\n")
		g.call.Host.Schema, g.call.Host.Entities = app, model
		g.call.Request = &abi.Request{Method: []byte("POST"), Path: []byte("/x"), ID: "r", Body: []byte(`{"size":"large"}`)}
		g.call.SentBody = []byte(sent)
		g.op("insert", `{"into":"Note","values":{"size":"large"}}`)
		if n := g.do("response_error", 500, "handler_failed", ""); n != 0 {
			t.Errorf("response_error returns %d", n)
		}
		if got := g.call.Response.Status; int32(got) != want {
			t.Errorf("%s was sent: %d, want %d", sent, got, want)
		}
	}
}
