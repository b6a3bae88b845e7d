package outbound

import (
	"context"
	"errors"

	"runner.example/internal/fairqueue"
)

// reserved is the part of the slots that is for origins with few requests. While more are
// free, a caller that has none gets one, even if others have too many for the same origin.
const reserved = 8

// connectionSlots are for the requests that may have a connection. An origin and a caller
// each have their share (fairqueue.Share): an origin that never answers, and a handler
// that asks for too much, delay only themselves. Any goroutine may use them.
type connectionSlots struct {
	pool    *fairqueue.Pool[claim]
	count   int
	origins map[string]int // slots taken; this and callers are guarded by pool
	callers map[string]int
}

// claim is what a request asks a slot for.
type claim struct {
	slots          *connectionSlots
	origin, caller string
}

func newConnectionSlots(count int) *connectionSlots {
	return &connectionSlots{pool: fairqueue.New[claim](count), count: count, origins: map[string]int{}, callers: map[string]int{}}
}

// acquire takes a slot, and waits for it as long as ctx lasts. The claim is for release.
func (s *connectionSlots) acquire(ctx context.Context, origin, caller string) (claim, error) {
	c := claim{s, origin, caller}
	err := s.pool.Acquire(ctx, c, fairqueue.NoLimit)
	if errors.Is(err, context.DeadlineExceeded) {
		return c, refuse(Unavailable, "no connection is free; try again")
	}
	return c, err
}

func (c claim) release() { c.slots.pool.Release(c) }

// MayTake, Taken and Returned implement fairqueue.Claim.
func (c claim) MayTake(free int) bool {
	s := c.slots
	first := s.callers[c.caller] == 0 && free > s.count/reserved
	return (first || fairqueue.Share(s.origins[c.origin], free)) && fairqueue.Share(s.callers[c.caller], free)
}

func (c claim) Taken() {
	c.slots.origins[c.origin]++
	c.slots.callers[c.caller]++
}

func (c claim) Returned() {
	decrement(c.slots.origins, c.origin)
	decrement(c.slots.callers, c.caller)
}

func decrement(counts map[string]int, name string) {
	if counts[name]--; counts[name] == 0 {
		delete(counts, name)
	}
}
