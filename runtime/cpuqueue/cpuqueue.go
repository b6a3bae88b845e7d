package cpuqueue

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// A task that has used more than overdueFactor times what is usual for its handler is
// overdue, but not before minOverdue, and after firstOverdue while the handler has no
// usual time yet. It counts as having begun later, by overdueDelay times what it has used: tasks
// that come meanwhile go first, but it gets about a ninth of a slot's time, and ends. The same
// holds for all tasks of a caller that have used so much together since the oldest of them came.
const (
	overdueFactor = 2
	minOverdue    = 20 * time.Millisecond
	firstOverdue  = 200 * time.Millisecond
	overdueDelay  = 8
)

// alwaysLong is how many tasks of a handler in a row must be long until the next one is
// expected to be long, too.
const alwaysLong = 8

// ErrFull ends a task that waits in the queue and cannot be done by its deadline.
var ErrFull = errors.New("the CPU queue is full")

// party is a handler or a caller. Queue.mu guards it.
type party struct {
	tasks []*Task       // that have a slot or wait for one
	used  time.Duration // slot time; at least what others had used when the party came
}

// Handler is the queue of one handler's tasks. The zero value is ready to use.
type Handler struct {
	// longInARow counts the last tasks that were long, one after the other.
	longInARow atomic.Int32

	party
	usual time.Duration // that a task uses; 0: not known; guarded by Queue.mu
}

// Caller is the caller of a request, for which tasks are done. The zero value is ready to use.
type Caller struct{ party }

// AlwaysLong reports whether the next task is expected to need a slot.
func (h *Handler) AlwaysLong() bool { return h.longInARow.Load() >= alwaysLong }

// Task is a computation that is in the queue or may come to be. Its owner keeps it, and
// calls the Queue's methods for it from one goroutine at a time.
type Task struct {
	handler *Handler
	caller  *Caller       // nil until the task joins the queue
	base    time.Duration // slot time that the caller had used then
	began   time.Duration
	used    time.Duration // slot time, up to since
	waited  time.Duration // for slots
	running bool          // it has a slot
	since   time.Duration // when it got the slot or began to wait for one
	ready   chan struct{} // receives when it gets a slot
}

// Reset makes t a new task of a handler that begins now. t must not be in the queue.
func (t *Task) Reset(h *Handler, now time.Duration) {
	if t.ready == nil {
		t.ready = make(chan struct{}, 1)
	}
	*t = Task{handler: h, began: now, ready: t.ready}
}

// Running reports whether the task, which does not wait, has a slot.
func (t *Task) Running() bool { return t.running }

// RunsSince is the time since which the task has its slot.
func (t *Task) RunsSince() time.Duration { return t.since }

// Waited is how long the task has waited for slots.
func (t *Task) Waited() time.Duration { return t.waited }

// Queue hands out CPU slots. Any goroutine may use it.
type Queue struct {
	slots   int
	now     func() time.Duration
	waiting atomic.Int32

	mu       sync.Mutex
	free     int // 0 while a task waits
	handlers parties
	callers  parties
}

// New returns a queue with so many slots. now is the clock; tasks and deadlines are
// measured by it.
func New(slots int, now func() time.Duration) *Queue {
	return &Queue{slots: slots, now: now, free: slots}
}

// Join takes a slot if one is free. Otherwise the task waits from now on, and Wait or Leave must
// follow. ErrFull means that a new task is not expected to be done by the deadline of ctx.
func (q *Queue) Join(ctx context.Context, t *Task, caller *Caller) (waits bool, err error) {
	left, now := timeLeft(ctx), q.now()
	q.mu.Lock()
	defer q.mu.Unlock()
	if t.used == 0 && t.waited == 0 && !q.fitsLocked(t.handler, left, now) {
		return false, ErrFull
	}
	q.handlers.join(&t.handler.party, t, now)
	q.callers.join(&caller.party, t, now)
	if t.since = now; t.caller == nil {
		t.caller, t.base = caller, caller.used
	}
	if q.free > 0 {
		q.free--
		q.grantLocked(t, now)
		return false, nil
	}
	q.waiting.Add(1)
	return true, nil
}

// Wait waits until a task that waits has a slot. ErrFull means that the task would not be done in
// time now; any other error is the error of ctx. After an error the task is not in the queue.
func (q *Queue) Wait(ctx context.Context, t *Task) error {
	select {
	case <-t.ready:
	case <-ctx.Done():
		if q.Leave(t) {
			return ctx.Err()
		}
	}
	if q.tooLate(t, timeLeft(ctx)) {
		q.Release(t)
		return ErrFull
	}
	return nil
}

