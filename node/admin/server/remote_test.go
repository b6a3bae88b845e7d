package server_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"runner.example/internal/console"
	"runner.example/internal/fault"
	"runner.example/internal/secret"
	"runner.example/keystore"
	"runner.example/keystore/credtime"
	"runner.example/node/admin"
	"runner.example/node/admin/server"
	"runner.example/node/release"
	"runner.example/runtime/auth"
	"runner.example/state/entity"
)

// remoteNode is a node with a server on the network.
type remoteNode struct {
	*testing.T
	local            *server.Local
	dir              string
	url, fingerprint string
	keys             map[keystore.Role]keystore.PlatformKey
	ahead            atomic.Int64 // how far its clocks are ahead, in ns
	log              safeBuffer
	addresses        atomic.Uint32 // of clients, used so far
}

// safeBuffer is a log that several goroutines write.
type safeBuffer struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (b *safeBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.Write(p)
}

func (b *safeBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.String()
}

// serveRemote returns a node that serves until the test ends, with a key for each role.
func serveRemote(t *testing.T, opt server.RemoteOptions) *remoteNode {
	t.Helper()
	n := &remoteNode{T: t, dir: t.TempDir(), keys: map[keystore.Role]keystore.PlatformKey{}}
	n.local = node(t, n.dir)
	began := time.Now()
	passed := func() time.Duration { return time.Since(began) + time.Duration(n.ahead.Load()) }
	var err error
	if err := n.local.Keys.Close(); err != nil {
		t.Fatal(err)
	}
	n.local.Keys, err = keystore.Open(t.Context(), n.local.Store, keystore.Options{Dir: n.dir, Machine: credtime.Machine{
		Wall: func() time.Time { return began.Add(passed()) }, Uptime: passed,
	}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = n.local.Keys.Close() })
	for _, role := range keystore.Roles() {
		n.keys[role] = n.newKey(role)
	}
	certificate, err := server.OwnCertificate(n.dir)
	if err != nil {
		t.Fatal(err)
	}
	logger := slog.New(slog.NewTextHandler(&n.log, nil))
	opt.Auth, opt.Certificate, opt.Logger = auth.New(n.local.Store, n.local.Keys, auth.Options{Logger: logger}), certificate, logger
	server := server.NewRemoteServer(n.local, opt)
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	n.url, n.fingerprint = "https://"+ln.Addr().String(), server.Fingerprint()
	done := make(chan error, 1)
	go func() { done <- server.Serve(ln) }()
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		if err := errors.Join(server.Shutdown(ctx), <-done); err != nil {
			t.Error(err)
		}
	})
	return n
}

func (n *remoteNode) newKey(role keystore.Role) keystore.PlatformKey {
	n.Helper()
	key, err := n.local.Client().CreatePlatformKey(n.Context(), admin.CreatePlatformKey{Name: "test " + string(role), Role: role})
	if err != nil {
		n.Fatal(err)
	}
	return key
}

func (n *remoteNode) client(role keystore.Role) *admin.Client {
	n.Helper()
	client, err := admin.DialURL(n.Context(), n.url, []string{n.fingerprint}, n.keys[role].Token)
	if err != nil {
		n.Fatal(err)
	}
	return client
}

// web returns an HTTP client with an address of its own: refused credentials count by address.
func (n *remoteNode) web() *http.Client {
	number := n.addresses.Add(1)
	dialer := &net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 1, byte(number>>8), byte(number))}}
	return &http.Client{Transport: &http.Transport{
		DialContext: dialer.DialContext, DisableKeepAlives: true, ExpectContinueTimeout: time.Minute,
		TLSClientConfig: &tls.Config{InsecureSkipVerify: true},
	}}
}

// answer is an answer of the server; the code is that of a refusal.
type answer struct {
	status int
	code   string
	header http.Header
	body   string
}

// do sends a request from web with the headers, "Name: value".
func (n *remoteNode) do(web *http.Client, method, path string, body io.Reader, headers ...string) answer {
	n.Helper()
	request, err := http.NewRequestWithContext(n.Context(), method, n.url+path, body)
	if err != nil {
		n.Fatal(err)
	}
	if s, ok := body.(*sized); ok {
		request.ContentLength = s.n
	}
	for _, h := range headers {
		name, value, _ := strings.Cut(h, ": ")
		request.Header.Add(name, value)
	}
	got, err := web.Do(request)
	if err != nil {
		n.Fatal(err)
	}
	defer got.Body.Close()
	text, err := io.ReadAll(got.Body)
	if err != nil {
		n.Fatal(err)
	}
	a := answer{status: got.StatusCode, header: got.Header, body: string(text)}
	var refusal struct {
		Type, Title, Code, Detail string
		Status                    int
	}
	if got.StatusCode >= 400 {
		if err := json.Unmarshal(text, &refusal); err != nil || refusal.Code == "" || refusal.Detail == "" || refusal.Status != got.StatusCode ||
			refusal.Type != "about:blank" || refusal.Title != http.StatusText(got.StatusCode) || got.Header.Get("Content-Type") != "application/problem+json" {
			n.Errorf("%s %s: %d %s", method, path, got.StatusCode, text)
		}
		a.code = refusal.Code
	}
	return a
}

func bearer(token secret.Token) string { return "Authorization: Bearer " + token.Reveal() }

