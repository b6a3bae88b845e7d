package app

import (
	"bytes"
	"fmt"
	"os"
	"strings"

	"runner.example/internal/diag"
	"runner.example/internal/settings"
	"runner.example/node/config"
)

// Environment is the environment of a server as a file has it.
type Environment struct {
	// Environ is in the form of os.Environ. A name in the file without RUNNER_ is the name of a
	// variable of the schema.
	Environ []string
	places  map[string]diag.Span
}

const varPrefix = "RUNNER_VARS_"

// ReadEnvironment reads a file with lines NAME=value, as a shell and most tools write them: a value
// may be in quotes, "export" may precede a name, and a comment begins with # at the start of a
// line or after a blank. A byte order mark at its start is ignored. The list has all lines of another form.
func ReadEnvironment(path string) (Environment, diag.List, error) {
	e := Environment{places: map[string]diag.Span{}}
	text, err := os.ReadFile(path)
	if err != nil {
		return e, nil, err
	}
	var found diag.List
	text = bytes.TrimPrefix(text, []byte("\ufeff"))
	for i, line := range bytes.Split(text, []byte("\n")) {
		at := diag.Pos{Line: i + 1, Col: 1}
		place := diag.Span{File: path, Start: at, End: at}
		entry := strings.TrimSpace(string(line))
		if entry == "" || strings.HasPrefix(entry, "#") {
			continue
		}
		name, value, ok := strings.Cut(entry, "=")
		if words := strings.Fields(name); len(words) == 2 && words[0] == "export" {
			name = words[1]
		}
		name = strings.TrimSpace(name)
		value, closed := unquote(strings.TrimSpace(value))
		if !strings.HasPrefix(name, "RUNNER_") {
			name = varPrefix + name
		}
		first, twice := e.places[name]
		switch {
		case !ok || name == varPrefix:
			found.Errorf("", place, "not a line of the form NAME=value: write one, or begin the line with #")
		case !closed:
			found.Errorf("", place, "the quote of the value does not end on this line: end it, or remove it")
		case twice:
			found.Errorf("", place, "%s is already set on line %d: keep one of them", strings.TrimPrefix(name, varPrefix), first.Start.Line)
		default:
			e.places[name] = place
			e.Environ = append(e.Environ, fmt.Sprintf("%s=%s", name, value))
		}
	}
	return e, found, nil
}

// unquote removes the quotes of a value, or the comment after one without quotes. closed is false
// if a quote does not end.
func unquote(value string) (text string, closed bool) {
	if value == "" || value[0] != '"' && value[0] != '\'' {
		text, _, _ = strings.Cut(value, " #")
		return strings.TrimSpace(text), true
	}
	quote, end := value[0], 1
	var inside []byte
	for ; end < len(value) && value[end] != quote; end++ {
		if quote == '"' && value[end] == '\\' && end+1 < len(value) && strings.IndexByte("\"\\$`", value[end+1]) >= 0 {
			end++ // as in a shell
		}
		inside = append(inside, value[end])
	}
	rest := strings.TrimSpace(value[min(end+1, len(value)):])
	return string(inside), end < len(value) && (rest == "" || rest[0] == '#')
}

// Place gives the variables of the file, and the problems of its settings, their places in it. c was loaded with
// Environ, and found is what was found then.
func (e Environment) Place(c *config.Config, found diag.List) {
	for i := range found {
		if place, ok := e.places[found[i].Span.File]; ok {
			found[i].Span = place
		}
	}
	for name, given := range c.Vars {
		if place, ok := e.places[varPrefix+name]; ok {
			c.Vars[name] = settings.Given{Text: given.Text, Place: place}
		}
	}
}
