package operations_test

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"runner.example/internal/fault"
	"runner.example/internal/secret"
	"runner.example/node/admin"
	"runner.example/node/deploy"
	"runner.example/node/release"
	"runner.example/state/store"
	"runner.example/tests/harness"
)

// signingKey is a key that signs releases.
type signingKey struct {
	file   string // of the private key
	public string // as a setting has it
}

func newSigningKey(t *testing.T) (key signingKey) {
	t.Helper()
	public, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	publicDER, err := x509.MarshalPKIXPublicKey(public)
	if err != nil {
		t.Fatal(err)
	}
	privateDER, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	key = signingKey{filepath.Join(t.TempDir(), "release.pem"), base64.StdEncoding.EncodeToString(publicDER)}
	if err := os.WriteFile(key.file, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: privateDER}), 0o600); err != nil {
		t.Fatal(err)
	}
	return key
}

// trust is a runner.toml with these trusted keys.
func trust(keys ...signingKey) string {
	var all []string
	for _, key := range keys {
		all = append(all, `"`+key.public+`"`)
	}
	return "[release]\ntrusted_keys = [" + strings.Join(all, ", ") + "]\n"
}

// trust gives the edge these trusted keys, by a reload.
func (e *edge) trust(keys ...signingKey) {
	e.T.Helper()
	e.app.Write("runner.toml", trust(keys...))
	e.app.Must("reload", "--data", e.data)
}

// restart starts the edge again.
func (e *edge) restart(t *testing.T) {
	e.T.Helper()
	e.Stop()
	e.Server = e.app.Serve("--data", e.data)
	e.flags[1] = statusOf(t, e.app, "--data", e.data).Admin
}

// dial returns a client of the edge that checks nothing before it sends.
func (e *edge) dial(t *testing.T) *admin.Client {
	t.Helper()
	token := secret.NewToken(strings.TrimSpace(harness.MustRead(t, e.flags[5])))
	node, err := admin.DialURL(t.Context(), e.flags[1], e.flags[3:4], token)
	if err != nil {
		t.Fatal(err)
	}
	return node
}

// signedList is what runner releases --json prints about signatures.
type signedList struct {
	Active      struct{ ID string }
	TrustedKeys []string
	Releases    []struct {
		ID         string
		Signatures []struct{ Key, Signature string }
	}
}

// signers returns the keys that have signed a release.
func (e *edge) signers(id string) string {
	e.T.Helper()
	var list signedList
	if err := json.Unmarshal([]byte(e.app.Must("releases", "--json", "--data", e.data)), &list); err != nil {
		e.T.Fatal(err)
	}
	var keys []string
	for _, r := range list.Releases {
		for _, s := range r.Signatures {
			if r.ID == id {
				keys = append(keys, s.Key)
			}
		}
	}
	return strings.Join(keys, " ")
}

// wantRefused fails the test unless the command was refused with these texts and the status 3.
func wantRefused(t *testing.T, got harness.Result, texts ...string) {
	t.Helper()
	if got.Status != 3 {
		t.Errorf("exit status %d, want 3\n%s%s", got.Status, got.Stdout, got.Stderr)
	}
	for _, text := range texts {
		if !strings.Contains(got.Stderr, text) {
			t.Errorf("want %q in\n%s", text, got.Stderr)
		}
	}
}

