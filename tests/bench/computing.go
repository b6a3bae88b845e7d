//go:build linux

package main

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// The tasks that compute, for servers in each language. One client sends one request after
// the other: a server's CPU time per request counts, and a request may take a second.

const computingDir = "tests/bench/tasks"

// computation is a task of computingDir, and the languages that have it.
type computation struct {
	handler, what string
	languages     []string
}

var computations = []computation{
	{"logs", "parses 300 lines of a log with an anchored regular expression, searches each path with a second\n" +
		"  one and the whole log with a third, and replaces with a fourth", []string{"TypeScript", "Go"}},
	{"group", "sums 5,000 records by a string in a map, and sorts the 1,000 sums by name and by sum",
		[]string{"TypeScript", "Go", "Rust"}},
	{"table", "writes 200 rows as HTML, 18 KB: `html/template` in Go, template strings with a function that\n" +
		"  escapes in TypeScript", []string{"TypeScript", "Go"}},
	{"markdown", "renders 3.4 KB of Markdown with `marked` of npm", []string{"TypeScript"}},
	{"sha", "hashes 104 KiB with SHA-256 that is written in the language itself. Bare Go has the loop in Go too,\n" +
		"  not the assembly of `crypto/sha256`", []string{"TypeScript", "Go", "Rust", "C"}},
}

// computingLanguages are the languages, with the prefix of their routes.
var computingLanguages = [][2]string{{"TypeScript", "/ts"}, {"Go", "/go"}, {"Rust", "/rust"}, {"C", "/c"}}

// peer is the arm that a language is compared with.
func peer(language string) string {
	if language == "TypeScript" {
		return workerdArm
	}
	return bareArm
}

// computing has the measurements of the tasks.
type computing struct {
	runners []string // programs
	arms    []*arm
	others  float64
}

// arm returns the arm of a language in one of the runners.
func (c *computing) arm(language string, runner int) *arm {
	return find(c.arms, c.name(language, runner))
}

func (c *computing) name(language string, runner int) string {
	if len(c.runners) == 1 {
		return language
	}
	return fmt.Sprintf("%s, runner %d", language, runner+1)
}

// measureComputing measures the tasks, in each of the runners.
func measureComputing(rounds int, length time.Duration, dir string, runners []string) (*computing, error) {
	c := &computing{runners: runners}
	defer func() { stop(c.arms) }()
	if err := c.start(dir); err != nil {
		return nil, err
	}
	var all []task
	for _, x := range computations {
		t := task{handler: x.handler, status: 200}
		if err := c.check(t); err != nil {
			return nil, err
		}
		all = append(all, t)
	}
	var err error
	c.others, err = measureRounds(c.arms, all, rounds, func(a *arm, t task) (sample, error) {
		return a.compute(t, length)
	})
	return c, err
}

// start starts the servers. All languages of a runner share one.
func (c *computing) start(dir string) error {
	var script, native []string
	for _, x := range computations {
		script = append(script, x.handler)
		if slices.Contains(x.languages, "Go") {
			native = append(native, x.handler)
		}
	}
	worker, err := workerd(dir)
	if err != nil {
		return err
	}
	bare, other := &arm{name: bareArm, tasks: native}, &arm{name: workerdArm, tasks: script}
	if err := bare.start(startBare); err != nil {
		return err
	}
	c.arms = append(c.arms, bare)
	if err := other.start(worker); err != nil {
		return err
	}
	c.arms = append(c.arms, other)
	for i, runner := range c.runners {
		app, err := computingApp(filepath.Join(dir, fmt.Sprintf("tasks%d", i)), runner)
		if err != nil {
			return err
		}
		var first arm
		if err := first.start(serve(runner, app)); err != nil {
			return err
		}
		for _, l := range computingLanguages {
			a := &arm{name: c.name(l[0], i), server: first.server, url: first.url + l[1], headers: first.headers}
			a.rounds = map[string][]sample{}
			for _, x := range computations {
				if slices.Contains(x.languages, l[0]) {
					a.tasks = append(a.tasks, x.handler)
				}
			}
			c.arms = append(c.arms, a)
		}
	}
	return nil
}

// computingApp has the runner build the app, and copies what it serves to a directory: the
// next runner builds modules of its own.
func computingApp(dir, runner string) (string, error) {
	packages, err := npmPackages()
	if err != nil {
		return "", err
	}
	err = os.Symlink(packages, filepath.Join(computingDir, "node_modules"))
	if err != nil && !errors.Is(err, fs.ErrExist) {
		return "", err
	}
	built := filepath.Join(computingDir, "build")
	if err := os.RemoveAll(built); err != nil {
		return "", err
	}
	if out, err := exec.Command(runner, "build", computingDir).CombinedOutput(); err != nil {
		return "", fmt.Errorf("%s build %s: %w\n%s", runner, computingDir, err, out)
	}
	return dir, errors.Join(
		os.CopyFS(filepath.Join(dir, "build"), os.DirFS(built)),
		copyFile(filepath.Join(computingDir, "app.schema"), filepath.Join(dir, "app.schema")),
		copyFile(filepath.Join(computingDir, "runner.toml"), filepath.Join(dir, "runner.toml")),
	)
}

// check compares the answers of all arms.
func (c *computing) check(t task) error {
	var want []byte
	for _, a := range c.arms {
		if !a.serves(t) {
			continue
		}
		status, body, err := a.call(t)
		if err != nil {
			return err
		}
		if want == nil {
			want = body
		}
		if status != t.status || !bytes.Equal(body, want) {
			return fmt.Errorf("%s in %s answers %d %q, not %q", t.handler, a.name, status, body, want)
		}
	}
	return nil
}

