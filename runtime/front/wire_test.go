package front_test

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	"runner.example/internal/fault"
	"runner.example/runtime/front"
)

// scripted is a connection whose caller has said all it will say: the server
// reads in pieces of at most step bytes, then the end.
type scripted struct {
	in     *bytes.Reader
	from   net.IP
	step   int
	mu     sync.Mutex
	out    bytes.Buffer
	once   sync.Once
	closed chan struct{}
}

func (c *scripted) Read(p []byte) (int, error) {
	if c.step > 0 && len(p) > c.step {
		p = p[:c.step]
	}
	return c.in.Read(p)
}

func (c *scripted) Write(p []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.out.Write(p)
}

func (c *scripted) Close() error {
	c.once.Do(func() { close(c.closed) })
	return nil
}

func (*scripted) LocalAddr() net.Addr              { return &net.TCPAddr{} }
func (c *scripted) RemoteAddr() net.Addr           { return &net.TCPAddr{IP: c.from} }
func (*scripted) SetDeadline(time.Time) error      { return nil }
func (*scripted) SetReadDeadline(time.Time) error  { return nil }
func (*scripted) SetWriteDeadline(time.Time) error { return nil }

// stage is a listener of scripted connections.
type stage struct {
	conns chan net.Conn
	once  sync.Once
	done  chan struct{}
}

func newStage() *stage { return &stage{conns: make(chan net.Conn), done: make(chan struct{})} }

func (s *stage) Accept() (net.Conn, error) {
	select {
	case c := <-s.conns:
		return c, nil
	case <-s.done:
		return nil, net.ErrClosed
	}
}

func (s *stage) Close() error {
	s.once.Do(func() { close(s.done) })
	return nil
}

func (*stage) Addr() net.Addr { return &net.TCPAddr{} }

// play returns all bytes that the server writes to a client that sends raw.
func (s *stage) play(raw string, step int) []byte {
	return s.playFrom(net.IPv4(192, 0, 2, 7), raw, step)
}

func (s *stage) playFrom(ip net.IP, raw string, step int) []byte {
	c := &scripted{in: bytes.NewReader([]byte(raw)), from: ip, step: step, closed: make(chan struct{})}
	s.conns <- c
	<-c.closed
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.out.Bytes()
}

// mirror answers with the request as it was parsed.
func mirror(x *front.Exchange) {
	x.BuildHeaders()
	if err := x.ReadBody(1 << 10); err != nil {
		x.Refuse(err, front.Extra{})
		return
	}
	r := &x.Request
	var b strings.Builder
	fmt.Fprintf(&b, "%s %s", r.Method, r.Path)
	for _, p := range r.Query {
		fmt.Fprintf(&b, " ?%s=%s", p.Name, p.Value)
	}
	for _, p := range r.Headers {
		if string(p.Name) != "host" {
			fmt.Fprintf(&b, " %s=%s", p.Name, p.Value)
		}
	}
	fmt.Fprintf(&b, " [%s]", r.Body)
	x.Send(text(200, b.String()))
}

// summary is "status code" of each answer, or "status body" of one that is not
// a problem.
func summary(t *testing.T, out []byte) []string {
	t.Helper()
	var all []string
	for r := bufio.NewReader(bytes.NewReader(out)); ; {
		if _, err := r.Peek(1); err == io.EOF {
			return all
		}
		a := readAnswer(t, r, "GET")
		if a.Header.Get("Content-Type") == "application/problem+json" {
			all = append(all, fmt.Sprintf("%d %s", a.StatusCode, problemOf(t, a).Code))
		} else {
			all = append(all, fmt.Sprintf("%d %s", a.StatusCode, a.body))
		}
	}
}

type problem struct {
	Type, Title      string
	Status           int
	Detail, Instance string
	Code, RequestID  string
}

func problemOf(t testing.TB, a answer) problem {
	t.Helper()
	var p problem
	if err := json.Unmarshal([]byte(a.body), &p); err != nil {
		t.Fatalf("problem %q: %v", a.body, err)
	}
	return p
}

const second = "GET /second HTTP/1.1\r\nHost: a\r\n\r\n"

