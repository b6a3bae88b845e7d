package store

import (
	"bytes"
	"context"

	"github.com/dgraph-io/badger/v4"

	"runner.example/state/store/commitlog"
)

// maxRenewals is how often one run of a transaction gets a newer snapshot before it counts
// as a conflict. One is enough unless other transactions fill the window while this one's
// reads are looked up.
const maxRenewals = 5

// renew returns proposal p, whose snapshot or entry is older than the window, with the newest
// commit as its snapshot, to be decided before all queued ones. That is correct if no key and no
// range that p read was written in between. If one was, the verdict of the returned
// proposal is a conflict.
//
// This is looked up in Badger, which keeps every version after an open snapshot, including
// deletions. Deciding the renewed proposal still depends on the log alone. The goroutine of
// the transaction does all of it.
func (t *Tx) renew(p *proposal) (*proposal, error) {
	renewed := &proposal{Proposal: p.Proposal, bytes: p.bytes, try: t.attempt + maxTries}
	renewed.Verdict = commitlog.Verdict{}
	if !t.holds { // it read nothing
		return renewed, nil
	}
	fresh, ok := t.store.snapshots.acquire(t.store.appliedSeq)
	if !ok {
		return nil, errClosed
	}
	old := t.snap
	clash, err := t.writtenUpTo(p, fresh)
	t.snap = fresh
	t.store.snapshots.release(old)
	if err != nil {
		return nil, err
	}
	renewed.Snapshot = fresh
	if clash != nil {
		renewed.Verdict = commitlog.Verdict{Outcome: commitlog.Conflict, Clash: string(clash)}
	}
	return renewed, nil
}

// writtenUpTo returns a key that p read and that a commit after its snapshot, up to and
// including last, wrote; nil if there is none.
func (t *Tx) writtenUpTo(p *proposal, last Seq) (clash []byte, err error) {
	r := t.reading()
	defer r.done(&err)
	txn := t.store.db.NewTransactionAt(uint64(last), false)
	defer txn.Discard()
	o := badger.IteratorOptions{SinceTs: uint64(p.Snapshot), AllVersions: true}
	for i, key := range p.Reads {
		if i%ctxEvery == 0 && t.ctx.Err() != nil {
			return nil, unavailable(context.Cause(t.ctx))
		}
		t.key = dataKey(t.key[:0], key)
		if wroteKey(txn, t.key, o) {
			return []byte(key), nil
		}
	}
	for i, r := range p.Spans {
		if i%ctxEvery == 0 && t.ctx.Err() != nil {
			return nil, unavailable(context.Cause(t.ctx))
		}
		if key := wroteIn(txn, r, o); key != nil {
			return key, nil
		}
	}
	return nil, nil
}

// wroteKey reports whether the key has a version that o selects.
func wroteKey(txn *badger.Txn, key []byte, o badger.IteratorOptions) bool {
	it := txn.NewKeyIterator(key, o)
	defer it.Close()
	it.Seek(key)
	return it.Valid()
}

// wroteIn returns the first key in r with a version that o selects, nil if there is none.
func wroteIn(txn *badger.Txn, r commitlog.Span, o badger.IteratorOptions) []byte {
	from, to := dataKeys(r)
	o.Prefix = commonPrefix(from, to)
	it := txn.NewIterator(o)
	defer it.Close()
	it.Seek(from)
	if !it.Valid() || bytes.Compare(it.Item().Key(), to) >= 0 {
		return nil
	}
	return it.Item().KeyCopy(nil)[1:]
}
