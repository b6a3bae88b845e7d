package longwork_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"runner.example/hostabi/longwork"
	"runner.example/internal/fairqueue"
	"runner.example/internal/fault"
)

func TestNoMoreComputationsRunThanThereAreSlots(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slots := longwork.New(longwork.Options{Parallel: 3, QueueWait: time.Hour})
		var running, most atomic.Int32
		ended := make(chan error, 20)
		for i := range 20 {
			group := string(rune('a' + i%4))
			go func() {
				_, err := slots.Run(t.Context(), fairqueue.Parties{group}, func() error {
					n := running.Add(1)
					for before := most.Load(); n > before && !most.CompareAndSwap(before, n); before = most.Load() {
					}
					time.Sleep(time.Second)
					running.Add(-1)
					return nil
				})
				ended <- err
			}()
			synctest.Wait() // one after the other
		}
		for range 20 {
			if err := <-ended; err != nil {
				t.Error(err)
			}
		}
		slots.Close()
		if free, waiting := slots.State(); most.Load() != 3 || free != 3 || waiting != 0 {
			t.Errorf("%d at once; %d free and %d waiting afterwards", most.Load(), free, waiting)
		}
	})
}

func TestOneGroupLeavesASlotToTheOthers(t *testing.T) {
	for name, parties := range map[string]func(i int) fairqueue.Parties{
		"one handler": func(i int) fairqueue.Parties { return fairqueue.Parties{"flood", fmt.Sprint(i)} },
		"one caller":  func(i int) fairqueue.Parties { return fairqueue.Parties{fmt.Sprint(i), "flood"} },
	} {
		synctest.Test(t, func(t *testing.T) {
			slots := longwork.New(longwork.Options{Parallel: 4})
			hold := make(chan struct{})
			for i := range 10 {
				go func() { _, _ = slots.Run(t.Context(), parties(i), func() error { <-hold; return nil }) }()
			}
			synctest.Wait()
			if _, err := slots.Run(t.Context(), fairqueue.Parties{"other", "other"}, func() error { return nil }); err != nil {
				t.Errorf("%s: another group does not run beside a flood: %v", name, err)
			}
			close(hold)
			synctest.Wait()
			slots.Close()
		})
	}
}

func TestAComputationWaitsForALimitedTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slots := longwork.New(longwork.Options{Parallel: 1, QueueWait: 5 * time.Second})
		hold := make(chan struct{})
		go func() { _, _ = slots.Run(t.Context(), fairqueue.Parties{"a"}, func() error { <-hold; return nil }) }()
		synctest.Wait()
		began := time.Now()
		_, err := slots.Run(t.Context(), fairqueue.Parties{"b"}, func() error { t.Error("it runs"); return nil })
		if fault.CodeOf(err) != fault.Unavailable || time.Since(began) != 5*time.Second || !strings.Contains(err.Error(), "[password] parallel") {
			t.Errorf("after %s: %v", time.Since(began), err)
		}
		close(hold)
		slots.Close()
	})
}

func TestTheEndOfTheRequestEndsTheWaitAndNotTheComputation(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slots := longwork.New(longwork.Options{Parallel: 1})
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		ended := false
		_, err := slots.Run(ctx, fairqueue.Parties{"a"}, func() error { time.Sleep(time.Minute); ended = true; return nil })
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("it ended with %v", err)
		}
		if free, _ := slots.State(); free != 0 {
			t.Error("the slot is free while the computation goes on")
		}
		slots.Close()
		if free, _ := slots.State(); !ended || free != 1 {
			t.Errorf("after Close: ended %t, %d free", ended, free)
		}
	})
}

func TestAPanicIsAnError(t *testing.T) {
	slots := longwork.New(longwork.Options{Parallel: 1})
	for range 2 { // the slot is free again
		if _, err := slots.Run(t.Context(), fairqueue.Parties{"a"}, func() error { panic("boom") }); err == nil || !strings.Contains(err.Error(), "boom") {
			t.Errorf("a panic ends with %v", err)
		}
	}
}

func TestTheTimeIsThatOfTheComputationAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slots := longwork.New(longwork.Options{Parallel: 1})
		go func() {
			_, _ = slots.Run(t.Context(), fairqueue.Parties{"a"}, func() error { time.Sleep(2 * time.Second); return nil })
		}()
		synctest.Wait()
		took, err := slots.Run(t.Context(), fairqueue.Parties{"b"}, func() error { time.Sleep(time.Second); return nil })
		if took != time.Second || err != nil {
			t.Errorf("it took %s: %v", took, err)
		}
		slots.Close()
	})
}
