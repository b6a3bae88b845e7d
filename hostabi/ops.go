package hostabi

import (
	"context"
	"encoding/json"
	"log/slog"
	"unicode/utf8"

	"runner.example/entity"
	"runner.example/hostabi/abi"
	"runner.example/internal/diag"
	"runner.example/internal/fault"
)

// operation is one service operation of call. Its arguments are read to the end
// before it does anything, so a call with a mistake in them changes nothing.
type operation struct {
	// store: it is one of the run's store operations.
	store bool
	// run appends the result to out.JSON[:0]. The arguments are the guest's
	// memory: they are not kept.
	run func(c *Call, name string, args []byte, out *entity.Result) error
}

var operations = map[string]operation{
	"query":  {store: true, run: onRows},
	"get":    {store: true, run: onRows},
	"count":  {store: true, run: onRows},
	"insert": {store: true, run: onRows},
	"update": {store: true, run: onRows},
	"delete": {store: true, run: onRows},

	"apiKeys.create": {store: true, run: withArguments(createAPIKey)},
	"apiKeys.get":    {store: true, run: withArguments(getAPIKey)},
	"apiKeys.list":   {store: true, run: withArguments(listAPIKeys)},
	"apiKeys.rotate": {store: true, run: withArguments(rotateAPIKey)},
	"apiKeys.revoke": {store: true, run: withArguments(revokeAPIKey)},
	"secret":         {run: withArguments(readSecret)},
}

// withArguments makes an operation of a function over the members of its
// arguments, whose answer is written as JSON.
func withArguments(run func(c *Call, args *arguments) (any, error)) func(*Call, string, []byte, *entity.Result) error {
	return func(c *Call, _ string, args []byte, out *entity.Result) error {
		in, err := readArguments(args)
		if err != nil {
			return err
		}
		answer, err := run(c, in)
		if err != nil {
			return err
		}
		text, err := json.Marshal(answer)
		*out = entity.Result{JSON: append(out.JSON[:0], text...)}
		return err
	}
}

const (
	maxOpBytes       = 64
	maxArgumentBytes = 256 << 10
)

// call runs one operation. Its result, or its error, is what call_result reads.
func call(c *Call, g guest) int32 {
	name, ok1 := g.bytes(0)
	args, ok2 := g.bytes(2)
	if len(name) > maxOpBytes || len(args) > maxArgumentBytes { // before anything looks at them
		return c.fail("", fault.New(fault.TooLarge, "an operation's name may be %d bytes, its arguments %d", maxOpBytes, maxArgumentBytes))
	}
	if !ok1 || !ok2 || !utf8.Valid(name) {
		return c.fail("", fault.New(fault.Invalid, "the operation or its arguments do not lie in memory, or the operation is no text"))
	}
	if !c.move(len(name) + len(args)) {
		return c.fail("", fault.New(fault.Limit, "the request has moved more bytes between handler and host than it may"))
	}
	op, ok := operations[string(name)]
	if !ok {
		return c.fail("", fault.New(fault.Invalid, "unknown operation %q%s", name, diag.DidYouMean(string(name), operationNames())))
	}
	if op.store {
		if c.storeOps++; c.storeOps > c.limits.StoreOps {
			return c.fail("", fault.New(fault.Limit, "a request may use the store %d times", c.limits.StoreOps))
		}
	}
	if err := op.run(c, string(name), args, &c.result); err != nil {
		c.checkTime() // it may be what stopped the operation
		return c.fail(string(name), err)
	}
	c.called, c.succeeded = true, true
	return int32(len(c.result.JSON))
}

func operationNames() []string {
	var names []string
	for _, op := range abi.Ops() {
		names = append(names, op.Name)
	}
	return names
}

// fail makes err the result of a call and returns its errno. op is the
// operation, once known.
func (c *Call) fail(op string, err error) int32 {
	f := fault.Of(err)
	errno := Errno(f.Code)
	message := f.Detail
	if errno == abi.Internal {
		c.internal(op, err)
		message = "the host failed; its log says more under this request's id"
	} else if op != "" && message != "" {
		message = op + ": " + message
	}
	text, err := json.Marshal(struct {
		Code    string `json:"code"`
		Message string `json:"message"`
	}{errno.String(), message})
	if err != nil {
		text = nil // two strings are always JSON
	}
	c.result = entity.Result{JSON: append(c.result.JSON[:0], text...)}
	c.called, c.succeeded = true, false
	return int32(errno)
}

// internal logs a failure that no guest can do anything about.
func (c *Call) internal(act string, err error) abi.Errno {
	c.Host.Logger.LogAttrs(context.Background(), slog.LevelError, "host call failed", slog.String("requestId", c.Request.ID),
		slog.String("operation", act), slog.Any("error", err))
	return abi.Internal
}

func callResult(c *Call, g guest) int32 {
	room, ok := g.bytes(1)
	switch {
	case !ok:
		return int32(abi.Invalid)
	case !c.called:
		return int32(abi.NotFound)
	}
	return c.givePiece(room, c.result.JSON, g.number(0))
}
