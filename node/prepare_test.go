package node

import (
	"errors"
	"log/slog"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

func TestAPreparedReleaseIsKeptUntilItIsDroppedOrTwoMinutesPass(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := prepared{logger: slog.New(slog.DiscardHandler)}
		var mu sync.Mutex
		released := map[string]int{}
		keep := func(id, name string) {
			p.keep(id, func() error {
				mu.Lock()
				defer mu.Unlock()
				released[name]++
				return errors.New("only logged")
			})
		}
		want := func(when, name string, n int) {
			t.Helper()
			synctest.Wait()
			mu.Lock()
			defer mu.Unlock()
			if released[name] != n {
				t.Errorf("%s: %s was released %d times, want %d", when, name, released[name], n)
			}
		}
		keep("a", "first a")
		keep("b", "b")
		time.Sleep(time.Minute)
		keep("a", "second a")
		want("prepared again", "first a", 1)
		time.Sleep(time.Minute + time.Second)
		want("after two minutes", "b", 1)
		want("a minute after it was prepared again", "second a", 0)
		p.drop("a")
		want("activated", "second a", 1)
		p.drop("a")
		keep("c", "c")
		p.close()
		want("at shutdown", "c", 1)
		keep("d", "d")
		want("after shutdown", "d", 1)
		time.Sleep(time.Hour)
		mu.Lock()
		defer mu.Unlock()
		for name, n := range released {
			if n != 1 {
				t.Errorf("%s was released %d times", name, n)
			}
		}
	})
}
