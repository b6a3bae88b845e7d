package webhook

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"runner.example/store"
)

const (
	handled    = "webhook/handled/"
	until      = "webhook/until/"
	nameBytes  = 16
	sweepBatch = 1000
)

// name is what a delivery to a route is known by.
func (d Delivery) name(route string) []byte {
	sum := sha256.Sum256(fmt.Appendf(nil, "%d %s%s", len(route), route, d.ID))
	return sum[:nameBytes]
}

// Handled reports whether a request that is committed has handled the delivery to
// this route, and has to be known at now. It joins what tx has read: of two requests that handle one delivery at
// the same time, one runs again and sees the other.
func (d Delivery) Handled(tx *store.Tx, route string, now time.Time) (bool, error) {
	value, err := tx.Get(append([]byte(handled), d.name(route)...))
	switch {
	case errors.Is(err, store.ErrNotFound):
		return false, nil
	case err != nil:
		return false, fmt.Errorf("look a delivery up: %w", err)
	case len(value) != 8:
		return false, fmt.Errorf("look a delivery up: its record has %d bytes, not 8", len(value))
	}
	return int64(binary.BigEndian.Uint64(value)) > now.UnixMilli(), nil
}

// Record notes in tx that the delivery to this route is handled.
func (d Delivery) Record(tx *store.Tx, route string) error {
	name, end := d.name(route), binary.BigEndian.AppendUint64(nil, uint64(d.Until.UnixMilli()))
	err := tx.Set(append([]byte(handled), name...), end)
	if err == nil {
		err = tx.Set(append(append([]byte(until), end...), name...), nil)
	}
	if err != nil {
		return fmt.Errorf("note a delivery: %w", err)
	}
	return nil
}

// Sweep forgets the deliveries whose time is over at now, in transactions of its own.
// It returns when ctx ends, with its error, or when nothing is left to forget.
func Sweep(ctx context.Context, st *store.Store, now time.Time) error {
	for full := true; full; {
		_, err := st.Update(ctx, func(tx *store.Tx) error {
			old, err := ended(tx, now)
			if err != nil {
				return err
			}
			full = len(old) == sweepBatch
			for _, key := range old {
				if err := forget(tx, key); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return fmt.Errorf("forget old deliveries: %w", err)
		}
	}
	return nil
}

// ended gives the keys, at most sweepBatch, of deliveries whose time is over.
func ended(tx *store.Tx, now time.Time) (keys [][]byte, err error) {
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

// forget deletes one delivery, unless it was handled anew since.
func forget(tx *store.Tx, key []byte) error {
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

// SweepEvery is how often Sweep is worth calling.
const SweepEvery = time.Hour
