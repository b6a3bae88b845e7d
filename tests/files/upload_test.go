package files_test

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"mime/multipart"
	"net"
	"net/http"
	"net/textproto"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"runner.example/tests/harness"
)

const uploadSchema = `
entity Post {
  id: id
  title: string(1..200) @unique
  photo: file(1mb, "image/png", "text/plain")?
  @@allow read, write, delete to anonymous
}
entity Counter {
  id: id
  value: int
  @@allow read, write to anonymous
}
routes("/v1", auth: none, rateLimit: none, timeout: 30s) {
  POST /forms -> form (upload: on, body: 1mb)
  PUT /large -> form (upload: on, body: 200mb)
  POST /read -> read (upload: on, body: 10mb)
  POST /made -> made
  POST /posts -> createPost (upload: on, body: 2mb)
  GET /posts/:title -> post
  POST /posts/:title/copy -> copyPost
  POST /posts/:title/steal -> steal
  DELETE /posts/:title -> deletePost
  POST /counted -> counted (upload: on)
  POST /plain -> plain
}
`

const uploadHandlers = `
import { created, error, file, insert, notFound, ok, query, remove, update, type RouteRequest } from "@runner/sdk";

export const form = (req: RouteRequest) => {
  const { fields, files } = req.form();
  return ok({ fields, files: files.map((file) => ({ ...file, field: file.field, declared: file.declared })) });
};

export async function read(req: RouteRequest) {
  const found = req.file(req.form().get("of") ?? "")!;
  const bytes = await found.bytes();
  let streamed = 0;
  for await (const part of found.stream()) streamed += part.length;
  return ok({ bytes: bytes.length, streamed, first: bytes[0], last: bytes.at(-1), text: (await found.text()).slice(0, 10), name: found.name, titles: req.form().getAll("title") });
}

export async function made() {
  const large = new Uint8Array(2_000_000).map((_, i) => i % 251);
  const files = [
    await file("a text", { name: "a/b.md", type: "text/markdown" }),
    await file(new File(["a,b"], "table", { type: "text/csv" })),
    await file(large),
    await file(new Response("<svg/>", { headers: { "content-type": "text/plain" } }), { name: "drawing" }),
    await file(new ReadableStream({ start(c) { c.enqueue(large); c.enqueue(large); c.close(); } })),
  ];
  const back = await files[2].bytes();
  return ok({ files, same: back.every((byte, i) => byte === large[i]) && back.length === large.length });
}

export async function createPost(req: RouteRequest) {
  const row = await insert("Post", { title: req.form().get("title")!, photo: req.file("photo") });
  if (req.form().get("fail")) return error(422, "failed", "on purpose");
  return created({ ...row, text: row.photo && (await row.photo.text()).slice(0, 20) });
}

const named = (req: RouteRequest) => query("Post").where("title", "=", req.params.title).first();

export async function post(req: RouteRequest) {
  const row = await named(req);
  return row ? ok({ ...row, text: row.photo && (await row.photo.text()).slice(0, 20) }) : notFound();
}

export async function copyPost(req: RouteRequest) {
  const row = await named(req);
  return ok(await insert("Post", { title: "copy of " + row!.title, photo: row!.photo }));
}

/** Writes a file that the request does not have, as its client has described it. */
export const steal = async (req: RouteRequest) => ok(await insert("Post", { title: req.params.title, photo: req.body() }));

export const deletePost = async (req: RouteRequest) => ok(await remove("Post").where("title", "=", req.params.title));

/** Conflicts with others that run at the same time. */
export async function counted(req: RouteRequest) {
  const counter = await query("Counter").first();
  const value = (counter?.value ?? 0) + 1;
  if (counter) await update("Counter", { value }).where("id", "=", counter.id);
  else await insert("Counter", { value });
  const made = await file("made in run " + crypto.randomUUID(), { name: "made" });
  await insert("Post", { title: "made " + value, photo: made });
  return ok(await insert("Post", { title: "counted " + value, photo: req.file() }));
}

export const plain = (req: RouteRequest) => ok(req.form());
`

