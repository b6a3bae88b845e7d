package server_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"runner.example/keystore"
	"runner.example/node/admin/server"
)

const openAPIFile = "../../../docs/admin-openapi.json"

func TestTheOpenAPIDocumentDescribesEveryOperation(t *testing.T) {
	written, err := os.ReadFile(openAPIFile)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(server.OpenAPI()), string(written)); diff != "" {
		t.Errorf("run go generate ./cmd/runner (-generated +file):\n%s", diff)
	}
	var document struct {
		Paths map[string]map[string]struct {
			OperationID string `json:"operationId"`
			Role        string `json:"x-role"`
		}
	}
	if err := json.Unmarshal(written, &document); err != nil {
		t.Fatal(err)
	}
	roles := map[string]string{}
	for path, methods := range document.Paths {
		for method, op := range methods {
			name, ok := strings.CutPrefix(path, "/v1/")
			if name == "blobs/{sha256}" {
				name, ok = "blobs.put", ok && method == "put"
			} else if name == "files/{sha256}" {
				name, ok = "data.putFile", ok && method == "put"
			} else if name == "blobs/batch" {
				name, ok = "blobs.putBatch", ok && method == "put"
			} else if method != "post" {
				ok = false
			}
			if !ok || op.OperationID != name {
				t.Errorf("%s %s has the id %s", method, path, op.OperationID)
			}
			roles[name] = op.Role
		}
	}
	want := map[string]string{}
	for name, role := range server.RolesOfOperations() {
		want[name] = string(role)
	}
	if diff := cmp.Diff(want, roles); diff != "" {
		t.Error(diff)
	}
}

// Every member is in lower camel case. Names that a user gives, such as those of fields, are no properties of the document.
func TestMembersAreInLowerCamelCase(t *testing.T) {
	d := &apiDocument{T: t}
	if err := json.Unmarshal(server.OpenAPI(), d); err != nil {
		t.Fatal(err)
	}
	camel, members := regexp.MustCompile(`^[a-z][a-zA-Z0-9]*$`), 0
	for name, s := range d.Components.Schemas {
		for member := range s.Properties {
			if members++; !camel.MatchString(member) {
				t.Errorf("%s.%s", name, member)
			}
		}
	}
	if members < 200 {
		t.Errorf("the document has only %d members", members)
	}
}

// wrongOf returns a value that a member of this schema cannot have.
func (d *apiDocument) wrongOf(s apiSchema) string {
	s = d.resolve(s)
	if len(s.AnyOf) > 0 {
		s = d.resolve(s.AnyOf[0])
	}
	switch kinds, ok := s.Type.([]any); {
	case s.Type == nil:
		return "" // any value
	case ok && slices.Contains(kinds, "array"), ok && slices.Contains(kinds, "object"), s.Type == "object", s.Type == "string":
		return "5"
	}
	return `"x"`
}

func TestAMessageAboutArgumentsNamesTheMember(t *testing.T) {
	n := serveRemote(t, server.RemoteOptions{})
	d := &apiDocument{T: t}
	if err := json.Unmarshal(server.OpenAPI(), d); err != nil {
		t.Fatal(err)
	}
	token := bearer(n.keys[keystore.RoleAdmin].Token)
	goTypes := regexp.MustCompile(`\bGo\b|\bint64|\buint|\bstruct\b|unmarshal|json:|jsontext|\w+\.[A-Z]\w+|\[\]|\*`)
	detail := func(operation, args string) string {
		t.Helper()
		got := n.do(n.web(), "POST", "/v1/"+operation, strings.NewReader(args), token)
		var refusal struct{ Detail string }
		if err := json.Unmarshal([]byte(got.body), &refusal); err != nil || got.status != 400 || got.code != "invalid" {
			t.Errorf("%s %s: %d %s, %v", operation, args, got.status, got.body, err)
		}
		if goTypes.MatchString(refusal.Detail) {
			t.Errorf("%s %s: %s", operation, args, refusal.Detail)
		}
		return refusal.Detail
	}
	tried := 0
	for path, methods := range d.Paths {
		operation, _ := strings.CutPrefix(path, "/v1/")
		body, ok := methods["post"].RequestBody.Content["application/json"]
		if !ok || operation == "backup" {
			continue
		}
		for _, args := range []string{"", "[]", "7", "{", `{"nonsense":1}`, `{} {}`} {
			detail(operation, args)
		}
		for member, s := range d.resolve(body.Schema).Properties {
			wrong := d.wrongOf(s)
			if wrong == "" {
				continue
			}
			tried++
			if got := detail(operation, fmt.Sprintf(`{%q:%s}`, member, wrong)); !strings.HasPrefix(got, fmt.Sprintf("invalid arguments: %q ", member)) {
				t.Errorf("%s: %q with %s: %s", operation, member, wrong, got)
			}
		}
	}
	if tried < 80 {
		t.Errorf("only %d members were tried", tried)
	}
	for _, row := range [][3]string{
		{"releases.add", `{"app":"a","files":[{},{"size":"big"}]}`, `invalid arguments: "files[1].size" must be an integer, not a string`},
		{"releases.add", `{"files":[{"sha256":"xx"}]}`, `invalid arguments: "files[0].sha256" is not valid: `},
		{"releases.add", `{"files":[{"sum":1}]}`, `invalid arguments: unknown member "files[0].sum"`},
		{"apiKeys.list", `{"limit":1e99}`, `invalid arguments: "limit" must be an integer, not 1e99`},
		{"apiKeys.list", `{"limit":1.5}`, `invalid arguments: "limit" must be an integer, not 1.5`},
		{"data.list", `{"entity":"Order","where":[{"field":[]}]}`, `invalid arguments: "where[0].field" must be a string, not an array`},
		{"data.list", `{"orderBy":[["a"]]}`, `invalid arguments: "orderBy[0]" must be an array of 2`},
		{"functions.call", `{"params":"%"}`, `invalid arguments: "params" must be a string in base64`},
		{"apiKeys.create", `{"metadata":{"a":}}`, `invalid arguments: "metadata.a" is not valid JSON at byte `},
		{"status", ``, `invalid arguments: the body is empty: send a JSON object, {} for no arguments`},
		{"apiKeys.get", `[]`, `invalid arguments: the body must be an object, not an array`},
	} {
		if got := detail(row[0], row[1]); !strings.HasPrefix(got, row[2]) {
			t.Errorf("%s %s: %s", row[0], row[1], got)
		}
	}
}

