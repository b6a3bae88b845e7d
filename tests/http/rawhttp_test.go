package http_test

import (
	"bufio"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	"runner.example/tests/harness"
)

// probe is a byte-exact request and the expected responses.
type probe struct {
	name    string
	request string // \n becomes \r\n; {token} is a key of scope reader
	// answers are the expected statuses of all responses on the connection, each
	// followed by the problem's code if there is one: "404 route_not_found".
	answers []string
	// closed is set when the server must close the connection.
	closed bool
	// body is a part of the last response's body.
	body string
}

func get(target string) string { return "GET " + target + " HTTP/1.1\nHost: probe\n\n" }

// probes covers the table of refusals and the rules of paths, methods,
// framing and credentials.
var probes = []probe{
	{name: "a plain request", request: get("/hello"), answers: []string{"200"}, body: `{"message":"hello"}`},
	{name: "HTTP/1.0", request: "GET /hello HTTP/1.0\nHost: probe\n\n", answers: []string{"200"}, closed: true},
	{name: "Connection: close", request: "GET /hello HTTP/1.1\nHost: probe\nConnection: close\n\n", answers: []string{"200"}, closed: true},
	{name: "two pipelined requests", request: get("/hello") + get("/empty"), answers: []string{"200", "204"}},

	{name: "no route", request: get("/nowhere"), answers: []string{"404 route_not_found"}},
	{name: "known path, other method", request: "DELETE /dump HTTP/1.1\nHost: probe\n\n", answers: []string{"405 method_not_allowed"}},
	{name: "TRACE", request: "TRACE /hello HTTP/1.1\nHost: probe\n\n", answers: []string{"501 method_not_implemented"}},
	{name: "TRACE on no route", request: "TRACE /nowhere HTTP/1.1\nHost: probe\n\n", answers: []string{"501 method_not_implemented"}},
	{name: "CONNECT", request: "CONNECT probe:443 HTTP/1.1\nHost: probe\n\n", answers: []string{"501 method_not_implemented"}},
	{name: "lower-case method", request: "get /hello HTTP/1.1\nHost: probe\n\n", answers: []string{"501 method_not_implemented"}},
	{name: "unknown method", request: "BREW /hello HTTP/1.1\nHost: probe\n\n", answers: []string{"501 method_not_implemented"}},
	{name: "method override is ignored", request: "GET /dump HTTP/1.1\nHost: probe\nX-HTTP-Method-Override: DELETE\n\n", answers: []string{"200"}},
	{name: "HEAD is served by GET", request: "HEAD /hello HTTP/1.1\nHost: probe\n\n", answers: []string{"200"}},
	{name: "a HEAD route is used before GET", request: "HEAD /own HTTP/1.1\nHost: probe\n\n", answers: []string{"204"}},
	{name: "HEAD of nothing", request: "HEAD /nowhere HTTP/1.1\nHost: probe\n\n", answers: []string{"404"}},
	{name: "OPTIONS", request: "OPTIONS /dump HTTP/1.1\nHost: probe\n\n", answers: []string{"204"}},
	{name: "OPTIONS before credentials", request: "OPTIONS /v1/dump HTTP/1.1\nHost: probe\n\n", answers: []string{"204"}},
	{name: "an OPTIONS route is used first", request: "OPTIONS /options HTTP/1.1\nHost: probe\n\n", answers: []string{"200"}, body: "hello"},
	{name: "OPTIONS of nothing", request: "OPTIONS /nowhere HTTP/1.1\nHost: probe\n\n", answers: []string{"404 route_not_found"}},
	{name: "OPTIONS *", request: "OPTIONS * HTTP/1.1\nHost: probe\n\n", answers: []string{"400 bad_path"}},

	{name: "// in the path", request: get("//hello"), answers: []string{"400 bad_path"}},
	{name: "// inside the path", request: get("/a//b"), answers: []string{"400 bad_path"}},
	{name: "dot segment", request: get("/./hello"), answers: []string{"400 bad_path"}},
	{name: "dot-dot segment", request: get("/a/../hello"), answers: []string{"400 bad_path"}},
	{name: "encoded dot segment", request: get("/%2e/hello"), answers: []string{"400 bad_path"}},
	{name: "half-encoded dot-dot segment", request: get("/a/.%2E/hello"), answers: []string{"400 bad_path"}},
	{name: "encoded slash", request: get("/a/b%2Fc/c"), answers: []string{"400 bad_path"}},
	{name: "encoded slash, small", request: get("/a/b%2fc/c"), answers: []string{"400 bad_path"}},
	{name: "encoded backslash", request: get("/a/b%5Cc/c"), answers: []string{"400 bad_path"}},
	{name: "backslash", request: get(`/a\b`), answers: []string{"400 bad_path"}},
	{name: "control character", request: get("/a\x01b"), answers: []string{"400 bad_path"}},
	{name: "encoded control character", request: get("/a/%00/c"), answers: []string{"400 bad_path"}},
	{name: "encoded DEL", request: get("/a/%7f/c"), answers: []string{"400 bad_path"}},
	{name: "invalid percent escape", request: get("/a/%zz/c"), answers: []string{"400 bad_path"}},
	{name: "cut percent escape", request: get("/a/b%2"), answers: []string{"400 bad_path"}},
	{name: "not UTF-8 after decoding", request: get("/a/%ff/c"), answers: []string{"400 bad_path"}},
	{name: "fragment", request: get("/hello#x"), answers: []string{"400 bad_path"}},
	{name: "absolute form", request: get("http://probe/hello"), answers: []string{"200"}},
	{name: "absolute form with another host", request: get("http://x/hello"), answers: []string{"400 invalid_request"}},
	{name: "absolute form of another scheme", request: get("cb://x/hello"), answers: []string{"400 bad_path"}},
	{name: "no leading slash", request: get("hello"), answers: []string{"400 bad_path"}},
	{name: "the path is checked before the route", request: get("/nowhere/%2e%2e/x"), answers: []string{"400 bad_path"}},

	{name: "case matters", request: get("/Hello"), answers: []string{"404 route_not_found"}},
	{name: "a final slash matters", request: get("/hello/"), answers: []string{"404 route_not_found"}},
	{name: "a final slash matters the other way", request: get("/slash"), answers: []string{"404 route_not_found"}},
	{name: "the path with its slash", request: get("/slash/"), answers: []string{"200"}},
	{name: "backtracking, literal", request: get("/a/b/d"), answers: []string{"200"}},
	{name: "backtracking, parameter", request: get("/a/b/c"), answers: []string{"200"}},
	{name: "backtracking, neither", request: get("/a/b/e"), answers: []string{"404 route_not_found"}},
	{name: "an empty parameter", request: get("/a//c"), answers: []string{"400 bad_path"}},
	{name: "an empty rest", request: get("/files/"), answers: []string{"404 route_not_found"}},
	{name: "static beats rest", request: get("/files/static"), answers: []string{"200"}, body: "hello"},
	{name: "rest", request: get("/files/a/b"), answers: []string{"200"}},

	{name: "HTTP/2.0 in the request line", request: "GET /hello HTTP/2.0\nHost: probe\n\n", answers: []string{"505 http_version"}, closed: true},
	{name: "HTTP/1.2", request: "GET /hello HTTP/1.2\nHost: probe\n\n", answers: []string{"505 http_version"}, closed: true},
	{name: "no Host", request: "GET /hello HTTP/1.1\n\n", answers: []string{"400 invalid_request"}, closed: true},
	{name: "URI too long", request: get("/" + strings.Repeat("x", 8200)), answers: []string{"414 uri_too_long"}, closed: true},
	{name: "URI far too long", request: get("/" + strings.Repeat("x", 40<<10)), answers: []string{"414 uri_too_long"}, closed: true},
	{name: "headers too large", request: "GET /hello HTTP/1.1\nHost: probe\nX-Big: " + strings.Repeat("x", 17<<10) + "\n\n", answers: []string{"431 headers_too_large"}, closed: true},
	{name: "too many headers", request: "GET /hello HTTP/1.1\nHost: probe\n" + strings.Repeat("X-Many: 1\n", 101) + "\n", answers: []string{"431 headers_too_large"}, closed: true},
	{name: "too many query pairs", request: get("/dump?" + strings.Repeat("a=1&", 101)), answers: []string{"400 invalid_request"}},

	{name: "Content-Length with Transfer-Encoding", request: "POST /dump HTTP/1.1\nHost: probe\nContent-Length: 5\nTransfer-Encoding: chunked\n\n0\n\n" + get("/hello"), answers: []string{"400 invalid_request"}, closed: true},
	{name: "Transfer-Encoding with Content-Length", request: "POST /dump HTTP/1.1\nHost: probe\nTransfer-Encoding: chunked\nContent-Length: 5\n\n0\n\n" + get("/hello"), answers: []string{"400 invalid_request"}, closed: true},
	{name: "two Content-Lengths", request: "POST /dump HTTP/1.1\nHost: probe\nContent-Length: 1\nContent-Length: 2\n\nab", answers: []string{"400 invalid_request"}, closed: true},
	{name: "Content-Length with a sign", request: "POST /dump HTTP/1.1\nHost: probe\nContent-Length: +1\n\na", answers: []string{"400 invalid_request"}, closed: true},
	{name: "Transfer-Encoding other than chunked", request: "POST /dump HTTP/1.1\nHost: probe\nTransfer-Encoding: gzip\n\n", answers: []string{"400 invalid_request"}, closed: true},
	{name: "obs-fold", request: "GET /hello HTTP/1.1\nHost: probe\nX-Fold: a\n b\n\n", answers: []string{"400 invalid_request"}, closed: true},
	{name: "obs-fold with a tab in a credential", request: "GET /v1/dump HTTP/1.1\nHost: probe\nAuthorization: Bearer\n\t{token}\n\n", answers: []string{"400 invalid_request"}, closed: true},
	{name: "blank before the colon", request: "GET /hello HTTP/1.1\nHost: probe\nX-A : 1\n\n", answers: []string{"400 invalid_request"}, closed: true},
	{name: "chunked", request: "POST /dump HTTP/1.1\nHost: probe\nTransfer-Encoding: chunked\n\n3\nabc\n0\n\n", answers: []string{"200"}, body: "abc"},
	{name: "chunk extension, short", request: "POST /dump HTTP/1.1\nHost: probe\nTransfer-Encoding: chunked\n\n3;a=b\nabc\n0\n\n", answers: []string{"200"}, body: "abc"},
	{name: "chunk extension, long", request: "POST /dump HTTP/1.1\nHost: probe\nTransfer-Encoding: chunked\n\n3;" + strings.Repeat("x", 65) + "\nabc\n0\n\n" + get("/hello"), answers: []string{"400 invalid_request"}, closed: true},
	{name: "invalid chunk size", request: "POST /dump HTTP/1.1\nHost: probe\nTransfer-Encoding: chunked\n\nzz\nabc\n0\n\n" + get("/hello"), answers: []string{"400 invalid_request"}, closed: true},
	{name: "a body then a request", request: "POST /dump HTTP/1.1\nHost: probe\nContent-Length: 3\n\nabc" + get("/empty"), answers: []string{"200", "204"}},
	{name: "a refused body is not read as a request", request: "POST /nowhere HTTP/1.1\nHost: probe\nContent-Length: 39\n\n" + "GET /hello HTTP/1.1\nHost: probe\n\n", answers: []string{"404 route_not_found"}},
	{name: "a refused body is not read as a request, unauthenticated", request: "POST /v1/dump HTTP/1.1\nHost: probe\nContent-Length: 39\n\n" + "GET /hello HTTP/1.1\nHost: probe\n\n", answers: []string{"401 missing_credentials"}},
	{name: "a GET's body is read", request: "GET /dump HTTP/1.1\nHost: probe\nContent-Length: 3\n\nabc" + get("/empty"), answers: []string{"200", "204"}},
	{name: "body too large", request: "POST /small HTTP/1.1\nHost: probe\nContent-Length: 17\n\n12345678901234567", answers: []string{"413 body_too_large"}},
	{name: "body too large, chunked", request: "POST /small HTTP/1.1\nHost: probe\nTransfer-Encoding: chunked\n\n11\n12345678901234567\n0\n\n", answers: []string{"413 body_too_large"}},
	{name: "body at its limit", request: "POST /small HTTP/1.1\nHost: probe\nContent-Length: 16\n\n1234567890123456", answers: []string{"200"}, body: "1234567890123456"},
	{name: "credentials are checked before the body's size", request: "POST /v1/dump HTTP/1.1\nHost: probe\nContent-Length: 17\n\n12345678901234567", answers: []string{"401 missing_credentials"}},
	{name: "the scope is checked before the body's size", request: "POST /v1/dump HTTP/1.1\nHost: probe\nAuthorization: Bearer {token}\nContent-Length: 17\n\n12345678901234567", answers: []string{"403 insufficient_scope"}},

	{name: "no credential", request: get("/v1/dump"), answers: []string{"401 missing_credentials"}},
	{name: "bearer", request: "GET /v1/dump HTTP/1.1\nHost: probe\nAuthorization: Bearer {token}\n\n", answers: []string{"200"}},
	{name: "bearer in small letters", request: "GET /v1/dump HTTP/1.1\nHost: probe\nauthorization: bearer {token}\n\n", answers: []string{"200"}},
	{name: "X-API-Key", request: "GET /v1/dump HTTP/1.1\nHost: probe\nX-API-Key: {token}\n\n", answers: []string{"200"}},
	{name: "both", request: "GET /v1/dump HTTP/1.1\nHost: probe\nX-API-Key: {token}\nAuthorization: Bearer {token}\n\n", answers: []string{"400 invalid_request"}},
	{name: "bearer twice", request: "GET /v1/dump HTTP/1.1\nHost: probe\nAuthorization: Bearer {token}\nAuthorization: Bearer {token}\n\n", answers: []string{"400 invalid_request"}},
	{name: "X-API-Key twice", request: "GET /v1/dump HTTP/1.1\nHost: probe\nX-API-Key: {token}\nX-API-Key: {token}\n\n", answers: []string{"400 invalid_request"}},
	{name: "a cookie beside a key is not looked at", request: "GET /v1/dump HTTP/1.1\nHost: probe\nX-API-Key: {token}\nCookie: __Host-session=x\n\n", answers: []string{"200"}},
	{name: "token in the query", request: get("/v1/dump?api_key={token}"), answers: []string{"401 missing_credentials"}},
	{name: "basic", request: "GET /v1/dump HTTP/1.1\nHost: probe\nAuthorization: Basic YTpi\n\n", answers: []string{"401 invalid_token"}},
	{name: "rubbish", request: "GET /v1/dump HTTP/1.1\nHost: probe\nAuthorization: Bearer rubbish\n\n", answers: []string{"401 invalid_token"}},
	{name: "a JWT where keys are asked for", request: "GET /v1/dump HTTP/1.1\nHost: probe\nAuthorization: Bearer a.b.c\n\n", answers: []string{"401 invalid_token"}},
	{name: "wrong scope", request: "POST /v1/dump HTTP/1.1\nHost: probe\nAuthorization: Bearer {token}\nContent-Length: 0\n\n", answers: []string{"403 insufficient_scope"}},
	{name: "a key where a session is asked for", request: "GET /v1/session HTTP/1.1\nHost: probe\nAuthorization: Bearer {token}\n\n", answers: []string{"401 invalid_token"}},
	{name: "no session", request: get("/v1/session"), answers: []string{"401 missing_credentials"}},
	{name: "the route is checked before credentials", request: get("/v1/nowhere"), answers: []string{"404 route_not_found"}},
	{name: "the method is checked before credentials", request: "DELETE /v1/dump HTTP/1.1\nHost: probe\n\n", answers: []string{"405 method_not_allowed"}},

	{name: "a helper's error", request: get("/missing"), answers: []string{"404 not_found"}, body: `"detail":"nothing here"`},
	{name: "a helper's 401", request: get("/unauthorized"), answers: []string{"401 unauthorized"}},
	{name: "no content", request: get("/empty"), answers: []string{"204"}},
	{name: "nothing else is served", request: get("/metrics"), answers: []string{"404 route_not_found"}},
}

