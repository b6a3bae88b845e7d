package charset

import "errors"

// ErrLabel is the error of a label that no encoding has.
var ErrLabel = errors.New("no encoding has the label")

// Result is the result of the operation encoding.decode.
type Result struct {
	Encoding string `json:"encoding"`
	// Text is nil if the input was malformed and fatal was set.
	Text  *string `json:"text,omitzero"`
	State string  `json:"state"`
}

// DecodeLabel decodes a piece of input in the encoding with the label, as Decode does. Malformed input is not an error,
// but a Result without Text. The error is ErrLabel or ErrState.
func DecodeLabel(label string, data []byte, state string, more, fatal bool) (*Result, error) {
	e, ok := Lookup(label)
	if !ok {
		return nil, ErrLabel
	}
	text, state, err := e.Decode(data, state, more, fatal)
	r := &Result{Encoding: e.name, State: state}
	if err == nil {
		decoded := string(text)
		r.Text = &decoded
	} else if !errors.Is(err, ErrMalformed) {
		return nil, err
	}
	return r, nil
}
