package jobs

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"runner.example/internal/caller"
	"runner.example/internal/clock"
	"runner.example/state/store"
)

// Cancel ends a job that waits or runs: it does not run any more, and what a run of it has written is
// not committed. It returns false if the job has ended before. The error is ErrNotFound if the job
// does not exist or belongs to another tenant than the caller; operators without a tenant reach all.
func Cancel(tx *store.Tx, by *caller.Caller, id string, now time.Time, keep Keep) (bool, error) {
	j, err := readReachable(tx, by, id)
	if err != nil {
		return false, err
	}
	if j.State != Waiting && j.State != Running {
		return false, nil
	}
	value, err := j.encode()
	if err == nil {
		err = j.checkFits(tx, value)
	}
	if err != nil {
		return false, err
	}
	return true, j.end(tx, Cancelled, now, keep)
}

// readReachable returns a job that the caller may change.
func readReachable(tx *store.Tx, by *caller.Caller, id string) (*record, error) {
	j, err := read(tx, id)
	if err != nil {
		return nil, err
	}
	if everywhere := by.Kind == caller.System && by.Tenant == ""; !everywhere && j.Caller.Tenant != by.Tenant {
		return nil, ErrNotFound
	}
	return j, nil
}

// Selection selects jobs. The zero value selects all.
type Selection struct {
	// Name is that of the jobs, Tenant the tenant of their callers; empty: any.
	Name   string `json:"name,omitempty"`
	Tenant string `json:"tenant,omitempty"`
}

func (s Selection) has(name, tenant string) bool {
	return (s.Name == "" || s.Name == name) && (s.Tenant == "" || s.Tenant == tenant)
}

// CancelledSome is what CancelSome has done.
type CancelledSome struct {
	// Count is the number of jobs that were cancelled.
	Count int
	// Cursor continues; empty: there is nothing more to do.
	Cursor string
	// Left is true at the end if jobs were enqueued all the time, so that some are left.
	Left bool
}

const (
	// cancelTime is about how long CancelSome works.
	cancelTime = 500 * time.Millisecond
	// cancelBatch limits the jobs of one of its transactions, cancelLooked the keys that it reads for them.
	cancelBatch  = 500
	cancelLooked = 10_000
	// cancelRoom is free in a transaction before another job is cancelled in it: for the largest job, and for
	// what record writes.
	cancelRoom = 1 << 20
	// cancelPasses is how often the queue is searched for jobs that others have enqueued meanwhile.
	cancelPasses = 10
)

// cancelCursor is how far the cancellation of a selection has come.
type cancelCursor struct {
	Pass  int    `json:"pass"`
	Found bool   `json:"found"` // jobs in this pass
	Key   []byte `json:"key"`   // of the waiting jobs, the next one
}

// CancelSome cancels some of the selected jobs that wait or run, in transactions of its own, and calls record
// in each of them with the number of its jobs. It begins with an empty cursor, and is called with the Cursor
// of its result until that is empty. From the first call to the last no node claims selected jobs, so that
// those which enqueue others come to an end; that lasts for pauseTime after a call if no other follows. Jobs
// that changed meanwhile may be found again: the work ends after cancelPasses searches in any case.
func CancelSome(ctx context.Context, st *store.Store, selection Selection, cursor string, now clock.Calendar, keep Keep,
	record func(tx *store.Tx, count int) error) (done CancelledSome, err error) {
	var at cancelCursor
	if cursor != "" && (json.Unmarshal([]byte(cursor), &at) != nil ||
		len(at.Key) > 0 && !bytes.HasPrefix(at.Key, []byte(waitingPrefix))) {
		return done, invalidf("the cursor is not one of a cancellation")
	}
	c := cancelling{store: st, selection: selection, now: now, keep: keep, record: record}
	if _, err = st.Update(ctx, func(tx *store.Tx) error { return setPause(tx, selection, now().Add(pauseTime)) }); err != nil {
		return done, fmt.Errorf("pause the jobs: %w", err)
	}
	if len(at.Key) == 0 { // running jobs may enqueue others
		if done.Count, err = c.cancelRunning(ctx); err != nil {
			return done, err
		}
	}
	for end := clock.In(cancelTime); ; {
		n, next, err := c.cancelWaiting(ctx, at.Key)
		done.Count += n
		if err != nil {
			return done, err
		}
		at.Key = next
		if at.Found = at.Found || done.Count > 0; next == nil || clock.Mark().After(end) {
			break
		}
	}
	if at.Key == nil {
		if !at.Found || at.Pass+1 == cancelPasses {
			done.Left = at.Found
			_, err := st.Update(ctx, func(tx *store.Tx) error { return tx.Delete(pauseKey(selection)) })
			return done, err
		}
		at = cancelCursor{Pass: at.Pass + 1}
	}
	text, err := json.Marshal(at)
	done.Cursor = string(text)
	return done, err
}