func TestANodeWithTrustedKeysServesOnlySignedReleases(t *testing.T) {
	e := startEdge(t)
	ours, theirs := newSigningKey(t), newSigningKey(t)
	a := harness.NewApp(t, harness.HostileSchema, "", "echo", "hostile")
	unsigned := e.must(a, "deploy", "--yes").After
	e.Want(200, nil, "GET", "/hello", "")
	a.Write("second.schema", secondRoute)
	signed := e.must(a, "deploy", "--yes", "--sign", ours.file).After
	e.Want(200, nil, "GET", "/second", "")
	if got := e.signers(signed); got != ours.public {
		t.Errorf("signed by %q, want %q", got, ours.public)
	}
	e.trust(ours)
	if text := e.app.Must("releases", "--data", e.data); !strings.Contains(text, ours.public[16:24]) || !strings.Contains(text, "- (not trusted)") {
		t.Error(text)
	}
	if r := lastOf(t, e, "releases.add"); r["target"] != signed || r["reason"] != "signed by "+ours.public {
		t.Errorf("%v", r)
	}

	// Upload: nothing is sent.
	a.Write("third.schema", strings.ReplaceAll(secondRoute, "second", "third"))
	for _, row := range []struct {
		args []string
		text string
	}{
		{nil, "is not signed, and the node has [release] trusted_keys: send it with runner deploy --sign"},
		{[]string{"--sign", theirs.file}, "is signed by " + theirs.public + ", and not by a key in [release] trusted_keys of the node"},
	} {
		got := e.run(a, append([]string{"deploy", "--yes"}, row.args...)...)
		wantRefused(t, got, row.text)
		if strings.Contains(got.Stderr, "runner: sent") {
			t.Errorf("files were sent:\n%s", got.Stderr)
		}
		got = e.run(a, append([]string{"deploy", "--dry-run"}, row.args...)...)
		wantRefused(t, got, row.text, "1 file would be sent; nothing was changed")
		if !strings.Contains(got.Stdout, "+ GET /third") {
			t.Errorf("the difference is not shown:\n%s", got.Stdout)
		}
		var plan deployed
		got = e.run(a, append([]string{"deploy", "--dry-run", "--json"}, row.args...)...)
		if err := json.Unmarshal([]byte(got.Stdout), &plan); err != nil || plan.Activated || plan.sent() != "third.schema" {
			t.Errorf("%+v, %v", plan, err)
		}
		wantRefused(t, got, row.text)
	}
	e.Want(404, nil, "GET", "/third", "")

	// Activation: the release was stored before the node had trusted keys.
	wantRefused(t, e.run(a, "rollback", unsigned), "the active one is kept", unsigned+" is not signed")
	wantRefused(t, e.app.Run("rollback", "--data", e.data), "the active one is kept", unsigned+" is not signed")
	e.Want(200, nil, "GET", "/second", "")

	got := e.run(a, "deploy", "--yes", "--sign", ours.file)
	if got.Status != 0 || !strings.Contains(got.Stderr, "signed by "+ours.public) {
		t.Errorf("%d %s", got.Status, got.Stderr)
	}
	e.Want(200, nil, "GET", "/third", "")
	e.run(a, "rollback", signed)
	e.Want(404, nil, "GET", "/third", "")
	e.restart(t)
	e.Want(404, nil, "GET", "/third", "")
	e.Want(200, nil, "GET", "/second", "")
	if got := e.run(a, "deploy", "--dry-run", "--sign", ours.file); got.Status != 0 {
		t.Errorf("a dry run of a signed release: %d %s", got.Status, got.Stderr)
	}
}

// lastOf returns the newest audit record of an action on the edge.
func lastOf(t *testing.T, e *edge, action string) (found map[string]any) {
	t.Helper()
	var all []map[string]any
	if err := json.Unmarshal([]byte(e.app.Must("audit", "list", "--json", "--data", e.data)), &all); err != nil {
		t.Fatal(err)
	}
	for _, r := range all {
		if r["action"] == action {
			found = r
		}
	}
	return found
}

