//go:build !linux

package filemap

import (
	"errors"
	"os"
)

// CanReplace reports whether Replace works.
const CanReplace = false

// Replace returns an error: the system cannot put a file where memory is in one step.
func Replace([]byte, *os.File) error { return errors.ErrUnsupported }
