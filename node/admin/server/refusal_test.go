package server_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"runner.example/internal/console"
	"runner.example/internal/diag"
	"runner.example/internal/fault"
	"runner.example/keystore"
	"runner.example/node/admin"
	"runner.example/node/admin/server"
	"runner.example/node/release"
)

// The request is larger than the buffers of the sockets, so the server has answered before it is sent.
func TestAClientReadsTheAnswerToARequestThatItHasNotSent(t *testing.T) {
	n := serveRemote(t, server.RemoteOptions{})
	dir := t.TempDir()
	here := node(t, dir)
	serve(t, dir, here)
	local, err := admin.Dial(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	large := bytes.Repeat([]byte("0123456789abcdef"), 1<<20) // 16 MiB
	file := release.File{Name: "build/a.wasm", Size: int64(len(large)), Digest: sha256.Sum256(large)}
	row := json.RawMessage(`"` + string(large[:8<<20]) + `"`)
	rows := admin.ImportRows{Entity: "Order", Rows: []json.RawMessage{row}}
	tooLarge := admin.ImportRows{Entity: "Order", Rows: slices.Repeat(rows.Rows, 9)}
	reader, deployer := n.client(keystore.RoleRead), n.client(keystore.RoleDeploy)
	for i := range 40 {
		for name, row := range map[string]struct {
			err  error
			code fault.Code
		}{
			"an upload":                       {reader.PutFile(t.Context(), file, bytes.NewReader(large)), fault.InsufficientRole},
			"arguments":                       {second(reader.ImportRows(t.Context(), rows)), fault.InsufficientRole},
			"arguments that are too large":    {second(deployer.AddRelease(t.Context(), admin.AddRelease{Manifest: release.Manifest{App: string(large[:8<<20])}})), fault.TooLarge},
			"an upload with an unused digest": {local.PutFile(t.Context(), release.File{Name: file.Name, Size: release.MaxFileBytes + 1}, bytes.NewReader(large)), fault.TooLarge},
		} {
			if fault.CodeOf(row.err) != row.code || fault.Of(row.err).Detail == "" {
				t.Errorf("%s, time %d: %v, want %s", name, i, row.err, row.code)
			}
		}
		if i < 4 { // these are slow
			if _, err := local.ImportRows(t.Context(), tooLarge); fault.CodeOf(err) != fault.TooLarge {
				t.Errorf("arguments on the socket, time %d: %v", i, err)
			}
		}
	}
}

func second[T any](_ T, err error) error { return err }

func TestAnActivationThatIsRefusedHasAStatusAndAHundredFindings(t *testing.T) {
	n := serveRemote(t, server.RemoteOptions{})
	dir := t.TempDir()
	serve(t, dir, n.local)
	here, err := admin.Dial(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	token := bearer(n.keys[keystore.RoleAdmin].Token)
	id := "rel_" + strings.Repeat("a", 26)
	var list diag.List
	for i := range 50_000 {
		list.Errorf("E910", diag.At("app.schema", i+1, 2, 3), "rows have no value")
	}
	for _, row := range []struct {
		err         error
		code        string
		status      int
		total, exit int
		hint        string
	}{
		{&console.Problems{What: "existing rows violate the schema: 50000 errors", List: list}, "not_activated", 422, 50_000, 3, ""},
		{errors.Join(&console.Problems{What: "a", List: list[:2]}, fault.New(fault.Invalid, "no value for SECRET").WithHint("set it")), "not_activated", 422, 2, 3, "set it"},
		{&console.Failure{Status: console.StatusInvalid, Err: errors.New("runner.toml: no such file")}, "not_activated", 422, 0, 3, ""},
		{fault.New(fault.Invalid, "the schema is empty"), "not_activated", 422, 0, 3, ""},
		{release.Unknown(id), "not_found", 404, 0, 4, release.KeptHint},
		{fault.New(fault.Conflict, "another app"), "conflict", 409, 0, 5, ""},
		{fault.New(fault.Unavailable, "no majority"), "unavailable", 503, 0, 6, ""},
		{errors.New("disk broken"), "internal", 500, 0, 1, ""},
	} {
		n.local.Activate = func(context.Context, release.Activation) error { return row.err }
		n.local.Reload = func(context.Context) (*admin.Reloaded, error) { return nil, row.err }
		for operation, args := range map[string]string{"releases.activate": fmt.Sprintf(`{"id":%q}`, id), "reload": "{}"} {
			got := n.do(n.web(), "POST", "/v1/"+operation, strings.NewReader(args), token)
			var refusal admin.Refusal
			if err := json.Unmarshal([]byte(got.body), &refusal); err != nil {
				t.Fatal(err)
			}
			if got.status != row.status || got.code != row.code || refusal.Total != row.total || len(refusal.Findings) != min(row.total, 100) || refusal.Hint != row.hint {
				t.Errorf("%s: %v: %d %s %d of %d %s", operation, row.err, got.status, got.code, len(refusal.Findings), refusal.Total, refusal.Hint)
			}
		}
		for name, client := range map[string]*admin.Client{"network": n.client(keystore.RoleAdmin), "socket": here, "process": n.local.Client()} {
			err := client.ActivateRelease(t.Context(), admin.ActivateRelease{ID: id})
			outcome, _ := fault.OutcomeOf(fault.CodeOf(err))
			if string(fault.CodeOf(err)) != row.code || outcome.Exit != row.exit {
				t.Errorf("%s: %v: %v", name, row.err, err)
			}
			problems, ok := errors.AsType[*console.Problems](err)
			if row.total > 0 && (!ok || problems.Excerpt().Total != row.total || problems.Excerpt().Findings[0] != list[0]) {
				t.Errorf("%s: %v: %+v", name, row.err, problems)
			}
		}
	}
}
