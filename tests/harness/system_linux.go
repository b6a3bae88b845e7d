package harness

import (
	"fmt"
	"os"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// NamedPipe makes a named pipe.
func NamedPipe(t testing.TB, path string) {
	t.Helper()
	if err := unix.Mkfifo(path, 0o600); err != nil {
		t.Fatal(err)
	}
}

// Clocks of CPU time, for CPUTime.
const (
	ThisProcess = unix.CLOCK_PROCESS_CPUTIME_ID
	ThisThread  = unix.CLOCK_THREAD_CPUTIME_ID
)

// CPUTime is what a process, or this thread, has used of a processor.
func CPUTime(t testing.TB, clock int32) time.Duration {
	t.Helper()
	var now unix.Timespec
	if err := unix.ClockGettime(clock, &now); err != nil {
		t.Fatal(err)
	}
	return time.Duration(now.Nano())
}

// ClockOf is the clock of another process.
func ClockOf(pid int) int32 {
	const ofProcess = 2 // CPUCLOCK_SCHED of all threads
	return int32(^pid)<<3 | ofProcess
}

// ReceiveBuffer sets the size of a socket's buffer, for net.Dialer and net.ListenConfig.
func ReceiveBuffer(bytes int) func(string, string, syscall.RawConn) error {
	return buffer(unix.SO_RCVBUF, bytes)
}

// SendBuffer is ReceiveBuffer for the other direction.
func SendBuffer(bytes int) func(string, string, syscall.RawConn) error {
	return buffer(unix.SO_SNDBUF, bytes)
}

func buffer(option, bytes int) func(string, string, syscall.RawConn) error {
	return func(_, _ string, raw syscall.RawConn) error {
		return raw.Control(func(fd uintptr) { _ = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, option, bytes) })
	}
}

// Pause stops a process until Resume.
func Pause(t testing.TB, p *os.Process) {
	t.Helper()
	if err := p.Signal(unix.SIGSTOP); err != nil {
		t.Fatal(err)
	}
}

// Resume continues a process that Pause has stopped.
func Resume(p *os.Process) error { return p.Signal(unix.SIGCONT) }

// KillProcess kills a process by its id, and reports whether there was one.
func KillProcess(pid int) bool { return unix.Kill(pid, unix.SIGKILL) == nil }

// KillGroup kills the group of processes that a process began by InOwnGroup.
func KillGroup(pid int) { _ = unix.Kill(-pid, unix.SIGKILL) }

// InterruptGroup is Ctrl-C for such a group.
func InterruptGroup(t testing.TB, pid int) {
	t.Helper()
	if err := unix.Kill(-pid, unix.SIGINT); err != nil {
		t.Fatal(err)
	}
}

// InOwnGroup makes a command begin a group of processes.
func InOwnGroup() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }

// LimitOpenFiles limits how many files another process may open.
func LimitOpenFiles(t testing.TB, pid int, files uint64) {
	t.Helper()
	if err := unix.Prlimit(pid, unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: files, Max: files}, nil); err != nil {
		t.Fatal(err)
	}
}

// peakMemory is the most memory that an ended process had, in bytes.
func peakMemory(p *os.ProcessState) int { return int(p.SysUsage().(*syscall.Rusage).Maxrss) << 10 }

// Terminal opens a pseudoterminal: text written to theirs is read from ours.
func Terminal(t testing.TB) (ours, theirs *os.File) {
	t.Helper()
	ours, err := os.OpenFile("/dev/ptmx", os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { ours.Close() })
	if err := unix.IoctlSetPointerInt(int(ours.Fd()), unix.TIOCSPTLCK, 0); err != nil {
		t.Fatal(err)
	}
	n, err := unix.IoctlGetInt(int(ours.Fd()), unix.TIOCGPTN)
	if err != nil {
		t.Fatal(err)
	}
	theirs, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { theirs.Close() })
	return ours, theirs
}
