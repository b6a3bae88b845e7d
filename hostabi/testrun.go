package hostabi

import (
	"bytes"
	"context"

	"runner.example/internal/cost"
)

// testOperation is the operation of the module of a test run, see Host.Test. It is not part of the ABI: handlers do
// not have it.
const testOperation = "test"

// lookUp returns the operation of that name, if the host has it.
func (h *Host) lookUp(name []byte) (operation, bool) {
	op, known := operationTable[string(name)]
	if !known && h.Test != nil && string(name) == testOperation {
		return operation{begin: runTest, maxArguments: maxRowBytes}, true
	}
	return op, known
}

func runTest(c *Call, args []byte) (work, error) {
	args = bytes.Clone(args) // they are guest memory
	return func(ctx context.Context) (answer, error) {
		result, err := c.Host.Test(ctx, args)
		if err != nil {
			return nil, err
		}
		return func(out []byte, _ *cost.Meter) ([]byte, error) { return append(out, result...), nil }, nil
	}, nil
}
