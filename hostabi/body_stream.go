package hostabi

import (
	"io"

	"runner.example/hostabi/abi"
	"runner.example/hostabi/recording"
	"runner.example/internal/cost"
	"runner.example/internal/fault"
)

// On a route with stream: the handler runs before the body of the request has arrived. request_read reads it in parts, of
// which the host keeps one. For request_body, and for whatever else needs all of it, the host reads the body to its end
// while the guest waits.

// BodyStream is the body of a request that has not arrived yet. The goroutine that runs the guest calls its methods. The
// errors of Read, Whole and Check are faults, which a client can see.
type BodyStream interface {
	// Length returns the length of the body; -1: it is not known.
	Length() int64
	// Read reads the next bytes into p, and waits for them. At the end it returns io.EOF. Whole must not be called after it.
	Read(p []byte) (int, error)
	// Whole reads all of the body. The bytes are valid until the request is over.
	Whole() ([]byte, error)
	// Check returns why the host refuses a body that Whole has returned; nil: it does not.
	Check(body []byte, m *cost.Meter) error
}

// bodyState is how far the body of the request is read.
type bodyState struct {
	inParts bool // a run for this request has read a part of the BodyStream

	read    int    // bytes of Request.Body that this run has read in parts
	part    []byte // what it has not read of the last part of the stream
	buffer  []byte // of parts
	bodyErr error  // why there are no further parts: io.EOF, or a fault
	waiting bool   // the guest has a place among those that stream
}

func (b *bodyState) reset(firstRun bool) { *b = bodyState{inParts: b.inParts && !firstRun} }

// BodyRefused ends a run: the host refuses the body of the request, which the handler wanted as a whole.
type BodyRefused struct{ Fault error }

func (e *BodyRefused) Error() string { return e.Fault.Error() }

// Unwrap returns the fault.
func (e *BodyRefused) Unwrap() error { return e.Fault }

// BodyFault returns why a part of the body could not be read; nil: all could that the run has asked for. The client gets
// it if the handler fails.
func (c *Call) BodyFault() error {
	if c.bodyErr == io.EOF {
		return nil
	}
	return c.bodyErr
}

// HasReadParts reports whether a run for this request has read parts of its BodyStream. They are gone, so the handler must
// not run again.
func (c *Call) HasReadParts() bool { return c.inParts }

// WholeBody returns all of the body. It ends the run if the body cannot be read; false: the handler reads it in parts.
func (c *Call) WholeBody() (_ []byte, ok bool) {
	in := c.BodyStream
	switch {
	case in == nil:
		return c.Request.Body, true
	case c.inParts:
		return nil, false
	}
	c.placeStream()
	var body []byte
	var err error
	c.pause(func() { body, err = in.Whole() })
	if err == nil {
		err = c.checkBody(in, body)
	}
	if err != nil {
		c.unwind(&BodyRefused{err})
	}
	c.BodyStream, c.Request.Body, c.SentBody = nil, body, body
	c.moved -= len(body) // it is free to read it once
	return body, true
}

// checkBody checks a whole body. The functions that need it are not timed.
func (c *Call) checkBody(in BodyStream, body []byte) error {
	if c.guest.began.IsZero() {
		c.guest.beginWork()
		defer c.guest.endWork()
	}
	err := in.Check(body, &c.work)
	c.checkWork()
	return err
}

// placeStream gives the guest a place among those that stream, because it may wait for long.
func (c *Call) placeStream() {
	if c.waiting || c.streaming {
		return
	}
	if c.sandbox != nil {
		if err := c.sandbox.BeginStream(); err != nil {
			c.unwind(err)
		}
	}
	c.waiting = true
}

func requestRead(c *Call, g guest) int32 {
	room, ok := g.bytes(0)
	if !ok || len(room) == 0 {
		return int32(abi.Invalid)
	}
	c.hostCalls-- // the client's speed and the CPU time limit these
	part, err := c.nextPart()
	if err != nil && err != io.EOF {
		return int32(bodyErrno(err))
	}
	c.copy(room, part)
	return int32(c.tookPart(min(len(room), len(part))))
}

// bodyErrno is what a guest sees of a body that cannot be read.
func bodyErrno(err error) abi.Errno {
	switch fault.CodeOf(err) {
	case fault.BodyTooLarge:
		return abi.TooLarge
	case fault.RequestTimeout:
		return abi.Deadline
	}
	return abi.Unavailable
}

// flows reports whether the body is read in parts that are not in Request.Body.
func (c *Call) flows() bool {
	return c.BodyStream != nil || c.Player != nil && c.Player.Recording.Request.InParts
}

// nextPart returns the next bytes of the body, for which it waits. They are valid until the next call. With them there is
// no error; at the end it is io.EOF.
func (c *Call) nextPart() ([]byte, error) {
	if !c.flows() {
		if c.read == len(c.Request.Body) {
			return nil, io.EOF
		}
		return c.Request.Body[c.read:], nil
	}
	if len(c.part) == 0 && c.bodyErr == nil {
		c.tapePart()
	}
	if len(c.part) > 0 {
		return c.part, nil
	}
	return nil, c.bodyErr
}

// tookPart says that the guest has so many bytes of the part, and returns their number.
func (c *Call) tookPart(n int) int {
	if c.flows() {
		c.part = c.part[n:]
	} else {
		c.read += n
	}
	return n
}

// receivePart waits for a part of the stream.
func (c *Call) receivePart() {
	if c.BodyStream == nil { // a replay, after its recording
		c.bodyErr = errNoBody
		return
	}
	if c.buffer == nil {
		c.buffer = make([]byte, StreamPart)
	}
	c.placeStream()
	c.inParts = true
	n := 0
	c.pause(func() { n, c.bodyErr = c.BodyStream.Read(c.buffer) })
	c.part = c.buffer[:n]
}

// errNoBody: a replay has no more of a body that was read in parts.
var errNoBody = fault.New(fault.Unavailable, "the recording has no more of the body")

// tapePart is receivePart for a run that may have a Recorder or a Player.
func (c *Call) tapePart() {
	at := c.add(recording.Read, "", nil, 0)
	played := c.playIf(recording.Read, 0)
	switch {
	case played == nil:
		c.receivePart()
	case played.Error != nil:
		c.bodyErr = fault.New(fault.Code(played.Error.Code), "%s", played.Error.Message)
	case len(played.Result) == 0:
		c.bodyErr = io.EOF
	default:
		c.part = played.Result
	}
	if at < 0 {
		return
	}
	if c.BodyFault() != nil && len(c.part) == 0 {
		f := fault.Of(c.bodyErr)
		c.Recorder.Event(at).Error = &recording.Error{Code: string(f.Code), Message: f.Detail}
	}
	c.Recorder.Answer(at, c.part)
}

// leftInput returns how many bytes of the body a command can read without waiting; 0: it is at the end. It waits for a part
// before.
func (c *Call) leftInput() int {
	if !c.program.running {
		return 0
	}
	part, _ := c.nextPart()
	return len(part)
}
