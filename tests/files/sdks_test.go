package files_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"runner.example/tests/harness"
)

const sdkSchema = `
entity Post {
  id: id
  title: string(1..200) @unique
  photo: file(4mb)?
  @@allow read, write to anonymous
}
routes("/v1", auth: none, rateLimit: none) {
  POST /posts -> createPost (upload: on, body: 4mb)
  GET /posts/:title -> readPost
  POST /posts/:title/made -> makePost
}
`

// sdks have handlers in other languages than TypeScript: createPost keeps the uploaded file of the field photo, or one
// without a field, readPost answers {title, name, size, first, last}, makePost keeps a file of 1,500,000 characters
// that JSON escapes.
var sdks = map[string]map[string]string{
	"go": {
		"handlers/posts/go.mod": "module posts.example/handlers\n\ngo 1.24\n\nrequire runner.example/sdk/go v0.0.0\n\nreplace runner.example/sdk/go => " + harness.RepoFile("sdk/go") + "\n",
		"handlers/posts/main.go": `package main

import (
	"fmt"
	"strings"

	runner "runner.example/sdk/go"
)

type post struct {
	ID    string             ` + "`json:\"id,omitempty\"`" + `
	Title string             ` + "`json:\"title\"`" + `
	Photo *runner.StoredFile ` + "`json:\"photo\"`" + `
}

func createPost(ctx *runner.Context, req *runner.Request) (runner.Response, error) {
	form, err := ctx.Upload()
	if err != nil {
		return runner.Response{}, err
	}
	photo := form.File("photo")
	if photo == nil {
		photo = form.File("")
	}
	made := post{Title: form.Get("title")}
	if made.Title == "" {
		made.Title = "raw"
	}
	if photo != nil {
		made.Photo = &photo.StoredFile
	}
	var row post
	err = runner.Insert("Post", made).Row(ctx, &row)
	return runner.Created(row), err
}

func readPost(ctx *runner.Context, req *runner.Request) (runner.Response, error) {
	var row post
	if err := runner.Query("Post").Where("title", "=", req.Param("title")).FirstOrFail(ctx, &row); err != nil {
		return runner.Response{}, err
	}
	data, err := ctx.ReadFile(*row.Photo)
	if err != nil {
		return runner.Response{}, err
	}
	return runner.OK(map[string]any{"title": row.Title, "name": row.Photo.Name, "size": len(data), "first": data[0], "last": data[len(data)-1]}), nil
}

func makePost(ctx *runner.Context, req *runner.Request) (runner.Response, error) {
	file, err := ctx.CreateFile("a.txt", "text/x-letters", strings.NewReader(strings.Repeat("\x1b", 1_500_000)))
	if err != nil {
		return runner.Response{}, err
	}
	small, err := ctx.CreateFile("small", "", strings.NewReader("small"))
	if err != nil {
		return runner.Response{}, err
	}
	var row post
	err = runner.Insert("Post", post{Title: req.Param("title"), Photo: &file}).Row(ctx, &row)
	return runner.OK(fmt.Sprint(file.Type, " ", file.Size, " ", small.Size)), err
}

//go:wasmexport createPost
func exportCreatePost() { runner.Handle(createPost) }

//go:wasmexport readPost
func exportReadPost() { runner.Handle(readPost) }

//go:wasmexport makePost
func exportMakePost() { runner.Handle(makePost) }

func main() {}
`,
	},
	"python": {
		"handlers/posts.py": `from runner import Request, StoredFile, created, file, handler, insert, ok, query


@handler
def create_post(req: Request):
    form = req.upload
    return created(insert("Post", {"title": form.get("title", "raw"), "photo": form.file("photo") or form.file()}))


@handler
def read_post(req: Request):
    row = query("Post").where("title", "=", req.params["title"]).rows()[0]
    photo = row["photo"]
    assert isinstance(photo, StoredFile)
    data = photo.read()
    return ok({"title": row["title"], "name": photo.name, "size": len(data), "first": data[0], "last": data[-1]})


@handler
def make_post(req: Request):
    made = file((b"\x1b" * 150_000 for _ in range(10)), name="a.txt", type="text/x-letters")
    small = file("small")
    insert("Post", {"title": req.params["title"], "photo": made})
    return ok(f"{made.type} {made.size} {small.size}")
`,
	},
	"c": {
		"handlers/posts/posts.c": `#include "runner.h"

RUNNER_HANDLER(createPost) {
  runner_text title = runner_form_text("title");
  runner_file photo = runner_form_file("photo");
  if (!runner_given(photo.id)) photo = runner_form_file("");
  return runner_created(runner_row(runner_insert("Post", runner_object(
      "title", runner_given(title) ? runner_string(title) : runner_str("raw"), "photo", runner_file_json(photo), NULL))), NULL);
}

/* Reads in parts. */
RUNNER_HANDLER(readPost) {
  runner_json *row = runner_row(runner_where(runner_query("Post"), "title", "=", runner_string(runner_param("title"))));
  runner_file photo = runner_as_file(runner_member(row, "photo"));
  static unsigned char part[100001];
  int64_t size = 0, first = 0, last = 0;
  for (size_t n; (n = runner_file_read_part(photo, size, part, sizeof part)) > 0; size += (int64_t)n) {
    if (size == 0) first = part[0];
    last = part[n - 1];
  }
  if ((int64_t)runner_file_read(photo).len != size) return runner_fail("it has another size as a whole");
  return runner_ok(runner_object("title", runner_member(row, "title"), "name", runner_string(photo.name),
      "size", runner_int(size), "first", runner_int(first), "last", runner_int(last), NULL));
}

RUNNER_HANDLER(makePost) {
  int64_t writer = runner_file_open("a.txt", "text/x-letters");
  static char part[150000];
  memset(part, '\x1b', sizeof part);
  for (int i = 0; i < 10; i++) runner_file_write(writer, part, sizeof part);
  runner_file made = runner_file_end(writer), small = runner_file_create("small", NULL, runner_t("small"));
  runner_row(runner_insert("Post", runner_object("title", runner_string(runner_param("title")), "photo", runner_file_json(made), NULL)));
  return runner_ok(runner_str(runner_format("%s %lld %lld", made.type.data, (long long)made.size, (long long)small.size)));
}
`,
	},
	"c++": {
		"handlers/posts/posts.cc": `#include "runner.hpp"

RUNNER_HANDLER(createPost) {
  auto form = runner::Request().form();
  auto photo = form.file("photo");
  if (!photo) photo = form.file();
  return runner::created(runner::insert("Post", runner::object({{"title", form.get("title").value_or("raw")}, {"photo", photo}})).row());
}

RUNNER_HANDLER(readPost) {
  auto row = runner::query("Post").where("title", "=", runner::Request().param("title")).first_or_fail();
  auto photo = row["photo"].file().value_or(runner::File());
  std::string bytes = photo.read();
  char last = 0;
  if (photo.read(photo.size - 1, &last, 1) != 1 || last != bytes.back()) return runner::fail("the last byte is another one");
  return runner::ok(runner::object({{"title", row["title"]}, {"name", photo.name}, {"size", bytes.size()},
                                    {"first", int(bytes.front())}, {"last", int(bytes.back())}}));
}

RUNNER_HANDLER(makePost) {
  runner::FileWriter out("a.txt", "text/x-letters");
  for (int i = 0; i < 10; i++) out.write(std::string(150000, '\x1b'));
  auto made = out.end(), small = runner::create_file("small", "small");
  runner::insert("Post", runner::object({{"title", runner::Request().param("title")}, {"photo", made}})).row();
  return runner::ok(made.type + " " + std::to_string(made.size) + " " + std::to_string(small.size));
}
`,
	},
	"assemblyscript": {
		"handlers/posts/package.json": `{"private": true, "dependencies": {"@runner/assemblyscript": "*", "assemblyscript": "0.28.20", "json-as": "1.6.0"}}`,
		"handlers/posts/posts.ts": `import { created, createFile, fields, insert, ok, query, Response, RouteRequest, StoredFile } from "@runner/assemblyscript";

@json
class Post {
  title: string = "";
  photo: StoredFile | null = null;
}

function insertPost(title: string, photo: StoredFile | null): Post {
  const post = new Post();
  post.title = title;
  post.photo = photo;
  return insert("Post", post).row<Post>();
}

export function createPost(req: RouteRequest): Response {
  const form = req.form();
  const photo = form.file("photo");
  return created(insertPost(form.has("title") ? form.get("title") : "raw", photo === null ? form.file() : photo));
}

export function readPost(req: RouteRequest): Response {
  const post = query("Post").where("title", "=", req.params["title"]).firstOrFail<Post>();
  const photo = post.photo!;
  const bytes = photo.bytes();
  const answer = fields().set("title", post.title).set("name", photo.name).set("size", bytes.length);
  return ok(answer.set("first", bytes[0]).set("last", bytes[bytes.length - 1]));
}

export function makePost(req: RouteRequest): Response {
  const made = createFile("\x1b".repeat(1500000), "a.txt", "text/x-letters");
  const small = createFile("small", "small");
  insertPost(req.params["title"], made);
  return ok(made.type + " " + made.size.toString() + " " + small.size.toString());
}
`,
	},
}

