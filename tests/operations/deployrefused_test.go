package operations_test

import (
	"bytes"
	"crypto/tls"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"runner.example/internal/fault"
	"runner.example/tests/harness"
)

// namedApp is an app that declares a name, and serves /hello.
func namedApp(t *testing.T, name, more string) *harness.App {
	t.Helper()
	return harness.NewApp(t, "app "+name+"\n"+more+"routes(\"/\", auth: none) { GET /hello -> hello }\n", "", "echo")
}

// as returns the flags for the node with another key.
func (e *edge) as(t *testing.T, role string) []string {
	t.Helper()
	key := newPlatformKey(t, e.app, role, "--data", e.data)
	file := filepath.Join(t.TempDir(), role+".key")
	if err := os.WriteFile(file, []byte(key.Token+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return append(append([]string{}, e.flags[:5]...), file)
}

// refusal is what the node answers to a request that it refuses.
type refusal struct {
	Type, Title, Code, Detail, Hint string
	Status, Total                   int
	Findings                        []struct{ Code, File, Message string }
}

// post sends an operation over HTTP alone, with the key of the flags. A refusal is read.
func (e *edge) post(t *testing.T, flags []string, operation, args string) (status int, r refusal) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), "POST", flags[1]+"/v1/"+operation, strings.NewReader(args))
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Authorization", "Bearer "+strings.TrimSpace(harness.MustRead(t, flags[5])))
	web := &http.Client{Transport: &http.Transport{DisableKeepAlives: true, TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}}
	answer, err := web.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	if answer.StatusCode >= 400 {
		if err := json.Unmarshal(text, &r); err != nil || answer.Header.Get("Content-Type") != "application/problem+json" || r.Status != answer.StatusCode || r.Title != http.StatusText(r.Status) {
			t.Errorf("%s %s: %d %s", operation, args, answer.StatusCode, text)
		}
	}
	return answer.StatusCode, r
}

// blobs returns the number of contents that the node has stored.
func (e *edge) blobs() int {
	e.app.T.Helper()
	all, err := filepath.Glob(filepath.Join(e.data, "blobs", "*"))
	if err != nil {
		e.app.T.Fatal(err)
	}
	return len(all)
}

// The module is larger than the buffers of the sockets.
func TestADeploymentWithAReadKeyIsRefusedEachTimeWithTheReason(t *testing.T) {
	e := startEdge(t)
	a := namedApp(t, "shop", "")
	section := append([]byte{3}, "big"...)
	section = append(section, make([]byte, 24<<20)...)
	module := append([]byte(harness.MustRead(t, a.Path("build/echo.wasm"))), 0)
	module = append(binary.AppendUvarint(module, uint64(len(section))), section...)
	a.Write("build/echo.wasm", string(module))
	reader := e.as(t, "read")
	want, _ := fault.OutcomeOf(fault.InsufficientRole)
	for i := range 40 {
		flag := "--yes"
		if i%4 == 3 {
			flag = "--dry-run"
		}
		got := a.Run(append([]string{"deploy", flag}, reader...)...)
		if got.Status != want.Exit || got.Stdout != "" || got.Stderr != "runner: error: this operation needs a platform key with the role deploy, and this one has read\n" {
			t.Fatalf("%s, time %d: %d %q %q", flag, i, got.Status, got.Stdout, got.Stderr)
		}
	}
	if n := e.blobs(); n != 0 {
		t.Errorf("%d contents were sent", n)
	}
	if got := e.run(a, "deploy", "--yes"); got.Status != 0 {
		t.Errorf("with the role deploy: %d %s", got.Status, got.Stderr)
	}
}

// A connection that breaks is not a closed standard output.
func TestACommandWhoseConnectionBreaksFails(t *testing.T) {
	e := startEdge(t)
	a := namedApp(t, "shop", "")
	address := cutAfter(t, strings.TrimPrefix(e.flags[1], "https://"), 8<<10)
	flags := append([]string{"--to", "https://" + address}, e.flags[2:]...)
	for i := range 10 {
		if got := a.Run(append([]string{"deploy", "--yes"}, flags...)...); got.Status == 0 || got.Stderr == "" {
			t.Errorf("time %d: %d %q", i, got.Status, got.Stderr)
		}
	}
}

