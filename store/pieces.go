package store

import (
	"encoding/binary"
	"fmt"

	"github.com/dgraph-io/badger/v4"
)

// Badger moves values of 1 MiB and more to its value log, which needs garbage
// collection of its own, does not exist in memory, and answers an unreadable
// value with an empty one. So longer values are cut up: the value stored under
// the key is then the number of pieces, and the key's user byte says so.
const (
	pieceBytes = 512 << 10

	metaWhole  = 0 // the value itself
	metaPieces = 1 // the number of pieces, 2 bytes
)

// pieces returns into how many pieces a value is cut; 0 if it stays whole.
func pieces(value []byte) int {
	if len(value) <= pieceBytes {
		return 0
	}
	return (len(value) + pieceBytes - 1) / pieceBytes
}

// readValue returns the value of item at the snapshot of txn: the bytes of the
// item, valid as long as it is, or a new slice if they were in pieces.
func readValue(txn *badger.Txn, item *badger.Item) ([]byte, error) {
	var value []byte
	err := item.Value(func(v []byte) error { value = v; return nil })
	if err != nil || item.UserMeta() == metaWhole {
		return value, err
	}
	key, n := item.Key()[1:], int(binary.BigEndian.Uint16(value))
	value = make([]byte, 0, n*pieceBytes)
	for i := range n {
		piece, err := txn.Get(pieceKey(nil, key, i))
		if err != nil {
			return nil, fmt.Errorf("piece %d of %d of a value: %w", i, n, err)
		}
		err = piece.Value(func(v []byte) error { value = append(value, v...); return nil })
		if err != nil {
			return nil, err
		}
	}
	return value, nil
}

// stage puts w into the Badger transaction and drops the pieces of the value
// it replaces; cut tells which keys have values in pieces, and how many.
func stage(txn *badger.Txn, w *write, cut map[string]int) error {
	n, was := pieces(w.value), cut[w.key]
	for i := n; i < was; i++ {
		if err := txn.Delete(pieceKey(nil, w.key, i)); err != nil {
			return err
		}
	}
	delete(cut, w.key)
	key := dataKey(make([]byte, 0, 1+len(w.key)), w.key)
	switch {
	case w.deleted:
		return txn.Delete(key)
	case n == 0:
		return txn.Set(key, w.value)
	}
	cut[w.key] = n
	for i := range n {
		piece := w.value[i*pieceBytes : min((i+1)*pieceBytes, len(w.value))]
		if err := txn.Set(pieceKey(nil, w.key, i), piece); err != nil {
			return err
		}
	}
	return txn.SetEntry(badger.NewEntry(key, binary.BigEndian.AppendUint16(nil, uint16(n))).WithMeta(metaPieces))
}

// stagedKeys is how many keys of Badger stage touches, at most.
func stagedKeys(w *write, cut map[string]int) int {
	return 1 + max(pieces(w.value), cut[w.key])
}

// loadCut finds the keys whose values are in pieces.
func loadCut(db *badger.DB, at Seq) map[string]int {
	cut := make(map[string]int)
	txn := db.NewTransactionAt(uint64(at), false)
	defer txn.Discard()
	it := txn.NewIterator(badger.IteratorOptions{Prefix: []byte{spacePieces}})
	defer it.Close()
	for it.Rewind(); it.Valid(); it.Next() {
		k := it.Item().Key()
		cut[string(k[3:len(k)-2])]++
	}
	return cut
}
