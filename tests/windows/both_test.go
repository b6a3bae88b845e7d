package windows_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"runner.example/tests/harness"
)

// adminListen is a runner.toml with the admin listener.
const adminListen = "[admin]\nlisten = \"127.0.0.1:0\"\n"

var noteFiles = []string{"app.schema", "handlers/notes.ts", "handlers/word.ts"}

// A release has the same id on every system: of line ends, of how the directory is written on the command line,
// and of the drive's letter nothing is left in it.
func TestAReleaseHasTheIdOfLinux(t *testing.T) {
	harness.NeedWindows(t)
	t.Parallel()
	linux := onHost(noteApp(t, ""), harness.HostRunner(t))
	linux.Must("build")
	s := linux.Serve()
	want := activeRelease(t, linux)
	s.Stop()

	crlf := copyApp(t, linux, noteFiles, func(text string) string { return strings.ReplaceAll(text, "\n", "\r\n") })
	away := &harness.App{T: t, Dir: t.TempDir()}
	for _, dir := range []string{windowsPath("Z", crlf.Dir), windowsPath("z", crlf.Dir) + `\`, `..\` + filepath.Base(crlf.Dir)} {
		if strings.HasPrefix(dir, "..") {
			away.Dir = filepath.Join(filepath.Dir(crlf.Dir), "away")
			if err := os.MkdirAll(away.Dir, 0o755); err != nil {
				t.Fatal(err)
			}
		}
		removeAll(t, crlf.Path("build"))
		away.Must("build", dir)
		s := away.Serve("--app", dir)
		if got := activeRelease(t, away, "--app", dir); got != want {
			t.Errorf("%s: the release is %s, on Linux %s", dir, got, want)
			for _, a := range []*harness.App{linux, crlf} {
				t.Log(a.Must("releases", "--json"))
			}
		}
		s.Stop()
	}
}

// Sources come from Windows, the node is on Linux, and TLS and a file with a key are between them.
func TestWindowsDeploysToANodeOnLinux(t *testing.T) {
	harness.NeedWindows(t)
	t.Parallel()
	node := onHost(harness.NewApp(t, strings.Replace(harness.DevSchema, "app little", "app shop", 1), adminListen), harness.HostRunner(t))
	node.Write("handlers/hello.ts", harness.HelloSource("one"))
	node.Must("build")
	s := node.Serve()
	var status struct{ Admin, AdminFingerprint string }
	if err := json.Unmarshal([]byte(node.Must("status", "--json")), &status); err != nil {
		t.Fatal(err)
	}
	a := noteApp(t, "")
	var key struct{ Token string }
	if err := json.Unmarshal([]byte(node.Must("keys", "create", "--name", "author", "--role", "admin", "--json")), &key); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "deploy.key")
	if err := os.WriteFile(file, []byte(key.Token+"\r\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	to := []string{"--to", status.Admin, "--fingerprint", status.AdminFingerprint, "--key-file", windowsPath("Z", file)}

	if got := a.Run(append([]string{"deploy", "--dry-run"}, to...)...); got.Status != 0 || !strings.Contains(got.Stdout, "/v1/notes") {
		t.Errorf("%d %s%s", got.Status, got.Stdout, got.Stderr)
	}
	a.Must(append([]string{"deploy", "--yes"}, to...)...)
	token := a.Key(append([]string{"create", "--scope", "desk", "--name", "far"}, to...)...).Token
	add(s, token, "far")
	if got := notes(s, token); !slices.Equal(got, []string{"far"}) {
		t.Errorf("%q", got)
	}
	deployed := activeRelease(t, a, to...)
	onLinux := onHost(copyApp(t, a, noteFiles, func(text string) string { return text }), node.Binary)
	onLinux.Must("build")
	if got := onLinux.Must(append([]string{"deploy", "--yes", "--key-file", file}, to[:4]...)...); !strings.Contains(got, deployed) && activeRelease(t, a, to...) != deployed {
		t.Errorf("the same sources on Linux are another release than %s: %s", deployed, got)
	}
	a.Must(append([]string{"backup", "far.backup"}, to...)...)
	a.Must("backup", "--check", "far.backup")
	a.Must(append([]string{"rollback", "--yes"}, to...)...)
	s.WantBody("/v1/hello", "one")
}

// A data directory moves between the systems, and no row is lost when the server is killed.
func TestDataIsReadOnBothSystems(t *testing.T) {
	harness.NeedWindows(t)
	t.Parallel()
	a := noteApp(t, "")
	host := harness.HostRunner(t)
	a.Must("build")
	s := a.Serve()
	token := a.Token("desk")
	var want []string
	write := func(prefix string) {
		t.Helper()
		for i := range 20 {
			text := fmt.Sprintf("%s %02d", prefix, i)
			add(s, token, text)
			want = append(want, text)
		}
		text := prefix + " later"
		s.Want(200, nil, "POST", "/v1/later", fmt.Sprintf(`{"text":%q}`, text), "Authorization: Bearer "+token)
		want = append(want, text)
		slices.Sort(want)
	}
	// all waits for the jobs.
	all := func(who string) {
		t.Helper()
		s.WaitUntil(who+": all rows are there", func() bool { return slices.Equal(notes(s, token), want) })
	}
	portable := &harness.App{T: t, Dir: a.Dir, Env: []string{"RUNNER_SANDBOX_MEMORY_BACKEND=portable"}}
	release := activeRelease(t, a)
	for i, run := range []struct {
		name string
		app  *harness.App
	}{
		{"windows", nil},
		{"windows again", a},
		{"linux", onHost(&harness.App{T: t, Dir: a.Dir}, host)},
		{"linux with portable memory", onHost(portable, host)},
		{"windows at the end", a},
	} {
		if run.app != nil {
			s = run.app.Serve()
			all(run.name)
			if got := activeRelease(t, run.app); got != release {
				t.Errorf("%s: the release is %s, before it was %s", run.name, got, release)
			}
		}
		write(run.name)
		if i%2 == 0 {
			s.Kill()
			continue
		}
		all(run.name)
		s.Stop()
	}
	s = a.Serve()
	all("after the last kill")
	s.Stop()
	a.Must("backup", "all.backup")
	linux := onHost(&harness.App{T: t, Dir: t.TempDir()}, host)
	linux.Must("restore", a.Path("all.backup"), "--data", linux.Path("data"), "--pepper", a.Path("data/pepper"))
	for _, name := range noteFiles {
		linux.Write(name, harness.MustRead(t, a.Path(name)))
	}
	linux.Must("build")
	s = linux.Serve()
	all("a backup of Windows on Linux")
}
