package operations_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"runner.example/tests/harness"
)

// platformKey is what runner keys prints.
type platformKey struct {
	ID, Name, Role, Status, Token, Hint string
	ExpiresAt, LastUsedAt               *string
}

// newPlatformKey creates a platform key.
func newPlatformKey(t *testing.T, a *harness.App, role string, args ...string) (key platformKey) {
	t.Helper()
	out := a.Must(append([]string{"keys", "create", "--name", "test " + role, "--role", role, "--json"}, args...)...)
	if err := json.Unmarshal([]byte(out), &key); err != nil || key.Token == "" {
		t.Fatalf("%s: %v", out, err)
	}
	return key
}

func platformKeysOf(t *testing.T, a *harness.App, args ...string) (keys []platformKey) {
	t.Helper()
	if err := json.Unmarshal([]byte(a.Must(append([]string{"keys", "list", "--json"}, args...)...)), &keys); err != nil {
		t.Fatal(err)
	}
	return keys
}

const keyedSchema = `
apiKeys { scopes: { reader: @system("reader") { @grant read on Thing } } }
routes("/", auth: apiKey(reader), rateLimit: none) { GET /hello -> hello }
`

func TestPlatformKeysAreManagedWithAndWithoutAServer(t *testing.T) {
	a := harness.NewApp(t, keyedSchema, "", "echo", "hostile")
	first := newPlatformKey(t, a, "read")
	s := a.Serve()
	second := newPlatformKey(t, a, "deploy", "--expires", "90d")
	if !strings.HasPrefix(second.Token, "rnp_") || second.ExpiresAt == nil || first.ExpiresAt != nil {
		t.Errorf("%+v %+v", first, second)
	}
	file := a.Path("admin.key")
	out := a.Run("keys", "create", "--name", "x", "--role", "admin", "--out", file)
	token := strings.TrimSpace(harness.MustRead(t, file))
	if out.Status != 0 || strings.Contains(out.Stdout+out.Stderr, token[4:]) || !strings.HasPrefix(token, "rnp_") {
		t.Errorf("%d %s%s", out.Status, out.Stdout, out.Stderr)
	}
	if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
	// They open nothing here, and the log says what was refused without the token.
	s.Want(200, nil, "GET", "/hello", "", "Authorization: Bearer "+a.Token("reader"))
	for _, header := range []string{"Authorization: Bearer " + token, "X-API-Key: " + token} {
		s.Want(401, nil, "GET", "/hello", "", header)
	}
	if text := s.Stderr.String(); !strings.Contains(text, `"reason":"unknown"`) && !strings.Contains(text, "reason=unknown") || strings.Contains(text, token[4:20]) {
		t.Error(text)
	}
	if out := a.Run("keys", "revoke", token); out.Status != 4 || strings.Contains(out.Stderr, token[4:]) || !strings.Contains(out.Stderr, "runner keys list --all") {
		t.Errorf("a token as an id: %d %s", out.Status, out.Stderr)
	}
	a.Must("keys", "revoke", second.ID)
	a.Must("keys", "revoke", second.ID)
	if keys := platformKeysOf(t, a); len(keys) != 2 || keys[0].ID != first.ID || keys[0].Token != "" || keys[0].LastUsedAt != nil {
		t.Errorf("%+v", keys)
	}
	s.Stop()
	if keys := platformKeysOf(t, a, "--all"); len(keys) != 3 || keys[1].Status != "revoked" {
		t.Errorf("%+v", keys)
	}
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	harness.AssertNotStored(t, a, first.Token, second.Token, token)
	for _, row := range []struct {
		status int
		text   string
		args   []string
	}{
		{2, "--name is missing", []string{"create", "--role", "read"}},
		{2, "--role is missing", []string{"create", "--name", "x"}},
		{3, "--role must be one of read, deploy, admin", []string{"create", "--name", "x", "--role", "root"}},
		{3, "--expires must be positive", []string{"create", "--name", "x", "--role", "read", "--expires", "0s"}},
		{4, "there is no platform key with this id", []string{"revoke", "key_01hzzzzzzzzzzzzzzzzzzzzzzz"}},
	} {
		if got := a.Run(append([]string{"keys"}, row.args...)...); got.Status != row.status || !strings.Contains(got.Stderr, row.text) {
			t.Errorf("%s: %d %s", row.args, got.Status, got.Stderr)
		}
	}
	var actions []string
	for _, r := range a.Audit(t) {
		if action := r["action"].(string); strings.HasPrefix(action, "platformKeys.") {
			actions = append(actions, action)
		}
	}
	if got := strings.Join(actions, " "); got != "platformKeys.create platformKeys.create platformKeys.create platformKeys.revoke" {
		t.Error(got)
	}
}

func TestANodeWithoutAnAppHasPlatformKeys(t *testing.T) {
	edge := &harness.App{T: t, Dir: t.TempDir()}
	if got := edge.Run("keys", "create", "--name", "ops", "--role", "admin"); got.Status != 3 || !strings.Contains(got.Stderr, "has no *.schema file") {
		t.Errorf("without --data: %d %s", got.Status, got.Stderr)
	}
	data := filepath.Join(t.TempDir(), "data")
	if got := edge.Run("keys", "create", "--name", "ops", "--role", "boss", "--data", data); got.Status != 3 {
		t.Errorf("%d %s", got.Status, got.Stderr)
	}
	if _, err := os.Stat(data); err == nil {
		t.Error("a refused command has created the data directory")
	}
	key := newPlatformKey(t, edge, "admin", "--data", data)
	if info, err := os.Stat(data); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("%v, %v", info, err)
	}
	edge.Serve("--data", data)
	if keys := platformKeysOf(t, edge, "--data", data); len(keys) != 1 || keys[0].ID != key.ID {
		t.Errorf("%+v", keys)
	}
	edge.Must("keys", "revoke", key.ID, "--data", data)
	if keys := platformKeysOf(t, edge, "--data", data); len(keys) != 0 {
		t.Errorf("%+v", keys)
	}
}
