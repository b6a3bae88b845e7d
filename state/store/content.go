package store

import "runner.example/state/store/commitlog"

// content is what the commits of a store wrote: tables on disk, or memory. Only the goroutine that applies entries may
// call the methods other than at and recordAt.
type content interface {
	// at returns the content as of commit seq, which the caller has registered with Store.snapshots.
	at(seq Seq) snapshot
	// recordAt returns the log's record of entry seq, if it is kept.
	recordAt(seq Seq) (r logRecord, known bool, err error)
	// commit adds the writes of the next entry e, whose record is r. See stage for split.
	commit(e *commitlog.Entry, r *logRecord, split map[string]int) error
	// discard drops versions that neither the window after floor nor a reader needs.
	discard(floor Seq, readers *snapshots)
}

// snapshot is the content of a store as of one commit. Keys are those that dataKey returns. It is for one goroutine, as
// its iterators are.
type snapshot interface {
	// get returns the value of key; the bytes belong to the caller. The error is ErrNotFound if there is none.
	get(key []byte) ([]byte, error)
	// newIterator returns an iterator over the keys with the prefix, which may be of any length. It must be closed
	// before discard.
	newIterator(prefix []byte, reverse bool) iterator
	// read returns the value and the version where it is. The bytes are valid until its next step.
	read(it iterator) ([]byte, Seq, error)
	// wroteKey reports whether a commit after that one wrote or deleted key.
	wroteKey(key []byte, after Seq) bool
	// wroteIn returns a user key in the range [from, to) that a commit after that one wrote or deleted; nil: none.
	wroteIn(from, to []byte, after Seq) []byte
	discard()
}

// iterator walks over the keys of a snapshot, in ascending or descending order. Seek comes first.
type iterator interface {
	// Seek moves to the first key at or after key; in descending order to the last one at or before it.
	Seek(key []byte)
	// UserKey returns the user key at the iterator, nil at the end. It is valid until the next step.
	UserKey() []byte
	Next()
	Close()
}
