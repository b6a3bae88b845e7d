package front

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"github.com/valyala/fasthttp"

	"runner.example/internal/fault"
)

// Server serves one listener. Its methods may be called by any goroutine.
type Server struct {
	opt    Options
	handle func(*Exchange)
	http   fasthttp.Server
	gate   atomic.Pointer[gate]
	live   atomic.Pointer[liveOptions]
	drains atomic.Bool  // Drain was called
	ended  atomic.Bool  // Shutdown was called
	pool   sync.Pool    // of *Exchange
	parts  sync.Pool    // of *[]byte, buffers for the parts of streamed answers
	bodies atomic.Int64 // memory that large bodies have claimed
	// backlog limits the memory of large answers that wait for their readers.
	backlog *backlog
	metrics metrics
	// maxConns is the setting, openFiles the limit of open files that allows fewer connections; 0: it allows them.
	maxConns  int
	openFiles uint64
}

// New returns a server that calls handle for every request that it could read, on the
// connection's goroutine. handle answers with Send or Refuse, once, and keeps nothing of
// the exchange after it has returned. If handle panics or does not answer, the answer is a
// 500 and the panic is logged. The options must be valid.
func New(opt Options, handle func(*Exchange)) *Server {
	s := &Server{opt: opt.filled(), handle: handle}
	if err := s.opt.Validate(); err != nil {
		panic("BUG: front: " + err.Error())
	}
	s.maxConns = s.opt.MaxConns
	s.opt, s.openFiles = s.opt.withinFiles()
	s.Reconfigure(s.opt)
	s.metrics = newMetrics(s.opt.Metrics)
	s.backlog = newBacklog(s.opt.MaxAnswerMemory, s.opt.MaxAnswerMemoryPerIP)
	s.pool.New = func() any { return &Exchange{srv: s} }
	s.parts.New = func() any { return new([]byte) }
	s.http = fasthttp.Server{
		// Its timeouts are not set: conn has deadlines of its own.
		Handler: s.serve,
		Logger:  connLog{s.opt.Logger},
		// The gate limits connections. A worker outlives its connection for a moment, so
		// fasthttp's own limit must be higher.
		Concurrency: 2*s.opt.MaxConns + 16,
		// fasthttp reads only the restatement.
		ReadBufferSize:        64,
		NoDefaultServerHeader: true,
		NoDefaultContentType:  true,
		SecureErrorLogMessage: true,
	}
	return s
}

// liveOptions are the options that Reconfigure changes.
type liveOptions struct {
	hosts   []string
	refused refusedHosts
	proxies []netip.Prefix
	tls     *tls.Config // nil: connections are not encrypted
}

// Reconfigure takes Hosts, TrustedProxies and Certificate from opt. The first two apply to
// requests that are read later, the certificate to connections that are accepted later. It may
// be called by any goroutine.
func (s *Server) Reconfigure(opt Options) {
	live := &liveOptions{hosts: opt.Hosts, proxies: opt.TrustedProxies}
	if opt.Certificate != nil {
		live.tls = &tls.Config{
			Certificates: []tls.Certificate{*opt.Certificate},
			MinVersion:   tls.VersionTLS12,
			NextProtos:   []string{"http/1.1"},
		}
	}
	s.live.Store(live)
}

// Serve accepts from ln, and closes it, until Shutdown; then it returns nil. After Shutdown
// it accepts nothing. It may be called once.
func (s *Server) Serve(ln net.Listener) error {
	g := newGate(ln, s)
	if !s.gate.CompareAndSwap(nil, g) {
		panic("BUG: front: Serve called twice")
	}
	if s.ended.Load() {
		return g.Close()
	}
	if s.openFiles != 0 {
		s.opt.Logger.Info("fewer connections than max_connections: the process may not open more files",
			slog.Int("connections", s.opt.MaxConns), slog.Int("max_connections", s.maxConns), slog.Uint64("open_files", s.openFiles))
	}
	if err := s.http.Serve(g); err != nil {
		return fmt.Errorf("serve %s: %w", ln.Addr(), err)
	}
	return nil
}

// Drain makes each later answer end its connection, with Connection: close. Idle connections stay
// open: their clients may send a request at this moment.
func (s *Server) Drain() { s.drains.Store(true) }

// Shutdown drains and stops accepting. It closes connections that have been idle for idleGrace, or for half of the
// time until the deadline of ctx if that is less, and waits for the requests that have begun. If ctx ends first, it closes their connections and returns the error of ctx.
func (s *Server) Shutdown(ctx context.Context) error {
	s.Drain()
	s.ended.Store(true)
	g := s.gate.Load()
	if g == nil {
		return nil
	}
	if end, ok := ctx.Deadline(); ok { // requests get at least half of the time
		g.grace.Store(int64(min(idleGrace, time.Until(end)/2)))
	}
	closed := g.Close()
	// fasthttp would close connections on which a request arrives.
	err := g.wait(ctx)
	if err != nil {
		g.abort()
	}
	return cmp.Or(s.http.ShutdownWithContext(ctx), err, closed)
}

// ConnLimit returns how many connections may be open.
func (s *Server) ConnLimit() int { return s.opt.MaxConns }

// Connections returns the number of open connections.
func (s *Server) Connections() int {
	if g := s.gate.Load(); g != nil {
		return g.open()
	}
	return 0
}

// serve is fasthttp's handler: it is called for each restatement.
func (s *Server) serve(ctx *fasthttp.RequestCtx) {
	c, ok := ctx.Conn().(*conn)
	if !ok {
		panic(fmt.Sprintf("BUG: front: connection of type %T", ctx.Conn()))
	}
	x := c.exchange
	c.exchange = nil
	x.ctx, x.Started = ctx, ctx.Time()
	s.run(x)
	c.finish(x)
	s.bodies.Add(-x.body.claimed)
	x.freeMemory()
	x.reset()
	s.pool.Put(x)
}

// run calls handle and makes sure that the exchange has an answer.
func (s *Server) run(x *Exchange) {
	defer func() {
		if cause := recover(); cause != nil {
			s.opt.Logger.Error("panic while serving a request", x.Request.LogID(),
				slog.String("cause", fmt.Sprint(cause)), slog.String("stack", string(debug.Stack())))
			if x.stream != nil {
				x.EndStream(false, nil)
				return
			}
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

// connLog receives fasthttp's own log lines. Their arguments may quote a client, so only
// known ones are passed on.
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
