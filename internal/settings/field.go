package settings

import (
	"encoding"
	"errors"
	"fmt"
	"math"
	"net/netip"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Checker is implemented by option structs whose strings have rules beyond their tags.
type Checker interface {
	// CheckSetting checks the value of a string, or of one item of a list of strings.
	// key is "section.key". The error says what is expected, without the name of the key.
	CheckSetting(key, value string) error
}

// setting is one key and the fields that it sets, usually one.
type setting struct {
	section, key string
	fields       []field
}

// name is the name of the setting in messages.
func (s *setting) name() string { return "[" + s.section + "] " + s.key }

// variable is the environment variable that overrides the setting.
func (s *setting) variable() string {
	return "RUNNER_" + strings.ToUpper(s.section) + "_" + strings.ToUpper(s.key)
}

// field is a field of an option struct that a setting sets.
type field struct {
	value  reflect.Value
	tag    reflect.StructTag
	key    string // "section.key"
	not    bool   // the field is the opposite of the setting
	check  Checker
	parent reflect.Type
	name   string
}

// find returns the settings of the structs that the targets point to, in the order of
// their fields, those of embedded and nested structs included.
func find(targets []any) []*setting {
	var all []*setting
	each(targets, func(f field) {
		if f.key == "" {
			return
		}
		section, name, _ := strings.Cut(f.key, ".")
		i := slices.IndexFunc(all, func(s *setting) bool { return s.section == section && s.key == name })
		if i < 0 {
			i = len(all)
			all = append(all, &setting{section: section, key: name})
		}
		all[i].fields = append(all[i].fields, f)
	})
	return all
}

// each calls do for the fields with a key or a default.
func each(targets []any, do func(field)) {
	var walk func(v reflect.Value)
	walk = func(v reflect.Value) {
		check, _ := v.Addr().Interface().(Checker)
		for i := range v.NumField() {
			t := v.Type().Field(i)
			key, not := strings.CutSuffix(t.Tag.Get("toml"), ",not")
			_, filled := t.Tag.Lookup("default")
			switch {
			case key != "" || filled:
				do(field{v.Field(i), t.Tag, key, not, check, v.Type(), t.Name})
			case t.Type.Kind() == reflect.Struct && t.IsExported():
				walk(v.Field(i))
			}
		}
	}
	for _, target := range targets {
		walk(reflect.ValueOf(target).Elem())
	}
}

// SetDefaults sets every field with a default to it.
func SetDefaults(targets ...any) { each(targets, (field).setDefault) }

// FillZero sets every field to its default that is zero and has one. A field whose zero the
// file may say, as in `keep_done = "0s"`, stays zero.
func FillZero(targets ...any) {
	each(targets, func(f field) {
		if f.value.IsZero() && !f.mayBeZero() {
			f.setDefault()
		}
	})
}

// setDefault sets the field to its default, if it has one.
func (f field) setDefault() {
	text, ok := f.tag.Lookup("default")
	if !ok {
		return
	}
	if err := f.setText(text); err != nil {
		panic(fmt.Sprintf("BUG: default of %s.%s: %v", f.parent, f.name, err))
	}
}

// mayBeZero reports whether the file may set the field to zero.
func (f *field) mayBeZero() bool {
	if f.key == "" {
		return false
	}
	switch f.kind() {
	case "bool", "share":
		return true
	case "count":
		return f.limit("min", 0, parseCount) <= 0
	case "size":
		return f.limit("min", 0, ParseSize) <= 0
	case "duration":
		return f.limit("min", 0, parseDuration) <= 0
	}
	return false
}

func (s *setting) setTOML(in any) error { return s.each(func(f *field) error { return f.setTOML(in) }) }

func (s *setting) setText(text string) error {
	return s.each(func(f *field) error { return f.setText(text) })
}

// each calls set for all fields, and returns the first error.
func (s *setting) each(set func(*field) error) error {
	for i := range s.fields {
		if err := set(&s.fields[i]); err != nil {
			return err
		}
	}
	return nil
}

var (
	durationType = reflect.TypeFor[time.Duration]()
	prefixType   = reflect.TypeFor[netip.Prefix]()
)

// setTOML sets the field to a value of the file.
func (f *field) setTOML(in any) error {
	switch f.kind() {
	case "list":
		raw, ok := in.([]any)
		if !ok {
			return wrongType(`a list of strings, such as ["a", "b"]`, in)
		}
		return f.setList(raw)
	case "bool":
		b, ok := in.(bool)
		if !ok {
			return wrongType("true or false", in)
		}
		f.value.SetBool(b != f.not)
		return nil
	case "count":
		n, ok := in.(int64)
		if !ok {
			return wrongType("a whole number", in)
		}
		return f.setCount(n)
	case "share":
		if n, ok := in.(int64); ok {
			return f.setShare(float64(n))
		}
		n, ok := in.(float64)
		if !ok {
			return wrongType("a number from 0 to 1, such as 0.001", in)
		}
		return f.setShare(n)
	}
	text, ok := in.(string)
	if !ok {
		seconds := "30s"
		if n, ok := in.(int64); ok && n > 0 {
			seconds = fmt.Sprintf("%ds", n)
		}
		return wrongType(map[string]string{
			"duration": `a duration in quotes, such as "` + seconds + `"`, "size": `a size in quotes, such as "64mb"`,
			"text": "a string in quotes",
		}[f.kind()], in)
	}
	return f.setText(text)
}

// setText sets the field to a value of the environment, or of a default tag.
func (f *field) setText(text string) error {
	switch f.kind() {
	case "list":
		var items []any
		for item := range strings.SplitSeq(text, ",") {
			if item = strings.TrimSpace(item); item != "" {
				items = append(items, item)
			}
		}
		return f.setList(items)
	case "bool":
		if text != "true" && text != "false" {
			return fmt.Errorf("expected true or false, found %q", text)
		}
		f.value.SetBool((text == "true") != f.not)
		return nil
	case "count":
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			return fmt.Errorf("%q is not a whole number", text)
		}
		return f.setCount(n)
	case "share":
		n, err := strconv.ParseFloat(text, 64)
		if err != nil {
			return fmt.Errorf("%q is not a number from 0 to 1, such as 0.001", text)
		}
		return f.setShare(n)
	case "duration":
		return f.setDuration(text)
	case "size":
		return f.setSize(text)
	}
	return f.setString(text)
}

