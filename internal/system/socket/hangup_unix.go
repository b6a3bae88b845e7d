//go:build unix && !linux

package socket

import (
	"net"
	"syscall"

	"golang.org/x/sys/unix"
)

func hungUp(conn net.Conn) (is bool) {
	c, ok := conn.(syscall.Conn)
	if !ok {
		return false
	}
	raw, err := c.SyscallConn()
	if err != nil {
		return true
	}
	err = raw.Control(func(fd uintptr) { // the socket does not block
		var next [1]byte
		n, _, err := unix.Recvfrom(int(fd), next[:], unix.MSG_PEEK)
		is = err == nil && n == 0 || err != nil && err != unix.EAGAIN && err != unix.EINTR
	})
	return is || err != nil
}
