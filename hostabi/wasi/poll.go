package wasi

import (
	"math"
	"time"
)

// pollable is ready at a time, or when a response to a request is there, or always.
type pollable struct {
	at       time.Time       // zero: it is not of a clock
	response *futureResponse // nil: it is not of a response
}

func (*pollable) kind() string { return "pollable" }

// ready reports whether the pollable is ready, and else after which time it may be; never if it cannot
// become ready while the guest waits.
func (p *pollable) ready(now time.Time) (bool, time.Duration) {
	switch {
	case p.response != nil && p.response.done():
		return true, 0
	case p.response != nil && p.response.fetch == nil:
		return false, never
	case p.response != nil:
		return false, inFlight
	}
	left := p.at.Sub(now)
	return left <= 0, left
}

const (
	never    = time.Duration(math.MaxInt64)
	inFlight = never - 1 // it ends with a response
)

var pollFunctions = map[string]function{
	"[method]pollable.ready": func(r *run, a []any) any {
		is, _ := use[*pollable](r, a[0]).ready(r.call.Mark())
		return is
	},
	"[method]pollable.block": func(r *run, a []any) any {
		r.wait([]any{a[0]})
		return nil
	},
	"poll": func(r *run, a []any) any { return r.wait(a[0].([]any)) },
}

// wait waits until some pollables are ready, and returns their places.
func (r *run) wait(handles []any) (ready []any) {
	if len(handles) == 0 {
		r.call.Trap("poll without pollables")
	}
	for {
		now, first := r.call.Mark(), never
		for i, h := range handles {
			is, after := use[*pollable](r, h).ready(now)
			if is {
				ready = append(ready, uint64(i))
			}
			first = min(first, after)
		}
		switch {
		case len(ready) > 0:
			return ready
		case first == never:
			r.call.Trap("the component waits for the response to a request whose body it has not finished")
		}
		r.call.WaitFetch(first)
	}
}

// subscribe adds a pollable that is always ready, as a child of a resource.
func subscribe[T resource](r *run, a []any) any {
	use[T](r, a[0])
	return r.add(&pollable{}, a[0].(uint32))
}
