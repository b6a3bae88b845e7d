package socket

import (
	"net"
	"os"
	"syscall"
)

// Fast returns conn with faster reads and writes if it is a TCP connection and the system has them, and otherwise conn
// itself. The race detector does not see the bytes that it moves. One goroutine at a time may read, and one may
// write.
func Fast(conn net.Conn) net.Conn { return fast(conn) }

// Direct writes to conn past Go's buffers and past TLS; nil: that is not possible.
func Direct(conn net.Conn) *Writer { return direct(conn) }

// Writer writes to a connection. One goroutine at a time may use it.
type Writer struct {
	raw  syscall.RawConn
	fast *vector // of short writes; nil: the system has no faster way
}

// Write writes a, and then b, with one system call if wait is false. It returns how much of both was written, which
// may be a part. If wait is true, it waits until at least one byte was written; otherwise n may be 0.
func (w *Writer) Write(a, b []byte, wait bool) (n int, err error) { return w.write(a, b, wait) }

// WriteMore writes p, of which more follows at once: the system may wait with it. It waits until at least one byte was
// written.
func (w *Writer) WriteMore(p []byte) (n int, err error) { return writeMore(w.raw, p) }

// SendFile writes at most n bytes of f from offset, without copying them. It waits until at least one byte was written;
// sent is 0 only with an error, which is io.ErrUnexpectedEOF if f ends before offset.
func (w *Writer) SendFile(f *os.File, offset, n int64) (sent int64, err error) {
	return sendFile(w.raw, f, offset, n)
}

// HungUp reports whether the peer of conn has closed its side or reset the connection, or conn is closed. It neither
// waits nor reads. Elsewhere than on Linux, a peer whose last bytes are not read yet has not hung up, and on Windows none
// has.
func HungUp(conn net.Conn) bool { return hungUp(conn) }

// Acked returns how many bytes the peer of conn has acknowledged; 0: unknown.
func Acked(conn net.Conn) uint64 { return acked(conn) }
