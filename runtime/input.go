package runtime

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"runner.example/hostabi"
	"runner.example/hostabi/abi"
	"runner.example/internal/caller"
	"runner.example/internal/cost"
	"runner.example/internal/fault"
	"runner.example/schema"
)

// inputError has every error of a body or a query that does not match its route's input.
type inputError struct {
	*fault.Fault
	errors []byte // JSON
}

func (e *inputError) Unwrap() error { return e.Fault }

// openCheckCPU is the CPU time that checking a body may take on a route that asks
// for neither a credential nor a signature: any client makes the server spend it.
const openCheckCPU = 100 * time.Millisecond

// errEncoded refuses a body that must be JSON and has a content coding (RFC 9110, section 15.5.16).
var errEncoded = fault.New(fault.UnsupportedEncoding, "")

var errCheckTooLong = fault.New(fault.BodyTooLarge,
	"checking the body takes more than %s of CPU time, the limit for callers without a credential", openCheckCPU)

// checkBody refuses a body that does not match the route's input or, if the route has no
// input, a JSON body that is nested too deeply or is not valid Unicode. It returns the body with its
// defaults, or the query if the route declares its type, and the CPU time used: at most a request's,
// or openCheckCPU for open routes. It ends at the deadline.
func (rt *route) checkBody(inv *invocation, host *hostabi.Host) (_ []byte, used time.Duration, err error) {
	body := inv.input.body
	if inv.input.bodyStream != nil { // it is checked when it has arrived
		return nil, 0, nil
	}
	if rt.input == nil && rt.query == nil && !isJSON(inv.input.request.Headers) {
		return body, 0, nil
	}
	if rt.input != nil && len(body) > 0 && isEncoded(inv.input.request.Headers) {
		return nil, 0, errEncoded
	}
	limit := host.Limits.CPU
	if inv.input.open {
		limit = min(limit, openCheckCPU)
	}
	m := rt.module.BeginWork(inv.deadline, &inv.work, &inv.call, rt.Handler, limit)
	defer func() {
		used = inv.work.End()
		if inv.input.open && errors.Is(m.Err(), hostabi.ErrCPUSpent) {
			err = errCheckTooLong
		}
	}()
	if rt.query != nil {
		inv.filled, err = readQuery(inv.filled[:0], rt.query, inv.input.request.Query, host.Calendar(), m)
		return inv.filled, 0, err
	}
	if rt.input == nil {
		return body, 0, checkText(body, m)
	}
	if err := checkInput(rt.input, body, m); err != nil || !rt.fills {
		return body, 0, err
	}
	inv.filled, err = rt.input.Fill(inv.filled[:0], orEmptyObject(body), host.Calendar(), m)
	return inv.filled, 0, cmp.Or(m.Err(), err)
}

// isJSON reports whether the headers declare a JSON body without a content encoding.
func isJSON(headers []abi.Pair) (is bool) {
	for _, h := range headers {
		switch string(h.Name) {
		case "content-encoding":
			return false
		case "content-type":
			media, _, _ := bytes.Cut(h.Value, []byte(";"))
			media = bytes.TrimSpace(media)
			_, after, _ := bytes.Cut(media, []byte("/"))
			is = is || bytes.EqualFold(after, []byte("json")) ||
				len(after) > 5 && bytes.EqualFold(after[len(after)-5:], []byte("+json"))
		}
	}
	return is
}

// isEncoded reports whether the headers declare a content coding, such as gzip.
func isEncoded(headers []abi.Pair) bool {
	for _, h := range headers {
		if string(h.Name) == "content-encoding" {
			return len(h.Value) > 0 && !bytes.EqualFold(h.Value, []byte("identity"))
		}
	}
	return false
}

func checkDepth(body []byte, m *cost.Meter) error {
	return invalidJSON(schema.CheckDepth(body, m), m)
}

// checkText refuses a JSON body that is nested too deeply or is not valid Unicode. Many JSON readers
// replace invalid UTF-8 by U+FFFD without an error.
func checkText(body []byte, m *cost.Meter) error {
	if err := checkDepth(body, m); err != nil {
		return err
	}
	return invalidJSON(schema.CheckUnicode(body, m), m)
}

func invalidJSON(err error, m *cost.Meter) error {
	switch {
	case m.Err() != nil:
		return m.Err()
	case err != nil:
		return fault.New(fault.InvalidJSON, "the body %s", err)
	}
	return nil
}

// checkInput refuses a body that does not match input. An empty body counts as an empty
// object, as it does for handlers.
func checkInput(input *schema.ObjectType, body []byte, m *cost.Meter) error {
	body = orEmptyObject(body)
	if err := checkDepth(body, m); err != nil {
		return err
	}
	wrong := input.Check(body, m)
	if m.Err() != nil {
		return m.Err()
	}
	if len(wrong) == 0 {
		return nil
	}
	broken := schema.JSONError(body, m)
	if m.Err() != nil {
		return m.Err()
	}
	if broken != nil {
		return brokenBody(broken)
	}
	return newInputError(wrong, "request body does not match type %s; see errors", input.Name)
}

func newInputError(wrong []schema.FieldError, format string, args ...any) error {
	text, err := json.Marshal(wrong)
	if err != nil {
		return err
	}
	return &inputError{fault.New(fault.InvalidInput, format, args...), text}
}

func brokenBody(e *schema.FieldError) error {
	if e.Field == "" {
		return fault.New(fault.InvalidJSON, "the body %s", e.Message)
	}
	return fault.New(fault.InvalidJSON, "the body's member %q %s", e.Field, e.Message)
}

// orEmptyObject returns an empty object for an empty body and for null.
func orEmptyObject(body []byte) []byte {
	if text := bytes.TrimSpace(body); len(text) == 0 || string(text) == "null" {
		return []byte("{}")
	}
	return body
}

// checkResult refuses an answer that does not match the declared result of its function or route;
// operators see hidden fields too. Only the log has the errors.
func checkResult(result *schema.Type, body []byte, who *caller.Caller, m *cost.Meter) error {
	wrong := result.CheckResult(body, who.Kind == caller.System, m)
	if m.Err() != nil {
		return m.Err()
	}
	if len(wrong) == 0 {
		return nil
	}
	text, err := json.Marshal(wrong)
	if err != nil {
		return err
	}
	return fault.Wrap(fmt.Errorf("the result does not match %s: %s", result, text), fault.HandlerFailed,
		"the handler failed")
}
