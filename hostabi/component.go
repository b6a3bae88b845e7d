package hostabi

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"math"
	"time"

	"github.com/tetratelabs/wazero/api"

	"runner.example/hostabi/abi"
	"runner.example/hostabi/outbound"
	"runner.example/hostabi/recording"
	"runner.example/internal/clock"
	"runner.example/internal/fault"
)

// What a package above implements the functions of components with.

// Extension is what a package above keeps in a Call for the functions that it implements.
type Extension interface {
	// End is called at the end of each run, also of one that did not use the extension.
	End()
}

// Extend keeps an extension in the Call, from run to run.
func (c *Call) Extend(e Extension) { c.extension = e }

// Extension returns that of Extend, or nil.
func (c *Call) Extension() Extension { return c.extension }

// Trap is what ends a run that has broken a rule of an interface, or has spent a budget.
type Trap struct{ Reason string }

func (t *Trap) Error() string { return t.Reason }

// Trap ends the run.
func (c *Call) Trap(format string, args ...any) { c.unwind(&Trap{fmt.Sprintf(format, args...)}) }

// Exit ends the run with an Exit.
func (c *Call) Exit(status uint32) { c.unwind(&Exit{status}) }

// Bind makes a function that guests call. It counts as a host call unless it is free. One
// too many, and a run that is over, end the run.
func Bind(free bool, run func(c *Call, memory api.Memory, stack []uint64)) api.GoModuleFunc {
	return bind(free, true, run)
}

// BindUntimed is Bind of a free function whose own time is not measured: reading the clock would take longer, and
// budgets limit what it copies.
func BindUntimed(run func(c *Call, memory api.Memory, stack []uint64)) api.GoModuleFunc {
	return bind(true, false, run)
}

func bind(free, timed bool, run func(c *Call, memory api.Memory, stack []uint64)) api.GoModuleFunc {
	return func(ctx context.Context, m api.Module, stack []uint64) {
		gc := guestOf(ctx)
		c := gc.call
		c.inside = true
		c.checkTime()
		if !free && !c.initializing {
			c.hostCalls++
		}
		if !free && c.streaming {
			c.refill()
		}
		switch {
		case c.stopping:
			c.Trap("the run is over")
		case !free && c.hostCalls > c.limits.HostCalls:
			c.Trap("a request may call the host at most %d times", c.limits.HostCalls)
		}
		if timed {
			gc.beginWork()
		}
		run(c, m.Memory(), stack)
		if timed {
			gc.endWork()
		}
		c.checkWork()
		c.inside = false
	}
}

// Preparing reports whether the guest runs without a request, to initialize itself.
func (c *Call) Preparing() bool { return c.initializing || c.Request == nil }

// CountMoved counts bytes that are copied between guest and host, or kept for the guest. It ends the
// run if they are too many.
func (c *Call) CountMoved(n int) {
	if !c.countMoved(n) {
		c.Trap("%s", errMoved.Detail)
	}
	_ = c.work.Spend(n / 4) // its error ends the run after the function
}

// MovedLeft is how many bytes CountMoved still admits.
func (c *Call) MovedLeft() int { return max(0, c.limits.MovedBytes-c.moved) }

// ResponseBytes is the limit of the answer's body.
func (c *Call) ResponseBytes() int { return c.limits.ResponseBytes }

// Now is the time that the guest sees, in steps of ClockGrain.
func (c *Call) Now() time.Time {
	c.readsClock = true
	now := c.now().Truncate(ClockGrain)
	if c.Draws == nil {
		return now
	}
	return time.Unix(0, c.Draws.Read(recording.Wall, now.UnixNano()))
}

// Monotonic is the time of the guest's monotonic clock in nanoseconds, which was one second when it started.
func (c *Call) Monotonic(started time.Time) uint64 {
	t := (time.Since(started) + time.Second).Truncate(ClockGrain)
	if c.Draws == nil {
		return uint64(t)
	}
	return uint64(c.Draws.Read(recording.Monotonic, int64(t)))
}