// read is what readPost answers.
type read struct {
	Title, Name       string
	Size, First, Last int
}

func answers(t *testing.T, s *harness.Server, path string, want read) {
	t.Helper()
	var got read
	if s.Want(200, &got, "GET", path, ""); got != want {
		t.Errorf("%s answers %+v, want %+v", path, got, want)
	}
}

func TestOtherLanguagesKeepAndReadFiles(t *testing.T) {
	if testing.Short() {
		t.Skip("runs compilers")
	}
	for language, sources := range sdks {
		t.Run(language, func(t *testing.T) {
			a := harness.NewApp(t, sdkSchema, "[sandbox]\nmoved_bytes = \"40mb\"\ncpu = \"10s\"\n")
			for name, text := range sources {
				a.Write(name, text)
			}
			if language == "assemblyscript" {
				compiler := harness.RepoFile("tests/conformance/guests/as/handlers/guest/node_modules")
				if _, err := os.Stat(filepath.Join(compiler, "assemblyscript")); err != nil {
					t.Fatalf("the compiler is not there: run tools/assemblyscript.sh (%v)", err)
				}
				if err := os.Symlink(compiler, a.Path("handlers/posts/node_modules")); err != nil {
					t.Fatal(err)
				}
			}
			a.Must("build")
			s := a.Serve()
			contents := "first\x00" + strings.Repeat("0123456789", 150_000) + "z"
			body, kind := formOf(part{"title", "", "", "Grüße"}, part{"photo", "a b.bin", "", contents})
			s.Want(201, nil, "POST", "/v1/posts", body, "Content-Type: "+kind)
			answers(t, s, "/v1/posts/Gr%C3%BC%C3%9Fe", read{"Grüße", "a b.bin", len(contents), 102, 122})
			s.Want(201, nil, "POST", "/v1/posts", "raw bytes", "Content-Type: image/png")
			answers(t, s, "/v1/posts/raw", read{"raw", "file", 9, 114, 115})
			if got := s.Do("POST", "/v1/posts/made/made", ""); got.Status != 200 || got.Body != `"text/x-letters 1500000 5"` {
				t.Errorf("made: %d %s", got.Status, got.Body)
			}
			answers(t, s, "/v1/posts/made", read{"made", "a.txt", 1_500_000, 27, 27})
		})
	}
}
