package content_test

import (
	"bytes"
	"fmt"
	"io"
	"mime"
	"mime/multipart"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"
	"time"

	"runner.example/runtime/content"
)

// modified has a fraction of a second, which headers do not have.
var modified = time.Date(2026, 3, 4, 5, 6, 7, 800, time.UTC)

const (
	before = "Wed, 04 Mar 2026 05:06:06 GMT"
	same   = "Wed, 04 Mar 2026 05:06:07 GMT"
	after  = "Wed, 04 Mar 2026 05:06:08 GMT"
)

// headers are those of a request.
type headers map[string]string

func (h headers) request(method string) *content.Request {
	value := func(name string) []byte { return []byte(h[name]) }
	return &content.Request{
		HeadOnly: method == "HEAD",
		IfMatch:  value("If-Match"), IfNoneMatch: value("If-None-Match"),
		IfModifiedSince: value("If-Modified-Since"), IfUnmodifiedSince: value("If-Unmodified-Since"),
		IfRange: value("If-Range"), Range: value("Range"),
	}
}

func text(size int) []byte {
	b := make([]byte, size)
	for i := range b {
		b[i] = byte('a' + i%26)
	}
	return b
}

// body joins the parts of an answer.
func body(t testing.TB, a content.Answer, of []byte) []byte {
	t.Helper()
	var b []byte
	for _, p := range a.Parts {
		b = append(append(b, p.Head...), of[p.From:p.From+p.Size]...)
	}
	if int64(len(b)) != a.Length {
		t.Errorf("the length is %d, and the parts have %d bytes", a.Length, len(b))
	}
	return b
}

// parts reads a body of several ranges: the range, type and bytes of each.
func parts(t testing.TB, contentType string, b []byte) (all []string) {
	t.Helper()
	media, params, err := mime.ParseMediaType(contentType)
	if err != nil || media != "multipart/byteranges" {
		t.Fatalf("type %q: %v", contentType, err)
	}
	for r := multipart.NewReader(bytes.NewReader(b), params["boundary"]); ; {
		p, err := r.NextRawPart()
		if err == io.EOF {
			return all
		}
		if err != nil {
			t.Fatalf("part %d of %q: %v", len(all), b, err)
		}
		got, err := io.ReadAll(p)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, fmt.Sprintf("%s %s %s", p.Header.Get("Content-Range"), p.Header.Get("Content-Type"), got))
	}
}

func TestTheRangeHeaderChoosesTheBytes(t *testing.T) {
	many := strings.Repeat("0-0,", 63)
	for _, row := range []struct {
		size   int
		header string
		status int
		want   string
	}{
		{26, "", 200, ""},
		{26, "bytes=0-0", 206, "bytes 0-0/26"},
		{26, "bytes=25-", 206, "bytes 25-25/26"},
		{26, "bytes=20-99", 206, "bytes 20-25/26"},
		{26, "bytes=-1", 206, "bytes 25-25/26"},
		{26, "bytes=-99", 206, "bytes 0-25/26"},
		{26, "bytes=5-99999999999999999999999999", 206, "bytes 5-25/26"},
		{26, "Bytes = 0-0", 200, ""},
		{26, "BYTES=0-0", 206, "bytes 0-0/26"},
		{26, "bytes= 0 - 0 ,", 206, "bytes 0-0/26"},
		{26, "bytes=26-", 416, "bytes */26"},
		{26, "bytes=-0", 416, "bytes */26"},
		{26, "bytes=99999999999999999999999999-", 416, "bytes */26"},
		{26, "bytes=2-1", 416, "bytes */26"},
		{26, "bytes=x-1", 416, "bytes */26"},
		{26, "bytes=1-+2", 416, "bytes */26"},
		{26, "bytes=--1", 416, "bytes */26"},
		{26, "bytes=1", 416, "bytes */26"},
		{26, "bytes=", 200, ""},
		{26, "bytes=,,", 200, ""},
		{26, "lines=0-0", 200, ""},
		{26, "bytes", 200, ""},
		{26, "bytes=30-,1-1", 206, "bytes 1-1/26"},
		{26, "bytes=0-0,-1", 206, "bytes 0-0/26 text/plain a|bytes 25-25/26 text/plain z"},
		{26, "bytes=3-4,1-2", 206, "bytes 3-4/26 text/plain de|bytes 1-2/26 text/plain bc"},
		{26, "bytes=0-19,10-25", 200, ""}, // more than all
		{100, "bytes=" + many + "0-0", 206, strings.TrimSuffix(strings.Repeat("bytes 0-0/100 text/plain a|", 64), "|")},
		{100, "bytes=" + many + "0-0,1-1", 200, ""},
		{0, "bytes=0-", 200, ""},
		{0, "bytes=-5", 200, ""},
		{0, "bytes=5", 416, "bytes */0"},
	} {
		c := content.Content{Size: int64(row.size), Type: "text/plain"}
		a := c.Answer(headers{"Range": row.header}.request("GET"))
		got := a.Range
		if len(a.Parts) > 1 {
			got = strings.Join(parts(t, a.Type, body(t, a, text(row.size))), "|")
		} else {
			body(t, a, text(row.size))
		}
		if a.Status != row.status || got != row.want {
			t.Errorf("%d bytes, Range %.60q: %d %.200q, want %d %.200q", row.size, row.header, a.Status, got, row.status, row.want)
		}
	}
}

