package hostabi

import (
	"io"

	"runner.example/hostabi/abi"
	"runner.example/hostabi/recording"
	"runner.example/internal/cost"
	"runner.example/internal/fault"
)

// On a route with stream: the handler runs before the body of the request has arrived. request_read reads it in parts; the
// host keeps one part. For request_body, and for other functions that need the whole body, the host reads it to its end
// while the guest waits.

// BodyStream is the body of a request that has not arrived yet. The goroutine that runs the guest calls its methods. The
// errors of Read, Whole and Check are faults, which a client can see.
type BodyStream interface {
	// Length returns the length of the body in bytes; -1: it is not known.
	Length() int64
	// Read waits for the next bytes and reads them into p. At the end it returns io.EOF. After Read, Whole must not be called.
	Read(p []byte) (int, error)
	// Whole reads the whole body. The bytes are valid until the request is over.
	Whole() ([]byte, error)
	// Check returns the reason why the host refuses a body that Whole has returned; nil: it accepts the body.
	Check(body []byte, m *cost.Meter) error
}

// bodyState is the state of reading the body of the request.
type bodyState struct {
	inParts bool // a run for this request has read a part of the BodyStream

	read    int    // bytes of Request.Body that this run has read in parts
	part    []byte // the rest of the last part, which the guest has not read
	buffer  []byte // has the part
	bodyErr error  // why there are no further parts: io.EOF, or a fault
	hasSlot bool   // the guest has one of the slots of streamed answers
}

func (b *bodyState) reset(firstRun bool) { *b = bodyState{inParts: b.inParts && !firstRun} }

// BodyRefused ends a run: the handler needed the whole body of the request, and the host refuses it.
type BodyRefused struct{ Fault error }

func (e *BodyRefused) Error() string { return e.Fault.Error() }

// Unwrap returns the fault.
func (e *BodyRefused) Unwrap() error { return e.Fault }

// BodyFault returns the fault with which reading the body has failed; nil: it has not. The client gets the fault if the
// handler fails.
func (c *Call) BodyFault() error {
	if c.bodyErr == io.EOF {
		return nil
	}
	return c.bodyErr
}

// HasReadParts reports whether a run for this request has read parts of its BodyStream. They cannot be read again, so the
// handler must not run again.
func (c *Call) HasReadParts() bool { return c.inParts }

// WholeBody returns the whole body. ok is false if the handler has read parts of it. If the body cannot be read, or is
// refused, WholeBody ends the run.
func (c *Call) WholeBody() (_ []byte, ok bool) {
	in := c.BodyStream
	switch {
	case in == nil:
		return c.Request.Body, true
	case c.inParts:
		return nil, false
	}
	c.takeStreamSlot()
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

// checkBody checks a whole body. It measures the work itself if no host function does at the moment.
func (c *Call) checkBody(in BodyStream, body []byte) error {
	if c.guest.began.IsZero() {
		c.guest.beginWork()
		defer c.guest.endWork()
	}
	err := in.Check(body, &c.work)
	c.checkWork()
	return err
}

// takeStreamSlot takes one of the slots of streamed answers for the guest, which may wait for a long time.
func (c *Call) takeStreamSlot() {
	if c.hasSlot || c.streaming {
		return
	}
	if c.sandbox != nil {
		if err := c.sandbox.BeginStream(); err != nil {
			c.unwind(err)
		}
	}
	c.hasSlot = true
}

func requestRead(c *Call, g guest) int32 {
	dst, ok := g.bytes(0)
	if !ok || len(dst) == 0 {
		return int32(abi.Invalid)
	}
	c.hostCalls-- // not counted: the speed of the client and the CPU time limit these calls
	part, err := c.nextPart()
	if err != nil && err != io.EOF {
		return int32(bodyErrno(err))
	}
	c.copy(dst, part)
	return int32(c.consumePart(min(len(dst), len(part))))
}

// bodyErrno returns the errno for a body that cannot be read.
func bodyErrno(err error) abi.Errno {
	switch fault.CodeOf(err) {
	case fault.BodyTooLarge:
		return abi.TooLarge
	case fault.RequestTimeout:
		return abi.Deadline
	}
	return abi.Unavailable
}

// readsParts reports whether the body comes in parts from a BodyStream or a recording. Otherwise it is in Request.Body.
func (c *Call) readsParts() bool {
	return c.BodyStream != nil || c.Player != nil && c.Player.Recording.Request.InParts
}

// nextPart waits for the next bytes of the body and returns them, or an error: io.EOF at the end. The bytes are valid until
// the next call.
func (c *Call) nextPart() ([]byte, error) {
	if !c.readsParts() {
		if c.read == len(c.Request.Body) {
			return nil, io.EOF
		}
		return c.Request.Body[c.read:], nil
	}
	if len(c.part) == 0 && c.bodyErr == nil {
		c.recordPart()
	}
	if len(c.part) > 0 {
		return c.part, nil
	}
	return nil, c.bodyErr
}

// consumePart records that the guest has read n bytes of the part, and returns n.
func (c *Call) consumePart(n int) int {
	if c.readsParts() {
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
	c.takeStreamSlot()
	c.inParts = true
	n := 0
	c.pause(func() { n, c.bodyErr = c.BodyStream.Read(c.buffer) })
	c.part = c.buffer[:n]
}

// errNoBody: the handler of a replay reads more parts of the body than the recorded run did.
var errNoBody = fault.New(fault.Unavailable, "the recording has no further part of the body")

// recordPart is receivePart for a run that may have a Recorder or a Player.
func (c *Call) recordPart() {
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

// availableInput waits for a part of the body, and returns how many bytes of it a command can read; 0: the body has ended.
func (c *Call) availableInput() int {
	if !c.program.running {
		return 0
	}
	part, _ := c.nextPart()
	return len(part)
}
