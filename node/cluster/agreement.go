package cluster

import (
	"context"
	"sync"
)

// clockAgreement knows whether the clock of this node agrees with those of the other nodes. Until they are
// compared for the first time it does not.
type clockAgreement struct {
	mu      sync.Mutex
	agrees  bool
	changed chan struct{} // closed when agrees changes
}

// set sets whether the clocks agree.
func (c *clockAgreement) set(agrees bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.agrees != agrees {
		c.agrees = agrees
		close(c.changed)
		c.changed = make(chan struct{})
	}
}

// wait waits until the clocks agree, or do not. It returns false if ctx ends before.
func (c *clockAgreement) wait(ctx context.Context, agrees bool) bool {
	for {
		c.mu.Lock()
		now, changed := c.agrees, c.changed
		c.mu.Unlock()
		if now == agrees {
			return true
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return false
		}
	}
}
