package jobs_test

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"runner.example/tests/harness"
)

func TestAJobRunsIfItsRequestIsCommitted(t *testing.T) {
	_, d := serve(t)
	if got := d.post("/fail", ""); got.Status != 422 {
		t.Fatalf("%d %s", got.Status, got.Body)
	}
	if got := d.post("/both", `{"text":"a"}`); got.Status != 200 || !strings.Contains(got.Body, `"created":true`) {
		t.Fatalf("%d %s", got.Status, got.Body)
	}
	d.waitFor("a", "request a")
	d.WaitForOutput(`wrote a as apiKey of acme, attempt 1`)
	d.WaitForOutput(`"msg":"job run".*"job":"write","attempt":1,"outcome":"done"`)
	if log := d.Stderr.String(); strings.Contains(log, "never") {
		t.Errorf("the job of a request that failed ran:\n%s", log)
	}
}

func TestAJobWithAsActsUnderThatScopeWithinTheTenant(t *testing.T) {
	a, d := serve(t)
	a.Must("jobs", "enqueue", "write", `{"text":"of another tenant"}`, "--tenant", "blue")
	d.WaitForOutput("wrote of another tenant as system of blue")
	d.enqueue(`{"name":"note","params":{"text":"x"}}`) // its scope alone would reach all tenants
	d.waitFor("note of anonymous acme x, sees 0")
	d.enqueue(`{"name":"reads","params":{"text":"x"}}`)
	d.WaitForOutput(`"job":"reads","attempt":1,"outcome":"failed".*403 forbidden`)
	d.waitFor("note of anonymous acme x, sees 0")
}

func TestAJobThatFailsRunsAgain(t *testing.T) {
	_, d := serve(t)
	d.enqueue(`{"name":"fails","params":{"until":2}}`)
	d.WaitForOutput(`"job":"fails","attempt":1,"outcome":"retried".*exception: Error: not yet`)
	d.waitFor("attempt 2")
	d.enqueue(`{"name":"fails","params":{"until":9,"status":422}}`)
	d.WaitForOutput(`"job":"fails","attempt":3,"outcome":"failed".*the handler answered 422`)
	d.waitFor("attempt 2")
}

func TestWrongParametersEnqueueNothing(t *testing.T) {
	_, d := serve(t)
	for body, want := range map[string]string{
		`{"name":"wriet","params":{"text":"x"}}`:                                                   `no job \"wriet\" (did you mean \"write\"?)`,
		`{"name":"write","params":{}}`:                                                             "params.text is required",
		`{"name":"write","params":{"text":"x","times":"2"}}`:                                       "params.times must be",
		`{"name":"write","params":{"text":"x"},"options":{"delay":-1}}`:                            "member \\\"delay\\\" must be a number of seconds from 0 to 31622400",
		`{"name":"write","params":{"text":"x"},"options":{"at":"tomorrow"}}`:                       "member \\\"at\\\" must be an RFC 3339 time",
		`{"name":"write","params":{"text":"x"},"options":{"at":"9999-01-01T00:00:00Z"}}`:           "member \\\"at\\\" must be at most 366 days from now",
		`{"name":"write","params":{"text":"x"},"options":{"at":"0001-01-01T00:00:00Z","delay":1}}`: "delay and at cannot both be given",
		`{"name":"write","params":{"text":"x"},"options":{"at":"2026-01-01T00:00:00Z","delay":1}}`: "delay and at cannot both be given",
	} {
		got := d.post("/jobs", body)
		if handlers := strings.Contains(want, "both"); got.Status != 400 && !(handlers && got.Status == 500) { // the request has the wrong value
			t.Errorf("%s: %d %s", body, got.Status, got.Body)
		}
		if log := d.Stderr.String() + got.Body; !strings.Contains(log, want) && !strings.Contains(log, strings.ReplaceAll(want, `\"`, `\\\"`)) {
			t.Errorf("%s: %s\nthe log does not say %q:\n%s", body, got.Body, want, log)
		}
	}
	d.waitFor()
}

func TestACancelledJobDoesNotRun(t *testing.T) {
	_, d := serve(t)
	id := d.enqueue(`{"name":"write","params":{"text":"later"},"options":{"delay":3600}}`)
	if got := d.post("/cancel", `{"id":"`+id+`"}`); got.Body != `{"cancelled":true}` {
		t.Errorf("%d %s", got.Status, got.Body)
	}
	if got := d.post("/cancel", `{"id":"`+id+`"}`); got.Body != `{"cancelled":false}` {
		t.Errorf("again: %d %s", got.Status, got.Body)
	}
	if got := d.post("/cancel", `{"id":"job_x"}`); got.Status != 404 {
		t.Errorf("an unknown id: %d %s", got.Status, got.Body)
	}
}

