//go:build !linux

package socket

import (
	"net"
	"os"
	"syscall"
)

func fast(conn net.Conn) net.Conn { return conn }

func direct(net.Conn) *Writer { return nil }

type vector struct{}

func (*Writer) write([]byte, []byte, bool) (int, error) {
	panic("BUG: socket: no direct writes here")
}

func writeMore(syscall.RawConn, []byte) (int, error) { panic("BUG: socket: no direct writes here") }

func sendFile(syscall.RawConn, *os.File, int64, int64) (int64, error) {
	panic("BUG: socket: no direct writes here")
}

func acked(net.Conn) uint64 { return 0 }
