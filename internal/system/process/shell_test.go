package process_test

import (
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"strings"
	"testing"

	"runner.example/internal/system/process"
)

// self is this test's own program as a word of a shell, as every system has it.
func self(t *testing.T) string {
	t.Helper()
	path, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return `"` + path + `"`
}

func TestAShellRunsALine(t *testing.T) {
	dir := t.TempDir()
	var out strings.Builder
	line := `echo one&& echo "two & three" >&2`
	if err := process.RunShell(t.Context(), dir, line, os.Environ(), &out); err != nil {
		t.Fatal(err)
	}
	if got := out.String(); !strings.HasPrefix(got, "one") || !strings.Contains(got, "two & three") {
		t.Errorf("it printed %q", got)
	}
	err := process.RunShell(t.Context(), dir, "exit 7", os.Environ(), io.Discard)
	if exit, ok := errors.AsType[*exec.ExitError](err); !ok || exit.ExitCode() != 7 {
		t.Errorf("exit 7: %v", err)
	}
}

// TestAnInterruptedShellEndsWithItsProcesses starts itself in a shell, twice: a process that has a child. Each holds the pipe
// until it ends, so the pipe ends with the last of them.
func TestAnInterruptedShellEndsWithItsProcesses(t *testing.T) {
	if os.Getenv("SHELL_DEPTH") != "" {
		waitInShell(t)
		return
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() {
		line := self(t) + " -test.run=^TestAnInterruptedShellEndsWithItsProcesses$"
		ended <- process.RunShell(ctx, t.TempDir(), line, append(os.Environ(), "SHELL_DEPTH=2"), w)
		_ = w.Close()
	}()
	var begun strings.Builder
	for !strings.Contains(begun.String(), "depth 1") {
		part := make([]byte, 100)
		n, err := r.Read(part)
		if err != nil {
			t.Fatalf("%v after %q", err, begun.String())
		}
		begun.Write(part[:n])
	}
	cancel()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("it ended with %v", err)
	}
	if _, err := io.Copy(io.Discard, r); err != nil { // waits for the last process
		t.Error(err)
	}
}

// waitInShell starts a child, and waits for a signal to end it.
func waitInShell(t *testing.T) {
	depth := os.Getenv("SHELL_DEPTH")
	if _, err := os.Stdout.WriteString("depth " + depth + "\n"); err != nil {
		t.Fatal(err)
	}
	if depth == "2" {
		child := exec.Command(os.Args[0], "-test.run=^TestAnInterruptedShellEndsWithItsProcesses$")
		child.Env, child.Stdout = append(os.Environ(), "SHELL_DEPTH=1"), os.Stdout
		_ = child.Run() // the signal ends it
	}
	select {}
}
