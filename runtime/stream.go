package runtime

import (
	"encoding/json"
	"errors"
	"log/slog"
	"sync"
	"time"

	"runner.example/hostabi/abi"
	"runner.example/internal/caller"
	"runner.example/internal/clock"
	"runner.example/internal/fault"
	"runner.example/runtime/front"
)

const (
	// goneGrace is the time that a handler has to end after its client is gone.
	goneGrace = time.Second
	// checkInterval is the time between two checks of whether the callers of streamed answers still have their authority.
	checkInterval = 250 * time.Millisecond
	// hangUpChecks says that each fourth check is also one of whether the client has hung up.
	hangUpChecks = 4
)

// errStreamOver: the client of a streamed answer is gone, its caller may not have more of it, or its time is over.
var errStreamOver = errors.New("the streamed answer ended before its handler")

// streamedAnswer sends the answer of a request while its handler runs.
type streamedAnswer struct {
	runtime  *Runtime
	bundle   *activeBundle
	request  *requestState
	exchange *front.Exchange
	checked  *checkedAnswer // nil: neither it nor the reading of the body has begun
}

// checkedAnswer is a streamed answer whose caller and client are checked. It is not reused, because a check may be under way
// after its end.
type checkedAnswer struct {
	*streamedAnswer
	gone   chan struct{} // closed when a check finds that the client has hung up
	mu     sync.Mutex    // guards what follows, and the use of the answer by check
	ended  bool
	begun  bool // the answer has: before, a client may close its sending side after its body
	checks int
	hungUp bool // gone is closed
}

// Begin implements hostabi.AnswerStream.
func (st *streamedAnswer) Begin(r *abi.Response) (waits bool, err error) {
	s, x := st.request, st.exchange
	s.addCookie(st.bundle, x, s.call.SetCookie())
	st.start()
	st.checked.begin()
	waits, err = x.BeginStream(r)
	return waits, st.sent(err)
}

// start gives the handler the time of stream:, and starts the checks of its caller. It is called when the answer begins, or
// when the handler reads the first part of the body.
func (st *streamedAnswer) start() {
	if st.checked != nil {
		return
	}
	if longest := st.request.route.Stream; longest > 0 {
		st.request.deadline.Move(clock.In(longest))
	}
	st.checked = &checkedAnswer{streamedAnswer: st, gone: make(chan struct{})}
	st.runtime.streams.add(st.checked)
}

// Write implements hostabi.AnswerStream.
func (st *streamedAnswer) Write(part []byte) (waits bool, err error) {
	waits, err = st.exchange.WritePart(part)
	return waits, st.sent(err)
}

// Flush implements hostabi.AnswerStream.
func (st *streamedAnswer) Flush() error { return st.sent(st.exchange.Flush()) }

// Gone implements hostabi.AnswerStream.
func (st *streamedAnswer) Gone() <-chan struct{} { return st.checked.gone }

// sent returns err. If it says that the client is gone, the handler has goneGrace to end.
func (st *streamedAnswer) sent(err error) error {
	if err != nil {
		st.request.limitToGrace()
	}
	return err
}

// limitToGrace gives the handler of a client that is gone goneGrace to end.
func (s *requestState) limitToGrace() {
	if end, _ := s.deadline.Deadline(); time.Until(end) > goneGrace {
		s.deadline.Move(clock.In(goneGrace))
	}
}

// stopChecks stops the checks: the answer has ended, or will not begin.
func (st *streamedAnswer) stopChecks() {
	if st.checked != nil {
		st.runtime.streams.remove(st.checked)
		st.checked.end()
		st.checked = nil
	}
}

// end ends the answer, whose handler has ended with err.
func (st *streamedAnswer) end(err error) {
	st.stopChecks()
	if err == nil {
		st.exchange.EndStream(true, nil)
		return
	}
	st.runtime.opt.Logger.Debug("streamed answer cut off", st.exchange.Request.LogID(), slog.Any("cause", err))
	st.exchange.EndStream(false, errorEvent(err, st.exchange.Request.ID))
}

// errorEvent is the last event of a stream of events that is cut off.
func errorEvent(err error, id string) []byte {
	f := fault.Of(err)
	if err == errStreamOver {
		f = fault.New(fault.HandlerTimeout, "the answer took longer than its route permits: ask again")
	}
	data, err := json.Marshal(struct {
		Code      fault.Code `json:"code"`
		Detail    string     `json:"detail,omitzero"`
		RequestID string     `json:"requestId"`
	}{f.Code, f.Detail, id})
	if err != nil {
		return nil // texts are always JSON
	}
	return append(append([]byte("event: error\ndata: "), data...), "\n\n"...)
}

// longAnswer is a streamed answer, or a connection with watches. check ends it if its caller has lost its authority, or its
// client has hung up.
type longAnswer interface{ check() }

// streams are the long answers that have begun. While there are any, a goroutine checks them.
type streams struct {
	mu       sync.Mutex
	all      map[longAnswer]struct{}
	checking bool
}

func (s *streams) add(st longAnswer) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.all == nil {
		s.all = map[longAnswer]struct{}{}
	}
	s.all[st] = struct{}{}
	if !s.checking {
		s.checking = true
		go s.check()
	}
}

func (s *streams) remove(st longAnswer) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.all, st)
}

// check checks all answers at intervals. It returns when all of them have ended.
func (s *streams) check() {
	tick := time.NewTicker(checkInterval)
	defer tick.Stop()
	var all []longAnswer
	for range tick.C {
		all = all[:0]
		s.mu.Lock()
		for st := range s.all {
			all = append(all, st)
		}
		if len(all) == 0 {
			s.checking = false
		}
		s.mu.Unlock()
		if len(all) == 0 {
			return
		}
		for _, st := range all {
			st.check()
		}
		clear(all)
	}
}

// begin records that the answer begins.
func (st *checkedAnswer) begin() {
	st.mu.Lock()
	defer st.mu.Unlock()
	st.begun = true
}

// end records that the answer has ended.
func (st *checkedAnswer) end() {
	st.mu.Lock()
	defer st.mu.Unlock()
	st.ended = true
}

// check implements longAnswer: it ends the answer if its caller would be refused now. Each fourth call also checks whether
// the client has hung up.
func (st *checkedAnswer) check() {
	st.mu.Lock()
	defer st.mu.Unlock()
	if st.ended {
		return
	}
	r, s := st.runtime, st.request
	if st.checks++; st.checks%hangUpChecks == 0 && st.begun && !st.hungUp && st.exchange.HungUp() {
		st.hungUp = true
		s.limitToGrace()
		close(st.gone)
	}
	now := r.opt.Calendar()
	who, err := r.auth.Check(r.serving, st.bundle.schema, st.bundle.tokens, s.route.Route, s.presented, now)
	if err == nil && (who.Kind == s.caller.Kind || s.caller.Kind == caller.Anonymous) { // with a session that has ended it may be anonymous
		return
	}
	st.ended = true
	s.deadline.Stop()
	st.exchange.Interrupt()
}
