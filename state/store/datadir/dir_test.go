package datadir_test

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"runner.example/state/store/datadir"
)

func TestADirectoryIsMadeForItsOwnerAlone(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "a", "b")
	for range 2 {
		if err := datadir.Make(dir); err != nil {
			t.Fatal(err)
		}
		if info, err := os.Stat(dir); err != nil || info.Mode() != fs.ModeDir|0o700 {
			t.Fatalf("the directory has mode %v, %v", info.Mode(), err)
		}
		if err := os.Chmod(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := datadir.Make(file); err == nil {
		t.Error("a file is taken for a directory")
	}
}

func TestADirectoryOfAnotherUserIsRefused(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("only root can give a directory to another user")
	}
	dir := t.TempDir()
	if err := os.Chown(dir, 12345, -1); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	err := datadir.Make(dir)
	if err == nil || !strings.Contains(err.Error(), "belongs to user 12345, and this process runs as user 0") {
		t.Errorf("accepted, or refused with: %v", err)
	}
	if info, err := os.Stat(dir); err != nil || info.Mode().Perm() != 0o755 {
		t.Errorf("its mode was changed to %v, %v", info.Mode(), err)
	}
}

func TestAllFilesAreRestrictedToTheirOwner(t *testing.T) {
	dir := t.TempDir()
	if err := os.MkdirAll(filepath.Join(dir, "a", "b"), 0o755); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"x", "a/y", "a/b/z"} {
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := datadir.Restrict(dir); err != nil {
		t.Fatal(err)
	}
	err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		want := fs.FileMode(0o600)
		if e.IsDir() {
			want = 0o700
		}
		if info, err := e.Info(); err != nil || info.Mode().Perm() != want {
			t.Errorf("%s has mode %v, %v", path, info.Mode(), err)
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

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
	if _, err := datadir.Acquire(dir); !errors.Is(err, datadir.ErrLocked) || !strings.Contains(err.Error(), "another process") {
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

// A child that this process is starting may have a copy of the descriptor. It does not hold the lock.
func TestALockIsReleasedAlsoWhileItsDescriptorHasACopy(t *testing.T) {
	dir := t.TempDir()
	l, err := datadir.Acquire(dir)
	if err != nil {
		t.Fatal(err)
	}
	copies := 0
	open, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range open {
		if target, err := os.Readlink("/proc/self/fd/" + e.Name()); err != nil || target != dir {
			continue
		}
		fd, err := strconv.Atoi(e.Name())
		if err != nil {
			t.Fatal(err)
		}
		held, err := syscall.Dup(fd)
		if err != nil {
			t.Fatal(err)
		}
		defer syscall.Close(held)
		copies++
	}
	if copies == 0 {
		t.Fatal("the descriptor of the lock is not found")
	}
	if err := l.Release(); err != nil {
		t.Fatal(err)
	}
	again, err := datadir.Acquire(dir)
	if err != nil {
		t.Fatal(err)
	}
	if err := again.Release(); err != nil {
		t.Fatal(err)
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
	if _, err := datadir.IsNode(filepath.Join(dir, "file")); err == nil {
		t.Error("a file in place of the directory belongs to no node")
	}
}
