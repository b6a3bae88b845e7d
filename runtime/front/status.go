package front

import "runner.example/internal/fault"

// StatusOf returns the HTTP status of a refusal with the code.
func StatusOf(code fault.Code) int {
	outcome, _ := fault.OutcomeOf(code)
	return outcome.HTTP
}
