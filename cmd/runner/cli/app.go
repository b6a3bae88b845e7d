package cli

import (
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"runner.example/internal/console"
	"runner.example/internal/diag"
	"runner.example/internal/fault"
	"runner.example/internal/secret"
	"runner.example/node/app"
	"runner.example/node/config"
	"runner.example/schema"
)

// OpenApp is readApp for commands that stop at a problem in the configuration.
func (c *CLI) OpenApp(cmd *cobra.Command) (*app.App, error) {
	a, err := c.ReadApp(cmd)
	if err == nil && a.Problems.HasErrors() {
		err = a.InvalidConfiguration()
	}
	return a, err
}

// ReadApp reads the configuration of the app that the global flags name.
func (c *CLI) ReadApp(cmd *cobra.Command) (*app.App, error) {
	path, given := c.ConfigFile, cmd.Flags().Changed("config")
	if !given {
		path = filepath.Join(c.App, config.FileName)
	}
	conf, found, err := config.Load(path, !given, c.Environ)
	if err != nil {
		return nil, &console.Failure{Status: console.StatusInvalid, Err: err}
	}
	a := &app.App{Dir: c.App, Config: conf, Data: conf.DataDir(c.App), Problems: found}
	a.Secrets = func(names []string) (secret.Values, error) { return c.resolve(names, conf) }
	if cmd.Flags().Changed("data") {
		a.Data, a.DataNamed, conf.Store.Dir = c.Data, true, c.Data
		conf.SetByFlag("store", "dir", "--data")
	}
	return a, nil
}

// ReadAppOnly is ReadApp for commands that need no values of variables: one without a value is a
// warning on stderr.
func (c *CLI) ReadAppOnly(cmd *cobra.Command) (*app.App, error) {
	a, err := c.ReadApp(cmd)
	if err == nil {
		a.Unset = func(sources []diag.Source, found diag.List) {
			_ = c.PrintDiagnostics(c.Stderr, sources, found.Excerpt()) // nothing depends on the warnings
		}
	}
	return a, err
}

// ReadAppIn reads the app in the environment of a file, or of this process. Without a file,
// variables need no values. The list has the lines of the file that cannot be read.
func (c *CLI) ReadAppIn(cmd *cobra.Command, env string) (*app.App, diag.List, error) {
	if env == "" {
		a, err := c.ReadApp(cmd)
		if err == nil {
			a.Unset = func([]diag.Source, diag.List) {} // they are among the diagnostics of the schema
		}
		return a, nil, err
	}
	file, unread, err := app.ReadEnvironment(env)
	if err != nil {
		return nil, nil, console.Invalid("--env: %w", err)
	}
	c.Environ = file.Environ
	a, err := c.ReadApp(cmd)
	if err == nil {
		file.Place(a.Config, a.Problems)
	}
	return a, unread, err
}

// NoteSecrets lists the secrets without a value. That is not an error of the app: the
// server may run in an environment that has them.
func (c *CLI) NoteSecrets(a *app.App, s *schema.Schema) {
	if _, err := secret.Resolve(s.Secrets, c.LookupEnv, a.Config.Secrets); err != nil {
		c.Say("", "runner serve will not start with this environment: "+OneLine(err))
	}
}

// resolve returns the values of the schema's secrets. From then on the log hides them.
func (c *CLI) resolve(names []string, conf *config.Config) (secret.Values, error) {
	values, err := secret.Resolve(names, c.LookupEnv, conf.Secrets)
	if err != nil {
		return values, fault.New(fault.Invalid, "%s", OneLine(err))
	}
	texts := make([]string, len(names))
	for i, name := range names {
		value, _ := values.Get(name)
		texts[i] = value.Reveal()
	}
	c.Secrets.Add(texts...)
	return values, nil
}

// LookupEnv is os.LookupEnv in the environment with which the program was started.
func (c *CLI) LookupEnv(name string) (string, bool) {
	for _, entry := range c.Environ {
		if key, value, _ := strings.Cut(entry, "="); key == name {
			return value, true
		}
	}
	return "", false
}

// OneLine returns the text of an error, which may have several lines.
func OneLine(err error) string { return strings.ReplaceAll(err.Error(), "\n", "; ") }
