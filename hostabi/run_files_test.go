package hostabi_test

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"runtime"
	"strings"
	"testing"

	"runner.example/hostabi"
	"runner.example/hostabi/abi"
	"runner.example/schema"
	"runner.example/state/store"
)

// blobs are the digests of the store's blobs.
func (g *guest) blobs() string {
	g.t.Helper()
	all, err := g.store.Blobs()
	if err != nil {
		g.t.Fatal(err)
	}
	var digests []string
	for _, b := range all {
		digests = append(digests, b.Digest.String()[:8])
	}
	return strings.Join(digests, " ")
}

// must runs an operation that succeeds.
func (g *guest) must(op, args string) map[string]any {
	g.t.Helper()
	result, n := g.op(op, args)
	if n < 0 {
		g.t.Fatalf("%s %s: %v", op, args, result)
	}
	return result
}

// dataOf are the bytes of a result with data.
func dataOf(result map[string]any) string {
	if text, ok := result["data"].(string); ok {
		return text
	}
	data, _ := base64.StdEncoding.DecodeString(result["data"].(map[string]any)["base64"].(string))
	return string(data)
}

func digestOf(contents string) string {
	sum := sha256.Sum256([]byte(contents))
	return hex.EncodeToString(sum[:])
}

func TestARunMakesAndReadsFiles(t *testing.T) {
	g := newGuest(t, hostabi.Limits{})
	const png = "\x89PNG\r\n\x1a\n and more"
	made := g.must("file.create", fmt.Sprintf(`{"name":"../a.png","type":"text/html","data":{"base64":%q}}`, base64.StdEncoding.EncodeToString([]byte(png))))
	id := made["id"].(string)
	if !schema.IsULID(id) || made["name"] != "a.png" || made["type"] != "image/png" || made["size"] != float64(len(png)) || made["sha256"] != digestOf(png) {
		t.Errorf("made %v", made)
	}
	text := g.must("file.create", `{"name":"notes","type":"Text/Markdown; charset=utf-8","data":"# Notes"}`)
	if text["type"] != "text/markdown" {
		t.Errorf("made %v", text)
	}
	for _, c := range []struct {
		args, want string
		end        bool
	}{
		{`{"id":%q}`, png, true},
		{`{"id":%q,"offset":0,"length":8}`, png[:8], false},
		{`{"id":%q,"offset":8,"length":12}`, png[8:], true},
		{`{"id":%q,"offset":16}`, "e", true},
		{`{"id":%q,"offset":17}`, "", true},
		{`{"id":%q,"offset":1000}`, "", true},
	} {
		got := g.must("file.read", fmt.Sprintf(c.args, id))
		if dataOf(got) != c.want || (got["end"] == true) != c.end {
			t.Errorf("%s: got %q, end %v", c.args, dataOf(got), got["end"])
		}
	}
	before := g.blobs()
	if g.call.Begin(); g.blobs() != before { // another run of the same transaction
		t.Errorf("the blobs %s became %s", before, g.blobs())
	}
	if got, n := g.op("file.read", fmt.Sprintf(`{"id":%q}`, id)); n != notFound {
		t.Errorf("another run reads the file: %v", got)
	}
	if g.call.ReleaseFiles(); g.blobs() != "" {
		t.Errorf("after the request there are the blobs %s", g.blobs())
	}
}

func TestAFileIsWrittenInParts(t *testing.T) {
	before := runtime.NumGoroutine()
	g := newGuest(t, hostabi.Limits{})
	first, second := g.must("file.open", `{"name":"a"}`)["writer"], g.must("file.open", `{"name":"b"}`)["writer"]
	part := strings.Repeat("0123456789", 10_000)
	for range 3 {
		g.must("file.write", fmt.Sprintf(`{"writer":%v,"data":%q}`, first, part))
	}
	made := g.must("file.end", fmt.Sprintf(`{"writer":%v}`, first))
	if made["size"] != 300_000.0 || made["sha256"] != digestOf(strings.Repeat(part, 3)) || made["name"] != "a" || made["type"] != "text/plain" {
		t.Errorf("made %v", made)
	}
	if got := dataOf(g.must("file.read", fmt.Sprintf(`{"id":%q,"offset":299995}`, made["id"]))); got != "56789" {
		t.Errorf("read %q", got)
	}
	g.must("file.write", fmt.Sprintf(`{"writer":%v,"data":"never ended"}`, second))
	g.call.End()
	if g.call.ReleaseFiles(); g.blobs() != "" {
		t.Errorf("after the request there are the blobs %s", g.blobs())
	}
	if got, n := g.op("file.end", fmt.Sprintf(`{"writer":%v}`, second)); n != invalid {
		t.Errorf("a file is ended in another run: %v", got)
	}
	t.Cleanup(func() {
		if now := runtime.NumGoroutine(); now > before+20 {
			t.Errorf("%d goroutines, before %d", now, before)
		}
	})
}

