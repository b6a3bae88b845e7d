package main

import (
	"fmt"
	"path/filepath"

	"github.com/spf13/cobra"

	"runner.example/internal/diag"
	"runner.example/schema"
)

// app is the folder a command works on, with its configuration read.
type app struct {
	dir    string
	config *config
	// data is the data folder.
	data string
	// doubts are the warnings about the configuration.
	doubts diag.List
}

// openApp reads the configuration of the app that the global flags name.
func (c *cli) openApp(cmd *cobra.Command) (*app, error) {
	path, given := c.configFile, cmd.Flags().Changed("config")
	if !given {
		path = filepath.Join(c.app, "runner.toml")
	}
	conf, found, err := readConfig(path, !given, c.environ)
	if err != nil {
		return nil, invalid("%v", err)
	}
	if found.HasErrors() {
		return nil, &mistakes{what: "the configuration is invalid: " + counted(found), list: found}
	}
	a := &app{dir: c.app, config: conf, data: conf.store.dir, doubts: found}
	switch {
	case cmd.Flags().Changed("data"):
		a.data = c.data
	case !filepath.IsAbs(a.data):
		a.data = filepath.Join(c.app, a.data)
	}
	return a, nil
}

// pepperFile is the path of [keystore] pepper_file as seen from here; empty
// when the keystore is to choose it.
func (a *app) pepperFile() string {
	path := a.config.keystore.pepperFile
	if path == "" || filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(a.dir, path)
}

// compile reads and checks the schema. The list has its warnings too; a schema
// with errors is an error of type *mistakes, and then the list is nil.
func (a *app) compile() (*schema.Schema, []diag.Source, diag.List, error) {
	sources, err := schema.Load(a.dir)
	if err != nil {
		f := invalid("%v", err)
		f.hint = "name the app's folder with --app, or go there"
		return nil, nil, nil, f
	}
	s, list := schema.Compile(sources, a.schemaOptions())
	if list.HasErrors() {
		return nil, sources, nil, &mistakes{what: "the schema is invalid: " + counted(list), sources: sources, list: list}
	}
	return s, sources, list, nil
}

func (a *app) schemaOptions() schema.Options {
	return schema.Options{
		MaxBody:         a.config.front.maxBody,
		MaxTimeout:      a.config.runtime.maxTimeout,
		AllowPrivate:    a.config.outbound.allowPrivate,
		InsecureCookies: a.config.auth.insecureCookies,
	}
}

// counted tells how many errors and warnings are in list.
func counted(list diag.List) string {
	errors, warnings := 0, 0
	for _, d := range list.Sorted() {
		if d.Severity == diag.Error {
			errors++
		} else {
			warnings++
		}
	}
	switch {
	case warnings == 0:
		return plural(errors, "error")
	case errors == 0:
		return plural(warnings, "warning")
	}
	return plural(errors, "error") + " and " + plural(warnings, "warning")
}

func plural(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}