// uploadApp is an app with uploads, which is not built.
func uploadApp(t *testing.T, settings ...string) *harness.App {
	t.Helper()
	a := harness.NewApp(t, uploadSchema, "[sandbox]\nmoved_bytes = \"40mb\"\ncpu = \"10s\"\n"+strings.Join(settings, ""))
	a.Write("handlers/uploads.ts", uploadHandlers)
	return a
}

// serveUploads serves an app with uploads.
func serveUploads(t *testing.T, settings ...string) (*harness.App, *harness.Server) {
	t.Helper()
	a := uploadApp(t, settings...)
	a.Must("build")
	return a, a.Serve()
}

// blobs are the files in the directory of blobs.
func blobs(t *testing.T, a *harness.App) (names []string) {
	t.Helper()
	entries, err := os.ReadDir(filepath.Join(a.Dir, "data", "blobs"))
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

// part is a part of a form; without a file name it is a field.
type part struct{ name, file, kind, contents string }

// formOf returns a form and its content type.
func formOf(parts ...part) (body, contentType string) {
	var out bytes.Buffer
	w := multipart.NewWriter(&out)
	for _, p := range parts {
		header := textproto.MIMEHeader{}
		disposition := fmt.Sprintf("form-data; name=%q", p.name)
		if p.file != "" {
			disposition += fmt.Sprintf("; filename=%q", p.file)
		}
		header.Set("Content-Disposition", disposition)
		if p.kind != "" {
			header.Set("Content-Type", p.kind)
		}
		to, _ := w.CreatePart(header)
		_, _ = io.WriteString(to, p.contents)
	}
	_ = w.Close()
	return out.String(), w.FormDataContentType()
}

func digestOf(contents string) string {
	sum := sha256.Sum256([]byte(contents))
	return hex.EncodeToString(sum[:])
}

type file struct {
	ID, Name, Type, SHA256, Field, Declared string
	Size                                    int64
}

type form struct {
	Fields [][2]string
	Files  []file
}

func TestAHandlerGetsTheFormThatAClientHasSent(t *testing.T) {
	a, s := serveUploads(t)
	before := len(blobs(t, a))
	const png = "\x89PNG\r\n\x1a\n0123456789"
	body, kind := formOf(part{"title", "", "", "Grüße"}, part{"photo", "../größe.png", "text/html", png}, part{"title", "", "", "again"}, part{"none", "empty.txt", "", ""})
	var got form
	s.Want(200, &got, "POST", "/v1/forms", body, "Content-Type: "+kind)
	want := []file{
		{got.Files[0].ID, "größe.png", "image/png", digestOf(png), "photo", "text/html", int64(len(png))},
		{got.Files[1].ID, "empty.txt", "text/plain", digestOf(""), "none", "", 0},
	}
	if fmt.Sprint(got.Files) != fmt.Sprint(want) || fmt.Sprint(got.Fields) != "[[title Grüße] [title again]]" {
		t.Errorf("got %+v, want %+v", got, want)
	}
	if len(got.Files[0].ID) != 26 || got.Files[0].ID == got.Files[1].ID {
		t.Errorf("ids %q and %q", got.Files[0].ID, got.Files[1].ID)
	}
	s.Want(200, &got, "POST", "/v1/forms", png, "Content-Type: image/jpeg")
	if len(got.Files) != 1 || got.Files[0].Name != "file" || got.Files[0].Type != "image/png" || got.Files[0].Declared != "image/jpeg" || got.Files[0].Field != "" {
		t.Errorf("a single file is %+v", got)
	}
	if now := blobs(t, a); len(now) != before {
		t.Errorf("after the requests there are %d files of blobs, before %d", len(now), before)
	}
}

func TestTheFieldsOfAFormCountForTheMemoryOfBodies(t *testing.T) {
	_, s := serveUploads(t, "[front]\nbody_memory = \"2mb\"\n")
	for _, c := range []struct{ size, status int }{{500_000, 200}, {1_000_000, 503}, {500_000, 200}} {
		body, kind := formOf(part{"title", "", "", strings.Repeat("x", c.size)})
		if got := s.Do("POST", "/v1/forms", body, "Content-Type: "+kind); got.Status != c.status {
			t.Errorf("%d bytes: %d %.200s", c.size, got.Status, got.Body)
		}
	}
}

func TestAHandlerReadsWhatWasUploaded(t *testing.T) {
	_, s := serveUploads(t)
	contents := "first line\n" + strings.Repeat("0123456789", 300_000) + "z"
	body, kind := formOf(part{"of", "", "", "doc"}, part{"doc", "a.txt", "", contents}, part{"title", "", "", "x"})
	want := fmt.Sprintf(`{"bytes":%d,"streamed":%d,"first":102,"last":122,"text":"first line","name":"a.txt","titles":["x"]}`, len(contents), len(contents))
	if got := s.Do("POST", "/v1/read", body, "Content-Type: "+kind); got.Status != 200 || got.Body != want {
		t.Errorf("got %d %s, want %s", got.Status, got.Body, want)
	}
}

func TestAHandlerMakesFiles(t *testing.T) {
	a, s := serveUploads(t)
	before := len(blobs(t, a))
	var got struct {
		Files []file
		Same  bool
	}
	s.Want(200, &got, "POST", "/v1/made", "")
	var names []string
	for _, f := range got.Files {
		names = append(names, fmt.Sprintf("%s %s %d", f.Name, f.Type, f.Size))
	}
	want := "b.md text/markdown 6, table text/csv 3, file application/octet-stream 2000000, drawing image/svg+xml 6, file application/octet-stream 4000000"
	if strings.Join(names, ", ") != want || !got.Same {
		t.Errorf("got %s, %v", strings.Join(names, ", "), got.Same)
	}
	if now := blobs(t, a); len(now) != before {
		t.Errorf("after the request there are %d files of blobs, before %d", len(now), before)
	}
}

// row is a Post.
type row struct {
	ID, Title, Text string
	Photo           *file
}

func TestAnUploadedFileIsKeptByARow(t *testing.T) {
	a, s := serveUploads(t)
	before := len(blobs(t, a))
	const png = "\x89PNG\r\n\x1a\n0123456789"
	body, kind := formOf(part{"title", "", "", "one"}, part{"photo", "a.txt", "", "the text"}, part{"other", "b.png", "", png})
	var made, got row
	s.Want(201, &made, "POST", "/v1/posts", body, "Content-Type: "+kind)
	s.Want(200, &got, "GET", "/v1/posts/one", "")
	if got.Text != "the text" || got.Photo == nil || made.Photo == nil || *got.Photo != *made.Photo || got.Photo.SHA256 != digestOf("the text") || got.Photo.Name != "a.txt" {
		t.Errorf("made %+v %+v, got %+v %+v", made, made.Photo, got, got.Photo)
	}
	if now := blobs(t, a); len(now) != before+1 {
		t.Errorf("with one file there are %d files of blobs, before %d", len(now), before)
	}
	s.Want(200, &made, "POST", "/v1/posts/one/copy", "")
	s.Want(200, nil, "DELETE", "/v1/posts/one", "")
	s.Want(200, &got, "GET", "/v1/posts/copy%20of%20one", "")
	if got.Text != "the text" {
		t.Errorf("the copy has %q", got.Text)
	}
	s.Stop()
	s = a.Serve()
	if s.Want(200, &got, "GET", "/v1/posts/copy%20of%20one", ""); got.Text != "the text" {
		t.Errorf("after a restart the copy has %q", got.Text)
	}
}

func TestAFileOfAFailedRequestIsGone(t *testing.T) {
	a, s := serveUploads(t)
	before := len(blobs(t, a))
	body, kind := formOf(part{"title", "", "", "one"}, part{"fail", "", "", "yes"}, part{"photo", "a.txt", "", "the text"})
	s.Want(422, nil, "POST", "/v1/posts", body, "Content-Type: "+kind)
	svg, kind := formOf(part{"title", "", "", "two"}, part{"photo", "a.png", "image/png", "<svg xmlns='http://www.w3.org/2000/svg'/>"})
	if got := s.Do("POST", "/v1/posts", svg, "Content-Type: "+kind); got.Status < 400 || !strings.Contains(s.Stderr.String()+got.Body, "image/svg+xml") {
		t.Errorf("an SVG as image/png: %d %s", got.Status, got.Body)
	}
	if now := blobs(t, a); len(now) != before {
		t.Errorf("after the requests there are %d files of blobs, before %d", len(now), before)
	}
}

func TestNobodyGetsContentsByGuessing(t *testing.T) {
	_, s := serveUploads(t)
	body, kind := formOf(part{"title", "", "", "one"}, part{"photo", "a.txt", "", "the text"})
	var made row
	s.Want(201, &made, "POST", "/v1/posts", body, "Content-Type: "+kind)
	f := made.Photo
	for _, guess := range []string{
		fmt.Sprintf(`{"id":%q}`, f.ID),
		fmt.Sprintf(`{"id":%q,"name":%q,"type":%q,"size":%d,"sha256":%q}`, f.ID, f.Name, f.Type, f.Size, f.SHA256),
		fmt.Sprintf(`{"sha256":%q}`, f.SHA256),
	} {
		if got := s.Do("POST", "/v1/posts/two/steal", guess, "Content-Type: application/json"); got.Status < 400 {
			t.Errorf("%s: %d %s", guess, got.Status, got.Body)
		}
	}
}

// TestAnUploadRunsAgainAfterAConflict: the form is there in each run, and what discarded runs have made is gone.
func TestAnUploadRunsAgainAfterAConflict(t *testing.T) {
	a, s := serveUploads(t)
	before := len(blobs(t, a))
	const clients, each = 8, 5
	var running sync.WaitGroup
	var stored atomic.Int64
	for n := range clients {
		running.Go(func() {
			for i := range each {
				got, err := s.Try("POST", "/v1/counted", fmt.Sprintf("upload %d of %d", i, n), "Content-Type: text/plain")
				switch {
				case err != nil:
					t.Error(err)
				case got.Status == 200:
					stored.Add(1)
				case got.Status != 409:
					t.Errorf("%d %s", got.Status, got.Body)
				}
			}
		})
	}
	running.Wait()
	if stored.Load() == 0 {
		t.Fatal("no request was stored")
	}
	if now := len(blobs(t, a)) - before; now != 2*int(stored.Load()) {
		t.Errorf("%d requests were stored, with %d blobs", stored.Load(), now)
	}
	for n := range stored.Load() {
		var got row
		if s.Want(200, &got, "GET", fmt.Sprintf("/v1/posts/counted%%20%d", n+1), ""); !strings.HasPrefix(got.Text, "upload ") {
			t.Errorf("%d: %q", n+1, got.Text)
		}
	}
}

func TestUploadsThatAreNotValidAreRefused(t *testing.T) {
	a, s := serveUploads(t)
	before := len(blobs(t, a))
	body, kind := formOf(part{"photo", "a.png", "", strings.Repeat("x", 100_000)})
	large, largeKind := formOf(part{"photo", "a.png", "", strings.Repeat("x", 1<<20)})
	for name, c := range map[string]struct {
		status      int
		code        string
		path, body  string
		contentType string
		more        []string
	}{
		"cut off":           {400, "invalid_request", "/v1/forms", body[:90_000], kind, nil},
		"no boundary":       {400, "invalid_request", "/v1/forms", body, "multipart/form-data", nil},
		"another boundary":  {400, "invalid_request", "/v1/forms", body, "multipart/form-data; boundary=x", nil},
		"too large":         {413, "body_too_large", "/v1/forms", large, largeKind, nil},
		"another multipart": {415, "unsupported_encoding", "/v1/forms", body, "multipart/mixed; boundary=x", nil},
		"compressed":        {415, "unsupported_encoding", "/v1/forms", body, kind, []string{"Content-Encoding: gzip"}},
		"no upload":         {500, "handler_failed", "/v1/plain", body, kind, nil},
	} {
		got := s.Do("POST", c.path, c.body, append([]string{"Content-Type: " + c.contentType}, c.more...)...)
		if got.Status != c.status || got.Problem(t).Code != c.code {
			t.Errorf("%s: got %d %s", name, got.Status, got.Body)
		}
	}
	if now := blobs(t, a); len(now) != before {
		t.Errorf("after the requests there are %d files of blobs, before %d", len(now), before)
	}
}

// TestASlowUploadAnswers408: each byte is in time, and the body is not.
func TestASlowUploadAnswers408(t *testing.T) {
	a, s := serveUploads(t, "[front]\nread_timeout = \"500ms\"\n")
	before := len(blobs(t, a))
	conn, err := net.Dial("tcp", strings.TrimPrefix(s.URL, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	body, kind := formOf(part{"photo", "a.png", "", strings.Repeat("x", 100_000)})
	if _, err := fmt.Fprintf(conn, "POST /v1/forms HTTP/1.1\r\nHost: x\r\nContent-Type: %s\r\nContent-Length: %d\r\n\r\n", kind, len(body)); err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	var sending sync.WaitGroup
	sending.Go(func() {
		each := time.NewTicker(20 * time.Millisecond)
		defer each.Stop()
		for i := range len(body) {
			select {
			case <-done:
				return
			case <-each.C:
			}
			if _, err := io.WriteString(conn, body[i:i+1]); err != nil {
				return
			}
		}
	})
	answer, err := http.ReadResponse(bufio.NewReader(conn), nil)
	close(done)
	sending.Wait()
	if err != nil || answer.StatusCode != 408 {
		t.Errorf("got %+v, %v", answer, err)
	}
	if now := blobs(t, a); len(now) != before {
		t.Errorf("after the request there are %d files of blobs, before %d", len(now), before)
	}
}

// TestTheMemoryOfAnUploadDoesNotDependOnItsSize uploads 100 MB.
func TestTheMemoryOfAnUploadDoesNotDependOnItsSize(t *testing.T) {
	_, s := serveUploads(t)
	send := func(size int64) {
		t.Helper()
		request, err := http.NewRequest("PUT", s.URL+"/v1/large", io.LimitReader(zeros{}, size))
		if err != nil {
			t.Fatal(err)
		}
		request.ContentLength = size
		answer, err := http.DefaultClient.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(answer.Body)
		if answer.Body.Close(); err != nil || answer.StatusCode != 200 || !strings.Contains(string(text), fmt.Sprintf(`"size":%d`, size)) {
			t.Fatalf("%d %s %v", answer.StatusCode, text, err)
		}
	}
	send(1 << 20)
	before := s.Resources()
	send(100 << 20)
	after := s.Resources()
	if grown := after.PeakBytes - before.Bytes; grown > 16<<20 {
		t.Errorf("the resident memory grows by %d bytes, from %d", grown, before.Bytes)
	} else {
		t.Logf("the resident memory grows by %d bytes, from %d", grown, before.Bytes)
	}
}

// zeros yields bytes without end.
type zeros struct{}

func (zeros) Read(p []byte) (int, error) {
	clear(p)
	return len(p), nil
}

// What a client has sent in a form is its error when a row refuses it, and not one of the handler.
func TestAFormThatARowRefusesIsAnErrorOfTheClient(t *testing.T) {
	_, s := serveUploads(t)
	for _, c := range []struct {
		what, field, says string
		parts             []part
	}{
		{"a type that is not allowed", "photo", "must be of type image/png or text/plain", []part{{"title", "", "", "one"}, {"photo", "a.pdf", "", "%PDF-1.7\n"}}},
		{"a file that is too large", "photo", "must be at most 1048576 bytes", []part{{"title", "", "", "one"}, {"photo", "a.txt", "", strings.Repeat("a", 1<<20+1)}}},
		{"a text that is too long", "title", "200", []part{{"title", "", "", strings.Repeat("t", 201)}, {"photo", "a.txt", "", "text"}}},
	} {
		body, kind := formOf(c.parts...)
		var got struct {
			Code   string
			Errors []struct{ Field, Message string }
		}
		s.Want(400, &got, "POST", "/v1/posts", body, "Content-Type: "+kind)
		if len(got.Errors) != 1 || got.Errors[0].Field != c.field || !strings.Contains(got.Errors[0].Message, c.says) {
			t.Errorf("%s: %+v", c.what, got)
		}
	}
}
