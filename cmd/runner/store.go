package main

import (
	"errors"
	"fmt"
	"os/signal"
	"strings"

	"github.com/jedib0t/go-pretty/v6/progress"
	"github.com/spf13/cobra"

	"runner.example/cmd/runner/cli"
	"runner.example/internal/console"
	"runner.example/internal/diag"
	"runner.example/internal/system/process"
	"runner.example/state/salvage"
	"runner.example/state/store"
)

const storeHelp = `Check the stored rows, or salvage the rows of a damaged store.`

func storeCommand(c *program) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "store",
		Short: "verify the store, or salvage the rows of a damaged one",
		Long:  storeHelp,
	}
	cmd.AddCommand(storeVerifyCommand(c), storeSalvageCommand(c))
	c.OnlySubcommands(cmd)
	return cmd
}

const salvageHelp = `Write the readable rows of a damaged data directory to a file. The directory is not changed.
No other process may use it meanwhile.

The file is a tar archive, for runner data import:

  rows/<entity>.jsonl         rows as they were acknowledged
  doubtful/<entity>.jsonl     rows whose newer version or deletion may be in the
                              unreadable parts
  report.json                 the unreadable parts of each file

Rows of a tenant in a schema without entities are in <entity>@<tenant>.jsonl, for data
import --tenant. API keys, sessions and the audit are not in the archive: a key whose
revocation cannot be read would be accepted again.

The schema in the app directory must be the active one of the store, or one that also
declares what a rollback has kept of newer releases. Until it ends, the command needs
free space next to the file: as much as the store takes, and 256 MiB more.

The status is 0 if everything could be read, and 1 if not; the archive is complete in
both cases.`

func storeSalvageCommand(c *program) *cobra.Command {
	return &cobra.Command{
		Use:     "salvage <file>",
		Short:   "write the readable rows of a damaged store to a file",
		Long:    salvageHelp,
		Example: "  runner store salvage rescued.tar",
		Args:    cli.Exactly(1, "a file, created with mode 0600"),
		RunE: func(cmd *cobra.Command, args []string) error {
			a, err := c.OpenApp(cmd)
			if err != nil {
				return err
			}
			if err := a.CheckData(); err != nil {
				return err
			}
			if !a.HasData() {
				return &console.Failure{
					Status: console.StatusNotFound, Err: fmt.Errorf("data directory %q does not exist", a.Data),
					Hint: "name another one with --data",
				}
			}
			a.Unset = func([]diag.Source, diag.List) {} // rows do not depend on variables
			s, _, err := a.Compile()
			if err != nil {
				return err
			}
			ctx, stop := signal.NotifyContext(cmd.Context(), process.Terminate) // rows lie beside the file until it is finished
			defer stop()
			var bar *console.Bar
			var before int64
			report, err := salvage.Run(ctx, a.Data, args[0], s, func(done, total int64) {
				if bar == nil {
					bar = c.NewBar("reading "+a.Data, total, progress.UnitsBytes)
				}
				bar.Add(done - before)
				before = done
			})
			if bar != nil {
				bar.End(err)
			}
			if errors.Is(err, store.ErrLocked) {
				return &console.Failure{Status: console.StatusFailed, Err: err, Hint: "stop the server first"}
			}
			if err != nil {
				return err
			}
			return c.tellSalvaged(report, args[0])
		},
	}
}

// maxLosses is the number of losses that are printed; the report has all.
const maxLosses = 20

func (c *program) tellSalvaged(r *salvage.Report, path string) error {
	if c.JSON {
		if err := c.PrintJSON(r); err != nil {
			return err
		}
	} else {
		var table [][]string
		for _, e := range r.Entities {
			table = append(table, []string{e.Name, fmt.Sprint(e.Rows), fmt.Sprint(e.Doubtful), fmt.Sprint(e.Unreadable)})
		}
		if err := c.PrintTable([]string{"ENTITY", "ROWS", "DOUBTFUL", "UNREADABLE"}, table, "there are no rows"); err != nil {
			return err
		}
	}
	if r.Whole() {
		c.Say("", "everything could be read; it is in "+path)
		return nil
	}
	for i, l := range r.Losses {
		if i == maxLosses {
			c.Say("", fmt.Sprintf("… and %d more, see report.json", len(r.Losses)-i))
			break
		}
		where := l.File
		if l.To > 0 {
			where += fmt.Sprintf(", bytes %d to %d", l.From, l.To-1)
		}
		c.Say("cannot read ", where+": "+l.Cause)
	}
	if len(r.NotDeclared) > 0 {
		c.Say("not written, because the schema does not declare it: ", strings.Join(r.NotDeclared, ", "))
	}
	if r.RowsError != "" {
		c.Say("cannot write rows: ", r.RowsError)
	}
	return &console.Failure{
		Status: console.StatusFailed, Err: fmt.Errorf("not everything could be read; the readable rows are in %s", path),
		Hint: "unpack it with tar -xf, check the doubtful rows, and import the rows into a new data directory with runner data import",
	}
}
