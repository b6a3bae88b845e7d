package outbound_test

import (
	"bufio"
	"bytes"
	"cmp"
	"compress/gzip"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"runner.example/hostabi/outbound"
	"runner.example/internal/fairqueue"
)

// world is a server on loopback, and host names that resolve to it.
type world struct {
	t       *testing.T
	server  *httptest.Server
	port    string
	hits    atomic.Int32
	conns   atomic.Int32
	lookups atomic.Int32
	resolve func(host string) []string // nil: loopback
	options outbound.Options
	names   []string
}

var names = []string{"example.com", "api.example.com", "other.example.com"} // in the certificate of httptest

func newWorld(t *testing.T, handler http.HandlerFunc) *world {
	w := &world{t: t, names: names}
	w.server = httptest.NewUnstartedServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		w.hits.Add(1)
		handler(rw, r)
	}))
	w.server.Config.ConnState = func(_ net.Conn, s http.ConnState) {
		if s == http.StateNew {
			w.conns.Add(1)
		}
	}
	w.server.Config.ErrorLog = log.New(io.Discard, "", 0)
	w.server.EnableHTTP2 = true
	w.server.StartTLS()
	t.Cleanup(w.server.Close)
	_, w.port, _ = net.SplitHostPort(w.server.Listener.Addr().String())
	roots := x509.NewCertPool()
	roots.AddCert(w.server.Certificate())
	w.options = outbound.Options{AllowPrivate: true, Roots: roots, Resolve: func(_ context.Context, host string) ([]netip.Addr, error) {
		w.lookups.Add(1)
		texts := []string{"127.0.0.1"}
		if w.resolve != nil {
			texts = w.resolve(host)
		}
		var all []netip.Addr
		for _, text := range texts {
			all = append(all, netip.MustParseAddr(text))
		}
		if len(all) == 0 {
			return nil, &net.DNSError{Err: "no such host", Name: host, IsNotFound: true}
		}
		return all, nil
	}}
	return w
}

// url is a URL at a name of the server.
func (w *world) url(host, path string) string { return "https://" + host + ":" + w.port + path }

// origins are the first two names.
func (w *world) origins() outbound.Origins {
	w.t.Helper()
	o, err := outbound.ParseOrigins([]string{w.url(names[0], ""), w.url(names[1], "")})
	if err != nil {
		w.t.Fatal(err)
	}
	return o
}

func (w *world) client() *outbound.Client {
	c := outbound.New(w.options)
	w.t.Cleanup(c.Close)
	return c
}

func (w *world) request(method, target string, body string, headers ...outbound.Header) *outbound.Request {
	w.t.Helper()
	r, err := outbound.NewRequest(w.origins(), method, target, headers, []byte(body))
	if err != nil {
		w.t.Fatal(err)
	}
	return r
}

func (w *world) get(c *outbound.Client, target string) (*outbound.Response, error) {
	w.t.Helper()
	return c.Do(w.t.Context(), fairqueue.Parties{"asker"}, w.request("GET", target, ""), nil)
}

// errorOf returns the *Error in err, or an empty one.
func errorOf(err error) *outbound.Error {
	if e, ok := errors.AsType[*outbound.Error](err); ok {
		return e
	}
	return &outbound.Error{}
}

func reasonOf(err error) outbound.Reason { return errorOf(err).Reason }

func TestARequestIsSentUnchanged(t *testing.T) {
	w := newWorld(t, func(rw http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		rw.Header().Set("X-Two", "1")
		rw.Header().Add("X-Two", "2")
		rw.Header().Set("X-Bytes", "\xe9")
		rw.WriteHeader(207)
		fmt.Fprintf(rw, "%s %s %s %s %v %v %q", r.Proto, r.Method, r.Host, r.RequestURI, r.Header["X-A"], r.Header["User-Agent"], body)
	})
	r := w.request("PUT", w.url("API.example.com.", "/p%20q?x=1#frag"), "hello\x00",
		outbound.Header{Name: "x-a", Value: "1"}, outbound.Header{Name: "X-A", Value: "2"})
	answer, err := w.client().Do(t.Context(), fairqueue.Parties{"asker"}, r, nil)
	if err != nil {
		t.Fatal(err)
	}
	want := fmt.Sprintf("HTTP/1.1 PUT api.example.com:%s /p%%20q?x=1 [1 2] [runner] %q", w.port, "hello\x00")
	if answer.Status != 207 || string(answer.Body) != want {
		t.Errorf("%d %s, want %s", answer.Status, answer.Body, want)
	}
	for _, h := range []outbound.Header{{Name: "x-two", Value: "1"}, {Name: "x-two", Value: "2"}, {Name: "x-bytes", Value: "\xe9"}} {
		if !slices.Contains(answer.Headers, h) {
			t.Errorf("no header %v in %v", h, answer.Headers)
		}
	}
	if !slices.IsSortedFunc(answer.Headers, func(a, b outbound.Header) int { return strings.Compare(a.Name, b.Name) }) {
		t.Errorf("headers in disorder: %v", answer.Headers)
	}
}

