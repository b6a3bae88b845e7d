//go:build !linux

package socket

import (
	"net"
	"syscall"
)

func fast(conn net.Conn) net.Conn { return conn }

func direct(net.Conn) *Writer { return nil }

func write(syscall.RawConn, []byte, []byte, bool) (int, error) {
	panic("BUG: socket: no direct writes here")
}

func acked(net.Conn) uint64 { return 0 }
