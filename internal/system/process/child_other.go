//go:build !linux

package process

import (
	"errors"
	"os/exec"
	"time"
)

// CanLimit reports whether Limit works.
const CanLimit = false

// Separate does nothing: nobody starts a process that cannot be limited.
func Separate(*exec.Cmd) {}

// Limit returns an error.
func Limit(time.Duration, uint64, int) error { return errors.ErrUnsupported }

// EndedByTime returns false.
func EndedByTime(*exec.ExitError, time.Duration) bool { return false }
