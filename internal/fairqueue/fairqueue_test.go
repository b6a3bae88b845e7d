package fairqueue_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"runner.example/internal/fairqueue"
)

// group is a claim that only counts what its group holds.
type group struct{ held int }

// request is a claim of a handler, for a caller, that may have any free slot.
type request fairqueue.Parties

func (request) MayTake(int) bool             { return true }
func (request) Taken()                       {}
func (request) Returned()                    {}
func (r request) Parties() fairqueue.Parties { return fairqueue.Parties(r) }

func (g *group) MayTake(free int) bool      { return fairqueue.Share(g.held, free) }
func (g *group) Taken()                     { g.held++ }
func (g *group) Returned()                  { g.held-- }
func (g *group) Parties() fairqueue.Parties { return fairqueue.Parties{fmt.Sprintf("%p", g)} }

// takeAll takes as many slots for g as it gets at once, and returns their number.
func takeAll(t *testing.T, p *fairqueue.Pool[*group], g *group) (n int) {
	for p.Acquire(t.Context(), g, 0) == nil {
		n++
	}
	return n
}

func TestEachGroupLeavesSlotsToTheNext(t *testing.T) {
	for slots, want := range map[int][]int{
		1:   {1, 0},
		2:   {1, 1, 0},
		4:   {3, 1, 0},
		16:  {12, 3, 1, 0},
		128: {96, 24, 6, 1, 1, 0},
	} {
		p := fairqueue.New[*group](slots)
		var got []int
		for range want {
			got = append(got, takeAll(t, p, new(group)))
		}
		if !slices.Equal(got, want) {
			t.Errorf("of %d slots the groups get %v, want %v", slots, got, want)
		}
	}
}

func TestWaitersAreServedInTheOrderInWhichTheyCame(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, first := fairqueue.New[*group](1), new(group)
		if err := p.Acquire(t.Context(), first, 0); err != nil {
			t.Fatal(err)
		}
		var order []int
		var all sync.WaitGroup
		for i := range 5 {
			all.Go(func() {
				g := new(group)
				if err := p.Acquire(t.Context(), g, fairqueue.NoLimit); err != nil {
					t.Error(err)
				}
				order = append(order, i)
				p.Release(g)
			})
			synctest.Wait()
		}
		p.Release(first)
		all.Wait()
		if !slices.Equal(order, []int{0, 1, 2, 3, 4}) {
			t.Errorf("served in the order %v", order)
		}
	})
}

// The first waiter's group has its share, so the slot goes to the next one.
func TestAWaiterThatMayNotHaveTheSlotDoesNotBlockTheNext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, large, small, other := fairqueue.New[*group](4), new(group), new(group), new(group)
		takeAll(t, p, large)
		takeAll(t, p, other)
		var served []string
		var all sync.WaitGroup
		for _, row := range []struct {
			name string
			g    *group
		}{{"large", large}, {"small", small}} {
			all.Go(func() {
				if err := p.Acquire(t.Context(), row.g, fairqueue.NoLimit); err != nil {
					t.Error(err)
				}
				served = append(served, row.name)
			})
			synctest.Wait()
		}
		p.Release(other)
		synctest.Wait()
		if fmt.Sprint(served) != "[small]" {
			t.Errorf("served: %v, want [small]", served)
		}
		for range 3 {
			p.Release(large)
		}
		all.Wait()
	})
}

func TestEveryWaitEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := fairqueue.New[*group](1)
		takeAll(t, p, new(group))
		began := time.Now()
		if err := p.Acquire(t.Context(), new(group), time.Second); err != fairqueue.ErrTimeout || time.Since(began) != time.Second {
			t.Errorf("after %s: %v", time.Since(began), err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		began = time.Now()
		if err := p.Acquire(ctx, new(group), time.Minute); err != context.DeadlineExceeded || time.Since(began) != time.Second {
			t.Errorf("after %s: %v", time.Since(began), err)
		}
		if _, waiting := p.State(); p.Contended() || waiting != 0 {
			t.Errorf("contended %v with %d waiters, after all waits have ended", p.Contended(), waiting)
		}
		go func() { _ = p.Acquire(t.Context(), new(group), time.Minute) }()
		synctest.Wait()
		if _, waiting := p.State(); !p.Contended() || waiting != 1 {
			t.Errorf("contended %v with %d waiters, while one waits", p.Contended(), waiting)
		}
	})
}

// A handler or a caller with many waiters does not delay the first ones of others.
func TestWaitingPartiesAreServedInRounds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := fairqueue.New[request](1)
		if err := p.Acquire(t.Context(), request{}, 0); err != nil || p.Contended() {
			t.Fatal(err)
		}
		var served []string
		var all sync.WaitGroup
		come := func(handler, caller string) {
			all.Go(func() {
				r := request{handler, caller}
				if err := p.Acquire(t.Context(), r, fairqueue.NoLimit); err != nil {
					t.Error(err)
				}
				served = append(served, handler+caller)
				p.Release(r)
			})
			synctest.Wait()
		}
		for _, handler := range []string{"a", "b", "c", "d"} { // one caller, many handlers
			come(handler, "1")
		}
		for _, caller := range []string{"2", "3", "4"} { // one handler, many callers
			come("a", caller)
		}
		come("e", "5")
		come("e", "6")
		if !p.Contended() {
			t.Error("none waits")
		}
		p.Release(request{})
		all.Wait()
		if got := fmt.Sprint(served); got != "[a1 e5 b1 a2 e6 c1 a3 d1 a4]" || p.Contended() {
			t.Errorf("served in the order %s", got)
		}
	})
}

