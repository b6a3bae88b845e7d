package webhook

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"runner.example/state/store"
)

const (
	handled    = "webhook/handled/"
	until      = "webhook/until/"
	keyBytes   = 16
	sweepBatch = 1000
)

// key returns the key of a delivery to a route.
func (d Delivery) key(route string) []byte {
	sum := sha256.Sum256(fmt.Appendf(nil, "%d %s%s", len(route), route, d.ID))
	return sum[:keyBytes]
}

// Handled reports whether a committed request has handled the delivery to this route. A
// record that has expired at now does not count. The read belongs to tx: of two concurrent
// requests with one delivery, one conflicts, runs again and finds the other's record.
func (d Delivery) Handled(tx *store.Tx, route string, now time.Time) (bool, error) {
	value, err := tx.Get(append([]byte(handled), d.key(route)...))
	switch {
	case errors.Is(err, store.ErrNotFound):
		return false, nil
	case err != nil:
		return false, fmt.Errorf("look up delivery: %w", err)
	case len(value) != 8:
		return false, fmt.Errorf("look up delivery: its record has %d bytes, not 8", len(value))
	}
	return int64(binary.BigEndian.Uint64(value)) > now.UnixMilli(), nil
}

// Record records in tx that the delivery to this route is handled.
func (d Delivery) Record(tx *store.Tx, route string) error {
	key, end := d.key(route), binary.BigEndian.AppendUint64(nil, uint64(d.Until.UnixMilli()))
	err := tx.Set(append([]byte(handled), key...), end)
	if err == nil {
		err = tx.Set(append(append([]byte(until), end...), key...), nil)
	}
	if err != nil {
		return fmt.Errorf("record delivery: %w", err)
	}
	return nil
}

// Sweep deletes the records that have expired at now, in its own transactions. It returns
// when there are no more, or with the error of ctx. On a node that is not the owner of its
// cluster it does nothing.
func Sweep(ctx context.Context, st *store.Store, now time.Time) error {
	for full := st.IsOwner(); full; {
		_, err := st.UpdateAsOwner(ctx, func(tx *store.Tx) error {
			old, err := expired(tx, now)
			if err != nil {
				return err
			}
			full = len(old) == sweepBatch
			for _, key := range old {
				if err := remove(tx, key); err != nil {
					return err
				}
			}
			return nil
		})
		if errors.Is(err, store.ErrNotOwner) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("sweep deliveries: %w", err)
		}
	}
	return nil
}

// expired returns the keys of records that have expired, at most sweepBatch.
func expired(tx *store.Tx, now time.Time) (keys [][]byte, err error) {
	for item, err := range tx.Scan([]byte(until), nil, false) {
		if err != nil {
			return nil, err
		}
		end := int64(binary.BigEndian.Uint64(item.Key[len(until):]))
		if end > now.UnixMilli() || len(keys) == sweepBatch {
			break
		}
		keys = append(keys, bytes.Clone(item.Key))
	}
	return keys, nil
}

// remove deletes an expired key, and its record unless the delivery was recorded again
// later.
func remove(tx *store.Tx, key []byte) error {
	end, name := key[len(until):len(until)+8], key[len(until)+8:]
	record := append([]byte(handled), name...)
	value, err := tx.Get(record)
	if err == nil && bytes.Equal(value, end) {
		err = tx.Delete(record)
	}
	if err != nil && !errors.Is(err, store.ErrNotFound) {
		return err
	}
	return tx.Delete(key)
}

// SweepEvery is the interval at which Sweep should be called.
const SweepEvery = time.Hour