func TestConditionsDecideTheStatus(t *testing.T) {
	for _, row := range []struct {
		tag  string
		h    headers
		want int
	}{
		{`"a"`, headers{"If-None-Match": `"b", W/"a"`}, 304},
		{`"a"`, headers{"If-None-Match": `"b"`, "If-Modified-Since": after}, 200}, // the tag decides alone
		{`"a"`, headers{"If-None-Match": `*`}, 304},
		{"", headers{"If-None-Match": `*`}, 304},
		{"", headers{"If-None-Match": `""`}, 200},
		{`"a"`, headers{"If-None-Match": `a`}, 200},
		{`"a"`, headers{"If-None-Match": `"b" "a"`}, 304},
		{`"a"`, headers{"If-Match": `"b", "a"`}, 200},
		{`"a"`, headers{"If-Match": `W/"a"`}, 412},
		{`"a"`, headers{"If-Match": `"b"`, "If-None-Match": `"a"`}, 412},
		{`"a"`, headers{"If-Match": `"a"`, "If-None-Match": `"a"`, "If-Unmodified-Since": before}, 304},
		{`"a"`, headers{"If-Unmodified-Since": before}, 412},
		{`"a"`, headers{"If-Unmodified-Since": same}, 200},
		{`"a"`, headers{"If-Unmodified-Since": "yesterday"}, 200},
		{`"a"`, headers{"If-Modified-Since": before}, 200},
		{`"a"`, headers{"If-Modified-Since": same}, 304},
		{`"a"`, headers{"If-Modified-Since": "Wednesday, 04-Mar-26 05:06:07 GMT"}, 304},
		{`"a"`, headers{"Range": "bytes=0-0", "If-Range": `"a"`}, 206},
		{`"a"`, headers{"Range": "bytes=0-0", "If-Range": `W/"a"`}, 200},
		{`"a"`, headers{"Range": "bytes=0-0", "If-Range": `"b"`}, 200},
		{`"a"`, headers{"Range": "bytes=0-0", "If-Range": same}, 206},
		{`"a"`, headers{"Range": "bytes=0-0", "If-Range": after}, 200},
		{`"a"`, headers{"Range": "bytes=99-", "If-Range": `"b"`}, 200},
		{`"a"`, headers{"Range": "bytes=99-", "If-None-Match": `"a"`}, 304},
	} {
		c := content.Content{Size: 26, Type: "text/plain", ETag: row.tag, Modified: modified}
		if a := c.Answer(row.h.request("GET")); a.Status != row.want {
			t.Errorf("%s, %v: %d, want %d", row.tag, row.h, a.Status, row.want)
		}
	}
	timeless := content.Content{Size: 26}
	for _, name := range []string{"If-Unmodified-Since", "If-Modified-Since"} {
		if a := timeless.Answer(headers{name: before}.request("GET")); a.Status != 200 {
			t.Errorf("a content without a time, %s: %d", name, a.Status)
		}
	}
	c := content.Content{Size: 26}
	if a := c.Answer(headers{"Range": "bytes=0-0"}.request("HEAD")); a.Status != 200 || a.Length != 26 {
		t.Errorf("HEAD with Range: %d, %d bytes", a.Status, a.Length)
	}
}

