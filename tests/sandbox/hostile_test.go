package sandbox_test

import (
	"encoding/json"
	"strings"
	"sync"
	"testing"
	"time"

	"runner.example/tests/harness"
)

func TestMisbehavingHandlersFailAloneAndLeaveNoState(t *testing.T) {
	a := harness.NewApp(t, harness.HostileSchema, "", "echo", "hostile")
	s := a.Serve()
	rows := []struct{ handler, want string }{
		{"clean", "200"},
		{"loop", "504 handler_timeout"},
		{"loopAfterAnswer", "504 handler_timeout"},
		{"loopInCalls", "504 handler_timeout"},
		{"recurse", "500 handler_failed"},
		{"trap", "500 handler_failed"},
		{"trapAfterAnswer", "500 handler_failed"},
		{"divide", "500 handler_failed"},
		{"nothing", "500 handler_failed"},
		{"exit0", "500 handler_failed"},
		{"exit1", "500 handler_failed"},
		{"exitAfterAnswer", "200"},
		{"grow", "500 handler_out_of_memory"},
		{"growAndAnswer", "200"},
		{"outOfBounds", "500 handler_failed"},
		{"pointers", "200"},
		{"flood", "200"},
		{"calls", "200"},
	}
	for _, row := range rows {
		t.Run(row.handler, func(t *testing.T) {
			got := s.Do("GET", "/"+row.handler, "")
			if text := harness.CheckAnswer(t, got); text != row.want {
				t.Errorf("%s: %s, want %s\n%s", row.handler, text, row.want, s.Stderr.String())
			}
			for _, leak := range []string{"wasm", "stack", "unreachable", "wazero", "hostile", ".go:"} {
				if strings.Contains(harness.MaskedID.ReplaceAllString(got.Body, "ID"), leak) {
					t.Errorf("the response reveals %q: %s", leak, got.Body)
				}
			}
			if next := s.Do("GET", "/clean", ""); next.Status != 200 {
				t.Errorf("the next request was not clean: %d", next.Status)
			}
		})
	}
	log := s.Stderr.String()
	if !strings.Contains(log, "unreachable") {
		t.Errorf("the log does not say why a handler trapped:\n%s", log)
	}
}

func TestFailingHandlersDoNotAffectOthers(t *testing.T) {
	a := harness.NewApp(t, harness.HostileSchema, "", "echo", "hostile")
	s := a.Serve()
	var others sync.WaitGroup
	for _, bad := range []string{"loop", "trap", "grow", "exit1"} {
		others.Go(func() {
			for range 5 {
				if _, err := s.Try("GET", "/"+bad, ""); err != nil {
					t.Error(err)
				}
			}
		})
	}
	for range 100 {
		if got := s.Do("GET", "/clean", ""); got.Status != 200 {
			t.Fatalf("a clean request beside noisy ones: %d %s", got.Status, got.Body)
		}
	}
	others.Wait()
}

func TestNothingLeaksOverManyRequests(t *testing.T) {
	rounds := 300
	if harness.Soak {
		rounds = 20_000
	}
	a := harness.NewApp(t, harness.HostileSchema, "", "echo", "hostile")
	s := a.Serve()
	handlers := []string{"clean", "trap", "nothing", "exit1", "growAndAnswer", "outOfBounds", "hello"}
	for _, h := range handlers {
		s.Do("GET", "/"+h, "")
	}
	before := s.Resources()
	for i := range rounds {
		s.Do("GET", "/"+handlers[i%len(handlers)], "")
	}
	after := s.Resources()
	if after.Mappings > before.Mappings+50 || after.Files > before.Files+10 || after.Bytes > before.Bytes+200<<20 {
		t.Errorf("after %d requests %+v, before %+v", rounds, after, before)
	}
	t.Logf("%d requests: %+v before, %+v after", rounds, before, after)
}

// guestLines returns the log lines of guests.
func guestLines(s *harness.Server, t *testing.T) (lines []map[string]any) {
	t.Helper()
	for line := range strings.Lines(s.Stderr.String()) {
		var l map[string]any
		if err := json.Unmarshal([]byte(line), &l); err != nil {
			t.Errorf("a log line is not JSON: %q", line)
			continue
		}
		if l["source"] == "guest" {
			lines = append(lines, l)
		}
	}
	return lines
}

