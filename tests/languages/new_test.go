package languages_test

import (
	"errors"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"runner.example/tests/harness"
)

// For each language a new app is created, built, checked and called, and its own tests are
// run as its README.md says.
func TestANewAppIsCompleteInEachLanguage(t *testing.T) {
	t.Parallel()
	cargo := []string{"CARGO_NET_OFFLINE=true"} // crates come from Debian's packages
	if os.Getenv("CARGO_TARGET_DIR") == "" {
		if cache, err := os.UserCacheDir(); err == nil {
			cargo = append(cargo, "CARGO_TARGET_DIR="+filepath.Join(cache, "runner-tests", "cargo")) // as make test does
		}
	}
	for _, row := range []struct {
		lang string
		// before and own are commands of the README: before runs before the first build, own
		// runs the tests of the language beside runner test.
		before, own string
		module      string
	}{
		{"ts", "", "", "build/my_app.wasm"},
		{"python", "", "", "build/python.wasm"},
		{"go", "", "cd handlers/greetings && go test", "build/greetings.wasm"},
		{"rust", "", "", "build/greetings.wasm"}, // its tests need a whole build; the long form runs them
		{"c", "", "cc -o build/greeting_test handlers/greetings/greeting_test.c && build/greeting_test", "build/greetings.wasm"},
		{"as", "npm install --prefix handlers/greetings", "", "build/greetings.wasm"},
		{"nim", "", "", "build/greetings.wasm"},
	} {
		t.Run(row.lang, func(t *testing.T) {
			if _, err := exec.LookPath("nim"); err != nil && row.lang == "nim" {
				t.Skip("nim is missing: tools/setup.sh installs it")
			}
			parent := &harness.App{T: t, Dir: t.TempDir()}
			parent.Must("new", "my-app", "--lang", row.lang)
			a := &harness.App{T: t, Dir: parent.Path("my-app"), Env: append([]string{"npm_config_prefer_offline=true", "TMPDIR=" + t.TempDir(), "RUNNER=" + t.TempDir()}, cargo...)}
			readme, err := os.ReadFile(a.Path("README.md"))
			if err != nil {
				t.Fatal(err)
			}
			if row.lang == "rust" && os.Getenv("RUNNER_SOAK") != "" {
				row.own = `cd handlers/greetings && cargo test --config 'source.crates-io.replace-with="debian"' --config 'source.debian.directory="/usr/share/cargo/registry"'`
			}
			for _, line := range []string{row.before, row.own} {
				if line, _, _ := strings.Cut(line, " --config"); !strings.Contains(string(readme), line) {
					t.Errorf("README.md does not say %q", line)
				}
			}
			runInShell(a, row.before)
			a.Must("build")
			if _, err := os.Stat(a.Path(row.module)); err != nil {
				t.Error(err)
			}
			a.Must("check", "--strict", "--modules")
			a.Must("fmt", "--check")
			greets(t, a)
			if out := a.Must("test"); !strings.Contains(out, "5 passed") {
				t.Errorf("runner test:\n%s", out)
			}
			runInShell(a, row.own)
		})
	}
}

// greets calls the handlers that every new app has.
func greets(t *testing.T, a *harness.App) {
	s, token := a.Serve(), a.Token("greetings")
	s.Matches(200, `\{"name":"world","text":"hello world"\}`, "GET", "/v1/hello/world", "", token)
	s.Matches(400, `.*"detail":"there is nobody to greet".*`, "GET", "/v1/hello/nobody", "", token)
	s.Matches(201, `\{.*"name":"ada".*\}`, "POST", "/v1/greetings", `{"name":"ada","text":"good morning"}`, token)
	harness.NextMillisecond() // the list is sorted by time
	s.Matches(201, `.*`, "POST", "/v1/greetings", `{"name":"bob","text":"é \"quoted\""}`, token)
	s.Matches(200, `\[\{"name":"bob","text":"é \\"quoted\\""\},\{"name":"ada","text":"good morning"\}\]`, "GET", "/v1/greetings", "", token)
	s.Matches(200, `\[\{"name":"ada","text":"good morning"\}\]`, "GET", "/v1/greetings?name=ada", "", token)
	s.Matches(400, `.*"field":"text".*`, "POST", "/v1/greetings", `{"name":"ada"}`, token)
	if got := s.Get("/v1/greetings", ""); got.Status != http.StatusUnauthorized {
		t.Errorf("without a key: %d", got.Status)
	}
	if log := s.Stderr.String(); !strings.Contains(log, "greeting placed") {
		t.Errorf("the log has no line of the handler:\n%s", log)
	}
	s.Stop()
}

// runInShell runs a line in the app's directory.
func runInShell(a *harness.App, line string) {
	a.T.Helper()
	if line == "" {
		return
	}
	cmd := exec.Command("bash", "-euo", "pipefail", "-c", line)
	cmd.Dir, cmd.Env = a.Dir, append(os.Environ(), a.Env...)
	if out, err := cmd.CombinedOutput(); errors.Is(err, exec.ErrNotFound) {
		a.T.Fatal("bash is missing")
	} else if err != nil {
		a.T.Fatalf("%s: %v\n%s", line, err, out)
	}
}
