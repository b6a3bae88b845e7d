package wasi

import (
	"regexp"
	"strings"
	"time"

	"runner.example/hostabi"
	"runner.example/hostabi/outbound"
	"runner.example/internal/component/canon"
)

// outgoingRequest is a request to another service. Its parts are as the guest has set them.
type outgoingRequest struct {
	message
	method, scheme, path, authority any // values of their WIT types
}

func (*outgoingRequest) kind() string { return "outgoing-request" }

// requestOptions has timeouts. The only one that is kept is that of the first byte: a response is
// whole, so it is that of the response.
type requestOptions struct {
	firstByte any
	immutable bool
}

func (*requestOptions) kind() string { return "request-options" }

// timeout is that of the response.
func (o *requestOptions) timeout() time.Duration {
	if o != nil {
		if t := o.firstByte.(canon.Case); t.Index == 1 {
			return time.Duration(min(t.Value.(uint64), uint64(hostabi.MaxFetchTime)))
		}
	}
	return hostabi.FetchTime
}

// futureResponse is the response to a request that the guest has passed to outgoing-handler.handle.
type futureResponse struct {
	run     *run
	request *outgoingRequest
	timeout time.Duration
	fetch   *hostabi.Fetch // nil: the request was not sent yet
	failed  any            // the error-code of one that could not be sent; nil: it was or will be
	taken   bool
}

func (*futureResponse) kind() string { return "future-incoming-response" }

type incomingResponse struct {
	status  int
	headers []field
	body    body
}

func (*incomingResponse) kind() string { return "incoming-response" }

var outgoingRequestFunctions = map[string]function{
	"[constructor]outgoing-request": func(r *run, a []any) any {
		m := newMessage(take[*fields](r, a[0]).all, hostabi.MaxFetchBody, "HTTP-request-body-size")
		return r.add(&outgoingRequest{message: m, method: canon.Case{}, scheme: none, path: none, authority: none}, 0)
	},
	"[method]outgoing-request.headers": func(r *run, a []any) any {
		return r.headersOf(a[0], use[*outgoingRequest](r, a[0]).headers)
	},
	"[method]outgoing-request.body": func(r *run, a []any) any { return r.takeBody(&use[*outgoingRequest](r, a[0]).message) },

	"[method]outgoing-request.method":          func(r *run, a []any) any { return use[*outgoingRequest](r, a[0]).method },
	"[method]outgoing-request.scheme":          func(r *run, a []any) any { return use[*outgoingRequest](r, a[0]).scheme },
	"[method]outgoing-request.path-with-query": func(r *run, a []any) any { return use[*outgoingRequest](r, a[0]).path },
	"[method]outgoing-request.authority":       func(r *run, a []any) any { return use[*outgoingRequest](r, a[0]).authority },
	"[method]outgoing-request.set-method": func(r *run, a []any) any {
		return set(&use[*outgoingRequest](r, a[0]).method, a[1], len(methods), outbound.IsToken)
	},
	"[method]outgoing-request.set-scheme":          func(r *run, a []any) any { return setScheme(&use[*outgoingRequest](r, a[0]).scheme, a[1]) },
	"[method]outgoing-request.set-path-with-query": func(r *run, a []any) any { return set(&use[*outgoingRequest](r, a[0]).path, a[1], 1, isPath) },
	"[method]outgoing-request.set-authority":       func(r *run, a []any) any { return set(&use[*outgoingRequest](r, a[0]).authority, a[1], 1, isAuthority) },

	"[constructor]request-options":                      func(r *run, _ []any) any { return r.add(&requestOptions{firstByte: none}, 0) },
	"[method]request-options.connect-timeout":           noTimeout,
	"[method]request-options.set-connect-timeout":       refuseTimeout,
	"[method]request-options.between-bytes-timeout":     noTimeout,
	"[method]request-options.set-between-bytes-timeout": refuseTimeout,
	"[method]request-options.first-byte-timeout":        func(r *run, a []any) any { return use[*requestOptions](r, a[0]).firstByte },
	"[method]request-options.set-first-byte-timeout": func(r *run, a []any) any {
		use[*requestOptions](r, a[0]).firstByte = a[1]
		return ok(nil)
	},

	"[method]future-incoming-response.subscribe": func(r *run, a []any) any {
		return r.add(&pollable{response: use[*futureResponse](r, a[0])}, a[0].(uint32))
	},
	"[method]future-incoming-response.get": func(r *run, a []any) any { return use[*futureResponse](r, a[0]).get() },

	"[method]incoming-response.status": func(r *run, a []any) any { return uint64(use[*incomingResponse](r, a[0]).status) },
	"[method]incoming-response.headers": func(r *run, a []any) any {
		return r.headersOf(a[0], use[*incomingResponse](r, a[0]).headers)
	},
	"[method]incoming-response.consume": func(r *run, a []any) any { return r.consume(&use[*incomingResponse](r, a[0]).body) },
}

// set sets a part of a request. The text that its case number text has must be valid.
func set(part *any, value any, text int, valid func(string) bool) any {
	if c := value.(canon.Case); int(c.Index) == text && !valid(c.Value.(string)) {
		return fail(nil)
	}
	*part = value
	return ok(nil)
}

// plainSyntax are the characters of names, those that are escaped included.
const plainSyntax = `[A-Za-z0-9._~!$&'()*+,;=-]|%[0-9A-Fa-f]{2}`

