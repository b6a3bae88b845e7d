package settings

import (
	"bytes"
	"fmt"
	"reflect"
	"regexp"
	"strconv"
	"strings"
)

// Template returns a runner.toml with every setting of the targets at its default, section
// by section in this order. comment returns the Go comment of a field; names of fields in
// it are replaced by their keys.
func Template(sections []string, comment func(parent reflect.Type, field string) string, targets ...any) []byte {
	var out bytes.Buffer
	all := find(targets)
	for _, section := range sections {
		if out.Len() > 0 {
			out.WriteByte('\n')
		}
		fmt.Fprintf(&out, "[%s]\n", section)
		for _, s := range all {
			if s.section != section {
				continue
			}
			f := s.fields[0]
			text := withKeys(comment(f.parent, f.name), f.parent)
			if f.tag.Get("reload") == "true" {
				text += " A reload applies a new value."
			}
			writeComment(&out, text)
			fmt.Fprintf(&out, "%s = %s\n", s.key, f.literal())
		}
	}
	return out.Bytes()
}

// literal returns the default as the file has it.
func (f *field) literal() string {
	text := f.tag.Get("default")
	switch f.kind() {
	case "list":
		return "[]"
	case "bool":
		return strconv.FormatBool(text == "true")
	case "count", "share":
		if text == "" {
			return "0"
		}
		return text
	case "size":
		if text == "" {
			text = "0b"
		}
	}
	return strconv.Quote(text)
}

// withKeys replaces the names of a struct's fields by their keys.
func withKeys(text string, parent reflect.Type) string {
	for i := range parent.NumField() {
		t := parent.Field(i)
		if tag, ok := t.Tag.Lookup("toml"); ok {
			key, _ := strings.CutSuffix(tag, ",not")
			_, key, _ = strings.Cut(key, ".")
			text = regexp.MustCompile(`\b`+t.Name+`\b`).ReplaceAllString(text, key)
		}
	}
	return text
}

// writeComment writes a comment in lines of at most 88 characters.
func writeComment(out *bytes.Buffer, text string) {
	line := "#"
	for _, word := range strings.Fields(text) {
		if len(line)+1+len(word) > 88 {
			out.WriteString(line + "\n")
			line = "#"
		}
		line += " " + word
	}
	if line != "#" {
		out.WriteString(line + "\n")
	}
}
