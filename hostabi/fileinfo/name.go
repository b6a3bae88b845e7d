package fileinfo

import (
	"strings"
	"unicode/utf8"

	"runner.example/schema"
)

const (
	// MaxName is the most bytes that Name returns.
	MaxName = 255
	// maxExtension is the longest extension that a name keeps when it is cut, with its dot.
	maxExtension = 16
	// Unnamed is the name of a file without one.
	Unnamed = "file"
)

// Name returns the last element of a path as the name of a file: valid UTF-8 of 1 to MaxName bytes without what
// schema.IsAllowedInFileName refuses. A longer name keeps its extension.
func Name(given string) string {
	given = given[strings.LastIndexAny(given, `/\`)+1:]
	name := strings.Map(func(r rune) rune {
		if schema.IsAllowedInFileName(r) {
			return r
		}
		return -1
	}, strings.ToValidUTF8(given, "\ufffd"))
	name = cut(strings.TrimSpace(name))
	if name == "" || name == "." || name == ".." {
		return Unnamed
	}
	return name
}

// cut shortens a name to MaxName bytes. It keeps the extension.
func cut(name string) string {
	if len(name) <= MaxName {
		return name
	}
	extension := ""
	if dot := strings.LastIndexByte(name, '.'); dot > 0 && len(name)-dot <= maxExtension {
		extension = name[dot:]
	}
	end := MaxName - len(extension)
	for !utf8.RuneStart(name[end]) {
		end--
	}
	return strings.TrimSpace(name[:end]) + extension
}
