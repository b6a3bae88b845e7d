package hostabi_test

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"runner.example/hostabi"
	"runner.example/hostabi/abi"
	"runner.example/hostabi/outbound"
	"runner.example/internal/deadline"
)

// serve starts a server that the guest's schema declares as api.example.com, and
// returns its origin.
func (g *guest) serve(handler http.HandlerFunc) string {
	g.t.Helper()
	server := httptest.NewUnstartedServer(handler)
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	server.EnableHTTP2 = true
	server.StartTLS()
	roots := x509.NewCertPool()
	roots.AddCert(server.Certificate())
	_, port, _ := strings.Cut(server.Listener.Addr().String(), ":")
	origin := "https://api.example.com:" + port
	origins, err := outbound.ParseOrigins([]string{origin})
	if err != nil {
		g.t.Fatal(err)
	}
	client := outbound.New(outbound.Options{AllowPrivate: true, Roots: roots, Resolve: func(context.Context, string) ([]netip.Addr, error) {
		return []netip.Addr{netip.MustParseAddr("127.0.0.1")}, nil
	}})
	g.call.Host.Origins, g.call.Host.Outbound = origins, client
	g.t.Cleanup(func() {
		g.call.End()
		client.Close()
		server.Close()
	})
	return origin
}

func TestAGuestFetches(t *testing.T) {
	g := newGuest(t, hostabi.Limits{})
	origin := g.serve(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		w.Header().Set("X-Saw", fmt.Sprintf("%s %s %q", r.Method, r.Header.Get("X-A"), body))
		if r.URL.Path == "/binary" {
			_, _ = w.Write([]byte{0xff, 0, 1})
			return
		}
		w.WriteHeader(http.StatusTeapot)
		fmt.Fprint(w, "h\u00e9 <\u2028>\n")
	})
	result, n := g.op("fetch", `{"url":"`+origin+`/x","method":"POST","headers":[["x-a","1"]],"body":{"base64":"/wA="},"timeout":2.5}`)
	if n < 0 || result["status"] != float64(418) || result["body"] != "h\u00e9 <\u2028>\n" ||
		!strings.Contains(fmt.Sprint(result["headers"]), `[x-saw POST 1 "\xff\x00"]`) {
		t.Errorf("%d %v", n, result)
	}
	result, n = g.op("fetch", `{"url":"`+origin+`/binary","method":null,"headers":null,"body":null}`)
	if body, _ := result["body"].(map[string]any); n < 0 || result["status"] != float64(200) || body["base64"] != "/wAB" {
		t.Errorf("%d %v", n, result)
	}
	if n := g.raw("response_send_result", 200, 0); n != 0 || !strings.HasPrefix(string(g.call.Response.Body), `{"status":200,`) {
		t.Errorf("the answer cannot be sent on: %d %s", n, g.call.Response.Body)
	}
}

// Values of headers are bytes (RFC 9110, section 5.5): a handler reads and sends them as text or one by one.
func TestAFetchHasHeadersAsTextOrByByte(t *testing.T) {
	g := newGuest(t, hostabi.Limits{})
	origin := g.serve(func(w http.ResponseWriter, r *http.Request) {
		w.Header()["X-Saw"] = []string{fmt.Sprintf("%x", r.Header.Get("X-A"))}
		w.Header()["X-Back"] = []string{"caf\xe9", "caf\u00e9"}
	})
	for _, row := range []struct{ more, want string }{
		{``, "[x-back caf\u00e9] [x-back caf\u00e9] [x-saw c3a9]"},
		{`,"headerBytes":true`, "[x-back caf\u00e9] [x-back caf\u00c3\u00a9] [x-saw e9]"},
	} {
		result, n := g.op("fetch", `{"url":"`+origin+`/x","headers":[["x-a","\u00e9"]]`+row.more+`}`)
		if n < 0 || !strings.Contains(fmt.Sprint(result["headers"]), row.want) {
			t.Errorf("with %q: %d %v, want %s", row.more, n, result, row.want)
		}
	}
	if result, n := g.op("fetch", `{"url":"`+origin+`/x","headers":[["x-a","\u20ac"]],"headerBytes":true}`); n != invalid {
		t.Errorf("a character that is not a byte: %d %v", n, result)
	}
}

