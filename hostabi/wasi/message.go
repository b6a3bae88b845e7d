package wasi

import (
	"slices"
	"strings"
	"sync"
	"time"

	"runner.example/hostabi"
	"runner.example/hostabi/abi"
	"runner.example/hostabi/outbound"
	"runner.example/internal/component"
	"runner.example/internal/component/canon"
)

// request is the resource of WASI 0.3: the request that the component handles, or one that it makes. Method, scheme,
// path and authority are values of their WIT types.
type request struct {
	method, scheme, path, authority any
	options                         *requestOptions // nil: none
	parts
}

func (*request) kind() string { return "request" }

// response is the resource of WASI 0.3: the answer of the component, or that of another service.
type response struct {
	status int
	parts
}

func (*response) kind() string { return "response" }

// parts are what requests and responses have in common.
type parts struct {
	headers  []field
	body     *pipe // nil: none
	trailers *pipe
	sent     *transmission // tells the guest whether the message was sent; nil: the guest has received the message
}

// drop is called when the guest drops the message, which will not be sent.
func (p *parts) drop() {
	p.unsent()
	for _, pipe := range []*pipe{p.body, p.trailers} {
		if pipe != nil {
			pipe.stop()
		}
	}
}

// unsent tells the guest that the message will not be sent.
func (p *parts) unsent() {
	if p.sent != nil && !p.sent.over {
		p.sent.end(internalError("the message was dropped"))
	}
}

// transmission says whether a message was sent. It is the value of a future.
type transmission struct {
	over bool
	code any // the error-code; nil: it was sent
}

func (t *transmission) end(code any) { t.over, t.code = true, code }

func (t *transmission) ready(time.Time) (bool, time.Duration) { return t.over, never }

func (t *transmission) value(*run) any { return resultOf(t.code) }

func (*transmission) drop() {}

// resultOf is a result without a value, of an error-code or nil.
func resultOf(code any) any {
	if code != nil {
		return fail(code)
	}
	return ok(nil)
}

// messageTypes are the types of streams and futures that messages have.
var messageTypes = sync.OnceValue(func() (t struct{ body, trailers, sent *payload }) {
	f := functionOf("wasi:http/types@0.3", "[static]request.new")
	t.body, t.trailers = payloadOf(f.Params[1].Type.Element), payloadOf(f.Params[2].Type)
	t.sent = payloadOf(f.Result.Fields[1].Type)
	return t
})

// functionOf returns the type of a function of World.
func functionOf(module, name string) *component.FuncType {
	for _, i := range World().Imports {
		if i.Name == name && component.HostInterface(i.Interface) == module {
			return i.Func
		}
	}
	panic("BUG: no function " + name + " of " + module)
}

