//go:build unix

package socket

import (
	"errors"
	"syscall"
)

// InUse reports whether an address cannot be listened on because another socket has it.
func InUse(err error) bool { return errors.Is(err, syscall.EADDRINUSE) }

// NotPermitted reports whether an address cannot be listened on because the user may not.
func NotPermitted(err error) bool { return errors.Is(err, syscall.EACCES) }

// Refused reports whether nobody listens where a connection was tried.
func Refused(err error) bool { return errors.Is(err, syscall.ECONNREFUSED) }

// Broken reports whether the peer has closed a connection or a pipe that is read from or written to.
func Broken(err error) bool {
	return errors.Is(err, syscall.EPIPE) || errors.Is(err, syscall.ECONNRESET)
}
