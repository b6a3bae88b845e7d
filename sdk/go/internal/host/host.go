// Package host is the way from a handler down to the runner: the guest ABI in
// Go's types. Two hosts exist: the imports of a module that the runner runs,
// and the one in package runnertest that lets handlers be tested natively.
package host

import (
	"fmt"
	"strings"

	"runner.example/sdk/go/internal/codec"
)

// Kind names a family of request values.
type Kind uint32

// The kinds of request values, as numbered by the ABI.
const (
	Param Kind = iota
	Query
	Header
	// RawQuery is one pair without a name: the query as received.
	RawQuery
)

// Pair is one name with its value, in order of arrival.
type Pair struct{ Name, Value string }

// Part names what SendResult sends.
type Part uint32

// The parts of a result, as numbered by the ABI.
const (
	All Part = iota
	Rows
	Row
)

// Host is what a handler can ask of the runner.
type Host interface {
	Method() string
	Path() string
	// Lookup gives one value by name; false when there is none.
	Lookup(kind Kind, name string) (string, bool)
	Pairs(kind Kind) []Pair
	Body() []byte
	// Read reads the next bytes of the body, at least one, and waits for them. 0 is its end.
	Read(buf []byte) (int, error)
	// Context gives the request's context as JSON.
	Context() []byte
	SetHeader(name, value string) error
	Send(status int, body []byte) error
	// SendError answers with an error, or breaks off the answer that has begun.
	SendError(status int, code, message string) error
	// Call runs one service operation: JSON in. A failure is an *Error.
	Call(op string, args []byte) error
	// Start begins an operation and gives a ticket, with which Take makes its
	// outcome that of the last Call.
	Start(op string, args []byte) (ticket int, err error)
	Take(ticket int) error
	// Result is the JSON that the last Call gave, when it did not fail. A failure is an *Error.
	Result() ([]byte, error)
	// SendResult answers with a part of that, without reading it.
	SendResult(status int, part Part) error
	// Begin begins an answer in parts, which Write sends. If the client is gone, the error of Write is unavailable.
	Begin(status int) error
	Write(part []byte) error
	KeepWrites()
	Log(level int, text string)
}

// Error is a failed host call.
type Error struct {
	Code    string `json:"code"`
	Message string `json:"message"`
	// Op is the operation that failed; empty of an error that a handler made.
	Op string `json:"-"`
	// Entity is that of an operation on rows, and Field the field that the error is about: "email" of a
	// conflict. Those of @@unique are separated by commas.
	Entity string `json:"entity"`
	Field  string `json:"field"`
}

// Of gives err with the name of the operation that it is of.
func Of(op string, err error) error {
	failure, ok := err.(*Error)
	if !ok {
		return err
	}
	named := *failure
	named.Op = op
	return &named
}

// Decode reads the result of h's last Call. The error is an *Error if the host refuses it.
func Decode(h Host, result any) error {
	text, err := h.Result()
	if err != nil {
		return err
	}
	return codec.Unmarshal(text, result)
}

// Answers reports whether the client may see the error if the handler does not catch it:
// one of the caller's rows and keys is, one of a secret or of another service is not.
func (e *Error) Answers() bool {
	switch e.Op {
	case "", "query", "get", "count", "aggregate", "insert", "update", "delete", "webhooks.verify":
		return true
	}
	return strings.HasPrefix(e.Op, "apiKeys.") || strings.HasPrefix(e.Op, "sessions.") || strings.HasPrefix(e.Op, "jobs.")
}

func (e *Error) Error() string {
	if e.Message == "" {
		return e.Code
	}
	return fmt.Sprintf("%s: %s", e.Code, e.Message)
}
