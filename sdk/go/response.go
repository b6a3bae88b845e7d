package runner

import (
	"encoding/json"
	"fmt"
	"maps"

	"runner.example/sdk/go/internal/codec"
	"runner.example/sdk/go/internal/host"
)

// Response is a handler's answer, made by one of the helpers.
type Response struct {
	status  int
	body    any
	headers []Pair
	message string
	failure bool
	code    string
	members map[string]any
	stream  func(*Writer) error
}

// Part is what an operation gave, as the body of an answer: the runner sends it
// without handing it to the handler. If the last operation has no such part, the
// answer is 500, and the log has the reason.
//
//	if err := runner.Query("Order").Limit(20).All(ctx, nil); err != nil {
//		return runner.Response{}, err
//	}
//	return runner.OK(runner.Rows), nil
type Part host.Part

// The parts of a result.
const (
	Result = Part(host.All)  // all of it: {"rows":[…],"nextCursor":…}, a key, …
	Rows   = Part(host.Rows) // the list of rows
	Row    = Part(host.Row)  // the row, or the first one; 404 if a query found none and the answer is OK
)

// OK answers 200 with a body. A []byte or json.RawMessage goes out as it is,
// a Part as the runner has it, anything else as JSON.
func OK(body any) Response { return Response{status: 200, body: body} }

// Created answers 201 with a body and, when given, the Location of what was
// created. An empty location is none.
func Created(body any, location ...string) Response {
	r := Response{status: 201, body: body}
	for _, l := range location {
		if l != "" {
			r = r.WithHeader("Location", l)
		}
	}
	return r
}

// NoContent answers 204.
func NoContent() Response { return Response{status: 204} }

// Redirect answers 302, or the status given: 301, 303, 307 or 308. The
// location is a URI reference: "/x", "orders", "?page=2" or a URL.
func Redirect(location string, status ...int) Response {
	r := Response{status: 302}
	for _, s := range status {
		r.status = s
	}
	switch r.status {
	case 301, 302, 303, 307, 308:
		return r.WithHeader("Location", location)
	}
	panic(fmt.Sprintf("runner: %d is not a redirect: use 301, 302, 303, 307 or 308", r.status))
}

// BadRequest answers 400: the caller sent something invalid.
func BadRequest(message string) Response { return Error(400, message) }

// Unauthorized answers 401: the caller is not authenticated.
func Unauthorized(message string) Response { return Error(401, message) }

// Forbidden answers 403: the caller may not do this.
func Forbidden(message string) Response { return Error(403, message) }

// NotFound answers 404.
func NotFound(message string) Response { return Error(404, message) }

// Error answers any other failure, 400 to 599. A status outside of that is the
// handler's fault and answers 500. The message is the problem's `detail`; when
// it is empty the runner puts a text of its own there.
func Error(status int, message string) Response {
	return Response{status: status, message: message, failure: true}
}

// WithCode sets the stable code, in snake_case, of an answer made by Error.
func (r Response) WithCode(code string) Response {
	r.code = code
	return r
}

// WithMember adds a member (RFC 9457) to an answer made by Error:
//
//	runner.Error(402, "buy more").WithCode("no_credit").WithMember("balance", 3)
//
// The runner writes type, title, status, detail, instance, code and requestId. With one of these names the answer is 500
// handler_failed. "errors" must be a list of objects with field and message.
func (r Response) WithMember(name string, value any) Response {
	members := make(map[string]any, len(r.members)+1)
	maps.Copy(members, r.members)
	members[name] = value
	r.members = members
	return r
}

// problem returns the arguments of the operation problem.
func (r Response) problem() ([]byte, error) {
	members := r.members
	if members == nil {
		members = map[string]any{}
	}
	return codec.Marshal(map[string]any{"status": r.status, "code": r.code, "detail": r.message, "members": members})
}

// Status is the HTTP status of the answer.
func (r Response) Status() int { return r.status }

// WithHeader gives the answer with one more header line. A header that the
// runner does not let pass (its own, such as Date, a name or value that would
// break the message, a second Content-Type or Location) makes the answer 500
// handler_failed, and the log says which and why.
func (r Response) WithHeader(name, value string) Response {
	r.headers = append(r.headers[:len(r.headers):len(r.headers)], Pair{name, value})
	return r
}

// encode gives the body's bytes.
func (r Response) encode() ([]byte, error) {
	switch body := r.body.(type) {
	case nil:
		if r.status == 204 || r.status >= 300 {
			return nil, nil
		}
		return []byte("null"), nil
	case []byte:
		return body, nil
	case json.RawMessage:
		return body, nil
	}
	return codec.Marshal(r.body)
}
