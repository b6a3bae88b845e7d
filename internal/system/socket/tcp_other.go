//go:build !linux

package socket

import "net"

// Fast returns conn with faster reads and writes, where the system has them.
func Fast(conn net.Conn) net.Conn { return conn }

// Direct writes to conn past Go's buffers and past TLS; nil: that is not possible.
func Direct(net.Conn) *Writer { return nil }

// Writer writes to a connection. Only Linux has one.
type Writer struct{}

// Write is never called.
func (*Writer) Write(_, _ []byte, _ bool) (int, error) { panic("BUG: socket: no direct writes here") }

// Acked returns how many bytes the peer of conn has acknowledged; 0: unknown.
func Acked(net.Conn) uint64 { return 0 }
