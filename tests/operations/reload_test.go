package operations_test

import (
	"encoding/json"
	"math/rand/v2"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"runner.example/tests/harness"
)

const reloadSchema = `app shop
routes("/", auth: none, rateLimit: none) { GET /hello -> hello }
`

// reloaded is the document of runner reload --json.
type reloaded struct {
	Changed         []string
	Routes, Modules int
}

func reload(t *testing.T, a *harness.App) (done reloaded) {
	t.Helper()
	if err := json.Unmarshal([]byte(a.Must("reload", "--json")), &done); err != nil {
		t.Fatal(err)
	}
	return done
}

func TestReloadPrintsWhatHasChanged(t *testing.T) {
	a := harness.NewApp(t, reloadSchema, "", "echo")
	if r := a.Run("reload"); r.Status != 6 || !strings.Contains(r.Stderr, "no server is running") {
		t.Errorf("without a server: %d %s", r.Status, r.Stderr)
	}
	s := a.Serve()
	if done := reload(t, a); len(done.Changed) != 0 || done.Routes != 1 || done.Modules != 1 {
		t.Errorf("%+v", done)
	}
	if r := a.Run("reload"); r.Stdout != "" || !strings.Contains(r.Stderr, "nothing has changed") || !strings.Contains(r.Stderr, "1 route, 1 module") {
		t.Errorf("%+v", r)
	}
	a.Write("app.schema", strings.Replace(reloadSchema, "GET /hello -> hello", "GET /hello -> hello\n  GET /hi -> hello", 1))
	wasm, err := os.ReadFile(a.Path("build/echo.wasm"))
	if err != nil {
		t.Fatal(err)
	}
	a.Write("build/other.wasm", string(wasm))
	if err := os.Remove(a.Path("build/echo.wasm")); err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(reload(t, a).Changed, ", "); got != "app.schema, build/echo.wasm (removed), build/other.wasm (new)" {
		t.Errorf("changed: %s", got)
	}
	if got := s.Do("GET", "/hi", ""); got.Status != 200 {
		t.Errorf("the new route: %d %s", got.Status, got.Body)
	}
}

func TestReloadReportsEveryErrorAndChangesNothing(t *testing.T) {
	a := harness.NewApp(t, reloadSchema, "[telemetry]\naccess_log = false\n", "echo")
	s := a.Serve()
	refused := func(want ...string) {
		t.Helper()
		r := a.Run("reload")
		if r.Status != 3 || r.Stdout != "" {
			t.Errorf("status %d, stdout %q", r.Status, r.Stdout)
		}
		for _, text := range want {
			if !strings.Contains(r.Stderr, text) {
				t.Errorf("%q is missing in:\n%s", text, r.Stderr)
			}
		}
		if got := s.Do("GET", "/hello", ""); got.Status != 200 {
			t.Errorf("%d %s", got.Status, got.Body)
		}
	}
	a.Write("app.schema", "routes(\"/\", auth: nonne) {\n  GET /hello -> hello\n  GETT /x -> y\n}\n")
	refused("app.schema:1:19:", "app.schema:3:3:", "previous release kept")
	a.Write("app.schema", "routes(\"/\", auth: none, rateLimit: none) { GET /hello -> hello GET /hi -> nowhere }\n")
	refused("app.schema:1:", "nowhere", "previous release kept")
	a.Write("app.schema", reloadSchema)
	a.Write("runner.toml", "[sandbox]\ninstances = 3\n[telemetry]\naccess_log = true\n[front]\nmax_connections = 100\n")
	refused("need a restart", "[sandbox] instances", "[front] max_connections")
	a.Write("runner.toml", "[telemetry]\nlevel = \"loud\"\nformt = \"json\"\n")
	refused("runner.toml:2:", "runner.toml:3:")
	a.Write("app.schema", "routes(\"/\", auth: nonne) { GET /hello -> hello }\n")
	a.Write("runner.toml", "[telemetry]\nlevel = \"loud\"\n[front]\ntls_cert = \"nocert.pem\"\ntls_key = \"nokey.pem\"\n")
	refused("app.schema:1:", "runner.toml:2:", "nocert.pem", "previous release kept")
	a.Write("runner.toml", "[sandbox]\ninstances = 3\n")
	refused("app.schema:1:", "need a restart", "[sandbox] instances")
	a.Write("app.schema", "secret TOKEN\n"+reloadSchema)
	a.Write("runner.toml", "[sandbox]\ninstances = 3\n[telemetry\n")
	refused("runner.toml:3:", "previous release kept")
	a.Write("runner.toml", "[sandbox]\ninstances = 3\n")
	refused("TOKEN", "[sandbox] instances")
	if log := s.Stderr.String(); strings.Contains(log, `"msg":"request"`) {
		t.Errorf("the access log was turned on:\n%s", log)
	}
}

