package http_test

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"runner.example/tests/harness"
)

// identityHeaders are headers by which proxies and other servers name a client or change a
// request. Clients can send all of them.
var identityHeaders = []string{
	"X-Forwarded-For: 192.0.2.1", "X_Forwarded_For: 192.0.2.1", "Forwarded: for=192.0.2.1;proto=https;host=evil.example", "X-Real-IP: 192.0.2.1",
	"X-Client-IP: 192.0.2.1", "True-Client-IP: 192.0.2.1", "CF-Connecting-IP: 192.0.2.1", "X-Cluster-Client-IP: 192.0.2.1",
	"X-Forwarded-Host: evil.example", "X-Forwarded-Proto: https", "X-Forwarded-User: root", "X-Forwarded-Email: root@example.com",
	"X-User: root", "X-User-Id: root", "X-Remote-User: root", "Remote-User: root", "X-Authenticated-User: root", "X-Auth-Request-User: root",
	"X-Tenant: other", "X-Tenant-Id: other", "X-Role: admin", "X-Roles: admin", "X-Scope: writer", "X-Key-Id: key_1",
	"X-Runner-User: root", "X-Runner-Tenant: other", "X-Runner-Scope: writer", "X_Runner_User: root", "X-RUNNER-KIND: system",
	"X-Original-URL: /v1/limited", "X-Rewrite-URL: /v1/limited", "X-HTTP-Method-Override: DELETE", "X-Method-Override: DELETE", "X-Request-Id: forged",
	"SSL-Client-Verify: SUCCESS", "X-SSL-Client-S-DN: CN=root", "X-Client-Cert: root",
}

func TestIdentityHeadersIgnored(t *testing.T) {
	t.Parallel()
	a := harness.NewApp(t, strings.Replace(harness.ProbeSchema, "GET /limited -> hello (", "GET /byAddress -> hello (rateLimit: 2/day by ip)\n  GET /limited -> hello (", 1), "", "echo")
	s := a.Serve()
	key := "Authorization: Bearer " + a.Token("reader")
	context := func(headers ...string) string {
		t.Helper()
		d := harness.ReadDump(t, s.Do("GET", "/v1/dump", "", append(headers, key)...))
		d.Context.RequestID, d.Context.Deadline = "", ""
		return fmt.Sprintf("%s %s %+v", d.Method, d.Path, d.Context)
	}
	plain := context()
	for _, header := range append(identityHeaders, "") {
		headers := []string{header}
		if header == "" {
			headers = identityHeaders // all at once
		}
		if got := context(headers...); got != plain {
			t.Errorf("with %q the handler got %s, without %s", headers, got, plain)
		}
		for request, want := range map[string]int{"GET /v1/dump": 401, "POST /dump": 200, "GET /nowhere": 404} {
			method, path, _ := strings.Cut(request, " ")
			if got := s.Do(method, path, "", headers...); got.Status != want || got.Header.Get("X-Request-Id") == "forged" {
				t.Errorf("%s with %q: %d %v, want %d", request, headers, got.Status, got.Header, want)
			}
		}
		if got := s.Do("POST", "/v1/dump", "", append(headers, key)...); got.Status != 403 {
			t.Errorf("a route of another scope with %q: %d, want 403", headers, got.Status)
		}
	}
	d := harness.ReadDump(t, s.Do("GET", "/dump", "", identityHeaders...))
	for _, header := range d.Headers {
		if name := header[0]; strings.HasPrefix(name, "x-runner-") || name == "x_runner_user" || name == "x_forwarded_for" {
			t.Errorf("the handler got %s", name)
		}
	}
	// A limit by address counts the peer.
	for i, want := range []int{200, 200, 429, 429} {
		headers := []string{key}
		for _, header := range identityHeaders {
			headers = append(headers, strings.ReplaceAll(header, "192.0.2.1", fmt.Sprint("192.0.2.", 10+i)))
		}
		if got := s.Do("GET", "/v1/byAddress", "", headers...); got.Status != want {
			t.Errorf("request %d of one peer: %d, want %d", i+1, got.Status, want)
		}
	}
}

