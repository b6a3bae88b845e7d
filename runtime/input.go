package runtime

import (
	"bytes"
	"encoding/json"
	"fmt"

	"runner.example/hostabi/abi"
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

// checkBody refuses a body that is not what input asks for, nil asks for nothing, and
// one that says it is JSON and nests deeper than JSON may that comes from outside.
func checkBody(input *schema.ObjectType, headers []abi.Pair, body []byte) error {
	switch {
	case input != nil:
		return checkInput(input, body)
	case isJSON(headers):
		return checkDepth(body)
	}
	return nil
}

// isJSON tells whether the headers say that the body is JSON as it is.
func isJSON(headers []abi.Pair) (is bool) {
	for _, h := range headers {
		switch string(h.Name) {
		case "content-encoding":
			return false
		case "content-type":
			media, _, _ := bytes.Cut(h.Value, []byte(";"))
			media = bytes.TrimSpace(media)
			_, after, _ := bytes.Cut(media, []byte("/"))
			is = is || bytes.EqualFold(after, []byte("json")) || len(after) > 5 && bytes.EqualFold(after[len(after)-5:], []byte("+json"))
		}
	}
	return is
}

func checkDepth(body []byte) error {
	if err := schema.CheckDepth(body); err != nil {
		return fault.New(fault.InvalidJSON, "the body %s", err)
	}
	return nil
}

// checkInput refuses a body that is not what input asks for. No body at all is an
// empty object, as it is to handlers.
func checkInput(input *schema.ObjectType, body []byte) error {
	body = orEmpty(body)
	if err := checkDepth(body); err != nil {
		return err
	}
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