// compute sends one request after the other for the given length, but at least two.
func (a *arm) compute(t task, length time.Duration) (sample, error) {
	return a.observe(func() (requests float64, load time.Duration, err error) {
		own, err := cpuTime(os.Getpid())
		if err != nil {
			return 0, 0, err
		}
		for began := time.Now(); requests < 2 || time.Since(began) < length; requests++ {
			status, body, err := a.call(t)
			if err != nil {
				return 0, 0, err
			}
			if status != t.status {
				return 0, 0, fmt.Errorf("%s in %s answers %d %q", t.handler, a.name, status, body)
			}
		}
		after, err := cpuTime(os.Getpid())
		return requests, after - own, err
	})
}

// printComputing measures the tasks alone, and compares the other runners with the first.
func printComputing(rounds int, length time.Duration, runners []string) error {
	dir, err := os.MkdirTemp("", "runner-bench-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	c, err := measureComputing(rounds, length, dir, runners)
	if err != nil {
		return err
	}
	fmt.Print(c.table() + "\n" + c.goals())
	for i := 1; i < len(runners); i++ {
		fmt.Printf("\n%s\n", c.compare(i))
	}
	fmt.Printf("\nother processes used %.0f %% of the CPU\n", c.others*100)
	return nil
}

const computingText = `Tasks that compute (tests/bench/tasks), in ms of the server's CPU time per request: the median of the
rounds, with the smallest and the largest. One client sends one request after the other. workerd and
the runner serve the same source text in TypeScript; bare fasthttp and the runner the same in Go. All
servers give the same answers. Rust and C have only some tasks: their SDKs have no regular expressions.

`

// table has a column for each arm.
func (c *computing) table() string {
	var b strings.Builder
	b.WriteString("| task |")
	for _, a := range c.arms {
		fmt.Fprintf(&b, " %s |", a.name)
	}
	b.WriteString("\n|---|" + strings.Repeat("---|", len(c.arms)) + "\n")
	for _, x := range computations {
		fmt.Fprintf(&b, "| %s |", x.handler)
		for _, a := range c.arms {
			if a.rounds[x.handler] == nil {
				b.WriteString(" |")
				continue
			}
			fmt.Fprintf(&b, " %s |", spread(values(a, x.handler, sample.cpuMillis), "%.2f"))
		}
		b.WriteString("\n")
	}
	b.WriteString("\n")
	for _, x := range computations {
		fmt.Fprintf(&b, "- *%s* %s\n", x.handler, x.what)
	}
	return b.String()
}

func (s sample) cpuMillis() float64 { return s.cpuMicros / 1000 }

// computingGoals are the ratios to the peer that must be reached, and those aimed at.
var computingGoals = []struct {
	handler, language string
	must, aim         float64
}{
	{"logs", "TypeScript", 6, 3},
	{"group", "TypeScript", 20, 10},
	{"table", "TypeScript", 7, 4},
	{"markdown", "TypeScript", 25, 12},
	{"sha", "TypeScript", 120, 40},
	{"logs", "Go", 6, 3},
	{"group", "Go", 6, 3},
	{"table", "Go", 9, 3},
	{"sha", "Rust", 1.7, 1.3},
	{"sha", "C", 1.7, 1.3},
}

// goals compares the ratios with the goals.
func (c *computing) goals() string {
	var b strings.Builder
	b.WriteString("| server CPU per request divided by the peer's | goal | aim | measured |\n|---|---|---|---|\n")
	for _, x := range computations {
		for _, language := range x.languages {
			goal, aim := "", ""
			for _, g := range computingGoals {
				if g.handler == x.handler && g.language == language {
					goal, aim = fmt.Sprintf("≤ %g", g.must), fmt.Sprintf("≤ %g", g.aim)
				}
			}
			all := ratios(c.arm(language, 0), find(c.arms, peer(language)), x.handler, sample.cpu)
			fmt.Fprintf(&b, "| %s: %s, %s | %s | %s | %s |\n",
				x.handler, language, peer(language), goal, aim, spread(all, "%.2f"))
		}
	}
	return b.String()
}

// compare compares a runner with the first one: the ratio of each task in each language, and
// geometric means.
func (c *computing) compare(runner int) string {
	var b strings.Builder
	fmt.Fprintf(&b, "CPU per request of runner %d (%s) divided by that of runner 1 (%s)\n\n",
		runner+1, c.runners[runner], c.runners[0])
	b.WriteString("| task | language | ratio |\n|---|---|---|\n")
	var whole [][]float64
	for _, l := range computingLanguages {
		var own [][]float64
		for _, x := range computations {
			if slices.Contains(x.languages, l[0]) {
				all := ratios(c.arm(l[0], runner), c.arm(l[0], 0), x.handler, sample.cpu)
				own = append(own, all)
				fmt.Fprintf(&b, "| %s | %s | %s |\n", x.handler, l[0], spread(all, "%.3f"))
			}
		}
		fmt.Fprintf(&b, "| geometric mean | %s | %s |\n", l[0], spread(geometricMeans(own), "%.3f"))
		whole = append(whole, own...)
	}
	fmt.Fprintf(&b, "| geometric mean | all | %s |\n", spread(geometricMeans(whole), "%.3f"))
	return b.String()
}

// geometricMeans returns the mean of each round over lists of ratios.
func geometricMeans(lists [][]float64) []float64 {
	means := make([]float64, len(lists[0]))
	for i := range means {
		for _, list := range lists {
			means[i] += math.Log(list[i]) / float64(len(lists))
		}
		means[i] = math.Exp(means[i])
	}
	return means
}
