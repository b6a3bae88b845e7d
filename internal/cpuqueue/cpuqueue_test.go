package cpuqueue_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"runner.example/internal/cpuqueue"
)

// plenty is more time than any task of a test takes.
const plenty = time.Minute

var errLate = errors.New("the deadline has passed")

// queue runs tasks that only take time: what they get done depends on no machine.
type queue struct {
	*cpuqueue.Queue
	now func() time.Duration
}

func newQueue(slots int) queue {
	started := time.Now()
	now := func() time.Duration { return time.Since(started) }
	return queue{cpuqueue.New(slots, now), now}
}

// run has a task of h compute for so long, as a sandbox does.
func (q queue) run(ctx context.Context, h *cpuqueue.Handler, long time.Duration) error {
	if h.AlwaysLong() && !q.Fits(ctx, h) {
		return cpuqueue.ErrFull
	}
	var task cpuqueue.Task
	task.Reset(h, q.now())
	err := q.Acquire(ctx, &task)
	for err == nil && long > 0 {
		step := min(long, 5*time.Millisecond)
		time.Sleep(step)
		if long -= step; long > 0 && q.Contended() {
			err = q.Yield(ctx, &task)
		}
		if err == nil {
			err = ctx.Err()
		}
	}
	if err != nil && err != cpuqueue.ErrFull {
		err = errLate
	}
	if task.Running() {
		q.Release(&task)
	}
	q.Done(&task, err == cpuqueue.ErrFull, err == nil)
	return err
}

// runWithin is run with a deadline.
func (q queue) runWithin(limit time.Duration, h *cpuqueue.Handler, long time.Duration) error {
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	return q.run(ctx, h, long)
}

// With four times as many tasks as fit, as many are done as fit, even if a task needs most
// of its time; the others are refused.
func TestUnderOverloadTheCapacityIsUsed(t *testing.T) {
	const limit = 200 * time.Millisecond
	for _, slots := range []int{1, 2, 16} {
		for _, each := range []time.Duration{20 * time.Millisecond, 40 * time.Millisecond, 120 * time.Millisecond, 160 * time.Millisecond} {
			synctest.Test(t, func(t *testing.T) {
				q, h := newQueue(slots), new(cpuqueue.Handler)
				var done, refused, late atomic.Int32
				var tasks sync.WaitGroup
				began := time.Now()
				tick := time.NewTicker(each / time.Duration(4*slots))
				for range 200 * slots {
					<-tick.C
					tasks.Go(func() {
						switch q.runWithin(limit, h, each) {
						case nil:
							done.Add(1)
						case cpuqueue.ErrFull:
							refused.Add(1)
						default:
							late.Add(1)
						}
					})
				}
				tick.Stop()
				tasks.Wait()
				fit := int32(time.Since(began) * time.Duration(slots) / each)
				if done.Load() < fit*17/20 || refused.Load() == 0 || late.Load() > fit/10 {
					t.Errorf("%d slots, tasks of %s within %s: of %d that fit %d are done; %d are refused, %d late",
						slots, each, limit, fit, done.Load(), refused.Load(), late.Load())
				}
			})
		}
	}
}

// A handler whose tasks have become far longer than they were is served again after a
// while, though what was usual does not hold any more.
func TestAHandlerThatBecomesSlowIsStillServed(t *testing.T) {
	const usual, each, limit = 10 * time.Millisecond, 100 * time.Millisecond, 500 * time.Millisecond
	for _, slots := range []int{1, 2} {
		synctest.Test(t, func(t *testing.T) {
			q, h := newQueue(slots), new(cpuqueue.Handler)
			for range 3 {
				if err := q.run(t.Context(), h, usual); err != nil {
					t.Fatal(err)
				}
			}
			var done atomic.Int32
			var tasks sync.WaitGroup
			tick := time.NewTicker(each / time.Duration(4*slots))
			defer tick.Stop()
			began := time.Now()
			for done.Load() < 5 && time.Since(began) < plenty {
				<-tick.C
				tasks.Go(func() {
					if q.runWithin(limit, h, each) == nil {
						done.Add(1)
					}
				})
			}
			took := time.Since(began)
			tasks.Wait()
			if took > 10*time.Second {
				t.Errorf("%d slots: %d tasks are done within %s", slots, done.Load(), took)
			}
		})
	}
}

