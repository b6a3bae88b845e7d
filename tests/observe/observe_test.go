package observe_test

import (
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"runner.example/tests/harness"
	"runner.example/tests/observe"
)

var update = flag.Bool("update", false, "write the files in docs/ that are made from the metrics of the code")

func registered(t *testing.T) []observe.Metric {
	t.Helper()
	all, err := observe.Registered(harness.RepoFile("."))
	if err != nil {
		t.Fatal(err)
	}
	if len(all) < 25 {
		t.Fatalf("only %d metrics were found: is the search broken?", len(all))
	}
	return all
}

func TestTheFilesForPrometheusAndGrafanaAreCurrent(t *testing.T) {
	all := registered(t)
	rules, err := observe.RulesFile(all)
	if err != nil {
		t.Fatal(err)
	}
	board, err := observe.Board(all)
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{
		"docs/prometheus-rules.yml": rules, "docs/grafana.json": board, "docs/metrics.md": observe.Page(all),
	} {
		path := harness.RepoFile(name)
		if *update {
			if err := os.WriteFile(path, []byte(want), 0o644); err != nil {
				t.Fatal(err)
			}
			continue
		}
		if got, err := os.ReadFile(path); err != nil || string(got) != want {
			t.Errorf("%s is not what the metrics of the code make (%v): run\n\n    go test ./tests/observe -update\n\nand read the diff", name, err)
		}
	}
}

// promtool returns the path of Prometheus' own tool.
func promtool(t *testing.T) string {
	t.Helper()
	out, err := exec.Command(harness.RepoFile("tools/fetch-promtool.sh")).Output()
	if err != nil {
		t.Fatalf("get promtool: %v", err)
	}
	return strings.TrimSpace(string(out))
}

// The tests of testdata give Prometheus a history of metrics, and say which alerts fire at which time.
func TestTheRulesFireWhenTheyShould(t *testing.T) {
	tool := promtool(t)
	dir := t.TempDir()
	for from, to := range map[string]string{
		harness.RepoFile("docs/prometheus-rules.yml"):                        "prometheus-rules.yml",
		harness.RepoFile("tests/observe/testdata/prometheus-rules-test.yml"): "test.yml",
	} {
		if err := os.WriteFile(filepath.Join(dir, to), []byte(harness.MustRead(t, from)), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, args := range [][]string{{"check", "rules", "--lint=all", "--lint-fatal", "prometheus-rules.yml"}, {"test", "rules", "test.yml"}} {
		cmd := exec.Command(tool, args...)
		cmd.Dir = dir
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("promtool %s: %v\n%s", strings.Join(args, " "), err, out)
		}
	}
	tests := harness.MustRead(t, filepath.Join(dir, "test.yml"))
	for _, r := range observe.Rules {
		if !strings.Contains(tests, "alertname: "+r.Name+"\n") {
			t.Errorf("no test of the rule %s", r.Name)
		}
	}
}

func TestAnExpressionNamesOnlyWhatTheCodeRegisters(t *testing.T) {
	all := registered(t)
	for expr, want := range map[string]string{
		`runner_ready == 0`: "",
		`sum by (route) (rate(runner_requests_total{class="2xx"}[1m]))`: "",
		`rate(runner_commit_seconds_bucket[1m])`:                        "",
		`runner_readyy`:                                                 "no metric runner_readyy",
		`runner_commit_seconds`:                                         "no metric runner_commit_seconds ",
		`runner_requests_total{clas="2xx"}`:                             "no label clas",
		`sum by (routes) (rate(runner_requests_total[1m]))`:             "no metric has the label routes",
	} {
		_, err := observe.Selectors(expr, all)
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: %v, want %q", expr, err, want)
		}
	}
}
