package front

import (
	"bytes"
	"io"
	"time"

	"runner.example/internal/clock"
	"runner.example/internal/fault"
)

const (
	// firstBodyBytes is the memory of a body before more of it arrives: a client that
	// announces a large body and sends little costs little.
	firstBodyBytes = 64 << 10
	// maxChunkExtension limits what may follow the size of a chunk on its line, from the
	// semicolon on. No known client needs it.
	maxChunkExtension = 64
	// maxChunkDigits keeps sizes below 2^60.
	maxChunkDigits = 15
)

var (
	errBodies = fault.New(fault.Overloaded, "no memory for a body of this size at the moment")
	errChunk  = fault.New(fault.InvalidRequest, "the chunks of the body do not follow RFC 9112, or have long extensions")
)

// requestBody is the body of a request.
type requestBody struct {
	bytes           []byte
	begun, done     bool
	expectsContinue bool  // the client waits for 100 Continue
	claimed         int64 // bytes of the server's memory for large bodies
	parts           parts // the state of ReadPart
}

// parts is the state of reading a body with ReadPart.
type parts struct {
	next   partState
	left   int64 // bytes that are not read yet: of the chunk, or of a body without chunks
	read   int64 // bytes of the body that were read
	failed error // what further calls return
}

// partState says what comes next on the connection.
type partState uint8

const (
	partNone     partState = iota // ReadPart was not called
	partSize                      // the line with the size of a chunk
	partBytes                     // bytes of the body
	partChunkEnd                  // the line end after a chunk
	partTrailers                  // the lines after the last chunk
)

// ReadBody reads the body to its end into Request.Body: the exact bytes, never
// decompressed. If it has more than limit bytes, the error is fault.BodyTooLarge, before
// any of it is read if its length was announced. If it arrives too slowly, the error is
// fault.RequestTimeout; if it is malformed, fault.InvalidRequest. A client that waits for
// 100 Continue gets it from here. After an error the request can only be refused, and the
// connection will be closed. A body that was read is not read again, but must keep to the
// limit.
func (x *Exchange) ReadBody(limit int64) error {
	if x.body.done {
		if int64(len(x.body.bytes)) > limit {
			return tooLarge(limit)
		}
		x.Request.Body = x.body.bytes // it may have been replaced
		return nil
	}
	if x.framing.length > limit {
		return tooLarge(limit)
	}
	x.body.begun = true
	x.body.bytes = x.body.bytes[:0]
	var f *fault.Fault
	if x.framing.chunked {
		f = x.readChunks(limit)
	} else {
		f = x.readBytes(x.framing.length)
	}
	if f != nil {
		return f
	}
	x.body.done = true
	x.Request.Body = x.body.bytes
	return nil
}

// HasArrived reports whether the whole body is in the buffer of the connection, so that ReadBody does not wait.
func (x *Exchange) HasArrived() bool {
	return x.body.done || !x.framing.chunked && x.framing.length <= int64(x.conn.w-x.conn.r)
}

// BodyLength returns the length of the body in bytes; -1 if the client has not announced it.
func (x *Exchange) BodyLength() int64 {
	if x.framing.chunked {
		return -1
	}
	return x.framing.length
}

// IsInParts reports whether ReadPart was called.
func (x *Exchange) IsInParts() bool { return x.body.parts.next != partNone }

// ReadTimeout is the time in which a request must arrive.
func (x *Exchange) ReadTimeout() time.Duration { return x.srv.opt.ReadTimeout }

// ReserveBodyMemory reserves n bytes of the memory for bodies until the request is over. The error is fault.Overloaded if
// fewer are free.
func (x *Exchange) ReserveBodyMemory(n int64) error {
	x.body.claimed += n
	if x.srv.bodies.Add(n) > x.srv.opt.MaxBodyMemory {
		x.srv.metrics.overload.With("bodies").Inc()
		return errBodies
	}
	return nil
}

// AwaitBody sets the deadline of the next reads of the body: after the read timeout, but not later than end.
func (x *Exchange) AwaitBody(end time.Time) {
	limit := clock.In(x.srv.opt.ReadTimeout)
	if end.Before(limit) {
		limit = end
	}
	_ = x.conn.SetReadDeadline(limit) // fails if the connection is closed, as reads then do
}

