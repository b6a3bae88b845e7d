package files_test

import (
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
// without a field, readPost answers {title, name, size, first, last}, makePost keeps a file of 1,500,000 letters a.
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
	file, err := ctx.CreateFile("a.txt", "text/x-letters", strings.NewReader(strings.Repeat("a", 1_500_000)))
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
    made = file((b"a" * 150_000 for _ in range(10)), name="a.txt", type="text/x-letters")
    small = file("small")
    insert("Post", {"title": req.params["title"], "photo": made})
    return ok(f"{made.type} {made.size} {small.size}")
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
			answers(t, s, "/v1/posts/made", read{"made", "a.txt", 1_500_000, 97, 97})
		})
	}
}
