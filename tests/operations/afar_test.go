package operations_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"runner.example/tests/harness"
)

const afarSchema = `app shop
auth { session cookie { absolute: 1h } }
entity Note { id: id  text: string(1..200) }
apiKeys { scopes: { reader: @system("reader") { @grant read, write on Note } } }
functions(auth: apiKey(reader), rateLimit: none) {
  @expose say(note: Note)
}
jobs { empty() }
routes("/", auth: apiKey(reader), rateLimit: none) { GET /hello -> hello }
`

// afar is a machine that has the URL of a node, the fingerprint of its certificate and platform keys, and nothing else.
type afar struct {
	*harness.App
	node *harness.App
	// flags name the node, without --key-file.
	flags []string
	// ids and files are the platform keys, by role.
	ids, files map[string]string
}

func newAfar(t *testing.T, node *harness.App) *afar {
	t.Helper()
	s := statusOf(t, node)
	f := &afar{App: &harness.App{T: t, Dir: t.TempDir()}, node: node, flags: []string{"--to", s.Admin, "--fingerprint", s.AdminFingerprint},
		ids: map[string]string{}, files: map[string]string{}}
	for _, role := range []string{"read", "deploy", "admin"} {
		f.ids[role], f.files[role] = writeKey(t, node, role)
	}
	return f
}

// as runs a command on the node with a key of that role.
func (f *afar) as(role string, args ...string) harness.Result {
	f.T.Helper()
	return f.Run(append(append(args, f.flags...), "--key-file", f.files[role])...)
}

// admin runs a command that needs the role admin, and returns its output. With a key that may deploy it is refused
// first, and does nothing.
func (f *afar) admin(want string, args ...string) string {
	f.T.Helper()
	const refused = "this operation needs a platform key with the role admin, and this one has deploy"
	if got := f.as("deploy", args...); got.Status != 1 || !strings.Contains(got.Stderr, refused) || got.Stdout != "" {
		f.T.Errorf("%s with the role deploy: %d %s%s", args, got.Status, got.Stdout, got.Stderr)
	}
	got := f.as("admin", args...)
	if got.Status != 0 || !strings.Contains(got.Stdout+got.Stderr, want) {
		f.T.Errorf("%s: %d %s%s, want %s", args, got.Status, got.Stdout, got.Stderr, want)
	}
	return got.Stdout
}

// idIn returns the member id of a document, or of the first of a list.
func idIn(t *testing.T, text string) string {
	t.Helper()
	var one struct{ ID string }
	err := json.Unmarshal([]byte(text), &one)
	if err != nil {
		var all []struct{ ID string }
		if err = json.Unmarshal([]byte(text), &all); err == nil && len(all) > 0 {
			one.ID = all[0].ID
		}
	}
	if err != nil || one.ID == "" {
		t.Fatalf("%s: %v", text, err)
	}
	return one.ID
}

