package octets

import (
	"encoding/base64"
	"errors"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"runner.example/internal/cost"
)

// Bytes are bytes within arguments. What is read is a copy. They are written as base64.
type Bytes []byte

// ErrForm is the error of JSON that is neither a string nor base64.
var ErrForm = errors.New(`bytes must be a string or {"base64":"…"}`)

// UnmarshalJSON implements json.Unmarshaler. The only error is ErrForm.
func (b *Bytes) UnmarshalJSON(text []byte) error {
	if len(text) > 0 && text[0] == '"' {
		out, err := jsontext.AppendUnquote([]byte{}, text)
		if err != nil {
			return ErrForm
		}
		*b = out
		return nil
	}
	var object struct {
		Base64 *string `json:"base64"`
	}
	if json.Unmarshal(text, &object, json.RejectUnknownMembers(true)) != nil || object.Base64 == nil ||
		strings.ContainsAny(*object.Base64, "\r\n") { // which the decoder would skip
		return ErrForm
	}
	out, err := base64.StdEncoding.Strict().AppendDecode([]byte{}, []byte(*object.Base64))
	if err != nil {
		return ErrForm
	}
	*b = out
	return nil
}

// MarshalJSON implements json.Marshaler.
func (b Bytes) MarshalJSON() ([]byte, error) {
	return AppendBase64(make([]byte, 0, len(b)*4/3+16), b), nil
}

// AppendBase64 appends {"base64":"…"}.
func AppendBase64(out, b []byte) []byte {
	out = append(out, `{"base64":"`...)
	out = base64.StdEncoding.AppendEncode(out, b)
	return append(out, `"}`...)
}

// Append appends bytes as a string if they are text with few control characters, which take
// six bytes each, and else as base64. m counts the work, and its error ends it.
func Append(out, b []byte, m *cost.Meter) ([]byte, error) {
	text, err := isText(b, m)
	switch {
	case err != nil:
		return out, err
	case text:
		return appendQuoted(out, b, m)
	}
	return AppendBase64(out, b), nil
}

// isText reports whether bytes are UTF-8 with few control characters.
func isText(b []byte, m *cost.Meter) (bool, error) {
	controls := 0
	for part := range slices.Chunk(b, cost.Every) {
		if err := m.Spend(len(part)); err != nil {
			return false, err
		}
		for _, c := range part {
			if c < ' ' && c != '\n' && c != '\t' && c != '\r' {
				controls++
			}
		}
	}
	return controls <= len(b)/8 && utf8.Valid(b), nil
}

// appendQuoted appends UTF-8 as a JSON string, a part at a time.
func appendQuoted(out, text []byte, m *cost.Meter) ([]byte, error) {
	out = append(out, '"')
	for len(text) > 0 {
		n := min(len(text), cost.Every)
		for n < len(text) && !utf8.RuneStart(text[n]) {
			n--
		}
		if err := m.Spend(2 * n); err != nil {
			return out, err
		}
		start := len(out)
		var err error
		if out, err = jsontext.AppendQuote(out, text[:n]); err != nil {
			return out, err
		}
		out = append(out[:start], out[start+1:len(out)-1]...) // without its quotes
		text = text[n:]
	}
	return append(out, '"'), nil
}
