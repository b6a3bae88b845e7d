package audit

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/oklog/ulid/v2"

	"runner.example/state/store"
)

// sealedPrefix is the key prefix of the records whose position in the chain is final.
// It is followed by the number of the record, big endian. The value is one of
//
//	'r' | hash of the head after the record, 32 | length of its key, 1 | its key | its value
//	'g' | hash of the head after the last one, 32 | how many records were removed here, 8
//
// The key is the one that the record was written under, which is hashed with it. The
// number of a gap is that of the last record removed.
var sealedPrefix = []byte("auditlog/")

const (
	recordRow = 'r'
	gapRow    = 'g'
	// sealBatch is how many records one transaction seals: large ones would hold
	// other commits up.
	sealBatch = 1000
)

func rowKey(sequence uint64) []byte {
	return binary.BigEndian.AppendUint64(bytes.Clone(sealedPrefix), sequence)
}

// row is a sealed record, or a gap. Its bytes are borrowed.
type row struct {
	head       Head   // after it
	removed    uint64 // how many records; 0: it is a record
	key, value []byte
}

// link is the record as the chain sees it.
func (r row) link() link { return newLink(0, r.key, r.value) }

func encodeRow(head Head, key, value []byte) []byte {
	out := make([]byte, 0, 1+len(head.Hash)+1+len(key)+len(value))
	out = append(append(out, recordRow), head.Hash[:]...)
	out = append(append(out, byte(len(key))), key...)
	return append(out, value...)
}

func encodeGap(last Head, removed uint64) []byte {
	return binary.BigEndian.AppendUint64(append([]byte{gapRow}, last.Hash[:]...), removed)
}

func decodeRow(key, in []byte) (r row, err error) {
	at := len(sealedPrefix)
	if len(key) != at+8 {
		return r, fmt.Errorf("audit chain is broken: %q is not the key of a sealed record", key)
	}
	r.head.Count = binary.BigEndian.Uint64(key[at:])
	fixed := 1 + len(r.head.Hash) + 1
	if len(in) == fixed+7 && in[0] == gapRow {
		copy(r.head.Hash[:], in[1:])
		if r.removed = binary.BigEndian.Uint64(in[fixed-1:]); r.removed > 0 {
			return r, nil
		}
	}
	if len(in) < fixed || in[0] != recordRow || len(in) < fixed+int(in[fixed-1]) {
		return r, fmt.Errorf("audit chain is broken: record %d cannot be read", r.head.Count)
	}
	copy(r.head.Hash[:], in[1:])
	rest := in[fixed:]
	r.key, r.value = rest[:in[fixed-1]], rest[in[fixed-1]:]
	return r, nil
}

// lastSealed returns the head after the last sealed record.
func lastSealed(tx *store.Tx) (Head, error) {
	for item, err := range tx.Scan(sealedPrefix, nil, true) {
		if err != nil {
			return Head{}, fmt.Errorf("read the last sealed audit record: %w", err)
		}
		r, err := decodeRow(item.Key, item.Value)
		return r.head, err
	}
	return Head{}, nil
}

// Seal moves the readable records to keys that are their numbers, so that opening the
// log, listing and verifying need not sort them again. It does not change the chain. In a
// cluster the owner does it; on another node Seal drops from memory what is sealed.
func (l *Log) Seal(ctx context.Context) error {
	l.sealing.Lock()
	defer l.sealing.Unlock()
	l.Head() // which settles the order of all that can be read
	if l.store.IsOwner() {
		err := l.sealAll(ctx)
		if !errors.Is(err, store.ErrNotOwner) {
			return err
		}
	}
	l.sealed = floorEvery // not counted here
	return l.store.View(ctx, func(tx *store.Tx) error {
		sealed, err := lastSealed(tx)
		if err != nil {
			return err
		}
		l.mu.Lock()
		defer l.mu.Unlock()
		l.dropLocked(sealed)
		return nil
	})
}

