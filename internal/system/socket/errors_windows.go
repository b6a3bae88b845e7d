package socket

import (
	"errors"

	"golang.org/x/sys/windows"
)

// InUse reports whether an address cannot be listened on because another socket has it.
func InUse(err error) bool { return errors.Is(err, windows.WSAEADDRINUSE) }

// NotPermitted reports whether an address cannot be listened on because the user may not.
func NotPermitted(err error) bool { return errors.Is(err, windows.WSAEACCES) }

// Refused reports whether nobody listens where a connection was tried.
func Refused(err error) bool { return errors.Is(err, windows.WSAECONNREFUSED) }

// Broken reports whether the peer has closed a connection or a pipe that is read from or written to.
func Broken(err error) bool {
	for _, broken := range []error{
		windows.WSAECONNRESET, windows.WSAECONNABORTED, windows.WSAESHUTDOWN, windows.ERROR_BROKEN_PIPE, windows.ERROR_NO_DATA,
		windows.ERROR_PIPE_NOT_CONNECTED, windows.ERROR_NETNAME_DELETED,
	} {
		if errors.Is(err, broken) {
			return true
		}
	}
	return false
}
