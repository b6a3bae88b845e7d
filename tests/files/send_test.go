package files_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"runner.example/tests/harness"
)

const sendSchema = `
entity Post {
  id: id
  title: string(1..200) @unique
  photo: file(100mb)?
  @@allow read, write, delete to anonymous
}
routes("/v1", auth: none, rateLimit: none) {
  POST /posts -> createPost (upload: on, body: 100mb)
  GET /posts/:title/photo -> photo
  DELETE /posts/:title/photo -> removed
  POST /made -> made
  POST /guess -> guess
}
functions {
  exported()
}
`

const sendHandlers = `
import { created, file, insert, notFound, ok, query, remove, type RouteRequest } from "@runner/sdk";

export const createPost = async (req: RouteRequest) => created(await insert("Post", { title: req.form().get("title")!, photo: req.file("photo") }));

const photoOf = async (req: RouteRequest) => (await query("Post").where("title", "=", req.params.title).first())?.photo;

export async function photo(req: RouteRequest) {
  const photo = await photoOf(req);
  return photo ? file(photo, JSON.parse(req.query.options ?? "{}")).withHeader("x-own", "1") : notFound();
}

/** Answers with the file of a row that the same request deletes. */
export async function removed(req: RouteRequest) {
  const photo = await photoOf(req);
  await remove("Post").where("title", "=", req.params.title);
  return file(photo!);
}

/** Answers with a file that no row has. */
export const made = async (req: RouteRequest) => file(await file(req.text(), { name: "made.txt" }), { status: 201 });

export async function guess(req: RouteRequest) {
  const stored = await file("known", { name: "known" });
  return file(Object.assign(stored, req.body()));
}

export const exported = async () => file(await file("a", { name: "a" }));
`

func serveFiles(t *testing.T) (*harness.App, *harness.Server) {
	a := harness.NewApp(t, sendSchema, "")
	a.Write("handlers/files.ts", sendHandlers)
	a.Must("build")
	return a, a.Serve()
}

const pngHead = "\x89PNG\r\n\x1a\n"

// upload creates a post with a photo.
func upload(t *testing.T, s *harness.Server, title, name, contents string) {
	t.Helper()
	body, kind := formOf(part{"title", "", "", title}, part{"photo", name, "", contents})
	s.Want(201, nil, "POST", "/v1/posts", body, "Content-Type: "+kind)
}

func TestAHandlerAnswersWithAFile(t *testing.T) {
	a, s := serveFiles(t)
	for _, size := range []int{0, 1000, 3 << 20} {
		contents := pngHead + string(bytes.Repeat([]byte("0123456789"), size/10))
		title := fmt.Sprint("size", size)
		upload(t, s, title, "größe.png", contents)
		path := "/v1/posts/" + title + "/photo"
		got := s.Do("GET", path, "")
		etag := `"` + digestOf(contents) + `"`
		for name, want := range map[string]string{
			"Content-Type": "image/png", "Content-Length": fmt.Sprint(len(contents)), "ETag": etag, "Accept-Ranges": "bytes",
			"Content-Disposition":    `inline; filename="gr__e.png"; filename*=UTF-8''gr%C3%B6%C3%9Fe.png`,
			"X-Content-Type-Options": "nosniff", "Cache-Control": "no-cache", "X-Own": "1",
		} {
			if got.Header.Get(name) != want {
				t.Errorf("%d bytes: %s is %q, want %q", size, name, got.Header.Get(name), want)
			}
		}
		if got.Status != 200 || string(got.Body) != contents {
			t.Errorf("%d bytes: %d, %d bytes arrived", size, got.Status, len(got.Body))
		}
		if _, err := http.ParseTime(got.Header.Get("Last-Modified")); err != nil {
			t.Errorf("Last-Modified %q: %v", got.Header.Get("Last-Modified"), err)
		}
		if got := s.Do("GET", path, "", "Range: bytes=1-3"); got.Status != 206 || string(got.Body) != "PNG" {
			t.Errorf("a range: %d %q", got.Status, got.Body)
		}
		if got := s.Do("GET", path, "", "If-None-Match: "+etag); got.Status != 304 || len(got.Body) > 0 {
			t.Errorf("unchanged: %d %q", got.Status, got.Body)
		}
		if got := s.Do("HEAD", path, ""); got.Status != 200 || got.Header.Get("Content-Length") != fmt.Sprint(len(contents)) {
			t.Errorf("HEAD: %d %v", got.Status, got.Header)
		}
		if got := s.Do("DELETE", "/v1/posts/"+title+"/photo", ""); got.Status != 200 || string(got.Body) != contents {
			t.Errorf("with the row deleted: %d, %d bytes", got.Status, len(got.Body))
		}
		if got := s.Do("GET", path, ""); got.Status != 404 {
			t.Errorf("afterwards: %d", got.Status)
		}
	}
	before := len(blobs(t, a))
	if got := s.Do("POST", "/v1/made", strings.Repeat("text", 10_000)); got.Status != 201 || string(got.Body) != strings.Repeat("text", 10_000) ||
		got.Header.Get("Content-Type") != "text/plain; charset=utf-8" || got.Header.Get("Accept-Ranges") != "" {
		t.Errorf("a file that no row has: %d %v", got.Status, got.Header)
	}
	if after := len(blobs(t, a)); after != before {
		t.Errorf("%d blobs, before %d", after, before)
	}
}