func TestRedirectsStayWithinDeclaredOrigins(t *testing.T) {
	var w *world
	type seen struct{ method, host, body, auth, key, accept, contentType string }
	var got seen
	target, status := "", 302
	w = newWorld(t, func(rw http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/from" {
			rw.Header().Set("Location", target)
			rw.WriteHeader(status)
			return
		}
		body, _ := io.ReadAll(r.Body)
		got = seen{r.Method, r.Host, string(body), r.Header.Get("Authorization"), r.Header.Get("X-Api-Key"), r.Header.Get("Accept"), r.Header.Get("Content-Type")}
	})
	c := w.client()
	do := func(method, body string) error {
		got = seen{}
		_, err := c.Do(t.Context(), fairqueue.Parties{"asker"}, w.request(method, w.url("example.com", "/from"), body,
			outbound.Header{Name: "Authorization", Value: "Bearer t"}, outbound.Header{Name: "X-Api-Key", Value: "k"},
			outbound.Header{Name: "Accept", Value: "text/plain"}, outbound.Header{Name: "Content-Type", Value: "text/x"}), nil)
		return err
	}
	same, other := "example.com:"+w.port, "api.example.com:"+w.port
	for _, row := range []struct {
		status             int
		method, body, goes string
		want               seen
	}{
		{302, "GET", "", "/to", seen{"GET", same, "", "Bearer t", "k", "text/plain", "text/x"}},
		{301, "POST", "b", "to", seen{"GET", same, "", "Bearer t", "k", "text/plain", ""}},
		{303, "PUT", "b", "/to", seen{"GET", same, "", "Bearer t", "k", "text/plain", ""}},
		{307, "POST", "b", "/to", seen{"POST", same, "b", "Bearer t", "k", "text/plain", "text/x"}},
		{308, "PUT", "b", w.url("api.example.com", "/to"), seen{"PUT", other, "b", "", "", "text/plain", "text/x"}},
		{302, "POST", "b", w.url("API.EXAMPLE.COM", "/to"), seen{"GET", other, "", "", "", "text/plain", ""}},
	} {
		target, status = row.goes, row.status
		if err := do(row.method, row.body); err != nil || got != row.want {
			t.Errorf("%d of %s to %s: %+v (%v), want %+v", row.status, row.method, row.goes, got, err, row.want)
		}
	}
	status = 302
	for goes, want := range map[string]outbound.Reason{
		"https://127.0.0.1:" + w.port + "/to":           outbound.Denied,
		"http://example.com:" + w.port + "/to":          outbound.Denied,
		"https://169.254.169.254/latest":                outbound.Denied,
		w.url("other.example.com", "/to"):               outbound.Denied,
		"https://u:p@example.com:" + w.port + "/to":     outbound.Denied,
		"file:///etc/passwd":                            outbound.Denied,
		"https://exa mple.com/":                         outbound.Unavailable,
		"/from":                                         outbound.Unavailable, // without an end
		w.url("example.com", strings.Repeat("x", 9000)): outbound.Unavailable,
	} {
		target = goes
		if err := do("GET", ""); reasonOf(err) != want || got.method != "" {
			t.Errorf("to %.60s: %v, arrived %+v, want %s", goes, err, got, want)
		}
	}
	target = w.url("api.example.com", "/to?a=b")
	if answer, err := w.get(c, w.url("example.com", "/from")); err != nil || answer.URL != target {
		t.Errorf("an answer from elsewhere: %+v, %v", answer, err)
	}
	status, target = 302, ""
	if answer, err := w.get(c, w.url("example.com", "/from")); err != nil || answer.Status != 302 || answer.URL != "" {
		t.Errorf("a redirect to nowhere is an answer: %v %v", answer, err)
	}
}

