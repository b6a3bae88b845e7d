package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	stdflag "flag"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"runner.example/cmd/runner/cli"
	"runner.example/internal/console"
	"runner.example/internal/fault"
	"runner.example/state/audit"
	"runner.example/state/store"
)

var update = stdflag.Bool("update", false, "rewrite what the scripts expect")

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"runner": main})
}

// TestScripts runs the real program, as users do.
func TestScripts(t *testing.T) {
	if _, err := exec.LookPath("wat2wasm"); err != nil && testing.Short() {
		t.Skip("wat2wasm is missing: apt-get install wabt")
	}
	if _, err := exec.LookPath("wat2wasm"); err != nil {
		t.Fatal("the scripts assemble modules with wat2wasm: apt-get install wabt")
	}
	testscript.Run(t, testscript.Params{
		Dir:           "testdata/script",
		UpdateScripts: *update,
		Setup: func(env *testscript.Env) error {
			env.Values[serverKey{}] = new(server)
			return nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"status":  status,
			"pick":    pick,
			"mask":    mask,
			"up":      up,
			"signal":  sendSignal,
			"logged":  logged,
			"ended":   ended,
			"request": request,
			"hang":    hang,
		},
	})
}

// status runs a program and checks its exit status:
//
//	status 3 runner check
func status(ts *testscript.TestScript, _ bool, args []string) {
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	got := 0
	err = ts.Exec(args[1], args[2:]...)
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		got = exit.ExitCode()
	} else {
		ts.Check(err)
	}
	if got != want {
		ts.Fatalf("exit status %d, want %d", got, want)
	}
}

// pick sets a variable to the group of a pattern that matches in stdout:
//
//	pick ID '^id +(key_\w+)$'
func pick(ts *testscript.TestScript, _ bool, args []string) {
	found := regexp.MustCompile("(?m)" + args[1]).FindStringSubmatch(ts.ReadFile("stdout"))
	if found == nil {
		ts.Fatalf("stdout does not match %s", args[1])
	}
	ts.Setenv(args[0], found[1])
}

var masks = []struct {
	pattern *regexp.Regexp
	with    string
}{
	{regexp.MustCompile(`[0-9a-f]{64}`), "HASH"},
	{regexp.MustCompile(`key_[0-9a-hjkmnp-tv-z]{26}`), "KEY"},
	{regexp.MustCompile(`[a-z0-9]{2,8}_[0-9A-Za-z]{36}`), "TOKEN"},
	{regexp.MustCompile(`[a-z0-9]{2,8}_…[0-9A-Za-z]{4}`), "HINT"},
	{regexp.MustCompile(`[0-9a-hjkmnp-tv-z]{26}`), "ULID"},
	{regexp.MustCompile(`20\d\d-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{1,3})?Z`), "TIME"},
	{regexp.MustCompile(`20\d\d-\d\d-\d\d \d\d:\d\d(:\d\d)?Z`), "TIME"},
	{regexp.MustCompile(`uid:\d+`), "UID"},
	{regexp.MustCompile(`ACTOR {2,}`), "ACTOR  "}, // the column is as wide as the uid
	{regexp.MustCompile(`pid \d+`), "PID"},
	{regexp.MustCompile(`127\.0\.0\.1:\d+`), "ADDRESS"},
}

// mask writes a file, or stdout or stderr, and replaces what differs between runs:
//
//	mask stdout got
func mask(ts *testscript.TestScript, _ bool, args []string) {
	text := ts.ReadFile(args[0])
	for _, m := range masks {
		text = m.pattern.ReplaceAllString(text, m.with)
	}
	ts.Check(os.WriteFile(ts.MkAbs(args[1]), []byte(text), 0o600))
}

// server is a running `runner serve`.
type server struct {
	cmd    *exec.Cmd
	stdout *bufio.Reader
	// log has the lines of stderr; it is closed after the last one.
	log chan string
}

type serverKey struct{}

