package jobs_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	"runner.example/tests/harness"
)

// job is what runner jobs prints with --json.
type job struct {
	ID, Name, State, Error, Node string
	Attempt                      int
	Params                       json.RawMessage
	Due                          time.Time
	Caller                       struct{ Kind, UserID, Tenant string }
}

func list(t testing.TB, a *harness.App, flags ...string) (all []job) {
	t.Helper()
	text := a.Must(append([]string{"jobs", "list", "--json"}, flags...)...)
	if err := json.Unmarshal([]byte(text), &all); err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	return all
}

func show(t testing.TB, a *harness.App, id string) (j job) {
	t.Helper()
	if err := json.Unmarshal([]byte(a.Must("jobs", "show", id, "--json")), &j); err != nil {
		t.Fatal(err)
	}
	return j
}

func TestOperatorsSeeAndChangeJobs(t *testing.T) {
	a, d := serve(t)
	failing := d.enqueue(`{"name":"fails","params":{"until":9}}`)
	later := d.enqueue(`{"name":"write","params":{"text":"later"},"options":{"delay":3600}}`)
	d.WaitForOutput(`"job":"fails","attempt":3,"outcome":"failed"`)
	if all := list(t, a, "--state", "failed"); len(all) != 1 || all[0].ID != failing || all[0].Attempt != 3 || !strings.HasPrefix(all[0].Error, "exception: ") {
		t.Errorf("failed jobs: %+v", all)
	}
	if text := a.Must("jobs", "list", "--failed"); !regexp.MustCompile(` exception: \S.* fails \(handlers/ledger\.ts:\d+`).MatchString(text) {
		t.Errorf("the table of failed jobs has no kind and place:\n%s", text)
	}
	if text := a.Must("jobs", "show", failing); !regexp.MustCompile(`(?m)^error +exception: .*\n +at .*handlers/ledger\.ts:\d+(.*\n)+attempt 2 +exception: .*\n +at .*ledger\.ts(.*\n)+attempt 1 +exception: `).MatchString(text) {
		t.Errorf("the errors of three runs:\n%s", text)
	}
	if all := list(t, a, "--state", "waiting", "--tenant", "acme", "--job", "write"); len(all) != 1 || all[0].ID != later || all[0].Caller.Kind != "apiKey" {
		t.Errorf("waiting jobs: %+v", all)
	}
	if all := list(t, a, "--tenant", "blue"); len(all) != 0 {
		t.Errorf("jobs of another tenant: %+v", all)
	}
	if text := a.Must("jobs", "list"); !regexp.MustCompile(failing + ` +fails +failed +3 +acme `).MatchString(text) {
		t.Errorf("the table:\n%s", text)
	}
	if text := a.Must("jobs", "show", later); !regexp.MustCompile(`(?m)^state +waiting\n(.*\n)*params +\{"text":"later","times":1\}$`).MatchString(text) {
		t.Errorf("a job:\n%s", text)
	}
	// A waiting job runs at once.
	a.Must("jobs", "retry", later)
	d.waitFor("later")
	d.WaitUntil("the job to be done", func() bool { return show(t, a, later).State == "done" })
	if r := a.Run("jobs", "retry", later); r.Status != 5 || !strings.Contains(r.Stderr, "the job is done") {
		t.Errorf("retry of a job that is done: %d %s", r.Status, r.Stderr)
	}
	a.Must("jobs", "retry", failing)
	d.WaitUntil("the job to have failed again", func() bool {
		return strings.Count(d.Stderr.String(), `"job":"fails","attempt":3,"outcome":"failed"`) == 2
	})
	if r := a.Run("jobs", "cancel", failing); r.Status != 5 || !strings.Contains(r.Stderr, "has ended before") {
		t.Errorf("cancel of a job that has failed: %d %s", r.Status, r.Stderr)
	}
	for _, command := range []string{"show", "retry", "cancel"} {
		if r := a.Run("jobs", command, "job_x"); r.Status != 4 || !strings.Contains(r.Stderr, "there is no job with this id") {
			t.Errorf("%s of an unknown job: %d %s", command, r.Status, r.Stderr)
		}
	}
	var actions []string
	for _, r := range a.Audit(t) {
		if action := fmt.Sprint(r["action"]); strings.HasPrefix(action, "jobs.") {
			actions = append(actions, action+" "+fmt.Sprint(r["target"]))
		}
	}
	if want := fmt.Sprintf("[jobs.retry %s jobs.retry %s]", later, failing); fmt.Sprint(actions) != want {
		t.Errorf("audit: %v, want %s", actions, want)
	}
}

func TestOperatorsEnqueueJobs(t *testing.T) {
	a, d := serve(t)
	a.Must("jobs", "enqueue", "write", `{"text":"by an operator"}`, "--tenant", "acme")
	d.waitFor("by an operator")
	d.WaitForOutput("wrote by an operator as system of acme")
	first := a.Must("jobs", "enqueue", "night", "--delay", "1h", "--key", "k")
	if again := a.Must("jobs", "enqueue", "night", "--delay", "1h", "--key", "k"); again != first {
		t.Errorf("with the same key: %s and %s", first, again)
	}
	a.Must("jobs", "cancel", strings.TrimSpace(first))
	a.Must("jobs", "enqueue", "night", "--at", "2026-01-01T00:00:00+01:00")
	d.WaitForOutput(`"job":"night","attempt":1,"outcome":"done"`)
	for _, row := range []struct {
		args []string
		want string
	}{
		{[]string{"nihgt"}, `the schema declares no job "nihgt" (did you mean "night"?)`},
		{[]string{"write", `{"text":1}`}, "params.text must be a string"},
		{[]string{"write", `{"text"`}, "the parameters are not JSON"},
		{[]string{"night", "--at", "tomorrow"}, "--at must be an RFC 3339 time"},
		{[]string{"night", "--delay", "fast"}, `--delay: "fast" is not a duration`},
		{[]string{"night", "--delay", "1s", "--at", "2026-12-01T00:00:00Z"}, "delay and at cannot both be given"},
	} {
		if r := a.Run(append([]string{"jobs", "enqueue"}, row.args...)...); r.Status == 0 || !strings.Contains(r.Stderr, row.want) {
			t.Errorf("%v: %d %s, want %q", row.args, r.Status, r.Stderr, row.want)
		}
	}
}

