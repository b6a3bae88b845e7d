package wasi_test

import (
	"context"
	"crypto/x509"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"

	"runner.example/hostabi"
	"runner.example/hostabi/outbound"
	"runner.example/internal/component/canon"
)

// fields makes fields of names and values.
func (g *guest) fields(texts ...string) any {
	g.t.Helper()
	list := []any{}
	for i := 0; i < len(texts); i += 2 {
		list = append(list, []any{texts[i], []byte(texts[i+1])})
	}
	return value(g.do(types+"[static]fields.from-list", list))
}

func TestFieldsKeepNamesAndValues(t *testing.T) {
	g := newGuest(t, hostabi.Limits{})
	f := g.fields("X-A", "1", "x-b", "2", "x-a", "3")
	g.expect("[[X-A 1] [x-b 2] [x-a 3]]", types+"[method]fields.entries", f)
	g.expect("[1 3]", types+"[method]fields.get", f, "X-a")
	g.expect("true", types+"[method]fields.has", f, "X-B")
	g.expect("[]", types+"[method]fields.get", f, "x-c")
	g.expect("false", types+"[method]fields.has", f, "x-c")
	g.expect("#0", types+"[method]fields.append", f, "x-B", []byte(""))
	g.expect("[2 ]", types+"[method]fields.get", f, "x-b")
	g.expect("#0", types+"[method]fields.set", f, "X-a", []any{[]byte("4"), []byte("5")})
	g.expect("[[x-b 2] [x-B ] [X-a 4] [X-a 5]]", types+"[method]fields.entries", f)
	g.expect("#0", types+"[method]fields.set", f, "X-a", []any{})
	g.expect("false", types+"[method]fields.has", f, "x-a")
	g.expect("#0", types+"[method]fields.delete", f, "x-b")
	g.expect("#0", types+"[method]fields.delete", f, "x-b")
	g.expect("[]", types+"[method]fields.entries", f)
	g.expect("#0", types+"[method]fields.append", f, "x-c", []byte("\xff\t "+"\x80"))
	g.expect("[[x-c \xff\t \x80]]", types+"[method]fields.entries", f)
}

func TestFieldsAreChecked(t *testing.T) {
	const syntax, forbidden, immutable = "#1 #0", "#1 #1", "#1 #2"
	g := newGuest(t, hostabi.Limits{})
	f := g.fields("x-a", "1")
	for _, name := range []string{"", "a b", "a:", "ä", "a\x00", "\u212aeep-alive"} {
		g.expect(syntax, types+"[static]fields.from-list", []any{[]any{name, []byte("1")}})
		g.expect(syntax, types+"[method]fields.append", f, name, []byte("1"))
		g.expect(syntax, types+"[method]fields.set", f, name, []any{[]byte("1")})
		g.expect(syntax, types+"[method]fields.delete", f, name)
		g.expect("[]", types+"[method]fields.get", f, name)
		g.expect("false", types+"[method]fields.has", f, name)
	}
	for _, v := range []string{"a\nb", "a\r", "a\x00", "\x7f", " a", "a\t"} {
		g.expect(syntax, types+"[static]fields.from-list", []any{[]any{"x", []byte(v)}})
		g.expect(syntax, types+"[method]fields.append", f, "x", []byte(v))
		g.expect(syntax, types+"[method]fields.set", f, "x", []any{[]byte("1"), []byte(v)})
	}
	for _, name := range []string{
		"Connection", "keep-alive", "proxy-authenticate", "proxy-authorization", "proxy-connection",
		"Transfer-Encoding", "upgrade", "HOST", "http2-settings",
	} {
		g.expect(forbidden, types+"[static]fields.from-list", []any{[]any{name, []byte("1")}})
		g.expect(forbidden, types+"[method]fields.append", f, name, []byte("1"))
		g.expect(forbidden, types+"[method]fields.set", f, name, []any{[]byte("1")})
		g.expect(forbidden, types+"[method]fields.delete", f, name)
	}
	g.expect("[[x-a 1]]", types+"[method]fields.entries", f) // nothing has changed it

	message := g.do(types+"[constructor]outgoing-response", f)
	fixed := g.do(types+"[method]outgoing-response.headers", message)
	g.expect(immutable, types+"[method]fields.append", fixed, "x", []byte("1"))
	g.expect(immutable, types+"[method]fields.set", fixed, "x", []any{})
	g.expect(immutable, types+"[method]fields.delete", fixed, "x-a")
	own := g.do(types+"[method]fields.clone", fixed)
	g.expect("#0", types+"[method]fields.append", own, "x-b", []byte("2"))
	g.expect("[[x-a 1] [x-b 2]]", types+"[method]fields.entries", own)
	g.expect("[[x-a 1]]", types+"[method]fields.entries", fixed)
}

