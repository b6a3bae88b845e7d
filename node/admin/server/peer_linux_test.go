package server_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

func TestConnectionsOfOtherUsersAreClosedWithoutAnAnswer(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can become another user")
	}
	dir := t.TempDir()
	serve(t, dir, node(t, dir))
	// Give all users access to the file, so that only the uid of the peer decides.
	path := filepath.Join(dir, "runner.sock")
	for _, step := range []error{os.Chmod(dir, 0o755), os.Chmod(filepath.Dir(dir), 0o755), os.Chmod(path, 0o666)} {
		if step != nil {
			t.Fatal(step)
		}
	}
	if answer, err := askAs(0, path); err != nil || !strings.HasPrefix(answer, "HTTP/1.0 200 ") {
		t.Fatalf("the owner got %q, %v", answer, err)
	}
	answer, err := askAs(65534, path)
	if errors.Is(err, errNoSuchUser) {
		t.Skip("this user namespace has only root")
	}
	if err != nil || answer != "" {
		t.Errorf("another user got %q, %v", answer, err)
	}
}

// errNoSuchUser means that this user namespace does not have the user.
var errNoSuchUser = errors.New("no such user")

// askAs requests the status as the user uid and returns the whole answer.
func askAs(uid int, path string) (string, error) {
	type result struct {
		answer string
		err    error
	}
	done := make(chan result)
	go func() {
		runtime.LockOSThread() // never unlocked: the thread ends with its uid
		var r result
		defer func() { done <- r }()
		fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
		if err != nil {
			r.err = err
			return
		}
		defer unix.Close(fd)
		if _, _, errno := unix.RawSyscall(unix.SYS_SETRESUID, uintptr(uid), uintptr(uid), uintptr(uid)); errno != 0 {
			r.err = fmt.Errorf("become user %d: %w", uid, errno)
			if errno == unix.EINVAL {
				r.err = errNoSuchUser
			}
			return
		}
		if r.err = unix.Connect(fd, &unix.SockaddrUnix{Name: path}); r.err != nil {
			return
		}
		// If the peer has closed the connection, the write fails; the read shows the result.
		_ = unix.Sendto(fd, []byte("POST /status HTTP/1.0\r\nContent-Length: 2\r\n\r\n{}"), unix.MSG_NOSIGNAL, nil)
		buf := make([]byte, 4096)
		n, err := unix.Read(fd, buf)
		if err != nil && !errors.Is(err, unix.ECONNRESET) {
			r.err = err
		}
		r.answer = string(buf[:max(n, 0)])
	}()
	r := <-done
	return r.answer, r.err
}
