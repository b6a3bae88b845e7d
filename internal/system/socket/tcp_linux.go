package socket

import (
	"io"
	"net"
	"os"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// connection is a TCP connection that makes its system calls without telling Go's scheduler.
// They do not block: the socket is in the network poller, which waits for it. The scheduler
// would give the processor to another thread whenever a call takes more than 20 µs, and
// sending on loopback often does. That switch costs more than it saves.
type connection struct {
	*net.TCPConn
	raw         syscall.RawConn
	read, write transfer
	vector      vector
	direct      Writer
}

// transfer is the system call of one direction.
type transfer struct {
	bytes []byte // to read into, or to write
	n     int
	errno syscall.Errno
	call  func(fd uintptr) bool // made once, so that no transfer allocates
}

// vector is the system call that writes two pieces.
type vector struct {
	pieces [2]unix.Iovec
	wait   bool
	n      int
	errno  syscall.Errno
	call   func(fd uintptr) bool // made once, so that no write allocates
}

// maxTransfer limits the bytes of one system call, and so the time for which it delays a
// garbage collection.
const maxTransfer = 64 << 10

func fast(conn net.Conn) net.Conn {
	tcp, ok := conn.(*net.TCPConn)
	if !ok {
		return conn
	}
	raw, err := tcp.SyscallConn()
	if err != nil { // it is closed
		return conn
	}
	s := &connection{TCPConn: tcp, raw: raw}
	s.read.bind(unix.SYS_READ)
	s.write.bind(unix.SYS_WRITE)
	s.vector.bind()
	s.direct = Writer{raw, &s.vector}
	return s
}

// bind makes the function that RawConn calls until it returns true; after false it waits.
func (t *transfer) bind(number uintptr) {
	t.call = func(fd uintptr) bool {
		for {
			n, _, errno := unix.RawSyscall(number, fd, uintptr(unsafe.Pointer(unsafe.SliceData(t.bytes))),
				uintptr(min(len(t.bytes), maxTransfer)))
			switch errno {
			case unix.EINTR:
				continue
			case unix.EAGAIN:
				return false
			}
			t.n, t.errno = int(n), errno
			return true
		}
	}
}

// bind makes the function that RawConn calls until it returns true; after false it waits.
func (v *vector) bind() {
	v.call = func(fd uintptr) bool {
		for {
			n, _, errno := unix.RawSyscall(unix.SYS_WRITEV, fd, uintptr(unsafe.Pointer(&v.pieces)), uintptr(len(v.pieces)))
			switch {
			case errno == unix.EINTR:
				continue
			case errno == unix.EAGAIN && v.wait:
				return false
			}
			v.n, v.errno = int(n), errno
			return true
		}
	}
}

func (v *vector) write(raw syscall.RawConn, a, b []byte, wait bool) (int, error) {
	for i, p := range [...][]byte{a, b} {
		v.pieces[i].Base = unsafe.SliceData(p)
		v.pieces[i].SetLen(len(p))
	}
	v.wait = wait
	err := raw.Write(v.call)
	v.pieces = [2]unix.Iovec{}
	switch {
	case err != nil:
		return 0, err
	case v.errno == unix.EAGAIN:
		return 0, nil
	case v.errno != 0:
		return 0, os.NewSyscallError("writev", v.errno)
	}
	return v.n, nil
}

// Read implements net.Conn.
func (s *connection) Read(p []byte) (int, error) {
	if len(p) == 0 {
		return 0, nil
	}
	t := &s.read
	t.bytes = p
	err := s.raw.Read(t.call)
	t.bytes = nil
	switch {
	case err != nil:
		return 0, err
	case t.errno != 0:
		return 0, os.NewSyscallError("read", t.errno)
	case t.n == 0:
		return 0, io.EOF
	}
	return t.n, nil
}

// Write implements net.Conn.
func (s *connection) Write(p []byte) (done int, err error) {
	t := &s.write
	for done < len(p) && err == nil {
		t.bytes = p[done:]
		switch err = s.raw.Write(t.call); {
		case err != nil:
		case t.errno != 0:
			err = os.NewSyscallError("write", t.errno)
		default:
			done += t.n
		}
	}
	t.bytes = nil
	return done, err
}

func direct(conn net.Conn) *Writer {
	if s, ok := conn.(*connection); ok {
		return &s.direct
	}
	if raw := rawOf(conn); raw != nil {
		return &Writer{raw: raw}
	}
	return nil
}

func (w *Writer) write(a, b []byte, wait bool) (n int, err error) {
	if w.fast != nil && len(a)+len(b) <= maxTransfer {
		return w.fast.write(w.raw, a, b, wait)
	}
	once := func(fd uintptr) bool {
		for {
			if n, err = unix.Writev(int(fd), [][]byte{a, b}); err != unix.EINTR {
				return !wait || err != unix.EAGAIN
			}
		}
	}
	if failed := w.raw.Write(once); failed != nil {
		return 0, failed
	}
	switch err {
	case nil:
		return n, nil
	case unix.EAGAIN:
		return 0, nil
	}
	return 0, os.NewSyscallError("writev", err)
}

func writeMore(raw syscall.RawConn, p []byte) (n int, err error) {
	once := func(fd uintptr) bool {
		for {
			if n, err = unix.SendmsgN(int(fd), p, nil, nil, unix.MSG_MORE|unix.MSG_DONTWAIT|unix.MSG_NOSIGNAL); err != unix.EINTR {
				return err != unix.EAGAIN
			}
		}
	}
	if failed := raw.Write(once); failed != nil {
		return 0, failed
	}
	return n, os.NewSyscallError("sendmsg", err)
}

// maxSend limits the bytes of one sendfile.
const maxSend = 2 << 20

// sendFile may wait for the disk, so the scheduler is told, unlike in connection.
func sendFile(raw syscall.RawConn, f *os.File, offset, n int64) (sent int64, err error) {
	file, err := f.SyscallConn()
	if err != nil {
		return 0, err
	}
	var done int
	once := func(to uintptr) bool {
		failed := file.Control(func(from uintptr) {
			for {
				at := offset
				if done, err = unix.Sendfile(int(to), int(from), &at, int(min(n, maxSend))); err != unix.EINTR {
					return
				}
			}
		})
		if failed != nil {
			done, err = 0, failed
		}
		return err != unix.EAGAIN
	}
	if failed := raw.Write(once); failed != nil {
		return 0, failed
	}
	switch {
	case err != nil:
		return 0, os.NewSyscallError("sendfile", err)
	case done == 0:
		return 0, io.ErrUnexpectedEOF
	}
	return int64(done), nil
}

func acked(conn net.Conn) (n uint64) {
	raw := rawOf(conn)
	if raw == nil {
		return 0
	}
	_ = raw.Control(func(fd uintptr) {
		if info, err := unix.GetsockoptTCPInfo(int(fd), unix.IPPROTO_TCP, unix.TCP_INFO); err == nil {
			n = info.Bytes_acked
		}
	})
	return n
}

func hungUp(conn net.Conn) (is bool) {
	raw := rawOf(conn)
	if raw == nil {
		return false
	}
	err := raw.Control(func(fd uintptr) {
		p := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLRDHUP}}
		n, err := unix.Poll(p, 0)
		is = err == nil && n > 0 && p[0].Revents&(unix.POLLRDHUP|unix.POLLHUP|unix.POLLERR) != 0
	})
	return is || err != nil
}

// rawOf returns nil if conn is closed, or no connection of the system.
func rawOf(conn net.Conn) syscall.RawConn {
	c, ok := conn.(syscall.Conn)
	if !ok {
		return nil
	}
	raw, _ := c.SyscallConn()
	return raw
}
