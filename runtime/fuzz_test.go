package runtime_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"runner.example/internal/diag"
	"runner.example/runtime"
	"runner.example/schema/compiler"
)

// fuzzedSchema is an app with each kind of check that a request passes.
const fuzzedSchema = `app fuzzed
auth { session cookie { } }
entity Item { id: id  name: string(1..10)  note: json?  secret: text? @hidden }
type NewItem { name: string(1..10)  price: decimal(12,2)? @min(0)  tags: string[] = []  note: json? }
type Page { limit: int(1..9) = 3  after: text? }
apiKeys { scopes: { clerk: @system("clerk") { @grant read, write on Item } } }
routes("/", auth: none, rateLimit: none, body: 4kb) {
  GET /hello -> hello
  GET /dump -> dump
  POST /dump -> dump
  PUT /a/:x/b -> dump
  GET /files/*rest -> dump
  GET /page -> dump (query: Page)
  POST /items -> dump (input: NewItem)
  POST /header -> setHeader
  POST /redirect -> redirect
  POST /say -> say
}
routes("/v1", auth: apiKey(clerk), rateLimit: none, body: 4kb) {
  POST /op -> op
  POST /trap -> opTrap
  GET /session -> dump (auth: session)
}
functions(auth: none, rateLimit: none) { @expose hello(month: int) }
`

// fuzzedRequests reach every route of fuzzedSchema. \n stands for \r\n.
var fuzzedRequests = []string{
	"GET /hello HTTP/1.1\nHost: a\n\n",
	"GET /dump?a=%20&b=+&b HTTP/1.0\nCookie: a=b\nX-Two: 1\nx-two: 2\n\n",
	"POST /dump HTTP/1.1\nHost: a\nContent-Length: 3\n\nabcGET /hello HTTP/1.1\nHost: a\n\n",
	"POST /dump HTTP/1.1\nHost: a\nTransfer-Encoding: chunked\n\n3;x=y\nabc\n0\nX: y\n\n",
	"POST /dump HTTP/1.1\nHost: a\nExpect: 100-continue\nContent-Length: 1\n\na",
	"POST /dump HTTP/1.1\nHost: a\nContent-Length: 4\nTransfer-Encoding: chunked\n\n0\n\n",
	"PUT /a/%C3%A4%25/b HTTP/1.1\nHost: a\nContent-Encoding: gzip\nContent-Length: 2\n\n\x1f\x8b",
	"GET /files/a/b;c/d?e#f HTTP/1.1\nHost: a\n\n",
	"GET http://a/page?limit=2&after=x HTTP/1.1\nHost: a\n\n",
	"POST /items HTTP/1.1\nHost: a\nContent-Type: application/json\nContent-Length: 45\n\n{\"name\":\"a\",\"price\":\"1.50\",\"note\":[{},null,1]}",
	"POST /header HTTP/1.1\nHost: a\nX-Name: X-Mine\nX-Value: v\nContent-Length: 0\n\n",
	"POST /redirect HTTP/1.1\nHost: a\nX-Location: /there\nContent-Length: 0\n\n",
	"POST /say HTTP/1.1\nHost: a\nX-Log: line\nContent-Length: 5\n\nother",
	"POST /v1/op HTTP/1.1\nHost: a\nAuthorization: Bearer {token}\nX-Op: insert\nContent-Length: 39\n\n{\"into\":\"Item\",\"values\":{\"name\":\"lamp\"}}",
	"POST /v1/op HTTP/1.1\nHost: a\nX-API-Key: {token}\nX-Op: find\nContent-Length: 53\n\n{\"from\":\"Item\",\"where\":{\"name\":\"lamp\"},\"select\":[\"id\"]}",
	"POST /v1/op HTTP/1.1\nHost: a\nX-API-Key: {token}\nX-Op: count\nContent-Length: 15\n\n{\"from\":\"Item\"}",
	"POST /v1/op HTTP/1.1\nHost: a\nX-API-Key: {token}\nX-Op: fetch\nContent-Length: 22\n\n{\"url\":\"http://a/b\"}  ",
	"POST /v1/trap HTTP/1.1\nHost: a\nX-API-Key: {token}\nX-Op: count\nContent-Length: 15\n\n{\"from\":\"Item\"}",
	"GET /v1/session HTTP/1.1\nHost: a\nCookie: __Host-session=x\n\n",
	"POST /_call/hello HTTP/1.1\nHost: a\nContent-Type: application/json\nContent-Length: 11\n\n{\"month\":1}",
	"OPTIONS /dump HTTP/1.1\nHost: a\n\nHEAD /dump HTTP/1.1\nHost: a\n\n",
	"\x16\x03\x01\x02\x00\x01\x00", "PRI * HTTP/2.0\n\nSM\n\n", "\n", "G",
}

