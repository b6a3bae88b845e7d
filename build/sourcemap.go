package build

import (
	"strings"

	"runner.example/internal/diag"
)

const base64Digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"

// find gives the place in a source that a place in the script, both counted from
// 1, was made of. The mappings (ECMA-426) are lines by ";", segments by ",", and
// numbers in base64 VLQ, each the difference to the one before:
//
//	column (from 0 in each line) · source · line · column · name
func (m sourceMap) find(line, col int) (diag.Span, bool) {
	var state [5]int
	for n, text := range strings.Split(m.Mappings, ";") {
		state[0] = 0
		var found [5]int
		hit := false
		for segment := range strings.SplitSeq(text, ",") {
			fields := readSegment(segment, &state)
			if n+1 == line && fields >= 4 && state[0] <= col-1 {
				found, hit = state, true
			}
		}
		if n+1 == line {
			if !hit || found[1] >= len(m.Sources) {
				return diag.Span{}, false
			}
			return place(m.Sources[found[1]], found[2]+1, found[3]+1, 1), true
		}
	}
	return diag.Span{}, false
}

// readSegment adds a segment's numbers to the state, and tells how many it has.
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