func TestRawRequestsGetTheirResponses(t *testing.T) {
	t.Parallel()
	a := harness.NewApp(t, harness.ProbeSchema, "", "echo")
	s := a.Serve()
	token := a.Token("reader")
	for _, p := range probes {
		t.Run(p.name, func(t *testing.T) {
			request := strings.ReplaceAll(strings.ReplaceAll(p.request, "\n", "\r\n"), "{token}", token)
			reply, closed := s.Exchange(request, 250*time.Millisecond, func(reply string) bool {
				return !p.closed && wholeAnswers(request, reply) >= len(p.answers)
			})
			answers := readAnswers(t, request, reply)
			var got []string
			for _, a := range answers {
				got = append(got, harness.CheckAnswer(t, a))
			}
			if strings.Join(got, ", ") != strings.Join(p.answers, ", ") {
				t.Fatalf("answers %q, want %q\n%s", got, p.answers, reply)
			}
			if p.closed && !closed {
				t.Error("the connection stayed open")
			}
			if last := answers[len(answers)-1]; !strings.Contains(last.Body, p.body) {
				t.Errorf("body %q does not contain %q", last.Body, p.body)
			}
		})
	}
}

// wholeAnswers counts the complete responses received so far.
func wholeAnswers(request, reply string) (n int) {
	method, _, _ := strings.Cut(request, " ")
	for r := bufio.NewReader(strings.NewReader(reply)); ; n++ {
		res, err := http.ReadResponse(r, &http.Request{Method: method})
		if err != nil {
			return n
		}
		if _, err := io.ReadAll(res.Body); err != nil {
			return n
		}
	}
}

