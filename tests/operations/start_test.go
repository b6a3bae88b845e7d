package operations_test

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"runner.example/tests/harness"
)

func TestFailedStartsSayWhatToFix(t *testing.T) {
	rows := []struct {
		name         string
		schema, toml string
		guests       []string
		args, env    []string
		prepare      func(t *testing.T, a *harness.App)
		status       int
		says         []string // regular expressions, each of which matches one line
	}{
		{name: "invalid schema", schema: "routes(\"/v1\", auth: apiKey(order_read)) {\n  GET /x -> hello\n}\napiKeys { scopes: { orders_read: @system(\"o\") { @grant read on Order } } }\n",
			status: 3, says: []string{`^app\.schema:1:28: error\[E410\]: .*did you mean "orders_read"\?`}},
		{name: "two errors at once", schema: "routes(\"v1\", auth: none) { GET /x -> hello }\nrotes(\"/\") {}\n",
			status: 3, says: []string{`^app\.schema:1:8: error\[E401\]`, `^app\.schema:2:1: error\[E101\]: .*did you mean "routes"\?`}},
		{name: "unknown key in runner.toml", schema: harness.TinySchema, toml: "[front]\nlistn = \"x\"\n", guests: []string{"echo"},
			status: 3, says: []string{`runner\.toml:2:1: error: .*"listn".*did you mean "listen"\?`}},
		{name: "invalid value in runner.toml", schema: harness.TinySchema, toml: "[sandbox]\nmemory = \"lots\"\n[front]\nread_timeout = 5\n", guests: []string{"echo"},
			status: 3, says: []string{`runner\.toml:2:\d+: error: .*memory.*lots`, `runner\.toml:4:\d+: error: .*read_timeout`}},
		{name: "invalid environment variable", schema: harness.TinySchema, guests: []string{"echo"}, env: []string{"RUNNER_SANDBOX_MEMORY=lots"},
			status: 3, says: []string{`RUNNER_SANDBOX_MEMORY.*lots`}},
		{name: "missing handler export", schema: strings.ReplaceAll(harness.TinySchema, "-> hello", "-> helo"), guests: []string{"echo"},
			status: 3, says: []string{`^app\.schema:1:\d+: error\[E419\]: .*"helo".*did you mean "hello"\?`}},
		{name: "no module", schema: harness.TinySchema, status: 3, says: []string{`build`}},
		{name: "no schema", prepare: func(t *testing.T, a *harness.App) { remove(t, a.Path("app.schema")) }, status: 3, says: []string{`\.schema`}},
		{name: "no such directory", args: []string{"nowhere"}, status: 3, says: []string{`nowhere`}},
		{name: "file that is not a module", schema: harness.TinySchema, prepare: func(_ *testing.T, a *harness.App) { a.Write("build/x.wasm", "not wasm") },
			status: 3, says: []string{`x\.wasm.*not a WebAssembly`}},
		{name: "component", schema: harness.TinySchema, prepare: func(_ *testing.T, a *harness.App) { a.Write("build/x.wasm", "\x00asm\x0d\x00\x01\x00") },
			status: 3, says: []string{`x\.wasm.*component`}},
		{name: "declared secret without a value", schema: "secret TOKEN\nsecret OTHER\n" + harness.TinySchema, guests: []string{"echo"},
			status: 3, says: []string{`TOKEN.*OTHER|RUNNER_SECRETS_TOKEN`}},
		{name: "invalid address", schema: harness.TinySchema, guests: []string{"echo"}, args: []string{"--listen", "nonsense"}, status: 3, says: []string{`nonsense`}},
		{name: "unknown flag", schema: harness.TinySchema, args: []string{"--lisen", "x"}, status: 2, says: []string{`--lisen`}},
		{name: "another pepper", schema: harness.TinySchema, guests: []string{"echo"}, prepare: func(t *testing.T, a *harness.App) {
			a.Write("app.schema", harness.TinySchema+"apiKeys { scopes: { s: @system(\"s\") { @grant read on T } } }\n")
			a.Key("create", "--scope", "s", "--name", "x")
			remove(t, a.Path("data/pepper"))
			if err := os.WriteFile(a.Path("data/pepper"), []byte(strings.Repeat("x", 32)), 0o600); err != nil {
				t.Fatal(err)
			}
		}, status: 3, says: []string{`pepper`}},
	}
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			a := harness.NewApp(t, row.schema, row.toml, row.guests...)
			a.Env = row.env
			if row.prepare != nil {
				row.prepare(t, a)
			}
			r := a.Run(append([]string{"serve", "--listen", "127.0.0.1:0"}, row.args...)...)
			if r.Status != row.status {
				t.Errorf("exit status %d, want %d\n%s%s", r.Status, row.status, r.Stdout, r.Stderr)
			}
			if r.Stdout != "" {
				t.Errorf("stdout %q, want nothing", r.Stdout)
			}
			for _, says := range row.says {
				if !regexp.MustCompile("(?m)" + says).MatchString(r.Stderr) {
					t.Errorf("stderr does not match %s:\n%s", says, r.Stderr)
				}
			}
			if regexp.MustCompile(`goroutine|\.go:\d|panic`).MatchString(r.Stderr) {
				t.Errorf("stderr shows our insides:\n%s", r.Stderr)
			}
		})
	}
}

func remove(t *testing.T, path string) {
	t.Helper()
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
}

