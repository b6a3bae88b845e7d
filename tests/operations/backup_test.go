package operations_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"runner.example/tests/harness"
)

const backupSchema = `app shop
entity Note {
  id: id
  text: string(1..200)
}
apiKeys { scopes: { reader: @system("reader") { @grant read, write on Note } } }
routes("/", auth: apiKey(reader), rateLimit: none) { GET /hello -> hello }
`

type backupInfo struct {
	File, App, SHA256, AuditHead, PepperCheck string
	Sequence                                  uint64
	Created                                   time.Time
	Bytes                                     int64
}

// elsewhere is the app with another data directory.
func elsewhere(a *harness.App, data string) *harness.App {
	return &harness.App{T: a.T, Dir: a.Dir, Env: append([]string{"RUNNER_STORE_DIR=" + data}, a.Env...)}
}

func backUp(t *testing.T, a *harness.App, args ...string) (info backupInfo) {
	t.Helper()
	if err := json.Unmarshal([]byte(a.Must(append([]string{"backup", "--json"}, args...)...)), &info); err != nil {
		t.Fatal(err)
	}
	return info
}

// withRows is an app with rows and a key, which a server serves.
func withRows(t *testing.T) (a *harness.App, s *harness.Server, token string) {
	t.Helper()
	a = harness.NewApp(t, backupSchema, "", "echo")
	a.Write("notes.jsonl", strings.Repeat("{\"text\":\"a note of some length, so that the backup has more than one block\"}\n", 500))
	s = a.Serve()
	a.Must("data", "import", "Note", a.Path("notes.jsonl"))
	return a, s, a.Token("reader", "--name", "r")
}

func TestABackupOfARunningServerIsRestored(t *testing.T) {
	a, s, token := withRows(t)
	file := a.Path("shop.backup")
	info := backUp(t, a, file)
	stat, err := os.Stat(file)
	if err != nil || stat.Mode().Perm() != 0o600 || stat.Size() != info.Bytes {
		t.Fatalf("%v, %v; the command said %+v", stat, err, info)
	}
	if info.App != "shop" || info.Sequence == 0 || len(info.SHA256) != 64 || info.AuditHead == "" {
		t.Errorf("%+v", info)
	}
	text := harness.MustRead(t, file)
	lines := strings.SplitN(text, "\n", 3)
	var head map[string]any
	if err := json.Unmarshal([]byte(lines[1]), &head); err != nil || lines[0] != "runner backup 2" || head["app"] != "shop" || head["pepperCheck"] != info.PepperCheck {
		t.Errorf("the file begins with %q, %q", lines[0], lines[1])
	}
	pepper := strings.TrimSpace(harness.MustRead(t, a.Path("data/pepper")))
	if strings.Contains(text, pepper) || strings.Contains(text, token) {
		t.Error("the backup has the pepper or a token")
	}
	var checked backupInfo
	if err := json.Unmarshal([]byte(a.Must("backup", "--check", file, "--json")), &checked); err != nil || checked != info {
		t.Errorf("checked: %+v, %v; want %+v", checked, err, info)
	}
	want := a.Must("data", "export", "Note")
	s.Stop()
	without := backUp(t, a, a.Path("offline.backup")) // no server
	if without.Sequence < info.Sequence {
		t.Errorf("%+v after %+v", without, info)
	}

	saved := a.Path("data/pepper")
	restored := elsewhere(a, "restored")
	restored.Must("restore", file, "--pepper", saved)
	restored.Must("audit", "verify", "--head", info.AuditHead)
	if got := restored.Must("data", "export", "Note"); got != want {
		t.Errorf("%d bytes of rows, want %d", len(got), len(want))
	}
	if got := restored.Serve().Get("/hello", token); got.Status != 200 {
		t.Errorf("the key in the restored directory: %d %s", got.Status, got.Body)
	}
	if r := restored.Run("restore", file, "--pepper", saved); r.Status != 1 || !strings.Contains(r.Stderr, "not empty") {
		t.Errorf("into a used directory: %d %s", r.Status, r.Stderr)
	}
}

func TestABackupReplacesNothingWithoutForce(t *testing.T) {
	a, _, _ := withRows(t)
	file := a.Path("b")
	a.Write("b", "precious")
	if r := a.Run("backup", file); r.Status != 1 || !strings.Contains(r.Stderr, "--force") || harness.MustRead(t, file) != "precious" {
		t.Errorf("%d %s", r.Status, r.Stderr)
	}
	a.Write("b.partial", "left by a crash")
	backUp(t, a, file, "--force")
	a.Must("backup", "--check", file)
	if _, err := os.Stat(file + ".partial"); !os.IsNotExist(err) {
		t.Errorf("the partial file is left: %v", err)
	}
	if r := a.Run("backup", a.Path("no/such/directory")); r.Status != 1 {
		t.Errorf("%d %s", r.Status, r.Stderr)
	}
}