func readAnswers(t *testing.T, request, reply string) []harness.Answer {
	t.Helper()
	method, _, _ := strings.Cut(request, " ")
	var answers []harness.Answer
	for r := bufio.NewReader(strings.NewReader(reply)); ; {
		if _, err := r.Peek(1); err == io.EOF {
			if len(answers) == 0 {
				t.Fatal("the server gave no answer")
			}
			return answers
		}
		res, err := http.ReadResponse(r, &http.Request{Method: method})
		if err != nil {
			t.Fatalf("read an answer: %v\n%s", err, reply)
		}
		body, err := io.ReadAll(res.Body)
		if err != nil {
			t.Fatalf("read a body: %v\n%s", err, reply)
		}
		answers = append(answers, harness.Answer{Status: res.StatusCode, Header: res.Header, Body: string(body)})
	}
}

var requestID = regexp.MustCompile(`^[0-9a-z]{26}$`)

func TestChallengesNameRealmErrorAndScope(t *testing.T) {
	a := harness.NewApp(t, harness.ProbeSchema, "", "echo")
	s := a.Serve()
	token := a.Token("reader")
	rows := []struct{ path, token, want string }{
		{"/v1/dump", "", `Bearer realm="probe"`},
		{"/v1/dump", "rubbish", `Bearer realm="probe", error="invalid_token"`},
	}
	for _, row := range rows {
		if got := s.Get(row.path, row.token).Header.Get("WWW-Authenticate"); got != row.want {
			t.Errorf("%s with %q: WWW-Authenticate %q, want %q", row.path, row.token, got, row.want)
		}
	}
	got := s.Do("POST", "/v1/dump", "", "X-API-Key: "+token)
	if want := `Bearer realm="probe", error="insufficient_scope", scope="writer"`; got.Status != 403 || got.Header.Get("WWW-Authenticate") != want {
		t.Errorf("wrong scope: %d, WWW-Authenticate %q, want %q", got.Status, got.Header.Get("WWW-Authenticate"), want)
	}
	if got := s.Get("/unauthorized", "").Header.Get("WWW-Authenticate"); got != `Bearer realm="probe"` {
		t.Errorf("a handler's 401: WWW-Authenticate %q", got)
	}
}

