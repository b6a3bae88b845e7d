package store

import (
	"crypto/sha256"
	"encoding/binary"
	"sync/atomic"

	"runner.example/store/space"
)

// proposal is what a transaction asks the log to commit. After propose, the log owns it.
type proposal struct {
	snap   Seq // the snapshot that was read; no meaning without reads
	reads  []string
	spans  []span
	writes []write // ascending by key
	bytes  int     // of keys and values written
	try    int     // from 1; in an entry higher ones come first

	stage atomic.Int32 // proposalWaiting, …
	done  chan struct{}
	// Set before done is closed.
	seq     Seq
	verdict verdict
	err     error // if not nil, verdict has no meaning
}

// The stages of a proposal. It leaves waiting once: taken by the log, or withdrawn by its
// transaction.
const (
	proposalWaiting int32 = iota
	proposalTaken
	proposalWithdrawn
)

func (p *proposal) take() bool { return p.stage.CompareAndSwap(proposalWaiting, proposalTaken) }

func (p *proposal) withdraw() bool {
	return p.stage.CompareAndSwap(proposalWaiting, proposalWithdrawn)
}

// cost returns what a proposal adds to the size of an entry.
func (p *proposal) cost() int { return p.bytes + 16*len(p.writes) }

// verdict is the decision about a proposal.
type verdict struct {
	outcome outcome
	clash   string // with conflict: a key written after the snapshot
}

type outcome int

const (
	committed outcome = iota
	conflict
	tooOld // its snapshot is from before the window
	tooLarge
)

// entry is one element of the log: proposals that are decided in this order and committed
// as one version.
type entry struct{ proposals []*proposal }

// entryFormat is the first byte of an encoded entry.
const entryFormat = 1

// encode appends the canonical form of e to b:
//
//	format | n | n × proposal
//	proposal = snap | reads | keys | spans | (lo, hi+1 or 0) | writes | (key, 0 or value+1)
//
// Numbers are varints, and byte strings begin with their length. Where absent differs from
// empty, absent is 0 and a length is one more.
func (e *entry) encode(b []byte) []byte {
	b = append(b, entryFormat)
	b = binary.AppendUvarint(b, uint64(len(e.proposals)))
	for _, p := range e.proposals {
		b = binary.AppendUvarint(b, uint64(p.snap))
		b = binary.AppendUvarint(b, uint64(len(p.reads)))
		for _, k := range p.reads {
			b = appendBytes(b, k, 0)
		}
		b = binary.AppendUvarint(b, uint64(len(p.spans)))
		for _, r := range p.spans {
			b = appendBytes(b, r.lo, 0)
			b = appendOptional(b, r.hi, r.hi != nil)
		}
		b = binary.AppendUvarint(b, uint64(len(p.writes)))
		for i := range p.writes {
			w := &p.writes[i]
			b = appendBytes(b, w.key, 0)
			b = appendOptional(b, w.value, !w.deleted)
		}
	}
	return b
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

// digest is the SHA-256 of an encoded entry or of a chain of them.
type digest = [sha256.Size]byte

// link returns the hash of a chain with hash prev after an entry with that digest is added.
func link(prev, entry digest) digest {
	var both [2 * sha256.Size]byte
	copy(both[:], prev[:])
	copy(both[sha256.Size:], entry[:])
	return sha256.Sum256(both[:])
}

// diskUse returns how much of Badger's files e takes; split is as for stage.
func (e *entry) diskUse(split map[string]int) space.Use {
	keys, bytes := 3, 512 // the record of the log and the end of the transaction
	for _, p := range e.proposals {
		if p.verdict.outcome != committed {
			continue
		}
		for i := range p.writes {
			w := &p.writes[i]
			k := stagedKeys(w, split)
			keys += k
			bytes += len(w.value) + k*(len(w.key)+8)
		}
	}
	return space.UseOf(keys, int64(bytes))
}