func TestUploadsWithoutATrustedSignatureAreRefusedByTheNode(t *testing.T) {
	e := startEdge(t)
	ours, theirs := newSigningKey(t), newSigningKey(t)
	e.must(harness.NewApp(t, harness.HostileSchema, "", "echo", "hostile"), "deploy", "--yes", "--sign", ours.file)
	e.trust(ours)
	node := e.dial(t)
	list, err := node.Releases(t.Context())
	if err != nil || len(list.Releases) != 1 || len(list.Releases[0].Signatures) != 1 || !slices.Equal(list.TrustedKeys, release.TrustedKeys{ours.public}) {
		t.Fatalf("%+v, %v", list, err)
	}
	active, good := list.Releases[0].Manifest, list.Releases[0].Signatures[0]
	other := release.Manifest{App: "other", Files: active.Files}
	altered := release.Signature{Key: good.Key, Value: bytes.Clone(good.Value)}
	altered.Value[20] ^= 1
	for _, row := range []struct {
		name      string
		manifest  release.Manifest
		signature *release.Signature
		refusal   string
	}{
		{"another release, unsigned", other, nil, "is not signed"},
		{"another release, with the signature of this one", other, &good, "is not valid"},
		{"altered", active, &altered, "is not valid"},
		{"cut off", active, &release.Signature{Key: good.Key, Value: good.Value[:63]}, "is not valid"},
		{"another key", active, &release.Signature{Key: theirs.public, Value: good.Value}, "is not valid"},
		{"not a key", active, &release.Signature{Key: "ours", Value: good.Value}, "the key of the signature is not an Ed25519 public key"},
		{"as it is, unsigned", active, nil, ""},
		{"as it is", active, &good, ""},
	} {
		rel, err := node.AddRelease(t.Context(), admin.AddRelease{Manifest: row.manifest, Signature: row.signature})
		if row.refusal == "" && (err != nil || len(rel.Signatures) != 1) {
			t.Errorf("%s: %+v, %v", row.name, rel, err)
		}
		if row.refusal != "" && (fault.CodeOf(err) != fault.Invalid || !strings.Contains(err.Error(), row.refusal)) {
			t.Errorf("%s: %v", row.name, err)
		}
	}
	if got := e.signers(list.Active.ID); got != ours.public {
		t.Errorf("signed by %q", got)
	}
	e.Want(200, nil, "GET", "/hello", "")
}

