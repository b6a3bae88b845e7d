package server_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"runner.example/internal/diag"
	"runner.example/internal/fault"
	"runner.example/keystore"
	"runner.example/node/admin"
	"runner.example/node/admin/server"
	"runner.example/node/release"
	"runner.example/schema"
	"runner.example/schema/compiler"
	"runner.example/state/jobs"
	"runner.example/state/store"
)

const appSchema = `
app orders
auth {
  session cookie { }
  roles: [admin]
}
apiKeys {
  prefix: "ord",
  maxLifetime: 365d,
  scopes: {
    orders_read: @system("orders.read") { @grant read on Order },
    partner_sync: @system("partner.sync") { @grant read, write on Order }
  }
}
routes("/v1", auth: apiKey(orders_read)) {
  GET /orders -> listOrders
  POST /orders -> createOrder (auth: apiKey(partner_sync))
}
`

// node is a node with its data in dir.
func node(t *testing.T, dir string) *server.Local {
	t.Helper()
	s, found := compiler.Compile([]diag.Source{{Name: "orders.schema", Text: []byte(appSchema)}}, compiler.Options{})
	if found.HasErrors() {
		t.Fatal(found)
	}
	st, err := store.Open(store.Options{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = st.Close() })
	keys, err := keystore.Open(t.Context(), st, keystore.Options{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = keys.Close() })
	local := server.NewLocal(st, keys, release.New(st, release.Options{Keep: 10}), jobs.Keep{})
	local.Schema, local.URL = func() *schema.Schema { return s }, "http://127.0.0.1:1"
	return local
}

