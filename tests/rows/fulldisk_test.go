package rows_test

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"runner.example/tests/harness"
)

func TestAFullDiskRefusesOnlyWrites(t *testing.T) {
	for _, kind := range []string{"tmpfs", "ext4"} {
		t.Run(kind, func(t *testing.T) {
			a := harness.NewApp(t, censusSchema, "", "echo")
			a.Write("build/census.wasm", harness.GoModule(t, harness.Testdata("handlers/census")))
			harness.SmallDisk(t, kind, a.Path("data"), 96<<20)
			filler := a.Path("data/filler")
			key := "X-API-Key: " + a.Token("teller")
			s := a.Serve()
			rows := 0
			add := func() harness.Answer {
				got := s.Do("POST", fmt.Sprintf("/add/item-%d", rows), "", key)
				if got.Status == 200 && got.Body == `"added"` {
					rows++
				}
				return got
			}
			serves := func() {
				t.Helper()
				if got := s.Do("GET", "/count", "", key); got.Status != 200 || got.Body != fmt.Sprint(rows) {
					t.Errorf("the rows: %d %s, want %d", got.Status, got.Body, rows)
				}
				if got := s.Do("GET", "/count", "", "X-API-Key: wrong"); got.Status != 401 {
					t.Errorf("with a wrong key: %d %s", got.Status, got.Body)
				}
				if got := s.Do("GET", "/_health/live", ""); got.Status != 200 {
					t.Errorf("live: %d %s", got.Status, got.Body)
				}
			}
			refuses := func() {
				t.Helper()
				if got := add(); got.Status != 503 || got.Problem(t).Code != "unavailable" || !strings.Contains(got.Problem(t).Detail, "nothing of the request was stored") {
					t.Errorf("a write on a full disk: %d %s", got.Status, got.Body)
				}
				got := s.Do("GET", "/_health/ready", "")
				if got.Status != 503 || got.Problem(t).Code != "not_ready" || !strings.Contains(got.Problem(t).Detail, "disk is full") {
					t.Errorf("ready on a full disk: %d %s", got.Status, got.Body)
				}
				serves()
			}
			for range 3 {
				if got := add(); got.Status != 200 {
					t.Fatalf("a write: %d %s", got.Status, got.Body)
				}
				if got := s.Do("GET", "/_health/ready", ""); got.Status != 200 {
					t.Errorf("ready: %d %s", got.Status, got.Body)
				}
				harness.FillDisk(t, filler)
				refuses()
				if err := os.Remove(filler); err != nil {
					t.Fatal(err)
				}
			}
			for range 20 {
				add()
			}
			harness.FillDisk(t, filler)
			s.Kill()
			s = startOnAFullDisk(t, a)
			if s != nil {
				refuses()
				s.Kill()
			}
			if err := os.Remove(filler); err != nil {
				t.Fatal(err)
			}
			s = a.Serve()
			serves()
			if got := add(); got.Status != 200 {
				t.Errorf("a write when there is room again: %d %s", got.Status, got.Body)
			}
			serves()
		})
	}
}

// startOnAFullDisk starts the server. It returns nil if the server exited, which it must do
// with status 1 and one line.
func startOnAFullDisk(t *testing.T, a *harness.App) *harness.Server {
	t.Helper()
	r := runUntilReady(a, "serve", "--listen", "127.0.0.1:0")
	if r.Status < 0 {
		return a.Serve()
	}
	lines := strings.Split(strings.TrimSpace(r.Stderr), "\n")
	if last := lines[len(lines)-1]; r.Status != 1 || !strings.Contains(last, "disk is full") && !strings.Contains(last, "no space left") {
		t.Errorf("started on a full disk it ends with status %d:\n%s", r.Status, r.Stderr)
	}
	t.Logf("started on a full disk: %s", r.Stderr)
	return nil
}

// runUntilReady starts a command that serves. When it listens, the command is killed and the
// status is -1; otherwise the result is the command's.
func runUntilReady(a *harness.App, args ...string) harness.Result {
	a.T.Helper()
	cmd := exec.Command(harness.Binary, args...)
	cmd.Dir, cmd.Env = a.Dir, append(os.Environ(), a.Env...)
	var stderr strings.Builder
	cmd.Stderr = &stderr
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		a.T.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		a.T.Fatal(err)
	}
	slow := time.AfterFunc(harness.Timeout, func() { _ = cmd.Process.Kill() })
	defer slow.Stop()
	line := make([]byte, 12)
	if n, _ := stdout.Read(line); n > 0 {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		return harness.Result{Status: -1}
	}
	_ = cmd.Wait()
	return harness.Result{Stderr: stderr.String(), Status: cmd.ProcessState.ExitCode()}
}
