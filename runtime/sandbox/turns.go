package sandbox

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"runner.example/hostabi"
)

// A guest that has computed for longAfter is a long one: it goes on in turns
// only, and there is one turn fewer than there are processors. A short request
// then finds a processor free, and so do the network and the collector. Whoever
// has a turn is asked each turnTime whether somebody goes before it.
const (
	longAfter = 2 * time.Millisecond
	turnTime  = 5 * time.Millisecond
)

// patience is how much longer than usual a run of a handler may take before
// those behind it in line go first, leastPatience what it has in any case, and
// firstPatience what it has while nobody knows what is usual. From then on it
// counts as having begun later, by overdueDelay times what it has used: those that
// come meanwhile go first, but it has about a ninth of a turn's time, and ends.
const (
	patience      = 2
	leastPatience = 20 * time.Millisecond
	firstPatience = 200 * time.Millisecond
	overdueDelay  = 8
)

// longStreak is how many runs of a handler in a row have to be long until it is
// taken for granted of the next.
const longStreak = 8

// errCrowded ends a run that stood in line and cannot be done in time any more.
var errCrowded = errors.New("too many long requests came before it")

// lane is the line of one handler's long runs. Handlers share the turns evenly,
// whatever they have in line; within a lane the run that began first goes first,
// and keeps its turn until it is done. Were the turns shared by all runs instead,
// too many of them would all be late together, and none be done.
//
//	handler A   ▣ ▢ ▢ ▢      ▣ has a turn
//	handler B   ▢            ▢ waits: B is next, when A has had more than B
type lane struct {
	name string // of the module and the handler
	// guests have a place each, and resting ones, of so much memory, do not need it
	// at the moment; places guards them.
	guests       int
	resting      int
	restingBytes int64
	// streak counts the last runs that were long, one after the other.
	streak atomic.Int32

	// The rest is guarded by turns.
	line    []*runner     // who has a turn or waits for one
	served  time.Duration // by turns; no less than what others had when it came
	typical time.Duration // of turns that a run takes; 0: not known
}

// runner is a run that is in line, or may come to be. Its sandbox owns it; all
// but ready is guarded by turns.
type runner struct {
	lane    *lane
	began   time.Duration // the run
	used    time.Duration // of turns, up to since
	stood   time.Duration // in line without a turn
	holding bool
	since   time.Duration // that it has the turn, or waits for it
	ready   chan struct{} // told of a turn
}

// overdue says that the run takes much longer than its handler's usually do.
func (r *runner) overdue() bool {
	if r.lane.typical == 0 {
		return r.used > firstPatience
	}
	return r.used > max(leastPatience, patience*r.lane.typical)
}

// place is where the run stands in its lane: behind all with a smaller one.
func (r *runner) place() time.Duration {
	if r.overdue() {
		return r.began + overdueDelay*r.used
	}
	return r.began
}

// turns hands out turns to compute.
type turns struct {
	count   int
	now     func() time.Duration
	waiting atomic.Int32

	mu     sync.Mutex
	free   int           // none, when somebody waits
	active []*lane       // with somebody in line
	floor  time.Duration // what a lane that comes counts as having been served
}

func newTurns(processors int, now func() time.Duration) *turns {
	count := max(1, processors-1)
	return &turns{count: count, now: now, free: count}
}

// take waits for a turn. errCrowded says that the run would not be done by its
// deadline, as far as one can tell; another error is that of ctx.
func (t *turns) take(ctx context.Context, r *runner) error {
	left, now := timeLeft(ctx), t.now()
	t.mu.Lock()
	if r.used == 0 && r.stood == 0 && !t.fitsLocked(r.lane, left, now) {
		t.mu.Unlock()
		return errCrowded
	}
	t.joinLocked(r, now)
	if t.free > 0 {
		t.free--
		t.grantLocked(r, now)
		t.mu.Unlock()
		return nil
	}
	t.mu.Unlock()
	if err := t.wait(ctx, r); err != nil {
		return err
	}
	if t.tooLate(r, timeLeft(ctx)) {
		t.give(r)
		return errCrowded
	}
	return nil
}

// tooLate reports whether a run that gets its first turn keeps others from
// theirs for nothing.
func (t *turns) tooLate(r *runner, left time.Duration) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return r.used == 0 && left < r.lane.typical && len(r.lane.line) > t.count
}