// ReadPart reads the next bytes of the body into p, which must not be empty. It waits until there are some: for the read
// timeout, but not longer than until end. limit is that of the whole body, in bytes. At the end of the body it returns
// io.EOF; other errors are those of ReadBody. It keeps no bytes of the body. ReadBody must not be called after ReadPart.
func (x *Exchange) ReadPart(p []byte, limit int64, end time.Time) (n int, err error) {
	b := &x.body.parts
	switch {
	case x.body.done:
		return 0, io.EOF
	case b.failed != nil:
		return 0, b.failed
	}
	if b.next == partNone {
		x.beginParts()
	}
	x.AwaitBody(end)
	var f *fault.Fault
	if !x.framing.chunked && x.framing.length > limit {
		f = tooLarge(limit)
	}
	for f == nil && n < len(p) && !x.body.done && (n == 0 || x.nextArrived()) {
		if b.next != partBytes {
			f = x.readFraming(limit)
			continue
		}
		var got int
		got, f = x.readSome(p[n:][:min(int64(len(p)-n), b.left)])
		n += got
		b.left -= int64(got)
		b.read += int64(got)
		if b.left == 0 && x.framing.chunked {
			b.next = partChunkEnd
		} else if b.left == 0 {
			x.body.done = true
		}
	}
	switch {
	case f != nil:
		b.failed = f
		if n == 0 {
			return 0, f
		}
	case n == 0:
		return 0, io.EOF
	}
	return n, nil
}

func (x *Exchange) beginParts() {
	b := &x.body.parts
	x.body.begun = true
	if b.next, b.left = partBytes, x.framing.length; x.framing.chunked {
		b.next, b.left = partSize, 0
	} else if b.left == 0 {
		x.body.done = true
	}
}

// nextArrived reports whether more of the body can be read without waiting.
func (x *Exchange) nextArrived() bool {
	c := x.conn
	return c.r < c.w && (x.body.parts.next == partBytes || bytes.IndexByte(c.in[c.r:c.w], '\n') >= 0)
}

// readFraming reads the next line between chunks, or the trailers.
func (x *Exchange) readFraming(limit int64) (f *fault.Fault) {
	b := &x.body.parts
	switch b.next {
	case partSize:
		b.left, f = x.readChunkSize(limit, b.read)
		if b.next = partBytes; b.left == 0 {
			b.next = partTrailers
		}
	case partChunkEnd:
		b.next, f = partSize, x.endChunk()
	case partTrailers:
		f = x.skipTrailers()
		x.body.done = f == nil
	}
	return f
}

func tooLarge(limit int64) *fault.Fault {
	return fault.New(fault.BodyTooLarge, "the body is larger than %d bytes, the limit of this route", limit)
}

// readBytes appends n more bytes to the body.
func (x *Exchange) readBytes(n int64) *fault.Fault {
	for n > 0 {
		if len(x.body.bytes) == cap(x.body.bytes) {
			room := max(int64(cap(x.body.bytes)), min(n, firstBodyBytes))
			room = min(room, n)
			if !x.claim(room) {
				x.srv.metrics.overload.With("bodies").Inc()
				return errBodies
			}
			grown := make([]byte, len(x.body.bytes), int64(len(x.body.bytes))+room)
			copy(grown, x.body.bytes)
			x.body.bytes = grown
		}
		free := x.body.bytes[len(x.body.bytes):cap(x.body.bytes)]
		got, f := x.readSome(free[:min(int64(len(free)), n)])
		if f != nil {
			return f
		}
		x.body.bytes = x.body.bytes[:len(x.body.bytes)+got]
		n -= int64(got)
	}
	return nil
}

// claim counts memory for a body that grows; the first bytes of each body are not counted.
func (x *Exchange) claim(n int64) bool {
	if int64(len(x.body.bytes))+n <= firstBodyBytes {
		return true
	}
	x.body.claimed += n
	return x.srv.bodies.Add(n) <= x.srv.opt.MaxBodyMemory
}

// readSome returns bytes that the connection has buffered, or else reads from the network:
// never more than len(p), so nothing after the body is read.
func (x *Exchange) readSome(p []byte) (int, *fault.Fault) {
	c := x.conn
	if c.r < c.w {
		n := copy(p, c.in[c.r:c.w])
		c.r += n
		return n, nil
	}
	if f := x.sendContinue(); f != nil {
		return 0, f
	}
	n, err := c.receive(p)
	if n == 0 && err != nil {
		return 0, readFault(err, "body")
	}
	return n, nil
}

