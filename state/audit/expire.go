package audit

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"runner.example/internal/caller"
	"runner.example/state/store"
)

// ErrExpired means that a head cannot be verified any more, because records around it
// have expired.
var ErrExpired = errors.New("audit records expired")

// One transaction of Expire looks at no more than expireBatch sealed records and makes
// no more than maxGaps gaps.
const (
	expireBatch = 10_000
	maxGaps     = 500
)

// wrongClock is how far in the future a record's time may lie. Records of a clock that
// was further ahead expire with those before them.
const wrongClock = 24 * time.Hour

// scannedKey holds the number of the sealed record that Expire looks at next. All
// counts of refused credentials before it have expired.
var scannedKey = []byte("auditscanned")

// Expire removes the sealed counts of refused credentials that were made before the
// given time, and returns how many. Each removed run of records is replaced by a gap,
// which holds the head of the chain after it. Expire appends a checkpoint, a record like
// any other, with the heads before and after each gap. So the records after the gap
// prove the checkpoint, and the checkpoint proves the records before the gap. On a node that is
// not the owner of its cluster Expire does nothing.
func (l *Log) Expire(ctx context.Context, before, now time.Time) (removed int, err error) {
	l.sealing.Lock()
	defer l.sealing.Unlock()
	for more := l.store.IsOwner(); more; {
		e := expirer{before: before, until: now.Add(wrongClock)}
		_, err := l.store.UpdateAsOwner(ctx, func(tx *store.Tx) (err error) {
			e.gaps, e.run, e.removed = nil, 0, 0
			more, err = e.batch(tx)
			return err
		})
		if errors.Is(err, store.ErrNotOwner) {
			break
		}
		if err != nil {
			return removed, fmt.Errorf("expire audit records: %w", err)
		}
		removed += e.removed
	}
	return removed, nil
}

// expirer removes the records of one batch.
type expirer struct {
	before, until time.Time

	head    Head   // after the record looked at last
	from    Head   // before the run
	run     uint64 // how many records up to head are removed
	gaps    []Gap
	removed int
}

func (e *expirer) batch(tx *store.Tx) (more bool, err error) {
	began, err := e.begin(tx)
	if err != nil {
		return false, err
	}
	looked := 0
	for item, err := range tx.Scan(sealedPrefix, rowKey(began+1), false) {
		if err != nil {
			return false, err
		}
		if more = looked == expireBatch || len(e.gaps) == maxGaps; more {
			break
		}
		looked++
		r, err := decodeRow(item.Key, item.Value)
		if err != nil {
			return false, err
		}
		refused, expired, err := e.judge(r)
		if err != nil {
			return false, err
		}
		if refused && !expired {
			break
		}
		if err := e.pass(tx, r, expired); err != nil {
			return false, err
		}
	}
	if err := e.endRun(tx); err != nil {
		return false, err
	}
	if e.head.Count == began {
		return false, nil
	}
	if err := tx.Set(scannedKey, binary.BigEndian.AppendUint64(nil, e.head.Count+1)); err != nil {
		return false, err
	}
	return more, e.checkpoint(tx)
}

// begin finds the head before the record to be looked at first, and returns its count.
func (e *expirer) begin(tx *store.Tx) (uint64, error) {
	e.head = Head{}
	at, err := tx.Get(scannedKey)
	if errors.Is(err, store.ErrNotFound) {
		return 0, nil
	}
	if err == nil && len(at) != 8 {
		err = fmt.Errorf("%q is not a number of eight bytes", at)
	}
	if err != nil {
		return 0, fmt.Errorf("read how far audit records have expired: %w", err)
	}
	before := rowKey(binary.BigEndian.Uint64(at) - 1)
	value, err := tx.Get(before)
	if err != nil {
		return 0, fmt.Errorf("read the sealed audit record %d: %w", binary.BigEndian.Uint64(at)-1, err)
	}
	r, err := decodeRow(before, value)
	e.head = r.head
	return r.head.Count, err
}

// judge reports whether a row is a count of refused credentials, and whether it has
// expired.
func (e *expirer) judge(r row) (refused, expired bool, err error) {
	if r.removed > 0 {
		return false, false, nil
	}
	var record Record
	if err := json.Unmarshal(r.value, &record); err != nil {
		return false, false, fmt.Errorf("read the audit record %d: %w", r.head.Count, err)
	}
	refused = record.Action == RefuseCredentials
	return refused, refused && (record.Time.Before(e.before) || record.Time.After(e.until)), nil
}

// pass goes on over a row, and removes it if it has expired.
func (e *expirer) pass(tx *store.Tx, r row, expired bool) error {
	if !expired {
		if err := e.endRun(tx); err != nil {
			return err
		}
		e.head = r.head
		return nil
	}
	if e.run == 0 {
		e.from = e.head
	}
	e.head = r.head
	e.run++
	return tx.Delete(rowKey(r.head.Count))
}

// endRun puts a gap in the place of the records removed last.
func (e *expirer) endRun(tx *store.Tx) error {
	if e.run == 0 {
		return nil
	}
	e.gaps = append(e.gaps, Gap{e.from.String(), e.head.String()})
	e.removed += int(e.run)
	err := tx.Set(rowKey(e.head.Count), encodeGap(e.head, e.run))
	e.run = 0
	return err
}

func (e *expirer) checkpoint(tx *store.Tx) error {
	if e.removed == 0 {
		return nil
	}
	return Append(tx, Record{
		Actor: Actor{Kind: caller.System.String()}, Action: expire, Result: OK,
		Count: e.removed, Removed: e.gaps,
	})
}
