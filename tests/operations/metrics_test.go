package operations_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil/promlint"

	"runner.example/tests/harness"
	"runner.example/tests/observe"
)

// metricsApp serves an app with metrics, after requests with every kind of outcome.
func metricsApp(t *testing.T) (a *harness.App, url string) { return metricsAppOf(t, backupSchema) }

func metricsAppOf(t *testing.T, schema string) (a *harness.App, url string) {
	t.Helper()
	a = harness.NewApp(t, schema, "[metrics]\nlisten = \"127.0.0.1:0\"\n", "echo")
	s := a.Serve()
	url = a.MetricsURL()
	token := a.Token("reader", "--name", "named", "--metadata", `{"tier":"gold"}`)
	for range 3 {
		if got := s.Get("/hello", token); got.Status != 200 {
			t.Fatalf("%d %s", got.Status, got.Body)
		}
	}
	s.Get("/hello", "wrong-token-secret")
	s.Do("GET", "/private/path?q=secret", "")
	s.Do("PATCH", "/hello", "")
	s.Do("GET", "/_health/ready", "")
	backUp(t, a, a.Path("b"))
	return a, url
}

func TestMetricsCountWhatHappens(t *testing.T) {
	a, url := metricsApp(t)
	text := harness.Scrape(t, url)
	if strings.Contains(text, `class="0xx"`) || strings.Contains(text, `class="1xx"`) {
		t.Error("there are classes that no answer has")
	}
	for _, want := range []string{
		`runner_requests_total{class="2xx",route="GET /hello"} 3`,
		`runner_requests_total{class="4xx",route="GET /hello"} 1`,
		`runner_requests_total{class="4xx",route="unmatched"} 2`,
		`runner_request_duration_seconds_count{class="2xx",route="GET /hello"} 3`,
		`runner_sandbox_wait_seconds_count 3`,
		`runner_sandbox_restore_seconds_count 3`,
		`runner_refused_credentials_total{reason="malformed"} 1`,
		`runner_refusals_total{code="route_not_found"} 1`,
		`runner_backups_total{outcome="written"} 1`,
		`runner_keys{state="active"} 1`,
		`runner_ready 1`,
		`runner_store_writable 1`,
		`runner_commits_total{outcome="conflict"} 0`,
	} {
		if !strings.Contains(text, want+"\n") {
			t.Errorf("%s is missing", want)
		}
	}
	for _, positive := range []string{`runner_handler_seconds_total{class="2xx",route="GET /hello"}`, `runner_handler_fuel_total{class="2xx",route="GET /hello"}`, `runner_commits_total{outcome="committed"}`, "go_goroutines", "process_resident_memory_bytes"} {
		_, value, _ := strings.Cut("\n"+text, "\n"+positive+" ")
		value, _, _ = strings.Cut(value, "\n")
		if n, err := strconv.ParseFloat(value, 64); err != nil || n <= 0 {
			t.Errorf("%s is %q, want more than 0", positive, value)
		}
	}
	for _, secret := range []string{"private", "secret", "gold", "key_", "named", a.Dir} {
		if strings.Contains(text, secret) {
			t.Errorf("the metrics have %q", secret)
		}
	}
	problems, err := promlint.New(strings.NewReader(text)).Lint()
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range problems {
		if strings.HasPrefix(p.Metric, "runner_") {
			t.Errorf("%s: %s", p.Metric, p.Text)
		}
	}
	// Nothing else is served there.
	for path, status := range map[string]int{"/": 404, "/debug/pprof/": 404, "/_health": 404} {
		got, err := http.Get(strings.TrimSuffix(url, "/metrics") + path)
		if err != nil || got.StatusCode != status {
			t.Errorf("%s: %v, %v", path, got, err)
			continue
		}
		_ = got.Body.Close()
	}
	// A route that is removed takes its metrics with it.
	a.Write("app.schema", strings.Replace(backupSchema, "GET /hello ->", "GET /other ->", 1))
	reload(t, a)
	if text := harness.Scrape(t, url); strings.Contains(text, `route="GET /hello"`) || !strings.Contains(text, `route="unmatched"`) {
		t.Errorf("after a reload:\n%s", text)
	}
}

