package settings

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/BurntSushi/toml"

	"runner.example/internal/diag"
)

// SecretsSection is the section whose keys are the user's own.
const SecretsSection = "secrets"

// VarsSection is the section with the values of the schema's variables, and varPrefix begins
// the environment variables with them.
const (
	VarsSection = "vars"
	varPrefix   = "RUNNER_VARS_"
)

// secretPrefix begins the environment variables with secrets: package secret reads them.
const secretPrefix = "RUNNER_SECRETS_"

// Given is the value of a variable of the schema, as text.
type Given struct {
	Text  string
	Place diag.Span
}

// Values is what Read has found beside the fields of its targets.
type Values struct {
	// Secrets are the values of [secrets], nil without the section. Never print them.
	Secrets map[string]string
	// SecretPlaces are the places of their names.
	SecretPlaces map[string]diag.Span
	// Vars are the values of variables by name: of the environment, or else of [vars];
	// nil without any.
	Vars map[string]Given
	// Problems are all errors, and warnings about variables that look misspelt. With an
	// error the targets must not be used.
	Problems diag.List

	origins       map[string]origin // of the settings that are not defaults, by name
	secretOrigins map[string]origin // of the secrets with a value, by name
}

// None returns the values of settings that are all defaults.
func None() *Values {
	return &Values{origins: map[string]origin{}, secretOrigins: map[string]origin{}}
}

// Place returns where a setting was set, as in Place("front", "listen"), and whether it was.
func (v *Values) Place(section, key string) (diag.Span, bool) {
	o, ok := v.origins[(&setting{section: section, key: key}).name()]
	return o.place, ok && o.from != Machine
}

// Read sets the targets, which are pointers to option structs, to their defaults, then to
// the values of the file at path, then to those of the environment, in the form of
// os.Environ. A missing file is an error unless optional. An error means that the file
// cannot be read at all.
func Read(path string, optional bool, environ []string, targets ...any) (*Values, error) {
	SetDefaults(targets...)
	r := &reader{all: find(targets), values: None()}
	src, err := readLimited(path)
	switch {
	case err == nil:
		r.readFile(path, src)
	case !optional || !errors.Is(err, fs.ErrNotExist):
		return nil, fmt.Errorf("read configuration: %w", err)
	}
	r.readEnvironment(environ)
	return r.values, nil
}

// maxFileBytes is the largest configuration file: a device may have no end.
const maxFileBytes = 1 << 20

func readLimited(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	src, err := io.ReadAll(io.LimitReader(f, maxFileBytes+1))
	if err == nil && len(src) > maxFileBytes {
		err = fmt.Errorf("%s has more than %d KiB", path, maxFileBytes>>10)
	}
	return src, err
}

// reader sets settings and collects all errors.
type reader struct {
	all    []*setting
	values *Values
}

func (r *reader) readEnvironment(environ []string) {
	for _, entry := range environ {
		name, value, _ := strings.Cut(entry, "=")
		i := slices.IndexFunc(r.all, func(s *setting) bool { return s.variable() == name })
		place := diag.Span{File: name}
		variable, isVar := strings.CutPrefix(name, varPrefix)
		switch {
		case isVar:
			r.give(variable, Given{value, place})
		case i >= 0:
			r.note(r.all[i], origin{Environment, place}, r.all[i].setText(value))
		case strings.HasPrefix(name, secretPrefix):
			r.noteSecret(name)
		case r.looksMisspelt(name):
			r.values.Problems.Warnf("", place, "no setting has this variable%s", diag.DidYouMean(name, r.variables()))
		}
	}
}

// looksMisspelt distinguishes RUNNER_FRONT_LISTN from variables that only have the same
// prefix, as an orchestrator sets them for a service called "runner".
func (r *reader) looksMisspelt(name string) bool {
	if !strings.HasPrefix(name, "RUNNER_") || strings.HasPrefix(name, secretPrefix) {
		return false
	}
	return diag.Suggest(name, r.variables()) != ""
}

func (r *reader) variables() []string {
	names := make([]string, len(r.all))
	for i, s := range r.all {
		names[i] = s.variable()
	}
	return names
}

// readFile reads the whole file and continues after every error but a syntax error.
func (r *reader) readFile(path string, src []byte) {
	var sections map[string]toml.Primitive
	file := tomlFile{path: path, src: src}
	meta, err := toml.Decode(string(src), &sections)
	if err != nil {
		r.values.Problems.Errorf("", file.placeOf(err), "not TOML here: %s", remedyOf(err))
		return
	}
	file.meta = meta
	for name, section := range sections {
		r.readSection(&file, name, section)
	}
}

