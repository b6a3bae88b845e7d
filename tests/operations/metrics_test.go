package operations_test

import (
	"encoding/json"
	"io"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil/promlint"

	"runner.example/tests/harness"
)

// metricsOf returns the address of the metrics of a running server.
func metricsOf(t *testing.T, a *harness.App) string {
	t.Helper()
	var state struct{ Metrics string }
	if err := json.Unmarshal([]byte(a.Must("status", "--json")), &state); err != nil {
		t.Fatal(err)
	}
	return state.Metrics
}

// scrape reads the metrics.
func scrape(t *testing.T, url string) string {
	t.Helper()
	got, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer got.Body.Close()
	text, err := io.ReadAll(got.Body)
	if err != nil || got.StatusCode != 200 {
		t.Fatalf("%d %s, %v", got.StatusCode, text, err)
	}
	return string(text)
}

// metricsApp serves an app with metrics, after requests with every kind of outcome.
func metricsApp(t *testing.T) (a *harness.App, url string) { return metricsAppOf(t, backupSchema) }

func metricsAppOf(t *testing.T, schema string) (a *harness.App, url string) {
	t.Helper()
	a = harness.NewApp(t, schema, "[metrics]\nlisten = \"127.0.0.1:0\"\n", "echo")
	s := a.Serve()
	url = metricsOf(t, a)
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
	text := scrape(t, url)
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
	if text := scrape(t, url); strings.Contains(text, `route="GET /hello"`) || !strings.Contains(text, `runner_requests_total{class="2xx",route="GET /other"} 0`) {
		t.Errorf("after a reload:\n%s", text)
	}
}

func TestTheDashboardShowsMetricsThatExist(t *testing.T) {
	a, url := metricsAppOf(t, backupSchema+"jobs { empty() }\n")
	a.Must("jobs", "enqueue", "empty")
	text := scrape(t, url)
	for end := time.Now().Add(harness.Timeout); !strings.Contains(text, "runner_job_runs_total{"); text = scrape(t, url) {
		if time.Now().After(end) {
			t.Fatal("the job does not run")
		}
	}
	var board struct {
		Panels []struct{ Targets []struct{ Expr string } }
	}
	if err := json.Unmarshal([]byte(harness.MustRead(t, harness.RepoFile("docs/grafana.json"))), &board); err != nil {
		t.Fatal(err)
	}
	shown := map[string]bool{}
	for _, panel := range board.Panels {
		for _, target := range panel.Targets {
			for _, name := range regexp.MustCompile(`\b(?:runner|go|process)_[a-z_]+`).FindAllString(target.Expr, -1) {
				shown[name] = true
				if !strings.Contains(text, "\n"+name) && !strings.Contains(text, "# TYPE "+name+" ") {
					t.Errorf("no metric %s", name)
				}
			}
		}
	}
	for _, m := range regexp.MustCompile(`(?m)^# TYPE (runner_[a-z_]+) `).FindAllStringSubmatch(text, -1) {
		if !shown[m[1]] && !shown[m[1]+"_bucket"] && !shown[m[1]+"_sum"] {
			t.Errorf("docs/grafana.json does not show %s", m[1])
		}
	}
}

func TestWithoutTheSettingNothingIsMeasured(t *testing.T) {
	a := harness.NewApp(t, backupSchema, "", "echo")
	a.Serve()
	if url := metricsOf(t, a); url != "" {
		t.Errorf("metrics at %s", url)
	}
	a.Write("runner.toml", "[metrics]\nlisten = \"nowhere\"\n")
	if r := a.Run("check"); r.Status != 3 || !strings.Contains(r.Stdout, "runner.toml:2:10") {
		t.Errorf("%d %s %s", r.Status, r.Stdout, r.Stderr)
	}
}