func TestEachRoleRunsItsOperationsAndOtherCredentialsNone(t *testing.T) {
	n := serveRemote(t, server.RemoteOptions{})
	ctx, here := t.Context(), n.local.Client()
	key, err := here.CreateKey(ctx, admin.CreateKey{Scope: "orders_read", Name: "a"})
	if err != nil {
		t.Fatal(err)
	}
	session, err := here.CreateSession(ctx, admin.CreateSession{UserID: "ada", Roles: []string{"admin"}})
	if err != nil {
		t.Fatal(err)
	}
	revoked, expired := n.newKey(keystore.RoleAdmin), keystore.PlatformKey{}
	if _, err := here.RevokePlatformKey(ctx, revoked.ID); err != nil {
		t.Fatal(err)
	}
	second := int64(1)
	if expired, err = here.CreatePlatformKey(ctx, admin.CreatePlatformKey{Name: "x", Role: keystore.RoleAdmin, ExpiresIn: &second}); err != nil {
		t.Fatal(err)
	}
	n.ahead.Add(int64(time.Minute))
	good := n.keys[keystore.RoleAdmin].Token.Reveal()
	tampered := []byte(good)
	tampered[10] ^= 1
	_, cookie, _ := strings.Cut(session.Cookie.Reveal(), "=")

	operations := server.RolesOfOperations()
	entries, err := here.ListAudit(ctx, admin.ListAudit{})
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range []struct {
		name, code string
		headers    []string
	}{
		{"none", "missing_credentials", nil},
		{"an empty header", "invalid_token", []string{"Authorization: "}},
		{"an API key", "invalid_token", []string{bearer(key.Token)}},
		{"an API key in its own header", "missing_credentials", []string{"X-API-Key: " + key.Token.Reveal()}},
		{"a platform key in the header of API keys", "missing_credentials", []string{"X-API-Key: " + good}},
		{"a session's cookie", "missing_credentials", []string{"Cookie: " + session.Cookie.Reveal()}},
		{"a session as a token", "invalid_token", []string{"Authorization: Bearer " + cookie}},
		{"a platform key as a cookie", "missing_credentials", []string{"Cookie: __Host-session=" + good}},
		{"a JWT", "invalid_token", []string{"Authorization: Bearer eyJhbGciOiJub25lIn0.eyJyb2xlIjoiYWRtaW4ifQ.c2ln"}},
		{"another scheme", "invalid_token", []string{"Authorization: Basic " + good}},
		{"a revoked key", "invalid_token", []string{bearer(revoked.Token)}},
		{"an expired key", "invalid_token", []string{bearer(expired.Token)}},
		{"a changed key", "invalid_token", []string{"Authorization: Bearer " + string(tampered)}},
		{"a key in lower case", "invalid_token", []string{"Authorization: Bearer " + strings.ToLower(good)}},
		{"two keys", "invalid_request", []string{"Authorization: Bearer " + good, "Authorization: Bearer " + good}},
	} {
		paths := []string{"/", "/status", "/v1/", "/v1/unknown"}
		for name := range operations {
			paths = append(paths, "/v1/"+name)
		}
		for _, path := range paths {
			got := n.do(n.web(), "POST", path, strings.NewReader("{}"), row.headers...)
			want := 401
			if row.code == "invalid_request" {
				want = 400
			}
			if got.status != want || got.code != row.code || want == 401 && got.header.Get("WWW-Authenticate") != "Bearer" {
				t.Errorf("%s: %s: %d %s", row.name, path, got.status, got.body)
			}
		}
		if got := n.do(n.web(), "PUT", "/v1/blobs/"+strings.Repeat("0", 64), strings.NewReader("x"), row.headers...); got.code != row.code {
			t.Errorf("%s: an upload: %d %s", row.name, got.status, got.body)
		}
	}
	if after, err := here.ListAudit(ctx, admin.ListAudit{}); err != nil || len(after) != len(entries) {
		t.Errorf("%d records after %d, %v", len(after), len(entries), err)
	}
	for role, key := range n.keys {
		for name, needed := range operations {
			// The arguments are not valid, so that an operation that may run does nothing.
			got := n.do(n.web(), "POST", "/v1/"+name, strings.NewReader("[]"), bearer(key.Token))
			switch {
			case name == "blobs.put" || name == "blobs.putBatch" || name == "data.putFile":
				if got.status != 404 {
					t.Errorf("a POST of %s: %d %s", name, got.status, got.body)
				}
			case !role.Allows(needed):
				if got.status != 403 || got.code != "insufficient_role" || !strings.Contains(got.body, "needs a platform key with the role "+string(needed)) {
					t.Errorf("%s with the role %s: %d %s", name, role, got.status, got.body)
				}
			case got.status != 400 || got.code != "invalid":
				t.Errorf("%s with the role %s: %d %s", name, role, got.status, got.body)
			}
		}
		want := map[keystore.Role]int{keystore.RoleRead: 403, keystore.RoleDeploy: 200, keystore.RoleAdmin: 200}[role]
		if got := n.do(n.web(), "PUT", blobPath("x"), strings.NewReader("x"), bearer(key.Token)); got.status != want {
			t.Errorf("an upload with the role %s: %d %s", role, got.status, got.body)
		}
		for _, row := range []struct {
			method, path, code string
			status             int
		}{
			{"POST", "/", "not_found", 404},
			{"POST", "/status", "not_found", 404},
			{"POST", "/v1/unknown", "not_found", 404},
			{"GET", "/v1/status", "method_not_allowed", 405},
			{"POST", blobPath("x"), "method_not_allowed", 405},
		} {
			if got := n.do(n.web(), row.method, row.path, nil, bearer(key.Token)); got.status != row.status || got.code != row.code {
				t.Errorf("%s %s: %d %s", row.method, row.path, got.status, got.body)
			}
		}
	}
	if text := n.log.String(); strings.Contains(text, good) || !strings.Contains(text, "reason=revoked") || !strings.Contains(text, "keyId="+expired.ID) {
		t.Error(text)
	}
}

