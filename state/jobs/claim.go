package jobs

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync/atomic"
	"time"

	"runner.example/schema"
	"runner.example/state/store"
)

// Claimed is a job that this node runs. Its transaction calls Begin before the run, and then one of
// Complete, Fail and Release.
type Claimed struct {
	*Job
	// Declared is the job in the schema that was active when it was claimed.
	Declared *schema.Job

	record *record
	stored []byte // the record while the lease is held
	share  share  // that its slot counts for
	lost   context.Context
	lose   context.CancelFunc
	ending atomic.Bool // the run has ended, and its end is written
}

// Lost returns a context that ends when the job is cancelled or its lease is over while its handler runs:
// nothing of the run can be committed then. Begin and ErrLost do not depend on it.
func (c *Claimed) Lost() context.Context { return c.lost }

// ErrLost ends the run of a job that this node does not have any more: it was cancelled, or its lease
// was over.
var ErrLost = errors.New("the job was cancelled, or its lease is over")

// Begin reads the job in the transaction of its run. The error is ErrLost if this node does not have
// it any more: then nothing of the run may be committed.
func (c *Claimed) Begin(tx *store.Tx) error {
	c.ending.Store(false)
	value, err := tx.Get(recordKey(c.ID))
	if errors.Is(err, store.ErrNotFound) || err == nil && !bytes.Equal(value, c.stored) {
		return ErrLost
	}
	return err
}

// beginEnd returns a copy of the record, because a transaction may run several times.
func (c *Claimed) beginEnd() *record {
	c.ending.Store(true)
	r := *c.record
	return &r
}

// Complete writes that the job is done.
func (c *Claimed) Complete(tx *store.Tx, now time.Time, keep Keep) error {
	r := c.beginEnd()
	r.Error, r.Earlier = "", nil
	return r.end(tx, Done, now, keep)
}

// Fail writes that the run failed: the job waits for its next run, or has failed. It returns the job
// as it is then.
func (c *Claimed) Fail(tx *store.Tx, declared *schema.Job, why string, now time.Time, keep Keep) (*Job, error) {
	r := c.beginEnd()
	err := r.fail(tx, declared, why, now, keep)
	return &r.Job, err
}

func (r *record) fail(tx *store.Tx, declared *schema.Job, why string, now time.Time, keep Keep) error {
	retries, first := schema.DefaultRetries, schema.DefaultBackoff
	if declared != nil {
		retries, first = declared.Retries, declared.Backoff
	}
	if r.Error != "" {
		earlier := append([]Attempt{{r.Attempt - 1, shortened(r.Error, maxEarlierBytes)}}, r.Earlier...)
		r.Earlier = earlier[:min(len(earlier), maxEarlier)]
	}
	r.Error = shortened(why, maxErrorBytes)
	if r.Attempt > retries {
		return r.end(tx, Failed, now, keep)
	}
	err := r.stop(tx)
	r.Due = timeOf(now.Add(Backoff(first, r.Attempt, rand.Float64())))
	return errors.Join(err, r.setWaiting(tx, declared))
}

// What is kept of the errors of a job.
const (
	maxErrorBytes   = 1000
	maxEarlierBytes = 400
	maxEarlier      = 2
)

// shortened returns the beginning of text, at most max bytes of it.
func shortened(text string, max int) string {
	if len(text) <= max {
		return text
	}
	return strings.ToValidUTF8(text[:max], "") + "…"
}

// Backoff returns the pause after a run: first after the attempt 1, twice as long after each further
// one, at most an hour, and then between half and all of it, by a random number from 0 to 1.
func Backoff(first time.Duration, attempt int, random float64) time.Duration {
	pause := first
	for ; attempt > 1 && pause < schema.MaxBackoff; attempt-- {
		pause *= 2
	}
	pause = min(pause, schema.MaxBackoff)
	return pause/2 + time.Duration(random*float64(pause/2))
}

// Release writes that the job waits again, until due, as if this run had not begun.
func (c *Claimed) Release(tx *store.Tx, declared *schema.Job, due time.Time) error {
	return c.beginEnd().release(tx, declared, timeOf(due))
}

func (r *record) release(tx *store.Tx, declared *schema.Job, due Time) error {
	err := r.stop(tx)
	r.Attempt--
	r.Due = due
	return errors.Join(err, r.setWaiting(tx, declared))
}

// candidate is a waiting job that may be claimed.
type candidate struct {
	id       string
	declared *schema.Job
	group    *group
}

// claimed is the result of claiming a candidate.
type claimed struct {
	job        *Claimed
	blocked    *hash // the concurrency limit that is reached; nil: none
	unreadable error // why its record cannot be read; nil: it can
}

// claimTimeout limits the time of a claim.
const claimTimeout = 10 * time.Second

// claim writes in one transaction that this node runs the candidates. Some results may be empty: these
// jobs do not wait any more.
func (q *Queue) claim(ctx context.Context, all []candidate, now time.Time) ([]claimed, error) {
	// If ctx ended the commit, its result would be unknown, and claimed jobs would not be run.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), claimTimeout)
	defer cancel()
	var results []claimed
	_, err := q.store.Update(ctx, func(tx *store.Tx) error {
		results = make([]claimed, len(all))
		for i, c := range all {
			if err := q.claimOne(tx, c, now, &results[i]); err != nil {
				return fmt.Errorf("claim job %s: %w", c.id, err)
			}
		}
		return nil
	})
	return results, err
}

func (q *Queue) claimOne(tx *store.Tx, c candidate, now time.Time, result *claimed) error {
	r, err := read(tx, c.id)
	switch {
	case errors.Is(err, ErrNotFound):
		return nil
	case errors.Is(err, errUnreadable):
		result.unreadable = err
		return nil
	}
	if err != nil || r.State != Waiting || r.Due > timeOf(now) {
		return err
	}
	if h, limited := countOf(&r.Job, c.declared); limited {
		if r.Slot, err = q.takeSlot(tx, h, c.declared.Concurrency.Max, r.ID); err != nil {
			return err
		}
		if r.Slot == nil {
			result.blocked = &h
			return nil
		}
	}
	if err := tx.Delete(r.waitingKey()); err != nil {
		return err
	}
	r.State, r.Group, r.Node, r.Lease = Running, nil, tx.Node(), timeOf(now.Add(q.lease(c.declared)))
	r.Attempt++
	value, err := r.encode()
	if err != nil {
		return err
	}
	result.job = &Claimed{Job: &r.Job, Declared: c.declared, record: r, stored: value}
	result.job.lost, result.job.lose = context.WithCancel(context.Background())
	lease := append(binary.BigEndian.AppendUint64(nil, uint64(r.Lease)), r.Node...)
	return errors.Join(tx.Set(recordKey(r.ID), value), tx.Set(runningKey(r.ID), lease))
}

// takeSlot takes a free slot of a concurrency limit, and returns its key; nil if none is free.
func (q *Queue) takeSlot(tx *store.Tx, h hash, slots int, id string) ([]byte, error) {
	for _, n := range q.slotsByUse(h, slots) {
		key := slotKey(h, n)
		_, err := tx.Get(key)
		if err == nil {
			continue
		}
		if !errors.Is(err, store.ErrNotFound) {
			return nil, err
		}
		return key, tx.Set(key, []byte(id))
	}
	return nil, nil
}

func slotKey(h hash, n int) []byte {
	return binary.BigEndian.AppendUint16(append([]byte(countPrefix), h[:]...), uint16(n))
}
