package hostabi

import (
	"runner.example/hostabi/abi"
	"runner.example/internal/fault"
)

// Errno returns the number that a guest sees for a fault of a host call.
func Errno(code fault.Code) abi.Errno {
	outcome, _ := fault.OutcomeOf(code)
	for _, e := range abi.Errnos() {
		if e.Name == string(outcome.Errno) {
			return e.Errno
		}
	}
	return abi.Internal
}