func TestABackupReplacesOnlyFiles(t *testing.T) {
	a, _, _ := withRows(t)
	a.Write("directory/file", "precious")
	if err := os.Symlink(a.Path("directory/file"), a.Path("link")); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"directory", "link"} {
		if r := a.Run("backup", a.Path(name), "--force"); r.Status != 1 || !strings.Contains(r.Stderr, "not a regular file") {
			t.Errorf("%s: %d %s", name, r.Status, r.Stderr)
		}
	}
	if harness.MustRead(t, a.Path("link")) != "precious" {
		t.Error("the file behind the link has changed")
	}
	for _, name := range []string{"", a.Path("directory") + "/"} {
		if r := a.Run("backup", name); r.Status != 1 || !strings.Contains(r.Stderr, "does not name a file") {
			t.Errorf("%q: %d %s", name, r.Status, r.Stderr)
		}
	}
}

func TestRestoreKeepsASymlinkToAnEmptyDirectory(t *testing.T) {
	a, s, _ := withRows(t)
	file := a.Path("b")
	backUp(t, a, file)
	s.Stop()
	if err := errors.Join(os.Mkdir(a.Path("disk"), 0o700), os.Symlink("disk", a.Path("link")), os.Symlink("nowhere", a.Path("dangling"))); err != nil {
		t.Fatal(err)
	}
	restored := elsewhere(a, "link")
	restored.Must("restore", file, "--pepper", a.Path("data/pepper"))
	if _, err := os.Stat(a.Path("disk/pepper")); err != nil {
		t.Error(err)
	}
	restored.Must("audit", "verify")
	if r := elsewhere(a, "dangling").Run("restore", file, "--pepper", a.Path("data/pepper")); r.Status != 1 || !strings.Contains(r.Stderr, "symlink") {
		t.Errorf("a symlink to nothing: %d %s", r.Status, r.Stderr)
	}
}

// A restore replaces the empty directory. A shell in it would be in a removed one afterwards.
func TestRestoreDoesNotReplaceTheWorkingDirectory(t *testing.T) {
	a, _, _ := withRows(t)
	backUp(t, a, a.Path("b"))
	if err := os.Mkdir(a.Path("here"), 0o700); err != nil {
		t.Fatal(err)
	}
	for _, data := range []string{".", a.Path("here")} {
		cmd := exec.Command(harness.Binary, "restore", a.Path("b"), "--app", a.Dir, "--data", data, "--pepper", a.Path("data/pepper"))
		cmd.Dir = a.Path("here")
		out, err := cmd.CombinedOutput()
		left, globErr := filepath.Glob(a.Path("here/*"))
		if err == nil || cmd.ProcessState.ExitCode() != 1 || !strings.Contains(string(out), "is the working directory") || globErr != nil || len(left) > 0 {
			t.Errorf("--data %s: %v %s, files %q", data, err, out, left)
		}
	}
}

func TestARestoreRemovesWhatAKilledOneLeft(t *testing.T) {
	a, s, _ := withRows(t)
	random := make([]byte, 90)
	source := rand.NewChaCha8([32]byte{})
	var rows strings.Builder
	for range 2000 {
		_, _ = source.Read(random)
		fmt.Fprintf(&rows, "{\"text\":\"%x\"}\n", random)
	}
	a.Write("random.jsonl", rows.String())
	a.Must("data", "import", "Note", a.Path("random.jsonl"))
	file := a.Path("b")
	backUp(t, a, file)
	s.Stop()
	target := elsewhere(a, "target")
	killed := exec.Command(harness.Binary, "restore", "-", "--data", "target", "--pepper", a.Path("data/pepper"))
	killed.Dir = a.Dir
	in, err := killed.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := killed.Start(); err != nil {
		t.Fatal(err)
	}
	content := harness.MustRead(t, file)
	const pipeBytes, readAtOnce = 64 << 10, 64 << 10
	if len(content) <= pipeBytes+readAtOnce {
		t.Fatalf("the backup has only %d bytes: it may all be written before the restore begins", len(content))
	}
	if _, err := io.WriteString(in, content[:len(content)-1]); err != nil {
		t.Fatal(err)
	}
	if r := target.Run("restore", file, "--pepper", a.Path("data/pepper")); r.Status != 1 || !strings.Contains(r.Stderr, "another process writes") {
		t.Errorf("during another restore: %d %s", r.Status, r.Stderr)
	}
	_ = killed.Process.Kill()
	_ = killed.Wait()
	if _, err := os.Stat(a.Path("target")); !os.IsNotExist(err) {
		t.Errorf("a killed restore made the data directory: %v", err)
	}
	target.Must("restore", file, "--pepper", a.Path("data/pepper"))
	if left, err := filepath.Glob(a.Path(".target*")); err != nil || len(left) > 0 {
		t.Errorf("left behind: %q, %v", left, err)
	}
	target.Must("audit", "verify")
}