// both is a listener that answers TLS and plain HTTP on one port: what begins with a TLS record is
// decrypted.
type both struct {
	net.Listener
	config *tls.Config
}

func (l both) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	first := &peeked{Conn: conn, r: bufio.NewReader(conn)}
	if begin, err := first.r.Peek(1); err == nil && begin[0] == 0x16 {
		return tls.Server(first, l.config), nil
	}
	return first, nil
}

type peeked struct {
	net.Conn
	r *bufio.Reader
}

func (c *peeked) Read(p []byte) (int, error) { return c.r.Read(p) }

// Another scheme is another origin, also with the same host and port: a redirect from https to http
// would send credentials in plain text.
func TestARedirectToAnotherSchemeLosesCredentials(t *testing.T) {
	w := newWorld(t, func(http.ResponseWriter, *http.Request) {})
	credentials := []outbound.Header{
		{Name: "Authorization", Value: "Bearer t"}, {Name: "Cookie", Value: "a=b"}, {Name: "X-Api-Key", Value: "k"}, {Name: "X-Amz-Security-Token", Value: "s"},
	}
	var target string
	var got http.Header
	server := &http.Server{Handler: http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/from" {
			http.Redirect(rw, r, target, http.StatusTemporaryRedirect)
			return
		}
		got = r.Header.Clone()
	}), ErrorLog: log.New(io.Discard, "", 0)}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	config := w.server.TLS.Clone()
	config.NextProtos = []string{"http/1.1"}
	served := make(chan error, 1)
	go func() { served <- server.Serve(both{ln, config}) }()
	t.Cleanup(func() {
		_ = server.Close()
		<-served
	})
	at := func(scheme, host string) string { return scheme + "://" + host + ln.Addr().String()[len("127.0.0.1"):] }
	var all []string
	for _, scheme := range []string{"https", "http"} {
		all = append(all, at(scheme, names[0]), at(scheme, names[1]))
	}
	origins, err := outbound.ParseOrigins(all)
	if err != nil {
		t.Fatal(err)
	}
	c := w.client()
	for _, row := range []struct {
		from, to string
		kept     bool
	}{
		{all[0], all[0], true}, {all[2], all[2], true}, // the same origin
		{all[0], all[2], false}, {all[2], all[0], false}, // the other scheme
		{all[0], all[1], false}, {all[2], all[3], false}, // another host
		{all[0], all[3], false}, {all[3], all[0], false},
	} {
		target, got = row.to+"/to", nil
		r, err := outbound.NewRequest(origins, "POST", row.from+"/from", append(slices.Clone(credentials), outbound.Header{Name: "Accept", Value: "text/x"}), []byte("b"))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := c.Do(t.Context(), fairqueue.Parties{"asker"}, r, nil); err != nil {
			t.Fatalf("%s to %s: %v", row.from, row.to, err)
		}
		for _, h := range credentials {
			if kept := got.Get(h.Name) != ""; kept != row.kept {
				t.Errorf("%s to %s: %s arrives %v, want %v", row.from, row.to, h.Name, kept, row.kept)
			}
		}
		if got.Get("Accept") != "text/x" {
			t.Errorf("%s to %s: Accept is lost", row.from, row.to)
		}
	}
}

func TestARequestSaysHowToHandleARedirect(t *testing.T) {
	w := newWorld(t, func(rw http.ResponseWriter, r *http.Request) {
		rw.Header().Set("Location", "https://elsewhere.example/?token=x")
		rw.WriteHeader(http.StatusSeeOther)
		fmt.Fprint(rw, "see there")
	})
	c := w.client()
	do := func(way outbound.Redirect) (*outbound.Response, error) {
		return c.Do(t.Context(), fairqueue.Parties{"asker"}, w.request("GET", w.url("example.com", "/"), "").WithRedirect(way), nil)
	}
	if answer, err := do(outbound.Manual); err != nil || answer.Status != 303 || string(answer.Body) != "see there" ||
		!slices.Contains(answer.Headers, outbound.Header{Name: "location", Value: "https://elsewhere.example/?token=x"}) {
		t.Errorf("manual: %v %v", answer, err)
	}
	if _, err := do(outbound.Refuse); reasonOf(err) != outbound.Unavailable || !strings.Contains(err.Error(), "does not allow") {
		t.Errorf("error: %v", err)
	}
	for _, way := range []outbound.Redirect{"", outbound.Follow} {
		if _, err := do(way); reasonOf(err) != outbound.Denied {
			t.Errorf("%q: %v", way, err)
		}
	}
}