func TestAnotherAppReplacesTheActiveOneOnlyIfItIsAllowed(t *testing.T) {
	e := startEdge(t)
	one, two := namedApp(t, "one", ""), namedApp(t, "two", "")
	first := e.must(one, "deploy", "--yes")
	const why = `the release is of the app "two", and the node serves the app "one"`
	for _, flag := range []string{"--yes", "--dry-run"} {
		if got := e.run(two, "deploy", flag); got.Status != 5 || !strings.Contains(got.Stderr, why) || !strings.Contains(got.Stderr, "--replace-app") {
			t.Errorf("%s: %d %s", flag, got.Status, got.Stderr)
		}
	}
	if got := e.must(one, "diff").After; got != first.After {
		t.Errorf("%s is active", got)
	}
	if dry := e.must(two, "deploy", "--dry-run", "--replace-app"); dry.Activated || dry.Before != first.After {
		t.Errorf("%+v", dry)
	}
	second := e.must(two, "deploy", "--yes", "--replace-app")
	if !second.Activated {
		t.Errorf("%+v", second)
	}
	if got := e.run(two, "deploy", "--yes"); got.Status != 0 || !strings.Contains(got.Stderr, "is active already") {
		t.Errorf("again: %d %s", got.Status, got.Stderr)
	}
	// The node decides, so plain HTTP and a rollback are refused too.
	args := fmt.Sprintf(`{"id":%q}`, first.After)
	if status, r := e.post(t, e.flags, "releases.activate", args); status != 409 || r.Code != "conflict" || !strings.Contains(r.Detail, `of the app "one"`) || !strings.Contains(r.Hint, "replaceApp: true") {
		t.Errorf("over HTTP: %d %+v", status, r)
	}
	if got := e.run(two, "rollback", "--yes"); got.Status != 5 || !strings.Contains(got.Stderr, "--replace-app") {
		t.Errorf("rollback: %d %s", got.Status, got.Stderr)
	}
	if got := e.run(two, "rollback", "--yes", "--replace-app"); got.Status != 0 {
		t.Errorf("rollback that is allowed: %d %s", got.Status, got.Stderr)
	}
	if status, r := e.post(t, e.flags, "releases.activate", fmt.Sprintf(`{"id":%q,"replaceApp":true}`, second.After)); status != 200 {
		t.Errorf("over HTTP, allowed: %d %+v", status, r)
	}
	// The server keeps serving: it has never answered 404 or 503 for /hello.
	e.Want(200, nil, "GET", "/hello", "")
	// An app without a name is not the app that has one.
	if got := e.run(harness.NewApp(t, "routes(\"/\", auth: none) { GET /hello -> hello }\n", "", "echo"), "deploy", "--yes"); got.Status != 5 {
		t.Errorf("without a name: %d %s", got.Status, got.Stderr)
	}
}

// The directories differ, and neither app declares a name: a job in CI has another directory each time.
func TestAnAppWithoutANameIsDeployedFromAnyDirectory(t *testing.T) {
	e := startEdge(t)
	for range 2 {
		a := harness.NewApp(t, harness.HostileSchema, "", "echo", "hostile")
		dir := filepath.Join(t.TempDir(), "checkout-of-"+filepath.Base(a.Dir))
		if err := os.Rename(a.Dir, dir); err != nil {
			t.Fatal(err)
		}
		a.Dir = dir
		if done := e.must(a, "deploy", "--yes"); !done.Activated && done.Before != done.After {
			t.Errorf("%+v", done)
		}
	}
}

func TestADryRunFindsWhatTheActivationWouldRefuse(t *testing.T) {
	e := startEdge(t)
	first := e.must(namedApp(t, "shop", ""), "deploy", "--yes")
	before := e.blobs()
	for name, row := range map[string]struct {
		more, toml string
		status     int
		text       string
		flags      []string
	}{
		"a secret without a value":               {"secret ABSENT\n", "[secrets]\nABSENT = \"here\"\n", 3, "no value for ABSENT", nil},
		"a private address":                      {"outbound { allow: [\"http://10.0.0.7\"] }\n", "[outbound]\nallow_private = true\n", 3, "app.schema:2:20: error[E520]", nil},
		"a variable without value":               {"var Limit: int\n", "[vars]\nLimit = 5\n", 3, "Limit", nil},
		"a schema for which the node has no row": {"entity Thing { id: id  n: int }\n", "", 0, "would be sent", nil},
	} {
		a := namedApp(t, "shop", row.more)
		a.Write("runner.toml", row.toml)
		for _, flag := range []string{"--dry-run", "--yes"} {
			if flag == "--yes" && row.status == 0 {
				continue
			}
			got := e.run(a, append([]string{"deploy", flag}, row.flags...)...)
			if got.Status != row.status || !strings.Contains(got.Stderr, row.text) {
				t.Errorf("%s: %s: %d %s%s", name, flag, got.Status, got.Stdout, got.Stderr)
			}
			if !strings.Contains(got.Stdout, "from "+first.After+" to rel_") {
				t.Errorf("%s: %s shows no difference: %s", name, flag, got.Stdout)
			}
		}
	}
	if now := e.blobs(); now != before {
		t.Errorf("%d contents were sent", now-before)
	}
	e.Want(200, nil, "GET", "/hello", "")
}

