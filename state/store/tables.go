package store

import (
	"bytes"
	"errors"

	"github.com/dgraph-io/badger/v4"

	"runner.example/state/store/commitlog"
)

// tables is the content of a store on disk, in Badger.
type tables struct{ db *badger.DB }

func (c tables) at(seq Seq) snapshot {
	return tablesSnapshot{c.db.NewTransactionAt(uint64(seq), false)}
}

func (c tables) recordAt(seq Seq) (r logRecord, known bool, err error) {
	txn := c.db.NewTransactionAt(uint64(seq), false)
	defer txn.Discard()
	item, err := txn.Get(logKey)
	if errors.Is(err, badger.ErrKeyNotFound) || err == nil && Seq(item.Version()) != seq {
		return r, false, nil
	}
	if err == nil {
		err = item.Value(r.decode)
	}
	return r, err == nil, err
}

func (c tables) commit(e *commitlog.Entry, r *logRecord, split map[string]int) error {
	txn := c.db.NewTransactionAt(uint64(r.Seq)-1, true)
	defer txn.Discard()
	for p := range e.Committed {
		for i := range p.Writes {
			if err := stage(txn, &p.Writes[i], split); err != nil {
				return err
			}
		}
	}
	if err := txn.SetEntry(badger.NewEntry(logKey, r.encode()).WithMeta(r.meta())); err != nil {
		return err
	}
	return txn.CommitAt(uint64(r.Seq), nil)
}

func (c tables) discard(floor Seq, readers *snapshots) {
	c.db.SetDiscardTs(uint64(readers.oldest(floor)))
}

// tablesSnapshot is one pointer, so that a snapshot in Badger needs no memory of its own.
type tablesSnapshot struct{ txn *badger.Txn }

func (s tablesSnapshot) get(key []byte) ([]byte, error) {
	item, err := s.txn.Get(key)
	if errors.Is(err, badger.ErrKeyNotFound) {
		return nil, ErrNotFound
	}
	if err != nil {
		return nil, err
	}
	return readValue(s.txn, item) // Badger has copied the bytes into the item, which is used only here
}

func (s tablesSnapshot) newIterator(prefix []byte, reverse bool) iterator {
	return tablesIterator{s.txn.NewIterator(badger.IteratorOptions{Prefix: prefix, Reverse: reverse})}
}

func (s tablesSnapshot) read(it iterator) ([]byte, Seq, error) {
	item := it.(tablesIterator).Item()
	value, err := readValue(s.txn, item)
	return value, Seq(item.Version()), err
}

// Badger keeps every version after an open snapshot, including deletions.

func (s tablesSnapshot) wroteKey(key []byte, after Seq) bool {
	it := s.txn.NewKeyIterator(key, badger.IteratorOptions{SinceTs: uint64(after), AllVersions: true})
	defer it.Close()
	it.Seek(key)
	return it.Valid()
}

func (s tablesSnapshot) wroteIn(from, to []byte, after Seq) []byte {
	it := s.txn.NewIterator(badger.IteratorOptions{
		Prefix: commonPrefix(from, to), SinceTs: uint64(after), AllVersions: true,
	})
	defer it.Close()
	it.Seek(from)
	if !it.Valid() || bytes.Compare(it.Item().Key(), to) >= 0 {
		return nil
	}
	return it.Item().KeyCopy(nil)[1:]
}

func (s tablesSnapshot) discard() { s.txn.Discard() }

type tablesIterator struct{ *badger.Iterator }

func (it tablesIterator) UserKey() []byte {
	if !it.Valid() {
		return nil
	}
	key := it.Item().Key()
	if key[0] != spaceData {
		return nil
	}
	return key[1:]
}