// A failed guess of a key is counted for the peer, whatever address it names.
func TestGuessedKeysAreCountedForThePeer(t *testing.T) {
	t.Parallel()
	s := harness.NewApp(t, harness.ProbeSchema, "", "echo").Serve()
	bad := "Authorization: Bearer " + harness.WithChecksum("rnk", strings.Repeat("0", 30))
	for i := range 25 {
		want := 401
		if i >= 20 {
			want = 429
		}
		address := fmt.Sprint("192.0.2.", i)
		got := s.Do("GET", "/v1/dump", "", bad, "X-Forwarded-For: "+address, "X-Real-IP: "+address, "Forwarded: for="+address)
		if got.Status != want {
			t.Fatalf("guess %d: %d, want %d", i+1, got.Status, want)
		}
	}
}

const cacheSchema = `
app cache
auth { session cookie { } }
apiKeys { scopes: { reader: @system("reader") { @grant read on Thing } } }
routes("/", auth: none, rateLimit: none) {
  GET /open -> dump
  POST /header -> setHeader
  GET /limitedOpen -> hello (rateLimit: 1/day)
}
routes("/v1", auth: apiKey(reader), rateLimit: none) {
  GET /private -> dump
  HEAD /private -> empty
  POST /header -> setHeader
  GET /fails -> missing
  GET /limited -> hello (rateLimit: 1/day)
  GET /session -> dump (auth: session)
  GET /any -> dump (auth: anyOf(session, apiKey(reader)))
  GET /page -> empty (auth: anyOf(session, none))
  POST /page -> setHeader (auth: anyOf(session, none))
  POST /list -> setHeader (auth: anyOf(apiKey(reader), none))
}
`

// What only some callers may see is not stored by caches, unless the handler permits it, and
// then Vary keeps the callers apart. A refusal of a caller is never stored.
func TestCacheHeaders(t *testing.T) {
	t.Parallel()
	a := harness.NewApp(t, cacheSchema, "", "echo")
	s := a.Serve()
	key, session := "X-API-Key: "+a.Token("reader"), "Cookie: "+a.Session("ann").Cookie
	const callers = "Authorization, Cookie, X-API-Key"
	for _, row := range []struct {
		method, path string
		headers      []string
		status       int
		cache, vary  string
	}{
		{"GET", "/open", nil, 200, "", ""},
		{"GET", "/open", []string{key, session}, 200, "", ""},
		{"GET", "/nowhere", nil, 404, "", ""},
		{"POST", "/header", []string{"X-Name: Cache-Control", "X-Value: max-age=60"}, 200, "max-age=60", ""},
		{"GET", "/limitedOpen", nil, 200, "", ""},
		{"GET", "/limitedOpen", nil, 429, "no-store", ""},

		{"GET", "/v1/private", []string{key}, 200, "no-store", callers},
		{"HEAD", "/v1/private", []string{key}, 204, "no-store", callers},
		{"GET", "/v1/session", []string{session}, 200, "no-store", callers},
		{"GET", "/v1/any", []string{session}, 200, "no-store", callers},
		{"GET", "/v1/any", []string{key}, 200, "no-store", callers},
		{"GET", "/v1/fails", []string{key}, 404, "no-store", callers},
		{"POST", "/v1/header", []string{key, "X-Name: Cache-Control", "X-Value: private, max-age=60"}, 200, "private, max-age=60", callers},
		{"POST", "/v1/header", []string{key, "X-Name: Vary", "X-Value: Accept"}, 200, "no-store", callers + ", Accept"},

		{"GET", "/v1/page", nil, 204, "", callers},
		{"GET", "/v1/page", []string{session}, 204, "no-store", callers},
		{"GET", "/v1/page", []string{session + "x"}, 204, "no-store", callers}, // it removes the cookie
		{"POST", "/v1/page", []string{"X-Name: Cache-Control", "X-Value: max-age=60"}, 200, "max-age=60", callers},
		{"POST", "/v1/page", []string{session, "X-Name: Cache-Control", "X-Value: max-age=60"}, 200, "no-store", callers},
		{"POST", "/v1/page", []string{session, "X-Name: Cache-Control", `X-Value: private="x", max-age=60`}, 200, "no-store", callers},
		{"POST", "/v1/page", []string{session, "X-Name: Cache-Control", "X-Value: max-age=60, Private"}, 200, "max-age=60, Private", callers},
		{"POST", "/v1/page", []string{session, "X-Name: CDN-Cache-Control", "X-Value: private"}, 200, "no-store", callers},
		{"POST", "/v1/list", []string{"X-Name: Cache-Control", "X-Value: max-age=60"}, 200, "max-age=60", callers},
		{"POST", "/v1/list", []string{key, "X-Name: Cache-Control", "X-Value: max-age=60"}, 200, "no-store", callers},
		{"GET", "/v1/private", nil, 401, "no-store", callers},
		{"GET", "/v1/private", []string{"X-API-Key: rubbish"}, 401, "no-store", callers},
		{"GET", "/v1/private", []string{key, key}, 400, "no-store", callers},
		{"GET", "/v1/session", []string{key}, 401, "no-store", callers},
		{"GET", "/v1/limited", []string{key}, 200, "no-store", callers},
		{"GET", "/v1/limited", []string{key}, 429, "no-store", callers},
	} {
		got := s.Do(row.method, row.path, "", row.headers...)
		cache, vary := got.Header.Values("Cache-Control"), strings.Join(got.Header.Values("Vary"), ", ")
		if got.Status != row.status || len(cache) > 1 || strings.Join(cache, "") != row.cache || !sameMembers(vary, row.vary) {
			t.Errorf("%s %s with %.30q: %d, Cache-Control %q, Vary %q; want %d, %q, %q", row.method, row.path, row.headers, got.Status, cache, vary, row.status, row.cache, row.vary)
		}
	}
}