// wireRows are bytes and the answers to them. \n stands for \r\n, \N for \n.
var wireRows = []struct {
	name, in string
	want     []string
}{
	{"a request", "GET /a?b=c HTTP/1.1\nHost: a\nX-One: 1\n\n", []string{"200 GET /a ?b=c x-one=1 []"}},
	{"the version before ours", "GET /a HTTP/1.0\n\n", []string{"200 GET /a []"}},
	{"two in a row", "GET /a HTTP/1.1\nHost: a\n\n" + second, []string{"200 GET /a []", "200 GET /second []"}},
	{"empty lines before one", "\n\nGET /a HTTP/1.1\nHost: a\n\n", []string{"200 GET /a []"}},
	{"a body", "POST /a HTTP/1.1\nHost: a\nContent-Length: 3\n\nabc" + second, []string{"200 POST /a content-length=3 [abc]", "200 GET /second []"}},
	{"a body of a GET", "GET /a HTTP/1.1\nHost: a\nContent-Length: 3\n\nabc" + second, []string{"200 GET /a content-length=3 [abc]", "200 GET /second []"}},
	{"chunks", "POST /a HTTP/1.1\nHost: a\nTransfer-Encoding: Chunked\n\n3\nabc\n0A\n0123456789\n0\n\n" + second, []string{"200 POST /a [abc0123456789]", "200 GET /second []"}},
	{"chunks with trailers", "POST /a HTTP/1.1\nHost: a\nTransfer-Encoding: chunked\n\n1\na\n0\nX-Runner-User: me\nAuthorization: x\n\n" + second, []string{"200 POST /a [a]", "200 GET /second []"}},
	{"a short chunk extension", "POST /a HTTP/1.1\nHost: a\nTransfer-Encoding: chunked\n\n1;" + strings.Repeat("x", 63) + "\na\n0\n\n" + second, []string{"200 POST /a [a]", "200 GET /second []"}},
	{"a body that is not inflated", "POST /a HTTP/1.1\nHost: a\nContent-Encoding: gzip\nContent-Length: 2\n\n\x1f\x8b", []string{"200 POST /a content-encoding=gzip content-length=2 [\x1f\x8b]"}},
	{"close", "GET /a HTTP/1.1\nHost: a\nConnection: x, Close\n\n" + second, []string{"200 GET /a []"}},
	{"close and keep-alive", "GET /a HTTP/1.1\nHost: a\nConnection: close\nConnection: keep-alive\n\n" + second, []string{"200 GET /a []"}},
	{"HTTP/1.0 closes", "GET /a HTTP/1.0\nHost: a\n\n" + second, []string{"200 GET /a []"}},
	{"HTTP/1.0 that wants to stay", "GET /a HTTP/1.0\nHost: a\nConnection: keep-alive\n\n" + second, []string{"200 GET /a []", "200 GET /second []"}},
	{"a header without a value", "GET /a HTTP/1.1\nHost: a\nX-Empty:\n\n", []string{"200 GET /a x-empty= []"}},
	{"the longest target", "GET /" + strings.Repeat("a", 8191) + " HTTP/1.1\nHost: a\n\n", []string{"200 GET /" + strings.Repeat("a", 8191) + " []"}},
	{"absolute form", "GET http://A.example:8080/a?b=c HTTP/1.1\nHost: a.EXAMPLE:8080\n\n" + second, []string{"200 GET /a ?b=c []", "200 GET /second []"}},
	{"the largest port", "GET /a HTTP/1.1\nHost: [::1]:65535\n\n", []string{"200 GET /a []"}},
	{"absolute form of https", "GET HTTPS://a/a HTTP/1.1\nHost: a\n\n" + second, []string{"200 GET /a []", "200 GET /second []"}},
	{"absolute form with the default port", "GET http://a:80/a HTTP/1.1\nHost: a\n\n" + second, []string{"200 GET /a []", "200 GET /second []"}},
	{"absolute form of https with the default port", "GET https://a/a HTTP/1.1\nHost: a:443\n\n" + second, []string{"200 GET /a []", "200 GET /second []"}},
	{"absolute form without a path", "GET http://a HTTP/1.1\nHost: a\n\n" + second, []string{"200 GET / []", "200 GET /second []"}},
	{"absolute form with a query alone", "GET http://a?b=c/d HTTP/1.1\nHost: a\n\n" + second, []string{"200 GET / ?b=c/d []", "200 GET /second []"}},
	{"absolute form with two slashes", "GET http://a//b HTTP/1.1\nHost: a\n\n" + second, []string{"200 GET //b []", "200 GET /second []"}},
	{"a full head", "GET / HTTP/1.1\nHost: a\nX: " + strings.Repeat("a", 16<<10-14) + "\n\n" + second, []string{"200 GET / x=" + strings.Repeat("a", 16<<10-14) + " []", "200 GET /second []"}},
	{"a body at its limit", "POST /a HTTP/1.1\nHost: a\nContent-Length: 1024\n\n" + strings.Repeat("a", 1024), []string{"200 POST /a content-length=1024 [" + strings.Repeat("a", 1024) + "]"}},

	{"both lengths", "POST /a HTTP/1.1\nHost: a\nContent-Length: 4\nTransfer-Encoding: chunked\n\n0\n\n" + second, []string{"400 invalid_request"}},
	{"both lengths, the other way", "POST /a HTTP/1.1\nHost: a\nTransfer-Encoding: chunked\nContent-Length: 4\n\n0\n\n" + second, []string{"400 invalid_request"}},
	{"two lengths", "POST /a HTTP/1.1\nHost: a\nContent-Length: 1\nContent-Length: 1\n\na" + second, []string{"400 invalid_request"}},
	{"a list of lengths", "POST /a HTTP/1.1\nHost: a\nContent-Length: 1, 1\n\na" + second, []string{"400 invalid_request"}},
	{"a signed length", "POST /a HTTP/1.1\nHost: a\nContent-Length: +1\n\na" + second, []string{"400 invalid_request"}},
	{"a length of nothing", "POST /a HTTP/1.1\nHost: a\nContent-Length:\n\na" + second, []string{"400 invalid_request"}},
	{"a length that wraps", "POST /a HTTP/1.1\nHost: a\nContent-Length: 18446744073709551617\n\na" + second, []string{"400 invalid_request"}},
	{"a length in hexadecimal", "POST /a HTTP/1.1\nHost: a\nContent-Length: 0x1\n\na" + second, []string{"400 invalid_request"}},
	{"two encodings", "POST /a HTTP/1.1\nHost: a\nTransfer-Encoding: chunked\nTransfer-Encoding: chunked\n\n0\n\n" + second, []string{"400 invalid_request"}},
	{"a list of encodings", "POST /a HTTP/1.1\nHost: a\nTransfer-Encoding: gzip, chunked\n\n0\n\n" + second, []string{"400 invalid_request"}},
	{"no encoding", "POST /a HTTP/1.1\nHost: a\nTransfer-Encoding: identity\n\n" + second, []string{"400 invalid_request"}},
	{"an encoding in HTTP/1.0", "POST /a HTTP/1.0\nHost: a\nTransfer-Encoding: chunked\n\n0\n\n" + second, []string{"400 invalid_request"}},
	{"an encoding with a vertical tab", "POST /a HTTP/1.1\nHost: a\nTransfer-Encoding: \vchunked\n\n0\n\n" + second, []string{"400 invalid_request"}},
	{"a folded line", "GET /a HTTP/1.1\nHost: a\nX: a\n b\n\n" + second, []string{"400 invalid_request"}},
	{"a folded line with a tab", "GET /a HTTP/1.1\nHost: a\nX: a\n\tb: c\n\n" + second, []string{"400 invalid_request"}},
	{"a first line that is folded", "GET /a HTTP/1.1\n Host: a\n\n" + second, []string{"400 invalid_request"}},
	{"a blank before the colon", "POST /a HTTP/1.1\nHost: a\nContent-Length : 1\n\na" + second, []string{"400 invalid_request"}},
	{"a line without a colon", "GET /a HTTP/1.1\nHost: a\nX\n\n" + second, []string{"400 invalid_request"}},
	{"a line without a name", "GET /a HTTP/1.1\nHost: a\n: x\n\n" + second, []string{"400 invalid_request"}},
	{"a name with a blank", "GET /a HTTP/1.1\nHost: a\nX Y: x\n\n" + second, []string{"400 invalid_request"}},
	{"a value with a NUL", "GET /a HTTP/1.1\nHost: a\nX: a\x00b\n\n" + second, []string{"400 invalid_request"}},
	{"a value with a lone CR", "GET /a HTTP/1.1\nHost: a\nX: a\rX-Evil: b\n\n" + second, []string{"400 invalid_request"}},
	{"a value that is not UTF-8", "GET /a HTTP/1.1\nHost: a\nX: \xff\n\n", []string{"200 GET /a x=\xff []"}},
	{"a host that is not ASCII", "GET /a HTTP/1.1\nHost: \xff\n\n" + second, []string{"400 invalid_request"}},
	{"a lone LF", "GET /a HTTP/1.1\\NHost: a\\N\\N" + second, []string{"400 invalid_request"}},
	{"a lone LF between headers", "GET /a HTTP/1.1\nHost: a\\NX: b\n\n" + second, []string{"400 invalid_request"}},
	{"a lone LF at the end", "GET /a HTTP/1.1\nHost: a\n\\N" + second, []string{"400 invalid_request"}},
	{"a lone LF before", "\\NGET /a HTTP/1.1\nHost: a\n\n", []string{"400 invalid_request"}},
	{"many empty lines before", "\n\n\nGET /a HTTP/1.1\nHost: a\n\n", []string{"400 invalid_request"}},
	{"a TLS handshake", "\x16\x03\x01\x02\x00\x01\x00", []string{"400 invalid_request"}},
	{"HTTP/0.9", "GET /a\n" + second, []string{"400 invalid_request"}},
	{"two blanks", "GET  /a HTTP/1.1\nHost: a\n\n" + second, []string{"400 invalid_request"}},
	{"a blank in the target", "GET /a b HTTP/1.1\nHost: a\n\n" + second, []string{"400 invalid_request"}},
	{"a tab for a blank", "GET\t/a HTTP/1.1\nHost: a\n\n" + second, []string{"400 invalid_request"}},
	{"a version in small letters", "GET /a http/1.1\nHost: a\n\n" + second, []string{"400 invalid_request"}},
	{"a version with more digits", "GET /a HTTP/1.10\nHost: a\n\n" + second, []string{"400 invalid_request"}},
	{"HTTP/2.0", "GET /a HTTP/2.0\nHost: a\n\n" + second, []string{"505 http_version"}},
	{"HTTP/1.2", "GET /a HTTP/1.2\nHost: a\n\n" + second, []string{"505 http_version"}},
	{"HTTP/0.9 by name", "GET /a HTTP/0.9\nHost: a\n\n" + second, []string{"505 http_version"}},
	{"the preface of HTTP/2", "PRI * HTTP/2.0\n\nSM\n\n", []string{"505 http_version"}},
	{"TRACE", "TRACE /a HTTP/1.1\nHost: a\n\n" + second, []string{"501 method_not_implemented"}},
	{"CONNECT", "CONNECT a:443 HTTP/1.1\nHost: a\n\n" + second, []string{"501 method_not_implemented"}},
	{"a method in small letters", "get /a HTTP/1.1\nHost: a\n\n" + second, []string{"501 method_not_implemented"}},
	{"an unknown method", "BREW /a HTTP/1.1\nHost: a\n\n" + second, []string{"501 method_not_implemented"}},
	{"absolute form with another host", "GET http://b/b HTTP/1.1\nHost: a\n\n" + second, []string{"400 invalid_request"}},
	{"a port above 65535", "GET /a HTTP/1.1\nHost: a:65536\n\n" + second, []string{"400 invalid_request"}},
	{"a port above 65535 of an IPv6 address", "GET /a HTTP/1.1\nHost: [::1]:99999\n\n" + second, []string{"400 invalid_request"}},
	{"absolute form with another port", "GET http://a:81/b HTTP/1.1\nHost: a\n\n" + second, []string{"400 invalid_request"}},
	{"absolute form with the port of https", "GET http://a:443/b HTTP/1.1\nHost: a\n\n" + second, []string{"400 invalid_request"}},
	{"absolute form with a user", "GET http://u@a/b HTTP/1.1\nHost: a\n\n" + second, []string{"400 invalid_request"}},
	{"absolute form without a host", "GET http:///b HTTP/1.1\nHost: a\n\n" + second, []string{"400 invalid_request"}},
	{"absolute form of HTTP/1.0 without Host", "GET http://a/b HTTP/1.0\n\n" + second, []string{"400 invalid_request"}},
	{"absolute form with a fragment", "GET http://a/b#c HTTP/1.1\nHost: a\n\n" + second, []string{"400 bad_path"}},
	{"another scheme", "GET cb://a/b HTTP/1.1\nHost: a\n\n" + second, []string{"400 bad_path"}},
	{"authority form", "GET a:80 HTTP/1.1\nHost: a\n\n" + second, []string{"400 bad_path"}},
	{"a query alone", "GET ?a HTTP/1.1\nHost: a\n\n" + second, []string{"400 bad_path"}},
	{"a scheme alone", "GET http:// HTTP/1.1\nHost: a\n\n" + second, []string{"400 invalid_request"}},
	{"an asterisk", "OPTIONS * HTTP/1.1\nHost: a\n\n" + second, []string{"400 bad_path"}},
	{"a control character in the target", "GET /a\x01 HTTP/1.1\nHost: a\n\n" + second, []string{"400 bad_path"}},
	{"a fragment", "GET /a?b#c HTTP/1.1\nHost: a\n\n" + second, []string{"400 bad_path"}},
	{"a target that is too long", "GET /" + strings.Repeat("a", 8192) + " HTTP/1.1\nHost: a\n\n" + second, []string{"414 uri_too_long"}},
	{"a target without end", "GET /" + strings.Repeat("a", 40<<10), []string{"414 uri_too_long"}},
	{"a first line without end", strings.Repeat("a", 40<<10), []string{"400 invalid_request"}},
	{"headers that are too large", "GET / HTTP/1.1\nHost: a\nX: " + strings.Repeat("a", 16<<10-13) + "\n\n" + second, []string{"431 headers_too_large"}},
	{"a header without end", "GET / HTTP/1.1\nHost: a\nX: " + strings.Repeat("a", 40<<10), []string{"431 headers_too_large"}},
	{"too many lines", "GET / HTTP/1.1\nHost: a\n" + strings.Repeat("X: 1\n", 100) + "\n" + second, []string{"431 headers_too_large"}},
	{"no Host", "GET / HTTP/1.1\nX: 1\n\n" + second, []string{"400 invalid_request"}},
	{"an empty Host", "GET / HTTP/1.1\nHost:\n\n" + second, []string{"400 invalid_request"}},
	{"two Hosts", "GET / HTTP/1.1\nHost: a\nHost: a\n\n" + second, []string{"400 invalid_request"}},
	{"a Host with a path", "GET / HTTP/1.1\nHost: a/b\n\n" + second, []string{"400 invalid_request"}},
	{"a Host with a user", "GET / HTTP/1.1\nHost: a@b\n\n" + second, []string{"400 invalid_request"}},
	{"an unknown expectation", "POST / HTTP/1.1\nHost: a\nExpect: cake\nContent-Length: 1\n\na" + second, []string{"400 invalid_request"}},
	{"a head that ends early", "GET / HTTP/1.1\nHost: a\n", []string{"400 invalid_request"}},

	{"a long chunk extension", "POST /a HTTP/1.1\nHost: a\nTransfer-Encoding: chunked\n\n1;" + strings.Repeat("x", 64) + "\na\n0\n\n" + second, []string{"400 invalid_request"}},
	{"a chunk extension with a lone LF", "POST /a HTTP/1.1\nHost: a\nTransfer-Encoding: chunked\n\n1;a\\Na\n0\n\n" + second, []string{"400 invalid_request"}},
	{"a chunk extension with a lone CR", "POST /a HTTP/1.1\nHost: a\nTransfer-Encoding: chunked\n\n1;a\rb\na\n0\n\n" + second, []string{"400 invalid_request"}},
	{"a chunk line that ends in LF", "POST /a HTTP/1.1\nHost: a\nTransfer-Encoding: chunked\n\n1\\Na\n0\n\n" + second, []string{"400 invalid_request"}},
	{"a chunk size with a blank", "POST /a HTTP/1.1\nHost: a\nTransfer-Encoding: chunked\n\n1 \na\n0\n\n" + second, []string{"400 invalid_request"}},
	{"a chunk size with a prefix", "POST /a HTTP/1.1\nHost: a\nTransfer-Encoding: chunked\n\n0x1\na\n0\n\n" + second, []string{"400 invalid_request"}},
	{"a chunk size with a sign", "POST /a HTTP/1.1\nHost: a\nTransfer-Encoding: chunked\n\n-1\na\n0\n\n" + second, []string{"400 invalid_request"}},
	{"a chunk size that wraps", "POST /a HTTP/1.1\nHost: a\nTransfer-Encoding: chunked\n\n10000000000000001\na\n0\n\n" + second, []string{"400 invalid_request"}},
	{"no chunk size", "POST /a HTTP/1.1\nHost: a\nTransfer-Encoding: chunked\n\n\na\n0\n\n" + second, []string{"400 invalid_request"}},
	{"a chunk that is longer than it says", "POST /a HTTP/1.1\nHost: a\nTransfer-Encoding: chunked\n\n1\nab\n0\n\n" + second, []string{"400 invalid_request"}},
	{"a trailer that is none", "POST /a HTTP/1.1\nHost: a\nTransfer-Encoding: chunked\n\n0\nGET /evil HTTP/1.1\n\n" + second, []string{"400 invalid_request"}},
	{"trailers without end", "POST /a HTTP/1.1\nHost: a\nTransfer-Encoding: chunked\n\n0\n" + strings.Repeat("X: 1\n", 101) + "\n" + second, []string{"400 invalid_request"}},
	{"a body that is too large", "POST /a HTTP/1.1\nHost: a\nContent-Length: 99999999999\n\n" + second, []string{"413 body_too_large"}},
	{"chunks that are too large", "POST /a HTTP/1.1\nHost: a\nTransfer-Encoding: chunked\n\n400\n" + strings.Repeat("a", 1024) + "\n1\na\n0\n\n" + second, []string{"413 body_too_large"}},
	{"a body that ends early", "POST /a HTTP/1.1\nHost: a\nContent-Length: 3\n\nab", []string{"400 invalid_request"}},
	{"chunks that end early", "POST /a HTTP/1.1\nHost: a\nTransfer-Encoding: chunked\n\n3\nab", []string{"400 invalid_request"}},
}