// A fetch belongs to the trace of its request, unless the handler has set one. A long tracestate is dropped.
func TestAFetchPassesTheTraceOn(t *testing.T) {
	const parent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
	for name, row := range map[string]struct {
		headers string // of the fetch
		state   string // of the request
		want    string // tracestate of the fetch
		own     bool   // the handler's traceparent is sent
	}{
		"passed on":          {"", "vendor=1", "vendor=1", false},
		"the longest":        {"", "v=" + strings.Repeat("x", 510), "v=" + strings.Repeat("x", 510), false},
		"one byte too long":  {"", "v=" + strings.Repeat("x", 511), "", false},
		"the handler's":      {`,"headers":[["Traceparent","own"]]`, "vendor=1", "", true},
		"with other headers": {`,"headers":[["x-a","1"]]`, "vendor=1", "vendor=1", false},
	} {
		g := newGuest(t, hostabi.Limits{})
		var sent http.Header
		origin := g.serve(func(_ http.ResponseWriter, r *http.Request) { sent = r.Header.Clone() })
		g.call.Request.Traceparent = []byte(parent)
		g.call.Request.Headers = pairs("traceparent", parent, "tracestate", row.state)
		if _, n := g.op("fetch", `{"url":"`+origin+`/x"`+row.headers+`}`); n < 0 {
			t.Fatalf("%s: %d", name, n)
		}
		if got := sent.Get("tracestate"); got != row.want {
			t.Errorf("%s: the tracestate has %d bytes, want %d", name, len(got), len(row.want))
		}
		id, _, _ := strings.Cut(parent[3:], "-")
		switch got := sent.Get("traceparent"); {
		case row.own && got != "own":
			t.Errorf("%s: the traceparent is %q", name, got)
		case !row.own && (len(got) != len(parent) || !strings.HasPrefix(got, "00-"+id+"-") || got == parent):
			t.Errorf("%s: the traceparent is %q, want another part of trace %s", name, got, id)
		}
	}
}

