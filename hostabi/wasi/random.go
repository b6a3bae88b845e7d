package wasi

import "encoding/binary"

// What is insecure has the same source.
var randomFunctions = map[string]function{"get-random-bytes": randomBytes, "get-random-u64": randomNumber}

var insecureFunctions = map[string]function{
	"get-insecure-random-bytes": randomBytes, "get-insecure-random-u64": randomNumber,
}

var seedFunctions = map[string]function{
	"insecure-seed": func(r *run, _ []any) any { return []any{randomNumber(r, nil), randomNumber(r, nil)} },
}

func randomBytes(r *run, a []any) any {
	n := a[0].(uint64)
	if n > uint64(r.call.MovedLeft()) {
		r.call.Trap("%d random bytes are more than a request may move", n)
	}
	b := make([]byte, n)
	r.call.Random(b)
	return b
}

func randomNumber(r *run, _ []any) any {
	var b [8]byte
	r.call.Random(b[:])
	return binary.LittleEndian.Uint64(b[:])
}
