package cluster

import (
	"context"
	"time"

	"runner.example/internal/clock"
	"runner.example/internal/fault"
	"runner.example/internal/wait"
)

// ErrNoMajority is the cause of a context of WithMajority that has ended.
var ErrNoMajority error = fault.New(fault.Unavailable,
	"a majority of the voters of the cluster cannot be reached: nothing is stored until it can, and this change may be stored then, so look before you repeat it")

const (
	// majorityWait is how long a commit may wait while no majority of the voters can be reached.
	majorityWait = 6 * time.Second
	// majorityPause is the pause between two questions whether one can.
	majorityPause = time.Second
)

// WithMajority returns a context that ends when no majority of the voters could be reached for 6 seconds:
// a commit would wait for one without a limit. It does not limit an operation otherwise. Call cancel.
func (n *Node) WithMajority(ctx context.Context) (_ context.Context, cancel context.CancelFunc) {
	ctx, end := context.WithCancelCause(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for reached := clock.Mark(); wait.For(ctx, majorityPause) == nil; {
			asked, stop := context.WithDeadline(ctx, reached.Add(majorityWait))
			_, err := n.client.Owner(asked) // a linearizable read
			stop()
			switch {
			case err == nil:
				reached = clock.Mark()
			case time.Since(reached) >= majorityWait:
				end(ErrNoMajority)
				return
			}
		}
	}()
	return ctx, func() {
		end(nil)
		<-done
	}
}
