package operations_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"runner.example/tests/harness"
)

// deployed is what runner deploy --json prints.
type deployed struct {
	Before, After string
	Send          []struct{ Name string }
	Changes       []struct{ Change, Kind, Name string }
	Activated     bool
}

// edge is a node that starts without an app, and the flags for it.
type edge struct {
	*harness.Server
	app   *harness.App
	data  string
	flags []string
}

// startEdge starts a node with more variables in its environment.
func startEdge(t *testing.T, env ...string) *edge {
	t.Helper()
	app := &harness.App{T: t, Dir: t.TempDir(), Env: append(env, "RUNNER_ADMIN_LISTEN=127.0.0.1:0")}
	e := &edge{app: app, data: filepath.Join(t.TempDir(), "data")}
	key := newPlatformKey(t, app, "deploy", "--data", e.data)
	file := filepath.Join(t.TempDir(), "deploy.key")
	if err := os.WriteFile(file, []byte(key.Token+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	e.flags = []string{"--to", "", "--fingerprint", "", "--key-file", file}
	e.start()
	return e
}

// start starts the server of the node, which does not run.
func (e *edge) start() {
	e.app.T.Helper()
	e.Server = e.app.Serve("--data", e.data)
	there := e.status()
	e.flags[1], e.flags[3] = there.Admin, there.AdminFingerprint
}

func (e *edge) status() remoteStatus {
	e.app.T.Helper()
	return statusOf(e.app.T, e.app, "--data", e.data)
}

// run runs a command on the node.
func (e *edge) run(a *harness.App, args ...string) harness.Result {
	a.T.Helper()
	return a.Run(append(args, e.flags...)...)
}

// must runs a command that must succeed, and reads its document.
func (e *edge) must(a *harness.App, args ...string) (done deployed) {
	a.T.Helper()
	if err := json.Unmarshal([]byte(a.Must(append(append(args, "--json"), e.flags...)...)), &done); err != nil {
		a.T.Fatal(err)
	}
	return done
}

func (d deployed) sent() string {
	var names []string
	for _, f := range d.Send {
		names = append(names, f.Name)
	}
	return strings.Join(names, " ")
}

func (d deployed) changes() string {
	var all []string
	for _, c := range d.Changes {
		all = append(all, c.Change+" "+c.Kind+" "+c.Name)
	}
	return strings.Join(all, ", ")
}

func TestAnAppIsDeployedOverTheNetwork(t *testing.T) {
	e := startEdge(t)
	a := harness.NewApp(t, harness.HostileSchema, "", "echo", "hostile")
	e.Want(503, nil, "GET", "/hello", "")

	// The question needs a terminal.
	if got := e.run(a, "deploy"); got.Status != 2 || !strings.Contains(got.Stderr, "--yes activates the release without a question") {
		t.Errorf("without a terminal: %d %s", got.Status, got.Stderr)
	}
	if got := e.run(a, "diff"); got.Status != 4 || !strings.Contains(got.Stderr, "no release is active") {
		t.Errorf("diff without a release: %d %s", got.Status, got.Stderr)
	}
	first := e.must(a, "deploy", "--yes")
	if first.Before != "" || !first.Activated || first.sent() != "app.schema build/echo.wasm build/hostile.wasm" || !strings.Contains(first.changes(), "added route GET /hello") {
		t.Errorf("%+v", first)
	}
	e.Want(200, nil, "GET", "/hello", "")
	if got := e.run(a, "deploy", "--yes"); got.Status != 0 || !strings.Contains(got.Stderr, first.After+" is active already") {
		t.Errorf("again: %d %s", got.Status, got.Stderr)
	}

	a.Write("second.schema", secondRoute)
	const second = "added route GET /second"
	for range 2 { // the first one has sent nothing
		if dry := e.must(a, "deploy", "--dry-run"); dry.Activated || dry.Before != first.After || dry.sent() != "second.schema" || dry.changes() != second {
			t.Errorf("%+v", dry)
		}
	}
	e.Want(404, nil, "GET", "/second", "")
	got := e.run(a, "deploy", "--yes")
	if got.Status != 0 || !strings.Contains(got.Stdout, "from "+first.After+" to rel_") || !strings.Contains(got.Stdout, "+ GET /second  handler: hello, auth: none") || !strings.Contains(got.Stderr, "sent 1 file") {
		t.Errorf("%d %s%s", got.Status, got.Stdout, got.Stderr)
	}
	e.Want(200, nil, "GET", "/second", "")

	// The active release against the previous one, and an id's beginning against the active one.
	if d := e.must(a, "diff"); d.Before != first.After || d.changes() != second {
		t.Errorf("%+v", d)
	}
	if d := e.must(a, "diff", first.After[:12]); d.After != first.After || d.changes() != "removed route GET /second" {
		t.Errorf("%+v", d)
	}
	if got := e.run(a, "diff", "rel_", "rel_"); got.Status != 4 {
		t.Errorf("an empty beginning: %d %s", got.Status, got.Stderr)
	}
	a.Must(append([]string{"rollback", "--yes", first.After[:12]}, e.flags...)...)
	e.Want(404, nil, "GET", "/second", "")

	// A release that is not valid: here, and there.
	active := e.must(a, "diff").After
	a.Write("second.schema", strings.Replace(secondRoute, "-> hello", "-> absent", 1))
	if got := e.run(a, "deploy", "--yes"); got.Status != 3 || !strings.Contains(got.Stderr, `no handler named "absent"`) || strings.Contains(got.Stderr, "runner: sent") {
		t.Errorf("without its handler: %d %s", got.Status, got.Stderr)
	}
	a.Write("second.schema", secondRoute+"nonsense\n")
	a.Write("build/extra.wasm", "this is not a module")
	if got := e.run(a, "deploy", "--yes"); got.Status != 3 || !strings.Contains(got.Stderr, "second.schema:4") || !strings.Contains(got.Stderr, "build/extra.wasm") {
		t.Errorf("two errors: %d %s", got.Status, got.Stderr)
	}
	if err := os.Remove(a.Path("build/extra.wasm")); err != nil {
		t.Fatal(err)
	}
	a.Write("second.schema", secondRoute+"secret ABSENT\n")
	if got := e.run(a, "deploy", "--yes"); got.Status != 3 || !strings.Contains(got.Stderr, "no value for ABSENT") {
		t.Errorf("without its secret: %d %s", got.Status, got.Stderr)
	}
	if now := e.must(a, "diff").After; now != active {
		t.Errorf("%s is active, and not %s", now, active)
	}
	e.Want(200, nil, "GET", "/hello", "")
}

func TestADeploymentShowsWhatTheRowsAndKeysWouldRefuse(t *testing.T) {
	e := startEdge(t)
	schema := "app shop\nentity Thing { id: id  name: string(1..9)  n: int? }\n" +
		"apiKeys { scopes: { reader: @system(\"reader\") { @grant read on Thing } } }\n" +
		"routes(\"/\", auth: apiKey(reader)) { GET /hello -> hello }\n"
	a := harness.NewApp(t, schema, "", "echo")
	first := e.must(a, "deploy", "--yes")
	rows := filepath.Join(t.TempDir(), "rows.jsonl")
	if err := os.WriteFile(rows, []byte(`{"name":"a"}`+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	e.app.Must("data", "import", "Thing", rows, "--data", e.data)
	e.app.Must("api-keys", "create", "--scope", "reader", "--name", "x", "--data", e.data)

	// The scope of a live key is removed.
	a.Write("app.schema", strings.NewReplacer("reader: @system(\"reader\")", "writer: @system(\"writer\")", "apiKey(reader)", "apiKey(writer)").Replace(schema))
	got := e.run(a, "deploy", "--dry-run")
	if got.Status != 0 || !strings.Contains(got.Stderr, `scope "reader" is not in the schema, so its live keys are refused`) || !strings.Contains(got.Stdout, "- reader") {
		t.Errorf("%d %s%s", got.Status, got.Stdout, got.Stderr)
	}

	// The rows have no value for a field that must have one.
	a.Write("app.schema", strings.Replace(schema, "n: int?", "n: int", 1))
	for _, flag := range []string{"--dry-run", "--yes"} {
		got := e.run(a, "deploy", flag)
		if got.Status != 3 || !strings.Contains(got.Stderr, "existing rows violate the schema: 1 error") || !strings.Contains(got.Stdout, "~ Thing.n  int? → int") {
			t.Errorf("%s: %d %s%s", flag, got.Status, got.Stdout, got.Stderr)
		}
	}
	if now := e.must(a, "diff").After; now != first.After {
		t.Errorf("%s is active, and not %s", now, first.After)
	}
}

// While one deployment waits for its answer, another one activates a release.
func TestOfTwoDeploymentsAtOnceOneIsRefused(t *testing.T) {
	e := startEdge(t)
	a := harness.NewApp(t, harness.HostileSchema, "", "echo", "hostile")
	e.must(a, "deploy", "--yes")
	b := harness.NewApp(t, harness.HostileSchema, "", "echo", "hostile")
	b.Write("second.schema", secondRoute)
	third := harness.NewApp(t, harness.HostileSchema, "", "echo", "hostile")
	third.Write("third.schema", strings.ReplaceAll(secondRoute, "second", "third"))

	for _, row := range []struct {
		answer  string
		also    bool
		status  int
		text    string
		serving int // the status of /third
	}{
		{"\n", false, 5, "was sent, and not activated", 404},
		{"y\n", true, 5, "another release has been activated meanwhile", 404},
		{"y\n", false, 0, "active: rel_", 200},
	} {
		ours, theirs := harness.Terminal(t)
		ctx, cancel := context.WithTimeout(t.Context(), harness.BuildTimeout)
		defer cancel()
		cmd := exec.CommandContext(ctx, harness.Binary, append([]string{"deploy"}, e.flags...)...)
		cmd.Dir, cmd.Env = third.Dir, append(os.Environ(), "NO_COLOR=")
		cmd.Stdin, cmd.Stdout, cmd.Stderr = theirs, theirs, theirs
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		_ = theirs.Close()
		shown := readUntil(t, ours, "[y/N]\r\n")
		if row.also {
			e.must(b, "deploy", "--yes")
		}
		if _, err := ours.WriteString(row.answer); err != nil {
			t.Fatal(err)
		}
		rest, _ := io.ReadAll(ours) // it ends with an error when the other end is closed
		_ = cmd.Wait()
		if got := cmd.ProcessState.ExitCode(); got != row.status || !strings.Contains(string(rest), row.text) || !strings.Contains(shown, "\x1b[32m+ GET /third") {
			t.Errorf("answer %q: %d\n%s%s", row.answer, got, shown, rest)
		}
		e.Want(row.serving, nil, "GET", "/third", "")
	}
}

// readUntil reads until the text has arrived.
func readUntil(t *testing.T, r io.Reader, text string) string {
	t.Helper()
	var all bytes.Buffer
	one := make([]byte, 1)
	for !strings.HasSuffix(all.String(), text) {
		if _, err := r.Read(one); err != nil {
			t.Fatalf("%v after %s", err, all.String())
		}
		all.WriteByte(one[0])
	}
	return all.String()
}

// The connection is cut in the second of two files.
func TestADeploymentThatWasCutShortGoesOn(t *testing.T) {
	e := startEdge(t)
	a := harness.NewApp(t, "routes(\"/\", auth: none) { GET /hello -> hello }\n", "", "echo")
	// A custom section makes the module large.
	section := append([]byte{3}, "big"...)
	section = append(section, make([]byte, 512<<10)...)
	module := append([]byte(harness.MustRead(t, a.Path("build/echo.wasm"))), 0)
	module = append(binary.AppendUvarint(module, uint64(len(section))), section...)
	a.Write("build/echo.wasm", string(module))
	address := cutAfter(t, strings.TrimPrefix(e.flags[1], "https://"), 128<<10)
	cut := append([]string{"deploy", "--yes", "--to", "https://" + address}, e.flags[2:]...)
	if got := a.Run(cut...); got.Status != 6 || !strings.Contains(got.Stderr, "the connection broke while build/echo.wasm was sent: run the command again, what has arrived is kept") {
		t.Fatalf("%d %s", got.Status, got.Stderr)
	}
	if done := e.must(a, "deploy", "--yes"); done.sent() != "build/echo.wasm" || !done.Activated {
		t.Errorf("%+v", done)
	}
	e.Want(200, nil, "GET", "/hello", "")
}

// cutAfter forwards connections to an address until clients have sent a number of bytes.
func cutAfter(t *testing.T, to string, most int) (address string) {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var running sync.WaitGroup
	t.Cleanup(func() { _ = ln.Close(); running.Wait() })
	budget := &io.LimitedReader{N: int64(most)}
	running.Go(func() {
		for { // one connection at a time
			client, err := ln.Accept()
			if err != nil {
				return
			}
			server, err := net.Dial("tcp", to)
			if err != nil {
				_ = client.Close()
				return
			}
			running.Go(func() { _, _ = io.Copy(client, server); _ = client.Close() })
			budget.R = client
			_, _ = io.Copy(server, budget)
			_ = client.Close()
			_ = server.Close()
		}
	})
	return ln.Addr().String()
}

// A damaged module is not missing: the operator asks for all files.
func TestSendAllRepairsADamagedRelease(t *testing.T) {
	e := startEdge(t)
	a := harness.NewApp(t, harness.HostileSchema, "", "echo", "hostile")
	first := e.must(a, "deploy", "--yes")
	blobs, err := filepath.Glob(filepath.Join(e.data, "blobs", "*"))
	if err != nil || len(blobs) != 3 {
		t.Fatalf("%v, %v", blobs, err)
	}
	for _, path := range blobs {
		text := []byte(harness.MustRead(t, path))
		text[len(text)/2] ^= 1
		if err := os.WriteFile(path, text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	e.Stop()
	e.start()
	e.Want(503, nil, "GET", "/hello", "")
	if got := e.run(a, "diff"); got.Status != 6 || !strings.Contains(got.Stderr, "runner deploy --send-all") {
		t.Errorf("%d %s", got.Status, got.Stderr)
	}
	if done := e.must(a, "deploy", "--yes", "--send-all"); done.After != first.After || len(done.Send) != 3 {
		t.Errorf("%+v", done)
	}
	e.Want(200, nil, "GET", "/hello", "")
}

func TestAnAppIsDeployedToTheServerOfItsDataDirectory(t *testing.T) {
	a := harness.NewApp(t, harness.HostileSchema, "", "echo", "hostile")
	if got := a.Run("deploy", "--yes"); got.Status != 6 {
		t.Errorf("without a server: %d %s", got.Status, got.Stderr)
	}
	s := a.Serve()
	// It is what the app directory has, and a later change there no longer counts.
	a.Must("deploy", "--yes")
	if list := releasesOf(t, a); list.Active.Origin != "deploy" {
		t.Errorf("%+v", list.Active)
	}
	if got := a.Run("deploy", "--yes"); got.Status != 0 || !strings.Contains(got.Stderr, "is active already") {
		t.Errorf("%d %s", got.Status, got.Stderr)
	}
	a.Write("second.schema", secondRoute)
	a.Must("reload")
	s.Want(404, nil, "GET", "/second", "")
	a.Must("deploy", "--yes")
	s.Want(200, nil, "GET", "/second", "")
	if list := releasesOf(t, a); list.Active.Origin != "deploy" {
		t.Errorf("%+v", list.Active)
	}
}

func TestADifferenceNeedsNoServerAndOnlyTheRoleRead(t *testing.T) {
	schema := "routes(\"/\", auth: none) { GET /hello -> hello }\n"
	a := harness.NewApp(t, schema, adminListen, "echo")
	s := a.Serve()
	a.Write("second.schema", secondRoute)
	a.Must("reload")
	a.Must("rollback")
	a.Must("deploy", "--yes")
	// A third release, which is newer than the active one after a rollback.
	a.Write("third.schema", strings.ReplaceAll(secondRoute, "second", "third"))
	a.Must("deploy", "--yes")
	third := releasesOf(t, a).Active.ID
	a.Must("rollback")

	there := statusOf(t, a)
	_, key := writeKey(t, a, "read")
	away := &harness.App{T: t, Dir: t.TempDir()}
	with := []string{"--to", there.Admin, "--fingerprint", there.AdminFingerprint, "--key-file", key}
	got := away.Run(append([]string{"diff", third}, with...)...)
	if got.Status != 0 || !strings.Contains(got.Stdout, "+ GET /third  handler: hello, auth: none") ||
		!strings.Contains(got.Stderr, "rows and keys were not compared: this operation needs a platform key with the role deploy") {
		t.Errorf("with the role read: %d %s%s", got.Status, got.Stdout, got.Stderr)
	}
	if got := a.Run(append([]string{"deploy", ".", "--yes"}, with...)...); got.Status != 1 || !strings.Contains(got.Stderr, "needs a platform key with the role deploy") {
		t.Errorf("deployed with the role read: %d %s", got.Status, got.Stderr)
	}
	s.Stop()
	if got := a.Run("diff", third); got.Status != 0 || !strings.Contains(got.Stdout, "+ GET /third") || strings.Contains(got.Stderr, "not compared") {
		t.Errorf("without a server: %d %s%s", got.Status, got.Stdout, got.Stderr)
	}
}
