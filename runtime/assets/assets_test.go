package assets_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/andybalholm/brotli"
	"github.com/klauspost/compress/zstd"

	"runner.example/hostabi/abi"
	"runner.example/internal/tree"
	"runner.example/runtime/assets"
	"runner.example/schema"
)

// siteOf returns the site of files with these contents.
func siteOf(t testing.TB, declared schema.Assets, contents map[string]string) *assets.Site {
	t.Helper()
	var files []tree.File
	for name, content := range contents {
		files = append(files, tree.File{Path: name, Size: int64(len(content)), SHA256: sha256.Sum256([]byte(content))})
	}
	made, err := tree.New(files, func(f tree.File) ([]byte, error) { return []byte(contents[f.Path]), nil })
	if err != nil {
		t.Fatal(err)
	}
	return assets.New(&declared, made, assets.Options{Memory: &assets.Memory{}})
}

func public(path string) schema.Assets {
	return schema.Assets{Path: path, Auth: schema.Auth{None: true}}
}

// read reads a form.
func read(t testing.TB, f *assets.Form) string {
	t.Helper()
	source, err := f.Content.Open()
	if err != nil {
		t.Fatal(err)
	}
	defer source.Close()
	data, err := io.ReadAll(io.NewSectionReader(source, 0, f.Content.Size))
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// describe is what a site answers, in one line.
func describe(t testing.TB, a assets.Answer) string {
	switch {
	case a.Location != "":
		return "to " + a.Location
	case a.File == nil:
		return "missing"
	case a.Response.Status == 404:
		return "missing, " + read(t, a.File.Form(nil))
	}
	return read(t, a.File.Form(nil))
}

func TestASiteFindsItsFiles(t *testing.T) {
	contents := map[string]string{
		"index.html": "home", "a.js": "a", "docs/index.html": "docs", "docs/b c.txt": "b c", "docs/ü.txt": "ü", "only/x.css": "x",
		"deep/a/index.html": "deep", "404.html": "none", "index.html.d/x": "x", "100%.txt": "%", "a?b#c": "odd",
	}
	for _, c := range []struct{ site, path, want, navigation string }{
		{"/", "/", "home", ""},
		{"/", "/index.html", "home", ""},
		{"/", "/a.js", "a", ""},
		{"/", "/a.js/", "to /a.js", ""},
		{"/", "/docs", "to /docs/", ""},
		{"/", "/docs/", "docs", ""},
		{"/", "/docs/b c.txt", "b c", ""},
		{"/", "/docs/b c.txt/", "to /docs/b%20c.txt", ""},
		{"/", "/docs/ü.txt/", "to /docs/%C3%BC.txt", ""},
		{"/", "/100%.txt/", "to /100%25.txt", ""},
		{"/", "/a?b#c/", "to /a%3Fb%23c", ""},
		{"/", "/docs/index.html/", "to /docs/index.html", ""},
		{"/", "/only", "missing", "missing, none"},
		{"/", "/only/", "missing", "missing, none"},
		{"/", "/deep/", "missing", "missing, none"},
		{"/", "/deep/a", "to /deep/a/", ""},
		{"/", "/A.js", "missing", "missing, none"},
		{"/", "/missing.js", "missing", "missing, none"},
		{"/", "/docs/../a.js", "missing", "missing, none"},
		{"/", "//a.js", "missing", "missing, none"},
		{"/", "/%61.js", "missing", "missing, none"},
		{"/app", "", "to /app/", ""},
		{"/app", "/", "home", ""},
		{"/app", "/docs", "to /app/docs/", ""},
		{"/app", "/a.js/", "to /app/a.js", ""},
	} {
		site := siteOf(t, public(c.site), contents)
		if got := describe(t, site.Find([]byte(c.path), false)); got != c.want {
			t.Errorf("%s, %q: %s, want %s", c.site, c.path, got, c.want)
		}
		want := c.navigation
		if want == "" {
			want = c.want
		}
		if got := describe(t, site.Find([]byte(c.path), true)); got != want {
			t.Errorf("%s, navigation to %q: %s, want %s", c.site, c.path, got, want)
		}
	}
	spa := public("/")
	spa.SPA = "index.html"
	site := siteOf(t, spa, contents)
	for path, want := range map[string]string{"/orders/7": "home", "/missing.js": "home", "/a.js": "a", "/docs": "to /docs/"} {
		if got := describe(t, site.Find([]byte(path), true)); got != want {
			t.Errorf("navigation to %q: %s, want %s", path, got, want)
		}
	}
	if got := describe(t, site.Find([]byte("/missing.js"), false)); got != "missing" {
		t.Errorf("a missing script: %s", got)
	}
}

func TestASiteHasThePathsBelowItsOwn(t *testing.T) {
	for _, c := range []struct {
		site, path, rest string
		ok               bool
	}{
		{"/", "/", "/", true}, {"/", "/a", "/a", true}, {"/app", "/app", "", true}, {"/app", "/app/", "/", true}, {"/app", "/app/x", "/x", true},
		{"/app", "/apple", "", false}, {"/app", "/ap", "", false}, {"/app", "/", "", false},
	} {
		rest, ok := siteOf(t, public(c.site), map[string]string{"a": "a"}).Path([]byte(c.path))
		if ok != c.ok || ok && string(rest) != c.rest {
			t.Errorf("%s of %s: %q, %v", c.path, c.site, rest, ok)
		}
	}
}

// A path, found in the table of a site, is what a plain walk of the files finds.
func FuzzFind(f *testing.F) {
	contents := map[string]string{
		"index.html": "0", "a.js": "1", "b/index.html": "2", "b/c/d.txt": "3", "e f.txt": "4", "%2e": "5", "ü": "6", "b.d/x": "7", "x/index.html.js": "8",
	}
	for name := range contents {
		f.Add("/" + name)
		f.Add("/" + name + "/")
		f.Add("/" + path.Dir(name))
	}
	for _, p := range []string{"", "/", "//", "/b/..", "/b/./c/d.txt", "/b//c/d.txt", "/\x00", "/%", "/b/c/d.txt%00", "/..%2fa.js", "/b/c/../../a.js"} {
		f.Add(p)
	}
	site := siteOf(f, public("/s"), contents)
	f.Fuzz(func(t *testing.T, p string) {
		if p != "" && p[0] != '/' {
			return
		}
		want := "missing"
		to := func(path string) string {
			var all []string
			for segment := range strings.SplitSeq(path, "/") {
				decoded, err := url.PathUnescape(segment)
				if err != nil {
					t.Fatal(err)
				}
				all = append(all, decoded)
			}
			return strings.Join(all, "/")
		}
		for name, content := range contents {
			switch dir, isIndex := strings.CutSuffix(name, "index.html"); {
			case isIndex && path.Base(name) == "index.html" && p == "/"+dir:
				want = content
			case p == "/"+name:
				want = content
			case isIndex && path.Base(name) == "index.html" && p+"/" == "/"+dir:
				want = "to /s/" + dir
			case p == "/"+name+"/" && want == "missing":
				want = "to /s/" + name
			}
		}
		answer := site.Find([]byte(p), false)
		got := describe(t, answer)
		if answer.Location != "" {
			if !strings.HasPrefix(answer.Location, "/s") || strings.HasPrefix(answer.Location, "//") || strings.ContainsAny(answer.Location, "?#\\ \r\n") {
				t.Fatalf("location %q", answer.Location)
			}
			got = "to " + to(answer.Location)
		}
		if got != want {
			t.Fatalf("%q: %s, want %s", p, got, want)
		}
	})
}

func headerOf(r *abi.Response, name string) (value string) {
	for _, h := range r.Headers {
		if string(h.Name) == name {
			value = string(h.Value)
		}
	}
	return value
}

func TestFilesHaveTypesAndCacheControl(t *testing.T) {
	const immutable, again = "public, max-age=31536000, immutable", "no-cache"
	for name, want := range map[string][2]string{
		"index.html":                                   {"text/html; charset=utf-8", again},
		"index-B4xk2aZq.html":                          {"text/html; charset=utf-8", again},
		"assets/index-B4xk2aZq.js":                     {"text/javascript; charset=utf-8", immutable},
		"assets/index-D4f-k2aZ.css":                    {"text/css; charset=utf-8", immutable},
		"assets/index-D4f_k2aZ.css.map":                {"application/json; charset=utf-8", immutable},
		"app-7HW4QZ2K.js":                              {"text/javascript; charset=utf-8", immutable},
		"main.8e0a3f44.chunk.js":                       {"text/javascript; charset=utf-8", immutable},
		"787.8e0a3f44b1c2d3e4.js":                      {"text/javascript; charset=utf-8", immutable},
		"static/media/0a1b2c3d4e5f60718293.png":        {"image/png", immutable},
		"_next/static/chunks/main-4f3c2a1b9e8d7c6b.js": {"text/javascript; charset=utf-8", immutable},
		"my-document.js":                               {"text/javascript; charset=utf-8", again},
		"getting-started.md":                           {"text/markdown; charset=utf-8", again},
		"report-20241231.pdf":                          {"application/pdf", again},
		"report.20241231.csv":                          {"text/csv; charset=utf-8", again},
		"app-version2.js":                              {"text/javascript; charset=utf-8", again},
		"app-VERSION2.js":                              {"text/javascript; charset=utf-8", again},
		"my-Document.js":                               {"text/javascript; charset=utf-8", again},
		"de-facade00.svg":                              {"image/svg+xml; charset=utf-8", immutable},
		"jquery-3.7.1.min.js":                          {"text/javascript; charset=utf-8", again},
		"550e8400-e29b-41d4-a716-44665544abcd.png":     {"image/png", again},
		"font.woff2":                                   {"font/woff2", again},
		"LOGO.PNG":                                     {"image/png", again},
		"app.wasm":                                     {"application/wasm", again},
		"CNAME":                                        {"application/octet-stream", again},
		"archive.tar.gz":                               {"application/gzip", again},
		"x.unknown":                                    {"application/octet-stream", again},
		"feed.xml":                                     {"application/xml; charset=utf-8", again},
		"site.webmanifest":                             {"application/manifest+json; charset=utf-8", again},
		".well-known/apple-app-site-association":       {"application/octet-stream", again},
	} {
		answer := siteOf(t, public("/"), map[string]string{name: "x"}).Find([]byte("/"+name), false)
		if form := answer.File.Form(nil); form.Content.Type != want[0] || headerOf(answer.Response, "Cache-Control") != want[1] {
			t.Errorf("%s: %s, %s; want %s", name, form.Content.Type, headerOf(answer.Response, "Cache-Control"), want)
		}
		guarded := schema.Assets{Path: "/", Auth: schema.Auth{Session: true}}
		answer = siteOf(t, guarded, map[string]string{name: "x"}).Find([]byte("/"+name), false)
		if got, want := headerOf(answer.Response, "Cache-Control"), "private, "+strings.TrimPrefix(want[1], "public, "); got != want {
			t.Errorf("guarded %s: %s, want %s", name, got, want)
		}
	}
}

func TestHeadersReplaceDefaults(t *testing.T) {
	for want, headers := range map[string][]schema.Header{
		"X-Content-Type-Options: nosniff|Referrer-Policy: strict-origin-when-cross-origin|Content-Security-Policy: frame-ancestors 'self'": nil,
		"X-Content-Type-Options: nosniff|content-security-policy: default-src 'self'; frame-ancestors 'self'|X-A: b": {
			{Name: "content-security-policy", Value: "default-src 'self';"}, {Name: "REFERRER-POLICY", Value: ""}, {Name: "X-A", Value: "b"},
		},
		"X-Content-Type-Options: nosniff|Referrer-Policy: no-referrer|Content-Security-Policy: frame-ancestors https://a.example": {
			{Name: "Referrer-Policy", Value: "no-referrer"}, {Name: "Content-Security-Policy", Value: "frame-ancestors https://a.example"},
		},
		"X-Content-Type-Options: nosniff|Referrer-Policy: strict-origin-when-cross-origin": {{Name: "Content-Security-Policy"}},
	} {
		declared := public("/")
		declared.Headers = headers
		var got []string
		for _, h := range siteOf(t, declared, map[string]string{"a": "a"}).Find([]byte("/a"), false).Response.Headers {
			if string(h.Name) != "Cache-Control" {
				got = append(got, string(h.Name)+": "+string(h.Value))
			}
		}
		if strings.Join(got, "|") != want {
			t.Errorf("got %q, want %s", got, want)
		}
	}
}

// long is a text that shrinks.
var long = strings.Repeat("export const answer = () => 42;\n", 200)

// decoders read the codings.
var decoders = map[assets.Encoding]func(io.Reader) ([]byte, error){
	assets.Brotli: func(r io.Reader) ([]byte, error) { return io.ReadAll(brotli.NewReader(r)) },
	assets.Zstd: func(r io.Reader) ([]byte, error) {
		d, err := zstd.NewReader(r, zstd.WithDecoderMaxWindow(8<<20)) // as browsers
		if err != nil {
			return nil, err
		}
		defer d.Close()
		return io.ReadAll(d)
	},
	assets.Gzip: func(r io.Reader) ([]byte, error) {
		d, err := gzip.NewReader(r)
		if err != nil {
			return nil, err
		}
		return io.ReadAll(d)
	},
}

func fill(t *testing.T, dir string, sites ...*assets.Site) (log string) {
	t.Helper()
	var out bytes.Buffer
	cache, err := assets.OpenCache(dir, slog.New(slog.NewTextHandler(&out, nil)))
	if err != nil {
		t.Fatal(err)
	}
	cache.Fill(t.Context(), sites)
	return out.String()
}

func TestFilesGetCompressedForms(t *testing.T) {
	dir := t.TempDir()
	random := make([]byte, 4000)
	for i := range random {
		random[i] = byte(rand.Uint32())
	}
	contents := map[string]string{
		"a.js": long, "copy.js": long, "big.css": strings.Repeat(long, 200), "small.js": "a()", "a.png": long, "random.txt": string(random),
	}
	site := siteOf(t, public("/"), contents)
	all := []byte("gzip, deflate, br, zstd")
	for name := range contents {
		if form := site.Find([]byte("/"+name), false).File.Form(all); form.Encoding != assets.Identity {
			t.Errorf("%s has the form %v before it was made", name, form.Encoding)
		}
	}
	if log := fill(t, dir, site); !strings.Contains(log, `msg="assets compressed" files=3`) { // equal contents are compressed once
		t.Errorf("log: %s", log)
	}
	for name, content := range contents {
		f := site.Find([]byte("/"+name), false).File
		etags := map[string]bool{}
		for e := assets.Brotli; e <= assets.Identity; e++ {
			form := f.Form([]byte(e.String()))
			etags[form.Content.ETag] = true
			data := read(t, form)
			shrinks := name != "small.js" && name != "a.png" && name != "random.txt"
			switch decode := decoders[form.Encoding]; {
			case form.Encoding == assets.Identity:
				if data != content || shrinks && e != assets.Identity {
					t.Errorf("%s has no form %q, or another content", name, e)
				}
			case !shrinks:
				t.Errorf("%s has the form %v", name, form.Encoding)
			default:
				if decoded, err := decode(strings.NewReader(data)); err != nil || string(decoded) != content || len(data) >= len(content) || form.Content.Size != int64(len(data)) {
					t.Errorf("%s, %v: %d bytes, %v", name, form.Encoding, len(data), err)
				}
			}
		}
		if want := map[bool]int{true: 4, false: 1}[len(etags) > 1]; len(etags) != want {
			t.Errorf("%s has the tags %v", name, etags)
		}
	}
	// Another release with the same contents compresses nothing.
	again := siteOf(t, public("/other"), contents)
	if log := fill(t, dir, again); log != "" {
		t.Errorf("log: %s", log)
	}
	if form := again.Find([]byte("/a.js"), false).File.Form(all); form.Encoding == assets.Identity {
		t.Error("the forms of the cache are not used")
	}
}

func TestADamagedFormIsMadeAgain(t *testing.T) {
	dir := t.TempDir()
	contents := map[string]string{"a.js": long}
	fill(t, dir, siteOf(t, public("/"), contents))
	names, err := filepath.Glob(filepath.Join(dir, "*.br"))
	if err != nil || len(names) != 1 {
		t.Fatal(names, err)
	}
	good, err := os.ReadFile(names[0])
	if err != nil {
		t.Fatal(err)
	}
	flipped := slices.Clone(good)
	flipped[10] ^= 1
	for what, damaged := range map[string][]byte{"empty": {}, "cut": good[:len(good)/2], "zeros": make([]byte, len(good)), "flipped": flipped} {
		if err := os.WriteFile(names[0], damaged, 0o600); err != nil {
			t.Fatal(err)
		}
		site := siteOf(t, public("/"), contents)
		if log := fill(t, dir, site); !strings.Contains(log, "files=1") {
			t.Errorf("%s: log %s", what, log)
		}
		form := site.Find([]byte("/a.js"), false).File.Form([]byte("br"))
		if decoded, err := decoders[assets.Brotli](strings.NewReader(read(t, form))); err != nil || string(decoded) != long {
			t.Errorf("%s: %v", what, err)
		}
	}
}

func TestAFormThatWasRemovedIsNotOfferedAgain(t *testing.T) {
	dir := t.TempDir()
	random := rand.New(rand.NewPCG(1, 2))
	var b strings.Builder
	for b.Len() < 1<<20 { // its compressed forms are not kept in memory
		fmt.Fprintf(&b, "%x\n", random.Uint64())
	}
	site := siteOf(t, public("/"), map[string]string{"a.txt": b.String()})
	fill(t, dir, site)
	f := site.Find([]byte("/a.txt"), false).File
	form := f.Form([]byte("br"))
	if form.Encoding != assets.Brotli || form.Content.Size < 128<<10 {
		t.Fatalf("%v of %d bytes", form.Encoding, form.Content.Size)
	}
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	if _, err := form.Content.Open(); err == nil {
		t.Error("a file that was removed is opened")
	}
	if form := f.Form([]byte("br")); form.Encoding != assets.Identity || read(t, form) != b.String() {
		t.Errorf("the next request gets %v", form.Encoding)
	}
}

func TestAnEndedContextEndsTheCompression(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	cache, err := assets.OpenCache(t.TempDir(), slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	site := siteOf(t, public("/"), map[string]string{"a.js": long})
	cache.Fill(ctx, []*assets.Site{site})
	if form := site.Find([]byte("/a.js"), false).File.Form([]byte("br")); form.Encoding != assets.Identity {
		t.Error("it was compressed")
	}
}

func TestTheClientChoosesTheCoding(t *testing.T) {
	site := siteOf(t, public("/"), map[string]string{"a.js": long})
	fill(t, t.TempDir(), site)
	f := site.Find([]byte("/a.js"), false).File
	smallest := f.Form([]byte("*")).Encoding
	for header, want := range map[string]assets.Encoding{
		"": assets.Identity, "br": assets.Brotli, "zstd": assets.Zstd, "gzip": assets.Gzip, "x-gzip": assets.Gzip, "GZip": assets.Gzip,
		"deflate": assets.Identity, "identity": assets.Identity, "gzip;q=0": assets.Identity, "gzip; q=0.000": assets.Identity,
		"gzip;q=0.5, br;q=0.4": assets.Gzip, "br;q=0, *": otherThan(f, assets.Brotli), "*;q=0": assets.Identity, "br;q=x": assets.Identity,
		"gzip, deflate, br, zstd": smallest, ", ,br": assets.Brotli, "br;q=1.0;x=y": assets.Brotli, "gzipped": assets.Identity, ";q=1": assets.Identity,
	} {
		if got := f.Form([]byte(header)).Encoding; got != want {
			t.Errorf("%q: %v, want %v", header, got, want)
		}
	}
}

// otherThan is the coding of the smallest form, without one.
func otherThan(f *assets.File, e assets.Encoding) assets.Encoding {
	best := f.Form(nil)
	for other := assets.Brotli; other < assets.Identity; other++ {
		if form := f.Form([]byte(other.String())); other != e && form.Content.Size < best.Content.Size {
			best = form
		}
	}
	return best.Encoding
}

func TestOnlyRequestsForPagesNavigate(t *testing.T) {
	for accept, want := range map[string]bool{
		"text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8": true, "*/*": false, "": false, "application/json": false,
		"TEXT/HTML": true, "text/html;q=0": false, "text/htmlx": false, "image/avif,image/webp,*/*": false, "text/*": false,
		"application/xhtml+xml": true,
	} {
		if got := assets.Navigates([]byte(accept)); got != want {
			t.Errorf("%q: %v", accept, got)
		}
	}
}

func TestFindAllocatesNothing(t *testing.T) {
	site := siteOf(t, public("/"), map[string]string{"a.js": long, "b/index.html": "b"})
	fill(t, t.TempDir(), site)
	header, p := []byte("gzip, deflate, br, zstd"), []byte("/a.js")
	if n := testing.AllocsPerRun(100, func() {
		source, err := site.Find(p, false).File.Form(header).Content.Open()
		if err != nil {
			t.Fatal(err)
		}
		_ = source.Close()
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
