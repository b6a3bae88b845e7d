package harness

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"runner.example/internal/system/clock"
)

// Timeout is how long a test waits for an event, and BuildTimeout when compilers may run.
const (
	Timeout      = time.Minute
	BuildTimeout = 5 * time.Minute
)

// Soak asks for the long form of the tests.
var Soak = os.Getenv("RUNNER_SOAK") != ""

// App is an app directory with its own data directory.
type App struct {
	T      testing.TB
	Dir    string
	Env    []string // added to the environment of the test
	Binary string   // the program to run instead of the runner, unless empty
	Native bool     // Binary is for this machine, also if the runner under test is not: see HostRunner
	// Namespace is the network namespace in which the program runs; empty: that of the test.
	Namespace string
}

// command is the runner with args, in the app's directory and environment.
func (a *App) command(ctx context.Context, args ...string) *exec.Cmd {
	uncached()
	binary := Binary
	if a.Binary != "" {
		binary = a.Binary
	}
	if emulator := os.Getenv("RUNNER_TEST_EMULATOR"); emulator != "" && !a.Native {
		binary, args = emulator, append([]string{binary}, args...)
	}
	if a.Namespace != "" {
		binary, args = "ip", append([]string{"netns", "exec", a.Namespace, binary}, args...)
	}
	cmd := exec.CommandContext(ctx, binary, args...)
	cmd.Dir, cmd.Env = a.Dir, append(os.Environ(), a.Env...)
	return cmd
}

// NewApp writes an app directory: the schema, the named guests as modules and, unless it is
// empty, runner.toml. An app without guests shares compiled modules with other apps; guests
// are small and compiled each time.
func NewApp(t testing.TB, schema, toml string, guests ...string) *App {
	t.Helper()
	uncached()
	a := &App{T: t, Dir: t.TempDir()}
	a.Write("app.schema", schema)
	if toml != "" {
		a.Write("runner.toml", toml)
	}
	for _, guest := range guests {
		module, err := os.ReadFile(GuestFile(guest))
		if err != nil {
			t.Fatal(err)
		}
		a.Write(filepath.Join("build", guest+".wasm"), string(module))
	}
	if len(guests) == 0 {
		a.ShareCode()
	}
	return a
}

// ShareCode makes the app use the compiled modules of other apps.
func (a *App) ShareCode() {
	a.T.Helper()
	if err := os.MkdirAll(a.Path("data"), 0o700); err != nil {
		a.T.Fatal(err)
	}
	if err := os.Symlink(compiledCode, a.Path("data/cache")); err != nil {
		a.T.Fatal(err)
	}
}

// Move moves the app to another directory, such as one on a SmallDisk.
func (a *App) Move(dir string) {
	a.T.Helper()
	if err := os.CopyFS(dir, os.DirFS(a.Dir)); err != nil {
		a.T.Fatal(err)
	}
	a.Dir = dir
}

// NextMillisecond returns in the next millisecond, so that later rows have later times.
func NextMillisecond() {
	for now := time.Now().UnixMilli(); time.Now().UnixMilli() == now; {
	}
}

func (a *App) Path(name string) string { return filepath.Join(a.Dir, name) }

func (a *App) Write(name, text string) {
	a.T.Helper()
	if err := os.MkdirAll(filepath.Dir(a.Path(name)), 0o755); err != nil {
		a.T.Fatal(err)
	}
	// A process that watches the file sees the old or the new text, never a part.
	if err := os.WriteFile(a.Path(name)+".tmp", []byte(text), 0o644); err != nil {
		a.T.Fatal(err)
	}
	if err := os.Rename(a.Path(name)+".tmp", a.Path(name)); err != nil {
		a.T.Fatal(err)
	}
}

// Remove removes files and directories with all they contain.
func (a *App) Remove(names ...string) {
	a.T.Helper()
	for _, name := range names {
		if err := os.RemoveAll(a.Path(name)); err != nil {
			a.T.Fatal(err)
		}
	}
}

// Result is the output and the exit status of a command, and the most memory that it took.
type Result struct {
	Stdout, Stderr string
	Status         int
	PeakBytes      int
}

// Run runs the binary with args in the app's directory.
func (a *App) Run(args ...string) Result {
	a.T.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), BuildTimeout)
	defer cancel()
	cmd := a.command(ctx, args...)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err := cmd.Run()
	if ctx.Err() != nil {
		a.T.Fatalf("runner %s: still running after %s\n%s", strings.Join(args, " "), BuildTimeout, stderr.String())
	}
	if exit, ok := errors.AsType[*exec.ExitError](err); err != nil && !ok {
		a.T.Fatalf("runner %s: %v", strings.Join(args, " "), err)
	} else if ok && exit.ExitCode() < 0 {
		a.T.Fatalf("runner %s: %v\n%s", strings.Join(args, " "), err, stderr.String())
	}
	return Result{stdout.String(), stderr.String(), cmd.ProcessState.ExitCode(), peakMemory(cmd.ProcessState)}
}

// Must runs a command that must succeed, and returns its stdout.
func (a *App) Must(args ...string) string {
	a.T.Helper()
	r := a.Run(args...)
	if r.Status != 0 {
		a.T.Fatalf("runner %s: exit status %d\n%s%s", strings.Join(args, " "), r.Status, r.Stdout, r.Stderr)
	}
	return r.Stdout
}

