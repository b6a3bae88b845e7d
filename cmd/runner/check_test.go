package main

import (
	"bufio"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"runner.example/internal/console"
)

// A check with --watch checks again after each save, of the schema and of the file with the environment, and an interrupt
// ends it with status 0.
func TestCheckWatchesFiles(t *testing.T) {
	dir := t.TempDir()
	app, env := filepath.Join(dir, "app"), filepath.Join(dir, "environment")
	if err := os.Mkdir(app, 0o700); err != nil {
		t.Fatal(err)
	}
	schema := func(text string) { write(t, filepath.Join(app, "a.schema"), "var ORIGIN: string\n"+text) }
	schema("routes(\"/\", auth: none, rateLimit: none) { GET /a -> a }\n")
	write(t, env, "ORIGIN=x\n")
	cmd := exec.Command("runner", "check", "--watch", "--env", env, app)
	read, both := io.Pipe()
	cmd.Stdout, cmd.Stderr = both, both
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines, ended := make(chan string, 1000), make(chan error, 1)
	go func() {
		for scan := bufio.NewScanner(read); scan.Scan(); {
			lines <- scan.Text()
		}
	}()
	go func() {
		ended <- cmd.Wait()
		_ = both.Close()
	}()
	printed := func(want string) {
		t.Helper()
		var seen []string
		for limit := time.After(time.Minute); ; {
			select {
			case line := <-lines:
				if seen = append(seen, line); strings.Contains(line, want) {
					return
				}
			case <-limit:
				t.Fatalf("%q was not printed: %q", want, seen)
			}
		}
	}
	printed("schema is valid (1 route")
	schema("routes(\"/\") { GET /a -> a }\n")
	printed("a.schema changed")
	printed("a.schema:2:15: error[E400]")
	printed("runner: error: 1 error")
	schema("routes(\"/\", auth: none, rateLimit: none) { GET /a -> a  GET /b -> b }\n")
	printed("schema is valid (2 routes")
	write(t, env, "")
	printed("environment changed")
	printed("a.schema:1:5: error")
	if err := cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	select {
	case err := <-ended:
		if err != nil {
			t.Errorf("it ended with %v", err)
		}
	case <-time.After(time.Minute):
		_ = cmd.Process.Kill()
		t.Error("an interrupt does not end it")
	}
}

func TestCheckDoesNotWatchWhatIsMissing(t *testing.T) {
	var stderr strings.Builder
	cmd := exec.Command("runner", "check", "--watch", filepath.Join(t.TempDir(), "nowhere"))
	cmd.Stderr = &stderr
	_ = cmd.Run() // the state has the result
	if got := cmd.ProcessState.ExitCode(); got != console.StatusInvalid || !strings.Contains(stderr.String(), "error: open app directory") {
		t.Errorf("status %d, %s", got, &stderr)
	}
}
