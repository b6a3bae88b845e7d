package hostabi

import (
	"context"

	"runner.example/internal/cost"
	"runner.example/internal/wait"
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
		if err := wait.For(ctx, d); err != nil {
			return nil, err
		}
		return func(out []byte, _ *cost.Meter) ([]byte, error) { return append(out, "{}"...), nil }, nil
	}, nil
}
