package tests

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// runnerBinary and the guests are built once for all tests.
var (
	runnerBinary string
	guestDir     string
)

func TestMain(m *testing.M) {
	code, err := buildAndRun(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

func buildAndRun(m *testing.M) (int, error) {
	dir, err := os.MkdirTemp("", "runner-tests-")
	if err != nil {
		return 0, err
	}
	defer os.RemoveAll(dir)
	runnerBinary, guestDir = filepath.Join(dir, "runner"), dir
	if err := os.Mkdir(sharedCode(), 0o700); err != nil {
		return 0, err
	}
	args := []string{"build", "-o", runnerBinary}
	if os.Getenv("RUNNER_TEST_RACE") != "" {
		args = append(args, "-race")
	}
	if err := command("..", args[0], append(args[1:], "./cmd/runner")...); err != nil {
		return 0, err
	}
	guests, err := filepath.Glob("guests/*.wat")
	if err != nil || len(guests) == 0 {
		return 0, fmt.Errorf("no guests found: %v", err)
	}
	for _, wat := range guests {
		out, err := exec.Command("wat2wasm", wat, "-o", guestFile(strings.TrimSuffix(filepath.Base(wat), ".wat"))).CombinedOutput()
		if errors.Is(err, exec.ErrNotFound) {
			return 0, errors.New("wat2wasm is missing: apt-get install wabt (make test does it)")
		}
		if err != nil {
			return 0, fmt.Errorf("assemble %s: %w\n%s", wat, err, out)
		}
	}
	return m.Run(), nil
}

func command(dir, name string, args ...string) error {
	cmd := exec.Command("go", append([]string{name}, args...)...)
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("go %s %s: %w\n%s", name, strings.Join(args, " "), err, out)
	}
	return nil
}

func guestFile(name string) string { return filepath.Join(guestDir, name+".wasm") }

func sharedCode() string { return filepath.Join(guestDir, "cache") }

// app is one app folder with its own data.
type app struct {
	t   testing.TB
	dir string
	env []string
}

// newApp writes an app folder: the schema, the named guests as its modules and,
// unless empty, a runner.toml. Without guests, which are small, what its modules are
// compiled to is shared with other apps.
func newApp(t testing.TB, schema, toml string, guests ...string) *app {
	t.Helper()
	a := &app{t: t, dir: t.TempDir()}
	a.write("app.schema", schema)
	if toml != "" {
		a.write("runner.toml", toml)
	}
	for _, guest := range guests {
		module, err := os.ReadFile(guestFile(guest))
		if err != nil {
			t.Fatal(err)
		}
		a.write(filepath.Join("build", guest+".wasm"), string(module))
	}
	if len(guests) == 0 {
		a.shareCode()
	}
	return a
}

// shareCode lets the servers of the app find what those of other apps have compiled.
func (a *app) shareCode() {
	a.t.Helper()
	if err := os.Mkdir(a.path("data"), 0o700); err != nil {
		a.t.Fatal(err)
	}
	if err := os.Symlink(sharedCode(), a.path("data/cache")); err != nil {
		a.t.Fatal(err)
	}
}

// nextMillisecond returns when the times of rows are others.
func nextMillisecond() {
	for now := time.Now().UnixMilli(); time.Now().UnixMilli() == now; {
	}
}

func (a *app) path(name string) string { return filepath.Join(a.dir, name) }

func (a *app) write(name, text string) {
	a.t.Helper()
	if err := os.MkdirAll(filepath.Dir(a.path(name)), 0o755); err != nil {
		a.t.Fatal(err)
	}
	// Whoever watches the file sees what it was or what it is, and nothing between.
	if err := os.WriteFile(a.path(name)+".tmp", []byte(text), 0o644); err != nil {
		a.t.Fatal(err)
	}
	if err := os.Rename(a.path(name)+".tmp", a.path(name)); err != nil {
		a.t.Fatal(err)
	}
}

// result is what a command printed and how it ended.
type result struct {
	stdout, stderr string
	status         int
}

// patient is how long a test waits for what has to come, and patientWithCompilers for
// what may run them.
const (
	patient              = time.Minute
	patientWithCompilers = 5 * time.Minute
)

// run runs the binary with args in the app's folder.
func (a *app) run(args ...string) result {
	a.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patientWithCompilers)
	defer cancel()
	cmd := exec.CommandContext(ctx, runnerBinary, args...)
	cmd.Dir = a.dir
	cmd.Env = append(os.Environ(), a.env...)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err := cmd.Run()
	if ctx.Err() != nil {
		a.t.Fatalf("runner %s: still running after %s\n%s", strings.Join(args, " "), patientWithCompilers, stderr.String())
	}
	if exit, ok := errors.AsType[*exec.ExitError](err); err != nil && !ok {
		a.t.Fatalf("runner %s: %v", strings.Join(args, " "), err)
	} else if ok && exit.ExitCode() < 0 {
		a.t.Fatalf("runner %s: %v\n%s", strings.Join(args, " "), err, stderr.String())
	}
	return result{stdout.String(), stderr.String(), cmd.ProcessState.ExitCode()}
}

