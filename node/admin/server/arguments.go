package server

import (
	"bytes"
	"errors"
	"fmt"
	"reflect"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"runner.example/internal/fault"
)

// readJSON decodes the arguments of an operation. An unknown member is refused: what it asks for would silently not be
// done. The error is a fault with the code Invalid, which names the member with its path.
func readJSON(text []byte, args any) error {
	if len(bytes.TrimSpace(text)) == 0 {
		return fault.New(fault.Invalid, "invalid arguments: the body is empty: send a JSON object, {} for no arguments")
	}
	err := json.Unmarshal(text, args, json.RejectUnknownMembers(true), json.MatchCaseInsensitiveNames(true))
	if err == nil {
		return nil
	}
	if syntax, ok := errors.AsType[*jsontext.SyntacticError](err); ok {
		return fault.New(fault.Invalid, "invalid arguments: %s is not valid JSON at byte %d: %v", member(syntax.JSONPointer), syntax.ByteOffset, syntax.Err)
	}
	wrong, ok := errors.AsType[*json.SemanticError](err)
	switch {
	case !ok:
		return fault.Wrap(err, fault.Invalid, "invalid arguments: the body cannot be read")
	case errors.Is(wrong, json.ErrUnknownName):
		return fault.New(fault.Invalid, "invalid arguments: unknown member %s", member(wrong.JSONPointer))
	}
	return fault.New(fault.Invalid, "invalid arguments: %s %s", member(wrong.JSONPointer), mismatch(wrong))
}

// member returns a member of the arguments as JavaScript writes it: files[0].size.
func member(at jsontext.Pointer) string {
	var path strings.Builder
	for name := range at.Tokens() {
		if _, err := strconv.Atoi(name); err == nil {
			path.WriteString("[" + name + "]")
			continue
		}
		if path.Len() > 0 {
			path.WriteByte('.')
		}
		path.WriteString(name)
	}
	if path.Len() == 0 {
		return "the body"
	}
	return strconv.Quote(path.String())
}

// mismatch returns what a member must be, or why its text is not valid. It names no Go type.
func mismatch(wrong *json.SemanticError) string {
	must := kindOfType(wrong.GoType)
	is := map[jsontext.Kind]string{'n': "null", 't': "true", 'f': "false", '"': "a string", '0': "a number", '{': "an object", '[': "an array"}[wrong.JSONKind]
	if text, ok := ownText(wrong.Err); ok && must == "" {
		return "is not valid: " + text
	}
	switch {
	case must == "":
		return "is not valid"
	case wrong.JSONKind == '0' && len(wrong.JSONValue) > 0 && len(wrong.JSONValue) <= 40:
		return fmt.Sprintf("must be %s, not %s", must, wrong.JSONValue)
	case is == "":
		return "must be " + must
	}
	return fmt.Sprintf("must be %s, not %s", must, is)
}

// ownText returns the error of a type with its own decoder, without what the JSON package says about it.
func ownText(err error) (string, bool) {
	if err == nil {
		return "", false
	}
	return strings.TrimPrefix(err.Error(), "json: "), true
}

// kindOfType returns what a value of a Go type is in JSON; empty: it has its own form.
func kindOfType(t reflect.Type) string {
	if t == nil {
		return ""
	}
	if _, ok := described[t]; ok && t.Kind() != reflect.Slice {
		return ""
	}
	switch t.Kind() {
	case reflect.Pointer:
		return kindOfType(t.Elem())
	case reflect.String:
		return "a string"
	case reflect.Bool:
		return "true or false"
	case reflect.Int, reflect.Int64:
		return "an integer"
	case reflect.Uint32, reflect.Uint64:
		return "an integer of at least 0"
	case reflect.Slice:
		if t.Elem().Kind() == reflect.Uint8 {
			return "a string in base64"
		}
		return "an array"
	case reflect.Array:
		return fmt.Sprintf("an array of %d", t.Len())
	case reflect.Struct, reflect.Map:
		return "an object"
	}
	return ""
}