func TestAFileThatABrowserWouldRunIsAnAttachment(t *testing.T) {
	_, s := serveFiles(t)
	for _, row := range []struct{ title, name, contents, kind, disposition string }{
		{"html", "a.html", "<!DOCTYPE html><script>alert(1)</script>", "text/html; charset=utf-8", "attachment"},
		{"fake", "a.png", "<html><script>alert(1)</script>", "text/html; charset=utf-8", "attachment"},
		{"svg", "a.svg", "<svg xmlns='http://www.w3.org/2000/svg'/>", "image/svg+xml", "attachment"},
		{"pdf", "a.pdf", "%PDF-1.7\n", "application/pdf", "attachment"},
		{"text", "a.txt", "hello", "text/plain; charset=utf-8", "inline"},
	} {
		upload(t, s, row.title, row.name, row.contents)
		got := s.Do("GET", "/v1/posts/"+row.title+"/photo", "")
		if got.Header.Get("Content-Type") != row.kind || got.Header.Get("Content-Disposition") != row.disposition+`; filename="`+row.name+`"` ||
			got.Header.Get("X-Content-Type-Options") != "nosniff" {
			t.Errorf("%s: %v", row.title, got.Header)
		}
	}
	got := s.Do("GET", "/v1/posts/svg/photo?options="+`{"disposition":"inline","name":"b.svg","cache":"public,max-age=5"}`, "")
	if got.Header.Get("Content-Disposition") != `inline; filename="b.svg"` ||
		got.Header.Get("Content-Security-Policy") != "sandbox" || got.Header.Get("Cache-Control") != "public,max-age=5" {
		t.Errorf("as the handler says: %v", got.Header)
	}
	for _, options := range []string{`{"disposition":"x"}`, `{"name":"../a"}`, `{"status":204}`, `{"cache":"a\u000ab"}`} {
		if got := s.Do("GET", "/v1/posts/svg/photo?options="+options, ""); got.Status != 500 {
			t.Errorf("%s: %d", options, got.Status)
		}
	}
}

func TestAHandlerCannotAnswerWithAFileThatItDoesNotHave(t *testing.T) {
	a, s := serveFiles(t)
	upload(t, s, "secret", "a.txt", "secret")
	for _, guess := range []string{`{"id":"01h0000000000000000000000a"}`, `{"id":"../x"}`} {
		if got := s.Do("POST", "/v1/guess", guess); got.Status != 500 || strings.Contains(string(got.Body), "secret") {
			t.Errorf("%s: %d %s", guess, got.Status, got.Body)
		}
	}
	if got := s.Do("POST", "/v1/guess", `{"sha256":"`+digestOf("secret")+`"}`); string(got.Body) != "known" {
		t.Errorf("another digest: %s", got.Body)
	}
	if got := a.Run("call", "exported"); got.Status == 0 || !strings.Contains(s.Stderr.String(), "a file can be the answer to a request alone") {
		t.Errorf("a function: %d %s %s", got.Status, got.Stdout, got.Stderr)
	}
}

const fieldSchema = `
auth {
  session cookie { idle: 30m, absolute: 12h }
  tenant: Team
}
apiKeys {
  scopes: {
    all_read: @system("posts.read") { @grant read on Post where title != "withheld" },
    titles_read: @system("titles.read") { @grant read on Post fields(id, title) },
    posts_make: @system("posts.make") { @grant read, insert on Post fields(id, title, photo, draft) }
  }
}
entity Team {
  id: id
  name: string
  @@allow read, write to session
}
entity Post {
  id: id
  team: Team @tenant
  title: string(1..200) @unique
  photo: file(100mb)?
  draft: file(100mb)? @hidden
  @@allow read to session when title != "private"
}
routes("/v1", auth: session, rateLimit: none) {
  GET /posts/:id/photo -> file(Post.photo)
  GET /posts/:id/draft -> file(Post.draft)
}
routes("/make", auth: apiKey(posts_make), rateLimit: none) {
  POST /posts -> createPost (upload: on, body: 100mb)
  GET /posts/:id/draft -> file(Post.draft)
}
routes("/keys", auth: apiKey(all_read, titles_read), rateLimit: none) {
  GET /posts/:id/photo -> file(Post.photo)
}
routes("/public", auth: none, rateLimit: none) {
  GET /posts/:id/photo -> file(Post.photo)
}
`

const fieldHandlers = `
import { created, insert, type RouteRequest } from "@runner/sdk";

export async function createPost(req: RouteRequest) {
  const photo = req.file("photo");
  const { id } = await insert("Post", { title: req.form().get("title")!, photo, draft: photo });
  return created({ id });
}
`

