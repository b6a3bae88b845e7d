//go:build unix

package socket

import "syscall"

var (
	inUse        = []syscall.Errno{syscall.EADDRINUSE}
	notPermitted = []syscall.Errno{syscall.EACCES}
	refused      = []syscall.Errno{syscall.ECONNREFUSED}
	broken       = []syscall.Errno{syscall.EPIPE, syscall.ECONNRESET}
)
