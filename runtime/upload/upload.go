package upload

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"mime"
	"mime/multipart"
	"strings"
	"unicode/utf8"

	"runner.example/hostabi/fileinfo"
	"runner.example/internal/fault"
)

// The limits of one body.
const (
	// MaxParts limits the parts of a form, MaxFiles those that are files.
	MaxParts = 256
	MaxFiles = 64
	// MaxText limits the names and values of all fields together, in bytes.
	MaxText = 1 << 20
	// MaxName limits the name of a field, in bytes.
	MaxName = 255
	// MaxHead limits the boundary and the header of a part, and what comes before the first part, in bytes. One buffer more may be read.
	MaxHead = 16 << 10
	// MaxBoundary limits the boundary, as RFC 2046 does.
	MaxBoundary = 70
)

// Memory is what reading a body takes, beside its texts, in bytes: two buffers, and those of the parser and of the Put.
const Memory = bufferBytes + 64<<10

// bufferBytes is the size of the buffer that receives the body.
const bufferBytes = 32 << 10

// firstValueBytes is the size of the buffer for values, which grows.
const firstValueBytes = 4 << 10

// Field is a text of a form.
type Field struct{ Name, Value string }

// Part describes a file of a body, whose contents a Put stores.
type Part struct {
	// Field is the name of the part; empty for a body that is one file.
	Field string
	// Name and Type are those of package fileinfo.
	Name, Type string
	// Declared is the media type that the client has declared, in lower case without parameters; empty: none.
	Declared string
}

// Put stores the contents of a file, which it reads to their end.
type Put func(ctx context.Context, part Part, contents io.Reader) error

// Hold counts bytes of memory that texts take beside Memory, before they are read. Its error ends the body.
type Hold func(bytes int64) error

var (
	errHead     = fault.New(fault.InvalidRequest, "a part of the form has a header of more than %d KiB", MaxHead>>10)
	errNoHeader = fault.New(fault.InvalidRequest, "each part of the form needs one Content-Disposition: form-data with a name")
	errName     = fault.New(fault.InvalidRequest, "the name of each part of the form must be UTF-8 of at most %d bytes", MaxName)
	errText     = fault.New(fault.BodyTooLarge, "the fields of the form have more than %d KiB in all; files do not count", MaxText>>10)
	errUTF8     = fault.New(fault.InvalidRequest, "a field of the form is not UTF-8: a file needs a filename")
	errParts    = fault.New(fault.BodyTooLarge, "the form has more than %d parts", MaxParts)
	errFiles    = fault.New(fault.BodyTooLarge, "the form has more than %d files", MaxFiles)
	errEncoded  = fault.New(fault.UnsupportedEncoding, "a part of the form has a Content-Transfer-Encoding: send its bytes as they are")
	errBoundary = fault.New(fault.InvalidRequest, "the Content-Type of a form needs a boundary of 1 to %d characters", MaxBoundary)
	errOther    = fault.New(fault.UnsupportedEncoding, "the body is of another multipart type: send multipart/form-data, or the bytes of one file")
)

// Read reads a body to its end. It returns the fields in their order, and calls put for each file. A body that is not
// multipart is one file; without any byte it is none. The errors of a body that is not valid are faults; those of body,
// put and hold are returned unchanged, the body's first.
func Read(ctx context.Context, body io.Reader, contentType string, put Put, hold Hold) ([]Field, error) {
	r := &reader{ctx: ctx, put: put, hold: hold, source: source{body: bufio.NewReaderSize(body, bufferBytes), left: -1}}
	err := r.read(contentType)
	if r.source.err != nil {
		err = r.source.err
	}
	if err != nil {
		return nil, err
	}
	return r.fields, nil
}

// source is a body. While the parser of forms reads a head, it yields only left bytes more.
type source struct {
	body *bufio.Reader
	left int   // -1: any number
	err  error // of the body, except io.EOF
	// form: the body is a form. Its end is then a line end and an error, because the parser would take the end of the
	// body within the header of a part for the end of the form.
	form, ended bool
	tail        []byte // the last bytes of a form, in which the line of the last boundary is
}

// tailBytes is more than the line of a boundary has.
const tailBytes = 2 * MaxBoundary

func (s *source) Read(p []byte) (int, error) {
	if s.left == 0 {
		return 0, errHead
	}
	if s.left > 0 {
		p = p[:min(len(p), s.left)]
	}
	n, err := s.body.Read(p)
	if n == 0 && err == io.EOF && s.form {
		if s.ended {
			return 0, io.ErrUnexpectedEOF
		}
		n, err = copy(p, s.lineEnd()), nil
		s.ended = true
	} else if s.form {
		s.tail = append(s.tail, p[max(0, n-tailBytes):n]...)
		s.tail = s.tail[:copy(s.tail, s.tail[max(0, len(s.tail)-tailBytes):])]
	}
	if s.left > 0 {
		s.left -= n
	}
	if err != nil && err != io.EOF {
		s.err = err
	}
	return n, err
}

// lineEnd is that of the last line: some clients write lines without a carriage return, and the parser accepts that.
func (s *source) lineEnd() string {
	if at := bytes.LastIndexByte(s.tail, '\n'); at == 0 || at > 0 && s.tail[at-1] != '\r' {
		return "\n"
	}
	return "\r\n"
}

