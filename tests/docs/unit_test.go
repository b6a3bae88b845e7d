package docs_test

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"runner.example/tests/harness"
)

// units are the files of tools/dist, and the pages that show them.
var units = map[string]string{
	"runner.service": "docs/install.md", "runner-backup.service": "docs/backup.md", "runner-backup.timer": "docs/backup.md",
}

func unit(t *testing.T, name string) string {
	t.Helper()
	return harness.MustRead(t, harness.RepoFile("tools/dist/"+name))
}

func TestTheDocumentedSystemdUnitsAreThoseOfTheTarballs(t *testing.T) {
	for name, page := range units {
		if name != "runner-backup.service" && !strings.Contains(harness.MustRead(t, harness.RepoFile(page)), "```ini\n"+unit(t, name)+"```\n") {
			t.Errorf("%s has another unit than tools/dist/%s", page, name)
		}
	}
}

// systemdAnalyze runs the tool, which tools/setup.sh installs.
func systemdAnalyze(t *testing.T, dir string, args ...string) (string, error) {
	t.Helper()
	cmd := exec.Command("systemd-analyze", args...)
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// copyUnits writes the units to a directory. Their program is a file that exists.
func copyUnits(t *testing.T) (dir string) {
	t.Helper()
	dir = t.TempDir()
	for name := range units {
		text := strings.ReplaceAll(unit(t, name), "/usr/local/bin/runner", harness.Binary)
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func TestSystemdAcceptsTheUnits(t *testing.T) {
	dir := copyUnits(t)
	for name := range units {
		if out, err := systemdAnalyze(t, dir, "verify", "--man=no", "./"+name); err != nil || strings.Contains(out, name+":") {
			t.Errorf("systemd-analyze verify %s: %v\n%s", name, err, out)
		}
	}
	// It finds what is wrong.
	if err := os.WriteFile(filepath.Join(dir, "runner.service"), []byte(strings.Replace(unit(t, "runner.service"), "RestartSec=", "RestartSecs=", 1)), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, _ := systemdAnalyze(t, dir, "verify", "--man=no", "./runner.service"); !strings.Contains(out, "RestartSecs") {
		t.Errorf("systemd-analyze verify does not find an unknown setting:\n%s", out)
	}
}

func TestTheServicesAreConfined(t *testing.T) {
	const most = 2.5
	dir := copyUnits(t)
	for _, name := range []string{"runner.service", "runner-backup.service"} {
		out, err := systemdAnalyze(t, dir, "security", "--offline=true", "--no-pager", "./"+name)
		score := regexp.MustCompile(`Overall exposure level for \S+: ([0-9.]+)`).FindStringSubmatch(out)
		if err != nil || score == nil {
			t.Fatalf("systemd-analyze security %s: %v\n%s", name, err, out)
		}
		if value, err := strconv.ParseFloat(score[1], 64); err != nil || value > most {
			t.Errorf("%s has the exposure level %s, want at most %v\n%s", name, score[1], most, out)
		}
	}
	text := unit(t, "runner.service")
	for _, want := range []string{"\nStartLimitIntervalSec=0\n", "\nRestart=on-failure\n", "\nRestartSec=2\n", "\nRuntimeDirectory=runner\n", "\nLoadCredential=secrets:/etc/runner/secrets\n"} {
		if !strings.Contains(text, want) {
			t.Errorf("runner.service has no line %q", want)
		}
	}
}

// allowedSyscalls expands the lines SystemCallFilter of a unit.
func allowedSyscalls(t *testing.T, unit string) []string {
	t.Helper()
	allowed := map[string]bool{}
	for _, line := range regexp.MustCompile(`(?m)^SystemCallFilter=(~?)(.*)$`).FindAllStringSubmatch(unit, -1) {
		for name := range strings.FieldsSeq(line[2]) {
			for _, one := range expand(t, name) {
				allowed[one] = line[1] == ""
			}
		}
	}
	var names []string
	for name, is := range allowed {
		if is {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// expand returns the system calls of a group, as systemd lists them.
func expand(t *testing.T, name string) (names []string) {
	t.Helper()
	if !strings.HasPrefix(name, "@") {
		return []string{name}
	}
	out, err := exec.Command("systemd-analyze", "syscall-filter", "--no-pager", name).Output()
	if err != nil {
		t.Fatalf("systemd-analyze syscall-filter %s: %v", name, err)
	}
	for line := range strings.Lines(string(out)) {
		if one := strings.TrimSpace(line); strings.HasPrefix(line, " ") && !strings.HasPrefix(one, "#") {
			names = append(names, expand(t, one)...)
		}
	}
	return names
}

const confinedSchema = `app shop
entity Note { id: id  text: string(1..200) }
apiKeys { scopes: { reader: @system("reader") { @grant read on Note } } }
secret HOOK
routes("/", auth: apiKey(reader), rateLimit: none) {
  GET /hello -> hello
  POST /hook -> hello (auth: none, as: reader, verify: webhook(standard, HOOK))
}
`

// Systemd does not run here. What the unit forbids by the kernel, without systemd's help, is applied to the real
// server: the filter of system calls, no new privileges and no capabilities, and for root a read-only file system.
func TestTheServerRunsUnderWhatItsUnitForbids(t *testing.T) {
	text := unit(t, "runner.service")
	confine := filepath.Join(t.TempDir(), "confine")
	build := exec.Command("go", "build", "-o", confine, "./tests/docs/confine")
	build.Dir = harness.RepoFile(".")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build tests/docs/confine: %v\n%s", err, out)
	}
	credentials, run := t.TempDir(), t.TempDir()
	if err := os.WriteFile(filepath.Join(credentials, "secrets_HOOK"), []byte(harness.StandardSecret+"\n"), 0o400); err != nil {
		t.Fatal(err)
	}
	a := harness.NewApp(t, confinedSchema, "", "echo")
	data, state := a.Path("data"), t.TempDir()
	limits := struct { // see tests/docs/confine
		Syscalls []string
		Umask    int
		Writable []string
	}{Syscalls: allowedSyscalls(t, text), Umask: 0o077}
	if len(limits.Syscalls) < 200 || slices.Contains(limits.Syscalls, "mount") || slices.Contains(limits.Syscalls, "ptrace") {
		t.Fatalf("the unit allows %d system calls: %q", len(limits.Syscalls), limits.Syscalls)
	}
	if os.Geteuid() == 0 {
		data = filepath.Join(state, "data")
		limits.Writable = []string{state, run}
	}
	policy, err := json.Marshal(limits)
	if err != nil {
		t.Fatal(err)
	}
	socket := filepath.Join(run, "admin.sock")
	a.Binary = confine
	a.Env = append(a.Env, "RUNNER_TEST_CONFINED="+string(policy), "RUNNER_TEST_CONFINED_BINARY="+harness.Binary,
		"CREDENTIALS_DIRECTORY="+credentials, "RUNNER_ADMIN_SOCKET="+socket, "RUNNER_STORE_DIR="+data)
	s := a.Serve()
	status := harness.MustRead(t, "/proc/"+strconv.Itoa(s.Cmd.Process.Pid)+"/status")
	for _, want := range []string{`(?m)^Seccomp:\s+2$`, `(?m)^NoNewPrivs:\s+1$`, `(?m)^CapBnd:\s+0+$`, `(?m)^CapEff:\s+0+$`} {
		if os.Geteuid() != 0 && strings.Contains(want, "CapBnd") {
			continue
		}
		if !regexp.MustCompile(want).MatchString(status) {
			t.Errorf("the server is not confined: no %s in\n%s", want, status)
		}
	}
	if info, err := os.Lstat(socket); err != nil || info.Mode().Type() != os.ModeSocket {
		t.Errorf("the admin socket: %v, %v", info, err)
	}
	token := a.Token("reader", "--name", "r")
	if got := s.Get("/hello", token); got.Status != 200 {
		t.Errorf("%d %s", got.Status, got.Body)
	}
	if got := s.Do("POST", "/hook", "{}", harness.SignedStandard("msg_1", time.Now(), "{}")...); got.Status != 200 {
		t.Errorf("a signed delivery, with the secret of the credential: %d %s", got.Status, got.Body)
	}
	a.Write("app.schema", confinedSchema+"// changed\n")
	a.Must("reload")
	a.Must("backup", filepath.Join(run, "b"))
	a.Must("backup", "verify", filepath.Join(run, "b"), "--dir", run)
	if got := s.Get("/hello", token); got.Status != 200 {
		t.Errorf("after a reload: %d %s", got.Status, got.Body)
	}
	if limits.Writable != nil {
		if r := a.Run("backup", a.Path("b")); r.Status != 1 || !strings.Contains(r.Stderr, "read-only") {
			t.Errorf("the file system can be written to: %d %s", r.Status, r.Stderr)
		}
	}
	s.Stop()
	if _, err := os.Lstat(filepath.Join(data, "runner.sock")); !os.IsNotExist(err) {
		t.Errorf("the link to the socket is left: %v", err)
	}
	if log := s.Stderr.String(); strings.Contains(log, "optimization disabled") {
		t.Logf("the server is slower under these limits:\n%s", bytes.TrimSpace([]byte(log)))
	}
}