func TestUnknownMembersOfAFetchAreRefused(t *testing.T) {
	g := newGuest(t, hostabi.Limits{})
	var hits atomic.Int32
	origin := g.serve(func(http.ResponseWriter, *http.Request) { hits.Add(1) })
	for args, want := range map[string]struct {
		n       int32
		message string
	}{
		`{}`:        {invalid, `member "url" is missing`},
		`{"url":7}`: {invalid, `member "url" must be a string`},
		`{"url":"` + origin + `","redirect":"x"}`:                        {invalid, `member "redirect" must be follow, manual or error`},
		`{"url":"` + origin + `","redirects":"x"}`:                       {invalid, `unknown member "redirects"`},
		`{"url":"` + origin + `","headers":{}}`:                          {invalid, `member "headers" must be a list`},
		`{"url":"` + origin + `","headers":[["a"]]}`:                     {invalid, `member "headers" must be a list`},
		`{"url":"` + origin + `","headers":[["a",null]]}`:                {invalid, `member "headers" must be a list`},
		`{"url":"` + origin + `","headers":[null]}`:                      {invalid, `member "headers" must be a list`},
		`{"url":"` + origin + `","headers":[["a",1]]}`:                   {invalid, `member "headers" must be a list`},
		`{"url":"` + origin + `","headers":[["host","x"]]}`:              {denied, `header "host" is set by the runner`},
		`{"url":"` + origin + `","headers":[["a","\r\nb: c"]]}`:          {invalid, `the value of header "a"`},
		`{"url":"` + origin + `","timeout":0}`:                           {invalid, `member "timeout" must be a number of seconds from 0.001 to 60`},
		`{"url":"` + origin + `","timeout":61}`:                          {invalid, `member "timeout"`},
		`{"url":"` + origin + `","timeout":"1s"}`:                        {invalid, `member "timeout"`},
		`{"url":"` + origin + `","body":1}`:                              {invalid, `member "body" must be a string`},
		`{"url":"` + origin + `","body":"x"}`:                            {invalid, `a GET has no body`},
		`{"url":"` + origin + `","method":"CONNECT"}`:                    {invalid, `the method must be one of`},
		`{"url":"` + origin + `","method":""}`:                           {invalid, `the method must be one of GET`},
		`{"url":"` + origin + `","method":"G T"}`:                        {invalid, `the method must be one of`},
		`{"url":"` + origin + `","headers":[["Proxy","http://x"]]}`:      {denied, `header "Proxy" is set by the runner`},
		`{"url":"https://api.example.com"}`:                              {denied, `https://api.example.com is not declared`},
		`{"url":"https://169.254.169.254/"}`:                             {denied, `https://169.254.169.254 is not declared`},
		`{"url":"http` + strings.TrimPrefix(origin, "https") + `"}`:      {denied, `http://api.example.com`},
		`{"url":"` + origin + strings.Repeat("/", 9000) + `"}`:           {tooLarge, `the url may have`},
		`{"url":"` + strings.Replace(origin, "://", "://a:b@", 1) + `"}`: {invalid, `the url must not hold a name or a password`},
	} {
		result, n := g.op("fetch", args)
		if n != want.n || !strings.HasPrefix(fmt.Sprint(result["message"]), "fetch: "+want.message) {
			t.Errorf("%.80s: %d %v, want %d %q", args, n, result, want.n, want.message)
		}
	}
	if len(g.call.Sent()) > 0 || hits.Load() != 0 {
		t.Errorf("something was sent: %v, %d", g.call.Sent(), hits.Load())
	}
}

func TestAFetchSelectsHowARedirectIsHandled(t *testing.T) {
	g := newGuest(t, hostabi.Limits{})
	origin := g.serve(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/" {
			http.Redirect(w, r, "/there", http.StatusFound)
		}
	})
	for redirect, want := range map[string]float64{"null": 200, `"follow"`: 200, `"manual"`: 302} {
		if result, n := g.op("fetch", `{"url":"`+origin+`/","redirect":`+redirect+`}`); n < 0 || result["status"] != want {
			t.Errorf("%s: %d %v", redirect, n, result)
		}
	}
	if result, n := g.op("fetch", `{"url":"`+origin+`/","redirect":"error"}`); n != int32(abi.Unavailable) {
		t.Errorf("error: %d %v", n, result)
	}
}

func TestTheHostRecordsThatARequestWasSent(t *testing.T) {
	g := newGuest(t, hostabi.Limits{})
	origin := g.serve(func(http.ResponseWriter, *http.Request) {})
	if _, n := g.op("fetch", `{"url":"`+origin+`"}`); n < 0 || !slices.Equal(g.call.Sent(), []string{"GET " + origin}) {
		t.Errorf("after a fetch: %d, %v", n, g.call.Sent())
	}
	g.call.Attempt = 2
	if g.call.Begin(); len(g.call.Sent()) != 1 {
		t.Error("the next run for the request does not know")
	}
	g.call.Attempt = 1
	if g.call.Begin(); len(g.call.Sent()) > 0 {
		t.Error("the next request knows of the one before")
	}
}

