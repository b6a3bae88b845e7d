//go:build unix

package process

import (
	"context"
	"os/exec"
	"syscall"
	"time"
)

func shell(ctx context.Context, line string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, "sh", "-c", line)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM) }
	return cmd
}

// endGroup waits for the end of the processes that a command has left, and kills those that do not end.
func endGroup(cmd *exec.Cmd) {
	const pause = 10 * time.Millisecond
	group := -cmd.Process.Pid
	for range shellGrace / pause {
		if syscall.Kill(group, 0) != nil {
			return
		}
		time.Sleep(pause)
	}
	_ = syscall.Kill(group, syscall.SIGKILL) // fails if they have ended now
}
