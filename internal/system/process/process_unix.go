//go:build unix

package process

import (
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"golang.org/x/sys/unix"
)

var reloadSignals = []os.Signal{syscall.SIGHUP}

// FileLimit returns how many files the process may have open. known is false if the system has no such limit.
func FileLimit() (files uint64, known bool, err error) {
	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &limit); err != nil {
		return 0, false, err
	}
	return uint64(limit.Cur), true, nil
}

// OpenFiles counts the open files of the process; 0: unknown.
func OpenFiles() int {
	open, err := os.ReadDir("/dev/fd")
	if err != nil {
		return 0
	}
	return len(open) - 1 // minus the directory's own
}

// SetUmask sets the permissions that new files do not get, and returns the previous ones.
func SetUmask(mask int) (previous int) { return unix.Umask(mask) }

// EndBy does what s does by default: it ends the process. No channel may be notified of s any more.
func EndBy(s os.Signal) { _ = syscall.Kill(os.Getpid(), s.(syscall.Signal)) }

// KeepBrokenPipes makes a write to a pipe that nobody reads fail with an error. It would end the process otherwise.
func KeepBrokenPipes() { signal.Ignore(syscall.SIGPIPE) }

// User returns the user that the process runs as, for example "uid:1000".
func User() string { return UserOf(uint32(os.Geteuid())) }

// UserOf returns the name of a user by its number.
func UserOf(uid uint32) string { return fmt.Sprintf("uid:%d", uid) }
