package http_test

import (
	"bytes"
	"compress/gzip"
	"encoding/hex"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/andybalholm/brotli"
	"github.com/klauspost/compress/zstd"

	"runner.example/tests/harness"
)

const assetsSchema = `
app site
auth { session cookie("sid") { idle: 30m, absolute: 12h } }

assets("/", dir: "public", spa: "index.html", rateLimit: 10000/minute by ip, cors: ["https://www.example.com"], headers: {
  "Content-Security-Policy": "default-src 'self'", "X-Extra": "yes"
})
assets("/docs", dir: "docs")

routes("/team", auth: session) {
  assets("/", dir: "team", rateLimit: 3/hour)
  POST /members -> hello
}
routes("/", auth: none, rateLimit: none) {
  GET  /v1/echo -> hello
  POST /login   -> hello
  POST /app.js  -> hello
  POST /data    -> hello
}
`

// script is a file that shrinks.
var script = strings.Repeat("export const answer = 42; // and so on\n", 300)

func serveAssets(t *testing.T) (*harness.App, *harness.Server) {
	a := harness.NewApp(t, assetsSchema, "[auth]\ninsecure_cookies = true\n", "echo")
	for name, content := range map[string]string{
		"public/index.html": "<!doctype html>home", "public/app.js": "app()", "public/assets/index-B4xk2aZq.js": script,
		"public/a b.txt": "with a space", "public/.env": "SECRET", "public/_files/x.txt": "the host's path", "public/%5Ffiles/x.txt": "its name has a percent sign", "public/.well-known/security.txt": "Contact: x",
		"public/data/index.html": "data", "public/v1/echo": "hidden by a route", "public/big.bin": strings.Repeat("0123456789", 50_000),
		"docs/index.html": "docs", "docs/guide/index.html": "guide", "docs/404.html": "no such page",
		"team/index.html": "members only", "team/x-B4xk2aZq.js": "x",
	} {
		a.Write(name, content)
	}
	s := a.Serve()
	s.WaitForOutput("assets compressed")
	return a, s
}

const navigation = "Accept: text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"

func TestAssetsAreServed(t *testing.T) {
	t.Parallel()
	_, s := serveAssets(t)
	for _, c := range []struct {
		request string
		status  int
		want    string // of the body, or the Location
		headers []string
	}{
		{"GET /", 200, "<!doctype html>home", nil},
		{"GET /index.html", 200, "<!doctype html>home", nil},
		{"GET /app.js", 200, "app()", nil},
		{"GET /app.js?v=1", 200, "app()", nil},
		{"GET /a%20b.txt", 200, "with a space", nil},
		{"GET /%61pp.js", 200, "app()", nil},
		{"GET /.well-known/security.txt", 200, "Contact: x", nil},
		{"GET /.env", 404, "", nil},
		{"GET /orders/7", 404, "", nil},
		{"GET /orders/7", 200, "<!doctype html>home", []string{navigation}},
		{"GET /missing.js", 404, "", []string{"Accept: */*"}},
		{"GET /app.js/", 308, "/app.js", nil},
		{"GET /data?a=/b&c", 308, "/data/?a=/b&c", nil},
		{"HEAD /data", 308, "/data/", nil},
		{"GET /v1/echo", 200, "", nil}, // of the route
		{"GET /login", 405, "", nil},
		{"GET /login", 200, "<!doctype html>home", []string{navigation}}, // a route of another method
		{"POST /login", 200, "", nil},
		{"POST /index.html", 405, "", nil},
		{"DELETE /missing", 404, "", nil},
		{"POST /missing", 404, "", nil},
		{"GET /docs", 308, "/docs/", nil},
		{"GET /docs/", 200, "docs", nil},
		{"GET /docs/guide", 308, "/docs/guide/", nil},
		{"GET /docs/none", 404, "no such page", []string{navigation}},
		{"GET /docs/none", 404, "", nil},
		{"GET /docs/app.js", 404, "", nil}, // not of the directory above
		{"GET /v1/%65cho", 404, "", nil},
		{"HEAD /%761/echo", 404, "", nil},
		{"GET /_call/x", 404, "", nil},
		{"GET /_call/x", 404, "", []string{navigation}},
		{"GET /_files/x/", 404, "", []string{navigation}},
		{"GET /%5Ffiles/x.txt", 404, "", nil},
		{"GET /%255Ffiles/x.txt", 200, "its name has a percent sign", nil},
		{"GET /team/", 401, "", nil},
		{"GET /team/missing", 401, "", []string{navigation}},
		{"GET /%74eam/", 401, "", nil},
		{"GET //app.js", 400, "", nil},
		{"GET /docs/../app.js", 400, "", nil},
		{"GET /docs/%2e%2e/app.js", 400, "", nil},
		{"GET /docs/.%2E/app.js", 400, "", nil},
		{"GET /docs%2f..%2fapp.js", 400, "", nil},
		{"GET /%252e%252e/app.js", 404, "", nil},
		{"GET /app.js%00", 400, "", nil},
		{"GET /app%5c.js", 400, "", nil},
		{"GET /app.js%", 400, "", nil},
		{"GET /app.js%zz", 400, "", nil},
		{"GET /%ff", 400, "", nil},
		{"GET //evil.example/data", 400, "", nil},
		{"GET /%5cevil.example/data", 400, "", nil},
	} {
		method, path, _ := strings.Cut(c.request, " ")
		head := fmt.Sprintf("%s %s HTTP/1.1\r\nHost: x\r\nConnection: close\r\n", method, path) // as it is: no client may clean the path
		for _, h := range c.headers {
			head += h + "\r\n"
		}
		if method == "POST" {
			head += "Content-Length: 0\r\n"
		}
		reply := s.Raw(head+"\r\n", time.Minute)
		top, body, _ := strings.Cut(reply, "\r\n\r\n")
		var status int
		if _, err := fmt.Sscanf(top, "HTTP/1.1 %d", &status); err != nil || status != c.status {
			t.Errorf("%s %q: %.300s; want %d", c.request, c.headers, reply, c.status)
			continue
		}
		if location := headerIn(top, "Location"); c.status == 308 && location != c.want {
			t.Errorf("%s: to %q, want %q", c.request, location, c.want)
		}
		if c.status != 308 && c.want != "" && body != c.want {
			t.Errorf("%s %q: %.200q, want %q", c.request, c.headers, body, c.want)
		}
	}
}

