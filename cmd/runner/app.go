package main

import (
	"path/filepath"

	"github.com/spf13/cobra"

	"runner.example/app"
	"runner.example/config"
	"runner.example/internal/console"
	"runner.example/internal/secret"
)

// openApp is readApp for commands that stop at a problem in the configuration.
func (c *cli) openApp(cmd *cobra.Command) (*app.App, error) {
	a, err := c.readApp(cmd)
	if err == nil && a.Problems.HasErrors() {
		err = a.InvalidConfiguration()
	}
	return a, err
}

// readApp reads the configuration of the app that the global flags name.
func (c *cli) readApp(cmd *cobra.Command) (*app.App, error) {
	path, given := c.configFile, cmd.Flags().Changed("config")
	if !given {
		path = filepath.Join(c.app, config.FileName)
	}
	conf, found, err := config.Load(path, !given, c.environ)
	if err != nil {
		return nil, &console.Failure{Status: console.StatusInvalid, Err: err}
	}
	a := &app.App{Dir: c.app, Config: conf, Data: conf.DataDir(c.app), Problems: found}
	a.Secrets = func(names []string) (secret.Values, error) { return c.resolve(names, conf) }
	if cmd.Flags().Changed("data") {
		a.Data = c.data
	}
	return a, nil
}