// panicLog counts the lines about panics of the host.
type panicLog struct {
	slog.Handler
	lines *atomic.Pointer[string]
}

func (panicLog) Enabled(context.Context, slog.Level) bool { return true }

func (l panicLog) WithAttrs([]slog.Attr) slog.Handler { return l }

func (l panicLog) Handle(_ context.Context, r slog.Record) error {
	var line strings.Builder
	line.WriteString(r.Message)
	r.Attrs(func(a slog.Attr) bool { line.WriteString(" " + a.String()); return true })
	if text := line.String(); strings.Contains(text, "panic") || strings.Contains(text, "BUG:") {
		l.lines.Store(&text)
	}
	return nil
}

// FuzzWholeRequest sends any bytes through the whole path of a request: the parser, the
// route, the caller, the input, a handler in its sandbox, and back. Each answer is one that
// net/http reads, and the server never panics.
func FuzzWholeRequest(f *testing.F) {
	for _, request := range fuzzedRequests {
		f.Add([]byte(strings.ReplaceAll(request, "\n", "\r\n")), 0)
		f.Add([]byte(strings.ReplaceAll(request, "\n", "\r\n")), 5)
	}
	wat, err := os.ReadFile("../tests/testdata/guests/echo.wat")
	if err != nil {
		f.Fatal(err)
	}
	st, keys := openStore(f, "")
	var panicked atomic.Pointer[string]
	rt, err := runtime.New(runtime.Options{
		Store: st, Keystore: keys, AccessLog: true, Logger: slog.New(panicLog{slog.DiscardHandler, &panicked}),
	})
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(func() { closes(f, rt) })
	sources := []diag.Source{{Name: "a.schema", Text: []byte(fuzzedSchema)}}
	s, diags := compiler.Compile(sources, compiler.Options{})
	if s == nil {
		f.Fatal(diags)
	}
	module := runtime.ModuleFile{Name: "build/echo.wasm", Wasm: assemble(f, string(wat))}
	bundle := &runtime.Bundle{Schema: s, Sources: sources, Modules: []runtime.ModuleFile{module}}
	if err := rt.Activate(f.Context(), bundle, runtime.Activation{}); err != nil {
		f.Fatal(err)
	}
	token := createKey(f, st, keys, s, "clerk")
	socket := filepath.Join(f.TempDir(), "s")
	ln, err := net.Listen("unix", socket)
	if err != nil {
		f.Fatal(err)
	}
	serve(f, rt, ln)

	f.Fuzz(func(t *testing.T, raw []byte, step int) {
		raw = bytes.ReplaceAll(raw, []byte("{token}"), []byte(token))
		conn, err := net.Dial("unix", socket)
		if err != nil {
			t.Fatal(err)
		}
		if err := conn.SetDeadline(time.Now().Add(time.Minute)); err != nil {
			t.Fatal(err)
		}
		sent := make(chan struct{})
		go func() {
			defer close(sent)
			pieces := [][]byte{raw}
			if step &= 7; step > 0 && len(raw) < 1000 {
				pieces = slices.Collect(slices.Chunk(raw, step))
			}
			for _, piece := range pieces {
				_, _ = conn.Write(piece) // fails when the server has closed the connection
			}
			_ = conn.(*net.UnixConn).CloseWrite()
		}()
		checkAnswers(t, conn, raw)
		_ = conn.Close()
		<-sent
		if text := panicked.Load(); text != nil {
			t.Fatalf("the server panicked: %s", *text)
		}
	})
}

var requestID = regexp.MustCompile(`^[0-9a-z]{26}$`)

// checkAnswers reads the answers to raw until the server closes the connection.
func checkAnswers(t *testing.T, conn io.Reader, raw []byte) {
	t.Helper()
	for r := bufio.NewReader(conn); ; {
		if _, err := r.Peek(1); err != nil {
			return
		}
		res, err := http.ReadResponse(r, nil)
		if err != nil {
			t.Fatalf("an answer to %q: %v", raw, err)
		}
		if res.StatusCode == http.StatusContinue {
			continue
		}
		if ids := res.Header.Values("X-Request-Id"); len(ids) != 1 || !requestID.MatchString(ids[0]) || res.Header.Get("Date") == "" {
			t.Fatalf("an answer to %q with the headers %v", raw, res.Header)
		}
		if bytes.Contains(raw, []byte("HEAD ")) {
			return // whether a body follows depends on the request
		}
		body, err := io.ReadAll(res.Body)
		if err != nil {
			t.Fatalf("the body of an answer to %q: %v", raw, err)
		}
		if res.Header.Get("Content-Type") == "application/problem+json" && !json.Valid(body) {
			t.Fatalf("the answer to %q is the problem %q", raw, body)
		}
	}
}