func TestARequestComesIn(t *testing.T) {
	g := newGuest(t, hostabi.Limits{})
	request, _ := g.http()
	g.expect("#2", types+"[method]incoming-request.method", request)
	g.expect("#1 /v1/things/a%20b?q=1", types+"[method]incoming-request.path-with-query", request)
	g.expect("#1 #0", types+"[method]incoming-request.scheme", request)
	g.call.Request.Secure = true
	g.expect("#1 #1", types+"[method]incoming-request.scheme", request)
	g.expect("#1 example.com", types+"[method]incoming-request.authority", request)
	headers := g.do(types+"[method]incoming-request.headers", request)
	g.expect("[[content-type text/plain] [x-a 1, \xff]]", types+"[method]fields.entries", headers) // host is the authority
	g.expect("#1 #2", types+"[method]fields.delete", headers, "x-a")
	g.dropTraps("1 of its children are there", types, "incoming-request", request)
	g.drop(types, "fields", headers)

	body := value(g.do(types+"[method]incoming-request.consume", request))
	g.expect("#1", types+"[method]incoming-request.consume", request)
	g.drop(types, "incoming-request", request) // a body is not its child
	stream := value(g.do(types+"[method]incoming-body.stream", body))
	g.expect("#1", types+"[method]incoming-body.stream", body)
	g.expect("#0 the ", streams+"[method]input-stream.read", stream, uint64(4))
	pollable := g.do(streams+"[method]input-stream.subscribe", stream)
	g.dropTraps("1 of its children are there", streams, "input-stream", stream)
	g.drop(poll, "pollable", pollable)
	g.dropTraps("1 of its children are there", types, "incoming-body", body)
	g.traps("1 of its children are there", types+"[static]incoming-body.finish", body)
	g.drop(streams, "input-stream", stream)
	trailers := g.do(types+"[static]incoming-body.finish", body)
	g.traps("not of incoming-body", types+"[method]incoming-body.stream", body) // the number is used again
	ready := g.do(types+"[method]future-trailers.subscribe", trailers)
	g.expect("true", poll+"[method]pollable.ready", ready)
	g.dropTraps("1 of its children are there", types, "future-trailers", trailers)
	g.expect("#1 #0 #0 #0", types+"[method]future-trailers.get", trailers)
	g.expect("#1 #1", types+"[method]future-trailers.get", trailers)
}

func TestAnUnknownMethodKeepsItsName(t *testing.T) {
	g := newGuest(t, hostabi.Limits{})
	g.call.Request.Method, g.call.Request.RawQuery, g.call.Request.Headers = []byte("PURGE"), nil, nil
	request, _ := g.http()
	g.expect("#9 PURGE", types+"[method]incoming-request.method", request)
	g.expect("#1 /v1/things/a%20b", types+"[method]incoming-request.path-with-query", request)
	g.expect("#1 localhost", types+"[method]incoming-request.authority", request)
}

// response makes a response with a body that is not finished.
func (g *guest) response(headers ...string) (response, body any) {
	g.t.Helper()
	response = g.do(types+"[constructor]outgoing-response", g.fields(headers...))
	return response, value(g.do(types+"[method]outgoing-response.body", response))
}

// write writes to a body.
func (g *guest) write(body any, text string) {
	g.t.Helper()
	stream := value(g.do(types+"[method]outgoing-body.write", body))
	g.do(streams+"[method]output-stream.check-write", stream)
	g.expect("#0", streams+"[method]output-stream.write", stream, []byte(text))
	g.drop(streams, "output-stream", stream)
}

