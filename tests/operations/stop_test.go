package operations_test

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
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
		for { // until it gets the sandbox, which /hello sometimes holds
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
	s.Stop() // fails the test if the server does not exit
}

// The time in which a client sends its body does not count as the handler's.
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
	<-time.After(2500 * time.Millisecond) // the client pauses longer than the route's timeout
	if _, err := io.WriteString(conn, "b"); err != nil {
		t.Fatal(err)
	}
	reply, err := io.ReadAll(conn)
	if err != nil || !strings.HasPrefix(string(reply), "HTTP/1.1 200 ") {
		t.Errorf("%v %s", err, reply)
	}
}

func TestLargeBodiesAreRefusedBeyondTheirMemory(t *testing.T) {
	a := harness.NewApp(t, "routes(\"/\", auth: none, rateLimit: none, body: 8mb) { POST /hello -> hello }\n", "[front]\nbody_memory = \"10mb\"\n", "echo")
	s := a.Serve()
	first := sendHalfABody(t, s)
	waitUntilRead(t, s, first)
	for range 3 {
		conn := sendHalfABody(t, s)
		_ = conn.SetReadDeadline(time.Now().Add(harness.Timeout))
		reply, _ := io.ReadAll(conn) // the server may reset the connection after its response
		if !strings.HasPrefix(string(reply), "HTTP/1.1 503 ") || !strings.Contains(string(reply), `"overloaded"`) {
			t.Errorf("a second large body: %.300q", reply)
		}
	}
	if got := s.Do("POST", "/hello", "small"); got.Status != 200 {
		t.Errorf("a small body beside the large one: %d", got.Status)
	}
	first.Close()
	s.WaitUntil("the memory of a closed connection is free", func() bool {
		got, err := s.Try("POST", "/hello", strings.Repeat("x", 8<<20))
		return err == nil && got.Status == 200
	})
}

