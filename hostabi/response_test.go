package hostabi_test

import (
	"strings"
	"testing"

	"runner.example/hostabi"
	"runner.example/hostabi/abi"
	"runner.example/schema"
)

func headerText(r abi.Response) string {
	var b strings.Builder
	for _, h := range r.Headers {
		b.WriteString(string(h.Name) + ": " + string(h.Value) + "\n")
	}
	return b.String()
}

func TestAnAnswerWithAnInvalidStatusOrBodyIsRefused(t *testing.T) {
	for _, row := range []struct {
		status int
		body   string
		want   int32
	}{
		{200, "x", 0}, {201, "", 0}, {599, "x", 0}, {204, "", 0}, {205, "", 0}, {304, "", 0}, {302, "", 0},
		{199, "", invalid}, {600, "", invalid}, {0, "", invalid}, {-200, "", invalid}, {1 << 30, "", invalid}, {100, "", invalid}, {101, "", invalid},
		{204, "x", invalid}, {205, "x", invalid}, {304, "x", invalid},
		{200, strings.Repeat("x", 1000), 0}, {200, strings.Repeat("x", 1001), tooLarge},
	} {
		g := newGuest(t, hostabi.Limits{ResponseBytes: 1000})
		if n := g.do("response_send", row.status, row.body); n != row.want {
			t.Errorf("%d with %d bytes: %d, want %d", row.status, len(row.body), n, row.want)
		}
		r := g.call.Response
		if row.want != 0 {
			if r.Status != 0 || len(r.Body) != 0 || len(r.Headers) != 0 {
				t.Errorf("%d with %d bytes was refused and left %+v", row.status, len(row.body), r)
			}
			if n := g.do("response_send", 200, "again"); n != 0 {
				t.Errorf("an answer after a refused one: %d", n)
			}
			continue
		}
		wantHeaders := ""
		if row.body != "" {
			wantHeaders = "content-type: application/json\n"
		}
		if r.Status != row.status || string(r.Body) != row.body || headerText(r) != wantHeaders {
			t.Errorf("%d with %d bytes is %d, %d bytes, headers %q", row.status, len(row.body), r.Status, len(r.Body), headerText(r))
		}
	}
}

func TestASecondAnswerIsInvalidAndTheFirstStays(t *testing.T) {
	g := newGuest(t, hostabi.Limits{})
	g.do("response_header", "Content-Type", "text/plain")
	g.do("response_send", 201, "first")
	for name, n := range map[string]int32{
		"response_send":   g.do("response_send", 200, "second"),
		"response_error":  g.do("response_error", 400, "", "second"),
		"response_header": g.do("response_header", "x-a", "late"),
	} {
		if n != invalid {
			t.Errorf("%s after the answer: %d", name, n)
		}
	}
	if r := g.call.Response; r.Status != 201 || string(r.Body) != "first" || r.Code != "" || headerText(r) != "Content-Type: text/plain\n" {
		t.Errorf("the answer is %+v", r)
	}
}

func TestTheLastResultIsSentUnchanged(t *testing.T) {
	g := newGuest(t, hostabi.Limits{ResponseBytes: 100})
	send := func(status, part int, want int32, why string) {
		t.Helper()
		if n := g.raw("response_send_result", uint32(status), uint32(part)); n != want {
			t.Errorf("%s: %d, want %d", why, n, want)
		}
	}
	send(200, abi.PartAll, invalid, "before any call")
	g.op("secret", `{"name":"none"}`)
	send(200, abi.PartAll, invalid, "after a call that failed")
	g.op("secret", `{"name":"SIGNING_KEY"}`)
	send(200, abi.PartRows, invalid, "a result without rows")
	send(200, abi.PartRow, invalid, "a result without a row")
	send(200, 3, invalid, "no such part")
	send(199, abi.PartAll, invalid, "no such status")
	send(204, abi.PartAll, invalid, "a body with 204")
	moved := g.call.Moved()
	send(201, abi.PartAll, 0, "the whole result")
	send(200, abi.PartAll, invalid, "a second answer")
	if r := g.call.Response; r.Status != 201 || string(r.Body) != `{"value":"s3cr3t"}` || headerText(r) != "content-type: application/json\n" || g.call.Moved() != moved {
		t.Errorf("the answer is %+v, %d bytes moved", r, g.call.Moved()-moved)
	}
	g.call.Begin()
	send(200, abi.PartAll, invalid, "a result of the run before")
	if key, n := g.op("apiKeys.create", `{"scope":"read_only"}`); n < 0 {
		t.Fatal(key)
	}
	send(200, abi.PartAll, tooLarge, "a result over the limit of answers")
}