// An answer begins before its body is written, and its status and headers are final then.
func TestAnAnswerGoesOut(t *testing.T) {
	g := newGuest(t, hostabi.Limits{})
	_, outparam := g.http()
	response, body := g.response("Content-Type", "text/html", "server", "mine", "date", "now", "Content-Length", "9", "X-A", "1", "x-a", "2")
	g.expect("#1", types+"[method]outgoing-response.body", response)
	g.expect("200", types+"[method]outgoing-response.status-code", response)
	for _, status := range []uint64{0, 99, 600, 65535} {
		g.expect("#1", types+"[method]outgoing-response.set-status-code", response, status)
	}
	g.expect("#0", types+"[method]outgoing-response.set-status-code", response, uint64(201))
	g.expect("201", types+"[method]outgoing-response.status-code", response)
	headers := g.do(types+"[method]outgoing-response.headers", response)
	g.dropTraps("1 of its children are there", types, "outgoing-response", response)
	g.drop(types, "fields", headers)
	g.do(types+"[static]response-outparam.set", outparam, ok(response))
	g.traps("is unknown, or was dropped", types+"[static]response-outparam.set", outparam, ok(response))
	g.traps("is unknown, or was dropped", types+"[method]outgoing-response.status-code", response)
	stream := value(g.do(types+"[method]outgoing-body.write", body))
	g.expect("#1", types+"[method]outgoing-body.write", body)
	g.dropTraps("1 of its children are there", types, "outgoing-body", body)
	g.traps("1 of its children are there", types+"[static]outgoing-body.finish", body, none)
	g.expect("#0", streams+"[method]output-stream.blocking-write-and-flush", stream, []byte("hello"))
	g.expect("#0", streams+"[method]output-stream.blocking-write-zeroes-and-flush", stream, uint64(4))
	g.drop(streams, "output-stream", stream)
	g.expect("#0", types+"[static]outgoing-body.finish", body, some(g.fields("x-trailer", "1")))
	if g.call.Response.Status != 0 {
		t.Error("the answer is there before the end")
	}
	if err := g.end(); err != nil {
		t.Fatal(err)
	}
	r := &g.call.Response
	if r.Status != 201 || string(r.Body) != "hello\x00\x00\x00\x00" || fmt.Sprintf("%s", r.Headers) != "[{Content-Type text/html} {X-A 1} {x-a 2}]" {
		t.Errorf("%d %q %s", r.Status, r.Body, r.Headers)
	}
}

func TestAnAnswerMayHaveNoBody(t *testing.T) {
	g := newGuest(t, hostabi.Limits{})
	_, outparam := g.http()
	response := g.do(types+"[constructor]outgoing-response", g.fields())
	g.do(types+"[method]outgoing-response.set-status-code", response, uint64(204))
	g.do(types+"[static]response-outparam.set", outparam, ok(response))
	if err := g.end(); err != nil || g.call.Response.Status != 204 || len(g.call.Response.Headers) != 0 {
		t.Errorf("%v %+v", err, g.call.Response)
	}
}

