//go:build linux

package main

import (
	"fmt"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"
)

// microBenchmarks measure the sandbox alone, in turns with what it is compared with.
var microBenchmarks = []string{
	"test", "-run", "^$", "-bench", "Restore|Steady|Cost|Rewrite|Idle|Password", "-benchtime", "2s", "./runtime/sandbox", "./internal/wasm", "./hostabi",
}

// rowBenchmarks compare operations on rows with the same work without the runner. They are
// a separate Go module.
var rowBenchmarks = []string{"test", "-run", "^$", "-bench", ".", "-benchtime", "2s", "-timeout", "30m", "."}

const rowsDir = "tests/bench/entities"

// jobBenchmarks measure jobs beside requests, over HTTP.
var jobBenchmarks = []string{"test", "-run", "^$", "-bench", ".", "-benchtime", "1x", "-timeout", "30m", "./tests/jobs"}

// scriptBenchmarks measure requests to handlers in TypeScript without HTTP.
var scriptBenchmarks = []string{"test", "-run", "^$", "-bench", "Call|Load|Build", "-benchtime", "2s", "./develop/toolchain/typescript"}

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
func (m metrics) ratio(name string) string { return m.spread(name, "ratio", "%.2f") }

// spread is a figure of a benchmark, with the range in which nine of ten measurements lay.
func (m metrics) spread(name, unit, format string) string {
	row := m[name]
	return fmt.Sprintf(format+" ("+format+" … "+format+")", row[unit], row[unit+"-p5"], row[unit+"-p95"])
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
	for _, kind := range []string{"arithmetic", "properties", "calls", "JSON"} {
		row("the same, JavaScript interpreted by QuickJS, "+kind, "≤ 1.15", "%s", m.ratio("CostScript/"+kind))
	}
	row("the same, hash loop", "≤ 1.08", "%s", m.ratio("Cost/hash"))
	row("the same, a tight loop", "≤ 1.40", "%s", m.ratio("Cost/sieve"))
	row("the same, recursion alone", "≤ 1.40", "%s", m.ratio("Cost/fib"))
	row("a password's hash by the host, divided by `x/crypto/argon2` alone", "≤ 1.10", "%s", m.ratio("Password"))
	row("allocations of the sandbox per request, steady state", "0", "small %.0f, Go %.0f", m["Steady/small"]["allocs/op"], m["Steady/go"]["allocs/op"])
	bare := find(arms, bareArm)
	against := func(name, task string) string {
		a := find(arms, name)
		if a == nil {
			return "not measured"
		}
		return spread(ratios(a, bare, task, sample.speed), "%.2f")
	}
	row("req/s divided by bare fasthttp's: `hello` with key and limit, small guest", "≥ 0.85, aim 0.90", "%s", against(smallArm, "hello"))
	row("the same, Go", "≥ 0.45", "%s", against(goArm, "hello"))
	row("the same, TypeScript", "≥ 0.65, aim 0.75", "%s", against(scriptArm, "hello"))
	row("the same, `hundred` in Go", "≥ 0.30", "%s", against(goArm, "hundred"))
	row("the same, `hundred` in TypeScript", "≥ 0.35", "%s", against(scriptArm, "hundred"))
	row("the same, `hundred` in C", "≥ 0.8, aim 1.0", "%s", against(cArm, "hundred"))
	row("memory of an idle sandbox, small guest", "≤ 80 KB", "%.0f KiB, later %.0f", m["Idle/small"]["used-KiB"], m["Idle/small"]["trimmed-KiB"])
	row("the same, Go", "≤ 250 KB", "%.0f KiB, later %.0f", m["Idle/go"]["used-KiB"], m["Idle/go"]["trimmed-KiB"])
	return b.String()
}

