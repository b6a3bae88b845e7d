package hostabi

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"runner.example/hostabi/abi"
	"runner.example/hostabi/outbound"
	"runner.example/hostabi/recording"
	"runner.example/internal/fault"
	"runner.example/state/entity"
)

// A run with a Recorder or a Player: each function of operations has one function here, which is not called without them.

// add records the beginning of a call, and returns its place; -1: it is not recorded.
func (c *Call) add(kind, name string, args []byte, number int) int {
	if c.Recorder == nil {
		return -1
	}
	return c.Recorder.Add(kind, name, args, number)
}

// answered records the result of the operation at a place: that of call_result, or its error.
func (c *Call) answered(at int, result int32) int32 {
	if at < 0 {
		return result
	}
	e := c.Recorder.Event(at)
	if result < 0 {
		last := &c.lastError
		e.Error = &recording.Error{
			Op: last.op, Code: string(last.code), Message: last.message, Entity: last.subject.Entity, Field: last.subject.Field,
			Value: last.subject.Value, Named: last.subject.Named, Public: last.subject.Public,
		}
		c.Recorder.Answer(at, nil)
		return result
	}
	if e.Kind == recording.Start {
		e.Number = int(result)
		c.Recorder.Answer(at, nil)
		return result
	}
	e.Rows, e.Row = c.result.Rows, c.result.Row
	c.Recorder.Answer(at, c.result.JSON)
	return result
}

// play returns the recorded event of a call. If there is none it ends the run, or returns nil if the host answers from
// now on.
func (c *Call) play(kind, name string, args []byte, number int) *recording.Event {
	if c.live {
		return nil
	}
	e := c.Player.Next(kind, name, args, number)
	switch {
	case e != nil && e.Ended():
		return e
	case e == nil && c.Player.Live:
		c.goLive()
		return nil
	}
	c.unwind(ErrReplayEnds)
	return nil
}

// repeat makes a recorded result the last one.
func (c *Call) repeat(e *recording.Event) int32 {
	if e.Error != nil {
		f := &fault.Fault{Code: fault.Code(e.Error.Code), Detail: e.Error.Message, Subject: fault.Subject{
			Entity: e.Error.Entity, Field: e.Error.Field, Value: e.Error.Value, Named: e.Error.Named, Public: e.Error.Public,
		}}
		return c.failWith(e.Error.Op, f, e.Error.Message)
	}
	c.result = entity.Result{JSON: append(c.result.JSON[:0], e.Result...), Rows: e.Rows, Row: e.Row}
	c.called, c.succeeded, c.unread = true, true, 0
	c.lastError.isLast = false
	return int32(len(c.result.JSON))
}

// effects runs an operation whose effect is in the Call alone. Its result is recorded.
func (c *Call) effects(name string, op operation, args []byte) {
	if name == "problem" || name == "file.send" {
		var out entity.Result
		_ = op.run(c, name, args, &out) // the recorded error is the same
	}
}

// errNoRequests: a run with a Player sends nothing.
var errNoRequests = fault.New(fault.Unavailable, "a replay sends no requests to other services")

// receives reports whether an operation needs other services.
func receives(name string) bool { return name == "fetch" || name == "fetch.read" }

// refusedBy is why the host does not run an operation in a replay; nil: it runs it.
func (c *Call) refusedBy(name string, err error) error {
	if err == nil && c.Player != nil && receives(name) {
		return errNoRequests
	}
	return err
}

func (c *Call) tapeCall(name string, op operation, args []byte, err error) int32 {
	at := c.add(recording.Call, name, args, 0)
	if c.Player != nil {
		switch played := c.play(recording.Call, name, args, 0); {
		case played != nil && err == nil:
			c.effects(name, op, args)
			return c.answered(at, c.repeat(played))
		case err == nil:
			err = c.refusedBy(name, err)
		}
	}
	return c.answered(at, c.runCall(name, op, args, err))
}

func (c *Call) tapeStart(name string, op operation, args []byte, err error) int32 {
	at := c.add(recording.Start, name, args, 0)
	if c.Player != nil {
		switch played := c.play(recording.Start, name, args, 0); {
		case played != nil && err == nil:
			c.effects(name, op, args)
			if played.Error != nil {
				return c.answered(at, c.repeat(played))
			}
			return c.answered(at, int32(played.Number))
		case err == nil:
			err = c.refusedBy(name, err)
		}
	}
	return c.answered(at, c.startOperation(name, op, args, err))
}

func (c *Call) tapeWait() int32 {
	at := c.add(recording.Wait, "", nil, 0)
	number := int32(0)
	if played := c.playIf(recording.Wait, 0); played != nil {
		number = int32(played.Number)
	} else {
		number = c.waitOperation()
	}
	if at >= 0 {
		c.Recorder.Event(at).Number = int(number)
		c.Recorder.Answer(at, nil)
	}
	return number
}

func (c *Call) tapeTake(number int) int32 {
	at := c.add(recording.Take, "", nil, number)
	if played := c.playIf(recording.Take, number); played != nil {
		return c.answered(at, c.repeat(played))
	}
	return c.answered(at, c.takeOperation(number))
}

// playIf is play of a call without arguments, if there is a Player.
func (c *Call) playIf(kind string, number int) *recording.Event {
	if c.Player == nil {
		return nil
	}
	return c.play(kind, "", nil, number)
}

