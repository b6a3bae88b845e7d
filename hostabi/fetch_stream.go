package hostabi

import (
	"context"
	"errors"
	"io"
	"strconv"
	"strings"
	"time"

	"runner.example/hostabi/octets"
	"runner.example/hostabi/outbound"
	"runner.example/internal/cost"
	"runner.example/internal/fault"
)

// A fetch with "stream" may have its result before all of the body has arrived. A goroutine then receives the rest, at
// most incomingPart bytes ahead of fetch.read.

const (
	// incomingPart is the most bytes that fetch.read returns.
	incomingPart = 64 << 10
	// incomingBytes is what an open body takes: a part that waits for the guest, and the buffer of the next one.
	incomingBytes = 2 * incomingPart
	// wholeTime is how long after its head a body may arrive to be part of the result of the fetch.
	wholeTime = 10 * time.Millisecond
	// readCalls is how many host calls a guest makes to read a part: three of pending operations, and call_result.
	readCalls = 4
)

// errBodyClosed: fetch.close came before the end of the body.
var errBodyClosed = fault.New(fault.Unavailable, "the body was closed before its end")

// incoming is a body that is being received. The goroutine that receives it ends with the run, with its close, or at its
// end, and closes the connection.
type incoming struct {
	body    *outbound.Body
	timeout time.Duration // of the head, and then of each pause
	alarm   *time.Timer   // ends the context after it
	ctx     context.Context
	cancel  context.CancelCauseFunc
	admit   func(bytes int) bool
	parts   chan []byte // holds one; closed at the end
	err     error       // when parts is closed; io.EOF: the body is whole
	first   []byte      // what has come with the head, and fetch.read has not taken
}

// open sends the request of a fetch with "stream". Its result has the whole body if that arrives at once.
func (c *Call) open(f flight) work {
	return func(ctx context.Context) (answer, error) {
		response, in, err := f.open(ctx)
		if err != nil {
			return nil, err
		}
		return func(out []byte, m *cost.Meter) ([]byte, error) {
			if in == nil {
				return appendResponse(out, response, f.byByte, m)
			}
			number, err := c.openIncoming(in)
			if err != nil {
				return nil, err
			}
			out, err = appendHead(out, response, f.byByte)
			out = strconv.AppendInt(append(out, `,"stream":`...), int64(number), 10)
			return append(out, '}'), err
		}, nil
	}
}

// open returns the response, and its body unless that is part of it.
func (f flight) open(ctx context.Context) (*outbound.Response, *incoming, error) {
	in := &incoming{timeout: f.timeout, admit: f.pending.reserve, parts: make(chan []byte, 1)}
	in.ctx, in.cancel = context.WithCancelCause(ctx)
	in.alarm = time.AfterFunc(f.timeout, func() { in.cancel(context.DeadlineExceeded) })
	response, err := in.begin(f)
	if err != nil {
		in.alarm.Stop()
		in.cancel(nil)
		return nil, nil, in.faultOf(err)
	}
	f.pending.running.Go(in.receive)
	most := f.client.MaxBody()
	if isEvents(response) || in.body.Length() > int64(most) {
		return response, in, nil
	}
	whole, err := in.gather(most, time.After(wholeTime))
	if err != nil || !whole {
		return response, in, err
	}
	response.Body = in.first
	return response, nil, nil
}

// begin sends the request when fewer than maxInFlight are under way.
func (in *incoming) begin(f flight) (response *outbound.Response, err error) {
	select {
	case f.pending.inFlight <- struct{}{}:
		defer func() { <-f.pending.inFlight }()
	case <-in.ctx.Done():
		return nil, context.Cause(in.ctx)
	}
	response, in.body, err = f.client.Open(in.ctx, f.by, f.request)
	return response, err
}

// faultOf returns the fault that the guest sees for an error.
func (in *incoming) faultOf(err error) error {
	if errors.Is(err, context.DeadlineExceeded) {
		return noAnswer(in.timeout)
	}
	return faultOf(err)
}

// isEvents reports whether a response is a stream of events, which are read one by one.
func isEvents(r *outbound.Response) bool {
	for _, h := range r.Headers {
		if h.Name == "content-type" {
			kind, _, _ := strings.Cut(h.Value, ";")
			return strings.EqualFold(strings.TrimSpace(kind), "text/event-stream")
		}
	}
	return false
}

// receive reads the body to its end, and closes it.
func (in *incoming) receive() {
	defer close(in.parts)
	defer in.cancel(nil)
	defer in.body.Close()
	defer in.alarm.Stop()
	size := int64(incomingPart)
	if n := in.body.Length(); n >= 0 {
		size = min(n+1, size) // one more, so that the read of the last byte finds the end
	}
	buffer := make([]byte, size)
	for {
		in.alarm.Reset(in.timeout)
		n, err := in.body.Read(buffer)
		in.alarm.Stop()
		if n > 0 && !in.admit(n) {
			n, err = 0, outbound.ErrRefused
		}
		if n > 0 && !in.hand(buffer[:n]) {
			err = context.Cause(in.ctx)
		}
		if err != nil {
			in.err = err
			return
		}
	}
}

