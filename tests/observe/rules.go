package observe

import (
	"fmt"
	"strings"
)

// Rule is an alert.
type Rule struct {
	Name string
	Expr string
	// For is how long the expression must be true.
	For string
	// Severity is critical: someone is called; or warning: someone looks in working hours.
	Severity string
	// Summary says what is wrong, and Action what to do.
	Summary, Action string
}

// Job is the name of the scrape job that the rules expect, see docs/observe.md.
const Job = "runner"

// Rules are the alerts.
var Rules = []Rule{
	{
		"RunnerDown", `up{job="` + Job + `"} == 0`, "1m", "critical",
		"{{ $labels.instance }} cannot be scraped", "look at the state of the service and at its log",
	},
	{
		"RunnerNotReady", `runner_ready == 0`, "2m", "critical",
		"{{ $labels.instance }} is not ready", "GET /_health/ready and runner status say why",
	},
	{
		"RunnerNoQuorum", `runner_cluster_quorum == 0`, "30s", "critical",
		"{{ $labels.instance }} reaches no majority of the voters: nothing can be stored", "runner cluster status says which nodes answer",
	},
	{
		"RunnerNodeStale", `max by (job, node) (runner_cluster_staleness_seconds) > 10`, "1m", "warning",
		"the node {{ $labels.node }} has not had all commits for a while", "look at that node and at its connection",
	},
	{
		"RunnerNodeLags", `max by (job, node) (runner_cluster_lag_commits) > 1000`, "2m", "warning",
		"the node {{ $labels.node }} lacks {{ $value }} commits", "look at the load and the disk of that node",
	},
	{
		"RunnerCertificateExpires", `runner_certificate_expiry_seconds < 14 * 86400`, "0m", "warning",
		"the certificate of {{ $labels.instance }} ({{ $labels.listener }}) expires in {{ $value | humanizeDuration }}",
		"renew it, and run runner reload",
	},
	{
		"RunnerReadOnly", `runner_store_writable == 0`, "1m", "critical",
		"{{ $labels.instance }} accepts no writes", "runner status and the log say why: a full disk, a damaged store, or no majority",
	},
	{
		"RunnerNoSpareVoter", `runner_cluster_may_fail == 0 and runner_cluster_quorum == 1 and ignoring (role) runner_cluster_members{role="voter"} > 2`, "5m", "warning",
		"no other voter of {{ $labels.instance }} may fail", "runner cluster status names the voter that is missing",
	},
	{
		"RunnerRestarts", `changes(process_start_time_seconds{job="` + Job + `"}[15m]) > 3`, "0m", "warning",
		"{{ $labels.instance }} was started {{ $value }} times in 15 minutes", "the log of the service says why it ended",
	},
	{
		"RunnerServerErrors",
		`sum by (instance) (rate(runner_requests_total{class="5xx"}[5m])) / sum by (instance) (rate(runner_requests_total[5m])) > 0.05`,
		"5m", "warning",
		"{{ $value | humanizePercentage }} of the requests to {{ $labels.instance }} fail",
		"runner_refusals_total by code, and the records handler failed in the log, say why",
	},
	{
		"RunnerSlow",
		`histogram_quantile(0.99, sum by (instance, le) (rate(runner_request_duration_seconds_bucket[5m]))) > 1`,
		"10m", "warning",
		"one of 100 requests to {{ $labels.instance }} takes {{ $value | humanizeDuration }} or longer",
		"the dashboard shows whether they wait for instances, for the processor or for commits",
	},
	{
		"RunnerConflicts",
		`sum by (instance) (rate(runner_commits_total{outcome="conflict"}[5m])) / sum by (instance) (rate(runner_commits_total[5m])) > 0.2`,
		"10m", "warning",
		"{{ $value | humanizePercentage }} of the commits of {{ $labels.instance }} conflict",
		"find the rows that many requests change, and change fewer of them in one request",
	},
	{
		"RunnerOverload", `sum by (instance, cause) (rate(runner_overload_total[5m])) > 0`, "5m", "warning",
		"{{ $labels.instance }} refuses requests because of overload: {{ $labels.cause }}",
		"docs/limits.md says what each limit protects",
	},
	{
		"RunnerDiskLow", `runner_disk_bytes{kind="free"} / ignoring (kind) runner_disk_bytes{kind="size"} < 0.2`, "10m", "warning",
		"{{ $value | humanizePercentage }} of the disk of {{ $labels.instance }} are free", "make space: half of it should be free",
	},
	{
		"RunnerDiskFull", `runner_disk_bytes{kind="free"} < 256 * 1024 * 1024`, "1m", "critical",
		"{{ $value | humanize1024 }}B of the disk of {{ $labels.instance }} are free: writes are refused soon", "make space now",
	},
	{
		"RunnerBackupStale", `time() - max by (job) (runner_backup_last_success_timestamp_seconds) > 26 * 3600`, "10m", "warning",
		"the last good backup of {{ $labels.job }} is older than 26 hours", "look at the log of runner-backup.service",
	},
	{
		"RunnerBackupFailed", `increase(runner_backups_total{outcome="failed"}[1h]) > 0`, "0m", "warning",
		"a backup of {{ $labels.instance }} has failed", "its log has a line: backup failed",
	},
}

// RulesFile returns the rules for Prometheus.
func RulesFile(all []Metric) (string, error) {
	var b strings.Builder
	b.WriteString("# Alerts for Prometheus. Generated: go test ./tests/observe -update\n")
	b.WriteString("# The scrape job must be named " + Job + ", see docs/observe.md.\n")
	b.WriteString("groups:\n  - name: runner\n    rules:\n")
	for _, r := range Rules {
		if _, err := Selectors(r.Expr, all); err != nil {
			return "", fmt.Errorf("rule %s: %w", r.Name, err)
		}
		if err := checkText(r.Summary, r.Expr, all); err != nil {
			return "", fmt.Errorf("rule %s: %w", r.Name, err)
		}
		fmt.Fprintf(&b, "      - alert: %s\n        expr: '%s'\n        for: %s\n", r.Name, r.Expr, r.For)
		fmt.Fprintf(&b, "        labels:\n          severity: %s\n", r.Severity)
		fmt.Fprintf(&b, "        annotations:\n          summary: '%s'\n          action: '%s'\n", r.Summary, r.Action)
	}
	return b.String(), nil
}
