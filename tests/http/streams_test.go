package http_test

import (
	"bufio"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"runner.example/tests/harness"
)

const streamsSchema = `
entity Thing { id: id  name: string }
entity Counter { id: id  name: string @unique  value: int }
type Whole { n: int }
apiKeys {
  prefix: "strm",
  scopes: { reader: @system("things") { @grant insert, read, update on Thing, Counter } }
}
routes("/", auth: apiKey(reader)) {
  GET  /pieces -> pieces (stream: 1m)
  GET  /web -> web (stream: 1m)
  GET  /waits -> waits (stream: 1m)
  GET  /short -> waits (stream: 300ms)
  GET  /plain -> waits
  GET  /endless -> endless (stream: 1m)
  POST /rows -> rows (stream: 1m)
  POST /counts -> counts (stream: 1m)
  POST /fails -> fails (stream: 1m)
  POST /refuses -> refuses (stream: 1m)
  POST /discards -> discards (stream: 1m)
  GET  /names -> names
  GET  /whole -> whole: Whole
}
`

const streamsHandlers = `
import { error, events, get, insert, ok, query, stream, update, type RouteRequest } from "@runner/sdk";

const pause = (ms: number) => new Promise((done) => setTimeout(done, ms));

export const pieces = (req: RouteRequest) =>
  events(async function* () {
    yield { event: "first", id: 1, retry: 500, data: { last: req.headers["last-event-id"] } };
    yield "two\nlines\r\n";
  });

export const web = () =>
  new Response(
    ReadableStream.from(["a", "b", "c"]).pipeThrough(new TextEncoderStream()),
    { status: 201, headers: { "content-type": "text/plain", "x-part": "3" } },
  );

export const waits = () =>
  events(async function* () {
    yield "begun";
    await pause(50_000);
  });

export const endless = () =>
  stream(async function* () {
    try {
      for (;;) {
        yield "more\n";
        await pause(1);
      }
    } finally {
      console.log("the generator has ended");
    }
  });

export async function rows() {
  await insert("Thing", { name: "before" });
  return stream(async function* () {
    yield (await query("Thing")).length + "\n";
    await insert("Thing", { name: "after" });
    yield (await query("Thing")).length + "\n";
  });
}

/** Counts before the answer begins, in the request's transaction, and inserts a row after it, in another one. */
export async function counts() {
  const [row] = await query("Counter").where("name", "=", "before");
  if (row) await update("Counter", { value: row.value + 1 }).where("id", "=", row.id);
  else await insert("Counter", { name: "before", value: 1 });
  return stream(async function* () {
    await insert("Thing", { name: "after" });
    yield "counted";
  });
}

export async function fails() {
  await insert("Thing", { name: "kept" });
  return events(async function* () {
    yield "begun";
    throw new Error("after the beginning");
  });
}

export async function refuses() {
  await insert("Thing", { name: "never" });
  return stream([1 as unknown as string], { status: 199 });
}

export async function discards() {
  await insert("Thing", { name: "discarded" });
  return stream(["no"], { status: 404, type: "text/plain" });
}

export const names = async () => ok([...(await query("Thing")).map((row) => row.name), ...(await query("Counter")).map((row) => row.name + " " + row.value)]);

export const whole = () => stream(['{"n"', ": 1}"], { type: "application/json" });
`

func serveStreams(t *testing.T, toml string) (s *harness.Server, key string) {
	a := harness.NewApp(t, streamsSchema, toml)
	a.Write("handlers/streams.ts", streamsHandlers)
	a.Must("build")
	return a.Serve(), a.Token("reader")
}

// open sends a request and returns when the head of the answer has arrived.
func open(t *testing.T, s *harness.Server, method, path, key string) *http.Response {
	t.Helper()
	req, err := http.NewRequest(method, s.URL+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("X-API-Key", key)
	req.Header.Set("Last-Event-ID", "7")
	answer, err := harness.Client.Do(req)
	if err != nil {
		t.Fatalf("%s: %v\n%s", path, err, s.Stderr.String())
	}
	t.Cleanup(func() { answer.Body.Close() })
	return answer
}

// readAll reads a body, and reports whether it ended as it should.
func readAll(t *testing.T, answer *http.Response) (body string, whole bool) {
	t.Helper()
	all, err := io.ReadAll(answer.Body)
	if err != nil && !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("the body ends with %v", err)
	}
	return string(all), err == nil
}

