package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"runner.example/cmd/runner/cli"
	"runner.example/develop/dev"
	"runner.example/develop/toolchain"
	"runner.example/develop/toolchain/python"
	"runner.example/internal/console"
	"runner.example/internal/diag"
	"runner.example/node"
	"runner.example/node/admin"
	"runner.example/node/app"
	"runner.example/node/config"
	"runner.example/runtime"
	"runner.example/schema"
	"runner.example/state/entity/catalog"
)

const checkHelp = `Check the configuration and the schema of an app, and report every error with its place.
The command changes nothing.

The types of handlers in TypeScript are checked too, as by runner build.

With --modules, also check that build/*.wasm exports every handler, report random values that a
module draws before its first request, and print the features of WebAssembly that each module
uses.

With --against, also compare the schema with the rows and keys of a data directory, with or
without a running server, and print the plan: what an activation would change, for how many rows,
and which indexes it builds.

With --json the output is an object with findings, at most 100 of them, and their total number;
also with modules or plan.

With --env, check with the environment of a server: a file of lines NAME=value, where NAME is a
variable of the schema or a variable RUNNER_…. A variable without a value is an error then, and
the RUNNER_ variables of this process do not count.

With --watch, check again after each save, until an interrupt; the exit status is 0 then. With
--json, each check prints a document.

With --config and without a schema in the app directory, check that file alone, as runner serve would:
every setting of it and of the environment, the certificates that it names, and whether the memory limits fit
this machine.`

// checked is what check checks.
type checked struct {
	strict, modules, watch bool
	against, env           string
}

func checkCommand(c *program) *cobra.Command {
	var what checked
	cmd := &cobra.Command{
		Use:   "check [dir]",
		Short: "check the schema and the configuration",
		Long:  checkHelp,
		Example: "  runner check\n  runner check --watch\n  runner check --modules --against /var/lib/orders/data\n" +
			"  runner check --config /etc/runner/runner.toml --env /etc/runner/environment",
		Args: cli.AtMost(1, "one directory"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := c.AppDir(cmd, args); err != nil {
				return err
			}
			if what.watch {
				return c.watchedCheck(cmd, what)
			}
			_, err := c.check(cmd, what)
			return err
		},
	}
	cmd.Flags().BoolVar(&what.watch, "watch", false, "check again after each save, until an interrupt")
	cmd.Flags().BoolVar(&what.strict, "strict", false, "treat warnings as errors")
	cmd.Flags().BoolVar(&what.modules, "modules", false, "check the compiled modules too")
	cmd.Flags().StringVar(&what.against, "against", "", "a data directory; compare the schema with its rows and keys")
	cmd.Flags().StringVar(&what.env, "env", "",
		"a file with the environment of a server; check the values of variables against it")
	cli.CompleteFlag(cmd, "env", cli.AnyFile)
	return cmd
}

// watchedCheck checks again after each save. An interrupt is how it ends, so that is not an error.
func (c *program) watchedCheck(cmd *cobra.Command, what checked) error {
	var also []string
	if what.env != "" {
		also = []string{what.env}
	}
	return dev.Watch(cmd.Context(), c.App, c.configPath(cmd), also, func(changed []string) *schema.Schema {
		if len(changed) > 0 {
			c.Say("", console.FewOf(changed)+" changed")
		}
		s, err := c.check(cmd, what)
		if err != nil && cmd.Context().Err() == nil {
			c.report(err)
		}
		return s
	})
}

// check prints what it finds to stdout: the diagnostics are the command's result. The schema is nil if it has errors.
func (c *program) check(cmd *cobra.Command, what checked) (*schema.Schema, error) {
	a, unread, err := c.ReadAppIn(cmd, what.env)
	if err != nil {
		return nil, err
	}
	if cmd.Flags().Changed("config") && !a.HasSchema() && !what.modules && what.against == "" {
		return nil, c.checkConfig(a, unread, what.strict)
	}
	var more extras
	omitted := 0 // findings that a node has not sent
	s, sources, found, err := a.Check()
	found.Append(unread)
	found.Append(aroundSchema(a, s, what.env != ""))
	if s != nil && !a.Problems.HasErrors() { // if it has errors, the secrets of the file are unknown
		c.NoteSecrets(a, s)
	}
	if what.modules && err == nil {
		var unbound diag.List
		// Without a schema, the modules can still be checked.
		var used []runtime.ModuleFeatures
		unbound, used, err = a.CheckModules(cmd.Context(), cmp.Or(s, &schema.Schema{}))
		if s != nil {
			python.ExplainUnbound(a.Dir, s, unbound)
		}
		found.Append(unbound)
		more.Modules = new(append([]runtime.ModuleFeatures{}, used...))
	}
	if cmd.Flags().Changed("against") && err == nil && s != nil {
		var compared admin.Comparison
		compared, err = c.compare(cmd.Context(), a, what.against, sources)
		found.Append(compared.Findings)
		omitted = compared.Total - len(compared.Findings)
		more.Plan = new(append([]catalog.Step{}, compared.Plan...))
	}
	if err == nil && s != nil {
		var types toolchain.DiagnosticsError
		types, err = c.checkCurrentTypes(cmd.Context(), a.Dir, s)
		found.Append(types.List)
		sources = append(slices.Clip(sources), types.Sources...)
	}
	if what.strict {
		found = found.Strict()
	}
	return s, c.findings(s, sources, found, omitted, more, err)
}

