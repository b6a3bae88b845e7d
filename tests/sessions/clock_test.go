package sessions_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"runner.example/tests/harness"
)

func TestAQuarantinedClockIsReportedAndCanBeAccepted(t *testing.T) {
	a := harness.NewApp(t, harness.PortalSchema, "", "echo")
	a.Session("early")
	a.SetClockAhead(40 * 24 * time.Hour)
	s := a.Serve()
	got := s.Do("GET", "/_health/ready", "")
	if got.Status != 503 || !strings.Contains(string(got.Body), "40.0d ahead") || !strings.Contains(string(got.Body), "runner clock accept") {
		t.Errorf("ready answers %d: %s", got.Status, got.Body)
	}
	if live := s.Do("GET", "/_health/live", ""); live.Status != 200 {
		t.Errorf("live answers %d", live.Status)
	}
	status := func(cookie string) int { return s.Do("GET", "/v1/dump", "", "Cookie: "+cookie).Status }
	made := a.Session("ada")
	if status(made.Cookie) != 200 {
		t.Errorf("a session created in quarantine: %d", status(made.Cookie))
	}
	var shown struct{ Time, Clock, Quarantined string }
	if err := json.Unmarshal([]byte(a.Must("clock", "show", "--json")), &shown); err != nil || shown.Quarantined == "" || shown.Time >= shown.Clock {
		t.Errorf("clock show prints %+v, %v", shown, err)
	}
	if text := a.Must("clock", "show"); !strings.Contains(text, "quarantined") {
		t.Errorf("clock show prints %s", text)
	}
	a.Must("clock", "accept")
	if got := s.Do("GET", "/_health/ready", ""); got.Status != 200 {
		t.Errorf("ready answers %d: %s", got.Status, got.Body)
	}
	if status(made.Cookie) != 401 {
		t.Errorf("a session is still valid 40 days later")
	}
	if status(a.Session("ada").Cookie) != 200 {
		t.Error("a new session is refused")
	}
	if text := a.Must("audit", "list"); !strings.Contains(text, "clock.accept") {
		t.Errorf("the audit has\n%s", text)
	}
	if log := s.Stderr.String(); !strings.Contains(log, "clock quarantined") || !strings.Contains(log, "clock trusted") {
		t.Errorf("the log has\n%s", log)
	}

	// The clock is set back only while no server runs.
	s.Stop()
	a.SetClockAhead(-40 * 24 * time.Hour)
	s = a.Serve()
	later := a.Session("bob")
	if status(later.Cookie) != 200 {
		t.Error("a new session is refused")
	}
	if r := a.Run("clock", "accept"); r.Status == 0 || !strings.Contains(r.Stderr, "stop the server") {
		t.Errorf("went back beside a server: %d, %s", r.Status, r.Stderr)
	}
	s.Stop()
	if r := a.Run("clock", "accept"); r.Status != 0 || !strings.Contains(r.Stderr, "created after that time: 1") {
		t.Errorf("status %d, %s", r.Status, r.Stderr)
	}
	s = a.Serve()
	if status(later.Cookie) != 401 || status(a.Session("ada").Cookie) != 200 {
		t.Error("after setting the clock back, a session from the future is valid, or a new one is not")
	}
}
