package server_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"reflect"
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

// The roles are pinned here a second time: a change of one is a change of what keys that exist may do.
func TestOperationsNeedTheseRoles(t *testing.T) {
	want := map[string]string{
		"read":   "blobs.missing cluster.status releases.get releases.list releases.listing releases.missing routes.list status",
		"deploy": "blobs.put blobs.putBatch releases.activate releases.add schema.compare",
		"admin": "apiKeys.create apiKeys.disable apiKeys.enable apiKeys.get apiKeys.list apiKeys.revoke apiKeys.rotate " +
			"audit.list audit.verify backup clock.accept clock.show cluster.invite cluster.leave config.show data.delete data.drop data.each data.get data.import data.list data.update " +
			"functions.call jobs.cancel jobs.enqueue jobs.get jobs.list jobs.retry platformKeys.create platformKeys.list platformKeys.revoke platformKeys.rotate reload " +
			"sessions.create sessions.list sessions.revoke sessions.revokeAll",
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
