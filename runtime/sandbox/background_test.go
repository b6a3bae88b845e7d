package sandbox_test

import (
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