// hand hands bytes over, with those that were not taken yet if there are few. It waits while there are many.
func (in *incoming) hand(bytes []byte) bool {
	var part []byte
	select {
	case part = <-in.parts:
	default:
	}
	if len(part)+len(bytes) > incomingPart {
		in.parts <- part // does not block: only this goroutine sends
		part = nil
	}
	select {
	case in.parts <- append(part, bytes...):
		return true
	case <-in.ctx.Done():
		return false
	}
}

// gather receives up to most bytes until late, and reports whether the body is whole then. An error is of the body.
func (in *incoming) gather(most int, late <-chan time.Time) (whole bool, err error) {
	for len(in.first) <= most {
		select {
		case part, more := <-in.parts:
			switch {
			case more && in.first == nil:
				in.first = part
			case more:
				in.first = append(in.first, part...)
			case in.err == io.EOF:
				return true, nil
			default:
				return false, in.faultOf(in.err)
			}
		case <-late:
			return false, nil
		}
	}
	return false, nil
}

// openIncoming gives a body a number, if there is memory for it.
func (c *Call) openIncoming(in *incoming) (number int, err error) {
	ops := c.pending
	if c.sandbox != nil && !c.sandbox.Hold(incomingBytes) {
		in.cancel(errBodyClosed)
		return 0, fault.New(fault.Unavailable, "the memory of all handlers is used up: a body that is read as it comes needs %d KiB", incomingBytes>>10)
	}
	if ops.incoming == nil {
		ops.incoming, ops.holds = map[int]*incoming{}, c.sandbox
	}
	ops.received++
	ops.incoming[ops.received] = in
	return ops.received, nil
}

// incomingBody returns the body that a guest knows by a number.
func (c *Call) incomingBody(args *arguments) (in *incoming, number int) {
	n, ok := args.optionalWhole("stream")
	if !ok {
		args.wrong("member %q is missing", "stream")
	}
	if c.pending == nil {
		return nil, 0
	}
	return c.pending.incoming[int(n)], int(n)
}

// readBody returns the next part of a body, or all of the rest.
func readBody(c *Call, text []byte) (work, error) {
	args, err := readArguments(text, &c.work)
	if err != nil {
		return nil, err
	}
	in, number := c.incomingBody(args)
	if in == nil {
		args.wrong("member %q is not the number of an open stream", "stream")
	}
	whole := args.optionalBool("whole")
	if err := args.end(); err != nil {
		return nil, err
	}
	part, rest := in.first, []byte(nil)
	if !whole && len(part) > incomingPart {
		part, rest = part[:incomingPart], part[incomingPart:]
	}
	in.first = rest
	client, pause := c.Host.Outbound, c.untilRefill()
	return func(ctx context.Context) (answer, error) {
		sleepFor(ctx, pause)
		part, end, err := in.next(part, whole, client)
		if err != nil {
			return nil, err
		}
		return func(out []byte, m *cost.Meter) ([]byte, error) {
			c.hostCalls -= readCalls // the service's speed and the moved bytes limit these
			if end {
				c.closeIncoming(number)
			}
			out, err := octets.Append(append(out, `{"data":`...), part, m)
			if end {
				out = append(out, `,"end":true`...)
			}
			return append(out, '}'), err
		}, nil
	}, nil
}

// next waits for the next part, unless there is one, or for the rest of the body after it.
func (in *incoming) next(part []byte, whole bool, client *outbound.Client) (_ []byte, end bool, err error) {
	most := client.MaxBody()
	tooLarge := whole && in.body.Length() > int64(most)
	for !tooLarge && (whole && len(part) <= most || len(part) == 0) {
		more, ok := <-in.parts
		switch {
		case ok && part == nil:
			part = more
		case ok:
			part = append(part, more...)
		case in.err == io.EOF:
			return part, true, nil
		default:
			return nil, false, in.faultOf(in.err)
		}
	}
	if whole {
		in.cancel(errBodyClosed)
		return nil, false, faultOf(client.TooLarge())
	}
	return part, false, nil
}

// untilRefill is how long a streamed answer that has moved many bytes waits before it reads more, so that it gets them
// with the budget of another second.
func (c *Call) untilRefill() time.Duration {
	if !c.streaming || c.moved <= c.limits.MovedBytes/2 {
		return 0
	}
	return min(max(0, c.second.Add(time.Second).Sub(c.now())), time.Second)
}

func sleepFor(ctx context.Context, d time.Duration) {
	if d == 0 {
		return
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

// closeBody ends a body that is not read to its end.
func closeBody(c *Call, args *arguments) (any, error) {
	in, number := c.incomingBody(args)
	if err := args.end(); err != nil {
		return nil, err
	}
	if in != nil {
		in.cancel(errBodyClosed)
		c.closeIncoming(number)
	}
	return struct{}{}, nil
}

func (c *Call) closeIncoming(number int) {
	delete(c.pending.incoming, number)
	if c.pending.holds != nil {
		c.pending.holds.Release(incomingBytes)
	}
}