func TestTheFormOfTheRequestIsRead(t *testing.T) {
	g := newGuest(t, hostabi.Limits{})
	if got, n := g.op("request.form", `{}`); n != denied {
		t.Errorf("without a form: %v", got)
	}
	info, release, err := g.store.PutPinned(g.call.Context, strings.NewReader("contents"))
	if err != nil {
		t.Fatal(err)
	}
	defer release()
	const id = "01j000000000000000000000ab"
	g.call.Form = &hostabi.Form{
		Fields: [][2]string{{"title", "<b>"}, {"title", "ü"}},
		Files:  []hostabi.FormFile{{File: schema.File{ID: id, Name: "a.txt", Type: "text/plain", Size: 8, SHA256: info.Digest}, Field: "photo", Declared: "image/png"}},
	}
	want := fmt.Sprintf(`{"fields":[["title","\u003cb\u003e"],["title","ü"]],"files":[{"field":"photo","id":%q,"name":"a.txt","type":"text/plain","size":8,"sha256":%q,"declared":"image/png"}]}`,
		id, digestOf("contents"))
	if g.do("call", "request.form", `{}`); true {
		if got, _ := g.get("call_result", 0); got != want {
			t.Errorf("got %s\nwant %s", got, want)
		}
	}
	if got := dataOf(g.must("file.read", fmt.Sprintf(`{"id":%q}`, id))); got != "contents" {
		t.Errorf("read %q", got)
	}
	if got, n := g.op("file.read", `{"id":"01j000000000000000000000ac"}`); n != notFound {
		t.Errorf("an unknown file is read: %v", got)
	}
	g.call.Form = &hostabi.Form{}
	if g.do("call", "request.form", `{}`); true {
		if got, _ := g.get("call_result", 0); got != `{"fields":[],"files":[]}` {
			t.Errorf("an empty form is %s", got)
		}
	}
}

func TestArgumentsOfFilesAreChecked(t *testing.T) {
	g := newGuest(t, hostabi.Limits{})
	made := g.must("file.create", `{"name":"a","data":"x"}`)
	for _, c := range []struct{ op, args, want string }{
		{"request.form", `{"a":1}`, `request.form: unknown member "a"`},
		{"file.create", `{"data":"x"}`, `file.create: member "name" is missing`},
		{"file.create", `{"name":"a"}`, `file.create: member "data" is missing`},
		{"file.create", `{"name":1,"data":"x"}`, `file.create: member "name" must be a string`},
		{"file.create", `{"name":"a","data":1}`, `file.create: member "data" must be a string or {"base64":"…"}`},
		{"file.create", `{"name":"a","data":"x","type":"text"}`, `file.create: member "type" must be a media type, such as text/csv`},
		{"file.open", `{}`, `file.open: member "name" is missing`},
		{"file.open", `{"name":"a","data":"x"}`, `file.open: unknown member "data"`},
		{"file.write", `{"data":"x"}`, `file.write: member "writer" is missing`},
		{"file.write", `{"writer":1,"data":"x"}`, `file.write: member "writer" is not the number of an open file`},
		{"file.end", `{"writer":0}`, `file.end: member "writer" is not the number of an open file`},
		{"file.read", `{}`, `file.read: member "id" is missing`},
		{"file.read", `{"id":"x"}`, `file.read: the run does not know this file: use one of its form, one that it has made, or one of a row that it has read`},
		{"file.read", fmt.Sprintf(`{"id":%q,"offset":-1}`, made["id"]), `file.read: member "offset" must not be negative`},
		{"file.read", fmt.Sprintf(`{"id":%q,"length":0}`, made["id"]), `file.read: member "length" must be from 1 to 1048576`},
		{"file.read", fmt.Sprintf(`{"id":%q,"length":1048577}`, made["id"]), `file.read: member "length" must be from 1 to 1048576`},
	} {
		got, n := g.op(c.op, c.args)
		message, _ := got["message"].(string)
		if n >= 0 || !strings.HasPrefix(message, c.want) {
			t.Errorf("%s %s: %d %v, want %s", c.op, c.args, n, got, c.want)
		}
	}
}

func TestTheFilesOfARunAreLimited(t *testing.T) {
	g := newGuest(t, hostabi.Limits{})
	for range 8 {
		g.must("file.open", `{"name":"a"}`)
	}
	if got, n := g.op("file.open", `{"name":"a"}`); n != limit {
		t.Errorf("a ninth file is open: %v", got)
	}
	for range 56 {
		g.must("file.create", `{"name":"a","data":"x"}`)
	}
	g.must("file.end", `{"writer":1}`)
	if got, n := g.op("file.create", `{"name":"a","data":"x"}`); n != limit || got["message"] != "file.create: a request may make at most 64 files" {
		t.Errorf("a 65th file is made: %v", got)
	}
	if got, n := g.op("file.open", `{"name":"a"}`); n != limit {
		t.Errorf("a 65th file is begun: %v", got)
	}
	g.call.ReleaseFiles()
}

func TestAFullDiskEndsTheFileAndNotTheRun(t *testing.T) {
	g := newGuest(t, hostabi.Limits{})
	if err := g.store.Close(); err != nil {
		t.Fatal(err)
	}
	if got, n := g.op("file.create", `{"name":"a","data":"x"}`); n != int32(abi.Unavailable) {
		t.Errorf("a closed store: %d %v", n, got)
	}
	writer := g.must("file.open", `{"name":"a"}`)["writer"]
	if got, n := g.op("file.end", fmt.Sprintf(`{"writer":%v}`, writer)); n != int32(abi.Unavailable) {
		t.Errorf("a closed store: %d %v", n, got)
	}
}

func TestAFileIsReadFromTheStoreThatHasIt(t *testing.T) {
	g := newGuest(t, hostabi.Limits{})
	made := g.must("file.create", `{"name":"a","data":"x"}`)
	digest, err := store.ParseDigest(made["sha256"].(string))
	if err != nil {
		t.Fatal(err)
	}
	g.call.ReleaseFiles()
	g.call.Form = &hostabi.Form{Files: []hostabi.FormFile{{File: schema.File{ID: made["id"].(string), Name: "a", Type: "text/plain", Size: 1, SHA256: digest}}}}
	if got, n := g.op("file.read", fmt.Sprintf(`{"id":%q}`, made["id"])); n != notFound || got["message"] != "file.read: the contents of the file are gone" {
		t.Errorf("contents that are not there: %v", got)
	}
}
