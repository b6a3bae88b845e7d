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
func (x *Exchange) parseQuery() (f *fault.Fault) {
	x.Request.Query, f = appendQuery(x.Request.Query[:0], x.Request.RawQuery, &x.headers.arena)
	return f
}

// ParseQuery returns the decoded pairs of a query, as those of a request. The error is a fault.
func ParseQuery(raw []byte) ([]abi.Pair, error) {
	var arena []byte
	pairs, f := appendQuery(nil, raw, &arena)
	if f != nil {
		return nil, f
	}
	return pairs, nil
}

// appendQuery appends the pairs of a query. Their bytes are in the arena.
func appendQuery(pairs []abi.Pair, raw []byte, arena *[]byte) ([]abi.Pair, *fault.Fault) {
	first := len(pairs)
	for rest := raw; len(rest) > 0; {
		var pair []byte
		pair, rest, _ = bytes.Cut(rest, []byte{'&'})
		if len(pair) == 0 {
			continue
		}
		if len(pairs)-first == maxQueryPairs {
			return pairs, errQueryPairs
		}
		name, value, _ := bytes.Cut(pair, []byte{'='})
		name, ok := decode(name, arena)
		value, ok2 := decode(value, arena)
		if !ok || !ok2 {
			return pairs, errQuery
		}
		pairs = append(pairs, abi.Pair{Name: name, Value: value})
	}
	return pairs, nil
}

// decode appends the decoded b to the arena: %xx is a byte, + is a space.
func decode(b []byte, arena *[]byte) (out []byte, ok bool) {
	start := len(*arena)
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
		*arena = append(*arena, c)
	}
	out = (*arena)[start:len(*arena):len(*arena)]
	return out, utf8.Valid(out)
}