func (x *Exchange) readChunks(limit int64) *fault.Fault {
	for {
		size, f := x.readChunkSize(limit, int64(len(x.body.bytes)))
		switch {
		case f != nil:
			return f
		case size == 0:
			return x.skipTrailers()
		}
		if f := x.readBytes(size); f != nil {
			return f
		}
		if f := x.endChunk(); f != nil {
			return f
		}
	}
}

// readChunkSize reads the line before a chunk, and returns the size of the chunk; 0 after the last one. The body may have
// limit bytes, of which read bytes were read.
func (x *Exchange) readChunkSize(limit, read int64) (size int64, f *fault.Fault) {
	line, f := x.readLine(maxChunkDigits + maxChunkExtension)
	if f != nil {
		return 0, f
	}
	size, ok := chunkSize(line)
	switch {
	case !ok:
		return 0, errChunk
	case size > limit-read:
		return 0, tooLarge(limit)
	}
	return size, nil
}

// endChunk reads the line end after a chunk.
func (x *Exchange) endChunk() *fault.Fault {
	end, f := x.readLine(0)
	if f == nil && len(end) > 0 {
		f = errChunk
	}
	return f
}

// chunkSize parses the digits and the extension. Parsers disagree about a space between
// them, so it is refused.
func chunkSize(line []byte) (size int64, ok bool) {
	digits, extension, extended := bytes.Cut(line, []byte{';'})
	if len(digits) == 0 || len(digits) > maxChunkDigits {
		return 0, false
	}
	if extended && (len(extension)+1 > maxChunkExtension || !isFieldValue(extension)) {
		return 0, false
	}
	for _, c := range digits {
		d, ok := hexDigit(c)
		if !ok {
			return 0, false
		}
		size = size<<4 | int64(d)
	}
	return size, true
}

// skipTrailers reads and discards the lines after the last chunk: no header is added after
// the request was checked.
func (x *Exchange) skipTrailers() *fault.Fault {
	opt := &x.srv.opt
	for left, lines := opt.MaxHeaderBytes, 0; ; lines++ {
		line, f := x.readLine(left)
		if f != nil {
			return f
		}
		if len(line) == 0 {
			return nil
		}
		name, value, found := bytes.Cut(line, []byte{':'})
		if !found || !isToken(name) || !isFieldValue(value) || lines == opt.MaxHeaderLines {
			return errChunk
		}
		left -= len(line)
	}
}

// readLine returns the next line of the body's framing without its CR LF, valid until the
// next read. For a line of more than limit bytes the error is errChunk.
func (x *Exchange) readLine(limit int) ([]byte, *fault.Fault) {
	c := x.conn
	for looked := 0; ; {
		if i := bytes.IndexByte(c.in[c.r+looked:c.w], '\n'); i >= 0 {
			line := c.in[c.r : c.r+looked+i]
			c.r += len(line) + 1
			if len(line) == 0 || line[len(line)-1] != '\r' || len(line)-1 > limit {
				return nil, errChunk
			}
			return line[:len(line)-1], nil
		}
		looked = c.w - c.r
		if looked > limit+1 {
			return nil, errChunk
		}
		if looked == 0 {
			if f := x.sendContinue(); f != nil {
				return nil, f
			}
		}
		if err := c.fill(); err != nil {
			return nil, readFault(err, "body")
		}
	}
}

// sendContinue sends 100 Continue, once, to a client that waits for it. The answer before
// it has been sent: fasthttp delays one only while it has more input, and the restatement
// ends with its request.
func (x *Exchange) sendContinue() *fault.Fault {
	if !x.body.expectsContinue {
		return nil
	}
	x.body.expectsContinue = false
	c := x.conn
	err := c.SetWriteDeadline(clock.In(x.srv.opt.WriteTimeout))
	if err == nil {
		_, err = c.send([]byte("HTTP/1.1 100 Continue\r\n\r\n"))
	}
	if err != nil {
		return readFault(err, "body")
	}
	return nil
}

func hexDigit(c byte) (byte, bool) {
	switch {
	case isDigit(c):
		return c - '0', true
	case 'a' <= c|0x20 && c|0x20 <= 'f':
		return c | 0x20 - 'a' + 10, true
	}
	return 0, false
}