// Leave ends the wait of a task. false: the task has got a slot meanwhile.
func (q *Queue) Leave(t *Task) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if t.running {
		<-t.ready
		return false
	}
	q.waiting.Add(-1)
	q.leaveLocked(t)
	t.waited += q.now() - t.since
	return true
}

// tooLate reports whether a task that gets its first slot cannot be done in time, and
// only delays others.
func (q *Queue) tooLate(t *Task, left time.Duration) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return t.used == 0 && left < t.handler.usual && len(t.handler.tasks) > q.slots
}

// Contended reports whether a task waits for a slot.
func (q *Queue) Contended() bool { return q.waiting.Load() > 0 }

// Yield gives the slot of t to another task if one ranks before t. Then t waits, as after Join.
func (q *Queue) Yield(t *Task) (waits bool) {
	now := q.now()
	q.mu.Lock()
	defer q.mu.Unlock()
	q.chargeLocked(t, now)
	o := q.orderLocked(now)
	next := q.nextLocked(o)
	if next == nil || !o.before(next, t) {
		return false
	}
	t.running = false
	t.since = now
	q.waiting.Add(1)
	q.handOverLocked(next, now)
	return true
}

// Release gives the slot of t back and takes t out of the queue.
func (q *Queue) Release(t *Task) {
	now := q.now()
	q.mu.Lock()
	defer q.mu.Unlock()
	q.chargeLocked(t, now)
	t.running = false
	q.leaveLocked(t)
	if next := q.nextLocked(q.orderLocked(now)); next != nil {
		q.handOverLocked(next, now)
		return
	}
	q.free++
}

// Done records how a task ended, so that the queue learns how long tasks usually take:
// refused with ErrFull, done (successfully), or neither. The task may keep its slot until
// its resources are cleaned up.
func (q *Queue) Done(t *Task, refused, done bool) {
	h := t.handler
	if t.running { // which only the caller changes now
		now := q.now()
		q.mu.Lock()
		q.chargeLocked(t, now)
		q.mu.Unlock()
	}
	if t.used == 0 && t.waited == 0 && !refused { // it was short
		if h.longInARow.Load() != 0 {
			h.longInARow.Store(0)
		}
		return
	}
	if h.longInARow.Load() < alwaysLong {
		h.longInARow.Add(1)
	}
	if !refused {
		q.learn(t, done)
	}
}

// learn updates what is usual for the handler. What a task used that was not done is the
// least that it takes, and counts for less: the task may be one without an end.
func (q *Queue) learn(t *Task, done bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	switch h := t.handler; {
	case h.usual == 0 && (done || t.used > minOverdue):
		h.usual = t.used
	case done && t.used < h.usual: // quickly, so that no task is refused without need
		h.usual -= (h.usual - t.used) / 2
	case done:
		h.usual += (t.used - h.usual) / 4
	case t.used > h.usual:
		h.usual += (t.used - h.usual) / 8
	}
}

// Fits reports whether a task of a handler that begins now can be done by the deadline
// of ctx.
func (q *Queue) Fits(ctx context.Context, h *Handler) bool {
	left, now := timeLeft(ctx), q.now()
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.fitsLocked(h, left, now)
}

func (q *Queue) fitsLocked(h *Handler, left, now time.Duration) bool {
	if h.usual == 0 || len(h.tasks) < q.slots {
		return true // not known, or no task of its own handler is before it
	}
	own, all, handlers := h.backlogLocked(now), time.Duration(0), 1
	for _, p := range q.handlers.active {
		other := p.tasks[0].handler
		all += other.backlogLocked(now)
		if other != h {
			handlers++
		}
	}
	wait := min(own*time.Duration(handlers), all) / time.Duration(q.slots)
	return wait+h.usual+h.usual/4 <= left
}

// backlogLocked is what the tasks in the queue still need of slots if they are as usual.
func (h *Handler) backlogLocked(now time.Duration) (sum time.Duration) {
	for _, t := range h.tasks {
		used := t.used
		if t.running {
			used += now - t.since
		}
		sum += max(0, h.usual-used)
	}
	return sum
}

// parties are all handlers, or all callers. Queue.mu guards them.
type parties struct {
	active []*party      // with tasks in the queue
	least  time.Duration // slot time that a party that comes counts as having used
}

