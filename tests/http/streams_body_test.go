package http_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"syscall"
	"testing"

	"runner.example/tests/harness"
)

const bodiesSchema = `
entity Thing { id: id  name: string }
entity Counter { id: id  name: string @unique  value: int }
apiKeys {
  prefix: "body",
  scopes: { writer: @system("things") { @grant insert, read, update on Thing, Counter } }
}
routes("/", auth: apiKey(writer)) {
  POST /length -> length (stream: 5m, body: 4gb)
  POST /echo -> echo (stream: 5m, body: 4gb)
  POST /uploads -> upload (stream: 1m, body: 1mb)
  POST /web -> web (stream: 1m, body: 1mb)
  POST /parts -> addParts (stream: 1m)
  POST /whole -> addWhole (stream: 1m)
  POST /bump -> bump
  GET  /names -> names
}
`

const bodiesHandlers = `
import { fetchHandler, insert, ok, query, update, type RouteRequest } from "@runner/sdk";

const counter = async () => (await query("Counter"))[0] ?? (await insert("Counter", { name: "n", value: 0 }));

export async function length(req: RouteRequest) {
  let bytes = 0;
  for await (const part of req.stream()) {
    if (bytes === 0) console.log("the body has begun");
    bytes += part.length;
  }
  return ok(bytes);
}

export const echo = (req: RouteRequest) => new Response(req.stream());

/** Its row is stored only if all of the body has come. */
export async function upload(req: RouteRequest) {
  await insert("Thing", { name: "upload" });
  try {
    let bytes = 0;
    for await (const part of req.stream()) bytes += part.length;
    return ok(bytes);
  } catch (error) {
    console.log("not uploaded: " + (error as Error).message);
    throw error;
  }
}

export const web = fetchHandler(async (request: Request) => {
  const { method, headers } = request;
  if (headers.get("x-read") === "text") return Response.json((await request.text()).length);
  if (headers.get("x-read") === "copies") {
    const [one, two] = [request.clone(), new Request(request)];
    return Response.json([(await one.arrayBuffer()).byteLength, (await two.bytes()).length]);
  }
  const reader = request.body!.getReader();
  const { value } = await reader.read();
  reader.releaseLock();
  let rest = 0;
  for await (const part of request.body!) rest += part.length;
  return Response.json([method, value!.length > 0, value!.length + rest, request.bodyUsed]);
});

export async function addParts(req: RouteRequest) {
  const { id, value } = await counter();
  console.log("the counter was read");
  let bytes = 0;
  for await (const part of req.stream()) {
    if (bytes === 0) console.log("the body has begun");
    bytes += part.length;
  }
  await update("Counter", { value: value + bytes }).where("id", "=", id);
  return ok();
}

export async function addWhole(req: RouteRequest) {
  const { id, value } = await counter();
  console.log("the counter was read");
  await update("Counter", { value: value + req.text().length }).where("id", "=", id);
  return ok();
}

export async function bump() {
  const { id, value } = await counter();
  await update("Counter", { value: value + 100 }).where("id", "=", id);
  return ok();
}

export const names = async () => ok([...(await query("Thing")).map((row) => row.name), ...(await query("Counter")).map((row) => row.value)]);
`

func serveBodies(t *testing.T, toml string) (s *harness.Server, key string) {
	a := harness.NewApp(t, bodiesSchema, toml)
	a.Write("handlers/bodies.ts", bodiesHandlers)
	a.Must("build")
	return a.Serve(), a.Token("writer")
}

// posted is a request whose body the test writes.
type posted struct {
	*io.PipeWriter
	answer chan *http.Response
	failed chan error
}

// post begins a request with a body in chunks.
func post(t *testing.T, s *harness.Server, path, key string) *posted {
	t.Helper()
	body, writer := io.Pipe()
	ctx, cancel := context.WithTimeout(t.Context(), harness.Timeout)
	t.Cleanup(cancel)
	req, err := http.NewRequestWithContext(ctx, "POST", s.URL+path, body)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("X-API-Key", key)
	p := &posted{writer, make(chan *http.Response, 1), make(chan error, 1)}
	go func() {
		answer, err := harness.Client.Do(req)
		if err != nil {
			p.failed <- err
			return
		}
		p.answer <- answer
	}()
	return p
}

func (p *posted) write(t *testing.T, text string) {
	t.Helper()
	if _, err := io.WriteString(p, text); err != nil {
		t.Fatal(err)
	}
}

// ends returns the answer with its body.
func (p *posted) ends(t *testing.T) (status int, body string) {
	t.Helper()
	select {
	case answer := <-p.answer:
		defer answer.Body.Close()
		all, err := io.ReadAll(answer.Body)
		if err != nil {
			t.Error(err)
		}
		return answer.StatusCode, string(all)
	case err := <-p.failed:
		t.Fatal(err)
	}
	return 0, ""
}