// goLive makes the pending operations of the Player those of the host, with their recorded results. One whose result the
// recorded run did not take runs now.
func (c *Call) goLive() {
	c.live = true
	type begun struct {
		name string
		args []byte
	}
	started, taken, most := map[int]begun{}, map[int]bool{}, -1
	for _, e := range c.Player.Played() {
		switch {
		case e.Kind == recording.Start && e.Error == nil:
			started[e.Number] = begun{e.Name, e.Args}
			most = max(most, e.Number)
		case e.Kind == recording.Take:
			taken[e.Number] = true
		}
	}
	ops := c.pendingOps()
	for n := ops.started; n <= most; n++ {
		was, ok := started[n]
		t := ops.start(was.name)
		later := c.Player.Later(n)
		op := operationTable[was.name]
		switch {
		case !ok || taken[n]:
			ops.remove(t)
			continue
		case later != nil && later.Error != nil:
			t.err = &fault.Fault{Code: fault.Code(later.Error.Code), Detail: later.Error.Message}
		case later != nil:
			t.result = entity.Result{JSON: later.Result, Rows: later.Rows, Row: later.Row}
		case receives(was.name):
			t.err = errNoRequests
		case op.begin != nil:
			c.begin(t, op, was.args)
			continue
		default:
			t.err = op.run(c, was.name, was.args, &t.result)
		}
		ops.heldBytes += len(t.result.JSON)
		ops.finish(t)
	}
}

// Requests of components to other services.

func (c *Call) tapeFetch(request *outbound.Request, timeout time.Duration) (*Fetch, error) {
	at := c.add(recording.Fetch, request.String(), request.Text(), 0)
	var f *Fetch
	var err error
	if c.Player == nil {
		f, err = c.fetch(request, timeout)
	} else if played := c.play(recording.Fetch, request.String(), request.Text(), 0); played == nil {
		err = errNoRequests
	} else if played.Error != nil {
		err = fault.New(fault.Code(played.Error.Code), "%s", played.Error.Message)
	} else {
		_, cancel := context.WithCancel(context.Background())
		f = &Fetch{call: c, operation: c.pendingOps().startFetch(), cancel: cancel, number: played.Number}
	}
	if at >= 0 {
		if e := c.Recorder.Event(at); err != nil {
			e.Error = errorOf(err)
		} else {
			e.Number = f.recorded()
		}
		c.Recorder.Answer(at, nil)
	}
	return f, err
}

// recorded is the number of a Fetch in a Recording.
func (f *Fetch) recorded() int {
	if f.call.Player != nil {
		return f.number
	}
	return f.operation.number
}

// pollOf is what the guest sees of whether a Fetch is done.
func (c *Call) pollOf(done bool) bool {
	if c.live {
		return true
	}
	is := int64(0)
	if done {
		is = 1
	}
	return c.Draws.Read(recording.Polls, is) == 1
}

// response is an outbound.Response in a Recording. The characters of headers are bytes.
type response struct {
	URL     string         `json:"url,omitempty"`
	Status  int            `json:"status"`
	Headers [][2]string    `json:"headers"`
	Body    recording.Text `json:"body"`
}

func (f *Fetch) tapeResponse() (*outbound.Response, error) {
	c := f.call
	at := c.add(recording.Response, "", nil, f.recorded())
	var got *outbound.Response
	var err error
	if c.Player == nil {
		got, err = f.take()
	} else {
		c.pending.remove(f.operation)
		got, err = c.playResponse(f.number)
	}
	if at < 0 {
		return got, err
	}
	if err != nil {
		c.Recorder.Event(at).Error = errorOf(err)
		c.Recorder.Answer(at, nil)
		return nil, err
	}
	text := response{got.URL, got.Status, nil, got.Body}
	for _, h := range got.Headers {
		text.Headers = append(text.Headers, [2]string{h.Name, string(abi.AppendByteText(nil, []byte(h.Value)))})
	}
	result, _ := json.Marshal(text)
	c.Recorder.Answer(at, result)
	return got, nil
}

func (c *Call) playResponse(number int) (*outbound.Response, error) {
	played := c.Player.Later(number)
	if !c.live {
		played = c.play(recording.Response, "", nil, number)
	}
	switch {
	case played == nil:
		return nil, errNoRequests
	case played.Error != nil:
		return nil, errorFrom(played.Error)
	}
	var text response
	if err := json.Unmarshal(played.Result, &text); err != nil {
		return nil, err
	}
	got := &outbound.Response{URL: text.URL, Status: text.Status, Body: text.Body}
	for _, h := range text.Headers {
		value, _ := headerBytes(h[1])
		got.Headers = append(got.Headers, outbound.Header{Name: h[0], Value: value})
	}
	return got, nil
}

// errorOf describes the error of a Fetch.
func errorOf(err error) *recording.Error {
	f := fault.Of(faultOf(err))
	e := &recording.Error{Code: string(f.Code), Message: f.Detail}
	if sent, ok := errors.AsType[*outbound.Error](err); ok {
		e.Message, e.Kind = sent.Detail, string(sent.Kind)
	}
	return e
}

// errorFrom is the error that errorOf describes.
func errorFrom(e *recording.Error) error {
	reasons := map[fault.Code]outbound.Reason{
		fault.Invalid: outbound.Invalid, fault.Denied: outbound.Denied, fault.TooLarge: outbound.TooLarge,
		fault.Unavailable: outbound.Unavailable,
	}
	if reason, ok := reasons[fault.Code(e.Code)]; ok {
		return &outbound.Error{Reason: reason, Detail: e.Message, Kind: outbound.Kind(e.Kind)}
	}
	return fault.New(fault.Code(e.Code), "%s", e.Message)
}
