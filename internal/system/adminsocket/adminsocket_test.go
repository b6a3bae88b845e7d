package adminsocket_test

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"runner.example/internal/system/adminsocket"
	"runner.example/internal/system/process"
)

const name = "test.sock"

func listen(t *testing.T, dir string) *adminsocket.Listener {
	t.Helper()
	ln, err := adminsocket.Listen(dir, name)
	if err != nil {
		t.Fatal(err)
	}
	return ln
}

// echo answers each connection with the user of its peer and what it sent until then.
func echo(ln *adminsocket.Listener) (ended <-chan error) {
	done := make(chan error, 1)
	go func() {
		for {
			conn, err := ln.Accept()
			if err != nil {
				done <- err
				return
			}
			line := make([]byte, 5)
			if _, err := io.ReadFull(conn, line); err == nil {
				_, _ = io.WriteString(conn, conn.(*adminsocket.Conn).User+" "+string(line))
			}
			_ = conn.Close()
		}
	}()
	return done
}

func ask(t *testing.T, dir, at string) string {
	t.Helper()
	conn, err := adminsocket.Dial(t.Context(), dir, at)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := io.WriteString(conn, "hello"); err != nil {
		t.Fatal(err)
	}
	answer, err := io.ReadAll(conn)
	if err != nil {
		t.Fatal(err)
	}
	return string(answer)
}

func TestAPeerIsNamed(t *testing.T) {
	dir := t.TempDir()
	ln := listen(t, dir)
	ended := echo(ln)
	want := process.User() + " hello"
	for range 3 {
		if got := ask(t, dir, name); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	link := filepath.Join(dir, "link.sock")
	if err := ln.LinkFrom(link, filepath.Join(dir, name)); err != nil {
		t.Fatal(err)
	}
	if got := ask(t, dir, "link.sock"); got != want {
		t.Errorf("by the link: got %q, want %q", got, want)
	}
	if err := ln.Close(); err != nil {
		t.Error(err)
	}
	if err := <-ended; !errors.Is(err, net.ErrClosed) {
		t.Errorf("Accept after Close: %v", err)
	}
	if left, _ := os.ReadDir(dir); len(left) > 0 {
		t.Errorf("Close left %v", left)
	}
}

// A command first tests for a listener, and closes that connection at once.
func TestAClientMayLeaveBeforeItIsAccepted(t *testing.T) {
	dir := t.TempDir()
	ln := listen(t, dir)
	defer ln.Close()
	conn, err := adminsocket.Dial(t.Context(), dir, name)
	if err != nil {
		t.Fatal(err)
	}
	if err := conn.Close(); err != nil {
		t.Fatal(err)
	}
	echo(ln)
	if got, want := ask(t, dir, name), process.User()+" hello"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestNobodyListens(t *testing.T) {
	dir := t.TempDir()
	for _, at := range []string{dir, filepath.Join(dir, "none")} {
		if _, err := adminsocket.Dial(t.Context(), at, name); !errors.Is(err, adminsocket.ErrNone) {
			t.Errorf("%s: %v, want ErrNone", at, err)
		}
	}
}

func TestALongDirectory(t *testing.T) {
	dir := filepath.Join(t.TempDir(), strings.Repeat("long", 30))
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	ln := listen(t, dir)
	echo(ln)
	if got, want := ask(t, dir, name), process.User()+" hello"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if err := ln.Close(); err != nil {
		t.Error(err)
	}
}

// What a listener that was killed has left is replaced; a file of a user is not.
func TestANameThatIsThere(t *testing.T) {
	dir := t.TempDir()
	first := listen(t, dir)
	second := listen(t, dir)
	echo(second)
	if got, want := ask(t, dir, name), process.User()+" hello"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	_ = first.Close()
	_ = second.Close()

	if err := os.WriteFile(filepath.Join(dir, name), []byte("mine"), 0o600); err != nil {
		t.Fatal(err)
	}
	if ln, err := adminsocket.Listen(dir, name); err == nil {
		_ = ln.Close()
		t.Error("a file of a user was replaced")
	}
}

func TestDialEndsWithItsContext(t *testing.T) {
	dir := t.TempDir()
	ln := listen(t, dir)
	defer ln.Close()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if conn, err := adminsocket.Dial(ctx, dir, name); err == nil {
		_ = conn.Close()
		t.Error("connected")
	}
}
