package data

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/jedib0t/go-pretty/v6/progress"
	"github.com/spf13/cobra"

	"runner.example/cmd/runner/cli"
	"runner.example/cmd/runner/data/rowfile"
	"runner.example/internal/console"
	"runner.example/node"
	"runner.example/node/admin"
)

const exportHelp = `Write rows with all their fields, hidden ones included, as JSON lines or CSV.

Pages of 1,000 rows are read one after the other, each from one snapshot of the store. JSON
lines lose nothing. In CSV, null and the empty string look alike, and line ends within texts
become \n.`

func exportCommand(c *cli.CLI) *cobra.Command {
	remote := cli.Remote{Slow: true}
	var flags rowFlags
	var format, path string
	cmd := &cobra.Command{
		Use:               "export <entity>",
		ValidArgsFunction: cli.FirstArg(c.SchemaNames(cli.EntityNames), cobra.NoFileCompletions),
		Short:             "export rows to a file",
		Long:              exportHelp,
		Example: `  runner data export Order --out orders.csv
  runner data export Order --where "status = open" | wc -l`,
		Args: cli.Exactly(1, "the name of an entity"),
		RunE: func(cmd *cobra.Command, args []string) error {
			request, err := flags.request(args[0])
			if err != nil {
				return err
			}
			format, err := rowfile.FormatOf(format, path)
			if err != nil {
				return err
			}
			return c.OnRemote(cmd, remote, node.Task{NeedsSchema: true, Do: func(ctx context.Context, node *admin.Client) error {
				return exportTo(c, ctx, node, request, path, format)
			}})
		},
	}
	flags.add(cmd)
	cmd.Flags().StringVar(&format, "format", "", "jsonl or csv (default: by the file's name)")
	cmd.Flags().StringVar(&path, "out", "", "new file to write, mode 0600 (default: stdout)")
	remote.AddFlags(cmd)
	return cmd
}

func exportTo(c *cli.CLI, ctx context.Context, node *admin.Client, request admin.ListRows, path,
	format string) (err error) {
	out := c.Stdout
	if path != "" {
		file, failed := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
		if failed != nil {
			return console.Invalid("--out: %w", failed)
		}
		defer func() {
			if closed := file.Close(); err == nil {
				err = closed
			}
			if err != nil {
				_ = os.Remove(path) // a part of an export looks like a whole one
			}
		}()
		out = file
	}
	n, err := exportRows(c, ctx, node, request, out, format, path != "")
	if err != nil || path == "" {
		return err
	}
	if c.JSON {
		return c.PrintJSON(struct {
			Exported int    `json:"exported"`
			File     string `json:"file"`
		}{n, path})
	}
	return c.Print(fmt.Sprintf("exported %s to %s\n", console.Plural(n, "row"), path))
}

func exportRows(c *cli.CLI, ctx context.Context, node *admin.Client, request admin.ListRows, out io.Writer,
	format string, shown bool) (n int, err error) {
	var b *console.Bar
	if shown {
		b = c.NewBar("exporting "+request.Entity, 0, progress.UnitsDefault)
	} else {
		b = &console.Bar{} // a progress bar would mix with the rows on the terminal
	}
	defer func() { b.End(err) }()
	w := rowfile.NewWriter(out, format)
	request.Text = format == rowfile.CSV
	err = eachPage(ctx, node, request, 0, func(page *admin.RowPage) error {
		rows := len(page.Rows) + len(page.Cells)
		n += rows
		b.Add(int64(rows))
		return w.Write(page)
	})
	return n, errors.Join(err, w.Flush())
}
