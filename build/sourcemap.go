package build

import (
	"strings"

	"runner.example/internal/diag"
)

const base64Digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"

// each calls a function for each segment, with its line in the script, which counts from 0, and
// its numbers. The mappings (ECMA-426) are lines separated by ";", segments by ",", and numbers in
// base64 VLQ, each the difference to the previous one:
//
//	column (from 0 in each line) · source · line · column · name
func (m sourceMap) each(do func(line, fields int, state [5]int)) {
	var state [5]int
	line := 0
	for text := range strings.SplitSeq(m.Mappings, ";") {
		state[0] = 0
		for segment := range strings.SplitSeq(text, ",") {
			if fields := readSegment(segment, &state); fields > 0 {
				do(line, fields, state)
			}
		}
		line++
	}
}

// find returns the place in a source for a place in the script; both count from 1.
func (m sourceMap) find(line, col int) (at diag.Span, ok bool) {
	m.each(func(n, fields int, state [5]int) {
		if n+1 == line && state[0] <= col-1 {
			if ok = fields >= 4 && state[1] < len(m.Sources); ok {
				at = place(m.Sources[state[1]], state[2]+1, state[3]+1, 1)
			}
		}
	})
	return at, ok
}

// standing returns the mappings in a form in which each line can be read without the
// previous ones: the first segment of a line counts from 0. Places outside the app's files
// have only a column, which in a source map means an unknown source; lines with only such
// places are empty.
func (m sourceMap) standing() string {
	var out []byte
	var state [5]int
	for n, text := range strings.Split(m.Mappings, ";") {
		if n > 0 {
			out = append(out, ';')
		}
		begin, known := len(out), false
		var written [5]int
		state[0] = 0
		for segment := range strings.SplitSeq(text, ",") {
			fields := readSegment(segment, &state)
			if fields == 0 {
				continue
			}
			if len(out) > begin {
				out = append(out, ',')
			}
			out = appendNumber(out, state[0]-written[0])
			written[0] = state[0]
			if fields < 4 || state[1] >= len(m.Sources) || isOurs(m.Sources[state[1]]) {
				continue
			}
			for i := 1; i < 4; i++ {
				out = appendNumber(out, state[i]-written[i])
				written[i] = state[i]
			}
			known = true
		}
		if !known {
			out = out[:begin]
		}
	}
	return string(out)
}

// isOurs reports whether a source belongs to the SDK or is the generated entry script.
func isOurs(source string) bool {
	return strings.HasPrefix(source, sdkDirectory+":") || source == entryFile
}

// appendNumber appends n in base64 VLQ.
func appendNumber(out []byte, n int) []byte {
	bits := n << 1
	if n < 0 {
		bits = -n<<1 | 1
	}
	for ; bits > 31; bits >>= 5 {
		out = append(out, base64Digits[bits&31|32])
	}
	return append(out, base64Digits[bits])
}

// readSegment adds a segment's numbers to the state, and returns how many it has.
func readSegment(segment string, state *[5]int) (fields int) {
	n, shift := 0, 0
	for i := range len(segment) {
		bits := strings.IndexByte(base64Digits, segment[i])
		if bits < 0 || fields == len(state) || shift > 30 {
			return 0
		}
		n |= bits & 31 << shift
		shift += 5
		if bits&32 != 0 {
			continue
		}
		if n&1 != 0 {
			state[fields] -= n >> 1
		} else {
			state[fields] += n >> 1
		}
		fields++
		n, shift = 0, 0
	}
	return fields
}