func TestHandlersGetTheRequestUnchanged(t *testing.T) {
	a := harness.NewApp(t, harness.ProbeSchema, "", "echo")
	s := a.Serve()
	reply := s.Raw("POST /dump?b=2+%2B&a=1&b=3&c&%C3%A4=%20 HTTP/1.1\r\nHost: probe\r\nX-Two: a\r\nCookie: a=1\r\nx-two: b\r\nCookie: b=2\r\n"+
		"X-Runner-User: root\r\nX_Two: twin\r\nX_Only: kept\r\nTE: trailers\r\nKeep-Alive: timeout=5\r\nProxy-Authorization: Basic x\r\nConnection: close, X-Hop\r\nX-Hop: 1\r\n"+
		"User-Agent: caf\xe9\r\nX-UTF8: café\r\nX-Mixed: é\xe9\r\n"+
		"Authorization: Bearer passes\r\nContent-Encoding: gzip\r\nContent-Length: 5\r\n\r\n\x00\x01\xff\r\n", harness.Timeout)
	d := harness.ReadDump(t, readAnswers(t, "POST", reply)[0])
	if d.Method != "POST" || d.Path != "/dump" || d.Body != "\x00\x01\xff\r\n" {
		t.Errorf("method %q, path %q, body %q", d.Method, d.Path, d.Body)
	}
	if got, want := fmt.Sprint(d.Query), "[[b 2 +] [a 1] [b 3] [c ] [ä  ]]"; got != want {
		t.Errorf("query %s, want %s", got, want)
	}
	for name, want := range map[string]string{
		"host": "probe", "x-two": "a, b", "cookie": "a=1; b=2", "x_only": "kept", "authorization": "Bearer passes", "content-encoding": "gzip",
		"user-agent": "café", "x-utf8": "café", "x-mixed": "Ã©é", // obs-text of RFC 9110
		"x-runner-user": "", "x_two": "", "te": "", "keep-alive": "", "proxy-authorization": "", "connection": "", "x-hop": "",
	} {
		if got := d.Header(name); got != want {
			t.Errorf("header %s is %q, want %q", name, got, want)
		}
	}
	if d.Context.Route != "/dump" || !requestID.MatchString(d.Context.RequestID) || d.Context.Auth["kind"] != "anonymous" {
		t.Errorf("context %+v", d.Context)
	}

	d = harness.ReadDump(t, s.Get("/a/b%20%C3%A4+%25/c?x=1", ""))
	if d.Path != "/a/b%20%C3%A4+%25/c" || fmt.Sprint(d.Params) != "[[x b ä+%]]" || d.Context.Route != "/a/:x/c" {
		t.Errorf("path %q, params %v, route %q", d.Path, d.Params, d.Context.Route)
	}
	if d = harness.ReadDump(t, s.Get("/files/a/b%20c", "")); fmt.Sprint(d.Params) != "[[rest a/b c]]" {
		t.Errorf("rest params %v", d.Params)
	}
	if d = harness.ReadDump(t, s.Do("GET", "/dump", "", "X-Request-Id: forged")); d.Context.RequestID == "forged" {
		t.Error("the client's X-Request-Id was used")
	}
	if got := s.Do("HEAD", "/hello", ""); got.Status != 200 || got.Body != "" || got.Header.Get("Content-Length") != "19" {
		t.Errorf("HEAD: %d, Content-Length %q, body %q", got.Status, got.Header.Get("Content-Length"), got.Body)
	}
	if got := s.Do("OPTIONS", "/dump", "").Header.Get("Allow"); got != "GET, HEAD, POST, PUT, OPTIONS" {
		t.Errorf("Allow %q", got)
	}
}

