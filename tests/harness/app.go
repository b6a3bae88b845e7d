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

	"golang.org/x/sys/unix"
)

// patient is how long a test waits for what has to come, and patientWithCompilers for
// what may run them.
const (
	Timeout      = time.Minute
	BuildTimeout = 5 * time.Minute
)

// Soak makes tests run in their long form.
var Soak = os.Getenv("RUNNER_SOAK") != ""

// App is an app directory with its own data directory.
type App struct {
	T      testing.TB
	Dir    string
	Env    []string // added to the environment of the test
	Binary string   // the program to run instead of the runner, unless empty
}

// command is the runner with args, in the app's directory and environment.
func (a *App) command(ctx context.Context, args ...string) *exec.Cmd {
	uncached()
	binary := Binary
	if a.Binary != "" {
		binary = a.Binary
	}
	cmd := exec.CommandContext(ctx, binary, args...)
	cmd.Dir, cmd.Env = a.Dir, append(os.Environ(), a.Env...)
	return cmd
}

// NewApp writes an app folder: the schema, the named guests as its modules and,
// unless empty, a runner.toml. Without guests, which are small, what its modules are
// compiled to is shared with other apps.
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

// ShareCode lets the servers of the app find what those of other apps have compiled.
func (a *App) ShareCode() {
	a.T.Helper()
	if err := os.MkdirAll(a.Path("data"), 0o700); err != nil {
		a.T.Fatal(err)
	}
	if err := os.Symlink(compiledCode, a.Path("data/cache")); err != nil {
		a.T.Fatal(err)
	}
}

// NextMillisecond returns when the times of rows are others.
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
	// Whoever watches the file sees what it was or what it is, and nothing between.
	if err := os.WriteFile(a.Path(name)+".tmp", []byte(text), 0o644); err != nil {
		a.T.Fatal(err)
	}
	if err := os.Rename(a.Path(name)+".tmp", a.Path(name)); err != nil {
		a.T.Fatal(err)
	}
}

// Result is what a command printed and how it ended.
type Result struct {
	Stdout, Stderr string
	Status         int
}

// Run runs the binary with args in the app's folder.
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
	return Result{stdout.String(), stderr.String(), cmd.ProcessState.ExitCode()}
}

// Must runs a command that has to succeed and gives its stdout.
func (a *App) Must(args ...string) string {
	a.T.Helper()
	r := a.Run(args...)
	if r.Status != 0 {
		a.T.Fatalf("runner %s: exit status %d\n%s%s", strings.Join(args, " "), r.Status, r.Stdout, r.Stderr)
	}
	return r.Stdout
}

// APIKey is the key object as `--json` prints it.
type APIKey struct {
	ID, Scope, Name, Status, Hint, Token        string
	Capability                                  string
	CreatedAt                                   string
	ExpiresAt, RevokedAt, RotatedAt, LastUsedAt *string
	PreviousTokenExpiresAt                      *string
	Metadata                                    json.RawMessage
}

// Key runs a command of api-keys that prints one key.
func (a *App) Key(args ...string) APIKey {
	a.T.Helper()
	var key APIKey
	out := a.Must(append(append([]string{"api-keys"}, args...), "--json")...)
	if err := json.Unmarshal([]byte(out), &key); err != nil {
		a.T.Fatalf("read %q: %v", out, err)
	}
	return key
}

// Token makes a key of the scope and gives its token.
func (a *App) Token(scope string) string {
	a.T.Helper()
	key := a.Key("create", "--scope", scope, "--name", "test "+scope)
	if key.Token == "" {
		a.T.Fatal("api-keys create printed no token")
	}
	return key.Token
}

// Session is a session object as --json prints it.
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

// Session makes a session of the user.
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

// SetClockAhead writes the clock file of a server to which the wall clock, of this boot
// of the machine, now is ahead by d.
func (a *App) SetClockAhead(d time.Duration) {
	a.T.Helper()
	boot, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		a.T.Fatal(err)
	}
	var up unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &up); err != nil {
		a.T.Fatal(err)
	}
	then := time.Now().Add(-d).UTC().Format(time.RFC3339Nano)
	text := fmt.Sprintf(`{"time":%q,"wall":%q,"boot":%q,"uptime":%d}`, then, then, strings.TrimSpace(string(boot)), time.Duration(up.Nano()).Milliseconds())
	if err := os.WriteFile(filepath.Join(a.Dir, "data", "clock"), []byte(text), 0o600); err != nil {
		a.T.Fatal(err)
	}
}

// ExampleApp is one of plugins/examples with an empty data folder.
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

// AssertNotStored searches every byte of the app's folder for the random part
// of the tokens.
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
				t.Errorf("%s holds the token %.8s…", path, token)
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

// WithChecksum makes a token of its form: GitHub's recipe, six base62 digits of
// the CRC-32 of the random part behind it.
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
