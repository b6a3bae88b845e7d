//go:build linux

package main

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	esbuild "github.com/evanw/esbuild/pkg/api"
	"github.com/valyala/fasthttp"
	"golang.org/x/sys/unix"

	"runner.example/schema"
	"runner.example/tests/bench/tasks/work"
)

// bare is the server that the others are compared with: fasthttp and encoding/json, with
// neither routes nor keys.
func bare() {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	fmt.Printf("listening on http://%s\n", ln.Addr())
	err = fasthttp.Serve(ln, func(ctx *fasthttp.RequestCtx) {
		answer, err := bareAnswer(ctx)
		if err != nil {
			ctx.Error(err.Error(), 500)
			return
		}
		if page, ok := answer.([]byte); ok {
			ctx.SetContentType("text/html; charset=utf-8")
			ctx.SetBody(page)
			return
		}
		body, err := json.Marshal(answer)
		if err != nil {
			ctx.Error(err.Error(), 500)
			return
		}
		ctx.SetContentType("application/json")
		ctx.SetBody(body)
	})
	fmt.Fprintln(os.Stderr, err)
	os.Exit(1)
}

func bareAnswer(ctx *fasthttp.RequestCtx) (any, error) {
	switch string(ctx.Path()) {
	case "/hello":
		return struct {
			Message string `json:"message"`
		}{"hello"}, nil
	case "/hundred":
		var rows []struct {
			ID    string  `json:"id"`
			Item  string  `json:"item"`
			Qty   int     `json:"qty"`
			Price float64 `json:"price"`
			Total float64 `json:"total"`
		}
		err := json.Unmarshal(ctx.PostBody(), &rows)
		for i := range rows {
			rows[i].Total = float64(rows[i].Qty) * rows[i].Price
		}
		return rows, err
	case "/logs":
		return work.Logs(), nil
	case "/group":
		return work.Group(), nil
	case "/table":
		return work.Table()
	case "/sha":
		return work.Sha(), nil
	}
	return nil, errors.New("unknown path")
}

// arm is one server under load.
type arm struct {
	name    string
	what    string
	server  *exec.Cmd
	began   time.Time // when the server was started
	url     string
	headers []string
	tasks   []string            // that it is measured with
	rounds  map[string][]sample // by task
}

func (a *arm) serves(t task) bool { return slices.Contains(a.tasks, t.handler) }

type sample struct {
	perSecond float64
	cpuMicros float64 // of the server, per request
	p99Millis float64 // of the time until a response; 0: it was not measured
	others    float64 // share of the CPU that other processes used
}

// Names of arms that the report mentions.
const (
	bareArm    = "bare fasthttp"
	smallArm   = "runner, small guest"
	goArm      = "runner, Go"
	scriptArm  = "runner, TypeScript"
	cArm       = "runner, C"
	workerdArm = "workerd"
)

// serverTasks are the tasks that servers are measured with.
func serverTasks() []task {
	return slices.DeleteFunc(tasks(), func(t task) bool { return t.handler == "order" }) // it needs a store
}

// measureServers starts the servers and measures all of them in turns. It returns the share
// of the CPU that other processes used.
func measureServers(rounds int, length time.Duration, dir string, start func() ([]*arm, error)) (arms []*arm, others float64, err error) {
	defer func() { stop(arms) }()
	if arms, err = start(); err != nil {
		return arms, 0, err
	}
	for _, t := range serverTasks() {
		for _, a := range arms {
			if !a.serves(t) {
				continue
			}
			if err := a.check(t); err != nil {
				return arms, 0, err
			}
		}
	}
	others, err = measureRounds(arms, serverTasks(), rounds, func(a *arm, t task) (sample, error) {
		return a.measure(t, length, dir)
	})
	return arms, others, err
}

// stop kills the servers of arms, with the processes that they have started.
func stop(arms []*arm) {
	for _, a := range arms { // some share a server
		all, _ := processes(a.server.Process.Pid) // an error: the server has ended
		_ = a.server.Process.Kill()
		for _, pid := range all[min(1, len(all)):] {
			_ = unix.Kill(pid, unix.SIGKILL)
		}
		_ = a.server.Wait()
	}
}

// measureRounds measures the arms in turns, in spare times as many rounds as are kept, after
// one to warm up. It returns the share of the CPU that other processes used.
func measureRounds(arms []*arm, tasks []task, rounds int, measure func(*arm, task) (sample, error)) (others float64, err error) {
	for round := range 1 + rounds*spare {
		fmt.Fprintf(os.Stderr, "\rround %d of %d", round, rounds*spare)
		for _, t := range tasks {
			for _, a := range arms {
				if !a.serves(t) {
					continue
				}
				s, err := measure(a, t)
				if err != nil {
					return 0, err
				}
				if round > 0 {
					a.rounds[t.handler] = append(a.rounds[t.handler], s)
				}
			}
		}
	}
	fmt.Fprintln(os.Stderr)
	return keepCalmest(arms, rounds), nil
}

