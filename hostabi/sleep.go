package hostabi

import (
	"context"
	"time"

	"runner.example/internal/cost"
)

// sleep waits. Started beside other operations it is their common timeout, or the timer of
// a language that has timers.
func sleep(c *Call, text []byte) (work, error) {
	args, err := readArguments(text, &c.work)
	if err != nil {
		return nil, err
	}
	d := args.optionalTime("seconds", -1, 0, maxTime)
	if d < 0 {
		args.wrong("member %q is missing", "seconds")
	}
	if err := args.end(); err != nil {
		return nil, err
	}
	return func(ctx context.Context) (answer, error) {
		timer := time.NewTimer(d)
		defer timer.Stop()
		select {
		case <-timer.C:
			return func(out []byte, _ *cost.Meter) ([]byte, error) { return append(out, "{}"...), nil }, nil
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}, nil
}