// Mark is the time for timers of components, as clock.Mark.
func (c *Call) Mark() time.Time {
	if c.Draws == nil {
		return clock.Mark()
	}
	return c.Draws.Mark()
}

// Random fills b.
func (c *Call) Random(b []byte) { c.fillRandom(b) }

// IsCommand reports whether the run is that of a command, between BeginProgram and EndProgram.
func (c *Call) IsCommand() bool { return c.program.running }

// Stdin is the body of the request of a command, and else empty.
func (c *Call) Stdin() []byte {
	if !c.program.running {
		return nil
	}
	body, _ := c.WholeBody()
	return body
}

// Variables calls add for each variable "NAME=value" of a command.
func (c *Call) Variables(add func(string)) {
	for v := range bytes.SplitSeq(bytes.TrimSuffix(c.program.env, []byte{0}), []byte{0}) {
		add(string(v))
	}
}

// Stdout writes the output of a command, which may be as long as an answer. Else it writes to the log, a record for each
// line, and never fails.
func (c *Call) Stdout() io.Writer {
	if c.program.running {
		return commandOutput{c}
	}
	return &c.stdout
}

// commandOutput is the output of a command.
type commandOutput struct{ *Call }

func (o commandOutput) Write(b []byte) (int, error) {
	p := &o.program
	n := min(len(b), p.most-len(p.out))
	p.out = append(p.out, b[:n]...)
	o.streamOutput()
	if n < len(b) {
		return n, fmt.Errorf("an answer may have %d bytes", o.limits.ResponseBytes)
	}
	return n, nil
}

// Stderr writes to the log, and never fails.
func (c *Call) Stderr() io.Writer { return &c.stderr }

// Warn logs a line for the author of the handler, as one of the guest's.
func (c *Call) Warn(text string) { c.logLine(slog.LevelWarn, []byte(text)) }

// LogInternal logs an error that is not the guest's.
func (c *Call) LogInternal(act string, err error) { c.logInternal(act, err) }

// AddHeader adds a header to the answer. It skips one that only the host sets, as RFC 3875, section
// 6.3.4, has it for CGI. The error says what is wrong with one that cannot be sent.
func (c *Call) AddHeader(name string, value []byte) error {
	if c.isHosts([]byte(name), value) {
		return nil
	}
	if errno := c.addHeader([]byte(name), value); errno != 0 {
		return fmt.Errorf("header %s cannot be sent: %s", shortened([]byte(name)), errno)
	}
	return nil
}

// Answer makes a copy of body the body of the answer. The error says why there can be no such answer.
func (c *Call) Answer(status int, body []byte) error {
	switch errno := c.setBody(int32(status), body); {
	case errno == abi.TooLarge:
		return fmt.Errorf("the body of the answer has more than %d bytes", c.limits.ResponseBytes)
	case errno == abi.Unavailable:
		return fmt.Errorf("the body of the answer needs more memory than is left")
	case errno != 0 && status >= 200 && status <= 599 && bodiless(int32(status)):
		return fmt.Errorf("an answer with status %d cannot have a body", status)
	case errno != 0:
		return fmt.Errorf("an answer cannot have status %d: it must be from 200 to 599", status)
	}
	return nil
}

// BeginAnswer begins an answer whose body follows with SendPart while the handler runs: on a route with stream: and to a
// client. Otherwise it reports false, and the answer is that of Answer.
func (c *Call) BeginAnswer(status int) bool {
	return c.streamsOutput() && c.beginAnswer(int32(status)) == 0
}

// partCalls is how many host calls a component makes to write a part: check-write, write, flush, subscribe and poll.
const partCalls = 5

// SendPart sends a part of the body of an answer that has begun. It takes the part, which CountMoved has counted, and the
// calls for it from the budgets again: the speed of the client limits them. It reports false if the client takes no more.
// It may wait, and end the run.
func (c *Call) SendPart(part []byte) bool {
	c.hostCalls = max(0, c.hostCalls-partCalls)
	c.moved -= len(part)
	return c.sendParts(part) == 0
}

