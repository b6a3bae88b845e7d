package main

import (
	"context"
	"errors"

	"github.com/spf13/cobra"

	"runner.example/internal/diag"
	"runner.example/runtime"
	"runner.example/schema"
)

const checkHelp = `Check the configuration and the schema of an app, and tell every mistake with
its place. With --modules, also check that build/*.wasm exports every handler.`

func (c *cli) checkCommand() *cobra.Command {
	var strict, modules bool
	cmd := &cobra.Command{
		Use:   "check [dir]",
		Short: "check the schema and the configuration",
		Long:  checkHelp,
		Args:  atMost(1, "one folder"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := c.appFolder(cmd, args); err != nil {
				return err
			}
			return c.check(cmd, strict, modules)
		},
	}
	cmd.Flags().BoolVar(&strict, "strict", false, "take warnings for errors")
	cmd.Flags().BoolVar(&modules, "modules", false, "check the compiled modules too")
	return cmd
}

// check prints what it finds to stdout: here the mistakes are the answer.
func (c *cli) check(cmd *cobra.Command, strict, modules bool) error {
	a, err := c.openApp(cmd)
	if err != nil {
		return c.findings(nil, nil, err)
	}
	s, sources, found, err := a.compile()
	if m, ok := errors.AsType[*mistakes](err); ok {
		found, err = m.list, nil
	}
	if err != nil {
		return err
	}
	if modules && s != nil {
		unbound, err := a.checkModules(cmd.Context(), s)
		if err != nil {
			return err
		}
		found.Append(unbound)
	}
	found.Append(a.doubts)
	if strict {
		found = found.Strict()
	}
	return c.findings(sources, found, nil)
}

// findings prints the list, or the one that err carries.
func (c *cli) findings(sources []diag.Source, found diag.List, err error) error {
	if m, ok := errors.AsType[*mistakes](err); ok {
		sources, found, err = m.sources, m.list, nil
	}
	if err != nil {
		return err
	}
	if c.json {
		err = c.printJSON(found)
	} else {
		err = c.printDiagnostics(c.stdout, sources, found)
	}
	switch {
	case err != nil:
		return err
	case found.HasErrors():
		return &failure{status: statusInvalid, err: errors.New(counted(found))}
	case len(found) > 0:
		c.say("", counted(found)+", no error")
	default:
		c.say("", "nothing to complain about")
	}
	return nil
}

// checkModules compiles the modules and reports the routes without a handler.
// An error says what is wrong with a module itself.
func (a *app) checkModules(ctx context.Context, s *schema.Schema) (diag.List, error) {
	modules, err := runtime.ReadModules(a.dir)
	if err != nil {
		return nil, err
	}
	err = runtime.CheckModules(ctx, a.sandboxOptions(""), runtime.App{Schema: s, Modules: modules})
	if unbound, ok := errors.AsType[*runtime.UnboundError](err); ok {
		return unbound.List, nil
	}
	return nil, err
}
