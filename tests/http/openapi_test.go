package http_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"

	"runner.example/tests/harness"
)

// validators returns the directory of the validators of OpenAPI documents.
var validators = sync.OnceValues(func() (string, error) {
	var stderr bytes.Buffer
	cmd := exec.Command(harness.RepoFile("tools/fetch-openapi-validator.sh"))
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("%w: %s", err, stderr.String())
	}
	return strings.TrimSpace(string(out)), nil
})

// checkDocument runs testdata/openapi/check.mjs, which describes its tasks.
func checkDocument(t *testing.T, stdin []byte, task string, documents ...string) []byte {
	t.Helper()
	modules, err := validators()
	if err != nil {
		t.Fatal(err)
	}
	var stderr bytes.Buffer
	cmd := exec.Command("node", append([]string{"testdata/openapi/check.mjs", modules, task}, documents...)...)
	cmd.Stdin, cmd.Stderr = bytes.NewReader(stdin), &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("check %s: %v\n%s", documents, err, stderr.String())
	}
	return out
}

// judged is a value and a schema to validate it with: the schema itself, or a pointer to
// one in the document.
type judged [2]any

func judge(t *testing.T, document string, values []judged) (fits []bool) {
	t.Helper()
	stdin, err := json.Marshal(values)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(checkDocument(t, stdin, "judge", document), &fits); err != nil || len(fits) != len(values) {
		t.Fatalf("%d verdicts on %d values: %v", len(fits), len(values), err)
	}
	return fits
}