// up starts `runner serve` with the arguments, on a free port, and waits until it prints
// its address, which becomes $URL.
func up(ts *testscript.TestScript, _ bool, args []string) {
	s := ts.Value(serverKey{}).(*server)
	s.cmd = exec.Command("runner", append([]string{"serve", "--listen", "127.0.0.1:0"}, args...)...)
	s.cmd.Dir = ts.MkAbs(".")
	for _, name := range []string{"PATH", "HOME", "TMPDIR", "RUNNER_SECRETS_HOOK"} {
		if value := ts.Getenv(name); value != "" {
			s.cmd.Env = append(s.cmd.Env, name+"="+value)
		}
	}
	stderr, err := s.cmd.StderrPipe()
	ts.Check(err)
	stdout, err := s.cmd.StdoutPipe()
	ts.Check(err)
	ts.Check(s.cmd.Start())
	ts.Defer(func() { _ = s.cmd.Process.Kill() }) // it may have ended already
	s.log = make(chan string, 10_000)
	go func() {
		defer close(s.log)
		for lines := bufio.NewScanner(stderr); lines.Scan(); {
			s.log <- lines.Text()
		}
	}()
	s.stdout = bufio.NewReader(stdout)
	line, err := s.stdout.ReadString('\n')
	url, ok := strings.CutPrefix(line, "listening on ")
	if err != nil || !ok {
		_ = s.cmd.Process.Kill()
		for line := range s.log {
			ts.Logf("%s", line)
		}
		ts.Fatalf("the server printed %q, %v", line, err)
	}
	ts.Setenv("URL", strings.TrimSpace(url))
}

// sendSignal sends a signal to the server: HUP, TERM, INT or KILL.
func sendSignal(ts *testscript.TestScript, _ bool, args []string) {
	signals := map[string]os.Signal{"HUP": syscall.SIGHUP, "TERM": syscall.SIGTERM, "INT": os.Interrupt, "KILL": os.Kill}
	ts.Check(ts.Value(serverKey{}).(*server).cmd.Process.Signal(signals[args[0]]))
}

// logged waits for a line of the server's log that matches a pattern.
func logged(ts *testscript.TestScript, _ bool, args []string) {
	pattern, late := regexp.MustCompile(args[0]), time.After(time.Minute)
	for {
		select {
		case line, ok := <-ts.Value(serverKey{}).(*server).log:
			if !ok {
				ts.Fatalf("the log ended without a line that matches %s", args[0])
			}
			ts.Logf("%s", line)
			if pattern.MatchString(line) {
				return
			}
		case <-late:
			ts.Fatalf("the log has no line that matches %s", args[0])
		}
	}
}

// ended waits until the server has ended with the given status, without further output.
func ended(ts *testscript.TestScript, _ bool, args []string) {
	s := ts.Value(serverKey{}).(*server)
	rest, err := io.ReadAll(s.stdout)
	ts.Check(err)
	for line := range s.log {
		ts.Logf("%s", line)
	}
	_ = s.cmd.Wait() // the state has the result
	if got := strconv.Itoa(s.cmd.ProcessState.ExitCode()); got != args[0] || len(rest) > 0 {
		ts.Fatalf("the server ended with status %s, having printed %q", got, rest)
	}
}

// request sends a request and checks the status; the body goes to the file body:
//
//	request 200 GET $URL/v1/orders 'Authorization: Bearer '$TOKEN
func request(ts *testscript.TestScript, _ bool, args []string) {
	r, err := http.NewRequest(args[1], args[2], nil)
	ts.Check(err)
	for _, line := range args[3:] {
		name, value, _ := strings.Cut(line, ": ")
		r.Header.Set(name, value)
	}
	answer, err := http.DefaultClient.Do(r)
	ts.Check(err)
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	ts.Check(err)
	ts.Check(os.WriteFile(ts.MkAbs("body"), body, 0o600))
	if got := strconv.Itoa(answer.StatusCode); got != args[0] {
		ts.Fatalf("%s %s: status %s, want %s\n%s", args[1], args[2], got, args[0], body)
	}
}

