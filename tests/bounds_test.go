package tests

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"
)

const boundsSchema = `
apiKeys { scopes: { admin: @system("admin") { @grant read on Thing } } }
routes("/", auth: none, rateLimit: none) {
  GET /pages -> pages
  GET /nap -> nap
  GET /growAndNap -> growAndNap
  GET /work -> work
  GET /quickWork -> work (timeout: 20ms)
  GET /calls -> calls
  POST /bytes -> bytes
  GET /operations -> operations (auth: apiKey(admin))
  GET /answer -> answer
  GET /lines -> lines
}
`

// Every bound of a handler is a key of runner.toml, or the route's, and bites:
// what is enough for a request by default is refused when the key says less.
func TestEveryBoundOfAHandlerBites(t *testing.T) {
	rows := []struct {
		key, path string
		twice     bool   // two requests at once
		want      string // of one of them
	}{
		{"[sandbox]\nmemory = \"1mb\"", "/pages", false, "500 handler_out_of_memory"},
		{"[sandbox]\nmemory = \"2mb\"\ntotal_memory = \"2mb\"", "/growAndNap", true, "500 handler_out_of_memory"},
		{"[sandbox]\ncpu = \"10ms\"", "/work", false, "504 handler_timeout"},
		{"[runtime]\ntimeout = \"20ms\"", "/work", false, "504 handler_timeout"},
		{"", "/quickWork", false, "504 handler_timeout"},
		{"[sandbox]\ninstances = 1\nqueue_wait = \"1ms\"", "/work", true, "503 overloaded"},
		{"[sandbox]\nhost_calls = 9", "/calls", false, "500 handler_failed"},
		{"[sandbox]\nmoved_bytes = \"2kb\"", "/bytes", false, "500 handler_failed"},
		{"[sandbox]\nstore_operations = 2", "/operations", false, "500 handler_failed"},
		{"[sandbox]\nresponse = \"1kb\"", "/answer", false, "500 handler_failed"},
	}
	run := func(t *testing.T, toml, path string, twice bool) (answers []string) {
		a := newApp(t, boundsSchema, toml, "bounds")
		s := a.serve()
		var headers []string
		method, body := "GET", ""
		switch path {
		case "/operations":
			headers = []string{"X-API-Key: " + a.token("admin")}
		case "/bytes":
			method, body = "POST", strings.Repeat("b", 1000)
		}
		n := 1
		if twice {
			n = 2
		}
		got := make([]answer, n)
		var all sync.WaitGroup
		for i := range got {
			all.Go(func() {
				var err error
				if got[i], err = s.try(method, path, body, headers...); err != nil {
					t.Error(err)
				}
			})
		}
		all.Wait()
		for _, a := range got {
			answers = append(answers, checkAnswer(t, a))
		}
		return answers
	}
	for _, row := range rows {
		name := strings.NewReplacer("[", "", "]", "", "\n", " ", "\"", "").Replace(row.key)
		t.Run(name+" "+row.path, func(t *testing.T) {
			t.Parallel()
			for end := time.Now().Add(patient); ; { // on a busy machine two are not always at once
				got := strings.Join(run(t, row.key+"\n", row.path, row.twice), ", ")
				if strings.Contains(got, row.want) {
					return
				}
				if !row.twice || time.Now().After(end) {
					t.Fatalf("answers %q, want %q", got, row.want)
				}
			}
		})
	}
	t.Run("defaults", func(t *testing.T) {
		t.Parallel()
		for _, row := range rows {
			if row.path == "/quickWork" {
				continue
			}
			for _, got := range run(t, "", row.path, row.twice) {
				if got != "200" {
					t.Errorf("%s with the defaults: %s", row.path, got)
				}
			}
		}
	})
}

func TestLinesOfAHandlerAreBounded(t *testing.T) {
	for _, row := range []struct {
		key  string
		want int // lines, with the one that counts the rest
	}{{"", 20}, {"[sandbox]\nlog_lines = 3\n", 4}, {"[sandbox]\nlog_bytes = \"100b\"\n", 5}} {
		s := newApp(t, boundsSchema, row.key, "bounds").serve()
		s.do("GET", "/lines", "")
		s.stop()
		if lines := s.guestLines(t); len(lines) != row.want {
			t.Errorf("with %q there are %d lines, want %d: %v", row.key, len(lines), row.want, lines)
		}
	}
}

func TestABreakerCanBeLeftOut(t *testing.T) {
	s := newApp(t, boundsSchema, "[sandbox]\nbreaker = false\n", "bounds").serve()
	for i := range 8 {
		if got := checkAnswer(t, s.do("GET", "/quickWork", "")); got != "504 handler_timeout" {
			t.Errorf("request %d: %s", i, got)
		}
	}
}

func TestMemoryBeyondWhatAModuleCanHaveIsRefused(t *testing.T) {
	for _, size := range []string{"4096mb", "4gb", "100kb", "0b"} {
		a := newApp(t, boundsSchema, fmt.Sprintf("[sandbox]\nmemory = %q\n", size), "bounds")
		r := a.run("serve", "--listen", "127.0.0.1:0")
		if r.status == 0 || !strings.Contains(r.stderr, "[sandbox] memory") || strings.Count(strings.TrimSpace(r.stderr), "\n") > 1 {
			t.Errorf("%s: exit status %d\n%s", size, r.status, r.stderr)
		}
	}
}
