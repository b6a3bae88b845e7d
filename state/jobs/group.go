package jobs

import (
	"context"
	"math/rand/v2"
	"slices"
	"sort"

	"runner.example/state/store"
)

// entry is a waiting job of a group.
type entry struct {
	key []byte
	due Time // when this node may claim it
	id  string
}

// group is a group with waiting jobs.
type group struct {
	id           hash
	name, tenant string
	count        *hash // what its jobs are counted under; nil: they are not limited
	// buffer has its first jobs in order: those before the key bufferEnd. more says that there may be jobs
	// at bufferEnd or after it. arrived is the lowest key that was added during a scan.
	buffer    []entry
	bufferEnd string
	more      bool
	scanning  bool
	arrived   string
	// state says which list of the Queue has it. at and index are valid in later.
	state groupState
	at    Time
	index int
}

type groupState int

const (
	idle groupState = iota
	inLater
	inReady
	inBlocked
	inUnknown
)

// share returns the share of the slots that the jobs of the group take.
func (g *group) share() share { return shareOf(g.id, g.name, g.tenant) }

// shareOf returns the share of the jobs of a group.
func shareOf(group hash, name, tenant string) share {
	of := share{owner{tenant: tenant}, name}
	if tenant == "" {
		of.owner.callers = group[len(tenantHash{})]
	}
	return of
}

// insert adds a job that comes before bufferEnd.
func (g *group) insert(e entry) {
	n := sort.Search(len(g.buffer), func(i int) bool { return string(g.buffer[i].key) >= string(e.key) })
	switch {
	case n < len(g.buffer) && string(g.buffer[n].key) == string(e.key): // it was read again
	case len(g.buffer) >= 2*bufferedJobs:
		g.cut(string(e.key))
	default:
		g.buffer = slices.Insert(g.buffer, n, e)
	}
}

// cut drops the buffered jobs from a key on: they are read again.
func (g *group) cut(key string) {
	n := sort.Search(len(g.buffer), func(i int) bool { return string(g.buffer[i].key) >= key })
	g.buffer, g.bufferEnd, g.more = g.buffer[:n], key, true
}

// putLocked moves a group to another list. The caller removes it from blocked or unknown.
func (q *Queue) putLocked(g *group, to groupState, at Time) {
	switch g.state {
	case inLater:
		q.later.remove(g)
	case inReady:
		q.unreadyLocked(g)
	}
	g.state, g.at = to, at
	switch to {
	case inLater:
		q.later.add(g)
	case inReady:
		inner(inner(&q.ready, g.share().owner), g.name).put(g.id, g)
	case idle:
		if !g.more && len(g.buffer) == 0 && !g.scanning {
			delete(q.groups, g.id)
		}
	}
}

func (q *Queue) unreadyLocked(g *group) {
	of := g.share()
	names := inner(&q.ready, of.owner)
	groups := inner(names, g.name)
	groups.remove(g.id)
	if groups.empty() {
		names.remove(g.name)
	}
	if names.empty() {
		q.ready.remove(of.owner)
	}
}

// ---- claiming ----

// nextLocked returns the group whose job runs next. It moves this group to the front: it is the first group
// of the first name of the first owner, until rotateLocked is called or a group is removed.
func (q *Queue) nextLocked() *group {
	for range q.ready.len() {
		owner, names := q.ready.first()
		for range names.len() {
			name, groups := names.first()
			if q.slots.mayTake(share{owner, name}) {
				_, g := groups.first()
				return g
			}
			names.rotate()
		}
		q.ready.rotate()
	}
	return nil
}

// rotateLocked moves the group that nextLocked returned, with its name and owner, to the end.
func (q *Queue) rotateLocked() {
	_, names := q.ready.first()
	_, groups := names.first()
	groups.rotate()
	names.rotate()
	q.ready.rotate()
}

// choose returns which of the buffered jobs that are due is claimed: the first, and in a cluster any,
// so that nodes with a full queue do not claim the same ones.
func (q *Queue) choose(g *group, now Time) int {
	if q.node == "" {
		return 0
	}
	due := sort.Search(len(g.buffer), func(i int) bool { return g.buffer[i].due > now })
	return rand.IntN(max(1, due))
}

func (g *group) take(i int) entry {
	e := g.buffer[i]
	if i == 0 {
		g.buffer = g.buffer[1:]
	} else {
		g.buffer = append(g.buffer[:i:i], g.buffer[i+1:]...)
	}
	return e
}

func (q *Queue) blockLocked(g *group, by hash) {
	q.putLocked(g, inBlocked, 0)
	q.blocked[by] = append(q.blocked[by], g)
}

// fillLocked reads the next jobs of a group. It unlocks the queue meanwhile.
func (q *Queue) fillLocked(ctx context.Context, g *group) error {
	from, seen := g.bufferEnd, q.seen
	g.scanning, g.arrived, g.more = true, "", false
	q.mu.Unlock()
	entries, whole, err := q.scan(ctx, g, from, seen)
	q.mu.Lock()
	g.scanning = false
	if err != nil {
		g.more = true
		return err
	}
	if g.bufferEnd < from { // cut meanwhile
		return nil
	}
	g.buffer = append(g.buffer, entries...) // behind those that came meanwhile
	if len(entries) > 0 {
		g.bufferEnd = string(append(entries[len(entries)-1].key, 0))
	}
	g.more = g.more || !whole
	if g.arrived != "" && g.arrived < g.bufferEnd {
		g.cut(g.arrived)
	}
	return nil
}

// scan reads some waiting jobs of a group from a key on, after a commit can be read. whole reports that
// these are all.
func (q *Queue) scan(ctx context.Context, g *group, from string,
	seen store.Seq) (entries []entry, whole bool, err error) {
	if err := q.store.WaitFor(ctx, seen); err != nil {
		return nil, false, err
	}
	err = q.store.View(ctx, func(tx *store.Tx) error {
		for item, err := range tx.Scan([]byte(waitingPrefix+string(g.id[:])), []byte(from), false) {
			if err != nil {
				return err
			}
			if len(entries) == bufferedJobs {
				return nil
			}
			_, due, id, ok := readWaiting(item.Key)
			w, readable := decodeWaiting(item.Value)
			if !ok || !readable {
				q.logNotWaiting(item.Key)
				continue
			}
			entries = append(entries, entry{append([]byte(nil), item.Key...), q.claimable(due, w.origin), string(id)})
		}
		whole = true
		return nil
	})
	return entries, whole, err
}
