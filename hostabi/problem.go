package hostabi

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"

	"runner.example/hostabi/abi"
	"runner.example/internal/fault"
)

// reservedMembers are the members of a problem that the host sets. request_id is reserved so that it is
// not confused with requestId.
var reservedMembers = []string{"type", "title", "status", "detail", "instance", "code", "requestId", "request_id"}

// answerProblem answers with problem+json whose code and extension members the handler sets.
func answerProblem(c *Call, args *arguments) (any, error) {
	status, ok := args.optionalWhole("status")
	if !ok || status < 400 || status > 599 {
		args.wrong("member %q must be from 400 to 599", "status")
	}
	code, _ := args.presentText("code")
	if len(code) > maxCodeBytes || !codeValid([]byte(code)) {
		args.wrong("member %q must be in snake_case, with at most %d letters, digits and underscores", "code", maxCodeBytes)
	}
	detail, _ := args.presentText("detail")
	if len(detail) > maxMessageBytes {
		args.wrong("member %q is longer than %d KiB", "detail", maxMessageBytes>>10)
	}
	members := jsontext.Value(args.optionalObject("members"))
	if err := args.end(); err != nil {
		return nil, err
	}
	extension, err := extensionMembers(members)
	r := &c.Response
	switch {
	case err != nil:
		return nil, err
	case c.Preparing():
		return nil, fault.New(fault.Denied, "the initialization cannot answer: call problem while a request is handled")
	case r.Status != 0:
		return nil, invalid("an answer was already sent")
	}
	r.Headers = slices.DeleteFunc(r.Headers, func(h abi.Pair) bool { return strings.EqualFold(string(h.Name), "content-type") })
	r.Status, r.Code, r.Detail, r.Members = int(status), code, detail, extension
	if code == "" {
		r.Code = string(fault.OfStatus(int(status)))
	}
	return struct{}{}, nil
}

// extensionMembers returns the members of a JSON object without its braces, in compact form.
func extensionMembers(object jsontext.Value) ([]byte, error) {
	if object == nil {
		return nil, nil
	}
	var members map[string]json.RawMessage
	if json.Unmarshal(object, &members) != nil || object.Compact() != nil || !utf8.Valid(object) {
		return nil, invalid("member %q must be an object", "members")
	}
	for _, name := range reservedMembers {
		if _, given := members[name]; given {
			return nil, invalid("members.%s is set by the host: choose another name", name)
		}
	}
	if errors, given := members["errors"]; given {
		var list []map[string]*string
		if json.Unmarshal(errors, &list) != nil || list == nil || slices.ContainsFunc(list, func(e map[string]*string) bool {
			return len(e) != 2 || e["field"] == nil || e["message"] == nil
		}) {
			return nil, invalid(`members.errors must be a list of {"field","message"}, both strings`)
		}
	}
	return bytes.TrimSuffix(bytes.TrimPrefix(object, []byte("{")), []byte("}")), nil
}
