package front

import (
	"bytes"
	"unicode/utf8"

	"runner.example/hostabi/abi"
	"runner.example/internal/fault"
)

// maxQueryPairs is the largest number of pairs in a query.
const maxQueryPairs = 100

var (
	errQueryPairs = fault.New(fault.InvalidRequest, "a query may have %d pairs", maxQueryPairs)
	errQuery      = fault.New(fault.InvalidRequest,
		"a %% in the query is not followed by two hexadecimal digits, or the query is not UTF-8 once decoded")
)

// parseQuery fills Request.Query. More than 100 pairs, or one that cannot be decoded, are
// fault.InvalidRequest.
func (x *Exchange) parseQuery() *fault.Fault {
	x.Request.Query = x.Request.Query[:0]
	for rest := x.Request.RawQuery; len(rest) > 0; {
		var pair []byte
		pair, rest, _ = bytes.Cut(rest, []byte{'&'})
		if len(pair) == 0 {
			continue
		}
		if len(x.Request.Query) == maxQueryPairs {
			return errQueryPairs
		}
		name, value, _ := bytes.Cut(pair, []byte{'='})
		name, ok := x.decode(name)
		value, ok2 := x.decode(value)
		if !ok || !ok2 {
			return errQuery
		}
		x.Request.Query = append(x.Request.Query, abi.Pair{Name: name, Value: value})
	}
	return nil
}

// decode appends the decoded b to the arena: %xx is a byte, + is a space.
func (x *Exchange) decode(b []byte) (out []byte, ok bool) {
	start := len(x.headers.arena)
	for i := 0; i < len(b); i++ {
		c := b[i]
		switch c {
		case '+':
			c = ' '
		case '%':
			if len(b)-i < 3 {
				return nil, false
			}
			high, ok := hexDigit(b[i+1])
			low, ok2 := hexDigit(b[i+2])
			if !ok || !ok2 {
				return nil, false
			}
			c = high<<4 | low
			i += 2
		}
		x.headers.arena = append(x.headers.arena, c)
	}
	out = x.headers.arena[start:len(x.headers.arena):len(x.headers.arena)]
	return out, utf8.Valid(out)
}