// messageFunctions are those of wasi:http/types@0.3.
var messageFunctions = merged(fieldFunctions, map[string]function{
	"[method]fields.copy-all": func(r *run, a []any) any { return use[*fields](r, a[0]).entries() },
	"[method]fields.get-and-delete": func(r *run, a []any) any {
		f := use[*fields](r, a[0])
		values := f.get(a[1].(string))
		if result := f.change(a[1].(string), nil, true).(canon.Case); result.Index != 0 {
			return result
		}
		return ok(values)
	},

	"[static]request.new": func(r *run, a []any) any {
		q := &request{method: canon.Case{}, scheme: none, path: none, authority: none, parts: r.newParts(a)}
		if o := a[3].(canon.Case); o.Index == 1 {
			q.options = take[*requestOptions](r, o.Value)
			q.options.immutable = true
		}
		return []any{r.add(q, 0), r.open(messageTypes().sent, &promise{later: q.sent})}
	},
	"[method]request.get-method":          func(r *run, a []any) any { return use[*request](r, a[0]).method },
	"[method]request.get-path-with-query": func(r *run, a []any) any { return use[*request](r, a[0]).path },
	"[method]request.get-scheme":          func(r *run, a []any) any { return use[*request](r, a[0]).scheme },
	"[method]request.get-authority":       func(r *run, a []any) any { return use[*request](r, a[0]).authority },
	"[method]request.set-method": func(r *run, a []any) any {
		return set(&use[*request](r, a[0]).method, a[1], len(methods), outbound.IsToken)
	},
	"[method]request.set-scheme": func(r *run, a []any) any { return setScheme(&use[*request](r, a[0]).scheme, a[1]) },
	"[method]request.set-path-with-query": func(r *run, a []any) any {
		return set(&use[*request](r, a[0]).path, a[1], 1, isPath)
	},
	"[method]request.set-authority": func(r *run, a []any) any {
		return set(&use[*request](r, a[0]).authority, a[1], 1, isAuthority)
	},
	"[method]request.get-options": func(r *run, a []any) any {
		if o := use[*request](r, a[0]).options; o != nil {
			return some(r.add(o, 0))
		}
		return none
	},
	"[method]request.get-headers": func(r *run, a []any) any { return r.immutable(use[*request](r, a[0]).headers) },
	"[static]request.consume-body": func(r *run, a []any) any {
		return r.consumeBody(&take[*request](r, a[0]).parts, a[1])
	},

	"[static]response.new": func(r *run, a []any) any {
		p := &response{status: 200, parts: r.newParts(a)}
		return []any{r.add(p, 0), r.open(messageTypes().sent, &promise{later: p.sent})}
	},
	"[method]response.get-status-code": func(r *run, a []any) any { return uint64(use[*response](r, a[0]).status) },
	"[method]response.set-status-code": func(r *run, a []any) any { return setStatus(&use[*response](r, a[0]).status, a[1]) },
	"[method]response.get-headers":     func(r *run, a []any) any { return r.immutable(use[*response](r, a[0]).headers) },
	"[static]response.consume-body": func(r *run, a []any) any {
		return r.consumeBody(&take[*response](r, a[0]).parts, a[1])
	},

	"[constructor]request-options":                      func(r *run, _ []any) any { return r.add(&requestOptions{firstByte: none}, 0) },
	"[method]request-options.get-connect-timeout":       noTimeout,
	"[method]request-options.set-connect-timeout":       refuseOption,
	"[method]request-options.get-between-bytes-timeout": noTimeout,
	"[method]request-options.set-between-bytes-timeout": refuseOption,
	"[method]request-options.get-first-byte-timeout":    func(r *run, a []any) any { return use[*requestOptions](r, a[0]).firstByte },
	"[method]request-options.set-first-byte-timeout": func(r *run, a []any) any {
		o := use[*requestOptions](r, a[0])
		if o.immutable {
			return fail(canon.Case{Index: 1})
		}
		o.firstByte = a[1]
		return ok(nil)
	},
	"[method]request-options.clone": func(r *run, a []any) any {
		return r.add(&requestOptions{firstByte: use[*requestOptions](r, a[0]).firstByte}, 0)
	},
})

// refuseOption says that an option is not supported.
func refuseOption(r *run, a []any) any {
	if use[*requestOptions](r, a[0]).immutable {
		return fail(canon.Case{Index: 1})
	}
	return fail(canon.Case{})
}

// immutable adds headers that cannot be changed. They outlive their message.
func (r *run) immutable(headers []field) any {
	return r.add(&fields{all: headers, immutable: true}, 0)
}

// newParts are those of a message that the guest makes: its headers, contents and trailers.
func (r *run) newParts(a []any) parts {
	p := parts{headers: take[*fields](r, a[0]).all, sent: &transmission{}}
	if body := a[1].(canon.Case); body.Index == 1 {
		p.body = r.pass(body.Value, messageTypes().body)
	}
	p.trailers = r.pass(a[2], messageTypes().trailers)
	return p
}

// received are the parts of a message that came to the guest. No trailers did.
func received(headers []field, body []byte) parts {
	return parts{
		headers:  headers,
		body:     &pipe{of: messageTypes().body, producer: &available{body}},
		trailers: &pipe{of: messageTypes().trailers, producer: value(ok(none))},
	}
}

// consumeBody gives the guest the contents of a message. outcome is a future by which the guest says whether it could
// read them; its value is ignored.
func (r *run) consumeBody(p *parts, outcome any) any {
	r.connect(r.pass(outcome, messageTypes().sent), ignored{})
	p.unsent()
	if p.body == nil {
		p.body = &pipe{of: messageTypes().body, producer: &available{[]byte{}}}
	}
	return []any{r.addReader(p.body), r.addReader(p.trailers)}
}

// ignored reads what the host does not need.
type ignored struct{}

func (ignored) accept(*run, any) bool { return true }
func (ignored) close()                {}

// transmit sends the contents of a message to a content, when the guest writes them.
func (r *run) transmit(p *parts, to *content) {
	to.taken = true
	r.connect(p.trailers, &trailersReader{to})
	if p.body == nil {
		_ = to.finish()
		return
	}
	r.connect(p.body, &bodyReader{to})
}

// bodyReader reads the body of a message that the guest sends.
type bodyReader struct{ *content }

func (b *bodyReader) accept(_ *run, bytes any) bool {
	if b.write(bytes.([]byte)) != nil {
		b.end(false)
		return false
	}
	return true
}