// hang sends a request and does not wait for its answer.
func hang(ts *testscript.TestScript, _ bool, args []string) {
	at, err := url.Parse(args[1])
	ts.Check(err)
	conn, err := net.Dial("tcp", at.Host)
	ts.Check(err)
	ts.Defer(func() { _ = conn.Close() })
	_, err = fmt.Fprintf(conn, "%s %s HTTP/1.1\r\nHost: %s\r\n\r\n", args[0], at.Path, at.Host)
	ts.Check(err)
}

func TestABrokenPipeIsHarmless(t *testing.T) {
	app := t.TempDir()
	write(t, filepath.Join(app, "a.schema"), "routes(\"/\", auth: none, rateLimit: none) {\n  GET /a -> a\n}\n")
	for _, args := range [][]string{{"routes", app}, {"routes", app, "--json"}, {"version"}, {"--help"}} {
		read, closed, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		_ = read.Close()
		var stderr strings.Builder
		cmd := exec.Command("runner", args...)
		cmd.Stdout, cmd.Stderr = closed, &stderr
		if err := cmd.Run(); err != nil || stderr.Len() > 0 {
			t.Errorf("runner %v into a closed pipe: %v, %s", args, err, &stderr)
		}
		_ = closed.Close()
	}
}

func TestATokenThatCannotBeWrittenIsReported(t *testing.T) {
	app := t.TempDir()
	write(t, filepath.Join(app, "a.schema"), keysSchema)
	read, closed, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	_ = read.Close()
	var stderr strings.Builder
	cmd := exec.Command("runner", "api-keys", "create", "--app", app, "--scope", "s", "--name", "n")
	cmd.Stdout, cmd.Stderr = closed, &stderr
	err = cmd.Run()
	_ = closed.Close()
	if cmd.ProcessState.ExitCode() != console.StatusFailed || !strings.Contains(stderr.String(), "runner: hint: the secret is lost: runner api-keys rotate key_") {
		t.Errorf("%v, %s", err, &stderr)
	}
}

const keysSchema = `apiKeys { scopes: { s: @system("s") { @grant read on A } } }
routes("/", auth: apiKey(s)) { GET /a -> a }
`

func TestACommandThatWaitsForTheStoreCanBeInterrupted(t *testing.T) {
	app := holdStore(t)
	cmd := exec.Command("runner", "api-keys", "list", "--app", app)
	var stderr strings.Builder
	cmd.Stderr = &stderr
	looked := watch(t, app)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	looked()
	if err := cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait() // the state has the result
	if got := cmd.ProcessState.ExitCode(); got != console.StatusInterrupted || stderr.String() != "runner: error: interrupted\n" {
		t.Errorf("status %d, %s", got, &stderr)
	}
}

func TestAnInterruptEndsFmtWhileItReadsStdin(t *testing.T) {
	read, input, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer input.Close()
	var stderr strings.Builder
	cmd := exec.Command("runner", "fmt", "-")
	cmd.Stdin, cmd.Stderr = read, &stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	_ = read.Close()
	// More than a pipe holds: when it is written, the program has begun to read.
	if _, err := input.Write(make([]byte, 1<<20)); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait() // the state has the result
	if got := cmd.ProcessState.ExitCode(); got != console.StatusInterrupted || stderr.String() != "runner: error: interrupted\n" {
		t.Errorf("status %d, %s", got, &stderr)
	}
}

func TestAPermissionErrorHasAHint(t *testing.T) {
	denied := &fs.PathError{Op: "open", Path: "a.schema", Err: syscall.EACCES}
	for _, err := range []error{
		denied,
		console.Invalid("read schema: %w", denied),
		fault.Wrap(denied, fault.Invalid, "read the pepper file"),
		errors.Join(fmt.Errorf("open store: %w", denied), errors.New("close")),
	} {
		var stderr strings.Builder
		status := (&program{&cli.CLI{Console: console.Console{Stderr: &stderr}}}).report(err)
		hint := "runner: hint: run the command as the owner of the file or directory, or change its mode\n"
		if status == 0 || strings.Count(stderr.String(), hint) != 1 {
			t.Errorf("%v: status %d, %s", err, status, &stderr)
		}
	}
}

