package jobs_test

import (
	"fmt"
	"strings"
	"testing"
)

// A job of another tenant runs before the jobs of one tenant that wait to compute. It fails: they wait for the
// instance slots of background handlers (sandbox.sharedSlots.limit, half of the CPU slots) in the order in which
// they came, each slot is held until the run ends, and a claim of a slot does not know the tenant.
func TestComputingJobsOfManyNamesDoNotDelayAnotherTenant(t *testing.T) {
	a, _ := newApp(t, appSettings)
	attacker, other := a.Token("desk", "--tenant", "acme"), a.Token("desk", "--tenant", "blue")
	s := a.Serve()
	for name := range 8 {
		for range 5 {
			desk{s, attacker}.enqueue(fmt.Sprintf(`{"name":"nap%d","params":{"compute":true}}`, name))
		}
	}
	ended := func() int { return strings.Count(s.Stderr.String(), `"job":"nap`) }
	s.WaitForOutput("nap begins")
	before := ended()
	desk{s, other}.enqueue(`{"name":"late","params":{}}`)
	s.WaitUntil("the job of the other tenant", func() bool { return lateBy.MatchString(s.Stderr.String()) })
	if n := ended() - before; n > 2 {
		t.Errorf("%d computing jobs of another tenant ran first; %s", n, lateBy.FindString(s.Stderr.String()))
	}
	s.Kill()
}
