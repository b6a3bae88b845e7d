package store

import (
	"context"
	"fmt"
	"slices"
	"time"

	"runner.example/state/store/commitlog"
	"runner.example/state/store/retry"
)

// Tx is a transaction: one snapshot of the store and, in an Update, the transaction's
// writes. It is for one goroutine at a time and ends when the function that got it
// returns.
//
// It is lazy: the snapshot is taken at the first read. A transaction that neither reads nor
// writes opens nothing.
type Tx struct {
	store *Store
	ctx   context.Context
	now   time.Time

	attempt int32       // 0 in a View
	records bool        // what is read becomes part of reads and spans
	turn    *retry.Turn // that the Update may hold
	early   *early      // nil: neither Commit nor Drop was called
	holds   bool        // snap is registered with the store
	ended   bool

	snapshot snapshot // nil before the first read
	snap     Seq
	broken   error  // the first read that failed
	key      []byte // scratch for dataKey
	iters    []iterator
	idle     []*cursor // of ScanRange; their iterators are in iters

	writes commitlog.WriteSet
	reads  []string
	spans  []*commitlog.Span
	blobs  []Digest // that the references among the writes name
}

// Get returns the value of key; the bytes belong to the caller. The error is ErrNotFound if
// there is none.
func (t *Tx) Get(key []byte) ([]byte, error) {
	if err := t.check(key); err != nil {
		return nil, fmt.Errorf("get: %w", err)
	}
	if w := t.writes.Get(key); w != nil {
		if w.Deleted {
			return nil, ErrNotFound
		}
		return append([]byte{}, w.Value...), nil
	}
	if err := t.begin(); err != nil {
		return nil, err
	}
	if t.records {
		t.reads = append(t.reads, string(key))
	}
	return t.read(key)
}

// read gets the value of key from the snapshot.
func (t *Tx) read(key []byte) (value []byte, err error) {
	r := t.reading()
	defer r.done(&err)
	t.key = dataKey(t.key[:0], key)
	return t.snapshot.get(t.key)
}

// Set sets the value of key when the transaction commits; the value may be empty. Both are
// copied. A key has 1 to 64,000 bytes. A transaction writes at most 8 MiB of keys and
// values, and 50,000 keys; beyond that Set returns ErrTooLarge and sets nothing.
func (t *Tx) Set(key, value []byte) error {
	if d, _, ok := CutBlobReference(key); ok && !slices.Contains(t.blobs, d) {
		t.blobs = append(t.blobs, d)
	}
	return t.put(key, commitlog.Write{Key: string(key), Value: append([]byte{}, value...)})
}

// Delete removes key when the transaction commits. The key need not exist. It counts
// against the limits of Set.
func (t *Tx) Delete(key []byte) error {
	return t.put(key, commitlog.Write{Key: string(key), Deleted: true})
}

// Fits reports whether that many more keys, with that many bytes of keys and values, can be
// written without ErrTooLarge.
func (t *Tx) Fits(keys, bytes int) bool {
	return t.writes.Len()+keys <= maxTxKeys && t.writes.Bytes()+bytes <= maxTxBytes
}

// Now returns the time of the clock at the first call in this run of the function. It opens
// nothing.
func (t *Tx) Now() time.Time {
	if t.now.IsZero() {
		t.now = t.store.clock()
	}
	return t.now
}

// Snapshot returns the number of the last commit that the transaction sees. It takes the
// snapshot if needed.
func (t *Tx) Snapshot() (Seq, error) {
	if t.ended {
		return 0, errEnded
	}
	if err := t.begin(); err != nil {
		return 0, fmt.Errorf("take snapshot: %w", err)
	}
	return t.snap, nil
}

// Attempt returns the number of this run of an Update's function, from 1; 0 in a View.
func (t *Tx) Attempt() int { return int(t.attempt) }

// Writes reports whether the transaction has written or deleted a key.
func (t *Tx) Writes() bool { return t.writes.Len() > 0 }

// early is how a transaction ended before the function of its Update.
type early struct {
	proposal *proposal // nil: there were no writes
	err      error
}

// Commit commits the transaction before the function of Update returns. From then on the transaction is ended, and
// Update does not run the function again: it returns its error. If another transaction has changed what this one has
// read, the error is ErrConflict: the function must return, and may run again. With any other error nothing was
// committed, except as ErrUnknown says, and Update returns that error.
func (t *Tx) Commit() error {
	switch {
	case t.ended:
		return errEnded
	case t.attempt == 0:
		return ErrReadOnly
	case t.broken != nil:
		return t.broken
	}
	p, err := t.propose()
	t.end()
	t.early = &early{p, err}
	switch {
	case err != nil:
		return err
	case p == nil || p.outcome() == commitlog.Committed:
		t.turn.Release()
		return nil
	case p.outcome() == commitlog.TooLarge:
		return ErrTooLarge
	}
	return ErrConflict
}

// Drop ends the transaction before the function of Update returns, and discards its writes. Update returns the
// function's error.
func (t *Tx) Drop() {
	t.end()
	t.early = &early{}
	t.turn.Release()
}

func (t *Tx) put(key []byte, w commitlog.Write) error {
	if err := t.check(key); err != nil {
		return fmt.Errorf("write: %w", err)
	}
	if t.attempt == 0 {
		return ErrReadOnly
	}
	if len(key) > maxKeyBytes {
		return fmt.Errorf("%w: key of %d bytes, the limit is %d", ErrTooLarge, len(key), maxKeyBytes)
	}
	if !t.writes.Put(w, maxTxKeys, maxTxBytes) {
		return fmt.Errorf("%w: the limits are %d bytes and %d keys", ErrTooLarge, maxTxBytes, maxTxKeys)
	}
	return nil
}

func (t *Tx) check(key []byte) error {
	if t.ended {
		return errEnded
	}
	if len(key) == 0 {
		return errEmptyKey
	}
	return nil
}

// begin takes the snapshot if needed.
func (t *Tx) begin() error {
	if t.snapshot != nil {
		return nil
	}
	if t.ctx.Err() != nil {
		return unavailable(context.Cause(t.ctx))
	}
	snap, ok := t.store.snapshots.acquire(t.store.appliedSeq)
	if !ok {
		return errClosed
	}
	t.snap, t.holds = snap, true
	t.snapshot = t.store.content.at(snap)
	return nil
}

// end releases what begin and Scan acquired.
func (t *Tx) end() {
	t.stop()
	if t.holds {
		t.holds = false
		t.store.snapshots.release(t.snap)
	}
}

// stop ends reading and writing; the versions after the snapshot are kept until end. Open
// iterators belong to loops that never ended (iter.Pull without stop).
func (t *Tx) stop() {
	if t.ended {
		return
	}
	t.ended = true
	if t.snapshot == nil {
		return
	}
	for _, it := range t.iters {
		it.Close()
	}
	t.iters = nil
	t.snapshot.discard()
}

// proposal returns the proposal of the ended transaction.
func (t *Tx) proposal() *proposal {
	p := &proposal{bytes: t.writes.Bytes(), try: int(t.attempt)}
	p.Snapshot, p.Reads, p.Writes = t.snap, t.reads, t.writes.Sorted()
	for _, s := range t.spans {
		p.Spans = append(p.Spans, *s)
	}
	return p
}
