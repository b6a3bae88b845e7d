// Package guest makes modules of handlers for tests, without a compiler.
package guest

import (
	"bytes"
	"encoding/binary"
	"maps"
	"slices"
)

// Module is a module of handlers, by name: each is a list of calls of host functions.
type Module map[string][]Call

// Call is a call of a host function.
type Call struct {
	function byte  // index in imports
	args     []any // int or string: a string is passed as its address and length
}

// functions are the host functions that modules import, with the number of their
// parameters and results.
var functions = []struct {
	name            string
	params, results int
}{
	{"call", 4, 1}, {"response_send", 3, 1}, {"response_send_result", 2, 1}, {"log", 3, 0},
}

// Operation calls an operation with its arguments in JSON.
func Operation(name, args string) Call { return Call{0, []any{name, args}} }

// Respond answers with a body.
func Respond(status int, body string) Call { return Call{1, []any{status, body}} }

// RespondWithResult answers 200 with the result of the last operation.
func RespondWithResult() Call { return Call{2, []any{200, 0}} }

// LogLine logs a text.
func LogLine(text string) Call { return Call{3, []any{1, text}} }

// Wasm returns the module in the binary format, the same bytes for the same handlers.
func (g Module) Wasm() []byte {
	const i32 = 0x7f
	var types, imports, bodies, exports, code [][]byte
	for i, f := range functions {
		signature := slices.Concat([]byte{0x60}, vector(slices.Repeat([][]byte{{i32}}, f.params)), vector(slices.Repeat([][]byte{{i32}}, f.results)))
		types = append(types, signature)
		imports = append(imports, slices.Concat(text("runner"), text(f.name), []byte{0, byte(i)}))
	}
	types = append(types, []byte{0x60, 0, 0})
	exports = append(exports, slices.Concat(text("memory"), []byte{2, 0}))
	var data []byte
	for i, name := range slices.Sorted(maps.Keys(g)) {
		body := []byte{0} // no locals
		for _, c := range g[name] {
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
			body = append(body, bytes.Repeat([]byte{0x1a}, functions[c.function].results)...)
		}
		body = append(body, 0x0b)
		bodies = append(bodies, []byte{byte(len(functions))})
		exports = append(exports, slices.Concat(text(name), []byte{0, byte(len(functions) + i)}))
		code = append(code, slices.Concat(size(len(body)), body))
	}
	segment := slices.Concat([]byte{0}, constant(0), []byte{0x0b}, size(len(data)), data)
	return slices.Concat([]byte("\x00asm\x01\x00\x00\x00"),
		section(1, vector(types)), section(2, vector(imports)), section(3, vector(bodies)),
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