func TestMessagesAreParsedByteByByte(t *testing.T) {
	s := newStage()
	startOn(t, s, front.Options{}, mirror)
	for _, row := range wireRows {
		raw := strings.ReplaceAll(strings.ReplaceAll(row.in, "\n", "\r\n"), `\N`, "\n")
		raw = strings.ReplaceAll(raw, "\r\r\n", "\r\n")
		for _, step := range []int{0, 1, 7} { // how the bytes are cut must not matter
			out := s.play(raw, step)
			if got := summary(t, out); strings.Join(got, "\n") != strings.Join(row.want, "\n") {
				t.Errorf("%s, in pieces of %d:\n got %.300q\nwant %.300q", row.name, step, got, row.want)
			}
		}
	}
}

func TestAnUnreadBodyIsNeverParsedAsARequest(t *testing.T) {
	evil := "GET /evil HTTP/1.1\r\nHost: a\r\n\r\n"
	refuseAll := func(x *front.Exchange) {
		if string(x.Request.Path) == "/second" || string(x.Request.Path) == "/evil" {
			mirror(x)
			return
		}
		x.Refuse(&fault.Fault{Code: fault.MissingCredentials}, front.Extra{})
	}
	s := newStage()
	startOn(t, s, front.Options{}, refuseAll)
	for _, row := range []struct{ name, in, want string }{
		{"here in whole, so skipped", fmt.Sprintf("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: %d\r\n\r\n%s%s", len(evil), evil, second), "401 missing_credentials\n200 GET /second []"},
		{"not here in whole", fmt.Sprintf("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: %d\r\n\r\n%s%s", len(evil)+100, evil, second), "401 missing_credentials"},
		{"in chunks", fmt.Sprintf("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n%x\r\n%s\r\n0\r\n\r\n%s", len(evil), evil, second), "401 missing_credentials"},
		{"behind a head that is refused", fmt.Sprintf("POST / HTTP/1.1\r\nContent-Length: %d\r\n\r\n%s%s", len(evil), evil, second), "400 invalid_request"},
	} {
		if got := strings.Join(summary(t, s.play(row.in, 0)), "\n"); got != row.want {
			t.Errorf("%s:\n got %q\nwant %q", row.name, got, row.want)
		}
		for _, got := range summary(t, s.play(row.in, 5)) {
			if strings.Contains(got, "evil") {
				t.Errorf("%s, in pieces: the body was served: %q", row.name, got)
			}
		}
	}
}

