package admin

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// socketName is the name of the socket in the data directory.
const socketName = "runner.sock"

// ErrNoServer means that no server answers for a data directory: the socket does not exist,
// or a server that was killed has left it.
var ErrNoServer = errors.New("no server is running on this data directory")

// Listen opens the socket of the data directory dir for the server that has its store open.
// A socket that another server has left there is replaced. Connections of users other than
// the process's own and root are closed before they are accepted. Closing the listener
// removes the socket.
func Listen(dir string) (net.Listener, error) {
	directory, path, err := socketPath(dir)
	if err != nil {
		return nil, err
	}
	ln, err := listen(path)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("listen on the socket %s of data directory %q: %w", socketName, dir, err), directory.Close())
	}
	return &listener{UnixListener: ln, directory: directory}, nil
}

func listen(path string) (*net.UnixListener, error) {
	info, err := os.Lstat(path)
	switch {
	case err == nil && info.Mode().Type() != fs.ModeSocket:
		return nil, errors.New("a file that is not a socket has that name: move it away")
	case err == nil:
		if err := os.Remove(path); err != nil {
			return nil, err
		}
	}
	// Linux creates the socket's file with the mode of the socket, so it never exists with
	// another one.
	config := net.ListenConfig{Control: func(_, _ string, raw syscall.RawConn) error {
		var chmod error
		err := raw.Control(func(fd uintptr) { chmod = unix.Fchmod(int(fd), 0o600) })
		return errors.Join(err, chmod)
	}}
	ln, err := config.Listen(context.Background(), "unix", path)
	if err != nil {
		return nil, err
	}
	return ln.(*net.UnixListener), nil
}

// socketPath returns a path to the socket that is short for every directory: the address of
// a Unix socket holds 107 bytes. It is valid while directory is open.
func socketPath(dir string) (directory *os.File, path string, err error) {
	directory, err = os.Open(dir)
	if err != nil {
		return nil, "", err
	}
	return directory, fmt.Sprintf("/proc/self/fd/%d/%s", directory.Fd(), socketName), nil
}

// listener accepts connections of the server's own user and of root.
type listener struct {
	*net.UnixListener
	directory *os.File
}

// Accept waits for the next connection of a permitted user.
func (l *listener) Accept() (net.Conn, error) {
	for {
		conn, err := l.AcceptUnix()
		if err != nil {
			return nil, err
		}
		if uid, err := uidOf(conn); err == nil && mayAsk(uid) {
			return &operatorConn{Conn: conn, uid: uid}, nil
		}
		_ = conn.Close() // other users get no answer
	}
}

// Close stops listening and removes the socket.
func (l *listener) Close() error {
	return errors.Join(l.UnixListener.Close(), l.directory.Close())
}

// operatorConn is a connection with the uid of its peer.
type operatorConn struct {
	net.Conn
	uid uint32
}

func mayAsk(uid uint32) bool { return uid == 0 || uid == uint32(os.Geteuid()) }

// uidOf returns the uid of the process at the other end, from the kernel.
func uidOf(conn *net.UnixConn) (uint32, error) {
	raw, err := conn.SyscallConn()
	if err != nil {
		return 0, err
	}
	var cred *unix.Ucred
	var credErr error
	err = raw.Control(func(fd uintptr) {
		cred, credErr = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED)
	})
	if err := errors.Join(err, credErr); err != nil {
		return 0, err
	}
	return cred.Uid, nil
}

// dial connects to the socket of the data directory dir. The error matches ErrNoServer when
// no server answers.
func dial(ctx context.Context, dir string) (net.Conn, error) {
	directory, path, err := socketPath(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, ErrNoServer
	}
	if err != nil {
		return nil, err
	}
	defer directory.Close()
	var d net.Dialer
	conn, err := d.DialContext(ctx, "unix", path)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ECONNREFUSED) {
		return nil, ErrNoServer
	}
	return conn, err
}
