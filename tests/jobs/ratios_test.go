package jobs_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os/exec"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"runner.example/tests/bench/arms"
	"runner.example/tests/harness"
)

// The figures of jobs. The long form of the tests holds them to their limits; `make bench` runs the
// benchmarks, and writes the figures into docs/performance.md. Each ratio is taken within one round.

func TestEnqueuingCostsLittleBesideAnInsert(t *testing.T)  { atMost(t, 1.3, enqueuing) }
func TestManyJobsAreDoneForEachDurableInsert(t *testing.T) { atLeast(t, 0.4, running) }
func TestRequestsStayFastWhileTheQueueIsFull(t *testing.T) { atMost(t, 1.5, besideFullQueue) }
func TestJobsThatWaitCostRequestsNothing(t *testing.T)     { atMost(t, 1.1, besideWaitingJobs) }
func TestADueJobStartsOnTime(t *testing.T)                 { atMost(t, 50, starting) }

func BenchmarkEnqueuing(b *testing.B) { arms.Report(b, "ratio", enqueuing(b)) }
func BenchmarkRunning(b *testing.B)   { arms.Report(b, "ratio", running(b)) }
func BenchmarkFullQueue(b *testing.B) { arms.Report(b, "ratio", besideFullQueue(b)) }
func BenchmarkWaiting(b *testing.B)   { arms.Report(b, "ratio", besideWaitingJobs(b)) }
func BenchmarkStarting(b *testing.B)  { arms.Report(b, "ms", starting(b)) }

// measured returns the median of a figure, in the long form of the tests alone.
func measured(t *testing.T, measure func(testing.TB) []float64) float64 {
	t.Helper()
	if !harness.Soak {
		t.Skip("compares speeds: make soak does it")
	}
	all := measure(t)
	t.Logf("median %.2f, from %.2f to %.2f", median(all), slices.Min(all), slices.Max(all))
	return median(all)
}

func atMost(t *testing.T, limit float64, measure func(testing.TB) []float64) {
	t.Helper()
	if got := measured(t, measure); got > limit {
		t.Errorf("%.2f, want at most %g", got, limit)
	}
}

func atLeast(t *testing.T, limit float64, measure func(testing.TB) []float64) {
	t.Helper()
	if got := measured(t, measure); got < limit {
		t.Errorf("%.2f, want at least %g", got, limit)
	}
}

// enqueuing is the time of an insert with an enqueue, divided by that of the insert alone.
func enqueuing(t testing.TB) (ratios []float64) {
	d, _ := serveMeasured(t, "")
	for range 21 {
		alone, both := d.measure("POST", "/insert", 16, time.Second), d.measure("POST", "/later", 16, time.Second)
		t.Logf("%.0f requests per second with an enqueue, %.0f without; %.0f and %.0f µs of CPU", both.perSecond, alone.perSecond, both.cpu, alone.cpu)
		ratios = append(ratios, alone.perSecond/both.perSecond)
	}
	return ratios
}

// running is the number of jobs that are done in a second, divided by that of durable inserts.
func running(t testing.TB) (ratios []float64) {
	d, metrics := serveMeasured(t, "[jobs]\nslots = 86\n") // of which one job of one tenant has 64
	done := func() float64 { return d.metric(metrics, `runner_job_runs_total{job_name="tick",outcome="done"}`) }
	for range 5 {
		inserts := d.measure("POST", "/insert", 64, 2*time.Second).perSecond
		const n = 15_000
		before := done()
		d.many("tick", n, 0)
		from, began := done(), time.Now()
		d.WaitUntil("all jobs to be done", func() bool { return done() == before+n })
		rate := (before + n - from) / time.Since(began).Seconds()
		t.Logf("%.0f jobs per second, %.0f durable inserts per second", rate, inserts)
		ratios = append(ratios, rate/inserts)
	}
	return ratios
}

// besideFullQueue is p99 of requests while the slots run jobs all the time, divided by p99 without jobs.
func besideFullQueue(t testing.TB) (ratios []float64) {
	d, metrics := serveMeasured(t, "")
	d.many("tick", 1500, 0) // so that each request reads as many rows
	d.WaitUntil("rows", func() bool { return d.metric(metrics, `runner_job_runs_total{job_name="tick",outcome="done"}`) == 1500 })
	for range 5 {
		quiet := d.measure("GET", "/count", 4, 2*time.Second)
		d.many("tick", 10_000, 0)
		full := d.measure("GET", "/count", 4, 2*time.Second)
		if waiting := d.metric(metrics, `runner_jobs{state="waiting"}`); waiting == 0 {
			t.Error("the queue was empty before the end")
		}
		t.Logf("p99 %s beside a full queue, %s without; %.0f and %.0f requests per second", full.p99, quiet.p99, full.perSecond, quiet.perSecond)
		ratios = append(ratios, float64(full.p99)/float64(quiet.p99))
		d.WaitUntil("an empty queue", func() bool { return d.metric(metrics, `runner_jobs{state="waiting"}`) == 0 })
	}
	return ratios
}