func TestKilledServersLoseNoJobAndRunNoneTwice(t *testing.T) {
	kills, each := 2, 15
	if harness.Soak {
		kills, each = 100, 9 // no more than a page of rows
	}
	a, token := newApp(t, appSettings)
	// The time stays behind the clock until the clock is accepted, which ends all pauses of jobs: those
	// of jobs that were killed many times are minutes long.
	a.SetClockAhead(40 * 24 * time.Hour)
	began, want, lost := time.Now(), 0, 0
	for round := range kills {
		d := desk{a.Serve(), token}
		for i := range each {
			name := "write"
			if i%5 == 0 {
				name = "slow"
			}
			d.enqueue(`{"name":"` + name + `","params":{"text":"` + fmt.Sprintf("%d/%d", round, i) + `"}}`)
			want++
		}
		if round%4 == 3 { // while others end too
			d.WaitForOutput(`"job":"slow",.*"outcome":"done"`)
		} else {
			d.WaitForOutput("slow begins")
		}
		d.Kill()
		lost += strings.Count(d.Stderr.String(), `"msg":"job lease over"`)
		if round%10 == 9 {
			t.Logf("%d servers were killed in %s; %d runs of jobs ended with them", round+1, time.Since(began).Round(time.Second), lost)
		}
	}
	d := desk{a.Serve(), token}
	d.WaitForOutput(`"job":"slow",.*"outcome":"done"`)
	d.Stop() // so that no run has a lease when the time jumps
	lost += strings.Count(d.Stderr.String(), `"msg":"job lease over"`)
	a.Must("clock", "accept")
	d = desk{a.Serve(), token}
	d.WaitUntil("all jobs to be done", func() bool { return len(d.texts()) >= want })
	t.Logf("%d jobs are done in %s; %d servers and %d runs were killed", want, time.Since(began).Round(time.Second), kills, lost)
	if lost < kills/2 {
		t.Errorf("only %d runs of jobs were killed with %d servers", lost, kills)
	}
	seen := map[string]int{}
	for _, text := range d.texts() {
		if seen[text]++; seen[text] > 1 {
			t.Errorf("%s was written twice", text)
		}
	}
	if len(seen) != want {
		t.Errorf("%d jobs have written a row, want %d", len(seen), want)
	}
}

func TestCancellingAJobStopsItsRun(t *testing.T) {
	a, d := serve(t)
	id := d.enqueue(`{"name":"waits","params":{"seconds":59}}`)
	d.enqueue(`{"name":"waits","params":{"seconds":0}}`)
	d.WaitForOutput("waits for 59")
	if got := d.post("/cancel", `{"id":"`+id+`"}`); got.Body != `{"cancelled":true}` {
		t.Fatalf("%d %s", got.Status, got.Body)
	}
	d.WaitForOutput(id + `","job":"waits","attempt":1,"outcome":"lost".*the job was cancelled`)
	d.waitFor("waited 0")
	if j := show(t, a, id); j.State != "cancelled" || strings.Contains(d.Stderr.String(), "went on after 59") {
		t.Errorf("the job is %+v:\n%s", j, d.Stderr.String())
	}
}

func TestTheEndOfARunIsRecordedWhenTheDiskHasRoomAgain(t *testing.T) {
	a, token := newApp(t, appSettings+"[store]\ndir = \"disk/data\"\n")
	if err := os.Rename(a.Path("disk"), a.Path("before")); err != nil {
		t.Fatal(err)
	}
	harness.SmallDisk(t, "tmpfs", a.Path("disk"), 128<<20)
	if out, err := exec.Command("cp", "-a", a.Path("before/data"), a.Path("disk/data")).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	d := desk{a.Serve(), token}
	id := d.enqueue(`{"name":"waits","params":{"seconds":5}}`)
	d.WaitForOutput("waits for 5")
	harness.FillDisk(t, a.Path("disk/filler"))
	d.WaitForOutput("went on after 5")
	if got := d.post("/insert", ""); got.Status != 503 {
		t.Fatalf("an insert on a full disk: %d %s", got.Status, got.Body)
	}
	if err := os.Remove(a.Path("disk/filler")); err != nil {
		t.Fatal(err)
	}
	d.WaitForOutput(id + `","job":"waits","attempt":1,"outcome":"failed".*disk is full`)
	if j := show(t, a, id); j.State != "failed" || !strings.Contains(j.Error, "disk is full") {
		t.Errorf("the job is %+v", j)
	}
}

