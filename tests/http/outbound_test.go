package http_test

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"runner.example/tests/harness"
)

// outboundApp serves handlers that call the service, with its certificate trusted.
func outboundApp(t *testing.T, toml string, handler http.HandlerFunc) (s *harness.Server, origin, worker string) {
	t.Helper()
	origin, certificate := harness.OtherService(t, handler)
	a := harness.NewApp(t, fmt.Sprintf(harness.OutboundSchema, origin), "[outbound]\nallow_private = true\n"+toml)
	a.Write("build/outbound.wasm", harness.GoModule(t, harness.Testdata("handlers/outbound")))
	a.Write("roots.pem", certificate)
	a.Env = []string{"SSL_CERT_FILE=" + a.Path("roots.pem"), "HTTPS_PROXY=http://127.0.0.1:1"}
	s = a.Serve()
	return s, origin, "X-API-Key: " + a.Token("worker")
}

func TestAHandlerReachesOnlyDeclaredOrigins(t *testing.T) {
	var hits atomic.Int32
	s, origin, worker := outboundApp(t, "fetches = 1\nanswer = \"1kb\"\n", func(w http.ResponseWriter, r *http.Request) {
		hits.Add(1)
		switch r.URL.Path {
		case "/ok":
			w.WriteHeader(http.StatusAccepted)
			fmt.Fprint(w, "hello ", r.UserAgent())
		case "/metadata":
			http.Redirect(w, r, "http://169.254.169.254/latest/meta-data/", http.StatusFound)
		case "/long":
			_, _ = w.Write(make([]byte, 2000))
		case "/slow":
			<-r.Context().Done()
		}
	})
	var got struct {
		Status        int
		Body          string
		Code, Message string
	}
	s.Want(200, &got, "POST", "/one", origin+"/ok", worker)
	if got.Status != 202 || got.Body != "hello runner" {
		t.Errorf("%+v", got)
	}
	before := hits.Load()
	for target, code := range map[string]string{
		s.URL + "/bump":                                        "denied",
		"http" + origin[len("https"):]:                         "denied",
		"https://localhost" + origin[17:]:                      "denied",
		"https://169.254.169.254/":                             "denied",
		"https://example.com/":                                 "denied",
		"file:///etc/passwd":                                   "invalid",
		strings.Replace(origin, "https://", "https://a:b@", 1): "invalid",
	} {
		s.Want(200, &got, "POST", "/one", target, worker)
		if got.Code != code {
			t.Errorf("%s: %+v, want %s", target, got, code)
		}
	}
	if hits.Load() != before {
		t.Error("one of them arrived")
	}
	for path, code := range map[string]string{
		"/one /metadata": "denied", "/one /long": "too_large", "/one?timeout=100ms /slow": "deadline", "/one?publicOnly=1 /ok": "invalid",
	} {
		route, path, _ := strings.Cut(path, " ")
		s.Want(200, &got, "POST", route, origin+path, worker)
		if got.Code != code {
			t.Errorf("%s: %+v, want %s", path, got, code)
		}
	}
	if p := s.Want(500, nil, "POST", "/all", origin+"/ok "+origin+"/ok", worker).Problem(t); p.Code != "handler_failed" {
		t.Errorf("two fetches where one is the most: %+v", p)
	}
}

func TestAnUntrustedServiceIsNotReached(t *testing.T) {
	origin, _ := harness.OtherService(t, func(http.ResponseWriter, *http.Request) { t.Error("it was reached") })
	a := harness.NewApp(t, fmt.Sprintf(harness.OutboundSchema, origin), "[outbound]\nallow_private = true\n")
	a.Write("build/outbound.wasm", harness.GoModule(t, harness.Testdata("handlers/outbound")))
	s := a.Serve()
	var got struct{ Code, Message string }
	s.Want(200, &got, "POST", "/one", origin, "X-API-Key: "+a.Token("worker"))
	if got.Code != "unavailable" || !strings.Contains(got.Message, "is not trusted") {
		t.Errorf("%+v", got)
	}
	s.WaitUntil("the log tells", func() bool { return strings.Contains(s.Stderr.String(), "fetch failed") })
}

