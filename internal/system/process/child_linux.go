package process

import (
	"fmt"
	"os/exec"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// CanLimit reports whether Limit works.
const CanLimit = true

// Separate has the command run in a process group of its own: a signal from the terminal does not end it.
func Separate(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }

// Limit limits the CPU time and the memory of this process, at whole seconds, and lowers its priority and that of its
// process group. The kernel ends it when it has used more time, and gives it no more memory. It writes no core file.
func Limit(cpu time.Duration, memory uint64, niceness int) error {
	for resource, most := range map[int]uint64{
		unix.RLIMIT_CPU:  uint64(cpu / time.Second),
		unix.RLIMIT_DATA: memory,
		unix.RLIMIT_CORE: 0,
	} {
		if err := unix.Setrlimit(resource, &unix.Rlimit{Cur: most, Max: most}); err != nil {
			return fmt.Errorf("limit the process: %w", err)
		}
	}
	if err := unix.Setpriority(unix.PRIO_PGRP, 0, niceness); err != nil {
		return fmt.Errorf("lower the priority of the process: %w", err)
	}
	return nil
}

// EndedByTime reports whether the kernel ended a process because of its limit of CPU time, or by force after it had
// used more than the given time.
func EndedByTime(exit *exec.ExitError, used time.Duration) bool {
	status, ok := exit.Sys().(syscall.WaitStatus)
	if !ok || !status.Signaled() {
		return false
	}
	return status.Signal() == syscall.SIGXCPU ||
		status.Signal() == syscall.SIGKILL && exit.UserTime()+exit.SystemTime() >= used
}
