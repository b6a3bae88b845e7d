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
	"regexp"
	"strings"
	"time"

	"golang.org/x/sys/windows"

	"runner.example/internal/system/process"
	"runner.example/internal/wait"
)

// prefix begins the name of each pipe.
const prefix = `\\.\pipe\runner-`

// pipeName is what newName returns. Others could lead to a file: Windows resolves ".." in the name of a pipe.
var pipeName = regexp.MustCompile(`^` + regexp.QuoteMeta(prefix) + `[A-Z2-7]+$`)

// newName returns a random name, which cannot be guessed.
func newName() string { return prefix + rand.Text() }

// readName returns the name of a pipe that a file has. It is empty if the file is: a machine that lost power may leave
// a file without its content, which is then empty or zeros.
func readName(path string) (string, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return "", err
	}
	name := strings.TrimRight(string(text), "\x00")
	if name != "" && !pipeName.MatchString(name) {
		return "", fmt.Errorf("%q is not a file of a server: move it away", path)
	}
	return name, nil
}

// Listener accepts connections of the process's own user.
type Listener struct {
	pipes *pipes
	name  string
	files []string // that have the name
}

// Listen listens at that name in the directory dir. What another listener has left there is replaced. The error says
// that a file of another kind has the name.
func Listen(dir, name string) (*Listener, error) {
	l := &Listener{name: newName()}
	var err error
	if l.pipes, err = listenPipe(l.name); err != nil {
		return nil, err
	}
	if err := l.writeName(filepath.Join(dir, name)); err != nil {
		return nil, errors.Join(err, l.pipes.close())
	}
	return l, nil
}

// writeName creates a file with the name of the pipe.
func (l *Listener) writeName(path string) error {
	if _, err := readName(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
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
	conn, err := l.pipes.accept()
	if err != nil {
		return nil, err
	}
	return &Conn{Conn: conn, User: process.User()}, nil
}

// Addr returns the name of the pipe.
func (l *Listener) Addr() net.Addr { return address(l.name) }

// Close stops listening and removes the names.
func (l *Listener) Close() error {
	err := l.pipes.close()
	for _, file := range l.files {
		if have, failed := readName(file); failed == nil && have == l.name { // it may be another listener's now
			err = errors.Join(err, os.Remove(file))
		}
	}
	l.files = nil
	return err
}

// busy is how often Dial tries again while other clients connect.
const busy = 5 * time.Millisecond

// Dial connects to the listener at that name in dir. The error matches ErrNone if there is no listener. A listener of
// another user is refused.
func Dial(ctx context.Context, dir, name string) (net.Conn, error) {
	path := filepath.Join(dir, name)
	pipe, err := readName(path)
	switch {
	case errors.Is(err, fs.ErrNotExist), err == nil && pipe == "":
		return nil, ErrNone
	case err != nil:
		return nil, err
	}
	for {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		conn, err := dialPipe(pipe)
		switch {
		case errors.Is(err, windows.ERROR_FILE_NOT_FOUND):
			return nil, ErrNone
		case errors.Is(err, errForeign):
			return nil, fmt.Errorf("connect to the pipe that %q names: %w: find out who has written that file, and remove it", path, errForeign)
		case errors.Is(err, windows.ERROR_PIPE_BUSY):
			if err := wait.For(ctx, busy); err != nil {
				return nil, err
			}
		default:
			return conn, err
		}
	}
}
