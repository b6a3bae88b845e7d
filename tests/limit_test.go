package tests

import (
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

const limitedSchema = `
apiKeys { scopes: { reader: @system("reader") { @grant read on Thing } } }
routes("/v1", auth: apiKey(reader), rateLimit: 600/minute) {
  GET /a -> hello
  GET /b -> hello
}
`

// The window is a minute, the burst takes seconds: whatever the pattern, 600
// pass and the next one does not.
func TestRequest601OfTheMinuteIsRefused(t *testing.T) {
	patterns := map[string]func(s *server, token string, n int) int{
		"one after the other": func(s *server, token string, n int) (passed int) {
			for i := range n {
				if s.get("/v1/"+"ab"[i%2:i%2+1], token).status == 200 {
					passed++
				}
			}
			return passed
		},
		"at once": func(s *server, token string, n int) int {
			var passed atomic.Int64
			var callers sync.WaitGroup
			for range 50 {
				callers.Go(func() {
					for range n / 50 {
						if got, err := s.try("GET", "/v1/a", "", "Authorization: Bearer "+token); err == nil && got.status == 200 {
							passed.Add(1)
						}
					}
				})
			}
			callers.Wait()
			return int(passed.Load())
		},
		"pipelined": func(s *server, token string, n int) int {
			one := "GET /v1/b HTTP/1.1\r\nHost: x\r\nX-API-Key: " + token + "\r\n"
			return strings.Count(s.raw(strings.Repeat(one+"\r\n", n-1)+one+"Connection: close\r\n\r\n", patient), "HTTP/1.1 200 OK")
		},
	}
	a := newApp(t, limitedSchema, "", "echo")
	s := a.serve()
	for name, pattern := range patterns {
		t.Run(name, func(t *testing.T) {
			var token string
			var passed int
			for end, took := time.Now().Add(patientWithCompilers), time.Hour; took > 50*time.Second; {
				if time.Now().After(end) {
					t.Fatalf("the burst took %s: too slow to judge a window of a minute", took)
				}
				token = a.token("reader")
				started := time.Now()
				passed = pattern(s, token, 650)
				took = time.Since(started)
			}
			if passed != 600 {
				t.Errorf("%d requests passed, want 600", passed)
			}
			got := s.get("/v1/a", token)
			if got.status != 429 || got.problem(t).Code != "rate_limited" {
				t.Errorf("the next request: %d", got.status)
			}
			var wait int
			if _, err := fmt.Sscan(got.header.Get("Retry-After"), &wait); err != nil || wait < 1 || wait > 60 {
				t.Errorf("Retry-After %q", got.header.Get("Retry-After"))
			}
		})
	}
}
