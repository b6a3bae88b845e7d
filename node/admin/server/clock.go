package server

import (
	"context"

	"runner.example/internal/fault"
	"runner.example/keystore"
)

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
