package jobs_test

import (
	"fmt"
	"strings"
	"testing"

	"runner.example/tests/harness"
)

// A tenant that fills the queue with jobs that compute for long, under eight names, does not keep another
// tenant's job waiting, also of the same name. Requests run meanwhile.
func TestComputingJobsOfManyNamesDoNotDelayAnotherTenant(t *testing.T) {
	const long = "[sandbox]\ncpu = \"20s\"\n"
	a, _ := newApp(t, appSettings+long)
	attacker, second, other := a.Token("desk", "--tenant", "acme"), a.Token("desk", "--tenant", "acme"), a.Token("desk", "--tenant", "blue")
	s := a.Serve()
	each := 4
	if harness.Soak {
		each = 30
	}
	for i := range 8 * each {
		by := attacker
		if i%2 == 1 {
			by = second
		}
		desk{s, by}.enqueue(fmt.Sprintf(`{"name":"nap%d","params":{"compute":true}}`, i%8))
	}
	s.WaitForOutput("nap begins")
	for n := range 5 {
		desk{s, other}.enqueue(`{"name":"late","params":{}}`)
		s.WaitUntil("the job of the other tenant", func() bool { return len(lateBy.FindAllString(s.Stderr.String(), -1)) > n })
	}
	began := strings.Count(s.Stderr.String(), "nap begins")
	desk{s, other}.enqueue(`{"name":"nap0","params":{"compute":true}}`)
	s.WaitUntil("a job of the other tenant that computes, too", func() bool { return strings.Count(s.Stderr.String(), "nap begins") > began })
	if strings.Contains(s.Stderr.String(), `"job":"nap`) {
		t.Error("a job of the other tenant ran after one that computes for long")
	}
	s.Kill()
	t.Log(lateBy.FindAllString(s.Stderr.String(), -1))
}
