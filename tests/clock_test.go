package tests

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// wentAhead writes the clock file of a server to which the wall clock, of this boot
// of the machine, now is ahead by d.
func (a *app) wentAhead(d time.Duration) {
	a.t.Helper()
	boot, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		a.t.Fatal(err)
	}
	var up unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &up); err != nil {
		a.t.Fatal(err)
	}
	then := time.Now().Add(-d).UTC().Format(time.RFC3339Nano)
	text := fmt.Sprintf(`{"time":%q,"wall":%q,"boot":%q,"uptime":%d}`, then, then, strings.TrimSpace(string(boot)), time.Duration(up.Nano()).Milliseconds())
	if err := os.WriteFile(filepath.Join(a.dir, "data", "clock"), []byte(text), 0o600); err != nil {
		a.t.Fatal(err)
	}
}

func TestAQuarantinedClockIsToldAndAccepted(t *testing.T) {
	a := newApp(t, portalSchema, "", "echo")
	a.session("early")
	a.wentAhead(40 * 24 * time.Hour)
	s := a.serve()
	got := s.do("GET", "/_health/ready", "")
	if got.status != 503 || !strings.Contains(string(got.body), "40.0d ahead") || !strings.Contains(string(got.body), "runner clock accept") {
		t.Errorf("ready answers %d: %s", got.status, got.body)
	}
	if live := s.do("GET", "/_health/live", ""); live.status != 200 {
		t.Errorf("live answers %d", live.status)
	}
	status := func(cookie string) int { return s.do("GET", "/v1/dump", "", "Cookie: "+cookie).status }
	made := a.session("ada")
	if status(made.Cookie) != 200 {
		t.Errorf("a session made in quarantine: %d", status(made.Cookie))
	}
	var shown struct{ Time, Clock, Quarantined string }
	if err := json.Unmarshal([]byte(a.must("clock", "show", "--json")), &shown); err != nil || shown.Quarantined == "" || shown.Time >= shown.Clock {
		t.Errorf("clock show prints %+v, %v", shown, err)
	}
	if text := a.must("clock", "show"); !strings.Contains(text, "quarantined") {
		t.Errorf("clock show prints %s", text)
	}
	a.must("clock", "accept")
	if got := s.do("GET", "/_health/ready", ""); got.status != 200 {
		t.Errorf("ready answers %d: %s", got.status, got.body)
	}
	if status(made.Cookie) != 401 {
		t.Errorf("40 days later a session is good")
	}
	if status(a.session("ada").Cookie) != 200 {
		t.Error("a new session is refused")
	}
	if text := a.must("audit", "list"); !strings.Contains(text, "clock.accept") {
		t.Errorf("the audit has\n%s", text)
	}
	if log := s.stderr.String(); !strings.Contains(log, "clock quarantined") || !strings.Contains(log, "clock trusted") {
		t.Errorf("the log has\n%s", log)
	}

	// Back goes only a node that makes no credentials meanwhile.
	s.stop()
	a.wentAhead(-40 * 24 * time.Hour)
	s = a.serve()
	later := a.session("bob")
	if status(later.Cookie) != 200 {
		t.Error("a new session is refused")
	}
	if r := a.run("clock", "accept"); r.status == 0 || !strings.Contains(r.stderr, "stop the server") {
		t.Errorf("went back beside a server: %d, %s", r.status, r.stderr)
	}
	s.stop()
	if r := a.run("clock", "accept"); r.status != 0 || !strings.Contains(r.stderr, "created after that time: 1") {
		t.Errorf("status %d, %s", r.status, r.stderr)
	}
	s = a.serve()
	if status(later.Cookie) != 401 || status(a.session("ada").Cookie) != 200 {
		t.Error("after going back a session of the time to come is good, or a new one is not")
	}
}
