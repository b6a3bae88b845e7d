package compile

import (
	"encoding/binary"
	"math"
	"sort"

	"runner.example/internal/wasm"
)

// offsetTable maps native code to the module as uploaded:
//
//	u32 n · n times: u32 beginning of a function's native code, u32 position of its entries
//	entries: uvarint native offset, varint original offset, each less the one before
//
// Native offsets count from the beginning of all native code. Original offsets count from the
// beginning of the content of the code section, because modules that share code may differ before
// it. The last of the n functions is the first one that rewriting added; it has no entries. An
// entry applies to the native code from its offset up to the next entry.
type offsetTable []byte

// Instruction is where an instruction is in the module as uploaded, before it was rewritten.
type Instruction struct {
	Function int   // index among the functions that the module defines, without imports
	Offset   int64 // from the beginning of the content of the code section
}

// newOffsetTable makes the table. functions are where the native code of each function begins.
// native are addresses of native code in order, which begins at base. compiled are the offsets
// of their instructions in the module that was compiled.
func newOffsetTable(functions []int, base uintptr, native []uintptr, compiled []uint64,
	offsets *wasm.Offsets) offsetTable {
	n := min(offsets.Functions(), len(functions))
	head := binary.LittleEndian.AppendUint32(nil, uint32(n+1))
	var body []byte
	next := 0 // in native
	for i := range n + 1 {
		start, end := uint64(math.MaxUint32), uint64(math.MaxUint32)
		if i < len(functions) {
			start = uint64(functions[i])
		}
		if i+1 < len(functions) {
			end = uint64(functions[i+1])
		}
		head = binary.LittleEndian.AppendUint32(head, uint32(start))
		head = binary.LittleEndian.AppendUint32(head, uint32(4+8*(n+1)+len(body)))
		at, from := start, uint32(0)
		for ; i < n && next < len(native) && uint64(native[next]-base) < end; next++ {
			address := uint64(native[next] - base)
			original, ok := offsets.Original(uint32(compiled[next]))
			if !ok || original == from || address < at {
				continue
			}
			body = binary.AppendUvarint(body, address-at)
			body = binary.AppendVarint(body, int64(original)-int64(from))
			at, from = address, original
		}
	}
	return append(head, body...)
}

// find returns the instruction of native code. For a call, native is the offset that it returns to;
// for a trap, the offset where its code ends. ok is false if the instruction is not known, or if
// rewriting added the function.
func (t offsetTable) find(native uint64) (p Instruction, ok bool) {
	if len(t) < 4 {
		return p, false
	}
	field := func(function, which int) int { return int(binary.LittleEndian.Uint32(t[4+8*function+4*which:])) }
	n := int(binary.LittleEndian.Uint32(t))
	i := sort.Search(n, func(i int) bool { return uint64(field(i, 0)) >= native }) - 1
	if i < 0 || i == n-1 {
		return p, false
	}
	p.Function = i
	at := uint64(field(i, 0))
	for entries := t[field(i, 1):field(i+1, 1)]; len(entries) > 0; {
		more, size := binary.Uvarint(entries)
		from, length := binary.Varint(entries[size:])
		if at += more; at >= native {
			break
		}
		p.Offset += from
		ok = true
		entries = entries[size+length:]
	}
	return p, ok
}

// withoutOffsets removes the offsets of instructions from a file of wazero's cache. wazero reads
// them one by one, which takes longer than all the rest. ok is false if the file has none, or is
// not as wazero 1.12 writes it:
//
//	"WAZEVO" · u8 length of the version, version · u32 functions, u64 each
//	u64 length of the code, code, u32 checksum · u8 1: offsets follow · u64 n, n times 16 bytes · …
func withoutOffsets(file []byte) (stripped []byte, ok bool) {
	pos := 0
	skip := func(n uint64) bool {
		if n > uint64(len(file)-pos) {
			return false
		}
		pos += int(n)
		return true
	}
	number := func(size int) (n uint64, ok bool) {
		if ok = skip(uint64(size)); ok {
			var b [8]byte
			copy(b[:], file[pos-size:pos])
			n = binary.LittleEndian.Uint64(b[:])
		}
		return n, ok
	}
	const magic = "WAZEVO"
	if !skip(uint64(len(magic))) || string(file[:pos]) != magic {
		return nil, false
	}
	for _, part := range []struct{ size, unit, more int }{{1, 1, 0}, {4, 8, 0}, {8, 1, 4}} {
		if n, ok := number(part.size); !ok || n > uint64(len(file)) || !skip(n*uint64(part.unit)+uint64(part.more)) {
			return nil, false
		}
	}
	flag := pos
	if has, ok := number(1); !ok || has != 1 {
		return nil, false
	}
	if n, ok := number(8); !ok || n > uint64(len(file)) || !skip(16*n) {
		return nil, false
	}
	return append(append(file[:flag:flag], 0), file[pos:]...), true
}
