package wasi

import (
	"fmt"
	"strconv"
	"strings"

	"runner.example/hostabi"
	"runner.example/internal/component/canon"
)

// body is that of an incoming message.
type body struct {
	bytes []byte
	taken bool
}

// incomingBody has the body of a message. Its stream is its child.
type incomingBody struct {
	bytes []byte
	taken bool // its stream is
}

func (*incomingBody) kind() string { return "incoming-body" }

// futureTrailers are the trailers of a body that is there: none.
type futureTrailers struct{ taken bool }

func (*futureTrailers) kind() string { return "future-trailers" }

// message is what outgoing requests and responses have in common.
type message struct {
	headers []field
	content *content
}

// content is the body of an outgoing message. It outlives the resource of the body.
type content struct {
	bytes    []byte
	sent     *hostabi.Call // sends what is written, and bytes are empty; nil: the body is sent when it is complete
	written  int
	limit    int
	length   int64 // that the header Content-Length says; -1: it is not there
	taken    bool  // the guest has the body
	finished bool
	dropped  bool     // and not finished
	failed   *ioError // a write has; nil: none
	sizeCode string   // the error-code of a body of another length
	complete func()   // is called when the body is finished or dropped; nil: nothing is
}

// outgoingBody is where the guest writes a body. Its stream is its child.
type outgoingBody struct {
	*content
	streamTaken bool
}

func (*outgoingBody) kind() string { return "outgoing-body" }

var bodyFunctions = map[string]function{
	"[method]incoming-body.stream": func(r *run, a []any) any {
		b := use[*incomingBody](r, a[0])
		if b.taken {
			return fail(nil)
		}
		b.taken = true
		return ok(r.add(&inputStream{rest: b.bytes}, a[0].(uint32)))
	},
	"[static]incoming-body.finish": func(r *run, a []any) any {
		take[*incomingBody](r, a[0])
		return r.add(&futureTrailers{}, 0)
	},
	"[method]future-trailers.subscribe": subscribe[*futureTrailers],
	"[method]future-trailers.get": func(r *run, a []any) any {
		t := use[*futureTrailers](r, a[0])
		if t.taken {
			return some(fail(nil))
		}
		t.taken = true
		return some(ok(ok(none)))
	},
	"[method]outgoing-body.write": func(r *run, a []any) any {
		b := use[*outgoingBody](r, a[0])
		if b.streamTaken {
			return fail(nil)
		}
		b.streamTaken = true
		return ok(r.add(&outputStream{to: b}, a[0].(uint32)))
	},
	"[static]outgoing-body.finish": finishBody,
}

// consume takes the body of an incoming message.
func (r *run) consume(b *body) any {
	if b.taken {
		return fail(nil)
	}
	b.taken = true
	return ok(r.add(&incomingBody{bytes: b.bytes}, 0))
}

// newMessage makes the common part of an outgoing message.
func newMessage(headers []field, limit int, sizeCode string) message {
	m := message{headers: headers, content: &content{limit: limit, length: -1, sizeCode: sizeCode}}
	for _, h := range m.headers {
		if strings.EqualFold(h.name, "content-length") {
			if n, err := strconv.ParseUint(string(h.value), 10, 63); err == nil {
				m.content.length = int64(n)
			}
		}
	}
	return m
}

// takeBody takes the body of an outgoing message, for the guest to write.
func (r *run) takeBody(m *message) any {
	if m.content.taken {
		return fail(nil)
	}
	m.content.taken = true
	return ok(r.add(&outgoingBody{content: m.content}, 0))
}

// stream sends what was written, and what will be, as parts of the answer that has begun.
func (b *content) stream(c *hostabi.Call) {
	b.sent = c
	written := b.bytes
	b.bytes, b.written = nil, 0
	_ = b.write(written) // the next write fails too
}

func (b *content) write(p []byte) *ioError {
	switch {
	case b.sent != nil && len(p) == 0:
		return nil
	case b.sent != nil && !b.sent.SendPart(p):
		b.failed = &ioError{text: "the client takes no more of the answer", http: canon.Case{Index: httpCodes()["connection-terminated"]}}
		return b.failed
	case b.sent != nil:
		b.written += len(p)
		return nil
	case len(b.bytes)+len(p) > b.limit:
		b.failed = &ioError{
			text: fmt.Sprintf("a body may have %d bytes", b.limit),
			http: canon.Case{Index: httpCodes()[b.sizeCode], Value: none},
		}
		return b.failed
	}
	b.bytes = append(b.bytes, p...)
	b.written += len(p)
	return nil
}

// finishBody completes a body. Trailers are not sent.
func finishBody(r *run, a []any) any {
	b := take[*outgoingBody](r, a[0])
	if trailers := a[1].(canon.Case); trailers.Index == 1 {
		take[*fields](r, trailers.Value)
	}
	if code := b.finish(); code != nil {
		return fail(code)
	}
	return ok(nil)
}

// finish completes a body, and returns the error-code if it is wrong, or nil.
func (b *content) finish() (code any) {
	written := uint64(b.written)
	switch {
	case b.failed != nil:
		code = b.failed.http
	case b.length >= 0 && written != uint64(b.length):
		b.failed = &ioError{text: fmt.Sprintf("it has %d bytes, and Content-Length says %d", written, b.length)}
		code = canon.Case{Index: httpCodes()[b.sizeCode], Value: some(written)}
	}
	b.end(code == nil)
	return code
}

// end says that the guest is done with the body.
func (c *content) end(finished bool) {
	c.finished, c.dropped = finished, !finished
	if c.complete != nil {
		c.complete()
	}
}

// drop is called when the guest drops the body without finishing it.
func (b *outgoingBody) drop() { b.end(false) }
