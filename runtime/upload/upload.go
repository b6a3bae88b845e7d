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
	// MaxFieldBytes limits the names and values of all fields together.
	MaxFieldBytes = 1 << 20
	// MaxNameBytes limits the name of a field.
	MaxNameBytes = 255
	// MaxHeaderBytes limits the boundary and the header of a part, and the preamble. One buffer more may be read.
	MaxHeaderBytes = 16 << 10
	// MaxBoundary is the limit of RFC 2046.
	MaxBoundary = 70
)

// Memory is the number of bytes that Read needs beside the fields: for two buffers of its own, and for those of the parser
// and of the Put.
const Memory = bufferBytes + 64<<10

// bufferBytes is the size of the buffer that receives the body.
const bufferBytes = 32 << 10

// firstValueBytes is the first size of the buffer for values.
const firstValueBytes = 4 << 10

// Field is a form field that is not a file.
type Field struct{ Name, Value string }

// File describes a file of a body.
type File struct {
	// Field is the name of the form field; empty for a body that is one file.
	Field string
	// Name and Type are those of package fileinfo.
	Name, Type string
	// Declared is the media type that the client declares, in lower case and without parameters; empty: none.
	Declared string
}

// Put stores a file. It reads contents to the end.
type Put func(ctx context.Context, f File, contents io.Reader) error

// Reserve reserves memory for fields, in addition to Memory, before they are read. If it fails, Read stops and returns its
// error.
type Reserve func(bytes int64) error

var (
	errHeader   = fault.New(fault.InvalidRequest, "a part of the form has a header of more than %d KiB", MaxHeaderBytes>>10)
	errNoHeader = fault.New(fault.InvalidRequest, "each part of the form needs one Content-Disposition: form-data with a name")
	errName     = fault.New(fault.InvalidRequest, "the name of each part of the form must be UTF-8 of at most %d bytes", MaxNameBytes)
	errFields   = fault.New(fault.BodyTooLarge, "the fields of the form have more than %d KiB together; files do not count", MaxFieldBytes>>10)
	errUTF8     = fault.New(fault.InvalidRequest, "a field of the form is not UTF-8: send a file with a filename")
	errParts    = fault.New(fault.BodyTooLarge, "the form has more than %d parts", MaxParts)
	errFiles    = fault.New(fault.BodyTooLarge, "the form has more than %d files", MaxFiles)
	errEncoded  = fault.New(fault.UnsupportedEncoding, "a part of the form has a Content-Transfer-Encoding: send its bytes as they are")
	errBoundary = fault.New(fault.InvalidRequest, "the Content-Type of a form needs a boundary of 1 to %d characters", MaxBoundary)
	errOther    = fault.New(fault.UnsupportedEncoding, "the body is of another multipart type: send multipart/form-data, or the bytes of one file")
)

// Read reads a body to the end. It calls put for each file, and returns the fields in their order. A body that is not
// multipart is one file, or no file if it is empty. If the body is not valid, the error is a fault. Errors of body, put
// and reserve are returned unchanged; if several fail, that of body.
func Read(ctx context.Context, body io.Reader, contentType string, put Put, reserve Reserve) ([]Field, error) {
	r := &reader{ctx: ctx, put: put, reserve: reserve, source: source{body: bufio.NewReaderSize(body, bufferBytes), left: -1}}
	err := r.read(contentType)
	if r.source.err != nil {
		err = r.source.err
	}
	if err != nil {
		return nil, err
	}
	return r.fields, nil
}

// source reads a body for the parser of forms.
type source struct {
	body *bufio.Reader
	left int   // the bytes that a header may still have; -1: no limit
	err  error // of the body, except io.EOF
	// form: the source ends with a line end and then io.ErrUnexpectedEOF. At io.EOF the parser would accept a form that
	// ends within the header of a part.
	form, ended bool
	tail        []byte // the last bytes of a form: they include the line of the last boundary
}

// tailBytes is more than the longest line of a boundary has.
const tailBytes = 2 * MaxBoundary

