package tests

import (
	"encoding/pem"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

const outboundSchema = `
app outbound
outbound { allow: ["%s"] }
entity Counter { id: id  n: int = 0 }
apiKeys { scopes: { worker: @system("worker") { @grant read, write on Counter } } }
routes("/", auth: apiKey(worker), rateLimit: none, timeout: 60s) {
  POST /one -> fetchOne
  POST /all -> fetchAll
  POST /busy -> busyFetch
  POST /counted -> countedFetch
  POST /bump -> bump
}
`

// other is a service that an app declares: TLS on loopback, with a certificate
// that the server trusts.
func other(t *testing.T, handler http.HandlerFunc) (origin, certificate string) {
	t.Helper()
	service := httptest.NewUnstartedServer(handler)
	service.Config.ErrorLog = log.New(io.Discard, "", 0)
	service.StartTLS()
	t.Cleanup(service.Close)
	return service.URL, string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: service.Certificate().Raw}))
}

// outboundApp serves handlers that call the service, on a machine that trusts it.
func outboundApp(t *testing.T, toml string, handler http.HandlerFunc) (s *server, origin, worker string) {
	t.Helper()
	origin, certificate := other(t, handler)
	a := newApp(t, fmt.Sprintf(outboundSchema, origin), "[outbound]\nallow_private = true\n"+toml)
	a.write("build/outbound.wasm", goModule(t, "handlers/outbound"))
	a.write("roots.pem", certificate)
	a.env = []string{"SSL_CERT_FILE=" + a.path("roots.pem"), "HTTPS_PROXY=http://127.0.0.1:1"}
	s = a.serve()
	return s, origin, "X-API-Key: " + a.token("worker")
}

func TestAHandlerReachesWhatIsDeclaredAndNothingElse(t *testing.T) {
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
	s.want(200, &got, "POST", "/one", origin+"/ok", worker)
	if got.Status != 202 || got.Body != "hello runner" {
		t.Errorf("%+v", got)
	}
	before := hits.Load()
	for target, code := range map[string]string{
		s.url + "/bump":                                        "denied",
		"http" + origin[len("https"):]:                         "denied",
		"https://localhost" + origin[17:]:                      "denied",
		"https://169.254.169.254/":                             "denied",
		"https://example.com/":                                 "denied",
		"file:///etc/passwd":                                   "invalid",
		strings.Replace(origin, "https://", "https://a:b@", 1): "invalid",
	} {
		s.want(200, &got, "POST", "/one", target, worker)
		if got.Code != code {
			t.Errorf("%s: %+v, want %s", target, got, code)
		}
	}
	if hits.Load() != before {
		t.Error("one of them arrived")
	}
	for path, code := range map[string]string{"/one /metadata": "denied", "/one /long": "too_large", "/one?timeout=100ms /slow": "deadline"} {
		route, path, _ := strings.Cut(path, " ")
		s.want(200, &got, "POST", route, origin+path, worker)
		if got.Code != code {
			t.Errorf("%s: %+v, want %s", path, got, code)
		}
	}
	if p := s.want(500, nil, "POST", "/all", origin+"/ok "+origin+"/ok", worker).problem(t); p.Code != "handler_failed" {
		t.Errorf("two fetches where one is the most: %+v", p)
	}
}

func TestAnUntrustedServiceIsNotReached(t *testing.T) {
	origin, _ := other(t, func(http.ResponseWriter, *http.Request) { t.Error("it was reached") })
	a := newApp(t, fmt.Sprintf(outboundSchema, origin), "[outbound]\nallow_private = true\n")
	a.write("build/outbound.wasm", goModule(t, "handlers/outbound"))
	s := a.serve()
	var got struct{ Code, Message string }
	s.want(200, &got, "POST", "/one", origin, "X-API-Key: "+a.token("worker"))
	if got.Code != "unavailable" || !strings.Contains(got.Message, "is not trusted") {
		t.Errorf("%+v", got)
	}
	s.until("the log tells", func() bool { return strings.Contains(s.stderr.String(), "fetch failed") })
}

func TestPrivateOriginsNeedTheOperator(t *testing.T) {
	a := newApp(t, fmt.Sprintf(outboundSchema, "https://127.0.0.1:8443"), "")
	if r := a.run("check"); r.status != 3 || !strings.Contains(r.stdout+r.stderr, "E520") {
		t.Errorf("exit status %d\n%s%s", r.status, r.stdout, r.stderr)
	}
}

func TestFetchesOfOneHandlerAreUnderWayTogether(t *testing.T) {
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
	s.want(200, &got, "POST", "/all", strings.Join(urls, "\n"), worker)
	if fmt.Sprint(got) != "[/0 /1 /2 /3 /4 /5 /6 /7]" {
		t.Error(got)
	}
	if all.late.Load() {
		t.Error("they came one after the other")
	}
}

// barrier has a number of requests wait for each other, for a while.
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
	case <-time.After(patient / 3): // then there is time to tell of it
		b.late.Store(true)
	}
}

// Handlers that compute for long do so in turns, of which there are few; one that
// waits for an answer has none, and what it waits is no processor time.
func TestAHandlerThatWaitsKeepsNoTurn(t *testing.T) {
	var all barrier
	s, origin, worker := outboundApp(t, "[sandbox]\ncpu = \"250ms\"\n", func(http.ResponseWriter, *http.Request) {
		all.wait(12)
		time.Sleep(400 * time.Millisecond) // longer than the processor time there is
	})
	var callers sync.WaitGroup
	for range 12 {
		callers.Go(func() {
			if got, err := s.try("POST", "/busy", origin, worker); err != nil || got.status != 200 {
				t.Errorf("%d %s %v", got.status, got.body, err)
			}
		})
	}
	callers.Wait()
	if all.late.Load() {
		t.Error("those that wait keep others from computing")
	}
}

// A handler that has fetched is not run again: here what it read is changed while
// it waits for the answer.
func TestAConflictAfterAFetchIsToldAndNotTriedAgain(t *testing.T) {
	var hits atomic.Int32
	var s *server
	var origin, worker string
	s, origin, worker = outboundApp(t, "", func(http.ResponseWriter, *http.Request) {
		if hits.Add(1) == 1 {
			if got, err := s.try("POST", "/bump", "", worker); err != nil || got.status != 200 {
				t.Errorf("%d %s %v", got.status, got.body, err)
			}
		}
	})
	s.want(200, nil, "POST", "/bump", "", worker)
	p := s.want(409, nil, "POST", "/counted", origin, worker).problem(t)
	if p.Code != "conflict" || !strings.Contains(p.Detail, "sent a request elsewhere") || hits.Load() != 1 {
		t.Errorf("%+v after %d requests", p, hits.Load())
	}
	var n int
	if s.want(200, &n, "POST", "/bump", "", worker); n != 3 {
		t.Errorf("the counter is %d, want 3: the conflicting write counts for nothing", n)
	}
	if s.want(200, &n, "POST", "/counted", origin, worker); n != 200 || hits.Load() != 2 {
		t.Errorf("without a conflict: %d after %d requests", n, hits.Load())
	}
}
