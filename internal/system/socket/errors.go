package socket

import (
	"errors"
	"os"
	"slices"
	"syscall"
)

// Cause returns the error number in err, without the addresses around it; err itself, if there is none.
func Cause(err error) error {
	if call, ok := errors.AsType[*os.SyscallError](err); ok {
		return call.Err
	}
	return err
}

// InUse reports whether an address cannot be listened on because another socket has it.
func InUse(err error) bool { return isAny(err, inUse) }

// NotPermitted reports whether an address cannot be listened on because the user may not.
func NotPermitted(err error) bool { return isAny(err, notPermitted) }

// Refused reports whether nobody listens where a connection was tried.
func Refused(err error) bool { return isAny(err, refused) }

// Broken reports whether the peer has closed a connection or a pipe that is read from or written to.
func Broken(err error) bool { return isAny(err, broken) }

func isAny(err error, of []syscall.Errno) bool {
	return slices.ContainsFunc(of, func(n syscall.Errno) bool { return errors.Is(err, n) })
}