func TestAnEmptySchemaIsDeployedOnlyIfItIsAllowed(t *testing.T) {
	e := startEdge(t)
	e.must(namedApp(t, "shop", ""), "deploy", "--yes")
	empty := harness.NewApp(t, "app shop\n", "", "echo")
	for _, flag := range []string{"--yes", "--dry-run"} {
		if got := e.run(empty, "deploy", flag); got.Status != 3 || !strings.Contains(got.Stderr, "the schema is empty: it declares no route, function, job, entity or assets") || !strings.Contains(got.Stderr, "--allow-empty") {
			t.Errorf("%s: %d %s", flag, got.Status, got.Stderr)
		}
	}
	e.Want(200, nil, "GET", "/hello", "")
	done := e.must(empty, "deploy", "--yes", "--allow-empty")
	e.Want(404, nil, "GET", "/hello", "")
	e.must(namedApp(t, "shop", ""), "deploy", "--yes")
	if status, r := e.post(t, e.flags, "releases.activate", fmt.Sprintf(`{"id":%q}`, done.After)); status != 422 || r.Code != "not_activated" || !strings.Contains(r.Hint, "allowEmpty: true") {
		t.Errorf("over HTTP: %d %+v", status, r)
	}
	if got := e.run(empty, "rollback", "--yes"); got.Status != 0 { // it was allowed before
		t.Errorf("rollback: %d %s", got.Status, got.Stderr)
	}
	// A schema that names no handler needs no module.
	if got := e.run(harness.NewApp(t, "app shop\n", ""), "deploy", "--yes"); got.Status != 3 || !strings.Contains(got.Stderr, "--allow-empty") {
		t.Errorf("without a module: %d %s", got.Status, got.Stderr)
	}
	e.must(harness.NewApp(t, "app shop\nentity Item { id: id  name: string }\n", ""), "deploy", "--yes")
	e.Want(404, nil, "GET", "/hello", "")
}