// Each of these is an answer that cannot be sent.
func TestAnswersThatAreNotComplete(t *testing.T) {
	for what, row := range map[string]struct {
		limits hostabi.Limits
		want   string
		do     func(g *guest, outparam any)
	}{
		"never set": {want: "<nil>", do: func(*guest, any) {}},
		"dropped outparam": {want: "<nil>", do: func(g *guest, outparam any) {
			g.drop(types, "response-outparam", outparam)
		}},
		"open body": {want: "was not finished", do: func(g *guest, outparam any) {
			response, body := g.response()
			g.do(types+"[static]response-outparam.set", outparam, ok(response))
			g.write(body, "a")
		}},
		"dropped body": {want: "was not finished", do: func(g *guest, outparam any) {
			response, body := g.response()
			g.do(types+"[static]response-outparam.set", outparam, ok(response))
			g.drop(types, "outgoing-body", body)
		}},
		"less than Content-Length": {want: "it has 2 bytes, and Content-Length says 3", do: func(g *guest, outparam any) {
			response, body := g.response("content-length", "3")
			g.do(types+"[static]response-outparam.set", outparam, ok(response))
			g.write(body, "12")
			g.expect("#1 #28 #1 2", types+"[static]outgoing-body.finish", body, none)
		}},
		"more than Content-Length": {want: "it has 4 bytes, and Content-Length says 3", do: func(g *guest, outparam any) {
			response, body := g.response("Content-Length", "3")
			g.do(types+"[static]response-outparam.set", outparam, ok(response))
			g.write(body, "1234")
			g.expect("#1 #28 #1 4", types+"[static]outgoing-body.finish", body, none)
		}},
		"more than an answer may have": {hostabi.Limits{ResponseBytes: 3}, "a body may have 3 bytes", func(g *guest, outparam any) {
			response, body := g.response()
			g.do(types+"[static]response-outparam.set", outparam, ok(response))
			stream := value(g.do(types+"[method]outgoing-body.write", body))
			failed := value(g.do(streams+"[method]output-stream.blocking-write-and-flush", stream, []byte("1234"))).(canon.Case)
			g.expect("a body may have 3 bytes", "wasi:io/error@0.2 [method]error.to-debug-string", failed.Value)
			g.expect("#1 #28 #0", types+"http-error-code", failed.Value)
			g.expect("#0", fs+"filesystem-error-code", failed.Value)
			g.expect("#1 #1", streams+"[method]output-stream.check-write", stream)
			g.drop(streams, "output-stream", stream)
			g.expect("#1 #28 #0", types+"[static]outgoing-body.finish", body, none)
		}},
		"status 100": {want: "cannot have status 100", do: func(g *guest, outparam any) {
			response := g.do(types+"[constructor]outgoing-response", g.fields())
			g.do(types+"[method]outgoing-response.set-status-code", response, uint64(100))
			g.do(types+"[static]response-outparam.set", outparam, ok(response))
		}},
		"a body of 204": {want: "an answer with status 204 cannot have a body", do: func(g *guest, outparam any) {
			response, body := g.response()
			g.do(types+"[method]outgoing-response.set-status-code", response, uint64(204))
			g.do(types+"[static]response-outparam.set", outparam, ok(response))
			g.write(body, "a")
			g.do(types+"[static]outgoing-body.finish", body, none)
		}},
	} {
		g := newGuest(t, row.limits)
		_, outparam := g.http()
		row.do(g, outparam)
		if err := g.end(); !strings.Contains(fmt.Sprint(err), row.want) || g.call.Response.Status != 0 {
			t.Errorf("%s: %v, status %d; want %s", what, err, g.call.Response.Status, row.want)
		}
	}
}

// Dropping a parent of headers traps also where it is passed on.
func TestAnAnswerIsSetWithoutChildren(t *testing.T) {
	g := newGuest(t, hostabi.Limits{})
	_, outparam := g.http()
	response, _ := g.response()
	g.do(types+"[method]outgoing-response.headers", response)
	g.traps("1 of its children are there", types+"[static]response-outparam.set", outparam, ok(response))
}

func TestAHeaderThatCannotBeSentEndsTheRun(t *testing.T) {
	g := newGuest(t, hostabi.Limits{})
	_, outparam := g.http()
	response := g.do(types+"[constructor]outgoing-response", g.fields("location", "//other"))
	g.traps("header location cannot be sent", types+"[static]response-outparam.set", outparam, ok(response))
}

// A component may leave the answer to the host.
func TestAnErrorCodeIsTheAnswer(t *testing.T) {
	for _, row := range []struct {
		code   canon.Case
		status int
		kind   string
	}{
		{canon.Case{Index: 38, Value: some("no luck")}, 500, "error-code internal-error: no luck"},
		{canon.Case{Index: 38, Value: none}, 500, "error-code internal-error"},
		{canon.Case{Index: 37}, 500, "error-code configuration-error"},
		{canon.Case{Index: 33}, 504, "error-code HTTP-response-timeout"},
		{canon.Case{Index: 6}, 502, "error-code connection-refused"},
		{canon.Case{Index: 1, Value: []any{some("NXDOMAIN"), none}}, 502, "error-code DNS-error"},
	} {
		g := newGuest(t, hostabi.Limits{})
		_, outparam := g.http()
		g.do(types+"[static]response-outparam.set", outparam, some(row.code))
		if err := g.end(); err != nil || g.call.Response.Status != row.status {
			t.Errorf("%v: %v, status %d", row.code, err, g.call.Response.Status)
		}
		g.call.End()
		failure, others := g.call.Failures()
		if failure != nil {
			others = append(others, *failure)
		}
		if (failure != nil) != (row.status == 500) || len(others) != 1 || others[0].String() != row.kind {
			t.Errorf("%v: reported as %v, %v", row.code, failure, others)
		}
	}
}

