package adminsocket_test

import (
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"runner.example/internal/system/adminsocket"
)

func TestAListenerOfAnotherUserIsRefused(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("only root can be another user")
	}
	const other = 65534
	dir := t.TempDir()
	if err := os.Chmod(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	open, err := os.MkdirTemp("", "runner-") // another user can create a socket there
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(open)
	if err := os.Chmod(open, 0o777); err != nil {
		t.Fatal(err)
	}
	socket := filepath.Join(open, name)
	listening := make(chan net.Listener)
	go func() {
		runtime.LockOSThread() // and never unlocked: the thread ends with its user
		if _, _, errno := unix.RawSyscall(unix.SYS_SETRESUID, other, other, other); errno != 0 {
			t.Error(errno)
		}
		ln, err := net.Listen("unix", socket)
		if err != nil {
			t.Error(err)
		}
		listening <- ln
	}()
	ln := <-listening
	if ln == nil {
		return
	}
	defer ln.Close()
	if err := os.Symlink(socket, filepath.Join(dir, name)); err != nil {
		t.Fatal(err)
	}
	if conn, err := adminsocket.Dial(t.Context(), dir, name); err == nil || !strings.Contains(err.Error(), "another user answers (uid:65534)") {
		t.Errorf("%v, %v", conn, err)
	}
	if err := os.Chown(dir, other, -1); err != nil {
		t.Fatal(err)
	}
	conn, err := adminsocket.Dial(t.Context(), dir, name)
	if err != nil {
		t.Fatalf("in a directory of that user: %v", err)
	}
	_ = conn.Close()
}