// kind is "text", "bool", "count", "share", "size", "duration" or "list".
func (f *field) kind() string {
	switch {
	case f.value.Kind() == reflect.Float64:
		return "share"
	case f.value.Type() == durationType:
		return "duration"
	case f.value.Kind() == reflect.Slice:
		return "list"
	case f.value.Kind() == reflect.Bool:
		return "bool"
	case f.value.Kind() == reflect.String || f.unmarshaler() != nil:
		return "text"
	case f.tag.Get("unit") == "size":
		return "size"
	}
	return "count"
}

func (f *field) unmarshaler() encoding.TextUnmarshaler {
	u, _ := f.value.Addr().Interface().(encoding.TextUnmarshaler)
	return u
}

func (f *field) setString(text string) error {
	if text == "" && f.tag.Get("nonempty") != "" {
		return errors.New("it must not be empty")
	}
	if words := f.tag.Get("oneof"); words != "" {
		all := strings.Split(words, "|")
		if !slices.Contains(all, text) {
			return fmt.Errorf("expected %s or %s, found %q", strings.Join(all[:len(all)-1], ", "), all[len(all)-1], text)
		}
	}
	if f.check != nil {
		if err := f.check.CheckSetting(f.key, text); err != nil {
			return err
		}
	}
	if u := f.unmarshaler(); u != nil {
		return u.UnmarshalText([]byte(text))
	}
	f.value.SetString(text)
	return nil
}

