package wasm

import (
	"cmp"
	"slices"
)

// FunctionName is the name of a function, which borrows from the name section.
type FunctionName struct {
	Function uint32
	Name     []byte
}

// functionNames is the part of a name section with the names of functions.
const functionNames = 1

// maxNames limits the names of functions.
const maxNames = 1 << 20

// FunctionNames reads the names of functions from the content of a name section (Core 2.0, appendix "Custom
// Sections"): parts of u8 id · u32 size, where part 1 is u32 count · (u32 function · u32 size · name)*. It
// ends at the first damage. The names are in the order of the functions, of which the indexes are not
// checked: there may be several for one.
func FunctionNames(section []byte) (names []FunctionName) {
	r := &reader{bytes: section, end: len(section)}
	for r.left() > 0 && r.err == nil {
		id, part := r.byte(), r.take(r.u32())
		if id != functionNames {
			continue
		}
		p := &reader{bytes: part, end: len(part)}
		for range min(p.u32(), maxNames) {
			n := FunctionName{p.u32(), p.take(p.u32())}
			if p.err != nil {
				break
			}
			names = append(names, n)
		}
	}
	slices.SortStableFunc(names, func(a, b FunctionName) int { return cmp.Compare(a.Function, b.Function) })
	return names
}