// spare times as many rounds are measured as are kept.
const spare = 3

// keepCalmest keeps the given number of rounds: those in which other processes used the
// least CPU. It returns the median of their share.
func keepCalmest(arms []*arm, rounds int) float64 {
	n := 0 // measurements of one round
	others := make([]float64, rounds*spare)
	for _, a := range arms {
		for _, all := range a.rounds {
			n++
			for i, s := range all {
				others[i] += s.others
			}
		}
	}
	order := make([]int, len(others))
	for i := range others {
		order[i] = i
		others[i] /= float64(n)
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(others[a], others[b]) })
	for _, a := range arms {
		for name, all := range a.rounds {
			var kept []sample
			for _, i := range order[:rounds] {
				kept = append(kept, all[i])
			}
			a.rounds[name] = kept
		}
	}
	return others[order[rounds/2]]
}

// start starts a server and makes an arm of it.
func (a *arm) start(start func(*arm) error) error {
	a.rounds = map[string][]sample{}
	if err := start(a); err != nil {
		return fmt.Errorf("start %s: %w", a.name, err)
	}
	return nil
}

// startServers starts the servers. Those that need a program or a compiler that is missing
// are left out, with a message.
func startServers(dir, runner string) (arms []*arm, err error) {
	all := []string{"hello", "hundred"}
	add := func(a *arm, start func(*arm) error) error {
		if err := a.start(start); err != nil {
			return err
		}
		arms = append(arms, a)
		return nil
	}
	if err := add(&arm{name: bareArm, what: "fasthttp and encoding/json; no route, no key", tasks: all}, startBare); err != nil {
		return arms, err
	}
	if err := add(&arm{name: "Node.js", what: "node:http; no route, no key", tasks: all}, command("node", "tests/bench/peers/node.mjs")); err != nil {
		return arms, err
	}
	if start, err := workerd(dir); err != nil {
		fmt.Fprintln(os.Stderr, "bench: without workerd:", err)
	} else if err := add(&arm{name: workerdArm, what: "a worker; its isolate serves all requests", tasks: all}, start); err != nil {
		return arms, err
	}
	small := filepath.Join(dir, "small")
	if err := smallApp(small); err != nil {
		return arms, err
	}
	what := "route, key, limit, sandbox; a guest in WebAssembly text with one page of memory"
	if err := add(&arm{name: smallArm, what: what, tasks: []string{"hello"}}, serve(runner, small)); err != nil {
		return arms, err
	}
	built, err := guestApps(dir, serverLanguages...)
	if err != nil {
		return arms, err
	}
	for _, g := range built {
		if err := add(&arm{name: "runner, " + g.name, what: "the same with a handler in " + g.name, tasks: all}, serve(runner, g.app)); err != nil {
			return arms, err
		}
	}
	return arms, nil
}

// startBare starts this program as the bare server.
func startBare(a *arm) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	return command(self, "bare")(a)
}

// command starts a server that prints its address.
func command(name string, args ...string) func(*arm) error {
	return func(a *arm) error {
		a.server = exec.Command(name, args...)
		stdout, err := a.server.StdoutPipe()
		if err != nil {
			return err
		}
		a.server.Stderr = os.Stderr
		a.began = time.Now()
		if err := a.server.Start(); err != nil {
			return err
		}
		line, err := bufio.NewReader(stdout).ReadString('\n')
		var ok bool
		if a.url, ok = strings.CutPrefix(strings.TrimSpace(line), "listening on "); !ok {
			return fmt.Errorf("it printed %q: %w", line, err)
		}
		return nil
	}
}

