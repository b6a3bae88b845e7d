package observe

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// Metric is a metric that the code registers.
type Metric struct {
	Name string
	// Kind is counter, histogram or gauge.
	Kind, Help string
	Labels     []string
	// Package registers it, as a path in the repository.
	Package string
}

// registers are the methods of telemetry.Metrics that register a metric: its kind, and the place of the first
// label in the arguments. The name is the first argument, and the help the second.
var registers = map[string]struct {
	kind  string
	label int
}{
	"Counters":   {"counter", 2},
	"Histograms": {"histogram", 3},
	"Gauge":      {"gauge", 2}, // one label, or ""
	"Gauges":     {"gauge", 3},
}

// telemetry has the functions themselves: their calls of each other have no constant names.
const telemetry = "internal/telemetry"

// Registered returns the metrics that the code of the repository registers, by name.
func Registered(root string) ([]Metric, error) {
	found := map[string]Metric{}
	for _, subject := range []string{"internal", "schema", "state", "keystore", "hostabi", "runtime", "node", "develop", "cmd"} {
		err := filepath.WalkDir(filepath.Join(root, subject), func(path string, d fs.DirEntry, err error) error {
			switch {
			case err != nil:
				return err
			case d.IsDir() && (d.Name() == "testdata" || strings.HasPrefix(d.Name(), ".") || d.Name() == "node_modules"):
				return filepath.SkipDir
			case d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go"):
				return nil
			}
			rel, err := filepath.Rel(root, filepath.Dir(path))
			if err != nil {
				return err
			}
			return registeredIn(path, filepath.ToSlash(rel), found)
		})
		if err != nil {
			return nil, err
		}
	}
	var all []Metric
	for _, m := range found {
		all = append(all, m)
	}
	slices.SortFunc(all, func(a, b Metric) int { return strings.Compare(a.Name, b.Name) })
	return all, nil
}

// registeredIn adds the metrics of a file.
func registeredIn(path, pkg string, found map[string]Metric) (err error) {
	set := token.NewFileSet()
	file, err := parser.ParseFile(set, path, nil, parser.SkipObjectResolution)
	if err != nil {
		return err
	}
	ast.Inspect(file, func(n ast.Node) bool {
		call, ok := n.(*ast.CallExpr)
		if !ok || err != nil {
			return err == nil
		}
		method, ok := call.Fun.(*ast.SelectorExpr)
		if !ok {
			return true
		}
		kind, ok := registers[method.Sel.Name]
		if !ok || len(call.Args) < 2 { // another method of that name
			return true
		}
		m, failed := metricOf(call, kind.kind, kind.label)
		switch {
		case failed != nil && pkg == telemetry:
		case failed != nil:
			err = fmt.Errorf("%s: %w", set.Position(call.Pos()), failed)
		case slices.ContainsFunc(m.Labels, func(l string) bool { return slices.Contains(added, l) }):
			err = fmt.Errorf("%s: Prometheus sets the labels %s itself: %s needs other names", set.Position(call.Pos()), strings.Join(added, ", "), m.Name)
		default:
			m.Package = pkg
			if before, twice := found[m.Name]; twice && (before.Kind != m.Kind || !slices.Equal(before.Labels, m.Labels)) {
				err = fmt.Errorf("%s: %s is registered in %s with another kind or other labels", set.Position(call.Pos()), m.Name, before.Package)
			}
			found[m.Name] = m
		}
		return true
	})
	return err
}

// metricOf reads a call that registers a metric.
func metricOf(call *ast.CallExpr, kind string, label int) (Metric, error) {
	name, err := constant(call.Args[0])
	if err != nil {
		return Metric{}, fmt.Errorf("the name of a metric must be a constant text")
	}
	m := Metric{Name: "runner_" + name, Kind: kind}
	if m.Help, err = constant(call.Args[1]); err != nil {
		return m, fmt.Errorf("the help of %s must be a constant text", m.Name)
	}
	labels := call.Args[min(label, len(call.Args)):]
	if kind == "gauge" && label == 2 {
		labels = labels[:1] // read follows
	}
	for _, arg := range labels {
		text, err := constant(arg)
		if err != nil {
			return m, fmt.Errorf("the labels of %s must be constant texts", m.Name)
		}
		if text != "" {
			m.Labels = append(m.Labels, text)
		}
	}
	return m, nil
}

// constant is the value of a literal, or of literals that are added.
func constant(e ast.Expr) (string, error) {
	switch e := e.(type) {
	case *ast.BasicLit:
		return strconv.Unquote(e.Value)
	case *ast.BinaryExpr:
		left, err := constant(e.X)
		if err != nil {
			return "", err
		}
		right, err := constant(e.Y)
		return left + right, err
	}
	return "", strconv.ErrSyntax
}