func TestTheExitStatusAndTheHintAreThoseOfTheFault(t *testing.T) {
	statuses := map[fault.Code]int{
		fault.Invalid: console.StatusInvalid, fault.InvalidJSON: console.StatusInvalid, fault.InvalidInput: console.StatusInvalid,
		fault.NotActivated: console.StatusInvalid, fault.TooLarge: console.StatusInvalid, fault.BodyTooLarge: console.StatusInvalid,
		fault.UnsupportedEncoding: console.StatusInvalid, fault.Limit: console.StatusInvalid,
		fault.NotFound: console.StatusNotFound, fault.Conflict: console.StatusState, fault.WriteConflict: console.StatusState,
		fault.Unavailable: console.StatusUnreachable,
	}
	for _, code := range fault.All() {
		want, ok := statuses[code]
		if !ok {
			want = console.StatusFailed
		}
		f := fault.New(code, "what is wrong")
		for said, err := range map[string]error{
			"runner: error: what is wrong\n":                                     f,
			"runner: error: what is wrong\nrunner: hint: runner nodes list\n":    f.WithHint("runner nodes list"),
			"runner: error: ask: what is wrong\nrunner: hint: runner app list\n": fmt.Errorf("ask: %w", f.WithHint("runner app list")),
		} {
			var stderr strings.Builder
			if got := (&program{&cli.CLI{Console: console.Console{Stderr: &stderr}}}).report(err); got != want || stderr.String() != said {
				t.Errorf("%s: status %d, want %d, and %q, want %q", code, got, want, stderr.String(), said)
			}
		}
	}
}

func TestACommandFailsWhenTheStoreStaysLocked(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds: left out by -short")
	}
	t.Parallel()
	app := holdStore(t)
	cmd := exec.Command("runner", "api-keys", "list", "--app", app)
	out, _ := cmd.CombinedOutput() // the state has the result
	if got := cmd.ProcessState.ExitCode(); got != console.StatusUnreachable || !bytes.Contains(out, []byte("locked by pid "+strconv.Itoa(os.Getpid()))) {
		t.Errorf("status %d, %s", got, out)
	}
}

func TestOnlyTheNodeOfAClusterOpensItsDataDirectory(t *testing.T) {
	app := t.TempDir()
	write(t, filepath.Join(app, "a.schema"), keysSchema)
	st, err := store.Open(store.Options{Dir: filepath.Join(app, "data")})
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(st.SetNode(true), st.Close()); err != nil {
		t.Fatal(err)
	}
	const its = "belongs to a node of a cluster: only its server may open it, so start that with runner serve"
	for _, try := range []struct {
		status int
		says   string
		args   []string
	}{
		{console.StatusUnreachable, its, []string{"api-keys", "list"}},
		{console.StatusUnreachable, its, []string{"audit", "list"}},
		{console.StatusUnreachable, its, []string{"backup", filepath.Join(t.TempDir(), "b")}},
		{console.StatusInvalid, "node.json", []string{"serve", "--listen", "127.0.0.1:0"}}, // no server can be the node
	} {
		args := try.args
		cmd := exec.Command("runner", append(args, "--app", app)...)
		out, _ := cmd.CombinedOutput() // the state has the result
		if got := cmd.ProcessState.ExitCode(); got != try.status || !bytes.Contains(out, []byte(try.says)) {
			t.Errorf("%v: status %d, %s", args, got, out)
		}
	}
}