func TestPrivateOriginsNeedASetting(t *testing.T) {
	a := harness.NewApp(t, fmt.Sprintf(harness.OutboundSchema, "https://127.0.0.1:8443"), "")
	if r := a.Run("check"); r.Status != 3 || !strings.Contains(r.Stdout+r.Stderr, "E520") {
		t.Errorf("exit status %d\n%s%s", r.Status, r.Stdout, r.Stderr)
	}
}

func TestOriginsThatNobodyReachesAreDiagnosed(t *testing.T) {
	for _, origin := range []string{"http://169.254.169.254", "http://100.100.100.200", "https://api.example.com:99999", "http://10.0.0.1:0"} {
		a := harness.NewApp(t, fmt.Sprintf(harness.OutboundSchema, origin), "[outbound]\nallow_private = true\n")
		for _, command := range [][]string{{"check"}, {"serve", "--listen", "127.0.0.1:0"}} {
			if r := a.Run(command...); r.Status != 3 || !strings.Contains(r.Stdout+r.Stderr, "app.schema:3:20: error[E520]: \""+origin) {
				t.Errorf("%s %s: exit status %d\n%s%s", command, origin, r.Status, r.Stdout, r.Stderr)
			}
		}
	}
}

func TestAFetchSetsNeitherAProxyNorAnEmptyMethod(t *testing.T) {
	origin, _ := harness.OtherService(t, func(_ http.ResponseWriter, r *http.Request) { t.Errorf("%s %v arrived", r.Method, r.Header) })
	a := harness.NewApp(t, fmt.Sprintf(`outbound { allow: [%q] }
routes("/", auth: none, rateLimit: none) { POST /op -> op }
`, origin), "[outbound]\nallow_private = true\n", "echo")
	s := a.Serve()
	for args, want := range map[string]string{
		`"headers":[["Proxy","http://evil.example:1"]]`: `"code":"denied"`,
		`"headers":[["pROXY","http://evil.example:1"]]`: `"code":"denied"`,
		`"method":""`:    `"code":"invalid"`,
		`"method":"G T"`: `"code":"invalid"`,
	} {
		if got := s.Do("POST", "/op", fmt.Sprintf(`{"url":%q,%s}`, origin, args), "X-Op: fetch"); !strings.Contains(got.Body, want) {
			t.Errorf("%s: %d %s", args, got.Status, got.Body)
		}
	}
}

func TestFetchesOfOneHandlerRunConcurrently(t *testing.T) {
	var all barrier
	s, origin, worker := outboundApp(t, "", func(w http.ResponseWriter, r *http.Request) {
		all.wait(8)
		fmt.Fprint(w, r.URL.Path)
	})
	var urls []string
	for i := range 8 {
		urls = append(urls, fmt.Sprintf("%s/%d", origin, i))
	}
	var got []string
	s.Want(200, &got, "POST", "/all", strings.Join(urls, "\n"), worker)
	if fmt.Sprint(got) != "[/0 /1 /2 /3 /4 /5 /6 /7]" {
		t.Error(got)
	}
	if all.late.Load() {
		t.Error("the fetches came one after the other")
	}
}

// barrier makes a number of requests wait for each other, up to a limit.
type barrier struct {
	come atomic.Int32
	once sync.Once
	open chan struct{}
	late atomic.Bool
}

func (b *barrier) wait(n int32) {
	b.once.Do(func() { b.open = make(chan struct{}) })
	if b.come.Add(1) == n {
		close(b.open)
	}
	select {
	case <-b.open:
	case <-time.After(harness.Timeout / 3): // before the client gives up
		b.late.Store(true)
	}
}

