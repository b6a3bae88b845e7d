package schema

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"

	"runner.example/internal/cost"
)

// maxJSONDepth bounds how deep JSON may nest that comes from outside. The result of a
// function may nest twice as deep: it holds rows, within what the handler has made.
const (
	maxJSONDepth   = 64
	maxResultDepth = 2 * maxJSONDepth
)

// CheckDepth refuses JSON from outside that nests too deep. The error goes on from the
// name of what is checked. It takes time in proportion to the text and tells nothing
// else about it, which may not be JSON. When m fails, so does the check.
func CheckDepth(raw []byte, m *cost.Meter) error { return checkDepth(raw, maxJSONDepth, m) }

// checkDepth counts brackets outside strings, before anything walks into them.
func checkDepth(raw []byte, most int, m *cost.Meter) error {
	brackets := 0 // few of them cannot nest deep, and counting takes far less time
	for part := range slices.Chunk(raw, cost.Every) {
		if err := m.Spend(len(part) / 8); err != nil {
			return err
		}
		brackets += bytes.Count(part, []byte("{")) + bytes.Count(part, []byte("["))
	}
	if brackets <= most {
		return nil
	}
	depth, inString := 0, false
	for i := 0; i < len(raw); i++ {
		if i%cost.Every == 0 && i > 0 {
			if err := m.Spend(cost.Every); err != nil {
				return err
			}
		}
		switch c := raw[i]; {
		case inString && c == '\\':
			i++
		case c == '"':
			inString = !inString
		case inString:
		case c == '{' || c == '[':
			if depth++; depth > most {
				return fmt.Errorf("must not be nested more than %d levels deep", most)
			}
		case c == '}' || c == ']':
			depth--
		}
	}
	return nil
}

// compactJSON appends one JSON value without its blanks. It refuses repeated
// members, invalid UTF-8 and what nests too deep.
func compactJSON(dst, raw []byte) ([]byte, error) {
	if err := CheckDepth(raw, nil); err != nil {
		return nil, err
	}
	out, err := jsontext.AppendFormat(dst, raw)
	if err != nil {
		return nil, describeJSON(err)
	}
	return out, nil
}

// describeJSON says for a person why a text is not JSON.
func describeJSON(err error) error {
	var syntax *jsontext.SyntacticError
	switch {
	case errors.Is(err, jsontext.ErrDuplicateName):
		return errors.New("must not repeat a member of an object")
	case errors.As(err, &syntax) && syntax.Err != nil:
		return fmt.Errorf("is not JSON: %w", syntax.Err)
	}
	return fmt.Errorf("is not JSON: %w", err)
}

// trimBlanks cuts JSON's blanks off both ends.
func trimBlanks(raw []byte) []byte { return bytes.Trim(raw, " \t\r\n") }

// isNull reports the JSON value null.
func isNull(raw []byte) bool { return string(raw) == "null" }

// readString reads a JSON string. What it returns is its own.
func readString(raw []byte) (string, bool) {
	if len(raw) < 2 || raw[0] != '"' || raw[len(raw)-1] != '"' {
		return "", false
	}
	if body := raw[1 : len(raw)-1]; isPlain(body) {
		return string(body), true
	}
	text, err := jsontext.AppendUnquote(nil, raw)
	return string(text), err == nil
}

// isPlain reports that the inside of a JSON string stands for itself.
func isPlain(body []byte) bool {
	ascii := true
	for _, c := range body {
		if c < ' ' || c == '"' || c == '\\' {
			return false
		}
		ascii = ascii && c < utf8.RuneSelf
	}
	return ascii || utf8.Valid(body)
}

// appendString appends s as a JSON string.
func appendString(dst []byte, s string) []byte {
	out, err := jsontext.AppendQuote(dst, s)
	if err != nil {
		panic("BUG: a text value that is not UTF-8")
	}
	return out
}

// appendFloat appends f in the form of ECMAScript, as JSON is usually written.
func appendFloat(dst []byte, f float64) []byte {
	return jsontext.AppendFloat(dst, f, 64)
}
