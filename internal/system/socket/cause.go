package socket

import (
	"errors"
	"os"
)

// Cause returns the error number in err, without the addresses around it; err itself, if there is none.
func Cause(err error) error {
	if call, ok := errors.AsType[*os.SyscallError](err); ok {
		return call.Err
	}
	return err
}
