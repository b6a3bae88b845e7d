package operations_test

import (
	"crypto/sha256"
	"crypto/tls"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"runner.example/tests/harness"
)

// adminListen is a runner.toml with the admin listener.
const adminListen = "[admin]\nlisten = \"127.0.0.1:0\"\n"

// remoteStatus is what runner status prints.
type remoteStatus struct{ URL, Admin, AdminFingerprint, Metrics string }

func statusOf(t testing.TB, a *harness.App, args ...string) (s remoteStatus) {
	t.Helper()
	if err := json.Unmarshal([]byte(a.Must(append([]string{"status", "--json"}, args...)...)), &s); err != nil {
		t.Fatal(err)
	}
	return s
}

// writeKey creates a platform key and returns its id and the file of its token.
func writeKey(t *testing.T, a *harness.App, role string) (id, file string) {
	t.Helper()
	key := newPlatformKey(t, a, role)
	file = filepath.Join(t.TempDir(), role+".key")
	if err := os.WriteFile(file, []byte(key.Token+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return key.ID, file
}

func TestANodeIsOperatedOverTheNetwork(t *testing.T) {
	a := harness.NewApp(t, harness.HostileSchema, adminListen, "echo", "hostile")
	s := a.Serve()
	here := statusOf(t, a)
	if !strings.HasPrefix(here.Admin, "https://127.0.0.1:") || !regexp.MustCompile(`^[0-9a-f]{64}$`).MatchString(here.AdminFingerprint) {
		t.Fatalf("%+v", here)
	}
	if text := a.Must("status"); !strings.Contains(text, here.Admin) || !strings.Contains(text, here.AdminFingerprint) {
		t.Error(text)
	}
	for _, name := range []string{"data/admin-cert.pem", "data/admin-key.pem"} {
		if info, err := os.Stat(a.Path(name)); err != nil || info.Mode() != 0o600 {
			t.Errorf("%s: %v, %v", name, info, err)
		}
	}
	a.Write("second.schema", secondRoute)
	a.Must("reload")
	list := releasesOf(t, a)
	_, read := writeKey(t, a, "read")
	deployID, deploy := writeKey(t, a, "deploy")

	// Another machine has only the URL, the fingerprint and a key.
	away := &harness.App{T: t, Dir: t.TempDir()}
	with := func(key string) []string {
		return []string{"--to", here.Admin, "--fingerprint", here.AdminFingerprint, "--key-file", key}
	}
	if there := statusOf(t, away, with(read)...); there != here {
		t.Errorf("%+v, want %+v", there, here)
	}
	if out := away.Must(append([]string{"releases"}, with(read)...)...); !strings.Contains(out, list.Active.ID) || !strings.Contains(out, list.Active.Previous) {
		t.Error(out)
	}
	if got := away.Run(append([]string{"rollback"}, with(read)...)...); got.Status != 1 || !strings.Contains(got.Stderr, "needs a platform key with the role deploy, and this one has read") {
		t.Errorf("with the role read: %d %s", got.Status, got.Stderr)
	}
	s.Want(200, nil, "GET", "/second", "")
	away.Must(append([]string{"rollback"}, with(deploy)...)...)
	s.Want(404, nil, "GET", "/second", "")
	if r := lastRecord(t, a); r["action"] != "releases.activate" || r["address"] != "127.0.0.1" || r["actor"].(map[string]any)["id"] != deployID {
		t.Errorf("%v", r)
	}
	if got := away.Run(append([]string{"rollback", "rel_00000000000000000000000000"}, with(deploy)...)...); got.Status != 4 {
		t.Errorf("an unknown release: %d %s", got.Status, got.Stderr)
	}

	// A key with the role admin manages keys from there too.
	_, all := writeKey(t, a, "admin")
	if keys := platformKeysOf(t, away, with(all)...); len(keys) != 3 {
		t.Errorf("%+v", keys)
	}
	if made := newPlatformKey(t, away, "read", with(all)...); !strings.HasPrefix(made.Token, "rnp_") {
		t.Errorf("%+v", made)
	}
	away.Must(append([]string{"keys", "revoke", deployID}, with(all)...)...)
	token := strings.TrimSpace(harness.MustRead(t, deploy))
	if got := away.Run(append([]string{"rollback"}, with(deploy)...)...); got.Status != 1 || !strings.Contains(got.Stderr, "the credential is not valid") || strings.Contains(got.Stderr, token[4:]) {
		t.Errorf("with a revoked key: %d %s", got.Status, got.Stderr)
	}
	if text := s.Stderr.String(); !strings.Contains(text, "credential refused") || !strings.Contains(text, deployID) || strings.Contains(text, token[4:20]) {
		t.Error(text)
	}
	s.Stop()
	if got := away.Run(append([]string{"releases"}, with(read)...)...); got.Status != 6 {
		t.Errorf("without a server: %d %s", got.Status, got.Stderr)
	}
	a.Serve()
	again := statusOf(t, a)
	if again.AdminFingerprint != here.AdminFingerprint {
		t.Error("a restart has changed the certificate")
	}

	empty := filepath.Join(t.TempDir(), "empty.key")
	if err := os.WriteFile(empty, []byte("nothing\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, row := range []struct {
		status int
		text   string
		args   []string
	}{
		{2, "--key-file is missing", []string{"--to", again.Admin}},
		{2, "are for the node that --to names", []string{"--key-file", read}},
		{2, "omit these", append(with(read), "--data", "x")},
		{3, "does not contain a token", []string{"--to", again.Admin, "--key-file", empty}},
		{3, "no such file", []string{"--to", again.Admin, "--key-file", empty + "x"}},
		{3, "and not 00", []string{"--to", again.Admin, "--key-file", read, "--fingerprint", strings.Repeat("00", 32)}},
		{3, "name it with --fingerprint", []string{"--to", again.Admin, "--key-file", read}},
		{3, "is not the URL of a node", []string{"--to", "edge", "--key-file", read}},
	} {
		if got := away.Run(append([]string{"releases"}, row.args...)...); got.Status != row.status || !strings.Contains(got.Stderr, row.text) {
			t.Errorf("%s: %d %s", row.args, got.Status, got.Stderr)
		}
	}
}

func lastRecord(t *testing.T, a *harness.App) map[string]any {
	t.Helper()
	all := a.Audit(t)
	if len(all) == 0 {
		t.Fatal("there are no records")
	}
	return all[len(all)-1]
}

func TestTheAdminListenerUsesTheCertificateOfTheSettings(t *testing.T) {
	a := harness.NewApp(t, harness.HostileSchema, adminListen+"tls_cert = \"cert.pem\"\ntls_key = \"key.pem\"\n", "echo", "hostile")
	writePair(t, a, 1)
	s := a.Serve()
	first := statusOf(t, a)
	if _, err := os.Stat(a.Path("data/admin-cert.pem")); err == nil {
		t.Error("an own certificate was created")
	}
	_, read := writeKey(t, a, "read")
	// Machines that trust its issuer need no fingerprint.
	away := &harness.App{T: t, Dir: t.TempDir(), Env: []string{"SSL_CERT_FILE=" + a.Path("cert.pem")}}
	away.Must("releases", "--to", first.Admin, "--key-file", read)
	writePair(t, a, 2)
	a.Must("reload")
	if second := statusOf(t, a); second.AdminFingerprint == first.AdminFingerprint {
		t.Error("a reload has not read the certificate")
	}
	away.Must("releases", "--to", first.Admin, "--key-file", read)
	s.Stop()
	for want, toml := range map[string]string{
		"[admin] tls_cert is set, and tls_key is not: set both": adminListen + "tls_cert = \"cert.pem\"\n",
		"[admin] tls_cert \"none.pem\" with tls_key":            adminListen + "tls_cert = \"none.pem\"\ntls_key = \"key.pem\"\n",
		"is not an address to listen on":                        "[admin]\nlisten = \"9443\"\n",
	} {
		a.Write("runner.toml", toml)
		if got := a.Run("serve"); got.Status != 3 || !strings.Contains(got.Stderr, want) {
			t.Errorf("%d %s, want %s", got.Status, got.Stderr, want)
		}
	}
}

func TestANodeGetsItsFirstReleaseOverTheNetwork(t *testing.T) {
	a := harness.NewApp(t, harness.HostileSchema, "", "echo", "hostile")
	edge := &harness.App{T: t, Dir: t.TempDir(), Env: []string{"RUNNER_ADMIN_LISTEN=127.0.0.1:0"}}
	data := filepath.Join(t.TempDir(), "data")
	key := newPlatformKey(t, edge, "deploy", "--data", data)
	s := edge.Serve("--data", data)
	s.Want(503, nil, "GET", "/hello", "")
	there := statusOf(t, edge, "--data", data)

	// The requests are those that docs/admin-openapi.json describes.
	client := http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{
		InsecureSkipVerify: true,
		VerifyConnection: func(state tls.ConnectionState) error {
			if sum := sha256.Sum256(state.PeerCertificates[0].Raw); hex.EncodeToString(sum[:]) != there.AdminFingerprint {
				return errors.New("another certificate")
			}
			return nil
		},
	}}}
	defer client.CloseIdleConnections()
	send := func(method, path, body string, want int) (answer map[string]any) {
		t.Helper()
		request, err := http.NewRequestWithContext(t.Context(), method, there.Admin+path, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		request.Header.Set("Authorization", "Bearer "+key.Token)
		got, err := client.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		defer got.Body.Close()
		text, err := io.ReadAll(got.Body)
		if err == nil {
			err = json.Unmarshal(text, &answer)
		}
		if err != nil || got.StatusCode != want {
			t.Fatalf("%s %s: %d %s, %v", method, path, got.StatusCode, text, err)
		}
		return answer
	}
	type file struct {
		Name   string `json:"name"`
		Size   int    `json:"size"`
		SHA256 string `json:"sha256"`
	}
	manifest := struct {
		App   string `json:"app"`
		Files []file `json:"files"`
	}{App: "edge"}
	for _, name := range []string{"app.schema", "build/echo.wasm", "build/hostile.wasm"} {
		text := harness.MustRead(t, a.Path(name))
		sum := sha256.Sum256([]byte(text))
		manifest.Files = append(manifest.Files, file{name, len(text), hex.EncodeToString(sum[:])})
	}
	body, err := json.Marshal(manifest)
	if err != nil {
		t.Fatal(err)
	}
	if answer := send("POST", "/v1/releases.add", string(body), 409); answer["code"] != "conflict" {
		t.Errorf("a release without its files: %v", answer)
	}
	if missing := send("POST", "/v1/releases.missing", string(body), 200)["files"].([]any); len(missing) != 3 {
		t.Errorf("missing: %v", missing)
	}
	for _, f := range manifest.Files {
		send("PUT", "/v1/blobs/"+f.SHA256, harness.MustRead(t, a.Path(f.Name)), 200)
	}
	added := send("POST", "/v1/releases.add", string(body), 200)
	send("POST", "/v1/releases.activate", `{"id":"`+added["id"].(string)+`","expected":""}`, 200)
	s.Want(200, nil, "GET", "/hello", "")
	send("POST", "/v1/releases.activate", `{"id":"`+added["id"].(string)+`","expected":""}`, 409)
	send("POST", "/v1/apiKeys.list", `{}`, 403)
	s.Kill()
	edge.Serve("--data", data).Want(200, nil, "GET", "/hello", "")
}