func blobPath(contents string) string {
	return fmt.Sprintf("/v1/blobs/%x", sha256.Sum256([]byte(contents)))
}

func TestTheNetworkAndTheProcessGiveTheSameAnswers(t *testing.T) {
	n := serveRemote(t, server.RemoteOptions{})
	ctx, here, there := t.Context(), n.local.Client(), n.client(keystore.RoleAdmin)
	made, err := there.CreateKey(ctx, admin.CreateKey{Scope: "orders_read", Name: "Ümläut <&>"})
	if err != nil {
		t.Fatal(err)
	}
	for name, ask := range map[string]func(*admin.Client) (any, error){
		"list":            func(c *admin.Client) (any, error) { return c.ListKeys(ctx, admin.ListKeys{}) },
		"get":             func(c *admin.Client) (any, error) { return c.Key(ctx, made.ID) },
		"get unknown":     func(c *admin.Client) (any, error) { return c.Key(ctx, "key_01hzzzzzzzzzzzzzzzzzzzzzzz") },
		"unknown scope":   func(c *admin.Client) (any, error) { return c.CreateKey(ctx, admin.CreateKey{Scope: "x", Name: "x"}) },
		"releases":        func(c *admin.Client) (any, error) { return c.Releases(ctx) },
		"audit":           func(c *admin.Client) (any, error) { return c.ListAudit(ctx, admin.ListAudit{}) },
		"unknown release": func(c *admin.Client) (any, error) { return c.Release(ctx, "rel_00000000000000000000000000") },
		"no release id":   func(c *admin.Client) (any, error) { return c.Release(ctx, "x") },
		"no activation": func(c *admin.Client) (any, error) {
			return nil, c.ActivateRelease(ctx, admin.ActivateRelease{ID: "rel_00000000000000000000000000"})
		},
		"another chain": func(c *admin.Client) (any, error) {
			return c.VerifyAudit(ctx, admin.VerifyAudit{Head: "1:" + strings.Repeat("00", 32)})
		},
		"revoke unknown": func(c *admin.Client) (any, error) { return c.RevokePlatformKey(ctx, "x") },
	} {
		mine, myErr := ask(here)
		theirs, theirErr := ask(there)
		if a, b := document(t, mine), document(t, theirs); a != b {
			t.Errorf("%s:\nin process: %s\nnetwork:    %s", name, a, b)
		}
		if a, b := fault.Of(myErr), fault.Of(theirErr); (a == nil) != (b == nil) || a != nil && (a.Code != b.Code || a.Detail != b.Detail || a.Hint != b.Hint) {
			t.Errorf("%s:\nin process: %#v\nnetwork:    %#v", name, a, b)
		}
	}
	var mine, theirs bytes.Buffer
	if err := errors.Join(here.Backup(ctx, admin.BackupRequest{}, &mine), there.Backup(ctx, admin.BackupRequest{}, &theirs)); err != nil || theirs.Len() < 100 || mine.Len()-theirs.Len() > 4096 {
		t.Errorf("backups of %d and %d bytes: %v", mine.Len(), theirs.Len(), err)
	}
	if err := n.client(keystore.RoleDeploy).Backup(ctx, admin.BackupRequest{}, io.Discard); fault.CodeOf(err) != fault.InsufficientRole {
		t.Errorf("a backup with the role deploy: %v", err)
	}
}

func TestARefusalHasTheStatusOfItsCodeAndItsHint(t *testing.T) {
	n := serveRemote(t, server.RemoteOptions{})
	token := bearer(n.keys[keystore.RoleAdmin].Token)
	for _, c := range []struct {
		operation, args, code string
		status                int
		hint                  string
	}{
		{"apiKeys.tidy", `{}`, "not_found", 404, "runner version and runner status show the versions of both"},
		{"apiKeys.get", `{"id":"key_01hzzzzzzzzzzzzzzzzzzzzzzz"}`, "not_found", 404, "runner api-keys list --all shows every key"},
		{"apiKeys.get", `[]`, "invalid", 400, ""},
	} {
		got := n.do(n.web(), "POST", "/v1/"+c.operation, strings.NewReader(c.args), token)
		var document struct{ Hint string }
		if err := json.Unmarshal([]byte(got.body), &document); err != nil {
			t.Fatal(err)
		}
		if got.status != c.status || got.code != c.code || document.Hint != c.hint {
			t.Errorf("%s %s: %d %s", c.operation, c.args, got.status, got.body)
		}
	}
}