func TestInformationalResponsesAreRefused(t *testing.T) {
	g := newGuest(t, hostabi.Limits{})
	_, outparam := g.http()
	const send = types + "[method]response-outparam.send-informational"
	g.expect("#1 #38 #1 informational responses are not sent", send, outparam, uint64(103), g.fields())
	g.expect("#1 #35", send, outparam, uint64(200), g.fields())
	g.do(types+"[static]response-outparam.set", outparam, ok(g.do(types+"[constructor]outgoing-response", g.fields())))
}

func TestARunHandlesOneRequest(t *testing.T) {
	g := newGuest(t, hostabi.Limits{})
	g.http()
	if trap := g.raw(g.functions["component begin_http"], []uint64{0}); trap == nil {
		t.Error("it begins again")
	}
	g.call.End()
	g.call.Request = nil
	g.begin(nil)
	if trap := g.raw(g.functions["component begin_http"], []uint64{0}); trap == nil {
		t.Error("it begins without a request")
	}
}

// serve starts a server that the app declares as api.example.com, and returns its authority.
func (g *guest) serve(handler http.HandlerFunc) string {
	g.t.Helper()
	server := httptest.NewUnstartedServer(handler)
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	server.StartTLS()
	roots := x509.NewCertPool()
	roots.AddCert(server.Certificate())
	_, port, _ := strings.Cut(server.Listener.Addr().String(), ":")
	authority := "api.example.com:" + port
	origins, err := outbound.ParseOrigins([]string{"https://" + authority})
	if err != nil {
		g.t.Fatal(err)
	}
	client := outbound.New(outbound.Options{AllowPrivate: true, Roots: roots, Resolve: func(context.Context, string) ([]netip.Addr, error) {
		return []netip.Addr{netip.MustParseAddr("127.0.0.1")}, nil
	}})
	g.call.Host.Origins, g.call.Host.Outbound = origins, client
	g.t.Cleanup(func() {
		g.call.End()
		client.Close()
		server.Close()
	})
	return authority
}

// request makes a request to an authority.
func (g *guest) request(authority, path string, headers ...string) any {
	g.t.Helper()
	q := g.do(types+"[constructor]outgoing-request", g.fields(headers...))
	g.expect("#0", types+"[method]outgoing-request.set-authority", q, some(authority))
	g.expect("#0", types+"[method]outgoing-request.set-path-with-query", q, some(path))
	return q
}

// await waits for the response to a request.
func (g *guest) await(future any) any {
	g.t.Helper()
	ready := g.do(types+"[method]future-incoming-response.subscribe", future)
	g.do(poll+"[method]pollable.block", ready)
	g.drop(poll, "pollable", ready)
	return value(value(g.do(types+"[method]future-incoming-response.get", future)))
}

// read reads the body of a response.
func (g *guest) read(response any) string {
	g.t.Helper()
	body := value(g.do(types+"[method]incoming-response.consume", response))
	stream := value(g.do(types+"[method]incoming-body.stream", body))
	text := ""
	for {
		part := g.do(streams+"[method]input-stream.blocking-read", stream, uint64(5)).(canon.Case)
		if part.Index != 0 {
			return text
		}
		text += string(part.Value.([]byte))
	}
}

