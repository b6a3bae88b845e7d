// Package runnertest runs handlers in a native test, without a runner:
//
//	result := runnertest.Run(t, createOrder, runnertest.Request{
//		Method: "POST", Path: "/v1/orders", Body: `{"item":"tea"}`,
//	})
//	if result.Status != 201 { … }
//
// It answers as the runner does for what a handler can see of it: bodies,
// helpers, errors, and the refusal of headers and statuses that the runner does
// not let pass, which is 500 handler_failed with the reason in Result.Logs.
// Secrets, digests and signatures are real; other
// services, fetch among them, answer what the test says (Request.Calls). Checks
// that belong to the host, such as authority, are the business of a test that
// runs the real server.
package runnertest

import (
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	runner "runner.example/sdk/go"
	"runner.example/sdk/go/internal/answer"
	"runner.example/sdk/go/internal/host"
)

// Request is the request that the handler gets. The zero value is GET / by an
// anonymous caller.
type Request struct {
	Method string
	// Path is the raw path; a query may follow after "?".
	Path   string
	Params map[string]string
	// Headers are found by lower-case name.
	Headers map[string]string
	Body    string
	Auth    runner.Auth
	Route   string
	// Job is the job that the handler runs for; nil for a request.
	Job *runner.Job
	// Calls answers service operations by name ("query", "apiKeys.create"): it
	// gets the arguments as JSON and gives the result, or an error: a
	// *runner.HostError reaches the handler as it is. The guest ABI has the
	// shapes of both.
	Calls map[string]func(args json.RawMessage) (any, error)
	// Secrets are the secrets the schema would declare.
	Secrets map[string]string
	// Vars are the variables that the schema would declare, as JSON has them: a duration in
	// seconds, a decimal as a string.
	Vars map[string]any
}

// Result is what the handler answered and logged.
type Result struct {
	Status  int
	Headers []runner.Pair
	Body    []byte
	// Code and Message are set when the answer is an error's. The runner fills
	// an empty Message with a text of its own.
	Code, Message string
	// Members are those of WithMember, in JSON.
	Members map[string]json.RawMessage
	Logs    []string
	// BrokenOff reports that an answer in parts ended with an error, of which Code and Message are. Body has the parts
	// before.
	BrokenOff bool
	// KeptWrites reports a call of KeepWrites.
	KeptWrites bool
}

// Header gives the first header of that name, in any case.
func (r Result) Header(name string) string {
	for _, h := range r.Headers {
		if strings.EqualFold(h.Name, name) {
			return h.Value
		}
	}
	return ""
}

// JSON reads the body into v and fails the test when it does not fit.
func (r Result) JSON(t testing.TB, v any) {
	t.Helper()
	if err := json.Unmarshal(r.Body, v); err != nil {
		t.Fatalf("read the answer's body %q: %v", r.Body, err)
	}
}

// Rows answers query, insert and update with these rows, whatever the
// arguments: an entry of Request.Calls.
func Rows(rows ...any) func(json.RawMessage) (any, error) {
	return func(json.RawMessage) (any, error) {
		return map[string]any{"rows": append([]any{}, rows...), "count": len(rows), "more": false, "nextCursor": nil}, nil
	}
}

// Run runs the handler for one request.
func Run(t testing.TB, handler runner.Handler, request Request) Result {
	t.Helper()
	h := &fake{request: request}
	h.path, h.rawQuery, _ = strings.Cut(request.Path, "?")
	runner.Serve(h, handler)
	if h.result.Status == 0 {
		t.Fatal("the handler returned without an answer")
	}
	return h.result
}

type fake struct {
	request        Request
	path, rawQuery string
	headers        []host.Pair
	read           int // bytes of the body
	result         Result
	streams        bool   // the answer has begun
	called         []byte // the result of the last operation
	started        []*outcome
}

// outcome is that of an operation that was started, and not taken yet.
type outcome struct {
	result []byte
	err    error
}

func (f *fake) Method() string {
	if f.request.Method == "" {
		return "GET"
	}
	return f.request.Method
}

func (f *fake) Path() string {
	if f.path == "" {
		return "/"
	}
	return f.path
}

