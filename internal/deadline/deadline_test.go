package deadline_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"runner.example/internal/deadline"
)

func TestADeadlineEndsAtItsTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		at := time.Now().Add(time.Second)
		d := deadline.New(context.Background(), at)
		defer d.Stop()
		if end, ok := d.Deadline(); !ok || !end.Equal(at) || d.Err() != nil || d.Value(0) != nil {
			t.Errorf("ends at %v (%v), error %v", end, ok, d.Err())
		}
		derived, cancel := context.WithTimeout(d, time.Minute)
		defer cancel()
		time.Sleep(time.Second - 1)
		select {
		case <-d.Done():
			t.Error("done too early")
		case <-derived.Done():
			t.Error("a context derived from it is done too early")
		default:
		}
		time.Sleep(time.Nanosecond)
		synctest.Wait()
		<-d.Done()
		<-derived.Done()
		if d.Err() != context.DeadlineExceeded || derived.Err() == nil || context.Cause(d) != context.DeadlineExceeded {
			t.Errorf("at its instant: %v, derived %v, cause %v", d.Err(), derived.Err(), context.Cause(d))
		}
	})
}

func TestAnUnusedDeadlineAllocatesOnce(t *testing.T) {
	at := time.Now().Add(time.Hour)
	allocs := testing.AllocsPerRun(10_000, func() {
		d := deadline.New(context.Background(), at)
		if d.Err() != nil {
			t.Error(d.Err())
		}
		d.Stop()
	})
	if allocs > 1 {
		t.Errorf("%v allocations", allocs)
	}
}

func TestADeadlineEndsWithItsParent(t *testing.T) {
	parent, cancel := context.WithCancel(context.Background())
	d := deadline.New(parent, time.Now().Add(time.Hour))
	defer d.Stop()
	cancel()
	if <-d.Done(); d.Err() != context.Canceled || context.Cause(d) != context.Canceled {
		t.Errorf("ends with %v, cause %v", d.Err(), context.Cause(d))
	}
}

func TestADeadlineThatIsStoppedHasEnded(t *testing.T) {
	d := deadline.New(context.Background(), time.Now().Add(time.Hour))
	derived, cancel := context.WithTimeout(d, time.Minute)
	defer cancel()
	d.Stop()
	<-derived.Done()
	<-d.Done()
	if d.Err() != context.Canceled || derived.Err() != context.Canceled {
		t.Errorf("stopped: %v, derived %v", d.Err(), derived.Err())
	}
	d = deadline.New(context.Background(), time.Now().Add(time.Hour))
	d.Stop()
	<-d.Done() // Done was not called before
}

func TestADeadlineMoves(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		d := deadline.New(context.Background(), start.Add(time.Second))
		defer d.Stop()
		derived, cancel := context.WithCancel(d)
		defer cancel()
		d.Move(start.Add(time.Minute))
		time.Sleep(time.Minute - 1)
		synctest.Wait()
		if d.Err() != nil || derived.Err() != nil {
			t.Errorf("it ends at its first time: %v, derived %v", d.Err(), derived.Err())
		}
		d.Move(start.Add(time.Minute + time.Second))
		d.Move(start.Add(time.Minute + time.Millisecond)) // earlier again
		<-derived.Done()
		if took := time.Since(start); took != time.Minute+time.Millisecond {
			t.Errorf("it ends after %v", took)
		}
		if d.Move(time.Now().Add(time.Hour)); d.Err() == nil {
			t.Error("a context that has ended begins again")
		}
	})
}
