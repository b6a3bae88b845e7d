package deploy_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"runner.example/internal/console"
	"runner.example/internal/diag"
	"runner.example/internal/fault"
	"runner.example/internal/secret"
	"runner.example/keystore"
	"runner.example/node/admin"
	"runner.example/node/admin/server"
	"runner.example/node/app"
	"runner.example/node/config"
	"runner.example/node/deploy"
	"runner.example/node/release"
	"runner.example/state/jobs"
	"runner.example/state/store"
)

// newNode returns a node that activates releases, and serves nothing.
func newNode(t *testing.T) *server.Local {
	t.Helper()
	st, err := store.Open(store.Options{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = st.Close() })
	keys, err := keystore.Open(t.Context(), st, keystore.Options{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = keys.Close() })
	local := server.NewLocal(st, keys, release.New(st, release.Options{Keep: 10}), jobs.Keep{})
	local.Activate = func(ctx context.Context, change release.Activation) error {
		_, err := st.Update(ctx, change.Activate)
		return err
	}
	local.CheckRelease = func(context.Context, release.Manifest, []diag.Source, release.Activation) (older bool, err error) {
		return false, nil
	}
	return local
}

// read reads an app with these schema files and a module.
func read(t *testing.T, files map[string]string) *deploy.Upload {
	t.Helper()
	dir := t.TempDir()
	// The module has a memory and a handler that does nothing.
	files["build/m.wasm"] = "\x00asm\x01\x00\x00\x00\x01\x04\x01\x60\x00\x00\x03\x02\x01\x00\x05\x03\x01\x00\x01" +
		"\x07\x0e\x02\x06memory\x02\x00\x01h\x00\x00\x0a\x04\x01\x02\x00\x0b"
	if err := os.Mkdir(filepath.Join(dir, "build"), 0o700); err != nil {
		t.Fatal(err)
	}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	conf, found, err := config.Load(filepath.Join(dir, "runner.toml"), true, nil)
	if err != nil {
		t.Fatal(err)
	}
	local, err := deploy.Read(t.Context(), &app.App{
		Dir: dir, Config: conf, Problems: found,
		Secrets: func([]string) (secret.Values, error) { panic("a release has no secrets") },
	}, nil)
	if err != nil {
		t.Fatal(err)
	}
	return local
}

// sweeper deletes a blob when bytes are sent.
type sweeper struct {
	node   *server.Local
	delete store.Digest
}

func (s sweeper) Write(p []byte) (int, error) {
	if _, err := s.node.Store.StatBlob(s.delete); err == nil {
		if err := s.node.Store.DeleteBlob(s.delete); err != nil {
			return 0, err
		}
	}
	return len(p), nil
}

// A debug file is part of the release, unless it cannot be used.
func TestADebugFileIsSentUnlessItCannotBeUsed(t *testing.T) {
	node := newNode(t)
	good := read(t, map[string]string{"a.schema": "app shop\n", "build/m.debug": `{"version":3,"sources":[],"mappings":""}`})
	without := read(t, map[string]string{"a.schema": "app shop\n"})
	damaged := read(t, map[string]string{"a.schema": "app shop\n", "build/m.debug": "\x7fELF"})
	if good.ID == without.ID || damaged.ID != without.ID {
		t.Errorf("the releases are %s, without a debug file %s, with a damaged one %s", good.ID, without.ID, damaged.ID)
	}
	d, err := deploy.Compare(without.ReleaseSources, good.ReleaseSources)
	if err != nil || len(d.Changes) != 1 || d.Changes[0].Name != "build/m.wasm" || d.Changes[0].Properties[0].Name != "debug" {
		t.Errorf("the difference is %+v, %v", d.Changes, err)
	}
	if plan, err := good.Plan(t.Context(), node.Client(), deploy.PlanOptions{}); err != nil || len(plan.Send) != 3 {
		t.Errorf("%+v, %v", plan, err)
	}
}

