package typescript

import (
	"encoding/binary"
	"slices"

	"runner.example/internal/wasm"
)

// The instructions that the glue needs (WebAssembly Core 2.0, section 5.4).
const (
	opUnreachable = 0x00
	opBlock       = 0x02
	opLoop        = 0x03
	opIf          = 0x04
	opElse        = 0x05
	opEnd         = 0x0b
	opBr          = 0x0c
	opBrIf        = 0x0d
	opReturn      = 0x0f
	opCall        = 0x10
	opDrop        = 0x1a
	opLocalGet    = 0x20
	opLocalSet    = 0x21
	opLocalTee    = 0x22
	opI32Load     = 0x28
	opI64Load     = 0x29
	opI32Load8U   = 0x2d
	opI32Load16U  = 0x2f
	opI32Store    = 0x36
	opI32Const    = 0x41
	opI32Eqz      = 0x45
	opI32Eq       = 0x46
	opI32LtS      = 0x48
	opI32LtU      = 0x49
	opI32GtS      = 0x4a
	opI32Add      = 0x6a
	opI32Mul      = 0x6c
	opI32And      = 0x71
	opI32Or       = 0x72
	opF64Load     = 0x2b
	opI64Store    = 0x37
	opI64Const    = 0x42
	opI64Or       = 0x84
	opI64ShrU     = 0x88
	opI64Mul      = 0x7e
	opI32FromI64  = 0xa7
	opI64FromU32  = 0xad
	opMisc        = 0xfc // with 2: i32.trunc_sat_f64_s

	noResult = 0x40
)

var unit = wasm.FuncType{}

// words returns n times i32, followed by values times i64.
func words(n, values int) []wasm.ValueType {
	return append(slices.Repeat([]wasm.ValueType{wasm.I32}, n), slices.Repeat([]wasm.ValueType{wasm.I64}, values)...)
}

// typeOf returns a function type of i32.
func typeOf(params, results int) wasm.FuncType {
	return wasm.FuncType{Params: words(params, 0), Results: words(results, 0)}
}

// assembler appends instructions.
type assembler struct {
	code  []byte
	index func(name string) uint32
}

func (a *assembler) op(bytes ...byte) *assembler {
	a.code = append(a.code, bytes...)
	return a
}

func (a *assembler) with(op byte, n uint32) *assembler {
	a.code = binary.AppendUvarint(append(a.code, op), uint64(n))
	return a
}

// i32 pushes constants.
func (a *assembler) i32(numbers ...uint32) *assembler {
	for _, n := range numbers {
		a.code = appendSigned(append(a.code, opI32Const), int64(int32(n)))
	}
	return a
}

// i64 pushes a constant.
func (a *assembler) i64(n int64) *assembler {
	a.code = appendSigned(append(a.code, opI64Const), n)
	return a
}

// get pushes locals.
func (a *assembler) get(locals ...uint32) *assembler {
	for _, l := range locals {
		a.with(opLocalGet, l)
	}
	return a
}

func (a *assembler) set(local uint32) *assembler { return a.with(opLocalSet, local) }

func (a *assembler) call(name string) *assembler { return a.with(opCall, a.index(name)) }

// load pops an address and pushes the word at that offset from it.
func (a *assembler) load(offset uint32) *assembler {
	return a.op(opI32Load, 2).number(offset)
}

// store pops an address and a word, and stores the word at that offset from the address.
func (a *assembler) store(offset uint32) *assembler {
	return a.op(opI32Store, 2).number(offset)
}

// loadValue and storeValue do the same with eight bytes.
func (a *assembler) loadValue(offset uint32) *assembler {
	return a.op(opI64Load, 3).number(offset)
}

func (a *assembler) storeValue(offset uint32) *assembler {
	return a.op(opI64Store, 3).number(offset)
}

func (a *assembler) number(n uint32) *assembler {
	a.code = binary.AppendUvarint(a.code, uint64(n))
	return a
}

func appendSigned(b []byte, n int64) []byte {
	for {
		c := byte(n) & 0x7f
		n >>= 7
		if n == 0 && c&0x40 == 0 || n == -1 && c&0x40 != 0 {
			return append(b, c)
		}
		b = append(b, c|0x80)
	}
}
