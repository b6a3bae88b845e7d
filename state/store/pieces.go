package store

import (
	"encoding/binary"
	"fmt"

	"github.com/dgraph-io/badger/v4"

	"runner.example/state/store/commitlog"
)

// Badger moves values of 1 MiB and more to its value log, which needs separate garbage
// collection, and returns an empty value for an unreadable one.
// So longer values are split: the value under the key is then the number of pieces, and
// the key's user byte says so.
const (
	pieceBytes = 512 << 10

	metaWhole  = 0 // the value itself
	metaPieces = 1 // the number of pieces, 2 bytes
)

// pieces returns into how many pieces a value is split; 0 if it is not.
func pieces(value []byte) int {
	if len(value) <= pieceBytes {
		return 0
	}
	return (len(value) + pieceBytes - 1) / pieceBytes
}

// readValue returns the value of item at the snapshot of txn: the bytes of the item, valid
// as long as it is, or a new slice if the value was in pieces.
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

// stage adds w to the Badger transaction and deletes the pieces of the value that it
// replaces; split has the number of pieces of each key with a value in pieces.
func stage(txn *badger.Txn, w *commitlog.Write, split map[string]int) error {
	n, was := pieces(w.Value), split[w.Key]
	for i := n; i < was; i++ {
		if err := txn.Delete(pieceKey(nil, w.Key, i)); err != nil {
			return err
		}
	}
	countPieces(w, split)
	key := dataKey(make([]byte, 0, 1+len(w.Key)), w.Key)
	switch {
	case w.Deleted:
		return txn.Delete(key)
	case n == 0:
		return txn.Set(key, w.Value)
	}
	for i := range n {
		piece := w.Value[i*pieceBytes : min((i+1)*pieceBytes, len(w.Value))]
		if err := txn.Set(pieceKey(nil, w.Key, i), piece); err != nil {
			return err
		}
	}
	return txn.SetEntry(badger.NewEntry(key, binary.BigEndian.AppendUint16(nil, uint16(n))).WithMeta(metaPieces))
}

// countPieces sets how many pieces stage makes of the value of w in split.
func countPieces(w *commitlog.Write, split map[string]int) {
	delete(split, w.Key)
	if n := pieces(w.Value); n > 0 {
		split[w.Key] = n
	}
}

// stagedKeys returns how many keys of Badger stage writes or deletes, at most.
func stagedKeys(w *commitlog.Write, split map[string]int) int {
	return 1 + max(pieces(w.Value), split[w.Key])
}

// loadSplit finds the keys with values in pieces.
func loadSplit(db *badger.DB, at Seq) map[string]int {
	split := make(map[string]int)
	txn := db.NewTransactionAt(uint64(at), false)
	defer txn.Discard()
	it := txn.NewIterator(badger.IteratorOptions{Prefix: []byte{spacePieces}})
	defer it.Close()
	for it.Rewind(); it.Valid(); it.Next() {
		k := it.Item().Key()
		split[string(k[3:len(k)-2])]++
	}
	return split
}
