package webcrypto

import (
	"errors"
	"fmt"
	"strings"

	"github.com/go-json-experiment/json"

	"runner.example/hostabi/octets"
	"runner.example/internal/cost"
	"runner.example/internal/fault"
)

// operations are those of Run.
var operations = map[string]func(args []byte, m *cost.Meter) (any, error){
	"crypto.importKey":  with(importKey),
	"crypto.exportKey":  with(exportKey),
	"crypto.sign":       with(sign),
	"crypto.verify":     with(verify),
	"crypto.encrypt":    with(encrypt),
	"crypto.decrypt":    with(decrypt),
	"crypto.deriveBits": with(deriveBits),
}

// Run runs an operation and returns its result as JSON. args is a JSON object, valid until Run
// returns. m counts the work, and its error ends it.
func Run(operation string, args []byte, m *cost.Meter) ([]byte, error) {
	run, ok := operations[operation]
	if !ok {
		return nil, fmt.Errorf("BUG: unknown operation %q", operation)
	}
	result, err := run(args, m)
	if err != nil {
		return nil, err
	}
	return json.Marshal(result)
}

func with[Args any](run func(*Args, *cost.Meter) (any, error)) func([]byte, *cost.Meter) (any, error) {
	return func(text []byte, m *cost.Meter) (any, error) {
		args, err := read[Args](text, m)
		if err != nil {
			return nil, err
		}
		return run(args, m)
	}
}

// read reads arguments. It refuses unknown and repeated members.
func read[Args any](text []byte, m *cost.Meter) (*Args, error) {
	if err := m.Spend(8 * len(text)); err != nil {
		return nil, err
	}
	args := new(Args)
	if err := json.Unmarshal(text, args, json.RejectUnknownMembers(true)); err != nil {
		return nil, refused(err)
	}
	return args, nil
}

// refused says which member of the arguments is wrong.
func refused(err error) error {
	if wrong, ok := errors.AsType[*json.SemanticError](err); ok {
		member := strings.TrimPrefix(strings.ReplaceAll(string(wrong.JSONPointer), "/", "."), ".")
		switch {
		case errors.Is(err, json.ErrUnknownName):
			return fail(typeError, "unknown member %q", shorten(member))
		case errors.Is(err, octets.ErrForm):
			return fail(typeError, "member %q must be a string or {\"base64\":\"…\"}", shorten(member))
		case member != "":
			return fail(typeError, "member %q has a wrong type", shorten(member))
		}
	}
	return fail(typeError, "arguments are not a JSON object, or a member is repeated")
}

func shorten(text string) string {
	const most = 100
	if len(text) > most {
		return strings.ToValidUTF8(text[:most], "") + "…"
	}
	return text
}

// The names of the errors of the standard (Web IDL, section 2.8.1; TypeError is of ECMAScript).
const (
	notSupported  = "NotSupportedError"
	syntaxError   = "SyntaxError"
	invalidAccess = "InvalidAccessError"
	dataError     = "DataError"
	operation     = "OperationError"
	typeError     = "TypeError"
)

func fail(name, format string, args ...any) error {
	return fault.New(fault.Invalid, name+": "+format, args...)
}

func missing(member string) error { return fail(typeError, "member %q is missing", member) }

type validity struct {
	Valid bool `json:"valid"`
}