func TestAComponentSendsRequests(t *testing.T) {
	g := newGuest(t, hostabi.Limits{})
	authority := g.serve(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		w.Header().Set("Set-Cookie", "a=b")
		w.WriteHeader(http.StatusFound)
		fmt.Fprintf(w, "%s %s %s %d %q", r.Method, r.URL, r.Header.Get("X-A"), r.ContentLength, body)
	})
	q := g.request(authority, "/p?q=%20", "x-a", "1", "content-length", "7")
	g.expect("#0", types+"[method]outgoing-request.set-method", q, canon.Case{Index: 3})
	g.expect("#3", types+"[method]outgoing-request.method", q)
	body := value(g.do(types+"[method]outgoing-request.body", q))
	g.expect("#1", types+"[method]outgoing-request.body", q)
	future := value(g.do(outgoing+"handle", q, none))
	g.traps("not of outgoing-request", types+"[method]outgoing-request.method", q)
	g.expect("#0", types+"[method]future-incoming-response.get", future)
	ready := g.do(types+"[method]future-incoming-response.subscribe", future)
	g.expect("false", poll+"[method]pollable.ready", ready)
	g.drop(poll, "pollable", ready)
	g.write(body, "content")
	g.expect("#0", types+"[static]outgoing-body.finish", body, none)
	response := value(g.await(future))
	g.expect("#1 #1", types+"[method]future-incoming-response.get", future)
	g.drop(types, "future-incoming-response", future)
	g.expect("302", types+"[method]incoming-response.status", response)
	headers := g.do(types+"[method]incoming-response.headers", response)
	g.expect("[a=b]", types+"[method]fields.get", headers, "set-cookie")
	g.expect("#1 #2", types+"[method]fields.delete", headers, "set-cookie")
	if got := g.read(response); got != `PUT /p?q=%20 1 7 "content"` {
		t.Errorf("the response is %s", got)
	}
	g.expect("#1", types+"[method]incoming-response.consume", response)
	g.dropTraps("1 of its children are there", types, "incoming-response", response)
	if sent := g.call.Sent(); len(sent) != 1 || sent[0] != "PUT https://"+authority+"/p" {
		t.Errorf("sent: %v", sent)
	}
}

