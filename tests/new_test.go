package tests

import (
	"errors"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestANewAppIsCompleteInEachLanguage makes, builds, checks and asks the app of each
// language, and runs its own tests as its README.md says.
func TestANewAppIsCompleteInEachLanguage(t *testing.T) {
	t.Parallel()
	cargo := []string{"CARGO_NET_OFFLINE=true"} // crates of Debian's packages
	if os.Getenv("CARGO_TARGET_DIR") == "" {
		if cache, err := os.UserCacheDir(); err == nil {
			cargo = append(cargo, "CARGO_TARGET_DIR="+filepath.Join(cache, "runner-tests", "cargo")) // as make test does
		}
	}
	for _, row := range []struct {
		lang string
		// before and own are commands of the README: what is typed before the first
		// build, and the app's tests.
		before, own string
		module      string
	}{
		{"ts", "", "node --test test/", "build/my_app.wasm"},
		{"go", "", "cd handlers/greetings && go test", "build/greetings.wasm"},
		{"rust", "", "", "build/greetings.wasm"}, // its tests take what a whole build takes: the soak runs them
		{"c", "", "cc -o build/greeting_test handlers/greetings/greeting_test.c && build/greeting_test", "build/greetings.wasm"},
		{"as", "npm install --prefix handlers/greetings", "node --test test/", "build/greetings.wasm"},
	} {
		t.Run(row.lang, func(t *testing.T) {
			parent := &app{t: t, dir: t.TempDir()}
			parent.must("new", "my-app", "--lang", row.lang)
			a := &app{t: t, dir: parent.path("my-app"), env: append([]string{"npm_config_prefer_offline=true", "TMPDIR=" + t.TempDir(), "RUNNER_BIN=" + runnerBinary, "RUNNER=" + t.TempDir()}, cargo...)}
			readme, err := os.ReadFile(a.path("README.md"))
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
			a.shell(row.before)
			a.must("build")
			if _, err := os.Stat(a.path(row.module)); err != nil {
				t.Error(err)
			}
			a.must("check", "--strict", "--modules")
			a.must("fmt", "--check")
			greets(t, a)
			a.shell(row.own)
		})
	}
}

// greets asks what every new app answers.
func greets(t *testing.T, a *app) {
	s, token := a.serve(), a.token("greetings")
	s.answers(200, `\{"name":"world","text":"hello world"\}`, "GET", "/v1/hello/world", "", token)
	s.answers(400, `.*"detail":"there is nobody to greet".*`, "GET", "/v1/hello/nobody", "", token)
	s.answers(201, `\{.*"name":"ada".*\}`, "POST", "/v1/greetings", `{"name":"ada","text":"good morning"}`, token)
	nextMillisecond() // the newest comes first
	s.answers(201, `.*`, "POST", "/v1/greetings", `{"name":"bob","text":"é \"quoted\""}`, token)
	s.answers(200, `\[\{"name":"bob","text":"é \\"quoted\\""\},\{"name":"ada","text":"good morning"\}\]`, "GET", "/v1/greetings", "", token)
	s.answers(200, `\[\{"name":"ada","text":"good morning"\}\]`, "GET", "/v1/greetings?name=ada", "", token)
	s.answers(400, `.*"field":"text".*`, "POST", "/v1/greetings", `{"name":"ada"}`, token)
	if got := s.get("/v1/greetings", ""); got.status != http.StatusUnauthorized {
		t.Errorf("without a key: %d", got.status)
	}
	if log := s.stderr.String(); !strings.Contains(log, "greeting placed") {
		t.Errorf("the log has no line of the handler:\n%s", log)
	}
	s.stop()
}

// shell runs a line in the app's folder.
func (a *app) shell(line string) {
	a.t.Helper()
	if line == "" {
		return
	}
	cmd := exec.Command("bash", "-euo", "pipefail", "-c", line)
	cmd.Dir, cmd.Env = a.dir, append(os.Environ(), a.env...)
	if out, err := cmd.CombinedOutput(); errors.Is(err, exec.ErrNotFound) {
		a.t.Fatal("bash is missing")
	} else if err != nil {
		a.t.Fatalf("%s: %v\n%s", line, err, out)
	}
}