func TestANumberThatIsNotOneIsNotTakenAsAbsent(t *testing.T) {
	_, d := serve(t)
	got := d.post("/odd", "")
	for _, want := range []string{
		`enqueue: delay is NaN: `, `enqueue: delay is Infinity: `, `\"delay\" must be a number`, `enqueue: at is an invalid date: `, `\"at\" must be an RFC 3339 time`, `create: expiresIn is NaN: `,
	} {
		if strings.Count(got.Body, want) != 1 {
			t.Errorf("%d %s has no %s", got.Status, got.Body, want)
		}
	}
	d.waitFor()
}

func TestTooManyWaitingJobsAreAnswered503(t *testing.T) {
	a, token := newApp(t, appSettings+"[jobs]\nmax_waiting = 2\n")
	d := desk{a.Serve(), token}
	const later = `{"name":"write","params":{"text":"later"},"options":{"delay":3600}}`
	d.enqueue(later)
	first := d.enqueue(later)
	d.WaitUntil("the jobs to be counted", func() bool { return d.post("/jobs", later).Status == 503 })
	if got := d.post("/jobs", later); got.Problem(t).Code != "unavailable" || !strings.Contains(got.Body, "[jobs] max_waiting") {
		t.Errorf("%d %s", got.Status, got.Body)
	}
	a.Must("jobs", "enqueue", "night", "--tenant", "acme", "--delay", "1h")
	a.Must("jobs", "cancel", first)
	if got := d.post("/jobs", later); got.Status != 503 { // that of the operator waits
		t.Errorf("%d %s", got.Status, got.Body)
	}
	for _, j := range list(t, a, "--state", "waiting") {
		a.Must("jobs", "cancel", j.ID)
	}
	d.enqueue(later)
}

func TestOneNameOfATenantLeavesWaitingJobsToOthers(t *testing.T) {
	a, token := newApp(t, appSettings+"[jobs]\nmax_waiting_per_job = 50\n")
	d := desk{a.Serve(), token}
	const many = `{"name":"tick","n":60,"delay":3600}`
	d.WaitUntil("the limit", func() bool { return d.post("/many", many).Status == 503 })
	if got := d.post("/many", many); got.Problem(t).Code != "unavailable" || !strings.Contains(got.Body, "of the name tick ([jobs] max_waiting_per_job, 50)") {
		t.Errorf("%d %s", got.Status, got.Body)
	}
	d.enqueue(`{"name":"write","params":{"text":"another name"}}`)
	d.waitFor("another name")
	other := desk{d.Server, a.Token("desk", "--tenant", "blue")}
	if got := other.post("/many", many); got.Status != 200 {
		t.Errorf("another tenant: %d %s", got.Status, got.Body)
	}
}

// A job that enqueues others of its name without end meets their limit, and one command ends all of them while
// the server runs.
func TestJobsThatEnqueueThemselvesAreLimitedAndCancelled(t *testing.T) {
	a, token := newApp(t, appSettings+"[jobs]\nmax_waiting_per_job = 2000\n")
	d := desk{a.Serve(), token}
	a.Must("jobs", "enqueue", "bomb", "--tenant", "acme")
	d.WaitForOutput(`"job":"bomb".*"outcome":"failed".*max_waiting_per_job, 2000`)
	d.enqueue(`{"name":"write","params":{"text":"beside it"}}`)
	d.waitFor("beside it")
	var done struct{ Count int }
	if text := a.Must("jobs", "cancel", "--all", "--job", "bomb", "--yes", "--json"); json.Unmarshal([]byte(text), &done) != nil || done.Count < 1000 {
		t.Errorf("cancelled: %s", text)
	}
	if live := append(list(t, a, "--state", "waiting"), list(t, a, "--state", "running")...); len(live) != 0 {
		t.Errorf("%d jobs are left, such as %+v", len(live), live[0])
	}
	counted := 0
	for _, r := range a.Audit(t) {
		if r["action"] == "jobs.cancelAll" && r["target"] == "bomb" {
			n, _ := r["count"].(float64)
			counted += int(n)
		}
	}
	if counted != done.Count {
		t.Errorf("the audit has %d cancelled jobs, the command says %d", counted, done.Count)
	}
	d.enqueue(`{"name":"write","params":{"text":"later"}}`)
	d.waitFor("beside it", "later")
}

func TestAFailedJobSaysWhyWithoutSecrets(t *testing.T) {
	a, d := serve(t)
	id := d.enqueue(`{"name":"leaks","params":{}}`)
	d.WaitForOutput(id + `","job":"leaks","attempt":1,"outcome":"failed"`)
	j := show(t, a, id)
	if !strings.HasPrefix(j.Error, "exception: ") || !strings.Contains(j.Error, "the mailer refused key …") ||
		!strings.Contains(j.Error, "handlers/ledger.ts:") || strings.Contains(j.Error, "c4n4ry") {
		t.Errorf("the job failed because %q", j.Error)
	}
}
