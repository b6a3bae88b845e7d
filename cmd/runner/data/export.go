package data

import (
	"context"
	"errors"
	"fmt"
	"io"

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
become \n.

With --files, the contents of the files that the rows have are written to a directory, which other
exports may have written to. Without it, an export has only the descriptions of files.`

func exportCommand(c *cli.CLI) *cobra.Command {
	remote := cli.Remote{Slow: true}
	var flags rowFlags
	var format, path, files string
	cmd := &cobra.Command{
		Use:               "export <entity>",
		ValidArgsFunction: cli.FirstArg(c.SchemaNames(cli.EntityNames), cobra.NoFileCompletions),
		Short:             "export rows to a file",
		Long:              exportHelp,
		Example: `  runner data export Order --out orders.csv
  runner data export Order --where "status = open" | wc -l
  runner data export Post --out posts.jsonl --files contents`,
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
				e := exporter{CLI: c, path: path, format: format, files: contents(files)}
				return e.run(ctx, node, request)
			}})
		},
	}
	flags.add(cmd)
	cmd.Flags().StringVar(&format, "format", "", "jsonl or csv (default: by the file's name)")
	cmd.Flags().StringVar(&path, "out", "", "new file to write, mode 0600 (default: stdout)")
	cmd.Flags().StringVar(&files, "files", "", "directory for the contents of files, each named by its SHA-256")
	remote.AddFlags(cmd)
	return cmd
}

// exporter writes the rows of an entity, and the contents of their files.
type exporter struct {
	*cli.CLI
	path, format string
	files        contents // empty: without contents
	// rows and contents are how many were exported.
	rows, contents int
}

// exported is the document of `runner data export --json`.
type exported struct {
	Exported int    `json:"exported"`
	File     string `json:"file"`
	// Files is the number of files that rows have.
	Files *int `json:"files,omitempty"`
}

func (e *exporter) run(ctx context.Context, node *admin.Client, request admin.ListRows) error {
	if e.files != "" {
		if err := e.files.create(); err != nil {
			return err
		}
	}
	if e.path == "" {
		return e.write(ctx, node, request, e.Stdout)
	}
	if err := writeNew(e.path, func(w io.Writer) error { return e.write(ctx, node, request, w) }); err != nil {
		return err
	}
	if e.JSON {
		done := exported{Exported: e.rows, File: e.path}
		if e.files != "" {
			done.Files = &e.contents
		}
		return e.PrintJSON(done)
	}
	text := fmt.Sprintf("exported %s to %s", console.Plural(e.rows, "row"), e.path)
	if e.files != "" {
		text += fmt.Sprintf(", and %s to %s", console.Plural(e.contents, "file"), e.files)
	}
	return e.Print(text + "\n")
}

// write writes the rows of each page after the contents of its files: what rows name is there.
func (e *exporter) write(ctx context.Context, node *admin.Client, request admin.ListRows, out io.Writer) (err error) {
	bar := &console.Bar{} // one that is shown would mix with rows on the terminal
	switch {
	case e.path != "" && e.files != "":
		bar = e.NewBar("files of "+request.Entity, 0, progress.UnitsBytes)
	case e.path != "":
		bar = e.NewBar("exporting "+request.Entity, 0, progress.UnitsDefault)
	}
	defer func() { bar.End(err) }()
	w := rowfile.NewWriter(out, e.format)
	request.Text, request.Files = e.format == rowfile.CSV, e.files != ""
	err = eachPage(ctx, node, request, 0, func(page *admin.RowPage) error {
		for _, f := range page.Files {
			if err := e.files.fetch(ctx, node, f, bar); err != nil {
				return err
			}
			e.contents++
		}
		rows := len(page.Rows) + len(page.Cells)
		e.rows += rows
		if e.files == "" {
			bar.Add(int64(rows))
		}
		return w.Write(page)
	})
	return errors.Join(err, w.Flush())
}