// Whatever the others are, a new caller of a new handler is served within the time that as many
// claims take as there are slots, and others of a first round.
func TestANewcomerIsServedSoonAmongRandomClaims(t *testing.T) {
	rounds := uint64(20)
	if testing.Short() {
		rounds = 4
	}
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	for round := range rounds {
		synctest.Test(t, func(t *testing.T) {
			random := rand.New(rand.NewPCG(seed, round))
			slots, callers, handlers := 1+random.IntN(8), 1+random.IntN(10), 1+random.IntN(10)
			const longest = 2 * time.Millisecond
			p := fairqueue.New[request](slots)
			ctx, stop := context.WithCancel(t.Context())
			var all sync.WaitGroup
			var held, most atomic.Int32
			for range 300 {
				who, what := fmt.Sprint(random.IntN(callers)), fmt.Sprint(random.IntN(handlers))
				takes := 1 + time.Duration(random.Int64N(int64(longest)))
				limit := 1 + time.Duration(random.Int64N(int64(50*longest)))
				all.Go(func() {
					for r := (request{what, who}); ctx.Err() == nil; {
						began := time.Now()
						if p.Acquire(ctx, r, limit) != nil {
							if waited := time.Since(began); waited > limit {
								t.Errorf("round %d: a claim waits for %s, want %s at most", round, waited, limit)
							}
							continue
						}
						most.Store(max(most.Load(), held.Add(1)))
						time.Sleep(takes)
						held.Add(-1)
						p.Release(r)
					}
				})
			}
			for i := range 5 {
				time.Sleep(20 * longest)
				began, r := time.Now(), request{fmt.Sprint("new", i), "new"}
				if err := p.Acquire(ctx, r, fairqueue.NoLimit); err != nil {
					t.Error(err)
				}
				first := min(callers, handlers) // that may have the same round
				if waited, want := time.Since(began), longest*time.Duration(1+(first+slots)/slots); waited > want {
					t.Errorf("round %d: with %d slots, %d callers and %d handlers a newcomer waits for %s, want %s at most", round, slots, callers, handlers, waited, want)
				}
				p.Release(r)
			}
			stop()
			all.Wait()
			if free, waiting := p.State(); int(most.Load()) > slots || free != slots || waiting != 0 || p.Contended() {
				t.Errorf("round %d: %d of %d slots were held; %d are free and %d wait in the end", round, most.Load(), slots, free, waiting)
			}
		})
	}
}

func TestForceTakesASlotBeyondTheLimit(t *testing.T) {
	p := fairqueue.New[request](1)
	r := request{}
	p.Force(r)
	p.Force(r)
	for want := -1; want < 1; want++ {
		if free, _ := p.State(); free != want || p.Acquire(t.Context(), r, 0) == nil {
			t.Errorf("%d slots are free, want %d", free, want)
		}
		p.Release(r)
	}
	if err := p.Acquire(t.Context(), r, 0); err != nil {
		t.Error(err)
	}
}

func TestAHolderThatReturnsGoesBeforeNewWaiters(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, returns, holds, comes := fairqueue.New[*group](1), new(group), new(group), new(group)
		if err := p.Acquire(t.Context(), holds, 0); err != nil {
			t.Fatal(err)
		}
		var order []string
		var all sync.WaitGroup
		all.Go(func() {
			if err := p.Acquire(t.Context(), comes, fairqueue.NoLimit); err != nil {
				t.Error(err)
			}
			order = append(order, "new")
			p.Release(comes)
		})
		synctest.Wait()
		all.Go(func() {
			p.Reacquire(t.Context(), returns)
			order = append(order, "returning")
			p.Release(returns)
		})
		synctest.Wait()
		p.Release(holds)
		all.Wait()
		if order[0] != "returning" {
			t.Errorf("served in the order %v", order)
		}
	})
}

// A holder whose context has ended may still clean up. Others do not get its slot until
// it is released.
func TestAHolderWhoseContextEndedReturnsAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, late, holds := fairqueue.New[*group](1), new(group), new(group)
		takeAll(t, p, holds)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		for range 2 { // while it waits, and before
			p.Reacquire(ctx, late)
			p.Release(holds)
			if n := takeAll(t, p, holds); n != 0 {
				t.Errorf("%d slots are free while the late holder cleans up", n)
			}
			p.Release(late)
			if n := takeAll(t, p, holds); n != 1 {
				t.Errorf("%d slots are free afterwards, want 1", n)
			}
		}
	})
}

// Whatever order the goroutines run in, the pool never hands out more slots than it has,
// and all come back.
func TestNoSlotIsLostOrHandedOutTwice(t *testing.T) {
	p, groups := fairqueue.New[*group](4), []*group{{}, {}, {}}
	var mu sync.Mutex
	held, most := 0, 0
	count := func(n int) {
		mu.Lock()
		defer mu.Unlock()
		held += n
		most = max(most, held)
	}
	var all sync.WaitGroup
	for i := range 60 {
		all.Go(func() {
			g := groups[i%len(groups)]
			for n := range 50 {
				if p.Acquire(t.Context(), g, time.Duration(n%3)*time.Microsecond) != nil {
					continue
				}
				count(1)
				count(-1)
				p.Release(g)
			}
		})
	}
	all.Wait()
	if most > 4 {
		t.Errorf("%d slots were held at once, of 4", most)
	}
	total := 0
	for range 5 {
		total += takeAll(t, p, new(group))
	}
	if total != 4 {
		t.Errorf("%d slots are free afterwards, want 4", total)
	}
}
