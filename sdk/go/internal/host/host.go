// Package host is the way from a handler down to the runner: the guest ABI in
// Go's types. Two hosts exist: the imports of a module that the runner runs,
// and the one in package runnertest that lets handlers be tested natively.
package host

import "fmt"

// Kind names a family of request values.
type Kind uint32

// The kinds of request values, as numbered by the ABI.
const (
	Param Kind = iota
	Query
	Header
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
	// Context gives the request's context as JSON.
	Context() []byte
	SetHeader(name, value string) error
	Send(status int, body []byte) error
	SendError(status int, code, message string) error
	// Call runs one service operation: JSON in. A failure is an *Error.
	Call(op string, args []byte) error
	// Result is the JSON that the last Call gave, when it did not fail.
	Result() []byte
	// SendResult answers with a part of that, without reading it.
	SendResult(status int, part Part) error
	KeepWrites()
	Log(level int, text string)
}

// Error is a failed host call.
type Error struct {
	Code    string `json:"code"`
	Message string `json:"message"`
}

func (e *Error) Error() string {
	if e.Message == "" {
		return e.Code
	}
	return fmt.Sprintf("%s: %s", e.Code, e.Message)
}
