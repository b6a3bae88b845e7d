package cpuqueue_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"runner.example/runtime/cpuqueue"
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

// acquire waits for a slot for a task.
func (q queue) acquire(ctx context.Context, task *cpuqueue.Task, caller *cpuqueue.Caller) error {
	if waits, err := q.Join(ctx, task, caller); err != nil || !waits {
		return err
	}
	return q.Wait(ctx, task)
}

// yield lets others go first, and waits for the next slot.
func (q queue) yield(ctx context.Context, task *cpuqueue.Task) error {
	if !q.Yield(task) {
		return nil
	}
	return q.Wait(ctx, task)
}

// run has a task of h compute for so long, for a caller of its own, as a sandbox does.
func (q queue) run(ctx context.Context, h *cpuqueue.Handler, long time.Duration) error {
	return q.runFor(ctx, new(cpuqueue.Caller), h, long)
}

// runFor is run for a caller.
func (q queue) runFor(ctx context.Context, caller *cpuqueue.Caller, h *cpuqueue.Handler, long time.Duration) error {
	if h.AlwaysLong() && !q.Fits(ctx, h) {
		return cpuqueue.ErrFull
	}
	var task cpuqueue.Task
	task.Reset(h, q.now())
	err := q.acquire(ctx, &task, caller)
	for err == nil && long > 0 {
		step := min(long, 5*time.Millisecond)
		time.Sleep(step)
		if long -= step; long > 0 && q.Contended() {
			err = q.yield(ctx, &task)
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

// A task that waited in vain is out of the queue: it does not count as one that waits, and its turn goes
// to the next.
func TestATaskWhoseWaitEndsIsOutOfTheQueue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newQueue(1)
		var h cpuqueue.Handler
		tasks := make([]cpuqueue.Task, 3)
		for i := range tasks {
			tasks[i].Reset(&h, q.now())
		}
		if err := q.acquire(t.Context(), &tasks[0], new(cpuqueue.Caller)); err != nil || q.Contended() {
			t.Fatalf("%v, contended %v", err, q.Contended())
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := q.acquire(ctx, &tasks[1], new(cpuqueue.Caller)); err != context.DeadlineExceeded || tasks[1].Waited() != time.Second {
			t.Errorf("%v after %v", err, tasks[1].Waited())
		}
		if q.Contended() || q.Yield(&tasks[0]) {
			t.Error("a task that has left still waits")
		}
		got := make(chan error, 1)
		go func() { got <- q.acquire(t.Context(), &tasks[2], new(cpuqueue.Caller)) }()
		synctest.Wait()
		if !q.Contended() {
			t.Error("a task waits, and the queue is not contended")
		}
		q.Release(&tasks[0])
		if err := <-got; err != nil || q.Contended() {
			t.Errorf("%v, contended %v", err, q.Contended())
		}
		q.Release(&tasks[2])
	})
}

// A caller whose tasks have used much goes after others also when its tasks gave their slots back in
// between, as they do while they wait for something else.
func TestTasksThatReturnToTheQueueStayOverdue(t *testing.T) {
	now := time.Duration(0)
	q := cpuqueue.New(1, func() time.Duration { return now })
	var h cpuqueue.Handler
	var busy, other cpuqueue.Caller
	tasks := make([]cpuqueue.Task, 3)
	join := func(i int, caller *cpuqueue.Caller) {
		t.Helper()
		if waits, err := q.Join(t.Context(), &tasks[i], caller); err != nil || waits != (i != 0 || now > 0) {
			t.Fatalf("at %v task %d waits %v, %v", now, i, waits, err)
		}
	}
	runs := func(i int) {
		t.Helper()
		for k := range tasks {
			if tasks[k].Running() != (k == i) {
				t.Fatalf("at %v task %d runs: %v; want %d alone", now, k, tasks[k].Running(), i)
			}
		}
		if err := q.Wait(t.Context(), &tasks[i]); err != nil {
			t.Fatal(err)
		}
	}
	tasks[0].Reset(&h, now)
	tasks[1].Reset(&h, now)
	join(0, &busy)
	now += 100 * time.Millisecond
	for i := range 2 { // each gives its slot to the other one, and comes back
		if i == 0 {
			join(1, &busy)
		}
		q.Release(&tasks[i])
		runs(1 - i)
		join(i, &busy)
		now += 75 * time.Millisecond
	}
	tasks[2].Reset(&h, now)
	join(2, &other)
	// Neither task has used 200 ms, and both together have used 250.
	if !q.Yield(&tasks[0]) {
		t.Fatal("the slot is not handed over")
	}
	runs(2)
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
			for err := q.acquire(ctx, &task, new(cpuqueue.Caller)); err == nil && ctx.Err() == nil; err = q.yield(ctx, &task) {
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

// The same holds for tasks of one caller.
func TestEndlessTasksLetOthersOfTheirCallerHaveTheirSlots(t *testing.T) {
	const quick = 10 * time.Millisecond
	synctest.Test(t, func(t *testing.T) {
		q, handlers, caller := newQueue(1), make([]cpuqueue.Handler, 2), new(cpuqueue.Caller)
		ctx, stop := context.WithCancel(t.Context())
		var endless sync.WaitGroup
		for i := range 6 {
			endless.Go(func() { _ = q.runFor(ctx, caller, &handlers[i%2], time.Hour) })
		}
		time.Sleep(2 * time.Second)
		for _, h := range []*cpuqueue.Handler{new(cpuqueue.Handler), &handlers[0]} {
			for range 5 {
				began := time.Now()
				if err := q.runFor(ctx, caller, h, quick); err != nil || time.Since(began) > 5*quick {
					t.Errorf("a task of %s ends after %s with %v", quick, time.Since(began), err)
				}
			}
		}
		stop()
		endless.Wait()
	})
}

// A caller with endless tasks of many handlers does not delay another one's: a short task is done
// soon, in a handler of its own and in one of those, and a long one gets a third of the time.
func TestACallerWithManyHandlersLeavesTimeToOthers(t *testing.T) {
	const quick, others = 10 * time.Millisecond, 16
	for _, slots := range []int{1, 2} {
		synctest.Test(t, func(t *testing.T) {
			q, hog, other := newQueue(slots), new(cpuqueue.Caller), new(cpuqueue.Caller)
			ctx, stop := context.WithCancel(t.Context())
			var endless sync.WaitGroup
			handlers := make([]*cpuqueue.Handler, others)
			for i := range handlers {
				handlers[i] = new(cpuqueue.Handler)
				endless.Go(func() { _ = q.runFor(ctx, hog, handlers[i], time.Hour) })
			}
			time.Sleep(time.Second)
			takes := func(h *cpuqueue.Handler, long, want time.Duration) {
				t.Helper()
				began := time.Now()
				if err := q.runFor(ctx, other, h, long); err != nil || time.Since(began) > want {
					t.Errorf("%d slots: a task of %s takes %s, want %s at most: %v", slots, long, time.Since(began), want, err)
				}
			}
			for range 20 {
				takes(new(cpuqueue.Handler), quick, 3*quick)
				takes(handlers[3], quick, others*quick) // the other handlers have their share, too
			}
			takes(new(cpuqueue.Handler), time.Second, 3*time.Second)
			stop()
			endless.Wait()
		})
	}
}

// Whatever others do, each task ends: with its work done, refused, or at its deadline. A handler
// that few tasks come to, from callers with few tasks, gets at least its share.
func TestRandomTasksOfManyCallersAllEnd(t *testing.T) {
	rounds := uint64(40)
	if testing.Short() {
		rounds = 5
	}
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	for round := range rounds {
		synctest.Test(t, func(t *testing.T) {
			random := rand.New(rand.NewPCG(seed, round))
			slots := 1 + random.IntN(3)
			q := newQueue(slots)
			handlers, callers := make([]cpuqueue.Handler, 1+random.IntN(20)), make([]cpuqueue.Caller, 1+random.IntN(20))
			var running, most atomic.Int32
			var tasks sync.WaitGroup
			for range 150 {
				time.Sleep(time.Duration(random.IntN(20)) * time.Millisecond)
				h, caller := &handlers[random.IntN(len(handlers))], &callers[random.IntN(len(callers))]
				long, limit := time.Duration(1+random.IntN(200))*time.Millisecond, time.Duration(1+random.IntN(3000))*time.Millisecond
				if random.IntN(3) == 0 {
					long = time.Hour
				}
				tasks.Go(func() {
					ctx, cancel := context.WithTimeout(t.Context(), limit)
					defer cancel()
					var task cpuqueue.Task
					task.Reset(h, q.now())
					began := time.Now()
					err := q.acquire(ctx, &task, caller)
					for left := long; err == nil && left > 0 && ctx.Err() == nil; left -= 5 * time.Millisecond {
						most.Store(max(most.Load(), running.Add(1)))
						time.Sleep(5 * time.Millisecond)
						running.Add(-1)
						err = q.yield(ctx, &task)
					}
					if task.Running() {
						q.Release(&task)
					}
					q.Done(&task, err == cpuqueue.ErrFull, err == nil)
					if took := time.Since(began); took > limit+5*time.Millisecond {
						t.Errorf("round %d: a task with a limit of %s ends after %s: %v", round, limit, took, err)
					}
				})
			}
			const quick = 10 * time.Millisecond
			for range 10 {
				began := time.Now()
				if err := q.run(t.Context(), new(cpuqueue.Handler), quick); err != nil {
					t.Errorf("round %d: %v", round, err)
				}
				// Two turns, each after one of every other handler, and the steps of those that run.
				if took, share := time.Since(began), time.Duration(2*len(handlers)+4)*5*time.Millisecond; took > share {
					t.Errorf("round %d: with %d slots and %d handlers a task of %s takes %s, want %s at most", round, slots, len(handlers), quick, took, share)
				}
			}
			tasks.Wait()
			if int(most.Load()) > slots || q.Contended() {
				t.Errorf("round %d: %d tasks ran at once with %d slots; one still waits: %t", round, most.Load(), slots, q.Contended())
			}
		})
	}
}
