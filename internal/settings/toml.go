package settings

import (
	"bytes"
	"errors"
	"strings"
	"unicode/utf8"

	"github.com/BurntSushi/toml"

	"runner.example/internal/diag"
)

// tomlFile finds the places of keys and values in a parsed file.
type tomlFile struct {
	path string
	src  []byte
	meta toml.MetaData
}

// pointer refuses every value: the library reports places only in errors.
type pointer struct{}

func (pointer) UnmarshalTOML(any) error { return errors.New("here") }

// keys returns the keys and values of a table.
func (f *tomlFile) keys(table toml.Primitive) map[string]toml.Primitive {
	var keys map[string]toml.Primitive
	if f.meta.PrimitiveDecode(table, &keys) != nil {
		return nil
	}
	return keys
}

// value returns the value of a key, in the types of the TOML library.
func (f *tomlFile) value(in toml.Primitive) any {
	var v any
	if f.meta.PrimitiveDecode(in, &v) != nil {
		return nil
	}
	return v
}

// valuePlace returns the place of a value, its opening quote or bracket included.
func (f *tomlFile) valuePlace(in toml.Primitive) diag.Span {
	start := f.offset(in)
	if start > 0 && (f.src[start-1] == '"' || f.src[start-1] == '\'' || f.src[start-1] == '[') {
		start--
	}
	return f.span(start)
}

// keyPlace returns the place of a key or of the name of a section.
func (f *tomlFile) keyPlace(key string, in toml.Primitive) diag.Span {
	start := f.offset(in)
	if i := bytes.LastIndex(f.src[:start], []byte(key)); i >= 0 && f.src[start] != '[' {
		return f.span(i)
	}
	if i := bytes.Index(f.src[start:], []byte(key)); i >= 0 {
		return f.span(start + i)
	}
	return f.span(start)
}

func (f *tomlFile) offset(in toml.Primitive) int {
	place, _ := errors.AsType[toml.ParseError](f.meta.PrimitiveDecode(in, &pointer{}))
	return min(place.Position.Start, len(f.src)-1)
}

func (f *tomlFile) placeOf(err error) diag.Span {
	if place, ok := errors.AsType[toml.ParseError](err); ok {
		return f.span(place.Position.Start)
	}
	return diag.Span{File: f.path}
}

func (f *tomlFile) span(offset int) diag.Span {
	before := f.src[:max(0, min(offset, len(f.src)))]
	line := bytes.LastIndexByte(before, '\n') + 1
	at := diag.Pos{
		Offset: len(before),
		Line:   bytes.Count(before, []byte("\n")) + 1,
		Col:    utf8.RuneCount(before[line:]) + 1,
	}
	return diag.Span{File: f.path, Start: at, End: at}
}

// remedyOf says what to do about a syntax error. The library's messages quote the file, which
// may contain a secret, so only fixed texts are passed on.
func remedyOf(err error) string {
	parse, _ := errors.AsType[toml.ParseError](err)
	switch message := parse.Message; {
	case strings.HasPrefix(message, "Key '"):
		return "the key was defined before: keep it once"
	case strings.HasPrefix(message, "unexpected EOF"), message == "strings cannot contain newlines":
		return message
	case strings.HasPrefix(message, "invalid UTF-8"):
		return "the file is not UTF-8"
	case strings.HasPrefix(message, "invalid escape"), strings.HasPrefix(message, "Escaped character"),
		strings.Contains(message, "hexadecimal digits after"):
		return `write a backslash in a string as \\`
	}
	return "write strings in quotes"
}
