package docs_test

import (
	"bufio"
	"encoding/json"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"runner.example/tests/harness"
)

// The commands of the image run here with its variables: its server waits for a release, since no app is there,
// and the health check passes while it runs.
func TestTheCommandsOfTheImageServeAndCheckTheServer(t *testing.T) {
	file := harness.MustRead(t, harness.RepoFile("Dockerfile"))
	data := t.TempDir()
	here := strings.NewReplacer("0.0.0.0:8080", "127.0.0.1:0", "/data", data)
	list := func(instruction string) (words []string) {
		m := regexp.MustCompile(`(?m)^` + instruction + ` (\[.*\])$`).FindStringSubmatch(file)
		if m == nil {
			t.Fatalf("the Dockerfile has no %s", instruction)
		}
		if err := json.Unmarshal([]byte(here.Replace(m[1])), &words); err != nil {
			t.Fatal(err)
		}
		return words
	}
	env := os.Environ()
	for _, m := range regexp.MustCompile(`(RUNNER_\w+)=(\S+)`).FindAllStringSubmatch(file, -1) {
		env = append(env, m[1]+"="+here.Replace(m[2]))
	}
	if entry := list("ENTRYPOINT"); len(entry) != 1 || entry[0] != "runner" {
		t.Fatalf("the entry point is %q", entry)
	}
	command := func(args []string) *exec.Cmd {
		cmd := exec.Command(harness.Binary, args...)
		cmd.Dir, cmd.Env = t.TempDir(), env
		return cmd
	}
	check := list("HEALTHCHECK CMD")[1:]

	if out, err := command(check).CombinedOutput(); err == nil {
		t.Errorf("the health check passes without a server: %s", out)
	}
	server := command(list("CMD"))
	var stderr harness.LockedBuffer
	server.Stderr = &stderr
	stdout, err := server.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	stuck := time.AfterFunc(time.Minute, func() { _ = server.Process.Kill() })
	defer stuck.Stop()
	line, err := bufio.NewReader(stdout).ReadString('\n')
	if err != nil || !strings.HasPrefix(line, "listening on http://127.0.0.1:") {
		t.Errorf("the server printed %q, %v: %s", line, err, stderr.String())
	}
	if out, err := command(check).CombinedOutput(); err != nil || !strings.Contains(string(out), "no release is active") {
		t.Errorf("the health check of a running server: %v: %s", err, out)
	}
	if err := server.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := server.Wait(); err != nil {
		t.Errorf("the server ended with %v: %s", err, stderr.String())
	}
}
