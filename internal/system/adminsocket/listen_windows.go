package adminsocket

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"

	"github.com/Microsoft/go-winio"
	"golang.org/x/sys/windows"

	"runner.example/internal/system/process"
)

// prefix begins the name of each pipe.
const prefix = `\\.\pipe\runner-`

// Listener accepts connections of the process's own user.
type Listener struct {
	pipe  net.Listener
	name  string
	files []string // that have the name
}

// Listen listens at that name in the directory dir. What another listener has left there is replaced. The error says
// that a file of another kind has the name.
func Listen(dir, name string) (*Listener, error) {
	l := &Listener{name: prefix + rand.Text()}
	var err error
	l.pipe, err = winio.ListenPipe(l.name, &winio.PipeConfig{
		SecurityDescriptor: "D:P(A;;GA;;;" + process.SID() + ")", // all rights to this user, and none to others
	})
	if err != nil {
		return nil, err
	}
	if err := l.writeName(filepath.Join(dir, name)); err != nil {
		return nil, errors.Join(err, l.pipe.Close())
	}
	return l, nil
}

// writeName creates a file with the name of the pipe.
func (l *Listener) writeName(path string) error {
	if have, err := os.ReadFile(path); err == nil && !strings.HasPrefix(string(have), prefix) {
		return errors.New("a file that is not of a server has that name: move it away")
	}
	if err := os.WriteFile(path, []byte(l.name), 0o600); err != nil {
		return err
	}
	l.files = append(l.files, path)
	return nil
}

// LinkFrom makes path another name of the listener. Close removes it.
func (l *Listener) LinkFrom(path, _ string) error { return l.writeName(path) }

// Accept waits for the next connection of a permitted user, a *Conn. Windows refuses those of other users.
func (l *Listener) Accept() (net.Conn, error) {
	conn, err := l.pipe.Accept()
	if errors.Is(err, winio.ErrPipeListenerClosed) {
		return nil, net.ErrClosed
	}
	if err != nil {
		return nil, err
	}
	return &Conn{Conn: conn, User: process.User()}, nil
}

// Addr returns the address of the pipe.
func (l *Listener) Addr() net.Addr { return l.pipe.Addr() }

// Close stops listening and removes the names.
func (l *Listener) Close() error {
	err := l.pipe.Close()
	for _, file := range l.files {
		err = errors.Join(err, os.Remove(file))
	}
	l.files = nil
	return err
}

// Dial connects to the listener at that name in dir. The error matches ErrNone if nobody listens there.
func Dial(ctx context.Context, dir, name string) (net.Conn, error) {
	path := filepath.Join(dir, name)
	pipe, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, ErrNone
	}
	if err != nil {
		return nil, err
	}
	if !strings.HasPrefix(string(pipe), prefix) {
		return nil, fmt.Errorf("%q is not of a server: move it away", path)
	}
	conn, err := winio.DialPipeContext(ctx, string(pipe))
	if errors.Is(err, windows.ERROR_FILE_NOT_FOUND) {
		return nil, ErrNone
	}
	return conn, err
}