func render(arms []*arm, computing *computing, rounds int, length time.Duration, others float64,
	micro, rows, jobs []byte, script scriptTimes, languages, programs, parts string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "# Performance\n\n`make bench` measures and writes this page. wrk holds 32 connections on loopback; server and load\n"+
		"share %d cores; %s. The servers are measured in turns, %s each, for %d rounds. The report uses the\n"+
		"%d rounds in which other processes used the least CPU (median: %.0f %%). A ratio is taken within a\n"+
		"round: the median, with the smallest and the largest. Ratios under load for minutes are in [soak.md](soak.md), and Python\n"+
		"beside other Pythons in [python-performance.md](python-performance.md).\n\n",
		runtime.NumCPU(), runtime.Version(), length, rounds*spare, rounds, others*100)
	b.WriteString(serversText)
	for _, t := range serverTasks() {
		fmt.Fprintf(&b, "### %s\n\n%s\n", t.handler, serverTable(arms, t))
	}
	b.WriteString("![requests per second of each server](performance.svg)\n\n## Computing\n\n")
	b.WriteString(computingText)
	b.WriteString(computing.table() + "\n" + computing.goals())
	b.WriteString("\n## Goals\n\n" +
		"A ratio without req/s compares CPU times. Its range is that of nine measurements in ten.\n\n")
	b.WriteString(goals(arms, parseMetrics(micro)))
	b.WriteString("\n## TypeScript\n\n")
	b.WriteString(scriptFigures(arms, script))
	b.WriteString("\n## Languages\n\n")
	b.WriteString(languagesText)
	b.WriteString(languages)
	b.WriteString("\n## Programs that start once\n\n")
	b.WriteString(programsText)
	b.WriteString(programs)
	b.WriteString("\n## Where the time goes\n\n")
	b.WriteString(partsText)
	b.WriteString(parts)
	b.WriteString("\n## Rows\n\n")
	b.WriteString(rowsText)
	b.WriteString(rowFigures(parseMetrics(rows)))
	b.WriteString("\n## Jobs\n\n")
	b.WriteString(jobsText)
	b.WriteString(jobFigures(parseMetrics(jobs)))
	b.WriteString("\n## How to run\n\n" +
		"    make bench                # all of it, and this page\n" +
		"    bin/bench -servers        # the servers alone; writes no report\n" +
		"    bin/bench -tasks          # the tasks that compute alone; writes no report\n" +
		"    bin/bench -tasks -runner bin/runner -runner bin/other # two builds of the runner, in turns\n" +
		"    bin/bench -languages      # the languages alone; writes no report\n" +
		"    bin/bench -programs       # the programs that start once alone; writes no report\n" +
		"    bin/bench -parts          # the parts of requests alone; writes no report\n" +
		"    bin/bench -python servers # servers in Python; also kernels, memory, start; writes no report\n")
	for _, c := range []struct {
		dir  string
		args []string
	}{{".", microBenchmarks}, {".", scriptBenchmarks}, {rowsDir, rowBenchmarks}, {".", jobBenchmarks}} {
		b.WriteString("    " + commandLine(c.dir, c.args) + "\n")
	}
	return b.String()
}