func TestAStartWithoutATrustedSignatureServesNothing(t *testing.T) {
	e := startEdge(t)
	ours, theirs := newSigningKey(t), newSigningKey(t)
	a := harness.NewApp(t, harness.HostileSchema, "", "echo", "hostile")
	id := e.must(a, "deploy", "--yes").After
	serves := func(status int) {
		t.Helper()
		e.Want(status, nil, "GET", "/hello", "")
		e.Want(status, nil, "GET", "/_health/ready", "")
	}
	serves(200)

	// The settings change while the server is down.
	e.app.Write("runner.toml", trust(ours))
	e.restart(t)
	serves(503)
	if text := e.Stderr.String(); !strings.Contains(text, "release refused: no trusted signature") || !strings.Contains(text, id+" is not signed") {
		t.Error(text)
	}
	if got := e.Do("GET", "/_health/ready", ""); !strings.Contains(string(got.Body), "the release to serve has no trusted signature") {
		t.Errorf("%s", got.Body)
	}
	wantRefused(t, e.run(a, "deploy", "--yes"), "is not signed")
	wantRefused(t, e.run(a, "deploy", "--yes", "--sign", theirs.file), "and not by a key in [release] trusted_keys")
	serves(503)
	// The release is there already, and gets its signature.
	if done := e.must(a, "deploy", "--yes", "--sign", ours.file); done.After != id || done.sent() != "" || !done.Activated {
		t.Errorf("%+v", done)
	}
	serves(200)
	e.restart(t)
	serves(200)

	// Another key is trusted.
	e.Stop()
	e.app.Write("runner.toml", trust(theirs))
	e.Server = e.app.Serve("--data", e.data)
	serves(503)
	if text := e.Stderr.String(); !strings.Contains(text, "is signed by "+ours.public+", and not by a key in [release] trusted_keys") {
		t.Error(text)
	}
	e.trust(ours, theirs) // the active release is served after a reload
	serves(200)
	e.Stop()

	// The signature is altered in the store.
	st, err := store.Open(store.Options{Dir: e.data})
	if err != nil {
		t.Fatal(err)
	}
	key := []byte("release/record/" + id)
	_, err = st.Update(t.Context(), func(tx *store.Tx) error {
		text, err := tx.Get(key)
		if err != nil {
			return err
		}
		var record map[string]any
		if err := json.Unmarshal(text, &record); err != nil {
			return err
		}
		signature := record["signatures"].([]any)[0].(map[string]any)
		value, err := base64.StdEncoding.DecodeString(signature["signature"].(string))
		if err != nil {
			return err
		}
		value[7] ^= 1
		signature["signature"] = base64.StdEncoding.EncodeToString(value)
		if text, err = json.Marshal(record); err != nil {
			return err
		}
		return tx.Set(key, text)
	})
	if err == nil {
		err = st.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
	e.Server = e.app.Serve("--data", e.data)
	e.flags[1] = statusOf(t, e.app, "--data", e.data).Admin
	serves(503)
	if text := e.Stderr.String(); !strings.Contains(text, "the signature of release "+id+" by the key "+ours.public+" is not valid") {
		t.Error(text)
	}
	wantRefused(t, e.run(a, "rollback", id), "is not valid")
	// A deployment was cut short before the activation: the next one activates the release.
	signing, err := deploy.ReadKey(ours.file)
	if err != nil {
		t.Fatal(err)
	}
	list, err := e.dial(t).Releases(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	m := list.Releases[0].Manifest
	if _, err := e.dial(t).AddRelease(t.Context(), admin.AddRelease{Manifest: m, Signature: new(release.Sign(m, signing))}); err != nil {
		t.Fatal(err)
	}
	serves(503)
	if done := e.must(a, "deploy", "--yes", "--sign", ours.file); !done.Activated {
		t.Errorf("%+v", done)
	}
	serves(200)
}

func TestTrustedKeysAreReplacedByReloads(t *testing.T) {
	e := startEdge(t)
	first, second := newSigningKey(t), newSigningKey(t)
	a := harness.NewApp(t, harness.HostileSchema, "", "echo", "hostile")
	e.trust(first) // while no release is active
	id := e.must(a, "deploy", "--yes", "--sign", first.file).After
	e.Want(200, nil, "GET", "/hello", "")

	// The new key alone would refuse the active release: the old one stays in force.
	e.app.Write("runner.toml", trust(second))
	wantRefused(t, e.app.Run("reload", "--data", e.data), "previous release kept", "is signed by "+first.public)
	e.Want(200, nil, "GET", "/hello", "")
	wantRefused(t, e.run(a, "deploy", "--yes", "--sign", second.file), "and not by a key in [release] trusted_keys")

	// Both, then a second signature, then the new key alone.
	e.app.Write("runner.toml", trust(first, second))
	if out := e.app.Must("reload", "--json", "--data", e.data); !strings.Contains(out, "[release] trusted_keys") {
		t.Error(out)
	}
	if got := e.run(a, "deploy", "--yes", "--sign", first.file); got.Status != 0 || !strings.Contains(got.Stderr, "is active already") {
		t.Errorf("signed again by the same key: %d %s", got.Status, got.Stderr)
	}
	e.must(a, "deploy", "--yes", "--sign", second.file)
	if got := e.signers(id); got != first.public+" "+second.public {
		t.Errorf("signed by %q", got)
	}
	e.trust(second)
	wantRefused(t, e.run(a, "deploy", "--yes", "--sign", first.file), "is signed by "+first.public)
	e.restart(t)
	e.Want(200, nil, "GET", "/hello", "")

	// A setting that is not valid is refused, and does not turn the check off.
	e.app.Write("runner.toml", "[release]\ntrusted_keys = [\"release.pub\"]\n")
	wantRefused(t, e.app.Run("reload", "--data", e.data), "runner.toml:2:16", "is not an Ed25519 public key: write the line between BEGIN and END")
	a.Write("second.schema", secondRoute)
	wantRefused(t, e.run(a, "deploy", "--yes"), "is not signed")
	e.trust() // without trusted keys, releases need no signature
	e.must(a, "deploy", "--yes")
	e.Want(200, nil, "GET", "/second", "")
}

func TestAnInvalidTrustedKeyDoesNotTurnTheCheckOff(t *testing.T) {
	e := startEdge(t) // it waits for its first release
	e.trust(newSigningKey(t))
	e.app.Write("runner.toml", "[release]\ntrusted_keys = [\"release.pub\"]\n")
	wantRefused(t, e.app.Run("reload", "--data", e.data), "is not an Ed25519 public key")
	wantRefused(t, e.run(harness.NewApp(t, harness.HostileSchema, "", "echo", "hostile"), "deploy", "--yes"), "is not signed")
}

func TestAnUnsignedAppDirectoryIsNotServedWithTrustedKeys(t *testing.T) {
	key := newSigningKey(t)
	a := harness.NewApp(t, reloadSchema+"functions(auth: none) { hello() -> json }\n", trust(key), "echo")
	s := a.Serve()
	s.Want(503, nil, "GET", "/hello", "")
	if text := s.Stderr.String(); !strings.Contains(text, "release refused: no trusted signature") || !strings.Contains(text, "is not signed, and the node has [release] trusted_keys: send it with runner deploy --sign") {
		t.Error(text)
	}
	wantRefused(t, a.Run("reload"), "is not signed")
	s.Stop()
	wantRefused(t, a.Run("call", "hello"), "is not signed") // nor does a command run its code
	s = a.Serve()
	s.Want(503, nil, "GET", "/hello", "")
	a.Must("deploy", "--yes", "--sign", key.file)
	s.Want(200, nil, "GET", "/hello", "")
	s.Stop()
	a.Must("call", "hello")
	a.Write("runner.toml", trust(newSigningKey(t)))
	wantRefused(t, a.Run("call", "hello"), "is signed by "+key.public)
	a.Write("runner.toml", trust(key))

	// The app directory with the same files has the signature of the release.
	s = a.Serve("--from-folder")
	s.Want(200, nil, "GET", "/hello", "")
	a.Write("app.schema", strings.Replace(reloadSchema, "GET /hello -> hello", "GET /hello -> hello\n  GET /hi -> hello", 1))
	wantRefused(t, a.Run("reload"), "previous release kept", "is not signed")
	s.Want(404, nil, "GET", "/hi", "")
	s.Want(200, nil, "GET", "/hello", "")
}

func TestAKeyFileThatCannotSignIsRefused(t *testing.T) {
	a := harness.NewApp(t, reloadSchema, "", "echo")
	a.Serve()
	good := newSigningKey(t)
	text := harness.MustRead(t, good.file)
	write := func(name, text string, mode os.FileMode) string {
		path := filepath.Join(t.TempDir(), name)
		if err := os.WriteFile(path, []byte(text), mode); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
		return path
	}
	for want, path := range map[string]string{
		"no such file":                      good.file + "x",
		"run chmod 600 on it":               write("open.pem", text, 0o644),
		"(mode 0640)":                       write("group.pem", text, 0o640),
		"does not contain a private key":    write("empty.pem", "", 0o600),
		"is a directory":                    t.TempDir(),
		"create a key with openssl genpkey": write("token", "rnp_x\n", 0o600),
	} {
		got := a.Run("deploy", "--yes", "--sign", path)
		wantRefused(t, got, want)
		if strings.Contains(got.Stderr, strings.Split(text, "\n")[1]) {
			t.Errorf("the key is shown:\n%s", got.Stderr)
		}
	}
}

// withOpenSSL are the commands of docs/deploy.md, and a key with a passphrase.
const withOpenSSL = `set -euo pipefail
umask 077
openssl genpkey -algorithm ed25519 -out release.pem
openssl pkey -in release.pem -pubout
runner deploy --sign release.pem --yes
openssl pkcs8 -topk8 -in release.pem -passout pass:x -out locked.pem
if runner deploy --sign locked.pem --yes; then exit 1; fi
echo '// signed again' >> app.schema
runner deploy --sign <(openssl pkey -in locked.pem -passin pass:x) --yes
`

func TestKeysOfOpenSSLSignReleases(t *testing.T) {
	a := harness.NewApp(t, reloadSchema, "", "echo")
	s := a.Serve()
	programs := t.TempDir()
	if err := os.Symlink(harness.Binary, filepath.Join(programs, "runner")); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), harness.BuildTimeout)
	defer cancel()
	shell := exec.CommandContext(ctx, "bash", "-c", withOpenSSL)
	shell.Dir, shell.Env = a.Dir, append(os.Environ(), "PATH="+programs+":"+os.Getenv("PATH"))
	out, err := shell.CombinedOutput()
	if err != nil || !strings.Contains(string(out), "the key is encrypted: decrypt it into a pipe") {
		t.Fatalf("%v\n%s", err, out)
	}
	public := ""
	for line := range strings.Lines(string(out)) {
		if strings.HasPrefix(line, "MCowBQYDK2VwAyEA") {
			public = strings.TrimSpace(line)
		}
	}
	a.Write("runner.toml", "[release]\ntrusted_keys = [\""+public+"\"]\n")
	a.Must("reload")
	a.Must("rollback")
	s.Want(200, nil, "GET", "/hello", "")
}
