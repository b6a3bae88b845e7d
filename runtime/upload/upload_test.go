package upload_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"mime/multipart"
	"net/textproto"
	"reflect"
	"runtime"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"runner.example/hostabi/fileinfo"
	"runner.example/internal/fault"
	"runner.example/runtime/upload"
)

// kept is a file as put has got it.
type kept struct {
	upload.File
	Size int64
	Sum  [32]byte
}

func sumOf(contents string) [32]byte { return sha256.Sum256([]byte(contents)) }

// read reads a body, and hashes its files.
func read(body io.Reader, contentType string) ([]upload.Field, []kept, error) {
	var files []kept
	fields, err := upload.Read(context.Background(), body, contentType, func(_ context.Context, f upload.File, contents io.Reader) error {
		sum := sha256.New()
		n, err := io.Copy(sum, contents)
		file := kept{File: f, Size: n}
		sum.Sum(file.Sum[:0])
		files = append(files, file)
		return err
	}, func(int64) error { return nil })
	return fields, files, err
}

const form = "multipart/form-data; boundary=xyz"

// lines ends each line with CR LF.
func lines(text string) string { return strings.ReplaceAll(text, "\n", "\r\n") }

func TestAFormHasFieldsAndFiles(t *testing.T) {
	body := lines(`preamble
--xyz
Content-Disposition: form-data; name="title"

Grüße
from here
--xyz
Content-Disposition: form-data; name="photo"; filename="../a/größe.png"
Content-Type: text/html; charset=utf-8

`) + "\x89PNG\r\n\x1a\n--xy\r\n-\r\n" + lines(`
--xyz
Content-Disposition: form-data; name="photo"; filename="x"; filename*=UTF-8''%e2%82%ac.txt

second
--xyz
Content-Disposition: form-data; name="none"; filename=""
Content-Type: application/octet-stream


--xyz
Content-Disposition: form-data; name="empty"; filename="empty.txt"


--xyz
Content-Disposition: form-data; name="title"


--xyz--
epilogue`)
	wantFields := []upload.Field{{"title", "Grüße\r\nfrom here"}, {"title", ""}}
	png := "\x89PNG\r\n\x1a\n--xy\r\n-\r\n"
	wantFiles := []kept{
		{upload.File{Field: "photo", Name: "größe.png", Type: "image/png", Declared: "text/html"}, int64(len(png)), sumOf(png)},
		{upload.File{Field: "photo", Name: "€.txt", Type: "text/plain"}, 6, sumOf("second")},
		{upload.File{Field: "empty", Name: "empty.txt", Type: "text/plain"}, 0, sumOf("")},
	}
	for name, in := range map[string]io.Reader{
		"at once": strings.NewReader(body), "byte by byte": iotest.OneByteReader(strings.NewReader(body)),
		"in halves": iotest.HalfReader(strings.NewReader(body)), "with the end": iotest.DataErrReader(strings.NewReader(body)),
	} {
		fields, files, err := read(in, form)
		if err != nil || !reflect.DeepEqual(fields, wantFields) || !reflect.DeepEqual(files, wantFiles) {
			t.Errorf("%s: %v\n got %q %+v\nwant %q %+v", name, err, fields, files, wantFields, wantFiles)
		}
	}
}

func TestALineMayEndWithoutACarriageReturn(t *testing.T) {
	body := "--xyz\nContent-Disposition: form-data; name=\"a\"\n\nb\r\nc\n--xyz--"
	for _, end := range []string{"", "\n"} {
		for _, in := range []io.Reader{strings.NewReader(body + end), iotest.OneByteReader(strings.NewReader(body + end))} {
			fields, _, err := read(in, form)
			if err != nil || !reflect.DeepEqual(fields, []upload.Field{{Name: "a", Value: "b\r\nc"}}) {
				t.Errorf("%q %v", fields, err)
			}
		}
	}
}

func TestABodyThatIsNotMultipartIsOneFile(t *testing.T) {
	large := strings.Repeat("0123456789", 100_000)
	for _, c := range []struct{ contentType, body, kind, declared string }{
		{"image/png", "\x89PNG\r\n\x1a\n", "image/png", "image/png"},
		{"image/png", "<html>", "text/html", "image/png"},
		{"", "plain", "text/plain", ""},
		{"Text/CSV; charset=utf-8", large, "text/plain", "text/csv"},
		{"no type", "x", "text/plain", ""},
	} {
		fields, files, err := read(iotest.HalfReader(strings.NewReader(c.body)), c.contentType)
		want := []kept{{upload.File{Name: "file", Type: c.kind, Declared: c.declared}, int64(len(c.body)), sumOf(c.body)}}
		if err != nil || fields != nil || !reflect.DeepEqual(files, want) {
			t.Errorf("%q: %v %v %+v, want %+v", c.contentType, err, fields, files, want)
		}
	}
	if fields, files, err := read(strings.NewReader(""), "image/png"); fields != nil || files != nil || err != nil {
		t.Errorf("an empty body: %v %v %v", fields, files, err)
	}
}