func (f *fake) Lookup(kind host.Kind, name string) (string, bool) {
	for _, pair := range f.Pairs(kind) {
		if pair.Name == name {
			return pair.Value, true
		}
	}
	return "", false
}

func (f *fake) Pairs(kind host.Kind) []host.Pair {
	var pairs []host.Pair
	switch kind {
	case host.Param:
		for name, value := range f.request.Params {
			pairs = append(pairs, host.Pair{Name: name, Value: value})
		}
	case host.Header:
		for name, value := range f.request.Headers {
			pairs = append(pairs, host.Pair{Name: strings.ToLower(name), Value: value})
		}
	case host.RawQuery:
		if f.rawQuery != "" {
			pairs = append(pairs, host.Pair{Value: f.rawQuery})
		}
	case host.Query:
		for part := range strings.SplitSeq(f.rawQuery, "&") {
			name, value, _ := strings.Cut(part, "=")
			name, errName := url.QueryUnescape(name)
			value, errValue := url.QueryUnescape(value)
			if part != "" && errName == nil && errValue == nil {
				pairs = append(pairs, host.Pair{Name: name, Value: value})
			}
		}
	}
	return pairs
}

func (f *fake) Body() []byte { return []byte(f.request.Body) }

func (f *fake) Read(buf []byte) (int, error) {
	n := copy(buf, f.request.Body[f.read:])
	f.read += n
	return n, nil
}

func (f *fake) Context() []byte {
	auth := f.request.Auth
	if auth.Kind == "" {
		auth.Kind = "anonymous"
	}
	who := map[string]any{
		"kind": auth.Kind, "userId": auth.UserID, "tenant": auth.Tenant, "roles": auth.Roles,
		"keyId": auth.KeyID, "scope": auth.Scope, "capability": auth.Capability,
	}
	for name, object := range map[string]json.RawMessage{"metadata": auth.Metadata, "claims": auth.Claims} {
		if object != nil { // the runner leaves out what there is not
			who[name] = object
		}
	}
	text, err := json.Marshal(map[string]any{
		"requestId": "01test00000000000000000000",
		"route":     f.request.Route,
		"deadline":  time.Now().Add(10 * time.Second).UTC(),
		"auth":      who,
		"job":       f.request.Job,
	})
	if err != nil {
		panic(err)
	}
	return text
}

func (f *fake) SetHeader(name, value string) error {
	if f.result.Status != 0 {
		return &host.Error{Code: "invalid"}
	}
	if err := answer.Header(f.headers, name, value); err != nil {
		return err
	}
	f.headers = append(f.headers, host.Pair{Name: name, Value: value})
	return nil
}

func (f *fake) Send(status int, body []byte) error {
	if f.result.Status != 0 {
		return &host.Error{Code: "invalid"}
	}
	if err := answer.Body(status, len(body)); err != nil {
		return err
	}
	f.answer(status)
	if len(body) > 0 && f.result.Header("content-type") == "" {
		f.result.Headers = append(f.result.Headers, runner.Pair{Name: "content-type", Value: "application/json"})
	}
	f.result.Body = body
	return nil
}

// codes are those of error answers that have only a status, as the host gives them.
var codes = map[int]string{
	400: "bad_request", 401: "unauthorized", 403: "forbidden", 404: "not_found", 405: "method_not_allowed",
	408: "request_timeout", 409: "conflict", 413: "body_too_large", 429: "rate_limited",
	501: "method_not_implemented", 503: "unavailable",
}

func (f *fake) SendError(status int, code, message string) error {
	if f.result.Status != 0 && !f.streams {
		return &host.Error{Code: "invalid"}
	}
	if err := answer.Failure(status, message); err != nil {
		return err
	}
	if code == "" {
		code = codes[status]
	}
	if code == "" {
		code = "error"
	}
	if f.streams {
		f.result.BrokenOff, f.result.Code, f.result.Message = true, code, message
		return nil
	}
	f.headers = slices.DeleteFunc(f.headers, func(h host.Pair) bool { return strings.EqualFold(h.Name, "content-type") })
	f.answer(status)
	f.result.Code, f.result.Message = code, message
	return nil
}