func TestAPortInUseIsNamedWithTheWayOut(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	a := harness.NewApp(t, harness.TinySchema, "", "echo")
	r := a.Run("serve", "--listen", ln.Addr().String())
	if r.Status != 1 || !strings.Contains(r.Stderr, ln.Addr().String()) || !strings.Contains(r.Stderr, "in use") || !strings.Contains(r.Stderr, "--listen") {
		t.Errorf("exit status %d\n%s", r.Status, r.Stderr)
	}
}

func TestASecondServerOnTheSameDataIsRefused(t *testing.T) {
	a := harness.NewApp(t, harness.TinySchema, "", "echo")
	s := a.Serve()
	r := a.Run("serve", "--listen", "127.0.0.1:0")
	if r.Status != 1 || !regexp.MustCompile(`runner: error: .*`+regexp.QuoteMeta(filepath.Base(a.Path("data")))).MatchString(r.Stderr) || !strings.Contains(r.Stderr, "--data") {
		t.Errorf("exit status %d\n%s", r.Status, r.Stderr)
	}
	if lines := strings.Count(strings.TrimSpace(r.Stderr), "\n"); lines > 1 {
		t.Errorf("%d lines:\n%s", lines+1, r.Stderr)
	}
	if got := s.Do("GET", "/hello", ""); got.Status != 200 {
		t.Errorf("the first server: %d", got.Status)
	}
}

// The directory is on a read-only file system, because root ignores its mode.
func TestAReadOnlyDataDirectoryIsRefusedByName(t *testing.T) {
	a := harness.NewApp(t, harness.TinySchema, "", "echo")
	harness.SmallDisk(t, "tmpfs", a.Path("disk"), 64<<20)
	refused := func(data string) {
		t.Helper()
		harness.Remount(t, a.Path("disk"), "ro")
		r := a.Run("serve", "--listen", "127.0.0.1:0", "--data", data)
		if r.Status != 1 || r.Stdout != "" || strings.Count(r.Stderr, "\n") != 2 || !strings.Contains(r.Stderr, fmt.Sprintf("%q", data)) ||
			!strings.Contains(r.Stderr, "read-only file system") || !strings.Contains(r.Stderr, "hint: ") || !strings.Contains(r.Stderr, "--data") {
			t.Errorf("%s: exit status %d\n%s%s", data, r.Status, r.Stdout, r.Stderr)
		}
		harness.Remount(t, a.Path("disk"), "rw")
	}
	used := a.Path("disk/used")
	s := a.Serve("--data", used)
	s.Stop()
	refused(used)
	refused(a.Path("disk/new"))
	s = a.Serve("--data", used)
	if got := s.Do("GET", "/hello", ""); got.Status != 200 {
		t.Errorf("with the disk writable again: %d %s", got.Status, got.Body)
	}
}

func TestSettingsComeFromFlagThenEnvironmentThenFile(t *testing.T) {
	a := harness.NewApp(t, harness.TinySchema, "[front]\nlisten = \"127.0.0.1:1\"\n[store]\ndir = \"fromfile\"\n", "echo")
	a.Env = []string{"RUNNER_STORE_DIR=fromenv"}
	s := a.Serve() // its flag --listen overrides the file
	if got := s.Do("GET", "/hello", ""); got.Status != 200 {
		t.Errorf("got %d", got.Status)
	}
	s.Stop()
	for name, want := range map[string]bool{"fromenv": true, "fromfile": false, "data": false} {
		if _, err := os.Stat(a.Path(name)); (err == nil) != want {
			t.Errorf("directory %s: %v", name, err)
		}
	}
	s = a.Serve("--data", a.Path("fromflag"))
	s.Stop()
	if _, err := os.Stat(a.Path("fromflag")); err != nil {
		t.Error(err)
	}
}

func TestTheDataDirectoryIsPrivate(t *testing.T) {
	a := harness.NewApp(t, harness.TinySchema, "", "echo")
	a.Serve()
	for name, want := range map[string]os.FileMode{"data": 0o700, "data/pepper": 0o600, "data/runner.sock": 0o600} {
		info, err := os.Stat(a.Path(name))
		if err != nil || info.Mode().Perm() != want {
			t.Errorf("%s: %v, %v, want %v", name, info, err, want)
		}
	}
}

func TestPublicListenerHasOnlyRoutes(t *testing.T) {
	s := harness.NewApp(t, harness.TinySchema, "", "echo").Serve()
	words := strings.Fields(`admin debug pprof vars metrics health status keys api-keys console login internal _call _runner v1 v2 store config
		socket audit release api graphql server-status actuator env heap threads trace info beans jmx shutdown restart reload stop start
		backup restore export import dump data db sql users user accounts account tokens token sessions session auth oauth sso me root
		private secret secrets pepper build cache types handlers modules module wasm schema app apps tenant tenants logs log events ws`)
	for _, path := range append(words, "debug/pprof/", "debug/vars", ".git/config", "_call/x", "runner.toml", "data/pepper") {
		if got := s.Get("/"+path, ""); got.Status != 404 {
			t.Errorf("/%s: %d", path, got.Status)
		}
	}
	for _, a := range words {
		for _, b := range words {
			if got := s.Get(fmt.Sprintf("/%s/%s", a, b), ""); got.Status != 404 {
				t.Errorf("/%s/%s: %d", a, b, got.Status)
			}
		}
	}
}