// A blank in a query would end the request's target before its time.
func TestAQueryIsEscapedLikeAPath(t *testing.T) {
	var got []string
	target := ""
	w := newWorld(t, func(rw http.ResponseWriter, r *http.Request) {
		got = append(got, r.RequestURI)
		if target != "" {
			rw.Header()["Location"] = []string{target}
			target = ""
			rw.WriteHeader(http.StatusFound)
		}
	})
	c := w.client()
	const given, want = "/p q?a b=\"\u00e9\" HTTP/1.1&c=%20%zz", "/p%20q?a%20b=%22%C3%A9%22%20HTTP/1.1&c=%20%zz"
	if _, err := w.get(c, w.url("example.com", given)); err != nil || len(got) != 1 || got[0] != want {
		t.Errorf("%q, %v", got, err)
	}
	got, target = nil, given
	if _, err := w.get(c, w.url("example.com", "/")); err != nil || len(got) != 2 || got[1] != want {
		t.Errorf("redirected: %q, %v", got, err)
	}
}

func TestARedirectIsResolvedAndCheckedAgain(t *testing.T) {
	var w *world
	w = newWorld(t, func(rw http.ResponseWriter, r *http.Request) {
		http.Redirect(rw, r, w.url("api.example.com", "/"), http.StatusTemporaryRedirect)
	})
	w.resolve = func(host string) []string {
		if host == "api.example.com" {
			return []string{"169.254.169.254"}
		}
		return []string{"127.0.0.1"}
	}
	if _, err := w.get(w.client(), w.url("example.com", "/")); reasonOf(err) != outbound.Denied || w.hits.Load() != 1 {
		t.Errorf("%v after %d requests", err, w.hits.Load())
	}
}

func TestReservedHeadersAreRefused(t *testing.T) {
	w := newWorld(t, func(http.ResponseWriter, *http.Request) {})
	many := make([]outbound.Header, 101)
	for i := range many {
		many[i] = outbound.Header{Name: "x", Value: "y"}
	}
	check := func(want outbound.Reason, headers ...outbound.Header) {
		t.Helper()
		if _, err := outbound.NewRequest(w.origins(), "GET", w.url("example.com", ""), headers, nil); reasonOf(err) != want {
			t.Errorf("%.80q: %v, want %s", headers, err, want)
		}
	}
	for name := range strings.FieldsSeq("Host connection Content-Length transfer-encoding TE Trailer Upgrade Keep-Alive Expect Proxy-Authorization proxy-connection X-Forwarded-For Forwarded Via HTTP2-Settings X-Real-IP Proxy PROXY x_real_ip X_Forwarded_For Transfer_Encoding PROXY_AUTHORIZATION") {
		check(outbound.Denied, outbound.Header{Name: name, Value: "x"})
	}
	for _, name := range []string{"", "a b", "a:", ":authority", "a\r\nb", "é"} {
		check(outbound.Invalid, outbound.Header{Name: name, Value: "x"})
	}
	for _, value := range []string{"a\r\nHost: evil", "a\nb", "a\x00b", " a", "a\t", "\x7f"} {
		check(outbound.Invalid, outbound.Header{Name: "x", Value: value})
	}
	check(outbound.TooLarge, many...)
	check(outbound.TooLarge, outbound.Header{Name: "x", Value: strings.Repeat("y", 17<<10)})
	check("", outbound.Header{Name: "Authorization", Value: "Bearer x"}, outbound.Header{Name: "Cookie", Value: "a=b"}, outbound.Header{Name: "x", Value: "ü"})

	for _, method := range []string{"", " ", "CONNECT", "TRACE", "get", "PROPFIND", "GET /\r\n"} {
		if _, err := outbound.NewRequest(w.origins(), method, w.url("example.com", ""), nil, nil); reasonOf(err) != outbound.Invalid {
			t.Errorf("method %q: %v", method, err)
		}
	}
	if _, err := outbound.NewRequest(w.origins(), "GET", w.url("example.com", ""), nil, []byte("x")); reasonOf(err) != outbound.Invalid {
		t.Errorf("a GET with a body: %v", err)
	}
}

