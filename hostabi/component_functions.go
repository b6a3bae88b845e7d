package hostabi

import (
	"encoding/json"

	"runner.example/hostabi/abi"
)

// What components call of the module "runner". It is the code that modules call.

// Function calls a function of the module "runner", which counts and checks the limits, within a function of Bind that
// is free. A number is an int; a text is a string or a []byte; a buffer is a []byte. A negative result is an errno. It
// panics if the function has other parameters.
func (c *Call) Function(name string, args ...any) int32 {
	f := byName[name]
	texts, words := c.texts[:0], c.words[:0]
	size := 0
	for _, a := range args {
		var text []byte
		switch a := a.(type) {
		case int:
			words = append(words, uint64(uint32(a)))
			continue
		case string:
			text = []byte(a)
		default:
			text = a.([]byte)
		}
		words = append(words, uint64(len(texts)), uint64(len(text)))
		texts = append(texts, text)
		size += len(text)
	}
	c.texts, c.words = texts, words
	defer clear(texts)
	if len(words) != f.Words() {
		panic("BUG: " + name + " has other parameters")
	}
	_ = c.work.Spend(size / 4)                 // its error ends the run after the function
	timed := f.timed && c.guest.began.IsZero() // or it is a part of what is timed
	return f.run(c.guest, c, guest{&c.texts, words}, timed)
}

// LastResult is the result of the last operation, or the code and message of its error, as JSON. It is valid until the
// next function.
func (c *Call) LastResult() []byte { return c.result.JSON }

// Message says in words why a function has just failed. The guest has read it, so that it is free once.
func (c *Call) Message(errno abi.Errno) string {
	var last struct{ Code, Message string }
	if c.called && !c.succeeded && json.Unmarshal(c.result.JSON, &last) == nil && last.Code == errno.String() {
		c.unread = 0
		return last.Message
	}
	if c.Preparing() {
		return "not available before the first request"
	}
	for _, info := range abi.Errnos() {
		if info.Errno == errno {
			return info.Doc
		}
	}
	return ""
}

// AnswerFailure answers with the error of an operation, as SDKs answer one that a handler does not catch. The operation
// is empty for an error that is not of one. It is called as Function is.
func (c *Call) AnswerFailure(operation string, errno abi.Errno, message string) {
	status, code := 500, "handler_failed"
	if operation == "" || (abi.Op{Name: operation}).Answers() {
		switch errno {
		case abi.NotFound:
			status, code = 404, "not_found"
		case abi.Denied:
			status, code = 403, "forbidden"
		case abi.Conflict:
			status, code = 409, "conflict"
		case abi.Unavailable:
			status, code = 503, "unavailable"
		}
	}
	if status == 500 {
		c.Function("log", levelFailure, "error\n"+errno.String()+": "+message)
		message = ""
	}
	c.Function("response_error", status, code, message)
}

// texts is memory in which each text has its own place: its pointer is its index.
type texts [][]byte

func (t *texts) Read(at, n uint32) ([]byte, bool) {
	if int(at) >= len(*t) || int(n) > len((*t)[at]) {
		return nil, false
	}
	return (*t)[at][:n:n], true
}

// The functions of the module "runner" have no numbers in memory.

func (t *texts) ReadUint64Le(uint32) (uint64, bool) { return 0, false }
func (t *texts) WriteUint32Le(uint32, uint32) bool  { return false }
func (t *texts) WriteUint64Le(uint32, uint64) bool  { return false }
