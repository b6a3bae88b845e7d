package hostabi

import (
	"bytes"
	"encoding/json"
	"strings"

	"runner.example/hostabi/abi"
	"runner.example/hostabi/sentvalue"
	"runner.example/internal/fault"
)

// operationError is the error of the last operation that failed, for a handler that does not catch it.
type operationError struct {
	op      string // empty if it is unknown
	code    fault.Code
	message string // as the guest reads it
	subject fault.Subject
	// isLast reports that no operation has succeeded since.
	isLast bool
	// sent reports that the client has sent the refused value. It is valid if checked is true.
	checked, sent bool
}

// keepError stores the error of an operation, with a copy of the refused value.
func (c *Call) keepError(op string, f *fault.Fault, message string) {
	c.lastError = operationError{op: op, code: f.Code, message: message, subject: f.Subject, isLast: true}
	c.lastError.subject.Value = bytes.Clone(f.Subject.Value)
}

// isSent reports whether the client has sent the value, or the name, that the operation refused.
func (c *Call) isSent() bool {
	e := &c.lastError
	if !e.checked {
		find := sentvalue.In
		if e.subject.Named {
			find = sentvalue.HasName
		}
		sent := *c.Request
		if c.SentBody != nil {
			sent.Body = c.SentBody // the request's has defaults of the schema
		}
		if c.Form != nil {
			c.Form.asBody(&sent)
		}
		e.checked = true
		e.sent = e.subject.Value != nil && (find(&sent, e.subject.Value) || c.Form != nil && c.Form.hasFile(e.subject.Value))
	}
	return e.sent
}

// clientError returns the code that replaces 500 handler_failed, if the last error is about a value that the
// client has sent, or about a limit that depends on the request and the stored rows. An error about any other
// value is an error of the handler.
func (c *Call) clientError() (code fault.Code, is bool) {
	switch e := &c.lastError; {
	case !e.isLast, e.op == "problem": // the error is about an answer of the handler
		return "", false
	case e.code == fault.Invalid:
		return fault.InvalidInput, c.isSent()
	case e.code != fault.TooLarge && e.code != fault.Limit, e.op == "":
		return "", false
	case e.subject.Value != nil:
		return e.code, c.isSent()
	default:
		return e.code, (abi.Op{Name: e.op}).Answers()
	}
}

// answerUncaught sets the answer to an error that the handler did not catch, if the error is that of the
// last operation. It reports whether it did. The SDK answers with status, code and message.
func (c *Call) answerUncaught(status int32, code, message []byte) bool {
	e, r := &c.lastError, &c.Response
	switch {
	case status == 500 && string(code) == string(fault.HandlerFailed) && len(message) == 0:
		as, is := c.clientError()
		if !is {
			return false
		}
		c.blamed, c.blamedAs = *e, as
		c.blame(true)
		return true
	case status == 404 && string(code) == string(fault.NotFound) && isNoRow(string(message)):
		outcome, _ := fault.OutcomeOf(fault.NotFound)
		r.Status, r.Code, r.Detail, r.Public = 404, string(code), string(message), outcome.Detail
		return true
	case e.subject.Entity == "", status != 404 && status != 409, string(code) != string(e.code) || string(message) != e.message:
		return false
	default:
		outcome, _ := fault.OutcomeOf(e.code)
		r.Status, r.Code, r.Detail = int(status), string(code), e.message
		if r.Public = publicText(&e.subject); r.Public == "" {
			r.Public = outcome.Detail
		}
	}
	r.Errors = problemErrors(&e.subject, e.message)
	return true
}

// blame answers with the error of the operation that the client caused or, if the handler fails for another reason, with 500
// handler_failed.
func (c *Call) blame(client bool) {
	e, r := &c.blamed, &c.Response
	if !client {
		r.Status, r.Code, r.Detail, r.Public, r.Errors = 500, string(fault.HandlerFailed), "", "", nil
		return
	}
	outcome, _ := fault.OutcomeOf(c.blamedAs)
	r.Status, r.Code, r.Detail = outcome.HTTP, string(c.blamedAs), e.message
	if e.subject.Named {
		r.Public = publicText(&e.subject)
	}
	r.Errors = problemErrors(&e.subject, e.message)
}

// compareReport finds out whether the handler fails for the error of the last operation. Some SDKs report why it fails
// before they answer, others afterwards; the last report counts.
func (c *Call) compareReport(message []byte) {
	if c.blamedAs != "" {
		c.blame(bytes.Contains(message, []byte(c.blamed.message)))
	} else if !bytes.Contains(message, []byte(c.lastError.message)) {
		c.lastError.isLast = false
	}
}

// isNoRow reports whether the message is the SDKs' message for a query that found no row. It names the entity.
func isNoRow(message string) bool {
	return strings.HasPrefix(message, "no row of ") && strings.HasSuffix(message, " matches the conditions")
}

// publicText returns the message for clients, which does not name the entity. It is empty if the subject has none.
func publicText(s *fault.Subject) string {
	switch {
	case s.Public != "" && s.Named && s.Field == "":
		return "an empty name " + s.Public
	case s.Public == "" || s.Field == "":
		return s.Public
	}
	if s.Named {
		return s.Field + " " + s.Public
	}
	return strings.ReplaceAll(s.Field, ",", ", ") + " " + s.Public
}

// problemErrors returns the member "errors" of a problem, with an element for each field, and nil if no field is
// known.
func problemErrors(s *fault.Subject, message string) []byte {
	if s.Field == "" {
		return nil
	}
	if s.Public != "" {
		message = s.Public
	}
	type wrong struct {
		Field   string `json:"field"`
		Message string `json:"message"`
	}
	list := []wrong{{s.Field, message}}
	if !s.Named {
		list = list[:0]
		for field := range strings.SplitSeq(s.Field, ",") {
			list = append(list, wrong{field, message})
		}
	}
	text, _ := json.Marshal(list) // texts are always JSON
	return text
}
