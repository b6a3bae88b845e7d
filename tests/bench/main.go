//go:build linux

// Bench measures the runner against a bare fasthttp handler that answers the
// same, alternately in one run, and writes docs/performance.md.
//
// The compared servers are measured in turns, and each ratio is taken within one round, so
// that other processes of the machine affect both. The median is printed with the smallest
// and the largest ratio. The load generator (wrk) shares the cores with the server, so the
// report has the server's CPU time per request beside the requests per second.
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

func main() {
	if len(os.Args) > 1 && os.Args[1] == "bare" {
		bare()
		return
	}
	rounds := flag.Int("rounds", 9, "how many measurements of each arm are taken; of the servers three times as many")
	length := flag.Duration("length", time.Second, "how long one measurement takes")
	out := flag.String("out", "docs/performance.md", "where the report goes")
	servers := flag.Bool("servers", false, "measure the servers alone and write no report")
	guests := flag.Bool("languages", false, "measure the languages alone and write no report; arguments are directories of tests/bench/guests")
	parts := flag.Bool("parts", false, "measure the parts of requests in TypeScript and Go alone and write no report")
	computes := flag.Bool("tasks", false, "measure the tasks that compute alone and write no report")
	programs := flag.Bool("programs", false, "measure the programs that start once alone and write no report")
	python := flag.String("python", "", "measure a part of Python alone and write no report: servers, kernels, memory or start")
	var natives []string
	flag.Func("cpython", "with -python kernels, repeatable: another CPython beside Debian's, for example python3.12", func(path string) error {
		natives = append(natives, path)
		return nil
	})
	var runners []string
	const usage = "the runner (default bin/runner); with -tasks repeatable: the others are compared with the first"
	flag.Func("runner", usage, func(path string) error {
		runners = append(runners, path)
		return nil
	})
	flag.Parse()
	if runners == nil {
		runners = []string{"bin/runner"}
	}
	var err error
	switch {
	case *computes:
		err = printComputing(*rounds, *length, runners)
	case len(runners) > 1:
		err = errors.New("only -tasks compares runners: give one -runner")
	case *guests:
		err = printLanguages(*rounds, flag.Args())
	case *programs:
		err = printPrograms(*rounds, *length, runners[0])
	case *python != "":
		err = printPython(*python, *rounds, *length, runners[0], natives)
	case *parts:
		err = printParts(*rounds)
	case *servers:
		err = bench(*rounds, *length, "", runners[0])
	default:
		err = bench(*rounds, *length, *out, runners[0])
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func bench(rounds int, length time.Duration, out, runner string) error {
	dir, err := os.MkdirTemp("", "runner-bench-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	arms, others, err := measureServers(rounds, length, dir, func() ([]*arm, error) { return startServers(dir, runner) })
	if err != nil {
		return err
	}
	if out == "" {
		for _, t := range serverTasks() {
			fmt.Printf("%s\n\n%s\n", t.handler, serverTable(arms, t))
		}
		fmt.Printf("other processes used %.0f %% of the CPU\n", others*100)
		return nil
	}
	fmt.Fprintln(os.Stderr, "measuring tasks that compute")
	computing, err := measureComputing(rounds, length, dir, []string{runner})
	if err != nil {
		return err
	}
	fmt.Fprintln(os.Stderr, "measuring restore and fuel")
	micro, err := exec.Command("tools/go.sh", microBenchmarks...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("go %s: %w\n%s", strings.Join(microBenchmarks, " "), err, micro)
	}
	fmt.Fprintln(os.Stderr, "measuring rows")
	cmd := exec.Command("go", rowBenchmarks...)
	cmd.Dir = rowsDir
	rows, err := cmd.CombinedOutput()
	if err != nil {
		return fmt.Errorf("go %s: %w\n%s", strings.Join(rowBenchmarks, " "), err, rows)
	}
	fmt.Fprintln(os.Stderr, "measuring jobs")
	jobs, err := exec.Command("tools/go.sh", jobBenchmarks...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("go %s: %w\n%s", strings.Join(jobBenchmarks, " "), err, jobs)
	}
	fmt.Fprintln(os.Stderr, "measuring TypeScript")
	var script scriptTimes
	if script.raw, err = exec.Command("tools/go.sh", scriptBenchmarks...).CombinedOutput(); err != nil {
		return fmt.Errorf("go %s: %w\n%s", strings.Join(scriptBenchmarks, " "), err, script.raw)
	}
	if script.build, err = measureBuild(runner, filepath.Join(dir, "script")); err != nil {
		return err
	}
	if script.save, err = measureSave(); err != nil {
		return err
	}
	fmt.Fprintln(os.Stderr, "measuring languages")
	guests, err := measureLanguages(rounds, nil)
	if err != nil {
		return err
	}
	idle, err := measureIdle(guests)
	if err != nil {
		return err
	}
	fmt.Fprintln(os.Stderr, "measuring the parts of requests")
	parts, err := measureParts(rounds)
	if err != nil {
		return err
	}
	fmt.Fprintln(os.Stderr, "measuring programs that start once")
	programs, err := measurePrograms(rounds, length, dir, runner)
	if err != nil {
		return err
	}
	report := render(arms, computing, rounds, length, others, micro, rows, jobs, script,
		languageTable(guests, idle), programTable(programs), partsTable(parts))
	fmt.Print(report)
	plot := strings.TrimSuffix(out, ".md") + ".svg"
	if err := os.WriteFile(plot, []byte(draw(arms)), 0o644); err != nil {
		return err
	}
	return os.WriteFile(out, []byte(report), 0o644)
}
