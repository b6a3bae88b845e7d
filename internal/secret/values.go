package secret

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"

	"runner.example/internal/system/disk"
)

// maxBytes is the largest size of a secret's file.
const maxBytes = 64 << 10

// credentials is the variable in which systemd names the directory with the credentials of a service, see
// LoadCredential in systemd.exec(5). LoadCredential=secrets:<directory> loads each of its files under its name with
// this prefix.
const (
	credentials      = "CREDENTIALS_DIRECTORY"
	credentialPrefix = "secrets_"
)

// Values are the secrets that a schema declares, by name. The zero value has
// none. Values are immutable and safe for concurrent use.
type Values struct{ texts map[string]Text }

// Get returns the secret of that name and whether it is declared.
func (v Values) Get(name string) (Text, bool) {
	t, ok := v.texts[name]
	return t, ok
}

// Resolve finds the value of every declared secret, in the first of these sources that has
// one:
//
//	the variable RUNNER_SECRETS_<NAME>
//	the file that RUNNER_SECRETS_<NAME>_FILE names, less one newline at its end
//	the file secrets_<NAME> in the directory that CREDENTIALS_DIRECTORY names, likewise
//	the entry <NAME> of file, the [secrets] section of runner.toml
//
// A value is text in UTF-8, of more than blanks; a file is at most 64 KiB, and no pipe
// or device. The error names every secret that has none, and what to do; a path is not
// shown, since it may be a value in the wrong variable. Entries of file that no schema
// declares are ignored.
func Resolve(names []string, lookupEnv func(string) (string, bool), file map[string]string) (Values, error) {
	texts := make(map[string]Text, len(names))
	var missing []string
	var problems []error
	for _, name := range names {
		value, found, err := resolve(name, names, lookupEnv, file)
		switch {
		case err != nil:
			problems = append(problems, err)
		case !found:
			missing = append(missing, name)
		}
		texts[name] = New(value)
	}
	if len(missing) > 0 {
		problems = append(problems, fmt.Errorf(
			"no value for %s: set %s (or the same with _FILE to a file's path), or the name under [secrets] in runner.toml",
			strings.Join(missing, ", "), variables(missing)))
	}
	if err := errors.Join(problems...); err != nil {
		return Values{}, err
	}
	return Values{texts}, nil
}

func resolve(name string, names []string, lookupEnv func(string) (string, bool),
	file map[string]string) (value string, found bool, err error) {
	variable := variableOf(name)
	if value, found := lookupEnv(variable); found {
		return value, true, check(value, name, "the variable "+variable)
	}
	// A secret may itself be named …_FILE: then the variable is its own value.
	if !slices.Contains(names, name+"_FILE") {
		if path, found := lookupEnv(variable + "_FILE"); found {
			return readFile(name, variable+"_FILE", path)
		}
	}
	if dir, found := lookupEnv(credentials); found {
		path := filepath.Join(dir, credentialPrefix+name)
		if _, err := os.Lstat(path); !errors.Is(err, fs.ErrNotExist) {
			return readFile(name, credentials, path)
		}
	}
	if value, found := file[name]; found {
		return value, true, check(value, name, "[secrets] in runner.toml")
	}
	return "", false, nil
}

func readFile(name, variable, path string) (value string, found bool, err error) {
	data, err := read(path)
	if err != nil {
		return "", true, fmt.Errorf("read secret %s from the file that %s names: %w", name, variable, err)
	}
	value = strings.TrimSuffix(string(data), "\n")
	value = strings.TrimSuffix(value, "\r")
	return value, true, check(value, name, "the file that "+variable+" names")
}

// read reads a file without waiting for another process. Its errors do not show the
// path.
func read(path string) ([]byte, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|disk.NoWait, 0)
	if err != nil {
		return nil, causeOf(err)
	}
	defer f.Close()
	info, err := f.Stat()
	switch {
	case err != nil:
		return nil, causeOf(err)
	case !info.Mode().IsRegular():
		return nil, errors.New("it is not a regular file: write the value into one")
	}
	data, err := io.ReadAll(io.LimitReader(f, maxBytes+1))
	switch {
	case err != nil:
		return nil, causeOf(err)
	case len(data) > maxBytes:
		return nil, fmt.Errorf("it has more than the %d KiB of a secret", maxBytes>>10)
	}
	return data, nil
}

// causeOf returns an error of a file without its path.
func causeOf(err error) error {
	if at, ok := errors.AsType[*fs.PathError](err); ok {
		return at.Err
	}
	return errors.New("it cannot be read")
}

// check refuses a value that is not text of more than blanks, because guests get it as text.
func check(value, name, where string) error {
	switch {
	case strings.TrimSpace(value) == "":
		return fmt.Errorf("secret %s is empty in %s: give it a value or remove it there", name, where)
	case !utf8.ValidString(value):
		return fmt.Errorf("secret %s is not text in UTF-8 in %s: write it there in base64 or hex", name, where)
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
