package observe

import (
	"bytes"
	"encoding/json"
	"fmt"
)

// panel is a panel of the dashboard. Units are Grafana's.
type panel struct {
	title, unit string
	targets     []target
}

type target struct{ expr, legend string }

// p returns a panel with pairs of an expression and its legend.
func p(title, unit string, pairs ...string) panel {
	made := panel{title: title, unit: unit}
	for i := 0; i < len(pairs); i += 2 {
		made.targets = append(made.targets, target{pairs[i], pairs[i+1]})
	}
	return made
}

// quantile returns the expression for a quantile of a histogram.
func quantile(q float64, metric string) string {
	return fmt.Sprintf("histogram_quantile(%v, sum by (le) (rate(%s_bucket[1m])))", q, metric)
}

// panels are those of the dashboard, three in a row.
var panels = []panel{
	p("Requests per second by class", "reqps", "sum by (class) (rate(runner_requests_total[1m]))", "{{class}}"),
	p("Requests per second by route", "reqps", "topk(10, sum by (route) (rate(runner_requests_total[1m])))", "{{route}}"),
	p("Time of requests", "s", quantile(0.5, "runner_request_duration_seconds"), "median",
		quantile(0.99, "runner_request_duration_seconds"), "99th percentile"),
	p("Time of handlers by route", "s", "topk(10, sum by (route) (rate(runner_handler_seconds_total[1m])))", "{{route}}"),
	p("Fuel by route", "short", "topk(10, sum by (route) (rate(runner_handler_fuel_total[1m])))", "{{route}}"),
	p("Refusals by code", "reqps", "sum by (code) (rate(runner_refusals_total[1m]))", "{{code}}"),
	p("Overload by cause", "reqps", "sum by (cause) (rate(runner_overload_total[1m]))", "{{cause}}"),
	p("Refused credentials by reason", "reqps", "sum by (reason) (rate(runner_refused_credentials_total[1m]))", "{{reason}}"),
	p("Requests to public hosts", "reqps", "sum by (outcome) (rate(runner_public_requests_total[1m]))", "{{outcome}}"),
	p("Wait for an instance slot", "s", quantile(0.99, "runner_sandbox_wait_seconds"), "99th percentile"),
	p("Restoring sandboxes", "s", quantile(0.99, "runner_sandbox_restore_seconds"), "99th percentile"),
	p("Restored pages", "short", "rate(runner_sandbox_restored_pages_sum[1m]) / rate(runner_sandbox_restored_pages_count[1m])", "mean"),
	p("Handlers", "short", "runner_sandbox_slots", "{{instance}} {{state}}"),
	p("Memory of handlers", "bytes", "runner_sandbox_memory_bytes", "{{instance}} {{kind}}"),
	p("Commits per second", "ops", "sum by (outcome) (rate(runner_commits_total[1m]))", "{{outcome}}"),
	p("Time of commits", "s", quantile(0.99, "runner_commit_seconds"), "99th percentile"),
	p("Store", "short", "runner_store_writable", "{{instance}} writable", "runner_store_queue", "{{instance}} queued"),
	p("Newest commit", "short", "runner_store_sequence", "{{instance}}"),
	p("Keys and sessions", "short", "runner_keys", "keys, {{state}}", "runner_sessions", "sessions, {{state}}"),
	p("Connections", "short", "runner_connections", "{{instance}}"),
	p("Watched routes", "short", "runner_live_watches", "{{instance}} watches", "runner_live_queries", "{{instance}} different answers"),
	p("Events of watched routes per second", "short", "sum by (kind) (rate(runner_live_events_total[1m]))", "{{kind}} events",
		"sum (rate(runner_live_runs_total[1m]))", "runs of handlers"),
	p("Memory of watched answers", "bytes", "runner_live_value_bytes", "{{instance}}"),
	p("Counters of rate limits", "short", "runner_limit_counters", "{{instance}}"),
	p("Ready", "short", "runner_ready", "{{instance}}"),
	p("Versions", "short", "count by (version, commit, goversion) (runner_build_info)", "{{version}} ({{commit}}, {{goversion}})"),
	p("Age of the active release", "s", "time() - runner_release_activated_timestamp_seconds", "{{instance}} {{release}}"),
	p("Disk of the data directory", "bytes", "runner_disk_bytes", "{{instance}} {{kind}}"),
	p("Age of the last good backup", "s", "time() - (runner_backup_last_success_timestamp_seconds > 0)", "{{instance}}"),
	p("Size of the last good backup", "bytes", "runner_backup_last_success_bytes", "{{instance}}"),
	p("Backups per day", "short", "increase(runner_backups_total[1d])", "{{instance}} {{outcome}}"),
	p("Memory of the process", "bytes", "process_resident_memory_bytes", "{{instance}} resident", "go_memstats_heap_inuse_bytes", "{{instance}} Go heap"),
	p("Processor", "short", "rate(process_cpu_seconds_total[1m])", "{{instance}} cores"),
	p("Jobs", "short", "runner_jobs", "{{instance}} {{state}}"),
	p("Runs of jobs per second", "short", "sum by (job_name, outcome) (rate(runner_job_runs_total[1m]))", "{{job_name}}, {{outcome}}"),
	p("Time of jobs", "s", "histogram_quantile(0.99, sum by (le, job_name) (rate(runner_job_duration_seconds_bucket[1m])))", "{{job_name}}"),
	p("Tried again", "short", "sum (rate(runner_job_claim_conflicts_total[1m]))", "claims of jobs",
		"sum by (route) (rate(runner_deliveries_repeated_total[1m]))", "deliveries to {{route}}"),
	p("Quorum, and voters that may fail", "short", "runner_cluster_quorum", "{{instance}} quorum", "runner_cluster_may_fail", "{{instance}} may fail"),
	p("Nodes of the cluster", "short", "max by (role) (runner_cluster_members)", "{{role}}"),
	p("Leader and owner", "short", "max by (node) (runner_cluster_leader)", "{{node}} leader", "max by (node) (runner_cluster_owner)", "{{node}} owner"),
	p("Connections between nodes", "short", "runner_cluster_connected", "{{instance}} to {{node}}"),
	p("Time since a node has answered", "s", "runner_cluster_seen_seconds", "{{instance}} to {{node}}"),
	p("Staleness of nodes", "s", "max by (node) (runner_cluster_staleness_seconds)", "{{node}}"),
	p("Lag of nodes", "short", "max by (node) (runner_cluster_lag_commits)", "{{node}}"),
	p("Time until certificates expire", "s", "runner_certificate_expiry_seconds", "{{instance}} {{listener}}"),
}