func TestTheAuditNamesThePlatformKeyAndItsAddress(t *testing.T) {
	n := serveRemote(t, server.RemoteOptions{})
	ctx, there := t.Context(), n.client(keystore.RoleAdmin)
	made, err := there.CreatePlatformKey(ctx, admin.CreatePlatformKey{Name: "ci", Role: keystore.RoleDeploy})
	if err != nil {
		t.Fatal(err)
	}
	entries, err := there.ListAudit(ctx, admin.ListAudit{Limit: 1})
	if err != nil || len(entries) != 1 {
		t.Fatal(entries, err)
	}
	e := entries[0]
	got := []string{e.Actor.Kind, e.Actor.ID, e.Action, e.Target, e.Address}
	if diff := cmp.Diff([]string{"system", n.keys[keystore.RoleAdmin].ID, "platformKeys.create", made.ID, "127.0.0.1"}, got); diff != "" || e.RequestID == "" {
		t.Error(diff)
	}
	if text := n.log.String(); !strings.Contains(text, `msg="remote operation" operation=platformKeys.create result=ok keyId=`+e.Actor.ID+" address=127.0.0.1 requestId="+e.RequestID) {
		t.Error(text)
	}
	if _, err := n.client(keystore.RoleRead).ListKeys(ctx, admin.ListKeys{}); fault.CodeOf(err) != fault.InsufficientRole {
		t.Error(err)
	}
	if text := n.log.String(); !strings.Contains(text, `msg="remote operation" operation=apiKeys.list result=insufficient_role keyId=`+n.keys[keystore.RoleRead].ID) {
		t.Error(text)
	}
	// A release that does not fit the node is refused.
	const problem = "the schema is invalid: 1 error"
	n.local.Activate = func(context.Context, release.Activation) error { return &console.Problems{What: problem} }
	if err := there.ActivateRelease(ctx, admin.ActivateRelease{ID: "rel_" + strings.Repeat("a", 26)}); err == nil || !strings.Contains(err.Error(), problem) {
		t.Error(err)
	}
	if text := n.log.String(); !strings.Contains(text, `msg="remote operation" operation=releases.activate result=not_activated keyId=`+e.Actor.ID) {
		t.Error(text)
	}
	// Its use is recorded.
	keys, err := there.ListPlatformKeys(ctx, admin.ListPlatformKeys{})
	if err != nil || len(keys) != 4 {
		t.Fatal(keys, err)
	}
	for _, key := range keys {
		if used := !key.LastUsedAt.IsZero(); used != (key.Role != keystore.RoleDeploy) {
			t.Errorf("%+v", key)
		}
	}
}

func TestARevokedPlatformKeyRunsNothingOnceTheRevocationHasReturned(t *testing.T) {
	n := serveRemote(t, server.RemoteOptions{})
	there := n.client(keystore.RoleRead)
	var revoked atomic.Bool
	var served, late atomic.Int64
	var running sync.WaitGroup
	warm := make(chan struct{}, 4)
	for range cap(warm) {
		running.Go(func() {
			for first := true; ; first = false {
				after := revoked.Load() // before the request starts
				_, err := there.Status(t.Context())
				if err == nil {
					served.Add(1)
					if after {
						late.Add(1)
					}
				}
				if first {
					warm <- struct{}{}
				}
				if after {
					return
				}
			}
		})
	}
	for range cap(warm) {
		<-warm
	}
	if _, err := n.local.Client().RevokePlatformKey(t.Context(), n.keys[keystore.RoleRead].ID); err != nil {
		t.Error(err)
	}
	revoked.Store(true)
	running.Wait()
	if served.Load() == 0 || late.Load() > 0 {
		t.Errorf("%d operations, %d of them after the revocation", served.Load(), late.Load())
	}
}

// A client of a node that does not answer ends, and so does the operation.
func TestAClientWaitsForALimitedTime(t *testing.T) {
	n := serveRemote(t, server.RemoteOptions{})
	serve(t, n.dir, n.local)
	local, err := admin.Dial(t.Context(), n.dir)
	if err != nil {
		t.Fatal(err)
	}
	for name, client := range map[string]*admin.Client{"network": n.client(keystore.RoleAdmin), "socket": local} {
		ended := make(chan struct{}, 2)
		n.local.Reload = func(ctx context.Context) (*admin.Reloaded, error) {
			<-ctx.Done()
			ended <- struct{}{}
			return nil, ctx.Err()
		}
		client.SetAnswerTimeout(time.Second) // enough for the server to begin
		_, err := client.Reload(t.Context())
		if fault.CodeOf(err) != fault.Unavailable || !strings.Contains(err.Error(), "the server has not answered for 1s") || !strings.Contains(fault.Of(err).Hint, "--timeout") {
			t.Errorf("%s: %v", name, err)
		}
		<-ended
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		client.SetAnswerTimeout(time.Minute)
		if _, err := client.Reload(ctx); !errors.Is(err, context.Canceled) {
			t.Errorf("%s, interrupted: %v", name, err)
		}
	}
}

