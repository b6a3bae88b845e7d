package abi

import "slices"

// Pair is one name with its value.
type Pair struct{ Name, Value []byte }

// Request is one HTTP request as a handler sees it. Everything it points to
// belongs to whoever made the request and stays as it is until the answer has
// left; a handler run again for the same request reads the same bytes, so
// nothing may write to them.
type Request struct {
	// ID is made by the host: a lower-case ULID.
	ID string
	// Method and Path are as they came; Path is the raw target without the query.
	Method, Path []byte
	// Route is the template of the matched route: "/v1/orders/:id".
	Route string
	// Params are percent-decoded, in order of the path.
	Params []Pair
	// RawQuery is the query as it came, without its "?".
	RawQuery []byte
	// Query holds all decoded pairs in order of arrival.
	Query []Pair
	// Headers are in order of arrival, lower-case, lines of one name joined.
	Headers []Pair
	// Body is the exact body.
	Body []byte
}

// Header gives the value of a header by its name in lower case. The bytes belong to
// the request.
func (r *Request) Header(name string) (value []byte, ok bool) {
	for _, h := range r.Headers {
		if string(h.Name) == name {
			return h.Value, true
		}
	}
	return nil, false
}

// Response is a handler's answer, filled in by host calls. The zero value is
// "no answer yet" (Status 0). Its bytes are its own: they outlive the sandbox
// and hold until Reset.
type Response struct {
	Status int
	// Code and Detail are set when the answer is an error helper's: front
	// makes problem+json from them, and Body is empty.
	Code, Detail string
	Headers      []Pair
	Body         []byte

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

// HeaderSize is how many bytes the names and values of all headers take.
func (r *Response) HeaderSize() int { return len(r.headerBytes) }
