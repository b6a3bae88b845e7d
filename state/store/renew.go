package store

import (
	"context"

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
// This is looked up in the content, which keeps what was written after an open snapshot, including
// deletions. Deciding the renewed proposal still depends on the log alone. The goroutine of
// the transaction does all of it.
func (t *Tx) renew(p *proposal) (*proposal, error) {
	renewed := &proposal{Proposal: p.Proposal, bytes: p.bytes, try: int(t.attempt) + maxTries}
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
	newest := t.store.content.at(last)
	defer newest.discard()
	for i, key := range p.Reads {
		if i%ctxEvery == 0 && t.ctx.Err() != nil {
			return nil, unavailable(context.Cause(t.ctx))
		}
		t.key = dataKey(t.key[:0], key)
		if newest.wroteKey(t.key, p.Snapshot) {
			return []byte(key), nil
		}
	}
	for i, r := range p.Spans {
		if i%ctxEvery == 0 && t.ctx.Err() != nil {
			return nil, unavailable(context.Cause(t.ctx))
		}
		from, to := dataKeys(r)
		if key := newest.wroteIn(from, to, p.Snapshot); key != nil {
			return key, nil
		}
	}
	return nil, nil
}
