package tests

import (
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

func TestStoppingDoesNotWaitForARunningHandler(t *testing.T) {
	a := newApp(t, strings.ReplaceAll(hostileSchema, "timeout: 300ms", "timeout: 60s"),
		"[runtime]\nshutdown_timeout = \"200ms\"\n[sandbox]\ninstances = 1\ncpu = \"60s\"\nqueue_wait = \"20ms\"\n", "echo", "hostile")
	s := a.serve()
	go func() {
		for { // until it gets the sandbox, which hello has now and then; then it may end in any way
			if got, err := s.try("GET", "/loop", ""); err != nil || got.status != 503 {
				return
			}
		}
	}()
	for end := time.Now().Add(patient); s.do("GET", "/hello", "").status != 503; {
		if time.Now().After(end) {
			t.Fatal("the loop does not run")
		}
	}
	began := time.Now()
	s.stop()
	if took := time.Since(began); took > patient/2 {
		t.Errorf("stopping took %s", took)
	}
	if r := a.run("audit", "verify"); r.status != 0 {
		t.Errorf("the store afterwards: %d %s", r.status, r.stderr)
	}
}

func TestASignalToStopIsNotLostInReloads(t *testing.T) {
	a := newApp(t, hostileSchema, "", "echo", "hostile")
	s := a.serve()
	for range 20 {
		_ = s.cmd.Process.Signal(syscall.SIGHUP)
	}
	s.stop() // fails the test when the server does not end
}

// A caller who sends slowly is slow himself: his handler has not begun.
func TestASlowSenderIsNotASlowHandler(t *testing.T) {
	a := newApp(t, "routes(\"/\", auth: none, rateLimit: none, timeout: 2s) { POST /hello -> hello }\n", "", "echo")
	s := a.serve()
	conn, err := net.Dial("tcp", s.addr)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := io.WriteString(conn, "POST /hello HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: 2\r\n\r\na"); err != nil {
		t.Fatal(err)
	}
	<-time.After(2500 * time.Millisecond) // longer than the route's timeout
	if _, err := io.WriteString(conn, "b"); err != nil {
		t.Fatal(err)
	}
	reply, err := io.ReadAll(conn)
	if err != nil || !strings.HasPrefix(string(reply), "HTTP/1.1 200 ") {
		t.Errorf("%v %s", err, reply)
	}
}

func TestManyLargeBodiesDoNotTakeAllMemory(t *testing.T) {
	a := newApp(t, "routes(\"/\", auth: none, rateLimit: none, body: 8mb) { POST /hello -> hello }\n", "[front]\nbody_memory = \"10mb\"\n", "echo")
	s := a.serve()
	var conns []net.Conn
	// Those that grow at the same moment may all be refused, and a slow machine may not have
	// looked at them yet: then they come again.
	for end := time.Now().Add(patient); ; {
		refused := 0
		conns, refused = largeBodies(t, s)
		if refused > 0 && refused < len(conns) {
			break
		}
		for _, conn := range conns {
			conn.Close()
		}
		if time.Now().After(end) {
			t.Fatalf("%d of %d large bodies were refused", refused, len(conns))
		}
	}
	if got := s.do("POST", "/hello", "small"); got.status != 200 {
		t.Errorf("a small body beside them: %d", got.status)
	}
	for _, conn := range conns {
		conn.Close()
	}
	for end := time.Now().Add(patient); ; {
		got, err := s.try("POST", "/hello", strings.Repeat("x", 8<<20))
		if err == nil && got.status == 200 {
			break
		}
		if time.Now().After(end) {
			t.Fatalf("the room of bodies that went away is not given back: %v %d", err, got.status)
		}
	}
}

// largeBodies sends the first halves of four bodies of 8 MiB, and counts those that are
// refused.
func largeBodies(t *testing.T, s *server) (conns []net.Conn, refused int) {
	t.Helper()
	for range 4 {
		conn, err := net.Dial("tcp", s.addr)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { conn.Close() })
		conns = append(conns, conn)
		head := "POST /hello HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: 8388608\r\n\r\n"
		if _, err := io.WriteString(conn, head+strings.Repeat("x", 4<<20)); err != nil && !strings.Contains(err.Error(), "reset") && !strings.Contains(err.Error(), "broken pipe") {
			t.Fatal(err)
		}
	}
	for _, conn := range conns {
		_ = conn.SetReadDeadline(time.Now().Add(2 * time.Second))
		reply, _ := io.ReadAll(conn) // one that is let in waits for more of its body
		if strings.HasPrefix(string(reply), "HTTP/1.1 503 ") && strings.Contains(string(reply), `"overloaded"`) {
			refused++
		}
	}
	return conns, refused
}

func TestConnectionsLeaveFilesForOperators(t *testing.T) {
	a := newApp(t, probeSchema, "", "echo")
	key := a.key("create", "--scope", "reader", "--name", "x")
	limited := runnerBinary
	t.Cleanup(func() { runnerBinary = limited })
	a.write("limited", "#!/bin/sh\nulimit -n 80\nexec "+limited+" \"$@\"\n")
	if out, err := exec.Command("chmod", "+x", a.path("limited")).CombinedOutput(); err != nil {
		t.Fatal(string(out), err)
	}
	runnerBinary = a.path("limited")
	s := a.serve()
	runnerBinary = limited
	for range 100 {
		conn, err := net.DialTimeout("tcp", s.addr, 5*time.Second)
		if err != nil {
			break
		}
		defer conn.Close()
		_, _ = io.WriteString(conn, "GET /hello HTTP/1.1\r\nHost: x\r\n\r\n")
	}
	began := time.Now()
	if r := a.run("api-keys", "revoke", key.ID); r.status != 0 || time.Since(began) > patient {
		t.Errorf("revoke with all connections taken: %d after %s\n%s", r.status, time.Since(began), r.stderr)
	}
	if !strings.Contains(s.stderr.String(), "max_connections") {
		t.Errorf("the log does not say that there are fewer connections:\n%s", s.stderr.String())
	}
}

func TestABadQueryIsRefusedBeforeAllElse(t *testing.T) {
	s := newApp(t, probeSchema, "", "echo").serve()
	for _, path := range []string{"/nowhere?" + strings.Repeat("a=1&", 101), "/v1/dump?a=%zz", "/dump?%ff"} {
		if got := s.get(path, ""); got.status != 400 || got.problem(t).Code != "invalid_request" {
			t.Errorf("%.20s: %d", path, got.status)
		}
	}
}

func TestAServerWhoseDataIsGoneStillEnds(t *testing.T) {
	t.Parallel()
	a := newApp(t, devSchema, "")
	a.write("handlers/hello.ts", helloText("one"))
	a.must("build")
	for _, command := range []string{"serve", "dev"} {
		s := a.start(command)
		a.must("api-keys", "create", "--scope", "say", "--name", "x")
		// At one stroke, as the server may make files there meanwhile.
		if err := os.Rename(a.path("data"), filepath.Join(t.TempDir(), "data")); err != nil {
			t.Fatal(err)
		}
		if err := s.cmd.Process.Signal(os.Interrupt); err != nil {
			t.Fatal(err)
		}
		select {
		case <-s.ended:
		case <-time.After(time.Minute):
			t.Fatalf("%s does not end\n%s", command, s.stderr.String())
		}
		if code := s.cmd.ProcessState.ExitCode(); code != 1 || !strings.Contains(s.stderr.String(), "what was in it is lost") {
			t.Errorf("%s ended with status %d\n%s", command, code, s.stderr.String())
		}
	}
}
