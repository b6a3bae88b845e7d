package front_test

import (
	"bufio"
	"bytes"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"

	"runner.example/hostabi/abi"
	"runner.example/internal/fault"
	"runner.example/runtime/front"
)

// answered gives the answer of handle to a GET.
func answered(t testing.TB, handle func(*front.Exchange)) answer {
	t.Helper()
	s := serve(t, front.Options{}, handle)
	all := s.talk(t, "GET /secret-path?q=secret-query HTTP/1.1\r\nHost: a\r\nX: secret-header\r\n\r\n")
	if len(all) != 1 {
		t.Fatalf("%d answers", len(all))
	}
	return all[0]
}

func pairs(all ...string) (p []abi.Pair) {
	for i := 0; i < len(all); i += 2 {
		p = append(p, abi.Pair{Name: []byte(all[i]), Value: []byte(all[i+1])})
	}
	return p
}

func TestAnAnswerIsSentUnchanged(t *testing.T) {
	for _, row := range []struct {
		name    string
		private bool
		r       abi.Response
		body    string
		want    map[string]string
	}{
		{"a body", false, abi.Response{Status: 200, Body: []byte("{}")}, "{}", map[string]string{"Content-Type": "application/json", "Content-Length": "2", "Cache-Control": "", "Vary": ""}},
		{"a type of its own", false, abi.Response{Status: 201, Headers: pairs("content-type", "text/csv", "location", "/a?b=c"), Body: []byte("a")}, "a", map[string]string{"Content-Type": "text/csv", "Location": "/a?b=c"}},
		{"no body", false, abi.Response{Status: 200}, "", map[string]string{"Content-Type": "", "Content-Length": "0"}},
		{"no content", false, abi.Response{Status: 204, Headers: pairs("content-type", "text/plain", "x", "y"), Body: []byte("a")}, "", map[string]string{"Content-Type": "", "Content-Length": "", "X": "y"}},
		{"not modified", false, abi.Response{Status: 304, Headers: pairs("etag", `"a"`)}, "", map[string]string{"Content-Type": "", "Content-Length": "", "Etag": `"a"`}},
		{"a status without a standard name", false, abi.Response{Status: 299, Body: []byte("a")}, "a", nil},
		{"a header twice", false, abi.Response{Status: 200, Headers: pairs("x", "a", "X", "b", "set-cookie", "c=1; Path=/", "set-cookie", "c=2; Path=/x")}, "", map[string]string{"X": "a|b", "Set-Cookie": "c=1; Path=/|c=2; Path=/x"}},
		{"a private route", true, abi.Response{Status: 200, Body: []byte("a")}, "a", map[string]string{"Cache-Control": "no-store", "Vary": "Authorization, Cookie, X-API-Key"}},
		{"a private route that says otherwise", true, abi.Response{Status: 200, Headers: pairs("cache-control", "private, max-age=5", "vary", "Accept"), Body: []byte("a")}, "a", map[string]string{"Cache-Control": "private, max-age=5", "Vary": "Authorization, Cookie, X-API-Key|Accept"}},
		{"a 401 of its own", false, abi.Response{Status: 401, Headers: pairs("cache-control", "public"), Body: []byte("a")}, "a", map[string]string{"Cache-Control": "no-store", "Www-Authenticate": `Bearer realm="runner"`}},
		{"a 429 of its own", false, abi.Response{Status: 429, Body: []byte("a")}, "a", map[string]string{"Cache-Control": "no-store"}},
		{"its own challenge", false, abi.Response{Status: 401, Headers: pairs("www-authenticate", "Basic realm=a"), Body: []byte("a")}, "a", map[string]string{"Www-Authenticate": "Basic realm=a"}},
		{"what is the host's", false, abi.Response{Status: 200, Headers: pairs("server", "x", "date", "x", "connection", "close", "content-length", "9", "transfer-encoding", "chunked", "trailer", "x", "upgrade", "x", "x-request-id", "x", "keep-alive", "x"), Body: []byte("a")}, "a", map[string]string{"Server": "", "Connection": "", "Content-Length": "1", "Trailer": "", "Upgrade": "", "Keep-Alive": ""}},
		{"what ends a line", false, abi.Response{Status: 200, Headers: pairs("a b", "x", "", "x", "x:y", "z", "evil", "a\r\nX-Evil: b", "evil2", "a\nb", "evil3", "\x00")}, "", map[string]string{"Evil": "", "Evil2": "", "Evil3": "", "X-Evil": "", "A b": ""}},
	} {
		a := answered(t, func(x *front.Exchange) {
			x.Private = row.private
			x.AddHeader("RateLimit", []byte(`"default";r=1`))
			x.Send(&row.r)
			if x.Status() != row.r.Status {
				t.Errorf("%s: Status is %d", row.name, x.Status())
			}
		})
		if a.StatusCode != row.r.Status || a.body != row.body || a.Header.Get("RateLimit") != `"default";r=1` ||
			len(a.Header["X-Request-Id"]) != 1 || len(a.Header["Date"]) != 1 || a.Header.Get("Date") == "x" {
			t.Errorf("%s: %d %v %q", row.name, a.StatusCode, a.Header, a.body)
		}
		for name, want := range row.want {
			if got := strings.Join(a.Header[name], "|"); got != want {
				t.Errorf("%s: %s is %q, want %q", row.name, name, got, want)
			}
		}
	}
}

