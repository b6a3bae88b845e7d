package runtime

import (
	"bytes"
	"encoding/json"
	"fmt"

	"runner.example/internal/caller"
	"runner.example/internal/fault"
	"runner.example/schema"
)

// inputError tells every mistake of a body that does not fit its route's input.
type inputError struct {
	*fault.Fault
	errors []byte // JSON
}

func (e *inputError) Unwrap() error { return e.Fault }

// checkInput refuses a body that is not what input asks for; nil asks for
// nothing. No body at all is an empty object, as it is to handlers.
func checkInput(input *schema.ObjectType, body []byte) error {
	if input == nil {
		return nil
	}
	body = orEmpty(body)
	wrong := input.Check(body)
	if len(wrong) == 0 {
		return nil
	}
	if broken := schema.BrokenJSON(body); broken != nil {
		return brokenBody(broken)
	}
	text, err := json.Marshal(wrong)
	if err != nil {
		return err
	}
	return &inputError{fault.New(fault.InvalidInput, "the body is no %s: see errors", input.Name), text}
}

func brokenBody(e *schema.FieldError) error {
	if e.Field == "" {
		return fault.New(fault.InvalidJSON, "the body %s", e.Message)
	}
	return fault.New(fault.InvalidJSON, "the body's member %q %s", e.Field, e.Message)
}

// orEmpty gives an empty object for no body and for null.
func orEmpty(body []byte) []byte {
	if text := bytes.TrimSpace(body); len(text) == 0 || string(text) == "null" {
		return []byte("{}")
	}
	return body
}

// checkResult refuses an answer that is not what its function declares; operators see
// hidden fields too. What is wrong with it is for the log.
func checkResult(result *schema.Type, body []byte, who *caller.Caller) error {
	wrong := result.CheckResult(body, who.Kind == caller.System)
	if len(wrong) == 0 {
		return nil
	}
	text, err := json.Marshal(wrong)
	if err != nil {
		return err
	}
	return fault.Wrap(fmt.Errorf("its result is no %s: %s", result, text), fault.HandlerFailed, "the handler failed")
}
