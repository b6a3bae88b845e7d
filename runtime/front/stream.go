package front

import (
	"bytes"
	"errors"
	"strconv"
	"sync"
	"time"

	"runner.example/hostabi/abi"
	"runner.example/internal/clock"
	"runner.example/internal/system/socket"
)

// commentEvery is the pause after which an idle stream of events gets a comment: proxies and browsers close connections
// that are silent for longer.
const commentEvery = 15 * time.Second

// commentTime limits the write of a comment, for which the next part waits.
const commentTime = 100 * time.Millisecond

var errGone = errors.New("the client takes no more of the answer")

// stream is an answer that is sent in parts. Its bytes are written to the connection as they come, not by fasthttp.
type stream struct {
	conn      *conn
	direct    *socket.Writer // the socket, if bytes are written to it as they are
	keepAlive bool           // the connection stays open after the last part
	chunked   bool           // else the end of the connection is the end of the body
	bodyless  bool           // the head was all, as for HEAD
	events    bool           // it is a text/event-stream

	limit   time.Duration // of each write
	mu      sync.Mutex    // guards what follows, and writes to the connection: comments come from a timer
	framed  []byte        // of the last part; nil when it is sent
	unsent  []byte        // the rest of it
	buffer  *[]byte       // that framed is in, from Server.parts; nil: framed is in none
	gone    bool
	tail    [2]byte // the last bytes of the body
	wrote   time.Time
	comment *time.Timer // of the next comment; nil: no comment follows
}

// BeginStream sends the head of r, whose body follows in parts with WritePart. The exchange has its answer then, and
// EndStream must be called. waits and the error are as those of WritePart.
func (x *Exchange) BeginStream(r *abi.Response) (waits bool, err error) {
	h, c := x.head(r), x.conn
	s := &stream{conn: c, chunked: x.framing.minor > 0, limit: x.srv.opt.WriteTimeout}
	if r.Status < 400 && !x.body.begun { // the body may be read while the answer is sent
		_ = x.sendContinue() // the head of the answer fails too
	}
	x.stream = s
	s.events = bytes.HasPrefix(h.ContentType(), []byte("text/event-stream"))
	s.bodyless = x.framing.headOnly || bodyless(r.Status)
	s.keepAlive = s.chunked && x.framing.known && c.skipBody(x) && x.framing.keepAlive && !x.srv.drains.Load()
	if c.tls == nil {
		s.direct = socket.Direct(c.Conn)
	}
	if s.events && len(h.Peek("X-Accel-Buffering")) == 0 {
		h.Set("X-Accel-Buffering", "no")
	}
	if s.events && len(h.PeekBytes(cacheControl)) == 0 {
		h.SetCanonical(cacheControl, valueNoStore)
	}
	if s.chunked {
		h.SetContentLength(-1)
	} else {
		h.SetContentLength(-2)
	}
	if !s.keepAlive {
		h.SetConnectionClose()
	}
	s.framed = h.AppendBytes(nil)
	x.ctx.Response.Reset() // fasthttp writes an answer that is discarded
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.send(false); err != nil {
		return false, err
	}
	if s.events && !s.bodyless {
		s.tail = [2]byte{'\n', '\n'}
		s.comment = time.AfterFunc(commentEvery, s.sendComment)
	}
	return len(s.unsent) > 0, nil
}

// WritePart sends a part of the body as one chunk. It copies the part, and does not wait for the client: if waits is
// true, Flush must be called before the next part. With an error the client is gone.
func (x *Exchange) WritePart(part []byte) (waits bool, err error) {
	s := x.stream
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.gone || s.bodyless:
		return false, errGone
	case len(part) == 0:
		return false, nil
	case len(part) == 1:
		s.tail[0], s.tail[1] = s.tail[1], part[0]
	default:
		s.tail = [2]byte(part[len(part)-2:])
	}
	s.frame(part)
	err = s.send(false)
	return len(s.unsent) > 0, err
}

// Flush waits until the last part is sent. If the client takes nothing for the write timeout, it is gone.
func (x *Exchange) Flush() error {
	x.stream.mu.Lock()
	defer x.stream.mu.Unlock()
	return x.stream.flush()
}