// APIKey is the API key object that `--json` prints.
type APIKey struct {
	ID, Scope, Name, Status, Hint, Token        string
	Capability                                  string
	CreatedAt                                   string
	ExpiresAt, RevokedAt, RotatedAt, LastUsedAt *string
	PreviousTokenExpiresAt                      *string
	Metadata                                    json.RawMessage
}

// Key runs an api-keys command that prints one key.
func (a *App) Key(args ...string) APIKey {
	a.T.Helper()
	var key APIKey
	out := a.Must(append(append([]string{"api-keys"}, args...), "--json")...)
	if err := json.Unmarshal([]byte(out), &key); err != nil {
		a.T.Fatalf("read %q: %v", out, err)
	}
	return key
}

// Token creates a key of the scope, with more flags of api-keys create, and returns its token.
func (a *App) Token(scope string, flags ...string) string {
	a.T.Helper()
	key := a.Key(append([]string{"create", "--scope", scope, "--name", "test " + scope}, flags...)...)
	if key.Token == "" {
		a.T.Fatal("api-keys create printed no token")
	}
	return key.Token
}

// Session is the session object that `--json` prints.
type Session struct {
	ID, UserID, Status   string
	Tenant               *string
	Roles                []string
	CreatedAt, ExpiresAt string
	LastSeenAt           string
	RevokedAt            *string
	Idle                 int
	Cookie               string
}

// Session creates a session of the user.
func (a *App) Session(user string, args ...string) Session {
	a.T.Helper()
	var s Session
	out := a.Must(append([]string{"sessions", "create", "--user", user, "--json"}, args...)...)
	if err := json.Unmarshal([]byte(out), &s); err != nil || s.Cookie == "" {
		a.T.Fatalf("read %q: %v", out, err)
	}
	return s
}

func (a *App) Audit(t *testing.T) (records []map[string]any) {
	t.Helper()
	out := a.Must("audit", "list", "--json")
	if err := json.Unmarshal([]byte(out), &records); err != nil {
		t.Fatalf("read %q: %v", out, err)
	}
	return records
}

// SetClockAhead writes the app's clock file so that the wall clock is ahead of it by d, in
// this boot of the machine.
func (a *App) SetClockAhead(d time.Duration) {
	a.T.Helper()
	up, ok := clock.Uptime()
	if !ok {
		a.T.Fatal("the time since the boot is unknown")
	}
	then := time.Now().Add(-d).UTC().Format(time.RFC3339Nano)
	text := fmt.Sprintf(`{"time":%q,"wall":%q,"boot":%q,"uptime":%d}`, then, then, clock.Boot(), up.Milliseconds())
	if err := os.WriteFile(filepath.Join(a.Dir, "data", "clock"), []byte(text), 0o600); err != nil {
		a.T.Fatal(err)
	}
}

// ExampleApp is an app of plugins/examples with an empty data directory. With
// RUNNER_TEST_EXAMPLES=built its modules are those in the example's own directory, which
// `make examples` has just built; otherwise they are built.
func ExampleApp(t testing.TB, name string) *App {
	t.Helper()
	from := RepoFile(filepath.Join("plugins/examples", name))
	text, err := os.ReadFile(filepath.Join(from, name+".schema"))
	if err != nil {
		t.Fatal(err)
	}
	a := NewApp(t, string(text), "")
	if toml, err := os.ReadFile(filepath.Join(from, "runner.toml")); err == nil {
		a.Write("runner.toml", string(toml))
	}
	for _, dir := range []string{"web", "public"} {
		if _, err := os.Stat(filepath.Join(from, dir)); err != nil {
			continue
		}
		if err := os.CopyFS(a.Path(dir), os.DirFS(filepath.Join(from, dir))); err != nil {
			t.Fatal(err)
		}
	}
	if os.Getenv("RUNNER_TEST_EXAMPLES") == "built" {
		if err := os.CopyFS(a.Path("build"), os.DirFS(filepath.Join(from, "build"))); err != nil {
			t.Fatal(err)
		}
		return a
	}
	handlers := filepath.Join(from, "handlers")
	if _, err := os.Stat(filepath.Join(handlers, name, "go.mod")); err == nil {
		a.Write("build/"+name+".wasm", GoModule(t, filepath.Join(handlers, name)))
		return a
	}
	if err := os.CopyFS(a.Path("handlers"), os.DirFS(handlers)); err != nil {
		t.Fatal(err)
	}
	a.Must("build")
	return a
}

var TokenForm = regexp.MustCompile(`[a-z][a-z0-9]{1,7}_[0-9A-Za-z]{36}`)

// AssertNotStored searches all files of the app's directory for the random part of the
// tokens.
func AssertNotStored(t *testing.T, a *App, tokens ...string) {
	t.Helper()
	files := 0
	err := filepath.WalkDir(a.Dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		files++
		text, err := os.ReadFile(path)
		for _, token := range tokens {
			if strings.Contains(string(text), token[4:24]) {
				t.Errorf("%s contains the token %.8s…", path, token)
			}
		}
		return err
	})
	if err != nil || files < 4 {
		t.Fatalf("search %s: %d files, %v", a.Dir, files, err)
	}
}

func MustRead(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// WithChecksum returns a well-formed token: the prefix, the random part, and six base62
// digits of the random part's CRC-32.
func WithChecksum(prefix, random string) string {
	const digits = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
	sum := crc32.ChecksumIEEE([]byte(random))
	var check [6]byte
	for i := range check {
		check[5-i] = digits[sum%62]
		sum /= 62
	}
	return prefix + "_" + random + string(check[:])
}