func TestAnAnswerIsSentInParts(t *testing.T) {
	t.Parallel()
	s, key := serveStreams(t, "")
	events := open(t, s, "GET", "/pieces", key)
	if body, whole := readAll(t, events); !whole || body != "event: first\nid: 1\nretry: 500\ndata: {\"last\":\"7\"}\n\ndata: two\ndata: lines\ndata: \n\n" {
		t.Errorf("events %q, whole %v", body, whole)
	}
	for name, want := range map[string]string{"Content-Type": "text/event-stream", "X-Accel-Buffering": "no", "Cache-Control": "no-store"} {
		if got := events.Header.Get(name); got != want {
			t.Errorf("events have %s %q, want %q", name, got, want)
		}
	}
	web := open(t, s, "GET", "/web", key)
	if body, whole := readAll(t, web); !whole || body != "abc" || web.StatusCode != 201 || web.Header.Get("X-Part") != "3" || web.TransferEncoding[0] != "chunked" {
		t.Errorf("a Response with a stream: %d %q, whole %v, %v", web.StatusCode, body, whole, web.Header)
	}
	if got := s.Get("/whole", key); got.Status != 200 || got.Body != `{"n": 1}` || got.Header.Get("Content-Length") != "8" {
		t.Errorf("a stream on a route with a result type: %+v", got)
	}
	if got := s.Do("HEAD", "/waits", "", "X-API-Key: "+key); got.Status != 404 && got.Body != "" {
		t.Errorf("HEAD: %+v", got)
	}
	old := s.Raw("GET /web HTTP/1.0\r\nHost: x\r\nX-API-Key: "+key+"\r\n\r\n", harness.Timeout)
	if head, body, _ := strings.Cut(old, "\r\n\r\n"); body != "abc" || strings.Contains(head, "chunked") {
		t.Errorf("HTTP/1.0: %q", old)
	}
	// The connection is used again after the last part.
	two := "GET /web HTTP/1.1\r\nHost: x\r\nX-API-Key: " + key + "\r\n\r\n"
	reply, closed := s.Exchange(two+strings.Replace(two, "Host", "Connection: close\r\nHost", 1), harness.Timeout, func(string) bool { return false })
	if strings.Count(reply, "0\r\n\r\n") != 2 || !closed {
		t.Errorf("two requests on a connection: %q, closed %v", reply, closed)
	}
}

func TestAPartArrivesBeforeTheHandlerEnds(t *testing.T) {
	t.Parallel()
	s, key := serveStreams(t, "")
	for _, path := range []string{"/waits", "/short", "/plain"} {
		answer := open(t, s, "GET", path, key)
		lines := bufio.NewReader(answer.Body)
		if line, err := lines.ReadString('\n'); line != "data: begun\n" {
			t.Errorf("%s: the first line is %q (%v)", path, line, err)
		}
		if path != "/short" {
			answer.Body.Close()
			continue
		}
		rest, err := io.ReadAll(lines)
		if !errors.Is(err, io.ErrUnexpectedEOF) || !strings.Contains(string(rest), "event: error\ndata: {\"code\":\"handler_timeout\"") {
			t.Errorf("after its time it ends with %q (%v)", rest, err)
		}
	}
}

func TestTheTransactionIsCommittedBeforeTheFirstPart(t *testing.T) {
	t.Parallel()
	s, key := serveStreams(t, "")
	if body, whole := readAll(t, open(t, s, "POST", "/rows", key)); body != "1\n2\n" || !whole {
		t.Errorf("rows before and after: %q", body)
	}
	if body, whole := readAll(t, open(t, s, "POST", "/fails", key)); whole || !strings.HasPrefix(body, "data: begun\n\nevent: error\ndata: {\"code\":\"handler_failed\"") {
		t.Errorf("a failure after the beginning: %q, whole %v", body, whole)
	}
	if got := s.Do("POST", "/refuses", "", "X-API-Key: "+key); got.Status != 500 || got.Problem(t).Code != "handler_failed" {
		t.Errorf("an answer that cannot begin: %+v", got)
	}
	discards := open(t, s, "POST", "/discards", key)
	if body, whole := readAll(t, discards); discards.StatusCode != 404 || body != "no" || !whole {
		t.Errorf("an error in parts: %d %q", discards.StatusCode, body)
	}
	s.Want(200, nil, "GET", "/names", "", "X-API-Key: "+key)
	if got := s.Get("/names", key).Body; got != `["before","after","kept"]` {
		t.Errorf("the rows are %s", got)
	}
	s.WaitForOutput(`"msg":"handler failed".*"route":"/fails".*after the beginning`)
}

