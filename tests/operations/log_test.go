package operations_test

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

	"runner.example/tests/harness"
)

// servePipe starts serve with a pipe as its log, and returns the pipe's reading end.
func servePipe(a *harness.App) (s *harness.Server, log *os.File) {
	a.T.Helper()
	log, w, err := os.Pipe()
	if err != nil {
		a.T.Fatal(err)
	}
	a.T.Cleanup(func() { log.Close() })
	s = &harness.Server{T: a.T, App: a, Ended: make(chan struct{})}
	s.Cmd = exec.Command(harness.Binary, "serve", "--listen", "127.0.0.1:0")
	s.Cmd.Dir, s.Cmd.Env, s.Cmd.Stderr = a.Dir, append(os.Environ(), a.Env...), w
	stdout, err := s.Cmd.StdoutPipe()
	if err != nil {
		a.T.Fatal(err)
	}
	if err := s.Cmd.Start(); err != nil {
		a.T.Fatal(err)
	}
	w.Close()
	a.T.Cleanup(func() { _ = s.Cmd.Process.Kill(); <-s.Ended })
	first, err := bufio.NewReader(stdout).ReadString('\n')
	go func() {
		defer close(s.Ended)
		s.Err = s.Cmd.Wait()
	}()
	match := harness.ReadyLine.FindStringSubmatch(strings.TrimSpace(first))
	if err != nil || match == nil {
		a.T.Fatalf("stdout begins with %q (%v), want the listening line", first, err)
	}
	s.URL, s.Addr = match[1], match[2]
	return s, log
}

// flood sends requests over a few connections. The test fails when a response takes too
// long.
func flood(s *harness.Server, requests int) {
	s.T.Helper()
	const callers = 4
	var all sync.WaitGroup
	for range callers {
		all.Go(func() {
			conn, err := net.Dial("tcp", s.Addr)
			if err != nil {
				s.T.Error(err)
				return
			}
			defer conn.Close()
			in := bufio.NewReader(conn)
			for i := range requests / callers {
				_ = conn.SetDeadline(time.Now().Add(harness.Timeout / 4))
				_, err := io.WriteString(conn, "GET /hello HTTP/1.1\r\nHost: x\r\n\r\n")
				var res *http.Response
				if err == nil {
					res, err = http.ReadResponse(in, nil)
				}
				if err == nil {
					_, err = io.Copy(io.Discard, res.Body)
				}
				if err != nil {
					s.T.Errorf("request %d: %v", i, err)
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
	if harness.Soak {
		return 200_000
	}
	return 4000 // more than a pipe of 64 KiB and the queue can hold
}

func TestAnUnreadLogBlocksNothing(t *testing.T) {
	s, _ := servePipe(harness.NewApp(t, logFloodSchema, logFloodConfig, "echo"))
	flood(s, floodRequests())
	began := time.Now()
	if err := s.Cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	select {
	case <-s.Ended:
	case <-time.After(harness.Timeout):
		t.Fatalf("serve still runs %s after SIGTERM", harness.Timeout)
	}
	if s.Err != nil {
		t.Errorf("serve ended with %v", s.Err)
	}
	if took := time.Since(began); took > harness.Timeout/2 { // closing the store is not limited
		t.Errorf("the stop took %s, with a shutdown_timeout of 300ms", took)
	}
}

func TestDiscardedLogLinesAreCounted(t *testing.T) {
	s, log := servePipe(harness.NewApp(t, logFloodSchema, logFloodConfig, "echo"))
	n := floodRequests()
	flood(s, n)
	_ = log.SetReadDeadline(time.Now().Add(harness.Timeout))
	written, discarded := 0, 0
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
			written++
		case "log lines discarded":
			discarded += line.Lines
		}
		if discarded > 0 && !stopped { // the last lines are written at shutdown
			stopped = true
			_ = s.Cmd.Process.Signal(syscall.SIGTERM)
		}
	}
	<-s.Ended
	if s.Err != nil || discarded == 0 || written+discarded != n {
		t.Errorf("%d requests: %d lines written, %d counted as discarded; ended with %v", n, written, discarded, s.Err)
	}
	t.Logf("%d requests: %d lines written, %d discarded", n, written, discarded)
}
