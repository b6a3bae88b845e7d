package jobs_test

import (
	"encoding/json"
	"slices"
	"testing"

	"runner.example/tests/harness"
)

const programSchema = `app waiting
entity Entry {
  id: id
  text: string
}
apiKeys { scopes: { worker: @system("worker") { @grant read, write on Entry } } }
module waits { files: "lib", startTimeout: 10s }
jobs(retries: 2, backoff: 1s, timeout: 20s) {
  write() (as: worker)
  fails() (as: worker)
  tick() (as: worker, schedule: "0 3 1 1 *" in "Europe/Berlin")
}
`

// programApp has jobs whose handlers are a program that waits for requests.
func programApp(t *testing.T) *harness.App {
	t.Helper()
	harness.NeedPatches(t)
	a := harness.NewApp(t, programSchema, appSettings)
	a.Write("build/waits.wasm", harness.CProgram(t, harness.Testdata("programs/waits.c")))
	a.Write("lib/mark.txt", "1001")
	return a
}

// entries are the texts of all entries.
func entries(t *testing.T, a *harness.App) (texts []string) {
	t.Helper()
	var rows []struct{ Text string }
	if err := json.Unmarshal([]byte(a.Must("data", "list", "Entry", "--json")), &rows); err != nil {
		t.Fatal(err)
	}
	for _, row := range rows {
		texts = append(texts, row.Text)
	}
	slices.Sort(texts)
	return texts
}

// Each run of a job continues from the start of the program, and a run that traps leaves no row.
func TestProgramsThatWaitRunJobs(t *testing.T) {
	a := programApp(t)
	s := a.Serve()
	for range 3 {
		a.Must("jobs", "enqueue", "write")
	}
	a.Must("jobs", "enqueue", "fails")
	s.WaitForOutput(`"job":"fails","attempt":1,"outcome":"retried".*unreachable`)
	s.WaitForOutput(`"job":"fails","attempt":2,"outcome":"done"`)
	s.WaitUntil("all jobs to be done", func() bool { return len(list(t, a, "--state", "waiting")) == 0 && len(entries(t, a)) == 4 })
	want := []string{"fails of 1001, visit 1, attempt 2"}
	for range 3 {
		want = append(want, "write of 1001, visit 1, attempt 1")
	}
	if got := entries(t, a); !slices.Equal(got, want) {
		t.Errorf("the rows are %q, want %q", got, want)
	}

	// A job that waits runs on the program of the release that is active then.
	a.Must("jobs", "enqueue", "write", "--delay", "1s")
	a.Write("lib/mark.txt", "1002")
	a.Must("reload")
	s.WaitUntil("the last job to be done", func() bool { return slices.Contains(entries(t, a), "write of 1002, visit 1, attempt 1") })
}

func TestTheScheduleOfAProgramThatWaitsFires(t *testing.T) {
	a := programApp(t)
	s := a.Start("dev", "--at", "tick")
	s.WaitForOutput(`JOB    tick attempt 1 done \S+ job_`)
	if got := entries(t, a); !slices.Equal(got, []string{"tick of 1001, visit 1, attempt 1"}) {
		t.Errorf("the rows are %q", got)
	}
}
