package hostabi_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"runner.example/hostabi"
	"runner.example/hostabi/abi"
	"runner.example/internal/telemetry"
)

func TestHostCallBudget(t *testing.T) {
	t.Run("calls", func(t *testing.T) {
		g := newGuest(t, hostabi.Limits{})
		for i := range 1010 {
			want := int32(4)
			if i >= 1000 {
				want = limit
			}
			if n := g.raw("request_method", 0, 0); n != want {
				t.Fatalf("call %d: %d, want %d", i+1, n, want)
			}
		}
		spent(t, g)
	})
	t.Run("errors", func(t *testing.T) {
		g := newGuest(t, hostabi.Limits{HostCalls: 10})
		for i := range 20 {
			result, n := g.op("secret", `{"name":"NOPE"}`)
			want := denied
			if i >= 10 {
				want = limit
			}
			if n != want || result["message"] == "" {
				t.Fatalf("call %d: %d %v, want %d", i+1, n, result, want)
			}
			if want == limit && result["message"] != "a request may call the host at most 10 times" {
				t.Fatalf("the message is %q", result["message"])
			}
		}
		if n := g.raw("call_result", 0, room, roomBytes); n != limit {
			t.Errorf("the message, a second time: %d, want limit", n)
		}
		spent(t, g)
	})
	t.Run("bytes", func(t *testing.T) {
		g := newGuest(t, hostabi.Limits{MovedBytes: 1000})
		g.call.Request.Body = make([]byte, 300)
		g.call.Begin()
		if n := g.raw("request_body", 0, room, 300); n != 300 {
			t.Fatalf("the body, which is not counted: %d", n)
		}
		for i := range 5 {
			want := int32(300)
			if i >= 3 {
				want = limit // also for less than what is left
			}
			if n := g.raw("request_body", 0, room, 300); n != want {
				t.Fatalf("%d bytes, then 300: %d, want %d", 300*i, n, want)
			}
		}
		if n := g.raw("request_method", 0, 0); n != limit {
			t.Errorf("a call that moves nothing: %d, want limit", n)
		}
		spent(t, g)
	})
	t.Run("bytes in", func(t *testing.T) {
		g := newGuest(t, hostabi.Limits{MovedBytes: 1000})
		if result := g.do("call", "secret", strings.Repeat(" ", 2000)); result != limit {
			t.Errorf("arguments of 2,000 bytes: %d", result)
		}
		spent(t, g)
	})
	t.Run("store operations", func(t *testing.T) {
		g := newGuest(t, hostabi.Limits{StoreOps: 3})
		for i := range 5 {
			want := notFound
			if i >= 3 {
				want = limit
			}
			if result, n := g.op("apiKeys.get", `{"id":"key_x"}`); n != want {
				t.Fatalf("operation %d: %d %v, want %d", i+1, n, result, want)
			}
		}
		if result, n := g.op("secret", `{"name":"SIGNING_KEY"}`); n < 0 {
			t.Errorf("an operation that does not reach the store: %v", result)
		}
	})
}

// spent checks that every call fails except those that answer the request.
func spent(t *testing.T, g *guest) {
	t.Helper()
	for _, f := range abi.Functions() {
		answers := strings.HasPrefix(f.Name, "response_") || f.Name == "request_next"
		if f.Name == "call_result" {
			g.result(f.Name, -1) // the message of call, before it in the table
		}
		if n := g.raw(f.Name, make([]uint32, f.Words())...); f.Result && !answers && n != limit {
			t.Errorf("%s: %d, want limit", f.Name, n)
		}
	}
	if g.call.KeepsWrites() {
		t.Error("keep_writes works when a budget is spent")
	}
	if n := g.do("response_header", "x-a", "1"); n != 0 {
		t.Errorf("response_header: %d", n)
	}
	if n := g.do("response_send", 200, strings.Repeat("x", 5000)); n != 0 {
		t.Errorf("response_send: %d", n)
	}
}

type logLine struct {
	Level, Msg, Source, RequestID, Route string
	Attempt                              int
}

func (g *guest) lines() (lines []logLine) {
	g.t.Helper()
	for text := range strings.Lines(g.log.String()) {
		var line logLine
		if err := json.Unmarshal([]byte(text), &line); err != nil {
			g.t.Fatalf("log line %q: %v", text, err)
		}
		lines = append(lines, line)
	}
	return lines
}

func TestALogLineNamesItsRequestAndHandler(t *testing.T) {
	g := newGuest(t, hostabi.Limits{})
	g.call.Attempt = 3
	for level, want := range map[int]string{-7: "DEBUG", 0: "DEBUG", 1: "INFO", 2: "WARN", 3: "ERROR", 99: "ERROR"} {
		g.log.Reset()
		g.do("log", level, "hallo wörld")
		lines := g.lines()
		if len(lines) != 1 || lines[0] != (logLine{want, "hallo wörld", "guest", g.call.Request.ID, "/v1/things/:id", 3}) {
			t.Errorf("level %d: %+v", level, lines)
		}
	}
}