func TestTheFileOfARowIsSentToThoseWhoMayReadIt(t *testing.T) {
	a := harness.NewApp(t, fieldSchema, "")
	a.Write("handlers/posts.ts", fieldHandlers)
	a.Must("build")
	s := a.Serve()
	const team, other = "01h0000000000000000000000a", "01h0000000000000000000000b"
	member := "Cookie: " + a.Session("ann", "--tenant", team).Cookie
	stranger := "Cookie: " + a.Session("bob", "--tenant", other).Cookie
	maker := "X-API-Key: " + a.Token("posts_make", "--tenant", team)
	contents := pngHead + strings.Repeat("0123456789", 30_000)
	create := func(title, contents string) (id string) {
		t.Helper()
		parts := []part{{"title", "", "", title}}
		if contents != "" {
			parts = append(parts, part{"photo", "photo.png", "", contents})
		}
		body, kind := formOf(parts...)
		var got struct{ ID string }
		if a := s.Do("POST", "/make/posts", body, "Content-Type: "+kind, maker); a.Status != 201 || json.Unmarshal([]byte(a.Body), &got) != nil {
			t.Fatalf("create: %d %s\n%s", a.Status, a.Body, s.Stderr.String())
		}
		return got.ID
	}
	public, private, withheld, none := create("public", contents), create("private", contents), create("withheld", contents), create("none", "")
	key, titles := "X-API-Key: "+a.Token("all_read", "--tenant", team), "X-API-Key: "+a.Token("titles_read", "--tenant", team)
	for _, row := range []struct {
		what, path, credential string
		status                 int
	}{
		{"a member", "/v1/posts/" + public + "/photo", member, 200},
		{"the policy refuses the row", "/v1/posts/" + private + "/photo", member, 404},
		{"the field is hidden", "/v1/posts/" + public + "/draft", member, 404},
		{"a grant names the hidden field", "/make/posts/" + public + "/draft", maker, 200},
		{"no file", "/v1/posts/" + none + "/photo", member, 404},
		{"another tenant", "/v1/posts/" + public + "/photo", stranger, 404},
		{"no session", "/v1/posts/" + public + "/photo", "X-None: 1", 401},
		{"an unknown row", "/v1/posts/01h0000000000000000000000c/photo", member, 404},
		{"not an id", "/v1/posts/x/photo", member, 404},
		{"a key", "/keys/posts/" + public + "/photo", key, 200},
		{"the grant has no such row", "/keys/posts/" + withheld + "/photo", key, 404},
		{"the grant has no such field", "/keys/posts/" + public + "/photo", titles, 404},
		{"anonymous", "/public/posts/" + public + "/photo", "X-None: 1", 404},
	} {
		for _, method := range []string{"GET", "HEAD"} {
			got := s.Do(method, row.path, "", row.credential)
			if got.Status != row.status {
				t.Errorf("%s, %s: %d %.200s, want %d", row.what, method, got.Status, got.Body, row.status)
			}
			if row.status != 200 && got.Header.Get("ETag") != "" {
				t.Errorf("%s: the answer has the digest", row.what)
			}
			if method == "GET" && row.status == 200 && string(got.Body) != contents {
				t.Errorf("%s: %d bytes", row.what, len(got.Body))
			}
			if row.status == 200 && (got.Header.Get("Cache-Control") != "no-store" || got.Header.Get("Vary") == "" ||
				got.Header.Get("Content-Disposition") != `inline; filename="photo.png"`) {
				t.Errorf("%s: %v", row.what, got.Header)
			}
		}
	}
	path := "/v1/posts/" + public + "/photo"
	if got := s.Do("GET", path, "", member, "Range: bytes=-5"); got.Status != 206 || string(got.Body) != "56789" {
		t.Errorf("a range: %d %q", got.Status, got.Body)
	}
	if got := s.Do("GET", "/v1/posts/"+private+"/photo", "", member, `If-None-Match: "`+digestOf(contents)+`"`); got.Status != 404 {
		t.Errorf("whether a row that may not be read has this file: %d", got.Status)
	}
	if got := s.Do("POST", path, "", member); got.Status != 405 || got.Header.Get("Allow") != "GET, HEAD, OPTIONS" {
		t.Errorf("POST: %d %v", got.Status, got.Header)
	}
	if out := a.Must("routes"); !strings.Contains(out, "file(Post.photo)") {
		t.Errorf("runner routes: %s", out)
	}
}

// An app whose routes send files alone needs no module.
func TestAnAppWithoutHandlersSendsFiles(t *testing.T) {
	a := harness.NewApp(t, `
entity Post {
  id: id
  photo: file?
  @@allow read to anonymous
}
routes("/v1", auth: none, rateLimit: none) {
  GET /posts/:id/photo -> file(Post.photo)
}
`, "")
	s := a.Serve()
	if got := s.Do("GET", "/v1/posts/01h0000000000000000000000a/photo", ""); got.Status != 404 {
		t.Errorf("%d %s", got.Status, got.Body)
	}
}
