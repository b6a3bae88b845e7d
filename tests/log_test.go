package tests

import (
	"bufio"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// servePipe starts serve with a pipe for its log, of which the test has the end to read.
func (a *app) servePipe() (s *server, log *os.File) {
	a.t.Helper()
	log, w, err := os.Pipe()
	if err != nil {
		a.t.Fatal(err)
	}
	a.t.Cleanup(func() { log.Close() })
	s = &server{t: a.t, app: a, ended: make(chan struct{})}
	s.cmd = exec.Command(runnerBinary, "serve", "--listen", "127.0.0.1:0")
	s.cmd.Dir, s.cmd.Env, s.cmd.Stderr = a.dir, append(os.Environ(), a.env...), w
	stdout, err := s.cmd.StdoutPipe()
	if err != nil {
		a.t.Fatal(err)
	}
	if err := s.cmd.Start(); err != nil {
		a.t.Fatal(err)
	}
	w.Close()
	a.t.Cleanup(func() { _ = s.cmd.Process.Kill(); <-s.ended })
	first, err := bufio.NewReader(stdout).ReadString('\n')
	go func() {
		defer close(s.ended)
		s.err = s.cmd.Wait()
	}()
	match := readyLine.FindStringSubmatch(strings.TrimSpace(first))
	if err != nil || match == nil {
		a.t.Fatalf("stdout begins with %q (%v), want the listening line", first, err)
	}
	s.url, s.addr = match[1], match[2]
	return s, log
}

// flood sends requests over a few connections, and fails the test when an answer takes
// too long.
func (s *server) flood(requests int) {
	s.t.Helper()
	const callers = 4
	var all sync.WaitGroup
	for range callers {
		all.Go(func() {
			conn, err := net.Dial("tcp", s.addr)
			if err != nil {
				s.t.Error(err)
				return
			}
			defer conn.Close()
			in := bufio.NewReader(conn)
			for i := range requests / callers {
				_ = conn.SetDeadline(time.Now().Add(patient / 4))
				_, err := io.WriteString(conn, "GET /hello HTTP/1.1\r\nHost: x\r\n\r\n")
				var res *http.Response
				if err == nil {
					res, err = http.ReadResponse(in, nil)
				}
				if err == nil {
					_, err = io.Copy(io.Discard, res.Body)
				}
				if err != nil {
					s.t.Errorf("request %d: %v", i, err)
					return
				}
			}
		})
	}
	all.Wait()
}

const logFloodSchema = "routes(\"/\", auth: none, rateLimit: none) { GET /hello -> hello }\n"

const logFloodConfig = "[telemetry]\naccess_log = true\nqueue = \"64kb\"\n[runtime]\nshutdown_timeout = \"300ms\"\n"

func floodRequests() int {
	if soak {
		return 200_000
	}
	return 4000 // far more than a pipe of 64 KiB and the queue hold
}

func TestALogThatIsNotReadHoldsUpNothing(t *testing.T) {
	s, _ := newApp(t, logFloodSchema, logFloodConfig, "echo").servePipe()
	s.flood(floodRequests())
	began := time.Now()
	if err := s.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	select {
	case <-s.ended:
	case <-time.After(patient):
		t.Fatalf("serve still runs %s after SIGTERM", patient)
	}
	if s.err != nil {
		t.Errorf("serve ended with %v", s.err)
	}
	if took := time.Since(began); took > 5*time.Second { // closing the store takes its own time
		t.Errorf("the stop took %s, with a shutdown_timeout of 300ms", took)
	}
}

func TestLinesThatALogLosesAreCounted(t *testing.T) {
	s, log := newApp(t, logFloodSchema, logFloodConfig, "echo").servePipe()
	n := floodRequests()
	s.flood(n)
	_ = log.SetReadDeadline(time.Now().Add(patient))
	told, discarded := 0, 0
	lines := bufio.NewScanner(log)
	stopped := false
	for lines.Scan() {
		var line struct {
			Msg   string
			Lines int
		}
		if err := json.Unmarshal(lines.Bytes(), &line); err != nil {
			t.Fatalf("%q: %v", lines.Text(), err)
		}
		switch line.Msg {
		case "request":
			told++
		case "log lines discarded":
			discarded += line.Lines
		}
		if discarded > 0 && !stopped { // and what was logged last is flushed
			stopped = true
			_ = s.cmd.Process.Signal(syscall.SIGTERM)
		}
	}
	<-s.ended
	if s.err != nil || discarded == 0 || told+discarded != n {
		t.Errorf("%d requests: %d lines told, %d counted as discarded; ended with %v", n, told, discarded, s.err)
	}
	t.Logf("%d requests: %d lines told, %d discarded", n, told, discarded)
}
