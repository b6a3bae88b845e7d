package sandbox

import (
	"encoding/binary"
	"fmt"
	"slices"

	"runner.example/internal/fault"
)

// What a module may be at most: its file, and what makes the compiler or an
// instance cost far more than the file's size tells.
const (
	maxModuleBytes   = 32 << 20
	maxFunctions     = 50_000
	maxFunctionBytes = 1 << 20
	maxLocals        = 10_000
	maxTables        = 8
	maxTableEntries  = 1 << 16
)

// pageBytes is the unit of linear memory.
const pageBytes = 64 << 10

// Sections of a module, and kinds of imports, by their numbers in the binary
// format (WebAssembly Core 2.0, chapter 5).
const (
	sectionImport = 2
	sectionTable  = 4
	sectionMemory = 5
	sectionCode   = 10

	importFunction = 0
	importTable    = 1
	importMemory   = 2
	importGlobal   = 3
)

// prepare refuses what the compiler would refuse in words that help nobody, and
// what must not even reach it, and returns the module with its tables bounded:
//
//	magic "\0asm" · u16 version · u16 layer · sections: u8 id · u32 size · content
func prepare(wasm []byte, memoryBytes int64) ([]byte, error) {
	switch {
	case len(wasm) > maxModuleBytes:
		return nil, refuse("is %d MiB large, and a module may have %d: strip debug information", len(wasm)>>20, maxModuleBytes>>20)
	case len(wasm) < 8 || string(wasm[:4]) != "\x00asm":
		return nil, refuse("is not a WebAssembly module")
	}
	version, layer := binary.LittleEndian.Uint16(wasm[4:]), binary.LittleEndian.Uint16(wasm[6:])
	switch {
	case layer == 1:
		return nil, refuse("is a WebAssembly component, and only core modules can be run: build it for wasm32-wasip1, without wrapping it as a component")
	case layer != 0 || version != 1:
		return nil, refuse("has WebAssembly version %d, layer %d, and only core modules of version 1 can be run", version, layer)
	}
	prepared := wasm
	rest := reader{wasm[8:], true}
	for len(rest.bytes) > 0 {
		start := len(wasm) - len(rest.bytes)
		id := rest.byte()
		section := reader{rest.take(rest.u32()), true}
		if !rest.ok {
			return nil, refuse("is cut off or damaged: section %d ends outside the file", id)
		}
		var err error
		switch id {
		case sectionImport:
			err = checkImports(&section)
		case sectionTable:
			var bounded []byte
			bounded, err = boundTables(&section)
			head := binary.AppendUvarint([]byte{sectionTable}, uint64(len(bounded)))
			prepared = slices.Concat(wasm[:start], head, bounded, rest.bytes)
		case sectionMemory:
			err = checkMemory(&section, memoryBytes)
		case sectionCode:
			err = checkCode(&section)
		}
		if err != nil {
			return nil, err
		}
		if !section.ok {
			return nil, refuse("is damaged: section %d ends too early", id)
		}
	}
	return prepared, nil
}

// checkImports refuses imports that are no functions. Functions are compared
// with the host's once the module is compiled.
func checkImports(r *reader) error {
	for range r.u32() {
		module, name := r.take(r.u32()), r.take(r.u32())
		kind := r.byte()
		if !r.ok {
			return nil
		}
		switch kind {
		case importFunction:
			r.u32()
		case importMemory:
			return refuse("imports its memory (%s.%s): build it so that it has and exports its own", module, name)
		case importTable, importGlobal:
			return refuse("imports %s.%s, which is no function: only functions can be imported", module, name)
		default:
			return refuse("imports %s.%s of a kind (%d) that is not supported", module, name, kind)
		}
	}
	return nil
}

