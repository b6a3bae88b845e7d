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

	"runner.example/tests/harness"
)

// load is what wrk measures.
type load struct {
	perSecond float64
	p99       time.Duration
}

// measure sends requests on so many connections.
func (d desk) measure(method, path string, connections int, length time.Duration) (l load) {
	d.T.Helper()
	d.App.Write("request.lua", fmt.Sprintf("wrk.method = %q\nwrk.body = ''\nwrk.headers['Authorization'] = 'Bearer %s'\n", method, d.token))
	out, err := exec.Command("wrk", "-t1", fmt.Sprintf("-c%d", connections), fmt.Sprintf("-d%dms", length.Milliseconds()), "--latency", "-s", d.App.Path("request.lua"), d.URL+path).Output()
	if err != nil {
		out, err = exec.Command("wrk", "-t1", fmt.Sprintf("-c%d", connections), fmt.Sprintf("-d%ds", max(1, int(length.Seconds()))), "--latency", "-s", d.App.Path("request.lua"), d.URL+path).Output()
	}
	text := string(out)
	rate := regexp.MustCompile(`Requests/sec: +([0-9.]+)`).FindStringSubmatch(text)
	late := regexp.MustCompile(`99% +([0-9.]+[a-z]+)`).FindStringSubmatch(text)
	if err != nil || rate == nil || late == nil || strings.Contains(text, "Non-2xx") {
		d.T.Fatalf("wrk: %v\n%s\n%s", err, text, d.Stderr.String())
	}
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
func serveMeasured(t *testing.T, settings string) (desk, string) {
	t.Helper()
	if !harness.Soak {
		t.Skip("compares speeds: make soak does it")
	}
	a, token := newApp(t, "[metrics]\nlisten = \"127.0.0.1:0\"\n"+settings)
	d := desk{a.Serve(), token}
	var status struct{ Metrics string }
	if err := json.Unmarshal([]byte(a.Must("status", "--json")), &status); err != nil {
		t.Fatal(err)
	}
	return d, status.Metrics
}

func TestEnqueuingCostsLittleBesideAnInsert(t *testing.T) {
	d, _ := serveMeasured(t, "")
	var ratios []float64
	for range 9 {
		alone, both := d.measure("POST", "/insert", 16, time.Second), d.measure("POST", "/later", 16, time.Second)
		ratios = append(ratios, alone.perSecond/both.perSecond)
	}
	ratio := median(ratios)
	t.Logf("an insert with an enqueue takes %.2f times the insert alone", ratio)
	if ratio > 1.3 {
		t.Errorf("%.2f times, want at most 1.3", ratio)
	}
}

func TestManyJobsAreDoneForEachDurableInsert(t *testing.T) {
	d, metrics := serveMeasured(t, "[jobs]\nslots = 86\n") // of which one job of one tenant has 64
	done := func() float64 { return d.metric(metrics, `runner_job_runs_total{job="tick",outcome="done"}`) }
	var ratios []float64
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
	ratio := median(ratios)
	t.Logf("%.2f jobs are done for each durable insert", ratio)
	if ratio < 0.4 {
		t.Errorf("%.2f, want at least 0.4", ratio)
	}
}

func TestRequestsStayFastWhileTheQueueIsFull(t *testing.T) {
	d, metrics := serveMeasured(t, "")
	d.many("tick", 1500, 0) // so that each request reads as many rows
	d.WaitUntil("rows", func() bool { return d.metric(metrics, `runner_job_runs_total{job="tick",outcome="done"}`) == 1500 })
	var ratios, rates []float64
	for range 5 {
		quiet := d.measure("GET", "/count", 4, 2*time.Second)
		d.many("tick", 10_000, 0)
		full := d.measure("GET", "/count", 4, 2*time.Second)
		if waiting := d.metric(metrics, `runner_jobs{state="waiting"}`); waiting == 0 {
			t.Error("the queue was empty before the end")
		}
		ratios, rates = append(ratios, float64(full.p99)/float64(quiet.p99)), append(rates, full.perSecond/quiet.perSecond)
		d.WaitUntil("an empty queue", func() bool { return d.metric(metrics, `runner_jobs{state="waiting"}`) == 0 })
	}
	t.Logf("p99 %.2f times, %.2f of the requests", median(ratios), median(rates))
	if ratio := median(ratios); ratio > 1.5 {
		t.Errorf("p99 is %.2f times as long, want at most 1.5", ratio)
	}
}

func TestJobsThatWaitCostRequestsNothing(t *testing.T) {
	d, _ := serveMeasured(t, "")
	with, _ := serveMeasured(t, "")
	with.many("tick", 100_000, 24*time.Hour)
	var ratios []float64
	for range 9 {
		ratios = append(ratios, with.measure("POST", "/insert", 16, time.Second).perSecond/d.measure("POST", "/insert", 16, time.Second).perSecond)
	}
	t.Logf("%.2f of the requests while 100,000 jobs wait", median(ratios))
	if ratio := median(ratios); ratio < 0.9 {
		t.Errorf("%.2f of the requests while 100,000 jobs wait", ratio)
	}
}

func TestADueJobStartsOnTime(t *testing.T) {
	d, _ := serveMeasured(t, "")
	const n = 50
	for i := range n {
		d.many("late", 1, time.Duration(i%7)*40*time.Millisecond)
	}
	pattern := regexp.MustCompile(`late by (-?\d+) ms`)
	d.WaitUntil("all jobs", func() bool { return len(pattern.FindAllString(d.Stderr.String(), -1)) == n })
	var late []float64
	for _, m := range pattern.FindAllStringSubmatch(d.Stderr.String(), -1) {
		ms, err := strconv.ParseFloat(m[1], 64)
		if err != nil {
			t.Fatal(err)
		}
		late = append(late, ms)
	}
	t.Logf("jobs start %g ms late, the latest %g ms", median(late), slices.Max(late))
	if median(late) > 50 {
		t.Errorf("jobs start %g ms late", median(late))
	}
}

func TestAMillionJobsMayWait(t *testing.T) {
	d, _ := serveMeasured(t, "[jobs]\nmax_waiting = 0\n")
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
