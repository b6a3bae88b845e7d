package wait

import (
	"context"
	"time"
)

// For waits for d and returns nil, or until ctx ends and returns its error. If both have ended, it is
// not defined which.
func For(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