// differs matches Range headers for which net/http has another answer.
var differs = []*regexp.Regexp{
	regexp.MustCompile(`\+`),                        // net/http accepts a sign
	regexp.MustCompile(`[0-9]{18}`),                 // net/http refuses numbers above 2^63
	regexp.MustCompile(`(^|[=,])\s*-\s*0+\s*(,|$)`), // net/http answers the last 0 bytes
}

// Whatever the headers are, the answer is that of http.ServeContent.
func FuzzAnswerIsThatOfServeContent(f *testing.F) {
	f.Add(false, "", "", "", "", "", "bytes=0-0,-1", uint16(26))
	f.Add(false, `"a"`, "", "", "", `"a"`, "bytes=1-", uint16(26))
	f.Add(true, "", `W/"a", "b"`, "", "", "", "", uint16(1))
	f.Add(false, "", "", same, "", "", "bytes=5-", uint16(3))
	f.Add(false, "", "", "", before, same, "bytes=0-0,1-1,2-2", uint16(0))
	f.Add(false, `*`, `"b",`, after, after, before, "bytes=-5", uint16(300))
	f.Fuzz(func(t *testing.T, head bool, ifMatch, ifNoneMatch, ifModified, ifUnmodified, ifRange, ranges string, length uint16) {
		const unit = "bytes="
		if ranges != "" && !strings.HasPrefix(ranges, unit) || head && ranges != "" {
			t.Skip("net/http refuses other units, and has ranges of a HEAD")
		}
		for _, r := range differs {
			if r.MatchString(ranges) {
				t.Skip("net/http differs")
			}
		}
		size := int(length % 1000)
		if strings.Count(ranges, ",") >= 64 || size == 0 && ranges != "" {
			t.Skip("net/http has no limit, and ranges of nothing")
		}
		h := headers{"If-Match": ifMatch, "If-None-Match": ifNoneMatch, "If-Modified-Since": ifModified,
			"If-Unmodified-Since": ifUnmodified, "If-Range": ifRange, "Range": ranges}
		r := httptest.NewRequest("GET", "/", nil)
		if head {
			r.Method = "HEAD"
		}
		for name, value := range h {
			if strings.ContainsAny(value, "\r\n") {
				t.Skip("a header is one line")
			}
			r.Header.Set(name, value)
		}
		of := text(size)
		w := httptest.NewRecorder()
		w.Header().Set("ETag", `"a"`)
		w.Header().Set("Content-Type", "text/x")
		http.ServeContent(w, r, "", modified, bytes.NewReader(of))

		c := content.Content{Size: int64(size), Type: "text/x", ETag: `"a"`, Modified: modified}
		a := c.Answer(h.request(r.Method))
		if a.Status != w.Code {
			t.Fatalf("%v of %d bytes: %d, want %d", h, size, a.Status, w.Code)
		}
		if want := w.Header().Get("Content-Range"); want != "" && a.Range != want {
			t.Errorf("%v: Content-Range %q, want %q", h, a.Range, want)
		}
		if w.Code >= 300 {
			if len(a.Parts) > 0 || a.Length > 0 {
				t.Errorf("%v: status %d with a body", h, a.Status)
			}
			return
		}
		got, want := body(t, a, of), w.Body.Bytes()
		if head {
			return
		}
		if several := strings.HasPrefix(w.Header().Get("Content-Type"), "multipart/"); several {
			if got, want := parts(t, a.Type, got), parts(t, w.Header().Get("Content-Type"), want); strings.Join(got, "|") != strings.Join(want, "|") {
				t.Errorf("%v: parts %q, want %q", h, got, want)
			}
		} else if !bytes.Equal(got, want) || a.Type != "text/x" {
			t.Errorf("%v: %s %q, want %q", h, a.Type, got, want)
		}
	})
}

func BenchmarkAnswer(b *testing.B) {
	c := content.Content{Size: 1 << 30, Type: "video/mp4", ETag: `"a"`, Modified: modified}
	for _, row := range []struct {
		name string
		h    headers
	}{
		{"whole", nil}, {"unchanged", headers{"If-None-Match": `"b", "a"`}}, {"range", headers{"Range": "bytes=1000-1999"}},
		{"ranges", headers{"Range": "bytes=1000-1999,5000-5999,-1000"}},
	} {
		b.Run(row.name, func(b *testing.B) {
			r := row.h.request("GET")
			b.ReportAllocs()
			for b.Loop() {
				c.Answer(r)
			}
		})
	}
}