// AnswerError answers with a status from 500 on, instead of Answer, and reports why the handler failed.
func (c *Call) AnswerError(status int, kind, message string) {
	c.reportFailure([]byte(kind + "\n" + message))
	r := &c.Response
	r.Headers = r.Headers[:0]
	r.Status, r.Code = status, string(fault.HandlerFailed)
	if status != 500 {
		r.Code = string(fault.OfStatus(status))
	}
}

// Fetch is a request to another service that was sent.
type Fetch struct {
	call      *Call
	operation *pendingOperation
	cancel    context.CancelFunc
	number    int                // in the Recording of a Player
	response  *outbound.Response // when the operation is done
}

// OutboundRequest checks a request to another service. The error is an *outbound.Error.
func (c *Call) OutboundRequest(method, url string, headers []outbound.Header, body []byte) (*outbound.Request, error) {
	if c.ReadOnly {
		return nil, &outbound.Error{Reason: outbound.Denied, Detail: "a live route only reads: it sends no request"}
	}
	return outbound.NewRequest(c.Host.Origins, method, url, c.traced(headers), body)
}

// FetchTime is the default timeout of a Fetch, MaxFetchTime the longest, and MaxFetchBody the longest body.
const (
	FetchTime    = fetchTime
	MaxFetchTime = maxTime
	MaxFetchBody = 1 << 20
)

// Fetch sends a request, beside other ones. The error is a *fault.Fault with the code Limit.
func (c *Call) Fetch(request *outbound.Request, timeout time.Duration) (*Fetch, error) {
	if c.Recorder == nil && c.Player == nil {
		return c.fetch(request, timeout)
	}
	return c.tapeFetch(request, timeout)
}

func (c *Call) fetch(request *outbound.Request, timeout time.Duration) (*Fetch, error) {
	ops := c.pendingOps()
	if len(ops.all) >= maxPending {
		return nil, fault.New(fault.Limit, "a request may have at most %d pending operations", maxPending)
	}
	flight, err := c.newFlight(request.WithRedirect(outbound.Manual), timeout)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(ops.ctx)
	f := &Fetch{call: c, operation: ops.startFetch(), cancel: cancel}
	ops.run(f.operation, func(context.Context) (answer, error) {
		defer cancel()
		var err error
		f.response, err = flight.get(ctx)
		return nil, err
	})
	return f, nil
}

// Done reports whether there is a response or an error.
func (f *Fetch) Done() bool {
	done := false
	select {
	case <-f.operation.done:
		done = true
	default:
	}
	if f.call.Draws == nil {
		return done
	}
	return f.call.pollOf(done)
}

// Response returns the response of a Fetch that is Done, once. The error is an *outbound.Error, or a
// *fault.Fault with the code Deadline, and is logged.
func (f *Fetch) Response() (*outbound.Response, error) {
	if f.call.Recorder == nil && f.call.Player == nil {
		return f.take()
	}
	return f.tapeResponse()
}

func (f *Fetch) take() (*outbound.Response, error) {
	f.call.pending.remove(f.operation)
	if err := f.operation.err; err != nil {
		f.call.logFailed(err)
		return nil, err
	}
	return f.response, nil
}

// Cancel ends a Fetch whose response is not wanted.
func (f *Fetch) Cancel() {
	f.cancel()
	f.call.pending.remove(f.operation)
}

// WaitFetch waits for d, or until any Fetch is Done. It may return early. It ends the run if the
// request's time is over.
func (c *Call) WaitFetch(d time.Duration) {
	if c.Player != nil && !c.live {
		c.checkTime()
		return
	}
	ops := c.pendingOps()
	if d < math.MaxInt64 {
		timer := time.AfterFunc(d, ops.wake)
		defer timer.Stop()
	}
	await(c, ops.ready)
}
