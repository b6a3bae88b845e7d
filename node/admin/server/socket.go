package server

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"runner.example/internal/fault"
	"runner.example/node/admin"
)

// SocketServer answers operators over the socket.
type SocketServer struct {
	responder
	http *http.Server
}

// NewSocketServer returns a server that runs operations on local. It logs operations that failed;
// logger may be nil.
func NewSocketServer(local *Local, logger *slog.Logger) *SocketServer {
	s := &SocketServer{responder: newResponder(local, logger)}
	s.http = &http.Server{
		Handler:           s,
		ReadHeaderTimeout: idle, IdleTimeout: idle,
		ErrorLog: slog.NewLogLogger(s.logger.Handler(), slog.LevelWarn),
		ConnContext: func(ctx context.Context, conn net.Conn) context.Context {
			return context.WithValue(ctx, operatorKey{}, conn.(*operatorConn).uid)
		},
	}
	return s
}

// operatorKey is the key of the peer's uid in the context of a connection.
type operatorKey struct{}

// Serve answers on ln, which Listen returned, until Shutdown; then it returns nil.
func (s *SocketServer) Serve(ln net.Listener) error {
	if err := s.http.Serve(ln); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serve operators on the socket: %w", err)
	}
	return nil
}

// Shutdown stops listening, removes the socket and waits, no longer than ctx,
// for operations in flight.
func (s *SocketServer) Shutdown(ctx context.Context) error { return s.http.Shutdown(ctx) }

// ServeHTTP runs the operation that the path names: POST /<operation> with the arguments as
// JSON. The answer is the result, or a refusal with its code. A backup is a stream. PUT
// /blobs/<sha256> takes a file of a release.
func (s *SocketServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path == "/"+admin.OpBackup.Name && r.Method == http.MethodPost {
		_ = s.sendBackup(w, r) // it has answered
		return
	}
	result, err := s.answer(w, r)
	if err != nil {
		s.refuse(w, r, err)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(result) // the client may have closed the connection
}

func (s *SocketServer) answer(w http.ResponseWriter, r *http.Request) ([]byte, error) {
	if r.URL.Path == "/"+admin.BatchPath && r.Method == http.MethodPut {
		blobs, err := readBatch(r)
		if err == nil {
			err = s.local.Store.PutBlobs(r.Context(), blobs)
		}
		if err != nil {
			return nil, err
		}
		return []byte("{}\n"), nil
	}
	if digest, ok := strings.CutPrefix(r.URL.Path, "/"+admin.BlobPath); ok && r.Method == http.MethodPut {
		f, err := uploadOf(r, digest)
		if err == nil {
			err = s.local.put(r.Context(), f, r.Body)
		}
		if err != nil {
			return nil, err
		}
		return []byte("{}\n"), nil
	}
	if r.Method != http.MethodPost {
		w.Header().Set("Allow", http.MethodPost)
		return nil, fault.New(fault.MethodNotAllowed, "the method must be POST, not %s", r.Method)
	}
	args, err := readArguments(r, admin.MaxMessage)
	if err != nil {
		return nil, err
	}
	return s.local.do(r.Context(), userOperator(r.Context().Value(operatorKey{}).(uint32)), strings.TrimPrefix(r.URL.Path, "/"), args)
}

// Listen opens the socket of the data directory dir for the server that has its store open. If
// elsewhere is not empty, the socket has that path, and dir gets a link to it. A socket that another
// server has left there is replaced. Connections of users other than the process's own and root are
// closed before they are accepted. Closing the listener removes the socket and the link.
func Listen(dir, elsewhere string) (net.Listener, error) {
	if elsewhere == "" {
		return listenIn(dir, admin.SocketName, fmt.Sprintf("%s of data directory %q", admin.SocketName, dir))
	}
	ln, err := listenIn(filepath.Dir(elsewhere), filepath.Base(elsewhere), fmt.Sprintf("%q, which [admin] socket names", elsewhere))
	if err != nil {
		return nil, err
	}
	link := filepath.Join(dir, admin.SocketName)
	if err := errors.Join(removeSocket(link), os.Symlink(elsewhere, link)); err != nil {
		return nil, errors.Join(fmt.Errorf("link %q to the socket %q: %w", link, elsewhere, err), ln.Close())
	}
	ln.link = link
	return ln, nil
}

// listenIn opens the socket with that name in a directory. what names it in an error.
func listenIn(dir, name, what string) (*listener, error) {
	directory, path, err := admin.ShortPath(dir, name)
	if err != nil {
		return nil, fmt.Errorf("listen on the socket %s: %w", what, err)
	}
	ln, err := listen(path)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("listen on the socket %s: %w", what, err), directory.Close())
	}
	return &listener{UnixListener: ln, directory: directory}, nil
}

// removeSocket removes a socket that another server has left, or a link to one.
func removeSocket(path string) error {
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
	if err := removeSocket(path); err != nil {
		return nil, err
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

// listener accepts connections of the server's own user and of root.
type listener struct {
	*net.UnixListener
	directory *os.File
	link      string // to the socket; empty: there is none
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

// Close stops listening and removes the socket and the link to it.
func (l *listener) Close() error {
	err := errors.Join(l.UnixListener.Close(), l.directory.Close())
	if l.link != "" {
		err = errors.Join(err, os.Remove(l.link))
	}
	return err
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
