package jobs

import (
	"context"
	"fmt"

	"runner.example/internal/caller"
	"runner.example/internal/fairqueue"
	"runner.example/internal/fault"
	"runner.example/state/store"
)

// counter counts the waiting jobs by owner and by name: those of a snapshot, and the changes since.
type counter struct {
	tally
	groups  map[hash]*waitingGroup // nil: it is not known yet
	changes []change               // before it is known
}

// waitingGroup is the number of waiting jobs of a group. A deleted key has no value, so the group keeps
// whose they are.
type waitingGroup struct {
	of share
	n  int
}

type change struct {
	seq     store.Seq
	group   hash
	of      share // unless deleted
	deleted bool
}

func newCounter() counter { return counter{tally: newTally(), groups: map[hash]*waitingGroup{}} }

// follow counts a change of a key of a waiting job. value is not looked at if deleted.
func (c *counter) follow(seq store.Seq, key, value []byte, deleted bool) {
	group, _, _, ok := readWaiting(key)
	w, readable := decodeWaiting(value)
	if !ok || !deleted && !readable {
		return
	}
	now := change{seq: seq, group: group, of: shareOf(group, w.name, w.tenant), deleted: deleted}
	if c.groups == nil {
		c.changes = append(c.changes, now)
	} else {
		c.count(now)
	}
}

// count counts a change. A deletion follows the insertion of the same key.
func (c *counter) count(now change) {
	g := c.groups[now.group]
	switch {
	case !now.deleted && g == nil:
		g = &waitingGroup{of: now.of}
		c.groups[now.group] = g
		fallthrough
	case !now.deleted:
		g.n++
		c.add(g.of, 1)
	case g != nil:
		c.add(g.of, -1)
		if g.n--; g.n == 0 {
			delete(c.groups, now.group)
		}
	}
}

// value is -1 if it is not known yet.
func (c *counter) value() int {
	if c.groups == nil {
		return -1
	}
	return c.held
}

// Full returns why no more jobs of the caller with that name may wait, or nil. Options.MaxWaiting limits the
// jobs of a tenant, MaxWaitingPerJob those of one name in it. Callers without a tenant share these numbers:
// one alone can have seven eighths of each. Full may be wrong by the jobs of transactions that are not
// committed, and it is nil before Count has returned. The code is Overloaded, and the text names the setting.
func (q *Queue) Full(by *caller.Caller, name string) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	of := share{owner{tenant: by.Tenant}, name}
	all, ofName := q.waiting.owners[of.owner], q.waiting.shares[of]
	if by.Tenant == "" {
		c := callerOf(by)
		of.owner.callers = callersOf(&c, false)
		all, ofName = q.waiting.noTenant, q.waiting.names[name]
	}
	switch {
	case q.waiting.groups == nil:
	case isFull(by, q.opt.MaxWaiting, all, q.waiting.owners[of.owner]):
		return fault.New(fault.Overloaded,
			"the tenant, or without one the caller, has too many waiting jobs ([jobs] max_waiting, %d): try again later", q.opt.MaxWaiting)
	case isFull(by, q.opt.MaxWaitingPerJob, ofName, q.waiting.shares[of]):
		return fault.New(fault.Overloaded,
			"the tenant, or without one the caller, has too many waiting jobs of the name %s ([jobs] max_waiting_per_job, %d): try again later",
			name, q.opt.MaxWaitingPerJob)
	}
	return nil
}

// isFull reports whether no more jobs may wait where limit may: all wait, of them own of the caller. 0 is no
// limit.
func isFull(by *caller.Caller, limit, all, own int) bool {
	switch {
	case limit == 0:
		return false
	case by.Tenant != "":
		return all >= limit
	}
	return !fairqueue.ShareTimes(own, limit-all, timesOfOwner)
}

// Count counts the waiting jobs once; from then on Counts and Full know how many there are. It reads all of
// their keys, so it is called beside Run.
func (q *Queue) Count(ctx context.Context) error {
	counted := newCounter()
	var snapshot store.Seq
	err := q.store.View(ctx, func(tx *store.Tx) (err error) {
		if snapshot, err = tx.Snapshot(); err != nil {
			return err
		}
		for item, err := range tx.Scan([]byte(waitingPrefix), nil, false) {
			if err != nil {
				return err
			}
			counted.follow(snapshot, item.Key, item.Value, false)
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("count the waiting jobs: %w", err)
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, c := range q.waiting.changes {
		if c.seq > snapshot {
			counted.count(c)
		}
	}
	q.waiting = counted
	return nil
}