// pattern is a body of so many bytes, which calls at after a half of them.
type pattern struct {
	left, half int64
	at         func()
}

func (p *pattern) Read(b []byte) (int, error) {
	if p.left == 0 {
		return 0, io.EOF
	}
	n := int(min(int64(len(b)), p.left))
	for i := range b[:n] {
		b[i] = byte(p.left-int64(i)) ^ byte((p.left-int64(i))>>9)
	}
	if p.left > p.half && p.left-int64(n) <= p.half {
		p.at()
	}
	p.left -= int64(n)
	return n, nil
}

func TestALargeBodyIsNotInMemory(t *testing.T) {
	t.Parallel()
	size := int64(200 << 20)
	if os.Getenv("RUNNER_SOAK") != "" {
		size = 1 << 30
	}
	s, key := serveBodies(t, "[sandbox]\ncpu = \"5m\"\n")
	send := func(path string, size int64, at func()) *http.Response {
		t.Helper()
		req, err := http.NewRequestWithContext(t.Context(), "POST", s.URL+path, &pattern{size, size / 2, at})
		if err != nil {
			t.Fatal(err)
		}
		req.ContentLength = size
		req.Header.Set("X-API-Key", key)
		answer, err := http.DefaultClient.Do(req) // harness.Client has a time limit
		if err != nil {
			t.Fatalf("%s: %v\n%s", path, err, s.Stderr.String())
		}
		t.Cleanup(func() { answer.Body.Close() })
		return answer
	}
	read := func(path string, size int64, at func()) (length int64, sum string) {
		t.Helper()
		h := sha256.New()
		length, err := io.Copy(h, send(path, size, at).Body)
		if err != nil {
			t.Errorf("%s: %v", path, err)
		}
		return length, hex.EncodeToString(h.Sum(nil))
	}
	read("/echo", 1<<20, func() {})
	read("/length", 1<<20, func() {})
	want := sha256.New()
	if _, err := io.Copy(want, &pattern{size, -1, nil}); err != nil {
		t.Fatal(err)
	}
	before := s.Resources().Bytes
	var during []int64
	sample := func() { during = append(during, s.Resources().Bytes) }
	if length, sum := read("/echo", size, sample); length != size || sum != hex.EncodeToString(want.Sum(nil)) {
		t.Errorf("%d of %d bytes come back, the same: %v", length, size, sum == hex.EncodeToString(want.Sum(nil)))
	}
	if body, err := io.ReadAll(send("/length", size, sample).Body); err != nil || string(body) != fmt.Sprint(size) {
		t.Errorf("the length is %s, want %d: %v", body, size, err)
	}
	sample()
	for _, now := range during {
		if now > before+30<<20 {
			t.Errorf("the server has grown from %d to %d MiB with bodies of %d MiB", before>>20, now>>20, size>>20)
		}
	}
	t.Logf("before %d MiB, in and after bodies of %d MiB: %d bytes", before>>20, size>>20, during)
}

func TestAConflictAfterTheFirstPartOfABodyIsNotRunAgain(t *testing.T) {
	t.Parallel()
	s, key := serveBodies(t, "")
	s.Want(200, nil, "POST", "/bump", "", "X-API-Key: "+key)

	// A body that is read as a whole is there for another run.
	whole := post(t, s, "/whole", key)
	whole.write(t, "12")
	s.WaitForOutput("the counter was read")
	s.Want(200, nil, "POST", "/bump", "", "X-API-Key: "+key)
	whole.write(t, "345")
	whole.Close()
	if status, body := whole.ends(t); status != 200 {
		t.Errorf("a conflict with a whole body: %d %s", status, body)
	}
	if got := s.Get("/names", key).Body; got != "[205]" {
		t.Errorf("the counter is %s, want 205", got)
	}

	parts := post(t, s, "/parts", key)
	parts.write(t, "12")
	s.WaitForOutput("the body has begun")
	s.Want(200, nil, "POST", "/bump", "", "X-API-Key: "+key)
	parts.write(t, "345")
	parts.Close()
	if status, body := parts.ends(t); status != 409 || !strings.Contains(body, `"write_conflict"`) {
		t.Errorf("a conflict after the first part: %d %s", status, body)
	}
	if got := s.Get("/names", key).Body; got != "[305]" {
		t.Errorf("the counter is %s, want 305", got)
	}
	if n := strings.Count(s.Stderr.String(), "the body has begun"); n != 1 {
		t.Errorf("the handler has begun the body %d times", n)
	}
}

