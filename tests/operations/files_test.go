package operations_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"runner.example/tests/harness"
)

// limited writes a program that runs the runner with so many open files, and returns its path.
func limited(a *harness.App, files int) string {
	a.T.Helper()
	name := fmt.Sprint("limited", files)
	a.Write(name, fmt.Sprintf("#!/bin/sh\nulimit -n %d\nexec %s \"$@\"\n", files, harness.Binary))
	if err := os.Chmod(a.Path(name), 0o700); err != nil {
		a.T.Fatal(err)
	}
	return a.Path(name)
}

// openIdle opens idle connections to an address from several of loopback, until the server takes no more of them
// or there are n.
func openIdle(t *testing.T, address string, n int) {
	t.Helper()
	for i := range n {
		dialer := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(fmt.Sprintf("127.0.2.%d", i%12+1))}}
		conn, err := dialer.Dial("tcp", address) // the kernel accepts it
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { conn.Close() })
		_, _ = io.WriteString(conn, "GET /hel") // the server may have closed it
	}
}

// Clients that take files slowly keep these open too, beside their connections. When as many do as the server accepts, some
// files are left.
func TestSlowDownloadsLeaveFilesForOperators(t *testing.T) {
	const files = 700
	a := harness.NewApp(t, "assets(\"/\", dir: \"public\")\n", "")
	a.Write("public/large.bin", strings.Repeat("0123456789abcdef", 20<<20>>4))
	a.Binary = limited(a, files)
	s := a.Serve()
	a.Binary = ""
	var found []string
	s.WaitUntil("the log says how many connections it accepts", func() bool {
		found = regexp.MustCompile(`"fewer connections than max_connections[^}]*"connections":(\d+),`).FindStringSubmatch(s.Stderr.String())
		return found != nil
	})
	accepted, _ := strconv.Atoi(found[1])
	began := make(chan struct{}, files)
	for i := range files {
		dialer := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(fmt.Sprintf("127.0.2.%d", i%12+1))}}
		conn, err := dialer.Dial("tcp", s.Addr) // the kernel accepts it
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { conn.Close() })
		if err := conn.(*net.TCPConn).SetReadBuffer(4 << 10); err != nil {
			t.Fatal(err)
		}
		_, _ = io.WriteString(conn, "GET /large.bin HTTP/1.1\r\nHost: a\r\n\r\n") // the server may have closed it
		go func() {
			if _, err := io.ReadFull(conn, make([]byte, 1)); err == nil {
				began <- struct{}{}
			}
		}()
	}
	timeout := time.After(harness.Timeout)
	for n := range accepted {
		select {
		case <-began:
		case <-timeout:
			t.Fatalf("%d of %d downloads have begun", n, accepted)
		}
	}
	var status struct{ Descriptors struct{ Open, Limit int } }
	s.WaitUntil("each download has its file open", func() bool {
		if err := json.Unmarshal([]byte(a.Must("status", "--json", "--timeout", "20s")), &status); err != nil {
			t.Fatal(err)
		}
		return status.Descriptors.Open >= 2*accepted
	})
	if status.Descriptors.Limit != files || status.Descriptors.Open > files-100 {
		t.Errorf("%d of %d files are open, want some left", status.Descriptors.Open, status.Descriptors.Limit)
	}
	a.Must("api-keys", "list")
	backUp(t, a, a.Path("b"))
}

// A server that could not answer operators, beside a flood of connections on each of its addresses, does not
// start. It says how many open files it needs, and with these it answers them.
func TestTheLeastNumberOfOpenFilesIsEnoughForOperators(t *testing.T) {
	previous := 0
	for _, settings := range []string{"", "[admin]\nlisten = \"127.0.0.1:0\"\n[metrics]\nlisten = \"127.0.0.1:0\"\n"} {
		a := harness.NewApp(t, harness.ProbeSchema, settings, "echo")
		key := a.Key("create", "--scope", "reader", "--name", "x")
		a.Binary = limited(a, 24)
		refused := a.Run("serve", "--listen", "127.0.0.1:0")
		found := regexp.MustCompile(`this process may open 24 files, and needs at least (\d+): `).FindStringSubmatch(refused.Stderr)
		if refused.Status != 3 || found == nil || !strings.Contains(refused.Stderr, "LimitNOFILE") {
			t.Fatalf("with 24 files: %d\n%s", refused.Status, refused.Stderr)
		}
		needed, _ := strconv.Atoi(found[1])
		if needed <= previous {
			t.Errorf("%d files are needed with\n%s, and %d without", needed, settings, previous)
		}
		previous = needed
		a.Binary = limited(a, needed-1)
		if r := a.Run("serve", "--listen", "127.0.0.1:0"); r.Status != 3 {
			t.Errorf("with one file less: %d\n%s", r.Status, r.Stderr)
		}
		a.Binary = limited(a, needed)
		s := a.Serve()
		a.Binary = ""
		if got := s.Get("/v1/dump", key.Token); got.Status != 200 {
			t.Errorf("before: %d", got.Status)
		}
		var status struct {
			Metrics, Admin string
			Descriptors    struct{ Open, Limit int }
		}
		read := func() {
			t.Helper()
			if err := json.Unmarshal([]byte(a.Must("status", "--json")), &status); err != nil {
				t.Fatal(err)
			}
		}
		read()
		openIdle(t, s.Addr, needed)
		if settings != "" {
			openIdle(t, strings.TrimPrefix(status.Admin, "https://"), 300)
			openIdle(t, strings.TrimSuffix(strings.TrimPrefix(status.Metrics, "http://"), "/metrics"), 100)
		}
		for range 3 {
			a.Must("api-keys", "list")
			read()
		}
		if status.Descriptors.Limit != needed || status.Descriptors.Open >= needed {
			t.Errorf("%d of %d files are open, want %d and some left", status.Descriptors.Open, status.Descriptors.Limit, needed)
		}
		a.Must("api-keys", "revoke", key.ID)
		backUp(t, a, a.Path("b"))
		if !strings.Contains(s.Stderr.String(), "max_connections") {
			t.Errorf("the log does not say that there are fewer connections:\n%s", s.Stderr.String())
		}
	}
}
