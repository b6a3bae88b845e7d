package generate_test

import (
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"runner.example/schema/generate"
)

// everything is a schema with all features that appear in generated files.
func everything(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile("testdata/everything.schema")
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// golden compares with a file, or writes it with -update.
func golden(t *testing.T, file, got string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(string(want), got); d != "" {
		t.Errorf("-want +got\n%s", d)
	}
}

// The black-box tests validate the document and compare it with the server.
func TestADocumentDescribesAllFeatures(t *testing.T) {
	s := compile(t, everything(t))
	opt := generate.OpenAPIOptions{Version: "1.2.3", Servers: []string{"https://api.example.com", "https://b.example.com"}}
	got := string(generate.OpenAPI(s, opt))
	golden(t, "testdata/everything.openapi.json", got)
	if again := string(generate.OpenAPI(compile(t, everything(t)), opt)); again != got {
		t.Error("the second document of the same schema differs")
	}
}

// document has the parts of a document that the tests read.
type document struct {
	Info    struct{ Title, Version string }
	Servers []struct{ URL string }
	Paths   map[string]map[string]struct {
		OperationID string
		Parameters  []struct{ Name string }
		Security    []map[string][]string
	}
	Components struct {
		Schemas         map[string]json.RawMessage
		SecuritySchemes map[string]json.RawMessage
	}
}

func read(t *testing.T, schema string) (document, string) {
	t.Helper()
	text := generate.OpenAPI(compile(t, schema), generate.OpenAPIOptions{})
	var d document
	if err := json.Unmarshal(text, &d); err != nil {
		t.Fatal(err)
	}
	return d, string(text)
}

func TestDocumentsAndClientsOmitHiddenFields(t *testing.T) {
	s := compile(t, everything(t))
	for what, text := range map[string][]byte{"document": generate.OpenAPI(s, generate.OpenAPIOptions{}), "client": generate.Client(s)} {
		if strings.Contains(string(text), "secretNote") || strings.Contains(string(text), "inside") {
			t.Errorf("the %s contains a hidden field, or a function that is not exposed", what)
		}
	}
}

func TestADocumentOfASmallSchemaIsComplete(t *testing.T) {
	d, text := read(t, `routes("/", auth: none, rateLimit: none) { GET / -> x }`)
	if d.Info.Title != "runner" || d.Info.Version == "" || len(d.Servers) != 1 || d.Servers[0].URL != "/" || d.Paths["/"]["get"].OperationID != "x" {
		t.Errorf("%+v", d)
	}
	if len(d.Components.SecuritySchemes) > 0 || strings.Contains(text, "RateLimit") || strings.Contains(text, "429") {
		t.Errorf("it describes credentials and limits that the schema does not have:\n%s", text)
	}
}

func TestPathsThatDifferOnlyInParameterNamesAreMerged(t *testing.T) {
	d, _ := read(t, `routes("/", auth: none, rateLimit: none) {
		GET /a/:x/b/:y -> one
		PUT /a/:p/b/:q -> two
		GET /f/:x -> three
		GET /f/:x/:y -> four
		GET /f/*rest -> five
		PUT /f/*rest -> six
	}`)
	got := map[string]string{}
	for path, methods := range d.Paths {
		for method, op := range methods {
			var names []string
			for _, p := range op.Parameters {
				if p.Name != "" {
					names = append(names, p.Name)
				}
			}
			got[op.OperationID] = method + " " + path + " " + strings.Join(names, ",")
		}
	}
	if d := cmp.Diff(map[string]string{
		"one": "get /a/{x}/b/{y} x,y", "two": "put /a/{x}/b/{y} x,y", "three": "get /f/{x} x", "four": "get /f/{x}/{y} x,y",
		"five": "get /f/{rest_1}/{rest_2}/{rest} rest_1,rest_2,rest", "six": "put /f/{x} x",
	}, got); d != "" {
		t.Errorf("-want +got\n%s", d)
	}
}

func TestASchemaCanDeclareATypeNamedProblem(t *testing.T) {
	d, text := read(t, `type Problem { mine: int } enum Problem_ { a }
		routes("/", auth: none, rateLimit: none) { POST /x -> x (input: Problem) }`)
	for name, part := range map[string]string{"Problem": `"mine"`, "Problem_": `"a"`, "Problem__": "requestId"} {
		if !strings.Contains(string(d.Components.Schemas[name]), part) {
			t.Errorf("%s has no %s\n%s", name, part, text)
		}
	}
}

func TestEachSecurityEntryIsSufficient(t *testing.T) {
	d, _ := read(t, everything(t))
	got := d.Paths["/v1/orders"]["post"].Security
	want := []map[string][]string{
		{"bearerKey": {"orders_write"}}, {"headerKey": {"orders_write"}}, {"bearerKey": {"orders_read"}}, {"headerKey": {"orders_read"}},
		{"cookieSession": {"owner"}}, {"jwtSession": {"owner"}}, {"cookieSession": {"clerk"}}, {"jwtSession": {"clerk"}},
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("-want +got\n%s", d)
	}
	for name := range map[string]bool{"bearerKey": true, "headerKey": true, "cookieSession": true, "jwtSession": true} {
		if d.Components.SecuritySchemes[name] == nil {
			t.Errorf("%s is not described", name)
		}
	}
	optional := []map[string][]string{{"cookieSession": {}}, {"jwtSession": {}}, {}}
	if d := cmp.Diff(optional, d.Paths["/files/page"]["post"].Security); d != "" {
		t.Errorf("with none: -want +got\n%s", d)
	}
	if public := d.Paths["/files/{name}"]["get"].Security; public == nil || len(public) != 0 {
		t.Errorf("a route without auth asks for %v", public)
	}
}
