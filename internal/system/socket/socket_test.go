package socket_test

import (
	"bytes"
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"runner.example/internal/system/socket"
)

// pair returns both ends of a connection on loopback.
func pair(t *testing.T) (server, client net.Conn) {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	if client, err = net.Dial("tcp", ln.Addr().String()); err != nil {
		t.Fatal(err)
	}
	if server, err = ln.Accept(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _ = server.Close(), client.Close() })
	return server, client
}

func TestErrorsOfTheSystemAreRecognized(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	_, err = net.Listen("tcp", ln.Addr().String())
	if !socket.InUse(err) || socket.Refused(err) {
		t.Errorf("an address that is in use: %v", err)
	}
	if cause := socket.Cause(err); errors.Is(cause, os.ErrNotExist) || cause == err {
		t.Errorf("the cause of %v is %v", err, cause)
	}
	address := ln.Addr().String()
	_ = ln.Close()
	if _, err := net.Dial("tcp", address); !socket.Refused(err) || socket.Broken(err) {
		t.Errorf("nobody listens: %v", err)
	}
	server, client := pair(t)
	if _, err := client.Write([]byte("unread")); err != nil {
		t.Fatal(err)
	}
	_ = server.(*net.TCPConn).SetLinger(0)
	_ = server.Close()
	if _, err := io.ReadAll(client); !socket.Broken(err) {
		t.Errorf("the peer has reset the connection: %v", err)
	}
}

func TestAPeerThatHangsUpIsNoticed(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("HungUp is always false on Windows")
	}
	for what, end := range map[string]func(client net.Conn){
		"closes":       func(client net.Conn) { _ = client.Close() },
		"resets":       func(client net.Conn) { _ = client.(*net.TCPConn).SetLinger(0); _ = client.Close() },
		"half closes":  func(client net.Conn) { _ = client.(*net.TCPConn).CloseWrite() },
		"says goodbye": func(client net.Conn) { _, _ = client.Write([]byte("bye")); _ = client.Close() },
	} {
		if what == "says goodbye" && runtime.GOOS != "linux" {
			continue
		}
		server, client := pair(t)
		fast := socket.Fast(server)
		if socket.HungUp(fast) {
			t.Errorf("a peer that is there has hung up")
		}
		end(client)
		for deadline := time.Now().Add(10 * time.Second); !socket.HungUp(fast); runtime.Gosched() {
			if time.Now().After(deadline) {
				t.Fatalf("a peer that %s has not hung up", what)
			}
		}
	}
}

func TestBytesArriveAsTheyWereSent(t *testing.T) {
	server, client := pair(t)
	sent := bytes.Repeat([]byte("0123456789abcdef"), 64<<10)
	fast := socket.Fast(server)
	go func() {
		_, _ = fast.Write(sent)
		if w := socket.Direct(server); w != nil {
			for rest := sent; len(rest) > 0; {
				n, err := w.Write(rest[:1], rest[1:], true)
				if err != nil {
					break
				}
				rest = rest[n:]
			}
		} else {
			_, _ = server.Write(sent)
		}
		_ = server.Close()
	}()
	got, err := io.ReadAll(socket.Fast(client))
	if err != nil || !bytes.Equal(got, append(sent, sent...)) {
		t.Errorf("%d bytes arrived, %v; sent twice %d", len(got), err, len(sent))
	}
}

func TestTheSystemSendsAFile(t *testing.T) {
	server, client := pair(t)
	w := socket.Direct(server)
	if w == nil {
		t.Skip("the system has no direct writes")
	}
	content := bytes.Repeat([]byte("0123456789abcdef"), 300<<10) // more than one call sends
	f, err := os.Create(filepath.Join(t.TempDir(), "content"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.Write(content); err != nil {
		t.Fatal(err)
	}
	go func() {
		for head := []byte("head"); len(head) > 0; {
			n, err := w.WriteMore(head)
			if err != nil {
				t.Errorf("write: %v", err)
				break
			}
			head = head[n:]
		}
		for at, end := int64(3), int64(len(content))-3; at < end; {
			n, err := w.SendFile(f, at, end-at)
			if err != nil {
				t.Errorf("send: %v", err)
				break
			}
			at += n
		}
		if n, err := w.SendFile(f, int64(len(content)), 1); n != 0 || err != io.ErrUnexpectedEOF {
			t.Errorf("behind the end: %d bytes, %v", n, err)
		}
		_ = server.Close()
	}()
	got, err := io.ReadAll(client)
	if want := "head" + string(content[3:len(content)-3]); err != nil || string(got) != want {
		t.Errorf("%d bytes arrived, %v; want %d", len(got), err, len(want))
	}
}