// The roles are pinned here a second time: a change of one is a change of what keys that exist may do.
func TestOperationsNeedTheseRoles(t *testing.T) {
	want := map[string]string{
		"read":   "cluster.status level.show releases.get releases.list releases.listing routes.list status",
		"deploy": "blobs.missing blobs.put blobs.putBatch releases.activate releases.add releases.check releases.missing schema.compare",
		"admin": "apiKeys.create apiKeys.disable apiKeys.enable apiKeys.get apiKeys.list apiKeys.revoke apiKeys.rotate " +
			"audit.list audit.verify backup backup.record clock.accept clock.show cluster.invite cluster.leave config.show data.delete data.drop data.each " +
			"data.explain data.filesToImport data.get data.import data.list data.putFile data.readFile data.update files.revokeLinks functions.call jobs.cancel jobs.cancelAll jobs.enqueue jobs.get jobs.list jobs.retry " +
			"level.raise platformKeys.create platformKeys.list platformKeys.revoke platformKeys.rotate recorded.delete recorded.export recorded.list " +
			"recorded.replay recorded.show reload sessions.create sessions.list sessions.revoke sessions.revokeAll store.verify",
	}
	roles := server.RolesOfOperations()
	got := map[string]string{}
	for _, name := range slices.Sorted(maps.Keys(roles)) {
		got[string(roles[name])] = strings.TrimSpace(got[string(roles[name])] + " " + name)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// apiDocument is the document, as a client reads it.
type apiDocument struct {
	*testing.T
	Paths map[string]map[string]struct {
		RequestBody struct {
			Content map[string]struct{ Schema apiSchema }
		}
		Responses map[string]struct {
			Content map[string]struct{ Schema apiSchema }
		}
	}
	Components struct{ Schemas map[string]apiSchema }
}

type apiSchema struct {
	Ref          string `json:"$ref"`
	Type         any
	AllOf, AnyOf []apiSchema
	Properties   map[string]apiSchema
	Required     []string
	Items        *apiSchema
}

// resolve follows references, and joins the parts of an object.
func (d *apiDocument) resolve(s apiSchema) apiSchema {
	if name, ok := strings.CutPrefix(s.Ref, "#/components/schemas/"); ok {
		return d.resolve(d.Components.Schemas[name])
	}
	if len(s.AllOf) == 0 {
		return s
	}
	all := apiSchema{Type: "object", Properties: map[string]apiSchema{}}
	for _, part := range s.AllOf {
		part = d.resolve(part)
		maps.Copy(all.Properties, part.Properties)
		all.Required = append(all.Required, part.Required...)
	}
	return all
}

// check compares a value with its schema: the types, and the members of objects.
func (d *apiDocument) check(path string, s apiSchema, value any) {
	d.Helper()
	s = d.resolve(s)
	if len(s.AnyOf) == 2 { // a value or null
		if value != nil {
			d.check(path, s.AnyOf[0], value)
		}
		return
	}
	kind := map[reflect.Kind]string{reflect.Map: "object", reflect.Slice: "array", reflect.String: "string", reflect.Bool: "boolean", reflect.Float64: "integer", reflect.Invalid: "null"}[reflect.ValueOf(value).Kind()]
	if kinds, ok := s.Type.([]any); s.Type != nil && s.Type != kind && !(ok && slices.Contains(kinds, any(kind))) {
		d.Errorf("%s is %v, and the document says %v", path, value, s.Type)
	}
	switch value := value.(type) {
	case map[string]any:
		if s.Properties == nil {
			return
		}
		for name, member := range value {
			if property, ok := s.Properties[name]; ok {
				d.check(path+"."+name, property, member)
			} else {
				d.Errorf("%s has the member %s, which the document lacks", path, name)
			}
		}
		for _, name := range s.Required {
			if _, ok := value[name]; !ok {
				d.Errorf("%s lacks the member %s, which the document requires", path, name)
			}
		}
	case []any:
		for _, item := range value {
			d.check(path+"[]", *s.Items, item)
		}
	}
}

// TestAnswersAreAsTheOpenAPIDocumentSays asks a server, and compares what it sends with the document.
func TestAnswersAreAsTheOpenAPIDocumentSays(t *testing.T) {
	n := serveRemote(t, server.RemoteOptions{})
	d := &apiDocument{T: t}
	if err := json.Unmarshal(server.OpenAPI(), d); err != nil {
		t.Fatal(err)
	}
	ask := func(operation, args string) (members map[string]any) {
		t.Helper()
		got := n.do(n.web(), "POST", "/v1/"+operation, strings.NewReader(args), bearer(n.keys[keystore.RoleAdmin].Token))
		var answer any
		if err := json.Unmarshal([]byte(got.body), &answer); err != nil || got.status != 200 {
			t.Fatalf("%s %s: %d %s, %v", operation, args, got.status, got.body, err)
		}
		d.check(operation, d.Paths["/v1/"+operation]["post"].Responses["200"].Content["application/json"].Schema, answer)
		members, _ = answer.(map[string]any)
		return members
	}
	// allOf compares the members of a new item with all that the document knows. found has those of a listed one.
	allOf := func(name, secret string, made, found map[string]any) {
		t.Helper()
		all := slices.Sorted(maps.Keys(d.Components.Schemas[name].Properties))
		if diff := cmp.Diff(all, slices.Sorted(maps.Keys(made))); diff != "" || made[secret] == "" {
			t.Errorf("%s that was created: %s", name, diff)
		}
		all = slices.DeleteFunc(all, func(member string) bool { return member == secret })
		if diff := cmp.Diff(all, slices.Sorted(maps.Keys(found))); diff != "" {
			t.Errorf("%s that is stored: %s", name, diff)
		}
	}
	first := func(list map[string]any, member string) map[string]any {
		return list[member].([]any)[0].(map[string]any)
	}
	id := func(item map[string]any) string { return fmt.Sprintf(`{"id":%q}`, item["id"]) }

	key := ask("apiKeys.create", `{"scope":"orders_read","name":"a","expiresIn":3600,"tenant":"acme","metadata":{"a":[1]}}`)
	allOf("Key", "token", key, ask("apiKeys.get", id(key)))
	allOf("Key", "token", ask("apiKeys.rotate", fmt.Sprintf(`{"id":%q,"gracePeriod":60}`, key["id"])), first(ask("apiKeys.list", `{}`), "keys"))
	ask("apiKeys.create", `{"scope":"partner_sync","name":""}`)
	ask("apiKeys.list", `{"limit":1}`)
	for _, operation := range []string{"disable", "enable", "revoke"} {
		ask("apiKeys."+operation, id(key))
	}
	platform := ask("platformKeys.create", `{"name":"ci","role":"read","expiresIn":3600}`)
	allOf("PlatformKey", "token", platform, first(ask("platformKeys.list", `{}`), "keys"))
	allOf("PlatformKey", "token", ask("platformKeys.rotate", fmt.Sprintf(`{"id":%q,"gracePeriod":60}`, platform["id"])), first(ask("platformKeys.list", `{}`), "keys"))
	ask("platformKeys.revoke", id(platform))
	session := ask("sessions.create", `{"userId":"ada","tenant":"acme","roles":["admin"]}`)
	allOf("Session", "cookie", session, first(ask("sessions.list", `{}`), "sessions"))
	ask("sessions.revoke", id(session))
	ask("sessions.revokeAll", `{"userId":"ada"}`)
	for _, operation := range []string{"status", "audit.list", "audit.verify", "jobs.list", "releases.list", "clock.show"} {
		ask(operation, `{}`)
	}
}
