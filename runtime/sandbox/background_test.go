package sandbox_test

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"runner.example/runtime/sandbox"
)

// While requests run, background handlers rest for as long as they have run. Without requests they go on
// at once.
func TestBackgroundHandlersRestWhileRequestsRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const took = 10 * time.Millisecond
		s := sandbox.NewSlots(64, 1<<30)
		request := s.NewHandler()
		enter := func(h *sandbox.Handler) time.Duration {
			began := time.Now()
			if err := s.Enter(t.Context(), h, time.Minute); err != nil {
				t.Error(err)
			}
			return time.Since(began)
		}
		run := func() { // a background guest
			job := s.Background()
			enter(job)
			time.Sleep(took)
			s.Leave(job)
		}
		for range s.MaxBackground() {
			go run()
		}
		synctest.Wait()
		time.Sleep(took)
		synctest.Wait()

		// Without requests the next one begins at once.
		job := s.Background()
		if waited := enter(job); waited != 0 {
			t.Errorf("it waits for %s without requests", waited)
		}
		s.Leave(job)

		// A request that waits for a CPU slot counts.
		for range s.MaxBackground() {
			enter(job)
		}
		time.Sleep(took)
		for range s.MaxBackground() {
			s.Leave(job)
		}
		computes := s.NewHandler()
		enter(computes)
		s.Queue(computes)
		if err := s.Enter(t.Context(), computes, 0); err != nil {
			t.Error(err)
		}
		s.Leave(computes)
		began, entered := time.Now(), make(chan time.Duration)
		go func() { entered <- enter(job) }()
		time.Sleep(took / 2)
		s.Run(computes)
		s.Leave(computes)
		if waited := <-entered; waited != took/2 || time.Since(began) != took/2 {
			t.Errorf("beside a request that waits for a CPU slot until %s, it waits for %s", took/2, waited)
		}
		s.Leave(job)
		time.Sleep(time.Hour)
		for range s.MaxBackground() {
			go run()
		}
		synctest.Wait()
		time.Sleep(took)
		synctest.Wait()

		// Beside requests it waits until the others have rested. A request that ends lets it look again.
		enter(request)
		waited := make(chan time.Duration)
		go func() { waited <- enter(job) }()
		ended := time.Now()
		for range 20 {
			time.Sleep(took / 10)
			other := s.NewHandler()
			enter(other)
			s.Leave(other)
			synctest.Wait()
			select {
			case got := <-waited:
				if got != took {
					t.Errorf("it waits for %s beside requests, want %s", got, took)
				}
				s.Leave(job)
				s.Leave(request)
				return
			default:
			}
		}
		t.Errorf("it has not begun after %s", time.Since(ended))
	})
}

// With the last request, the wait ends.
func TestBackgroundHandlersGoOnAfterTheLastRequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := sandbox.NewSlots(64, 1<<30)
		request := s.NewHandler()
		jobs := make([]*sandbox.Handler, s.MaxBackground())
		for i := range jobs {
			jobs[i] = s.Background()
			if err := s.Enter(t.Context(), jobs[i], 0); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(time.Hour)
		if err := s.Enter(t.Context(), request, 0); err != nil {
			t.Fatal(err)
		}
		for _, job := range jobs {
			s.Leave(job)
		}
		begun := make(chan error)
		go func() { begun <- s.Enter(t.Context(), jobs[0], 0) }()
		synctest.Wait()
		select {
		case <-begun:
			t.Error("it begins while a request runs")
		default:
		}
		s.Leave(request)
		if err := <-begun; err != nil {
			t.Error(err)
		}
		s.Leave(jobs[0])
	})
}

// computeBeside has a background guest compute for so long, or until ctx ends. It returns how long it waited to begin.
func computeBeside(ctx context.Context, s sandbox.Slots, h *sandbox.Handler, long time.Duration) time.Duration {
	began := time.Now()
	if s.Enter(ctx, h, 0) != nil {
		return time.Since(began)
	}
	waited := time.Since(began)
	for ctx.Err() == nil && long > 0 {
		d := min(long, sandbox.YieldEvery)
		time.Sleep(d)
		long -= d
		if s.GoOn(ctx, h) != nil {
			break
		}
	}
	s.Leave(h)
	return waited
}