// What we take for a request, net/http takes for the same request, at the same
// place of the stream: two readers that disagree are a smuggler's tools.
func FuzzRequestsAreParsedLikeNetHTTP(f *testing.F) {
	for _, row := range wireRows {
		f.Add(strings.ReplaceAll(strings.ReplaceAll(row.in, "\n", "\r\n"), `\N`, "\n"), 0)
	}
	s := newStage()
	startOn(f, s, front.Options{}, func(x *front.Exchange) {
		if err := x.ReadBody(1 << 10); err != nil {
			x.Refuse(err, front.Extra{})
			return
		}
		x.Send(text(200, fmt.Sprintf("%s %s %q", x.Request.Method, x.Request.Path, x.Request.Body)))
	})
	f.Fuzz(func(t *testing.T, raw string, step int) {
		theirs := bufio.NewReader(strings.NewReader(raw))
		ours := bufio.NewReader(bytes.NewReader(s.play(raw, step&15)))
		for {
			if _, err := ours.Peek(1); err != nil {
				return
			}
			a, err := http.ReadResponse(ours, nil)
			if err != nil {
				t.Fatalf("our answer to %q: %v", raw, err)
			}
			if a.StatusCode != 200 {
				return
			}
			body := make([]byte, max(a.ContentLength, 0))
			for range 2 { // which RFC 9112 asks servers to pass over
				if line, _ := theirs.Peek(2); string(line) == "\r\n" {
					_, _ = theirs.Discard(2)
				}
			}
			req, err := http.ReadRequest(theirs)
			if err != nil && strings.Contains(err.Error(), "invalid URL escape") {
				return // escapes are judged with the route
			}
			if err != nil {
				t.Fatalf("we served what net/http refuses with %v: %q", err, raw)
			}
			if req.Method != "HEAD" {
				if _, err := io.ReadFull(ours, body); err != nil {
					t.Fatal(err)
				}
			}
			sent, err := io.ReadAll(req.Body)
			if err != nil {
				t.Fatalf("we read a body that net/http refuses with %v: %q", err, raw)
			}
			path, _, _ := strings.Cut(req.RequestURI, "?")
			if req.URL.Host != "" { // absolute form
				_, rest, _ := strings.Cut(path, "://"+req.URL.Host)
				path = cmp.Or(rest, "/")
			}
			if want := fmt.Sprintf("%s %s %q", req.Method, path, sent); req.Method != "HEAD" && string(body) != want {
				t.Fatalf("of %q\nwe read  %s\nnet/http %s", raw, body, want)
			}
		}
	})
}

