package wasi

import (
	"math"
	"time"

	"runner.example/hostabi"
	"runner.example/internal/clock"
)

// started is when the monotonic clock was one second, because some libraries take 0 for an error.
var started = clock.Mark()

// monotonic is the time of the monotonic clock in nanoseconds.
func (r *run) monotonic() uint64 { return r.call.Monotonic(started) }

var monotonicFunctions = map[string]function{
	"now":                func(r *run, _ []any) any { return r.monotonic() },
	"resolution":         constant(uint64(hostabi.ClockGrain)),
	"subscribe-duration": func(r *run, a []any) any { return r.timer(a[0].(uint64)) },
	"subscribe-instant": func(r *run, a []any) any {
		when := a[0].(uint64)
		return r.timer(when - min(when, r.monotonic()))
	},
}

// timer adds a pollable that is ready after some nanoseconds.
func (r *run) timer(after uint64) any {
	return r.add(&pollable{at: r.timeAfter(after)}, 0)
}

// timeAfter is the time after some nanoseconds.
func (r *run) timeAfter(n uint64) time.Time {
	const longest = 100 * 365 * 24 * time.Hour
	return r.call.Mark().Add(time.Duration(min(n, uint64(longest), math.MaxInt64)))
}

var wallClockFunctions = map[string]function{
	"now":        func(r *run, _ []any) any { return datetime(r.call.Now()) },
	"resolution": constant([]any{uint64(0), uint64(hostabi.ClockGrain)}),
}

// datetime is the record of that name. A time before 1970 is that of 1970.
func datetime(t time.Time) any {
	return []any{uint64(max(0, t.Unix())), uint64(t.Nanosecond())}
}

// The time zone is UTC.
var timezoneFunctions = map[string]function{
	"display":    constant([]any{int64(0), "UTC", false}),
	"utc-offset": constant(int64(0)),
}