func TestEveryRefusalOverHTTPHasAStatus(t *testing.T) {
	e := startEdge(t)
	a := namedApp(t, "shop", "entity Thing { id: id  name: string(1..9)  n: int? }\n")
	first := e.must(a, "deploy", "--yes")
	rows := filepath.Join(t.TempDir(), "rows.jsonl")
	if err := os.WriteFile(rows, []byte(`{"name":"a"}`+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	e.app.Must("data", "import", "Thing", rows, "--data", e.data)
	reader, all := e.as(t, "read"), e.as(t, "admin")
	for _, row := range []struct {
		flags           []string
		operation, args string
		status          int
		code, detail    string
	}{
		{e.flags, "releases.activate", `{"id":7}`, 400, "invalid", `"id" must be a string, not a number`},
		{e.flags, "releases.activate", `{"id":"x"}`, 400, "invalid", "is not the id of a release"},
		{reader, "releases.activate", `{}`, 403, "insufficient_role", "needs a platform key with the role deploy"},
		{e.flags, "releases.activate", `{"id":"rel_00000000000000000000000000"}`, 404, "not_found", "there is no release"},
		{e.flags, "releases.activate", fmt.Sprintf(`{"id":%q,"expected":"rel_00000000000000000000000000"}`, first.After), 409, "conflict", "another release has been activated meanwhile"},
		{e.flags, "releases.missing", `{"app":"` + strings.Repeat("x", 2<<20) + `"}`, 413, "too_large", "more than 1048576 bytes"},
		{e.flags, "nonsense", `{}`, 404, "not_found", "unknown operation"},
		{all, "apiKeys.create", `{"scope":"absent","name":"x"}`, 400, "invalid", "absent"},
	} {
		status, r := e.post(t, row.flags, row.operation, row.args)
		if status != row.status || r.Code != row.code || !strings.Contains(r.Detail, row.detail) {
			t.Errorf("%s %.80s: %d %+v", row.operation, row.args, status, r)
		}
	}
	// A release that the rows do not allow, sent without its modules' check.
	a.Write("app.schema", strings.Replace(harness.MustRead(t, a.Path("app.schema")), "n: int?", "n: int", 1))
	got := e.run(a, "deploy", "--dry-run")
	if got.Status != 3 || !strings.Contains(got.Stderr, "existing rows violate the schema: 1 error") {
		t.Errorf("%d %s", got.Status, got.Stderr)
	}
	// A reload that is refused, on the socket and over the network.
	if err := os.WriteFile(filepath.Join(e.app.Dir, "runner.toml"), []byte("[front]\nlisen = \"x\"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if got := e.app.Run("reload", "--data", e.data); got.Status != 3 || !strings.Contains(got.Stderr, "lisen") {
		t.Errorf("reload: %d %s", got.Status, got.Stderr)
	}
	if status, r := e.post(t, all, "reload", "{}"); status != 422 || r.Code != "not_activated" || r.Total != 1 || len(r.Findings) != 1 || !strings.Contains(r.Findings[0].Message, "lisen") {
		t.Errorf("reload over HTTP: %d %+v", status, r)
	}
}

func TestAtMostAHundredDiagnosticsAreShownWithTheirNumber(t *testing.T) {
	e := startEdge(t)
	var schema bytes.Buffer
	schema.WriteString("app shop\nroutes(\"/\", auth: none) {\n")
	for i := range 5_000 {
		fmt.Fprintf(&schema, "  GET /hello%d -> hello (timout: 1s)\n", i)
	}
	schema.WriteString("}\n")
	a := harness.NewApp(t, schema.String(), "", "echo")
	var document struct {
		Findings []struct{ Severity string }
		Total    int
	}
	got := a.Run("check", "--json")
	if err := json.Unmarshal([]byte(got.Stdout), &document); err != nil || got.Status != 3 || len(document.Findings) != 100 || document.Total < 5_000 {
		t.Errorf("check --json: %d, %d of %d, %v", got.Status, len(document.Findings), document.Total, err)
	}
	for _, args := range [][]string{{"check"}, append([]string{"deploy", "--yes"}, e.flags...)} {
		got := a.Run(args...)
		if text := got.Stdout + got.Stderr; got.Status != 3 || strings.Count(text, "error[") != 20 || !strings.Contains(text, "… and ") || len(text) > 10_000 {
			t.Errorf("%s: %d, %d bytes: %.400s", args[0], got.Status, len(text), text)
		}
	}
}

func TestHandlersThatAreNewerThanTheirModulesAreBuiltFirst(t *testing.T) {
	e := startEdge(t)
	a := harness.NewApp(t, "app shop\nroutes(\"/\", auth: none) { GET /hello -> hello }\n", "")
	handler := func(answer string) {
		a.Write("handlers/hello.ts", "import { ok } from \"@runner/sdk\";\nexport const hello = () => ok(\""+answer+"\");\n")
	}
	handler("first")
	got := e.run(a, "deploy", "--yes", "--no-build")
	if got.Status != 3 || !strings.Contains(got.Stderr, "handlers/hello.ts is not built yet: build/shop.wasm does not exist") {
		t.Errorf("without a module: %d %s", got.Status, got.Stderr)
	}
	if got := e.run(a, "deploy", "--yes"); got.Status != 0 || !strings.Contains(got.Stderr, "build/shop.wasm does not exist") || !strings.Contains(got.Stderr, "built build/shop.wasm") {
		t.Fatalf("the first time: %d %s", got.Status, got.Stderr)
	}
	e.WantBody("/hello", "first")
	if got := e.run(a, "deploy", "--yes"); got.Status != 0 || strings.Contains(got.Stderr, "built") || !strings.Contains(got.Stderr, "is active already") {
		t.Errorf("unchanged: %d %s", got.Status, got.Stderr)
	}
	handler("second")
	later := time.Now().Add(time.Hour) // whatever the resolution of the file system
	if err := os.Chtimes(a.Path("handlers/hello.ts"), later, later); err != nil {
		t.Fatal(err)
	}
	got = e.run(a, "deploy", "--yes", "--no-build")
	if got.Status != 0 || !strings.Contains(got.Stderr, "handlers/hello.ts is newer than build/shop.wasm") || !strings.Contains(got.Stderr, "the modules are deployed as they are (--no-build)") {
		t.Errorf("--no-build: %d %s", got.Status, got.Stderr)
	}
	e.WantBody("/hello", "first")
	done := e.must(a, "deploy", "--yes") // its output is one document
	if !done.Activated || done.sent() != "build/shop.wasm" {
		t.Errorf("%+v", done)
	}
	e.WantBody("/hello", "second")
	// A source with an error is not deployed.
	a.Write("handlers/hello.ts", "export const hello = (\n")
	if err := os.Chtimes(a.Path("handlers/hello.ts"), later, later); err != nil {
		t.Fatal(err)
	}
	if got := e.run(a, "deploy", "--yes"); got.Status != 3 || !strings.Contains(got.Stderr, "handlers/hello.ts:") {
		t.Errorf("with an error: %d %s", got.Status, got.Stderr)
	}
	e.WantBody("/hello", "second")
}
