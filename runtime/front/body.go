package front

import (
	"bytes"
	"time"

	"runner.example/internal/fault"
)

const (
	// firstBodyBytes is what a body gets before it has sent more: a caller who
	// announces a lot and sends little costs little.
	firstBodyBytes = 64 << 10
	// maxChunkExtension is what may stand between the size of a chunk and the
	// end of its line, from the semicolon on. Nobody needs any of it.
	maxChunkExtension = 64
	// maxChunkDigits keeps sizes below 2^60.
	maxChunkDigits = 15
)

var (
	errBodies = fault.New(fault.Overloaded, "there is no room for a body of this size at the moment")
	errChunk  = fault.New(fault.InvalidRequest, "the chunks of the body are not as RFC 9112 has them, or have long extensions")
)

// requestBody is the body of a request.
type requestBody struct {
	bytes           []byte
	begun, done     bool
	expectsContinue bool  // the client waits for 100 Continue
	claimed         int64 // bytes of the server's memory for large bodies
}

// ReadBody reads the body to its end into Request.Body: the exact bytes, never
// inflated. One of more than limit bytes is fault.BodyTooLarge, when its length
// was announced before any of it is read; one that comes too slowly
// fault.RequestTimeout, a broken one fault.InvalidRequest. A caller who waits
// for it is told to go on (100 Continue) only from here. After an error the
// request can only be refused, and the connection will be closed.
func (x *Exchange) ReadBody(limit int64) error {
	if x.body.done {
		x.Request.Body = x.body.bytes // something else may have stood there
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

func tooLarge(limit int64) *fault.Fault {
	return fault.New(fault.BodyTooLarge, "the body of this request may be %d bytes", limit)
}

// readBytes appends n more bytes to the body.
func (x *Exchange) readBytes(n int64) *fault.Fault {
	for n > 0 {
		if len(x.body.bytes) == cap(x.body.bytes) {
			room := max(int64(cap(x.body.bytes)), min(n, firstBodyBytes))
			room = min(room, n)
			if !x.claim(room) {
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

// claim takes room for a body that grows; the first bytes of each are free.
func (x *Exchange) claim(n int64) bool {
	if int64(len(x.body.bytes))+n <= firstBodyBytes {
		return true
	}
	x.body.claimed += n
	return x.srv.bodies.Add(n) <= x.srv.opt.MaxBodyMemory
}

// readSome gives what the connection holds, else what the wire does: never a
// byte more than p has room for, so nothing behind the body is touched.
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
	n, err := c.Conn.Read(p)
	if n == 0 && err != nil {
		return 0, readFault(err, "body")
	}
	return n, nil
}

func (x *Exchange) readChunks(limit int64) *fault.Fault {
	for {
		line, f := x.readLine(maxChunkDigits + maxChunkExtension)
		if f != nil {
			return f
		}
		size, ok := chunkSize(line)
		switch {
		case !ok:
			return errChunk
		case size == 0:
			return x.skipTrailers()
		case size > limit-int64(len(x.body.bytes)):
			return tooLarge(limit)
		}
		if f := x.readBytes(size); f != nil {
			return f
		}
		if end, f := x.readLine(0); f != nil {
			return f
		} else if len(end) > 0 {
			return errChunk
		}
	}
}

// chunkSize reads digits and an extension: a blank between them is how parsers
// come to disagree, and is refused.
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

// skipTrailers reads the lines behind the last chunk and forgets them: no
// header comes into being after the request was judged.
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

// readLine gives the next line of the body's framing without its CR LF; it is
// valid until the next read. A line of more than limit bytes is errChunk.
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

// sendContinue tells a caller who asked for it, once, that the body is wanted.
// The answer before it is on the wire by now: fasthttp keeps one back only
// while it has read ahead, and the restatement ends where it ends.
func (x *Exchange) sendContinue() *fault.Fault {
	if !x.body.expectsContinue {
		return nil
	}
	x.body.expectsContinue = false
	c := x.conn
	err := c.SetWriteDeadline(time.Now().Add(x.srv.opt.WriteTimeout))
	if err == nil {
		_, err = c.Conn.Write([]byte("HTTP/1.1 100 Continue\r\n\r\n"))
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
