package sandbox_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"runner.example/tests/harness"
)

// slowHandlers is how many handlers of the guest "crowd" attackers call.
const slowHandlers = 40

// crowdApp is an app with a healthy handler and many that can be slow, which may reach a service.
func crowdApp(t *testing.T, origin, settings string) *harness.App {
	t.Helper()
	var routes strings.Builder
	for i := range slowHandlers {
		fmt.Fprintf(&routes, "  POST /slow%d -> slow%[1]d\n", i)
	}
	return harness.NewApp(t, fmt.Sprintf("outbound { allow: [%q] }\nroutes(\"/\", auth: none, rateLimit: none) {\n  POST /quick -> quick\n%s}\n", origin, routes.String()),
		"[outbound]\nallow_private = true\n"+settings, "crowd")
}

// clientAt returns a client with an address of its own.
func clientAt(address string) *http.Client {
	dialer := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(address)}}
	return &http.Client{Transport: &http.Transport{DialContext: dialer.DialContext, MaxIdleConnsPerHost: 256}, Timeout: harness.Timeout}
}

// post returns the status of an answer; 0: there was none.
func post(ctx context.Context, c *http.Client, url, body string) (status int, took time.Duration, err error) {
	req, err := http.NewRequestWithContext(ctx, "POST", url, strings.NewReader(body))
	if err != nil {
		return 0, 0, err
	}
	began := time.Now()
	res, err := c.Do(req)
	if err != nil {
		return 0, 0, err
	}
	defer res.Body.Close()
	_, err = io.Copy(io.Discard, res.Body)
	return res.StatusCode, time.Since(began), err
}

// An attack is a number of requests that are always in progress: when one ends, the next follows.
type attack struct {
	name     string
	requests int
	handlers int
	callers  int                // with addresses of their own
	body     func(n int) string // of the n-th request
	leaves   time.Duration      // after which each client closes its connection; 0: it waits
}

// run attacks a server until ctx ends.
func (a attack) run(ctx context.Context, s *harness.Server) {
	clients := make([]*http.Client, a.callers)
	for i := range clients {
		clients[i] = clientAt(fmt.Sprintf("127.0.%d.%d", 1+i/200, 1+i%200))
	}
	var sent atomic.Int64
	var requests sync.WaitGroup
	for i := range a.requests {
		requests.Go(func() {
			for ctx.Err() == nil {
				own, cancel := ctx, context.CancelFunc(func() {})
				if a.leaves > 0 {
					own, cancel = context.WithTimeout(ctx, a.leaves)
				}
				n := int(sent.Add(1)) - 1
				_, _, _ = post(own, clients[i%a.callers], fmt.Sprintf("%s/slow%d", s.URL, n%a.handlers), a.body(n))
				cancel()
			}
		})
	}
	requests.Wait()
	for _, c := range clients {
		c.CloseIdleConnections()
	}
}

// Whatever one caller does, or any number of slow handlers, the requests of another caller to a
// handler whose runs are short are answered. The long form wants that soon, too.
func TestSlowHandlersDoNotDelayQuickOnes(t *testing.T) {
	const handlersThatLoop = 16
	length := 400 * time.Millisecond
	if harness.Soak {
		length = 12 * time.Second // the loops end after 10 s
	}
	service := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }))
	t.Cleanup(service.Close)
	always := func(body string) func(int) string { return func(int) string { return body } }
	const sleeps = `s{"seconds":9}`
	loops, fetches := always("l"), always(fmt.Sprintf(`f{"url":%q}`, service.URL+"/"))
	alternating := func(n int) string { return []string{"q", "l"}[n/handlersThatLoop%2] }
	for _, a := range []attack{
		{"one caller, a loop in each of 16 handlers", 16, handlersThatLoop, 1, loops, 0},
		{"one caller, a loop in each of 16 handlers, who hangs up", 16, handlersThatLoop, 1, loops, 20 * time.Millisecond},
		{"one caller, short and endless requests in turn to 16 handlers", 48, handlersThatLoop, 1, alternating, 0},
		{"100 callers, loops in 40 handlers", 100, slowHandlers, 100, loops, 0},
		{"200 callers who sleep in 40 handlers", 200, slowHandlers, 200, always(sleeps), 0},
		{"one caller who sleeps in 40 handlers", 200, slowHandlers, 1, always(sleeps), 0},
		{"one caller, 16 handlers that fetch from a hanging service", 200, 16, 1, fetches, 0},
		{"100 callers, 16 handlers that fetch from a hanging service", 200, 16, 100, fetches, 0},
		{"100 callers who sleep with 57 MiB in 40 handlers", 100, slowHandlers, 100, always("g" + sleeps[1:]), 0},
	} {
		t.Run(a.name, func(t *testing.T) {
			s := crowdApp(t, service.URL, "").Serve()
			healthy := clientAt("127.0.0.1")
			quick := func() (int, time.Duration) {
				status, took, err := post(t.Context(), healthy, s.URL+"/quick", "q")
				if err != nil {
					t.Fatal(err)
				}
				return status, took
			}
			quick()
			ctx, stop := context.WithCancel(t.Context())
			var attackers sync.WaitGroup
			attackers.Go(func() { a.run(ctx, s) })
			<-time.After(length / 5)
			var times []time.Duration
			refused := 0
			for began := time.Now(); time.Since(began) < length; <-time.After(time.Millisecond) {
				status, took := quick()
				if times = append(times, took); status != 200 {
					refused++
				}
			}
			stop()
			attackers.Wait()
			healthy.CloseIdleConnections()
			slices.Sort(times)
			p99 := times[len(times)*99/100]
			t.Logf("%d of %d requests are refused (%.1f %%); p99 %s, longest %s", refused, len(times), 100*float64(refused)/float64(len(times)), p99, times[len(times)-1])
			if refused > 0 {
				t.Errorf("%d of %d requests to a healthy handler are refused", refused, len(times))
			}
			if harness.Soak && p99 > 250*time.Millisecond {
				t.Errorf("p99 is %s, want less than 250ms", p99)
			}
			s.Kill()
		})
	}
}

// Requests of a caller that take too long count for all handlers together, also behind a proxy. A
// handler with such a request refuses this caller then; other handlers, and other callers, are
// not affected.
func TestFailuresOfACallerCountOverAllHandlers(t *testing.T) {
	s := crowdApp(t, "https://unused.example", "[sandbox]\ncpu = \"100ms\"\n[front]\ntrusted_proxies = [\"127.0.0.1\"]\n").Serve()
	answers := func(who, path, body, want string) {
		t.Helper()
		if got := harness.CheckAnswer(t, s.Do("POST", path, body, "X-Forwarded-For: "+who)); got != want {
			t.Errorf("%s gets %s from %s, want %s", who, got, path, want)
		}
	}
	const ada, bob = "198.51.100.1", "198.51.100.2"
	for i := range 5 {
		path := fmt.Sprintf("/slow%d", i)
		answers(ada, path, "l", "504 handler_timeout")
		if i < 4 {
			answers(ada, path, "q", "200")
		}
	}
	for i := range 5 {
		path := fmt.Sprintf("/slow%d", i)
		answers(ada, path, "q", "503 handler_unavailable")
		answers(bob, path, "q", "200")
	}
	answers(ada, "/slow5", "q", "200")
	answers(ada, "/slow5", "l", "504 handler_timeout")
	answers(ada, "/slow5", "q", "503 handler_unavailable")
	answers(ada, "/quick", "q", "200")
}