// headerIn is the value of a header in the head of an answer.
func headerIn(head, name string) string {
	for line := range strings.SplitSeq(head, "\r\n") {
		if key, value, ok := strings.Cut(line, ": "); ok && strings.EqualFold(key, name) {
			return value
		}
	}
	return ""
}

func TestAssetsHaveHeaders(t *testing.T) {
	t.Parallel()
	a, s := serveAssets(t)
	want := func(answer harness.Answer, headers map[string]string) {
		t.Helper()
		for name, value := range headers {
			if got := strings.Join(answer.Header.Values(name), " | "); got != value {
				t.Errorf("%s: %q, want %q", name, got, value)
			}
		}
	}
	page := s.Do("GET", "/", "")
	want(page, map[string]string{
		"Content-Type": "text/html; charset=utf-8", "Cache-Control": "no-cache", "X-Content-Type-Options": "nosniff",
		"Referrer-Policy": "strict-origin-when-cross-origin", "Content-Security-Policy": "default-src 'self'; frame-ancestors 'self'",
		"X-Extra": "yes", "Accept-Ranges": "bytes", "Content-Encoding": "", "Set-Cookie": "",
	})
	hashed := s.Do("GET", "/assets/index-B4xk2aZq.js", "")
	want(hashed, map[string]string{
		"Content-Type": "text/javascript; charset=utf-8", "Cache-Control": "public, max-age=31536000, immutable", "Vary": "Origin | Accept-Encoding",
	})
	want(s.Do("GET", "/", "", "Origin: https://www.example.com"), map[string]string{"Access-Control-Allow-Origin": "https://www.example.com"})
	want(s.Do("GET", "/orders/7", "", navigation), map[string]string{"Vary": "Origin | Accept"})
	want(s.Do("GET", "/missing.js", ""), map[string]string{"Vary": "Origin | Accept", "Content-Type": "application/problem+json"})
	want(s.Do("GET", "/docs/none", "", navigation), map[string]string{"Content-Type": "text/html; charset=utf-8", "Cache-Control": "no-cache"})

	want(s.Do("OPTIONS", "/", ""), map[string]string{"Allow": "GET, HEAD, OPTIONS"})
	want(s.Do("OPTIONS", "/app.js", ""), map[string]string{"Allow": "GET, HEAD, POST, OPTIONS"})
	want(s.Do("DELETE", "/app.js", ""), map[string]string{"Allow": "GET, HEAD, POST, OPTIONS"})
	if got := s.Do("OPTIONS", "/missing", ""); got.Status != 404 {
		t.Errorf("OPTIONS of no file: %d", got.Status)
	}
	want(s.Do("OPTIONS", "/team/missing", ""), map[string]string{"Allow": "GET, HEAD, OPTIONS"})
	preflight := s.Do("OPTIONS", "/index.html", "", "Origin: https://www.example.com", "Access-Control-Request-Method: GET", "Access-Control-Request-Headers: x-a")
	want(preflight, map[string]string{"Access-Control-Allow-Methods": "GET", "Access-Control-Allow-Headers": "x-a"})

	// Conditions and ranges.
	etag := hashed.Header.Get("ETag")
	for _, header := range []string{"If-None-Match: " + etag, "If-None-Match: W/" + etag, "If-None-Match: \"x\", " + etag, "If-None-Match: *"} {
		if got := s.Do("GET", "/assets/index-B4xk2aZq.js", "", header); got.Status != 304 || got.Body != "" || got.Header.Get("ETag") != etag ||
			got.Header.Get("Cache-Control") != "public, max-age=31536000, immutable" {
			t.Errorf("%s: %+v", header, got)
		}
	}
	if got := s.Do("GET", "/big.bin", "", "Range: bytes=499995-"); got.Status != 206 || got.Body != "56789" || got.Header.Get("Content-Range") != "bytes 499995-499999/500000" {
		t.Errorf("a range: %+v", got)
	}
	if got := s.Do("GET", "/big.bin", "", "Range: bytes=500000-"); got.Status != 416 {
		t.Errorf("a range after the end: %d", got.Status)
	}
	head := s.Do("HEAD", "/big.bin", "")
	want(head, map[string]string{"Content-Length": "500000", "Content-Type": "application/octet-stream"})
	if head.Status != 200 || head.Body != "" {
		t.Errorf("HEAD: %d, %q", head.Status, head.Body)
	}

	// Auth and limits of the group.
	cookie := "Cookie: sid=" + strings.TrimPrefix(a.Session("ada").Cookie, "sid=")
	team := s.Do("GET", "/team/", "", cookie)
	if team.Status != 200 || team.Body != "members only" {
		t.Fatalf("with a session: %d %s", team.Status, team.Body)
	}
	want(team, map[string]string{"Cache-Control": "private, no-cache", "Vary": "Authorization, Cookie, X-API-Key", "Access-Control-Allow-Origin": ""})
	want(s.Do("GET", "/team/x-B4xk2aZq.js", "", cookie), map[string]string{"Cache-Control": "private, max-age=31536000, immutable"})
	if got := s.Do("GET", "/team/missing", "", cookie); got.Status != 404 {
		t.Errorf("a missing file of the team: %d", got.Status)
	}
	if got := s.Do("GET", "/team/", "", cookie); got.Status != 429 {
		t.Errorf("beyond the limit: %d", got.Status)
	}
}

