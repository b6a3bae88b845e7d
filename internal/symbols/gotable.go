package symbols

import (
	"bytes"
	"encoding/binary"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Go's linker writes two structures into the data of a module:
//
//	pcHeader    u32 magic · u16 0 · u8 unit of program counters (1) · u8 size of pointers (8)
//	            u64 functions · u64 files · u64 · u64 offset of the names · …
//	moduledata  *pcHeader · slices: names, files of units, files, tables by program counter,
//	            functions, index of functions · … (runtime/symtab.go)
//
// A program counter is function<<16 | block: the number of the function, which begins at 0x1000
// for the first function that the module defines, and that of a block of its code. Blocks are
// what calls and jumps continue at.

// goMagic begins a pcHeader since Go 1.20. moduledata has the same layout in Go 1.24 to 1.26 as
// far as it is read here.
var goMagic = []byte{0xf1, 0xff, 0xff, 0xff, 0, 0, 1, 8}

// The words of a moduledata. A slice has three: address, length, capacity.
const (
	moduleNames     = 1
	moduleUnits     = 4 // indexes of files
	moduleFiles     = 7
	moduleTables    = 10
	moduleFunctions = 13
	moduleIndex     = 16
	moduleFirst     = 20 // program counter
	moduleBegin     = 24 // of variables
	moduleEnd       = 34
	moduleInline    = 40 // the base of funcdata
	moduleWords     = 41
)

// GoTables says where the tables of Go's runtime are in the memory of a module. The memory is
// passed to each method: it may be that of any instance, and is only read. Its content is not
// trusted. A GoTables may be used by several goroutines.
type GoTables struct {
	imports   int
	functions int
	first     uint64 // the number of the first function in program counters
	step      uint32 // between the entries of two functions
	base      uint64 // of funcdata
	begin     uint64 // of variables
	end       uint64
	main      string // the import path of package main
	module    string // the path of the main module

	names, units, files, tables, info, index span
}

// span is a part of memory.
type span struct{ at, size uint64 }

// view reads memory. Reads outside of it return 0.
type view struct {
	memory []byte
	work   *int // steps that are left for loops over memory
}

// maxGoWork limits the steps of a walk. Large programs need a tenth of it: the length of loops is the
// guest's.
const maxGoWork = 1 << 21

func viewOf(memory []byte) view {
	work := maxGoWork
	return view{memory, &work}
}

// spend takes a step. false: there are none left.
func (v view) spend() bool {
	*v.work--
	return *v.work >= 0
}

func (v view) size() uint64 { return uint64(len(v.memory)) }

func (v view) bytes(at, size uint64) []byte {
	if at > v.size() || size > v.size()-at {
		return nil
	}
	return v.memory[at : at+size]
}

func (v view) u64(at uint64) uint64 {
	if b := v.bytes(at, 8); b != nil {
		return binary.LittleEndian.Uint64(b)
	}
	return 0
}

func (v view) u32(at uint64) uint32 {
	if b := v.bytes(at, 4); b != nil {
		return binary.LittleEndian.Uint32(b)
	}
	return 0
}

// FindGoTables finds the tables in the memory of a module. imports and functions are how many functions
// it imports and defines. nil: it is not a Go module, or its version of Go is not known.
func FindGoTables(memory []byte, imports, functions int) *GoTables {
	const most = 64 // headers to try
	v := viewOf(memory)
	for from, tried := 0, 0; tried < most; tried++ {
		i := bytes.Index(memory[from:], goMagic)
		if i < 0 {
			return nil
		}
		header := uint64(from + i)
		from += i + len(goMagic)
		if v.u64(header+8) != uint64(functions) {
			continue
		}
		if g := readGoTables(v, header, imports, functions); g != nil {
			return g
		}
	}
	return nil
}

// readGoTables reads the moduledata of a header.
func readGoTables(v view, header uint64, imports, functions int) *GoTables {
	pattern := binary.LittleEndian.AppendUint64(nil, header)
	pattern = binary.LittleEndian.AppendUint64(pattern, header+v.u64(header+32)) // where the names begin
	at := bytes.Index(v.memory, pattern)
	if at < 0 || v.bytes(uint64(at), 8*moduleWords) == nil {
		return nil
	}
	word := func(i uint64) uint64 { return v.u64(uint64(at) + 8*i) }
	slice := func(i, size uint64) span {
		s := span{word(i), word(i + 1)}
		if s.size > v.size() || v.bytes(s.at, s.size*size) == nil {
			return span{}
		}
		s.size *= size
		return s
	}
	g := &GoTables{
		imports: imports, functions: functions,
		first: word(moduleFirst) >> 16, base: word(moduleInline),
		begin: word(moduleBegin), end: word(moduleEnd),
		names: slice(moduleNames, 1), units: slice(moduleUnits, 4), files: slice(moduleFiles, 1),
		tables: slice(moduleTables, 1), info: slice(moduleFunctions, 1), index: slice(moduleIndex, 8),
	}
	if g.index.size < 8*uint64(functions) || g.names.size == 0 || g.tables.size == 0 || g.end < g.begin ||
		g.end > v.size() {
		return nil
	}
	if g.step = 1; functions > 1 {
		g.step = v.u32(g.index.at+8) - v.u32(g.index.at)
	}
	g.readBuild(v)
	return g
}

// buildMark begins the text about the build in a module (runtime/debug.ReadBuildInfo).
var buildMark = []byte("\x30\x77\xaf\x0c\x92\x74\x08\x02\x41\xe1\xc1\x07\xe6\xd6\x18\xe6")

// readBuild reads the paths of the package main and of its module.
func (g *GoTables) readBuild(v view) {
	const most = 64 << 10
	i := bytes.Index(v.memory, append(buildMark[:len(buildMark):len(buildMark)], "path\t"...))
	if i < 0 {
		return
	}
	text := v.memory[i+len(buildMark):]
	for line := range strings.Lines(string(text[:min(len(text), most)])) {
		fields := strings.Split(strings.TrimSpace(line), "\t")
		switch {
		case len(fields) < 2:
			return
		case fields[0] == "path":
			g.main = fields[1]
		case fields[0] == "mod":
			g.module = fields[1]
			return
		}
	}
}

// goFunction is what the tables have of a function.
type goFunction struct {
	g     *GoTables
	at    uint64 // of its record
	index int    // in the module
	name  string
}

// function returns a function of the module.
func (g *GoTables) function(v view, index int) (f goFunction, ok bool) {
	i := index - g.imports
	if i < 0 || i >= g.functions {
		return f, false
	}
	entry := uint64(v.u32(g.index.at + 8*uint64(i)))
	at := uint64(v.u32(g.index.at + 8*uint64(i) + 4))
	if at >= g.info.size || entry != uint64(v.u32(g.index.at))+uint64(i)*uint64(g.step) {
		return f, false
	}
	f = goFunction{g: g, at: g.info.at + at, index: index}
	f.name = g.text(v, g.names, uint64(f.field(v, infoName)))
	return f, f.name != ""
}

// Names returns the names of the module's functions by their index.
func (g *GoTables) Names(memory []byte) map[uint32]string {
	v, names := viewOf(memory), map[uint32]string{}
	for i := range g.functions {
		if f, ok := g.function(v, g.imports+i); ok {
			names[uint32(f.index)] = f.name
		}
	}
	return names
}

// byCounter returns the function of a program counter, and the block.
func (g *GoTables) byCounter(v view, counter uint64) (f goFunction, block int, ok bool) {
	if i := counter >> 16; i >= g.first && i-g.first < uint64(g.functions) {
		f, ok = g.function(v, g.imports+int(i-g.first))
	}
	return f, int(counter & 0xffff), ok
}

// The words of 4 bytes in the record of a function. Offsets of tables for inlined calls follow.
const (
	infoName  = 1
	infoStack = 4 // bytes of stack, by program counter
	infoFile  = 5
	infoLine  = 6
	infoCount = 7 // of further tables
	infoUnit  = 8
	infoBegin = 9 // line
	infoSort  = 10
	infoMore  = 11 // further tables; then data

	tableInline = 2 // of the further tables
	dataInline  = 3 // of the data
	topFrame    = 1 // flag
)

func (f goFunction) field(v view, i uint64) uint32 { return v.u32(f.at + 4*i) }

// isOutermost reports whether the function is the first of a stack.
func (f goFunction) isOutermost(v view) bool { return f.field(v, infoSort)>>8&topFrame != 0 }

// maxText is the length up to which names and paths are read.
const maxText = 512

// text reads a text that ends with a zero.
func (g *GoTables) text(v view, of span, at uint64) string {
	if at >= of.size {
		return ""
	}
	b := v.bytes(of.at+at, min(of.size-at, maxText))
	if end := bytes.IndexByte(b, 0); end >= 0 {
		b = b[:end]
	}
	return clean(string(b))
}

// clean removes what is not part of a name or a path.
func clean(s string) string {
	return strings.Map(func(r rune) rune {
		if r == utf8.RuneError || !unicode.IsPrint(r) {
			return -1
		}
		return r
	}, s)
}

// value looks a block up in a table by program counter, which has pairs: difference of the value
// (zigzag), difference of the program counter. -1: there is none.
func (g *GoTables) value(v view, table uint32, block int) int {
	if table == 0 || uint64(table) >= g.tables.size {
		return -1
	}
	b := v.bytes(g.tables.at+uint64(table), g.tables.size-uint64(table))
	value, counter := int32(-1), 0
	for first := true; ; first = false {
		delta, n := binary.Uvarint(b)
		if n <= 0 || delta == 0 && !first {
			return -1
		}
		b = b[n:]
		more, n := binary.Uvarint(b)
		if n <= 0 || more > 1<<16 {
			return -1
		}
		b = b[n:]
		value += int32(uint32(delta)>>1) ^ -int32(delta&1)
		if counter += int(more); block < counter {
			return int(value)
		}
		if counter > 1<<16 || !v.spend() {
			return -1
		}
	}
}

// stackBytes is the size of a function's frame at a block; false: it is not known.
func (f goFunction) stackBytes(v view, block int) (uint64, bool) {
	n := f.g.value(v, f.field(v, infoStack), block)
	return uint64(n), n >= 0
}

// appendFrames appends the frames of the code of a block: those of inlined calls, then that of the
// function.
func (f goFunction) appendFrames(v view, frames []Frame, block int) []Frame {
	const most = 16 // inlined calls
	tree := uint64(0)
	if more := f.field(v, infoCount); more > tableInline && more < 16 && f.field(v, infoSort)>>24 > dataInline {
		if at := f.field(v, infoMore+uint64(more)+dataInline); at != ^uint32(0) {
			tree = f.g.base + uint64(at)
		}
	}
	for range most {
		inlined := -1
		if tree > 0 {
			inlined = f.g.value(v, f.field(v, infoMore+tableInline), block)
		}
		frame := Frame{Function: f.name}
		frame.File, frame.Line = f.place(v, block)
		if inlined < 0 {
			return append(frames, frame)
		}
		call := tree + 16*uint64(inlined)
		if frame.Function = f.g.text(v, f.g.names, uint64(v.u32(call+4))); frame.Function != "" {
			frames = append(frames, frame)
		}
		block = int(v.u32(call+8) & 0xffff)
	}
	return frames
}

// place returns the file and the line of a block; 0: the line is not known.
func (f goFunction) place(v view, block int) (file string, line int) {
	g := f.g
	if n := g.value(v, f.field(v, infoFile), block); n >= 0 {
		at := 4 * (uint64(f.field(v, infoUnit)) + uint64(n))
		if at+4 <= g.units.size {
			if offset := v.u32(g.units.at + at); offset != ^uint32(0) {
				file = g.text(v, g.files, uint64(offset))
			}
		}
	}
	return file, max(0, g.value(v, f.field(v, infoLine), block))
}