// sendHalfABody sends half of a body of 8 MiB. The server may refuse it meanwhile.
func sendHalfABody(t *testing.T, s *harness.Server) net.Conn {
	t.Helper()
	conn, err := net.Dial("tcp", s.Addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	head := "POST /hello HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: 8388608\r\n\r\n"
	if _, err := io.WriteString(conn, head+strings.Repeat("x", 4<<20)); err != nil && !errors.Is(err, syscall.ECONNRESET) && !errors.Is(err, syscall.EPIPE) {
		t.Fatal(err)
	}
	return conn
}

// waitUntilRead waits until the server has read all that was sent on a connection. The
// kernel lists the bytes in each socket's queues in /proc/net/tcp.
func waitUntilRead(t *testing.T, s *harness.Server, conn net.Conn) {
	t.Helper()
	hex := func(addr net.Addr) string { return fmt.Sprintf("0100007F:%04X", addr.(*net.TCPAddr).Port) }
	client, server := hex(conn.LocalAddr()), hex(conn.RemoteAddr())
	s.WaitUntil("all bytes are read", func() bool {
		table, err := os.ReadFile("/proc/net/tcp")
		if err != nil {
			t.Fatal(err)
		}
		empty := 0
		for line := range strings.Lines(string(table)) {
			f := strings.Fields(line) // number, local, remote, state, tx_queue:rx_queue
			if len(f) < 5 {
				continue
			}
			sent, unread, _ := strings.Cut(f[4], ":")
			if f[1] == client && f[2] == server && sent == "00000000" || f[1] == server && f[2] == client && unread == "00000000" {
				empty++
			}
		}
		return empty == 2
	})
}

// The process may open few files, from its start or from a later moment, and connections use
// all that it may have. Then requests on open connections are served, writes included, and
// new connections when others have ended.
func TestAServerWithFewDescriptorsServesOn(t *testing.T) {
	for _, row := range []struct {
		name  string
		later bool
	}{{"at startup", false}, {"later", true}} {
		t.Run(row.name, func(t *testing.T) {
			a := harness.NewApp(t, notesSchema, "[front]\nread_timeout = \"10m\"\nidle_timeout = \"10m\"\n", "echo")
			key := a.Key("create", "--scope", "reader", "--name", "x")
			other := a.Key("create", "--scope", "reader", "--name", "other")
			if !row.later {
				a.Binary = limited(a, 300)
			}
			s := a.Serve()
			a.Binary = ""
			written := 0
			write := func() {
				t.Helper()
				got := s.Do("POST", "/op", fmt.Sprintf(`{"into":"Note","values":{"text":"note %d"}}`, written), "X-API-Key: "+key.Token, "X-Op: insert")
				if got.Status != 200 {
					t.Errorf("a write: %d %s", got.Status, got.Body)
					return
				}
				written++
			}
			write() // opens the connection that the others of Do use
			if row.later {
				harness.LimitOpenFiles(t, s.Cmd.Process.Pid, 200)
			}
			var flood []net.Conn
			for i := range 300 {
				dialer := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(fmt.Sprintf("127.0.1.%d", i%10+1))}}
				conn, err := dialer.Dial("tcp", s.Addr) // the kernel accepts it
				if err != nil {
					t.Fatal(err)
				}
				defer conn.Close()
				_, _ = io.WriteString(conn, "GET /hel") // the server may have closed it
				flood = append(flood, conn)
			}
			for range 20 {
				write()
			}
			if got := s.Get("/hello", "wrong"); got.Status != 401 {
				t.Errorf("a wrong key: %d %s", got.Status, got.Body)
			}
			if !row.later { // descriptors are reserved for operators
				a.Must("api-keys", "revoke", other.ID)
				if got := s.Get("/hello", other.Token); got.Status != 401 {
					t.Errorf("a revoked key: %d %s", got.Status, got.Body)
				}
			}
			for _, conn := range flood {
				conn.Close()
			}
			fresh := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: harness.Timeout}
			got, err := fresh.Get(s.URL + "/_health/ready")
			if err != nil {
				t.Fatal(err)
			}
			if got.Body.Close(); got.StatusCode != 200 {
				t.Errorf("a new connection: %d", got.StatusCode)
			}
			s.Kill()
			if rows := strings.Count(a.Must("data", "export", "Note"), "\n"); rows != written {
				t.Errorf("%d rows, %d were acknowledged", rows, written)
			}
		})
	}
}

const notesSchema = `app notes
entity Note {
  id: id
  text: string(1..200) @unique
}
apiKeys { scopes: { reader: @system("reader") { @grant read, write on Note } } }
routes("/", auth: apiKey(reader), rateLimit: none) {
  GET /hello -> hello
  POST /op -> op
}
`

func TestAnInvalidQueryIsRefusedFirst(t *testing.T) {
	s := harness.NewApp(t, harness.ProbeSchema, "", "echo").Serve()
	for _, path := range []string{"/nowhere?" + strings.Repeat("a=1&", 101), "/v1/dump?a=%zz", "/dump?%ff"} {
		if got := s.Get(path, ""); got.Status != 400 || got.Problem(t).Code != "invalid_request" {
			t.Errorf("%.20s: %d", path, got.Status)
		}
	}
}

func TestAServerStopsWhenItsDataDirectoryIsGone(t *testing.T) {
	t.Parallel()
	a := harness.NewApp(t, harness.DevSchema, "")
	a.Write("handlers/hello.ts", harness.HelloSource("one"))
	a.Must("build")
	for _, command := range []string{"serve", "dev"} {
		s := a.Start(command)
		a.Must("api-keys", "create", "--scope", "say", "--name", "x")
		// Renamed at once, because the server may create files there.
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
		if code := s.Cmd.ProcessState.ExitCode(); code != 1 || !strings.Contains(s.Stderr.String(), "its content is lost") {
			t.Errorf("%s ended with status %d\n%s", command, code, s.Stderr.String())
		}
	}
}
