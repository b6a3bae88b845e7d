package longwork

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"time"

	"runner.example/internal/clock"
	"runner.example/internal/fairqueue"
	"runner.example/internal/fault"
	"runner.example/internal/settings"
)

// Options configure Slots. Fields with a toml tag are settings (package settings).
type Options struct {
	// Parallel is how many passwords are hashed at the same time; RSA key pairs are made
	// in the same slots. Others wait. 0: half as many as there are processors, at least one.
	Parallel int `toml:"password.parallel" max:"1024"`
	// QueueWait is how long a hash waits for its slot. Then the operation fails with
	// `unavailable`, which is 503 unless the handler catches it.
	QueueWait time.Duration `toml:"password.queue_wait" default:"5s" min:"1ms" max:"1m"`
}

// Slots are where long computations run. Any goroutine may use them.
type Slots struct {
	pool    *fairqueue.Pool[claim]
	wait    time.Duration
	held    fairqueue.Held
	running sync.WaitGroup
}

// New returns slots. A field of the options that is zero has its default.
func New(opt Options) *Slots {
	settings.FillZero(&opt)
	if opt.Parallel == 0 {
		opt.Parallel = max(1, runtime.GOMAXPROCS(0)/2)
	}
	return &Slots{pool: fairqueue.New[claim](opt.Parallel), wait: opt.QueueWait}
}

// claim asks for a slot for a handler and a caller.
type claim struct {
	slots   *Slots
	parties fairqueue.Parties
}

// MayTake, Taken, Returned and Parties implement fairqueue.Claim.
func (c claim) MayTake(free int) bool      { return c.slots.held.Share(c.parties, free) }
func (c claim) Taken()                     { c.slots.held.Count(c.parties, 1) }
func (c claim) Returned()                  { c.slots.held.Count(c.parties, -1) }
func (c claim) Parties() fairqueue.Parties { return c.parties }

// Run waits for a slot, runs compute in it, and returns how long that took. Slots are shared
// between the handlers and between the callers that parties name. When ctx ends, Run returns its
// error at once, and how long compute has run until then: it goes on in its slot, and the caller
// of Run must not touch what it writes.
func (s *Slots) Run(ctx context.Context, parties fairqueue.Parties,
	compute func() error) (took time.Duration, err error) {
	c := claim{s, parties}
	switch err := s.pool.Acquire(ctx, c, s.wait); {
	case errors.Is(err, fairqueue.ErrTimeout):
		return 0, fault.New(fault.Unavailable,
			"no slot for a long computation became free within %s ([password] parallel, queue_wait): try again", s.wait)
	case err != nil:
		return 0, err
	}
	done, began := make(chan error, 1), clock.Mark()
	s.running.Go(func() {
		defer s.pool.Release(c)
		done <- protected(compute)
	})
	select {
	case err = <-done:
	case <-ctx.Done():
		err = ctx.Err()
	}
	return time.Since(began), err
}

// protected turns a panic of compute into an error: it would end the process here.
func protected(compute func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("BUG: long computation: %v", p)
		}
	}()
	return compute()
}

// State returns the number of free slots and of computations that wait for one.
func (s *Slots) State() (free, waiting int) { return s.pool.State() }

// Close waits for the computations that run. Run must not be called any more.
func (s *Slots) Close() { s.running.Wait() }
