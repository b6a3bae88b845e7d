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
	// goneTime is what a handler gets to end after its client has gone.
	goneTime = time.Second
	// judgeEvery is the pause between two checks of whether the callers of streamed answers still have their authority.
	judgeEvery = 250 * time.Millisecond
	// lookEvery is how many checks of the callers come before one of whether the clients are there.
	lookEvery = 4
)

// errStreamOver: the client of a streamed answer is gone, its caller may not have more of it, or its time is over.
var errStreamOver = errors.New("the streamed answer ended before its handler")

// streamedAnswer sends the answer of a request while its handler runs.
type streamedAnswer struct {
	runtime  *Runtime
	bundle   *activeBundle
	request  *requestState
	exchange *front.Exchange
	judged   *judged // nil: neither it nor the reading of the body has begun
}

// judged is a streamed answer whose caller is judged. It is not reused, because a judge may see it after its end.
type judged struct {
	*streamedAnswer
	left  chan struct{} // closed when the client has hung up, as far as judge has seen
	mu    sync.Mutex    // guards what follows, and the use of the answer by judge
	ended bool
	looks int
	alone bool // left is closed
}

// Begin implements hostabi.AnswerStream.
func (st *streamedAnswer) Begin(r *abi.Response) (waits bool, err error) {
	s, x := st.request, st.exchange
	s.addCookie(st.bundle, x, s.call.SetCookie())
	st.start()
	waits, err = x.BeginStream(r)
	return waits, st.sent(err)
}

// start gives the handler the time of stream:, and has its caller judged. It is called when the answer begins, or the
// first part of the body is read.
func (st *streamedAnswer) start() {
	if st.judged != nil {
		return
	}
	if longest := st.request.route.Stream; longest > 0 {
		st.request.deadline.Move(clock.In(longest))
	}
	st.judged = &judged{streamedAnswer: st, left: make(chan struct{})}
	st.runtime.streams.add(st.judged)
}

// Write implements hostabi.AnswerStream.
func (st *streamedAnswer) Write(part []byte) (waits bool, err error) {
	waits, err = st.exchange.WritePart(part)
	return waits, st.sent(err)
}

// Flush implements hostabi.AnswerStream.
func (st *streamedAnswer) Flush() error { return st.sent(st.exchange.Flush()) }

// Left implements hostabi.AnswerStream.
func (st *streamedAnswer) Left() <-chan struct{} { return st.judged.left }

// sent gives the handler a little time to end, if the client is gone.
func (st *streamedAnswer) sent(err error) error {
	if err != nil {
		st.request.hurry()
	}
	return err
}

// hurry gives the handler of a client that is gone a little time to end.
func (s *requestState) hurry() {
	if end, _ := s.deadline.Deadline(); time.Until(end) > goneTime {
		s.deadline.Move(clock.In(goneTime))
	}
}

// notJudged says that the answer has ended, or will not begin.
func (st *streamedAnswer) notJudged() {
	if st.judged != nil {
		st.runtime.streams.remove(st.judged)
		st.judged.end()
		st.judged = nil
	}
}

// end ends the answer, whose handler has ended with err.
func (st *streamedAnswer) end(err error) {
	st.notJudged()
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

// held is an answer that goes on for long: judge asks whether its caller still has its authority.
type held interface{ judge() }

// streams are the streamed answers and the watches that have begun. While there are any, a goroutine judges their callers.
type streams struct {
	mu      sync.Mutex
	all     map[held]struct{}
	judging bool
}

func (s *streams) add(st held) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.all == nil {
		s.all = map[held]struct{}{}
	}
	s.all[st] = struct{}{}
	if !s.judging {
		s.judging = true
		go s.judge()
	}
}

func (s *streams) remove(st held) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.all, st)
}

// judge ends the answers whose callers have lost their authority. It returns when all answers have ended.
func (s *streams) judge() {
	tick := time.NewTicker(judgeEvery)
	defer tick.Stop()
	var all []held
	for range tick.C {
		all = all[:0]
		s.mu.Lock()
		for st := range s.all {
			all = append(all, st)
		}
		if len(all) == 0 {
			s.judging = false
		}
		s.mu.Unlock()
		if len(all) == 0 {
			return
		}
		for _, st := range all {
			st.judge()
		}
		clear(all)
	}
}

// end says that the answer has ended.
func (st *judged) end() {
	st.mu.Lock()
	defer st.mu.Unlock()
	st.ended = true
}

// judge ends the answer if its caller would be refused now. From time to time it also looks whether the client is there.
func (st *judged) judge() {
	st.mu.Lock()
	defer st.mu.Unlock()
	if st.ended {
		return
	}
	r, s := st.runtime, st.request
	if st.looks++; st.looks%lookEvery == 0 && !st.alone && st.exchange.HungUp() {
		st.alone = true
		s.hurry()
		close(st.left)
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