// must runs a command that has to succeed and gives its stdout.
func (a *app) must(args ...string) string {
	a.t.Helper()
	r := a.run(args...)
	if r.status != 0 {
		a.t.Fatalf("runner %s: exit status %d\n%s%s", strings.Join(args, " "), r.status, r.stdout, r.stderr)
	}
	return r.stdout
}

// apiKey is the key object as `--json` prints it.
type apiKey struct {
	ID, Scope, Name, Status, Hint, Token        string
	Capability                                  string
	CreatedAt                                   string
	ExpiresAt, RevokedAt, RotatedAt, LastUsedAt *string
	PreviousTokenExpiresAt                      *string
	Metadata                                    json.RawMessage
}

// key runs a command of api-keys that prints one key.
func (a *app) key(args ...string) apiKey {
	a.t.Helper()
	var key apiKey
	out := a.must(append(append([]string{"api-keys"}, args...), "--json")...)
	if err := json.Unmarshal([]byte(out), &key); err != nil {
		a.t.Fatalf("read %q: %v", out, err)
	}
	return key
}

// token makes a key of the scope and gives its token.
func (a *app) token(scope string) string {
	a.t.Helper()
	key := a.key("create", "--scope", scope, "--name", "test "+scope)
	if key.Token == "" {
		a.t.Fatal("api-keys create printed no token")
	}
	return key.Token
}

// server is a running `runner serve`, or `runner dev`.
type server struct {
	t    testing.TB
	app  *app
	cmd  *exec.Cmd
	addr string
	url  string

	stderr logFile
	ended  chan struct{} // closed when the process has ended
	err    error         // of the process, set before ended is closed
}

var readyLine = regexp.MustCompile(`^listening on (http://(127\.0\.0\.1:\d+))$`)

// serve starts the server on a free port of loopback and waits until it is
// ready. It ends with the test; a test fails whose server ended badly.
func (a *app) serve(args ...string) *server {
	a.t.Helper()
	return a.start("serve", args...)
}

// start starts a command that serves.
func (a *app) start(command string, args ...string) *server {
	a.t.Helper()
	s := a.launch(command, args...)
	if s.url == "" {
		a.t.Fatalf("%s ended before it was ready: %v\n%s", command, s.err, s.stderr.String())
	}
	return s
}

// launch starts a command and waits until it serves or has ended; then it has no URL.
func (a *app) launch(command string, args ...string) *server {
	a.t.Helper()
	s := &server{t: a.t, app: a, stderr: newLogFile(a.t), ended: make(chan struct{})}
	s.cmd = exec.Command(runnerBinary, append([]string{command, "--listen", "127.0.0.1:0"}, args...)...)
	s.cmd.Dir = a.dir
	s.cmd.Env = append(os.Environ(), a.env...)
	s.cmd.Stderr = s.stderr.File
	stdout, err := s.cmd.StdoutPipe()
	if err != nil {
		a.t.Fatal(err)
	}
	if err := s.cmd.Start(); err != nil {
		a.t.Fatal(err)
	}
	ready := make(chan string, 1)
	go func() {
		defer close(s.ended)
		lines := bufio.NewScanner(stdout)
		if lines.Scan() {
			ready <- lines.Text()
		}
		for lines.Scan() {
			fmt.Fprintf(s.stderr, "more on stdout: %s\n", lines.Text())
		}
		s.err = s.cmd.Wait()
		s.stderr.Close() // what it holds stays
	}()
	a.t.Cleanup(s.stop)
	select {
	case line := <-ready:
		match := readyLine.FindStringSubmatch(line)
		if match == nil {
			a.t.Fatalf("stdout begins with %q, want the listening line", line)
		}
		s.url, s.addr = match[1], match[2]
	case <-s.ended:
	case <-time.After(patientWithCompilers):
		a.t.Fatalf("%s is not ready after %s\n%s", command, patientWithCompilers, s.stderr.String())
	}
	return s
}

// stop ends the server as an operator would and checks that it went well. It
// may be called more than once.
func (s *server) stop() {
	s.t.Helper()
	select {
	case <-s.ended:
		return // killed or stopped by the test itself
	default:
	}
	_ = s.cmd.Process.Signal(syscall.SIGTERM)
	select {
	case <-s.ended:
	case <-time.After(patient):
		_ = s.cmd.Process.Kill()
		s.t.Errorf("serve did not end within %s of SIGTERM\n%s", patient, s.stderr.String())
		return
	}
	if s.err != nil {
		s.t.Errorf("serve ended badly: %v\n%s", s.err, s.stderr.String())
	}
	if log := s.stderr.String(); strings.Contains(log, "BUG:") || strings.Contains(log, "DATA RACE") || strings.Contains(log, "goroutine ") {
		s.t.Errorf("the log tells of a fault of ours:\n%s", log)
	}
}

