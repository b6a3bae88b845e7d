package wasi

import (
	"runner.example/hostabi"
	"runner.example/internal/component/canon"
)

// inputStream has all bytes that it will ever have.
type inputStream struct {
	rest []byte
}

func (*inputStream) kind() string { return "input-stream" }

func (s *inputStream) keep(*run) resource {
	if len(s.rest) > 0 {
		return nil
	}
	return &inputStream{}
}

// outputStream passes bytes on at once.
type outputStream struct {
	to     sink
	used   int  // bytes of maxWrite that were written since check-write
	closed bool // it has failed
}

func (*outputStream) kind() string { return "output-stream" }

func (s *outputStream) keep(r *run) resource {
	switch s.to.(type) {
	case stdout:
		return &outputStream{to: stdout{r.call}}
	case stderr:
		return &outputStream{to: stderr{r.call}}
	}
	return nil
}

// sink is where an outputStream passes bytes to. It returns nil, or why it cannot take them.
type sink interface{ write(b []byte) *ioError }

// stdout is the answer of a command, else lines of the log, as stderr is.
type (
	stdout struct{ *hostabi.Call }
	stderr struct{ *hostabi.Call }
)

func (s stdout) write(b []byte) *ioError {
	if _, err := s.Stdout().Write(b); err != nil {
		return &ioError{text: err.Error()}
	}
	return nil
}

func (s stderr) write(b []byte) *ioError {
	_, _ = s.Stderr().Write(b) // never fails
	return nil
}

// ioError is the resource error of wasi:io.
type ioError struct {
	text string
	http any // its error-code of wasi:http; nil: it has none
	file any // its error-code of wasi:filesystem; nil: it has none
}

func (*ioError) kind() string { return "error" }

const (
	// maxWrite is what check-write permits, and maxRead the most that is read at once. A guest that writes without
	// check-write may write as much: some do, and the stream would have permitted it.
	maxWrite = 1 << 20
	maxRead  = 1 << 20
	// maxBlockingWrite is the most that is written at once without check-write.
	maxBlockingWrite = 4096
)

var closed = fail(canon.Case{Index: 1})

var errorFunctions = map[string]function{
	"[method]error.to-debug-string": func(r *run, a []any) any { return use[*ioError](r, a[0]).text },
}

var streamFunctions = map[string]function{
	"[method]input-stream.read":             readStream,
	"[method]input-stream.blocking-read":    readStream,
	"[method]input-stream.skip":             skipStream,
	"[method]input-stream.blocking-skip":    skipStream,
	"[method]input-stream.subscribe":        subscribe[*inputStream],
	"[method]output-stream.check-write":     checkWrite,
	"[method]output-stream.flush":           flush,
	"[method]output-stream.blocking-flush":  flush,
	"[method]output-stream.subscribe":       subscribe[*outputStream],
	"[method]output-stream.splice":          splice,
	"[method]output-stream.blocking-splice": splice,
	"[method]output-stream.write": func(r *run, a []any) any {
		return r.writePermitted(use[*outputStream](r, a[0]), a[1].([]byte))
	},
	"[method]output-stream.write-zeroes": func(r *run, a []any) any {
		s := use[*outputStream](r, a[0])
		return r.writePermitted(s, r.zeroes(a[1].(uint64), maxWrite-s.used))
	},
	"[method]output-stream.blocking-write-and-flush": func(r *run, a []any) any {
		return r.writeBlocking(use[*outputStream](r, a[0]), a[1].([]byte))
	},
	"[method]output-stream.blocking-write-zeroes-and-flush": func(r *run, a []any) any {
		return r.writeBlocking(use[*outputStream](r, a[0]), r.zeroes(a[1].(uint64), maxBlockingWrite))
	},
}

// take takes the next bytes, at most n. ok is false if the stream has no more.
func (s *inputStream) take(n uint64) (b []byte, ok bool) {
	n = min(n, uint64(len(s.rest)), maxRead)
	b, ok = s.rest[:n], len(s.rest) > 0
	s.rest = s.rest[n:]
	return b, ok
}

func readStream(r *run, a []any) any {
	b, more := use[*inputStream](r, a[0]).take(a[1].(uint64))
	if !more {
		return closed
	}
	return ok(b)
}

func skipStream(r *run, a []any) any {
	b, more := use[*inputStream](r, a[0]).take(a[1].(uint64))
	if !more {
		return closed
	}
	return ok(uint64(len(b)))
}

func checkWrite(r *run, a []any) any {
	s := use[*outputStream](r, a[0])
	if s.closed {
		return closed
	}
	s.used = 0
	return ok(uint64(maxWrite))
}

// flush has nothing to do: a stream passes bytes on when they are written.
func flush(r *run, a []any) any {
	if use[*outputStream](r, a[0]).closed {
		return closed
	}
	return ok(nil)
}

// zeroes are bytes that the guest could have passed. If they are more than permitted, the run ends.
func (r *run) zeroes(n uint64, permit int) []byte {
	if n > uint64(permit) {
		r.call.Trap("a write of %d bytes, and %d are permitted", n, permit)
	}
	r.call.CountMoved(int(n))
	return make([]byte, n)
}

func (r *run) writePermitted(s *outputStream, b []byte) any {
	if s.used += len(b); s.used > maxWrite {
		r.call.Trap("a write of %d bytes, and %d are permitted", len(b), maxWrite-(s.used-len(b)))
	}
	return r.writeTo(s, b)
}

func (r *run) writeBlocking(s *outputStream, b []byte) any {
	if len(b) > maxBlockingWrite {
		r.call.Trap("a blocking write of %d bytes: it may have %d", len(b), maxBlockingWrite)
	}
	return r.writeTo(s, b)
}

func (r *run) writeTo(s *outputStream, b []byte) any {
	if s.closed {
		return closed
	}
	if err := s.to.write(b); err != nil {
		s.closed = true
		return fail(canon.Case{Value: r.add(err, 0)})
	}
	return ok(nil)
}

// splice writes what it reads, as check-write, read and write do.
func splice(r *run, a []any) any {
	to, from := use[*outputStream](r, a[0]), use[*inputStream](r, a[1])
	if to.closed {
		return closed
	}
	b, more := from.take(min(a[2].(uint64), maxWrite))
	if !more {
		return closed
	}
	r.call.CountMoved(len(b))
	if result := r.writeTo(to, b).(canon.Case); result.Index != 0 {
		return result
	}
	return ok(uint64(len(b)))
}