// besideWaitingJobs is the time of an insert while 100,000 jobs wait, divided by that without jobs.
func besideWaitingJobs(t testing.TB) (ratios []float64) {
	without, _ := serveMeasured(t, "")
	with, _ := serveMeasured(t, "")
	with.many("tick", 100_000, 24*time.Hour)
	for range 21 {
		quiet, waiting := without.measure("POST", "/insert", 16, time.Second), with.measure("POST", "/insert", 16, time.Second)
		t.Logf("%.0f requests per second while jobs wait, %.0f without; %.0f and %.0f µs of CPU", waiting.perSecond, quiet.perSecond, waiting.cpu, quiet.cpu)
		ratios = append(ratios, quiet.perSecond/waiting.perSecond)
	}
	return ratios
}

// starting is how many milliseconds late due jobs start in a quiet server, one after the other.
func starting(t testing.TB) (late []float64) {
	d, _ := serveMeasured(t, "")
	pattern := regexp.MustCompile(`late by (-?\d+) ms`)
	for n := range 50 {
		d.many("late", 1, time.Duration(n%7)*40*time.Millisecond)
		var runs [][]string
		d.WaitUntil("the job", func() bool {
			runs = pattern.FindAllStringSubmatch(d.Stderr.String(), -1)
			return len(runs) > n
		})
		ms, err := strconv.ParseFloat(runs[n][1], 64)
		if err != nil {
			t.Fatal(err)
		}
		late = append(late, ms)
	}
	return late
}

func TestAMillionJobsMayWait(t *testing.T) {
	if !harness.Soak {
		t.Skip("takes minutes: make soak does it")
	}
	d, _ := serveMeasured(t, "[jobs]\nmax_waiting = 0\nmax_waiting_per_job = 0\n")
	const n = 1_000_000
	before := d.Resources()
	d.many("tick", n, 24*time.Hour)
	d.enqueue(`{"name":"write","params":{"text":"at once"}}`)
	d.waitFor("at once")
	after := d.Resources()
	t.Logf("the server has %d MiB before and %d MiB with %d jobs", before.OwnBytes>>20, after.OwnBytes>>20, n)
	a, token := d.App, d.token
	d.Stop()
	began := time.Now()
	d = desk{a.Serve(), token}
	started := time.Since(began)
	d.enqueue(`{"name":"write","params":{"text":"then"}}`)
	d.waitFor("at once", "then")
	t.Logf("it starts in %s, and its first job is done after %s", started, time.Since(began))
	if all := list(t, a, "--state", "waiting", "--limit", "5"); len(all) != 5 {
		t.Errorf("%d jobs are listed", len(all))
	}
}

// load is what wrk measures.
type load struct {
	perSecond float64
	p99       time.Duration
	cpu       float64 // µs of the server for each request
}

// measure sends requests on so many connections for some seconds.
func (d desk) measure(method, path string, connections int, length time.Duration) (l load) {
	d.T.Helper()
	d.App.Write("request.lua", fmt.Sprintf("wrk.method = %q\nwrk.body = ''\nwrk.headers['Authorization'] = 'Bearer %s'\n", method, d.token))
	before := d.Resources().CPU
	out, err := exec.Command("wrk", "-t1", fmt.Sprintf("-c%d", connections), fmt.Sprintf("-d%.0fs", length.Seconds()), "--latency", "-s", d.App.Path("request.lua"), d.URL+path).Output()
	text := string(out)
	requests := regexp.MustCompile(`(\d+) requests in `).FindStringSubmatch(text)
	rate := regexp.MustCompile(`Requests/sec: +([0-9.]+)`).FindStringSubmatch(text)
	late := regexp.MustCompile(`99% +([0-9.]+[a-z]+)`).FindStringSubmatch(text)
	if err != nil || requests == nil || rate == nil || late == nil || strings.Contains(text, "Non-2xx") {
		d.T.Fatalf("wrk: %v\n%s\n%s", err, text, d.Stderr.String())
	}
	number, _ := strconv.ParseFloat(requests[1], 64) // only digits
	l.cpu = float64((d.Resources().CPU - before).Microseconds()) / number
	if l.perSecond, err = strconv.ParseFloat(rate[1], 64); err == nil {
		l.p99, err = time.ParseDuration(late[1])
	}
	if err != nil {
		d.T.Fatal(err)
	}
	return l
}

func median(all []float64) float64 {
	slices.Sort(all)
	return all[len(all)/2]
}

// many enqueues n jobs that are due after the delay.
func (d desk) many(name string, n int, delay time.Duration) {
	d.T.Helper()
	for ; n > 0; n -= 150 {
		if got := d.post("/many", fmt.Sprintf(`{"name":%q,"n":%d,"delay":%g}`, name, min(n, 150), delay.Seconds())); got.Status != 200 {
			d.T.Fatalf("%d %s", got.Status, got.Body)
		}
	}
}

// metric reads a metric; 0 if it is not there.
func (d desk) metric(url, name string) float64 {
	d.T.Helper()
	res, err := http.Get(url)
	if err != nil {
		d.T.Fatal(err)
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		d.T.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		if value, ok := strings.CutPrefix(line, name+" "); ok {
			n, _ := strconv.ParseFloat(strings.TrimSpace(value), 64)
			return n
		}
	}
	return 0
}

// serveMeasured serves the app without a line for each request.
func serveMeasured(t testing.TB, settings string) (desk, string) {
	t.Helper()
	a, token := newApp(t, "[metrics]\nlisten = \"127.0.0.1:0\"\n"+settings)
	d := desk{a.Serve(), token}
	var status struct{ Metrics string }
	if err := json.Unmarshal([]byte(a.Must("status", "--json")), &status); err != nil {
		t.Fatal(err)
	}
	return d, status.Metrics
}
