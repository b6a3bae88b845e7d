//go:build !linux

package memory

import (
	"errors"
	"os"
)

// CanMoveCode reports whether MoveCode works.
const CanMoveCode = false

// MoveCode returns an error: the system cannot put a file where memory is in one step.
func MoveCode([]byte, *os.File) error { return errors.ErrUnsupported }
