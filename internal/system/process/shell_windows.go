package process

import (
	"context"
	"os/exec"
	"strconv"
	"syscall"
)

// shell gives cmd the line as it is: cmd does not read arguments as other programs do.
func shell(ctx context.Context, line string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, "cmd")
	cmd.SysProcAttr = &syscall.SysProcAttr{CmdLine: `cmd /d /s /c "` + line + `"`}
	cmd.Cancel = func() error {
		_ = exec.Command("taskkill", "/t", "/f", "/pid", strconv.Itoa(cmd.Process.Pid)).Run() // fails if it has ended
		return cmd.Process.Kill()
	}
	return cmd
}

func endGroup(*exec.Cmd) {} // taskkill has ended all
