package admin

import (
	"context"

	"runner.example/internal/fault"
	"runner.example/keystore"
)

// Clock returns the time that the node checks credentials against.
func (c *Client) Clock(ctx context.Context) (keystore.ClockState, error) {
	return ask[keystore.ClockState](ctx, c, "clock.show", struct{}{})
}

// AcceptClock sets that time to the wall clock's. A node that serves does not set it back.
func (c *Client) AcceptClock(ctx context.Context) (keystore.ClockChange, error) {
	return ask[keystore.ClockChange](ctx, c, "clock.accept", struct{}{})
}

func (l *Local) showClock(context.Context, keystore.Authority, struct{}) (keystore.ClockState, error) {
	return l.Keys.Clock(), nil
}

func (l *Local) acceptClock(ctx context.Context, who keystore.Authority, _ struct{}) (keystore.ClockChange, error) {
	if now := l.Keys.Clock(); l.URL != "" && now.Wall.Before(now.Time) {
		return keystore.ClockChange{}, fault.New(fault.Conflict,
			"the clock is behind the credential time, which a running server cannot set back: stop the server, then run `runner clock accept`")
	}
	return l.Keys.AcceptClock(ctx, who)
}
