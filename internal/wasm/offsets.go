package wasm

import (
	"crypto/sha256"
	"encoding/binary"
	"sort"
)

// Offsets maps the code of a rewritten module to the code of the module that was parsed.
// Offsets count from the beginning of the content of the code section, in both modules.
// A nil *Offsets knows no code. It is read-only.
type Offsets struct {
	functions []offsetsOf // those that the parsed module defines
	end       uint32      // of them; added functions follow
}

// offsetsOf has the spans of one function in order.
type offsetsOf struct {
	start uint32 // of the new body
	spans []span32
}

// span32 says where code comes from, up to the next span. at counts from the new body's start.
type span32 struct {
	at, from uint32
	// inserted: all of it belongs to the instruction at from. Otherwise it is a copy of
	// what begins there.
	inserted bool
}

// Original returns where the instruction at an offset comes from. Code that was inserted
// belongs to the instruction that it was inserted for: a loop, a function's first one, a
// bulk operation. ok is false for functions that were added, and outside of all functions.
func (o *Offsets) Original(offset uint32) (original uint32, ok bool) {
	if o == nil || offset >= o.end {
		return 0, false
	}
	i := sort.Search(len(o.functions), func(i int) bool { return o.functions[i].start > offset }) - 1
	if i < 0 {
		return 0, false
	}
	f := o.functions[i]
	at := offset - f.start
	j := sort.Search(len(f.spans), func(j int) bool { return f.spans[j].at > at }) - 1
	switch {
	case j < 0:
		return 0, false
	case f.spans[j].inserted:
		return f.spans[j].from, true
	}
	return f.spans[j].from + (at - f.spans[j].at), true
}

// Functions is how many functions the map is of. Those that were added follow them.
func (o *Offsets) Functions() int {
	if o == nil {
		return 0
	}
	return len(o.functions)
}

// begin begins the next function.
func (o *Offsets) begin() {
	if o != nil {
		o.functions = append(o.functions, offsetsOf{})
	}
}

// finish notes where the body of the function that was begun is in the new code section.
func (o *Offsets) finish(start, end int) {
	if o != nil {
		o.functions[len(o.functions)-1].start = uint32(start)
		o.end = uint32(end)
	}
}

// add adds a span to the last function. What continues the span before it is not added.
func (o *Offsets) add(at, from int, inserted bool) {
	if o == nil {
		return
	}
	f := &o.functions[len(o.functions)-1]
	next := span32{uint32(at), uint32(from), inserted}
	if n := len(f.spans); n > 0 {
		last := f.spans[n-1]
		if last.inserted == inserted && (inserted && last.from == next.from || !inserted && next.at-last.at == next.from-last.from) {
			return
		}
		if last.at == next.at { // nothing was written
			f.spans = f.spans[:n-1]
		}
	}
	f.spans = append(f.spans, next)
}

// copyCode appends the code from one position of the file to another as it is. What is
// appended to it belongs to the instruction at a position.
func (w *rewriter) copyCode(b []byte, from, to, instruction int) []byte {
	base := w.m.sections[sectionCode].start
	if from < to {
		w.offsets.add(len(b), from-base, false)
		b = append(b, w.m.bytes[from:to]...)
	}
	w.offsets.add(len(b), instruction-base, true)
	return b
}

// sum is a hash of the map.
func (o *Offsets) sum() [sha256.Size]byte {
	h := sha256.New()
	var b []byte
	for _, f := range o.functions {
		b = binary.LittleEndian.AppendUint32(b[:0], uint32(len(f.spans)))
		for _, s := range f.spans {
			from := uint64(s.from) << 1
			if s.inserted {
				from |= 1
			}
			b = binary.LittleEndian.AppendUint64(binary.LittleEndian.AppendUint32(b, s.at), from)
		}
		h.Write(b)
	}
	return [sha256.Size]byte(h.Sum(nil))
}

// debugSections appends the least debug information with which wazero keeps the offsets of
// instructions: a unit without entries. The hash makes modules differ that have equal code
// from different places.
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