func TestContentsThatWereSweptMeanwhileAreSentAgain(t *testing.T) {
	node := newNode(t)
	client := node.Client()
	local := read(t, map[string]string{"a.schema": "app shop\n", "b.schema": "secret KEY\n"})
	plan, err := local.Plan(t.Context(), client, deploy.PlanOptions{})
	if err != nil || len(plan.Send) != 3 {
		t.Fatalf("%+v, %v", plan, err)
	}
	if err := local.Send(t.Context(), client, plan, sweeper{node, plan.Send[0].Digest}); err != nil {
		t.Fatal(err)
	}
	if err := plan.Activate(t.Context(), client, admin.Allowed{}); err != nil {
		t.Fatal(err)
	}
	if _, _, err := node.Releases.Read(t.Context(), local.ID); err != nil {
		t.Error(err)
	}
	// The plan was made for no active release.
	if err := plan.Activate(t.Context(), client, admin.Allowed{}); fault.CodeOf(err) != fault.Conflict {
		t.Errorf("activated again: %v", err)
	}
}

func TestStoredReleasesAreFoundByTheBeginningOfTheirID(t *testing.T) {
	node := newNode(t)
	client := node.Client()
	if _, err := deploy.Stored(t.Context(), client); fault.CodeOf(err) != fault.NotFound {
		t.Errorf("without a release: %v", err)
	}
	var ids []string
	for _, name := range []string{"A", "B"} {
		local := read(t, map[string]string{"a.schema": "secret " + name + "\n"})
		plan, err := local.Plan(t.Context(), client, deploy.PlanOptions{})
		if err == nil {
			err = local.Send(t.Context(), client, plan, sweeper{node, store.Digest{}})
		}
		if err == nil {
			err = plan.Activate(t.Context(), client, admin.Allowed{})
		}
		if err != nil {
			t.Fatal(err)
		}
		ids = append(ids, local.ID)
	}
	a, b := ids[0], ids[1]
	for _, tt := range []struct {
		names []string
		want  string
	}{
		{nil, a + " " + b},
		{[]string{a[:10]}, b + " " + a},
		{[]string{b[:10], a}, b + " " + a},
		{[]string{a, a}, a + " " + a},
	} {
		d, err := deploy.Stored(t.Context(), client, tt.names...)
		if got := d.Before + " " + d.After; err != nil || got != tt.want || (d.Before == d.After) != (len(d.Changes) == 0) {
			t.Errorf("%q: %s, %v", tt.names, got, err)
		}
	}
	// The rows are not compared with an older release.
	d, err := deploy.Stored(t.Context(), client, a)
	if err != nil || len(d.Notes) != 1 || !strings.Contains(d.Notes[0], "an older release keeps") {
		t.Errorf("%+v, %v", d, err)
	}
	for name, code := range map[string]fault.Code{"rel_": fault.NotFound, "": fault.Invalid, "rel_ooo": fault.NotFound, b + "0": fault.NotFound} {
		if _, err := deploy.Stored(t.Context(), client, name); fault.CodeOf(err) != code {
			t.Errorf("%q: %v", name, err)
		}
	}
}

func TestADeploymentThatIsNotConfirmedActivatesNothing(t *testing.T) {
	node := newNode(t)
	var out, errs strings.Builder
	err := deploy.Deployment{
		Upload: read(t, map[string]string{"a.schema": "secret A\n"}), Node: node.Client(), Console: &console.Console{Stdout: &out, Stderr: &errs},
		Confirm: func(context.Context, string) (bool, error) { return false, nil },
	}.Run(t.Context())
	if err == nil || !strings.Contains(err.Error(), "not activated") || !strings.Contains(out.String(), "+ A") {
		t.Errorf("%v\n%s", err, out.String())
	}
	all, active, err := node.Releases.List(t.Context())
	if err != nil || len(all) != 1 || active.ID != "" {
		t.Errorf("%+v, %+v, %v", all, active, err)
	}
}
