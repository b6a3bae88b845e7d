package sourcemap

import (
	"iter"
	"strings"
)

// Map is the part of a source map that is used. It is read with encoding/json.
type Map struct {
	Version    int      `json:"version"`
	SourceRoot string   `json:"sourceRoot,omitempty"`
	Sources    []string `json:"sources"`
	Mappings   string   `json:"mappings"`
	Names      []string `json:"names,omitempty"`
}

// Unknown is the source of a segment that maps to nothing.
const Unknown = -1

// Segment maps a place in the generated text to one in a source. All numbers count from 0; columns
// are UTF-16 units, and byte offsets in a WebAssembly module, which has one line.
type Segment struct {
	// GeneratedLine and GeneratedColumn are where the segment begins.
	GeneratedLine, GeneratedColumn int
	// Source is an index of Sources, or Unknown. Line and Column are the place there.
	Source, Line, Column int
	Name                 string // in the source, if the map has it
}

// Segments returns the segments in the order of the mappings.
func (m *Map) Segments() iter.Seq[Segment] {
	return func(yield func(Segment) bool) {
		var state [5]int
		line := 0
		for text := range strings.SplitSeq(m.Mappings, ";") {
			state[0] = 0
			for encoded := range strings.SplitSeq(text, ",") {
				fields := read(encoded, &state)
				s := Segment{GeneratedLine: line, GeneratedColumn: state[0], Source: Unknown}
				if fields >= 4 && state[1] >= 0 && state[1] < len(m.Sources) {
					s.Source, s.Line, s.Column = state[1], state[2], state[3]
				}
				if fields == 5 && state[4] >= 0 && state[4] < len(m.Names) {
					s.Name = m.Names[state[4]]
				}
				if fields > 0 && !yield(s) {
					return
				}
			}
			line++
		}
	}
}

const digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"

// AppendNumber appends n in base64 VLQ.
func AppendNumber(out []byte, n int) []byte {
	bits := n << 1
	if n < 0 {
		bits = -n<<1 | 1
	}
	for ; bits > 31; bits >>= 5 {
		out = append(out, digits[bits&31|32])
	}
	return append(out, digits[bits])
}

// read adds a segment's numbers to the state, and returns how many it has; 0: it is not valid.
func read(segment string, state *[5]int) (fields int) {
	n, shift := 0, 0
	for i := range len(segment) {
		bits := strings.IndexByte(digits, segment[i])
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