func TestDocumentsOfAllSchemasAreValidOpenAPI(t *testing.T) {
	t.Parallel()
	schemas, err := filepath.Glob(harness.RepoFile("plugins/examples/*/*.schema"))
	if err != nil || len(schemas) < 4 {
		t.Fatalf("examples: %q, %v", schemas, err)
	}
	schemas = append(schemas, harness.RepoFile("schema/generate/testdata/everything.schema"), harness.Testdata("types/shop.schema"), harness.Testdata("typescript/shop.schema"), harness.Testdata("client/client.schema"))
	seed := harness.NewApp(t, "apiKeys { scopes: { a: @system(\"a\") { @grant read on Order } } }\nroutes(\"/v1\", auth: apiKey(a), rateLimit: none) { GET / -> x routes(\"/me\", auth: session) { POST /:id/*rest -> y } }", "")
	schemas = append(schemas, seed.Path("app.schema"))

	dir := t.TempDir()
	var documents []string
	for i, file := range schemas {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		a := harness.NewApp(t, string(text), "")
		document := filepath.Join(dir, fmt.Sprintf("%d-%s.json", i, filepath.Base(file)))
		a.Must("generate", "openapi", "--out", document, "--server", "https://api.example.com/base", "--api-version", "1.0.0")
		documents = append(documents, document)
		if stdout, written := a.Must("generate", "openapi", "--server", "https://api.example.com/base", "--api-version", "1.0.0"), harness.MustRead(t, document); stdout != written {
			t.Errorf("%s: the second document differs", file)
		}
	}
	if out := checkDocument(t, nil, "mistakes", documents...); len(out) > 0 {
		t.Errorf("%s", out)
	}

	whole := harness.MustRead(t, documents[len(schemas)-5])
	wrong := [][3]string{
		{"a name of the format", `"responses": {`, `"response": {`},
		{"a reference", `"#/components/headers/RateLimit"`, `"#/components/headers/Rate"`},
		{"a name of JSON Schema", `"maxLength"`, `"longest"`},
		{"a type of JSON Schema", `"type": "integer"`, `"type": "int"`},
		{"a way in", `"bearerKey": [`, `"bearer": [`},
		{"a parameter", `"/v1/orders/{id}"`, `"/v1/orders/{it}"`},
		{"an operation's own name", `"operationId": "getOrder"`, `"operationId": "listOrders"`},
	}
	var broken []string
	for i, change := range wrong {
		text := strings.Replace(whole, change[1], change[2], 1)
		if text == whole {
			t.Fatalf("there is no %s", change[1])
		}
		broken = append(broken, filepath.Join(dir, fmt.Sprintf("broken-%d.json", i)))
		if err := os.WriteFile(broken[i], []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	found := string(checkDocument(t, nil, "mistakes", broken...))
	for i, change := range wrong {
		if !strings.Contains(found, broken[i]+": ") {
			t.Errorf("%s is wrong, but the validator accepts it", change[0])
		}
	}
}

// params has parameters of every type. looser marks those whose rules JSON Schema cannot
// express completely.
var params = []struct {
	name, declared string
	looser         bool
}{
	{"s", "string(2..4)?", false},
	{"p", `string(12)? @pattern("^[A-Z]+-\\d{2,}$")`, false},
	{"tt", "text?", false},
	{"u", "uuid?", false},
	{"e", "email?", false},
	{"l", "url?", false},
	{"i", "int(1..100)?", false},
	{"n", "int? @min(-5)", false},
	{"f", "float? @min(0.5) @max(1000000)", false},
	{"d", "decimal(5,2)?", true}, // a number may have too many decimals
	{"m", "decimal(5,2)? @min(1)", true},
	{"z", "decimal(3,3)?", true},
	{"w", "decimal(3,0)?", true},
	{"b", "bool?", false},
	{"t", "time?", false},
	{"day", "date?", false},
	{"dur", "duration?", false},
	{"j", "json?", false},
	{"raw", `json = "x"`, false},
	{"y", "bytes?", false},
	{"mood", "Mood?", false},
	{"must", "Mood = good", false},
	{"moods", "Mood[]?", false},
	{"part", "Part?", false},
	{"parts", "Part[]?", false},
	{"note", "Note?", false},
	{"user", "User?", false},
	{"id", "id?", false},
	{"ss", "string(1..2)[]?", false},
}

var values = strings.Fields(`null true false 0 1 -1 -5 -6 0.5 1.5 0.49 12.50 100 101 999.99 1000 1e3 1.0 99999999999 9007199254740991 9007199254740992 -9007199254740991
	"" "a" "ab" "abcd" "abcde" "äöü😀" "A-12" "A-1" "AB-123" "ab-12" "A-12\n" "12" "12.5" "12.50" "12.500" "12.505" "-12.50" "-0" "007.10" "1234" "999.99" "1000.00" ".5" "5." "1e2" "0.125" "-.1" "0.1250"
	"good" "bad" "GOOD" [] ["good"] ["good","bad"] ["ugly"] ["good",null] [null] ["a"] ["a","bc"] ["abc"] {} [{}]
	{"name":"a"} {"name":"a","amount":2} {"name":"a","amount":null} {"name":"a","amount":1.5} {"name":"a","more":1} {"name":null} [{"name":"a"}] [{"name":"a"},{"name":"b","amount":1}] [{"name":""}]
	"2026-01-31" "2026-02-30" "2026-1-31" "2026-01-31T09:30:00Z" "2026-01-31T09:30:00.123Z" "2026-01-31T09:30:00+02:00" "2026-01-31T09:30:00" "2026-13-31T09:30:00Z"
	"01jz8k3v6m9q2r5t8w1x4y7z0a" "01JZ8K3V6M9Q2R5T8W1X4Y7Z0A" "81jz8k3v6m9q2r5t8w1x4y7z0a" "auth0|5f7c8ec7" "user/1" "ann"
	"f81d4fae-7dec-11d0-a765-00a0c91e6bf6" "F81D4FAE-7DEC-11D0-A765-00A0C91E6BF6" "f81d4fae7dec11d0a76500a0c91e6bf6"
	"ann@example.com" "ann" "@example.com" "https://example.com/a?b=c" "example.com" "/a" "c2Vh" "c2V" "c2U=" "c2V=" "cw==" "cx==" "s&e" "http:///a" "mailto:a@example.com"`)

func TestTheServerAcceptsWhatTheDocumentDescribes(t *testing.T) {
	t.Parallel()
	var declared []string
	for _, p := range params {
		declared = append(declared, p.name+": "+p.declared)
	}
	a := harness.NewApp(t, `
auth { session cookie { } user: User }
enum Mood { good bad }
type Part { name: string(1..8) amount: int = 1 }
entity User { id: id name: string @@allow read to session }
entity Note { id: id text: string @@allow read to session }
functions(auth: none, rateLimit: none) { @expose take(`+strings.Join(declared, ", ")+`) -> json }
`, "")
	a.Write("handlers/take.ts", `import { ok } from "@runner/sdk"; export function take() { return ok(1); }`)
	a.Must("build")
	a.Must("generate", "openapi", "--out", a.Path("openapi.json"))
	s := a.Serve()

	const schema = "#/paths/~1_call~1take/post/requestBody/content/application~1json/schema"
	var sent []judged
	for _, p := range params {
		for _, value := range values {
			sent = append(sent, judged{schema, map[string]json.RawMessage{p.name: json.RawMessage(value)}})
		}
	}
	sent = append(sent, judged{schema, map[string]int{"unknown": 1}}, judged{schema, []int{}}, judged{schema, map[string]int{}})
	fits := judge(t, a.Path("openapi.json"), sent)
	taken := map[string]int{}
	for i, one := range sent {
		body, err := json.Marshal(one[1])
		if err != nil {
			t.Fatal(err)
		}
		got := s.Do("POST", "/_call/take", string(body))
		p := params[min(i/len(values), len(params)-1)]
		switch {
		case got.Status != 200 && got.Status != 400:
			t.Fatalf("%s: %d %s", body, got.Status, got.Body)
		case got.Status == 200 && !fits[i]:
			t.Errorf("%s %s: the server takes %s, and the document does not", p.name, p.declared, body)
		case got.Status == 400 && fits[i] && !p.looser:
			t.Errorf("%s %s: the document takes %s, and the server does not: %s", p.name, p.declared, body, got.Body)
		case got.Status == 200:
			taken[p.name]++
		}
	}
	for _, p := range params {
		if n := taken[p.name]; n < 2 || n == len(values) && p.name != "j" {
			t.Errorf("%s %s accepted %d of %d values", p.name, p.declared, n, len(values))
		}
	}
}

func TestPatternsMeanTheSameInJSONSchema(t *testing.T) {
	patterns := []string{
		`^[A-Z]{2}-[0-9]+$`, `a.c`, `(?s)a.c`, `(?i)straße|K`, `^(?:ab|cd)*$`, `(?m)^b$`, `\bfoo\b`, `\Bo`, `[^a-f]`, `[^\d\s]x`, `^\pL+$`, `[[:alpha:]]_`,
		`a{2,3}?b`, `(a|b|)c`, `^$`, `\x{1F600}+`, `[\x{1F600}-\x{1F64F}]`, `[\]\-\\^]`, `\$\{\}\(\)\[\]\|\*\+\?\.\/`, `(?P<year>\d{4})-\d\d`, `\Qa.b\E`, `é`, `\n`, `[^\n]\z`, `(?i)[k-m]`, `x*y+z?`, `(?:a+)+b|c`,
	}
	texts := []string{
		"", "a", "b", "ab", "abc", "a\nc", "AB-12", "ab-12", "straße", "STRASSE", "STRAßE", "k", "K", "\u212a", "abcd", "abx", "a\nb\nc", "a foo b", "food", "oo", "f", "xyz", "1x", "éa", "Ünï", "_", "a_", "aab", "aaab", "ac", "c",
		"😀", "😀😀", "🙏", "]", "-", `\`, "^", "${}()[]|*+?./", "2026-01", "a.b", "axb", "é", "\n", "L", "y", "xxyz", "\r", "a\rc", "a\u2028c", "\x00", "a/b",
	}
	var fields []string
	for i, p := range patterns {
		quoted := strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(p)
		fields = append(fields, fmt.Sprintf(`p%d: string(100) @pattern("%s")`, i, quoted))
	}
	a := harness.NewApp(t, "type Texts { "+strings.Join(fields, "\n")+" }\nroutes(\"/\", auth: none, rateLimit: none) { POST /x -> x (input: Texts) }", "")
	a.Must("generate", "openapi", "--out", a.Path("openapi.json"))
	var values []judged
	for i := range patterns {
		for _, text := range texts {
			values = append(values, judged{fmt.Sprintf("#/components/schemas/Texts/properties/p%d", i), text})
		}
	}
	fits := judge(t, a.Path("openapi.json"), values)
	for i, p := range patterns {
		matches := 0
		for j, text := range texts {
			want := regexp.MustCompile(p).MatchString(text)
			if want {
				matches++
			}
			if got := fits[i*len(texts)+j]; got != want {
				t.Errorf("%s: %q matches in JSON Schema: %t, want %t", p, text, got, want)
			}
		}
		if matches == 0 || matches == len(texts) {
			t.Errorf("%s matches %d texts of %d: the test proves nothing", p, matches, len(texts))
		}
	}
}

func TestResultsMatchTheDocument(t *testing.T) {
	t.Parallel()
	a := newFunctionsApp(t)
	a.Must("generate", "openapi", "--out", a.Path("openapi.json"))
	s := a.Serve()
	key := "X-API-Key: " + a.Token("desk")
	var results []judged
	for _, call := range [][2]string{
		{"sum", `{"parts":[{"name":"a"},{"name":"b","amount":4}]}`}, {"write", `{"text":"b"}`}, {"notes", ``}, {"nothing", ``},
	} {
		got := s.Do("POST", "/_call/"+call[0], call[1], key)
		if got.Status != 200 {
			t.Fatalf("%s: %d %s", call[0], got.Status, got.Body)
		}
		results = append(results, judged{"#/paths/~1_call~1" + call[0] + "/post/responses/200/content/application~1json/schema", json.RawMessage(got.Body)})
	}
	for _, refusal := range []harness.Answer{
		s.Do("POST", "/_call/sum", `{"parts":[{"amount":"x"}]}`, key), s.Do("POST", "/_call/sum", `{`, key), s.Do("POST", "/_call/sum", ``),
		s.Do("POST", "/_call/refuses", ``, key), s.Do("POST", "/_call/wrongSum", `{"parts":[]}`, key),
	} {
		if refusal.Status < 400 {
			t.Errorf("%d %s is not a problem document", refusal.Status, refusal.Body)
		}
		results = append(results, judged{"#/components/schemas/Problem", json.RawMessage(refusal.Body)})
	}
	for i, fits := range judge(t, a.Path("openapi.json"), results) {
		if !fits {
			t.Errorf("%s is not a valid %s", results[i][1], results[i][0])
		}
	}
	wrong := judge(t, a.Path("openapi.json"), []judged{{results[0][0], map[string]string{"total": "5"}}, {results[1][0], map[string]int{"shade": 1}}, {results[4][0], map[string]int{"status": 400}}})
	for i, fits := range wrong {
		if fits {
			t.Errorf("the document takes the wrong result %d", i)
		}
	}
}

// described is the part of a document about responses.
type described struct {
	Paths map[string]map[string]struct {
		Responses map[string]struct {
			Ref     string `json:"$ref"`
			Headers map[string]any
		}
	}
	Components struct {
		Responses map[string]struct{ Headers map[string]any }
	}
}

// headersOf returns the documented headers of a response. ok reports whether the document
// has a response with that status.
func (d *described) headersOf(method, path string, status int) (headers map[string]any, ok bool) {
	responses := d.Paths[path][strings.ToLower(method)].Responses
	r, ok := responses[fmt.Sprint(status)]
	if name, ref := strings.CutPrefix(r.Ref, "#/components/responses/"); ref {
		return d.Components.Responses[name].Headers, ok
	}
	return r.Headers, ok
}

func TestResponsesAndTheirHeadersAreInTheDocument(t *testing.T) {
	t.Parallel()
	a := harness.NewClientApp(t)
	a.Write("more.schema", `secret HOOK
		routes("/hooks", auth: none, rateLimit: none) { POST /in -> open (verify: webhook(github, HOOK)) }
		routes("/small", auth: none, rateLimit: none, body: 1kb) { POST /in -> open }`)
	a.Env = append(a.Env, "RUNNER_SECRETS_HOOK=a secret")
	a.Must("build")
	var d described
	if err := json.Unmarshal([]byte(a.Must("generate", "openapi")), &d); err != nil {
		t.Fatal(err)
	}
	s := a.Serve()
	var session harness.Session
	if err := json.Unmarshal([]byte(a.Must("sessions", "create", "--user", "ann", "--json")), &session); err != nil {
		t.Fatal(err)
	}
	key, other, cookie := "X-API-Key: "+a.Token("desk"), "X-API-Key: "+a.Token("other"), "Cookie: "+session.Cookie
	seen := map[int]bool{}
	for _, row := range []struct {
		method, path, at, body string
		status                 int
		headers                []string
	}{
		{"GET", "/v1/notes", "/v1/notes", "", 200, []string{key}},
		{"GET", "/v1/limited", "/v1/limited", "", 200, []string{key}},
		{"GET", "/v1/limited", "/v1/limited", "", 429, []string{key}},
		{"GET", "/v1/notes", "/v1/notes", "", 400, []string{key, "Authorization: Bearer x"}},
		{"GET", "/v1/notes", "/v1/notes", "", 401, nil},
		{"GET", "/v1/notes", "/v1/notes", "", 401, []string{"X-API-Key: x"}},
		{"GET", "/v1/notes", "/v1/notes", "", 403, []string{other}},
		{"GET", "/v1/notes/01jz8k3v6m9q2r5t8w1x4y7z0a", "/v1/notes/{id}", "", 404, []string{key}},
		{"POST", "/v1/notes", "/v1/notes", `{"text":"a"}`, 201, []string{key}},
		{"POST", "/v1/notes", "/v1/notes", `{}`, 400, []string{key}},
		{"POST", "/v1/notes", "/v1/notes", `{`, 400, []string{key}},
		{"POST", "/small/in", "/small/in", strings.Repeat("x", 1025), 413, nil},
		{"POST", "/hooks/in", "/hooks/in", `{}`, 400, nil},
		{"POST", "/hooks/in", "/hooks/in", `{}`, 401, []string{"X-Hub-Signature-256: sha256=" + strings.Repeat("0", 64)}},
		{"POST", "/_call/count", "/_call/count", ``, 200, []string{key}},
		{"POST", "/_call/count", "/_call/count", `{"a":1}`, 400, []string{key}},
		{"POST", "/_call/count", "/_call/count", ``, 401, nil},
		{"POST", "/_call/mine", "/_call/mine", ``, 403, []string{cookie}},
		{"POST", "/_call/mine", "/_call/mine", ``, 403, []string{cookie, "Sec-Fetch-Site: cross-site"}},
	} {
		got := s.Do(row.method, row.path, row.body, row.headers...)
		if got.Status != row.status {
			t.Errorf("%s %s: %d %s, want %d", row.method, row.path, got.Status, got.Body, row.status)
			continue
		}
		seen[got.Status] = true
		headers, ok := d.headersOf(row.method, row.at, got.Status)
		if !ok {
			t.Errorf("%s %s: the document has no %d", row.method, row.at, got.Status)
		}
		for _, name := range []string{"X-Request-Id", "WWW-Authenticate", "Retry-After", "RateLimit", "RateLimit-Policy"} {
			if _, told := headers[name]; got.Header.Get(name) != "" && !told {
				t.Errorf("%s %s: the document has no header %s for %d", row.method, row.at, name, got.Status)
			}
		}
		if got.Status == 429 && (got.Header.Get("Retry-After") == "" || got.Header.Get("RateLimit") == "") {
			t.Errorf("a refusal for a limit has the headers %v", got.Header)
		}
	}
	if len(seen) < 7 {
		t.Errorf("only answers of %v were looked at", seen)
	}
	for _, absent := range []struct {
		method, path string
		status       int
	}{{"GET", "/v1/notes", 413}, {"POST", "/open", 401}, {"POST", "/open", 429}, {"GET", "/v1/notes", 404}, {"GET", "/v1/notes", 409}} {
		if _, ok := d.headersOf(absent.method, absent.path, absent.status); ok {
			t.Errorf("the document has a %d of %s %s, which cannot happen", absent.status, absent.method, absent.path)
		}
	}
}
