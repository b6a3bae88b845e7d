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
// usual time yet. An overdue task counts as having begun later, by overdueDelay times
// what it has used: tasks that come meanwhile go first, but it gets about a ninth of a
// slot's time, and ends.
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

// Handler is the queue of one handler's tasks. The zero value is ready to use.
type Handler struct {
	// longInARow counts the last tasks that were long, one after the other.
	longInARow atomic.Int32

	// The rest is guarded by Queue.mu.
	tasks []*Task       // that have a slot or wait for one
	used  time.Duration // of slots; not less than others had used when it came
	usual time.Duration // that a task uses; 0: not known
}

// AlwaysLong reports whether the next task is expected to need a slot.
func (h *Handler) AlwaysLong() bool { return h.longInARow.Load() >= alwaysLong }

// Task is a computation that is in the queue or may come to be. Its owner keeps it, and
// calls the Queue's methods for it from one goroutine at a time.
type Task struct {
	handler *Handler
	began   time.Duration
	used    time.Duration // of slots, up to since
	waited  time.Duration // for slots
	running bool          // it has a slot
	since   time.Duration // that it has the slot or waits for one
	ready   chan struct{} // receives when it gets a slot
}

// Reset makes t a new task of a handler that begins now. t must not be in the queue.
func (t *Task) Reset(h *Handler, now time.Duration) {
	if t.ready == nil {
		t.ready = make(chan struct{}, 1)
	}
	*t = Task{handler: h, began: now, ready: t.ready}
}

// Running reports whether the task has a slot.
func (t *Task) Running() bool { return t.running }

// RunsSince is the time since which the task has its slot.
func (t *Task) RunsSince() time.Duration { return t.since }

// Waited is how long the task has waited for slots.
func (t *Task) Waited() time.Duration { return t.waited }

// overdueLocked reports whether the task takes much longer than its handler's usually do.
func (t *Task) overdueLocked() bool {
	if t.handler.usual == 0 {
		return t.used > firstOverdue
	}
	return t.used > max(minOverdue, overdueFactor*t.handler.usual)
}

// rankLocked orders the tasks of a handler: the smallest goes first.
func (t *Task) rankLocked() time.Duration {
	if t.overdueLocked() {
		return t.began + overdueDelay*t.used
	}
	return t.began
}

// Queue hands out CPU slots. Any goroutine may use it.
type Queue struct {
	slots   int
	now     func() time.Duration
	waiting atomic.Int32

	mu     sync.Mutex
	free   int           // 0 while a task waits
	active []*Handler    // with tasks in the queue
	least  time.Duration // what a handler that comes counts as having used
}

// New returns a queue with so many slots. now is the clock; tasks and deadlines are
// measured by it.
func New(slots int, now func() time.Duration) *Queue {
	return &Queue{slots: slots, now: now, free: slots}
}

// Acquire waits for a slot. ErrFull means that the task would not be done by the deadline
// of ctx, by all that is known; another error is that of ctx.
func (q *Queue) Acquire(ctx context.Context, t *Task) error {
	left, now := timeLeft(ctx), q.now()
	q.mu.Lock()
	if t.used == 0 && t.waited == 0 && !q.fitsLocked(t.handler, left, now) {
		q.mu.Unlock()
		return ErrFull
	}
	q.joinLocked(t, now)
	if q.free > 0 {
		q.free--
		q.grantLocked(t, now)
		q.mu.Unlock()
		return nil
	}
	q.mu.Unlock()
	if err := q.wait(ctx, t); err != nil {
		return err
	}
	if q.tooLate(t, timeLeft(ctx)) {
		q.Release(t)
		return ErrFull
	}
	return nil
}

// tooLate reports whether a task that gets its first slot cannot be done in time, and
// only delays others.
func (q *Queue) tooLate(t *Task, left time.Duration) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return t.used == 0 && left < t.handler.usual && len(t.handler.tasks) > q.slots
}

// wait waits for a slot for a task that is in the queue.
func (q *Queue) wait(ctx context.Context, t *Task) error {
	q.waiting.Add(1)
	defer q.waiting.Add(-1)
	select {
	case <-t.ready:
		return nil
	case <-ctx.Done():
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	if t.running { // it got a slot meanwhile
		<-t.ready
		return nil
	}
	q.leaveLocked(t)
	t.waited += q.now() - t.since
	return ctx.Err()
}

// Contended reports whether a task waits for a slot.
func (q *Queue) Contended() bool { return q.waiting.Load() > 0 }

// Yield lets another task go first if one ranks before t, which has a slot, and waits for
// the next slot. The error is that of ctx.
func (q *Queue) Yield(ctx context.Context, t *Task) error {
	now := q.now()
	q.mu.Lock()
	q.chargeLocked(t, now)
	next := q.nextLocked()
	if next == nil || !goesBefore(next, t) {
		q.mu.Unlock()
		return nil
	}
	t.running = false
	t.since = now
	q.handOverLocked(next, now)
	q.mu.Unlock()
	return q.wait(ctx, t)
}

// goesBefore reports whether a task that waits goes before one that has a slot.
func goesBefore(waits, runs *Task) bool {
	if waits.handler == runs.handler {
		return waits.rankLocked() < runs.rankLocked()
	}
	return waits.handler.used < runs.handler.used
}

// Release gives the slot of t back and takes t out of the queue.
func (q *Queue) Release(t *Task) {
	now := q.now()
	q.mu.Lock()
	defer q.mu.Unlock()
	q.chargeLocked(t, now)
	t.running = false
	q.leaveLocked(t)
	if next := q.nextLocked(); next != nil {
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
	for _, other := range q.active {
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

func (q *Queue) joinLocked(t *Task, now time.Duration) {
	h := t.handler
	if len(h.tasks) == 0 {
		least := time.Duration(1<<63 - 1)
		for _, other := range q.active {
			least = min(least, other.usedLocked(now))
		}
		if len(q.active) > 0 {
			q.least = max(q.least, least)
		}
		h.used = max(h.used, q.least)
		q.active = append(q.active, h)
	}
	h.tasks = append(h.tasks, t)
	t.since = now
}

func (q *Queue) leaveLocked(t *Task) {
	h := t.handler
	at := slices.Index(h.tasks, t)
	h.tasks = slices.Delete(h.tasks, at, at+1)
	if len(h.tasks) == 0 {
		at := slices.Index(q.active, h)
		q.active = slices.Delete(q.active, at, at+1)
		if len(q.active) == 0 {
			q.least = max(q.least, h.used)
		}
	}
}

// usedLocked is what a handler has used of slots up to now.
func (h *Handler) usedLocked(now time.Duration) time.Duration {
	sum := h.used
	for _, t := range h.tasks {
		if t.running {
			sum += now - t.since
		}
	}
	return sum
}

// nextLocked returns the task that gets the next slot: the first waiting one of the
// handler that has used the least. nil: no task waits.
func (q *Queue) nextLocked() (next *Task) {
	for _, h := range q.active {
		if next != nil && h.used >= next.handler.used {
			continue
		}
		var first *Task
		for _, t := range h.tasks {
			if !t.running && (first == nil || t.rankLocked() < first.rankLocked()) {
				first = t
			}
		}
		if first != nil {
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
	q.grantLocked(t, now)
	t.ready <- struct{}{}
}

// chargeLocked counts what a task has used of its slot.
func (q *Queue) chargeLocked(t *Task, now time.Duration) {
	used := now - t.since
	t.used += used
	t.handler.used += used
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
