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
	"runner.example/node"
	"runner.example/schema"
)

const checkHelp = `Check the configuration and the schema of an app, and report every error with its place.
With --modules, also check that build/*.wasm exports every handler. With --against, also
compare the schema with the rows and keys of a data directory, with or without a running
server.

With --env, check with the environment of a server: a file of lines NAME=value, where NAME is a
variable of the schema or a variable RUNNER_…. A variable without a value is an error then, and
the RUNNER_ variables of this process do not count.`

// checked is what check checks.
type checked struct {
	strict, modules bool
	against, env    string
}

func checkCommand(c *program) *cobra.Command {
	var what checked
	cmd := &cobra.Command{
		Use:   "check [dir]",
		Short: "check the schema and the configuration",
		Long:  checkHelp,
		Args:  cli.AtMost(1, "one directory"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := c.AppDir(cmd, args); err != nil {
				return err
			}
			return c.check(cmd, what)
		},
	}
	cmd.Flags().BoolVar(&what.strict, "strict", false, "treat warnings as errors")
	cmd.Flags().BoolVar(&what.modules, "modules", false, "check the compiled modules too")
	cmd.Flags().StringVar(&what.against, "against", "", "a data directory; compare the schema with its rows and keys")
	cmd.Flags().StringVar(&what.env, "env", "", "a file with the environment of a server; check the values of variables against it")
	cli.CompleteFlag(cmd, "env", cli.AnyFile)
	return cmd
}

// check prints what it finds to stdout: the diagnostics are the command's result.
func (c *program) check(cmd *cobra.Command, what checked) error {
	a, unread, err := c.ReadAppIn(cmd, what.env)
	if err != nil {
		return err
	}
	s, sources, found, err := a.Check()
	found.Append(a.Problems)
	found.Append(unread)
	if s != nil {
		unknown := a.Unknown(s)
		if what.env != "" { // the file is for this schema
			unknown = unknown.Strict()
		}
		found.Append(unknown)
		if !a.Problems.HasErrors() { // if it has errors, the secrets of the file are unknown
			c.NoteSecrets(a, s)
		}
	}
	if what.modules && err == nil {
		var unbound diag.List
		// Without a schema, the modules can still be checked.
		unbound, err = a.CheckModules(cmd.Context(), cmp.Or(s, &schema.Schema{}))
		found.Append(unbound)
	}
	if cmd.Flags().Changed("against") && err == nil && s != nil {
		var changes diag.List
		changes, err = c.compare(cmd.Context(), a, what.against, sources)
		found.Append(changes)
	}
	if what.strict {
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