func TestEveryCommandWorksFromAfar(t *testing.T) {
	node := harness.NewApp(t, afarSchema, adminListen, "echo")
	s := node.Serve()
	f := newAfar(t, node)
	f.Write("rows.jsonl", `{"text":"one"}`+"\n"+`{"text":"two"}`+"\n")

	// API keys.
	key := idIn(t, f.admin("", "api-keys", "create", "--scope", "reader", "--name", "far", "--json"))
	f.admin(key, "api-keys", "list")
	f.admin("reader", "api-keys", "show", key)
	token := lastLine(f.admin("", "api-keys", "rotate", key, "--grace-period", "1h"))
	s.Want(200, nil, "GET", "/hello", "", "Authorization: Bearer "+token)
	f.admin("disabled "+key, "api-keys", "disable", key)
	f.admin("enabled "+key, "api-keys", "enable", key)
	f.admin("revoked "+key, "api-keys", "revoke", key)
	s.Want(401, nil, "GET", "/hello", "", "Authorization: Bearer "+token)

	// Sessions.
	session := idIn(t, f.admin("", "sessions", "create", "--user", "ada", "--json"))
	f.admin(session, "sessions", "list")
	f.admin("revoked "+session, "sessions", "revoke", session)
	f.admin("revoked 0 sessions", "sessions", "revoke", "--user", "ada")

	// Rows and functions.
	f.admin("imported 2 rows", "data", "import", "Note", "rows.jsonl")
	row := idIn(t, f.admin("", "data", "list", "Note", "--order", "text", "--json"))
	f.admin("one", "data", "get", "Note", row)
	f.admin("exported 2 rows to far.csv", "data", "export", "Note", "--out", "far.csv", "--format", "csv")
	if text := harness.MustRead(t, f.Path("far.csv")); !strings.Contains(text, "two") {
		t.Error(text)
	}
	f.admin("updated 1 row", "data", "update", "Note", "--where", "text = one", "--set", "text=three")
	f.admin("called say for 2 rows", "data", "each", "Note", "--call", "say", "--all")
	f.admin("deleted 1 row", "data", "delete", "Note", "--where", "text = three")
	f.admin("", "call", "say", `{"note":"`+row+`"}`)
	if got := f.as("deploy", "data", "drop", "Coupon", "--yes"); got.Status != 1 || !strings.Contains(got.Stderr, "needs a platform key with the role admin") {
		t.Errorf("%d %s", got.Status, got.Stderr)
	}
	if got := f.as("admin", "data", "drop", "Coupon", "--yes"); got.Status != 4 && got.Status != 3 {
		t.Errorf("%d %s", got.Status, got.Stderr)
	}

	// Jobs.
	job := strings.TrimSpace(f.admin("job_", "jobs", "enqueue", "empty", "--delay", "1h"))
	f.admin(job, "jobs", "list")
	f.admin("waiting", "jobs", "show", job)
	f.admin("cancelled", "jobs", "cancel", job)
	f.admin(job, "jobs", "retry", job)
	f.admin("cancelled ", "jobs", "cancel", "--all", "--yes")

	// The audit, the clock, the configuration.
	f.admin("jobs.cancel", "audit", "list")
	f.admin(":", "audit", "verify")
	f.admin("quarantined", "clock", "show")
	f.admin("T", "clock", "accept")
	f.admin("admin.listen", "config", "show", "--changed")
	node.Write("second.schema", secondRoute)
	f.admin("second.schema (new)", "reload")

	// A backup is written on this machine.
	f.admin("sha256", "backup", "far.backup")
	f.Must("backup", "--check", "far.backup")
	if info, err := os.Stat(f.Path("far.backup")); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info, err)
	}
	if got := f.as("deploy", "backup", "refused.backup"); got.Status != 1 {
		t.Errorf("%d %s", got.Status, got.Stderr)
	}
	if left, _ := filepath.Glob(f.Path("*refused*")); len(left) > 0 {
		t.Errorf("a refused backup leaves %s", left)
	}

	// What the role read may do.
	for _, row := range []struct {
		want string
		args []string
	}{{"url", []string{"status"}}, {"rel_", []string{"releases"}}, {"/second", []string{"routes"}}, {"second", []string{"diff"}}} {
		if got := f.as("read", row.args...); got.Status != 0 || !strings.Contains(got.Stdout, row.want) {
			t.Errorf("%s: %d %s%s", row.args, got.Status, got.Stdout, got.Stderr)
		}
	}
	if here, there := node.Must("routes", "--json"), f.as("read", "routes", "--json").Stdout; here != there {
		t.Errorf("routes here %s, there %s", here, there)
	}

	// Platform keys, the last of which takes the first one's place.
	other := idIn(t, f.admin("", "keys", "create", "--name", "other", "--role", "read", "--json"))
	f.admin(other, "keys", "list")
	f.admin("token", "keys", "rotate", other, "--out", "other.key")
	f.admin("revoked "+other, "keys", "revoke", other)

	// The audit says who did it, and from where.
	for _, r := range node.Audit(t) {
		actor, _ := r["actor"].(map[string]any)
		if id, _ := actor["id"].(string); strings.HasPrefix(id, "pkey_") && (id != f.ids["admin"] || r["address"] != "127.0.0.1") {
			t.Errorf("%v", r)
		}
	}
	acted := map[string]bool{}
	for _, r := range node.Audit(t) {
		if actor, _ := r["actor"].(map[string]any); actor["id"] == f.ids["admin"] {
			acted[r["action"].(string)] = true
		}
	}
	for _, action := range []string{
		"apiKeys.create", "apiKeys.rotate", "apiKeys.disable", "apiKeys.enable", "apiKeys.revoke", "sessions.create", "sessions.revoke",
		"data.import", "data.update", "data.each", "data.delete", "functions.call", "jobs.enqueue", "jobs.cancel", "jobs.retry",
		"platformKeys.create", "platformKeys.rotate", "platformKeys.revoke", "clock.accept",
	} {
		if !acted[action] {
			t.Errorf("no record of %s names the platform key", action)
		}
	}
	if text := s.Stderr.String(); !strings.Contains(text, `"operation":"backup","result":"ok","keyId":"`+f.ids["admin"]) || !strings.Contains(text, `"operation":"backup","result":"insufficient_role"`) {
		t.Error("the log has no line about the backup")
	}
}

