package socket

import (
	"os"

	"golang.org/x/sys/unix"
)

func writeNow(f *os.File, p []byte) (int, bool) {
	n, err := unix.Pwritev2(int(f.Fd()), [][]byte{p}, -1, unix.RWF_NOWAIT)
	if err == nil {
		return n, true
	}
	return 0, err == unix.EAGAIN || err == unix.EINTR
}