func TestRefusedPlatformKeysAreLimitedByAddress(t *testing.T) {
	n := serveRemote(t, server.RemoteOptions{})
	web := n.web()
	for i := range 25 {
		got := n.do(web, "POST", "/v1/status", strings.NewReader("{}"), bearer(keystore.NewToken("rnp")))
		switch {
		case i < 20 && (got.status != 401 || got.code != "invalid_token"):
			t.Errorf("%d: %d %s", i, got.status, got.body)
		case i >= 20 && (got.status != 429 || got.code != "rate_limited" || got.header.Get("Retry-After") == ""):
			t.Errorf("%d: %d %s", i, got.status, got.body)
		}
	}
	if got := n.do(web, "POST", "/v1/status", strings.NewReader("{}"), bearer(n.keys[keystore.RoleRead].Token)); got.status != 200 {
		t.Errorf("a valid key from there: %d %s", got.status, got.body)
	}
	if lines := strings.Count(n.log.String(), "credential refused"); lines != 7 { // 5, then at 8 and 16
		t.Errorf("%d log lines", lines)
	}
}

// An address may have 64 of the 256 connections. Whether they are used does not matter.
func TestOneAddressCannotTakeAllConnections(t *testing.T) {
	n := serveRemote(t, server.RemoteOptions{})
	address := strings.TrimPrefix(n.url, "https://")
	dialer := &net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 2, 0, 1)}}
	dial := func() net.Conn {
		t.Helper()
		conn, err := dialer.DialContext(t.Context(), "tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = conn.Close() })
		_ = conn.SetDeadline(time.Now().Add(time.Minute))
		return conn
	}
	var open []net.Conn
	for range 64 {
		open = append(open, dial())
	}
	for range 3 {
		if n, err := dial().Read(make([]byte, 1)); n > 0 || err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("one more connection: %d bytes, %v", n, err)
		}
	}
	same := &http.Client{Transport: &http.Transport{DialContext: dialer.DialContext, DisableKeepAlives: true, TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}}
	ask := func(web *http.Client) answer {
		t.Helper()
		return n.do(web, "POST", "/v1/status", strings.NewReader("{}"), bearer(n.keys[keystore.RoleRead].Token))
	}
	if got := ask(n.web()); got.status != 200 {
		t.Errorf("from another address: %d %s", got.status, got.body)
	}
	// The server closes a connection that does not begin with TLS, and counts it no longer.
	if _, err := open[10].Write([]byte("GET / HTTP/1.0\r\n\r\n")); err != nil {
		t.Fatal(err)
	}
	if text, err := io.ReadAll(open[10]); err != nil || !strings.Contains(string(text), "400") {
		t.Errorf("without TLS: %s, %v", text, err)
	}
	if got := ask(same); got.status != 200 {
		t.Errorf("after one was closed: %d %s", got.status, got.body)
	}
	const line = "connection closed: its address has too many open"
	if text := n.log.String(); !strings.Contains(text, line) || !strings.Contains(text, "address=127.2.0.1") {
		t.Error(text)
	}
}

func TestUploadsAreCheckedAndLimited(t *testing.T) {
	n := serveRemote(t, server.RemoteOptions{Options: server.Options{UploadPerHour: 1000}})
	ctx, there := t.Context(), n.client(keystore.RoleDeploy)
	file := func(contents string) release.File {
		return release.File{Name: "app.schema", Size: int64(len(contents)), Digest: sha256.Sum256([]byte(contents))}
	}
	put := func(contents string) error { return there.PutFile(ctx, file(contents), strings.NewReader(contents)) }
	first := strings.Repeat("a", 600)
	if err := put(first); err != nil {
		t.Fatal(err)
	}
	manifest := release.Manifest{App: "orders", Files: []release.File{file(first)}}
	if missing, err := there.MissingFiles(ctx, manifest); err != nil || len(missing) != 0 {
		t.Errorf("%v, %v", missing, err)
	}
	rel, err := there.AddRelease(ctx, admin.AddRelease{Manifest: manifest})
	if err != nil || rel.By.ID != n.keys[keystore.RoleDeploy].ID {
		t.Errorf("%+v, %v", rel, err)
	}
	err = put(strings.Repeat("b", 600))
	if fault.CodeOf(err) != fault.RateLimited || !regexp.MustCompile(`\[admin\] upload_per_hour\): .* Retry-After \([0-9]+ s\)$`).MatchString(err.Error()) {
		t.Errorf("over the limit: %v", err)
	}
	auth := bearer(n.keys[keystore.RoleDeploy].Token)
	if got := n.do(n.web(), "PUT", blobPath(strings.Repeat("b", 600)), strings.NewReader(strings.Repeat("b", 600)), auth); got.status != 429 || got.header.Get("Retry-After") == "" {
		t.Errorf("%d %v %s", got.status, got.header, got.body)
	}
	// What is not stored does not count.
	for range 5 {
		if got := n.do(n.web(), "PUT", blobPath("x"), strings.NewReader(strings.Repeat("y", 300)), auth); got.status != 400 || got.code != "invalid" {
			t.Errorf("another digest: %d %s", got.status, got.body)
		}
	}
	if err := put(strings.Repeat("c", 300)); err != nil {
		t.Error(err)
	}
	if got := n.do(n.web(), "POST", "/v1/releases.add", io.LimitReader(zeros{}, 2<<20), auth); got.status != 413 || got.code != "too_large" {
		t.Errorf("large arguments: %d %s", got.status, got.body)
	}
	for _, row := range []struct {
		path   string
		body   io.Reader
		status int
		code   string
	}{
		{"/v1/blobs/" + strings.Repeat("0", 63), strings.NewReader("x"), 400, "invalid"},
		{"/v1/blobs/../status", strings.NewReader("x"), 400, "invalid"},
		{"/v1/blobs/", strings.NewReader("x"), 400, "invalid"},
		{blobPath("x"), io.MultiReader(strings.NewReader("x")), 400, "invalid"}, // without a length
	} {
		if got := n.do(n.web(), "PUT", row.path, row.body, auth); got.status != row.status || got.code != row.code {
			t.Errorf("%s: %d %s", row.path, got.status, got.body)
		}
	}
	// A file that is too large is refused before it is sent.
	large := release.File{Name: "x", Size: release.MaxFileBytes + 1}
	if err := there.PutFile(ctx, large, io.LimitReader(zeros{}, large.Size)); fault.CodeOf(err) != fault.TooLarge && fault.CodeOf(err) != fault.Unavailable {
		t.Errorf("a file that is too large: %v", err)
	}
	if got := n.do(n.web(), "PUT", blobPath("x"), &sized{zeros{}, release.MaxFileBytes + 1}, auth, "Expect: 100-continue"); got.status != 413 || got.code != "too_large" {
		t.Errorf("a file that is too large: %d %s", got.status, got.body)
	}
}