// The conflicts of the transaction before the beginning, and of those after it, are resolved.
func TestConflictsAroundTheBeginningAreRunAgain(t *testing.T) {
	t.Parallel()
	s, key := serveStreams(t, "")
	const each, callers = 5, 4
	readAll(t, open(t, s, "POST", "/counts", key)) // makes the rows
	var all sync.WaitGroup
	for range callers {
		all.Go(func() {
			for done := 1; done <= each; {
				got, err := s.Try("POST", "/counts", "", "X-API-Key: "+key)
				switch {
				case err == nil && got.Status == 200 && got.Body == "counted":
					done++
				case err == nil && got.Status == 409: // all of its runs met another: nothing was counted
				default:
					t.Errorf("a count: %+v, %v", got, err)
					return
				}
			}
		})
	}
	all.Wait()
	if got, want := s.Get("/names", key).Body, fmt.Sprintf(`[%s"before %d"]`, strings.Repeat(`"after",`, 1+each*callers), 1+each*callers); got != want {
		t.Errorf("the rows are %s, want %s", got, want)
	}
}

func TestTheHandlerEndsWhenItsClientIsGone(t *testing.T) {
	t.Parallel()
	s, key := serveStreams(t, "")
	answer := open(t, s, "GET", "/endless", key)
	if _, err := bufio.NewReader(answer.Body).ReadString('\n'); err != nil {
		t.Error(err)
	}
	answer.Body.Close()
	s.WaitForOutput("the generator has ended")
	if log := s.Stderr.String(); strings.Contains(log, "handler failed") {
		t.Errorf("a client that hangs up is logged as a failure:\n%s", log)
	}
}

// A handler that waits for a timer or for another service learns within a moment that its client is gone.
func TestAHandlerThatWaitsEndsWhenItsClientIsGone(t *testing.T) {
	t.Parallel()
	asked, ended := make(chan struct{}), make(chan struct{})
	origin, certificate := harness.OtherService(t, func(_ http.ResponseWriter, r *http.Request) {
		asked <- struct{}{}
		<-r.Context().Done()
		ended <- struct{}{}
	})
	a := harness.NewApp(t, fmt.Sprintf(`
outbound { allow: [%q] }
routes("/", auth: none, rateLimit: none) {
  GET /timer -> timer (stream: 1m)
  GET /fetches -> fetches (stream: 1m)
}
`, origin), "[outbound]\nallow_private = true\n")
	a.Write("handlers/streams.ts", fmt.Sprintf(`
import { stream } from "@runner/sdk";
const pause = (ms: number) => new Promise((done) => setTimeout(done, ms));
export const timer = () => stream(async function* () {
  try {
    for (;;) {
      yield "begun\n";
      await pause(50_000);
    }
  } finally {
    await pause(1);
    console.log("the timer has ended");
  }
});
export const fetches = () => stream(async function* () {
  try {
    yield "begun\n";
    yield await (await fetch(%q)).text();
  } finally {
    console.log("the fetch has ended");
  }
});
`, origin))
	a.Write("roots.pem", certificate)
	a.Env = []string{"SSL_CERT_FILE=" + a.Path("roots.pem")}
	a.Must("build")
	s := a.Serve()
	for path, says := range map[string]string{"/timer": "the timer has ended", "/fetches": "the fetch has ended"} {
		answer := open(t, s, "GET", path, "")
		if _, err := bufio.NewReader(answer.Body).ReadString('\n'); err != nil {
			t.Error(err)
		}
		if path == "/fetches" {
			<-asked
		}
		left := time.Now()
		answer.Body.Close()
		s.WaitForOutput(says)
		if took := time.Since(left); took > 20*time.Second { // the timer is longer
			t.Errorf("%s ends after %s", path, took)
		}
	}
	<-ended
	if log := s.Stderr.String(); strings.Contains(log, "handler failed") {
		t.Errorf("a client that hangs up is logged as a failure:\n%s", log)
	}
}

func TestARevokedKeyEndsItsStreams(t *testing.T) {
	t.Parallel()
	s, other := serveStreams(t, "")
	key := s.App.Key("create", "--scope", "reader", "--name", "revoked")
	stays, ends := open(t, s, "GET", "/waits", other), open(t, s, "GET", "/waits", key.Token)
	s.App.Must("api-keys", "revoke", key.ID)
	if _, err := io.ReadAll(ends.Body); err == nil {
		t.Error("the stream of a revoked key ends as if it were whole")
	}
	if line, err := bufio.NewReader(stays.Body).ReadString('\n'); err != nil {
		t.Errorf("the stream of another key ends, too: %q %v", line, err)
	}
}

func TestStreamsHaveALimitAndShares(t *testing.T) {
	t.Parallel()
	s, key := serveStreams(t, "[runtime]\nstreams = 4\n")
	other := s.App.Token("reader")
	held := 0
	for held < 4 {
		answer := open(t, s, "GET", "/waits", key)
		if answer.StatusCode == 503 {
			break
		}
		held++
	}
	if held != 3 {
		t.Errorf("one caller has %d of 4 streams, want 3", held)
	}
	if answer := open(t, s, "GET", "/waits", other); answer.StatusCode != 200 {
		t.Errorf("another caller gets %d", answer.StatusCode)
	}
	if got := s.Get("/names", key); got.Status != 200 {
		t.Errorf("an ordinary request beside streams: %+v", got)
	}
}