func lastLine(text string) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return lines[len(lines)-1]
}

// A command ends when its node does not answer, at the socket and from afar.
func TestACommandEndsWhenItsNodeHangs(t *testing.T) {
	node := harness.NewApp(t, afarSchema, adminListen, "echo")
	s := node.Serve()
	f := newAfar(t, node)
	harness.Pause(t, s.Cmd.Process)
	t.Cleanup(func() { _ = harness.Resume(s.Cmd.Process) })
	for _, args := range [][]string{{"status"}, {"api-keys", "list"}, {"backup", "x.backup"}, {"reload"}, {"releases"}, {"config", "show"}} {
		args = append(args, "--timeout", "1s")
		if got := node.Run(args...); got.Status != 6 || !strings.Contains(got.Stderr, "the server has not answered for 1s") || !strings.Contains(got.Stderr, "--timeout") {
			t.Errorf("%s: %d %s", args, got.Status, got.Stderr)
		}
		if got := f.as("admin", args...); got.Status != 6 || !strings.Contains(got.Stderr, "has accepted the connection and has not answered") {
			t.Errorf("%s from afar: %d %s", args, got.Status, got.Stderr)
		}
	}
	for _, row := range [][2]string{{"0s", "--timeout: it must be longer than 0s"}, {"1", "--timeout: "}} {
		if got := node.Run("status", "--timeout", row[0]); got.Status != 3 || !strings.Contains(got.Stderr, row[1]) {
			t.Errorf("%s: %d %s", row[0], got.Status, got.Stderr)
		}
	}
	if err := harness.Resume(s.Cmd.Process); err != nil {
		t.Fatal(err)
	}
	node.Must("status", "--timeout", "30s")
}

func TestPlatformKeysRotateWithAGracePeriod(t *testing.T) {
	node := harness.NewApp(t, afarSchema, adminListen, "echo")
	s := node.Serve()
	f := newAfar(t, node)
	out := f.Path("new.key")
	f.as("admin", "keys", "rotate", f.ids["deploy"], "--grace-period", "1h", "--out", out)
	if token := strings.TrimSpace(harness.MustRead(t, out)); !strings.HasPrefix(token, "rnp_") || token == strings.TrimSpace(harness.MustRead(t, f.files["deploy"])) {
		t.Error("the new token is not one, or the old one")
	}
	releases := func(file string) harness.Result {
		return f.Run(append([]string{"releases", "--key-file", file}, f.flags...)...)
	}
	for _, file := range []string{out, f.files["deploy"]} {
		if got := releases(file); got.Status != 0 {
			t.Errorf("%d %s", got.Status, got.Stderr)
		}
	}
	if text := node.Must("keys", "list"); !strings.Contains(text, "rotating") {
		t.Error(text)
	}
	last := f.Path("last.key")
	node.Must("keys", "rotate", f.ids["deploy"], "--out", last)
	for _, file := range []string{out, f.files["deploy"]} {
		if got := releases(file); got.Status != 1 || !strings.Contains(got.Stderr, "the credential is not valid") {
			t.Errorf("an old token: %d %s", got.Status, got.Stderr)
		}
	}
	s.Stop()
	node.Serve()
	if got := f.Run(append([]string{"releases", "--key-file", last, "--to", statusOf(t, node).Admin}, f.flags[2:]...)...); got.Status != 0 {
		t.Errorf("after a restart: %d %s", got.Status, got.Stderr)
	}
	for _, row := range []struct {
		status int
		text   string
		args   []string
	}{
		{3, "--grace-period is longer than the limit", []string{f.ids["deploy"], "--grace-period", "31d"}},
		{3, "--grace-period: ", []string{f.ids["deploy"], "--grace-period", "soon"}},
		{4, "there is no platform key with this id", []string{"key_01hzzzzzzzzzzzzzzzzzzzzzzz"}},
	} {
		if got := node.Run(append([]string{"keys", "rotate"}, row.args...)...); got.Status != row.status || !strings.Contains(got.Stderr, row.text) {
			t.Errorf("%s: %d %s", row.args, got.Status, got.Stderr)
		}
	}
	node.Must("keys", "revoke", f.ids["deploy"])
	if got := node.Run("keys", "rotate", f.ids["deploy"]); got.Status != 5 || !strings.Contains(got.Stderr, "the key is revoked and cannot be rotated") {
		t.Errorf("%d %s", got.Status, got.Stderr)
	}
}
