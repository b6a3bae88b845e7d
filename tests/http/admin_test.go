package http_test

import (
	"crypto/tls"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"

	"runner.example/tests/harness"
)

// The answers of the admin listener are as docs/admin-openapi.json describes them.
func TestTheAdminListenerAnswersAsItsDocumentDescribes(t *testing.T) {
	t.Parallel()
	document := harness.RepoFile("docs/admin-openapi.json")
	if out := checkDocument(t, nil, "mistakes", document); len(out) > 0 {
		t.Errorf("%s", out)
	}
	a := harness.NewApp(t, `
app shop
auth { session cookie { } }
entity Thing { id: id name: string @@allow read to session }
apiKeys { scopes: { reader: @system("reader") { @grant read on Thing } } }
routes("/", auth: apiKey(reader)) { GET /hello -> hello }
`, "[admin]\nlisten = \"127.0.0.1:0\"\n")
	a.Write("handlers/hello.ts", `import { ok } from "@runner/sdk"; export function hello() { return ok(1); }`)
	a.Must("build")
	a.Serve()
	var status struct{ Admin string }
	if err := json.Unmarshal([]byte(a.Must("status", "--json")), &status); err != nil {
		t.Fatal(err)
	}
	var key struct{ ID, Token string }
	if err := json.Unmarshal([]byte(a.Must("keys", "create", "--name", "x", "--role", "admin", "--json")), &key); err != nil {
		t.Fatal(err)
	}
	client := http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}}
	defer client.CloseIdleConnections()
	var values []judged
	var texts []string
	for _, row := range []struct{ operation, args string }{
		{"status", `{}`},
		{"platformKeys.create", `{"name":"y","role":"read","expiresIn":60}`},
		{"platformKeys.list", `{"all":true}`},
		{"platformKeys.revoke", `{"id":"` + key.ID + `x"}`},
		{"apiKeys.create", `{"scope":"reader","name":"z"}`},
		{"apiKeys.list", `{}`},
		{"sessions.create", `{"userId":"ada"}`},
		{"sessions.list", `{}`},
		{"data.import", `{"entity":"Thing","rows":[{"name":"a"},{"name":1}]}`},
		{"data.import", `{"entity":"Thing","rows":[{"name":"a"}]}`},
		{"data.list", `{"entity":"Thing","text":true}`},
		{"data.update", `{"entity":"Thing","where":[{"field":"name","operator":"=","value":"a"}],"set":{"name":"b"}}`},
		{"releases.list", `{}`},
		{"releases.missing", `{"app":"shop","files":[{"name":"app.schema","size":1,"sha256":"` + strings.Repeat("0", 64) + `"}]}`},
		{"releases.get", `{"id":"rel_00000000000000000000000000"}`},
		{"releases.activate", `{"id":"rel_00000000000000000000000000"}`},
		{"schema.compare", `{"sources":[]}`},
		{"reload", `{}`},
		{"clock.show", `{}`},
		{"audit.list", `{"limit":50}`},
		{"audit.verify", `{}`},
		{"store.verify", `{}`},
	} {
		request, err := http.NewRequestWithContext(t.Context(), "POST", status.Admin+"/v1/"+row.operation, strings.NewReader(row.args))
		if err != nil {
			t.Fatal(err)
		}
		request.Header.Set("Authorization", "Bearer "+key.Token)
		got, err := client.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(got.Body)
		_ = got.Body.Close()
		if err != nil || !json.Valid(text) || got.StatusCode >= 500 {
			t.Fatalf("%s: %d %s, %v", row.operation, got.StatusCode, text, err)
		}
		path := "#/paths/~1v1~1" + row.operation + "/post/"
		values = append(values, judged{path + "requestBody/content/application~1json/schema", json.RawMessage(row.args)})
		texts = append(texts, "the arguments of "+row.operation+": "+row.args)
		schema := path + "responses/200/content/application~1json/schema"
		if got.StatusCode != 200 {
			schema = "#/components/responses/Refusal/content/application~1problem+json/schema"
		}
		values = append(values, judged{schema, json.RawMessage(text)})
		texts = append(texts, "the answer of "+row.operation+": "+string(text))
	}
	for i, fits := range judge(t, document, values) {
		if !fits {
			t.Errorf("the document does not describe %s", texts[i])
		}
	}
	// The document refuses what is wrong.
	for _, fits := range judge(t, document, []judged{
		{"#/paths/~1v1~1platformKeys.create/post/requestBody/content/application~1json/schema", map[string]any{"name": "x", "role": "root"}},
		{"#/paths/~1v1~1status/post/responses/200/content/application~1json/schema", map[string]any{"pid": "x"}},
	}) {
		if fits {
			t.Error("the document describes anything")
		}
	}
}
