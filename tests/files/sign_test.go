package files_test

import (
	"encoding/json"
	"net/http"
	"strconv"
	"strings"
	"testing"

	"runner.example/tests/harness"
)

const signSchema = `
auth {
  session cookie { idle: 30m, absolute: 12h }
}
entity Post {
  id: id
  title: string(1..200) @unique
  photo: file(100mb)?
  scan: file(100mb)?
  @@allow read, write, delete to session
}
routes("/v1", auth: session, rateLimit: none) {
  POST /posts -> createPost (upload: on, body: 100mb)
  GET /posts/:title/link -> link
  PUT /posts/:title/photo -> replacePhoto (upload: on, body: 100mb)
  DELETE /posts/:title/photo -> removePhoto
  DELETE /posts/:title -> removePost
  POST /posts/:title/copy -> copyPost
  POST /loose -> loose
  GET /live -> liveLink (live: 1m)
  GET /stream/:title -> streamed
  GET /fails/:title -> fails
}
functions {
  linkOf(title: string) -> string
}
`

const signHandlers = `
import { created, file, insert, noContent, notFound, ok, query, remove, sign, stream, update, type RouteRequest } from "@runner/sdk";

type Options = Parameters<typeof sign>[1];

const post = (title: string) => query("Post").where("title", "=", title).firstOrFail();

/** Answers with a link to the file of the row that it inserts. */
export async function createPost(req: RouteRequest) {
  const { photo } = await insert("Post", { title: req.form().get("title")!, photo: req.file("photo"), scan: req.file("scan") ?? null });
  return created({ url: await sign(photo!, { expires: "1h" }) });
}

export async function link(req: RouteRequest) {
  const { photo, scan } = await post(req.params.title);
  const url = await sign((req.query.field === "scan" ? scan : photo)!, JSON.parse(req.query.options ?? '{"expires":"10m"}') as Options);
  console.log("signed " + url);
  return ok({ url });
}

export async function replacePhoto(req: RouteRequest) {
  await update("Post", { photo: req.file("photo") ?? req.file() }).where("title", "=", req.params.title);
  return noContent();
}

export async function removePhoto(req: RouteRequest) {
  await update("Post", { photo: null }).where("title", "=", req.params.title);
  return noContent();
}

export async function removePost(req: RouteRequest) {
  await remove("Post").where("title", "=", req.params.title);
  return noContent();
}

/** Moves the file of a row to another row. */
export async function copyPost(req: RouteRequest) {
  const { photo } = await post(req.params.title);
  await insert("Post", { title: "copy of " + req.params.title, photo });
  return noContent();
}

export async function loose(req: RouteRequest) {
  return ok({ url: await sign(await file("no row has it", { name: "a" }), { expires: "10m" }) });
}

export const liveLink = async (req: RouteRequest) => ok({ url: await sign((await query("Post").firstOrFail()).photo!, { expires: "10m" }) });

export const streamed = (req: RouteRequest) =>
  stream(async function* () {
    yield "link ";
    const { photo } = await post(req.params.title);
    yield await sign(photo!, { expires: "10m" });
  });

export async function fails(req: RouteRequest) {
  await link(req);
  throw new Error("after it was signed");
}

export const linkOf = async (req: RouteRequest) => sign((await post(req.body<{ title: string }>().title)).photo!, { expires: 600 });
`

// signer is a server whose handlers sign links.
type signer struct {
	*harness.App
	t      *testing.T
	server *harness.Server
	cookie string
}

func newSignApp(t *testing.T) *harness.App {
	a := harness.NewApp(t, signSchema, "")
	a.Write("handlers/posts.ts", signHandlers)
	a.Must("build")
	return a
}

func newSigner(t *testing.T) *signer {
	a := newSignApp(t)
	return &signer{a, t, a.Serve(), "Cookie: " + a.Session("ann").Cookie}
}