func TestResponsesAreLimited(t *testing.T) {
	const most = 100_000
	size, chunked, head := 0, false, 0
	w := newWorld(t, func(rw http.ResponseWriter, r *http.Request) {
		if head > 0 {
			rw.Header().Set("X-Long", strings.Repeat("x", head))
		}
		body := bytes.Repeat([]byte("a"), size)
		switch {
		case chunked:
			for part := range slices.Chunk(body, 1000) {
				_, _ = rw.Write(part)
				rw.(http.Flusher).Flush()
			}
		default:
			rw.Header().Set("Content-Length", fmt.Sprint(size))
			_, _ = rw.Write(body)
		}
	})
	w.options.MaxBody = most
	c := w.client()
	for _, size = range []int{0, 1, most - 1, most, most + 1, 3 * most} {
		for _, kind := range []string{"plain", "chunked"} {
			chunked = kind == "chunked"
			answer, err := w.get(c, w.url("example.com", "/"))
			switch {
			case size > most && reasonOf(err) != outbound.TooLarge:
				t.Errorf("%s, %d bytes: %v", kind, size, err)
			case size <= most && (err != nil || len(answer.Body) != size):
				t.Errorf("%s, %d bytes: %v", kind, size, err)
			}
		}
	}
	size, head = 0, 100<<10
	if _, err := w.get(c, w.url("example.com", "/")); reasonOf(err) != outbound.Unavailable {
		t.Errorf("a head of 100 KiB: %v", err)
	}
	size, head = 5000, 0
	room := 4000
	_, err := c.Do(t.Context(), fairqueue.Parties{"asker"}, w.request("GET", w.url("example.com", "/"), ""), func(n int) bool { room -= n; return room >= 0 })
	if reasonOf(err) != outbound.TooLarge {
		t.Errorf("more than is admitted: %v", err)
	}
	if answer, err := c.Do(t.Context(), fairqueue.Parties{"asker"}, w.request("HEAD", w.url("example.com", "/"), ""), nil); err != nil || len(answer.Body) != 0 {
		t.Errorf("HEAD: %v %v", answer, err)
	}
}

// A compressed body can expand to many times its size, or take long to decompress. The
// guest decompresses it, within its own limits.
func TestACompressedResponseIsNotDecompressed(t *testing.T) {
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	_, _ = z.Write(make([]byte, 10<<20))
	_ = z.Close()
	w := newWorld(t, func(rw http.ResponseWriter, r *http.Request) {
		rw.Header().Set("X-Asked", r.Header.Get("Accept-Encoding"))
		rw.Header().Set("Content-Encoding", "gzip")
		_, _ = rw.Write(packed.Bytes())
	})
	c := w.client()
	for asked, headers := range map[string][]outbound.Header{"identity": nil, "gzip": {{Name: "accept-encoding", Value: "gzip"}}} {
		answer, err := c.Do(t.Context(), fairqueue.Parties{"asker"}, w.request("GET", w.url("example.com", "/"), "", headers...), nil)
		if err != nil || !bytes.Equal(answer.Body, packed.Bytes()) || !slices.Contains(answer.Headers, outbound.Header{Name: "content-encoding", Value: "gzip"}) ||
			!slices.Contains(answer.Headers, outbound.Header{Name: "x-asked", Value: asked}) {
			t.Errorf("%s: %v", asked, err)
		}
	}
}

// A service that offers HTTP/2 cannot have it spoken.
func TestHTTP2IsNotUsed(t *testing.T) {
	for _, offers := range [][]string{{"h2", "http/1.1"}, {"h2"}} {
		w := newWorld(t, func(rw http.ResponseWriter, r *http.Request) { fmt.Fprint(rw, r.Proto) })
		w.server.TLS.NextProtos = offers
		if answer, err := w.get(w.client(), w.url("example.com", "/")); err != nil || string(answer.Body) != "HTTP/1.1" {
			t.Errorf("%v: %v %v", offers, answer, err)
		}
	}
}

