package front

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"runtime/debug"
	"sync"
	"sync/atomic"

	"github.com/valyala/fasthttp"

	"runner.example/internal/fault"
)

// Server serves one listener. Its methods may be called by any goroutine.
type Server struct {
	opt    Options
	handle func(*Exchange)
	http   fasthttp.Server
	gate   atomic.Pointer[gate]
	ended  atomic.Bool  // Shutdown was called
	pool   sync.Pool    // of *Exchange
	bodies atomic.Int64 // bytes that large bodies have taken
	// backlog is what large answers have taken that wait for their readers.
	backlog *backlog
}

// New returns a server that calls handle for every request it could read, on
// the goroutine of the connection: handle answers by Send or Refuse, once, and
// keeps nothing of the exchange after it has returned. A handle that panics or
// does not answer is a 500 and a log line. The options have to be valid.
func New(opt Options, handle func(*Exchange)) *Server {
	s := &Server{opt: opt.WithDefaults(), handle: handle}
	if err := s.opt.Validate(); err != nil {
		panic("BUG: front: " + err.Error())
	}
	s.opt = s.opt.withinFiles()
	s.backlog = newBacklog(s.opt.MaxAnswerMemory, s.opt.MaxAnswerMemoryPerIP)
	s.pool.New = func() any { return &Exchange{srv: s} }
	s.http = fasthttp.Server{
		Handler:      s.serve,
		Logger:       connLog{s.opt.Logger},
		ReadTimeout:  s.opt.ReadTimeout,
		WriteTimeout: s.opt.WriteTimeout,
		IdleTimeout:  s.opt.IdleTimeout,
		// The gate bounds connections. A worker outlives its connection by a
		// moment, so fasthttp's own bound has to be higher.
		Concurrency: 2*s.opt.MaxConns + 16,
		// fasthttp reads nothing but the restatement.
		ReadBufferSize:        64,
		NoDefaultServerHeader: true,
		NoDefaultContentType:  true,
		SecureErrorLogMessage: true,
	}
	return s
}

// Serve accepts from ln, which it closes, until Shutdown, or not at all after
// it; then it returns nil. It may be called once.
func (s *Server) Serve(ln net.Listener) error {
	g := newGate(ln, s)
	if !s.gate.CompareAndSwap(nil, g) {
		panic("BUG: front: a server serves once")
	}
	if s.ended.Load() {
		return g.Close()
	}
	if err := s.http.Serve(g); err != nil {
		return fmt.Errorf("serve %s: %w", ln.Addr(), err)
	}
	return nil
}

// Shutdown stops accepting, closes what waits for a request, and lets requests
// that have begun finish. When ctx ends first it cuts the rest off and returns
// ctx's error.
func (s *Server) Shutdown(ctx context.Context) error {
	s.ended.Store(true)
	g := s.gate.Load()
	if g == nil {
		return nil
	}
	closed := g.Close()
	if err := s.http.ShutdownWithContext(ctx); err != nil {
		g.abort(func(*conn) bool { return true })
		return err
	}
	return closed
}

// serve is what fasthttp calls for each head it was handed.
func (s *Server) serve(ctx *fasthttp.RequestCtx) {
	c, ok := ctx.Conn().(*conn)
	if !ok {
		panic(fmt.Sprintf("BUG: front: connection of type %T", ctx.Conn()))
	}
	x := c.exchange
	c.exchange = nil
	x.ctx = ctx
	s.run(x)
	c.finish(x)
	s.bodies.Add(-x.body.claimed)
	x.freeMemory()
	x.reset()
	s.pool.Put(x)
}

// run answers the exchange, whatever handle does.
func (s *Server) run(x *Exchange) {
	defer func() {
		if cause := recover(); cause != nil {
			s.opt.Logger.Error("panic while serving a request", slog.String("requestId", x.Request.ID),
				slog.String("cause", fmt.Sprint(cause)), slog.String("stack", string(debug.Stack())))
			x.startOver()
			x.Refuse(errPanic, Extra{})
		}
	}()
	if x.refusal != nil {
		if x.framing.known && s.opt.BeforeRefusal != nil {
			s.opt.BeforeRefusal(x)
		}
		x.Refuse(x.refusal, Extra{})
		return
	}
	s.handle(x)
	if x.status == 0 {
		x.Refuse(errUnanswered, Extra{})
	}
}

var (
	errPanic      = &fault.Fault{Code: fault.HandlerFailed}
	errUnanswered = &fault.Fault{Code: fault.HandlerFailed, Cause: errors.New("BUG: the request was not answered")}
)

// connLog takes fasthttp's own lines. Their arguments may quote a caller, so
// only what is known to be harmless goes on.
type connLog struct{ log *slog.Logger }

func (l connLog) Printf(_ string, args ...any) {
	for _, a := range args {
		if err, ok := a.(error); ok {
			l.log.Debug("connection ended", slog.String("cause", fmt.Sprintf("%T", err)))
			return
		}
	}
	l.log.Debug("connection ended")
}