// TestFetchesRunConcurrently uses a server that waits for all requests, and then
// answers the last one first.
func TestFetchesRunConcurrently(t *testing.T) {
	g := newGuest(t, hostabi.Limits{})
	const count = 8
	var come sync.WaitGroup
	come.Add(count)
	turns := make([]chan struct{}, count+1)
	for i := range turns {
		turns[i] = make(chan struct{})
	}
	close(turns[count])
	origin := g.serve(func(w http.ResponseWriter, r *http.Request) {
		var i int
		_, _ = fmt.Sscan(r.URL.Path[1:], &i)
		come.Done()
		come.Wait()
		<-turns[i+1]
		fmt.Fprint(w, i)
	})
	for i := range count {
		if n := g.do("call_start", "fetch", fmt.Sprintf(`{"url":"%s/%d","timeout":60}`, origin, i)); n != int32(i) {
			t.Fatalf("ticket %d: %d", i, n)
		}
	}
	for i := count - 1; i >= 0; i-- {
		if n := g.raw("call_wait"); n != int32(i) {
			t.Fatalf("call_wait: %d, want %d", n, i)
		}
		if result, n := g.take(int32(i)); n < 0 || result["body"] != fmt.Sprint(i) {
			t.Errorf("ticket %d: %d %v", i, n, result)
		}
		close(turns[i])
	}
	if n := g.raw("call_wait"); n != notFound {
		t.Errorf("call_wait at the end: %d", n)
	}
}

func TestFetchesAreLimited(t *testing.T) {
	t.Run("in number", func(t *testing.T) {
		g := newGuest(t, hostabi.Limits{Fetches: 2})
		origin := g.serve(func(http.ResponseWriter, *http.Request) {})
		for i, want := range []int32{0, 0, limit, limit} {
			if result, n := g.op("fetch", `{"url":"`+origin+`"}`); min(n, 0) != want {
				t.Errorf("fetch %d: %d %v", i, n, result)
			}
		}
	})
	t.Run("at the same time", func(t *testing.T) {
		g := newGuest(t, hostabi.Limits{})
		var now, most atomic.Int32
		var once sync.Once
		sixteen := make(chan struct{})
		origin := g.serve(func(http.ResponseWriter, *http.Request) {
			n := now.Add(1)
			defer now.Add(-1)
			for m := most.Load(); n > m && !most.CompareAndSwap(m, n); m = most.Load() {
			}
			if n == 16 {
				once.Do(func() { close(sixteen) })
			}
			select { // the first sixteen wait for each other
			case <-sixteen:
			case <-time.After(50 * time.Second):
			}
		})
		for range 48 {
			g.do("call_start", "fetch", `{"url":"`+origin+`","timeout":60}`)
		}
		for i := range 48 {
			if result, n := g.take(int32(i)); n < 0 {
				t.Fatalf("ticket %d: %d %v", i, n, result)
			}
		}
		if n := most.Load(); n != 16 {
			t.Errorf("%d at the same time", n)
		}
	})
	t.Run("in bytes", func(t *testing.T) {
		g := newGuest(t, hostabi.Limits{MovedBytes: 100_000})
		origin := g.serve(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(make([]byte, 40_000)) })
		var got []int32
		for range 4 {
			_, n := g.opened("fetch", `{"url":"`+origin+`"}`)
			got = append(got, min(n, 0))
		}
		if want := []int32{0, 0, tooLarge, tooLarge}; fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("40,000 bytes, of 100,000 that may be moved: %v, want %v", got, want)
		}
	})
}

// opened starts an operation and takes it without reading the result.
func (g *guest) opened(name, args string) (int32, int32) {
	g.t.Helper()
	ticket := g.do("call_start", name, args)
	return ticket, g.raw("call_take", uint32(ticket))
}

