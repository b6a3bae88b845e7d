package jobs_test

import (
	"strings"
	"testing"
	"time"
)

func TestAClockThatJumpsNeitherStartsJobsNorStopsThem(t *testing.T) {
	a, token := newApp(t, appSettings)
	start := func() desk { return desk{a.Serve(), token} }
	a.SetClockAhead(40 * 24 * time.Hour) // more than is believed
	d := start()
	d.enqueue(`{"name":"write","params":{"text":"delayed"},"options":{"delay":600}}`)
	d.enqueue(`{"name":"write","params":{"text":"at once"}}`)
	d.waitFor("at once")
	if log := d.Stderr.String(); !strings.Contains(log, "clock quarantined") || strings.Contains(log, `"job":"night"`) {
		t.Errorf("the log has\n%s", log)
	}
	a.Must("clock", "accept")
	d.enqueue(`{"name":"write","params":{"text":"then"}}`)
	d.waitFor("at once", "delayed", "then")
	d.WaitForOutput(`"job":"night","attempt":1,"outcome":"done"`)
	d.Stop()

	a.SetClockAhead(-40 * 24 * time.Hour) // it is set back
	d = start()
	d.enqueue(`{"name":"write","params":{"text":"later"}}`)
	d.waitFor("at once", "delayed", "later", "then")
	if all := list(t, a, "--job", "night"); len(all) != 1 {
		t.Errorf("the schedule has fired %d times in 40 days that were never, want once", len(all))
	}
}