func TestAssetsAreCompressed(t *testing.T) {
	t.Parallel()
	a, s := serveAssets(t)
	decoders := map[string]func(io.Reader) ([]byte, error){
		"":   io.ReadAll,
		"br": func(r io.Reader) ([]byte, error) { return io.ReadAll(brotli.NewReader(r)) },
		"gzip": func(r io.Reader) ([]byte, error) {
			d, err := gzip.NewReader(r)
			if err != nil {
				return nil, err
			}
			return io.ReadAll(d)
		},
		"zstd": func(r io.Reader) ([]byte, error) {
			d, err := zstd.NewReader(r)
			if err != nil {
				return nil, err
			}
			defer d.Close()
			return io.ReadAll(d)
		},
	}
	tags := map[string]bool{}
	for accept, want := range map[string]string{"": "", "br": "br", "gzip": "gzip", "zstd": "zstd", "gzip;q=0.1, identity": "gzip", "deflate": "", "br;q=0": ""} {
		got := s.Do("GET", "/assets/index-B4xk2aZq.js", "", "Accept-Encoding: "+accept)
		if encoding := got.Header.Get("Content-Encoding"); encoding != want {
			t.Errorf("%q gets %q", accept, encoding)
			continue
		}
		body, err := decoders[want](strings.NewReader(got.Body))
		if err != nil || string(body) != script || want != "" && len(got.Body) > len(script)/10 {
			t.Errorf("%q: %d bytes, %v", accept, len(got.Body), err)
		}
		tags[got.Header.Get("ETag")] = true
		if again := s.Do("GET", "/assets/index-B4xk2aZq.js", "", "Accept-Encoding: "+accept, "If-None-Match: "+got.Header.Get("ETag")); again.Status != 304 {
			t.Errorf("%q: again %d", accept, again.Status)
		}
		part := s.Do("GET", "/assets/index-B4xk2aZq.js", "", "Accept-Encoding: "+accept, "Range: bytes=2-9")
		if part.Status != 206 || part.Body != got.Body[2:10] || part.Header.Get("Content-Encoding") != want {
			t.Errorf("%q: a range is %d %q", accept, part.Status, part.Body)
		}
	}
	if len(tags) != 4 {
		t.Errorf("tags %v", tags)
	}
	// The forms are there after a start, and nothing is compressed.
	s.Stop()
	s = a.Serve()
	s.WaitUntil("the form of the cache is sent", func() bool {
		return s.Do("GET", "/assets/index-B4xk2aZq.js", "", "Accept-Encoding: br").Header.Get("Content-Encoding") == "br"
	})
	if bytes.Contains([]byte(s.Stderr.String()), []byte("assets compressed")) {
		t.Error("the files were compressed again")
	}
}

