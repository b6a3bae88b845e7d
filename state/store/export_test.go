package store

import (
	"context"
	"encoding/hex"
	"fmt"
	"iter"
	"math"

	"github.com/dgraph-io/badger/v4"
	"github.com/dgraph-io/badger/v4/fb"

	"runner.example/internal/level"
	"runner.example/state/store/commitlog"
	"runner.example/state/store/datadir"
	"runner.example/state/store/files"
)

// WaitRestored waits until the window is complete, or cannot be: then Open reads no more tables.
func (s *Store) WaitRestored() { <-s.sequencer.restored }

// Pieces returns how many pieces of values can be read now.
func (s *Store) Pieces() int {
	if s.db == nil {
		return 0
	}
	n := 0
	for _, k := range loadSplit(s.db, s.appliedSeq()) {
		n += k
	}
	return n
}

// CheckBlobs reads all blobs, as the store does in the background.
func (s *Store) CheckBlobs() {
	c := blobScrubber{store: s, ctx: context.Background()}
	defer c.close()
	c.scrub(math.MaxInt64)
}

// Readers returns at how many commits there are readers.
func (s *Store) Readers() int {
	s.snapshots.mu.Lock()
	defer s.snapshots.mu.Unlock()
	return len(s.snapshots.open)
}

// KeysInMemory returns how many keys and marks of deletions the newest tree has.
func (s *Store) KeysInMemory() int { return s.content.(*memory).treeAt(s.appliedSeq()).Len() }

// Versions returns how many versions of user keys Badger holds after it has
// compacted all that is in tables.
func (s *Store) Versions() (int, error) {
	if err := s.db.Flatten(2); err != nil {
		return 0, err
	}
	txn := s.db.NewTransactionAt(math.MaxUint64, false)
	defer txn.Discard()
	it := txn.NewIterator(badger.IteratorOptions{AllVersions: true, Prefix: []byte{spaceData}})
	defer it.Close()
	n := 0
	for it.Rewind(); it.Valid(); it.Next() {
		n++
	}
	return n, nil
}

// CloseBadger closes the database under the store, so that commits fail.
func (s *Store) CloseBadger() error { return s.db.Close() }

// ForgeEntry replaces the log's record of entry seq with another one.
func (s *Store) ForgeEntry(seq Seq) error {
	r := logRecord{Record: commitlog.Record{Seq: seq}, digest: commitlog.Digest{1}, chain: commitlog.Digest{2}}
	return s.commitAt(seq, logKey, r.encode())
}

// WriteNewerRecord replaces the log's record of entry seq with one of a later format.
func (s *Store) WriteNewerRecord(seq Seq) error {
	return s.commitAt(seq, logKey, []byte{recordFormat + 1, 1, 2, 3})
}

// WriteVersion writes a key without the log.
func (s *Store) WriteVersion(seq Seq) error { return s.commitAt(seq, dataKey(nil, "x"), nil) }

// SkipTo writes the record of entry seq, which is not the next.
func (s *Store) SkipTo(seq Seq) error {
	r := logRecord{Record: commitlog.Record{Seq: seq}, floor: s.machine.window.Floor(), digest: commitlog.Digest{1}}
	r.chain = commitlog.Link(s.machine.chain, r.digest)
	return s.commitAt(seq, logKey, r.encode())
}

func (s *Store) commitAt(seq Seq, key, value []byte) error {
	txn := s.db.NewTransactionAt(uint64(seq), true)
	defer txn.Discard()
	if err := txn.Set(key, value); err != nil {
		return err
	}
	return txn.CommitAt(uint64(seq), nil)
}

// Chain returns the hash of all entries of the log, in hexadecimal digits.
func (s *Store) Chain() string { return hex.EncodeToString(s.machine.chain[:]) }

// LeaveMark makes later commits write no mark, as versions without marks do.
func (s *Store) LeaveMark() { s.BetweenEntries(func() { s.machine.mark = &datadir.Mark{} }) }

// BetweenEntries runs fn on the goroutine that uses the machine.
func (s *Store) BetweenEntries(fn func()) {
	if err := s.sequencer.between(context.Background(), fn); err != nil {
		panic(err)
	}
}

// MarkNext writes the mark of a next entry that never comes.
func (s *Store) MarkNext() (err error) {
	s.BetweenEntries(func() {
		m := s.machine
		err = m.mark.Advance(datadir.Position{Seq: uint64(m.applied) + 1, Chain: commitlog.Digest{1}})
	})
	return err
}

// InChecksum reports whether a byte of a table belongs to the checksum of a block, or to
// the length of one.
func InChecksum(path string, at int64) (bool, error) {
	t, err := files.OpenTable(path)
	if err != nil {
		return false, err
	}
	defer t.Close()
	for i := range t.Index.OffsetsLength() {
		var block fb.BlockOffset
		t.Index.Offsets(&block, i)
		if end := int64(block.Offset() + block.Len()); at >= end-10 && at < end {
			return true, nil
		}
	}
	return false, nil
}

// UseLargeMemtable makes memtables as large as those of earlier versions.
func (s *Store) UseLargeMemtable() {
	s.BetweenEntries(func() { setMemTableBytes(s.db, files.MemTableBytes) })
}

// OpenWindow is Open with another size of the window.
func OpenWindow(o Options, entries int) (*Store, error) {
	return open(o, setup{windowEntries: entries})
}

// OpenKnowing is Open for a program that knows these levels.
func OpenKnowing(o Options, levels level.Range) (*Store, error) {
	return open(o, setup{windowEntries: commitlog.MaxWindowEntries, levels: levels})
}

// SharedForms returns the record of an entry, and the limits that verdicts depend on.
func SharedForms() (record []byte, limits string) {
	r := logRecord{
		Record: commitlog.Record{Seq: 7, ID: commitlog.ID{Proposer: 1 << 40, Batch: 3}, Bytes: 99}, floor: 5, revision: 12,
		digest: commitlog.Digest{1}, chain: commitlog.Digest{2},
	}
	split := map[string]int{"k": 3}
	return r.encode(), fmt.Sprint(commitlog.MaxWindowEntries, maxCommitKeys, maxCommitBytes, pieceBytes,
		stagedKeys(&commitlog.Write{Key: "k"}, split), stagedKeys(&commitlog.Write{Key: "l", Value: make([]byte, 2*pieceBytes+1)}, split))
}

// LevelForm returns the record of a level.
func LevelForm(level int, version string) []byte { return levelRecord{level, version}.encode() }

// ScanWithin is ScanRange of the keys that Scan yields.
func (t *Tx) ScanWithin(within, prefix, from []byte, reverse bool) iter.Seq2[Item, error] {
	span := commitlog.PrefixSpan(prefix, from, reverse)
	return t.ScanRange(within, span.Lo, span.Hi, reverse)
}
