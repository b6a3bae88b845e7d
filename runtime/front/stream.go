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

// commentInterval is the time after which a silent stream of events gets a comment: proxies and browsers close connections
// that are silent for long.
const commentInterval = 15 * time.Second

// commentTimeout limits the write of a comment, for which the next part waits.
const commentTimeout = 100 * time.Millisecond

var errGone = errors.New("the client takes no more of the answer")

// stream is an answer that is sent in parts. Its bytes are written to the connection at once, and not by fasthttp.
type stream struct {
	conn      *conn
	direct    *socket.Writer // the socket, if the connection has no TLS
	keepAlive bool           // the connection stays open after the last part
	chunked   bool           // else the body ends with the connection
	bodyless  bool           // the answer is its head, as for HEAD
	events    bool           // it is a text/event-stream

	limit   time.Duration // of each write
	mu      sync.Mutex    // guards what follows, and writes to the connection: comments come from a timer
	framed  []byte        // the last part as it is sent; nil when all of it is sent
	unsent  []byte        // the rest of framed
	buffer  *[]byte       // the buffer of framed, from Server.parts; nil: framed is in no such buffer
	gone    bool
	tail    [2]byte // the last bytes of the body
	wrote   time.Time
	comment *time.Timer // sends the next comment; nil: no comment follows
}

// BeginStream sends the head of r, whose body follows in parts with WritePart. After it, also after an error, EndStream must
// be called. waits and the error have the meaning that they have for WritePart.
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
	s.direct = c.direct()
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
		s.comment = time.AfterFunc(commentInterval, s.sendComment)
	}
	return len(s.unsent) > 0, nil
}

// WritePart sends a part of the body as one chunk. It copies the part, and does not wait for the client: if waits is true,
// the kernel has not taken all of it, and Flush must be called before the next part. An error means that the client is gone.
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

// frame appends a part to the bytes to send. Before it there may be a rest of a comment, which the kernel has not taken.
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

// release returns the buffer when all of it is sent: the stream may now be silent for minutes.
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

// send sends what is framed: all of it, or what the kernel takes at once.
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

// limitWrites starts the write timeout. For direct writes it is set on the connection itself.
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

// sendComment keeps the connection of a silent stream of events open. If the client does not take the comment, the next part
// finds that out.
func (s *stream) sendComment() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.gone || s.comment == nil {
		return
	}
	next := commentInterval
	if idle := time.Since(s.wrote); idle < commentInterval {
		next -= idle
	} else if len(s.unsent) == 0 && s.tail == [2]byte{'\n', '\n'} { // not inside of an event
		s.frame([]byte(":\n\n"))
		write := s.limit
		s.limit = commentTimeout
		_ = s.send(s.direct == nil)
		s.limit = write
	}
	s.comment.Reset(next)
}

// HungUp reports whether the client has closed the connection, or its sending side, as far as the system can tell without a
// write. Any goroutine may call it, until the exchange ends.
func (x *Exchange) HungUp() bool { return socket.HungUp(x.conn.Conn) }

// Interrupt closes the connection of an answer that has begun. Any goroutine may call it, until the exchange ends.
func (x *Exchange) Interrupt() { x.conn.reset() }

// EndStream ends an answer that has begun. If it is not whole, the client can see that: a chunked body has no last chunk. A
// stream of events that is not whole also gets event as its last one, if event is not nil.
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
		if s.tail != [2]byte{'\n', '\n'} { // end the incomplete event
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