// Neither a service that never answers, nor a handler that sends requests forever, nor a caller
// of many handlers can occupy all connections.
func TestConnectionsAreShared(t *testing.T) {
	for name, hangs := range map[string]struct {
		askers []string
		caller string // of all; empty: of each its own
		host   func(i int) string
	}{
		"one origin":  {[]string{"a", "b", "c", "d"}, "", func(int) string { return names[0] }},
		"one handler": {[]string{"a"}, "", func(i int) string { return names[i%2] }},
		"one caller":  {[]string{"a", "b", "c", "d"}, "caller a", func(i int) string { return names[i%2] }},
	} {
		t.Run(name, func(t *testing.T) {
			const connections = 8
			arrived := make(chan struct{}, 2*connections)
			w := newWorld(t, func(rw http.ResponseWriter, r *http.Request) {
				if r.URL.Path == "/hang" {
					arrived <- struct{}{}
					<-r.Context().Done()
				}
			})
			w.options.Connections = connections
			c := w.client()
			hanging, stop := context.WithCancel(t.Context())
			var callers sync.WaitGroup
			defer callers.Wait()
			defer stop()
			for i := range 2 * connections {
				callers.Go(func() {
					asker := hangs.askers[i%len(hangs.askers)]
					_, _ = c.Do(hanging, fairqueue.Parties{asker, cmp.Or(hangs.caller, "caller "+asker)}, w.request("GET", w.url(hangs.host(i), "/hang"), ""), nil)
				})
				if i < len(hangs.askers) { // a handler without a connection is served before others
					<-arrived
				}
			}
			for range connections*3/4 - len(hangs.askers) {
				<-arrived
			}
			for range 3 { // another handler, to a service that does not hang
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				if _, err := c.Do(ctx, fairqueue.Parties{"e", "e"}, w.request("GET", w.url(names[1], "/"), ""), nil); err != nil {
					t.Error(err)
				}
				cancel()
			}
			ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
			defer cancel()
			_, err := c.Do(ctx, fairqueue.Parties{"a", "caller a"}, w.request("GET", w.url(names[0], "/"), ""), nil)
			if e := errorOf(err); e.Reason != outbound.Unavailable || !strings.HasPrefix(e.Detail, "no connection is free") {
				t.Errorf("one more of those that hang: %v", err)
			}
			if len(arrived) > 0 {
				t.Errorf("%d more arrived", len(arrived))
			}
		})
	}
}

// A server announces a long answer and sends none of it. The client must not allocate
// memory for the announced length.
func TestContentLengthAllocatesNoMemory(t *testing.T) {
	w := newWorld(t, func(rw http.ResponseWriter, r *http.Request) {
		rw.Header().Set("Content-Length", fmt.Sprint(5<<20))
		rw.(http.Flusher).Flush()
		<-r.Context().Done()
	})
	c := w.client()
	const fetches = 8
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	var callers sync.WaitGroup
	for range fetches {
		callers.Go(func() {
			ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
			defer cancel()
			if _, err := c.Do(ctx, fairqueue.Parties{"asker"}, w.request("GET", w.url("example.com", "/"), ""), nil); err != context.DeadlineExceeded {
				t.Error(err)
			}
		})
	}
	callers.Wait()
	runtime.ReadMemStats(&after)
	if took := after.TotalAlloc - before.TotalAlloc; took > fetches<<20 {
		t.Errorf("%d answers without a byte took %d bytes of memory", fetches, took)
	}
}

func TestTheBodyOfARedirectIsNotRead(t *testing.T) {
	w := newWorld(t, func(rw http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/to" {
			return
		}
		rw.Header().Set("Content-Length", "100")
		rw.Header().Set("Location", "/to")
		rw.WriteHeader(http.StatusFound)
		rw.(http.Flusher).Flush()
		<-r.Context().Done()
	})
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if answer, err := w.client().Do(ctx, fairqueue.Parties{"asker"}, w.request("GET", w.url("example.com", "/"), ""), nil); err != nil || answer.Status != 200 {
		t.Errorf("%v %v", answer, err)
	}
}

