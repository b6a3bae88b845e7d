package observe

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// Selector is a metric in an expression, and the labels that the expression needs it to have.
type Selector struct {
	// Name is as in the output of a node: a histogram has three suffixes.
	Name   string
	Labels []string
}

var (
	selector = regexp.MustCompile(`\b((?:runner|go|process)_[a-z_]+|up)\b(\{[^}]*\})?`)
	matcher  = regexp.MustCompile(`([a-z_]+)\s*(?:=~|!~|!=|=)\s*"`)
	grouping = regexp.MustCompile(`\b(?:by|ignoring|on|without)\s*\(([^)]*)\)`)
	quoted   = regexp.MustCompile(`"[^"]*"`)
)

// added are the labels that Prometheus adds to all metrics of a node, and that of the buckets of a histogram.
var added = []string{"instance", "job", "le"}

// Selectors returns the metrics in an expression. Those that Prometheus makes itself are left out. An error
// names a metric or a label that none of the registered ones has.
func Selectors(expr string, all []Metric) ([]Selector, error) {
	var found []Selector
	var labels []string // of all metrics in it
	for _, match := range selector.FindAllStringSubmatch(expr, -1) {
		name := match[1]
		if name == "up" || strings.HasPrefix(name, "go_") || strings.HasPrefix(name, "process_") {
			if name != "up" {
				found = append(found, Selector{Name: name})
			}
			continue
		}
		i := slices.IndexFunc(all, func(m Metric) bool { return m.has(name) })
		if i < 0 {
			return nil, fmt.Errorf("no metric %s in %q", name, expr)
		}
		s := Selector{Name: name}
		for _, m := range matcher.FindAllStringSubmatch(match[2], -1) {
			if !slices.Contains(all[i].Labels, m[1]) && !slices.Contains(added, m[1]) {
				return nil, fmt.Errorf("%s has no label %s in %q", name, m[1], expr)
			}
			s.Labels = append(s.Labels, m[1])
		}
		labels = append(labels, all[i].Labels...)
		found = append(found, s)
	}
	for _, match := range grouping.FindAllStringSubmatch(quoted.ReplaceAllString(expr, ""), -1) {
		for name := range strings.SplitSeq(match[1], ",") {
			name = strings.TrimSpace(name)
			if slices.Contains(added, name) {
				continue
			}
			if !slices.Contains(labels, name) {
				return nil, fmt.Errorf("no metric has the label %s in %q", name, expr)
			}
			for i := range found {
				if m := all[max(0, slices.IndexFunc(all, func(m Metric) bool { return m.has(found[i].Name) }))]; slices.Contains(m.Labels, name) {
					found[i].Labels = append(found[i].Labels, name)
				}
			}
		}
	}
	return found, nil
}

// has reports whether the metric has a series with that name.
func (m Metric) has(name string) bool {
	if m.Kind != "histogram" {
		return name == m.Name
	}
	return slices.Contains([]string{m.Name + "_bucket", m.Name + "_sum", m.Name + "_count"}, name)
}

// variable is a label in the text of an alert, or in a legend.
var variable = regexp.MustCompile(`\$labels\.([a-z_]+)|\{\{([a-z_]+)\}\}`)

// checkText returns an error if a text names a label that no metric of the expression has.
func checkText(text, expr string, all []Metric) error {
	var labels []string
	for _, m := range all {
		for _, match := range selector.FindAllStringSubmatch(expr, -1) {
			if m.has(match[1]) {
				labels = append(labels, m.Labels...)
			}
		}
	}
	for _, match := range variable.FindAllStringSubmatch(text, -1) {
		if name := match[1] + match[2]; !slices.Contains(labels, name) && !slices.Contains(added, name) {
			return fmt.Errorf("%q names the label %s, which no metric of %q has", text, name, expr)
		}
	}
	return nil
}