// The syntax of RFC 3986.
var (
	pathSyntax      = regexp.MustCompile(`^(?:[A-Za-z0-9._~!$&'()*+,;=:@/?\[\]{}|^"\x60\\<>-]|%[0-9A-Fa-f]{2}|[\x{80}-\x{10ffff}])*$`)
	schemeSyntax    = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9+.-]*$`)
	authoritySyntax = regexp.MustCompile(`^(?:(?:` + plainSyntax + `|:)*@)?(?:\[[0-9A-Fa-f:.]+\]|(?:` + plainSyntax + `)+)(?::[0-9]{0,5})?$`)
)

// isPath is lenient about characters that clients send unescaped.
func isPath(s string) bool { return pathSyntax.MatchString(s) }

func isAuthority(s string) bool { return authoritySyntax.MatchString(s) }

func setScheme(part *any, value any) any {
	scheme := value.(canon.Case)
	if scheme.Index == 1 {
		if c := scheme.Value.(canon.Case); c.Index == 2 && !schemeSyntax.MatchString(c.Value.(string)) {
			return fail(nil)
		}
	}
	*part = scheme
	return ok(nil)
}

func noTimeout(r *run, a []any) any {
	use[*requestOptions](r, a[0])
	return none
}

// refuseTimeout says that a timeout is not supported.
func refuseTimeout(r *run, a []any) any {
	use[*requestOptions](r, a[0])
	return fail(nil)
}

var outgoingFunctions = map[string]function{"handle": handle}

// handle checks a request, and sends it if its body is complete: that is when the guest did not take it,
// or has finished it. Else it is sent then.
func handle(r *run, a []any) any {
	q := take[*outgoingRequest](r, a[0])
	var options *requestOptions
	if o := a[1].(canon.Case); o.Index == 1 {
		options = take[*requestOptions](r, o.Value)
	}
	f := &futureResponse{run: r, request: q, timeout: options.timeout()}
	if r.call.Preparing() {
		r.call.Trap("a component may not send requests before its first request")
	}
	if _, code := q.check(r, nil); code != nil {
		return fail(code)
	}
	if !q.content.taken || q.content.finished || q.content.dropped {
		f.send()
		if f.failed != nil {
			return fail(f.failed)
		}
	} else {
		q.content.complete = f.send
	}
	return ok(r.add(f, 0))
}

// check makes the request that is sent, or an error-code. An absent scheme is HTTPS.
func (q *outgoingRequest) check(r *run, body []byte) (*outbound.Request, any) {
	scheme, method := "https", ""
	if s := q.scheme.(canon.Case); s.Index == 1 {
		switch c := s.Value.(canon.Case); c.Index {
		case 0:
			scheme = "http"
		case 2:
			scheme = strings.ToLower(c.Value.(string))
		}
	}
	if m := q.method.(canon.Case); int(m.Index) < len(methods) {
		method = methods[m.Index]
	} else {
		method = m.Value.(string)
	}
	authority, path := q.authority.(canon.Case), q.path.(canon.Case)
	if authority.Index == 0 {
		return nil, canon.Case{Index: httpCodes()["HTTP-request-URI-invalid"]}
	}
	target := scheme + "://" + authority.Value.(string)
	if path.Index == 1 {
		if p := path.Value.(string); strings.HasPrefix(p, "/") {
			target += p
		} else {
			target += "/" + p
		}
	}
	var headers []outbound.Header
	for _, h := range q.headers {
		if !strings.EqualFold(h.name, "content-length") { // it follows from the body
			headers = append(headers, outbound.Header{Name: h.name, Value: string(h.value)})
		}
	}
	request, err := r.call.OutboundRequest(method, target, headers, body)
	if err != nil {
		return nil, r.codeOf(err, true)
	}
	return request, nil
}

// send sends the request, whose body is complete, or says why not.
func (f *futureResponse) send() {
	content := f.request.content
	if content.taken && !content.finished {
		f.failed = internalError("the body of the request was not finished")
		if content.failed != nil && content.failed.http != nil {
			f.failed = content.failed.http
		}
		return
	}
	request, code := f.request.check(f.run, content.bytes)
	if code != nil {
		f.failed = code
		return
	}
	fetch, err := f.run.call.Fetch(request, f.timeout)
	if err != nil {
		f.failed = f.run.codeOf(err, true)
		return
	}
	f.fetch = fetch
}

func (f *futureResponse) done() bool {
	return f.taken || f.failed != nil || f.fetch != nil && f.fetch.Done()
}

// get returns the result of the WIT function: an option of a result, which is an error the second time,
// of the result of the request.
func (f *futureResponse) get() any {
	switch {
	case !f.done():
		return none
	case f.taken:
		return some(fail(nil))
	}
	response, code := f.result()
	if code != nil {
		return some(ok(fail(code)))
	}
	return some(ok(ok(f.run.add(response, 0))))
}

// result takes the response when it is there, or the error-code.
func (f *futureResponse) result() (*incomingResponse, any) {
	f.taken = true
	if f.failed != nil {
		return nil, f.failed
	}
	response, err := f.fetch.Response()
	if err != nil {
		return nil, f.run.codeOf(err, false)
	}
	headers := fieldsOf(response.Headers, func(h outbound.Header) (string, []byte) { return h.Name, []byte(h.Value) })
	return &incomingResponse{response.Status, headers, body{bytes: response.Body}}, nil
}

// drop is called when the guest does not want the response any more.
func (f *futureResponse) drop() {
	f.request.content.complete = nil
	if f.fetch != nil && !f.taken {
		f.fetch.Cancel()
	}
}
