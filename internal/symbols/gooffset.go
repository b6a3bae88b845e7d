package symbols

import (
	"bytes"
	"slices"

	"runner.example/internal/wasm"
)

// GoFrames returns the frames of calls, at most 32, with the offsets of the instructions in the module's
// file. module may be nil: then the offsets are unknown.
func GoFrames(calls []GoCall, module []byte) (frames []Frame) {
	bodies := codeBodies(module)
	for _, c := range calls {
		if c.counter != 0 && c.defined < len(bodies) {
			if at := callBefore(bodies[c.defined].code, c.counter); at >= 0 {
				for i := range c.Frames {
					c.Frames[i].Offset = int64(bodies[c.defined].at + at)
				}
			}
		}
		frames = append(frames, c.Frames...)
	}
	return frames[:min(len(frames), MaxFrames)]
}

// codeBody is the body of a function, and where it is in the file.
type codeBody struct {
	at   int
	code []byte
}

// codeBodies returns the bodies of the functions that a module defines.
func codeBodies(module []byte) (all []codeBody) {
	sections, _ := wasm.Sections(module)
	i := slices.IndexFunc(sections, wasm.Section.IsCode)
	if i < 0 {
		return nil
	}
	r := reader{data: module[sections[i].Body:sections[i].End]}
	for range min(r.uleb(), uint64(len(r.data))) {
		code := r.bytes(r.uleb())
		if r.failed {
			break
		}
		all = append(all, codeBody{sections[i].End - len(r.data) - len(code), code})
	}
	return all
}

// callBefore returns where in a function's body a call is that continues at a program counter. -1: nowhere.
// Before a call the program counter is stored:
//
//	i64.const counter; i64.store align offset; i32.const 0; call f
func callBefore(body []byte, counter uint64) int {
	const i64Const, i64Store, i32Const, call = 0x42, 0x37, 0x41, 0x10
	pattern := []byte{i64Const}
	for n := int64(counter); ; n >>= 7 {
		if n < 0x40 {
			pattern = append(pattern, byte(n), i64Store)
			break
		}
		pattern = append(pattern, byte(n&0x7f|0x80))
	}
	at := bytes.Index(body, pattern)
	if at < 0 {
		return -1
	}
	rest := body[at+len(pattern):]
	if len(rest) > 4 && rest[2] == i32Const && rest[3] == 0 && rest[4] == call {
		return at + len(pattern) + 4
	}
	return at
}
