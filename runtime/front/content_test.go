package front_test

import (
	"bufio"
	"bytes"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"mime"
	"mime/multipart"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"runner.example/hostabi/abi"
	"runner.example/internal/fault"
	"runner.example/runtime/content"
	"runner.example/runtime/front"
)

// opened counts what is open of the contents of a test.
type opened struct {
	content.Source
	count *atomic.Int64
}

func (o opened) Close() error {
	o.count.Add(-1)
	return o.Source.Close()
}

// inMemory is a source that no kernel can send.
type inMemory struct{ *bytes.Reader }

func (inMemory) Close() error { return nil }

// file is an opened whose file the kernel can send.
type file struct{ opened }

func (f file) File() *os.File { return f.Source.(*os.File) }

// stored is a content of n bytes: in a file, or in memory.
type stored struct {
	content.Content
	bytes []byte
	open  atomic.Int64
}

// The kinds of sources.
const (
	fromFile   = "file"
	fromReader = "reader"
	fromMemory = "memory"
)

func store(t testing.TB, n int, kind string) *stored {
	t.Helper()
	s := &stored{bytes: make([]byte, n)}
	for i := range s.bytes {
		s.bytes[i] = byte(i>>12 ^ i)
	}
	path := filepath.Join(t.TempDir(), "content")
	if kind == fromFile {
		if err := os.WriteFile(path, s.bytes, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	s.Content = content.Content{
		Size: int64(n), Type: "image/png", ETag: `"tag"`, Modified: time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC),
		Open: func() (content.Source, error) {
			if kind == fromMemory {
				return content.NewMemory(s.bytes), nil
			}
			s.open.Add(1)
			if kind == fromReader {
				return opened{inMemory{bytes.NewReader(s.bytes)}, &s.open}, nil
			}
			f, err := os.Open(path)
			return file{opened{f, &s.open}}, err
		},
	}
	return s
}

// handler sends s, whatever is asked for.
func (s *stored) handler(t testing.TB) func(*front.Exchange) {
	return func(x *front.Exchange) {
		if err := x.SendContent(&abi.Response{Status: 200, Headers: pairs("x-own", "1", "content-type", "a/b", "etag", "w")}, &s.Content); err != nil {
			t.Errorf("send: %v", err)
		}
	}
}

var contentSizes = []int{0, 1, 4 << 10, 16 << 10, 16<<10 + 1, 64 << 10, 1<<20 + 3, 9 << 20}

// contents calls test for contents of each size, over each way of sending them.
func contents(t *testing.T, test func(t *testing.T, s *stored, client *http.Client, url string)) {
	pair, pool := certificate(t)
	for _, encrypted := range []bool{false, true} {
		for _, kind := range []string{fromReader, fromFile, fromMemory} {
			for _, size := range contentSizes {
				t.Run(fmt.Sprintf("tls=%t,%s,%d", encrypted, kind, size), func(t *testing.T) {
					s := store(t, size, kind)
					t.Cleanup(func() { // after the server has ended
						if n := s.open.Load(); n != 0 {
							t.Errorf("%d sources are open", n)
						}
					})
					opt, scheme := front.Options{}, "http://"
					if encrypted {
						opt.Certificate, scheme = pair, "https://"
					}
					server := serve(t, opt, s.handler(t))
					client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool}}}
					if encrypted { // the certificate has this name
						client.Transport.(*http.Transport).TLSClientConfig.ServerName = "127.0.0.1"
					}
					test(t, s, client, scheme+server.addr+"/")
					client.CloseIdleConnections()
				})
			}
		}
	}
}

