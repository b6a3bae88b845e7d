package runtime

import (
	"cmp"
	"time"

	"runner.example/internal/clock"
	"runner.example/internal/cost"
	"runner.example/internal/fault"
	"runner.example/runtime/front"
)

// streamsBody reports whether the handler of the route runs before the body of its request has arrived.
func (rt *route) streamsBody() bool { return rt.Stream > 0 && rt.input == nil && rt.query == nil }

// readBody reads the body, unless the handler reads it in parts. The handler does not if the body has arrived with the head,
// or its announced length is over the limit.
func (s *requestState) readBody(x *front.Exchange) error {
	rt := s.route
	s.streamsBody = rt.streamsBody() && !x.HasArrived() && x.BodyLength() <= rt.bodyBytes
	switch {
	case x.IsInParts():
		return errPartsRead // the handler of the previous bundle has read parts
	case s.streamsBody:
		return nil
	}
	if err := x.ReadBody(rt.bodyBytes); err != nil {
		return err
	}
	s.body = x.Request.Body
	return nil
}

// streamedBody is the body of a request that is read while its handler runs.
type streamedBody struct{ *streamedAnswer }

// Length implements hostabi.BodyStream.
func (b streamedBody) Length() int64 { return b.exchange.BodyLength() }

// Read implements hostabi.BodyStream.
func (b streamedBody) Read(p []byte) (int, error) {
	b.start()
	end, _ := b.request.deadline.Deadline()
	return b.exchange.ReadPart(p, b.request.route.bodyBytes, end)
}

// Whole implements hostabi.BodyStream. The time until the body has arrived does not count as the handler's.
func (b streamedBody) Whole() ([]byte, error) {
	s, x := b.request, b.exchange
	limit := min(s.route.bodyBytes, cmp.Or(b.runtime.opt.WholeBodyBytes, s.route.bodyBytes))
	end, _ := s.deadline.Deadline()
	began := clock.Mark()
	last := began.Add(b.runtime.opt.Front.ReadTimeout)
	s.deadline.Move(end.Add(last.Sub(began)))
	x.AwaitBody(last)
	err := x.ReadBody(limit)
	s.deadline.Move(end.Add(time.Since(began)))
	if fault.CodeOf(err) == fault.BodyTooLarge && limit < s.route.bodyBytes {
		err = fault.New(fault.BodyTooLarge, "the body is larger than %d bytes, the limit of a handler that reads it as a whole", limit)
	}
	return nonNil(x.Request.Body), err
}

// Check implements hostabi.BodyStream.
func (b streamedBody) Check(body []byte, m *cost.Meter) error {
	if !isJSON(b.exchange.Request.Headers) {
		return nil
	}
	return checkText(body, m)
}

// bodyFault returns the fault of the body if the handler has failed because of it, else nil.
func (inv *invocation) bodyFault(err error) error {
	f := inv.call.BodyFault()
	if f == nil || err == nil {
		return nil
	}
	if isFailure(fault.CodeOf(err)) || err == errWritesDiscarded && inv.call.Response.Status >= 500 {
		return f
	}
	return nil
}