func TestHandlersCannotSeeCredentials(t *testing.T) {
	a := harness.NewApp(t, harness.ProbeSchema, "", "echo")
	s := a.Serve()
	token := a.Token("reader")
	for _, line := range []string{"Authorization: Bearer " + token, "X-API-Key: " + token} {
		got := s.Do("GET", "/v1/dump", "", line, "X-Other: stays")
		d := harness.ReadDump(t, got)
		if strings.Contains(got.Body, token) || d.Header("authorization") != "" || d.Header("x-api-key") != "" {
			t.Errorf("%.13s: the handler saw the credential: %v", line, d.Headers)
		}
		auth := d.Context.Auth
		if d.Header("x-other") != "stays" || auth["kind"] != "apiKey" || auth["scope"] != "reader" || auth["capability"] != "probe.reader" || auth["keyId"] == "" {
			t.Errorf("headers %v, auth %v", d.Headers, auth)
		}
	}
}

func TestRedirectTargets(t *testing.T) {
	s := harness.NewApp(t, harness.ProbeSchema, "", "echo").Serve()
	for target, status := range map[string]int{
		"/there": 302, "/": 302, "/a?b=c#d": 302, "https://example.com/x": 302, "http://example.com": 302,
		"there": 302, "?x=1": 302, "myapp://open": 302, "ftp://x": 302,
		"//evil.example": 299, `/\evil.example`: 299, "javascript:alert(1)": 299, "https:///x": 299, "": 299,
		`https://evil.example\@good.example`: 299, `/a\b`: 299, "https://good.example@evil.example": 299, "https://evil。example": 299,
	} {
		got, location := redirect(t, s, target)
		if got != status || status == 302 && location != target {
			t.Errorf("%q: %d with Location %q, want %d", target, got, location, status)
		}
	}
}

