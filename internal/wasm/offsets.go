package wasm

import (
	"crypto/sha256"
	"encoding/binary"
	"slices"
	"sort"
)

// Offsets maps the code of a rewritten module to the code of the module before. Offsets count from the
// beginning of the content of the code section, in both modules. A nil *Offsets maps nothing. It is
// read-only.
type Offsets struct {
	functions []body // those that the parsed module defines
	pieces    []piece
	end       uint32   // of the functions; added functions follow
	before    *Offsets // from the code that it maps to, to that of the module before; nil: it is that
}

// body is a function's new body.
type body struct {
	start uint32 // in the code section
	first uint32 // of its pieces
}

// piece says where the code of a body from an offset on comes from, up to the next piece.
type piece struct {
	at   uint32
	from uint32 // twice; odd: see inserted
}

// inserted: all of the piece belongs to the instruction at from. Otherwise it is a copy of what
// begins there.
func (p piece) inserted() bool { return p.from&1 == 1 }

// Original returns the offset in the module before of the instruction at an offset. Code that was
// inserted belongs to the instruction that it was inserted for: a loop, a function's first one, or a
// bulk operation. ok is false for functions that were added, and outside of all functions.
func (o *Offsets) Original(offset uint32) (original uint32, ok bool) {
	if original, ok = o.find(offset); ok && o.before != nil {
		return o.before.Original(original)
	}
	return original, ok
}

func (o *Offsets) find(offset uint32) (original uint32, ok bool) {
	if o == nil || offset >= o.end {
		return 0, false
	}
	i := sort.Search(len(o.functions), func(i int) bool { return o.functions[i].start > offset }) - 1
	if i < 0 {
		return 0, false
	}
	pieces := o.pieces[o.functions[i].first:]
	if i+1 < len(o.functions) {
		pieces = o.pieces[o.functions[i].first:o.functions[i+1].first]
	}
	at := offset - o.functions[i].start
	j := sort.Search(len(pieces), func(j int) bool { return pieces[j].at > at }) - 1
	switch {
	case j < 0:
		return 0, false
	case pieces[j].inserted():
		return pieces[j].from >> 1, true
	}
	return pieces[j].from>>1 + (at - pieces[j].at), true
}

// Functions returns the number of functions that the map covers. Functions that were added follow them.
func (o *Offsets) Functions() int {
	if o == nil {
		return 0
	}
	return len(o.functions)
}

// begin begins the next function.
func (o *Offsets) begin() {
	if o != nil {
		o.functions = append(o.functions, body{first: uint32(len(o.pieces))})
	}
}

// finish notes where the body of the function that was begun is in the new code section.
func (o *Offsets) finish(start, end int) {
	if o != nil {
		o.functions[len(o.functions)-1].start = uint32(start)
		o.end = uint32(end)
	}
}

// add adds a piece to the last function, unless it continues the one before it.
func (o *Offsets) add(next piece) {
	if n := len(o.pieces); n > int(o.functions[len(o.functions)-1].first) {
		switch last := o.pieces[n-1]; {
		case last.at == next.at: // nothing was written
			o.pieces = o.pieces[:n-1]
		case last.inserted() && last.from == next.from, !last.inserted() && next.from-last.from == 2*(next.at-last.at):
			return
		}
	}
	o.pieces = append(o.pieces, next)
}

// copyCode appends the code from one position of the file to another as it is.
func (w *rewriter) copyCode(b []byte, from, to int) []byte {
	if w.offsets != nil && from < to {
		w.offsets.add(piece{uint32(len(b)), uint32(from-w.m.CodeStart()) << 1})
	}
	return append(b, w.m.bytes[from:to]...)
}

// copyThen is copyCode before code that is inserted for the instruction at a position.
func (w *rewriter) copyThen(b []byte, from, to, instruction int) []byte {
	b = w.copyCode(b, from, to)
	if w.offsets != nil {
		w.offsets.add(piece{uint32(len(b)), uint32(instruction-w.m.CodeStart())<<1 | 1})
	}
	return b
}

// sum is a hash of the map.
func (o *Offsets) sum() [sha256.Size]byte {
	h := sha256.New()
	if o.before != nil {
		before := o.before.sum()
		h.Write(before[:])
	}
	var buffer [4096]byte
	for pieces := range slices.Chunk(o.pieces, len(buffer)/8) {
		b := buffer[:0]
		for _, p := range pieces {
			b = binary.LittleEndian.AppendUint64(b, uint64(p.at)<<32|uint64(p.from))
		}
		h.Write(b)
	}
	return [sha256.Size]byte(h.Sum(nil))
}

// debugSections appends the least debug information with which wazero keeps the offsets of
// instructions: a unit without entries. The hash makes modules differ whose code is
// equal but had other offsets before.
func (o *Offsets) debugSections(out []byte) []byte {
	sum := o.sum()
	unit := []byte{
		7, 0, 0, 0, // length of the rest
		4, 0, // version of DWARF
		0, 0, 0, 0, // offset of its abbreviations
		4, // bytes of an address
	}
	for _, s := range []struct {
		name    string
		content []byte
	}{{".debug_info", unit}, {".debug_abbrev", []byte{0}}, {".debug_str", sum[:16]}} {
		out = appendSection(out, sectionCustom, append(appendName(nil, s.name), s.content...))
	}
	return out
}

// CodeStart is where the content of the code section begins in the module's file.
func (m *Module) CodeStart() int { return m.sections[sectionCode].start }
