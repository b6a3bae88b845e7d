package outbound

import (
	"bytes"
	"context"
	"encoding/json"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
)

// Header is a header field of a request or a response. Its value may have any bytes above 0x7F.
type Header struct{ Name, Value string }

// Request is a request that was checked.
type Request struct {
	origins  Origins
	public   bool // the target is a public host, and so must be that of each redirect
	method   string
	url      *url.URL
	headers  http.Header
	body     []byte
	redirect Redirect
}

// Redirect says what to do with a response that redirects.
type Redirect string

// The zero value is Follow.
const (
	// Follow sends the request to the new URL.
	Follow Redirect = "follow"
	// Manual returns the response.
	Manual Redirect = "manual"
	// Refuse returns an Error, Unavailable.
	Refuse Redirect = "error"
)

// String returns the method and the URL without its query, which may contain secrets:
// "POST https://api.example.com/charges".
func (r *Request) String() string {
	u := url.URL{Scheme: r.url.Scheme, Host: r.url.Host, Path: r.url.Path}
	return r.method + " " + u.String()
}

// Text returns the URL, the headers without traceparent, and the body, as JSON for a person.
func (r *Request) Text() []byte {
	var headers [][2]string
	for _, name := range slices.Sorted(maps.Keys(r.headers)) {
		if name == "Traceparent" { // it differs in each run
			continue
		}
		for _, value := range r.headers[name] {
			headers = append(headers, [2]string{strings.ToLower(name), value})
		}
	}
	text, err := json.Marshal(struct {
		URL     string      `json:"url"`
		Headers [][2]string `json:"headers"`
		Body    string      `json:"body,omitempty"`
	}{r.url.String(), headers, string(r.body)})
	if err != nil {
		return nil // strings are always JSON
	}
	return text
}

// PublicHost returns the host of a request to a public host, with the port if it is not the default of the scheme. It
// returns "" for a request to a declared origin.
func (r *Request) PublicHost() string {
	if !r.public {
		return ""
	}
	return r.url.Host
}

// WithRedirect returns the request with another Redirect.
func (r *Request) WithRedirect(way Redirect) *Request {
	with := *r
	with.redirect = way
	return &with
}

// The limits of a request's head.
const (
	maxURLBytes    = 8 << 10
	maxHeaders     = 100
	maxHeaderBytes = 16 << 10
)

var methods = []string{"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"}

// NewRequest checks a request to one of the origins. The error is an *Error with a text for
// the author of the handler: Invalid, TooLarge, or Denied for an origin that is not declared
// and a header that handlers cannot set. The body is not copied.
func NewRequest(origins Origins, method, target string, headers []Header, body []byte) (*Request, error) {
	if len(target) > maxURLBytes {
		return nil, refuse(TooLarge, "the url may have %d bytes", maxURLBytes)
	}
	u, err := url.Parse(target)
	switch {
	case err != nil:
		return nil, refuse(Invalid, "the url cannot be read")
	case !slices.Contains(methods, method):
		return nil, refuse(Invalid, "the method must be one of %s", strings.Join(methods, ", "))
	case len(body) > 0 && (method == "GET" || method == "HEAD"):
		return nil, refuse(Invalid, "a %s has no body", method)
	}
	public, refused := origins.checkTarget(u)
	if refused != nil {
		return nil, refused
	}
	r := &Request{origins: origins, public: public, method: method, url: u, headers: http.Header{}, body: body}
	return r, r.setHeaders(headers)
}

func (r *Request) setHeaders(headers []Header) error {
	size := 0
	for _, h := range headers {
		size += len(h.Name) + len(h.Value)
	}
	if len(headers) > maxHeaders || size > maxHeaderBytes {
		return refuse(TooLarge, "a request may have %d headers of %d KiB together", maxHeaders, maxHeaderBytes>>10)
	}
	for _, h := range headers {
		switch {
		case !IsToken(h.Name):
			return refuse(Invalid, "a header's name is made of letters, digits and !#$%%&'*+-.^_`|~")
		case !IsValue(h.Value):
			return refuse(Invalid, "the value of header %q has control characters, or blanks around it", shorten(h.Name))
		case SetsHeader(h.Name):
			return refuse(Denied, "header %q is set by the runner", shorten(h.Name))
		}
		r.headers.Add(h.Name, h.Value)
	}
	return nil
}

