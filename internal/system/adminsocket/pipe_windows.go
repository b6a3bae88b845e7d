package adminsocket

import (
	"errors"
	"io"
	"net"
	"os"
	"sync"
	"unsafe"

	"golang.org/x/sys/windows"

	"runner.example/internal/system/process"
)

// pipeBytes is how much of each direction a pipe holds.
const pipeBytes = 64 << 10

// pipes accepts connections to a named pipe. One instance of the pipe always waits for a client.
type pipes struct {
	name   *uint16
	rights *windows.SecurityAttributes

	mu   sync.Mutex // of Accept
	next windows.Handle
	// waiting is the operation that waits for a client. Windows writes to it until the operation has ended, so it is in
	// the heap: a stack may be moved meanwhile.
	waiting windows.Overlapped
	closed  windows.Handle // an event
	once    sync.Once
}

// listenPipe creates a named pipe that only the process's own user may open, from this machine. The name must be new.
func listenPipe(name string) (*pipes, error) {
	// This user is the owner, also if it is an administrator: dialPipe expects that. It has all rights, and others none.
	user := process.SID()
	descriptor, err := windows.SecurityDescriptorFromString("O:" + user + "D:P(A;;GA;;;" + user + ")")
	if err != nil {
		return nil, err
	}
	p := &pipes{rights: &windows.SecurityAttributes{SecurityDescriptor: descriptor}}
	p.rights.Length = uint32(unsafe.Sizeof(*p.rights))
	if p.name, err = windows.UTF16PtrFromString(name); err != nil {
		return nil, err
	}
	if p.closed, err = windows.CreateEvent(nil, 1, 0, nil); err != nil {
		return nil, err
	}
	if p.next, err = p.create(windows.FILE_FLAG_FIRST_PIPE_INSTANCE); err != nil {
		_ = windows.CloseHandle(p.closed)
		return nil, os.NewSyscallError("CreateNamedPipe", err)
	}
	return p, nil
}

// create creates an instance of the pipe.
func (p *pipes) create(flags uint32) (windows.Handle, error) {
	return windows.CreateNamedPipe(p.name, windows.PIPE_ACCESS_DUPLEX|windows.FILE_FLAG_OVERLAPPED|flags,
		windows.PIPE_TYPE_BYTE|windows.PIPE_READMODE_BYTE|windows.PIPE_WAIT|windows.PIPE_REJECT_REMOTE_CLIENTS,
		windows.PIPE_UNLIMITED_INSTANCES, pipeBytes, pipeBytes, 0, p.rights)
}

// accept waits for the next client. The error is net.ErrClosed after close.
func (p *pipes) accept() (net.Conn, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.next == 0 {
		return nil, net.ErrClosed
	}
	if err := p.connect(); err != nil {
		_ = windows.CloseHandle(p.next)
		p.next = 0
		return nil, err
	}
	connected := p.next
	var err error
	if p.next, err = p.create(0); err != nil {
		p.next = 0
		return nil, errors.Join(os.NewSyscallError("CreateNamedPipe", err), windows.CloseHandle(connected))
	}
	return newConn(connected, windows.UTF16PtrToString(p.name)), nil
}

// connect waits until a client has opened the next instance.
func (p *pipes) connect() error {
	event, err := windows.CreateEvent(nil, 1, 0, nil)
	if err != nil {
		return err
	}
	defer func() { _ = windows.CloseHandle(event) }()
	p.waiting = windows.Overlapped{HEvent: event}
	waiting := &p.waiting
	switch err := windows.ConnectNamedPipe(p.next, waiting); err {
	case nil, windows.ERROR_PIPE_CONNECTED, windows.ERROR_NO_DATA: // a client was there before; with the last one it has left again
		return nil
	case windows.ERROR_IO_PENDING:
	default:
		return os.NewSyscallError("ConnectNamedPipe", err)
	}
	first, err := windows.WaitForMultipleObjects([]windows.Handle{p.closed, event}, false, windows.INFINITE)
	var done uint32
	if err != nil || first == windows.WAIT_OBJECT_0 {
		_ = windows.CancelIoEx(p.next, waiting)
		_ = windows.GetOverlappedResult(p.next, waiting, &done, true) // Windows does not use waiting any more
		return errors.Join(err, net.ErrClosed)
	}
	return windows.GetOverlappedResult(p.next, waiting, &done, true)
}

// close makes accept return.
func (p *pipes) close() error {
	p.once.Do(func() {
		_ = windows.SetEvent(p.closed)
		p.mu.Lock()
		defer p.mu.Unlock()
		if p.next != 0 {
			_ = windows.CloseHandle(p.next)
			p.next = 0
		}
		_ = windows.CloseHandle(p.closed)
	})
	return nil
}

// errForeign means that another user serves a pipe.
var errForeign = errors.New("a process of another user answers")

// dialPipe opens a named pipe of this user. The error is windows.ERROR_PIPE_BUSY if all instances have a client just
// now, and errForeign if another user has created the pipe.
func dialPipe(name string) (net.Conn, error) {
	path, err := windows.UTF16PtrFromString(name)
	if err != nil {
		return nil, err
	}
	// The server may know who the client is, and not act as the client.
	const flags = windows.FILE_FLAG_OVERLAPPED | windows.SECURITY_SQOS_PRESENT | windows.SECURITY_IDENTIFICATION
	handle, err := windows.CreateFile(path, windows.GENERIC_READ|windows.GENERIC_WRITE, 0, nil, windows.OPEN_EXISTING, flags, 0)
	if err != nil {
		return nil, err
	}
	if err := checkServer(handle); err != nil {
		return nil, errors.Join(err, windows.CloseHandle(handle))
	}
	return newConn(handle, name), nil
}

// checkServer checks that this user is the owner of a pipe. Windows does not let a user make another user the owner, unless it
// is an administrator.
func checkServer(pipe windows.Handle) error {
	descriptor, err := windows.GetSecurityInfo(pipe, windows.SE_KERNEL_OBJECT, windows.OWNER_SECURITY_INFORMATION)
	if err != nil {
		return os.NewSyscallError("GetSecurityInfo", err)
	}
	owner, _, err := descriptor.Owner()
	if err != nil {
		return err
	}
	if owner == nil || owner.String() != process.SID() {
		return errForeign
	}
	return nil
}

// conn is one end of a pipe.
type conn struct {
	*os.File
	name address
}

func newConn(handle windows.Handle, name string) net.Conn {
	return &conn{os.NewFile(uintptr(handle), name), address(name)}
}

// Read implements net.Conn.
func (c *conn) Read(b []byte) (int, error) {
	n, err := c.File.Read(b)
	if errors.Is(err, windows.ERROR_BROKEN_PIPE) || errors.Is(err, windows.ERROR_PIPE_NOT_CONNECTED) {
		err = io.EOF
	}
	return n, err
}

// LocalAddr returns the name of the pipe.
func (c *conn) LocalAddr() net.Addr { return c.name }

// RemoteAddr returns the name of the pipe.
func (c *conn) RemoteAddr() net.Addr { return c.name }

// address is the name of a pipe.
type address string

func (address) Network() string  { return "pipe" }
func (a address) String() string { return string(a) }
