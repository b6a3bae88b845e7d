package store

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/dgraph-io/badger/v4"

	"runner.example/state/store/commitlog"
	"runner.example/state/store/datadir"
)

// machine turns entries of the log into the content of the store. It is for the goroutine that
// applies.
type machine struct {
	content  content
	mark     *datadir.Mark
	applied  Seq
	revision uint64 // of the newest entry, as the log counts
	chain    commitlog.Digest
	window   *commitlog.Window
	split    map[string]int // see stage
	buf      []byte         // for encoding entries
}

// newMachine continues after the entry with the record newest. Its window is not restored.
func newMachine(c content, mark *datadir.Mark, windowEntries int, newest logRecord, split map[string]int) *machine {
	return &machine{
		content:  c,
		mark:     mark,
		applied:  newest.Seq,
		revision: newest.revision,
		chain:    newest.chain,
		window:   commitlog.NewWindow(windowEntries, newest.windowFloor()),
		split:    split,
	}
}

// restoreWindow restores the window, from the records of the log, the newest first, and the
// versions of keys above its floor. Badger keeps at least the newest version of each key, also a
// deletion, which is all that decides. It may have to read all tables.
func (s *Store) restoreWindow(ctx context.Context, records []logRecord) (err error) {
	window := s.machine.window
	floor := window.Floor()
	if end := slices.IndexFunc(records, func(r logRecord) bool { return r.Seq <= floor }); end >= 0 {
		records = records[:end]
	}
	if len(records) == 0 {
		return nil
	}
	txn := s.db.NewTransactionAt(uint64(records[0].Seq), false)
	defer txn.Discard()
	tx := &Tx{store: s, ctx: ctx}
	reading := tx.reading()
	defer reading.done(&err)
	it := txn.NewIterator(badger.IteratorOptions{Prefix: []byte{spaceData}, AllVersions: true, SinceTs: uint64(floor)})
	defer it.Close()
	keys := make([][]string, len(records)) // of entry floor+1, and so on
	it.Rewind()
	for n := 1; it.Valid(); n++ {
		if n%ctxEvery == 0 && ctx.Err() != nil {
			return unavailable(context.Cause(ctx))
		}
		i := Seq(it.Item().Version()) - floor - 1
		keys[i] = append(keys[i], string(it.Item().Key()[1:]))
		it.Next()
	}
	for i, r := range slices.Backward(records) {
		window.Restore(r.Record, keys[len(records)-1-i])
	}
	return nil
}

// checkRecords checks that every entry down to the window's floor exists and follows from the one
// before, and that no data is newer. It returns the records of these entries, the newest first,
// and that of entry marked, zero if it was discarded or does not exist.
func checkRecords(db *badger.DB, marked Seq) (records []logRecord, at logRecord, err error) {
	txn := db.NewTransactionAt(math.MaxUint64, false)
	defer txn.Discard()
	it := txn.NewKeyIterator(logKey, badger.IteratorOptions{})
	defer it.Close()

	var newest, next logRecord // next is the entry after the current one
	for it.Rewind(); it.Valid(); it.Next() {
		var r logRecord
		version := Seq(it.Item().Version())
		if err := it.Item().Value(r.decode); err != nil {
			return nil, at, fmt.Errorf("entry %d: %w", version, err)
		}
		r.marked = it.Item().UserMeta() == metaMarked
		switch {
		case r.Seq != version:
			return nil, at, fmt.Errorf("entry %d says that it is entry %d", version, r.Seq)
		case newest.Seq == 0:
			newest = r
		case r.Seq <= newest.floor && r.Seq+1 != next.Seq:
			return records, at, nil // older entries may have been discarded
		case r.Seq+1 != next.Seq:
			return nil, at, fmt.Errorf("entry %d is missing", next.Seq-1)
		case commitlog.Link(r.chain, next.digest) != next.chain:
			return nil, at, fmt.Errorf("entry %d does not follow from entry %d", next.Seq, r.Seq)
		}
		if r.Seq == marked {
			at = r
		}
		if r.Seq > newest.floor {
			records = append(records, r)
		}
		next = r
	}
	if v := Seq(db.MaxVersion()); v != newest.Seq {
		return nil, at, fmt.Errorf("data of version %d without its entry; the newest entry is %d", v, newest.Seq)
	}
	if next.Seq > newest.floor+1 {
		return nil, at, fmt.Errorf("entry %d is missing", next.Seq-1)
	}
	if next.Seq == 1 && commitlog.Link(commitlog.Digest{}, next.digest) != next.chain {
		return nil, at, errors.New("entry 1 is not the first of its chain")
	}
	return records, at, nil
}

// decide sets the verdict of each proposal of e, the next entry. It changes only the verdicts.
func (m *machine) decide(e *commitlog.Entry) {
	keys, size := 0, 0
	m.window.Decide(e, func(p *commitlog.Proposal) bool {
		k, n := 0, 0
		for i := range p.Writes {
			w := &p.Writes[i]
			k += stagedKeys(w, m.split)
			n += len(w.Key) + len(w.Value)
		}
		n += 16 * k
		if keys+k > maxCommitKeys || size+n > maxCommitBytes {
			return false
		}
		keys, size = keys+k, size+n
		return true
	})
}

// commit makes the proposals of e, the next entry, durable that decide accepted. It returns the
// number of e. After an error the outcome is unknown, and the machine must not be used.
func (m *machine) commit(revision uint64, e *commitlog.Entry) (Seq, error) {
	seq := m.applied + 1
	var digest commitlog.Digest
	digest, m.buf = e.Digest(m.buf)
	if cap(m.buf) > 1<<20 {
		m.buf = nil
	}
	r := logRecord{
		Record: m.window.Add(seq, e), floor: m.window.Floor(), revision: revision, digest: digest,
		chain: commitlog.Link(m.chain, digest), marked: m.mark.Exists(),
	}
	if err := m.content.commit(e, &r, m.split); err != nil {
		return seq, err
	}
	if err := m.mark.Advance(r.position()); err != nil {
		return seq, err
	}
	m.applied, m.revision, m.chain = seq, revision, r.chain
	return seq, nil
}

// position returns the newest entry.
func (m *machine) position() (Seq, uint64, commitlog.Digest) { return m.applied, m.revision, m.chain }
