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

// socketName is the socket's name in the data folder.
const socketName = "runner.sock"

// ErrNoServer says that no server answers for a data folder: there is no
// socket, or the one there is was left behind by a server that died.
var ErrNoServer = errors.New("no server is running on this data folder")

// Listen opens the socket of the data folder dir for the server that holds its
// store: whatever socket is there already was left by a dead one and is
// replaced. Connections of other users than the process's own and root are
// closed before they are accepted. Closing the listener removes the socket.
func Listen(dir string) (net.Listener, error) {
	folder, path, err := socketPath(dir)
	if err != nil {
		return nil, err
	}
	ln, err := listen(path)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("listen on the socket %s of data folder %q: %w", socketName, dir, err), folder.Close())
	}
	return &listener{UnixListener: ln, folder: folder}, nil
}

func listen(path string) (*net.UnixListener, error) {
	info, err := os.Lstat(path)
	switch {
	case err == nil && info.Mode().Type() != fs.ModeSocket:
		return nil, errors.New("a file that is no socket has that name: move it away")
	case err == nil:
		if err := os.Remove(path); err != nil {
			return nil, err
		}
	}
	// Linux gives the file the mode of the socket it is bound from, so that it
	// never exists with another one.
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

// socketPath gives a path to the socket that is short whatever the folder is
// called: a socket's address holds 107 bytes. It is good while folder is open.
func socketPath(dir string) (folder *os.File, path string, err error) {
	folder, err = os.Open(dir)
	if err != nil {
		return nil, "", err
	}
	return folder, fmt.Sprintf("/proc/self/fd/%d/%s", folder.Fd(), socketName), nil
}

// listener accepts the server's own user and root.
type listener struct {
	*net.UnixListener
	folder *os.File
}

// Accept waits for the next connection of a user who may ask.
func (l *listener) Accept() (net.Conn, error) {
	for {
		conn, err := l.AcceptUnix()
		if err != nil {
			return nil, err
		}
		if uid, err := peer(conn); err == nil && mayAsk(uid) {
			return &operatorConn{Conn: conn, uid: uid}, nil
		}
		_ = conn.Close() // a stranger is told nothing
	}
}

// Close stops listening and removes the socket.
func (l *listener) Close() error {
	return errors.Join(l.UnixListener.Close(), l.folder.Close())
}

// operatorConn is a connection of a user known by uid.
type operatorConn struct {
	net.Conn
	uid uint32
}

func mayAsk(uid uint32) bool { return uid == 0 || uid == uint32(os.Geteuid()) }

// peer asks the kernel whose process is at the other end.
func peer(conn *net.UnixConn) (uint32, error) {
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

// dial connects to the socket of the data folder dir. The error matches
// ErrNoServer when none answers.
func dial(ctx context.Context, dir string) (net.Conn, error) {
	folder, path, err := socketPath(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, ErrNoServer
	}
	if err != nil {
		return nil, err
	}
	defer folder.Close()
	var d net.Dialer
	conn, err := d.DialContext(ctx, "unix", path)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ECONNREFUSED) {
		return nil, ErrNoServer
	}
	return conn, err
}