func TestSlowBodiesDoNotDelayOthers(t *testing.T) {
	t.Parallel()
	s, key := serveBodies(t, "[sandbox]\ninstances = 1\ncpu = \"100ms\"\n")
	slow := []*posted{post(t, s, "/length", key), post(t, s, "/length", key)}
	for _, p := range slow {
		p.write(t, "x")
	}
	s.WaitUntil("both bodies have begun", func() bool { return strings.Count(s.Stderr.String(), "the body has begun") == 2 })
	for n := range 20 {
		if got := s.Get("/names", key); got.Status != 200 {
			t.Fatalf("beside slow bodies: %+v", got)
		}
		slow[n%2].write(t, "x")
	}
	for _, p := range slow {
		p.Close()
		if status, body := p.ends(t); status != 200 || body != "11" {
			t.Errorf("a slow body: %d %s", status, body)
		}
	}
}

func TestABodyThatDoesNotArriveStoresNothing(t *testing.T) {
	t.Parallel()
	s, key := serveBodies(t, "[front]\nread_timeout = \"300ms\"\n")

	silent := post(t, s, "/uploads", key)
	silent.write(t, "half")
	if status, body := silent.ends(t); status != 408 || !strings.Contains(body, `"request_timeout"`) {
		t.Errorf("a body that stops: %d %s", status, body)
	}
	s.WaitForOutput("not uploaded: .* it arrives too slowly")

	conn, err := net.Dial("tcp", s.Addr)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := fmt.Fprintf(conn, "POST /uploads HTTP/1.1\r\nHost: x\r\nX-API-Key: %s\r\nContent-Length: 100000\r\n\r\nhalf", key); err != nil {
		t.Fatal(err)
	}
	if err := conn.Close(); err != nil {
		t.Fatal(err)
	}
	s.WaitForOutput("not uploaded: .* the client has ended the connection")

	large := post(t, s, "/uploads", key)
	go func() {
		_, err := io.Copy(large, &pattern{2 << 20, -1, nil})
		large.CloseWithError(err)
	}()
	if status, body := large.ends(t); status != 413 || !strings.Contains(body, `"body_too_large"`) {
		t.Errorf("chunks that are too large: %d %s", status, body)
	}
	if got := s.Raw(fmt.Sprintf("POST /uploads HTTP/1.1\r\nHost: x\r\nX-API-Key: %s\r\nContent-Length: 1048577\r\n\r\n", key), harness.Timeout); !strings.HasPrefix(got, "HTTP/1.1 413 ") {
		t.Errorf("a length that is too large: %q", got)
	}
	whole := post(t, s, "/uploads", key)
	whole.write(t, "all")
	whole.Close()
	if status, body := whole.ends(t); status != 200 || body != "3" {
		t.Errorf("a whole body: %d %s", status, body)
	}
	if got := s.Get("/names", key).Body; got != `["upload"]` {
		t.Errorf("the rows are %s", got)
	}
	if log := s.Stderr.String(); strings.Contains(log, "handler failed") {
		t.Errorf("what clients did is logged as a failure:\n%s", log)
	}
}

func TestARequestOfTheFetchStandardReadsItsBodyInAllWays(t *testing.T) {
	t.Parallel()
	s, key := serveBodies(t, "")
	for _, length := range []int{1, 100_000} {
		body := strings.Repeat("x", length)
		for read, want := range map[string]string{
			"text": fmt.Sprint(length), "copies": fmt.Sprintf("[%d,%d]", length, length), "parts": fmt.Sprintf(`["POST",true,%d,true]`, length),
		} {
			if got := s.Do("POST", "/web", body, "X-API-Key: "+key, "X-Read: "+read); got.Status != 200 || got.Body != want {
				t.Errorf("%s of %d bytes: %d %s, want %s\n%s", read, length, got.Status, got.Body, want, s.Stderr.String())
			}
		}
	}
}

func TestARevokedKeyEndsItsUpload(t *testing.T) {
	t.Parallel()
	s, _ := serveBodies(t, "")
	key := s.App.Key("create", "--scope", "writer", "--name", "revoked")
	conn, err := net.Dial("tcp", s.Addr)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := fmt.Fprintf(conn, "POST /length HTTP/1.1\r\nHost: x\r\nX-API-Key: %s\r\nContent-Length: 100000\r\n\r\nx", key.Token); err != nil {
		t.Fatal(err)
	}
	s.WaitForOutput("the body has begun")
	s.App.Must("api-keys", "revoke", key.ID)
	if answer, err := io.ReadAll(conn); len(answer) > 0 || !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("the upload of a revoked key ends with %q, %v", answer, err)
	}
}
