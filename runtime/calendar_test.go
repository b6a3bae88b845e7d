package runtime_test

import (
	"sync/atomic"
	"testing"
	"time"

	"runner.example/keystore"
	"runner.example/runtime"
	"runner.example/state/store"
)

// A runtime counts requests by the calendar that it is given: a minute passes when that says so.
func TestLimitsFollowTheCalendarOfTheRuntime(t *testing.T) {
	var now atomic.Int64
	now.Store(time.Date(2031, 2, 3, 4, 5, 0, 0, time.UTC).UnixNano())
	st, err := store.Open(store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = st.Close() })
	s := newEmptyServer(t, runtime.Options{
		Store: st, Keystore: openKeys(t, st, keystore.Options{}), Calendar: func() time.Time { return time.Unix(0, now.Load()) },
	})
	s.activate("", forClerks, addRoute)
	clerk := s.key("clerk")
	for range 3 {
		s.add(clerk, `200 {"ok":true}`)
	}
	s.add(clerk, "429 rate_limited")
	now.Add(int64(59 * time.Second))
	s.add(clerk, "429 rate_limited")
	now.Add(int64(time.Second))
	s.add(clerk, `200 {"ok":true}`)
}
