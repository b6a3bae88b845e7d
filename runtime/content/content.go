package content

import (
	"bytes"
	"io"
	"net/http"
	"time"
)

// Source is opened content. If it is an *os.File, the kernel can send it.
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

// Content describes the bytes that can answer a request: the representation, as RFC 9110 calls it. This package does not
// change it.
type Content struct {
	// Size is in bytes.
	Size int64
	// Type is the Content-Type, with the charset.
	Type string
	// ETag is the strong entity tag, with its quotes; empty: none.
	ETag string
	// Modified is the time for Last-Modified; zero: unknown.
	Modified time.Time
	// Encoding is the Content-Encoding; empty: none. Size and ranges count encoded bytes.
	Encoding string
	// Open opens the bytes. It is called at most once for each answer, and only if bytes are sent.
	Open func() (Source, error)
}

// LastModified returns the value of the Last-Modified header; empty: the time is unknown.
func (c *Content) LastModified() string {
	if !c.hasTime() {
		return ""
	}
	return c.Modified.UTC().Format(http.TimeFormat)
}

// hasTime reports whether the time is known. As in net/http, the Unix epoch counts as unknown.
func (c *Content) hasTime() bool { return !c.Modified.IsZero() && c.Modified.Unix() != 0 }