func ask(t *testing.T, client *http.Client, method, url string, headers ...string) answer {
	t.Helper()
	r, err := http.NewRequest(method, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(headers); i += 2 {
		r.Header.Add(headers[i], headers[i+1])
	}
	res, err := client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer{res, string(b)}
}

func TestAnErrorInPlaceOfContentIsNotCached(t *testing.T) {
	s := store(t, 100, fromReader)
	server := serve(t, front.Options{}, func(x *front.Exchange) {
		r := &abi.Response{Status: 200, Headers: pairs("cache-control", "public, max-age=31536000, immutable", "cdn-cache-control", "max-age=60")}
		if err := x.SendContent(r, &s.Content); err != nil {
			t.Errorf("send: %v", err)
		}
	})
	for _, c := range []struct {
		name, value string
		status      int
		cache, cdn  string
	}{
		{"Range", "bytes=100-", 416, "no-store", ""},
		{"If-Match", `"x"`, 412, "no-store", ""},
		{"If-None-Match", `"tag"`, 304, "public, max-age=31536000, immutable", "max-age=60"},
		{"Range", "bytes=0-9", 206, "public, max-age=31536000, immutable", "max-age=60"},
	} {
		a := ask(t, http.DefaultClient, "GET", "http://"+server.addr+"/", c.name, c.value)
		cache, cdn := strings.Join(a.Header.Values("Cache-Control"), "|"), a.Header.Get("CDN-Cache-Control")
		if a.StatusCode != c.status || cache != c.cache || cdn != c.cdn {
			t.Errorf("%s: %s: %d with Cache-Control %q and CDN-Cache-Control %q", c.name, c.value, a.StatusCode, cache, cdn)
		}
	}
	http.DefaultClient.CloseIdleConnections()
}

func TestContentIsSentAsAWholeAndInRanges(t *testing.T) {
	contents(t, func(t *testing.T, s *stored, client *http.Client, url string) {
		size := len(s.bytes)
		for _, method := range []string{"GET", "HEAD", "GET", "POST"} {
			a := ask(t, client, method, url)
			want := string(s.bytes)
			if method == "HEAD" {
				want = ""
			}
			if a.StatusCode != 200 || a.body != want || a.Header.Get("Content-Length") != strconv.Itoa(size) {
				t.Errorf("%s: %d with %d bytes, %v", method, a.StatusCode, len(a.body), a.Header)
			}
			for name, value := range map[string]string{
				"Content-Type": "image/png", "ETag": `"tag"`, "Last-Modified": "Wed, 04 Mar 2026 05:06:07 GMT",
				"Accept-Ranges": "bytes", "Cache-Control": "no-cache", "X-Own": "1", "Content-Range": "",
			} {
				if got := strings.Join(a.Header.Values(name), "|"); got != value {
					t.Errorf("%s: %s is %q, want %q", method, name, got, value)
				}
			}
		}
		if a := ask(t, client, "GET", url, "If-None-Match", `"x"`, "If-None-Match", `"tag"`); a.StatusCode != 304 || a.body != "" ||
			a.Header.Get("ETag") != `"tag"` || a.Header.Get("Cache-Control") != "no-cache" || a.Header.Get("Content-Type") != "" {
			t.Errorf("unchanged: %d %v", a.StatusCode, a.Header)
		}
		if a := ask(t, client, "POST", url, "If-Match", `"x"`, "Range", "bytes=0-0"); a.StatusCode != 200 || len(a.body) != size {
			t.Errorf("POST with a condition and a range: %d", a.StatusCode)
		}
		if a := ask(t, client, "GET", url, "If-Match", `"x"`); a.StatusCode != 412 || problemOf(t, a).Code != "precondition_failed" {
			t.Errorf("If-Match: %d %q", a.StatusCode, a.body)
		}
		if size == 0 {
			return
		}
		if a := ask(t, client, "GET", url, "Range", "bytes="+strconv.Itoa(size)+"-"); a.StatusCode != 416 ||
			problemOf(t, a).Code != "range_not_satisfiable" || a.Header.Get("Content-Range") != "bytes */"+strconv.Itoa(size) {
			t.Errorf("a range behind the end: %d %v %q", a.StatusCode, a.Header, a.body)
		}
		if a := ask(t, client, "GET", url, "Range", "bytes=0-0", "Range", "bytes=0-0"); a.StatusCode != 416 {
			t.Errorf("two Range headers: %d", a.StatusCode)
		}
		from, to := size/3, size/2
		if a := ask(t, client, "GET", url, "Range", fmt.Sprintf("bytes=%d-%d", from, to)); a.StatusCode != 206 ||
			a.body != string(s.bytes[from:to+1]) || a.Header.Get("Content-Range") != fmt.Sprintf("bytes %d-%d/%d", from, to, size) {
			t.Errorf("a range: %d %v, %d bytes", a.StatusCode, a.Header, len(a.body))
		}
		if size == 1 {
			return
		}
		a := ask(t, client, "GET", url, "Range", fmt.Sprintf("bytes=-%d,0-%d", size-to, from-1))
		_, params, err := mime.ParseMediaType(a.Header.Get("Content-Type"))
		if err != nil || a.StatusCode != 206 || a.Header.Get("Content-Length") != strconv.Itoa(len(a.body)) {
			t.Fatalf("two ranges: %d %v %v", a.StatusCode, a.Header, err)
		}
		r := multipart.NewReader(strings.NewReader(a.body), params["boundary"])
		for _, want := range [][]byte{s.bytes[to:], s.bytes[:from]} {
			p, err := r.NextRawPart()
			if err != nil {
				t.Fatal(err)
			}
			if got, err := io.ReadAll(p); err != nil || !bytes.Equal(got, want) {
				t.Errorf("a part of %d bytes, want %d: %v", len(got), len(want), err)
			}
		}
		if _, err := r.NextRawPart(); err != io.EOF {
			t.Errorf("after the last part: %v", err)
		}
	})
}

func TestContentThatCannotBeOpenedHasNoAnswerYet(t *testing.T) {
	a := answered(t, func(x *front.Exchange) {
		c := content.Content{Size: 5, Open: func() (content.Source, error) { return nil, fs.ErrNotExist }}
		if err := x.SendContent(&abi.Response{Status: 200}, &c); !errors.Is(err, fs.ErrNotExist) || x.Status() != 0 {
			t.Errorf("error %v, status %d", err, x.Status())
		}
		x.Refuse(&fault.Fault{Code: fault.Unavailable}, front.Extra{})
	})
	if a.StatusCode != 503 {
		t.Errorf("%d %q", a.StatusCode, a.body)
	}
}

// A client must notice that content ended too early.
func TestContentThatIsTooShortBreaksTheConnection(t *testing.T) {
	for _, kind := range []string{fromReader, fromFile, fromMemory} {
		for _, have := range []int{100, 200_000} { // the first is known before the head is sent
			s := store(t, have, kind)
			s.Size = 2 * int64(have)
			server := serve(t, front.Options{}, func(x *front.Exchange) {
				if err := x.SendContent(&abi.Response{Status: 200}, &s.Content); err != nil {
					x.Refuse(err, front.Extra{})
				}
			})
			nc := server.dial(t)
			write(t, nc, "GET / HTTP/1.1\r\nHost: a\r\n\r\n")
			res, err := http.ReadResponse(bufio.NewReader(nc), nil)
			if err != nil {
				if have == 100 {
					t.Error(err)
				}
				continue
			}
			if _, err := io.ReadAll(res.Body); have > 100 && err == nil || have == 100 && (err != nil || res.StatusCode != 500) {
				t.Errorf("%d bytes, %s: %d, %v", have, kind, res.StatusCode, err)
			}
		}
	}
}

// The rules are those of all other answers.
func TestContentIsCachedAsItsRouteSays(t *testing.T) {
	s := store(t, 10, fromReader)
	for _, row := range []struct {
		private, unshared, never bool
		own, want                string
	}{
		{false, false, false, "", "no-cache"},
		{false, false, false, "max-age=5", "max-age=5"},
		{true, false, false, "", "no-store"},
		{true, false, false, "private, max-age=5", "private, max-age=5"},
		{true, true, false, "max-age=5", "no-store"},
		{true, false, true, "private, max-age=5", "no-store"},
	} {
		a := answered(t, func(x *front.Exchange) {
			x.Private, x.Unshared, x.NoStore = row.private, row.unshared, row.never
			r := &abi.Response{Status: 200}
			if row.own != "" {
				r.Headers = pairs("cache-control", row.own)
			}
			if err := x.SendContent(r, &s.Content); err != nil {
				t.Error(err)
			}
		})
		if got := strings.Join(a.Header.Values("Cache-Control"), "|"); got != row.want {
			t.Errorf("%+v: %q", row, got)
		}
	}
}

func TestASlowClientOfContentMustMakeProgress(t *testing.T) {
	const limit = 10 * time.Second
	s := store(t, 1<<20, fromReader)
	bubbleOf(t, front.Options{WriteTimeout: limit}, s.handler(t), func(t *testing.T, dial func() net.Conn) {
		nc := dial()
		write(t, nc, "GET / HTTP/1.1\r\nHost: a\r\n\r\n")
		began := time.Now()
		r := bufio.NewReader(nc)
		res, err := http.ReadResponse(r, nil)
		if err != nil {
			t.Fatal(err)
		}
		for range 16 { // each piece in less than the limit, and all of them in much more
			time.Sleep(limit * 9 / 10)
			if _, err := io.CopyN(io.Discard, res.Body, 64<<10); err != nil {
				t.Fatalf("after %s: %v", time.Since(began), err)
			}
		}
		if time.Since(began) < 10*limit {
			t.Errorf("took %s", time.Since(began))
		}

		nc = dial()
		write(t, nc, "GET / HTTP/1.1\r\nHost: a\r\n\r\n")
		began = time.Now()
		for n := 0; ; n++ {
			time.Sleep(limit / 10)
			if _, err := io.CopyN(io.Discard, nc, 1<<10); err != nil {
				break
			}
		}
		if took := time.Since(began); took > 2*limit {
			t.Errorf("a client that takes 1 KiB a second is served for %s", took)
		}
	})
	if n := s.open.Load(); n != 0 {
		t.Errorf("%d sources are open", n)
	}
}

func BenchmarkContent(b *testing.B) {
	for _, c := range []struct {
		kind string
		size int
	}{{fromMemory, 4 << 10}, {fromMemory, 64 << 10}, {fromFile, 4 << 10}, {fromFile, 64 << 10}, {fromFile, 1 << 20}, {fromFile, 64 << 20}} {
		size := c.size
		b.Run(fmt.Sprintf("%s/%d", c.kind, size), func(b *testing.B) {
			s := store(b, size, c.kind)
			server := serve(b, front.Options{}, s.handler(b))
			nc := server.dial(b)
			if err := nc.SetDeadline(time.Time{}); err != nil {
				b.Fatal(err)
			}
			r := bufio.NewReaderSize(nc, 256<<10)
			b.SetBytes(int64(size))
			b.ReportAllocs()
			for b.Loop() {
				write(b, nc, "GET / HTTP/1.1\r\nHost: a\r\n\r\n")
				for line := []byte("x"); len(line) > 2; {
					line, _ = r.ReadSlice('\n')
				}
				if _, err := r.Discard(size); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
