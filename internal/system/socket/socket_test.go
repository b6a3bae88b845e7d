package socket_test

import (
	"bytes"
	"errors"
	"io"
	"net"
	"os"
	"testing"

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