func TestTheAnswerOutlivesGuestMemory(t *testing.T) {
	g := newGuest(t, hostabi.Limits{})
	g.do("response_header", "x-a", "value")
	g.do("response_send", 200, "body")
	g.module.Memory().Write(0, make([]byte, memoryBytes))
	if r := g.call.Response; string(r.Body) != "body" || !strings.HasPrefix(headerText(r), "x-a: value\n") {
		t.Errorf("after the guest's memory changed the answer is %q, %q", r.Body, headerText(r))
	}
}

func TestHeadersReservedForTheHostAreDenied(t *testing.T) {
	g := newGuest(t, hostabi.Limits{})
	for _, row := range []struct {
		name, value string
		want        int32
	}{
		{"x-a", "1", 0}, {"X-A", "2", 0}, {"x-empty", "", 0}, {"set-cookie", "a=b; Path=/", 0}, {"cache-control", "no-store", 0},
		{"x-utf8", "grün\u2028", 0}, {"x-latin1", "gr\xfcn", 0}, {"x-tab", "a\tb", 0}, {"!#$%&'*+-.^_`|~09AZaz", "x", 0}, {"x-proxy", "1", 0}, {"retry-after", "3", 0},
		{"", "x", denied}, {"x a", "1", denied}, {"x:a", "1", denied}, {"x-ä", "1", denied}, {"x-a\r\nx-b", "1", denied}, {"x(a)", "1", denied},
		{"x-b", "a\r\nx-c: 1", denied}, {"x-b", "a\nb", denied}, {"x-b", "a\x00b", denied}, {"x-b", "\x7f", denied}, {"x-b", "\x1b[2J", denied},
		{"x-b", " a", denied}, {"x-b", "a ", denied}, {"x-b", "\ta", denied}, {"x-b", " ", denied},
		{"connection", "close", denied}, {"Transfer-Encoding", "chunked", denied}, {"content-length", "1", denied}, {"DATE", "x", denied},
		{"server", "x", denied}, {"trailer", "x", denied}, {"upgrade", "x", denied}, {"proxy-authenticate", "x", denied},
		{"Proxy-Connection", "x", denied}, {"www-authenticate", "x", denied}, {"x-request-id", "x", denied}, {"ratelimit", "x", denied},
		{"RateLimit-Policy", "x", denied}, {"ratelimit-remaining", "x", denied},
		{"x-\xff", "a", invalid},
	} {
		before := headerText(g.call.Response)
		if n := g.do("response_header", row.name, row.value); n != row.want {
			t.Errorf("%q: %q gives %d, want %d", row.name, row.value, n, row.want)
		}
		want := before
		if row.want == 0 {
			want += row.name + ": " + row.value + "\n"
		}
		if got := headerText(g.call.Response); got != want {
			t.Errorf("after %q: %q the headers are %q, want %q", row.name, row.value, got, want)
		}
	}
}

// A handler cannot set the cookie of sessions, in whatever form some browser takes it for that cookie.
func TestTheSessionCookieIsTheHosts(t *testing.T) {
	g := newGuest(t, hostabi.Limits{})
	own := *g.call.Host
	app := *own.Schema
	app.Auth.Cookie = &schema.CookieSession{Name: "__Host-session"}
	own.Schema = &app
	g.call.Host = &own
	for value, want := range map[string]int32{
		"__Host-session=x": denied, "__HOST-SESSION=x; Path=/": denied, "__Host-session =x": denied, "__Host-session": denied, "__Host-session; Secure": denied,
		"=__Host-session=x": denied, "= __Host-session=x": denied, "==__Host-session": denied,
		"other=x": 0, "__Host-session2=x": 0, "x=__Host-session": 0, "a=b; __Host-session=x": 0, "x__Host-session=x": 0,
	} {
		if n := g.do("response_header", "Set-Cookie", value); n != want {
			t.Errorf("%q gives %d, want %d", value, n, want)
		}
	}
}