func TestLogFlood(t *testing.T) {
	t.Run("lines", func(t *testing.T) {
		g := newGuest(t, hostabi.Limits{})
		for i := range 1000 {
			g.do("log", 1, fmt.Sprint("line ", i))
		}
		g.print(1, strings.Repeat("more\n", 500)+"and no end")
		g.call.End()
		lines := g.lines()
		if len(lines) != 65 || lines[63].Msg != "line 63" || lines[64].Msg != "1437 lines dropped" || lines[64].Level != "WARN" {
			t.Errorf("%d lines, the last is %+v", len(lines), lines[len(lines)-1])
		}
	})
	t.Run("bytes", func(t *testing.T) {
		g := newGuest(t, hostabi.Limits{})
		g.do("log", 1, strings.Repeat("a", 10<<10))
		g.do("log", 1, strings.Repeat("b", 10<<10))
		g.do("log", 1, "c")
		g.call.End()
		lines := g.lines()
		if len(lines) != 3 || len(lines[0].Msg) != 10<<10 || strings.Trim(lines[1].Msg, "b") != "…" || lines[2].Msg != "1 lines dropped" {
			t.Errorf("%d lines of %d, %d … bytes", len(lines), len(lines[0].Msg), len(lines[1].Msg))
		}
	})
	t.Run("one endless line", func(t *testing.T) {
		g := newGuest(t, hostabi.Limits{})
		for range 1000 {
			g.print(2, strings.Repeat("x", 1000))
		}
		g.call.End()
		lines := g.lines()
		if len(lines) != 1 || len(lines[0].Msg) < 15<<10 || strings.Trim(lines[0].Msg, "x") != "…" || lines[0].Level != "WARN" {
			t.Errorf("%d lines, the first of %d bytes", len(lines), len(lines[0].Msg))
		}
	})
	t.Run("a text outside of memory", func(t *testing.T) {
		g := newGuest(t, hostabi.Limits{})
		g.raw("log", 1, memoryBytes, 1)
		g.call.End()
		if lines := g.lines(); len(lines) != 1 || lines[0].Msg != "1 lines dropped" {
			t.Errorf("%+v", lines)
		}
	})
}

// The budget counts bytes of the log. Neither characters that are escaped there nor many
// short lines get around it.
func TestTheLogBudgetCountsWrittenBytes(t *testing.T) {
	const limit = 4 << 10
	texts := map[string]string{
		"plain": "x", "quotes": `"`, "backslashes": `\`, "line ends": "\n", "controls": "\x01", "letters": "ü", "not UTF-8": "\xff",
		"not printed": "\u200b", "private": "\U000f0001", "directions": "\u202e", "mixed": "a\"\n\u202e\u200bü\xff\U000f0001",
	}
	for _, format := range []string{"json", "text"} {
		for name, text := range texts {
			for _, each := range []int{0, 1, 100, 2000, 5000} {
				g := newGuest(t, hostabi.Limits{LogBytes: limit, LogLines: 1000})
				var log bytes.Buffer
				g.call.Host.Logger = telemetry.NewLogger(&log, telemetry.Options{Format: format})
				for range 200 {
					g.do("log", 1, strings.Repeat(text, each))
				}
				g.call.End()
				all := strings.TrimSuffix(log.String(), "\n")
				lines, count := all[:strings.LastIndexByte(all, '\n')+1], all[strings.LastIndexByte(all, '\n')+1:]
				if !strings.Contains(count, "lines dropped") || strings.Contains(lines, "lines dropped") {
					t.Fatalf("%s, %d × %s: the last line is %q", format, each, name, count)
				}
				if len(lines) > limit {
					t.Errorf("%s, %d × %s: %d bytes in the log, with a budget of %d", format, each, name, len(lines), limit)
				}
				if format == "json" && each >= 2000 && name != "not printed" && name != "private" && name != "mixed" && len(lines) < limit-32 {
					t.Errorf("%d × %s: %d bytes in the log, of a budget of %d", each, name, len(lines), limit)
				}
			}
		}
	}
}

func TestLogForging(t *testing.T) {
	g := newGuest(t, hostabi.Limits{})
	for text, want := range map[string]string{
		"x\n{\"level\":\"error\",\"msg\":\"forged\"}": `x\n{"level":"error","msg":"forged"}`,
		"a\r\x1b[2Jb\x00c\x7f\u0085":                  `a\r\x1b[2Jb\x00c\x7f\u0085`,
		"left\u202eright\u2066\u2028\u2029":           `left\u202eright\u2066\u2028\u2029`,
		"not\xffutf":                                  "not\ufffdutf",
		"tab\tend":                                    `tab\tend`,
		"plain text, ünïcödé 👩‍👧":                     "plain text, ünïcödé 👩‍👧",
	} {
		g.log.Reset()
		g.do("log", 1, text)
		if lines := g.lines(); len(lines) != 1 || lines[0].Msg != want || lines[0].Source != "guest" {
			t.Errorf("%q is logged as %+v, want %q", text, lines, want)
		}
	}
}