// do sends a request with the session.
func (s *signer) do(status int, method, path, body string, headers ...string) string {
	s.t.Helper()
	var got struct{ URL string }
	answer := s.server.Do(method, path, body, append(headers, s.cookie)...)
	if answer.Status != status {
		s.t.Fatalf("%s %s: %d %s, want %d\n%s", method, path, answer.Status, answer.Body, status, s.server.Stderr.String())
	}
	if status < 300 && answer.Body != "" {
		if err := json.Unmarshal([]byte(answer.Body), &got); err != nil {
			s.t.Fatal(err)
		}
	}
	return got.URL
}

// create uploads the photo of a post, and returns a link to it.
func (s *signer) create(title, contents string) string {
	s.t.Helper()
	body, kind := formOf(part{"title", "", "", title}, part{"photo", "photo.png", "", contents})
	return s.do(201, "POST", "/v1/posts", body, "Content-Type: "+kind)
}

// want checks the answer of a link, for a client without credentials.
func (s *signer) want(what, url string, status int, contents string) harness.Answer {
	s.t.Helper()
	got := s.server.Do("GET", url, "")
	if got.Status != status || status == 200 && got.Body != contents {
		s.t.Errorf("%s: %d %.200q, want %d", what, got.Status, got.Body, status)
	}
	if status == 404 && (strings.Contains(got.Body, "expire") || strings.Contains(got.Body, "revoke") || got.Header.Get("ETag") != "" ||
		got.Header.Get("Cache-Control") != "no-store") {
		s.t.Errorf("%s: the answer says why, or is kept: %v %s", what, got.Header, got.Body)
	}
	return got
}

func TestASignedLinkSendsAFileWithoutCredentials(t *testing.T) {
	s := newSigner(t)
	contents := pngHead + strings.Repeat("0123456789", 30_000)
	first := s.create("sea", contents)
	url := s.do(200, "GET", "/v1/posts/sea/link", "")
	for _, u := range []string{first, url} {
		if !strings.HasPrefix(u, "/_files/") || strings.ContainsAny(u[len("/_files/"):], "/=+?%") {
			t.Fatalf("the link is %q", u)
		}
		got := s.want("a new link", u, 200, contents)
		for name, want := range map[string]string{
			"Content-Type": "image/png", "ETag": `"` + digestOf(contents) + `"`, "Accept-Ranges": "bytes", "Cache-Control": "private, no-cache",
			"Referrer-Policy": "no-referrer", "Content-Disposition": `inline; filename="photo.png"`, "X-Content-Type-Options": "nosniff",
			"Vary": "", "Set-Cookie": "", "Cross-Origin-Resource-Policy": "",
		} {
			if got.Header.Get(name) != want {
				t.Errorf("%s is %q, want %q", name, got.Header.Get(name), want)
			}
		}
	}
	if got := s.server.Do("HEAD", url, ""); got.Status != 200 || got.Body != "" || got.Header.Get("Content-Length") != "300008" {
		t.Errorf("HEAD: %d %v", got.Status, got.Header)
	}
	if got := s.server.Do("GET", url, "", "Range: bytes=-5", "Origin: https://other.example"); got.Status != 206 || got.Body != "56789" {
		t.Errorf("a range: %d %q", got.Status, got.Body)
	}
	if got := s.server.Do("GET", url, "", `If-None-Match: "`+digestOf(contents)+`"`); got.Status != 304 {
		t.Errorf("unchanged: %d", got.Status)
	}
	if got := s.server.Do("GET", url, "", "Cookie: session=wrong", "Authorization: Bearer wrong"); got.Status != 200 {
		t.Errorf("with credentials that are not valid: %d", got.Status)
	}
	for _, method := range []string{"POST", "PUT", "DELETE", "PATCH"} {
		if got := s.server.Do(method, url, ""); got.Status != 405 || got.Header.Get("Allow") != "GET, HEAD, OPTIONS" {
			t.Errorf("%s: %d %v", method, got.Status, got.Header)
		}
	}
	other := s.do(200, "GET", `/v1/posts/sea/link?options={"expires":600,"disposition":"attachment","name":"gr%C3%B6%C3%9Fe.png"}`, "")
	if got := s.want("with a name", other, 200, contents); got.Header.Get("Content-Disposition") != `attachment; filename="gr__e.png"; filename*=UTF-8''gr%C3%B6%C3%9Fe.png` {
		t.Errorf("with a name: %v", got.Header)
	}
	if got := s.server.Do("GET", "/v1/stream/sea", "", s.cookie); !strings.HasPrefix(got.Body, "link /_files/") {
		t.Errorf("while an answer is streamed: %d %s", got.Status, got.Body)
	} else {
		s.want("a link of a streamed answer", strings.TrimPrefix(got.Body, "link "), 200, contents)
	}
	s.want("a link of a function", strings.Trim(strings.TrimSpace(s.Must("call", "linkOf", `{"title":"sea"}`)), `"`), 200, contents)
	s.server.Stop()
	s.server = s.Serve()
	s.want("after a restart", url, 200, contents)
}