func TestAChallengeIsTheHandlersWhereTheHostChecksNoCredentials(t *testing.T) {
	for own, want := range map[bool]int32{false: denied, true: 0} {
		g := newGuest(t, hostabi.Limits{})
		g.call.OwnChallenge = own
		if n := g.do("response_header", "WWW-Authenticate", `Basic realm="a"`); n != want {
			t.Errorf("own challenge %v: %d, want %d", own, n, want)
		}
	}
}

func TestMisleadingLocationsAreDenied(t *testing.T) {
	for location, want := range map[string]int32{
		"/": 0, "/a": 0, "/a?b=c#d": 0, "/a//b": 0, "https://example.com/": 0, "http://example.com": 0, "HTTPS://example.com": 0,
		"/a b": 0, "/ü": 0,
		"a": 0, "../a": 0, "./a": 0, "?x=1": 0, "#a": 0, "a:b": 0, "1:b": 0, "myapp://open/x?y": 0, "mailto:a@b.example": 0, "web+app:x": 0,
		"": denied, "VBScript:x": denied, "JavaScript:x": denied, "http:x": denied, "wss:/a": denied, "ftp://a@b": denied, "//evil.example": denied, `/\evil.example`: denied, `\\evil.example`: denied,
		"javascript:alert(1)": denied, "data:text/html,x": denied, "https:evil.example": denied, "https:/evil.example": denied,
		"https:///evil.example": denied, `https://\evil.example`: denied, "https://": denied, "ftp://example.com": 0, " /a": denied,
		"/\t/evil.example": denied, "/a\r\nx: y": denied, "\t//evil.example": denied,
		`https://evil.example\@good.example`: denied, `https://evil.example\.good.example/`: denied, `/a\b`: denied, `/a?b=\`: denied,
		`https:\\evil.example`: denied, `http:/\evil.example`: denied, `/a#\`: denied, `https://good.example/\evil`: denied,
		"https://good.example@evil.example": denied, "https://a:b@evil.example/": denied, "https://@evil.example": denied,
		"https://good.example/@evil.example": 0, "https://good.example?@evil.example": 0, "https://good.example#@evil.example": 0,
		"https://?a": denied, "https://#a": denied, "https://:443/": denied, "https://a:/": 0, "https://a:8443": 0, "https://a:65536": denied,
		"https://a:4x": denied, "https://a:+1": denied, "https://a:1:2": denied, "https://a b/": denied, "https://a,b": denied,
		"https://%65vil.example": denied, "https://evil.example%2f.good.example": denied, "https://good.example/%5c%2f": 0,
		"https://e\u0301.example": denied, "https://evil。example": denied, "https://evil.example／.good.example": denied,
		"https://xn--bcher-kva.example/ü": 0, "https://a_b.example.": 0, "https://a/ b": 0, "/.//evil.example": 0,
		"https://127.0.0.1:8080/": 0, "https://127.1": denied, "https://0x7f.1": denied, "https://2130706433": denied, "https://0x": denied,
		"https://127.0.0.01": denied, "https://1.2.3.4.": denied, "https://1.2.3.4.5": denied, "https://4.example": 0, "https://0x7f.example": 0,
		"https://[::1]:80/": 0, "https://[::1]": 0, "https://[::1": denied, "https://::1": denied, "https://[fe80::1%25a]": denied,
		"https://[127.0.0.1]": denied, "https://[::1]a": denied, "https://a[::1]": denied, "https://[]": denied,
	} {
		g := newGuest(t, hostabi.Limits{})
		if n := g.do("response_header", "Location", location); n != want {
			t.Errorf("%q gives %d, want %d", location, n, want)
		}
	}
}

