package sandbox_test

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"runner.example/hostabi"
	"runner.example/internal/fault"
)

// The module logs what it was told before, and that host calls are denied (errno -3).
func TestAStoppedRunCanLogWhereItWas(t *testing.T) {
	options := newStepClock(100 * time.Microsecond).options()
	options.MemoryBytes = 1 << 20
	m := load(t, newEngine(t, options), assemble(t, "stopped"))
	for _, row := range []struct {
		handler, logs string
		code          fault.Code
		because       error
	}{
		{"computes", "13", fault.HandlerTimeout, hostabi.ErrCPUSpent},
		{"returns", "23", fault.HandlerTimeout, hostabi.ErrCPUSpent},
		{"stays", "!3", fault.HandlerTimeout, hostabi.ErrCPUSpent},
		{"grows", "33", fault.HandlerOutOfMemory, nil},
	} {
		for range 2 { // the second run begins with fresh memory
			var log bytes.Buffer
			call := newCall(context.Background(), &log)
			call.Host.Limits.CPU = 5 * time.Millisecond
			err := m.Run(call, row.handler)
			if fault.CodeOf(err) != row.code || row.because != nil && !errors.Is(err, row.because) {
				t.Errorf("%s ends with %v, want %s because of %v", row.handler, err, row.code, row.because)
			}
			if want := `"msg":"` + row.logs + `"`; strings.Count(log.String(), want) != 1 {
				t.Errorf("%s logs %s, want %s once", row.handler, log.String(), want)
			}
		}
	}
	var log bytes.Buffer
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if err := m.Run(newCall(ctx, &log), "computes"); fault.CodeOf(err) != fault.HandlerTimeout || log.Len() > 0 {
		t.Errorf("a run whose caller has gone ends with %v and logs %s", err, log.String())
	}
}