// frame makes a part the next bytes to send, after those that are not sent: a comment that the kernel has not taken.
func (s *stream) frame(part []byte) {
	if s.buffer == nil {
		s.buffer = s.conn.gate.srv.parts.Get().(*[]byte)
	}
	s.framed = append((*s.buffer)[:0], s.unsent...)
	if s.chunked {
		s.framed = append(strconv.AppendInt(s.framed, int64(len(part)), 16), '\r', '\n')
	}
	s.framed = append(s.framed, part...)
	if s.chunked {
		s.framed = append(s.framed, '\r', '\n')
	}
	*s.buffer = s.framed
}

// release gives the buffer back when all of it is sent: the stream may wait for minutes now.
func (s *stream) release() {
	if len(s.unsent) > 0 {
		return
	}
	s.framed, s.unsent = nil, nil
	if s.buffer != nil {
		s.conn.gate.srv.parts.Put(s.buffer)
		s.buffer = nil
	}
}

// send sends what is framed: all, or what the kernel takes at once.
func (s *stream) send(all bool) error {
	s.unsent, s.wrote = s.framed, clock.Mark()
	if s.direct != nil {
		if s.limitWrites(true) != nil {
			return s.lost()
		}
		n, err := s.direct.Write(s.unsent, nil, false)
		if err != nil {
			return s.lost()
		}
		s.unsent = s.unsent[n:]
	}
	if all {
		return s.flush()
	}
	s.release()
	return nil
}

// flush sends the rest of what is framed.
func (s *stream) flush() error {
	for len(s.unsent) > 0 && !s.gone {
		err, n := s.limitWrites(false), 0
		if err == nil {
			n, err = s.conn.send(s.unsent[:min(len(s.unsent), keptBodyBytes)])
		}
		s.unsent = s.unsent[n:]
		if err != nil {
			return s.lost()
		}
	}
	if s.gone {
		return errGone
	}
	s.release()
	return nil
}

// limitWrites gives the client the write timeout, from now on. direct writes need it on the connection itself.
func (s *stream) limitWrites(direct bool) error {
	err := s.conn.SetWriteDeadline(clock.In(s.limit))
	if err == nil && direct {
		err = s.conn.applyWriteDeadline()
	}
	return err
}

func (s *stream) lost() error {
	s.gone, s.unsent = true, nil
	s.release()
	return errGone
}

// sendComment keeps the connection of a silent stream of events awake. That the client does not take it is seen at the
// next part.
func (s *stream) sendComment() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.gone || s.comment == nil {
		return
	}
	next := commentEvery
	if idle := time.Since(s.wrote); idle < commentEvery {
		next -= idle
	} else if len(s.unsent) == 0 && s.tail == [2]byte{'\n', '\n'} { // else it would be inside of an event
		s.frame([]byte(":\n\n"))
		write := s.limit
		s.limit = commentTime
		_ = s.send(s.direct == nil)
		s.limit = write
	}
	s.comment.Reset(next)
}

// HungUp reports whether the client has hung up, as far as the system can tell without a write. Any goroutine may call it,
// until handle returns.
func (x *Exchange) HungUp() bool { return socket.HungUp(x.conn.Conn) }

// Interrupt ends the connection of an answer that has begun. Any goroutine may call it, until handle returns.
func (x *Exchange) Interrupt() { x.conn.reset() }

// EndStream ends an answer that has begun. If it is not whole, the client can see that: a chunked body has no last chunk,
// and a stream of events gets the event before, if it is not nil.
func (x *Exchange) EndStream(whole bool, event []byte) {
	s := x.stream
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.comment != nil {
		s.comment.Stop()
		s.comment = nil
	}
	err := s.flush()
	if err == nil && s.bodyless {
		return
	}
	if err == nil && !whole && event != nil && s.events {
		if s.tail != [2]byte{'\n', '\n'} { // ends the event that is not complete
			event = append([]byte("\n\n"), event...)
		}
		s.frame(event)
		err = s.send(true)
	}
	if err == nil && whole && s.chunked {
		s.framed = append(s.framed[:0], "0\r\n\r\n"...)
		err = s.send(true)
	}
	if err == nil && whole {
		return
	}
	s.keepAlive = false
	if err != nil || !s.chunked {
		s.conn.reset()
	}
}

// IsStreaming reports whether the answer has begun with BeginStream.
func (x *Exchange) IsStreaming() bool { return x.stream != nil }
