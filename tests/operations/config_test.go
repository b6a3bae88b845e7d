package operations_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"runner.example/tests/harness"
)

// settingsOf returns what runner config show prints, by name.
func settingsOf(t *testing.T, a *harness.App, args ...string) map[string]string {
	t.Helper()
	var all []struct {
		Name, From, Place string
		Value             json.RawMessage
	}
	if err := json.Unmarshal([]byte(a.Must(append([]string{"config", "show", "--json"}, args...)...)), &all); err != nil {
		t.Fatal(err)
	}
	byName := map[string]string{}
	for _, s := range all {
		byName[s.Name] = strings.TrimSpace(fmt.Sprintf("%s %s %s", s.Value, s.From, s.Place))
	}
	return byName
}

func wantSettings(t *testing.T, got, want map[string]string) {
	t.Helper()
	for name, text := range want {
		if got[name] != text {
			t.Errorf("%s is %s, want %s", name, got[name], text)
		}
	}
}

// The server says what is in force in it: its file, its environment and its flags, and not those of the command.
func TestConfigShowsWhatIsInForceAndWhereItComesFrom(t *testing.T) {
	toml := "[front]\nwrite_timeout = \"20s\"\n[telemetry]\nlevel = \"debug\"\n[secrets]\nTOKEN = \"geheim-1\"\n" + adminListen
	server := harness.NewApp(t, "app shop\nsecret TOKEN\nsecret OTHER\nvar plan: string = \"a\"\n"+strings.TrimPrefix(backupSchema, "app shop\n"), toml, "echo")
	server.Env = []string{"RUNNER_FRONT_READ_TIMEOUT=7s", "RUNNER_SECRETS_OTHER=geheim-2", "RUNNER_VARS_plan=b"}
	here := &harness.App{T: t, Dir: server.Dir}
	started := map[string]string{
		"front.listen": `"127.0.0.1:0" flag --listen`, "front.write_timeout": `"20s" file runner.toml:2:17`,
		"front.read_timeout": `"7s" environment RUNNER_FRONT_READ_TIMEOUT`, "front.idle_timeout": `"1m" default`,
		"telemetry.level": `"debug" file runner.toml:4:9`, "admin.listen": `"127.0.0.1:0" file runner.toml:8:10`,
		"secrets.TOKEN": "null file runner.toml:6:1", "secrets.OTHER": "null environment RUNNER_SECRETS_OTHER",
		"vars.plan": `"b" environment RUNNER_VARS_plan`,
	}
	// Without a server: those with which one would start here.
	offline := settingsOf(t, here)
	wantSettings(t, offline, map[string]string{
		"front.listen": `"127.0.0.1:8080" default`, "front.write_timeout": started["front.write_timeout"], "front.read_timeout": `"10s" default`,
		"secrets.TOKEN": started["secrets.TOKEN"], "secrets.OTHER": "", "store.dir": `"data" default`,
	})
	wantSettings(t, settingsOf(t, here, "--data", "other"), map[string]string{"store.dir": `"other" flag --data`})
	if got := here.Run("config", "show"); !strings.Contains(got.Stderr, "no server is running on this data directory") {
		t.Error(got.Stderr)
	}

	server.Serve()
	wantSettings(t, settingsOf(t, here), started)
	f := newAfar(t, server)
	there := append(f.flags, "--key-file", f.files["admin"])
	wantSettings(t, settingsOf(t, f.App, there...), started)
	text := here.Must("config", "show")
	if strings.Contains(text, "geheim") || strings.Contains(fmt.Sprint(settingsOf(t, here)), "geheim") {
		t.Error("a secret is shown")
	}
	if !strings.Contains(text, "(secret)") || !strings.Contains(text, "front.idle_timeout") {
		t.Error(text)
	}
	if text := here.Must("config", "show", "--changed"); strings.Contains(text, "front.idle_timeout") || !strings.Contains(text, "RUNNER_FRONT_READ_TIMEOUT") {
		t.Error(text)
	}

	// A reload puts new values in force.
	server.Write("runner.toml", strings.Replace(toml, `"debug"`, `"warn"`, 1))
	wantSettings(t, settingsOf(t, here), started)
	server.Must("reload")
	wantSettings(t, settingsOf(t, here), map[string]string{"telemetry.level": `"warn" file runner.toml:4:9`})
}

