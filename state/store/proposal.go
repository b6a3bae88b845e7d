package store

import (
	"sync/atomic"

	"runner.example/state/store/commitlog"
	"runner.example/state/store/space"
)

// proposal is a proposal of a transaction that waits for it. After propose, the sequencer owns
// it.
type proposal struct {
	commitlog.Proposal
	bytes int // of keys and values written
	try   int // from 1; in an entry higher ones come first

	unpin func() // ends the pins of the blobs that it names; nil without any. It may be called again

	stage atomic.Int32 // proposalWaiting, …
	done  chan struct{}
	// Set before done is closed.
	seq Seq
	err error // if not nil, the verdict has no meaning
}

// The stages of a proposal. It leaves waiting once: taken by the sequencer, or withdrawn by its
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

// cost returns what a proposal adds to the size of an entry, at most.
func (p *proposal) cost() int {
	n := p.bytes + 16*(1+len(p.Reads)+len(p.Spans)+len(p.Writes))
	for _, k := range p.Reads {
		n += len(k)
	}
	for _, r := range p.Spans {
		n += len(r.Lo) + len(r.Hi)
	}
	return n
}

// outcome returns the outcome of a decided proposal.
func (p *proposal) outcome() commitlog.Outcome { return p.Verdict.Outcome }

// batch is an entry of this store, with the transactions that wait for it.
type batch struct {
	entry     commitlog.Entry
	proposals []*proposal   // those of the entry
	decided   chan struct{} // closed by finish; nil if append delivers the entry
}

// finish tells the transactions that the entry was decided as seq, or that it failed.
func (b *batch) finish(seq Seq, err error) {
	for _, p := range b.proposals {
		p.seq, p.err = seq, err
		close(p.done)
		if p.unpin != nil {
			p.unpin()
		}
	}
	if b.decided != nil {
		close(b.decided)
	}
}

// diskUse returns how much of Badger's files e takes; split is as for stage.
func diskUse(e *commitlog.Entry, split map[string]int) space.Use {
	keys, bytes := 3, 512 // the record of the log and the end of the transaction
	for p := range e.Committed {
		for i := range p.Writes {
			w := &p.Writes[i]
			k := stagedKeys(w, split)
			keys += k
			bytes += len(w.Value) + k*(len(w.Key)+8)
		}
	}
	return space.UseOf(keys, int64(bytes))
}