func TestOnlyTheHostsOfTheOptionsAreServed(t *testing.T) {
	s := newStage()
	startOn(t, s, front.Options{Hosts: []string{
		"api.example.com", "example.com:8443", "[2001:db8::1]", "*.example.org", "*.Example.net:8443"}, AnyHost: "/any"}, mirror)
	for _, row := range []struct {
		host   string
		served bool
	}{
		{"api.example.com", true}, {"API.Example.Com", true}, {"api.example.com:80", true}, {"example.com:8443", true}, {"[2001:db8::1]:80", true},
		{"a.example.org", true}, {"A.EXAMPLE.ORG:81", true}, {"a.example.net:8443", true}, {"a_b-1.example.org", true},
		{"example.org", false}, {".example.org", false}, {"a.b.example.org", false}, {"aexample.org", false}, {"a.example.org.evil.com", false},
		{"a.example.net", false}, {"a.example.net:80", false}, {"*.example.org", false}, {"a.example.orgs", false}, {"[a.example.org]", false},
		{"example.com", false}, {"example.com:80", false}, {"evil.com", false}, {"api.example.com.evil.com", false}, {"api.example.com:x", false}, {"", false},
	} {
		out := s.play("GET / HTTP/1.1\r\nHost: "+row.host+"\r\n\r\n", 0)
		if got := bytes.HasPrefix(out, []byte("HTTP/1.1 200 ")); got != row.served {
			t.Errorf("Host %q: served is %v", row.host, got)
		}
	}
	for target, served := range map[string]bool{"/any": true, "/any/below": true, "/any?q=1": true, "/anyother": false, "/x/any": false, "/%61ny": false} {
		for _, head := range []string{" HTTP/1.1\r\nHost: evil.com\r\n\r\n", " HTTP/1.0\r\n\r\n"} {
			out := s.play("GET "+target+head, 0)
			if got := bytes.HasPrefix(out, []byte("HTTP/1.1 200 ")); got != served {
				t.Errorf("%s%q: served is %v", target, head, got)
			}
		}
	}
	for _, head := range []string{" HTTP/1.1\r\n\r\n", " HTTP/1.1\r\nHost: a/b\r\n\r\n", " HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n"} {
		if out := s.play("GET /any"+head, 0); !bytes.HasPrefix(out, []byte("HTTP/1.1 400 ")) {
			t.Errorf("%q: %q", head, out)
		}
	}
	if out := s.play("GET / HTTP/1.0\r\n\r\n", 0); !bytes.HasPrefix(out, []byte("HTTP/1.1 400 ")) {
		t.Errorf("HTTP/1.0 without a host: %q", out)
	}
}

