package languages_test

import (
	"os"
	"os/exec"
	"strings"
	"testing"

	"runner.example/tests/harness"
)

const honoSchema = `app hello
entity Note {
  id: id
  text: string(1..80)
  @@allow all to anonymous
}
routes("/", auth: none, rateLimit: none) {
  GET /*rest -> app
  POST /*rest -> app
  DELETE /*rest -> app
}
`

const honoApp = `import { fetchHandler, insert, query } from "@runner/sdk";
import { Hono } from "hono";
import { HTTPException } from "hono/http-exception";
import { basicAuth } from "hono/basic-auth";
import { cors } from "hono/cors";
import { logger } from "hono/logger";
import { streamSSE, streamText } from "hono/streaming";

const hono = new Hono();
hono.use("*", async (c, next) => {
  await next();
  c.header("x-seen", c.req.path);
});
hono.use("/shared/*", cors(), logger());
hono.get("/hello/:name", (c) => c.json({ hello: c.req.param("name"), q: c.req.queries("q") ?? [] }));
hono.get("/origin", (c) => c.text(new URL(c.req.url).origin));
hono.get("/signed", (c) => c.text(c.req.url));
hono.get("/page", (c) => c.html("<p>hé</p>"));
hono.get("/shared/data", (c) => c.text("shared"));
hono.get("/locked", basicAuth({ username: "ada", password: "s3" }), (c) => c.text("open"));
hono.get("/away", (c) => c.redirect("/page"));
hono.post("/notes", async (c) => c.json(await insert("Note", await c.req.json<{ text: string }>()), 201));
hono.get("/notes", async (c) => c.json((await query("Note")).map((note) => note.text)));
hono.post("/upload", async (c) => {
  const { title, file } = await c.req.parseBody();
  if (!(file instanceof File)) throw new HTTPException(400, { message: "file is missing" });
  return c.text([title, file.name, file.size, await file.text()].join(" "));
});
hono.get("/text", (c) => streamText(c, async (stream) => {
  await stream.write("a");
  await stream.sleep(2);
  await stream.writeln("b");
}));
hono.get("/events", (c) => streamSSE(c, async (stream) => {
  for (const id of ["1", "2"]) await stream.writeSSE({ id, data: "x" });
}));
hono.delete("/notes", (c) => c.body(null, 204));
hono.get("/boom", () => {
  throw new Error("boom");
});
export const app = fetchHandler(hono.fetch);
`

func TestAHonoAppRunsBehindARestRoute(t *testing.T) {
	hono, err := exec.Command(harness.RepoFile("tools/fetch-hono.sh")).Output()
	if err != nil {
		t.Fatalf("tools/fetch-hono.sh: %v", err)
	}
	a := harness.NewApp(t, honoSchema, "[front]\ntrusted_proxies = [\"127.0.0.1\"]\n")
	a.Write("handlers/app.ts", honoApp)
	if err := os.CopyFS(a.Path("node_modules/hono"), os.DirFS(strings.TrimSpace(string(hono)))); err != nil {
		t.Fatal(err)
	}
	a.Must("build")
	s := a.Serve()
	s.Matches(200, `\{"hello":"ada","q":\["1","2 x"\]\}`, "GET", "/hello/ada?q=1&q=2%20x", "", "")
	s.Matches(201, `\{"id":"[0-9a-z]{26}","text":"a"\}`, "POST", "/notes", `{"text":"a"}`, "")
	s.Matches(200, `\["a"\]`, "GET", "/notes", "", "")
	s.Matches(204, ``, "DELETE", "/notes", "", "")
	if got := s.Do("GET", "/origin", "", "X-Forwarded-Proto: https"); got.Body != "https://"+s.Addr {
		t.Errorf("behind a proxy with HTTPS: %+v", got)
	}
	s.Matches(404, `404 Not Found`, "GET", "/nothing", "", "")
	s.Matches(500, `Internal Server Error`, "GET", "/boom", "", "")
	if page := s.Get("/page", ""); page.Body != "<p>hé</p>" || page.Header.Get("Content-Type") != "text/html; charset=UTF-8" || page.Header.Get("X-Seen") != "/page" {
		t.Errorf("GET /page answers %+v", page)
	}
	if shared := s.Get("/shared/data", ""); shared.Header.Get("Access-Control-Allow-Origin") != "*" {
		t.Errorf("GET /shared/data answers %+v", shared)
	}
	locked := s.Get("/locked", "")
	if got := locked.Header.Values("WWW-Authenticate"); locked.Status != 401 || len(got) != 1 || got[0] != `Basic realm="Secure Area"` {
		t.Errorf("GET /locked answers %d with the challenges %q", locked.Status, got)
	}
	if got := s.Do("GET", "/locked", "", "Authorization: Basic YWRhOnMz"); got.Body != "open" {
		t.Errorf("GET /locked with the password answers %+v", got)
	}
	if got := s.Get("/signed?a=b%20c&flag&&d='", ""); got.Body != "http://"+s.Addr+"/signed?a=b%20c&flag&&d='" {
		t.Errorf("the URL is %s", got.Body)
	}
	form := "--b\r\nContent-Disposition: form-data; name=\"title\"\r\n\r\nmine\r\n" +
		"--b\r\nContent-Disposition: form-data; name=\"file\"; filename=\"a.txt\"\r\n\r\nhello\r\n--b--\r\n"
	upload := s.Do("POST", "/upload", form, "Content-Type: multipart/form-data; boundary=b")
	if upload.Status != 200 || upload.Body != "mine a.txt 5 hello" {
		t.Errorf("POST /upload answers %+v", upload)
	}
	s.Matches(200, `ab\n`, "GET", "/text", "", "")
	if got := s.Get("/events", ""); got.Body != "data: x\nid: 1\n\ndata: x\nid: 2\n\n" || got.Header.Get("Content-Type") != "text/event-stream" {
		t.Errorf("GET /events answers %+v", got)
	}
	s.Stop() // then the log is complete
	if log := s.Stderr.String(); !strings.Contains(log, "Error: boom at handlers/app.ts:") {
		t.Errorf("the log is\n%s", log)
	}
}