func TestABackupOnStdoutIsTheSameFormat(t *testing.T) {
	a, _, _ := withRows(t)
	r := a.Run("backup", "-")
	if r.Status != 0 || !strings.Contains(r.Stderr, "sha256") {
		t.Fatalf("%d %s", r.Status, r.Stderr)
	}
	a.Write("piped", r.Stdout)
	a.Must("backup", "--check", a.Path("piped"))
	reader, writer, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	_ = reader.Close()
	defer writer.Close()
	cut := exec.Command(harness.Binary, "backup", "-")
	cut.Dir, cut.Stdout = a.Dir, writer
	if err := cut.Run(); cut.ProcessState.ExitCode() != 1 {
		t.Errorf("a pipe without a reader: %v", err)
	}
	if r := a.Run("backup", "-", "--json"); r.Status != 2 {
		t.Errorf("with --json: %d %s", r.Status, r.Stderr)
	}
}

func TestADamagedBackupIsRefusedAndLeavesNothing(t *testing.T) {
	a, _, _ := withRows(t)
	file, pepper := a.Path("good"), a.Path("data/pepper")
	backUp(t, a, file)
	good := []byte(harness.MustRead(t, file))
	target := elsewhere(a, "target")
	nothing := func(what string) {
		t.Helper()
		left, err := filepath.Glob(a.Path(".target*"))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := os.Stat(a.Path("target")); !os.IsNotExist(err) || len(left) > 0 {
			t.Fatalf("%s: left behind: %v, %q", what, err, left)
		}
	}
	refused := func(what string, content []byte) {
		t.Helper()
		a.Write("bad", string(content))
		if r := a.Run("backup", "--check", a.Path("bad")); r.Status != 3 {
			t.Fatalf("%s: check: %d %s", what, r.Status, r.Stderr)
		}
		if r := target.Run("restore", a.Path("bad"), "--pepper", pepper); r.Status != 3 {
			t.Fatalf("%s: restore: %d %s", what, r.Status, r.Stderr)
		}
		nothing(what)
	}
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	places := []int{0, 20, 40, len(good) - 1}
	for len(places) < 12 {
		places = append(places, random.IntN(len(good)))
	}
	for _, at := range places {
		bad := bytes.Clone(good)
		bad[at] ^= 1 << random.IntN(8)
		refused(fmt.Sprintf("byte %d changed", at), bad)
	}
	for _, n := range []int{0, 10, len(good) / 2, len(good) - 1} {
		refused(fmt.Sprintf("cut to %d bytes", n), good[:n])
	}
	refused("more at the end", append(bytes.Clone(good), 'x'))

	other := elsewhere(a, "other")
	other.Token("reader", "--name", "x") // makes another pepper
	if r := target.Run("restore", file, "--pepper", a.Path("other/pepper")); r.Status != 3 || !strings.Contains(r.Stderr, "not the one of the backed-up store") {
		t.Errorf("another pepper: %d %s", r.Status, r.Stderr)
	}
	nothing("another pepper")
	if r := target.Run("restore", file, "--pepper", a.Path("none")); r.Status != 3 {
		t.Errorf("no pepper: %d %s", r.Status, r.Stderr)
	}
	if r := target.Run("restore", file); r.Status != 2 || !strings.Contains(r.Stderr, "--pepper") {
		t.Errorf("without --pepper: %d %s", r.Status, r.Stderr)
	}
	if r := target.Run("restore", a.Path("absent"), "--pepper", pepper); r.Status != 4 {
		t.Errorf("no file: %d %s", r.Status, r.Stderr)
	}
	nothing("no file")
}

func TestABackupEndsWhenTheClientDisconnects(t *testing.T) {
	a, s, _ := withRows(t)
	client := http.Client{Transport: &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", a.Path("data/runner.sock"))
	}}}
	for range 3 {
		answer, err := client.Post("http://runner/backup", "application/json", nil)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.ReadFull(answer.Body, make([]byte, 100)); err != nil {
			t.Fatal(err)
		}
		_ = answer.Body.Close()
	}
	// A server that still has a snapshot waits for it when it stops, and says so.
	s.Stop()
	if log := s.Stderr.String(); strings.Contains(log, "cut off") || strings.Contains(log, "timed out") {
		t.Errorf("the log:\n%s", log)
	}
}
