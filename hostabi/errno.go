package hostabi

import (
	"runner.example/hostabi/abi"
	"runner.example/internal/fault"
)

// Errno returns the number that a guest sees for a fault of a host call.
func Errno(code fault.Code) abi.Errno {
	if e, ok := errnos[code]; ok {
		return e
	}
	return abi.Internal
}

// errnos are the numbers of the table's names.
var errnos = func() map[fault.Code]abi.Errno {
	numbers := map[string]abi.Errno{}
	for _, e := range abi.Errnos() {
		numbers[e.Name] = e.Errno
	}
	byCode := map[fault.Code]abi.Errno{}
	for _, code := range fault.All() {
		outcome, _ := fault.OutcomeOf(code)
		byCode[code] = numbers[string(outcome.Errno)]
	}
	return byCode
}()