// kill ends the server as a crash would.
func (s *server) kill() {
	_ = s.cmd.Process.Kill()
	<-s.ended
}

// answer is one HTTP answer, read whole.
type answer struct {
	status int
	header http.Header
	body   string
}

// problem is the body of a refusal.
type problem struct {
	Type, Title, Detail, Instance, Code string
	Status                              int
	RequestID                           string `json:"requestId"`
}

func (a answer) problem(t testing.TB) problem {
	t.Helper()
	if ct := a.header.Get("Content-Type"); ct != "application/problem+json" {
		t.Fatalf("status %d, content type %q, body %q: not problem+json", a.status, ct, a.body)
	}
	var p problem
	if err := json.Unmarshal([]byte(a.body), &p); err != nil {
		t.Fatalf("read problem %q: %v", a.body, err)
	}
	if p.Status != a.status || p.RequestID == "" || p.RequestID != a.header.Get("X-Request-Id") {
		t.Errorf("problem %q does not fit its answer: status %d, X-Request-Id %q", a.body, a.status, a.header.Get("X-Request-Id"))
	}
	return p
}

// client follows no redirects and adds no compression.
var client = &http.Client{
	CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	Transport:     &http.Transport{DisableCompression: true, MaxIdleConnsPerHost: 64},
	Timeout:       time.Minute,
}

// do sends one request; headers are "name: value" lines.
func (s *server) do(method, path, body string, headers ...string) answer {
	s.t.Helper()
	a, err := s.try(method, path, body, headers...)
	if err != nil {
		s.t.Fatalf("%s %s: %v\n%s", method, path, err, s.stderr.String())
	}
	return a
}

// try is do for goroutines that may not end the test.
func (s *server) try(method, path, body string, headers ...string) (answer, error) {
	req, err := http.NewRequest(method, s.url+path, strings.NewReader(body))
	if err != nil {
		return answer{}, err
	}
	for _, line := range headers {
		name, value, _ := strings.Cut(line, ": ")
		req.Header.Add(name, value)
	}
	res, err := client.Do(req)
	if err != nil {
		return answer{}, err
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	return answer{res.StatusCode, res.Header, string(text)}, err
}

// get sends a GET with a bearer token, or none when it is empty.
func (s *server) get(path, token string) answer {
	s.t.Helper()
	if token == "" {
		return s.do("GET", path, "")
	}
	return s.do("GET", path, "", "Authorization: Bearer "+token)
}

// raw writes bytes to a new connection and reads until the server closes it, or
// says nothing more for the time given; the first byte may take longer.
func (s *server) raw(request string, quiet time.Duration) string {
	s.t.Helper()
	reply, _ := s.exchange(request, quiet, func(reply string) bool { return reply != "" })
	return reply
}

// exchange is raw, and tells whether the server closed the connection. What comes
// until enough has come may take longer.
func (s *server) exchange(request string, quiet time.Duration, enough func(reply string) bool) (reply string, closed bool) {
	s.t.Helper()
	conn, err := net.Dial("tcp", s.addr)
	if err != nil {
		s.t.Fatal(err)
	}
	defer conn.Close()
	if _, err := io.WriteString(conn, request); err != nil && !errors.Is(err, syscall.EPIPE) && !errors.Is(err, syscall.ECONNRESET) {
		s.t.Fatal(err)
	}
	var all []byte
	buf := make([]byte, 64<<10)
	for {
		patience := quiet
		if !enough(string(all)) {
			patience = max(quiet, patient)
		}
		if err := conn.SetReadDeadline(time.Now().Add(patience)); err != nil {
			s.t.Fatal(err)
		}
		n, err := conn.Read(buf)
		all = append(all, buf[:n]...)
		if err != nil {
			return string(all), !errors.Is(err, os.ErrDeadlineExceeded)
		}
	}
}

// logFile is a file that a process writes its log to. What the process has written is
// there at once, as it is not in a pipe that somebody has to empty.
type logFile struct{ *os.File }

func newLogFile(t testing.TB) logFile {
	t.Helper()
	file, err := os.CreateTemp(guestDir, "log-")
	if err != nil {
		t.Fatal(err)
	}
	return logFile{file}
}

// String gives what was written up to now.
func (f logFile) String() string {
	if f.File == nil {
		return ""
	}
	text, err := os.ReadFile(f.Name())
	if err != nil {
		return err.Error()
	}
	return string(text)
}

// lockedBuffer is a bytes.Buffer that a process writes and a test reads.
type lockedBuffer struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.String()
}