// Someone has emptied the directory of compressed forms. The file is sent as it is, from the first request on.
func TestALostCompressedFormIsNotMissed(t *testing.T) {
	t.Parallel()
	a := harness.NewApp(t, `assets("/", dir: "public")`, "", "echo")
	random := make([]byte, 150_000)
	rand.NewChaCha8([32]byte{}).Read(random)
	text := hex.EncodeToString(random) // its forms are too large to be kept in memory
	a.Write("public/large.txt", text)
	s := a.Serve()
	s.WaitForOutput("assets compressed")
	if got := s.Do("GET", "/large.txt", "", "Accept-Encoding: br"); got.Status != 200 || got.Header.Get("Content-Encoding") != "br" {
		t.Fatalf("before: %d %v", got.Status, got.Header)
	}
	if err := os.RemoveAll(a.Path("data/assets")); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		got := s.Do("GET", "/large.txt", "", "Accept-Encoding: br, gzip, zstd")
		if got.Status != 200 || got.Header.Get("Content-Encoding") != "" || got.Body != text {
			t.Errorf("after: %d %v, %d bytes", got.Status, got.Header, len(got.Body))
		}
	}
}

func TestAssetsAreCountedAndLogged(t *testing.T) {
	t.Parallel()
	a := harness.NewApp(t, `assets("/site", dir: "public")`, "[telemetry]\naccess_log = true\n[metrics]\nlisten = \"127.0.0.1:0\"\n", "echo")
	a.Write("public/index.html", "home")
	s := a.Serve()
	s.Want(200, nil, "GET", "/site/", "")
	s.Want(404, nil, "GET", "/site/none", "")
	s.WaitForOutput(`"status":404.*"route":"/site/\*"`)
	metrics := a.Metrics()
	for _, class := range []string{"2xx", "4xx"} {
		if name := `runner_requests_total{class="` + class + `",route="assets /site/*"}`; metrics[name] != 1 {
			t.Errorf("%s is %v", name, metrics[name])
		}
	}
}

// A client that reads nothing holds no memory for the file that it asked for.
func TestAClientThatDoesNotReadKeepsNoAssetInMemory(t *testing.T) {
	t.Parallel()
	a := harness.NewApp(t, `assets("/", dir: "public")`, "", "echo")
	a.Write("public/big.bin", strings.Repeat("x", 30<<20))
	s := a.Serve()
	before := s.Resources()
	for range 20 {
		response, err := http.Get(s.URL + "/big.bin")
		if err != nil {
			t.Fatal(err)
		}
		defer response.Body.Close()
	}
	if grown := s.Resources().OwnBytes - before.OwnBytes; grown > 100<<20 {
		t.Errorf("20 clients that wait hold %d MiB", grown>>20)
	}
}
