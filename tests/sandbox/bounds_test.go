package sandbox_test

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"

	"runner.example/tests/harness"
)

const boundsSchema = `
apiKeys { scopes: { admin: @system("admin") { @grant read on Thing } } }
routes("/", auth: none, rateLimit: none) {
  GET /pages -> pages
  GET /nap -> nap
  GET /growAndNap -> growAndNap
  GET /work -> work
  GET /quickWork -> work (timeout: 20ms)
  GET /longWork -> longWork (timeout: 60s)
  GET /calls -> calls
  POST /bytes -> bytes
  GET /operations -> operations (auth: apiKey(admin))
  GET /answer -> answer
  GET /large -> large
  GET /largeAndNap -> largeAndNap
  GET /lines -> lines
}
`

// Every limit of a handler is a setting of runner.toml or of its route. A request that
// fits the defaults is refused when the setting is lower.
func TestEveryLimitOfAHandlerHolds(t *testing.T) {
	rows := []struct {
		settings, path string
		beside         string // path of another request that is served meanwhile
		want           string
	}{
		{"[sandbox]\nmemory = \"1mb\"", "/pages", "", "500 handler_out_of_memory"},
		{"[sandbox]\nmemory = \"2mb\"\ntotal_memory = \"2mb\"", "/pages", "/growAndNap", "500 handler_out_of_memory"},
		{"[sandbox]\ncpu = \"10ms\"", "/work", "", "504 handler_timeout"},
		{"[runtime]\ntimeout = \"20ms\"", "/work", "", "504 handler_timeout"},
		{"", "/quickWork", "", "504 handler_timeout"},
		{"[sandbox]\ninstances = 1\nqueue_wait = \"1ms\"\ncpu = \"60s\"", "/longWork", "/longWork", "503 overloaded"},
		{"[sandbox]\nhost_calls = 9", "/calls", "", "500 handler_failed"},
		{"[sandbox]\nmoved_bytes = \"2kb\"", "/bytes", "", "500 handler_failed"},
		{"[sandbox]\nstore_operations = 2", "/operations", "", "500 handler_failed"},
		{"[sandbox]\nresponse = \"1kb\"", "/answer", "", "500 handler_failed"},
		{"[front]\nanswer_memory = \"8mb\"", "/largeAndNap", "/largeAndNap", "503 overloaded"},
	}
	run := func(t *testing.T, settings, path, beside string) string {
		a := harness.NewApp(t, boundsSchema, settings, "bounds")
		s := a.Serve()
		if beside != "" {
			first := make(chan harness.Answer, 1)
			go func() {
				got, err := s.Try("GET", beside, "")
				if err != nil {
					t.Error(err)
				}
				first <- got
			}()
			defer func() {
				if got := harness.CheckAnswer(t, <-first); got != "200" {
					t.Errorf("the first request to %s: %s", beside, got)
				}
			}()
			s.WaitForOutput(`"msg":"begun"`)
		}
		var headers []string
		method, body := "GET", ""
		switch path {
		case "/operations":
			headers = []string{"X-API-Key: " + a.Token("admin")}
		case "/bytes":
			method, body = "POST", strings.Repeat("b", 1000)
		}
		return harness.CheckAnswer(t, s.Do(method, path, body, headers...))
	}
	for _, row := range rows {
		name := strings.NewReplacer("[", "", "]", "", "\n", " ", "\"", "").Replace(row.settings)
		t.Run(name+" "+row.path, func(t *testing.T) {
			t.Parallel()
			if got := run(t, row.settings+"\n", row.path, row.beside); got != row.want {
				t.Errorf("the response is %q, want %q", got, row.want)
			}
		})
	}
	t.Run("defaults", func(t *testing.T) {
		t.Parallel()
		for _, row := range rows {
			if row.path == "/quickWork" || row.path == "/longWork" {
				continue
			}
			if got := run(t, "", row.path, row.beside); got != "200" {
				t.Errorf("%s with the defaults: %s", row.path, got)
			}
		}
	})
}

