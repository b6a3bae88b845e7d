package http_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"runner.example/tests/harness"
)

const inputSchema = `
type Line { sku: string(1..8) amount: int(1..100) }
type Order { number: string(1..4) total: decimal(6,2) note: text? express: bool = false lines: Line[]? }
routes("/", auth: none, rateLimit: none, body: 4kb) {
  POST /orders -> dump (input: Order)
  POST /any -> dump
}
`

// The handler returns its input, so a status of 200 means that it ran.
func TestABodyOfTheWrongTypeNeverReachesTheHandler(t *testing.T) {
	s := harness.NewApp(t, inputSchema, "", "echo").Serve()
	for body, filled := range map[string]string{
		`{"number":"A","total":"1.50"}`: `{"number":"A","total":"1.50","express":false}`,
		` {"number":"A","total":1.5,"note":null,"express":true,"lines":[{"sku":"x","amount":1}]} `: `{"number":"A","total":1.5,"note":null,"express":true,"lines":[{"sku":"x","amount":1}]}`,
	} {
		if got := s.Do("POST", "/orders", body); got.Status != 200 || !strings.Contains(got.Body, filled) {
			t.Errorf("%s: %d %q", body, got.Status, got.Body)
		}
	}
	for body, fields := range map[string]string{
		``:     "number total",
		`null`: "number total",
		`{}`:   "number total",
		`[]`:   "",
		`{"number":"ABCDE","total":"1.505","express":"yes","other":1}`:  "number total express other",
		`{"number":"A","total":"1.50","lines":[{"sku":"x"},{"sku":1}]}`: "lines[0].amount lines[1].sku lines[1].amount",
	} {
		got := s.Do("POST", "/orders", body)
		p := got.Problem(t)
		var more struct {
			Errors []struct{ Field, Message string }
		}
		if err := json.Unmarshal([]byte(got.Body), &more); err != nil {
			t.Fatal(err)
		}
		var named []string
		for _, e := range more.Errors {
			named = append(named, e.Field)
			if e.Message == "" {
				t.Errorf("%s: no message for %q", body, e.Field)
			}
		}
		if got.Status != 400 || p.Code != "invalid_input" || len(more.Errors) == 0 || strings.Join(named, " ") != fields {
			t.Errorf("%s: %d %s with %q, want %q", body, got.Status, p.Code, named, fields)
		}
	}
	for _, body := range []string{`{`, `{"number":"A","number":"B","total":1}`, "{\"number\":\"\xff\"}", strings.Repeat("[", 1000), `{} {}`} {
		if p := s.Do("POST", "/orders", body).Problem(t); p.Status != 400 || p.Code != "invalid_json" || p.Detail == "" {
			t.Errorf("%.40q: %+v", body, p)
		}
		if got := s.Do("POST", "/any", body); got.Status != 200 {
			t.Errorf("%.40q on a route that takes anything: %d", body, got.Status)
		}
	}
}

// The host decodes nothing, and does not call compressed bytes wrong JSON.
func TestABodyWithAContentEncodingIsRefusedWhereTheHostReadsIt(t *testing.T) {
	s := harness.NewApp(t, inputSchema, "", "echo").Serve()
	for _, encoding := range []string{"gzip", "br", "gzip, identity"} {
		if p := s.Do("POST", "/orders", "\x1f\x8b", "Content-Encoding: "+encoding).Problem(t); p.Status != 415 || p.Code != "unsupported_encoding" {
			t.Errorf("%s: %+v", encoding, p)
		}
		if got := s.Do("POST", "/any", "\x1f\x8b", "Content-Encoding: "+encoding, "Content-Type: application/json"); got.Status != 200 {
			t.Errorf("%s on a route that takes anything: %d", encoding, got.Status)
		}
	}
	if p := s.Do("POST", "/orders", "{", "Content-Encoding: Identity").Problem(t); p.Status != 400 || p.Code != "invalid_json" {
		t.Errorf("identity: %+v", p)
	}
}

func TestAnInvalidJSONBodyIsReportedWithItsPosition(t *testing.T) {
	s := harness.NewApp(t, inputSchema, "", "echo").Serve()
	for body, detail := range map[string]string{
		`{"number":1,"lines":[{"sku":"a","sku":"b"}],"total":1}`: `the body's member "lines[0].sku" must not be given twice`,
		`{"other":1,"number":2,}`:                                `the body is not JSON: invalid character '}' at start of string (expecting '"')`,
		"{" + strings.Repeat(`"":1,`, 2):                         `the body must not repeat a member of an object`,
	} {
		if p := s.Do("POST", "/orders", body).Problem(t); p.Code != "invalid_json" || p.Detail != detail {
			t.Errorf("%s: %s %q, want %q", body, p.Code, p.Detail, detail)
		}
	}
	var many []string
	for i := range 200 {
		many = append(many, fmt.Sprintf(`"m%d":1`, i))
	}
	unfinished := "{" + strings.Join(many, ",")
	if p := s.Do("POST", "/orders", unfinished).Problem(t); p.Code != "invalid_json" {
		t.Errorf("invalid JSON after the last reported error: %+v", p)
	}
	if p := s.Do("POST", "/orders", unfinished+"}").Problem(t); p.Code != "invalid_input" {
		t.Errorf("more errors than are reported: %+v", p)
	}
	long := `{"` + strings.Repeat(`\u0001`, 600) + `":1}`
	if got := s.Do("POST", "/orders", long); got.Status != 400 || len(got.Body) > 2000 {
		t.Errorf("a long name: %d with %d bytes", got.Status, len(got.Body))
	}
}