// workerd bundles the worker with its packages of npm, as its users do, and returns what
// starts workerd with it. workerd prints its port to a file descriptor.
func workerd(dir string) (start func(*arm) error, err error) {
	path, err := exec.Command("tools/fetch-workerd.sh").Output()
	if err != nil {
		return nil, fmt.Errorf("tools/fetch-workerd.sh: %w", err)
	}
	packages, err := npmPackages()
	if err != nil {
		return nil, err
	}
	bundled := esbuild.Build(esbuild.BuildOptions{
		EntryPoints: []string{"tests/bench/peers/workerd.mjs"}, NodePaths: []string{packages},
		Bundle: true, Format: esbuild.FormatESModule, Outfile: filepath.Join(dir, "worker.mjs"), Write: true,
	})
	if len(bundled.Errors) > 0 {
		return nil, fmt.Errorf("bundle the worker: %s", bundled.Errors[0].Text)
	}
	config := filepath.Join(dir, "workerd.capnp")
	if err := copyFile("tests/bench/peers/workerd.capnp", config); err != nil {
		return nil, err
	}
	return func(a *arm) error {
		control, theirs, err := os.Pipe()
		if err != nil {
			return err
		}
		a.server = exec.Command(strings.TrimSpace(string(path)), "serve", config, "-s", "http=127.0.0.1:0", "--control-fd=3")
		a.server.ExtraFiles, a.server.Stderr = []*os.File{theirs}, os.Stderr
		err = a.server.Start()
		if err = errors.Join(err, theirs.Close()); err != nil {
			return err
		}
		var event struct{ Port int }
		if err := json.NewDecoder(control).Decode(&event); err != nil || event.Port == 0 {
			return fmt.Errorf("it printed no port: %v", err)
		}
		a.url = fmt.Sprintf("http://127.0.0.1:%d", event.Port)
		return nil
	}, nil
}

// npmPackages is the directory of the packages of npm.
func npmPackages() (string, error) {
	out, err := exec.Command("tools/fetch-packages.sh").Output()
	if err != nil {
		return "", fmt.Errorf("tools/fetch-packages.sh: %w", err)
	}
	return strings.TrimSpace(string(out)), nil
}

func copyFile(from, to string) error {
	text, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	return os.WriteFile(to, text, 0o644)
}

// serve starts a runner with an app, and makes a key for it.
func serve(runner, app string) func(*arm) error {
	return func(a *arm) error {
		data := app + "-data"
		made, err := exec.Command(runner, "api-keys", "create", "--app", app, "--data", data, "--scope", "callers", "--name", "bench", "--json").Output()
		if err != nil {
			return fmt.Errorf("create a key: %w", err)
		}
		var key struct{ Token string }
		if err := json.Unmarshal(made, &key); err != nil {
			return err
		}
		a.headers = []string{"Authorization: Bearer " + key.Token}
		return command(runner, "serve", app, "--data", data, "--listen", "127.0.0.1:0")(a)
	}
}

// guestApp is an app with the guest of one language.
type guestApp struct{ name, app string }

// serverLanguages are the languages that servers are measured with.
var serverLanguages = []string{"ts", "go", "rust", "c"}

// guestApps builds the guests of languages, which are directories, and an app directory for each.
func guestApps(dir string, directories ...string) (all []guestApp, err error) {
	app, text, err := measuredSchema()
	if err != nil {
		return nil, err
	}
	for _, l := range languages() {
		if !slices.Contains(directories, l.directory) {
			continue
		}
		if err := l.build(context.Background(), app); err != nil {
			fmt.Fprintf(os.Stderr, "bench: without %s: %v\n", l.name, err)
			continue
		}
		wasm, err := os.ReadFile(l.path)
		if err != nil {
			return nil, err
		}
		g := guestApp{l.name, filepath.Join(dir, l.directory)}
		module := strings.TrimSuffix(filepath.Base(l.path), ".wasm")
		if err := writeApp(g.app, text, module, wasm); err != nil {
			return nil, err
		}
		if files := strings.TrimSuffix(l.path, ".wasm"); module == schema.PythonModule {
			if err := os.CopyFS(filepath.Join(g.app, "build", module), os.DirFS(files)); err != nil {
				return nil, err
			}
		}
		all = append(all, g)
	}
	return all, nil
}

// writeApp makes an app directory with one module.
func writeApp(dir, text, module string, wasm []byte) error {
	return errors.Join(
		os.MkdirAll(filepath.Join(dir, "build"), 0o755),
		os.WriteFile(filepath.Join(dir, "app.schema"), []byte(text), 0o644),
		os.WriteFile(filepath.Join(dir, "build", module+".wasm"), wasm, 0o644),
	)
}

// helloSchema has one route, with a key and without a limit.
const helloSchema = "apiKeys { scopes: { callers: @system(\"callers\") { @grant read on Thing } } }\n" +
	"routes(\"/\", auth: apiKey(callers), rateLimit: none) { GET /hello -> hello }\n"

// smallApp is an app with one route to the smallest guest.
func smallApp(dir string) error {
	text, err := exec.Command("wat2wasm", "tests/testdata/guests/small.wat", "-o", "/dev/stdout").Output()
	if err != nil {
		return fmt.Errorf("wat2wasm: %w", err)
	}
	return writeApp(dir, helloSchema, "small", text)
}

