package operations_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"runner.example/tests/harness"
)

const drainSchema = `routes("/", auth: none, rateLimit: none) {
  GET /hello -> hello
  POST /hello -> hello
}
`

// kept is a connection that is kept open.
type kept struct {
	net.Conn
	in *bufio.Reader
}

func keep(t *testing.T, s *harness.Server) kept {
	t.Helper()
	conn, err := net.Dial("tcp", s.Addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	if err := conn.SetDeadline(time.Now().Add(harness.Timeout)); err != nil {
		t.Fatal(err)
	}
	return kept{conn, bufio.NewReader(conn)}
}

// answer reads an answer, and reports whether it ends the connection.
func (k kept) answer() (closes bool, err error) {
	got, err := http.ReadResponse(k.in, nil)
	if err != nil {
		return false, err
	}
	body, err := io.ReadAll(got.Body)
	if err == nil && got.StatusCode != 200 {
		err = fmt.Errorf("%d %s", got.StatusCode, body)
	}
	return got.Close, err
}

func (k kept) post() (closes bool, err error) {
	if _, err := io.WriteString(k, "POST /hello HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\nhello"); err != nil {
		return false, err
	}
	return k.answer()
}

// Clients that send one POST after the other on a connection lose none when the server stops: the last answer
// says that the connection ends.
func TestNoRequestIsLostWhenTheServerStops(t *testing.T) {
	for _, row := range []struct{ name, toml string }{{"at once", ""}, {"after a drain", "[runtime]\ndrain = \"300ms\"\n"}} {
		t.Run(row.name, func(t *testing.T) {
			s := harness.NewApp(t, drainSchema, row.toml, "echo").Serve()
			var clients sync.WaitGroup
			var begun sync.WaitGroup
			for i := range 8 {
				k := keep(t, s)
				begun.Add(1)
				clients.Go(func() {
					for n := 0; ; n++ {
						closes, err := k.post()
						if err != nil {
							t.Errorf("client %d, after %d answers: %v", i, n, err)
						}
						if n == 20 || err != nil && n < 20 {
							begun.Done()
						}
						if err != nil || closes {
							return
						}
					}
				})
			}
			begun.Wait()
			s.Stop()
			clients.Wait()
		})
	}
}

// Connections without a request end before requests in flight do, which get their answers.
func TestIdleConnectionsEndFirst(t *testing.T) {
	s := harness.NewApp(t, drainSchema, "", "echo").Serve()
	const half = "POST /hello HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\nhe"
	var sending []kept
	for range 8 {
		k := keep(t, s)
		if _, err := io.WriteString(k, half); err != nil {
			t.Fatal(err)
		}
		sending = append(sending, k)
		waitUntilRead(t, s, k.Conn)
	}
	idle, fresh := keep(t, s), keep(t, s)
	if closes, err := idle.post(); err != nil || closes {
		t.Fatalf("closes %v, %v", closes, err)
	}
	_ = s.Cmd.Process.Signal(syscall.SIGTERM)
	for _, k := range []kept{idle, fresh} {
		if _, err := k.in.ReadByte(); err != io.EOF {
			t.Errorf("an idle connection ends with %v", err)
		}
	}
	for i, k := range sending {
		if _, err := io.WriteString(k, "llo"); err != nil {
			t.Fatal(err)
		}
		if closes, err := k.answer(); err != nil || !closes {
			t.Errorf("request %d in flight: closes %v, %v", i, closes, err)
		}
	}
	select {
	case <-s.Ended:
	case <-time.After(harness.Timeout):
		t.Fatalf("it does not end\n%s", s.Stderr.String())
	}
	if s.Err != nil {
		t.Errorf("%v\n%s", s.Err, s.Stderr.String())
	}
}

// While a server drains, each answer ends its connection. A connection that was idle when the drain began can
// still bring a request.
func TestAnswersOfADrainingServerEndTheirConnections(t *testing.T) {
	a := harness.NewApp(t, drainSchema, "[runtime]\ndrain = \"1h\"\n", "echo")
	s := a.Serve()
	k := keep(t, s)
	if closes, err := k.post(); err != nil || closes {
		t.Fatalf("before: closes %v, %v", closes, err)
	}
	_ = s.Cmd.Process.Signal(syscall.SIGTERM)
	s.WaitForOutput(`"stopping"`)
	if closes, err := k.post(); err != nil || !closes {
		t.Errorf("closes %v, %v", closes, err)
	}
	if _, err := k.in.ReadByte(); err != io.EOF {
		t.Errorf("the connection ends with %v", err)
	}
	if closes, err := keep(t, s).post(); err != nil || !closes {
		t.Errorf("a new connection: closes %v, %v", closes, err)
	}
	s.Kill()
}

// The unit of systemd waits longer than a stop takes by the defaults, or systemd kills the server.
func TestTheUnitWaitsForTheShutdown(t *testing.T) {
	value := func(file, key string) time.Duration {
		t.Helper()
		for line := range strings.Lines(harness.MustRead(t, harness.RepoFile(file))) {
			name, text, ok := strings.Cut(strings.TrimSpace(line), "=")
			if text = strings.Trim(text, ` "`); ok && strings.TrimSpace(name) == key {
				if !strings.HasSuffix(text, "s") {
					text += "s"
				}
				d, err := time.ParseDuration(text)
				if err != nil {
					t.Fatal(err)
				}
				return d
			}
		}
		t.Fatalf("%s has no %s", file, key)
		return 0
	}
	unit := value("tools/dist/runner.service", "TimeoutStopSec")
	if drain, shutdown := value("runner.toml", "drain"), value("runner.toml", "shutdown_timeout"); unit <= drain+shutdown {
		t.Errorf("TimeoutStopSec is %s, and a stop may take %s and %s", unit, drain, shutdown)
	}
}
