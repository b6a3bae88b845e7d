package harness

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"
)

// Server is a running `runner serve`, or `runner dev`.
type Server struct {
	T    testing.TB
	App  *App
	Cmd  *exec.Cmd
	Addr string
	URL  string

	client *http.Client // nil: Client
	Stderr logFile
	Ended  chan struct{} // closed when the process has ended
	Err    error         // of the process, set before ended is closed
}

var ReadyLine = regexp.MustCompile(`^listening on (https?://(127\.0\.0\.1:\d+))$`)

// Serve starts `runner serve` on a free loopback port and waits until it listens. The
// server stops when the test ends; if it does not exit cleanly, the test fails.
func (a *App) Serve(args ...string) *Server {
	a.T.Helper()
	return a.Start("serve", args...)
}

// Start is Serve for another command that serves.
func (a *App) Start(command string, args ...string) *Server {
	a.T.Helper()
	s := a.Launch(command, args...)
	if s.URL == "" {
		a.T.Fatalf("%s exited before it was ready: %v\n%s", command, s.Err, s.Stderr.String())
	}
	return s
}

// Launch starts a command and waits until it listens or exits. If it exited, URL is empty.
func (a *App) Launch(command string, args ...string) *Server {
	a.T.Helper()
	s := &Server{T: a.T, App: a, Stderr: newLogFile(a.T), Ended: make(chan struct{})}
	if a.Namespace != "" {
		s.client = clientIn(a.Namespace)
	}
	s.Cmd = a.command(context.Background(), append([]string{command, "--listen", "127.0.0.1:0"}, args...)...)
	s.Cmd.Stderr = s.Stderr.File
	if toml, _ := os.ReadFile(a.Path("runner.toml")); !bytes.Contains(toml, []byte("shutdown_timeout")) {
		// On a machine with a high load, a shutdown without requests may take longer than the default.
		s.Cmd.Env = append([]string{"RUNNER_RUNTIME_SHUTDOWN_TIMEOUT=30s"}, s.Cmd.Env...) // a.Env may replace it
	}
	stdout, err := s.Cmd.StdoutPipe()
	if err != nil {
		a.T.Fatal(err)
	}
	if err := s.Cmd.Start(); err != nil {
		a.T.Fatal(err)
	}
	ready := make(chan string, 1)
	go func() {
		defer close(s.Ended)
		lines := bufio.NewScanner(stdout)
		if lines.Scan() {
			ready <- lines.Text()
		}
		for lines.Scan() {
			fmt.Fprintf(s.Stderr, "more on stdout: %s\n", lines.Text())
		}
		s.Err = s.Cmd.Wait()
		s.Stderr.Close() // what it holds stays
	}()
	a.T.Cleanup(s.Stop)
	select {
	case line := <-ready:
		match := ReadyLine.FindStringSubmatch(line)
		if match == nil {
			a.T.Fatalf("stdout begins with %q, want the listening line", line)
		}
		s.URL, s.Addr = match[1], match[2]
	case <-s.Ended:
	case <-time.After(BuildTimeout):
		a.T.Fatalf("%s is not ready after %s\n%s", command, BuildTimeout, s.Stderr.String())
	}
	return s
}

// Stop sends SIGTERM, waits, and checks the exit status and the log. It may be called more
// than once.
func (s *Server) Stop() {
	s.T.Helper()
	select {
	case <-s.Ended:
		return // killed or stopped by the test itself
	default:
	}
	cmp.Or(s.client, Client).CloseIdleConnections() // the server would wait for their next requests
	_ = s.Cmd.Process.Signal(syscall.SIGTERM)
	select {
	case <-s.Ended:
	case <-time.After(Timeout):
		_ = s.Cmd.Process.Kill()
		s.T.Errorf("serve did not exit within %s of SIGTERM\n%s", Timeout, s.Stderr.String())
		return
	}
	if s.Err != nil {
		s.T.Errorf("serve failed: %v\n%s", s.Err, s.Stderr.String())
	}
	if log := s.Stderr.String(); strings.Contains(log, "BUG:") || strings.Contains(log, "DATA RACE") || strings.Contains(log, "goroutine ") {
		s.T.Errorf("the log has a defect of the server:\n%s", log)
	}
}

// Kill kills the server, as a crash would.
func (s *Server) Kill() {
	_ = s.Cmd.Process.Kill()
	<-s.Ended
}

// Client follows no redirects and adds no compression.
var Client = &http.Client{
	CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	Transport:     &http.Transport{DisableCompression: true, MaxIdleConnsPerHost: 64},
	Timeout:       time.Minute,
}

// Do sends a request. Headers have the form "name: value".
func (s *Server) Do(method, path, body string, headers ...string) Answer {
	s.T.Helper()
	a, err := s.Try(method, path, body, headers...)
	if err != nil {
		s.T.Fatalf("%s %s: %v\n%s", method, path, err, s.Stderr.String())
	}
	return a
}

