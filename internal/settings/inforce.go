package settings

import (
	"encoding"
	"encoding/json"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"time"

	"runner.example/internal/diag"
)

// Source says where the value of a setting comes from.
type Source string

// The sources. Machine is a limit that is not set, and that was lowered to fit the machine.
const (
	Default     Source = "default"
	File        Source = "file"
	Environment Source = "environment"
	Flag        Source = "flag"
	Machine     Source = "machine"
)

// Setting is a setting as it is in force.
type Setting struct {
	// Name is section.key.
	Name string `json:"name"`
	// Value is as in the file, in JSON; null: a secret.
	Value json.RawMessage `json:"value"`
	From  Source          `json:"from"`
	// Place is a place in the file, as in runner.toml:3:10, or the name of the variable or of the flag;
	// empty for a default.
	Place string `json:"place,omitempty"`
}

// origin is where a setting was set.
type origin struct {
	from  Source
	place diag.Span
}

// SetBy records that something other than the file and the environment has set a setting.
func (v *Values) SetBy(from Source, section, key, place string) {
	v.origins[(&setting{section: section, key: key}).name()] = origin{from, diag.Span{File: place}}
}

// InForce returns the settings of the targets in the order of their sections, after them the names of the
// secrets, and the variables. The targets are those that were read, perhaps changed since then.
func (v *Values) InForce(sections []string, targets ...any) []Setting {
	var all []Setting
	found := find(targets)
	for _, section := range sections {
		for _, s := range found {
			if s.section != section {
				continue
			}
			o, ok := v.origins[s.name()]
			if !ok {
				o.from = Default
			}
			all = append(all, Setting{s.section + "." + s.key, s.fields[0].inForce(), o.from, o.place.String()})
		}
	}
	for _, name := range sortedKeys(v.secretOrigins) {
		o := v.secretOrigins[name]
		all = append(all, Setting{SecretsSection + "." + name, json.RawMessage("null"), o.from, o.place.String()})
	}
	for _, name := range sortedKeys(v.Vars) {
		given := v.Vars[name]
		from := Environment
		if given.Place.Start.IsValid() {
			from = File
		}
		all = append(all, Setting{VarsSection + "." + name, encode(given.Text), from, given.Place.String()})
	}
	return all
}

func sortedKeys[V any](m map[string]V) []string {
	names := make([]string, 0, len(m))
	for name := range m {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// inForce returns the value as the file would have it.
func (f *field) inForce() json.RawMessage {
	switch f.kind() {
	case "list":
		list := []string{}
		for i := range f.value.Len() {
			item := f.value.Index(i)
			if prefix, ok := item.Interface().(netip.Prefix); ok {
				list = append(list, prefix.String())
			} else {
				list = append(list, withoutPassword(item.String()))
			}
		}
		return encode(list)
	case "bool":
		return encode(f.value.Bool() != f.not)
	case "count":
		return encode(f.value.Int())
	case "share":
		return encode(f.value.Float())
	case "size":
		return encode(FormatSize(f.value.Int()))
	case "duration":
		return encode(FormatDuration(time.Duration(f.value.Int())))
	}
	return encode(withoutPassword(f.text()))
}

// text returns the value of a text.
func (f *field) text() string {
	own, ok := f.value.Addr().Interface().(encoding.TextMarshaler)
	if !ok {
		return f.value.String()
	}
	text, err := own.MarshalText()
	if err != nil {
		panic("BUG: encode a setting: " + err.Error())
	}
	for word := range strings.SplitSeq(f.tag.Get("oneof"), "|") {
		if strings.EqualFold(word, string(text)) { // slog.Level prints INFO
			return word
		}
	}
	return string(text)
}

// withoutPassword hides the password in a URL.
func withoutPassword(text string) string {
	if u, err := url.Parse(text); err == nil && u.User != nil {
		return u.Redacted()
	}
	return text
}

func encode(v any) json.RawMessage {
	var out strings.Builder
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		panic("BUG: encode a setting: " + err.Error())
	}
	return json.RawMessage(strings.TrimSuffix(out.String(), "\n"))
}