func (l *Log) sealAll(ctx context.Context) error {
	for more := true; more; {
		if l.sealed >= floorEvery {
			if err := l.raiseFloor(ctx); err != nil && !errors.Is(err, store.ErrConflict) {
				return fmt.Errorf("seal audit records: %w", err)
			}
		}
		var sealed Head
		_, err := l.store.UpdateAsOwner(ctx, func(tx *store.Tx) (err error) {
			sealed, more, err = l.seal(tx)
			return err
		})
		if err != nil {
			return fmt.Errorf("seal audit records: %w", err)
		}
		l.mu.Lock()
		l.sealed += l.dropLocked(sealed)
		l.mu.Unlock()
	}
	return nil
}

// floorEvery is after how many sealed records the floor is raised.
const floorEvery = 5000

// raiseFloor moves the floor up to the record sealed last, as far as none that is not
// sealed comes before. What is appended meanwhile reads the floor, and so is appended
// again above it.
func (l *Log) raiseFloor(ctx context.Context) error {
	_, err := l.store.UpdateAsOwner(ctx, func(tx *store.Tx) error {
		old, err := floorOf(tx)
		if err != nil {
			return err
		}
		floor := ulid.Timestamp(tx.Now())
		for item, err := range tx.Scan(sealedPrefix, nil, true) {
			if err != nil {
				return err
			}
			r, err := decodeRow(item.Key, item.Value)
			if err != nil {
				return err
			}
			if r.removed == 0 {
				floor = min(floor, timeOf(r.key))
				break
			}
		}
		for item, err := range tx.Scan(prefix, firstKey(old), false) {
			if err != nil {
				return err
			}
			floor = min(floor, timeOf(item.Key))
			break
		}
		if floor <= old {
			return nil
		}
		return tx.Set(floorKey, binary.BigEndian.AppendUint64(nil, floor))
	})
	if err == nil {
		l.sealed = 0
	}
	return err
}

// timeOf gives the time in a record's key; 0 where there is none.
func timeOf(key []byte) uint64 {
	id, err := ulid.ParseStrict(string(bytes.TrimPrefix(key, prefix)))
	if err != nil {
		return 0
	}
	return id.Time()
}

// firstKey gives the least key of a record of that time.
func firstKey(ms uint64) []byte {
	var id ulid.ULID
	if ms == 0 || id.SetTime(ms) != nil {
		return nil
	}
	return append(bytes.Clone(prefix), id.String()...)
}

// seal seals a batch of records in tx and returns the head after it, and whether
// there are more.
func (l *Log) seal(tx *store.Tx) (sealed Head, more bool, err error) {
	l.mu.Lock()
	readable := l.head.Count // before the snapshot of tx, which has no later records
	l.mu.Unlock()
	if sealed, err = lastSealed(tx); err != nil {
		return sealed, false, err
	}
	l.mu.Lock()
	l.dropLocked(sealed) // after a commit whose outcome was not known
	first := l.head.Count - uint64(len(l.tail))
	batch := l.tail[:min(len(l.tail), sealBatch, int(max(readable, first)-first))]
	more = len(batch) < len(l.tail)
	l.mu.Unlock()
	if first != sealed.Count && len(batch) > 0 {
		return sealed, false, fmt.Errorf("audit chain is broken: %d records are sealed, %d were", sealed.Count, first)
	}
	for i, one := range batch {
		value, err := tx.Get([]byte(one.key))
		if err != nil {
			return sealed, false, fmt.Errorf("read the audit record %d: %w", sealed.Count+1, err)
		}
		key := []byte(one.key)
		next := sealed.then(one)
		encoded := encodeRow(next, key, value)
		if i > 0 && !tx.Fits(2, len(encoded)+2*len(key)) {
			return sealed, true, nil
		}
		if err := tx.Set(rowKey(next.Count), encoded); err != nil {
			return sealed, false, err
		}
		if err := tx.Delete(key); err != nil {
			return sealed, false, err
		}
		sealed = next
	}
	return sealed, more, nil
}

// dropLocked drops the records up to a sealed head from the tail, and returns how many.
func (l *Log) dropLocked(sealed Head) int {
	first := l.head.Count - uint64(len(l.tail)) // how many come before the tail
	if sealed.Count <= first {
		return 0
	}
	n := min(int(sealed.Count-first), len(l.tail))
	if l.tail = l.tail[n:]; len(l.tail) == 0 {
		l.tail = nil
	}
	return n
}
