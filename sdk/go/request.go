package runner

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"unicode/utf16"
	"unicode/utf8"

	"runner.example/sdk/go/internal/codec"
	"runner.example/sdk/go/internal/host"
)

// Request is the request at hand. Values are fetched from the host when they
// are asked for, so a handler pays for what it reads.
type Request struct {
	host host.Host
	body []byte
	read bool
}

// Method is the HTTP method.
func (r *Request) Method() string { return r.host.Method() }

// Path is the raw request path, without the query.
func (r *Request) Path() string { return r.host.Path() }

// Param is the path parameter of that name, percent-decoded. A parameter of
// the matched route is never empty; one that the route does not have is.
func (r *Request) Param(name string) string { return r.lookup(host.Param, name) }

// Query is the first query value of that name, empty when there is none.
func (r *Request) Query(name string) string { return r.lookup(host.Query, name) }

// Header is the header of that name (lower case), empty when there is none.
// Repeated lines are joined with ", ".
func (r *Request) Header(name string) string { return r.lookup(host.Header, name) }

// HasQuery reports whether the query names it, if only with an empty value.
func (r *Request) HasQuery(name string) bool {
	_, ok := r.host.Lookup(host.Query, name)
	return ok
}

// QueryAll gives every query value of that name, in order.
func (r *Request) QueryAll(name string) []string {
	var all []string
	for _, pair := range r.host.Pairs(host.Query) {
		if pair.Name == name {
			all = append(all, pair.Value)
		}
	}
	return all
}

// Params gives all path parameters, in order of the path.
func (r *Request) Params() []Pair { return pairs(r.host.Pairs(host.Param)) }

// Queries gives all query pairs in order of arrival.
func (r *Request) Queries() []Pair { return pairs(r.host.Pairs(host.Query)) }

// RawQuery is the query as it was sent, without its "?". Signatures of URLs are made of it.
func (r *Request) RawQuery() string {
	for _, pair := range r.host.Pairs(host.RawQuery) {
		return pair.Value
	}
	return ""
}

// Headers gives all headers in order of arrival, names in lower case.
func (r *Request) Headers() []Pair { return pairs(r.host.Pairs(host.Header)) }

// RawBody is the exact body, for signatures. The bytes are the request's: do
// not change them. The strings that Body reads share them.
func (r *Request) RawBody() []byte {
	if !r.read {
		r.body, r.read = r.host.Body(), true
	}
	return r.body
}

// Reader reads the body as it comes. On a route with `stream:` the function runs before the body has arrived, and `body:`
// may be larger than memory. Read waits for the next bytes, and fails if the client is gone, sends too much or is too slow. If the
// function returns that error, the client gets 400, 413 or 408.
//
// What was read is gone, so the function does not run again: if another request has changed what it has read from
// the store, the client gets 409. RawBody and Body must not be called after the first Read. All readers of a request
// read on where the last one has ended.
func (r *Request) Reader() io.Reader { return &bodyReader{r.host} }

type bodyReader struct{ host host.Host }

func (b *bodyReader) Read(p []byte) (int, error) {
	if len(p) == 0 {
		return 0, nil
	}
	n, err := b.host.Read(p)
	var failure *host.Error
	switch {
	case errors.As(err, &failure):
		return 0, fmt.Errorf("read the body of the request: %s", cmp.Or(bodyFailures[failure.Code], failure.Code))
	case err != nil:
		return 0, err
	case n == 0:
		return 0, io.EOF
	}
	return n, nil
}

var bodyFailures = map[string]string{
	"too_large":   "it is larger than the route allows",
	"deadline":    "it arrives too slowly",
	"unavailable": "the client has ended the connection, or what it sends is not valid",
}

// Pair is one name with its value.
type Pair struct{ Name, Value string }

// Body reads the JSON body as a T. An empty body and null give the zero T, so
// that a check for a field finds it missing. A body that is not JSON, is not valid
// UTF-8, is nested more than 64 levels deep, or does not fit T, is an error that answers 400
// invalid_json when the handler returns it.
func Body[T any](r *Request) (T, error) {
	var v T
	raw := r.RawBody()
	if err := checkUnicode(raw); err != nil {
		return v, &BodyError{cause: err}
	}
	if codec.Decode(raw, &v) {
		return v, nil
	}
	raw = bytes.TrimSpace(raw)
	if len(raw) == 0 {
		return v, nil
	}
	if nesting(raw) > maxDepth {
		return v, &BodyError{cause: errDepth}
	}
	if err := json.Unmarshal(raw, &v); err != nil {
		var zero T
		return zero, &BodyError{cause: err}
	}
	return v, nil
}

// maxDepth is how many levels deep JSON may nest that comes from outside.
const maxDepth = 64

var errDepth = fmt.Errorf("must not be nested more than %d levels deep", maxDepth)

var (
	errUTF8      = errors.New("must be valid UTF-8")
	errSurrogate = errors.New(`must not have half of a surrogate pair, such as \ud800`)
)

// checkUnicode refuses what encoding/json would replace by U+FFFD.
func checkUnicode(text []byte) error {
	if !utf8.Valid(text) {
		return errUTF8
	}
	for {
		at := bytes.IndexByte(text, '\\')
		if at < 0 || at+1 == len(text) {
			return nil
		}
		text = text[at+1:]
		first := escaped(text)
		switch {
		case !utf16.IsSurrogate(first):
			text = text[1:]
		case len(text) > 6 && text[5] == '\\' && utf16.DecodeRune(first, escaped(text[6:])) != utf8.RuneError:
			text = text[6:]
		default:
			return errSurrogate
		}
	}
}

// escaped gives the number of an escape uXXXX, -1 if text does not begin with one.
func escaped(text []byte) rune {
	if len(text) < 5 || text[0] != 'u' {
		return -1
	}
	n, err := strconv.ParseUint(string(text[1:5]), 16, 16)
	if err != nil {
		return -1
	}
	return rune(n)
}

// nesting counts the brackets of a JSON text that are open at once, outside of
// strings.
func nesting(text []byte) (deepest int) {
	depth, quoted := 0, false
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case c == '"':
			quoted = !quoted
		case quoted:
			if c == '\\' {
				i++
			}
		case c == '{' || c == '[':
			depth++
			deepest = max(deepest, depth)
		case c == '}' || c == ']':
			depth--
		}
	}
	return deepest
}

// BodyError says why a body could not be read as JSON.
type BodyError struct{ cause error }

func (e *BodyError) Error() string { return fmt.Sprintf("read the JSON body: %v", e.cause) }

// Unwrap gives the cause: encoding/json's, unless the body nests too deep.
func (e *BodyError) Unwrap() error { return e.cause }

func (r *Request) lookup(kind host.Kind, name string) string {
	value, _ := r.host.Lookup(kind, name)
	return value
}

func pairs(from []host.Pair) []Pair {
	to := make([]Pair, len(from))
	for i, p := range from {
		to[i] = Pair(p)
	}
	return to
}
