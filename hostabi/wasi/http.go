package wasi

import (
	"slices"
	"strings"

	"github.com/tetratelabs/wazero/api"

	"runner.example/hostabi"
	"runner.example/internal/component/canon"
)

// exchange is the request that a component handles, and its answer.
type exchange struct {
	begun   bool
	outcome any // that the response-outparam got: *outgoingResponse or the Case of an error-code; nil: none
}

// httpFunctions are those of wasi:http/types.
var httpFunctions = merged(fieldFunctions, bodyFunctions, outgoingRequestFunctions, map[string]function{
	"[method]fields.entries": func(r *run, a []any) any { return use[*fields](r, a[0]).entries() },
	"http-error-code": func(r *run, a []any) any {
		if code := use[*ioError](r, a[0]).http; code != nil {
			return some(code)
		}
		return none
	},

	"[method]incoming-request.method":          func(r *run, a []any) any { use[*incomingRequest](r, a[0]); return r.method() },
	"[method]incoming-request.path-with-query": func(r *run, a []any) any { use[*incomingRequest](r, a[0]); return r.pathWithQuery() },
	"[method]incoming-request.scheme":          func(r *run, a []any) any { use[*incomingRequest](r, a[0]); return some(r.scheme()) },
	"[method]incoming-request.authority":       func(r *run, a []any) any { use[*incomingRequest](r, a[0]); return r.authority() },
	"[method]incoming-request.headers": func(r *run, a []any) any {
		use[*incomingRequest](r, a[0])
		return r.headersOf(a[0], r.requestHeaders())
	},
	"[method]incoming-request.consume": func(r *run, a []any) any { return r.consume(&use[*incomingRequest](r, a[0]).body) },

	"[method]response-outparam.send-informational": refuseInformational,
	"[static]response-outparam.set":                setOutcome,

	"[constructor]outgoing-response": func(r *run, a []any) any {
		return r.add(&outgoingResponse{status: 200, message: newMessage(take[*fields](r, a[0]).all, r.call.ResponseBytes(), "HTTP-response-body-size")}, 0)
	},
	"[method]outgoing-response.status-code": func(r *run, a []any) any { return uint64(use[*outgoingResponse](r, a[0]).status) },
	"[method]outgoing-response.set-status-code": func(r *run, a []any) any {
		return setStatus(&use[*outgoingResponse](r, a[0]).status, a[1])
	},
	"[method]outgoing-response.headers": func(r *run, a []any) any {
		return r.headersOf(a[0], use[*outgoingResponse](r, a[0]).headers)
	},
	"[method]outgoing-response.body": func(r *run, a []any) any { return r.takeBody(&use[*outgoingResponse](r, a[0]).message) },
})

func merged(all ...map[string]function) map[string]function {
	one := map[string]function{}
	for _, some := range all {
		for name, f := range some {
			one[name] = f
		}
	}
	return one
}

// incomingRequest is the request of the run.
type incomingRequest struct {
	body body
}

func (*incomingRequest) kind() string { return "incoming-request" }

// responseOutparam gets the answer, once.
type responseOutparam struct{}

func (*responseOutparam) kind() string { return "response-outparam" }

type outgoingResponse struct {
	status int
	message
}

func (*outgoingResponse) kind() string { return "outgoing-response" }

// methods are the cases of the variant method before "other".
var methods = []string{"GET", "HEAD", "POST", "PUT", "DELETE", "CONNECT", "OPTIONS", "TRACE", "PATCH"}

func (r *run) method() any {
	method := string(r.call.Request.Method)
	if i := slices.Index(methods, method); i >= 0 {
		return canon.Case{Index: uint32(i)}
	}
	return canon.Case{Index: uint32(len(methods)), Value: strings.ToValidUTF8(method, "\ufffd")}
}

