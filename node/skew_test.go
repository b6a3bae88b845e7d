package node

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"
	"time"

	"runner.example/internal/fault"
	"runner.example/runtime"
)

func TestClocksThatDifferAreLoggedOnceAndBlockTheNodeThatIsAlone(t *testing.T) {
	var log bytes.Buffer
	notReady := ""
	s := &Skews{logger: slog.New(slog.NewTextHandler(&log, nil)), logged: map[string]bool{}, setNotReady: func(reason runtime.Reason, cause *fault.Fault) {
		if reason != runtime.Clock {
			t.Errorf("the reason is %v", reason)
		}
		notReady = ""
		if cause != nil {
			notReady = cause.Detail
		}
	}}
	skews := map[string]time.Duration{}
	for i, step := range []struct {
		peer     string
		skew     time.Duration
		logs     []string // the messages of the step
		notReady string   // what the reason ends with
	}{
		{"b", 900 * time.Millisecond, nil, ""},
		{"b", time.Second, nil, ""},
		{"b", 1001 * time.Millisecond, []string{"clocks of nodes differ"}, ""},
		{"b", 20 * time.Second, nil, ""},
		{"b", -1001 * time.Millisecond, nil, ""},
		{"b", -30 * time.Second, nil, ""},
		{"b", -31500 * time.Millisecond, []string{"clock differs too much; not ready"}, "other nodes: b by 31s"}, // the only other one
		{"b", -32 * time.Second, nil, "other nodes: b by 32s"},
		{"c", 0, []string{"clock agrees with other nodes again"}, ""}, // one of two: b is wrong
		{"c", 45 * time.Second, []string{"clocks of nodes differ", "clock differs too much; not ready"}, "other nodes: b by 32s, c by 45s"},
		{"d", 0, nil, "other nodes: b by 32s, c by 45s"}, // two of three
		{"e", 0, []string{"clock agrees with other nodes again"}, ""},
		{"c", 0, []string{"clocks of nodes agree again"}, ""},
	} {
		log.Reset()
		skews[step.peer] = step.skew
		if agrees := s.Measured(skews); agrees != (step.notReady == "") {
			t.Errorf("step %d, %s by %v: it agrees: %v", i, step.peer, step.skew, agrees)
		}
		var logs []string
		for line := range strings.Lines(log.String()) {
			_, message, _ := strings.Cut(line, `msg="`)
			message, _, _ = strings.Cut(message, `"`)
			logs = append(logs, message)
		}
		if strings.Join(logs, "\n") != strings.Join(step.logs, "\n") {
			t.Errorf("step %d, %s by %v: logged %q, want %q", i, step.peer, step.skew, logs, step.logs)
		}
		if !strings.HasSuffix(notReady, step.notReady) || (notReady == "") != (step.notReady == "") {
			t.Errorf("step %d, %s by %v: not ready because of %q, want %q", i, step.peer, step.skew, notReady, step.notReady)
		}
	}
	log.Reset()
	s.Measured(map[string]time.Duration{"b": -32 * time.Second}) // the others do not answer
	if !strings.HasSuffix(notReady, "b by 32s") {
		t.Errorf("with one other node: %q", notReady)
	}
	s.Measured(map[string]time.Duration{})
	if notReady != "" {
		t.Errorf("without other nodes: %q", notReady)
	}
	s.Measured(skews)
	if strings.Contains(log.String(), "clocks of nodes differ") {
		t.Errorf("logged again after it did not answer for a while: %s", log.String())
	}
}
