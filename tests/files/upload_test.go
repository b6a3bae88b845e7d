package files_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"mime/multipart"
	"net/http"
	"net/textproto"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"runner.example/tests/harness"
)

const uploadSchema = `
routes("/v1", auth: none, rateLimit: none) {
  POST /forms -> form (upload: on, body: 1mb)
  PUT /large -> form (upload: on, body: 200mb)
  POST /read -> read (upload: on, body: 10mb)
  POST /made -> made
  POST /plain -> plain
}
`

const uploadHandlers = `
import { file, ok, type RouteRequest } from "@runner/sdk";

export const form = (req: RouteRequest) => ok(req.form());

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

export const plain = (req: RouteRequest) => ok(req.form());
`

// serveUploads serves an app with uploads.
func serveUploads(t *testing.T) (*harness.App, *harness.Server) {
	a := harness.NewApp(t, uploadSchema, "[sandbox]\nmoved_bytes = \"40mb\"\n")
	a.Write("handlers/uploads.ts", uploadHandlers)
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
