package store

import (
	"math"

	"github.com/dgraph-io/badger/v4"
)

// Pieces returns how many pieces of values can be read now.
func (s *Store) Pieces() int {
	n := 0
	for _, k := range loadCut(s.db, s.appliedSeq()) {
		n += k
	}
	return n
}

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
