package files_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"runner.example/tests/harness"
)

const dataSchema = `
entity Album {
  id: id
  name: string(1..200) @unique
  cover: file?
  @@allow read, write to anonymous
}
entity Post {
  id: id
  title: string(1..200) @unique
  photo: file(1kb, "image/png", "text/*")
  small: file?
  @@allow read, write to anonymous
}
entity Video {
  id: id
  film: file(100mb)
  @@allow read to anonymous
}
routes("/v1", auth: none, rateLimit: none) {
  GET /posts/:id/photo -> file(Post.photo)
}
`

// dataApp returns an app without handlers.
func dataApp(t *testing.T) *harness.App { return harness.NewApp(t, dataSchema, "") }

// fileJSON describes a file as a row does.
func fileJSON(n int, name, media, contents string) string {
	return fmt.Sprintf(`{"id":"01k4x9m2v7q8r5s6t7v8v9w%03d","name":%q,"type":%q,"size":%d,"sha256":%q}`, n, name, media, len(contents), digestOf(contents))
}

// writeContents writes a directory with contents.
func writeContents(a *harness.App, dir string, all ...string) {
	for _, contents := range all {
		a.Write(filepath.Join(dir, digestOf(contents)), contents)
	}
}

const png = "\x89PNG\r\n\x1a\n a picture"

// What is exported and imported elsewhere is equal, in each format, with and without a running server.
func TestAnImportHasTheFilesOfAnExport(t *testing.T) {
	a := dataApp(t)
	writeContents(a, "first", png, "a text", "")
	rows := fmt.Sprintf(`{"id":"01k4x9m2v7q8r5s6t7v8v9w0x1","title":"one","photo":%s,"small":%s}
{"title":"two","photo":%s,"small":null}
{"title":"three","photo":%s,"small":%s}
`, fileJSON(1, "sea.png", "image/png", png), fileJSON(2, "empty", "text/plain", ""),
		fileJSON(3, "note.md", "text/markdown", "a text"), fileJSON(1, "sea.png", "image/png", png), fileJSON(4, "note.txt", "text/plain", "a text"))
	a.Write("posts.jsonl", rows)
	s := a.Serve()
	if out := a.Must("data", "import", "Post", "posts.jsonl", "--files", "first"); out != "imported 3 rows\n" {
		t.Errorf("the import prints %q", out)
	}
	if out := a.Must("data", "export", "Post", "--out", "again.jsonl", "--files", "second"); out != "exported 3 rows to again.jsonl, and 5 files to second\n" {
		t.Errorf("the export prints %q", out)
	}
	if got := s.Get("/v1/posts/01k4x9m2v7q8r5s6t7v8v9w0x1/photo", ""); got.Status != 200 || got.Body != png {
		t.Errorf("the file of an imported row: %d %q", got.Status, got.Body)
	}
	entries, err := os.ReadDir(a.Path("second"))
	if err != nil || len(entries) != 3 {
		t.Errorf("the directory has %v, %v", entries, err)
	}
	a.Must("data", "export", "Post", "--out", "again.csv", "--files", "second") // has the contents already

	// rows of the same contents in another store, and what it exports
	want := string(mustRead(t, a.Path("again.jsonl")))
	for _, c := range []struct {
		name, rows string
		served     bool
	}{{"offline", "again.jsonl", false}, {"served", "again.jsonl", true}, {"cells", "again.csv", false}} {
		b := dataApp(t)
		for _, file := range []string{c.rows, "second/" + digestOf(png), "second/" + digestOf("a text"), "second/" + digestOf("")} {
			b.Write(file, string(mustRead(t, a.Path(file))))
		}
		b.Write("data/.keep", "")
		b.Remove("data/.keep")
		if c.served {
			b.Serve()
		}
		b.Must("data", "import", "Post", c.rows, "--files", "second")
		b.Must("data", "export", "Post", "--out", "third.jsonl", "--files", "third")
		if got := string(mustRead(t, b.Path("third.jsonl"))); got != want {
			t.Errorf("%s: the rows are\n%swant\n%s", c.name, got, want)
		}
		for _, contents := range []string{png, "a text", ""} {
			if got := mustRead(t, b.Path("third/"+digestOf(contents))); string(got) != contents {
				t.Errorf("%s: contents %q, want %q", c.name, got, contents)
			}
		}
		if out := b.Must("data", "import", "Post", c.rows, "--files", "second", "--skip-existing"); out != "imported 0 rows, skipped 3\n" {
			t.Errorf("%s: again: %q", c.name, out)
		}
	}

	// one file
	if got := a.Must("data", "get", "Post", "01k4x9m2v7q8r5s6t7v8v9w0x1", "--file", "photo"); got != png {
		t.Errorf("data get --file writes %q", got)
	}
	if out := a.Must("data", "get", "Post", "01k4x9m2v7q8r5s6t7v8v9w0x1", "--file", "photo", "--out", "got.png"); !strings.HasPrefix(out, "wrote ") {
		t.Errorf("data get --file --out prints %q", out)
	}
	if got := mustRead(t, a.Path("got.png")); string(got) != png {
		t.Errorf("data get --file --out writes %q", got)
	}
	for _, c := range []struct{ field, says string }{
		{"title", "the field of Post is not a file"}, {"phot", `did you mean "photo"`}, {"photo", "--out: open got.png: file exists"},
	} {
		if got := a.Run("data", "get", "Post", "01k4x9m2v7q8r5s6t7v8v9w0x1", "--file", c.field, "--out", "got.png"); got.Status != 3 || !strings.Contains(got.Stderr, c.says) {
			t.Errorf("data get --file %s: %d %s", c.field, got.Status, got.Stderr)
		}
	}
}