func TestTimeEndsWithTheContext(t *testing.T) {
	hold := make(chan struct{})
	var once sync.Once
	release := func() { once.Do(func() { close(hold) }) }
	w := newWorld(t, func(rw http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/body" {
			fmt.Fprint(rw, "part")
			rw.(http.Flusher).Flush()
		}
		select {
		case <-hold:
		case <-r.Context().Done():
		}
	})
	t.Cleanup(release)
	c := w.client()
	for _, path := range []string{"/head", "/body"} {
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		if _, err := c.Do(ctx, fairqueue.Parties{"asker"}, w.request("GET", w.url("example.com", path), ""), nil); err != context.DeadlineExceeded {
			t.Errorf("%s: %v", path, err)
		}
		cancel()
	}
	w.options.Resolve = func(ctx context.Context, _ string) ([]netip.Addr, error) { <-ctx.Done(); return nil, ctx.Err() }
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(20*time.Millisecond, cancel)
	if _, err := w.client().Do(ctx, fairqueue.Parties{"asker"}, w.request("GET", w.url("example.com", "/"), ""), nil); err != context.Canceled {
		t.Errorf("a name lookup that never ends: %v", err)
	}
}

func TestAnUnreachableServiceIsUnavailable(t *testing.T) {
	w := newWorld(t, func(rw http.ResponseWriter, r *http.Request) {
		conn, _, _ := http.NewResponseController(rw).Hijack()
		_ = conn.Close()
	})
	w.server.TLS.NextProtos = []string{"http/1.1"}
	says := func(what, want string, err error) {
		t.Helper()
		if reasonOf(err) != outbound.Unavailable || !strings.Contains(errorOf(err).Detail, want) || errorOf(err).Kind == "" {
			t.Errorf("%s: %v, want %q", what, err, want)
		}
	}
	_, err := w.get(w.client(), w.url("example.com", "/"))
	says("a server that hangs up", "gave no answer", err)
	w.resolve = func(string) []string { return nil }
	_, err = w.get(w.client(), w.url("example.com", "/"))
	says("a name without addresses", "cannot be resolved", err)
	w.resolve = nil
	w.options.Roots = x509.NewCertPool()
	_, err = w.get(w.client(), w.url("example.com", "/"))
	says("a stranger's certificate", "is not trusted", err)

	w.resolve = func(string) []string { return []string{"127.9.9.9"} } // no server listens there
	_, err = w.get(w.client(), w.url("example.com", "/"))
	says("a port that is closed", "gave no answer", err)
}

func TestAnIncompleteResponseIsAnError(t *testing.T) {
	w := newWorld(t, func(rw http.ResponseWriter, r *http.Request) {
		rw.Header().Set("Content-Length", "100")
		fmt.Fprint(rw, "half")
	})
	if answer, err := w.get(w.client(), w.url("example.com", "/")); reasonOf(err) != outbound.Unavailable || answer != nil || errorOf(err).Kind != outbound.KindReset {
		t.Errorf("%v %v", answer, err)
	}
}

func TestPlainHTTPIsUsedForOriginsDeclaredWithIt(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) { fmt.Fprint(rw, "plain") }))
	t.Cleanup(server.Close)
	origins, err := outbound.ParseOrigins([]string{server.URL})
	if err != nil {
		t.Fatal(err)
	}
	r, err := outbound.NewRequest(origins, "GET", server.URL+"/", nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, allowed := range []bool{true, false} {
		c := outbound.New(outbound.Options{AllowPrivate: allowed})
		answer, err := c.Do(t.Context(), fairqueue.Parties{"asker"}, r, nil)
		if allowed && (err != nil || string(answer.Body) != "plain") || !allowed && reasonOf(err) != outbound.Denied {
			t.Errorf("private addresses allowed %v: %v", allowed, err)
		}
		c.Close()
	}
}

func TestOriginsAreParsedAsInSchemas(t *testing.T) {
	for _, text := range []string{"https://a.example", "https://A.example:443", "https://a.example.", "http://10.0.0.1:8080", "https://[::1]"} {
		if _, err := outbound.ParseOrigins([]string{text}); err != nil {
			t.Errorf("%s: %v", text, err)
		}
	}
	for _, text := range []string{"a.example", "https://", "https://a.example/", "https://u@a.example", "ftp://a.example", "https://a.example?q", "https://%zz"} {
		if _, err := outbound.ParseOrigins([]string{text}); err == nil {
			t.Errorf("%s is accepted", text)
		}
	}
	o, err := outbound.ParseOrigins([]string{"https://A.example:443"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := outbound.NewRequest(o, "GET", "https://a.EXAMPLE/x", nil, nil); err != nil {
		t.Error(err)
	}
}
