package operations_test

import (
	"encoding/binary"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"runner.example/tests/harness"
)

// releaseList is what runner releases --json prints.
type releaseList struct {
	Active   struct{ ID, Previous, Origin string }
	Releases []struct {
		ID    string
		Files []struct{ Name, SHA256 string }
	}
}

func releasesOf(t *testing.T, a *harness.App) (list releaseList) {
	t.Helper()
	if err := json.Unmarshal([]byte(a.Must("releases", "--json")), &list); err != nil {
		t.Fatal(err)
	}
	return list
}

// secondRoute is a schema file that another release has.
const secondRoute = "routes(\"/second\", auth: none) {\n  GET / -> hello\n}\n"

func TestTheAppDirectoryIsStoredAsARelease(t *testing.T) {
	a := harness.NewApp(t, harness.HostileSchema, "", "echo", "hostile")
	s := a.Serve()
	first := releasesOf(t, a)
	if len(first.Releases) != 1 || first.Active.ID != first.Releases[0].ID || first.Active.Origin != "folder" || len(first.Releases[0].Files) < 2 {
		t.Fatalf("%+v", first)
	}
	// Nothing has changed: nothing is written.
	a.Must("reload")
	records := len(a.Audit(t))
	a.Must("reload")
	if n := len(a.Audit(t)); n != records {
		t.Errorf("a reload without a change wrote %d records", n-records)
	}
	a.Write("second.schema", secondRoute)
	a.Must("reload")
	second := releasesOf(t, a)
	if len(second.Releases) != 2 || second.Active.Previous != first.Active.ID {
		t.Fatalf("%+v", second)
	}
	s.Want(200, nil, "GET", "/second", "")

	// The rolled-back release stays until another one is activated, also after a kill.
	a.Must("rollback")
	s.Want(404, nil, "GET", "/second", "")
	if r := a.Run("reload"); r.Status != 0 || !strings.Contains(r.Stderr, "the app directory is not served") {
		t.Errorf("a reload after a rollback: %d %s", r.Status, r.Stderr)
	}
	s.Want(404, nil, "GET", "/second", "")
	s.Kill()
	s = a.Serve()
	s.Want(404, nil, "GET", "/second", "")
	if text := s.Stderr.String(); !strings.Contains(text, "app directory not served: a deployed release is active") {
		t.Error(text)
	}
	if now := releasesOf(t, a); now.Active.ID != first.Active.ID || now.Active.Origin != "deploy" {
		t.Errorf("%+v", now)
	}
	s.Stop()
	s = a.Serve("--from-folder")
	s.Want(200, nil, "GET", "/second", "")

	if r := a.Run("rollback", "rel_00000000000000000000000000"); r.Status != 4 || !strings.Contains(r.Stderr, "there is no release rel_00000000000000000000000000") || strings.Contains(r.Stderr, "api-keys") {
		t.Errorf("an unknown release: %d %s", r.Status, r.Stderr)
	}
	for _, id := range []string{"../x", ""} { // "" is a variable of a script that is not set
		if r := a.Run("rollback", id); r.Status != 3 || !strings.Contains(r.Stderr, "is not the id of a release") {
			t.Errorf("no id: %d %s", r.Status, r.Stderr)
		}
	}
	if r := a.Run("rollback", "rel_"); r.Status != 4 {
		t.Errorf("no beginning of an id: %d %s", r.Status, r.Stderr)
	}
	s.Stop()
	if r := a.Run("rollback"); r.Status != 6 {
		t.Errorf("without a server: %d %s", r.Status, r.Stderr)
	}
	if now := releasesOf(t, a); now.Active.ID != second.Active.ID || now.Active.Origin != "folder" {
		t.Errorf("without a server: %+v", now)
	}
	var actions []string
	for _, r := range a.Audit(t) {
		actions = append(actions, r["action"].(string))
	}
	want := "releases.add releases.activate releases.add releases.activate releases.activate releases.add releases.activate"
	if got := strings.Join(actions, " "); got != want {
		t.Errorf("audit: %s", got)
	}
}

