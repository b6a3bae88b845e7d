package operations_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"syscall"
	"testing"

	"runner.example/tests/harness"
)

func TestStatusShowsTheStateOfTheServer(t *testing.T) {
	a := harness.NewApp(t, "app shop\n"+harness.HostileSchema, "[front]\nbody_memory = \"10mb\"\n", "echo", "hostile")
	if r := a.Run("status"); r.Status != 6 || !strings.Contains(r.Stderr, "no server is running on data directory") || !strings.Contains(r.Stderr, "hint: start it with runner serve") {
		t.Errorf("without a server: %d %s", r.Status, r.Stderr)
	}
	s := a.Serve()
	var state struct {
		PID         int
		App, URL    string
		Sequence    int
		Writable    bool
		NotReady    *string
		Memory      struct{ Handlers, Bodies, Answers int64 }
		Descriptors struct{ Open, Limit int }
	}
	if err := json.Unmarshal([]byte(a.Must("status", "--json")), &state); err != nil {
		t.Fatal(err)
	}
	if state.PID != s.Cmd.Process.Pid || state.App != "shop" || state.URL != s.URL || !state.Writable || state.NotReady == nil || *state.NotReady != "" {
		t.Errorf("%+v", state)
	}
	if state.Memory.Bodies != 10<<20 || state.Memory.Handlers == 0 || state.Memory.Answers != 256<<20 || state.Descriptors.Open < 5 || state.Descriptors.Limit < state.Descriptors.Open {
		t.Errorf("%+v", state)
	}
	text := a.Must("status")
	for _, want := range []string{fmt.Sprintf("pid  %s%d\n", strings.Repeat(" ", len("handlers' memory")-len("pid")), s.Cmd.Process.Pid), "writable ", "at most 10mb\n", "mb of 1gb\n"} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is missing in:\n%s", want, text)
		}
	}
}

func TestADrainingServerIsNotReadyAndServes(t *testing.T) {
	a := harness.NewApp(t, harness.HostileSchema, "[runtime]\ndrain = \"1h\"\n", "echo", "hostile")
	s := a.Serve()
	if got := s.Do("GET", "/_health/ready", ""); got.Status != 200 {
		t.Fatalf("%d %s", got.Status, got.Body)
	}
	_ = s.Cmd.Process.Signal(syscall.SIGTERM)
	s.WaitUntil("it is not ready", func() bool { return s.Do("GET", "/_health/ready", "").Status == 503 })
	if got := s.Do("GET", "/_health/ready", ""); !strings.Contains(string(got.Body), "the server is shutting down") || got.Header.Get("Retry-After") == "" {
		t.Errorf("%v %s", got.Header, got.Body)
	}
	for path, want := range map[string]int{"/_health/live": 200, "/_health": 200, "/hello": 200} {
		if got := s.Do("GET", path, ""); got.Status != want {
			t.Errorf("%s: %d %s", path, got.Status, got.Body)
		}
	}
	if text := a.Must("status", "--json"); !strings.Contains(text, "the server is shutting down") {
		t.Error(text)
	}
	// The second signal ends the process at once.
	_ = s.Cmd.Process.Signal(syscall.SIGTERM)
	<-s.Ended
	if s.Err == nil || !strings.Contains(s.Err.Error(), "terminated") {
		t.Errorf("it ended with %v", s.Err)
	}
}

func TestADrainEndsAfterItsTime(t *testing.T) {
	a := harness.NewApp(t, harness.HostileSchema, "[runtime]\ndrain = \"1ms\"\n", "echo", "hostile")
	a.Serve().Stop() // fails the test unless the server ends with status 0
}
