package outbound

import (
	"context"
	"errors"

	"runner.example/internal/fairqueue"
)

// reserved is the part of the slots that is for origins with few requests. While more are
// free, a handler that has none gets one, even if others have too many for the same origin.
const reserved = 8

// connectionSlots are for the requests that may have a connection. An origin, a handler and a
// caller of handlers each have their share (fairqueue.Share): an origin that never answers, and
// a handler or caller that asks for too much, delay only themselves. Any goroutine may use them.
type connectionSlots struct {
	pool    *fairqueue.Pool[claim]
	count   int
	origins map[string]int // slots taken; this and held are guarded by pool
	held    fairqueue.Held
}

// claim is what a request asks a slot for.
type claim struct {
	slots  *connectionSlots
	origin string
	by     fairqueue.Parties // the handler and its caller
}

func newConnectionSlots(count int) *connectionSlots {
	return &connectionSlots{pool: fairqueue.New[claim](count), count: count, origins: map[string]int{}}
}

// acquire takes a slot, and waits for it as long as ctx lasts. The claim is for release.
func (s *connectionSlots) acquire(ctx context.Context, origin string, by fairqueue.Parties) (claim, error) {
	c := claim{s, origin, by}
	if s.pool.Acquire(ctx, c, fairqueue.NoLimit) == nil {
		return c, nil
	}
	err := context.Cause(ctx)
	if errors.Is(err, context.DeadlineExceeded) {
		return c, refuse(Unavailable, "no connection is free; try again")
	}
	return c, err
}

func (c claim) release() { c.slots.pool.Release(c) }

// MayTake, Taken, Returned and Parties implement fairqueue.Claim.
func (c claim) MayTake(free int) bool {
	s := c.slots
	first := s.held[0][c.by[0]] == 0 && free > s.count/reserved
	return (first || fairqueue.Share(s.origins[c.origin], free)) && s.held.Share(c.by, free)
}

func (c claim) Taken() { c.count(1) }

func (c claim) Returned() { c.count(-1) }

func (c claim) Parties() fairqueue.Parties { return c.by }

func (c claim) count(n int) {
	c.slots.held.Count(c.by, n)
	if c.slots.origins[c.origin] += n; c.slots.origins[c.origin] == 0 {
		delete(c.slots.origins, c.origin)
	}
}