func TestASignedLinkWorksWhileTheRowHasTheFile(t *testing.T) {
	s := newSigner(t)
	contents := pngHead + "1"
	for _, row := range []struct {
		title string
		after func(title string)
	}{
		{"deleted", func(title string) { s.do(204, "DELETE", "/v1/posts/"+title, "") }},
		{"removed", func(title string) { s.do(204, "DELETE", "/v1/posts/"+title+"/photo", "") }},
		{"replaced", func(title string) { s.do(204, "PUT", "/v1/posts/"+title+"/photo", pngHead+"2") }},
		{"same", func(title string) { s.do(204, "PUT", "/v1/posts/"+title+"/photo", contents) }},
		{"copied", func(title string) {
			s.do(204, "POST", "/v1/posts/"+title+"/copy", "")
			s.do(204, "DELETE", "/v1/posts/"+title, "")
		}},
	} {
		url := s.create(row.title, contents)
		s.want(row.title+", before", url, 200, contents)
		row.after(row.title)
		s.want(row.title, url, 404, "")
		if row.title == "copied" {
			s.want("the copy", s.do(200, "GET", "/v1/posts/copy%20of%20copied/link", ""), 200, contents)
		}
	}
	body, kind := formOf(part{"title", "", "", "two"}, part{"photo", "a.png", "", contents}, part{"scan", "b.png", "", contents})
	photo := s.do(201, "POST", "/v1/posts", body, "Content-Type: "+kind)
	scan := s.do(200, "GET", "/v1/posts/two/link?field=scan", "")
	s.do(204, "DELETE", "/v1/posts/two/photo", "")
	s.want("the field without a file", photo, 404, "")
	s.want("the other field of the row", scan, 200, contents)
	// A release that does not declare the field sends none of its files. After a rollback the link works again.
	s.server.Stop()
	s.Write("app.schema", strings.Replace(signSchema, "scan: file(100mb)?", "scan: file(100mb)? @removed", 1))
	s.Write("handlers/posts.ts", strings.NewReplacer(`, scan: req.file("scan") ?? null`, "", "photo, scan }", "photo }", `(req.query.field === "scan" ? scan : photo)`, "photo").Replace(signHandlers))
	s.Must("build")
	s.server = s.Serve()
	s.want("the field is removed", scan, 404, "")
	s.server.Stop()
	s.Write("app.schema", signSchema)
	s.Write("handlers/posts.ts", signHandlers)
	s.Must("build")
	s.server = s.Serve()
	s.want("the field is back", scan, 200, contents)
}

