package schema_test

import (
	"fmt"
	"strings"
	"testing"

	"runner.example/schema"
)

const fileDigest = "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"

// fileType compiles an entity with a field of the declared type and returns the type.
func fileType(t *testing.T, declared string) *schema.Type {
	t.Helper()
	s, found := compileAll(fmt.Sprintf("entity E { id: id f: %s @@allow read to anonymous }", declared))
	if s == nil {
		t.Fatalf("%s: %v", declared, found)
	}
	return &s.Entity("E").Field("f").Type
}

func fileText(name, media string, size int64) string {
	return fmt.Sprintf(`{"id":"01j9zzzzzzzzzzzzzzzzzzzzza","name":%q,"type":%q,"size":%d,"sha256":"%s"}`, name, media, size, fileDigest)
}

func TestAFileIsReadAsItIsWritten(t *testing.T) {
	any, images := fileType(t, "file?"), fileType(t, `file(1kb, "IMAGE/png", "text/*")`)
	for _, tt := range []struct {
		typ  *schema.Type
		raw  string
		want string // an error's text; empty: it is read
	}{
		{any, fileText("a.bin", "application/octet-stream", schema.DefaultFileBytes), ""},
		{any, fileText("größe \U0001f600.txt", "text/plain; charset=utf-8", 0), ""},
		{any, fileText("a", "a/b", schema.DefaultFileBytes+1), "must be at most 10485760 bytes, and the file has 10485761"},
		{any, "null", ""},
		{images, fileText("a", "image/png", 1024), ""},
		{images, fileText("a", "text/html; charset=utf-8", 1), ""},
		{images, fileText("a", "Image/PNG", 1), ""},
		{images, fileText("a", "image/png", 1025), "must be at most 1024 bytes, and the file has 1025"},
		{images, fileText("a", "image/pngx", 1), "must be of type image/png or text/*, and the file is of type image/pngx"},
		{images, fileText("a", "application/text", 1), "must be of type image/png or text/*, and the file is of type application/text"},
		{images, "null", "must not be null"},
		{any, fileText("", "a/b", 1), "must have a name of 1 to 255 bytes"},
		{any, fileText(strings.Repeat("a", 255), "a/b", 1), ""},
		{any, fileText(strings.Repeat("a", 256), "a/b", 1), "must have a name of 1 to 255 bytes"},
		{any, fileText("a/b", "a/b", 1), "must have a name that is not a path"},
		{any, fileText(`a\b`, "a/b", 1), "must have a name that is not a path"},
		{any, fileText("..", "a/b", 1), "must have a name that is not a path"},
		{any, fileText("a\nb", "a/b", 1), "must have a name without control characters, and without those that change the direction of text"},
		{any, fileText("a\u0085b", "a/b", 1), "must have a name without control characters, and without those that change the direction of text"},
		{any, fileText("a\u202eb", "a/b", 1), "must have a name without control characters, and without those that change the direction of text"},
		{any, fileText("a", "", 1), "must have a type of 1 to 255 bytes"},
		{any, fileText("a", "a/b", -1), "must have a size from 0 to 2^53-1"},
		{any, strings.Replace(fileText("a", "a/b", 1), "01j9", "01J9", 1), "must have an id: 26 lower-case letters and digits"},
		{any, strings.Replace(fileText("a", "a/b", 1), fileDigest, strings.ToUpper(fileDigest), 1), "must have a sha256 of 64 hexadecimal digits, lower case"},
		{any, strings.Replace(fileText("a", "a/b", 1), fileDigest, fileDigest[2:], 1), "must have a sha256 of 64 hexadecimal digits, lower case"},
		{any, strings.Replace(fileText("a", "a/b", 1), `"size":1,`, "", 1), "must be a file: an object with id, name, type, size and sha256"},
		{any, strings.Replace(fileText("a", "a/b", 1), `"size":1,`, `"size":1,"path":"/",`, 1), "must be a file: an object with id, name, type, size and sha256"},
		{any, `"a"`, "must be a file: an object with id, name, type, size and sha256"},
		{any, `{`, "must be a file: an object with id, name, type, size and sha256"},
	} {
		v, err := tt.typ.Parse([]byte(tt.raw))
		switch {
		case tt.want != "":
			if err == nil || err.Error() != tt.want {
				t.Errorf("%s: %v, want %s", tt.raw, err, tt.want)
			}
			continue
		case err != nil:
			t.Errorf("%s: %v", tt.raw, err)
			continue
		case v.IsNull():
			continue
		}
		again, err := tt.typ.Parse(tt.typ.AppendJSON(nil, v))
		if err != nil || !again.Equal(v) || again.File() != v.File() {
			t.Errorf("%s: read as %v, then as %v, %v", tt.raw, v.File(), again.File(), err)
		}
		unpacked, ok := schema.UnpackFile(v.File().Size, v.Text())
		if !ok || !unpacked.Equal(v) || unpacked.File() != v.File() {
			t.Errorf("%s: unpacked as %v, %v", tt.raw, unpacked.File(), ok)
		}
		if got := schema.FileValue(v.File()); !got.Equal(v) {
			t.Errorf("%s: FileValue makes %v", tt.raw, got.File())
		}
	}
}