// setList sets all items, unless one of them is wrong.
func (f *field) setList(raw []any) error {
	var bad, wrong []error
	list := reflect.Zero(f.value.Type())
	for _, one := range raw {
		text, ok := one.(string)
		if !ok {
			wrong = append(wrong, wrongType("a list of strings", one))
			continue
		}
		item := reflect.ValueOf(text)
		if f.value.Type().Elem() == prefixType {
			prefix, err := parsePrefix(text)
			if err != nil {
				bad = append(bad, fmt.Errorf("%q is not a network: write it as 10.0.0.0/8, or a single address", text))
				continue
			}
			item = reflect.ValueOf(prefix)
		} else if f.check != nil {
			if err := f.check.CheckSetting(f.key, text); err != nil {
				bad = append(bad, err)
				continue
			}
		}
		list = reflect.Append(list, item)
	}
	if bad = append(wrong, bad...); len(bad) > 0 {
		return errors.Join(bad...)
	}
	f.value.Set(list)
	return nil
}

// parsePrefix parses a network, or one address as the network of it alone.
func parsePrefix(s string) (netip.Prefix, error) {
	if addr, err := netip.ParseAddr(s); err == nil {
		return addr.Prefix(addr.BitLen())
	}
	p, err := netip.ParsePrefix(s)
	return p.Masked(), err
}

func (f *field) setCount(n int64) error {
	low, high := f.limit("min", 0, parseCount), f.limit("max", math.MaxInt32, parseCount)
	if n < low || n > high {
		return fmt.Errorf("%d is outside %d..%d", n, low, high)
	}
	f.value.SetInt(n)
	return nil
}

func (f *field) setShare(n float64) error {
	if !(n >= 0 && n <= 1) { // NaN too
		return fmt.Errorf("%v is outside 0..1", n)
	}
	f.value.SetFloat(n)
	return nil
}

func (f *field) setSize(text string) error {
	n, err := ParseSize(text)
	if err != nil {
		return err
	}
	low, high, multiple := f.limit("min", 0, ParseSize), f.limit("max", math.MaxInt64, ParseSize),
		f.limit("multiple", 1, ParseSize)
	switch {
	case n < low:
		return fmt.Errorf("%s is too small: it must be at least %s", text, FormatSize(low))
	case n > high:
		return fmt.Errorf("%s is too large: it must be at most %s", text, FormatSize(high))
	case n%multiple != 0:
		return fmt.Errorf("%s is not a multiple of %s", text, FormatSize(multiple))
	}
	f.value.SetInt(n)
	return nil
}

func (f *field) setDuration(text string) error {
	d, err := ParseDuration(text, SettingDurations)
	if err != nil {
		return err
	}
	low, high := f.limit("min", 0, parseDuration), f.limit("max", math.MaxInt64, parseDuration)
	switch {
	case int64(d) < low:
		return fmt.Errorf("%s is too short: it must be at least %s", text, FormatDuration(time.Duration(low)))
	case int64(d) > high:
		return fmt.Errorf("%s is too long: it must be at most %s", text, FormatDuration(time.Duration(high)))
	}
	f.value.SetInt(int64(d))
	return nil
}

func parseCount(text string) (int64, error) { return strconv.ParseInt(text, 10, 64) }

func parseDuration(text string) (int64, error) {
	d, err := ParseDuration(text, SettingDurations)
	return int64(d), err
}

// limit returns the value of a tag, or other without one.
func (f *field) limit(tag string, other int64, parse func(string) (int64, error)) int64 {
	text, ok := f.tag.Lookup(tag)
	if !ok {
		return other
	}
	n, err := parse(text)
	if err != nil {
		panic(fmt.Sprintf("BUG: tag %s of %s: %v", tag, f.key, err))
	}
	return n
}

func wrongType(want string, found any) error {
	what := "a table"
	switch v := found.(type) {
	case string:
		what = "a string"
	case int64:
		what = fmt.Sprintf("the number %d", v)
	case float64:
		what = fmt.Sprintf("the number %v", v)
	case bool:
		what = fmt.Sprintf("%t", v)
	case time.Time:
		what = "a date"
	case []any:
		what = "a list"
	}
	return fmt.Errorf("expected %s, found %s", want, what)
}