func TestHandlersCannotSetHeadersOfTheHost(t *testing.T) {
	s := harness.NewApp(t, harness.ProbeSchema, "", "echo").Serve()
	for _, name := range []string{
		"Connection", "transfer-encoding", "Content-Length", "Date", "Server", "Trailer", "Upgrade", "Proxy-Connection",
		"X-Request-Id", "RateLimit", "RateLimit-Policy", "X Evil", "X-Evil:", "",
	} {
		if got := s.Do("GET", "/header", "", "X-Name: "+name, "X-Value: v"); got.Status != 299 {
			t.Errorf("%q was accepted: %d", name, got.Status)
		}
	}
	if got := s.Do("GET", "/header", "", "X-Name: X-Mine", "X-Value: v w"); got.Status != 200 || got.Header.Get("X-Mine") != "v w" {
		t.Errorf("X-Mine: %d %q", got.Status, got.Header.Get("X-Mine"))
	}
}

// The order of the checks is fixed. Only an accepted request uses quota.
func TestRefusedRequestsCostNoQuota(t *testing.T) {
	a := harness.NewApp(t, harness.ProbeSchema, "", "echo")
	s := a.Serve()
	reader, other := a.Token("reader"), a.Token("other")
	for range 10 {
		if got := s.Get("/v1/limited", ""); got.Status != 401 {
			t.Fatalf("no credential: %d", got.Status)
		}
		if got := s.Get("/v1/limited", other); got.Status != 403 {
			t.Fatalf("wrong scope: %d", got.Status)
		}
		if got := s.Do("OPTIONS", "/v1/limited", "", "Authorization: Bearer "+reader); got.Status != 204 {
			t.Fatalf("OPTIONS: %d", got.Status)
		}
		if got := s.Do("POST", "/v1/limited", "", "Authorization: Bearer "+reader); got.Status != 405 {
			t.Fatalf("POST: %d", got.Status)
		}
	}
	for i, want := range []int{200, 200, 200, 429, 429} {
		got := s.Get("/v1/limited", reader)
		if got.Status != want {
			t.Fatalf("request %d: %d, want %d", i+1, got.Status, want)
		}
		if got.Header.Get("RateLimit") == "" || got.Header.Get("RateLimit-Policy") == "" {
			t.Errorf("request %d: RateLimit %q, RateLimit-Policy %q", i+1, got.Header.Get("RateLimit"), got.Header.Get("RateLimit-Policy"))
		}
		if want == 429 && (got.Problem(t).Code != "rate_limited" || got.Header.Get("Retry-After") == "") {
			t.Errorf("refusal %q, Retry-After %q", got.Body, got.Header.Get("Retry-After"))
		}
	}
	// the rate limit is checked before the body's size
	big := strings.Repeat("x", 17)
	if got := s.Do("POST", "/v1/limitedBody", big, "Authorization: Bearer "+reader); got.Status != 413 {
		t.Errorf("first: %d, want 413", got.Status)
	}
	if got := s.Do("POST", "/v1/limitedBody", big, "Authorization: Bearer "+reader); got.Status != 429 {
		t.Errorf("second: %d, want 429", got.Status)
	}
}

