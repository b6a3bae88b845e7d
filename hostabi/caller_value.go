package hostabi

import (
	"bytes"
	"errors"

	"github.com/go-json-experiment/json/jsontext"

	"runner.example/entity/query"
	"runner.example/hostabi/abi"
	"runner.example/internal/fault"
)

// invalidValue is the value that the last operation refused as invalid.
type invalidValue struct {
	value   []byte // its JSON; nil: the last operation did not fail for a value
	message string
}

// keepInvalid remembers the value that err is about. A handler that answers handler_failed right
// after it did not catch the error.
func (c *Call) keepInvalid(err error, message string) {
	c.invalid = invalidValue{}
	if refused, ok := errors.AsType[*query.ValueError](err); ok {
		c.invalid = invalidValue{bytes.Clone(refused.Value), message}
	}
}

// blameCaller turns the answer of a handler that failed for an invalid value into 400, if the
// value is one that the caller sent. It reports whether it did.
func (c *Call) blameCaller(status int32, code, message []byte) bool {
	if c.invalid.value == nil || status != 500 || string(code) != string(fault.HandlerFailed) || len(message) > 0 || !c.sentByCaller(c.invalid.value) {
		return false
	}
	r := &c.Response
	r.Status, r.Code, r.Detail = 400, string(fault.InvalidInput), c.invalid.message
	return true
}

// sentByCaller reports whether the JSON value is in the request: a parameter of the path or the
// query, or a value in the body.
func (c *Call) sentByCaller(value []byte) bool {
	plain := value
	if value[0] == '"' {
		text, err := jsontext.AppendUnquote(nil, value)
		if err != nil {
			return false
		}
		plain = text
	}
	for _, pairs := range [][]abi.Pair{c.Request.Params, c.Request.Query} {
		for i := range pairs {
			if bytes.Equal(pairs[i].Value, plain) {
				return true
			}
		}
	}
	if value[0] == '{' || value[0] == '[' {
		body, want := jsontext.Value(bytes.Clone(c.Request.Body)), jsontext.Value(bytes.Clone(value))
		return body.Compact() == nil && want.Compact() == nil && bytes.Contains(body, want)
	}
	kind := jsontext.Kind(value[0])
	if kind == '-' || kind >= '0' && kind <= '9' {
		kind = '0' // jsontext's kind of numbers
	}
	dec := jsontext.NewDecoder(bytes.NewReader(c.Request.Body), jsontext.AllowDuplicateNames(true))
	for {
		token, err := dec.ReadToken()
		if err != nil {
			return false
		}
		if token.Kind() == kind && token.String() == string(plain) {
			return true
		}
	}
}
