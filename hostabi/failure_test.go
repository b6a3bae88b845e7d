package hostabi_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"runner.example/hostabi"
	"runner.example/internal/symbols"
)

func TestAFailureIsTheLastReportOrWhatTheHostSaw(t *testing.T) {
	native := func() hostabi.Failure {
		return hostabi.Failure{Kind: "unreachable", Message: "seen by the host", Frames: []symbols.Frame{{Function: "native", Offset: 7}}}
	}
	nativeAlone := native()
	thrown := hostabi.Failure{Kind: "exception", Message: `Error: no\ncart`, Frames: []symbols.Frame{{Function: "total", File: "handlers/a.ts", Line: 3, Column: 9}, {File: "handlers/a.ts", Line: 1}}}
	const report = "exception\nError: no\ncart\n    at total (handlers/a.ts:3:9)\n    at handlers/a.ts:1"
	short := hostabi.Failure{Kind: "panic", Message: "short"}
	for name, tt := range map[string]struct {
		run    func(g *guest)
		want   *hostabi.Failure
		others []hostabi.Failure
	}{
		"nothing":                     {run: func(*guest) {}},
		"an answer without a report":  {run: func(g *guest) { g.do("response_error", 500, "handler_failed", "") }},
		"a report and another answer": {run: func(g *guest) { g.do("log", 4, report); g.do("response_send", 200, "{}") }, others: []hostabi.Failure{thrown}},
		"a report and the answer":     {run: func(g *guest) { g.do("log", 4, report); g.do("response_error", 500, "handler_failed", "") }, want: &thrown},
		"two reports and the answer": {run: func(g *guest) {
			g.do("log", 4, "panic\nshort")
			g.do("log", 4, report)
			g.do("response_error", 500, "handler_failed", "")
		}, want: &thrown, others: []hostabi.Failure{short}},
		"a trap":                          {run: func(g *guest) { g.call.SetFailure(native(), false) }, want: &nativeAlone},
		"a report and a trap":             {run: func(g *guest) { g.do("log", 4, report); g.call.SetFailure(native(), false) }, want: &thrown},
		"a report without frames, a trap": {run: func(g *guest) { g.do("log", 4, "panic\nshort"); g.call.SetFailure(native(), false) }, want: &hostabi.Failure{Kind: "panic", Message: "short", Frames: nativeAlone.Frames}},
		"a report before a limit":         {run: func(g *guest) { g.do("log", 4, report); g.call.SetFailure(native(), true) }, want: &nativeAlone, others: []hostabi.Failure{thrown}},
		"a report of where a limit was reached": {
			run: func(g *guest) {
				g.call.Stopping(true)
				g.do("log", 4, report)
				g.call.SetFailure(native(), true)
			},
			want: &hostabi.Failure{Kind: "unreachable", Message: thrown.Message, Frames: thrown.Frames},
		},
	} {
		g := newGuest(t, hostabi.Limits{})
		tt.run(g)
		g.call.End()
		got, others := g.call.Failures()
		if diff := cmp.Diff(tt.want, got); diff != "" {
			t.Errorf("%s: the failure (-want +got):\n%s", name, diff)
		}
		if diff := cmp.Diff(tt.others, others); diff != "" {
			t.Errorf("%s: the others (-want +got):\n%s", name, diff)
		}
		if got, others := g.call.Failures(); got != nil || others != nil {
			t.Errorf("%s: a second call returns %v, %v", name, got, others)
		}
		if log := g.log.String(); log != "" {
			t.Errorf("%s: logged %s", name, log)
		}
		g.do("log", 4, report)
		g.call.Begin()
		if got, others := g.call.Failures(); got != nil || others != nil {
			t.Errorf("%s: the next run has %v, %v", name, got, others)
		}
	}
}

