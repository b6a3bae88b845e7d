package fileinfo_test

import (
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"runner.example/hostabi/fileinfo"
)

func TestANameIsOneElementOfText(t *testing.T) {
	for given, want := range map[string]string{
		"photo.png":                       "photo.png",
		"../../etc/passwd":                "passwd",
		`C:\Users\ann\photo.png`:          "photo.png",
		"a/b\\c.txt":                      "c.txt",
		"":                                "file",
		".":                               "file",
		"..":                              "file",
		"folder/":                         "file",
		"  two words.txt ":                "two words.txt",
		"a\x00b\nc\x7fd\u0085e.txt":       "abcde.txt",
		"invoice\u202egpj.exe":            "invoicegpj.exe",
		"line\u2028break.txt":             "linebreak.txt",
		"größe.pdf":                       "größe.pdf",
		"bad\xffbytes.bin":                "bad\ufffdbytes.bin",
		".profile":                        ".profile",
		strings.Repeat("a", 255):          strings.Repeat("a", 255),
		strings.Repeat("a", 300):          strings.Repeat("a", 255),
		strings.Repeat("a", 300) + ".pn":  strings.Repeat("a", 252) + ".pn",
		strings.Repeat("é", 200) + ".png": strings.Repeat("é", 125) + ".png",
		"a." + strings.Repeat("b", 300):   "a." + strings.Repeat("b", 253),
		strings.Repeat("\u4e16", 100):     strings.Repeat("\u4e16", 85),
	} {
		if got := fileinfo.Name(given); got != want {
			t.Errorf("%q: got %q, want %q", given, got, want)
		}
	}
}

func TestTheTypeIsThatOfTheBytes(t *testing.T) {
	const svg = "<svg xmlns='http://www.w3.org/2000/svg'><script>alert(1)</script></svg>"
	for contents, want := range map[string]string{
		"":                              "text/plain",
		"hello":                         "text/plain",
		"\x00\x01\x02\x03":              "application/octet-stream",
		"\x89PNG\r\n\x1a\n":             "image/png",
		"\xff\xd8\xff\xe0":              "image/jpeg",
		"GIF89a":                        "image/gif",
		"%PDF-1.7":                      "application/pdf",
		"PK\x03\x04":                    "application/zip",
		`{"a":1}`:                       "application/json",
		"<!DOCTYPE html><p>hi":          "text/html",
		"<script>alert(1)</script>":     "text/html",
		" \n<!-- c --><p>hi":            "text/html",
		svg:                             "image/svg+xml",
		"\ufeff" + svg:                  "image/svg+xml",
		" \n\t" + svg:                   "image/svg+xml",
		"<!-- c -->" + svg:              "image/svg+xml",
		"<?xml version='1.0'?>\n" + svg: "image/svg+xml",
		"<?xml version='1.0'?><!-- c --><!DOCTYPE svg PUBLIC 'a' 'b'>" + svg: "image/svg+xml",
		"<x:svg xmlns:x='http://www.w3.org/2000/svg'/>":                      "image/svg+xml",
		"<?xml version='1.0'?><a><b/></a>":                                   "text/xml",
		"some <svg>":                                                         "text/plain",
	} {
		if got := fileinfo.Type([]byte(contents)); got != want {
			t.Errorf("%q: got %s, want %s", contents, got, want)
		}
	}
}

func TestADeclaredTypeIsTakenWhereBytesSayLess(t *testing.T) {
	for _, c := range []struct{ found, declared, want string }{
		{"text/plain", "", "text/plain"},
		{"text/plain", "text/markdown", "text/markdown"},
		{"text/plain", "application/json", "application/json"},
		{"text/plain", "image/png", "text/plain"},
		{"text/html", "text/markdown", "text/html"},
		{"image/png", "image/jpeg", "image/png"},
		{"application/octet-stream", "application/x-own", "application/x-own"},
		{"application/octet-stream", "text/plain", "application/octet-stream"},
		{"application/octet-stream", "image/png", "application/octet-stream"},
	} {
		if got := fileinfo.Refine(c.found, c.declared); got != c.want {
			t.Errorf("%s declared as %q: got %s, want %s", c.found, c.declared, got, c.want)
		}
	}
	for given, want := range map[string]string{
		"Image/PNG": "image/png", "text/csv; charset=utf-8": "text/csv", "text/csv; broken": "text/csv",
		"": "", "text": "", "a b/c": "", "text/" + strings.Repeat("x", 300): "",
	} {
		if got := fileinfo.MediaType(given); got != want {
			t.Errorf("%q: got %q, want %q", given, got, want)
		}
	}
}

func FuzzName(f *testing.F) {
	f.Add("a/b.txt")
	f.Add(strings.Repeat("\u4e16\xff", 200) + "..\x00")
	f.Fuzz(func(t *testing.T, given string) {
		name := fileinfo.Name(given)
		if name == "" || name == "." || name == ".." || len(name) > fileinfo.MaxName || !utf8.ValidString(name) {
			t.Errorf("%q: got %q", given, name)
		}
		if strings.ContainsAny(name, `/\`) || strings.ContainsFunc(name, unicode.IsControl) {
			t.Errorf("%q: got %q", given, name)
		}
		if again := fileinfo.Name(name); again != name {
			t.Errorf("%q becomes %q, and that %q", given, name, again)
		}
	})
}

func FuzzType(f *testing.F) {
	f.Add([]byte("<?xml version='1.0'?><svg/>"))
	f.Add([]byte("PK\x03\x04"))
	f.Fuzz(func(t *testing.T, first []byte) {
		media := fileinfo.Type(first)
		if kind, name, ok := strings.Cut(media, "/"); !ok || kind == "" || name == "" || strings.ContainsAny(media, "; \t") {
			t.Errorf("type %q", media)
		}
	})
}