// reader is the state of Read.
type reader struct {
	ctx    context.Context
	put    Put
	hold   Hold
	source source
	fields []Field
	text   int    // bytes of fields
	value  []byte // the buffer for the value of a field
	files  int
	first  [fileinfo.SniffBytes]byte // of a file
}

func (r *reader) read(contentType string) error {
	media, params, err := mime.ParseMediaType(contentType)
	switch {
	case !strings.HasPrefix(media, "multipart/"):
		return r.readFile(Part{Declared: fileinfo.MediaType(contentType)}, &r.source, false)
	case media != "multipart/form-data":
		return errOther
	case err != nil || params["boundary"] == "" || len(params["boundary"]) > MaxBoundary:
		return errBoundary
	}
	r.source.form = true
	if err := r.readForm(multipart.NewReader(&r.source, params["boundary"])); err != nil {
		return err
	}
	_, err = io.Copy(io.Discard, r.source.body) // what comes after the last part
	return err
}

func (r *reader) readForm(form *multipart.Reader) error {
	for parts := 0; ; parts++ {
		r.source.left = MaxHead
		part, err := form.NextRawPart()
		r.source.left = -1
		switch {
		case err == io.EOF:
			return nil
		case errors.Is(err, errHead) || errors.Is(err, multipart.ErrMessageTooLarge):
			return errHead
		case err != nil:
			return malformed(err)
		case parts == MaxParts:
			return errParts
		}
		if err := r.readPart(part); err != nil {
			return err
		}
	}
}

// malformed is the fault of a form that the parser does not accept.
func malformed(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return fault.New(fault.InvalidRequest, "the form ends before its last boundary")
	}
	return fault.Wrap(err, fault.InvalidRequest, "the body is not multipart/form-data as in RFC 7578")
}

func (r *reader) readPart(part *multipart.Part) error {
	lines := part.Header["Content-Disposition"]
	if len(lines) != 1 {
		return errNoHeader
	}
	kind, params, err := mime.ParseMediaType(lines[0])
	name, named := params["name"]
	switch {
	case err != nil || kind != "form-data" || !named:
		return errNoHeader
	case len(name) > MaxName || !utf8.ValidString(name):
		return errName
	}
	switch encoding := strings.ToLower(part.Header.Get("Content-Transfer-Encoding")); encoding {
	case "", "7bit", "8bit", "binary":
	default:
		return errEncoded
	}
	given, isFile := params["filename"]
	if !isFile {
		return r.readField(name, part)
	}
	return r.readFile(Part{Field: name, Name: given, Declared: fileinfo.MediaType(part.Header.Get("Content-Type"))}, part, given != "")
}

func (r *reader) readField(name string, part *multipart.Part) error {
	r.text += len(name)
	value, err := r.readValue(part)
	r.text += len(value)
	switch {
	case err != nil:
		return err
	case r.text > MaxText:
		return errText
	case !utf8.Valid(value):
		return errUTF8
	}
	if err := r.hold(int64(len(name) + len(value))); err != nil {
		return err
	}
	r.fields = append(r.fields, Field{name, string(value)})
	return nil
}

// readValue returns the value of a field, valid until the next call, or more than the limit allows.
func (r *reader) readValue(part io.Reader) ([]byte, error) {
	for value := r.value[:0]; ; {
		if len(value) == cap(value) {
			more := max(cap(value), firstValueBytes)
			if err := r.hold(int64(more)); err != nil {
				return nil, err
			}
			r.value = append(make([]byte, 0, cap(value)+more), value...)
			value = r.value
		}
		n, err := part.Read(value[len(value):cap(value)])
		switch value = value[:len(value)+n]; {
		case err == io.EOF || r.text+len(value) > MaxText:
			return value, nil
		case err != nil:
			return nil, malformed(err)
		}
	}
}

// readFile reads a file. One without any byte is none, unless the client has named it: browsers send such a part for
// a file that was not chosen.
func (r *reader) readFile(p Part, contents io.Reader, named bool) error {
	in := &whole{from: contents}
	n, err := in.Read(r.first[:])
	switch {
	case err == io.EOF && !named:
		return nil
	case err != nil && err != io.EOF:
		return err
	}
	if r.files++; r.files > MaxFiles {
		return errFiles
	}
	p.Name, p.Type = fileinfo.Name(p.Name), fileinfo.Type(r.first[:n])
	err = r.put(r.ctx, p, io.MultiReader(bytes.NewReader(r.first[:n]), in))
	if in.err != nil && in.err != io.EOF {
		return in.err
	}
	return err
}

// whole fills what it reads into, unless the contents end before, so that files are not written in small parts.
type whole struct {
	from io.Reader
	err  error // io.EOF: the contents have ended; else a fault
}

func (w *whole) Read(p []byte) (n int, err error) {
	for n < len(p) && w.err == nil {
		var got int
		got, err = w.from.Read(p[n:])
		n += got
		if err == io.EOF {
			w.err = io.EOF
		} else if err != nil {
			w.err = malformed(err)
		}
	}
	if n > 0 && (w.err == nil || w.err == io.EOF) {
		return n, nil
	}
	return n, w.err
}