// A client that reads nothing makes its handler wait, and does not hold up others.
func TestAStreamWaitsForASlowReader(t *testing.T) {
	t.Parallel()
	s, key := serveStreams(t, "[sandbox]\ninstances = 1\n[front]\nwrite_timeout = \"1s\"\n")
	conn, err := net.Dial("tcp", s.Addr)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := fmt.Fprintf(conn, "GET /endless HTTP/1.1\r\nHost: x\r\nX-API-Key: %s\r\n\r\n", key); err != nil {
		t.Fatal(err)
	}
	if _, err := conn.Read(make([]byte, 10)); err != nil {
		t.Fatal(err)
	}
	for range 20 {
		if got := s.Get("/names", key); got.Status != 200 {
			t.Fatalf("beside a slow reader: %+v", got)
		}
	}
}

func TestTheOutputOfAProgramIsSentAsItComes(t *testing.T) {
	t.Parallel()
	a := harness.NewApp(t, `routes("/", auth: none, rateLimit: none) { GET /flows -> flows (stream: 1m) }`, "")
	a.Write("build/flows.wasm", harness.CProgram(t, harness.Testdata("programs/flows.c")))
	s := a.Serve()
	answer := open(t, s, "GET", "/flows", "")
	if line, err := bufio.NewReader(answer.Body).ReadString('\n'); line != "begun\n" || err != nil {
		t.Errorf("the first line is %q (%v)", line, err)
	}
	if got := answer.Header.Get("Content-Type"); got != "text/plain" {
		t.Errorf("the type is %q", got)
	}
}

const openStreamsSchema = `
secret HOOK
auth { session cookie { } }
routes("/", auth: none, rateLimit: none) {
  GET  /maybe -> waits (stream: 1m, auth: anyOf(session, none))
  GET  /endless -> endless (stream: 1m)
  POST /hook -> names (verify: webhook(github, HOOK))
}
`

func serveOpenStreams(t *testing.T) *harness.Server {
	a := harness.NewApp(t, openStreamsSchema, "")
	a.Write("handlers/streams.ts", `
import { events, noContent, stream } from "@runner/sdk";
const pause = (ms: number) => new Promise((done) => setTimeout(done, ms));
export const waits = () => events(async function* () { yield "begun"; await pause(50_000); });
export const endless = () => stream(async function* () { try { for (;;) { yield "more\n"; await pause(1); } } finally { console.log("left by its client"); } });
export const names = () => noContent();
`)
	a.Env = append(a.Env, "RUNNER_SECRETS_HOOK="+harness.OtherSecret)
	a.Must("build")
	return a.Serve()
}

// On such a route the client is anonymous when its session has ended. Its stream was that of the user.
func TestAnEndedSessionEndsItsStreamOnARouteForAll(t *testing.T) {
	t.Parallel()
	s := serveOpenStreams(t)
	session := s.App.Session("u1")
	with := func(header, value string) *http.Response {
		req, err := http.NewRequest("GET", s.URL+"/maybe", nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set(header, value)
		answer, err := harness.Client.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { answer.Body.Close() })
		return answer
	}
	stays, ends := with("X-Other", "1"), with("Cookie", session.Cookie)
	s.App.Must("sessions", "revoke", session.ID)
	if _, err := io.ReadAll(ends.Body); err == nil {
		t.Error("the stream of an ended session ends as if it were whole")
	}
	if line, err := bufio.NewReader(stays.Body).ReadString('\n'); err != nil {
		t.Errorf("the stream of an anonymous client ends, too: %q %v", line, err)
	}
}

// What is kept between requests says nothing about the next one.
func TestARepeatedDeliveryAfterAStreamThatLostItsClient(t *testing.T) {
	t.Parallel()
	s := serveOpenStreams(t)
	signed := "X-Hub-Signature-256: sha256=" + hex.EncodeToString(harness.MAC([]byte(harness.OtherSecret), "{}"))
	s.Want(204, nil, "POST", "/hook", "{}", signed)
	for range 30 {
		answer, err := harness.Client.Get(s.URL + "/endless")
		if err != nil {
			t.Fatal(err)
		}
		if _, err := bufio.NewReader(answer.Body).ReadString('\n'); err != nil {
			t.Error(err)
		}
		answer.Body.Close()
	}
	s.WaitForOutput(`(?s)(left by its client.*){30}`)
	for range 30 {
		if got := s.Do("POST", "/hook", "{}", signed); got.Status != 204 {
			t.Fatalf("a repeated delivery: %+v", got)
		}
	}
}
