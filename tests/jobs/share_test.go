package jobs_test

import (
	"fmt"
	"regexp"
	"strings"
	"testing"
)

var lateBy = regexp.MustCompile(`late by (-?\d+) ms`)

// A tenant, or a key without one, that fills the queue under eight names does not keep another one waiting.
func TestSleepingJobsOfManyNamesDoNotDelayAnotherTenant(t *testing.T) {
	for name, row := range map[string]struct{ attacker, other []string }{
		"tenants":             {[]string{"desk", "--tenant", "acme"}, []string{"desk", "--tenant", "blue"}},
		"keys without tenant": {[]string{"notes"}, []string{"notes"}},
	} {
		t.Run(name, func(t *testing.T) {
			a, _ := newApp(t, appSettings)
			attacker := a.Token(row.attacker[0], row.attacker[1:]...)
			// One of 256 keys without a tenant shares its slots with the attacker's. Two such keys are one in 65,536.
			others := []string{a.Token(row.other[0], row.other[1:]...), a.Token(row.other[0], row.other[1:]...)}
			s := a.Serve()
			for i := range 8 {
				desk{s, attacker}.many(fmt.Sprint("nap", i), 30, 0)
			}
			began := func() int { return strings.Count(s.Stderr.String(), "nap begins") }
			s.WaitUntil("sleeping jobs in all slots that they may take", func() bool { return began() >= 14 })
			for n := range 3 {
				for _, other := range others {
					desk{s, other}.enqueue(`{"name":"late","params":{}}`)
				}
				s.WaitUntil("a job of the other callers", func() bool { return len(lateBy.FindAllString(s.Stderr.String(), -1)) > n })
			}
			if began() != 14 || strings.Contains(s.Stderr.String(), "nap has ended") {
				t.Error("it started when a sleeping job had ended")
			}
			s.Kill()
			t.Log(lateBy.FindAllString(s.Stderr.String(), -1))
		})
	}
}