// However many background guests of one tenant compute, under many names and keys, one of another tenant begins
// soon, and has its share. While requests run, it shares half of the time.
func TestComputingBackgroundGuestsOfATenantLeaveTurnsToOthers(t *testing.T) {
	const long = 100 * time.Millisecond
	for name, row := range map[string]struct {
		requests    bool
		begin, last time.Duration // at most
	}{
		"alone":           {false, 2 * sandbox.YieldEvery, 2*long + 2*sandbox.YieldEvery},
		"beside requests": {true, 6 * sandbox.YieldEvery, 4*long + 20*sandbox.YieldEvery},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := sandbox.NewSlots(64, 1<<30)
				ctx, stop := context.WithCancel(t.Context())
				var all sync.WaitGroup
				if row.requests {
					request := s.NewHandler()
					if err := s.Enter(ctx, request, 0); err != nil {
						t.Fatal(err)
					}
					defer s.Leave(request)
				}
				same := s.Background()
				for i := range 8 * s.MaxBackground() {
					for range 3 {
						h := s.Background()
						if i == 0 {
							h = same
						}
						h = h.Of("acme", fmt.Sprint(i))
						all.Go(func() { computeBeside(ctx, s, h, time.Hour) })
					}
				}
				time.Sleep(10 * time.Second)
				for range 3 {
					for _, h := range []*sandbox.Handler{s.Background(), same} {
						began := time.Now()
						waited := computeBeside(ctx, s, h.Of("blue", "k"), long)
						if took := time.Since(began); waited > row.begin || took > row.last {
							t.Errorf("a guest of another tenant begins after %s and ends after %s, want %s and %s at most", waited, took, row.begin, row.last)
						}
						time.Sleep(time.Second)
					}
				}
				stop()
				all.Wait()
			})
		})
	}
}

// Guests that compute for long rest beside requests like those that end: they run for half of the time.
func TestComputingBackgroundGuestsRestWhileRequestsRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := sandbox.NewSlots(64, 1<<30)
		ctx, stop := context.WithCancel(t.Context())
		var all sync.WaitGroup
		for range s.MaxBackground() {
			all.Go(func() { computeBeside(ctx, s, s.Background(), time.Hour) })
		}
		time.Sleep(time.Minute) // does not count, because no request runs
		request, h := s.NewHandler(), s.Background()
		if err := s.Enter(ctx, request, 0); err != nil {
			t.Fatal(err)
		}
		stop()
		all.Wait()
		for range s.MaxBackground() - 1 {
			all.Go(func() { computeBeside(t.Context(), s, s.Background(), time.Second) })
		}
		began := time.Now()
		if computeBeside(t.Context(), s, h, time.Second); time.Since(began) < 19*time.Second/10 || time.Since(began) > 22*time.Second/10 {
			t.Errorf("a second of computing takes %s beside requests, want 2s", time.Since(began))
		}
		all.Wait()
		s.Leave(request)
	})
}

// Background guests that sleep hold no turn, however many there are, and begin only while there are places.
func TestSleepingBackgroundGuestsBeyondThePlacesHoldNoTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const count, size = 16, 1 << 10
		s := sandbox.NewSlots(count, 64*size)
		var all sync.WaitGroup
		var begun atomic.Int32
		for i := range 200 {
			h := s.Background().Of("acme", fmt.Sprint(i))
			all.Go(func() {
				if err := s.Enter(t.Context(), h, 0); err != nil {
					t.Error(err)
					return
				}
				begun.Add(1)
				s.Sleep(t.Context(), h, size, 10*time.Second)
				s.Leave(h)
			})
		}
		time.Sleep(time.Second)
		if n := int(begun.Load()); n < 48 || n > 48+s.MaxBackground() {
			t.Errorf("%d guests of one tenant sleep, want its share of memory, 48, and at most as many more as run at once", n)
		}
		if waited := computeBeside(t.Context(), s, s.Background().Of("blue", "k"), 10*time.Millisecond); waited != 0 {
			t.Errorf("a guest of another tenant waits for %s", waited)
		}
		all.Wait()
		if err := s.Idle(count); err != nil {
			t.Error(err)
		}
	})
}