func TestInvalidTokensIndistinguishable(t *testing.T) {
	a := harness.NewApp(t, harness.ProbeSchema, "", "echo")
	s := a.Serve()
	make := func() harness.APIKey { return a.Key("create", "--scope", "reader", "--name", "x") }
	revoked, disabled, rotated := make(), make(), make()
	a.Must("api-keys", "revoke", revoked.ID)
	a.Must("api-keys", "disable", disabled.ID)
	a.Must("api-keys", "rotate", rotated.ID)
	good := make().Token
	tokens := map[string]string{
		"revoked": revoked.Token, "disabled": disabled.Token, "rotated away": rotated.Token,
		"unknown, good checksum": harness.WithChecksum("rnk", strings.Repeat("0", 30)), "unknown, other prefix": harness.WithChecksum("abc", strings.Repeat("z", 30)),
		"bad checksum": good[:len(good)-1] + "!",
		"changed":      good[:10] + swap(good[10]) + good[11:], "malformed": "x", "a JWT": "a.b.c", "long": strings.Repeat("x", 4000),
	}
	var first, firstName string
	for name, token := range tokens {
		reply := s.Raw("GET /v1/dump HTTP/1.1\r\nHost: probe\r\nConnection: close\r\nAuthorization: Bearer "+token+"\r\n\r\n", harness.Timeout)
		masked := regexp.MustCompile(`Date: [^\r]*`).ReplaceAllString(harness.MaskedID.ReplaceAllString(reply, "ID"), "DATE")
		if first == "" {
			first, firstName = masked, name
		}
		if masked != first || !strings.HasPrefix(reply, "HTTP/1.1 401 ") {
			t.Errorf("%s:\n%s\n%s:\n%s", name, masked, firstName, first)
		}
	}
	if got := s.Get("/v1/dump", good); got.Status != 200 {
		t.Errorf("the valid key: %d", got.Status)
	}
}