func TestTheAuditOfAClusterNamesTheNodes(t *testing.T) {
	app := t.TempDir()
	write(t, filepath.Join(app, "a.schema"), keysSchema)
	for _, name := range []string{"", "n1"} {
		st, err := store.Open(store.Options{Dir: filepath.Join(app, "data"), Name: name})
		if err != nil {
			t.Fatal(err)
		}
		_, err = st.Update(t.Context(), func(tx *store.Tx) error {
			return audit.Append(tx, audit.Record{Action: "apiKeys.create", Result: audit.OK})
		})
		if err := errors.Join(err, st.Close()); err != nil {
			t.Fatal(err)
		}
		out, err := exec.Command("runner", "audit", "list", "--app", app).CombinedOutput()
		if err != nil {
			t.Fatalf("%v, %s", err, out)
		}
		lines := strings.Split(strings.TrimSpace(string(out)), "\n")
		head, newest := strings.Fields(lines[0]), strings.Fields(lines[len(lines)-1])
		if named := slices.Contains(head, "NODE"); named != (name != "") || named && newest[len(newest)-1] != name {
			t.Errorf("records of node %q:\n%s", name, out)
		}
	}
	out, err := exec.Command("runner", "audit", "list", "--json", "--app", app).Output()
	var records []audit.Entry
	if err := errors.Join(err, json.Unmarshal(out, &records)); err != nil || len(records) != 2 || records[0].Node != "" || records[1].Node != "n1" {
		t.Errorf("%v, %s", err, out)
	}
}

func TestACommandWaitsForALockedStore(t *testing.T) {
	app := t.TempDir()
	write(t, filepath.Join(app, "a.schema"), keysSchema)
	st, err := store.Open(store.Options{Dir: filepath.Join(app, "data")})
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("runner", "api-keys", "list", "--app", app, "--json")
	var stdout strings.Builder
	cmd.Stdout = &stdout
	looked := watch(t, app)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	looked()
	if err := errors.Join(st.Close(), cmd.Wait()); err != nil || stdout.String() != "[]\n" {
		t.Errorf("%v, %s", err, &stdout)
	}
}

func TestAServerWaitsForALockedStore(t *testing.T) {
	app := t.TempDir()
	write(t, filepath.Join(app, "a.schema"), keysSchema)
	writeModule(t, app)
	st, err := store.Open(store.Options{Dir: filepath.Join(app, "data")})
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("runner", "serve", app, "--listen", "127.0.0.1:0")
	var stderr strings.Builder
	cmd.Stderr = &stderr
	looked := watch(t, app)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	looked()
	if err := st.Close(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait() // the state has the result
	// With the store open, it reaches the module, which is invalid.
	if got := cmd.ProcessState.ExitCode(); got != console.StatusInvalid || !strings.Contains(stderr.String(), "build/a.wasm") {
		t.Errorf("status %d, %s", got, &stderr)
	}
}

func TestAServerFailsWhenTheStoreStaysLocked(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds: left out by -short")
	}
	t.Parallel()
	app := holdStore(t)
	writeModule(t, app)
	cmd := exec.Command("runner", "serve", app, "--listen", "127.0.0.1:0")
	out, _ := cmd.CombinedOutput() // the state has the result
	want := "locked by pid " + strconv.Itoa(os.Getpid()) + ": stop that process, or choose another directory with --data"
	if got := cmd.ProcessState.ExitCode(); got != console.StatusFailed || !bytes.Contains(out, []byte(want)) {
		t.Errorf("status %d, %s", got, out)
	}
}

// holdStore returns an app whose store this process keeps open until the test ends.
func holdStore(t *testing.T) (app string) {
	t.Helper()
	app = t.TempDir()
	write(t, filepath.Join(app, "a.schema"), keysSchema)
	st, err := store.Open(store.Options{Dir: filepath.Join(app, "data")})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = st.Close() })
	return app
}

// writeModule writes a module that cannot be compiled to the app.
func writeModule(t *testing.T, app string) {
	t.Helper()
	if err := os.Mkdir(filepath.Join(app, "build"), 0o700); err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(app, "build", "a.wasm"), "no module")
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}
