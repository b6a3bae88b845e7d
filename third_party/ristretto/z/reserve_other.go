//go:build !linux

package z

import (
	"errors"
	"os"
)

// Reserve has the file system set aside n bytes of f from off, beyond its end
// too, so that a write to a mapping of them does not fail for lack of room. The
// error matches errors.ErrUnsupported: only Linux has this.
func Reserve(*os.File, int64, int64) error { return errors.ErrUnsupported }

// Release does nothing: only Linux is sure to keep what was written to the pages.
func Release([]byte) {}

func mapMemory(int) []byte { return nil }

func unmapMemory([]byte) {}