func TestAServerWithoutASchemaServesTheActiveRelease(t *testing.T) {
	a := harness.NewApp(t, harness.HostileSchema, "", "echo", "hostile")
	a.Serve().Stop()
	edge := harness.NewApp(t, harness.HostileSchema, "")
	for _, name := range []string{"app.schema", "build"} {
		if err := os.RemoveAll(edge.Path(name)); err != nil {
			t.Fatal(err)
		}
	}
	if r := edge.Run("serve"); r.Status != 3 || !strings.Contains(r.Stderr, "has no *.schema file") {
		t.Errorf("without --data: %d %s", r.Status, r.Stderr)
	}
	if r := edge.Run("serve", "--data", a.Path("data"), "--from-folder"); r.Status != 3 || !strings.Contains(r.Stderr, "has no *.schema file") {
		t.Errorf("with --from-folder: %d %s", r.Status, r.Stderr)
	}
	waits := edge.Serve("--data", filepath.Join(t.TempDir(), "empty"))
	if got := waits.Do("GET", "/_health/ready", ""); got.Status != 503 || !strings.Contains(string(got.Body), "no release is active") {
		t.Errorf("%d %s", got.Status, got.Body)
	}
	waits.Want(200, nil, "GET", "/_health/live", "")
	waits.Want(503, nil, "GET", "/hello", "")
	waits.Stop()
	s := edge.Serve("--data", a.Path("data"))
	s.Want(200, nil, "GET", "/hello", "")
	s.Want(200, nil, "GET", "/_health/ready", "")
	edge.Must("reload", "--data", a.Path("data"))
	s.Want(200, nil, "GET", "/hello", "")
}

func TestAServerWithADamagedReleaseStartsAndIsNotReady(t *testing.T) {
	a := harness.NewApp(t, harness.HostileSchema, "", "echo", "hostile")
	s := a.Serve()
	a.Write("second.schema", secondRoute)
	a.Must("reload")
	a.Must("rollback")
	a.Must("rollback") // the second release is active again, and deployed
	s.Stop()
	list := releasesOf(t, a)
	schema := ""
	for _, r := range list.Releases {
		for _, f := range r.Files {
			if r.ID == list.Active.ID && f.Name == "second.schema" {
				schema = f.SHA256
			}
		}
	}
	path := filepath.Join(a.Path("data"), "blobs", schema)
	text := []byte(harness.MustRead(t, path))
	text[len(text)/2] ^= 1
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
	s = a.Serve()
	if got := s.Do("GET", "/_health/ready", ""); got.Status != 503 || !strings.Contains(string(got.Body), "the active release cannot be read") {
		t.Errorf("%d %s", got.Status, got.Body)
	}
	if text := s.Stderr.String(); !strings.Contains(text, "active release cannot be read") || !strings.Contains(text, schema) {
		t.Error(text)
	}
	// The other release can still be activated.
	a.Must("rollback")
	s.Want(404, nil, "GET", "/second", "")
	s.Want(200, nil, "GET", "/hello", "")
	s.Want(200, nil, "GET", "/_health/ready", "")
}

// The store itself has space for its small records, so only the module does not fit.
func TestAStartThatCannotStoreTheAppDirectoryFails(t *testing.T) {
	a := harness.NewApp(t, harness.HostileSchema, "", "echo", "hostile")
	harness.SmallDisk(t, "tmpfs", a.Path("disk"), 40<<20)
	a.Serve("--data", "disk/data").Stop()
	// A custom section, which has no meaning: id 0, its size in LEB128, and a name of one byte.
	const padding = 30<<20 - 2
	section := append(binary.AppendUvarint([]byte{0}, padding+2), 1, 'x')
	a.Write("build/echo.wasm", harness.MustRead(t, a.Path("build/echo.wasm"))+string(section)+strings.Repeat("\x00", padding))
	a.Write("disk/other", strings.Repeat("x", 12<<20))
	r := a.Run("serve", "--data", "disk/data", "--listen", "127.0.0.1:0")
	if r.Status != 6 || !strings.Contains(r.Stderr, "store build/echo.wasm") || !strings.Contains(r.Stderr, "no space left on device") || strings.Contains(r.Stderr, "release cannot be read") {
		t.Errorf("%d %s", r.Status, r.Stderr)
	}
}