func TestALocationIsSentAsAURI(t *testing.T) {
	for location, want := range map[string]string{
		"/a b?c=ü#<": "/a%20b?c=%C3%BC#%3C", "gr\xfcn": "gr%C3%BCn", "/%20%zz[a]@:": "/%20%zz[a]@:", "myapp://ä|b": "myapp://%C3%A4%7Cb",
	} {
		g := newGuest(t, hostabi.Limits{})
		if n := g.do("response_header", "Location", location); n != 0 || string(g.call.Response.Headers[0].Value) != want {
			t.Errorf("%q gives %d, %q, want %q", location, n, g.call.Response.Headers, want)
		}
	}
	g := newGuest(t, hostabi.Limits{})
	if n := g.do("response_header", "Location", "/"+strings.Repeat(" a", 6<<10)); n != tooLarge {
		t.Errorf("one that is too long once it is encoded: %d", n)
	}
}

func TestAnAnswerHasOneContentTypeAndOneLocation(t *testing.T) {
	g := newGuest(t, hostabi.Limits{})
	for _, name := range []string{"content-type", "location"} {
		if n := g.do("response_header", name, "/a"); n != 0 {
			t.Errorf("the first %s: %d", name, n)
		}
		if n := g.do("response_header", strings.ToUpper(name), "/b"); n != invalid {
			t.Errorf("the second %s: %d", name, n)
		}
	}
}

func TestHeadersHaveALimit(t *testing.T) {
	g := newGuest(t, hostabi.Limits{})
	for i := range 101 {
		want := int32(0)
		if i == 100 {
			want = tooLarge
		}
		if n := g.do("response_header", "x-a", "1"); n != want {
			t.Fatalf("line %d: %d", i+1, n)
		}
	}
	g = newGuest(t, hostabi.Limits{})
	if n := g.do("response_header", "x-a", strings.Repeat("x", 16<<10-3)); n != 0 {
		t.Errorf("16 KiB: %d", n)
	}
	if n := g.do("response_header", "x", ""); n != tooLarge {
		t.Errorf("one byte more: %d", n)
	}
}

func TestAnErrorHelpersAnswer(t *testing.T) {
	for _, row := range []struct {
		status        int
		code, message string
		want          int32
		wantCode      string
	}{
		{400, "", "no name", 0, "bad_request"}, {401, "", "", 0, "unauthorized"}, {403, "", "", 0, "forbidden"},
		{404, "", "", 0, "not_found"}, {409, "", "", 0, "conflict"}, {413, "", "", 0, "body_too_large"}, {429, "", "", 0, "rate_limited"}, {503, "", "", 0, "unavailable"}, {422, "", "wrong", 0, "error"}, {500, "", "", 0, "error"}, {599, "", "", 0, "error"},
		{409, "order_2_paid", "x", 0, "order_2_paid"}, {500, "handler_failed", "", 0, "handler_failed"},
		{399, "", "", invalid, ""}, {600, "", "", invalid, ""}, {200, "", "", invalid, ""}, {-1, "", "", invalid, ""},
		{400, "Bad", "", invalid, ""}, {400, "a-b", "", invalid, ""}, {400, "_a", "", invalid, ""}, {400, "1a", "", invalid, ""},
		{400, "a b", "", invalid, ""}, {400, strings.Repeat("a", 65), "", invalid, ""},
		{400, "", "\xff", invalid, ""}, {400, "", strings.Repeat("x", 8<<10+1), tooLarge, ""},
	} {
		g := newGuest(t, hostabi.Limits{})
		g.do("response_header", "Content-Type", "text/html")
		g.do("response_header", "retry-after", "3")
		n := g.do("response_error", row.status, row.code, row.message)
		r := g.call.Response
		if n != row.want || r.Code != row.wantCode {
			t.Errorf("%d %q %.20q: %d with code %q, want %d with %q", row.status, row.code, row.message, n, r.Code, row.want, row.wantCode)
		}
		headers := "retry-after: 3\n"
		if row.code == "handler_failed" {
			headers = ""
		}
		if n == 0 && (r.Status != row.status || r.Detail != row.message || len(r.Body) != 0 || headerText(r) != headers) {
			t.Errorf("the answer is %+v, headers %q", r, headerText(r))
		}
		if n != 0 && r.Status != 0 {
			t.Errorf("%d was refused and left status %d", row.status, r.Status)
		}
	}
}