// A batch is stored as a whole, and small files count as 4 KiB each.
func TestBatchesAreCheckedAndLimited(t *testing.T) {
	n := serveRemote(t, server.RemoteOptions{Options: server.Options{UploadPerHour: 100 << 10}})
	ctx, there := t.Context(), n.client(keystore.RoleDeploy)
	batchOf := func(texts ...string) (batch admin.Batch) {
		for _, text := range texts {
			batch.Add([]byte(text))
		}
		return batch
	}
	many := make([]string, 20)
	var asked []release.File
	for i := range many {
		many[i] = fmt.Sprint("content ", i)
		asked = append(asked, release.File{Name: fmt.Sprint(i), Size: int64(len(many[i])), Digest: sha256.Sum256([]byte(many[i]))})
	}
	if missing, err := there.MissingBlobs(ctx, asked); err != nil || len(missing) != 20 {
		t.Errorf("%d are missing, %v", len(missing), err)
	}
	if err := n.client(keystore.RoleRead).PutBatch(ctx, batchOf("x")); fault.CodeOf(err) != fault.InsufficientRole {
		t.Errorf("with the role read: %v", err)
	}
	if err := there.PutBatch(ctx, batchOf(many...)); err != nil {
		t.Fatal(err)
	}
	if missing, err := there.MissingBlobs(ctx, asked); err != nil || len(missing) != 0 {
		t.Errorf("%d are missing, %v", len(missing), err)
	}
	auth := bearer(n.keys[keystore.RoleDeploy].Token)
	put := func(body io.Reader) answer {
		return n.do(n.web(), "PUT", "/v1/blobs/batch", body, auth, "Expect: 100-continue")
	}
	head := make([]byte, 40)
	for name, body := range map[string]io.Reader{
		"cut": bytes.NewReader(head[:39]), "another digest": bytes.NewReader(head), "without a length": io.MultiReader(strings.NewReader("x")),
		"a large size": bytes.NewReader(bytes.Repeat([]byte{0xff}, 40)),
	} {
		if got := put(body); got.status != 400 || got.code != "invalid" {
			t.Errorf("%s: %d %s", name, got.status, got.body)
		}
	}
	// 20 files count as 80 KiB: four more fit, and then none.
	if err := there.PutBatch(ctx, batchOf("1", "2", "3", "4")); err != nil {
		t.Error(err)
	}
	if err := there.PutBatch(ctx, batchOf("5", "6")); fault.CodeOf(err) != fault.RateLimited {
		t.Errorf("over the limit: %v", err)
	}
	if got := put(&sized{zeros{}, admin.MaxBatchBytes + 1}); got.status != 429 && got.status != 413 {
		t.Errorf("a batch that is too large: %d %s", got.status, got.body)
	}
	if text := n.log.String(); !strings.Contains(text, "operation=blobs.putBatch result=ok") {
		t.Error(text)
	}
}

// zeros is endless.
type zeros struct{}

func (zeros) Read(b []byte) (int, error) { clear(b); return len(b), nil }

func TestOperationsOfOneRoleDoNotDelayThoseOfAnother(t *testing.T) {
	n := serveRemote(t, server.RemoteOptions{})
	read, deploy := bearer(n.keys[keystore.RoleRead].Token), bearer(n.keys[keystore.RoleDeploy].Token)
	var running sync.WaitGroup
	var ends []*io.PipeWriter
	for range 16 {
		r, w := io.Pipe()
		ends = append(ends, w)
		running.Go(func() {
			if got := n.do(n.web(), "POST", "/v1/status", &sized{r, 2}, read, "Expect: 100-continue"); got.status != 200 {
				t.Errorf("%d %s", got.status, got.body)
			}
		})
		// The body is read once the server has asked for it: the operation has begun.
		if _, err := io.WriteString(w, "{"); err != nil {
			t.Fatal(err)
		}
	}
	if got := n.do(n.web(), "POST", "/v1/status", strings.NewReader("{}"), deploy); got.status != 200 {
		t.Errorf("with another role: %d %s", got.status, got.body)
	}
	for _, w := range ends {
		if _, err := io.WriteString(w, "}"); err != nil {
			t.Error(err)
		}
		_ = w.Close()
	}
	running.Wait()
}