// Try is Do for goroutines that must not call Fatal.
func (s *Server) Try(method, path, body string, headers ...string) (Answer, error) {
	req, err := http.NewRequest(method, s.URL+path, strings.NewReader(body))
	if err != nil {
		return Answer{}, err
	}
	for _, line := range headers {
		name, value, _ := strings.Cut(line, ": ")
		req.Header.Add(name, value)
	}
	res, err := cmp.Or(s.client, Client).Do(req)
	if err != nil {
		return Answer{}, err
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	return Answer{res.StatusCode, res.Header, string(text)}, err
}

// Get sends a GET with a bearer token, unless it is empty.
func (s *Server) Get(path, token string) Answer {
	s.T.Helper()
	if token == "" {
		return s.Do("GET", path, "")
	}
	return s.Do("GET", path, "", "Authorization: Bearer "+token)
}

// Raw writes bytes to a new connection and reads until the server closes it or sends
// nothing for the time given. The first byte may take longer.
func (s *Server) Raw(request string, quiet time.Duration) string {
	s.T.Helper()
	reply, _ := s.Exchange(request, quiet, func(reply string) bool { return reply != "" })
	return reply
}

// Exchange is Raw, and reports whether the server closed the connection. Until enough
// returns true, bytes may take longer.
func (s *Server) Exchange(request string, quiet time.Duration, enough func(reply string) bool) (reply string, closed bool) {
	s.T.Helper()
	conn, err := net.Dial("tcp", s.Addr)
	if err != nil {
		s.T.Fatal(err)
	}
	defer conn.Close()
	if _, err := io.WriteString(conn, request); err != nil && !errors.Is(err, syscall.EPIPE) && !errors.Is(err, syscall.ECONNRESET) {
		s.T.Fatal(err)
	}
	var all []byte
	buf := make([]byte, 64<<10)
	for {
		patience := quiet
		if !enough(string(all)) {
			patience = max(quiet, Timeout)
		}
		if err := conn.SetReadDeadline(time.Now().Add(patience)); err != nil {
			s.T.Fatal(err)
		}
		n, err := conn.Read(buf)
		all = append(all, buf[:n]...)
		if err != nil {
			return string(all), !errors.Is(err, os.ErrDeadlineExceeded)
		}
	}
}

// WaitUntil waits until holds returns true. It fails with the log after Timeout, or when
// the process exits.
func (s *Server) WaitUntil(what string, holds func() bool) {
	s.T.Helper()
	for end := time.Now().Add(Timeout); !holds(); <-time.After(5 * time.Millisecond) {
		select {
		case <-s.Ended:
			s.T.Fatalf("%s: the process has exited: %v\n%s", what, s.Err, s.Stderr.String())
		default:
		}
		if time.Now().After(end) {
			s.T.Fatalf("%s: not within %s\n%s", what, Timeout, pollingLines.ReplaceAllString(s.Stderr.String(), ""))
		}
	}
}

// pollingLines matches the lines about requests with which a test polls.
var pollingLines = regexp.MustCompile(`(?m)^.* GET .* (200|404 route_not_found|503 not_ready) .*\n(.*│ .*\n)?`)

// WaitForOutput waits until the log matches a pattern.
func (s *Server) WaitForOutput(pattern string) {
	s.T.Helper()
	form := regexp.MustCompile(pattern)
	s.WaitUntil("output: "+pattern, func() bool { return form.MatchString(s.Stderr.String()) })
}

// WaitForBody waits until a path answers with a JSON string.
func (s *Server) WaitForBody(path, want string) {
	s.T.Helper()
	s.WaitUntil(fmt.Sprintf("%s answers %q", path, want), func() bool {
		got, err := s.Try("GET", path, "")
		return err == nil && got.Status == 200 && got.Body == `"`+want+`"`
	})
}

// WantBody checks that a path answers with a JSON string now.
func (s *Server) WantBody(path, want string) {
	s.T.Helper()
	if got := s.Get(path, ""); got.Status != 200 || got.Body != `"`+want+`"` {
		s.T.Errorf("%s answers %d %s, want %q", path, got.Status, got.Body, want)
	}
}

// Want is Do, and checks the status. If v is not nil, it decodes the body into v.
func (s *Server) Want(status int, v any, method, path, body string, headers ...string) Answer {
	s.T.Helper()
	got := s.Do(method, path, body, headers...)
	if got.Status != status {
		s.T.Errorf("%s %s %s: %d %s, want %d", method, path, body, got.Status, got.Body, status)
		return got
	}
	if v != nil {
		if err := json.Unmarshal([]byte(got.Body), v); err != nil {
			s.T.Errorf("%s %s: read %q: %v", method, path, got.Body, err)
		}
	}
	return got
}

// OtherService is a TLS service on loopback that an app may declare. A server that trusts
// the certificate can reach it.
func OtherService(t *testing.T, handler http.HandlerFunc) (origin, certificate string) {
	t.Helper()
	service := httptest.NewUnstartedServer(handler)
	service.Config.ErrorLog = log.New(io.Discard, "", 0)
	service.StartTLS()
	t.Cleanup(service.Close)
	return service.URL, string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: service.Certificate().Raw}))
}

// Matches is Do with a bearer token, and checks the status and that a pattern matches the
// whole body.
func (s *Server) Matches(status int, want, method, path, body, token string) Answer {
	s.T.Helper()
	got := s.Do(method, path, body, "Authorization: Bearer "+token)
	if got.Status != status || !regexp.MustCompile("^"+want+"$").MatchString(got.Body) {
		s.T.Errorf("%s %s answers %d %s, want %d %s", method, path, got.Status, got.Body, status, want)
	}
	return got
}