func TestReportsAreLimited(t *testing.T) {
	g := newGuest(t, hostabi.Limits{})
	long := "error\n" + strings.Repeat("ü", 5000) + "\n" + strings.Repeat("    at f"+strings.Repeat("x", 500)+" (a.c:1)\n", 100)
	g.do("log", 4, long)
	g.do("response_error", 500, "handler_failed", "")
	f, _ := g.call.Failures()
	if len(f.Message) > 4100 || !strings.HasSuffix(f.Message, "ü…") || len(f.Frames) != symbols.MaxFrames || len(f.Frames[0].Function) > 310 {
		t.Errorf("a message of %d bytes, %d frames", len(f.Message), len(f.Frames))
	}
	g.call.Begin()
	g.do("log", 4, strings.Repeat("k", 500)+"\n\x1b[31mred\u202e")
	g.do("response_error", 500, "handler_failed", "")
	if f, _ = g.call.Failures(); len(f.Kind) > 70 || f.Message != `\x1b[31mred\u202e` {
		t.Errorf("%d bytes of kind, %q", len(f.Kind), f.Message)
	}

	g.call.Begin()
	for i := range 500 {
		g.do("log", 4, fmt.Sprintf("error\nnumber %d", i))
	}
	g.do("response_send", 200, "{}")
	g.call.End()
	if _, all := g.call.Failures(); len(all) != 8 || all[7].Message != "number 499" {
		t.Errorf("%d reports are kept: %+v", len(all), all)
	}
	if lines := g.lines(); len(lines) != 1 || lines[0].Msg != "492 lines dropped" {
		t.Errorf("the log has %+v", lines)
	}
}

// Lines and reports beyond the budget are counted together.
func TestReportsBeyondTheBudgetOfTheLogAreCounted(t *testing.T) {
	g := newGuest(t, hostabi.Limits{})
	for range 67 {
		g.do("log", 1, "a line")
	}
	g.do("log", 4, "error\nfirst")
	g.do("log", 4, "error\nsecond")
	g.do("response_error", 500, "handler_failed", "")
	g.call.End()
	f, others := g.call.Failures()
	if f == nil || f.Message != "second" || len(others) != 0 {
		t.Errorf("%v, %v", f, others)
	}
	if lines := g.lines(); len(lines) != 65 || lines[64].Msg != "4 lines dropped" {
		t.Errorf("the log has %d lines, the last are %+v", len(lines), lines[63:])
	}
}

func TestAReportOutsideOfARequestIsALine(t *testing.T) {
	g := newGuest(t, hostabi.Limits{})
	g.call.Request = nil
	g.do("log", 4, "panic\nno config\n    at main.init (main.go:3)")
	if lines := g.lines(); len(lines) != 1 || lines[0].Level != "ERROR" || lines[0].Msg != "panic: no config at main.init (main.go:3)" {
		t.Errorf("the log has %+v", lines)
	}
}

// What is escaped counts as it is logged, and a secret is not cut in two.
func TestAReportIsCutAsItIsLogged(t *testing.T) {
	g := newGuest(t, hostabi.Limits{})
	escapes := strings.Repeat("\x1b", 5000)
	g.do("log", 4, escapes+"\n"+escapes+"\n    at "+escapes[:400]+" ("+escapes[:400]+":1)")
	g.do("response_error", 500, "handler_failed", "")
	f, _ := g.call.Failures()
	if size := len(f.String()); size > 60+4096+600+50 || len(f.Frames) != 1 {
		t.Errorf("%d bytes, %d frames", size, len(f.Frames))
	}
	g.call.Begin()
	const secret = "key-0123456789abcdefghij"
	g.do("log", 4, "error\n"+strings.Repeat("word ", 818)+secret+secret)
	g.do("response_error", 500, "handler_failed", "")
	if f, _ = g.call.Failures(); strings.Contains(f.Message, "key") || !strings.HasSuffix(f.Message, "word …") {
		t.Errorf("the message ends with %q", f.Message[max(0, len(f.Message)-60):])
	}
}

// A report may be as large as the guest's memory, and the guest cannot be stopped while it is read.
func TestOnlyTheBeginningOfALongReportIsRead(t *testing.T) {
	for lines, want := range map[int]int{100: 1, 40_000: 0} {
		g := newGuest(t, hostabi.Limits{})
		g.do("log", 4, "error\n"+strings.Repeat("\n", lines)+"    at f (a.c:1)")
		g.do("response_error", 500, "handler_failed", "")
		if f, _ := g.call.Failures(); f == nil || len(f.Frames) != want {
			t.Errorf("%d lines: the failure is %+v, want %d frames", lines, f, want)
		}
	}
}
