package front

import "runner.example/internal/fault"

// StatusOf returns the HTTP status of a refusal with the code.
func StatusOf(code fault.Code) int {
	outcome, _ := fault.OutcomeOf(code)
	return outcome.HTTP
}

// detailOf returns the default detail of a code. Handlers may use codes of their own; their
// detail says only that the request failed.
func detailOf(code string) string {
	outcome, known := fault.OutcomeOf(fault.Code(code))
	if !known {
		outcome, _ = fault.OutcomeOf(fault.Error)
	}
	return outcome.Detail
}