func TestAFetchHasItsOwnTimeout(t *testing.T) {
	g := newGuest(t, hostabi.Limits{})
	origin := g.serve(func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
	result, n := g.op("fetch", `{"url":"`+origin+`","timeout":0.02}`)
	if n != int32(abi.Deadline) || result["code"] != "deadline" || result["message"] != "fetch: no answer within 20ms" {
		t.Errorf("%d %v", n, result)
	}
	if result, n := g.op("secret", `{"name":"SIGNING_KEY"}`); n < 0 {
		t.Errorf("the request is over with it: %d %v", n, result)
	}
}

func TestTheTimeoutOfAFetchIncludesItsWait(t *testing.T) {
	g := newGuest(t, hostabi.Limits{})
	began := make(chan struct{}, 17)
	origin := g.serve(func(_ http.ResponseWriter, r *http.Request) {
		began <- struct{}{}
		<-r.Context().Done()
	})
	deadline := deadline.New(context.Background(), time.Now().Add(time.Hour))
	defer deadline.Stop()
	g.call.Context = deadline
	for range 16 {
		g.do("call_start", "fetch", `{"url":"`+origin+`","timeout":60}`)
	}
	for range 16 {
		<-began
	}
	if result, n := g.op("fetch", `{"url":"`+origin+`","timeout":0.02}`); n != int32(abi.Deadline) || result["message"] != "fetch: no answer within 20ms" {
		t.Errorf("a fetch behind sixteen others: %d %v", n, result)
	}
	g.call.End()
}

func TestTheDeadlineOfTheRequestEndsAFetch(t *testing.T) {
	for _, wait := range []string{"call", "call_wait", "call_take"} {
		g := newGuest(t, hostabi.Limits{})
		// The time is over when the fetch has come to the service.
		request, over := context.WithCancel(context.Background())
		defer over()
		ended := make(chan struct{})
		origin := g.serve(func(_ http.ResponseWriter, r *http.Request) {
			over()
			<-r.Context().Done()
			close(ended)
		})
		deadline := deadline.New(request, time.Now().Add(time.Hour))
		defer deadline.Stop()
		g.call.Context = deadline
		func() {
			defer func() {
				if r := recover(); r != hostabi.ErrTimeOver {
					t.Errorf("%s: %v", wait, r)
				}
			}()
			args := `{"url":"` + origin + `","timeout":60}`
			switch wait {
			case "call":
				g.do("call", "fetch", args)
			case "call_wait":
				ticket := g.do("call_start", "fetch", args)
				g.raw("call_wait")
				// The deadline may have ended the fetch before call_wait.
				g.raw("call_take", uint32(ticket))
			case "call_take":
				g.raw("call_take", uint32(g.do("call_start", "fetch", args)))
			}
		}()
		g.call.End()
		<-ended
	}
}

func TestPendingOperationsEndWithTheHandler(t *testing.T) {
	g := newGuest(t, hostabi.Limits{})
	began, ended := make(chan struct{}, 40), make(chan struct{}, 40)
	origin := g.serve(func(_ http.ResponseWriter, r *http.Request) {
		began <- struct{}{}
		<-r.Context().Done()
		ended <- struct{}{}
	})
	for range 40 { // most of which wait for others
		g.do("call_start", "fetch", `{"url":"`+origin+`"}`)
	}
	for range 16 {
		<-began
	}
	g.call.End()
	for range 16 {
		<-ended
	}
	if n := g.raw("call_wait"); n != notFound {
		t.Errorf("a ticket after the end: %d", n)
	}
}

// A wait is reported to the sandbox from its begin to its end, and is not work of a host function. On the
// clock of the bubble nothing but the wait takes time.
func TestWaitingIsNotCountedAsCPUTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGuest(t, hostabi.Limits{})
		recorded := &recordingSandbox{}
		guest := &hostabi.Guest{Context: g.call.Context, Sandbox: recorded}
		guest.Bind(g.call)
		stack := make([]uint64, 4)
		for i, word := range g.words([]any{"sleep", `{"seconds":0.5}`}) {
			stack[i] = uint64(word)
		}
		g.functions["call"].Fn.Call(guest, g.module, stack)
		if fmt.Sprint(recorded.waits) != "[true false]" || g.call.Waited() != time.Second/2 || recorded.worked != 0 || g.call.CPU() != 0 {
			t.Errorf("waits %v, waited %v, worked %v, %v of CPU time", recorded.waits, g.call.Waited(), recorded.worked, g.call.CPU())
		}
	})
}

