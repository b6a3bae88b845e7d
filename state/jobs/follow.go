package jobs

import (
	"encoding/binary"
	"fmt"

	"runner.example/state/store"
)

// applied is what the store says of the runs of all nodes.
type applied struct {
	used    map[hash]map[int]bool // slots of concurrency
	running map[string]lease      // by id
	changed map[string]bool       // keys of leases and slots that changed while Open reads them; nil afterwards
}

func (q *Queue) signal() {
	select {
	case q.wake <- struct{}{}:
	default: // it has a value
	}
}

// ---- following the store ----

func (q *Queue) followWaiting(seq store.Seq, c store.Change) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.waiting.follow(seq, c.Key, c.Value, c.Deleted)
	if !c.Deleted {
		q.seen = seq
		q.addWaitingLocked(c.Key, c.Value)
	}
}

// loadGroup adds a group by its first waiting job, and reports whether that can be read.
func (q *Queue) loadGroup(key, value []byte) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if !q.addWaitingLocked(key, value) {
		return false
	}
	id, _, _, _ := readWaiting(key)
	q.groups[id].more = true
	return true
}

func (q *Queue) logNotWaiting(key []byte) {
	q.opt.Logger.Error("waiting job not readable", "key", fmt.Sprintf("%x", key))
}

// addWaitingLocked notes that a job waits, and reports whether its key and value can be read.
func (q *Queue) addWaitingLocked(key, value []byte) bool {
	id, due, job, ok := readWaiting(key)
	w, readable := decodeWaiting(value)
	if !ok || !readable {
		q.logNotWaiting(key)
		return false
	}
	at := q.claimable(due, w.origin)
	g, text := q.groups[id], string(key)
	if g == nil { // nothing waits in it
		g = &group{id: id, name: w.name, tenant: w.tenant, bufferEnd: text}
		if len(w.count) == hashBytes {
			g.count = new(hash)
			copy(g.count[:], w.count)
		}
		q.groups[id] = g
	}
	switch {
	case text < g.bufferEnd:
		g.insert(entry{[]byte(text), at, string(job)})
	case !g.more && !g.scanning && len(g.buffer) < bufferedJobs:
		g.buffer, g.bufferEnd = append(g.buffer, entry{[]byte(text), at, string(job)}), text+"\x00"
	default:
		g.more = true
		if g.scanning && (g.arrived == "" || text < g.arrived) {
			g.arrived = text
		}
	}
	if g.state == idle || g.state == inLater && at < g.at {
		q.putLocked(g, inLater, at)
		if q.later[0] == g {
			q.signal()
		}
	}
	return true
}

// claimable returns when this node may claim a job: jobs of another node later.
func (q *Queue) claimable(due Time, origin string) Time {
	if q.node != "" && origin != q.node {
		due += Time(originFirst.Milliseconds())
	}
	return due
}

func (q *Queue) followRunning(_ store.Seq, c store.Change) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.noteLocked(c.Key)
	id := string(c.Key[len(runningPrefix):])
	if run := q.running[id].run; run != nil && !run.ending.Load() { // another has changed the job
		run.lose()
	}
	if c.Deleted {
		delete(q.running, id)
		return
	}
	q.running[id] = readLease(c.Value)
	if q.running[id].node != q.node {
		q.signal() // the loop waits for its end
	}
}

func (q *Queue) followSlot(_ store.Seq, c store.Change) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.noteLocked(c.Key)
	q.setSlotLocked(c.Key, !c.Deleted)
}

// noteLocked remembers that a lease or a slot has changed, if Open has not ended.
func (q *Queue) noteLocked(key []byte) {
	if q.changed != nil {
		q.changed[string(key)] = true
	}
}

// setSlotLocked notes that a slot of a concurrency limit is taken, or is free.
func (q *Queue) setSlotLocked(key []byte, taken bool) {
	if len(key) != len(countPrefix)+hashBytes+2 {
		return
	}
	var h hash
	copy(h[:], key[len(countPrefix):])
	n := int(binary.BigEndian.Uint16(key[len(key)-2:]))
	if taken {
		if q.used[h] == nil {
			q.used[h] = map[int]bool{}
		}
		q.used[h][n] = true
		return
	}
	if delete(q.used[h], n); len(q.used[h]) == 0 {
		delete(q.used, h)
	}
	q.unblockLocked(h)
}

func (q *Queue) unblockLocked(h hash) {
	for _, g := range q.blocked[h] {
		q.putLocked(g, inReady, 0)
	}
	if q.blocked[h] != nil {
		delete(q.blocked, h)
		q.signal()
	}
}

// slotsByUse returns the numbers of the slots, those that seem free first.
func (q *Queue) slotsByUse(h hash, slots int) []int {
	q.mu.Lock()
	defer q.mu.Unlock()
	order := make([]int, 0, slots)
	for n := range slots {
		if !q.used[h][n] {
			order = append(order, n)
		}
	}
	for n := range slots {
		if q.used[h][n] {
			order = append(order, n)
		}
	}
	return order
}