func TestALogFloodIsLimited(t *testing.T) {
	s := harness.NewApp(t, harness.HostileSchema, "", "echo", "hostile").Serve()
	s.Do("GET", "/flood", "")
	s.Stop()
	lines := guestLines(s, t)
	if len(lines) != 65 {
		t.Fatalf("%d lines of the guest, want 64 and one that counts the rest", len(lines))
	}
	if last := lines[64]; last["msg"] != "436 lines dropped" {
		t.Errorf("the last line is %v, want it to count 436 dropped lines", last)
	}
}

func TestLogLinesCannotBeForged(t *testing.T) {
	s := harness.NewApp(t, harness.HostileSchema, "", "echo", "hostile").Serve()
	forged := "a\n{\"level\":\"ERROR\",\"msg\":\"forged\"}\r\n\x1b[31mred\x00"
	got := s.Do("POST", "/say", forged, "X-Log: header line")
	s.Stop()
	lines := guestLines(s, t)
	if len(lines) != 2 {
		t.Fatalf("%d lines of the guest, want 2:\n%s", len(lines), s.Stderr.String())
	}
	for _, l := range lines {
		if l["requestId"] != got.Header.Get("X-Request-Id") {
			t.Errorf("line %v is not under request %s", l, got.Header.Get("X-Request-Id"))
		}
	}
	if strings.Contains(s.Stderr.String(), "\x1b") || strings.Contains(s.Stderr.String(), "\x00") {
		t.Error("a control character reached the log")
	}
}

// A request that waits longer than queue_wait gets 503.
func TestOverloadAnswers503(t *testing.T) {
	a := harness.NewApp(t, strings.ReplaceAll(harness.HostileSchema, "timeout: 300ms", "timeout: 5s"), "[sandbox]\ninstances = 1\ncpu = \"60s\"\nqueue_wait = \"50ms\"\n", "echo", "hostile")
	s := a.Serve()
	busy := make(chan harness.Answer, 1)
	go func() {
		for { // until it gets the sandbox, which /hello sometimes holds
			got, err := s.Try("GET", "/loop", "")
			if err != nil {
				t.Error(err)
			}
			if err != nil || got.Status != 503 {
				busy <- got
				return
			}
		}
	}()
	deadline := time.Now().Add(harness.Timeout)
	for {
		got := s.Do("GET", "/hello", "")
		if got.Status == 503 {
			if p := got.Problem(t); p.Code != "overloaded" || got.Header.Get("Retry-After") != "1" {
				t.Errorf("%+v, Retry-After %q", p, got.Header.Get("Retry-After"))
			}
			break
		}
		if time.Now().After(deadline) {
			t.Fatal("the only sandbox is in use, and no request was refused")
		}
	}
	if got := <-busy; got.Status != 504 {
		t.Errorf("the busy one: %d", got.Status)
	}
	if got := s.Do("GET", "/hello", ""); got.Status != 200 {
		t.Errorf("afterwards: %d", got.Status)
	}
}

// Expensive work of the host for a guest is interrupted: the handler ends at its deadline.
func TestExpensiveHostCallsEndAtTheDeadline(t *testing.T) {
	s := harness.NewApp(t, `
routes("/", auth: none, rateLimit: none, timeout: 200ms) {
  GET /hello -> hello
  GET /headers -> bigHeaders
  GET /lines -> manyLines
  GET /operation -> bigOperation
}
`, "", "echo", "greedy").Serve()
	for _, path := range []string{"/headers", "/lines", "/operation"} {
		began := time.Now()
		got := s.Do("GET", path, "")
		if took := time.Since(began); got.Status != 504 || took > harness.Timeout/3 {
			t.Errorf("%s: %d after %s", path, got.Status, took)
		}
	}
	if got := s.Do("GET", "/hello", ""); got.Status != 200 {
		t.Errorf("afterwards: %d", got.Status)
	}
}
