//go:build linux

package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// Python in the runner beside other CPythons: Debian's with gunicorn and with Python's library alone.

const (
	pythonDir = "tests/bench/python"
	peersDir  = "tests/bench/peers"
	// debianPython is the interpreter that Debian's packages are made for.
	debianPython = "/usr/bin/python3"
)

// Names of the arms in Python.
const (
	gunicornArm      = "gunicorn"
	gunicornFlaskArm = "gunicorn, Flask"
	libraryArm       = "http.server"
	pythonArm        = "runner, Python"
	flaskArm         = "runner, Flask"
	coldArm          = "runner, Flask without `warm`"
)

// flaskPackages are the packages that an app with Flask needs, as Debian names their directories.
var flaskPackages = []string{"flask", "werkzeug", "jinja2", "click", "itsdangerous", "markupsafe"}

// pythonBench has what the measurements in Python share.
type pythonBench struct {
	dir, runner string
	packages    string // directory of Debian's packages
	gunicorn    string // directory of gunicorn
}

func newPythonBench(dir, runner string) (*pythonBench, error) {
	p := &pythonBench{dir: dir, runner: runner}
	for script, to := range map[string]*string{"tools/fetch-python-packages.sh": &p.packages, "tools/fetch-gunicorn.sh": &p.gunicorn} {
		out, err := exec.Command(script).Output()
		if err != nil {
			var failed *exec.ExitError
			if errors.As(err, &failed) {
				said := strings.Split(strings.TrimSpace(string(failed.Stderr)), "\n")
				err = errors.New(said[len(said)-1])
			}
			return nil, fmt.Errorf("%s is needed for the comparison: %w", script, err)
		}
		*to = strings.TrimSpace(string(out))
	}
	return p, nil
}

// command starts another CPython, which finds modules in the given directories.
func (p *pythonBench) command(python string, modules []string, args ...string) func(*arm) error {
	env := []string{
		"PYTHONPATH=" + strings.Join(append(modules, p.packages), ":"),
		"PYTHONPYCACHEPREFIX=" + filepath.Join(p.dir, "bytecode"), // is kept between starts, as that of installed packages
		python,
	}
	return command("env", append(env, args...)...)
}

// gunicornCommand starts gunicorn with an application, module:name.
func (p *pythonBench) gunicornCommand(application string, args ...string) func(*arm) error {
	flags := []string{"-m", "gunicorn", "-c", filepath.Join(peersDir, "gunicorn.conf.py"), application}
	return p.command(debianPython, []string{p.gunicorn, peersDir, filepath.Join(pythonDir, "flask", "handlers")}, append(flags, args...)...)
}

// app builds an app of pythonDir with the packages of Flask, and returns its directory. edit changes the texts of its
// files: each old text is replaced by the new one that follows it.
func (p *pythonBench) app(name, as string, edit ...string) (string, error) {
	dir := filepath.Join(p.dir, as)
	if err := os.CopyFS(dir, os.DirFS(filepath.Join(pythonDir, name))); err != nil {
		return "", err
	}
	for _, file := range []string{"app.schema", "handlers/served.py"} {
		path := filepath.Join(dir, file)
		text, err := os.ReadFile(path)
		if err != nil {
			return "", err
		}
		if err := os.WriteFile(path, []byte(strings.NewReplacer(edit...).Replace(string(text))), 0o644); err != nil {
			return "", err
		}
	}
	for _, of := range flaskPackages {
		if err := copyPackage(filepath.Join(p.packages, of), filepath.Join(dir, "python_packages", of)); err != nil {
			return "", err
		}
	}
	if out, err := exec.Command(p.runner, "build", dir).CombinedOutput(); err != nil {
		return "", fmt.Errorf("%s build %s: %w\n%s", p.runner, dir, err, out)
	}
	return dir, nil
}

// copyPackage copies a package without its machine code and without links, which lead to other packages of Debian.
func copyPackage(from, to string) error {
	return filepath.WalkDir(from, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() || filepath.Ext(path) == ".so" {
			return err
		}
		target := to + strings.TrimPrefix(path, from)
		return errors.Join(os.MkdirAll(filepath.Dir(target), 0o755), copyFile(path, target))
	})
}

