package abi

import (
	"slices"
	"strings"
	"time"
	"unicode/utf8"
)

// Pair is one name with its value.
type Pair struct{ Name, Value []byte }

// Request is one HTTP request as a handler sees it. Its bytes belong to its maker, and are
// valid until the answer is sent. They must not be changed, because a second run of the
// handler reads them again.
type Request struct {
	// ID is made by the host: a lower-case ULID.
	ID string
	// Secure: the client has sent it over HTTPS, to this server or to a trusted proxy.
	Secure bool
	// Method and Path are as received; Path is the raw target without the query.
	Method, Path []byte
	// Route is the template of the matched route: "/v1/orders/:id".
	Route string
	// Params are percent-decoded, in order of the path.
	Params []Pair
	// RawQuery is the query as received, without its "?"; nil if the target has none.
	RawQuery []byte
	// Query has all decoded pairs in order of arrival.
	Query []Pair
	// Headers are in order of arrival, lower-case, lines of one name joined. A value may have
	// any bytes above 0x7F: see HeaderText.
	Headers []Pair
	// Body is the exact body.
	Body []byte
	// Job is the job that the handler runs for; nil for a request.
	Job *Job
	// Traceparent is the header of that name, nil unless there is one line of it. Unlike
	// Headers it is present from the start.
	Traceparent []byte
}

// Job is what a handler knows of the job that it runs for.
type Job struct {
	ID string `json:"id"`
	// Attempt counts the runs of the job from 1.
	Attempt int `json:"attempt"`
	// ScheduledFor is when the job was to run first, as RFC 3339 in UTC.
	ScheduledFor string `json:"scheduledFor"`
}

// Header returns the value of a header by its name in lower case. The bytes belong to the
// request.
func (r *Request) Header(name string) (value []byte, ok bool) {
	for _, h := range r.Headers {
		if string(h.Name) == name {
			return h.Value, true
		}
	}
	return nil, false
}

// HeaderText returns the value of a header as text: as it is if it is UTF-8, otherwise each
// byte is a character of ISO 8859-1, which it was when headers had an encoding (RFC 9110, section 5.5).
func HeaderText(value []byte) []byte {
	if utf8.Valid(value) {
		return value
	}
	return AppendByteText(make([]byte, 0, len(value)+HighBytes(value)), value)
}

// AppendByteText appends each byte of value as the character with its number, in UTF-8.
func AppendByteText(out, value []byte) []byte {
	for _, c := range value {
		out = utf8.AppendRune(out, rune(c))
	}
	return out
}

// HighBytes returns how many bytes of value are above 0x7F: so much longer is what AppendByteText appends.
func HighBytes(value []byte) (n int) {
	for _, c := range value {
		n += int(c >> 7)
	}
	return n
}

// Response is a handler's answer, filled in by host calls. The zero value is
// "no answer yet" (Status 0). It owns its bytes, which are valid until Reset.
type Response struct {
	Status int
	// Code and Detail are set by error helpers. Front makes problem+json of them, and
	// Body is empty.
	Code, Detail string
	// Public replaces Detail for clients if it is not empty. Operators and the log get Detail.
	Public string
	// Errors is the JSON of the problem's member "errors"; nil: none.
	Errors []byte
	// Members are further members of the problem, as JSON without braces. None has the name of a member that the
	// host writes.
	Members []byte
	Headers []Pair
	Body    []byte
	// File is what is sent in place of Body, which is empty; nil: nothing is.
	File *FileAnswer

	headerBytes []byte // what Headers point into
}

// Reset makes r "no answer yet" again and keeps its memory.
func (r *Response) Reset() {
	*r = Response{Headers: r.Headers[:0], Body: r.Body[:0], headerBytes: r.headerBytes[:0]}
}

// AddHeader appends a copy of one header line. It checks nothing.
func (r *Response) AddHeader(name, value []byte) {
	r.headerBytes = slices.Grow(r.headerBytes, len(name)+len(value))
	start := len(r.headerBytes)
	r.headerBytes = append(append(r.headerBytes, name...), value...)
	own := r.headerBytes[start:]
	r.Headers = append(r.Headers, Pair{own[:len(name):len(name)], own[len(name):len(own):len(own)]})
}

// DeleteHeader deletes all headers of that name, in lower case.
func (r *Response) DeleteHeader(name string) {
	r.Headers = slices.DeleteFunc(r.Headers, func(h Pair) bool { return strings.EqualFold(string(h.Name), name) })
}

// FileAnswer is a stored file that is the answer. Its other headers are those of the Response.
type FileAnswer struct {
	// Digest names its contents in the store.
	Digest [32]byte
	Size   int64
	// Type is the Content-Type.
	Type string
	// Modified is when the file was stored.
	Modified time.Time
}

// HeaderSize returns the length of all names and values of headers.
func (r *Response) HeaderSize() int { return len(r.headerBytes) }