// formOf returns a form of n parts with this header and these contents.
func formOf(n int, disposition, contents string) string {
	part := "--xyz\r\nContent-Disposition: " + disposition + "\r\n\r\n" + contents + "\r\n"
	return strings.Repeat(part, n) + "--xyz--\r\n"
}

func TestInvalidFormsAreRefused(t *testing.T) {
	const field, file = `form-data; name="a"`, `form-data; name="a"; filename="b"`
	cases := map[string]struct {
		contentType, body string
		code              fault.Code
	}{
		"no boundary":               {"multipart/form-data", formOf(1, field, "x"), fault.InvalidRequest},
		"a long boundary":           {"multipart/form-data; boundary=" + strings.Repeat("x", 71), "", fault.InvalidRequest},
		"a broken boundary":         {`multipart/form-data; boundary="x`, "", fault.InvalidRequest},
		"another multipart":         {"multipart/mixed; boundary=xyz", formOf(1, field, "x"), fault.UnsupportedEncoding},
		"empty":                     {form, "", fault.InvalidRequest},
		"another boundary":          {form, strings.ReplaceAll(formOf(1, field, "x"), "xyz", "abc"), fault.InvalidRequest},
		"no last boundary":          {form, "--xyz\r\nContent-Disposition: " + field + "\r\n\r\nx", fault.InvalidRequest},
		"half a file":               {form, "--xyz\r\nContent-Disposition: " + file + "\r\n\r\n" + strings.Repeat("x", 10_000), fault.InvalidRequest},
		"half a header":             {form, "--xyz\r\nContent-Disposition: form", fault.InvalidRequest},
		"no disposition":            {form, "--xyz\r\nContent-Type: text/plain\r\n\r\nx\r\n--xyz--", fault.InvalidRequest},
		"two dispositions":          {form, "--xyz\r\nContent-Disposition: " + field + "\r\nContent-Disposition: " + file + "\r\n\r\nx\r\n--xyz--", fault.InvalidRequest},
		"no name":                   {form, formOf(1, "form-data", "x"), fault.InvalidRequest},
		"two names":                 {form, formOf(1, `form-data; name="a"; name="b"`, "x"), fault.InvalidRequest},
		"an attachment":             {form, formOf(1, `attachment; name="a"`, "x"), fault.InvalidRequest},
		"a long name":               {form, formOf(1, `form-data; name="`+strings.Repeat("n", 256)+`"`, "x"), fault.InvalidRequest},
		"a name that is not UTF-8":  {form, formOf(1, "form-data; name=\"\xff\"", "x"), fault.InvalidRequest},
		"a field that is not UTF-8": {form, formOf(1, field, "\xff"), fault.InvalidRequest},
		"an encoding":               {form, formOf(1, field+"\r\nContent-Transfer-Encoding: base64", "eA=="), fault.UnsupportedEncoding},
		"a header without colon":    {form, formOf(1, field+"\r\nnothing", "x"), fault.InvalidRequest},
		"a long header":             {form, formOf(1, field+"\r\nX-Long: "+strings.Repeat("x", 24<<10), "x"), fault.InvalidRequest},
		"many headers":              {form, formOf(1, field+strings.Repeat("\r\na: b", 5000), "x"), fault.InvalidRequest},
		"a long preamble":           {form, strings.Repeat("x\r\n", 10_000) + formOf(1, field, "x"), fault.InvalidRequest},
		"a long line before":        {form, strings.Repeat("x", 30_000) + "\r\n" + formOf(1, field, "x"), fault.InvalidRequest},
		"a large field":             {form, formOf(1, field, strings.Repeat("x", upload.MaxFieldBytes)), fault.BodyTooLarge},
		"large fields":              {form, formOf(2, field, strings.Repeat("x", upload.MaxFieldBytes/2)), fault.BodyTooLarge},
		"many fields":               {form, formOf(upload.MaxParts+1, field, "x"), fault.BodyTooLarge},
		"many files":                {form, formOf(upload.MaxFiles+1, file, "x"), fault.BodyTooLarge},
	}
	for name, c := range cases {
		fields, _, err := read(strings.NewReader(c.body), c.contentType)
		if fault.CodeOf(err) != c.code || fields != nil || fault.Of(err).Detail == "" {
			t.Errorf("%s: got %v, want %s", name, err, c.code)
		}
	}
	for name, body := range map[string]string{
		"fields at the limit": formOf(upload.MaxParts, field, "x"), "files at the limit": formOf(upload.MaxFiles, file, "x"),
		"text at the limit": formOf(1, field, strings.Repeat("x", upload.MaxFieldBytes-1)),
	} {
		if _, _, err := read(strings.NewReader(body), form); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestTheErrorOfTheBodyIsReturnedFirst(t *testing.T) {
	slow := fault.New(fault.RequestTimeout, "")
	full := errors.New("the disk is full")
	whole := formOf(3, `form-data; name="a"; filename="b"`, strings.Repeat("x", 50_000))
	for n := range 200 {
		cut := n * len(whole) / 200
		_, _, err := read(io.MultiReader(strings.NewReader(whole[:cut]), iotest.ErrReader(slow)), form)
		if err != slow {
			t.Errorf("after %d bytes: %v", cut, err)
		}
	}
	_, err := upload.Read(context.Background(), strings.NewReader(whole), form,
		func(context.Context, upload.File, io.Reader) error { return full }, func(int64) error { return nil })
	if err != full {
		t.Errorf("got %v, want the error of put", err)
	}
}

// The memory is that of all fields, and of the buffer for the longest one.
func TestTheMemoryOfFieldsIsReservedBeforeItIsUsed(t *testing.T) {
	none := errors.New("there is no more memory")
	texts := []string{"", "a", strings.Repeat("x", 5000), strings.Repeat("y", 300_000), strings.Repeat("z", 300_000)}
	var body strings.Builder
	total := int64(0)
	for _, text := range texts {
		fmt.Fprintf(&body, "--xyz\r\nContent-Disposition: form-data; name=\"n\"\r\n\r\n%s\r\n", text)
		total += int64(len("n") + len(text))
	}
	body.WriteString("--xyz--\r\n")
	for limit := int64(1 << 10); ; limit *= 2 {
		held, fed := int64(0), &counted{r: strings.NewReader(body.String())}
		fields, err := upload.Read(t.Context(), fed, form, nil, func(bytes int64) error {
			if held += bytes; held > limit {
				return none
			}
			return nil
		})
		if err == nil {
			if len(fields) != len(texts) || held < total+300_000 || held > total+600_000 {
				t.Errorf("%d fields of %d bytes, held are %d", len(fields), total, held)
			}
			return
		}
		if err != none || fed.n > limit+upload.Memory {
			t.Errorf("with %d bytes: %v, after %d bytes", limit, err, fed.n)
		}
	}
}

// counted counts what is read.
type counted struct {
	r io.Reader
	n int64
}

func (c *counted) Read(p []byte) (int, error) {
	n, err := c.r.Read(p)
	c.n += int64(n)
	return n, err
}

// TestMemoryDoesNotGrowWithTheBody reads a file of 64 MB, and measures what is allocated.
func TestMemoryDoesNotGrowWithTheBody(t *testing.T) {
	const size = 64 << 20
	body := func() io.Reader {
		return io.MultiReader(strings.NewReader("--xyz\r\nContent-Disposition: form-data; name=\"a\"; filename=\"b\"\r\n\r\n"),
			io.LimitReader(zeros{}, size), strings.NewReader("\r\n--xyz--"))
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	_, files, err := read(body(), form)
	runtime.ReadMemStats(&after)
	if err != nil || len(files) != 1 || files[0].Size != size {
		t.Fatalf("%v %v", files, err)
	}
	if took := after.TotalAlloc - before.TotalAlloc; took > 1<<20 {
		t.Errorf("%d bytes were allocated", took)
	}
}

// zeros yields bytes without end.
type zeros struct{}

func (zeros) Read(p []byte) (int, error) {
	clear(p)
	return len(p), nil
}

// random returns a form with random parts, and how it is read.
func random(r *rand.Rand) (body []byte, contentType string) {
	var out bytes.Buffer
	w := multipart.NewWriter(&out)
	for range r.IntN(6) {
		header := textproto.MIMEHeader{}
		disposition := fmt.Sprintf("form-data; name=\"n%d\"", r.IntN(3))
		if r.IntN(2) == 0 {
			disposition += fmt.Sprintf("; filename=\"f%d.bin\"", r.IntN(3))
		}
		header.Set("Content-Disposition", disposition)
		part, _ := w.CreatePart(header)
		contents := make([]byte, r.IntN(1<<uint(r.IntN(14))))
		for i := range contents {
			contents[i] = "\r\n-abcdefghijk"[r.IntN(14)]
		}
		_, _ = part.Write(contents)
	}
	_ = w.Close()
	return out.Bytes(), w.FormDataContentType()
}

// mutate changes a body in a few places.
func mutate(r *rand.Rand, body []byte, boundary string) []byte {
	body = bytes.Clone(body)
	pieces := []string{"\r\n", "\n", "\r", "--", "--" + boundary, "--" + boundary + "--", "\r\n--" + boundary, "\x00", ":", ";", `"`, "filename=", "Content-Disposition: "}
	for range 1 + r.IntN(4) {
		at := r.IntN(len(body) + 1)
		switch r.IntN(6) {
		case 0: // cut off
			body = body[:at]
		case 1: // a byte
			if at < len(body) {
				body[at] = byte(r.IntN(256))
			}
		case 2: // taken out
			end := min(len(body), at+r.IntN(100))
			body = append(body[:at:at], body[end:]...)
		case 3: // doubled
			end := min(len(body), at+r.IntN(2000))
			body = append(body[:end:end], body[at:]...)
		case 4: // put in
			body = append(body[:at:at], append([]byte(pieces[r.IntN(len(pieces))]), body[at:]...)...)
		default: // a long line
			body = append(body[:at:at], append(bytes.Repeat([]byte{"x\n- :"[r.IntN(5)]}, r.IntN(40<<10)), body[at:]...)...)
		}
	}
	return body
}

// TestMutatedBodiesAreReadOrRefused: none panics, none hangs, and none takes more memory than a body may.
func TestMutatedBodiesAreReadOrRefused(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 1))
	count, accepted := 10_000, 0
	if testing.Short() {
		count = 1000
	}
	var before, after runtime.MemStats
	for n := range count {
		whole, contentType := random(r)
		body := mutate(r, whole, contentType[strings.IndexByte(contentType, '=')+1:])
		runtime.ReadMemStats(&before)
		fields, files, err := read(bytes.NewReader(body), contentType)
		runtime.ReadMemStats(&after)
		checkRead(t, body, fields, files, err)
		if err == nil {
			accepted++
		}
		if took := after.TotalAlloc - before.TotalAlloc; took > uint64(512<<10+8*len(body)) {
			t.Errorf("body %d of %d bytes: %d bytes were allocated", n, len(body), took)
		}
	}
	if accepted == 0 || accepted == count {
		t.Errorf("%d of %d bodies were accepted", accepted, count)
	}
}

// checkRead checks what holds of any body.
func checkRead(t *testing.T, body []byte, fields []upload.Field, files []kept, err error) {
	t.Helper()
	if err != nil {
		switch code := fault.CodeOf(err); code {
		case fault.InvalidRequest, fault.BodyTooLarge, fault.UnsupportedEncoding:
		default:
			t.Errorf("%.200q: the error is %v", body, err)
		}
		return
	}
	size := int64(0)
	for _, f := range fields {
		size += int64(len(f.Value))
	}
	for _, f := range files {
		size += f.Size
		if f.Name != fileinfo.Name(f.Name) || f.Type == "" {
			t.Errorf("%.200q: file %+v", body, f)
		}
	}
	if size > int64(len(body)) || len(fields)+len(files) > upload.MaxParts || len(files) > upload.MaxFiles {
		t.Errorf("%.200q: %d fields and %d files with %d bytes", body, len(fields), len(files), size)
	}
}

func FuzzRead(f *testing.F) {
	f.Add([]byte(formOf(2, `form-data; name="a"; filename="b"`, "x")), form)
	f.Add([]byte(formOf(1, `form-data; name="a"`, "x")), `multipart/form-data; boundary="xyz"`)
	f.Add([]byte("x"), "image/png")
	f.Fuzz(func(t *testing.T, body []byte, contentType string) {
		fields, files, err := read(bytes.NewReader(body), contentType)
		checkRead(t, body, fields, files, err)
		slowFields, slowFiles, slowErr := read(iotest.OneByteReader(bytes.NewReader(body)), contentType)
		if (err == nil) != (slowErr == nil) || err == nil && (!reflect.DeepEqual(fields, slowFields) || !reflect.DeepEqual(files, slowFiles)) {
			t.Errorf("%q as %q: %v %v %v at once, %v %v %v byte by byte", body, contentType, fields, files, err, slowFields, slowFiles, slowErr)
		}
	})
}
