package secret

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
)

// Values are the secrets that a schema declares, by name. The zero value has
// none. Values are immutable and safe for concurrent use.
type Values struct{ texts map[string]Text }

// Get returns the secret of that name and whether it is declared.
func (v Values) Get(name string) (Text, bool) {
	t, ok := v.texts[name]
	return t, ok
}

// Resolve finds the value of every declared secret, each in the first place
// that has one:
//
//	the variable RUNNER_SECRETS_<NAME>
//	the file that RUNNER_SECRETS_<NAME>_FILE names, less one newline at its end
//	the entry <NAME> of file, the [secrets] section of runner.toml
//
// The error names every secret that has no value, or an empty one, and what to
// do. Entries of file that no schema declares are not looked at.
func Resolve(names []string, lookupEnv func(string) (string, bool), file map[string]string) (Values, error) {
	texts := make(map[string]Text, len(names))
	var missing []string
	var mistakes []error
	for _, name := range names {
		value, found, err := resolve(name, names, lookupEnv, file)
		switch {
		case err != nil:
			mistakes = append(mistakes, err)
		case !found:
			missing = append(missing, name)
		}
		texts[name] = New(value)
	}
	if len(missing) > 0 {
		mistakes = append(mistakes, fmt.Errorf(
			"no value for %s: set %s, or the name under [secrets] in runner.toml",
			strings.Join(missing, ", "), variables(missing)))
	}
	if err := errors.Join(mistakes...); err != nil {
		return Values{}, err
	}
	return Values{texts}, nil
}

func resolve(name string, names []string, lookupEnv func(string) (string, bool), file map[string]string) (value string, found bool, err error) {
	variable := variableOf(name)
	if value, found := lookupEnv(variable); found {
		return value, true, notEmpty(value, name, "the variable "+variable)
	}
	// A secret may itself be named …_FILE: then the variable is its own value.
	if !slices.Contains(names, name+"_FILE") {
		if path, found := lookupEnv(variable + "_FILE"); found {
			return readFile(name, variable+"_FILE", path)
		}
	}
	if value, found := file[name]; found {
		return value, true, notEmpty(value, name, "[secrets] in runner.toml")
	}
	return "", false, nil
}

func readFile(name, variable, path string) (value string, found bool, err error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return "", true, fmt.Errorf("read secret %s from the file that %s names: %w", name, variable, err)
	}
	value = strings.TrimSuffix(string(data), "\n")
	value = strings.TrimSuffix(value, "\r")
	return value, true, notEmpty(value, name, fmt.Sprintf("the file %q", path))
}

func notEmpty(value, name, where string) error {
	if value == "" {
		return fmt.Errorf("secret %s is empty in %s: give it a value or remove it there", name, where)
	}
	return nil
}

func variables(names []string) string {
	out := make([]string, len(names))
	for i, name := range names {
		out[i] = variableOf(name)
	}
	return strings.Join(out, ", ")
}

func variableOf(name string) string { return "RUNNER_SECRETS_" + name }
