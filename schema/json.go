package schema

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"

	"runner.example/internal/cost"
)

// maxJSONDepth is the maximum nesting of JSON input. A function's result may nest twice as
// deep: it contains rows within the handler's own objects.
const (
	maxJSONDepth   = 64
	maxResultDepth = 2 * maxJSONDepth
)

// CheckDepth returns an error if JSON nests too deep; its text continues the name of what is
// checked. It checks nothing else: the text may not be JSON. It takes linear time. When m
// fails, so does CheckDepth.
func CheckDepth(raw []byte, m *cost.Meter) error { return checkDepth(raw, maxJSONDepth, m) }

// CheckUnicode returns an error if JSON is not valid UTF-8, or has an escape of half of a
// surrogate pair, which is not a character; its text continues the name of what is checked. It
// checks nothing else. It takes linear time. When m fails, so does CheckUnicode.
func CheckUnicode(raw []byte, m *cost.Meter) error {
	if err := m.Spend(len(raw) / 8); err != nil {
		return err
	}
	if !utf8.Valid(raw) {
		return errUTF8
	}
	for spent := 0; ; {
		at := bytes.IndexByte(raw, '\\')
		if at < 0 || at+1 == len(raw) {
			return nil
		}
		if spent += at + len(`\u0000`); spent > cost.Every {
			if err := m.Spend(spent); err != nil {
				return err
			}
			spent = 0
		}
		raw = raw[at+1:]
		switch code := escaped(raw); {
		case code < 0xd800 || code > 0xdfff:
			raw = raw[1:]
		case code < 0xdc00 && len(raw) > 6 && raw[5] == '\\' && escaped(raw[6:])>>10 == 0xdc00>>10:
			raw = raw[6:] // the second half is passed like any letter
		default:
			return errSurrogate
		}
	}
}

var errSurrogate = errors.New("must not have half of a surrogate pair, such as \\ud800")

// escaped returns the number of an escape uXXXX, -1 if text does not begin with one.
func escaped(text []byte) int {
	if len(text) < 5 || text[0] != 'u' {
		return -1
	}
	n, err := strconv.ParseUint(string(text[1:5]), 16, 16)
	if err != nil {
		return -1
	}
	return int(n)
}

// checkDepth counts brackets outside strings, before any recursive reader runs.
func checkDepth(raw []byte, limit int, m *cost.Meter) error {
	brackets := 0 // a few brackets cannot nest deep, and counting them is much faster
	for part := range slices.Chunk(raw, cost.Every) {
		if err := m.Spend(len(part) / 8); err != nil {
			return err
		}
		brackets += bytes.Count(part, []byte("{")) + bytes.Count(part, []byte("["))
	}
	if brackets <= limit {
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
			if depth++; depth > limit {
				return fmt.Errorf("must not be nested more than %d levels deep", limit)
			}
		case c == '}' || c == ']':
			depth--
		}
	}
	return nil
}

// compactJSON appends a JSON value without whitespace. It refuses repeated members, invalid
// UTF-8 and values that nest too deep.
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

// describeJSON is a readable error for a text that is not valid JSON.
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

// trimBlanks removes JSON whitespace from both ends.
func trimBlanks(raw []byte) []byte { return bytes.Trim(raw, " \t\r\n") }

// isNull reports the JSON value null.
func isNull(raw []byte) bool { return string(raw) == "null" }

// readString reads a JSON string. The result shares no memory with raw.
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

// isPlain reports whether the inside of a JSON string is its own value.
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
		panic("BUG: text value is not UTF-8")
	}
	return out
}

// appendFloat appends f in the format of ECMAScript, which JSON usually has.
func appendFloat(dst []byte, f float64) []byte {
	return jsontext.AppendFloat(dst, f, 64)
}