// checkCurrentTypes is checkTypes, which needs the files that a build writes into types.
func (c *program) checkCurrentTypes(ctx context.Context, dir string, s *schema.Schema) (none toolchain.DiagnosticsError, err error) {
	if current, err := app.TypesAreCurrent(dir, s); err != nil || !current {
		if err == nil {
			c.Say("", "types are not checked: the files in types are not those of the schema: runner build writes them")
		}
		return none, err
	}
	return c.checkTypes(ctx, dir)
}

// aroundSchema returns the diagnostics of the configuration, and of what the schema s needs of it and of files; s may be
// nil. With strict, a value that the schema does not declare is an error.
func aroundSchema(a *app.App, s *schema.Schema, strict bool) (found diag.List) {
	found.Append(a.Problems)
	if s == nil {
		return found
	}
	unknown := a.Unknown(s)
	if strict { // the environment is for this schema
		unknown = unknown.Strict()
	}
	found.Append(unknown)
	found.Append(a.CheckTrees(s))
	return found
}

// checkedDocument is what check --json prints.
type checkedDocument struct {
	diag.Excerpt
	extras
}

// checkConfig checks a configuration without an app.
func (c *program) checkConfig(a *app.App, found diag.List, strict bool) error {
	limit, _ := config.MemoryLimit()
	a.PrepareServer(c.ConfigFile, "", limit)
	if err := a.CheckCookies(a.Config.Runtime.Front.Listen); err != nil {
		place, _ := a.Config.Place("auth", "insecure_cookies")
		a.Problems.Errorf("", place, "%s: remove it, or listen on 127.0.0.1", err)
	}
	if found.Append(a.Problems); strict {
		found = found.Strict()
	}
	return c.findings(nil, nil, found, 0, extras{}, nil)
}

// extras are what check prints besides findings.
type extras struct {
	// Modules is nil without --modules, Plan without --against.
	Modules *[]runtime.ModuleFeatures `json:"modules,omitempty"`
	Plan    *[]catalog.Step           `json:"plan,omitempty"`
}

// compare compares the schema with the rows and keys in a data directory.
func (c *program) compare(ctx context.Context, a *app.App, dir string,
	sources []diag.Source) (found admin.Comparison, err error) {
	with := *a
	with.Data = dir
	if err := with.CheckData(); err != nil {
		return found, err
	}
	err = node.Task{AnswerTimeout: admin.LongAnswerTimeout, Do: func(ctx context.Context, client *admin.Client) (err error) {
		found, err = client.CompareSchema(ctx, admin.CompareSchema{Sources: sources})
		return err
	}}.Run(ctx, &with)
	return found, err
}

// printExtras prints what there is.
func (c *program) printExtras(e extras) error {
	if e.Modules != nil && len(*e.Modules) > 0 {
		var rows [][]string
		for _, m := range *e.Modules {
			rows = append(rows, []string{m.Module, cmp.Or(strings.Join(m.Features, ", "), "none but those of WebAssembly 1.0")})
		}
		if err := c.PrintTable([]string{"module", "features"}, rows, ""); err != nil {
			return err
		}
	}
	if e.Plan == nil {
		return nil
	}
	return c.printPlan(*e.Plan)
}

// printPlan prints the changes as a table.
func (c *program) printPlan(plan []catalog.Step) error {
	var rows [][]string
	for _, step := range plan {
		rows = append(rows, []string{step.Change, step.What, strconv.Itoa(step.Rows), step.How})
	}
	return c.PrintTable([]string{"change", "what", "rows", "how"}, rows, "the schema of the rows does not change")
}

// findings prints the list and the extras. A node has not sent some findings, which are omitted. also is an error that
// is not a diagnostic, or nil.
func (c *program) findings(s *schema.Schema, sources []diag.Source, found diag.List, omitted int, more extras, also error) error {
	var err error
	shown := found.Excerpt()
	shown.Total += omitted
	counted := console.Counted(found)
	if omitted > 0 {
		counted += fmt.Sprintf(", and %d more", omitted)
	}
	switch {
	case also != nil && len(found) == 0:
		return also
	case c.JSON:
		err = c.PrintJSON(checkedDocument{shown, more})
	default:
		err = c.PrintDiagnostics(c.Stdout, sources, shown)
		if err == nil {
			err = c.printExtras(more)
		}
	}
	switch {
	case err != nil:
		return err
	case found.HasErrors():
		return errors.Join(&console.Failure{Status: console.StatusInvalid, Err: errors.New(counted)}, also)
	case also != nil:
		return also
	case len(found) > 0:
		c.Say("", counted+", no error")
	case s == nil:
		c.Say("", "configuration is valid")
	default:
		c.Say("", fmt.Sprintf("schema is valid (%s, %s, %s)", console.Plural(len(s.Routes), "route"),
			console.Plural(len(s.APIKeys.Scopes), "scope"), console.Plural(len(s.Entities), "entity")))
	}
	return nil
}