func TestLogLinesOfAHandlerAreLimited(t *testing.T) {
	for _, row := range []struct {
		key  string
		want int // lines, with the last one, which counts the dropped lines
	}{{"", 20}, {"[sandbox]\nlog_lines = 3\n", 4}, {"[sandbox]\nlog_bytes = \"800b\"\n", 5}} {
		s := harness.NewApp(t, boundsSchema, row.key, "bounds").Serve()
		s.Do("GET", "/lines", "")
		s.Stop()
		if lines := guestLines(s, t); len(lines) != row.want {
			t.Errorf("with %q there are %d lines, want %d: %v", row.key, len(lines), row.want, lines)
		}
	}
}

func TestTheBreakerCanBeDisabled(t *testing.T) {
	s := harness.NewApp(t, boundsSchema, "[sandbox]\nbreaker = false\n", "bounds").Serve()
	for i := range 8 {
		if got := harness.CheckAnswer(t, s.Do("GET", "/quickWork", "")); got != "504 handler_timeout" {
			t.Errorf("request %d: %s", i, got)
		}
	}
}

// requestsFrom returns a function that sends requests from a loopback address.
func requestsFrom(s *harness.Server, t *testing.T, address string) func(path string) string {
	t.Helper()
	dialer := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(address)}}
	client := &http.Client{Transport: &http.Transport{DialContext: dialer.DialContext, DisableKeepAlives: true}, Timeout: harness.Timeout}
	return func(path string) string {
		t.Helper()
		res, err := client.Get(s.URL + path)
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		text, err := io.ReadAll(res.Body)
		if err != nil {
			t.Fatal(err)
		}
		return harness.CheckAnswer(t, harness.Answer{Status: res.StatusCode, Header: res.Header, Body: string(text)})
	}
}

func TestTheBreakerOpensForOneCallerBeforeOthers(t *testing.T) {
	a := harness.NewApp(t, `routes("/", auth: none, rateLimit: none) { GET /work -> work }`, "[sandbox]\ncpu = \"200ms\"\n")
	a.Write("handlers/work.ts", `
		import { ok, type RouteRequest } from "@runner/sdk";
		export function work(req: RouteRequest) {
			while (req.query.endless) {}
			return ok();
		}`)
	a.Must("build")
	s := a.Serve()
	guilty, other := requestsFrom(s, t, "127.0.0.2"), requestsFrom(s, t, "127.0.0.3")
	strike := func(get func(string) string) {
		t.Helper()
		if got := get("/work?endless=1"); got != "504 handler_timeout" {
			t.Fatalf("a request that takes too long: %s", got)
		}
	}
	for range 5 {
		strike(guilty)
	}
	for range 10 {
		if got := guilty("/work"); got != "503 handler_unavailable" {
			t.Errorf("the caller whose requests took too long: %s", got)
		}
		if got := other("/work"); got != "200" {
			t.Errorf("another caller: %s", got)
		}
	}
	for n := range 4 {
		strike(requestsFrom(s, t, fmt.Sprintf("127.0.0.%d", 10+n)))
	}
	if got := other("/work"); got != "503 handler_unavailable" {
		t.Errorf("after failures of five callers: %s", got)
	}
}

func TestAnImpossibleMemoryLimitIsRefused(t *testing.T) {
	for _, size := range []string{"4096mb", "4gb", "100kb", "0b"} {
		a := harness.NewApp(t, boundsSchema, fmt.Sprintf("[sandbox]\nmemory = %q\n", size), "bounds")
		r := a.Run("serve", "--listen", "127.0.0.1:0")
		if r.Status == 0 || !strings.Contains(r.Stderr, "[sandbox] memory") || strings.Count(strings.TrimSpace(r.Stderr), "\n") > 1 {
			t.Errorf("%s: exit status %d\n%s", size, r.Status, r.Stderr)
		}
	}
}
