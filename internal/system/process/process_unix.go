//go:build unix

package process

import (
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"golang.org/x/sys/unix"
	"golang.org/x/term"
)

var reloadSignals = []os.Signal{syscall.SIGHUP}

func fileLimit() (files uint64, known bool, err error) {
	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &limit); err != nil {
		return 0, false, err
	}
	return uint64(limit.Cur), true, nil
}

func openFiles() int {
	open, err := os.ReadDir("/dev/fd")
	if err != nil {
		return 0
	}
	return len(open) - 1 // minus the directory's own
}

func setUmask(mask int) int { return unix.Umask(mask) }

func endBy(s os.Signal) { _ = syscall.Kill(os.Getpid(), s.(syscall.Signal)) }

func keepBrokenPipes() { signal.Ignore(syscall.SIGPIPE) }

func terminal(f *os.File) bool { return term.IsTerminal(int(f.Fd())) }

func user() string { return UserOf(uint32(os.Geteuid())) }

// UserOf returns the name of a user by its number.
func UserOf(uid uint32) string { return fmt.Sprintf("uid:%d", uid) }
