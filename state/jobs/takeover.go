package jobs

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"runner.example/schema"
	"runner.example/state/store"
)

// lease is that of a running job.
type lease struct {
	until Time
	node  string
	run   *Claimed // of this process; nil: it has none
	old   bool     // it was there when this process began
}

// isOrphan reports whether this process claimed the job but has no run of it: the claim was committed
// after claimTimeout.
func (q *Queue) isOrphan(l lease) bool { return l.node == q.node && l.run == nil && !l.old }

func readLease(value []byte) lease {
	if len(value) < 8 {
		return lease{}
	}
	return lease{until: Time(binary.BigEndian.Uint64(value)), node: string(value[8:])}
}

// takeOver ends the runs whose lease is over, and lets jobs wait again that were claimed and never began.
func (q *Queue) takeOver(ctx context.Context, now time.Time) (failed error) {
	q.mu.Lock()
	over := map[string]lease{}
	for id, l := range q.running {
		if l.until+q.skewOf(l) < timeOf(now) || q.isOrphan(l) {
			over[id] = l
		}
	}
	s := q.schema
	q.mu.Unlock()
	for id, l := range over {
		taken, unreadable := false, error(nil)
		_, err := q.store.Update(ctx, func(tx *store.Tx) error {
			taken, unreadable = false, nil
			r, err := read(tx, id)
			if errors.Is(err, ErrNotFound) || err == nil && r.State != Running {
				return tx.Delete(runningKey(id))
			}
			if errors.Is(err, errUnreadable) {
				unreadable = err
				return nil
			}
			if err != nil || r.Lease >= timeOf(now) && r.Node != tx.Node() {
				return err
			}
			var declared *schema.Job
			if s != nil {
				declared = s.Job(r.Name)
			}
			taken = true
			if q.isOrphan(l) {
				return r.release(tx, declared, timeOf(now))
			}
			return r.fail(tx, declared, "the lease ended: the server stopped, or the run took too long", now, q.opt.Keep)
		})
		switch {
		case err != nil:
			failed = errors.Join(failed, fmt.Errorf("take over job %s: %w", id, err))
		case unreadable != nil:
			q.mu.Lock()
			delete(q.running, id)
			q.mu.Unlock()
			failed = errors.Join(failed, q.dropUnreadable(ctx, id, unreadable))
		case taken:
			q.opt.Logger.Warn("job lease over", "jobId", id)
		}
	}
	return failed
}

// dropUnreadable frees the key and the concurrency slot of a job whose record cannot be read and so does not
// say which they are. The record stays.
func (q *Queue) dropUnreadable(ctx context.Context, id string, cause error) error {
	q.opt.Logger.Error("job not readable", "jobId", id, "cause", cause)
	_, err := q.store.Update(ctx, func(tx *store.Tx) error {
		for _, prefix := range []string{keyPrefix, countPrefix} {
			for item, err := range tx.Scan([]byte(prefix), nil, false) {
				if err != nil {
					return err
				}
				if string(item.Value) == id {
					if err := tx.Delete(bytes.Clone(item.Key)); err != nil {
						return err
					}
					break
				}
			}
		}
		return nil
	})
	return err
}

func (q *Queue) skewOf(l lease) Time {
	if l.node == q.node {
		return 0
	}
	return Time(clockSkew.Milliseconds())
}