// wait is for a runner that is in line.
func (t *turns) wait(ctx context.Context, r *runner) error {
	t.waiting.Add(1)
	defer t.waiting.Add(-1)
	select {
	case <-r.ready:
		return nil
	case <-ctx.Done():
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if r.holding { // it was given just now
		<-r.ready
		return nil
	}
	t.leaveLocked(r)
	r.stood += t.now() - r.since
	return ctx.Err()
}

// pass has a runner that holds a turn let others go first, if any goes before
// it, and wait for the next one.
func (t *turns) pass(ctx context.Context, r *runner) error {
	now := t.now()
	t.mu.Lock()
	t.chargeLocked(r, now)
	next := t.nextLocked()
	if next == nil || !goesBefore(next, r) {
		t.mu.Unlock()
		return nil
	}
	r.holding = false
	r.since = now
	t.tellLocked(next, now)
	t.mu.Unlock()
	return t.wait(ctx, r)
}

// goesBefore says whether a runner that waits goes before one with a turn.
func goesBefore(waits, holds *runner) bool {
	if waits.lane == holds.lane {
		return waits.place() < holds.place()
	}
	return waits.lane.served < holds.lane.served
}

// give gives a turn back, and takes the runner out of the line.
func (t *turns) give(r *runner) {
	now := t.now()
	t.mu.Lock()
	defer t.mu.Unlock()
	t.chargeLocked(r, now)
	r.holding = false
	t.leaveLocked(r)
	if next := t.nextLocked(); next != nil {
		t.tellLocked(next, now)
		return
	}
	t.free++
}

// end is told of a run of a handler that is over, though it may have its turn until
// its sandbox is restored: how it ended, and what time has passed since it came. It
// reports whether the run was ended, or was too late, because it stood in line.
func (t *turns) end(r *runner, outcome error, all time.Duration) (stood bool) {
	l, crowded := r.lane, errors.Is(outcome, errCrowded)
	t.settle(r)
	if r.used == 0 && r.stood == 0 && !crowded {
		if l.streak.Load() != 0 {
			l.streak.Store(0)
		}
		return false
	}
	if l.streak.Load() < longStreak {
		l.streak.Add(1)
	}
	if !crowded {
		t.learn(r, outcome == nil)
	}
	return crowded || errors.Is(outcome, hostabi.ErrTimeOver) && r.stood >= all/2
}

// settle counts what a runner has had of the turn that it has.
func (t *turns) settle(r *runner) {
	if r.holding { // which only its own goroutine changes then
		now := t.now()
		t.mu.Lock()
		defer t.mu.Unlock()
		t.chargeLocked(r, now)
	}
}

// learn keeps how long runs of the lane take. What one took that did not end well
// is the least that it takes, and counts for less: it may be one without an end.
func (t *turns) learn(r *runner, well bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch l := r.lane; {
	case l.typical == 0 && (well || r.used > leastPatience):
		l.typical = r.used
	case well && r.used < l.typical: // quickly, so that none is refused for nothing
		l.typical -= (l.typical - r.used) / 2
	case well:
		l.typical += (r.used - l.typical) / 4
	case r.used > l.typical:
		l.typical += (r.used - l.typical) / 8
	}
}

// fits reports whether a run of a lane that begins now can be done in the time
// that it has left.
func (t *turns) fits(l *lane, left time.Duration) bool {
	now := t.now()
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.fitsLocked(l, left, now)
}

func (t *turns) fitsLocked(l *lane, left, now time.Duration) bool {
	if l.typical == 0 || len(l.line) < t.count {
		return true // nobody knows, or it does not have to wait for its own kind
	}
	own, all, lanes := l.backlog(now), time.Duration(0), 1
	for _, other := range t.active {
		all += other.backlog(now)
		if other != l {
			lanes++
		}
	}
	wait := min(own*time.Duration(lanes), all) / time.Duration(t.count)
	return wait+l.typical+l.typical/4 <= left
}

// backlog is how much of turns those in line still need, if they are like the
// others were.
func (l *lane) backlog(now time.Duration) (sum time.Duration) {
	for _, r := range l.line {
		used := r.used
		if r.holding {
			used += now - r.since
		}
		sum += max(0, l.typical-used)
	}
	return sum
}

func (t *turns) joinLocked(r *runner, now time.Duration) {
	l := r.lane
	if len(l.line) == 0 {
		least := time.Duration(1<<63 - 1)
		for _, other := range t.active {
			least = min(least, other.servedBy(now))
		}
		if len(t.active) > 0 {
			t.floor = max(t.floor, least)
		}
		l.served = max(l.served, t.floor)
		t.active = append(t.active, l)
	}
	l.line = append(l.line, r)
	r.since = now
}

func (t *turns) leaveLocked(r *runner) {
	l := r.lane
	at := slices.Index(l.line, r)
	l.line = slices.Delete(l.line, at, at+1)
	if len(l.line) == 0 {
		at := slices.Index(t.active, l)
		t.active = slices.Delete(t.active, at, at+1)
		if len(t.active) == 0 {
			t.floor = max(t.floor, l.served)
		}
	}
}

// servedBy is what a lane has had of turns, the present ones included.
func (l *lane) servedBy(now time.Duration) time.Duration {
	sum := l.served
	for _, r := range l.line {
		if r.holding {
			sum += now - r.since
		}
	}
	return sum
}

// nextLocked is who gets the next turn: of the lane that has had the least of
// them, the first that waits.
func (t *turns) nextLocked() (next *runner) {
	for _, l := range t.active {
		if next != nil && l.served >= next.lane.served {
			continue
		}
		var first *runner
		for _, r := range l.line {
			if !r.holding && (first == nil || r.place() < first.place()) {
				first = r
			}
		}
		if first != nil {
			next = first
		}
	}
	return next
}

// grantLocked makes a runner in line one with a turn.
func (t *turns) grantLocked(r *runner, now time.Duration) {
	r.stood += now - r.since
	r.holding, r.since = true, now
}

// tellLocked is grantLocked for one that waits.
func (t *turns) tellLocked(r *runner, now time.Duration) {
	t.grantLocked(r, now)
	r.ready <- struct{}{}
}

// chargeLocked counts what a runner had of its turn.
func (t *turns) chargeLocked(r *runner, now time.Duration) {
	had := now - r.since
	r.used += had
	r.lane.served += had
	r.since = now
}

// wanted reports whether somebody waits for a turn.
func (t *turns) wanted() bool { return t.waiting.Load() > 0 }

// timeLeft is how long it is to the end of ctx.
func timeLeft(ctx context.Context) time.Duration {
	end, ok := ctx.Deadline()
	if !ok {
		return 1<<63 - 1
	}
	return time.Until(end)
}