// sameMembers compares two lists in the form of HTTP, whatever their order.
func sameMembers(a, b string) bool {
	count := map[string]int{}
	for _, member := range strings.Split(a, ", ") {
		count[member]++
	}
	for _, member := range strings.Split(b, ", ") {
		count[member]--
	}
	for _, n := range count {
		if n != 0 {
			return false
		}
	}
	return true
}

// A compressed body reaches the handler as it was sent, and limits count the bytes that were
// sent. So is what a service answers to a handler.
func TestGzipBombStaysBytes(t *testing.T) {
	t.Parallel()
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	_, _ = z.Write(make([]byte, 10<<20))
	_ = z.Close()
	bomb := packed.String()
	if len(bomb) > 16<<10 {
		t.Fatalf("10 MiB of zeros take %d bytes", len(bomb))
	}
	s := harness.NewApp(t, strings.Replace(harness.ProbeSchema, "POST /dump -> dump\n", "POST /dump -> dump (body: 16kb)\n", 1), "", "echo").Serve()
	for _, encoding := range []string{"gzip", "x-gzip", "deflate", "br", "gzip, gzip", "identity"} {
		d := harness.ReadDump(t, s.Do("POST", "/dump", bomb, "Content-Encoding: "+encoding))
		if d.Body != bomb || d.Header("content-encoding") != encoding || d.Header("content-length") != fmt.Sprint(len(bomb)) {
			t.Errorf("%s: the handler got %d bytes of %d, Content-Encoding %q", encoding, len(d.Body), len(bomb), d.Header("content-encoding"))
		}
	}
	s, origin, worker := outboundApp(t, "answer = \"16kb\"\n", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Encoding", "gzip")
		_, _ = io.WriteString(w, bomb)
	})
	var got struct {
		Status     int
		Body, Code string
	}
	s.Want(200, &got, "POST", "/one", origin+"/", worker)
	if got.Status != 200 || !strings.HasPrefix(got.Body, "\x1f") || strings.Count(got.Body, "\x00") > len(bomb) {
		t.Errorf("the handler got %d bytes: status %d, code %q", len(got.Body), got.Status, got.Code)
	}
}