func TestFourUploadsRunAtOnce(t *testing.T) {
	t.Parallel()
	n := serveRemote(t, server.RemoteOptions{})
	auth := bearer(n.keys[keystore.RoleDeploy].Token)
	var running sync.WaitGroup
	var ends []*io.PipeWriter
	for i := range 4 {
		r, w := io.Pipe()
		ends = append(ends, w)
		contents := fmt.Sprintf("file %d", i)
		running.Go(func() {
			if got := n.do(n.web(), "PUT", blobPath(contents), &sized{r, int64(len(contents))}, auth, "Expect: 100-continue"); got.status != 200 {
				t.Errorf("%d %s", got.status, got.body)
			}
		})
		// The body is read once the server has asked for it: the upload has begun.
		if _, err := io.WriteString(w, contents[:1]); err != nil {
			t.Fatal(err)
		}
	}
	began := time.Now()
	got := n.do(n.web(), "PUT", blobPath("fifth"), strings.NewReader("fifth"), auth)
	if got.status != 503 || got.code != "overloaded" || got.header.Get("Retry-After") != "10" || time.Since(began) < 9*time.Second {
		t.Errorf("after %v: %d %v %s", time.Since(began), got.status, got.header, got.body)
	}
	if got := n.do(n.web(), "POST", "/v1/status", strings.NewReader("{}"), auth); got.status != 200 {
		t.Errorf("another operation meanwhile: %d %s", got.status, got.body)
	}
	for i, w := range ends {
		if _, err := io.WriteString(w, fmt.Sprintf("file %d", i)[1:]); err != nil {
			t.Error(err)
		}
		_ = w.Close()
	}
	running.Wait()
	if got := n.do(n.web(), "PUT", blobPath("fifth"), strings.NewReader("fifth"), auth); got.status != 200 {
		t.Errorf("after the others: %d %s", got.status, got.body)
	}
}

// sized is a body of a known length.
type sized struct {
	io.Reader
	n int64
}