func (ps *parties) join(p *party, t *Task, now time.Duration) {
	if len(p.tasks) == 0 {
		if len(ps.active) > 0 {
			ps.least = max(ps.least, ps.leastUsed(now))
		}
		p.used = max(p.used, ps.least)
		ps.active = append(ps.active, p)
	}
	p.tasks = append(p.tasks, t)
}

func (ps *parties) leave(p *party, t *Task) {
	at := slices.Index(p.tasks, t)
	p.tasks = slices.Delete(p.tasks, at, at+1)
	if len(p.tasks) == 0 {
		at := slices.Index(ps.active, p)
		ps.active = slices.Delete(ps.active, at, at+1)
		if len(ps.active) == 0 {
			ps.least = max(ps.least, p.used)
		}
	}
}

// leastUsed is the least slot time that an active party has used up to now.
func (ps *parties) leastUsed(now time.Duration) time.Duration {
	least := time.Duration(1<<63 - 1)
	for _, p := range ps.active {
		least = min(least, p.usedLocked(now))
	}
	return least
}

// usedLocked is the slot time that a party has used up to now.
func (p *party) usedLocked(now time.Duration) time.Duration {
	sum := p.used
	for _, t := range p.tasks {
		if t.running {
			sum += now - t.since
		}
	}
	return sum
}

func (q *Queue) leaveLocked(t *Task) {
	q.handlers.leave(&t.handler.party, t)
	q.callers.leave(&t.caller.party, t)
}

// order is the order of the tasks in the queue at one time.
type order struct {
	handler, caller time.Duration // the least slot time that a handler, and a caller, has used
}

// orderLocked returns the order now. With an empty queue it compares nothing.
func (q *Queue) orderLocked(now time.Duration) order {
	return order{q.handlers.leastUsed(now), q.callers.leastUsed(now)}
}

// ahead is how much more slot time the handler of a task, or its caller, has used than the one
// that has used the least: the larger of the two.
func (o order) ahead(t *Task) time.Duration {
	return max(t.handler.used-o.handler, t.caller.used-o.caller)
}

// rankLocked orders the tasks of a handler: the smallest goes first.
func (t *Task) rankLocked() (rank time.Duration) {
	limit := firstOverdue
	if usual := t.handler.usual; usual > 0 {
		limit = max(minOverdue, overdueFactor*usual)
	}
	rank = t.began
	if t.used > limit {
		rank += overdueDelay * t.used
	}
	all := t.caller.tasks
	if used := t.caller.used - all[0].base; len(all) > 1 && used > limit {
		rank += overdueDelay * used
	}
	return rank
}

// before reports whether a goes before b.
func (o order) before(a, b *Task) bool {
	if a.handler == b.handler {
		return a.rankLocked() < b.rankLocked()
	}
	first, second := o.ahead(a), o.ahead(b)
	if first != second {
		return first < second
	}
	return a.handler.used < b.handler.used // such as two handlers with the same caller
}

// nextLocked returns the task that gets the next slot: of the first waiting tasks of all handlers,
// the one that goes before the others. nil: no task waits.
func (q *Queue) nextLocked(o order) (next *Task) {
	for _, h := range q.handlers.active {
		var first *Task
		for _, t := range h.tasks {
			if !t.running && (first == nil || o.before(t, first)) {
				first = t
			}
		}
		if first != nil && (next == nil || o.before(first, next)) {
			next = first
		}
	}
	return next
}

// grantLocked gives a free slot to a task in the queue.
func (q *Queue) grantLocked(t *Task, now time.Duration) {
	t.waited += now - t.since
	t.running, t.since = true, now
}

// handOverLocked is grantLocked for a task that waits.
func (q *Queue) handOverLocked(t *Task, now time.Duration) {
	q.waiting.Add(-1)
	q.grantLocked(t, now)
	t.ready <- struct{}{}
}

// chargeLocked counts the slot time that a task has used.
func (q *Queue) chargeLocked(t *Task, now time.Duration) {
	used := now - t.since
	t.used += used
	t.handler.used += used
	t.caller.used += used
	t.since = now
}

// timeLeft is the time to the deadline of ctx.
func timeLeft(ctx context.Context) time.Duration {
	end, ok := ctx.Deadline()
	if !ok {
		return 1<<63 - 1
	}
	return time.Until(end)
}