// The first response ends a wait for several, and a timer one for none.
func TestRequestsAreSentBesideEachOther(t *testing.T) {
	g := newGuest(t, hostabi.Limits{})
	both, slow := make(chan struct{}, 2), make(chan struct{})
	authority := g.serve(func(w http.ResponseWriter, r *http.Request) {
		both <- struct{}{}
		if r.URL.Path == "/slow" {
			<-slow
		}
		fmt.Fprint(w, r.URL.Path)
	})
	first := value(g.do(outgoing+"handle", g.request(authority, "/slow"), none))
	second := value(g.do(outgoing+"handle", g.request(authority, "/fast"), none))
	<-both
	<-both
	pollables := []any{}
	for _, f := range []any{first, second} {
		pollables = append(pollables, g.do(types+"[method]future-incoming-response.subscribe", f))
	}
	g.expect("[1]", poll+"poll", pollables)
	timer := g.do("wasi:clocks/monotonic-clock@0.2 subscribe-duration", uint64(1e6))
	g.expect("[1]", poll+"poll", []any{pollables[0], timer})
	close(slow)
	g.expect("[0]", poll+"poll", pollables[:1])
	for f, want := range map[any]string{first: "/slow", second: "/fast"} {
		if got := g.read(value(value(value(g.do(types+"[method]future-incoming-response.get", f))))); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
}

func TestRequestsAreCheckedBeforeTheyAreSent(t *testing.T) {
	g := newGuest(t, hostabi.Limits{})
	authority := g.serve(func(http.ResponseWriter, *http.Request) { t.Error("a request was sent") })
	const set = types + "[method]outgoing-request.set-"
	q := g.do(types+"[constructor]outgoing-request", g.fields("x-a", "1"))
	g.expect("#0", types+"[method]outgoing-request.method", q)
	for _, part := range []string{"path-with-query", "scheme", "authority"} {
		g.expect("#0", types+"[method]outgoing-request."+part, q)
		g.expect("#0", set+part, q, none)
	}
	for _, bad := range []string{"", "a b", "GET\n"} {
		g.expect("#1", set+"method", q, canon.Case{Index: 9, Value: bad})
	}
	for _, bad := range []string{"a b", "/\n", "/%2", "/%zz", "/\x00"} {
		g.expect("#1", set+"path-with-query", q, some(bad))
	}
	for _, bad := range []string{"", "a b", "a/b", "a?b", "a:b", "[::1", "a:65536789", "a\\b"} {
		g.expect("#1", set+"authority", q, some(bad))
	}
	for _, bad := range []string{"", "1a", "a b", "a:"} {
		g.expect("#1", set+"scheme", q, some(canon.Case{Index: 2, Value: bad}))
	}
	for _, good := range []string{"", "/", "?a=b", "/a%20b?c=[d]"} {
		g.expect("#0", set+"path-with-query", q, some(good))
	}
	for _, good := range []string{"a.example", "a.example:80", "127.0.0.1", "[::1]:8080", "user@a.example"} {
		g.expect("#0", set+"authority", q, some(good))
	}
	g.expect("#0", set+"scheme", q, some(canon.Case{Index: 2, Value: "h2+c"}))
	g.expect("#0", set+"method", q, canon.Case{Index: 9, Value: "PURGE"})
	headers := g.do(types+"[method]outgoing-request.headers", q)
	g.expect("#1 #2", types+"[method]fields.append", headers, "x-b", []byte("1"))
	g.traps("1 of its children are there", outgoing+"handle", q, none)

	q = g.do(types+"[constructor]outgoing-request", g.fields())
	g.expect("#1 #19", outgoing+"handle", q, none) // without an authority
	g.expect("#1 #15", outgoing+"handle", g.request("other.example", "/"), none)
	g.expect("#1 #15", outgoing+"handle", g.request(authority, "/", "via", "1"), none)
	q = g.request(authority, "/")
	g.expect("#0", set+"scheme", q, some(canon.Case{}))
	g.expect("#1 #15", outgoing+"handle", q, none)
	q = g.request(authority, "/")
	g.expect("#0", set+"method", q, canon.Case{Index: 5})
	result := g.do(outgoing+"handle", q, none)
	if !strings.Contains(show(result), "#1 #38 #1 the method must be one of GET, HEAD") {
		t.Errorf("%s", show(result))
	}
	if text := g.log.String(); !strings.Contains(text, "other.example") || strings.Count(text, "request to another service refused") != 3 {
		t.Errorf("the log does not say what was refused:\n%s", text)
	}
}

func TestARequestWithoutItsWholeBodyIsNotSent(t *testing.T) {
	g := newGuest(t, hostabi.Limits{})
	authority := g.serve(func(http.ResponseWriter, *http.Request) { t.Error("a request was sent") })
	start := func(headers ...string) (future, body any) {
		q := g.request(authority, "/", headers...)
		g.do(types+"[method]outgoing-request.set-method", q, canon.Case{Index: 2})
		body = value(g.do(types+"[method]outgoing-request.body", q))
		return value(g.do(outgoing+"handle", q, none)), body
	}
	future, body := start()
	g.drop(types, "outgoing-body", body)
	g.expect("#1 #0 #1 #38 #1 the body of the request was not finished", types+"[method]future-incoming-response.get", future)

	future, body = start("content-length", "3")
	g.write(body, "12")
	g.expect("#1 #17 #1 2", types+"[static]outgoing-body.finish", body, none)
	g.expect("#1 #0 #1 #38 #1 the body of the request was not finished", types+"[method]future-incoming-response.get", future)

	future, body = start()
	stream := value(g.do(types+"[method]outgoing-body.write", body))
	for range 2 {
		g.do(streams+"[method]output-stream.check-write", stream)
		g.do(streams+"[method]output-stream.write", stream, make([]byte, 600<<10))
	}
	g.drop(streams, "output-stream", stream)
	g.expect("#1 #17 #0", types+"[static]outgoing-body.finish", body, none)
	g.expect("#1 #0 #1 #17 #0", types+"[method]future-incoming-response.get", future)

	future, _ = start() // it waits for what only it can do
	ready := g.do(types+"[method]future-incoming-response.subscribe", future)
	g.dropTraps("1 of its children are there", types, "future-incoming-response", future)
	g.traps("whose body it has not finished", poll+"[method]pollable.block", ready)

	future, body = start()
	g.drop(types, "future-incoming-response", future) // its response is not read
	g.expect("#0", types+"[static]outgoing-body.finish", body, none)

	q := g.request(authority, "/")
	g.drop(types, "outgoing-body", value(g.do(types+"[method]outgoing-request.body", q)))
	g.expect("#1 #38 #1 the body of the request was not finished", outgoing+"handle", q, none)
}

func TestRequestOptionsAreTimeouts(t *testing.T) {
	g := newGuest(t, hostabi.Limits{})
	over := make(chan struct{})
	defer close(over)
	authority := g.serve(func(http.ResponseWriter, *http.Request) { <-over })
	options := g.do(types + "[constructor]request-options")
	for _, name := range []string{"connect", "between-bytes"} { // are not supported
		g.expect("#0", types+"[method]request-options."+name+"-timeout", options)
		g.expect("#1", types+"[method]request-options.set-"+name+"-timeout", options, some(uint64(1e6)))
	}
	g.expect("#0", types+"[method]request-options.first-byte-timeout", options)
	g.expect("#0", types+"[method]request-options.set-first-byte-timeout", options, some(uint64(1e6)))
	g.expect("#1 1000000", types+"[method]request-options.first-byte-timeout", options)
	future := value(g.do(outgoing+"handle", g.request(authority, "/"), some(options)))
	g.traps("not of request-options", types+"[method]request-options.first-byte-timeout", options)
	if got := show(g.await(future)); got != "#1 #33" {
		t.Errorf("%s, want a timeout", got)
	}
}

func TestRequestsCountOnTheBudgetOfFetches(t *testing.T) {
	g := newGuest(t, hostabi.Limits{Fetches: 1})
	authority := g.serve(func(http.ResponseWriter, *http.Request) {})
	g.await(value(g.do(outgoing+"handle", g.request(authority, "/"), none)))
	g.expect("#1 #38 #1 a request may fetch at most 1 times", outgoing+"handle", g.request(authority, "/"), none)
	g.call.End()
	g.begin(nil)
	future := value(g.do(outgoing+"handle", g.request(authority, "/"), none))
	g.drop(types, "future-incoming-response", future) // cancels it
}

// What a connection says becomes an error-code.
func TestFailedRequestsHaveErrorCodes(t *testing.T) {
	g := newGuest(t, hostabi.Limits{})
	authority := g.serve(func(w http.ResponseWriter, _ *http.Request) {
		conn, _, err := http.NewResponseController(w).Hijack()
		if err != nil {
			t.Error(err)
		}
		_ = conn.Close()
	})
	if got := show(g.await(value(g.do(outgoing+"handle", g.request(authority, "/"), none)))); got != "#1 #7" {
		t.Errorf("%s, want connection-terminated", got)
	}
	if text := g.log.String(); !strings.Contains(text, "fetch failed") {
		t.Errorf("it is not in the log:\n%s", text)
	}
	g.call.Host.Outbound = outbound.New(outbound.Options{Resolve: func(context.Context, string) ([]netip.Addr, error) {
		return []netip.Addr{netip.MustParseAddr("127.0.0.1")}, nil
	}})
	if got := show(g.await(value(g.do(outgoing+"handle", g.request(authority, "/"), none)))); got != "#1 #4" {
		t.Errorf("%s, want destination-IP-prohibited", got)
	}
}

func TestNoRequestIsSentBeforeTheFirstRequest(t *testing.T) {
	g := newGuest(t, hostabi.Limits{})
	authority := g.serve(func(http.ResponseWriter, *http.Request) { t.Error("a request was sent") })
	g.call.Initializing(true)
	g.traps("may not send requests before its first request", outgoing+"handle", g.request(authority, "/"), none)
}

func TestALiveRouteSendsNoRequest(t *testing.T) {
	g := newGuest(t, hostabi.Limits{})
	authority := g.serve(func(http.ResponseWriter, *http.Request) { t.Error("the request was sent") })
	g.call.ReadOnly = true
	g.expect("#1 #15", outgoing+"handle", g.request(authority, "/"), none)
	if !strings.Contains(g.log.String(), "a live route only reads") {
		t.Errorf("the log has %s", g.log)
	}
}