func TestASignedLinkExpires(t *testing.T) {
	s := newSigner(t)
	contents := pngHead + "1"
	s.create("sea", contents)
	short := s.do(200, "GET", `/v1/posts/sea/link?options={"expires":"1s"}`, "")
	long := s.do(200, "GET", `/v1/posts/sea/link?options={"expires":"7d"}`, "")
	s.server.WaitUntil("the link expires", func() bool { return s.server.Do("GET", short, "").Status == http.StatusNotFound })
	s.want("expired", short, 404, "")
	s.want("a longer one", long, 200, contents)
}

func TestAChangedLinkIsNotFound(t *testing.T) {
	s := newSigner(t)
	url := s.create("sea", pngHead)
	token := strings.TrimPrefix(url, "/_files/")
	for i := range token {
		other := "A"
		if token[i] == 'A' {
			other = "B"
		}
		if got := s.server.Do("GET", "/_files/"+token[:i]+other+token[i+1:], ""); got.Status != 404 {
			t.Errorf("byte %d is another: %d", i, got.Status)
		}
	}
	for path, status := range map[string]int{
		"/_files": 404, "/_files/": 404, url + "/": 404, url + "A": 404, url + "/x": 404, "/_files/" + strings.Repeat("A", 3000): 404,
		"/_files/..": 400, "/%5Ffiles/" + token: 404,
	} {
		if got := s.server.Do("GET", path, ""); got.Status != status {
			t.Errorf("%.50s: %d, want %d", path, got.Status, status)
		}
	}
	other := newSigner(t)
	other.create("sea", pngHead)
	other.want("another app", url, 404, "")
}

func TestWhatCannotBeSignedIsRefused(t *testing.T) {
	s := newSigner(t)
	s.create("sea", pngHead)
	for options, text := range map[string]string{
		`{}`: "sign: expires must be a time such as", `{"expires":"10 minutes"}`: "sign: expires must be a time such as",
		`{"expires":"0s"}`: "from 1 to 604800 seconds (7 days)", `{"expires":"8d"}`: "from 1 to 604800 seconds (7 days)",
		`{"expires":-5}`: "from 1 to 604800", `{"expires":1.5}`: "whole number", `{"expires":5,"name":"a/b"}`: "is not the name of a file",
		`{"expires":5,"disposition":"x"}`: "inline or attachment", `{"expires":5,"cache":"x"}`: "sign: unknown option",
	} {
		before := len(s.server.Stderr.String())
		s.do(500, "GET", "/v1/posts/sea/link?options="+strings.ReplaceAll(options, " ", "%20"), "")
		s.server.WaitUntil("the log says why "+options+" is refused: "+text, func() bool {
			return strings.Contains(s.server.Stderr.String()[before:], text)
		})
	}
	s.do(500, "POST", "/v1/loose", "")
	s.server.WaitForOutput("this file is not in a row that the run has read or written: insert it")
	s.server.Exchange("GET /v1/live HTTP/1.1\r\nHost: x\r\nAccept: text/event-stream\r\n"+s.cookie+"\r\n\r\n", 0, func(reply string) bool {
		return strings.Contains(reply, "event: problem")
	})
	s.server.WaitForOutput("a live route cannot sign links")
}

