package admin

import (
	"context"
	"errors"
	"io"
	"time"

	"runner.example/internal/fault"
	"runner.example/internal/settings"
)

const (
	// AnswerTimeout is how long a server may be silent, unless SetAnswerTimeout says otherwise.
	AnswerTimeout = time.Minute
	// LongAnswerTimeout is for operations whose time depends on the rows or the modules of the app.
	LongAnswerTimeout = 15 * time.Minute
)

// silence ends an exchange with a server that hangs: one that has neither taken nor sent a byte for
// some time. So an upload or a backup may take longer than an operation.
type silence struct {
	ctx    context.Context
	cancel context.CancelCauseFunc
	limit  time.Duration
	timer  *time.Timer
}

// limitSilence begins an exchange. The caller calls stop when it has ended.
func limitSilence(ctx context.Context, limit time.Duration) *silence {
	ctx, cancel := context.WithCancelCause(ctx)
	silent := fault.New(fault.Unavailable,
		"the server has not answered for %s: it may be overloaded or hang, and the operation may or may not have been done", settings.FormatDuration(limit)).
		WithHint("--timeout sets how long a command waits for each answer")
	return &silence{ctx: ctx, cancel: cancel, limit: limit, timer: time.AfterFunc(limit, func() { cancel(silent) })}
}

func (s *silence) stop() {
	s.timer.Stop()
	s.cancel(nil)
}

// explain returns the error of an exchange: that of the silence, if it has ended the exchange.
func (s *silence) explain(err error) error {
	if silent, ok := errors.AsType[*fault.Fault](context.Cause(s.ctx)); ok {
		return silent
	}
	return err
}

// sent returns a reader of what is sent: each byte that is taken begins the time anew.
func (s *silence) sent(r io.Reader) io.Reader {
	return readerFunc(func(b []byte) (int, error) {
		n, err := r.Read(b)
		s.timer.Reset(s.limit)
		return n, err
	})
}

// received returns a reader of an answer. The time runs only while the server is awaited, and not while
// the caller uses what has arrived: a pipe may be slow.
func (s *silence) received(r io.Reader) io.Reader {
	return readerFunc(func(b []byte) (int, error) {
		s.timer.Reset(s.limit)
		n, err := r.Read(b)
		s.timer.Stop()
		return n, err
	})
}

// readerFunc is an io.Reader, and nothing else: no method may bypass it.
type readerFunc func([]byte) (int, error)

func (f readerFunc) Read(b []byte) (int, error) { return f(b) }
