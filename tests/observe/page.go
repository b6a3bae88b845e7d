package observe

import (
	"fmt"
	"strings"
)

// Page returns docs/metrics.md.
func Page(all []Metric) string {
	var b strings.Builder
	b.WriteString("# Metrics and alerts\n\n<!-- generated: go test ./tests/observe -update -->\n\n")
	b.WriteString("[observe.md](observe.md#metrics) says how to read them. Those of the Go runtime and of the process, `go_…` and\n`process_…`, are not listed here.\n\n")
	b.WriteString("## Metrics\n\n| metric | kind | labels | |\n|---|---|---|---|\n")
	for _, m := range all {
		labels := strings.Join(m.Labels, "`, `")
		if labels != "" {
			labels = "`" + labels + "`"
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", m.Name, m.Kind, labels, m.Help)
	}
	b.WriteString("\n## Alerts\n\nThe rules are in [prometheus-rules.yml](prometheus-rules.yml). `critical` needs someone now, `warning` in working hours.\n\n")
	b.WriteString("| alert | severity | when | for | then |\n|---|---|---|---|---|\n")
	for _, r := range Rules {
		fmt.Fprintf(&b, "| `%s` | %s | `%s` | %s | %s |\n", r.Name, r.Severity, strings.ReplaceAll(r.Expr, "|", `\|`), r.For, r.Action)
	}
	return b.String()
}
