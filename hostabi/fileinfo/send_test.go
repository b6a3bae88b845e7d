package fileinfo_test

import (
	"mime"
	"testing"
	"unicode/utf8"

	"runner.example/hostabi/fileinfo"
)

func TestWhatABrowserRunsIsNotShown(t *testing.T) {
	for media, want := range map[string]bool{
		"image/png": true, "image/svg+xml": false, "video/mp4": true, "text/plain": true, "text/html": false,
		"text/javascript": false, "text/css": false, "application/pdf": false, "application/xml": false, "text/xml": false,
		"application/octet-stream": false, "application/xhtml+xml": false, "audio/mpeg": true, "": false, "image/": true,
	} {
		if got := fileinfo.Shown(media); got != want {
			t.Errorf("%s: %t", media, got)
		}
	}
}

func TestWhatABrowserRunsIsSandboxed(t *testing.T) {
	for media, want := range map[string]bool{
		"text/html": true, "image/svg+xml": true, "text/xml": true, "application/octet-stream": true,
		"image/png": false, "text/plain": false, "application/pdf": false,
	} {
		if got := fileinfo.Sandboxed(media); got != want {
			t.Errorf("%s: %t", media, got)
		}
	}
}

func TestTextIsSentAsUTF8(t *testing.T) {
	for media, want := range map[string]string{
		"text/plain": "text/plain; charset=utf-8", "text/plain; charset=x": "text/plain; charset=x", "image/png": "image/png",
		"text/javascript": "text/plain; charset=utf-8", "application/javascript": "text/plain; charset=utf-8",
		"Text/JavaScript ; charset=utf-8": "text/plain; charset=utf-8", "text/css": "text/css; charset=utf-8",
	} {
		if got := fileinfo.ContentType(media); got != want {
			t.Errorf("%s: %s", media, got)
		}
	}
}

func TestADispositionNamesItsFile(t *testing.T) {
	for _, row := range [][2]string{
		{"photo.png", `inline; filename="photo.png"`},
		{"a b;c=d,e'.png", `inline; filename="a b;c=d,e'.png"`},
		{"größe €.png", `inline; filename="gr__e _.png"; filename*=UTF-8''gr%C3%B6%C3%9Fe%20%E2%82%AC.png`},
		{`a"b\c.png`, `inline; filename="a_b_c.png"; filename*=UTF-8''a%22b%5Cc.png`},
		{"100%41.png", `inline; filename="100_41.png"; filename*=UTF-8''100%2541.png`},
		{"a\r\nX: b", `inline; filename="a__X: b"; filename*=UTF-8''a%0D%0AX%3A%20b`},
	} {
		if got := string(fileinfo.AppendDisposition(nil, "inline", row[0])); got != row[1] {
			t.Errorf("%q: %s, want %s", row[0], got, row[1])
		}
	}
}

// Whatever the name is, the header is one line of ASCII, from which a parser reads the same name.
func FuzzDisposition(f *testing.F) {
	for _, name := range []string{"photo.png", "größe", "a\"b\\", "%", "\r\n", "x; filename=y"} {
		f.Add(name)
	}
	f.Fuzz(func(t *testing.T, name string) {
		if !utf8.ValidString(name) || name == "" {
			t.Skip("no name")
		}
		value := fileinfo.AppendDisposition(nil, "attachment", name)
		for _, c := range value {
			if c < ' ' || c > '~' {
				t.Fatalf("%q: %q", name, value)
			}
		}
		kind, params, err := mime.ParseMediaType(string(value))
		if err != nil || kind != "attachment" || params["filename"] != name {
			t.Errorf("%q: %q is %q %v, %v", name, value, kind, params, err)
		}
	})
}
