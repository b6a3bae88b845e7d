package http_test

import (
	"strconv"
	"strings"
	"testing"

	"runner.example/tests/harness"
)

// newQueryApp is an app whose routes declare what they are asked and what they answer.
func newQueryApp(t *testing.T) *harness.App {
	t.Helper()
	a := harness.NewApp(t, `
enum State { open, paid }
entity Order { id: id name: string(1..8) secret: string? @hidden }
apiKeys { scopes: { desk: @system("desk") { @grant read, insert on Order } } }
type OrderQuery {
  name: string(1..8)
  states: State[]?
  ids: int[]?
  most: decimal(6,2)? @min(1)
  limit: int(1..100) = 20
  paid: bool = false
  since: date?
}
type Point { x: int }
routes("/v1", auth: apiKey(desk), rateLimit: none) {
  GET  /orders -> echo (query: OrderQuery)
  GET  /rows   -> rows: []Order
  GET  /point  -> point: Point
  POST /point  -> addPoint: Point
  GET  /wrong  -> wrong: Order[]
}
`, "")
	a.Write("handlers/orders.ts", `
import { created, insert, noContent, ok, query, type RouteRequest } from "@runner/sdk";
import type { OrderQuery } from "@runner/schema";
export const echo = (req: RouteRequest) => ok([req.body<OrderQuery>(), req.queryAll.name]);
export const rows = async () => { await insert("Order", { name: "a" }); return ok(query("Order").select("name")); };
export const point = (req: RouteRequest) => req.query.none ? noContent() : ok({ x: req.query.x ? 1 : "1" });
export const addPoint = (req: RouteRequest) => created({ y: 1 });
export const wrong = async () => { await insert("Order", { name: "b" }); return ok([{ id: 5 }]); };
`)
	a.Must("build")
	return a
}

func TestADeclaredQueryIsCheckedAndDecoded(t *testing.T) {
	t.Parallel()
	a := newQueryApp(t)
	s, key := a.Serve(), "X-API-Key: "+a.Token("desk")
	for query, want := range map[string]string{
		"name=ada": `[{"name":"ada","limit":20,"paid":false},["ada"]]`,
		"states=open&name=7&ids=3&limit=5&states=paid&paid=true&ids=-4&most=12.5&since=2026-01-31": `[{"states":["open","paid"],"name":"7","ids":[3,-4],"limit":5,"paid":true,"most":"12.5","since":"2026-01-31"},["7"]]`,
		"name=%22%E2%82%AC%5C":   `[{"name":"\"€\\","limit":20,"paid":false},["\"€\\"]]`,
		"name=ada&limit=1e1":     `[{"name":"ada","limit":10,"paid":false},["ada"]]`,
		"name=null&ids=1&ids=01": ``,
		"name=ada&limit=%2B1":    ``,
		"name=ada&limit=+1":      ``, // a space and a number
		"name=ada&limit=1%20":    ``,
		"name=ada&paid=+true":    ``,
		"name=ada&most=%2B2":     ``,
		"name=ada&most=+2":       ``,
	} {
		got := s.Do("GET", "/v1/orders?"+query, "", key)
		if want == "" {
			if got.Status != 400 {
				t.Errorf("%s: %d %s", query, got.Status, got.Body)
			}
			continue
		}
		if got.Status != 200 || string(got.Body) != want {
			t.Errorf("%s: %d %s\nwant %s", query, got.Status, got.Body, want)
		}
	}
	got := s.Do("GET", "/v1/orders?stats=x&stats=y&states=open&states=shut&ids=a&limit=0&limit=2&paid=yes&most=0.5&since=now&since=then", "", key)
	body := string(got.Body)
	for _, part := range []string{
		`"code":"invalid_input"`, `query does not match type OrderQuery`, `"field":"stats","message":"is not a field of OrderQuery`, `"field":"states[1]"`, `"field":"ids[0]"`,
		`"field":"limit","message":"must be at least 1"`, `"field":"limit","message":"must not be given twice"`, `"field":"paid","message":"must be true or false"`,
		`"field":"most"`, `"field":"since"`, `"field":"name","message":"is required"`,
	} {
		if got.Status != 400 || !strings.Contains(body, part) {
			t.Errorf("%d %s\nhas no %s", got.Status, body, part)
		}
	}
}

func TestADeclaredAnswerIsChecked(t *testing.T) {
	t.Parallel()
	a := newQueryApp(t)
	s, key := a.Serve(), "X-API-Key: "+a.Token("desk")
	for _, row := range []struct {
		method, path string
		status       int
		body         string
	}{
		{"GET", "/v1/rows", 200, `[{"name":"a"}]`},
		{"GET", "/v1/point?x=1", 200, `{"x":1}`},
		{"GET", "/v1/point?none=1", 204, ``},
		{"GET", "/v1/point", 500, `handler_failed`},
		{"POST", "/v1/point", 500, `handler_failed`},
		{"GET", "/v1/wrong", 500, `handler_failed`},
		{"GET", "/v1/rows", 200, `[{"name":"a"},{"name":"a"}]`}, // wrong's row was discarded
	} {
		got := s.Do(row.method, row.path, "", key)
		if got.Status != row.status || !strings.Contains(string(got.Body), row.body) {
			t.Errorf("%s %s: %d %s, want %d %s", row.method, row.path, got.Status, got.Body, row.status, row.body)
		}
	}
	s.WaitForOutput("the result does not match Point: .*must be a number")
	s.WaitForOutput("the result does not match Order\\[\\]")
}

// The decoded query is the body of a handler in any language.
func TestAGoHandlerReadsADeclaredQuery(t *testing.T) {
	t.Parallel()
	a := harness.NewApp(t, `
type Page { after: string? tags: string[] limit: int(1..100) = 20 }
routes("/v1", auth: none, rateLimit: none) {
  GET /pages -> pages (query: Page)
}
`, "")
	a.Write("handlers/pages/go.mod", "module pages\n\ngo 1.24\n\nrequire runner.example/sdk/go v0.0.0\n\nreplace runner.example/sdk/go => "+strconv.Quote(harness.RepoFile("sdk/go"))+"\n")
	a.Write("handlers/pages/main.go", `package main

import "runner.example/sdk/go"

type page struct {
	After *string  `+"`json:\"after\"`"+`
	Tags  []string `+"`json:\"tags\"`"+`
	Limit int      `+"`json:\"limit\"`"+`
}

//go:wasmexport pages
func pages() {
	runner.Handle(func(_ *runner.Context, req *runner.Request) (runner.Response, error) {
		p, err := runner.Body[page](req)
		return runner.OK([]any{p, req.Query("tags")}), err
	})
}

func main() {}
`)
	a.Must("build")
	s := a.Serve()
	for query, want := range map[string]string{
		"tags=a":                  `[{"after":null,"tags":["a"],"limit":20},"a"]`,
		"tags=a&limit=1e1&tags=b": `[{"after":null,"tags":["a","b"],"limit":10},"a"]`,
		"after=%22&tags=&limit=7": `[{"after":"\"","tags":[""],"limit":7},""]`,
	} {
		if got := s.Do("GET", "/v1/pages?"+query, ""); got.Status != 200 || string(got.Body) != want {
			t.Errorf("%s: %d %s\nwant %s", query, got.Status, got.Body, want)
		}
	}
	if p := s.Want(400, nil, "GET", "/v1/pages?limit=0&page=2", "").Problem(t); p.Code != "invalid_input" || len(p.Errors) != 3 {
		t.Errorf("a query that is not valid: %+v", p)
	}
}
