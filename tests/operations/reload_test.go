package operations_test

import (
	"encoding/json"
	"os"
	"strings"
	"syscall"
	"testing"

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
