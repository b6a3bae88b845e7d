package content

import (
	"bytes"
	"io"
	"net/http"
	"time"
)

// Source has the bytes of a content. It is an *os.File where that is possible: the kernel can send those itself.
type Source interface {
	io.ReaderAt
	io.Closer
}

// Memory is a Source in memory. Its bytes do not change, also after Close: an answer sends them without a copy.
type Memory struct {
	*bytes.Reader
	Bytes []byte
}

// NewMemory returns the source of b, which must not change from now on.
func NewMemory(b []byte) *Memory { return &Memory{bytes.NewReader(b), b} }

// Close implements Source.
func (*Memory) Close() error { return nil }

// Content describes what is sent. It is not changed by this package.
type Content struct {
	// Size is the number of bytes of its source.
	Size int64
	// Type is the Content-Type, with its charset.
	Type string
	// ETag is the strong entity tag, with its quotes; empty: none.
	ETag string
	// Modified is when it was made, for Last-Modified; the zero time: unknown.
	Modified time.Time
	// Encoding is the Content-Encoding; empty: none. Ranges are those of the encoded bytes.
	Encoding string
	// Open opens the bytes. It is called once, and only if some are sent.
	Open func() (Source, error)
}

// LastModified returns the value of the header of that name; empty: there is none.
func (c *Content) LastModified() string {
	if !c.hasTime() {
		return ""
	}
	return c.Modified.UTC().Format(http.TimeFormat)
}

// hasTime reports whether the time of the content can be compared with a request's.
func (c *Content) hasTime() bool { return !c.Modified.IsZero() && c.Modified.Unix() != 0 }
