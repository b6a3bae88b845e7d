package http_test

import (
	"fmt"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"runner.example/tests/harness"
)

const limitedSchema = `
apiKeys { scopes: { reader: @system("reader") { @grant read on Thing } } }
routes("/v1", auth: apiKey(reader), rateLimit: 600/hour) {
  GET /a -> hello
  GET /b -> hello
}
`

// The burst ends long before the window of an hour. In each pattern 600 requests pass and
// the next one does not.
func TestRequest601OfTheWindowIsRefused(t *testing.T) {
	patterns := map[string]func(s *harness.Server, token string, n int) int{
		"one after the other": func(s *harness.Server, token string, n int) (passed int) {
			for i := range n {
				if s.Get("/v1/"+"ab"[i%2:i%2+1], token).Status == 200 {
					passed++
				}
			}
			return passed
		},
		"at once": func(s *harness.Server, token string, n int) int {
			var passed atomic.Int64
			var callers sync.WaitGroup
			for range 50 {
				callers.Go(func() {
					for range n / 50 {
						if got, err := s.Try("GET", "/v1/a", "", "Authorization: Bearer "+token); err == nil && got.Status == 200 {
							passed.Add(1)
						}
					}
				})
			}
			callers.Wait()
			return int(passed.Load())
		},
		"pipelined": func(s *harness.Server, token string, n int) int {
			one := "GET /v1/b HTTP/1.1\r\nHost: x\r\nX-API-Key: " + token + "\r\n"
			return strings.Count(s.Raw(strings.Repeat(one+"\r\n", n-1)+one+"Connection: close\r\n\r\n", harness.Timeout), "HTTP/1.1 200 OK")
		},
	}
	a := harness.NewApp(t, limitedSchema, "", "echo")
	s := a.Serve()
	for name, pattern := range patterns {
		t.Run(name, func(t *testing.T) {
			token := a.Token("reader")
			passed := pattern(s, token, 650)
			if passed != 600 {
				t.Errorf("%d requests passed, want 600", passed)
			}
			got := s.Get("/v1/a", token)
			if got.Status != 429 || got.Problem(t).Code != "rate_limited" {
				t.Errorf("the next request: %d", got.Status)
			}
			var wait int
			if _, err := fmt.Sscan(got.Header.Get("Retry-After"), &wait); err != nil || wait < 1 || wait > 3600 {
				t.Errorf("Retry-After %q", got.Header.Get("Retry-After"))
			}
		})
	}
}

const publicSchema = `
apiKeys { scopes: { reader: @system("reader") { @grant read on Thing } } }
routes("/public", auth: none, rateLimit: 5/day) { GET /a -> hello }
routes("/v1", auth: apiKey(reader), rateLimit: 20/minute) { GET /b -> hello }
routes("/hooks", auth: none, rateLimit: 10/hour by ip) { GET /c -> hello }
`

// More addresses than there are counters call a public route. Callers of other routes are
// not affected, and new addresses are still served.
func TestManyAddressesOnOneRouteDoNotExhaustOtherLimits(t *testing.T) {
	counters, addresses := 1000, 1010
	if os.Getenv("RUNNER_SOAK") != "" {
		counters, addresses = 100_000, 101_000
	}
	a := harness.NewApp(t, publicSchema, fmt.Sprintf("[limit]\ncounters = %d\n[front]\ntrusted_proxies = [\"127.0.0.1/32\"]\n", counters), "echo")
	tokens := []string{a.Token("reader"), a.Token("reader"), a.Token("reader")}
	s := a.Serve()
	from := func(i int) string { return fmt.Sprintf("10.%d.%d.%d", i>>16, i>>8&255, i&255) }
	const batch = 500
	for i := 0; i < addresses; i += batch {
		var all strings.Builder
		n := min(batch, addresses-i)
		for j := range n {
			fmt.Fprintf(&all, "GET /public/a HTTP/1.1\r\nHost: x\r\nX-Forwarded-For: %s\r\n", from(i+j))
			if j == n-1 {
				all.WriteString("Connection: close\r\n")
			}
			all.WriteString("\r\n")
		}
		if passed := strings.Count(s.Raw(all.String(), harness.Timeout), "HTTP/1.1 200 OK"); passed < n-n/100 {
			t.Fatalf("%d of %d new addresses passed, after %d others", passed, n, i)
		}
	}
	for _, token := range tokens {
		for i := range 20 {
			if got := s.Get("/v1/b", token); got.Status != 200 {
				t.Fatalf("request %d of a key: %d", i+1, got.Status)
			}
		}
		if got := s.Get("/v1/b", token); got.Status != 429 {
			t.Errorf("request 21 of a key: %d", got.Status)
		}
	}
	for i := range 10 {
		if got := s.Do("GET", "/hooks/c", "", "X-Forwarded-For: 192.0.2.1"); got.Status != 200 {
			t.Fatalf("request %d of an address on another route: %d", i+1, got.Status)
		}
	}
	for i := range 5 {
		if got := s.Do("GET", "/public/a", "", "X-Forwarded-For: 192.0.2.2"); got.Status != 200 {
			t.Fatalf("request %d of a new address: %d", i+1, got.Status)
		}
	}
	if got := s.Do("GET", "/public/a", "", "X-Forwarded-For: 192.0.2.2"); got.Status != 429 {
		t.Errorf("request 6 of an address: %d", got.Status)
	}
}
