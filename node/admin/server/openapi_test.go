package server_test

import (
	"encoding/json"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

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
		"read":   "cluster.status releases.get releases.list releases.missing status",
		"deploy": "blobs.put releases.activate releases.add schema.compare",
		"admin": "apiKeys.create apiKeys.disable apiKeys.enable apiKeys.get apiKeys.list apiKeys.revoke apiKeys.rotate " +
			"audit.list audit.verify backup clock.accept clock.show cluster.invite cluster.leave data.delete data.drop data.each data.get data.import data.list data.update " +
			"functions.call jobs.cancel jobs.enqueue jobs.get jobs.list jobs.retry platformKeys.create platformKeys.list platformKeys.revoke reload " +
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