// startServers starts servers in Python, and the runner's TypeScript and Go beside them.
func (p *pythonBench) startServers() (arms []*arm, err error) {
	guests, err := guestApps(p.dir, "ts", "go", "python")
	if err != nil {
		return nil, err
	}
	flask, err := p.app("flask", "flask")
	if err != nil {
		return nil, err
	}
	all, hello := []string{"hello", "hundred"}, []string{"hello"}
	start := func(name, what string, tasks []string, start func(*arm) error) {
		if err != nil {
			return
		}
		a := &arm{name: name, what: what, tasks: tasks}
		if err = a.start(start); err == nil {
			arms = append(arms, a)
		}
	}
	start(gunicornArm, "a WSGI function; 4 workers", all, p.gunicornCommand("native:application", "--workers", "4"))
	start(libraryArm, "Python's library alone; 4 processes with threads", all,
		p.command(debianPython, nil, filepath.Join(peersDir, "native.py")))
	for _, g := range guests {
		start("runner, "+g.name, "a handler in "+g.name, all, serve(p.runner, g.app))
	}
	start(gunicornFlaskArm, "Flask; 4 workers", hello, p.gunicornCommand("site_pages:app", "--workers", "4"))
	start(flaskArm, "Flask", hello, serve(p.runner, flask))
	return arms, err
}

// pythonServersText explains the tables.
const pythonServersText = `All servers give the same answers. The servers of Debian's Python have neither keys nor limits. gunicorn's workers
are ` + "`sync`" + `, its default: each request has a connection of its own. All processes of a server count. p99 is that of a
server that is never idle: wrk sends with 32 connections.

`

// pythonServerTable compares servers with one task.
func pythonServerTable(arms []*arm, t task) string {
	var b strings.Builder
	b.WriteString("| server | what it is | req/s, median | ratio to gunicorn | server CPU per request | ratio to gunicorn | p99 |\n" +
		"|---|---|---|---|---|---|---|\n")
	for _, a := range arms {
		if !a.serves(t) {
			continue
		}
		base := find(arms, gunicornArm)
		if a.name == flaskArm || a.name == gunicornFlaskArm {
			base = find(arms, gunicornFlaskArm)
		}
		fmt.Fprintf(&b, "| %s | %s | %.0f | %s | %.1f µs | %s | %.1f ms |\n", a.name, a.what,
			median(values(a, t.handler, sample.speed)), spread(ratios(a, base, t.handler, sample.speed), "%.2f"),
			median(values(a, t.handler, sample.cpu)), spread(ratios(a, base, t.handler, sample.cpu), "%.2f"),
			median(values(a, t.handler, sample.p99)))
	}
	return b.String()
}

func (s sample) p99() float64 { return s.p99Millis }

// pythonGoals compares the figures of the servers with the goals.
func pythonGoals(arms []*arm) string {
	flask := values(find(arms, flaskArm), "hello", func(s sample) float64 { return s.cpuMicros / 1000 })
	return "| figure | goal | measured |\n|---|---|---|\n" +
		fmt.Sprintf("| `hello` in Flask: server CPU per request | ≤ 1.2 ms | %s ms |\n", spread(flask, "%.2f"))
}

// printPython measures a part of what the page says of Python. natives are other CPythons that compute the kernels.
func printPython(part string, rounds int, length time.Duration, runner string, natives []string) (err error) {
	parts := map[string]func(*pythonBench) (string, float64, error){
		"servers": func(p *pythonBench) (string, float64, error) {
			arms, others, err := measureServers(rounds, length, p.dir, p.startServers)
			if err != nil {
				return "", 0, err
			}
			text := "## Servers\n\n" + pythonServersText
			for _, t := range serverTasks() {
				text += fmt.Sprintf("### %s\n\n%s\n", t.handler, pythonServerTable(arms, t))
			}
			return text + pythonGoals(arms), others, nil
		},
		"kernels": func(p *pythonBench) (string, float64, error) {
			k, err := p.measureKernels(rounds, length, natives)
			if err != nil {
				return "", 0, err
			}
			return "## Computing\n\n" + pythonKernelsText + k.table(), k.others, nil
		},
		"memory": func(p *pythonBench) (string, float64, error) {
			m, err := p.measureMemory(rounds)
			return "## Memory\n\n" + pythonMemoryText + memoryTable(m), 0, err
		},
		"start": func(p *pythonBench) (string, float64, error) {
			s, err := p.measureStarts(rounds, length)
			if err != nil {
				return "", 0, err
			}
			return "## Start\n\n" + pythonStartText + s.table(), s.others, nil
		},
	}
	measure, ok := parts[part]
	if !ok {
		return fmt.Errorf("-python %s: unknown part, want servers, kernels, memory or start", part)
	}
	dir, err := os.MkdirTemp("", "runner-bench-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	p, err := newPythonBench(dir, runner)
	if err != nil {
		return err
	}
	text, others, err := measure(p)
	if err != nil {
		return err
	}
	load, _ := os.ReadFile("/proc/loadavg") // cannot fail where /proc is mounted
	fmt.Printf("%s\nother processes used %.0f %% of the CPU; load average at the end: %s", text, others*100, load)
	return nil
}
