package docs_test

import (
	"bufio"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"runner.example/tests/harness"
)

// demoNeeds are the only commands that the demo may use: no compiler other than Go's.
var demoNeeds = strings.Fields("go make curl npm node bash sh git env sed grep mkdir mktemp mv rm sleep tar gzip install sha256sum dirname realpath cat")

// onlyCommands returns a directory for PATH that has only these commands.
func onlyCommands(t *testing.T, names []string) string {
	t.Helper()
	dir := t.TempDir()
	for _, name := range names {
		path, err := exec.LookPath(name)
		if err != nil {
			t.Fatalf("the tests need %s: %v", name, err)
		}
		if err := os.Symlink(path, filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// The test runs make demo, types the commands that it prints, and compares the output with
// docs/demo.md.
func TestTheDemoServesTheExampleAndItsCommandsWork(t *testing.T) {
	cmd := exec.Command("make", "-s", "-C", harness.RepoFile("."), "demo")
	cmd.Env = append(os.Environ(), "PATH="+onlyCommands(t, demoNeeds), "DEMO_LISTEN=127.0.0.1:0", "DEMO_DATA="+t.TempDir())
	cmd.SysProcAttr = harness.InOwnGroup() // Ctrl-C reaches the whole group
	var stderr harness.LockedBuffer
	cmd.Stderr = &stderr
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	stuck := time.AfterFunc(5*time.Minute, func() { harness.KillGroup(cmd.Process.Pid) })
	defer stuck.Stop()

	var lines []string
	screen := bufio.NewScanner(stdout)
	for screen.Scan() {
		if line := strings.TrimSpace(screen.Text()); strings.HasPrefix(line, "curl ") {
			lines = append(lines, line)
		} else if strings.HasPrefix(line, "Ctrl-C") {
			break
		}
	}
	want := []struct{ status, body string }{
		{"200", `"number":"A-1001"`}, {"201", `"total":"12.50"`}, {"409", `"conflict"`}, {"400", `"invalid_input"`},
		{"403", `"insufficient_scope"`}, {"401", `"missing_credentials"`}, {"200", `"settled":1`}, {"200", `"status":"paid"`},
		{"200", `"code":"acme"`}, {"200", `"token":"ord_`},
	}
	if len(lines) != len(want) {
		t.Errorf("the demo printed %d lines to try, want %d\n%s", len(lines), len(want), stderr.String())
	}
	var bodies []string
	for i, line := range lines {
		out, err := exec.Command("bash", "-c", line+` -s -w '\n%{http_code}'`).CombinedOutput()
		body, status, _ := strings.Cut(string(out), "\n")
		bodies = append(bodies, body)
		if err != nil || status != want[i].status || !strings.Contains(body, want[i].body) {
			t.Errorf("%s\n%v, status %s, want %s with %s:\n%s", line, err, status, want[i].status, want[i].body, body)
		}
	}
	for _, answer := range readmeAnswers(t) {
		if !slices.ContainsFunc(bodies, func(body string) bool { return isShortened(answer, body) }) {
			t.Errorf("README.md has an answer that the demo does not give:\n%s\n%s", answer, strings.Join(bodies, "\n"))
		}
	}
	page, err := os.ReadFile(harness.RepoFile("docs/demo.md"))
	if err != nil {
		t.Fatal(err)
	}
	said := regexp.MustCompile(`(?m)# (\d\d\d),`).FindAllStringSubmatch(string(page), -1)
	if len(said) != len(want) {
		t.Fatalf("docs/demo.md has %d commands, the demo %d", len(said), len(want))
	}
	for i := range said {
		if said[i][1] != want[i].status {
			t.Errorf("docs/demo.md has %s for command %d, which answers %s", said[i][1], i+1, want[i].status)
		}
	}

	harness.InterruptGroup(t, cmd.Process.Pid)
	for screen.Scan() {
	}
	err = cmd.Wait() // make reports the interrupt; the server must exit cleanly
	if log := stderr.String(); strings.Contains(log, "panic") || strings.Contains(log, "Error 1") || !strings.Contains(log, `"msg":"stopping"`) {
		t.Errorf("the demo ended badly: %v\n%s", err, log)
	}
}

// readmeAnswers returns the answers of the demo in README.md, each as one line.
func readmeAnswers(t *testing.T) (all []string) {
	t.Helper()
	_, text, _ := strings.Cut(harness.MustRead(t, harness.RepoFile("README.md")), "```console\n")
	text, _, _ = strings.Cut(text, "```")
	for part := range strings.SplitSeq(text, "\n\n") {
		lines := strings.Split(strings.TrimSpace(part), "\n")
		for i := range lines {
			lines[i] = strings.TrimSpace(lines[i])
		}
		all = append(all, strings.Join(lines[1:], "")) // the first one is the command
	}
	if len(all) < 3 {
		t.Errorf("README.md has %d answers of the demo", len(all))
	}
	return all
}

// isShortened reports whether short is text with some of it replaced by "…".
func isShortened(short, text string) bool {
	parts := strings.Split(short, "…")
	for i, part := range parts {
		at := strings.Index(text, part)
		if at < 0 || i == 0 && at > 0 {
			return false
		}
		text = text[at+len(part):]
	}
	return text == "" // what ends with "…" has a last part
}
