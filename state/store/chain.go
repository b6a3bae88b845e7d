package store

import (
	"context"
	"fmt"
)

// Position returns the newest entry that can be read: its number, its revision in the log of the
// cluster, 0 if the store is standalone, and the chain hash of all entries up to it. Stores that share a log
// have the same chain at the same number, or have diverged.
func (s *Store) Position() (seq Seq, revision uint64, chain [32]byte) {
	a := &s.applied
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.get(), a.revision.Load(), a.chain
}

// ChainAt returns the chain hash of all entries up to seq. It is known while the record of that entry
// is kept: at least for as many of the newest entries as the window has (see commitlog.Window).
func (s *Store) ChainAt(ctx context.Context, seq Seq) (chain [32]byte, known bool, err error) {
	if seq == 0 {
		return chain, true, nil
	}
	err = s.View(ctx, func(tx *Tx) (err error) {
		if newest, err := tx.Snapshot(); err != nil || seq > newest {
			return err
		}
		chain, known, err = tx.chainAt(seq)
		return err
	})
	return chain, known, err
}

// chainAt is ChainAt for an entry up to the snapshot.
func (t *Tx) chainAt(seq Seq) (chain [32]byte, known bool, err error) {
	r := t.reading()
	defer r.done(&err)
	record, known, err := t.store.content.recordAt(seq)
	return record.chain, known, err
}

// StopDiverged stops the store because its content differs from that of another one of its cluster,
// which detail says more about. No more entries are applied, except one that is being applied now, and
// commits fail. Reads still work, and the files are kept. Health().Reason matches ErrDiverged.
func (s *Store) StopDiverged(detail string) {
	err := fmt.Errorf("%w: %s", ErrDiverged, detail)
	s.log.Error("store diverged", "detail", detail)
	s.failure.Store(&err)
}