// serve answers for local on the socket in dir until the test ends, or until
// the returned function is called.
func serve(t *testing.T, dir string, local *server.Local) (stop func()) {
	t.Helper()
	ln, err := server.Listen(dir, "")
	if err != nil {
		t.Fatal(err)
	}
	server := server.NewSocketServer(local, nil)
	done := make(chan error, 1)
	go func() { done <- server.Serve(ln) }()
	stopped := false
	stop = func() {
		if stopped {
			return
		}
		stopped = true
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		if err := server.Shutdown(ctx); err != nil {
			t.Error(err)
		}
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
	t.Cleanup(stop)
	return stop
}

func connect(t *testing.T, dir string) *admin.Client {
	t.Helper()
	client, err := admin.Dial(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	return client
}

func TestTheSocketAndTheProcessGiveTheSameAnswers(t *testing.T) {
	dir := t.TempDir()
	local := node(t, dir)
	serve(t, dir, local)
	here, there := local.Client(), connect(t, dir)
	ctx := t.Context()

	lifetime := int64(3600)
	made, err := there.CreateKey(ctx, admin.CreateKey{
		Scope: "orders_read", Name: "Ümläut <&>", ExpiresIn: &lifetime, Tenant: "acme", Metadata: json.RawMessage(`{"a":[1,"<"]}`),
	})
	if err != nil {
		t.Fatal(err)
	}
	if id, err := local.Keys.Verify([]byte(made.Token.Reveal())); err != nil || id.ID != made.ID {
		t.Fatalf("the token from the socket belongs to key %q, %v", id.ID, err)
	}
	old, err := here.CreateKey(ctx, admin.CreateKey{Scope: "partner_sync", Name: "old"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := here.RevokeKey(ctx, old.ID); err != nil {
		t.Fatal(err)
	}

	signed, err := there.CreateSession(ctx, admin.CreateSession{UserID: "ada", Tenant: "acme", Roles: []string{"admin"}, TTL: &lifetime})
	if err != nil {
		t.Fatal(err)
	}
	_, cookie, _ := strings.Cut(signed.Cookie.Reveal(), "=")
	if id, err := local.Keys.VerifySession(local.Schema(), []byte(cookie)); err != nil || id.ID != signed.ID {
		t.Fatalf("the cookie from the socket belongs to session %q, %v", id.ID, err)
	}

	long := int64(1 << 62)
	for _, row := range []struct {
		name string
		ask  func(*admin.Client) (any, error)
	}{
		{"status", func(c *admin.Client) (any, error) { return c.Status(ctx) }},
		{"get", func(c *admin.Client) (any, error) { return c.Key(ctx, made.ID) }},
		{"get unknown", func(c *admin.Client) (any, error) { return c.Key(ctx, "key_01hzzzzzzzzzzzzzzzzzzzzzzz") }},
		{"get nonsense", func(c *admin.Client) (any, error) { return c.Key(ctx, "../\x00") }},
		{"list", func(c *admin.Client) (any, error) { return c.ListKeys(ctx, admin.ListKeys{}) }},
		{"list all", func(c *admin.Client) (any, error) { return c.ListKeys(ctx, admin.ListKeys{All: true}) }},
		{"list a page", func(c *admin.Client) (any, error) { return c.ListKeys(ctx, admin.ListKeys{All: true, Limit: 1}) }},
		{"list unknown scope", func(c *admin.Client) (any, error) { return c.ListKeys(ctx, admin.ListKeys{Scope: "order_read"}) }},
		{"list too many", func(c *admin.Client) (any, error) { return c.ListKeys(ctx, admin.ListKeys{Limit: -1}) }},
		{"create in an unknown scope", func(c *admin.Client) (any, error) {
			return c.CreateKey(ctx, admin.CreateKey{Scope: "order_read", Name: "x"})
		}},
		{"create with too long a lifetime", func(c *admin.Client) (any, error) {
			return c.CreateKey(ctx, admin.CreateKey{Scope: "orders_read", Name: "x", ExpiresIn: &long})
		}},
		{"create with metadata that is not an object", func(c *admin.Client) (any, error) {
			return c.CreateKey(ctx, admin.CreateKey{Scope: "orders_read", Name: "x", Metadata: json.RawMessage(`[]`)})
		}},
		{"rotate a dead key", func(c *admin.Client) (any, error) { return c.RotateKey(ctx, admin.RotateKey{ID: old.ID}) }},
		{"rotate with too long a grace period", func(c *admin.Client) (any, error) {
			return c.RotateKey(ctx, admin.RotateKey{ID: made.ID, GracePeriod: 1 << 30})
		}},
		{"revoke again", func(c *admin.Client) (any, error) { return c.RevokeKey(ctx, old.ID) }},
		{"disable a dead key", func(c *admin.Client) (any, error) { return c.DisableKey(ctx, old.ID) }},
		{"enable a key that is not disabled", func(c *admin.Client) (any, error) { return c.EnableKey(ctx, made.ID) }},
		{"list sessions", func(c *admin.Client) (any, error) { return c.ListSessions(ctx, admin.ListSessions{UserID: "ada"}) }},
		{"list too many sessions", func(c *admin.Client) (any, error) {
			return c.ListSessions(ctx, admin.ListSessions{Limit: 1001})
		}},
		{"create a session without a user", func(c *admin.Client) (any, error) { return c.CreateSession(ctx, admin.CreateSession{}) }},
		{"create a session of an unknown role", func(c *admin.Client) (any, error) {
			return c.CreateSession(ctx, admin.CreateSession{UserID: "ada", Roles: []string{"boss"}})
		}},
		{"create a session with too long a lifetime", func(c *admin.Client) (any, error) {
			return c.CreateSession(ctx, admin.CreateSession{UserID: "ada", TTL: &long})
		}},
		{"revoke a session", func(c *admin.Client) (any, error) {
			changed, err := c.RevokeSession(ctx, signed.ID)
			s := changed.Item
			return s.ID + string(s.Status), err
		}},
		{"revoke all sessions of a user without one", func(c *admin.Client) (any, error) {
			return c.RevokeSessions(ctx, admin.RevokeSessions{UserID: "eve", Tenant: "acme"})
		}},
		{"revoke all sessions of no user", func(c *admin.Client) (any, error) { return c.RevokeSessions(ctx, admin.RevokeSessions{}) }},
		{"revoke an unknown session", func(c *admin.Client) (any, error) { return c.RevokeSession(ctx, "ses_01hzzzzzzzzzzzzzzzzzzzzzzz") }},
		{"audit", func(c *admin.Client) (any, error) { return c.ListAudit(ctx, admin.ListAudit{}) }},
		{"audit from", func(c *admin.Client) (any, error) { return c.ListAudit(ctx, admin.ListAudit{From: 2, Limit: 1}) }},
		{"audit newest", func(c *admin.Client) (any, error) { return c.ListAudit(ctx, admin.ListAudit{Limit: 2}) }},
		{"audit too many", func(c *admin.Client) (any, error) { return c.ListAudit(ctx, admin.ListAudit{Limit: 10_001}) }},
		{"verify", func(c *admin.Client) (any, error) { return c.VerifyAudit(ctx, admin.VerifyAudit{}) }},
		{"verify against nonsense", func(c *admin.Client) (any, error) { return c.VerifyAudit(ctx, admin.VerifyAudit{Head: "x"}) }},
		{"verify against another chain", func(c *admin.Client) (any, error) {
			return c.VerifyAudit(ctx, admin.VerifyAudit{Head: "1:" + strings.Repeat("00", 32)})
		}},
		{"the clock", func(c *admin.Client) (any, error) {
			now, err := c.Clock(ctx)
			return now.Quarantined, err
		}},
	} {
		mine, myErr := row.ask(here)
		theirs, theirErr := row.ask(there)
		if a, b := document(t, mine), document(t, theirs); a != b {
			t.Errorf("%s:\nin process: %s\nsocket:     %s", row.name, a, b)
		}
		if a, b := fault.Of(myErr), fault.Of(theirErr); (a == nil) != (b == nil) || a != nil && (a.Code != b.Code || a.Detail != b.Detail || a.Detail == "") {
			t.Errorf("%s:\nin process: %#v\nsocket:     %#v", row.name, a, b)
		}
	}
}

func document(t *testing.T, v any) string {
	t.Helper()
	text, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestKeysAreCreatedChangedAndRevokedOverTheSocket(t *testing.T) {
	dir := t.TempDir()
	local := node(t, dir)
	serve(t, dir, local)
	client, ctx := connect(t, dir), t.Context()
	lives := func(key keystore.Key) bool {
		_, err := local.Keys.Verify([]byte(key.Token.Reveal()))
		return err == nil
	}
	must := func(key keystore.Key, err error) keystore.Key {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return key
	}
	rotate := func(request admin.RotateKey) (keystore.Key, error) {
		changed, err := client.RotateKey(ctx, request)
		return changed.Item, err
	}
	done := func(_ admin.Changed[keystore.Key], err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}

	first := must(client.CreateKey(ctx, admin.CreateKey{Scope: "orders_read", Name: "a"}))
	second := must(rotate(admin.RotateKey{ID: first.ID, GracePeriod: 3600}))
	if !lives(first) || !lives(second) || second.Status != keystore.Rotating {
		t.Errorf("in grace: old token lives: %t, new: %t, status %s", lives(first), lives(second), second.Status)
	}
	third := must(rotate(admin.RotateKey{ID: first.ID}))
	if lives(first) || lives(second) || !lives(third) {
		t.Error("a rotation without a grace period keeps old tokens valid, or the new one is invalid")
	}
	done(client.DisableKey(ctx, first.ID))
	if lives(third) {
		t.Error("the token of a disabled key is valid")
	}
	must(client.EnableKey(ctx, first.ID))
	if !lives(third) {
		t.Error("the token of an enabled key is not valid")
	}
	done(client.RevokeKey(ctx, first.ID))
	if lives(third) {
		t.Error("the token of a revoked key is valid")
	}
}

func TestChangesAreRecordedWithTheUidOfTheOperator(t *testing.T) {
	dir := t.TempDir()
	local := node(t, dir)
	serve(t, dir, local)
	client, ctx := connect(t, dir), t.Context()
	key, err := client.CreateKey(ctx, admin.CreateKey{Scope: "orders_read", Name: "a"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := client.RevokeKey(ctx, key.ID); err != nil {
		t.Fatal(err)
	}
	entries, err := client.ListAudit(ctx, admin.ListAudit{})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, e := range entries {
		if e.RequestID == "" || e.Time.IsZero() {
			t.Errorf("record %d has no request id or no time: %+v", e.Sequence, e)
		}
		got = append(got, strings.Join([]string{e.Actor.Kind, e.Actor.ID, e.Action, e.Target, e.Result}, " "))
	}
	uid := "uid:" + document(t, os.Geteuid())
	want := []string{
		"system " + uid + " apiKeys.create " + key.ID + " ok",
		"system " + uid + " apiKeys.revoke " + key.ID + " ok",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	head, err := client.VerifyAudit(ctx, admin.VerifyAudit{})
	if err != nil || head.Count != 2 || !strings.HasSuffix(head.Head, entries[1].Hash) {
		t.Errorf("the chain of 2 records has the head %+v, %v; the last record has %s", head, err, entries[1].Hash)
	}
}

func TestTheSocketHasMode0600(t *testing.T) {
	dir := t.TempDir()
	serve(t, dir, node(t, dir))
	info, err := os.Stat(filepath.Join(dir, "runner.sock"))
	if err != nil {
		t.Fatal(err)
	}
	if mode := info.Mode(); mode != fs.ModeSocket|0o600 {
		t.Errorf("the socket has mode %v", mode)
	}
}

func TestTheSocketWorksInALongDirectoryName(t *testing.T) {
	dir := filepath.Join(t.TempDir(), strings.Repeat("long/", 40), strings.Repeat("n", 200))
	serve(t, dir, node(t, dir))
	if _, err := connect(t, dir).Status(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestAStaleSocketIsReplaced(t *testing.T) {
	dir := t.TempDir()
	local := node(t, dir)
	dead, err := net.ListenUnix("unix", &net.UnixAddr{Name: filepath.Join(dir, "runner.sock")})
	if err != nil {
		t.Fatal(err)
	}
	dead.SetUnlinkOnClose(false)
	if err := dead.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := admin.Dial(t.Context(), dir); !errors.Is(err, admin.ErrNoServer) {
		t.Errorf("a socket without a server: %v", err)
	}
	serve(t, dir, local)
	if _, err := connect(t, dir).Status(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestAFileThatIsNotASocketIsNotReplaced(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "runner.sock")
	if err := os.WriteFile(path, []byte("mine"), 0o600); err != nil {
		t.Fatal(err)
	}
	if ln, err := server.Listen(dir, ""); err == nil {
		_ = ln.Close()
		t.Error("the file was replaced")
	} else if !strings.Contains(err.Error(), "move it away") {
		t.Error(err)
	}
	if text, err := os.ReadFile(path); string(text) != "mine" {
		t.Errorf("it holds %q, %v", text, err)
	}
}

func TestAMissingServerAndAnUnreadableDirectoryAreDifferentErrors(t *testing.T) {
	dir := t.TempDir()
	for _, path := range []string{dir, filepath.Join(dir, "none")} {
		if _, err := admin.Dial(t.Context(), path); !errors.Is(err, admin.ErrNoServer) {
			t.Errorf("%s: %v", path, err)
		}
	}
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := admin.Dial(t.Context(), file); err == nil || errors.Is(err, admin.ErrNoServer) {
		t.Errorf("a file in place of a directory: %v", err)
	}
}

func TestAServerRemovesItsSocketWhenItStops(t *testing.T) {
	dir := t.TempDir()
	stop := serve(t, dir, node(t, dir))
	client := connect(t, dir)
	if _, err := client.Status(t.Context()); err != nil {
		t.Fatal(err)
	}
	stop()
	if _, err := os.Lstat(filepath.Join(dir, "runner.sock")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the socket is there: %v", err)
	}
	if _, err := client.Status(t.Context()); !errors.Is(err, admin.ErrNoServer) {
		t.Errorf("a client of a server that stopped: %v", err)
	}
}

func TestUnknownOperationsAndMethodsAreRefused(t *testing.T) {
	dir := t.TempDir()
	serve(t, dir, node(t, dir))
	web := &http.Client{Transport: &http.Transport{
		DisableKeepAlives: true,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			var d net.Dialer
			return d.DialContext(ctx, "unix", filepath.Join(dir, "runner.sock"))
		},
	}}
	for _, row := range []struct {
		method, path, body, code string
		status                   int
	}{
		{"POST", "/apiKeys.burn", "{}", "not_found", 404},
		{"POST", "/", "{}", "not_found", 404},
		{"POST", "/debug/pprof/", "{}", "not_found", 404},
		{"GET", "/status", "", "method_not_allowed", 405},
		{"POST", "/status", "", "invalid", 400},
		{"POST", "/apiKeys.revoke", `{"id":"x","force":true}`, "invalid", 400},
		{"POST", "/apiKeys.rotate", `{"id":1}`, "invalid", 400},
		{"POST", "/apiKeys.list", `{"limit":1e99}`, "invalid", 400},
		{"POST", "/apiKeys.revoke", `{"id":"x"}`, "not_found", 404},
	} {
		request, err := http.NewRequestWithContext(t.Context(), row.method, "http://runner"+row.path, strings.NewReader(row.body))
		if err != nil {
			t.Fatal(err)
		}
		answer, err := web.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(answer.Body)
		_ = answer.Body.Close()
		var refusal struct{ Code, Detail string }
		if err := errors.Join(err, json.Unmarshal(text, &refusal)); err != nil || answer.StatusCode != row.status || answer.Header.Get("Content-Type") != "application/problem+json" || refusal.Code != row.code || refusal.Detail == "" {
			t.Errorf("%s %s %s: status %d, %s, %v; want %d and the code %s", row.method, row.path, row.body, answer.StatusCode, text, err, row.status, row.code)
		}
	}
}