// A run ends with the error of a sandbox that does not let it wait, or go on.
func TestARunThatMayNotWaitEnds(t *testing.T) {
	for _, at := range []bool{true, false} {
		g := newGuest(t, hostabi.Limits{})
		full := errors.New("full")
		guest := &hostabi.Guest{Context: g.call.Context, Sandbox: &recordingSandbox{mayWait: func(begins bool) error {
			if begins == at {
				return full
			}
			return nil
		}}}
		guest.Bind(g.call)
		stack := make([]uint64, 4)
		for i, word := range g.words([]any{"sleep", `{"seconds":0.01}`}) {
			stack[i] = uint64(word)
		}
		func() {
			defer func() {
				if got := recover(); got != full || g.call.HostFailed() {
					t.Errorf("it ends with %v; the host failed: %t", got, g.call.HostFailed())
				}
			}()
			g.functions["call"].Fn.Call(guest, g.module, stack)
		}()
		g.call.End()
	}
}

func TestTheLogOfAFailedFetchContainsNoDataOfTheGuest(t *testing.T) {
	g := newGuest(t, hostabi.Limits{})
	origin := g.serve(func(w http.ResponseWriter, _ *http.Request) {
		panic(http.ErrAbortHandler)
	})
	result, n := g.op("fetch", `{"url":"`+origin+`/?token=canary1","headers":[["authorization","canary2"]],"method":"POST","body":"canary3"}`)
	if n != int32(abi.Unavailable) || !strings.Contains(fmt.Sprint(result["message"]), "gave no answer") {
		t.Errorf("%d %v", n, result)
	}
	if text := g.log.String(); !strings.Contains(text, "fetch failed") || !strings.Contains(text, g.call.Request.ID) || strings.Contains(text, "canary") {
		t.Errorf("logged: %s", text)
	}
}

// What a service sends in place of an answer is not logged, and a handler that meets
// it again and again has its budget of lines.
func TestTheLogOfAFailedFetchContainsNoDataOfTheService(t *testing.T) {
	g := newGuest(t, hostabi.Limits{LogLines: 10})
	origin := g.serve(func(w http.ResponseWriter, r *http.Request) {
		conn, _, err := http.NewResponseController(w).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		defer conn.Close()
		fmt.Fprintf(conn, "HTTP/1.1 200 OK\r\n%s %s\r\n\r\n", r.Header.Get("Authorization"), strings.Repeat("long ", 10_000))
	})
	args := `{"url":"` + origin + `","headers":[["authorization","canary"]]}`
	for range 10 {
		if result, n := g.op("fetch", args); n != int32(abi.Unavailable) || strings.Contains(fmt.Sprint(result), "canary") {
			t.Fatalf("%d %v", n, result)
		}
	}
	for range 10 {
		g.do("call_start", "fetch", args) // and is not taken
	}
	for g.raw("call_wait") != notFound {
	}
	g.call.End()
	text := g.log.String()
	if n := strings.Count(text, "fetch failed"); n != 10 || strings.Contains(text, "canary") || strings.Contains(text, "long") || len(text) > 10_000 {
		t.Errorf("%d lines, %.2000s", n, text)
	}
	if !strings.Contains(text, "64 KiB: protocol") || !strings.Contains(text, "10 lines dropped") {
		t.Errorf("logged: %.2000s", text)
	}
}

func TestWithoutDeclaredOriginsFetchesAreDenied(t *testing.T) {
	g := newGuest(t, hostabi.Limits{})
	if result, n := g.op("fetch", `{"url":"https://example.com/"}`); n != denied {
		t.Errorf("%d %v", n, result)
	}
}