// Board returns the dashboard for Grafana. Every metric is in it.
func Board(all []Metric) (string, error) {
	type object = map[string]any
	shown := map[string]bool{}
	var drawn []object
	for i, panel := range panels {
		var targets []object
		for n, t := range panel.targets {
			found, err := Selectors(t.expr, all)
			if err == nil {
				err = checkText(t.legend, t.expr, all)
			}
			if err != nil {
				return "", fmt.Errorf("panel %q: %w", panel.title, err)
			}
			for _, s := range found {
				shown[s.Name] = true
			}
			targets = append(targets, object{"refId": string(rune('A' + n)), "expr": t.expr, "legendFormat": t.legend})
		}
		const width, height, columns = 8, 7, 3
		drawn = append(drawn, object{
			"id": i + 1, "title": panel.title, "type": "timeseries",
			"gridPos":     object{"x": i % columns * width, "y": i / columns * height, "w": width, "h": height},
			"datasource":  object{"type": "prometheus", "uid": "${datasource}"},
			"fieldConfig": object{"defaults": object{"unit": panel.unit, "min": 0}, "overrides": []any{}},
			"targets":     targets,
		})
	}
	for _, m := range all {
		seen := false
		for name := range shown {
			seen = seen || m.has(name)
		}
		if !seen {
			return "", fmt.Errorf("no panel shows %s, which %s registers: add one in tests/observe/board.go", m.Name, m.Package)
		}
	}
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	err := enc.Encode(object{
		"title": "runner", "uid": "runner", "schemaVersion": 39, "tags": []string{"runner"}, "refresh": "30s",
		"time": object{"from": "now-1h", "to": "now"},
		"templating": object{"list": []object{{
			"name": "datasource", "type": "datasource", "query": "prometheus", "label": "Data source",
		}}},
		"panels": drawn,
	})
	return out.String(), err
}

// Expressions returns all expressions of the dashboard and of the rules.
func Expressions() (all []string) {
	for _, panel := range panels {
		for _, t := range panel.targets {
			all = append(all, t.expr)
		}
	}
	for _, r := range Rules {
		all = append(all, r.Expr)
	}
	return all
}