// swap returns a different character of the token's alphabet.
func swap(c byte) string {
	if c == 'a' {
		return "b"
	}
	return "a"
}

func TestASlowRequestAnswers408(t *testing.T) {
	s := harness.NewApp(t, harness.ProbeSchema, "[front]\nread_timeout = \"200ms\"\n", "echo").Serve()
	for _, request := range []string{
		"GET /hello HTTP/1.1\r\nHost: pro",
		"POST /dump HTTP/1.1\r\nHost: probe\r\nContent-Length: 5\r\n\r\nab",
		"POST /dump HTTP/1.1\r\nHost: probe\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nab",
	} {
		reply := s.Raw(request, harness.Timeout)
		answers := readAnswers(t, request, reply)
		if got := harness.CheckAnswer(t, answers[0]); got != "408 request_timeout" || len(answers) != 1 {
			t.Errorf("%q: %s", request, reply)
		}
	}
}

func TestAResponseOverTheLimitIsAHandlerFailure(t *testing.T) {
	s := harness.NewApp(t, harness.ProbeSchema, "[sandbox]\nresponse = \"4kb\"\n", "echo").Serve()
	if got := s.Do("POST", "/dump", strings.Repeat("x", 1000)); got.Status != 200 {
		t.Errorf("below the limit: %d", got.Status)
	}
	if got := s.Do("POST", "/dump", strings.Repeat("x", 5000)); harness.CheckAnswer(t, got) != "500 handler_failed" {
		t.Errorf("above the limit: %d %.100s", got.Status, got.Body)
	}
}

// A key belongs to the scope with its scope's name. If that scope was removed, the key belongs
// to the only scope with the same capability, or to none.
func TestKeysOfARenamedOrRemovedScopeStopWorking(t *testing.T) {
	a := harness.NewApp(t, harness.ProbeSchema, "", "echo")
	token := a.Token("reader")
	serveWith := func(schema string) harness.Answer {
		t.Helper()
		a.Write("app.schema", schema)
		s := a.Serve()
		defer s.Stop()
		return s.Get("/v1/dump", token)
	}
	if got := serveWith(harness.ProbeSchema); got.Status != 200 {
		t.Errorf("before: %d", got.Status)
	}
	renamed := strings.ReplaceAll(strings.ReplaceAll(harness.ProbeSchema, "reader:", "viewer:"), "apiKey(reader,", "apiKey(viewer,")
	if got := serveWith(renamed); got.Status != 200 || harness.ReadDump(t, got).Context.Auth["scope"] != "viewer" {
		t.Errorf("renamed: %d", got.Status)
	}
	removed := strings.ReplaceAll(renamed, "probe.reader", "probe.viewer")
	if got := serveWith(removed); harness.CheckAnswer(t, got) != "403 insufficient_scope" {
		t.Errorf("removed: %d %s", got.Status, got.Body)
	}
}
