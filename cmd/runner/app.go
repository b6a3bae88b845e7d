package main

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/netip"
	"path/filepath"
	"slices"

	"github.com/spf13/cobra"

	"runner.example/config"
	"runner.example/internal/diag"
	"runner.example/keystore"
	"runner.example/schema"
	"runner.example/schema/compiler"
	"runner.example/schema/syntax"
)

// app is the folder a command works on, with its configuration read.
type app struct {
	dir    string
	config *config.Config
	// data is the data folder.
	data string
	// doubts is what was found in the configuration. With an error in it compile
	// finds no schema, and settings with a mistake have their defaults.
	doubts diag.List
}

// openApp is readApp for a command that goes no further with a mistake in the
// configuration.
func (c *cli) openApp(cmd *cobra.Command) (*app, error) {
	a, err := c.readApp(cmd)
	if err == nil && a.doubts.HasErrors() {
		err = &mistakes{what: "the configuration is invalid: " + counted(a.doubts), list: a.doubts}
	}
	return a, err
}

// readApp reads the configuration of the app that the global flags name.
func (c *cli) readApp(cmd *cobra.Command) (*app, error) {
	path, given := c.configFile, cmd.Flags().Changed("config")
	if !given {
		path = filepath.Join(c.app, config.FileName)
	}
	conf, found, err := config.Load(path, !given, c.environ)
	if err != nil {
		return nil, &failure{status: statusInvalid, err: err}
	}
	a := &app{dir: c.app, config: conf, data: conf.DataDir(c.app), doubts: found}
	if cmd.Flags().Changed("data") {
		a.data = c.data
	}
	return a, nil
}

// keystoreOptions are what the settings say to the keystore. The path of the pepper is
// as seen from here, empty when the keystore is to choose it.
func (a *app) keystoreOptions() keystore.Options {
	opt := a.config.Keystore
	if path := opt.PepperFile; path != "" && !filepath.IsAbs(path) {
		opt.PepperFile = filepath.Join(a.dir, path)
	}
	opt.Dir = a.data
	return opt
}

// compile reads and checks the schema. When the schema or the configuration has
// errors, the error tells those of both.
func (a *app) compile() (*schema.Schema, []diag.Source, error) {
	s, sources, found, err := a.look()
	bad := a.doubts.HasErrors()
	configuration := &mistakes{what: "the configuration is invalid: " + counted(a.doubts), list: a.doubts}
	switch {
	case err != nil && bad:
		return nil, nil, errors.Join(configuration, err)
	case err != nil:
		return nil, nil, err
	case s != nil && bad:
		return nil, nil, configuration
	case s != nil:
		return s, sources, nil
	}
	what := "the schema is invalid: "
	if bad {
		what = "the configuration and the schema are invalid: "
		found.Append(a.doubts)
	}
	return nil, nil, &mistakes{what: what + counted(found), sources: sources, list: found}
}

// look reads and checks the schema, and finds what there is to say about it. A
// schema with errors is nil; an error means that none can be read at all.
func (a *app) look() (*schema.Schema, []diag.Source, diag.List, error) {
	sources, err := syntax.Load(a.dir)
	if err != nil {
		f := &failure{status: statusInvalid, err: err}
		if _, none := syntax.Files(a.dir); none != nil && !errors.Is(none, fs.ErrPermission) {
			f.hint = "name the app's folder with --app, or go there"
		}
		return nil, nil, nil, f
	}
	s, found := compiler.Compile(sources, a.schemaOptions())
	return s, sources, found, nil
}

// strangers warns of values under [secrets] that the schema does not declare.
func (a *app) strangers(s *schema.Schema) (found diag.List) {
	for name, place := range a.config.SecretPlaces {
		if !slices.Contains(s.Secrets, name) {
			found.Warnf("", place, "the schema declares no secret %q%s", name, diag.DidYouMean(name, s.Secrets))
		}
	}
	return found
}

func (a *app) schemaOptions() compiler.Options {
	opt := a.config.Schema
	opt.Dir = a.dir
	return opt
}

// checkCookies refuses to serve session cookies that any network may read where others
// than this machine could ask for them.
func (a *app) checkCookies(listen string) error {
	host, _, err := net.SplitHostPort(listen)
	addr, notAddress := netip.ParseAddr(host)
	if !a.config.Schema.InsecureCookies || err == nil && (host == "localhost" || notAddress == nil && addr.Unmap().IsLoopback()) {
		return nil
	}
	f := invalid("[auth] insecure_cookies is for loopback alone, and this server would listen on %s", listen)
	f.hint = "take it out of runner.toml, or listen on 127.0.0.1"
	return f
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