func (r *reader) readSection(file *tomlFile, name string, section toml.Primitive) {
	known := r.sections()
	_, isTable := file.value(section).(map[string]any)
	switch {
	case !isTable:
		r.values.Problems.Errorf("", file.keyPlace(name, section), "key %q is in no section%s", name, r.sectionOf(name))
	case name == SecretsSection:
		r.readSecrets(file, file.keys(section))
	case name == VarsSection:
		r.readVars(file, file.keys(section))
	case !slices.Contains(known, name):
		r.values.Problems.Errorf("", file.keyPlace(name, section), "unknown section [%s]%s",
			name, diag.DidYouMean(name, known))
	default:
		for key, in := range file.keys(section) {
			r.readKey(file, name, key, in)
		}
	}
}

func (r *reader) readKey(file *tomlFile, section, key string, in toml.Primitive) {
	i := slices.IndexFunc(r.all, func(s *setting) bool { return s.section == section && s.key == key })
	if i < 0 {
		r.values.Problems.Errorf("", file.keyPlace(key, in), "unknown key %q in [%s]%s",
			key, section, r.hintFor(section, key))
		return
	}
	r.note(r.all[i], origin{File, file.valuePlace(in)}, r.all[i].setTOML(file.value(in)))
}

// note records where a setting was set, and the errors of its value.
func (r *reader) note(s *setting, at origin, err error) {
	r.values.origins[s.name()] = at
	if err == nil {
		return
	}
	all := []error{err}
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		all = joined.Unwrap()
	}
	for _, one := range all {
		r.values.Problems.Errorf("", at.place, "%s: %v", s.name(), one)
	}
}

// noteSecret records a variable that has the value of a secret, or the path of a file with it. The value
// itself comes first, as in secret.Resolve.
func (r *reader) noteSecret(variable string) {
	name := strings.TrimPrefix(variable, secretPrefix)
	base, isFile := strings.CutSuffix(name, "_FILE")
	if isFile {
		if o, ok := r.values.secretOrigins[base]; ok && o.place.File == secretPrefix+base {
			return
		}
		name = base
	}
	r.values.secretOrigins[name] = origin{Environment, diag.Span{File: variable}}
}

func (r *reader) readSecrets(file *tomlFile, keys map[string]toml.Primitive) {
	r.values.Secrets, r.values.SecretPlaces = map[string]string{}, map[string]diag.Span{}
	for name, in := range keys {
		s, ok := file.value(in).(string)
		if !ok || s == "" {
			r.values.Problems.Errorf("", file.keyPlace(name, in),
				"secret %q must be a string in quotes, and not an empty one", name)
			continue
		}
		r.values.Secrets[name], r.values.SecretPlaces[name] = s, file.keyPlace(name, in)
		r.values.secretOrigins[name] = origin{File, file.keyPlace(name, in)}
	}
}

func (r *reader) readVars(file *tomlFile, keys map[string]toml.Primitive) {
	for name, in := range keys {
		given := Given{Place: file.keyPlace(name, in)}
		switch v := file.value(in).(type) {
		case string:
			given.Text = v
		case bool:
			given.Text = strconv.FormatBool(v)
		case int64:
			given.Text = strconv.FormatInt(v, 10)
		default:
			r.values.Problems.Errorf("", given.Place,
				"variable %q must be a string in quotes, a whole number, true or false; write a decimal in quotes too", name)
			continue
		}
		r.give(name, given)
	}
}

func (r *reader) give(name string, given Given) {
	if r.values.Vars == nil {
		r.values.Vars = map[string]Given{}
	}
	r.values.Vars[name] = given
}

// hintFor suggests a key of the section, or the section that has this key.
func (r *reader) hintFor(section, key string) string {
	var here []string
	for _, s := range r.all {
		if s.section == section {
			here = append(here, s.key)
		}
	}
	if hint := diag.DidYouMean(key, here); hint != "" {
		return hint
	}
	return r.sectionOf(key)
}

// sectionOf says which section has a key of this name.
func (r *reader) sectionOf(key string) string {
	for _, s := range r.all {
		if s.key == key {
			return fmt.Sprintf(" (it belongs to [%s])", s.section)
		}
	}
	return ""
}

func (r *reader) sections() []string {
	names := []string{SecretsSection, VarsSection}
	for _, s := range r.all {
		if !slices.Contains(names, s.section) {
			names = append(names, s.section)
		}
	}
	return names
}