// A route has metrics once it has served: a schema with many routes costs nothing before.
func TestARouteThatHasNotServedHasNoMetrics(t *testing.T) {
	routes := ""
	for i := range 20 {
		routes += fmt.Sprintf("  GET /idle%d -> hello\n", i)
	}
	a := harness.NewApp(t, strings.Replace(backupSchema, "{ GET /hello -> hello }", "{\n"+routes+"  GET /hello -> hello\n}", 1),
		"[metrics]\nlisten = \"127.0.0.1:0\"\n", "echo")
	s := a.Serve()
	url := a.MetricsURL()
	if text := harness.Scrape(t, url); strings.Contains(text, "route=") {
		t.Errorf("before the first request:\n%s", text)
	}
	token := a.Token("reader", "--name", "r")
	for range 2 {
		if got := s.Get("/idle7", token); got.Status != 200 {
			t.Fatalf("%d %s", got.Status, got.Body)
		}
	}
	text := harness.Scrape(t, url)
	if got := regexp.MustCompile(`route="[^"]*"`).FindAllString(text, -1); len(got) == 0 || slices.ContainsFunc(got, func(r string) bool { return r != `route="GET /idle7"` }) {
		t.Errorf("after two requests to one route: %q", got)
	}
	if want := `runner_requests_total{class="2xx",route="GET /idle7"} 2` + "\n"; !strings.Contains(text, want) {
		t.Errorf("%q is missing in:\n%s", want, text)
	}
}

// What an alert is about must be known before anything has happened, and after a restart.
func TestReleaseBackupAndDiskAreKnownFromTheStartAndAfterARestart(t *testing.T) {
	a := harness.NewApp(t, backupSchema, "[metrics]\nlisten = \"127.0.0.1:0\"\n", "echo")
	s := a.Serve()
	type known struct {
		Version string
		Release struct {
			ID    string
			Since time.Time
		}
		Backup *struct {
			Created  time.Time
			Bytes    int64
			Sequence uint64
		}
	}
	status := func() (k known) {
		t.Helper()
		if err := json.Unmarshal([]byte(a.Must("status", "--json")), &k); err != nil {
			t.Fatal(err)
		}
		return k
	}
	check := func(when string, backup backupInfo) {
		t.Helper()
		text, k := harness.Scrape(t, a.MetricsURL()), status()
		created := int64(0)
		switch {
		case backup.Bytes == 0 && k.Backup != nil:
			t.Errorf("%s: %+v", when, k.Backup)
		case backup.Bytes != 0 && (k.Backup == nil || k.Backup.Bytes != backup.Bytes || k.Backup.Sequence != backup.Sequence || !k.Backup.Created.Equal(backup.Created)):
			t.Errorf("%s: the last backup is %+v, want %+v", when, k.Backup, backup)
		case backup.Bytes != 0:
			created = backup.Created.Unix()
		}
		if k.Version == "" || k.Release.ID == "" || time.Since(k.Release.Since).Abs() > harness.Timeout*10 {
			t.Errorf("%s: %+v", when, k)
		}
		values := harness.Metrics(t, text)
		for name, want := range map[string]float64{
			"runner_backup_last_success_timestamp_seconds":                               float64(created),
			"runner_backup_last_success_bytes":                                           float64(backup.Bytes),
			`runner_release_activated_timestamp_seconds{release="` + k.Release.ID + `"}`: float64(k.Release.Since.UnixMilli()) / 1000,
		} {
			if got, ok := values[name]; !ok || got != want {
				t.Errorf("%s: %s is %v (%v), want %v", when, name, got, ok, want)
			}
		}
		if free, size := values[`runner_disk_bytes{kind="free"}`], values[`runner_disk_bytes{kind="size"}`]; free <= 0 || size < free {
			t.Errorf("%s: %v of %v bytes of the disk are free", when, free, size)
		}
		if !regexp.MustCompile(`(?m)^runner_build_info\{commit="[^"]+",goversion="go[^"]+",version="[^"]+"\} 1$`).MatchString(text) || !strings.Contains(text, `version="`+k.Version+`"`) {
			t.Errorf("%s: no runner_build_info with version %s", when, k.Version)
		}
		for _, outcome := range []string{"written", "failed"} {
			if _, ok := values[`runner_backups_total{outcome="`+outcome+`"}`]; !ok {
				t.Errorf("%s: backups %s are not counted from the start", when, outcome)
			}
		}
	}
	check("at first", backupInfo{})
	before := status()
	info := backUp(t, a, a.Path("b"))
	check("after a backup", info)
	s.Stop()
	s = a.Serve()
	check("after a restart", info)
	if now := status(); now.Release != before.Release {
		t.Errorf("after a restart the release is %+v, before it was %+v", now.Release, before.Release)
	}
	if text := a.Must("status"); !strings.Contains(text, info.Created.Format(time.RFC3339)) || !strings.Contains(text, before.Release.ID+", active since") {
		t.Error(text)
	}
	// A backup that does not arrive is not a good one.
	if r := a.Run("backup", a.Path("no/such/directory")); r.Status != 1 {
		t.Errorf("%d %s", r.Status, r.Stderr)
	}
	check("after a backup that failed", info)
	s.Stop()
	info = backUp(t, a, a.Path("without a server"))
	a.Serve()
	check("after a backup without a server", info)
}