// The answer is written after handle has returned, and its bytes are someone
// else's again by then.
func TestAnAnswerIsCopied(t *testing.T) {
	for _, size := range []int{1, 16 << 10, 16<<10 + 1, 1 << 20} {
		want := strings.Repeat("a", size)
		a := answered(t, func(x *front.Exchange) {
			r := text(200, want)
			x.Send(r)
			copy(r.Body, strings.Repeat("b", size))
			copy(r.Headers[0].Value, "image/png!")
		})
		if a.body != want || a.Header.Get("Content-Type") != "text/plain" {
			t.Errorf("%d bytes: %v, %.20q", size, a.Header, a.body)
		}
	}
}

func TestHEADHasTheHeadersOfItsBodyAndNoBody(t *testing.T) {
	s := serve(t, front.Options{}, func(x *front.Exchange) {
		switch string(x.Request.Path) {
		case "/body":
			x.Send(text(200, "hello"))
		case "/empty":
			x.Send(&abi.Response{Status: 200})
		case "/none":
			x.Send(&abi.Response{Status: 204})
		default:
			x.Refuse(&fault.Fault{Code: fault.RouteNotFound}, front.Extra{})
		}
	})
	nc := s.dial(t)
	r := bufio.NewReader(nc)
	for _, row := range []struct {
		path   string
		status int
		length string
	}{{"/body", 200, "5"}, {"/empty", 200, "0"}, {"/none", 204, ""}, {"/nowhere", 404, ""}} {
		for _, method := range []string{"HEAD", "GET"} { // a body where none belongs would spoil the next answer
			if _, err := nc.Write([]byte(method + " " + row.path + " HTTP/1.1\r\nHost: a\r\n\r\n")); err != nil {
				t.Fatal(err)
			}
			a := readAnswer(t, r, method)
			if a.StatusCode != row.status || row.path != "/nowhere" && a.Header.Get("Content-Length") != row.length {
				t.Errorf("%s %s: %d, Content-Length %q", method, row.path, a.StatusCode, a.Header.Get("Content-Length"))
			}
		}
	}
	stage := newStage()
	startOn(t, stage, front.Options{}, hello)
	for _, refused := range []string{"HEAD /a HTTP/1.1\r\n\r\n", "HEAD /a HTTP/1.1\r\nHost: a\r\nX: a\n"} {
		if out := string(stage.play(refused, 0)); !strings.HasPrefix(out, "HTTP/1.1 400 ") || !strings.HasSuffix(out, "\r\n\r\n") {
			t.Errorf("%q: %q", refused, out)
		}
	}
}

// Whatever a handler sets, a client reads exactly the headers that are allowed
// and the one body, and nothing else.
func FuzzResponseHeaders(f *testing.F) {
	f.Add("X-A", "b", "body")
	f.Add("X-A  Evil", "b", "")
	f.Add("x", "a\r\nX-Evil: 1\r\n\r\nbody", "a")
	f.Add("Content-Length", "0", "GET / HTTP/1.1\r\n\r\n")
	f.Add("Set-Cookie", "a=b", "")
	f.Add("Content-Type", "", "a")
	f.Add("ContenT-type", " ", "a")
	f.Add("Trailer", "X-A", "a")
	var name, value, body string
	s := newStage()
	startOn(f, s, front.Options{}, func(x *front.Exchange) {
		x.Send(&abi.Response{Status: 200, Headers: pairs(name, value), Body: []byte(body)})
	})
	host := []string{"Connection", "Keep-Alive", "Content-Length", "Transfer-Encoding", "Trailer", "Upgrade", "Te", "Date", "Server", "Www-Authenticate", "X-Request-Id"}
	f.Fuzz(func(t *testing.T, n, v, b string) {
		name, value, body = n, v, b
		r := bufio.NewReader(bytes.NewReader(s.play("GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n", 0)))
		a := readAnswer(t, r, "GET")
		if _, err := r.ReadByte(); err == nil {
			t.Fatal("bytes behind the answer")
		}
		want := http.Header{}
		if token(n) && !strings.ContainsFunc(v, func(c rune) bool { return c < ' ' && c != '\t' || c == 0x7f }) &&
			!slices.Contains(host, http.CanonicalHeaderKey(n)) {
			want.Add(n, strings.Trim(v, " \t"))
		}
		for _, h := range host {
			a.Header.Del(h)
		}
		if len(b) > 0 && want.Get("Content-Type") == "" {
			want.Set("Content-Type", "application/json")
		}
		if len(want["Content-Type"]) > 0 && want.Get("Content-Type") == "" {
			want.Del("Content-Type") // set to nothing is not set
		}
		if a.body != b || !maps.EqualFunc(a.Header, want, slices.Equal[[]string]) {
			t.Errorf("set %q: %q, read %v %q, want %v", n, v, a.Header, a.body, want)
		}
	})
}

func token(s string) bool {
	return s != "" && !strings.ContainsFunc(s, func(c rune) bool {
		return c <= ' ' || c >= 0x7f || strings.ContainsRune(`"(),/:;<=>?@[\]{}`, c)
	})
}

func TestRequestIDsAreULIDsOfTheServer(t *testing.T) {
	seen := map[string]bool{}
	s := serve(t, front.Options{}, func(x *front.Exchange) {
		seen[x.Request.ID] = true
		x.Send(text(200, x.Request.ID))
	})
	for i := range 100 {
		a := s.talk(t, "GET / HTTP/1.1\r\nHost: a\r\nX-Request-Id: mine"+strconv.Itoa(i)+"\r\n\r\n")[0]
		id := a.Header.Get("X-Request-Id")
		if id != a.body || len(id) != 26 || strings.Trim(id, "0123456789abcdefghjkmnpqrstvwxyz") != "" {
			t.Fatalf("X-Request-Id %q, in the request %q", id, a.body)
		}
	}
	if len(seen) != 100 {
		t.Errorf("%d ids of 100 requests", len(seen))
	}
}
