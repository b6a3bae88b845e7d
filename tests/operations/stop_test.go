package operations_test

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

	"runner.example/tests/harness"
)

func TestStoppingDoesNotWaitForARunningHandler(t *testing.T) {
	a := harness.NewApp(t, strings.ReplaceAll(harness.HostileSchema, "timeout: 300ms", "timeout: 60s"),
		"[runtime]\nshutdown_timeout = \"200ms\"\n[sandbox]\ninstances = 1\ncpu = \"60s\"\nqueue_wait = \"20ms\"\n", "echo", "hostile")
	s := a.Serve()
	go func() {
		for { // until it gets the sandbox, which hello has now and then; then it may end in any way
			if got, err := s.Try("GET", "/loop", ""); err != nil || got.Status != 503 {
				return
			}
		}
	}()
	for end := time.Now().Add(harness.Timeout); s.Do("GET", "/hello", "").Status != 503; {
		if time.Now().After(end) {
			t.Fatal("the loop does not run")
		}
	}
	began := time.Now()
	s.Stop()
	if took := time.Since(began); took > harness.Timeout/2 {
		t.Errorf("stopping took %s", took)
	}
	if r := a.Run("audit", "verify"); r.Status != 0 {
		t.Errorf("the store afterwards: %d %s", r.Status, r.Stderr)
	}
}

func TestASignalToStopIsNotLostInReloads(t *testing.T) {
	a := harness.NewApp(t, harness.HostileSchema, "", "echo", "hostile")
	s := a.Serve()
	for range 20 {
		_ = s.Cmd.Process.Signal(syscall.SIGHUP)
	}
	s.Stop() // fails the test when the server does not end
}

// A caller who sends slowly is slow himself: his handler has not begun.
func TestASlowSenderIsNotASlowHandler(t *testing.T) {
	a := harness.NewApp(t, "routes(\"/\", auth: none, rateLimit: none, timeout: 2s) { POST /hello -> hello }\n", "", "echo")
	s := a.Serve()
	conn, err := net.Dial("tcp", s.Addr)
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
	a := harness.NewApp(t, "routes(\"/\", auth: none, rateLimit: none, body: 8mb) { POST /hello -> hello }\n", "[front]\nbody_memory = \"10mb\"\n", "echo")
	s := a.Serve()
	var conns []net.Conn
	// Those that grow at the same moment may all be refused, and a slow machine may not have
	// looked at them yet: then they come again.
	for end := time.Now().Add(harness.Timeout); ; {
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
	if got := s.Do("POST", "/hello", "small"); got.Status != 200 {
		t.Errorf("a small body beside them: %d", got.Status)
	}
	for _, conn := range conns {
		conn.Close()
	}
	for end := time.Now().Add(harness.Timeout); ; {
		got, err := s.Try("POST", "/hello", strings.Repeat("x", 8<<20))
		if err == nil && got.Status == 200 {
			break
		}
		if time.Now().After(end) {
			t.Fatalf("the room of bodies that went away is not given back: %v %d", err, got.Status)
		}
	}
}

// largeBodies sends the first halves of four bodies of 8 MiB, and counts those that are
// refused.
func largeBodies(t *testing.T, s *harness.Server) (conns []net.Conn, refused int) {
	t.Helper()
	for range 4 {
		conn, err := net.Dial("tcp", s.Addr)
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
	a := harness.NewApp(t, harness.ProbeSchema, "", "echo")
	key := a.Key("create", "--scope", "reader", "--name", "x")
	a.Write("limited", "#!/bin/sh\nulimit -n 80\nexec "+harness.Binary+" \"$@\"\n")
	if out, err := exec.Command("chmod", "+x", a.Path("limited")).CombinedOutput(); err != nil {
		t.Fatal(string(out), err)
	}
	a.Binary = a.Path("limited")
	s := a.Serve()
	a.Binary = ""
	for range 100 {
		conn, err := net.DialTimeout("tcp", s.Addr, 5*time.Second)
		if err != nil {
			break
		}
		defer conn.Close()
		_, _ = io.WriteString(conn, "GET /hello HTTP/1.1\r\nHost: x\r\n\r\n")
	}
	began := time.Now()
	if r := a.Run("api-keys", "revoke", key.ID); r.Status != 0 || time.Since(began) > harness.Timeout {
		t.Errorf("revoke with all connections taken: %d after %s\n%s", r.Status, time.Since(began), r.Stderr)
	}
	if !strings.Contains(s.Stderr.String(), "max_connections") {
		t.Errorf("the log does not say that there are fewer connections:\n%s", s.Stderr.String())
	}
}

func TestABadQueryIsRefusedBeforeAllElse(t *testing.T) {
	s := harness.NewApp(t, harness.ProbeSchema, "", "echo").Serve()
	for _, path := range []string{"/nowhere?" + strings.Repeat("a=1&", 101), "/v1/dump?a=%zz", "/dump?%ff"} {
		if got := s.Get(path, ""); got.Status != 400 || got.Problem(t).Code != "invalid_request" {
			t.Errorf("%.20s: %d", path, got.Status)
		}
	}
}

func TestAServerWhoseDataIsGoneStillEnds(t *testing.T) {
	t.Parallel()
	a := harness.NewApp(t, harness.DevSchema, "")
	a.Write("handlers/hello.ts", harness.HelloSource("one"))
	a.Must("build")
	for _, command := range []string{"serve", "dev"} {
		s := a.Start(command)
		a.Must("api-keys", "create", "--scope", "say", "--name", "x")
		// At one stroke, as the server may make files there meanwhile.
		if err := os.Rename(a.Path("data"), filepath.Join(t.TempDir(), "data")); err != nil {
			t.Fatal(err)
		}
		if err := s.Cmd.Process.Signal(os.Interrupt); err != nil {
			t.Fatal(err)
		}
		select {
		case <-s.Ended:
		case <-time.After(time.Minute):
			t.Fatalf("%s does not end\n%s", command, s.Stderr.String())
		}
		if code := s.Cmd.ProcessState.ExitCode(); code != 1 || !strings.Contains(s.Stderr.String(), "what was in it is lost") {
			t.Errorf("%s ended with status %d\n%s", command, code, s.Stderr.String())
		}
	}
}