// A task that takes far longer than its handler's tasks usually do goes behind others,
// but not behind all that come for as long as they come.
func TestAHeavyTaskBesideLightOnesOfItsHandlerEnds(t *testing.T) {
	const light, heavy = 10 * time.Millisecond, time.Second
	for _, slots := range []int{1, 2} {
		synctest.Test(t, func(t *testing.T) {
			q, h := newQueue(slots), new(cpuqueue.Handler)
			ctx, cancel := context.WithTimeout(t.Context(), plenty)
			defer cancel()
			var stop atomic.Bool
			var longest atomic.Int64
			var callers sync.WaitGroup
			for range 8 {
				callers.Go(func() {
					for !stop.Load() {
						began := time.Now()
						if err := q.run(ctx, h, light); err != nil {
							t.Error(err)
							return
						}
						longest.Store(max(longest.Load(), int64(time.Since(began))))
					}
				})
			}
			time.Sleep(time.Second)
			began := time.Now()
			err := q.run(ctx, h, heavy)
			took := time.Since(began)
			stop.Store(true)
			callers.Wait()
			if err != nil || took > 10*heavy {
				t.Errorf("%d slots: the heavy task ends after %s: %v", slots, took, err)
			}
			if most := 20 * light; time.Duration(longest.Load()) > most {
				t.Errorf("%d slots: a light task took %s beside it, want %s at most", slots, time.Duration(longest.Load()), most)
			}
		})
	}
}

// Tasks without an end delay neither another handler's tasks nor, once they have had more
// than usual, those of their own handler.
func TestEndlessTasksLetOthersHaveTheirSlots(t *testing.T) {
	const quick = 10 * time.Millisecond
	synctest.Test(t, func(t *testing.T) {
		q, h, other := newQueue(1), new(cpuqueue.Handler), new(cpuqueue.Handler)
		ctx, stop := context.WithCancel(t.Context())
		var endless sync.WaitGroup
		for range 3 {
			endless.Go(func() { _ = q.run(ctx, h, time.Hour) })
		}
		time.Sleep(time.Second)
		for _, handler := range []*cpuqueue.Handler{other, h} {
			for range 5 {
				if err := q.runWithin(50*quick, handler, quick); err != nil {
					t.Errorf("a task of %s ends with %v", quick, err)
				}
			}
		}
		stop()
		endless.Wait()
	})
}

// Two handlers get equal shares of the slots from the moment when both want them. The
// earlier use of one alone does not count against it.
func TestHandlersShareSlotsEvenlyWhileBothWantThem(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newQueue(1)
		ctx, stop := context.WithCancel(t.Context())
		used := func(h *cpuqueue.Handler) (used time.Duration) {
			var task cpuqueue.Task
			task.Reset(h, q.now())
			for err := q.Acquire(ctx, &task); err == nil && ctx.Err() == nil; err = q.Yield(ctx, &task) {
				time.Sleep(5 * time.Millisecond)
				used += 5 * time.Millisecond
			}
			if task.Running() {
				q.Release(&task)
			}
			return used
		}
		var first, second time.Duration
		var both sync.WaitGroup
		both.Go(func() { first = used(new(cpuqueue.Handler)) })
		time.Sleep(400 * time.Millisecond)
		both.Go(func() { second = used(new(cpuqueue.Handler)) })
		time.Sleep(200 * time.Millisecond)
		stop()
		both.Wait()
		if first < 490*time.Millisecond || first > 510*time.Millisecond || second < 90*time.Millisecond || second > 110*time.Millisecond {
			t.Errorf("the first handler had %s and the second %s; want 500ms and 100ms", first, second)
		}
	})
}

// What is usual of a handler changes quickly: no task is refused for what others took long
// ago.
func TestAHandlerThatIsQuickAgainIsNotRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q, h := newQueue(1), new(cpuqueue.Handler)
		for range 20 {
			if err := q.runWithin(plenty, h, time.Second); err != nil {
				t.Fatal(err)
			}
		}
		const quick = 10 * time.Millisecond
		for range 4 {
			if err := q.runWithin(plenty, h, quick); err != nil {
				t.Fatal(err)
			}
		}
		var callers sync.WaitGroup
		for range 8 {
			callers.Go(func() {
				if err := q.runWithin(time.Second, h, quick); err != nil {
					t.Error(err)
				}
			})
		}
		callers.Wait()
	})
}
