package socket

import (
	"syscall"

	"golang.org/x/sys/windows"
)

var (
	inUse        = []syscall.Errno{windows.WSAEADDRINUSE}
	notPermitted = []syscall.Errno{windows.WSAEACCES}
	refused      = []syscall.Errno{windows.WSAECONNREFUSED}
	broken       = []syscall.Errno{
		windows.WSAECONNRESET, windows.WSAECONNABORTED, windows.WSAESHUTDOWN, windows.ERROR_BROKEN_PIPE, windows.ERROR_NO_DATA,
		windows.ERROR_PIPE_NOT_CONNECTED, windows.ERROR_NETNAME_DELETED,
	}
)