func TestAConfigurationIsCheckedWithoutAnApp(t *testing.T) {
	a := &harness.App{T: t, Dir: t.TempDir()}
	a.Write("edge.toml", "[front]\nlisten = \"nowhere\"\ntls_cert = \"none.pem\"\ntls_key = \"none.key\"\nbodyy = \"1mb\"\n[runtime]\ntimeout = 10\n[sandbox]\nmemory = \"1tb\"\n")
	got := a.Run("check", "--config", "edge.toml")
	for _, want := range []string{
		"edge.toml:2:10: error: [front] listen", "edge.toml:3:12: error: [front] tls_cert \"none.pem\"", `edge.toml:5:1: error: unknown key "bodyy" in [front]`,
		`edge.toml:7:11: error: [runtime] timeout: expected a duration in quotes, such as "10s"`,
	} {
		if got.Status != 3 || !strings.Contains(got.Stdout, want) {
			t.Errorf("%d %s%s, want %s", got.Status, got.Stdout, got.Stderr, want)
		}
	}
	if got := a.Run("config", "show", "--config", "edge.toml"); got.Status != 3 || !strings.Contains(got.Stderr, "edge.toml:7:11") {
		t.Errorf("%d %s", got.Status, got.Stderr)
	}
	a.Write("edge.toml", "[sandbox]\ntotal_memory = \"900gb\"\n[auth]\ninsecure_cookies = true\n[front]\nlisten = \"0.0.0.0:80\"\n")
	if got := a.Run("check", "--config", "edge.toml"); got.Status != 3 || !strings.Contains(got.Stdout, "the limits of memory add up to") ||
		!strings.Contains(got.Stdout, "edge.toml:4:20: error: [auth] insecure_cookies is for loopback only") {
		t.Errorf("%d %s%s", got.Status, got.Stdout, got.Stderr)
	}
	a.Write("edge.toml", "[front]\nlisten = \"127.0.0.1:80\"\n")
	if got := a.Run("check", "--config", "edge.toml"); got.Status != 0 || !strings.Contains(got.Stderr, "configuration is valid") {
		t.Errorf("%d %s%s", got.Status, got.Stdout, got.Stderr)
	}
	var checked struct {
		Findings []any
		Total    *int
	}
	if err := json.Unmarshal([]byte(a.Must("check", "--config", "edge.toml", "--json")), &checked); err != nil || len(checked.Findings) != 0 || checked.Total == nil || *checked.Total != 0 {
		t.Errorf("%+v, %v", checked, err)
	}
	a.Write("env", "RUNNER_FRONT_READ_TIMEOUT=soon\n")
	if got := a.Run("check", "--config", "edge.toml", "--env", "env"); got.Status != 3 || !strings.Contains(got.Stdout, "env:1:1: error: [front] read_timeout") {
		t.Errorf("%d %s%s", got.Status, got.Stdout, got.Stderr)
	}
	for _, row := range []struct {
		status int
		text   string
		args   []string
	}{
		{3, "no such file", []string{"--config", "none.toml"}},
		{3, "has no *.schema file", nil},
		{3, "has no *.schema file", []string{"--config", "edge.toml", "--modules"}},
	} {
		if got := a.Run(append([]string{"check"}, row.args...)...); got.Status != row.status || !strings.Contains(got.Stderr, row.text) {
			t.Errorf("%s: %d %s%s", row.args, got.Status, got.Stdout, got.Stderr)
		}
	}
}
