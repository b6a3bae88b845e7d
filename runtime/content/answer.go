package content

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"strconv"
)

// Answer is the answer to a request for content.
type Answer struct {
	// Status is 200, 206, 304, 412 or 416. Bytes are sent for the first two.
	Status int
	// Type is the Content-Type of the body: that of the content, or multipart/byteranges.
	Type string
	// Range is the Content-Range of a 206 with one part, and of a 416; empty: none.
	Range string
	// Length is the length of the body.
	Length int64
	// Parts make up the body, in this order.
	Parts []Part
}

// Part is a part of a body: Head, then Size bytes of the content, beginning at From.
type Part struct {
	Head       []byte
	From, Size int64
}

// Answer evaluates the conditions and the ranges of a request.
func (c *Content) Answer(r *Request) Answer {
	if status := r.status(c); status != http.StatusOK {
		return Answer{Status: status}
	}
	if !r.wantsRange(c) {
		return c.whole()
	}
	switch ranges := parseRanges(r.Range, c.Size); {
	case ranges.refused:
		return Answer{Status: http.StatusRequestedRangeNotSatisfiable, Range: "bytes */" + strconv.FormatInt(c.Size, 10)}
	case ranges.ignored:
		return c.whole()
	case len(ranges.list) == 1:
		one := ranges.list[0]
		return Answer{
			Status: http.StatusPartialContent, Type: c.Type, Range: string(one.appendTo(nil, c.Size)), Length: one.size,
			Parts: []Part{{From: one.from, Size: one.size}},
		}
	default:
		return c.multipart(ranges.list)
	}
}

// whole is the answer with all bytes.
func (c *Content) whole() Answer {
	return Answer{Status: http.StatusOK, Type: c.Type, Length: c.Size, Parts: []Part{{Size: c.Size}}}
}

// multipart is the answer with a part for each range: multipart/byteranges (RFC 9110, section 14.6).
func (c *Content) multipart(ranges []byteRange) Answer {
	boundary := newBoundary()
	a := Answer{
		Status: http.StatusPartialContent, Type: "multipart/byteranges; boundary=" + boundary,
		Parts: make([]Part, 0, len(ranges)+1),
	}
	text := make([]byte, 0, (len(ranges)+1)*(128+len(c.Type)))
	add := func(end int, r byteRange) {
		a.Parts = append(a.Parts, Part{text[end:len(text):len(text)], r.from, r.size})
		a.Length += int64(len(text)-end) + r.size
	}
	for i, r := range ranges {
		start := len(text)
		if i > 0 {
			text = append(text, "\r\n"...)
		}
		text = append(append(text, "--"...), boundary...)
		text = append(text, "\r\nContent-Range: "...)
		text = r.appendTo(text, c.Size)
		if c.Type != "" {
			text = append(append(text, "\r\nContent-Type: "...), c.Type...)
		}
		text = append(text, "\r\n\r\n"...)
		add(start, r)
	}
	start := len(text)
	text = append(append(append(text, "\r\n--"...), boundary...), "--\r\n"...)
	add(start, byteRange{})
	return a
}

// appendTo appends the value of Content-Range.
func (r byteRange) appendTo(b []byte, size int64) []byte {
	b = append(b, "bytes "...)
	b = append(strconv.AppendInt(b, r.from, 10), '-')
	b = append(strconv.AppendInt(b, r.from+r.size-1, 10), '/')
	return strconv.AppendInt(b, size, 10)
}

// newBoundary returns a boundary of multipart. It is random: no one can prepare content that contains it.
func newBoundary() string { return fmt.Sprintf("%016x%016x", rand.Uint64(), rand.Uint64()) }