// There are few CPU slots. A handler that waits for a response holds none, and its wait is
// not CPU time.
func TestAWaitingHandlerHoldsNoCPUSlot(t *testing.T) {
	var all barrier
	s, origin, worker := outboundApp(t, "[sandbox]\ncpu = \"1s\"\n", func(http.ResponseWriter, *http.Request) {
		all.wait(12)
		time.Sleep(1100 * time.Millisecond) // longer than the CPU time limit
	})
	var callers sync.WaitGroup
	for range 12 {
		callers.Go(func() {
			if got, err := s.Try("POST", "/busy", origin, worker); err != nil || got.Status != 200 {
				t.Errorf("%d %s %v", got.Status, got.Body, err)
			}
		})
	}
	callers.Wait()
	if all.late.Load() {
		t.Error("waiting handlers keep others from running")
	}
}

// A handler that has sent a request is not run again. Here another request changes the rows
// that it read while it waits for the response.
func TestAConflictAfterAFetchIsReportedAndNotRetried(t *testing.T) {
	var hits atomic.Int32
	var s *harness.Server
	var origin, worker string
	s, origin, worker = outboundApp(t, "", func(http.ResponseWriter, *http.Request) {
		if hits.Add(1) == 1 {
			if got, err := s.Try("POST", "/bump", "", worker); err != nil || got.Status != 200 {
				t.Errorf("%d %s %v", got.Status, got.Body, err)
			}
		}
	})
	s.Want(200, nil, "POST", "/bump", "", worker)
	p := s.Want(409, nil, "POST", "/counted", origin, worker).Problem(t)
	if p.Code != "write_conflict" || !strings.Contains(p.Detail, "sent an outbound request") || hits.Load() != 1 {
		t.Errorf("%+v after %d requests", p, hits.Load())
	}
	var n int
	if s.Want(200, &n, "POST", "/bump", "", worker); n != 3 {
		t.Errorf("the counter is %d, want 3: the conflicting write counts for nothing", n)
	}
	if s.Want(200, &n, "POST", "/counted", origin, worker); n != 200 || hits.Load() != 2 {
		t.Errorf("without a conflict: %d after %d requests", n, hits.Load())
	}
}

func TestATraceIsLoggedAndContinuesInFetches(t *testing.T) {
	const id = "4bf92f3577b34da6a3ce929d0e0e4736"
	const parent = "00-" + id + "-00f067aa0ba902b7-01"
	var received sync.Map // by path
	s, origin, worker := outboundApp(t, "[telemetry]\naccess_log = true\n", func(_ http.ResponseWriter, r *http.Request) {
		received.Store(r.URL.Path, r.Header)
	})
	headers := func(path string) http.Header {
		got, _ := received.Load(path)
		return got.(http.Header)
	}
	s.Want(200, nil, "POST", "/one", origin+"/traced", worker, "traceparent: "+parent, "tracestate: vendor=1")
	got := headers("/traced")
	if next := got.Get("traceparent"); len(next) != len(parent) || next[:36] != parent[:36] || next[36:52] == parent[36:52] || next[52:] != "-01" || got.Get("tracestate") != "vendor=1" {
		t.Errorf("the fetch has %q, %q", next, got.Get("tracestate"))
	}
	s.WaitForOutput(`"msg":"request","requestId":"[0-9a-z]{26}","traceId":"` + id + `"`)
	// So do the lines of refused requests.
	s.Want(404, nil, "GET", "/nowhere", "", "traceparent: "+parent)
	s.WaitForOutput(`"traceId":"` + id + `","method":"GET","status":404`)
	s.Want(401, nil, "POST", "/one", "", "X-API-Key: wrong", "traceparent: "+parent)
	s.WaitForOutput(`"msg":"credential refused","requestId":"[0-9a-z]{26}","traceId":"` + id + `"`)
	s.Want(200, nil, "POST", "/one", origin+"/invalid", worker, "traceparent: "+strings.ToUpper(parent), "tracestate: vendor=1")
	if got := headers("/invalid"); got.Get("traceparent") != "" || got.Get("tracestate") != "" {
		t.Errorf("a trace that is not valid goes on: %q", got)
	}
	s.WaitUntil("both requests are logged", func() bool { return strings.Count(s.Stderr.String(), `"msg":"request"`) == 4 })
	if n := strings.Count(s.Stderr.String(), "traceId"); n != 4 {
		t.Errorf("%d lines have a traceId:\n%s", n, s.Stderr.String())
	}
}