func TestTheClientIsTheLastHopThatTrustedProxiesSaw(t *testing.T) {
	prefixes := func(all ...string) (p []netip.Prefix) {
		for _, s := range all {
			p = append(p, netip.MustParsePrefix(s))
		}
		return p
	}
	who := func(x *front.Exchange) { x.Send(text(200, x.Address().String())) }
	for _, row := range []struct {
		name    string
		proxies []netip.Prefix
		headers string
		want    string
	}{
		{"no proxy is trusted", nil, "X-Forwarded-For: 1.1.1.1\r\n", "192.0.2.7"},
		{"another is trusted", prefixes("10.0.0.0/8"), "X-Forwarded-For: 1.1.1.1\r\n", "192.0.2.7"},
		{"the peer is trusted", prefixes("192.0.2.0/24"), "X-Forwarded-For: 1.1.1.1\r\n", "1.1.1.1"},
		{"a forged hop before", prefixes("192.0.2.0/24"), "X-Forwarded-For: 9.9.9.9, 1.1.1.1\r\n", "1.1.1.1"},
		{"forged lines before", prefixes("192.0.2.0/24"), "X-Forwarded-For: 9.9.9.9\r\nX-Forwarded-For: 1.1.1.1\r\n", "1.1.1.1"},
		{"two proxies", prefixes("192.0.2.0/24", "10.0.0.0/8"), "X-Forwarded-For: 9.9.9.9, 1.1.1.1, 10.1.1.1\r\n", "1.1.1.1"},
		{"only proxies", prefixes("192.0.2.0/24", "10.0.0.0/8"), "X-Forwarded-For: 10.2.2.2, 10.1.1.1\r\n", "10.2.2.2"},
		{"no header", prefixes("192.0.2.0/24"), "", "192.0.2.7"},
		{"an empty header", prefixes("192.0.2.0/24"), "X-Forwarded-For:\r\n", "192.0.2.7"},
		{"rubbish", prefixes("192.0.2.0/24"), "X-Forwarded-For: 1.1.1.1, unknown\r\n", "192.0.2.7"},
		{"rubbish before a proxy", prefixes("192.0.2.0/24", "10.0.0.0/8"), "X-Forwarded-For: unknown, 10.1.1.1\r\n", "10.1.1.1"},
		{"with a port", prefixes("192.0.2.0/24"), "X-Forwarded-For: 1.1.1.1:80\r\n", "1.1.1.1"},
		{"IPv6", prefixes("192.0.2.0/24"), "X-Forwarded-For: 2001:db8::1\r\n", "2001:db8::1"},
		{"IPv6 with a port", prefixes("192.0.2.0/24"), "X-Forwarded-For: [2001:db8::1]:80\r\n", "2001:db8::1"},
		{"IPv4 in IPv6", prefixes("192.0.2.0/24"), "X-Forwarded-For: ::ffff:1.1.1.1\r\n", "1.1.1.1"},
		{"the twin", prefixes("192.0.2.0/24"), "X_Forwarded_For: 1.1.1.1\r\n", "192.0.2.7"},
	} {
		s := newStage()
		startOn(t, s, front.Options{TrustedProxies: row.proxies}, who)
		out := s.play("GET / HTTP/1.1\r\nHost: a\r\n"+row.headers+"\r\n", 0)
		if got := summary(t, out); len(got) != 1 || got[0] != "200 "+row.want {
			t.Errorf("%s: got %q, want %s", row.name, got, row.want)
		}
	}
}