func TestReloadTakesSettingsThatNeedNoRestart(t *testing.T) {
	schema := "app shop\nsecret TOKEN\n" + strings.TrimPrefix(reloadSchema, "app shop\n")
	a := harness.NewApp(t, schema, "[secrets]\nTOKEN = \"first-value\"\n", "echo")
	s := a.Serve()
	if got := s.Do("GET", "/hello", ""); got.Status != 200 {
		t.Fatalf("%d %s", got.Status, got.Body)
	}
	a.Write("runner.toml", `[telemetry]
level = "warn"
access_log = true
[front]
hosts = ["shop.example"]
trusted_proxies = ["127.0.0.1"]
[secrets]
TOKEN = "second-value"
`)
	done := reload(t, a)
	want := "secret TOKEN, [front] hosts, [front] trusted_proxies, [telemetry] access_log, [telemetry] level"
	for _, text := range strings.Split(want, ", ") {
		if !strings.Contains(strings.Join(done.Changed, ", "), text) {
			t.Errorf("%q is missing in %q", text, done.Changed)
		}
	}
	if got := s.Do("GET", "/hello", ""); got.Status == 200 {
		t.Errorf("another host is served: %s", got.Body)
	}
	if reply := s.Raw("GET /hello HTTP/1.1\r\nHost: shop.example\r\nConnection: close\r\n\r\n", harness.Timeout); !strings.HasPrefix(reply, "HTTP/1.1 200 ") {
		t.Errorf("the new host: %s", reply)
	}
	if log := s.Stderr.String(); strings.Contains(log, "second-value") || strings.Contains(log, `"msg":"request"`) {
		t.Errorf("level warn is not in force:\n%s", log)
	}
	a.Write("runner.toml", "[telemetry]\nformat = \"text\"\naccess_log = true\n[secrets]\nTOKEN = \"second-value\"\n")
	_ = s.Cmd.Process.Signal(syscall.SIGHUP)
	s.WaitForOutput(`level=INFO msg=reloaded`)
	s.Do("GET", "/hello", "")
	s.WaitForOutput(`msg=request .*status=200`)
}

// A module that was changed, or that is not what the app needs, is refused with a reason. The
// previous release keeps serving.
func TestModuleTampered(t *testing.T) {
	a := harness.NewApp(t, reloadSchema, "", "echo")
	s := a.Serve()
	good := harness.MustRead(t, a.Path("build/echo.wasm"))
	serves := func(what string) {
		t.Helper()
		if got := s.Do("GET", "/hello", ""); got.Status != 200 || got.Body != `{"message":"hello"}` {
			t.Errorf("%s: %d %s", what, got.Status, got.Body)
		}
	}
	replaced := func(old, with string) string {
		t.Helper()
		if len(old) != len(with) || !strings.Contains(good, old) {
			t.Fatalf("the module has no %q", old)
		}
		return strings.Replace(good, old, with, 1)
	}
	for _, row := range []struct{ name, module, want string }{
		{"a page of HTML", "<html></html>", "is not a WebAssembly module"},
		{"empty", "", "is empty"},
		{"another version of the format", good[:4] + "\x02" + good[5:], "version 2"},
		{"cut off", good[:len(good)-1], "is cut off or damaged"},
		{"longer", good + "\x01", "is cut off or damaged"},
		{"an unknown function of the host", replaced("response_send", "response_sent"), "imports runner.response_sent, which guest ABI 1 does not have"},
		{"an unknown module of the host", replaced("\x06runner\x0erequest_method", "\x06runnes\x0erequest_method"), "imports runnes.request_method"},
		{"without the handler of a route", replaced("\x05hello", "\x05hellp"), "hello"},
	} {
		a.Write("build/echo.wasm", row.module)
		r := a.Run("reload")
		if r.Status != 3 || !strings.Contains(r.Stderr, row.want) || !strings.Contains(r.Stderr, "previous release kept") {
			t.Errorf("%s: status %d, want %q in\n%s", row.name, r.Status, row.want, r.Stderr)
		}
		serves(row.name)
	}
	// A module with one changed byte is refused or is another valid module: the server reads,
	// compiles and runs it in its sandbox.
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	refused := 0
	for range 40 {
		changed := []byte(good)
		changed[random.IntN(len(changed))] ^= byte(1 << random.IntN(8))
		a.Write("build/echo.wasm", string(changed))
		switch r := a.Run("reload"); {
		case r.Status == 3 && strings.Contains(r.Stderr, "build/echo.wasm") && strings.Contains(r.Stderr, "previous release kept"):
			refused++
			serves("after a refused module")
			a.Write("build/echo.wasm", good)
			reload(t, a)
		case r.Status != 0 && !strings.Contains(r.Stderr, "previous release kept"):
			t.Errorf("status %d\n%s", r.Status, r.Stderr)
		}
		a.Write("build/echo.wasm", good)
		reload(t, a)
		serves("the module restored")
	}
	if refused == 0 {
		t.Error("no module with a changed byte was refused")
	}
}