func TestJobsAreEnqueuedWithoutAServerAndRunWhenItStarts(t *testing.T) {
	a, token := newApp(t, appSettings)
	a.Must("jobs", "enqueue", "write", `{"text":"before"}`, "--tenant", "acme")
	if all := list(t, a); len(all) != 1 || all[0].State != "waiting" {
		t.Errorf("before: %+v", all)
	}
	desk{a.Serve(), token}.waitFor("before")
}

func TestTheMetricsCountJobs(t *testing.T) {
	a, token := newApp(t, appSettings+"[metrics]\nlisten = \"127.0.0.1:0\"\n")
	d := desk{a.Serve(), token}
	d.enqueue(`{"name":"write","params":{"text":"a"}}`)
	d.enqueue(`{"name":"reads","params":{"text":"a"}}`)
	d.enqueue(`{"name":"write","params":{"text":"later"},"options":{"delay":3600}}`)
	d.WaitForOutput(`"job":"reads","attempt":1,"outcome":"failed"`)
	d.WaitForOutput(`"job":"write","attempt":1,"outcome":"done"`)
	var status struct{ Metrics string }
	if err := json.Unmarshal([]byte(a.Must("status", "--json")), &status); err != nil {
		t.Fatal(err)
	}
	d.WaitUntil("the metrics", func() bool {
		res, err := http.Get(status.Metrics)
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		text, err := io.ReadAll(res.Body)
		if err != nil {
			t.Fatal(err)
		}
		for _, line := range []string{
			`runner_jobs{state="waiting"} 1`, `runner_jobs{state="running"} 0`, `runner_job_runs_total{job_name="write",outcome="done"} 1`,
			`runner_job_runs_total{job_name="reads",outcome="failed"} 1`, `runner_job_duration_seconds_count{job_name="write"} 1`,
		} {
			if !strings.Contains(string(text), line+"\n") {
				return false
			}
		}
		return true
	})
}

func TestTheDevelopmentServerShowsRunsAndLetsSchedulesFire(t *testing.T) {
	a, _ := newApp(t, appSettings)
	a.Write("handlers/ledger.ts", appHandlers)
	s := a.Start("dev", "--at", "night", "--at", "write")
	s.WaitForOutput(`JOB    night attempt 1 done \S+ job_`)
	s.WaitForOutput(`--at write: the job write has no schedule`)
	a.Must("jobs", "enqueue", "fails", `{"until":9}`, "--tenant", "acme")
	s.WaitForOutput(`JOB    fails attempt 1 retried \S+ job_(.*\n)+.*handlers/ledger.ts:\d+.*not yet`)
}

func TestAReleaseWithOtherParametersLetsJobsFailUntilItIsRolledBack(t *testing.T) {
	a, d := serve(t)
	id := d.enqueue(`{"name":"write","params":{"text":"kept"},"options":{"delay":3600}}`)
	reload := func(schema string) {
		t.Helper()
		a.Write("app.schema", schema)
		a.Must("reload")
	}
	reload(strings.Replace(appSchema, "write(text: string(1..100)", "write(txt: string(1..100)", 1))
	a.Must("jobs", "retry", id)
	d.WaitForOutput(id + `","job":"write","attempt":1,"outcome":"retried"`)
	if j := show(t, a, id); j.State == "failed" || !strings.Contains(j.Error, "the parameters do not match the job in the active release") || !strings.Contains(j.Error, `(did you mean \"txt\"?)`) {
		t.Errorf("the job is %+v", j)
	}
	reload(appSchema)
	d.waitFor("kept") // after its pause
}

func TestOperatorsCancelAllJobs(t *testing.T) {
	a, d := serve(t)
	d.enqueue(`{"name":"waits","params":{"seconds":59}}`)
	d.WaitForOutput("waits for 59")
	for _, job := range [][]string{{"waits", `{"seconds":1}`}, {"late"}, {"late"}} {
		a.Must(append(append([]string{"jobs", "enqueue"}, job...), "--delay", "1h", "--tenant", "acme")...)
	}
	a.Must("jobs", "enqueue", "late", "--delay", "1h", "--tenant", "blue")
	for _, args := range [][]string{{}, {"--all"}, {"job_x", "--all"}, {"job_x", "--tenant", "acme"}} {
		if r := a.Run(append([]string{"jobs", "cancel"}, args...)...); r.Status != 2 {
			t.Errorf("%s: %d %s", args, r.Status, r.Stderr)
		}
	}
	if text := a.Must("jobs", "cancel", "--all", "--yes", "--job", "late", "--tenant", "acme"); text != "cancelled 2 jobs\n" {
		t.Errorf("of one name and tenant: %s", text)
	}
	if text := a.Must("jobs", "cancel", "--all", "--yes", "--json"); !strings.Contains(text, `"count": 3`) {
		t.Errorf("all: %s", text)
	}
	if live := append(list(t, a, "--state", "waiting"), list(t, a, "--state", "running")...); len(live) != 0 {
		t.Errorf("not cancelled: %+v", live)
	}
}
