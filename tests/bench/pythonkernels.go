//go:build linux

package main

import (
	"bytes"
	"fmt"
	"path/filepath"
	"strings"
	"time"
)

// pythonKernels are the tasks of pythonDir/kernels.
var pythonKernels = []struct{ handler, what string }{
	{"encode", "writes 1,000 objects as JSON, 118 KB"},
	{"decode", "reads them"},
	{"match", "parses 500 lines of a log with an anchored regular expression, searches each path with a second one and the\n" +
		"  whole log with a third, and replaces with the second"},
	{"text", "formats 5,000 lines, joins, replaces and splits them"},
	{"template", "renders 200 rows with Jinja"},
	{"sort", "sorts 1,000 objects by a function, twice, 10,000 numbers and 10,000 strings"},
}

// kernels has the measurements of the kernels. The first arm is the runner's.
type kernels struct {
	arms   []*arm
	others float64
}

// measureKernels measures the kernels in the runner, in Debian's CPython and in others.
func (p *pythonBench) measureKernels(rounds int, length time.Duration, natives []string) (k *kernels, err error) {
	k = &kernels{}
	defer func() { stop(k.arms) }()
	app, err := p.app("kernels", "kernels")
	if err != nil {
		return nil, err
	}
	var all []task
	var names []string
	for _, x := range pythonKernels {
		all = append(all, task{handler: x.handler, status: 200})
		names = append(names, x.handler)
	}
	add := func(name string, start func(*arm) error) error {
		a := &arm{name: name, tasks: names}
		if err := a.start(start); err != nil {
			return err
		}
		k.arms = append(k.arms, a)
		return nil
	}
	if err := add(pythonArm, serve(p.runner, app)); err != nil {
		return nil, err
	}
	for _, python := range append([]string{debianPython}, natives...) {
		version, err := pythonVersion(python)
		if err != nil {
			return nil, err
		}
		args := []string{filepath.Join(peersDir, "native.py"), filepath.Join(pythonDir, "kernels", "handlers")}
		if err := add(version, p.command(python, nil, args...)); err != nil {
			return nil, err
		}
	}
	for _, t := range all {
		if err := checkSame(k.arms, t); err != nil {
			return nil, err
		}
	}
	k.others, err = measureRounds(k.arms, all, rounds, func(a *arm, t task) (sample, error) { return a.compute(t, length) })
	return k, err
}

// checkSame compares the answers of all arms. Spaces between values may differ.
func checkSame(arms []*arm, t task) error {
	var want []byte
	for _, a := range arms {
		status, body, err := a.call(t)
		if err != nil {
			return err
		}
		body = bytes.ReplaceAll(body, []byte(" "), nil)
		if want == nil {
			want = body
		}
		if status != t.status || !bytes.Equal(body, want) {
			return fmt.Errorf("%s in %s answers %d %q, not %q", t.handler, a.name, status, body, want)
		}
	}
	return nil
}

const pythonKernelsText = `Tasks of [kernels.py](../tests/bench/python/kernels/handlers/kernels.py), in ms of the server's CPU time per
request, HTTP included. One client sends one request after the other. The same file is served by another CPython with
` + "`http.server`" + `. All give the same answers. The goal of each ratio is ≤ 5.

`

// table has a row for each kernel, and for each other CPython its time and the ratio.
func (k *kernels) table() string {
	var b strings.Builder
	fmt.Fprintf(&b, "| task | %s |", k.arms[0].name)
	for _, a := range k.arms[1:] {
		fmt.Fprintf(&b, " %s | ratio |", a.name)
	}
	b.WriteString("\n|---|---|" + strings.Repeat("---|---|", len(k.arms)-1) + "\n")
	for _, x := range pythonKernels {
		own := k.arms[0]
		fmt.Fprintf(&b, "| %s | %s |", x.handler, spread(values(own, x.handler, sample.cpuMillis), "%.2f"))
		for _, a := range k.arms[1:] {
			fmt.Fprintf(&b, " %s | %s |", spread(values(a, x.handler, sample.cpuMillis), "%.2f"),
				spread(ratios(own, a, x.handler, sample.cpu), "%.2f"))
		}
		b.WriteString("\n")
	}
	b.WriteString("\n")
	for _, x := range pythonKernels {
		fmt.Fprintf(&b, "- *%s* %s\n", x.handler, x.what)
	}
	return b.String()
}