// SetsHeader reports whether the runner sets a header: it frames the message, or controls the connection or a proxy.
// Proxy is one of the last: a server that runs CGI programs makes it their variable HTTP_PROXY (httpoxy).
func SetsHeader(name string) bool {
	// Many servers read a "_" as a "-" (RFC 3875, section 4.1.18).
	switch lower := strings.ReplaceAll(strings.ToLower(name), "_", "-"); lower {
	case "host", "connection", "content-length", "transfer-encoding", "te", "trailer", "upgrade", "keep-alive",
		"expect", "http2-settings", "via", "forwarded", "x-real-ip", "proxy":
		return true
	default:
		return strings.HasPrefix(lower, "proxy-") || strings.HasPrefix(lower, "x-forwarded-")
	}
}

// IsToken reports whether s is a token, as a header's name is: RFC 9110, section 5.6.2.
func IsToken(s string) bool {
	return s != "" && !strings.ContainsFunc(s, func(r rune) bool {
		switch {
		case 'a' <= r && r <= 'z', 'A' <= r && r <= 'Z', '0' <= r && r <= '9':
			return false
		}
		return !strings.ContainsRune("!#$%&'*+-.^_`|~", r)
	})
}

// IsValue reports whether s can be the value of a header: RFC 9110, section 5.5.
func IsValue(s string) bool {
	return strings.Trim(s, " \t") == s &&
		!strings.ContainsFunc(s, func(r rune) bool { return r != '\t' && r < ' ' || r == 0x7f })
}

// http returns the request that is sent.
func (r *Request) http(ctx context.Context) (*http.Request, error) {
	h, err := http.NewRequestWithContext(ctx, r.method, r.url.String(), bytes.NewReader(r.body))
	if err != nil {
		return nil, err
	}
	if len(r.body) == 0 {
		h.Body, h.GetBody = http.NoBody, nil
	}
	h.Header = r.headers.Clone()
	if h.Header.Get("User-Agent") == "" {
		h.Header.Set("User-Agent", "runner")
	}
	// Nothing is decompressed: a handler that asks for a coding gets the coded body.
	if _, asked := h.Header["Accept-Encoding"]; !asked {
		h.Header.Set("Accept-Encoding", "identity")
	}
	return h, nil
}

// redirected returns the request that follows a redirect (RFC 9110, section 15.4); nil: the
// response is final.
func (r *Request) redirected(status int, location string) (*Request, error) {
	next := *r
	switch status {
	case http.StatusMovedPermanently, http.StatusFound:
		if r.method == "POST" {
			next.method = "GET"
		}
	case http.StatusSeeOther:
		if r.method != "HEAD" {
			next.method = "GET"
		}
	case http.StatusTemporaryRedirect, http.StatusPermanentRedirect:
	default:
		return nil, nil
	}
	switch {
	case location == "" || r.redirect == Manual:
		return nil, nil
	case r.redirect == Refuse:
		return nil, refuse(Unavailable, "the answer redirects, which the request does not allow")
	}
	u, err := r.url.Parse(location)
	if err != nil || len(location) > maxURLBytes {
		return nil, refuse(Unavailable, "the answer redirects to an invalid url")
	}
	if refused := r.origins.check(u, r.public); refused != nil {
		return nil, refuse(Denied, "the answer redirects: %s", refused.Detail)
	}
	next.url = u
	next.headers = r.headers.Clone()
	if next.method != r.method {
		next.body = nil
		for _, name := range []string{"Content-Type", "Content-Encoding", "Content-Language", "Content-Location"} {
			next.headers.Del(name)
		}
	}
	if u.Scheme != r.url.Scheme || u.Host != r.url.Host {
		next.headers = harmless(next.headers)
	}
	return &next, nil
}

// harmless returns the headers that are kept when the origin changes: none that may hold a
// credential.
func harmless(headers http.Header) http.Header {
	kept := http.Header{}
	for _, name := range []string{
		"Accept", "Accept-Encoding", "Accept-Language", "Content-Type", "Content-Encoding", "Content-Language", "User-Agent",
	} {
		if values, ok := headers[name]; ok {
			kept[name] = values
		}
	}
	return kept
}
