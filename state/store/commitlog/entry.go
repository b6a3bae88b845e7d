package commitlog

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"slices"
	"sort"
)

// Seq is the number of an entry of the log, from 1. Each entry takes one, also one that
// commits nothing.
type Seq uint64

// ID identifies an entry. A proposer has a random number, and it numbers its entries from 1.
// It adds an entry to the log again until it sees it there, and makes the next one only then.
type ID struct{ Proposer, Batch uint64 }

// Entry is one element of the log: proposals that are decided in this order and committed
// as one version.
type Entry struct {
	ID
	Level     int // in whose format the entry is encoded; 0 is level.First
	Base      Seq // the newest entry that the proposer had applied
	Proposals []*Proposal
}

// Proposal is what a transaction asks to commit.
type Proposal struct {
	Snapshot Seq // what was read; no meaning without reads
	Reads    []string
	Spans    []Span
	Writes   []Write // ascending by key, one for each key

	Verdict Verdict // when decided
}

// Write is one change of one key. Key and value belong to the write.
type Write struct {
	Key     string
	Value   []byte
	Deleted bool
}

// Span is a range of keys that was read: from Lo up to and without Hi; a nil
// Hi is the end of all keys.
type Span struct{ Lo, Hi []byte }

// PrefixSpan returns the span of a scan of the keys that begin with prefix, in ascending order, or
// descending if reverse. It starts at from, inclusive; an empty from starts at the first key. The span
// has copies of both.
func PrefixSpan(prefix, from []byte, reverse bool) Span {
	s := Span{slices.Clone(prefix), successor(prefix)}
	switch {
	case len(from) == 0:
	case !reverse && bytes.Compare(from, s.Lo) > 0:
		s.Lo = slices.Clone(from)
	case reverse && (s.Hi == nil || bytes.Compare(from, s.Hi) < 0):
		s.Hi = append(slices.Clone(from), 0)
	}
	return s
}

// successor returns the least key above all keys with the prefix; nil if there is none.
func successor(prefix []byte) []byte {
	for i := len(prefix) - 1; i >= 0; i-- {
		if prefix[i] != 0xff {
			s := slices.Clone(prefix[:i+1])
			s[i]++
			return s
		}
	}
	return nil
}

// below reports whether key is before the end of the span.
func (r Span) below(key string) bool { return r.Hi == nil || key < string(r.Hi) }

// Has reports whether the span has key.
func (r Span) Has(key string) bool { return key >= string(r.Lo) && r.below(key) }

// CompareEnds orders the ends of spans; nil is the greatest.
func CompareEnds(a, b []byte) int {
	switch {
	case a == nil && b == nil:
		return 0
	case a == nil:
		return 1
	case b == nil:
		return -1
	}
	return bytes.Compare(a, b)
}

// at returns the index of p's first write at or after key.
func (p *Proposal) at(key string) int {
	return sort.Search(len(p.Writes), func(i int) bool { return p.Writes[i].Key >= key })
}

// Verdict is the decision about a proposal.
type Verdict struct {
	Outcome Outcome
	Clash   string // with Conflict: a key written after the snapshot
}

// Outcome is the kind of a verdict. The numbers are part of the hash of the log.
type Outcome byte

// The outcomes.
const (
	Committed Outcome = iota
	Conflict
	TooOld    // the snapshot, or the base of the entry, is from before the window
	TooLarge  // it does not fit into one commit together with those before it
	Duplicate // the log had the entry already
)

// Committed returns the proposals that commit, once they are decided.
func (e *Entry) Committed(yield func(*Proposal) bool) {
	for _, p := range e.Proposals {
		if p.Verdict.Outcome == Committed && !yield(p) {
			return
		}
	}
}

// Commits reports whether a proposal commits, once they are decided.
func (e *Entry) Commits() bool {
	for range e.Committed {
		return true
	}
	return false
}

// setAll sets the verdict of every proposal.
func (e *Entry) setAll(o Outcome) {
	for _, p := range e.Proposals {
		p.Verdict = Verdict{Outcome: o}
	}
}

// committedKeys returns the keys that e writes, ascending and unique.
func (e *Entry) committedKeys() []string {
	var keys []string
	for p := range e.Committed {
		for i := range p.Writes {
			keys = append(keys, p.Writes[i].Key)
		}
	}
	slices.Sort(keys)
	return slices.Compact(keys)
}

func appendBytes[T string | []byte](b []byte, s T, more uint64) []byte {
	b = binary.AppendUvarint(b, uint64(len(s))+more)
	return append(b, s...)
}

func appendOptional(b, s []byte, present bool) []byte {
	if !present {
		return binary.AppendUvarint(b, 0)
	}
	return appendBytes(b, s, 1)
}

// Digest is the SHA-256 of a decided entry or of a chain of them.
type Digest = [sha256.Size]byte

// Digest returns the hash of the entry and of its verdicts, each a byte. It uses buf, and
// returns it for the next call.
func (e *Entry) Digest(buf []byte) (Digest, []byte) {
	buf = e.Encode(buf[:0])
	for _, p := range e.Proposals {
		buf = append(buf, byte(p.Verdict.Outcome))
	}
	return sha256.Sum256(buf), buf
}

// Link returns the hash of a chain with hash prev after an entry with that digest is added.
func Link(prev, entry Digest) Digest {
	var both [2 * sha256.Size]byte
	copy(both[:], prev[:])
	copy(both[sha256.Size:], entry[:])
	return sha256.Sum256(both[:])
}
