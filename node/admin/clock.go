package admin

import (
	"context"

	"runner.example/keystore"
)

// Clock returns the time that the node checks credentials against.
func (c *Client) Clock(ctx context.Context) (keystore.ClockState, error) {
	return ask(ctx, c, OpShowClock, none{})
}

// AcceptClock sets that time to the wall clock's. A node that serves does not set it back.
func (c *Client) AcceptClock(ctx context.Context) (keystore.ClockChange, error) {
	return ask(ctx, c, OpAcceptClock, none{})
}