func TestAPanicEndsOnlyItsOperation(t *testing.T) {
	n := serveRemote(t, server.RemoteOptions{})
	n.local.Model = func() (*entity.Model, error) { panic("no model") }
	there := n.client(keystore.RoleAdmin)
	if _, err := there.ListRows(t.Context(), admin.ListRows{Entity: "Order"}); fault.CodeOf(err) != fault.Unavailable {
		t.Errorf("%v", err)
	}
	if text := n.log.String(); !strings.Contains(text, `msg="operation panicked" cause="no model"`) {
		t.Error(text)
	}
	if _, err := there.Status(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestTheServerSpeaksOnlyTLS13AndHTTP1(t *testing.T) {
	n := serveRemote(t, server.RemoteOptions{})
	address := strings.TrimPrefix(n.url, "https://")
	if conn, err := tls.Dial("tcp", address, &tls.Config{InsecureSkipVerify: true, MaxVersion: tls.VersionTLS12}); err == nil {
		_ = conn.Close()
		t.Error("TLS 1.2 was accepted")
	}
	conn, err := tls.Dial("tcp", address, &tls.Config{InsecureSkipVerify: true, NextProtos: []string{"h2", "http/1.1"}})
	if err != nil {
		t.Fatal(err)
	}
	if state := conn.ConnectionState(); state.Version != tls.VersionTLS13 || state.NegotiatedProtocol != "http/1.1" {
		t.Errorf("%+v", state)
	}
	_ = conn.Close()
	answer, err := http.Post("http://"+address+"/v1/status", "application/json", strings.NewReader("{}"))
	if err == nil {
		text, _ := io.ReadAll(answer.Body)
		_ = answer.Body.Close()
		if answer.StatusCode != 400 || !strings.Contains(string(text), "HTTPS") {
			t.Errorf("without TLS: %d %s", answer.StatusCode, text)
		}
	}
	request, err := http.NewRequestWithContext(t.Context(), "POST", n.url+"/v1/status", strings.NewReader("{}"))
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("X-Large", strings.Repeat("x", 32<<10))
	got, err := n.web().Do(request)
	if err != nil {
		t.Fatal(err)
	}
	if _ = got.Body.Close(); got.StatusCode != 431 {
		t.Errorf("large headers: %d", got.StatusCode)
	}
}

func TestAClientVerifiesTheCertificate(t *testing.T) {
	n := serveRemote(t, server.RemoteOptions{})
	ctx, token := t.Context(), n.keys[keystore.RoleRead].Token
	var colons []string
	for i := 0; i < len(n.fingerprint); i += 2 {
		colons = append(colons, strings.ToUpper(n.fingerprint[i:i+2]))
	}
	for _, good := range []string{n.fingerprint, strings.ToUpper(n.fingerprint), strings.Join(colons, ":")} {
		client, err := admin.DialURL(ctx, n.url+"/", []string{good}, token)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := client.Status(ctx); err != nil {
			t.Error(err)
		}
	}
	other := strings.Repeat("0", 64)
	dead, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	_ = dead.Close()
	for _, row := range []struct {
		url, fingerprint string
		code             fault.Code
		text             string
	}{
		{n.url, other, fault.Invalid, "has the fingerprint " + n.fingerprint + ", and not " + other},
		{n.url, "", fault.Invalid, "If runner status on the node shows the fingerprint " + n.fingerprint},
		{n.url, "00", fault.Invalid, "must be 64 hexadecimal digits"},
		{n.url, n.fingerprint + "00", fault.Invalid, "must be 64 hexadecimal digits"},
		{strings.Replace(n.url, "https", "http", 1), n.fingerprint, fault.Invalid, "is not the URL of a node"},
		{n.url + "/v1", n.fingerprint, fault.Invalid, "is not the URL of a node"},
		{"https://a:b@127.0.0.1", n.fingerprint, fault.Invalid, "is not the URL of a node"},
		{"127.0.0.1:1", n.fingerprint, fault.Invalid, "is not the URL of a node"},
		{"https://" + dead.Addr().String(), n.fingerprint, fault.Unavailable, "connect to https://" + dead.Addr().String()},
	} {
		var fingerprints []string
		if row.fingerprint != "" {
			fingerprints = []string{row.fingerprint}
		}
		_, err := admin.DialURL(ctx, row.url, fingerprints, token)
		if fault.CodeOf(err) != row.code || !strings.Contains(err.Error(), row.text) {
			t.Errorf("%s with %s: %v", row.url, row.fingerprint, err)
		}
	}
	wrong, err := admin.DialURL(ctx, n.url, []string{n.fingerprint}, keystore.NewToken("rnp"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := wrong.Status(ctx); fault.CodeOf(err) != fault.InvalidToken {
		t.Errorf("with another token: %v", err)
	}
}

func TestTheOwnCertificateIsKept(t *testing.T) {
	dir := t.TempDir()
	first, err := server.OwnCertificate(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"admin-cert.pem", "admin-key.pem"} {
		if info, err := os.Stat(filepath.Join(dir, name)); err != nil || info.Mode() != 0o600 {
			t.Errorf("%s: %v, %v", name, info, err)
		}
	}
	if again, err := server.OwnCertificate(dir); err != nil || !bytes.Equal(again.Certificate[0], first.Certificate[0]) {
		t.Errorf("another certificate, or %v", err)
	}
	// A start that ended between the two files has left a key that no client knows.
	if err := os.Remove(filepath.Join(dir, "admin-cert.pem")); err != nil {
		t.Fatal(err)
	}
	second, err := server.OwnCertificate(dir)
	if err != nil || bytes.Equal(second.Certificate[0], first.Certificate[0]) {
		t.Errorf("the same certificate, or %v", err)
	}
	// Without its key a certificate is not replaced: clients know its fingerprint.
	if err := os.Remove(filepath.Join(dir, "admin-key.pem")); err != nil {
		t.Fatal(err)
	}
	if _, err := server.OwnCertificate(dir); fault.CodeOf(err) != fault.Invalid || !strings.Contains(err.Error(), "remove both") {
		t.Error(err)
	}
}

// Contents of rows are stored if they are what their sender says, and read by admins alone.
func TestContentsOfRowsAreCheckedAndReadByAdmins(t *testing.T) {
	n := serveRemote(t, server.RemoteOptions{})
	ctx := t.Context()
	of := func(text string) admin.Blob {
		return admin.Blob{Digest: sha256.Sum256([]byte(text)), Size: int64(len(text))}
	}
	for name, node := range map[string]*admin.Client{"network": n.client(keystore.RoleAdmin), "process": n.local.Client()} {
		text := strings.Repeat("contents of "+name, 100_000)
		if err := node.PutContents(ctx, of(text), "a file", strings.NewReader(text)); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		var got bytes.Buffer
		if err := node.ReadContents(ctx, of(text).Digest, &got); err != nil || got.String() != text {
			t.Errorf("%s: %d bytes, %v", name, got.Len(), err)
		}
		if err := node.ReadContents(ctx, of("unknown").Digest, &got); fault.CodeOf(err) != fault.NotFound {
			t.Errorf("%s: unknown contents: %v", name, err)
		}
		if err := node.PutContents(ctx, of("right"), "a file", strings.NewReader("wrong")); fault.CodeOf(err) != fault.Invalid {
			t.Errorf("%s: other contents: %v", name, err)
		}
		if err := node.ReadContents(ctx, of("wrong").Digest, &got); fault.CodeOf(err) != fault.NotFound {
			t.Errorf("%s: refused contents are there: %v", name, err)
		}
	}
	for _, role := range []keystore.Role{keystore.RoleRead, keystore.RoleDeploy} {
		node, text := n.client(role), "by "+string(role)
		if err := node.PutContents(ctx, of(text), "a file", strings.NewReader(text)); fault.CodeOf(err) != fault.InsufficientRole {
			t.Errorf("stored with the role %s: %v", role, err)
		}
		if err := node.ReadContents(ctx, of("x").Digest, io.Discard); fault.CodeOf(err) != fault.InsufficientRole {
			t.Errorf("read with the role %s: %v", role, err)
		}
	}
	auth := bearer(n.keys[keystore.RoleAdmin].Token)
	for path, body := range map[string]io.Reader{"/v1/files/x": strings.NewReader("x"), "/v1/files/" + strings.Repeat("0", 64): io.MultiReader(strings.NewReader("x"))} {
		if got := n.do(n.web(), "PUT", path, body, auth); got.status != 400 || got.code != "invalid" {
			t.Errorf("%s: %d %s", path, got.status, got.body)
		}
	}
}