func TestTheSchemeIsTheOneThatTheClientUsed(t *testing.T) {
	scheme := func(x *front.Exchange) {
		x.BuildHeaders()
		x.Send(text(200, fmt.Sprint(x.Request.Secure)))
	}
	trusted := front.Options{TrustedProxies: []netip.Prefix{netip.MustParsePrefix("192.0.2.0/24")}}
	for _, row := range []struct {
		options front.Options
		headers string
		want    string
	}{
		{front.Options{}, "", "false"},
		{front.Options{}, "X-Forwarded-Proto: https\r\n", "false"},
		{trusted, "", "false"},
		{trusted, "X-Forwarded-Proto: https\r\n", "true"},
		{trusted, "X-Forwarded-Proto: HTTPS \r\n", "true"},
		{trusted, "X-Forwarded-Proto: https, http\r\n", "false"},
		{trusted, "X-Forwarded-Proto: http\r\nX-Forwarded-Proto: http, https\r\n", "true"},
		{trusted, "X_Forwarded_Proto: https\r\n", "false"},
	} {
		s := newStage()
		startOn(t, s, row.options, scheme)
		out := s.play("GET / HTTP/1.1\r\nHost: a\r\n"+row.headers+"\r\n", 0)
		if got := summary(t, out); len(got) != 1 || got[0] != "200 "+row.want {
			t.Errorf("%q: got %q, want %s", row.headers, got, row.want)
		}
	}
}