func (s *source) Read(p []byte) (int, error) {
	if s.left == 0 {
		return 0, errHeader
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

// lineEnd returns the line end of the last line: the parser also accepts lines without a carriage return.
func (s *source) lineEnd() string {
	if at := bytes.LastIndexByte(s.tail, '\n'); at == 0 || at > 0 && s.tail[at-1] != '\r' {
		return "\n"
	}
	return "\r\n"
}

// reader is the state of Read.
type reader struct {
	ctx        context.Context
	put        Put
	reserve    Reserve
	source     source
	fields     []Field
	fieldBytes int
	value      []byte // the buffer for the value of a field
	files      int
	start      [fileinfo.SniffBytes]byte // of a file
}

func (r *reader) read(contentType string) error {
	media, params, err := mime.ParseMediaType(contentType)
	switch {
	case !strings.HasPrefix(media, "multipart/"):
		return r.readFile(File{Declared: fileinfo.MediaType(contentType)}, &r.source, false)
	case media != "multipart/form-data":
		return errOther
	case err != nil || params["boundary"] == "" || len(params["boundary"]) > MaxBoundary:
		return errBoundary
	}
	r.source.form = true
	if err := r.readForm(multipart.NewReader(&r.source, params["boundary"])); err != nil {
		return err
	}
	_, err = io.Copy(io.Discard, r.source.body) // the epilogue
	return err
}

func (r *reader) readForm(form *multipart.Reader) error {
	for parts := 0; ; parts++ {
		r.source.left = MaxHeaderBytes
		part, err := form.NextRawPart()
		r.source.left = -1
		switch {
		case err == io.EOF:
			return nil
		case errors.Is(err, errHeader) || errors.Is(err, multipart.ErrMessageTooLarge):
			return errHeader
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

// malformed returns the fault for a form that the parser does not accept.
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
	case len(name) > MaxNameBytes || !utf8.ValidString(name):
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
	return r.readFile(File{Field: name, Name: given, Declared: fileinfo.MediaType(part.Header.Get("Content-Type"))}, part, given != "")
}

func (r *reader) readField(name string, part *multipart.Part) error {
	r.fieldBytes += len(name)
	value, err := r.readValue(part)
	r.fieldBytes += len(value)
	switch {
	case err != nil:
		return err
	case r.fieldBytes > MaxFieldBytes:
		return errFields
	case !utf8.Valid(value):
		return errUTF8
	}
	if err := r.reserve(int64(len(name) + len(value))); err != nil {
		return err
	}
	r.fields = append(r.fields, Field{name, string(value)})
	return nil
}

// readValue returns the value of a field, valid until the next call. It stops when the value exceeds MaxFieldBytes.
func (r *reader) readValue(part io.Reader) ([]byte, error) {
	for value := r.value[:0]; ; {
		if len(value) == cap(value) {
			more := max(cap(value), firstValueBytes)
			if err := r.reserve(int64(more)); err != nil {
				return nil, err
			}
			r.value = append(make([]byte, 0, cap(value)+more), value...)
			value = r.value
		}
		n, err := part.Read(value[len(value):cap(value)])
		switch value = value[:len(value)+n]; {
		case err == io.EOF || r.fieldBytes+len(value) > MaxFieldBytes:
			return value, nil
		case err != nil:
			return nil, malformed(err)
		}
	}
}

// readFile reads a file. It ignores an empty file without a name, which browsers send for a file that was not chosen.
func (r *reader) readFile(f File, contents io.Reader, named bool) error {
	in := &fullReader{from: contents}
	n, err := in.Read(r.start[:])
	switch {
	case err == io.EOF && !named:
		return nil
	case err != nil && err != io.EOF:
		return err
	}
	if r.files++; r.files > MaxFiles {
		return errFiles
	}
	f.Name, f.Type = fileinfo.Name(f.Name), fileinfo.Type(r.start[:n])
	err = r.put(r.ctx, f, io.MultiReader(bytes.NewReader(r.start[:n]), in))
	if in.err != nil && in.err != io.EOF {
		return in.err
	}
	return err
}

// fullReader fills the buffer of each Read, unless the contents end, so that files are not written in small pieces.
type fullReader struct {
	from io.Reader
	err  error // io.EOF or a fault
}

func (r *fullReader) Read(p []byte) (n int, err error) {
	for n < len(p) && r.err == nil {
		var got int
		got, err = r.from.Read(p[n:])
		n += got
		if err == io.EOF {
			r.err = io.EOF
		} else if err != nil {
			r.err = malformed(err)
		}
	}
	if n > 0 && (r.err == nil || r.err == io.EOF) {
		return n, nil
	}
	return n, r.err
}