// A node of a cluster with every listener, after something of every kind has happened, has each metric that a rule
// or a panel names, with the labels that are named there.
func TestRulesAndDashboardNameMetricsThatANodeHas(t *testing.T) {
	all, err := observe.Registered(harness.RepoFile("."))
	if err != nil {
		t.Fatal(err)
	}
	a := harness.NewApp(t, strings.Replace(backupSchema, "{ GET /hello -> hello }",
		"{\n  GET /hello -> hello\n  POST /hook -> hello (auth: none, as: reader, verify: webhook(standard, STANDARD))\n}\nsecret STANDARD\njobs { empty() }", 1),
		"[metrics]\nlisten = \"127.0.0.1:0\"\n[admin]\nlisten = \"127.0.0.1:0\"\n[cluster]\nname = \"n1\"\n", "echo")
	a.Env = append(a.Env, "RUNNER_SECRETS_STANDARD="+harness.StandardSecret)
	a.Must("cluster", "init")
	s := a.Serve()
	s.WaitUntil("the node is ready", func() bool { return s.Do("GET", "/_health/ready", "").Status == 200 })
	token := a.Token("reader", "--name", "r")
	if got := s.Get("/hello", token); got.Status != 200 {
		t.Fatalf("%d %s", got.Status, got.Body)
	}
	s.Get("/hello", "wrong")
	s.Do("GET", "/nowhere", "")
	for _, want := range []int{200, 204} {
		if got := s.Do("POST", "/hook", "{}", harness.SignedStandard("msg_1", time.Now(), "{}")...); got.Status != want {
			t.Fatalf("%d %s, want %d", got.Status, got.Body, want)
		}
	}
	backUp(t, a, a.Path("b"))
	a.Must("jobs", "enqueue", "empty")
	s.WaitUntil("the job has run", func() bool {
		return strings.Contains(harness.Scrape(t, a.MetricsURL()), "runner_job_runs_total{")
	})
	series := slices.Collect(maps.Keys(a.Metrics()))
	for _, expr := range observe.Expressions() {
		selectors, err := observe.Selectors(expr, all)
		if err != nil {
			t.Error(err)
		}
		for _, want := range selectors {
			if !slices.ContainsFunc(series, func(name string) bool {
				bare, labels, _ := strings.Cut(name, "{")
				return bare == want.Name && !slices.ContainsFunc(want.Labels, func(l string) bool {
					return !strings.Contains("{"+labels, "{"+l+"=") && !strings.Contains(labels, ","+l+"=")
				})
			}) {
				t.Errorf("a node has no %s with the labels %q, which %q names", want.Name, want.Labels, expr)
			}
		}
	}
}

func TestWithoutTheSettingNothingIsMeasured(t *testing.T) {
	a := harness.NewApp(t, backupSchema, "", "echo")
	a.Serve()
	if url := a.MetricsURL(); url != "" {
		t.Errorf("metrics at %s", url)
	}
	a.Write("runner.toml", "[metrics]\nlisten = \"nowhere\"\n")
	if r := a.Run("check"); r.Status != 3 || !strings.Contains(r.Stdout, "runner.toml:2:10") {
		t.Errorf("%d %s %s", r.Status, r.Stdout, r.Stderr)
	}
}
