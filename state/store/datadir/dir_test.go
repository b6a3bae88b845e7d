package datadir_test

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"runner.example/state/store/datadir"
)

// lockEnv makes the test's process lock the directory, and wait.
const lockEnv = "DATADIR_TEST_LOCK"

func TestMain(m *testing.M) {
	if dir := os.Getenv(lockEnv); dir != "" {
		_, err := datadir.Acquire(dir)
		fmt.Println(err)
		_, _ = os.Stdin.Read(make([]byte, 1))
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// holder starts a process that holds the lock.
func holder(t *testing.T, dir string) (pid int, kill func()) {
	t.Helper()
	child := exec.Command(os.Args[0])
	child.Env = append(os.Environ(), lockEnv+"="+dir)
	if _, err := child.StdinPipe(); err != nil { // it waits for the end of it
		t.Fatal(err)
	}
	out, err := child.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	var line string
	if _, err := fmt.Fscanln(out, &line); err != nil || line != "<nil>" {
		t.Fatalf("the other process: %q, %v", line, err)
	}
	return child.Process.Pid, func() {
		_ = child.Process.Kill()
		_ = child.Wait()
	}
}

func TestADirectoryHasOneHolder(t *testing.T) {
	dir := t.TempDir()
	pid, kill := holder(t, dir)
	for name, acquire := range map[string]func(string) (*datadir.Lock, error){"Acquire": datadir.Acquire, "AcquireUnchanged": datadir.AcquireUnchanged} {
		if _, err := acquire(dir); !errors.Is(err, datadir.ErrLocked) || err.Error() != fmt.Sprintf("locked by pid %d", pid) {
			t.Errorf("%s beside another process: %v", name, err)
		}
	}
	kill() // the lock ends with its process

	l, err := datadir.AcquireUnchanged(dir)
	if err != nil {
		t.Fatal(err)
	}
	if text, err := os.ReadFile(filepath.Join(dir, "lock")); err != nil || string(text) != fmt.Sprintln(pid) {
		t.Errorf("AcquireUnchanged has written %q, %v", text, err)
	}
	if err := os.Remove(filepath.Join(dir, "lock")); err != nil { // it only names the holder
		t.Fatal(err)
	}
	if _, err := datadir.Acquire(dir); !errors.Is(err, datadir.ErrLocked) || runtime.GOOS != "windows" && !strings.Contains(err.Error(), "another process") {
		t.Errorf("locked twice by one process: %v", err)
	}
	if err := l.Release(); err != nil {
		t.Fatal(err)
	}
	l, err = datadir.Acquire(dir)
	if err != nil {
		t.Fatal(err)
	}
	if text, err := os.ReadFile(filepath.Join(dir, "lock")); err != nil || string(text) != fmt.Sprintln(os.Getpid()) {
		t.Errorf("the file names %q, %v", text, err)
	}
	if err := l.Release(); err != nil {
		t.Fatal(err)
	}
	if err := l.Release(); err == nil {
		t.Error("released twice")
	}
	if _, err := datadir.Acquire(filepath.Join(dir, "missing")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a directory that is not there: %v", err)
	}
}

func TestADirectoryRemembersWhetherItBelongsToANode(t *testing.T) {
	dir := t.TempDir()
	for _, node := range []bool{false, true, true, false, false} {
		if err := datadir.SetNode(dir, node); err != nil {
			t.Fatal(err)
		}
		if got, err := datadir.IsNode(dir); err != nil || got != node {
			t.Errorf("it is a node: %v, %v; want %v", got, err, node)
		}
	}
	if err := datadir.SetNode(filepath.Join(dir, "missing"), true); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a directory that is not there: %v", err)
	}
	if err := os.WriteFile(filepath.Join(dir, "file"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := datadir.IsNode(filepath.Join(dir, "file")); err == nil && runtime.GOOS != "windows" { // Windows says that it does not exist
		t.Error("a file in place of the directory belongs to no node")
	}
}