// commandLine is what a reader types to run the go command in a directory.
func commandLine(dir string, args []string) string {
	line := "tools/go.sh"
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

const serversText = `## Servers

*hello* returns a constant. *hundred* parses a body of a hundred rows, 6 KB of JSON, writes a number
into each, and returns them. All servers give the same answers.

`

func (s sample) speed() float64 { return s.perSecond }
func (s sample) cpu() float64   { return s.cpuMicros }

// find returns the arm of a name, or nil.
func find(arms []*arm, name string) *arm {
	for _, a := range arms {
		if a.name == name {
			return a
		}
	}
	return nil
}

// serverTable is the comparison of the servers with one task.
func serverTable(arms []*arm, t task) string {
	var b strings.Builder
	b.WriteString("| server | what it is | req/s, median | ratio to bare | server CPU per request | ratio to bare |\n|---|---|---|---|---|---|\n")
	base := find(arms, bareArm)
	for _, a := range arms {
		if !a.serves(t) {
			continue
		}
		fmt.Fprintf(&b, "| %s | %s | %.0f | %s | %.1f µs | %s |\n", a.name, a.what,
			median(values(a, t.handler, sample.speed)), spread(ratios(a, base, t.handler, sample.speed), "%.3f"),
			median(values(a, t.handler, sample.cpu)), spread(ratios(a, base, t.handler, sample.cpu), "%.1f"))
	}
	return b.String()
}

// scriptFigures splits the CPU time of a request to a handler in TypeScript.
func scriptFigures(arms []*arm, script scriptTimes) string {
	var b strings.Builder
	m := parseMetrics(script.raw)
	micros := func(handler, metric string) float64 { return m["Call/"+handler][metric] / 1000 }
	cpu := func(name string) float64 { return median(values(find(arms, name), "hello", sample.cpu)) }
	nothing, hello, restore := micros("nothing", "guest-ns"), micros("hello", "guest-ns"), micros("hello", "restore-ns")
	bare, whole := cpu(bareArm), cpu(scriptArm)
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
	row("a page of 20 rows with rows of two to-one relations included: time divided by the page's alone; the goal is ≤ 2.5", "%s", m.ratio("Include/one"))
	row("with a to-one relation and two rows of a to-many relation included in each row, 80 rows in all", "%s", m.ratio("Include/many"))
	for _, lines := range []string{"2", "20"} {
		row("a page of 20 rows with "+lines+" rows of a to-many relation included in each row: time divided by that of the page, and of a query by an index for as many rows", "%s", m.ratio("Include/rows/"+lines))
	}
	row("a page out of 100,000 rows: time divided by one out of 10,000, all in memory", "%s", m.ratio("Table/100000"))
	row("a page out of 1,000,000 rows: time divided by one out of 300,000, all in files", "%s", m.ratio("Table/1000000"))
	return b.String()
}

const jobsText = `Requests and jobs of one server, with handlers in TypeScript that insert or read rows. wrk sends the
requests. Each ratio is taken within a round.

`

// jobFigures compares requests with and without jobs.
func jobFigures(m metrics) string {
	var b strings.Builder
	b.WriteString("| figure | goal | measured |\n|---|---|---|\n")
	row := func(figure, goal, measured string) { fmt.Fprintf(&b, "| %s | %s | %s |\n", figure, goal, measured) }
	row("a request that inserts a row and enqueues a job: time divided by that of the insert alone, 16 at once", "≤ 1.3", m.ratio("Enqueuing"))
	row("jobs that insert a row and are done, with 64 in flight, for each durable insert by 64 requests at once", "≥ 0.4", m.ratio("Running"))
	row("how late a due job starts in a quiet server", "≤ 50 ms", m.spread("Starting", "ms", "%.0f")+" ms")
	row("p99 of requests while all slots run jobs, divided by p99 without jobs", "≤ 1.5", m.ratio("FullQueue"))
	row("time of an insert while 100,000 jobs wait, divided by that without jobs", "1", m.ratio("Waiting"))
	return b.String()
}

func values(a *arm, task string, of func(sample) float64) (all []float64) {
	for _, s := range a.rounds[task] {
		all = append(all, of(s))
	}
	return all
}

func ratios(a, base *arm, task string, of func(sample) float64) (all []float64) {
	for i := range a.rounds[task] {
		all = append(all, of(a.rounds[task][i])/of(base.rounds[task][i]))
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

// draw plots the requests per second of each server divided by the first one's, for each
// task: a bar for the median, and a line from the smallest to the largest ratio.
func draw(arms []*arm) string {
	const left, width, row, title = 170, 400, 30, 34
	var b strings.Builder
	y := 0
	for _, t := range serverTasks() {
		fmt.Fprintf(&b, `<text x="%d" y="%d" font-weight="bold">%s</text>`+"\n", left, y+24, t.handler)
		y += title
		for _, a := range arms {
			if !a.serves(t) {
				continue
			}
			all := ratios(a, find(arms, bareArm), t.handler, sample.speed)
			x := func(r float64) int { return left + int(min(r, 1.2)/1.2*width) }
			fmt.Fprintf(&b, `<text x="%d" y="%d" text-anchor="end">%s</text>`+"\n", left-8, y+15, a.name)
			fmt.Fprintf(&b, `<rect x="%d" y="%d" width="%d" height="20" fill="#4a7"/>`+"\n", left, y, x(median(all))-left)
			fmt.Fprintf(&b, `<line x1="%d" y1="%d" x2="%d" y2="%d" stroke="#222" stroke-width="2"/>`+"\n", x(slices.Min(all)), y+10, x(slices.Max(all)), y+10)
			fmt.Fprintf(&b, `<text x="%d" y="%d">%.2f of bare</text>`+"\n", max(x(slices.Max(all)), x(median(all)))+8, y+15, median(all))
			y += row
		}
	}
	return fmt.Sprintf(`<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" font-family="sans-serif" font-size="13">`+"\n%s</svg>\n",
		left+width+150, y+10, b.String())
}