func FuzzUnpackFileReturnsOnlyValidFiles(f *testing.F) {
	v, err := fileTypeOf("file").Parse([]byte(fileText("a", "a/b", 1)))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(int64(1), v.Text())
	f.Add(int64(0), strings.Repeat("\xff", 200))
	f.Fuzz(func(t *testing.T, size int64, text string) {
		v, ok := schema.UnpackFile(size, text)
		if !ok {
			return
		}
		file := v.File()
		if err := file.Check(); err != nil || !schema.FileValue(file).Equal(v) {
			t.Errorf("unpacked as %+v, %v", file, err)
		}
	})
}

// fileTypeOf is the type of a file without declared bounds.
func fileTypeOf(name string) *schema.Type { return &schema.Type{Kind: schema.BuiltinKind(name)} }

func TestRulesReadTheMembersOfFiles(t *testing.T) {
	const world = `entity Post {
  id: id
  photo: file?
  scan: file?
  of: Post?
  @@allow read to anonymous when %s
}`
	photo, err := fileTypeOf("file").Parse([]byte(fileText("a.png", "image/png", 2000)))
	if err != nil {
		t.Fatal(err)
	}
	for rule, want := range map[string]schema.Truth{
		`photo.size < 2kb`:                                      schema.True,
		`photo.size > 2000`:                                     schema.False,
		`photo.type == "image/png"`:                             schema.True,
		`photo.type in ["image/gif", "image/png"]`:              schema.True,
		`photo.type startsWith "image/" and scan == null`:       schema.True,
		`photo.name contains "png"`:                             schema.True,
		`photo == null`:                                         schema.False,
		`photo == scan`:                                         schema.False,
		`photo == photo`:                                        schema.True,
		`scan.size < 1kb`:                                       schema.False,
		`scan.size == null`:                                     schema.True,
		`not (scan.type == "image/png")`:                        schema.True,
		`of.photo.size == 2000 and of.photo.name == photo.name`: schema.True,
	} {
		s, found := compileAll(fmt.Sprintf(world, rule))
		if s == nil {
			t.Fatalf("%s: %v", rule, found)
		}
		post := s.Entity("Post")
		row := []schema.Value{{}, photo, {}, schema.TextValue("01j9zzzzzzzzzzzzzzzzzzzzza")}
		input := schema.RuleInput{Row: row, Related: func(_ []schema.Value, _ *schema.Field, _ string, want *schema.Field) (schema.Value, error) {
			return row[want.Pos], nil
		}}
		if got, err := post.Policies[0].When.Eval(&input); got != want || err != nil {
			t.Errorf("%s is %v, %v; want %v", rule, got, err, want)
		}
	}
}
