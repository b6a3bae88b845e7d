package toolchain

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"

	"runner.example/internal/console"
	"runner.example/internal/system/process"
)

// RunCommand runs the build command of the app in dir, which is [build] command of its configuration, and writes what it
// prints to out. The command does not get the app's secrets, and "runner" in it is this program. It is interrupted when ctx ends.
func RunCommand(ctx context.Context, dir, command string, out io.Writer) error {
	environment := environ()
	if self, err := os.Executable(); err == nil {
		environment = append(environment, "PATH="+filepath.Dir(self)+string(filepath.ListSeparator)+os.Getenv("PATH"))
	}
	err := process.RunShell(ctx, dir, command, environment, out)
	if err == nil {
		return nil
	}
	err = fmt.Errorf("build command %q: %w", command, err)
	if _, ended := errors.AsType[*exec.ExitError](err); ended {
		return &console.Failure{Status: console.StatusInvalid, Err: err}
	}
	return err
}
