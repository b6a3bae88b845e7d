package keystore

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/oklog/ulid/v2"

	"runner.example/internal/fault"
)

const (
	maxName     = 120      // characters
	maxMetadata = 16 << 10 // bytes, without white space
	maxDepth    = 64
)

// The prefixes of ids.
const (
	keyIDs     = "key_"
	sessionIDs = "ses_"
)

// validID reports whether id has the form of all ids with that prefix.
func validID(prefix, id string) bool {
	text, ok := strings.CutPrefix(id, prefix)
	if !ok || text != strings.ToLower(text) {
		return false
	}
	_, err := ulid.ParseStrict(text)
	return err == nil
}

// invalid returns a fault Invalid about a value, which is encoded as JSON; a duration is a
// number of seconds, as in the arguments of operations.
func invalid(value any, format string, args ...any) error {
	if d, ok := value.(time.Duration); ok {
		value = int64(d / time.Second)
	}
	text, _ := json.Marshal(value) // without it the fault is about no value
	return fault.New(fault.Invalid, format, args...).About(fault.Subject{Value: text})
}

// CheckLine checks that text is a short line without control characters and without a
// token. The error begins with the name of the field.
func CheckLine(field, text string) error {
	switch {
	case !utf8.ValidString(text):
		return invalid(text, "%s is not valid UTF-8", field)
	case utf8.RuneCountInString(text) > maxName:
		return invalid(text, "%s is longer than %d characters", field, maxName)
	case holdsToken(text):
		return invalid(text, "%s contains a token: remove it, and revoke the key or session that it belongs to", field)
	case strings.ContainsFunc(text, controlsTerminal):
		return invalid(text, "%s has a control character", field)
	}
	return nil
}

// checkMetadata returns the metadata without white space; nil for none or null.
func checkMetadata(raw json.RawMessage) (json.RawMessage, error) {
	trimmed := bytes.TrimSpace(raw)
	if len(trimmed) == 0 || string(trimmed) == "null" {
		return nil, nil
	}
	if !utf8.Valid(trimmed) {
		return nil, fault.New(fault.Invalid, "metadata is not valid UTF-8")
	}
	var compact bytes.Buffer
	if err := json.Compact(&compact, trimmed); err != nil {
		return nil, fault.New(fault.Invalid, "metadata is not valid JSON: %v", err)
	}
	if compact.Len() > maxMetadata {
		return nil, invalid(raw, "metadata is larger than %d KiB", maxMetadata>>10)
	}
	if trimmed[0] != '{' {
		return nil, fault.New(fault.Invalid, "metadata is not a JSON object")
	}
	if err := checkMembers(compact.Bytes()); err != nil {
		return nil, invalid(raw, "metadata %v", err)
	}
	return compact.Bytes(), nil
}

// errMetadataToken says for metadata what CheckLine says for a line.
var errMetadataToken = errors.New("contains a token: remove it, and revoke the key or session that it belongs to")

// checkMembers refuses repeated members, deep nesting and tokens in valid JSON.
func checkMembers(valid []byte) error {
	dec := json.NewDecoder(bytes.NewReader(valid))
	dec.UseNumber()
	var open []*container
	for {
		token, err := dec.Token()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		switch token {
		case json.Delim('{'), json.Delim('['):
			if len(open) == maxDepth {
				return fmt.Errorf("is nested more than %d levels deep", maxDepth)
			}
			if len(open) > 0 {
				open[len(open)-1].value()
			}
			open = append(open, newContainer(token == json.Delim('{')))
		case json.Delim('}'), json.Delim(']'):
			open = open[:len(open)-1]
		default:
			text, ok := token.(string)
			if ok && holdsToken(text) {
				return errMetadataToken
			}
			if ok && open[len(open)-1].wantsName() {
				if !open[len(open)-1].name(text) {
					return fmt.Errorf("has the member %q twice", text)
				}
				continue
			}
			open[len(open)-1].value()
		}
	}
}

// container is an object or array that is being read.
type container struct {
	names map[string]bool // nil in an array
	named bool            // the name of a member was read, its value is next
}

func newContainer(object bool) *container {
	if object {
		return &container{names: map[string]bool{}}
	}
	return &container{}
}

func (n *container) wantsName() bool { return n.names != nil && !n.named }

// name records the name of a member; false if the object has it already.
func (n *container) name(s string) bool {
	n.named = true
	again := n.names[s]
	n.names[s] = true
	return !again
}

func (n *container) value() { n.named = false }

// controlsTerminal reports characters that can make a terminal show another text.
func controlsTerminal(r rune) bool {
	return unicode.IsControl(r) || unicode.In(r, unicode.Bidi_Control, unicode.Zl, unicode.Zp)
}

// duration formats d as in a schema where possible: "30d", "36h".
func duration(d time.Duration) string {
	for _, unit := range []struct {
		size time.Duration
		name string
	}{{24 * time.Hour, "d"}, {time.Hour, "h"}, {time.Minute, "m"}, {time.Second, "s"}} {
		if d >= unit.size && d%unit.size == 0 {
			return fmt.Sprintf("%d%s", d/unit.size, unit.name)
		}
	}
	return d.String()
}
