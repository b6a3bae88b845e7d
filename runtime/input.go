package runtime

import (
	"bytes"
	"encoding/json"

	"github.com/go-json-experiment/json/jsontext"

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
	if text := bytes.TrimSpace(body); len(text) == 0 || string(text) == "null" {
		body = []byte("{}")
	}
	wrong := input.Check(body)
	switch {
	case len(wrong) == 0:
		return nil
	case !jsontext.Value(body).IsValid():
		return fault.New(fault.InvalidJSON, "the body %s", wrong[0].Message)
	}
	text, err := json.Marshal(wrong)
	if err != nil {
		return err
	}
	return &inputError{fault.New(fault.InvalidInput, "the body is no %s: see errors", input.Name), text}
}