// check calls the task once and compares the answer.
func (a *arm) check(t task) error {
	status, body, err := a.call(t)
	if err != nil {
		return err
	}
	var answer any
	if err := json.Unmarshal(body, &answer); err != nil || status != t.status || !t.check(answer) {
		return fmt.Errorf("%s in %s answers %d %q", t.handler, a.name, status, body)
	}
	return nil
}

// call calls the task once.
func (a *arm) call(t task) (status int, body []byte, err error) {
	req, err := http.NewRequest(t.method(), a.url+"/"+t.handler, strings.NewReader(t.body))
	if err != nil {
		return 0, nil, err
	}
	for _, h := range a.headers {
		name, value, _ := strings.Cut(h, ": ")
		req.Header.Set(name, value)
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, nil, err
	}
	defer res.Body.Close()
	body, err = io.ReadAll(res.Body)
	return res.StatusCode, body, err
}

var (
	perSecondLine = regexp.MustCompile(`Requests/sec:\s+([\d.]+)`)
	requestsLine  = regexp.MustCompile(`(\d+) requests in`)
	p99Line       = regexp.MustCompile(`99%\s+([\d.]+[a-z]+)`)
	failedLine    = regexp.MustCompile(`Non-2xx|Socket errors`)
)

// measure has wrk send the task's request for about the given length. wrk counts seconds.
func (a *arm) measure(t task, length time.Duration, dir string) (sample, error) {
	args := []string{"-t1", "-c32", "--latency", "-d" + strconv.Itoa(int(max(1, length.Round(time.Second)/time.Second))) + "s"}
	for _, h := range a.headers {
		args = append(args, "-H", h)
	}
	if t.body != "" {
		script := filepath.Join(dir, t.handler+".lua")
		text := fmt.Sprintf("wrk.method = %q\nwrk.body = [==[%s]==]\nwrk.headers[\"Content-Type\"] = \"application/json\"\n", t.method(), t.body)
		if err := os.WriteFile(script, []byte(text), 0o644); err != nil {
			return sample{}, err
		}
		args = append(args, "-s", script)
	}
	var out []byte
	s, err := a.observe(func() (requests float64, load time.Duration, err error) {
		wrk := exec.Command("wrk", append(args, a.url+"/"+t.handler)...)
		out, err = wrk.CombinedOutput()
		if err != nil || failedLine.Match(out) {
			return 0, 0, fmt.Errorf("wrk against %s: %v\n%s", a.name, err, out)
		}
		return number(requestsLine, out), wrk.ProcessState.UserTime() + wrk.ProcessState.SystemTime(), nil
	})
	s.perSecond = number(perSecondLine, out)
	if m := p99Line.FindSubmatch(out); m != nil {
		p99, _ := time.ParseDuration(string(m[1])) // wrk writes durations as Go does
		s.p99Millis = p99.Seconds() * 1000
	}
	return s, err
}

// observe measures the server while a function sends requests. The function returns their
// number, and the CPU time that sending them took.
func (a *arm) observe(send func() (requests float64, load time.Duration, err error)) (sample, error) {
	before, err := cpuTimeOfAll(a.server.Process.Pid)
	if err != nil {
		return sample{}, err
	}
	busy, began := busyTime(), time.Now()
	requests, load, err := send()
	if err != nil {
		return sample{}, err
	}
	busy, took := busyTime()-busy, time.Since(began)
	after, err := cpuTimeOfAll(a.server.Process.Pid)
	if err != nil {
		return sample{}, err
	}
	others := max(0, float64(busy-(after-before)-load)) / float64(took) / float64(runtime.NumCPU())
	cpu := float64((after - before).Nanoseconds()) / 1000 / requests
	return sample{perSecond: requests / took.Seconds(), cpuMicros: cpu, others: others}, nil
}

func number(re *regexp.Regexp, out []byte) float64 {
	m := re.FindSubmatch(out)
	if m == nil {
		return 0
	}
	n, _ := strconv.ParseFloat(string(m[1]), 64)
	return n
}

// busyTime is the CPU time that all processes have used.
func busyTime() time.Duration {
	stat, _ := os.ReadFile("/proc/stat") // cannot fail where /proc is mounted
	var user, nice, system, idle, wait, irq, softirq int64
	if _, err := fmt.Sscanf(string(stat), "cpu %d %d %d %d %d %d %d", &user, &nice, &system, &idle, &wait, &irq, &softirq); err != nil {
		return 0
	}
	return time.Duration(user+nice+system+irq+softirq) * 10 * time.Millisecond
}