// cancelling is the work of CancelSome.
type cancelling struct {
	store     *store.Store
	selection Selection
	now       clock.Calendar
	keep      Keep
	record    func(*store.Tx, int) error
}

// cancelRunning cancels the selected jobs that run.
func (c *cancelling) cancelRunning(ctx context.Context) (count int, err error) {
	var ids []string
	err = c.store.View(ctx, func(tx *store.Tx) error {
		for item, err := range tx.Scan([]byte(runningPrefix), nil, false) {
			if err != nil {
				return err
			}
			j, err := read(tx, string(item.Key[len(runningPrefix):]))
			switch {
			case errors.Is(err, ErrNotFound), errors.Is(err, errUnreadable): // the queue takes it over
			case err != nil:
				return err
			case c.selection.has(j.Name, j.Caller.Tenant):
				ids = append(ids, j.ID)
			}
		}
		return nil
	})
	if err != nil {
		return 0, fmt.Errorf("find the running jobs: %w", err)
	}
	return c.cancel(ctx, ids)
}

// cancelWaiting cancels some of the selected jobs that wait, from a key on. next is the key to continue at; nil:
// there are no more.
func (c *cancelling) cancelWaiting(ctx context.Context, from []byte) (count int, next []byte, err error) {
	var ids []string
	err = c.store.View(ctx, func(tx *store.Tx) (err error) {
		ids, next, err = c.findWaiting(tx, from)
		return err
	})
	if err != nil {
		return 0, nil, fmt.Errorf("find the waiting jobs: %w", err)
	}
	count, err = c.cancel(ctx, ids)
	return count, next, err
}

// findWaiting returns the ids of a batch of the selected jobs that wait. It passes over groups with others.
func (c *cancelling) findWaiting(tx *store.Tx, from []byte) (ids []string, next []byte, err error) {
	for looked := 0; looked < cancelLooked; {
		var other []byte // a key of a group that is not selected
		for item, err := range tx.Scan([]byte(waitingPrefix), from, false) {
			if err != nil {
				return nil, nil, err
			}
			if len(ids) == cancelBatch || looked == cancelLooked {
				return ids, bytes.Clone(item.Key), nil
			}
			looked++
			_, _, id, ok := readWaiting(item.Key)
			w, readable := decodeWaiting(item.Value)
			if !ok || !readable {
				continue
			}
			if !c.selection.has(w.name, w.tenant) {
				other = item.Key[:len(waitingPrefix)+hashBytes]
				from = append(bytes.Clone(other), 0xff) // after every due time of the group: its first byte is 0x00
				break
			}
			ids = append(ids, string(id))
		}
		if other == nil {
			return ids, nil, nil
		}
	}
	return ids, from, nil
}

// cancel cancels those of the jobs that still wait or run, in as many transactions as they need.
func (c *cancelling) cancel(ctx context.Context, ids []string) (count int, err error) {
	for n := len(ids); len(ids) > 0; {
		n = min(n, len(ids))
		looked, cancelled := 0, 0
		_, err := c.store.Update(ctx, func(tx *store.Tx) (err error) {
			looked, cancelled, err = c.cancelIn(tx, ids[:n])
			return err
		})
		switch {
		case errors.Is(err, store.ErrConflict) && n > 1: // runs of some of them end
			n /= 2
			continue
		case err != nil:
			return count, fmt.Errorf("cancel jobs: %w", err)
		}
		ids, count = ids[looked:], count+cancelled
	}
	return count, nil
}

// cancelIn cancels as many of the jobs as fit into the transaction, which one always does. It returns how many
// it has looked at, and how many it has cancelled.
func (c *cancelling) cancelIn(tx *store.Tx, ids []string) (looked, cancelled int, err error) {
	all := caller.Caller{Kind: caller.System}
	for _, id := range ids {
		if cancelled > 0 && !tx.Fits(2*maxChanged, cancelRoom) {
			break
		}
		was, err := Cancel(tx, &all, id, c.now(), c.keep)
		switch {
		case errors.Is(err, ErrNotFound), errors.Is(err, errUnreadable): // it stays in the store, and does not run
		case err != nil:
			return 0, 0, err
		}
		looked++
		if was {
			cancelled++
		}
	}
	if cancelled == 0 {
		return looked, 0, nil
	}
	return looked, cancelled, c.record(tx, cancelled)
}