// checkMemory refuses memory that could never be had. Limits are a flags byte
// (1 has a maximum, 2 shared, 4 of 64 bits) and one or two numbers.
func checkMemory(r *reader, memoryBytes int64) error {
	for range r.u32() {
		flags := r.byte()
		switch {
		case flags&2 != 0:
			return refuse("has shared memory: build it without threads")
		case flags&4 != 0:
			return refuse("has a 64-bit memory: build it for wasm32")
		}
		least := int64(r.u32()) * pageBytes
		if flags&1 != 0 {
			r.u32()
		}
		if r.ok && least > memoryBytes {
			return refuse("needs %s of memory to begin with, and the limit is %s: raise [sandbox] memory in runner.toml or build it with less",
				size(least), size(memoryBytes))
		}
	}
	return nil
}

// boundTables gives the table section with a maximum for every table, so that
// no guest grows one without end: its memory is the host's.
//
//	u32 count · tables: u8 kind of reference · limits
func boundTables(r *reader) ([]byte, error) {
	n := r.u32()
	if n > maxTables {
		return nil, refuse("has %d tables, and may have %d", n, maxTables)
	}
	out := binary.AppendUvarint(nil, uint64(n))
	for range n {
		kind, flags := r.byte(), r.byte()
		if r.ok && (flags > 1 || kind != 0x70 && kind != 0x6f) {
			return nil, refuse("has a table of a kind (%#x, %d) that is not supported", kind, flags)
		}
		least, most := r.u32(), uint32(maxTableEntries)
		if flags == 1 {
			most = min(most, r.u32())
		}
		if r.ok && least > maxTableEntries {
			return nil, refuse("has a table of %d entries, and may have %d", least, maxTableEntries)
		}
		out = append(out, kind, 1)
		out = binary.AppendUvarint(out, uint64(least))
		out = binary.AppendUvarint(out, uint64(most))
	}
	return out, nil
}

// checkCode refuses functions that would keep the compiler busy for long:
//
//	u32 count · functions: u32 size · u32 groups of locals: u32 count, type · code
func checkCode(r *reader) error {
	n := r.u32()
	if n > maxFunctions {
		return refuse("has %d functions, and may have %d", n, maxFunctions)
	}
	for range n {
		body := reader{r.take(r.u32()), true}
		if !r.ok {
			return nil
		}
		if len(body.bytes) > maxFunctionBytes {
			return refuse("has a function of %d KiB, and one may have %d", len(body.bytes)>>10, maxFunctionBytes>>10)
		}
		locals := uint64(0)
		for range body.u32() {
			locals += uint64(body.u32())
			body.byte() // the type: one byte for all that a guest may use
			if !body.ok {
				return refuse("is damaged: a function's locals end too early")
			}
			if locals > maxLocals {
				return refuse("has a function with more than %d locals", maxLocals)
			}
		}
	}
	return nil
}

// size shows a number of bytes that is a multiple of a page.
func size(n int64) string {
	if n%(1<<20) == 0 {
		return fmt.Sprintf("%d MiB", n>>20)
	}
	return fmt.Sprintf("%d KiB", n>>10)
}

func refuse(format string, args ...any) error { return fault.New(fault.Invalid, format, args...) }

// reader takes numbers and byte strings off the front of a section; once
// something is missing ok is false and all that follows is empty.
type reader struct {
	bytes []byte
	ok    bool
}

func (r *reader) byte() byte {
	b := r.take(1)
	if len(b) == 0 {
		return 0
	}
	return b[0]
}

func (r *reader) take(n uint32) []byte {
	if !r.ok || uint64(n) > uint64(len(r.bytes)) {
		r.ok = false
		return nil
	}
	taken := r.bytes[:n]
	r.bytes = r.bytes[n:]
	return taken
}

// u32 reads an unsigned LEB128 number of at most 32 bits.
func (r *reader) u32() uint32 {
	var n uint64
	for shift := 0; shift < 35; shift += 7 {
		b := r.byte()
		n |= uint64(b&0x7f) << shift
		if b < 0x80 {
			if n > 1<<32-1 {
				break
			}
			if !r.ok {
				return 0
			}
			return uint32(n)
		}
	}
	r.ok = false
	return 0
}