func (r *run) pathWithQuery() any {
	whole := string(r.call.Request.Path)
	if q := r.call.Request.RawQuery; len(q) > 0 {
		whole += "?" + string(q)
	}
	return some(strings.ToValidUTF8(whole, "\ufffd"))
}

// scheme is what the client has sent the request with.
func (r *run) scheme() canon.Case {
	const http, https = 0, 1 // cases of the variant scheme
	if r.call.Request.Secure {
		return canon.Case{Index: https}
	}
	return canon.Case{Index: http}
}

// authority is the host of the request. That of a job has one too: toolchains make a URL of it.
func (r *run) authority() any {
	host, given := r.call.Request.Header("host")
	if !given {
		host = []byte("localhost")
	}
	return some(strings.ToValidUTF8(string(host), "\ufffd"))
}

func refuseInformational(r *run, a []any) any {
	use[*responseOutparam](r, a[0])
	take[*fields](r, a[2])
	if status := a[1].(uint64); status < 100 || status > 199 {
		return fail(canon.Case{Index: httpCodes()["HTTP-protocol-error"]})
	}
	return fail(internalError("informational responses are not sent"))
}

// setOutcome is response-outparam.set.
func setOutcome(r *run, a []any) any {
	take[*responseOutparam](r, a[0])
	result := a[1].(canon.Case)
	if result.Index != 0 {
		r.http.outcome = result.Value.(canon.Case)
		return nil
	}
	r.beginAnswer(take[*outgoingResponse](r, result.Value))
	return nil
}

// beginAnswer begins the answer: its status and headers are final. A body that is not complete follows in parts, if the
// answer can be streamed.
func (r *run) beginAnswer(response *outgoingResponse) {
	for _, h := range response.headers {
		if err := r.call.AddHeader(h.name, h.value); err != nil {
			r.call.Trap("%v", err)
		}
	}
	if string(r.call.Request.Method) == "HEAD" || response.status == 304 {
		response.content.length = -1 // it says what the body of another answer would have
	}
	r.http.outcome = response
	if c := response.content; c.taken && !c.finished && !c.dropped && c.failed == nil && r.call.BeginAnswer(response.status) {
		c.stream(r.call)
	}
}

// setStatus sets the status of an answer. RFC 9110, section 15, has those that there are.
func setStatus(status *int, value any) any {
	n := value.(uint64)
	if n < 100 || n > 599 {
		return fail(nil)
	}
	*status = int(n)
	return ok(nil)
}

// beginHTTP returns the handle of the request; that of the response-outparam is the next number.
func beginHTTP(c *hostabi.Call, m api.Memory, core []uint64) {
	r := runOf(c)
	r.enter(m)
	r.begin()
	whole, _ := c.WholeBody()
	core[0] = uint64(r.push(&incomingRequest{body: body{bytes: whole}}, 0))
	r.push(&responseOutparam{}, 0)
}

// begin begins the handling of the request.
func (r *run) begin() {
	if r.call.Preparing() || r.http.begun {
		r.call.Trap("a run handles one request")
	}
	r.http.begun = true
}

// endHTTP completes the answer.
func endHTTP(c *hostabi.Call, m api.Memory, _ []uint64) {
	r := runOf(c)
	r.enter(m)
	if r.http.outcome != nil {
		r.answer()
	}
}

// answer makes the answer of the run. It ends the run if there is none.
func (r *run) answer() {
	response, answered := r.http.outcome.(*outgoingResponse)
	if !answered {
		r.answerCode(r.http.outcome.(canon.Case))
		return
	}
	body := response.content
	switch {
	case body.sent != nil && r.call.Gone():
		return
	case body.failed != nil:
		r.call.Trap("the body of the answer is incomplete: %s", body.failed.text)
	case body.taken && !body.finished:
		r.call.Trap("the body of the answer is incomplete: it was not finished")
	case body.sent != nil:
		return
	}
	if err := r.call.Answer(response.status, body.bytes); err != nil {
		r.call.Trap("%v", err)
	}
}