// problem is the operation problem, which answers.
func (f *fake) problem(text []byte) ([]byte, error) {
	var args struct {
		Status       int
		Code, Detail string
		Members      map[string]json.RawMessage
	}
	if err := json.Unmarshal(text, &args); err != nil {
		return nil, invalid("%v", err)
	}
	for _, name := range []string{"type", "title", "status", "detail", "instance", "code", "requestId", "request_id"} {
		if _, given := args.Members[name]; given {
			return nil, invalid("problem: members.%s is set by the host: choose another name", name)
		}
	}
	if err := f.SendError(args.Status, args.Code, args.Detail); err != nil {
		return nil, err
	}
	f.result.Members = args.Members
	return []byte("{}"), nil
}

func (f *fake) answer(status int) {
	f.result.Status = status
	for _, h := range f.headers {
		f.result.Headers = append(f.result.Headers, runner.Pair(h))
	}
}

func (f *fake) Call(op string, args []byte) (err error) {
	f.called = nil
	f.called, err = f.call(op, args)
	return err
}

// Start does the operation at once.
func (f *fake) Start(op string, args []byte) (int, error) {
	result, err := f.call(op, args)
	f.started = append(f.started, &outcome{result, err})
	return len(f.started) - 1, nil
}

func (f *fake) Take(ticket int) error {
	if ticket < 0 || ticket >= len(f.started) || f.started[ticket] == nil {
		return &host.Error{
			Code: "invalid", Message: fmt.Sprintf("the pending operation %d is unknown, or its result was already taken", ticket),
		}
	}
	done := f.started[ticket]
	f.started[ticket], f.called = nil, done.result
	return done.err
}

func (f *fake) Result() ([]byte, error) { return f.called, nil }

func (f *fake) SendResult(status int, part host.Part) error {
	body, found := f.called, false
	if part != host.All {
		var result struct {
			Rows json.RawMessage `json:"rows"`
			Row  json.RawMessage `json:"row"`
		}
		if f.called != nil {
			if err := json.Unmarshal(f.called, &result); err != nil {
				return &host.Error{Code: "internal", Message: "the test's result is not an object: " + err.Error()}
			}
		}
		found = result.Row != nil || result.Rows != nil
		if body = result.Rows; part == host.Row {
			body = firstRow(result.Row, result.Rows)
		}
	}
	switch {
	case len(body) > 0:
		return f.Send(status, body)
	case part == host.Row && found && status == 200:
		return &host.Error{Code: "not_found"}
	}
	return &host.Error{Code: "invalid"}
}

func firstRow(row, rows json.RawMessage) []byte {
	var all []json.RawMessage
	if len(row) == 0 && json.Unmarshal(rows, &all) == nil && len(all) > 0 {
		return all[0]
	}
	return row
}

func (f *fake) call(op string, args []byte) ([]byte, error) {
	if own, ok := owns[op]; ok {
		return own(f, args)
	}
	answer, ok := f.request.Calls[op]
	if !ok {
		return nil, &host.Error{
			Code: "invalid", Message: fmt.Sprintf("the test has no answer for %s: set Request.Calls[%q]", op, op),
		}
	}
	result, err := answer(args)
	if err != nil {
		return nil, err
	}
	return json.Marshal(result)
}

func (f *fake) Begin(status int) error {
	if f.result.Status != 0 {
		return &host.Error{Code: "invalid"}
	}
	if err := answer.Body(status, 1); err != nil {
		return err
	}
	f.answer(status)
	f.streams = true
	if f.result.Header("content-type") == "" {
		f.result.Headers = append(f.result.Headers, runner.Pair{Name: "content-type", Value: "application/octet-stream"})
	}
	return nil
}

func (f *fake) Write(part []byte) error {
	f.result.Body = append(f.result.Body, part...)
	return nil
}

func (f *fake) KeepWrites() { f.result.KeptWrites = true }

func (f *fake) Log(level int, text string) {
	f.result.Logs = append(f.result.Logs, [...]string{"debug", "info", "warn", "error", "failure"}[level]+": "+text)
}
