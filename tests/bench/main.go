// Bench measures the runner against a bare fasthttp handler that answers the
// same, alternately in one run, and writes docs/performance.md.
//
// The compared servers are measured in turns, and each ratio is taken within one round, so
// that other processes of the machine affect both. The median is printed with the smallest
// and the largest ratio. The load generator (wrk) shares the cores with the server, so the
// report has the server's CPU time per request beside the requests per second.
package main

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"flag"
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

	"github.com/valyala/fasthttp"
)

func main() {
	if len(os.Args) > 1 && os.Args[1] == "bare" {
		bare()
		return
	}
	rounds := flag.Int("rounds", 9, "how many measurements of each arm are taken, of three times as many")
	length := flag.Duration("length", time.Second, "how long one measurement takes")
	out := flag.String("out", "docs/performance.md", "where the report goes")
	servers := flag.Bool("servers", false, "measure the servers alone and write no report")
	guests := flag.Bool("languages", false, "measure the languages alone and write no report")
	flag.Parse()
	if *servers {
		*out = ""
	}
	if *guests {
		if err := printLanguages(*rounds); err != nil {
			fmt.Fprintln(os.Stderr, "bench:", err)
			os.Exit(1)
		}
		return
	}
	if err := bench(*rounds, *length, *out); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// bare is the server that the others are compared with.
func bare() {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	fmt.Printf("listening on http://%s\n", ln.Addr())
	err = fasthttp.Serve(ln, func(ctx *fasthttp.RequestCtx) {
		body, err := json.Marshal(struct {
			Message string `json:"message"`
		}{"hello"})
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

// arm is one server under load.
type arm struct {
	name    string
	what    string
	server  *exec.Cmd
	url     string
	headers []string
	rounds  []sample
}

type sample struct {
	perSecond float64
	cpuMicros float64 // of the server, per request
	others    float64 // share of the CPU that other processes used
}

func bench(rounds int, length time.Duration, out string) error {
	dir, err := os.MkdirTemp("", "runner-bench-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	arms, err := startAll(dir)
	defer func() {
		for _, a := range arms {
			_ = a.server.Process.Kill()
			_ = a.server.Wait()
		}
	}()
	if err != nil {
		return err
	}
	for _, a := range arms { // warm up, and check that all give the same response
		if err := a.check(); err != nil {
			return err
		}
		if _, err := a.measure(length / 2); err != nil {
			return err
		}
	}
	for round := range rounds * spare {
		fmt.Fprintf(os.Stderr, "\rround %d of %d", round+1, rounds*spare)
		for _, a := range arms {
			s, err := a.measure(length)
			if err != nil {
				return err
			}
			a.rounds = append(a.rounds, s)
		}
	}
	fmt.Fprintln(os.Stderr)
	others := keepCalmest(arms, rounds)
	if out == "" {
		fmt.Printf("%sother processes used %.0f %% of the CPU\n", serverTable(arms), others*100)
		return nil
	}
	fmt.Fprintln(os.Stderr, "measuring restore and fuel")
	micro, err := exec.Command("go", microBenchmarks...).CombinedOutput()
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
	fmt.Fprintln(os.Stderr, "measuring TypeScript")
	var script scriptTimes
	if script.raw, err = exec.Command("go", scriptBenchmarks...).CombinedOutput(); err != nil {
		return fmt.Errorf("go %s: %w\n%s", strings.Join(scriptBenchmarks, " "), err, script.raw)
	}
	if script.build, err = measureBuild(filepath.Join(dir, scriptFolder)); err != nil {
		return err
	}
	if script.save, err = measureSave(); err != nil {
		return err
	}
	fmt.Fprintln(os.Stderr, "measuring languages")
	guests, err := measureLanguages(rounds)
	if err != nil {
		return err
	}
	idle, err := measureIdle(guests)
	if err != nil {
		return err
	}
	report := render(arms, rounds, length, others, micro, rows, script, languageTable(guests, idle))
	fmt.Print(report)
	plot := strings.TrimSuffix(out, ".md") + ".svg"
	if err := os.WriteFile(plot, []byte(draw(arms)), 0o644); err != nil {
		return err
	}
	return os.WriteFile(out, []byte(report), 0o644)
}

// spare times as many rounds are measured as are kept.
const spare = 3

// keepCalmest keeps the given number of rounds: those in which other processes used the
// least CPU. It returns the median of their share.
func keepCalmest(arms []*arm, rounds int) float64 {
	others := make([]float64, len(arms[0].rounds))
	order := make([]int, len(others))
	for i := range others {
		order[i] = i
		for _, a := range arms {
			others[i] += a.rounds[i].others / float64(len(arms))
		}
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(others[a], others[b]) })
	for _, a := range arms {
		var kept []sample
		for _, i := range order[:rounds] {
			kept = append(kept, a.rounds[i])
		}
		a.rounds = kept
	}
	return others[order[rounds/2]]
}

// microBenchmarks measure the sandbox alone, in turns with what it is compared with.
var microBenchmarks = []string{
	"test", "-run", "^$", "-bench", "Restore|Steady|Cost|Rewrite|Idle", "-benchtime", "2s", "./runtime/sandbox", "./internal/wasm",
}

// rowBenchmarks compare operations on rows with the same work without the runner. They are
// a separate Go module.
var rowBenchmarks = []string{"test", "-run", "^$", "-bench", ".", "-benchtime", "2s", "-timeout", "30m", "."}

const rowsDir = "tests/bench/entities"

// scriptBenchmarks measure requests to handlers in TypeScript without HTTP.
var scriptBenchmarks = []string{"test", "-run", "^$", "-bench", "Call|Load|Build", "-benchtime", "2s", "./build"}

// scriptTimes are the output of scriptBenchmarks, and the milliseconds of builds and saves.
type scriptTimes struct {
	raw         []byte
	build, save []float64
}

// metrics are the figures of benchmarks, by benchmark and unit.
type metrics map[string]map[string]float64

var processors = regexp.MustCompile(`-\d+$`)

func parseMetrics(out []byte) metrics {
	all := metrics{}
	for line := range strings.Lines(string(out)) {
		fields := strings.Fields(line)
		if len(fields) < 4 || !strings.HasPrefix(fields[0], "Benchmark") {
			continue
		}
		name := processors.ReplaceAllString(strings.TrimPrefix(fields[0], "Benchmark"), "")
		all[name] = map[string]float64{}
		for i := 2; i+1 < len(fields); i += 2 {
			all[name][fields[i+1]], _ = strconv.ParseFloat(fields[i], 64)
		}
	}
	return all
}

// ratio is a benchmark's ratio with the range in which nine of ten lay.
func (m metrics) ratio(name string) string {
	row := m[name]
	return fmt.Sprintf("%.2f (%.2f … %.2f)", row["ratio"], row["ratio-p5"], row["ratio-p95"])
}

// goals compares the figures of this run with the goals.
func goals(arms []*arm, m metrics) string {
	var b strings.Builder
	b.WriteString("| figure | goal | measured |\n|---|---|---|\n")
	row := func(figure, goal, format string, args ...any) {
		fmt.Fprintf(&b, "| %s | %s | %s |\n", figure, goal, fmt.Sprintf(format, args...))
	}
	small := m["RestoreSmall"]
	row("time that restoring the sandbox adds, small guest (8 changed pages, 6 host calls)", "≤ 3 µs", "%.1f µs (%.2f µs with, %.2f µs without)",
		(small["restored-ns"]-small["none-ns"])/1000, small["restored-ns"]/1000, small["none-ns"]/1000)
	row("Go handler, warmed: time with restoring divided by without", "≤ 1.10", "%s", m.ratio("RestoreGo"))
	row("time with fuel and bounded stack divided by without: Go, JSON in and out", "≤ 1.08", "%s", m.ratio("CostGo/roundTrip"))
	row("the same, Go, SHA-256", "≤ 1.08", "%s", m.ratio("CostGo/digest"))
	row("the same, hash loop", "≤ 1.08", "%s", m.ratio("Cost/hash"))
	row("the same, a tight loop", "≤ 1.40", "%s", m.ratio("Cost/sieve"))
	row("the same, recursion alone", "≤ 1.40", "%s", m.ratio("Cost/fib"))
	row("allocations of the sandbox per request, steady state", "0", "small %.0f, Go %.0f", m["Steady/small"]["allocs/op"], m["Steady/go"]["allocs/op"])
	speed := func(s sample) float64 { return s.perSecond }
	row("req/s divided by bare fasthttp's: key, limit, small guest", "≥ 0.80", "%s", spread(ratios(arms[1], arms[0], speed), "%.2f"))
	row("the same, Go handler", "≥ 0.45", "%s", spread(ratios(arms[2], arms[0], speed), "%.2f"))
	row("the same, TypeScript handler", "≥ 0.50", "%s", spread(ratios(arms[3], arms[0], speed), "%.2f"))
	row("memory of an idle sandbox, small guest", "≤ 80 KB", "%.0f KiB, later %.0f", m["Idle/small"]["used-KiB"], m["Idle/small"]["trimmed-KiB"])
	row("the same, Go", "≤ 250 KB", "%.0f KiB, later %.0f", m["Idle/go"]["used-KiB"], m["Idle/go"]["trimmed-KiB"])
	return b.String()
}

func startAll(dir string) (arms []*arm, err error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	add := func(a *arm, cmd *exec.Cmd) error {
		a.server = cmd
		stdout, err := cmd.StdoutPipe()
		if err != nil {
			return err
		}
		cmd.Stderr = os.Stderr
		if err := cmd.Start(); err != nil {
			return err
		}
		arms = append(arms, a)
		line, err := bufio.NewReader(stdout).ReadString('\n')
		var ok bool
		if a.url, ok = strings.CutPrefix(strings.TrimSpace(line), "listening on "); !ok {
			return fmt.Errorf("%s: said %q: %w", a.name, line, err)
		}
		return nil
	}
	if err := add(&arm{name: "bare fasthttp", what: "`json.Marshal`, no route, no key"}, exec.Command(self, "bare")); err != nil {
		return arms, err
	}
	small := filepath.Join(dir, "small")
	if err := smallApp(small); err != nil {
		return arms, err
	}
	script := filepath.Join(dir, scriptFolder)
	if err := scriptApp(script); err != nil {
		return arms, err
	}
	for _, row := range []struct{ name, what, app, scope, path string }{
		{"runner, small guest", "route, key, limit, sandbox; a guest in WebAssembly text with one page of memory", small, "reader", "/v1/hello"},
		{"runner, Go guest", "the same with the inbox example's `hello`: Go and encoding/json, warmed", "plugins/examples/inbox", "events_read", "/v1/hello"},
		{"runner, TypeScript", "the same with `return ok({ message: \"hello\" })`, built by `runner build`", script, "reader", "/v1/hello"},
	} {
		data := filepath.Join(dir, filepath.Base(row.app)+"-data")
		made, err := exec.Command("bin/runner", "api-keys", "create", "--app", row.app, "--data", data, "--scope", row.scope, "--name", "bench", "--json").Output()
		if err != nil {
			return arms, fmt.Errorf("make a key for %s: %w", row.name, err)
		}
		var key struct{ Token string }
		if err := json.Unmarshal(made, &key); err != nil {
			return arms, err
		}
		a := &arm{name: row.name, what: row.what, headers: []string{"Authorization: Bearer " + key.Token}}
		if err := add(a, exec.Command("bin/runner", "serve", row.app, "--data", data, "--listen", "127.0.0.1:0")); err != nil {
			return arms, err
		}
		a.url += row.path
	}
	return arms, nil
}

// scriptFolder is the app in TypeScript.
const scriptFolder = "script"

// helloSchema has one route, with a key and without a limit.
const helloSchema = "apiKeys { scopes: { reader: @system(\"reader\") { @grant read on Thing } } }\n" +
	"routes(\"/v1\", auth: apiKey(reader), rateLimit: none) { GET /hello -> hello }\n"

// scriptApp is an app with one route to a handler in TypeScript.
func scriptApp(dir string) error {
	if err := os.MkdirAll(filepath.Join(dir, "handlers"), 0o755); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(dir, "app.schema"), []byte(helloSchema), 0o644); err != nil {
		return err
	}
	text := "import { ok } from \"@runner/sdk\";\nexport function hello() {\n  return ok({ message: \"hello\" });\n}\n"
	if err := os.WriteFile(filepath.Join(dir, "handlers", "hello.ts"), []byte(text), 0o644); err != nil {
		return err
	}
	if out, err := exec.Command("bin/runner", "build", dir).CombinedOutput(); err != nil {
		return fmt.Errorf("runner build: %w\n%s", err, out)
	}
	return nil
}

// smallApp is an app with one route to the smallest guest.
func smallApp(dir string) error {
	if err := os.MkdirAll(filepath.Join(dir, "build"), 0o755); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(dir, "app.schema"), []byte(helloSchema), 0o644); err != nil {
		return err
	}
	if out, err := exec.Command("wat2wasm", "tests/testdata/guests/small.wat", "-o", filepath.Join(dir, "build", "small.wasm")).CombinedOutput(); err != nil {
		return fmt.Errorf("wat2wasm: %w\n%s", err, out)
	}
	return nil
}

func (a *arm) check() error {
	req, err := http.NewRequest("GET", a.url, nil)
	if err != nil {
		return err
	}
	for _, h := range a.headers {
		name, value, _ := strings.Cut(h, ": ")
		req.Header.Set(name, value)
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil || res.StatusCode != 200 || string(body) != `{"message":"hello"}` {
		return fmt.Errorf("%s answers %d %q, %v", a.name, res.StatusCode, body, err)
	}
	return nil
}

var (
	perSecondLine = regexp.MustCompile(`Requests/sec:\s+([\d.]+)`)
	requestsLine  = regexp.MustCompile(`(\d+) requests in`)
	failedLine    = regexp.MustCompile(`Non-2xx|Socket errors`)
)

func (a *arm) measure(length time.Duration) (sample, error) {
	args := []string{"-t1", "-c32", "-d" + strconv.FormatFloat(length.Seconds(), 'f', -1, 64) + "s"}
	if length%time.Second != 0 {
		args[2] = "-d1s"
	}
	for _, h := range a.headers {
		args = append(args, "-H", h)
	}
	before, err := cpuTime(a.server.Process.Pid)
	if err != nil {
		return sample{}, err
	}
	busy, began := busyTime(), time.Now()
	wrk := exec.Command("wrk", append(args, a.url)...)
	out, err := wrk.CombinedOutput()
	busy, took := busyTime()-busy, time.Since(began)
	if err != nil || failedLine.Match(out) {
		return sample{}, fmt.Errorf("wrk against %s: %v\n%s", a.name, err, out)
	}
	after, err := cpuTime(a.server.Process.Pid)
	if err != nil {
		return sample{}, err
	}
	perSecond, requests := number(perSecondLine, out), number(requestsLine, out)
	load := wrk.ProcessState.UserTime() + wrk.ProcessState.SystemTime()
	others := max(0, float64(busy-(after-before)-load)) / float64(took) / float64(runtime.NumCPU())
	return sample{perSecond, float64((after - before).Microseconds()) / requests, others}, nil
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

// cpuTime is the CPU time that a process has used, in clock ticks of 10 ms.
func cpuTime(pid int) (time.Duration, error) {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, err
	}
	fields := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
	user, err := strconv.ParseInt(string(fields[11]), 10, 64)
	if err != nil {
		return 0, err
	}
	system, err := strconv.ParseInt(string(fields[12]), 10, 64)
	return time.Duration(user+system) * 10 * time.Millisecond, err
}

func render(arms []*arm, rounds int, length time.Duration, others float64, micro, rows []byte, script scriptTimes, languages string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "# Performance\n\n`make bench` measures and writes this page. wrk holds 32 connections on loopback; server and load\n"+
		"share %d cores; %s. The servers are measured in turns, %s each, for %d rounds. The report uses the\n"+
		"%d rounds in which other processes used the least CPU (median: %.0f %%). A ratio is taken within a\n"+
		"round: the median, with the smallest and the largest.\n\n",
		runtime.NumCPU(), runtime.Version(), length, rounds*spare, rounds, others*100)
	b.WriteString(serverTable(arms))
	b.WriteString("\n![requests per second of each server](performance.svg)\n\n## Goals\n\n" +
		"The range of a ratio without req/s is that of nine measurements in ten.\n\n")
	b.WriteString(goals(arms, parseMetrics(micro)))
	b.WriteString("\n## TypeScript\n\n")
	b.WriteString(scriptFigures(arms, script))
	b.WriteString("\n## Languages\n\n")
	b.WriteString(languagesText)
	b.WriteString(languages)
	b.WriteString("\n## Rows\n\n")
	b.WriteString(rowsText)
	b.WriteString(rowFigures(parseMetrics(rows)))
	b.WriteString("\n## How to run\n\n" +
		"    make bench                # all of it, and this page\n" +
		"    bin/bench -servers        # the servers alone; writes no report\n" +
		"    bin/bench -languages      # the languages alone; writes no report\n")
	for _, c := range []struct {
		dir  string
		args []string
	}{{".", microBenchmarks}, {".", scriptBenchmarks}, {rowsDir, rowBenchmarks}} {
		b.WriteString("    " + commandLine(c.dir, c.args) + "\n")
	}
	return b.String()
}

// commandLine is what a reader types to run the go command in a directory.
func commandLine(dir string, args []string) string {
	line := "go"
	if dir != "." {
		line = "cd " + dir + " && go"
	}
	for _, arg := range args {
		if strings.ContainsAny(arg, "^|$") {
			arg = "'" + arg + "'"
		}
		line += " " + arg
	}
	return line
}

// serverTable is the comparison of the servers.
func serverTable(arms []*arm) string {
	var b strings.Builder
	b.WriteString("| server | what it does | req/s, median | ratio to bare | server CPU per request | ratio to bare |\n|---|---|---|---|---|---|\n")
	base := arms[0]
	for _, a := range arms {
		speed := func(s sample) float64 { return s.perSecond }
		cpu := func(s sample) float64 { return s.cpuMicros }
		fmt.Fprintf(&b, "| %s | %s | %.0f | %s | %.1f µs | %s |\n", a.name, a.what,
			median(values(a, speed)), spread(ratios(a, base, speed), "%.3f"), median(values(a, cpu)), spread(ratios(a, base, cpu), "%.1f"))
	}
	return b.String()
}

// scriptFigures splits the CPU time of a request to a handler in TypeScript.
func scriptFigures(arms []*arm, script scriptTimes) string {
	var b strings.Builder
	m := parseMetrics(script.raw)
	micros := func(handler, metric string) float64 { return m["Call/"+handler][metric] / 1000 }
	cpu := func(a *arm) float64 { return median(values(a, func(s sample) float64 { return s.cpuMicros })) }
	nothing, hello, restore := micros("nothing", "guest-ns"), micros("hello", "guest-ns"), micros("hello", "restore-ns")
	bare, whole := cpu(arms[0]), cpu(arms[3])
	b.WriteString("CPU time of one request to `hello`, medians. The parts are differences between the servers above and\n" +
		"handlers that run without HTTP.\n\n" +
		"| part | µs | how it is measured |\n|---|---|---|\n")
	part := func(name string, micros float64, how string) {
		fmt.Fprintf(&b, "| %s | %.1f | %s |\n", name, micros, how)
	}
	part("engine", nothing, "a handler `nothing` that answers 204")
	part("response", hello-nothing, "`hello` minus `nothing`: an object becomes JSON and reaches the host")
	part("request decoding", 0, "`hello` reads nothing of the request, and only what is read is decoded")
	part("restoring the sandbox", restore, fmt.Sprintf("`hello`: %.0f pages changed", m["Call/hello"]["pages"]))
	part("HTTP", bare, "bare fasthttp, with its `json.Marshal`")
	part("rest: route, key, limit, log, taking a sandbox", whole-bare-hello-restore, "the total minus the parts above")
	part("total", whole, "the server's CPU time divided by its requests")
	fmt.Fprintf(&b, "\nReading a path parameter, a query parameter, two headers and a JSON body adds %.1f µs (`read` minus\n`hello`).\n",
		micros("read", "guest-ns")-hello)
	fmt.Fprintf(&b, "\n| figure | goal | measured |\n|---|---|---|\n")
	speed := func(s sample) float64 { return s.perSecond }
	fmt.Fprintf(&b, "| req/s divided by bare fasthttp's | ≥ 0.50 | %s |\n", spread(ratios(arms[3], arms[0], speed), "%.2f"))
	fmt.Fprintf(&b, "| `runner build` of a small app, engine already compiled | ≤ 300 ms | %s ms |\n", spread(script.build, "%.0f"))
	fmt.Fprintf(&b, "| the same inside a running process | | %.0f ms |\n", m["Build"]["build-ms"])
	fmt.Fprintf(&b, "| `runner dev`: from saving a file to the first response of the new version | ≤ 1 s | %s ms |\n", spread(script.save, "%.0f"))
	fmt.Fprintf(&b, "| loading another TypeScript module, whose code is shared | | %.0f ms |\n", m["Load"]["load-ms"])
	fmt.Fprintf(&b, "| `hello` as an `async` function with one `await`: handler time | | %.1f µs |\n", micros("later", "guest-ns"))
	fmt.Fprintf(&b, "| a handler that throws, whose error is logged with its source position: handler time | | %.0f µs |\n", micros("fails", "guest-ns"))
	return b.String()
}

const rowsText = `Compared with Badger without a schema, each commit synced, and with SQLite in the same process
(modernc.org/sqlite, write-ahead log, synchronous=full).

`

// rowFigures compares operations on rows with the same work without the runner.
func rowFigures(m metrics) string {
	var b strings.Builder
	b.WriteString("| figure | measured |\n|---|---|\n")
	row := func(figure, format string, args ...any) {
		fmt.Fprintf(&b, "| %s | %s |\n", figure, fmt.Sprintf(format, args...))
	}
	get, empty := m["Get/handler"], m["Get/empty"]
	row("a row by its id in a handler, compared with Badger's Get and copy", "%.2f µs more (%.2f and %.2f µs)",
		(get["runner-100-ns"]-get["badger-100-ns"])/1e5, get["runner-100-ns"]/1e5, get["badger-100-ns"]/1e5)
	row("a host call without work, in the same run", "%.2f µs", empty["empty-100-ns"]/1e5)
	row("20 rows by an index with tenant and policy, as JSON: time divided by SQLite's", "%s", m.ratio("Page/sqlite"))
	row("the same, divided by an index kept by hand in Badger with JSON decoded and encoded", "%s", m.ratio("Page/badger"))
	for _, callers := range []string{"1", "16", "64"} {
		insert := m["Insert/"+callers]
		row("durable inserts per second, "+callers+" at once", "%.0f: %.1f times Badger's, %.1f times SQLite's", insert["runner/s"], insert["over-badger"], insert["over-sqlite"])
	}
	row("a page out of 100,000 rows: time divided by one out of 10,000, all in memory", "%s", m.ratio("Table/100000"))
	row("a page out of 1,000,000 rows: time divided by one out of 300,000, all in files", "%s", m.ratio("Table/1000000"))
	return b.String()
}

func values(a *arm, of func(sample) float64) (all []float64) {
	for _, s := range a.rounds {
		all = append(all, of(s))
	}
	return all
}

func ratios(a, base *arm, of func(sample) float64) (all []float64) {
	for i := range a.rounds {
		all = append(all, of(a.rounds[i])/of(base.rounds[i]))
	}
	return all
}

func median(all []float64) float64 {
	all = slices.Sorted(slices.Values(all))
	return all[len(all)/2]
}

func spread(all []float64, format string) string {
	return fmt.Sprintf(format+" ("+format+" … "+format+")", median(all), slices.Min(all), slices.Max(all))
}

// draw plots the requests per second of each server divided by the first one's: a bar for
// the median, and a line from the smallest to the largest ratio.
func draw(arms []*arm) string {
	const left, width, row = 170, 400, 34
	var b strings.Builder
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" font-family="sans-serif" font-size="13">`+"\n",
		left+width+150, row*len(arms)+30)
	for i, a := range arms {
		all := ratios(a, arms[0], func(s sample) float64 { return s.perSecond })
		y := 10 + i*row
		x := func(r float64) int { return left + int(min(r, 1.2)/1.2*width) }
		fmt.Fprintf(&b, `<text x="%d" y="%d" text-anchor="end">%s</text>`+"\n", left-8, y+17, a.name)
		fmt.Fprintf(&b, `<rect x="%d" y="%d" width="%d" height="22" fill="#4a7"/>`+"\n", left, y, x(median(all))-left)
		fmt.Fprintf(&b, `<line x1="%d" y1="%d" x2="%d" y2="%d" stroke="#222" stroke-width="2"/>`+"\n", x(slices.Min(all)), y+11, x(slices.Max(all)), y+11)
		fmt.Fprintf(&b, `<text x="%d" y="%d">%.2f of bare</text>`+"\n", max(x(slices.Max(all)), x(median(all)))+8, y+17, median(all))
	}
	b.WriteString("</svg>\n")
	return b.String()
}
