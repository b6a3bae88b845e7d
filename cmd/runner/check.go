package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"runner.example/admin"
	"runner.example/app"
	"runner.example/cmd/runner/cli"
	"runner.example/internal/console"
	"runner.example/internal/diag"
	"runner.example/internal/secret"
	"runner.example/node"
	"runner.example/schema"
)

const checkHelp = `Check the configuration and the schema of an app, and report every error with its place.
With --modules, also check that build/*.wasm exports every handler. With --against, also
compare the schema with the rows and keys of a data directory, with or without a running
server.`

func checkCommand(c *program) *cobra.Command {
	var strict, modules bool
	var against string
	cmd := &cobra.Command{
		Use:   "check [dir]",
		Short: "check the schema and the configuration",
		Long:  checkHelp,
		Args:  cli.AtMost(1, "one directory"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := c.AppDir(cmd, args); err != nil {
				return err
			}
			return c.check(cmd, strict, modules, against)
		},
	}
	cmd.Flags().BoolVar(&strict, "strict", false, "treat warnings as errors")
	cmd.Flags().BoolVar(&modules, "modules", false, "check the compiled modules too")
	cmd.Flags().StringVar(&against, "against", "", "a data directory; compare the schema with its rows and keys")
	return cmd
}

// check prints what it finds to stdout: the diagnostics are the command's result.
func (c *program) check(cmd *cobra.Command, strict, modules bool, against string) error {
	a, err := c.ReadApp(cmd)
	if err != nil {
		return err
	}
	s, sources, found, err := a.Check()
	found.Append(a.Problems)
	if s != nil {
		found.Append(a.UnknownSecrets(s))
		if !a.Problems.HasErrors() { // if it has errors, the secrets of the file are unknown
			c.noteSecrets(a, s)
		}
	}
	if modules && err == nil {
		var unbound diag.List
		// Without a schema, the modules can still be checked.
		unbound, err = a.CheckModules(cmd.Context(), cmp.Or(s, &schema.Schema{}))
		found.Append(unbound)
	}
	if cmd.Flags().Changed("against") && err == nil && s != nil {
		var changes diag.List
		changes, err = c.compare(cmd.Context(), a, against, sources)
		found.Append(changes)
	}
	if strict {
		found = found.Strict()
	}
	return c.findings(s, sources, found, err)
}

// compare compares the schema with the rows and keys in a data directory.
func (c *program) compare(ctx context.Context, a *app.App, dir string, sources []diag.Source) (changes diag.List, err error) {
	with := *a
	with.Data = dir
	if err := with.CheckData(); err != nil {
		return nil, err
	}
	err = node.Task{Do: func(ctx context.Context, client *admin.Client) (err error) {
		changes, err = client.CompareSchema(ctx, admin.CompareSchema{Sources: sources})
		return err
	}}.Run(ctx, &with)
	return changes, err
}

// noteSecrets lists the secrets without a value. That is not an error of the app: the
// server may run in an environment that has them.
func (c *program) noteSecrets(a *app.App, s *schema.Schema) {
	if _, err := secret.Resolve(s.Secrets, c.LookupEnv, a.Config.Secrets); err != nil {
		c.Say("", "runner serve will not start with this environment: "+cli.OneLine(err))
	}
}

// findings prints the list; also is an error that is not a diagnostic, or nil.
func (c *program) findings(s *schema.Schema, sources []diag.Source, found diag.List, also error) error {
	var err error
	switch {
	case also != nil && len(found) == 0:
		return also
	case c.JSON:
		err = c.PrintJSON(found)
	default:
		err = c.PrintDiagnostics(c.Stdout, sources, found)
	}
	switch {
	case err != nil:
		return err
	case found.HasErrors():
		return errors.Join(&console.Failure{Status: console.StatusInvalid, Err: errors.New(console.Counted(found))}, also)
	case also != nil:
		return also
	case len(found) > 0:
		c.Say("", console.Counted(found)+", no error")
	default:
		c.Say("", fmt.Sprintf("schema is valid (%s, %s, %s)", console.Plural(len(s.Routes), "route"), console.Plural(len(s.APIKeys.Scopes), "scope"), console.Plural(len(s.Entities), "entity")))
	}
	return nil
}
