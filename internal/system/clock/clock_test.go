package clock_test

import (
	"testing"
	"time"

	"runner.example/internal/system/clock"
)

func TestUptimeAdvancesWithTheStopwatch(t *testing.T) {
	from, ok := clock.Uptime()
	if !ok || from <= 0 {
		t.Fatalf("the machine is up for %v: %v", from, ok)
	}
	const step = 16 * time.Millisecond
	began := time.Now()
	to := from
	for to < from+2*step && time.Since(began) < 10*time.Second {
		to, _ = clock.Uptime()
	}
	passed := time.Since(began)
	if up := to - from; up < 2*step || up > passed+2*step {
		t.Errorf("%v of uptime in %v", up, passed)
	}
	if first, second := clock.Boot(), clock.Boot(); first != second {
		t.Errorf("the boot is %q, and %q", first, second)
	}
	clock.Synchronized() // of any value
}
