package commitlog

import (
	"encoding/binary"

	"runner.example/internal/level"
)

// format is how entries are encoded from a level on.
type format struct {
	id    byte // the first byte of an entry
	since int  // the first level that writes it
	// seal completes an encoded entry, and open undoes that: it returns what Decode reads after the
	// first byte, and false if the bytes are not an entry. Nil: neither does anything.
	seal func([]byte) []byte
	open func([]byte) ([]byte, bool)
}

// formats are all formats, those of later levels last. An entry of each can be read.
var formats = append([]format{{id: 2, since: level.First}}, next...)

// formatOf returns the format that a level writes.
func formatOf(l int) (f format) {
	for _, other := range formats {
		if other.since <= max(l, level.First) {
			f = other
		}
	}
	return f
}

// Encode appends the canonical form of e to b, in the format of its level:
//
//	format | proposer | batch | base | n | n × proposal
//	proposal = snapshot | reads | keys | spans | (lo, hi+1 or 0) | writes | (key, 0 or value+1)
//
// Numbers are varints, and byte strings begin with their length. Where absent differs from
// empty, absent is 0 and a length is one more. Verdicts are not encoded.
func (e *Entry) Encode(b []byte) []byte {
	f, begin := formatOf(e.Level), len(b)
	b = append(b, f.id)
	b = binary.AppendUvarint(b, e.Proposer)
	b = binary.AppendUvarint(b, e.Batch)
	b = binary.AppendUvarint(b, uint64(e.Base))
	b = binary.AppendUvarint(b, uint64(len(e.Proposals)))
	for _, p := range e.Proposals {
		b = binary.AppendUvarint(b, uint64(p.Snapshot))
		b = binary.AppendUvarint(b, uint64(len(p.Reads)))
		for _, k := range p.Reads {
			b = appendBytes(b, k, 0)
		}
		b = binary.AppendUvarint(b, uint64(len(p.Spans)))
		for _, r := range p.Spans {
			b = appendBytes(b, r.Lo, 0)
			b = appendOptional(b, r.Hi, r.Hi != nil)
		}
		b = binary.AppendUvarint(b, uint64(len(p.Writes)))
		for i := range p.Writes {
			w := &p.Writes[i]
			b = appendBytes(b, w.Key, 0)
			b = appendOptional(b, w.Value, !w.Deleted)
		}
	}
	if f.seal != nil {
		b = append(b[:begin], f.seal(b[begin:])...)
	}
	return b
}
