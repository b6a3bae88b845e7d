package runtime_test

import (
	"bytes"
	"encoding/binary"
	"slices"
)

// A guest is a module of handlers that need no compiler: each is a list of calls of host
// functions.
type guest map[string][]hostCall

// A hostCall is a call of a host function by its index in guestImports.
type hostCall struct {
	function byte
	args     []any // int or string: a string is passed as its address and length
}

// guestImports are the host functions that guests import, with the number of their
// parameters and results.
var guestImports = []struct {
	name            string
	params, results int
}{
	{"call", 4, 1}, {"response_send", 3, 1}, {"response_send_result", 2, 1}, {"log", 3, 0},
}

func operation(name, args string) hostCall     { return hostCall{0, []any{name, args}} }
func respond(status int, body string) hostCall { return hostCall{1, []any{status, body}} }
func respondWithResult() hostCall              { return hostCall{2, []any{200, 0}} }
func logLine(text string) hostCall             { return hostCall{3, []any{1, text}} }

// wasm returns the module in the binary format.
func (g guest) wasm() []byte {
	const i32 = 0x7f
	var types, imports, functions, exports, code [][]byte
	for i, f := range guestImports {
		signature := slices.Concat([]byte{0x60}, vector(slices.Repeat([][]byte{{i32}}, f.params)), vector(slices.Repeat([][]byte{{i32}}, f.results)))
		types = append(types, signature)
		imports = append(imports, slices.Concat(text("runner"), text(f.name), []byte{0, byte(i)}))
	}
	types = append(types, []byte{0x60, 0, 0})
	exports = append(exports, slices.Concat(text("memory"), []byte{2, 0}))
	var data []byte
	i := 0
	for name, calls := range g {
		body := []byte{0} // no locals
		for _, c := range calls {
			for _, arg := range c.args {
				switch arg := arg.(type) {
				case int:
					body = append(body, constant(arg)...)
				case string:
					body = append(body, constant(len(data))...)
					body = append(body, constant(len(arg))...)
					data = append(data, arg...)
				}
			}
			body = append(body, 0x10, c.function)
			body = append(body, bytes.Repeat([]byte{0x1a}, guestImports[c.function].results)...)
		}
		body = append(body, 0x0b)
		functions = append(functions, []byte{byte(len(guestImports))})
		exports = append(exports, slices.Concat(text(name), []byte{0, byte(len(guestImports) + i)}))
		code = append(code, slices.Concat(size(len(body)), body))
		i++
	}
	segment := slices.Concat([]byte{0}, constant(0), []byte{0x0b}, size(len(data)), data)
	return slices.Concat([]byte("\x00asm\x01\x00\x00\x00"),
		section(1, vector(types)), section(2, vector(imports)), section(3, vector(functions)),
		section(5, []byte{1, 0, 1}), section(7, vector(exports)), section(10, vector(code)),
		section(11, vector([][]byte{segment})))
}

func section(id byte, content []byte) []byte {
	return slices.Concat([]byte{id}, size(len(content)), content)
}

func vector(items [][]byte) []byte {
	return append(size(len(items)), slices.Concat(items...)...)
}

func text(s string) []byte { return append(size(len(s)), s...) }

func size(n int) []byte { return binary.AppendUvarint(nil, uint64(n)) }

// constant pushes n: i32.const with n as a signed LEB128 number of five bytes.
func constant(n int) []byte {
	b := []byte{0x41}
	for range 4 {
		b = append(b, byte(n&0x7f|0x80))
		n >>= 7
	}
	return append(b, byte(n&0x7f))
}