func (b *bodyReader) close() {
	if !b.finished && !b.dropped {
		_ = b.finish()
	}
}

// trailersReader reads the trailers of a message that the guest sends, which are not sent. Instead of them there may be
// an error-code, which says that the body is incomplete.
type trailersReader struct{ *content }

func (t *trailersReader) accept(r *run, values any) bool {
	for _, v := range values.([]any) {
		switch c := v.(canon.Case); {
		case c.Index == 1:
			t.failed = &ioError{text: "the component has said so in the place of its trailers", http: c.Value}
		case c.Value.(canon.Case).Index == 1:
			take[*fields](r, c.Value.(canon.Case).Value)
		}
	}
	return true
}

func (*trailersReader) close() {}

// send sends a request to another service.
func send(r *run, a []any) any {
	q := take[*request](r, a[0])
	if q.sent == nil { // it is passed on, without what the runner sets for each connection
		q.headers = slices.DeleteFunc(slices.Clone(q.headers), func(h field) bool {
			return outbound.SetsHeader(h.name) && !strings.EqualFold(h.name, "content-length")
		})
	}
	o := &outgoingRequest{
		message: newMessage(q.headers, hostabi.MaxFetchBody, "HTTP-request-body-size"),
		method:  q.method, scheme: q.scheme, path: q.path, authority: q.authority,
	}
	f := &futureResponse{run: r, request: o, timeout: q.options.timeout()}
	if r.call.Preparing() {
		r.call.Trap("a component may not send requests before its first request")
	}
	if _, code := o.check(r, nil); code != nil {
		q.drop()
		return fail(code)
	}
	o.content.complete = func() {
		f.send()
		if q.sent != nil {
			q.sent.end(f.failed)
		}
	}
	r.transmit(&q.parts, o.content)
	return &sending{f, q.parts}
}

// sending is the later of a request that is sent.
type sending struct {
	*futureResponse
	parts
}

// drop is called when the response was taken, or is not wanted. The rest of the request's body is not needed then.
func (s *sending) drop() {
	s.futureResponse.drop()
	if s.sent != nil && !s.sent.over {
		s.parts.drop()
	}
}

func (s *sending) ready(now time.Time) (bool, time.Duration) {
	return (&pollable{response: s.futureResponse}).ready(now)
}

func (s *sending) value(r *run) any {
	found, code := s.result()
	if code != nil {
		return fail(code)
	}
	return ok(r.add(&response{found.status, received(found.headers, found.body.bytes)}, 0))
}

// beginRequest returns the handle of the request.
func beginRequest(r *run, core []uint64) {
	r.begin()
	whole, _ := r.call.WholeBody()
	core[0] = uint64(r.add(&request{
		method: r.method(), scheme: some(r.scheme()), path: r.pathWithQuery(), authority: r.authority(),
		parts: received(r.requestHeaders(), whole),
	}, 0))
}

// requestHeaders are those of the request that the component sees.
func (r *run) requestHeaders() []field {
	return fieldsOf(r.call.Request.Headers, func(h abi.Pair) (string, []byte) { return string(h.Name), h.Value })
}

// returned gets the result of the handler, from task.return or from taskResult.
func (r *run) returned(v any) {
	if !r.http.begun || r.http.outcome != nil {
		r.call.Trap("a handler returns once")
	}
	result := v.(canon.Case)
	if result.Index != 0 {
		r.http.outcome = result.Value.(canon.Case)
		return
	}
	p := take[*response](r, result.Value)
	answer := &outgoingResponse{p.status, newMessage(p.headers, r.call.ResponseBytes(), "HTTP-response-body-size")}
	answer.content.taken = p.body != nil
	r.beginAnswer(answer)
	answer.content.complete = func() {
		if c := answer.content; p.sent != nil && c.failed != nil {
			p.sent.end(internalError(c.failed.text))
		} else if p.sent != nil {
			p.sent.end(nil)
		}
	}
	r.transmit(&p.parts, answer.content)
}

// taskResult gets a pointer to the result of a handler that returns it.
func taskResult(r *run, core []uint64) {
	lifter := canon.Lifter{Memory: whole(r.memory), Budget: r.call.MovedLeft()}
	v, err := lifter.Load(host().AsyncHandler().Result, uint32(core[0]))
	if err != nil {
		r.call.Trap("the result of the handler: %v", err)
	}
	r.returned(v)
}

// endRequest completes the answer, when the task has ended.
func (r *run) endRequest() {
	if r.http.outcome == nil {
		r.call.Trap("the handler has ended without a result: it must call task.return")
	}
	r.answer()
}