func mustRead(t *testing.T, path string) []byte {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// All rows with an error are reported with their lines, and nothing of them is kept.
func TestAnImportRefusesFilesThatARowCannotHave(t *testing.T) {
	a := dataApp(t)
	a.Serve()
	page, large := "<!doctype html><p>a page", strings.Repeat("x", 1025)
	lost, changed := "lost", "changed"
	writeContents(a, "files", png, page, large)
	a.Write("files/"+digestOf(changed), "CHANGED")
	rows := []string{
		fmt.Sprintf(`{"title":"0","photo":%s}`, fileJSON(0, "sea.png", "image/png", png)),
		fmt.Sprintf(`{"title":"1","photo":%s}`, fileJSON(1, "a", "text/plain", lost)),
		fmt.Sprintf(`{"title":"2","photo":%s}`, fileJSON(2, "a", "text/plain", changed)),
		fmt.Sprintf(`{"title":"3","photo":%s}`, fileJSON(3, "a", "text/plain", large)),
		fmt.Sprintf(`{"title":"4","photo":%s}`, strings.Replace(fileJSON(4, "a", "image/png", page), `"size":24`, `"size":25`, 1)),
		fmt.Sprintf(`{"title":"5","photo":%s}`, fileJSON(0, "sea.png", "text/plain", page)),
		`{"title":"6","photo":{"id":"01k4x9m2v7q8r5s6t7v8v9w0x1"}}`,
		fmt.Sprintf(`{"title":"7","photo":%s,"small":%s}`, fileJSON(0, "sea.png", "image/png", png), fileJSON(8, "../a", "text/plain", png)),
	}
	a.Write("posts.jsonl", strings.Join(rows, "\n"))
	got := a.Run("data", "import", "Post", "posts.jsonl", "--files", "files")
	want := strings.Join([]string{
		"posts.jsonl:2: photo: the contents are missing: files has no file " + digestOf(lost),
		"posts.jsonl:3: photo: " + filepath.Join("files", digestOf(changed)) + ": the bytes have the SHA-256 " + digestOf("CHANGED") + ", not " + digestOf(changed) + ": they were changed",
		"posts.jsonl:4: photo must be at most 1024 bytes, and the file has 1025",
		"posts.jsonl:5: photo: " + filepath.Join("files", digestOf(page)) + " has 24 bytes, and the row says 25",
		"posts.jsonl:6: photo has the id of another file, 01k4x9m2v7q8r5s6t7v8v9w000",
		"posts.jsonl:7: photo must be a file: an object with id, name, type, size and sha256",
		"posts.jsonl:8: small must have a name that is not a path",
	}, "\nrunner: error: ")
	if got.Status != 3 || strings.TrimSpace(strings.TrimPrefix(got.Stderr, "runner: error: ")) != want {
		t.Errorf("status %d, stderr\n%swant\n%s", got.Status, got.Stderr, want)
	}
	if out := a.Must("data", "list", "Post", "--json"); strings.TrimSpace(out) != "[]" {
		t.Errorf("after the import there are rows: %s", out)
	}

	// the type is that of the bytes
	a.Write("page.jsonl", fmt.Sprintf(`{"name":"0","cover":%s}`, fileJSON(0, "a.png", "image/png", page)))
	a.Must("data", "import", "Album", "page.jsonl", "--files", "files")
	if out := a.Must("data", "list", "Album", "--json"); !strings.Contains(out, `"type": "text/html"`) {
		t.Errorf("a page that is called a picture: %s", out)
	}
	for name, photo := range map[string]string{
		"a type": fileJSON(0, "a.png", "image/png", "%PDF-1.7"), "no directory": fileJSON(0, "a.png", "image/png", lost),
	} {
		a.Write("one.jsonl", fmt.Sprintf(`{"title":"0","photo":%s}`, photo))
		writeContents(a, "files", "%PDF-1.7")
		args, says := []string{"--files", "files"}, "one.jsonl:1: values.photo: must be of type image/png or text/*, and the file is of type application/pdf"
		if name == "no directory" {
			args, says = nil, "one.jsonl:1: photo: the contents with the SHA-256 "+digestOf(lost)+" are missing: name the directory that has them with --files"
		}
		if got := a.Run(append([]string{"data", "import", "Post", "one.jsonl"}, args...)...); got.Status != 3 || !strings.Contains(got.Stderr, says) {
			t.Errorf("%s: %d %s", name, got.Status, got.Stderr)
		}
	}
	if got := a.Run("data", "import", "Post", "posts.jsonl", "--files", "missing"); got.Status != 3 || !strings.Contains(got.Stderr, "--files: ") {
		t.Errorf("without the directory: %d %s", got.Status, got.Stderr)
	}
}

// TestTheMemoryOfFilesOfRowsDoesNotDependOnTheirSize moves a file of 50 MB through the server and without one.
func TestTheMemoryOfFilesOfRowsDoesNotDependOnTheirSize(t *testing.T) {
	const id, size = "01k4x9m2v7q8r5s6t7v8v9w0x1", 50 << 20
	row := func(a *harness.App, id string, size int64) {
		a.Write("films/.keep", "")
		part := a.Path("films/part")
		file, err := os.Create(part)
		if err != nil {
			t.Fatal(err)
		}
		sum := sha256.New()
		if _, err := io.Copy(io.MultiWriter(file, sum), io.LimitReader(zeros{}, size)); err != nil {
			t.Fatal(err)
		}
		if err := file.Close(); err != nil {
			t.Fatal(err)
		}
		digest := hex.EncodeToString(sum.Sum(nil))
		if err := os.Rename(part, a.Path("films/"+digest)); err != nil {
			t.Fatal(err)
		}
		text, err := json.Marshal(map[string]any{"id": id, "film": map[string]any{"id": id, "name": "film", "type": "application/octet-stream", "size": size, "sha256": digest}})
		if err != nil {
			t.Fatal(err)
		}
		a.Write("videos.jsonl", string(text))
	}
	for _, served := range []bool{true, false} {
		a := dataApp(t)
		a.Write("data/.keep", "")
		a.Remove("data/.keep")
		var s *harness.Server
		if served {
			s = a.Serve()
		}
		peak := 0
		run := func(args ...string) {
			t.Helper()
			got := a.Run(args...)
			if got.Status != 0 {
				t.Fatalf("runner %s: %d %s", strings.Join(args, " "), got.Status, got.Stderr)
			}
			peak = max(peak, got.PeakBytes)
		}
		row(a, "01k4x9m2v7q8r5s6t7v8v9w0x0", 1)
		run("data", "import", "Video", "videos.jsonl", "--files", "films")
		run("data", "export", "Video", "--out", "one.jsonl", "--files", "one")
		small := peak
		var before int64
		if served {
			before = int64(s.Resources().Bytes)
		}
		row(a, id, size)
		run("data", "import", "Video", "videos.jsonl", "--files", "films")
		run("data", "export", "Video", "--out", "again.jsonl", "--files", "again")
		run("data", "get", "Video", id, "--file", "film", "--out", "film")
		info, err := os.Stat(a.Path("film"))
		if err != nil || info.Size() != size {
			t.Errorf("the file has %v, %v", info, err)
		}
		if grown := peak - small; grown > 16<<20 {
			t.Errorf("served=%t: the commands need %d bytes more, and %d with a file of a byte", served, grown, small)
		}
		if served {
			if grown := int64(s.Resources().PeakBytes) - before; grown > 16<<20 {
				t.Errorf("the resident memory of the server grows by %d bytes, from %d", grown, before)
			}
		}
		same := bytes.Equal(mustRead(t, a.Path("film")), make([]byte, size))
		if !same {
			t.Error("the contents differ")
		}
	}
}
