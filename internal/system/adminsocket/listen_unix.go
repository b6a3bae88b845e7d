//go:build unix

package adminsocket

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"syscall"

	"golang.org/x/sys/unix"

	"runner.example/internal/system/process"
)

// Listener accepts connections of the process's own user and of root.
type Listener struct {
	socket *net.UnixListener
	place  *place
	link   string // empty: there is none
}

// Listen listens at that name in the directory dir. What another listener has left there is replaced. The error says
// that a file of another kind has the name.
func Listen(dir, name string) (*Listener, error) {
	at, err := placeOf(dir, name)
	if err != nil {
		return nil, err
	}
	socket, err := listen(at.path)
	if err != nil {
		return nil, errors.Join(err, at.close())
	}
	return &Listener{socket: socket, place: at}, nil
}

// remove removes a socket that another listener has left, or a link to one.
func remove(path string) error {
	info, err := os.Lstat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return err
	case info.Mode().Type() != fs.ModeSocket && info.Mode().Type() != fs.ModeSymlink:
		return errors.New("a file that is not a socket has that name: move it away")
	}
	return os.Remove(path)
}

func listen(path string) (*net.UnixListener, error) {
	if err := remove(path); err != nil {
		return nil, err
	}
	config := net.ListenConfig{Control: func(_, _ string, raw syscall.RawConn) error {
		var failed error
		err := raw.Control(func(fd uintptr) { failed = beforeBind(int(fd)) })
		return errors.Join(err, failed)
	}}
	ln, err := config.Listen(context.Background(), "unix", path)
	if err != nil {
		return nil, err
	}
	if err := afterBind(path); err != nil {
		return nil, errors.Join(err, ln.Close())
	}
	return ln.(*net.UnixListener), nil
}

// LinkFrom makes path another name of the listener, which is at elsewhere. Close removes it.
func (l *Listener) LinkFrom(path, elsewhere string) error {
	if err := errors.Join(remove(path), os.Symlink(elsewhere, path)); err != nil {
		return err
	}
	l.link = path
	return nil
}

// Accept waits for the next connection of a permitted user, a *Conn. Those of other users are closed.
func (l *Listener) Accept() (net.Conn, error) {
	for {
		conn, err := l.socket.AcceptUnix()
		if err != nil {
			return nil, err
		}
		if uid, err := peerOf(conn); err == nil && mayConnect(uid) {
			return &Conn{Conn: conn, User: process.UserOf(uid)}, nil
		}
		_ = conn.Close() // other users get no answer
	}
}

func mayConnect(uid uint32) bool { return uid == 0 || uid == uint32(os.Geteuid()) }

// peerOf returns the user of the process at the other end, from the kernel.
func peerOf(conn *net.UnixConn) (uid uint32, err error) {
	raw, err := conn.SyscallConn()
	if err != nil {
		return 0, err
	}
	var failed error
	err = raw.Control(func(fd uintptr) { uid, failed = peerUser(int(fd)) })
	return uid, errors.Join(err, failed)
}

// Addr returns the address of the socket.
func (l *Listener) Addr() net.Addr { return l.socket.Addr() }

// Close stops listening and removes the name and the link to it.
func (l *Listener) Close() error {
	err := errors.Join(l.socket.Close(), l.place.close())
	if l.link != "" {
		err = errors.Join(err, os.Remove(l.link))
	}
	return err
}

// Dial connects to the listener at that name in dir. The error matches ErrNone if there is no listener. A listener of
// another user is refused, unless dir belongs to that user.
func Dial(ctx context.Context, dir, name string) (net.Conn, error) {
	at, err := placeOf(dir, name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, ErrNone
	}
	if err != nil {
		return nil, err
	}
	defer at.close()
	var d net.Dialer
	conn, err := d.DialContext(ctx, "unix", at.path)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ECONNREFUSED) {
		return nil, ErrNone
	}
	if err != nil {
		return nil, err
	}
	if err := checkServer(conn.(*net.UnixConn), dir); err != nil {
		return nil, errors.Join(fmt.Errorf("connect to %q: %w", filepath.Join(dir, name), err), conn.Close())
	}
	return conn, nil
}

// checkServer checks who listens at the other end. A link that a killed listener has left may lead to where another
// user can create a socket.
func checkServer(conn *net.UnixConn, dir string) error {
	uid, err := peerOf(conn)
	if err != nil {
		return err
	}
	var have unix.Stat_t
	if err := unix.Stat(dir, &have); err != nil {
		return &fs.PathError{Op: "stat", Path: dir, Err: err}
	}
	if uid != uint32(os.Geteuid()) && uid != have.Uid {
		return fmt.Errorf("a process of another user answers (%s): find out what it is, and remove its socket", process.UserOf(uid))
	}
	return nil
}
