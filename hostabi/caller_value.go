package hostabi

import (
	"bytes"
	"errors"

	"github.com/go-json-experiment/json/jsontext"

	"runner.example/hostabi/sentvalue"
	"runner.example/internal/fault"
)

// invalidValue is the value that the last operation refused as invalid.
type invalidValue struct {
	value   jsontext.Value // nil: the last operation did not fail for a value
	tooMany bool           // the last operation failed with TooManyRows
	message string
	checked bool
	callers bool // the caller has sent it; valid if checked
}

// keepInvalid remembers the value that err is about. A handler that answers handler_failed right
// after it did not catch the error.
func (c *Call) keepInvalid(err error, message string) {
	c.invalid = invalidValue{tooMany: fault.CodeOf(err) == fault.TooManyRows, message: message}
	if refused, ok := errors.AsType[*fault.ValueError](err); ok {
		c.invalid.value = bytes.Clone(refused.Value)
	}
}

// refusedCallersValue reports whether the last operation refused a value that the caller sent.
func (c *Call) refusedCallersValue() bool {
	v := &c.invalid
	if !v.checked {
		v.checked, v.callers = true, v.value != nil && sentvalue.In(c.Request, v.value)
	}
	return v.callers
}

// isBlamedOnCaller reports whether a failure with this message is that of the last operation, and not the
// handler's: see blameCaller.
func (c *Call) isBlamedOnCaller(message []byte) bool {
	v := &c.invalid
	return (v.tooMany || v.value != nil) && bytes.Contains(message, []byte(v.message)) && (v.tooMany || c.refusedCallersValue())
}

// blameCaller turns the answer of a handler that failed for an invalid value into 400, if the
// value is one that the caller sent, and for too many rows into 422. It reports whether it did.
func (c *Call) blameCaller(status int32, code, message []byte) bool {
	if status != 500 || string(code) != string(fault.HandlerFailed) || len(message) > 0 {
		return false
	}
	r := &c.Response
	switch {
	case c.invalid.tooMany:
		r.Status, r.Code = 422, string(fault.TooManyRows)
	case c.refusedCallersValue():
		r.Status, r.Code = 400, string(fault.InvalidInput)
	default:
		return false
	}
	r.Detail = c.invalid.message
	return true
}