// Whoever has the token may read the file, so neither the log nor a recording has it.
func TestATokenIsNeitherLoggedNorRecorded(t *testing.T) {
	a := harness.NewApp(t, signSchema, "")
	a.Write("handlers/posts.ts", signHandlers)
	server := a.Start("dev") // which logs the paths of requests, and records failures
	s := &signer{a, t, server, "Cookie: " + a.Session("ann").Cookie}
	s.create("sea", pngHead)
	s.server.Want(500, nil, "GET", "/v1/fails/sea", "", s.cookie)
	url := s.do(200, "GET", "/v1/posts/sea/link", "")
	s.want("the link", url, 200, pngHead)
	s.want("a wrong link", url+"x", 404, "")
	s.server.WaitForOutput(`/_files/:token .*200`)
	s.server.WaitForOutput(`/_files/:token .*404`)
	s.server.WaitForOutput(`signed /_files/…`)
	var id string
	s.server.WaitUntil("the failure is recorded", func() bool {
		var list []struct{ ID string }
		if err := json.Unmarshal([]byte(a.Must("recorded", "list", "--json")), &list); err != nil {
			t.Fatal(err)
		}
		if len(list) > 0 {
			id = list[0].ID
		}
		return id != ""
	})
	for _, out := range []string{a.Must("recorded", "show", id), a.Must("recorded", "export", id)} {
		if !strings.Contains(out, "‹signed link 1›") && !strings.Contains(out, `\u2039signed link`) {
			t.Errorf("the recording does not name the link: %s", out)
		}
		if strings.Contains(out, "/_files/A") {
			t.Errorf("the recording has the link: %s", out)
		}
	}
	log := s.server.Stderr.String()
	if strings.Contains(log, strings.TrimPrefix(url, "/_files/")) || strings.Contains(log, "/_files/A") {
		t.Errorf("the log has the link:\n%s", log)
	}
}

func TestSignedLinksAreRevoked(t *testing.T) {
	s := newSigner(t)
	old := s.create("sea", pngHead)
	s.want("before", old, 200, pngHead)
	if out := s.Must("files", "revoke-links"); out != "revoked all signed links\n" {
		t.Errorf("the command prints %q", out)
	}
	s.want("afterwards", old, 404, "")
	next := s.do(200, "GET", "/v1/posts/sea/link", "")
	s.want("a new link", next, 200, pngHead)
	s.server.Stop()
	var revoked struct{ Generation int }
	if out := s.Must("files", "revoke-links", "--json"); json.Unmarshal([]byte(out), &revoked) != nil || revoked.Generation != 2 {
		t.Errorf("without a server: %s", out)
	}
	s.server = s.Serve()
	s.want("after a restart", old, 404, "")
	s.want("revoked without a server", next, 404, "")
	s.want("the newest link", s.do(200, "GET", "/v1/posts/sea/link", ""), 200, pngHead)
	n := 0
	for _, r := range s.Audit(t) {
		if r["action"] == "files.revokeLinks" && r["result"] == "ok" && r["target"] == "generation "+strconv.Itoa(n) {
			n++
		}
	}
	if n != 2 {
		t.Errorf("the audit has %d revocations: %v", n, s.Audit(t))
	}
	if got := s.Run("files", "revoke-links", "all"); got.Status != 2 {
		t.Errorf("an argument: %d %s", got.Status, got.Stderr)
	}
}

// A link that one node has made works on each, and a revocation on one ends it on all.
func TestSignedLinksAreThoseOfTheCluster(t *testing.T) {
	c := harness.NewCluster(t, nil, func() *harness.App { return newSignApp(t) })
	c.Nodes[0].Serve()
	for range 2 {
		c.Add().Serve()
	}
	for _, n := range c.Nodes {
		n.WaitReady()
	}
	first := &signer{c.Nodes[0].App, t, c.Nodes[0].Server, "Cookie: " + c.Nodes[0].Session("ann").Cookie}
	url := first.create("sea", pngHead)
	for _, n := range c.Nodes {
		n.Server.WaitUntil(n.Name+" has the row", func() bool {
			got := n.Server.Do("GET", url, "")
			return got.Status == 200 && got.Body == pngHead
		})
	}
	if out := c.Nodes[2].Must("files", "revoke-links"); !strings.Contains(out, "revoked on 3 of 3 nodes") {
		t.Errorf("the command prints %q", out)
	}
	for _, n := range c.Nodes {
		if got := n.Server.Do("GET", url, ""); got.Status != 404 {
			t.Errorf("%s: %d", n.Name, got.Status)
		}
	}
	first.want("a new link", first.do(200, "GET", "/v1/posts/sea/link", ""), 200, pngHead)
}
