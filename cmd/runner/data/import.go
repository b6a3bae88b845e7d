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
	"runner.example/internal/diag"
	"runner.example/node"
	"runner.example/node/admin"
	"runner.example/schema"
)

const importHelp = `Insert the rows of a file: JSON lines, or CSV with field names in the first line.

Rows may contain their id and the times that are otherwise set automatically, so an export
can be imported. A row may refer to rows before it, or to others of its batch. An empty cell
of CSV is null in an optional field, the empty string in a text, and otherwise omitted.

Each batch of up to 1,000 rows is one transaction. When a row is refused, nothing of its batch
is written, and every error of the batch is reported with its line.`

// batchBytes is well below the largest transaction, indexes included.
const batchBytes = 2 << 20

func importCommand(c *cli.CLI) *cobra.Command {
	remote := cli.Remote{Slow: true}
	var format, tenant string
	var skip bool
	cmd := &cobra.Command{
		Use:               "import <entity> <file>",
		ValidArgsFunction: cli.FirstArg(c.SchemaNames(cli.EntityNames), cli.AnyFile),
		Short:             "import the rows of a file",
		Long:              importHelp,
		Example: `  runner data import Order orders.jsonl
  runner data import Order --format csv - < orders.csv`,
		Args: cli.Exactly(2, "the name of an entity and a file, or - for the standard input"),
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			format, err := rowfile.FormatOf(format, args[1])
			if err != nil {
				return err
			}
			in, size, err := openInput(c, args[1])
			if err != nil {
				return err
			}
			defer in.Close()
			known := func(s *schema.Schema) error {
				if s.Typed && s.Entity(args[0]) == nil {
					return console.Invalid("the schema declares no entity %q%s", args[0], diag.DidYouMean(args[0], s.EntityNames()))
				}
				return nil
			}
			return c.OnRemote(cmd, remote, node.Task{NeedsSchema: true, Check: known,
				Do: func(ctx context.Context, node *admin.Client) error {
					return importFile(c, ctx, node, args[1], in, size, format, admin.ImportRows{
						Entity: args[0], SkipExisting: skip, Tenant: tenant,
					})
				}})
		},
	}
	cmd.Flags().StringVar(&format, "format", "", "jsonl or csv (default: by the file's name)")
	cmd.Flags().BoolVar(&skip, "skip-existing", false, "ignore rows whose id exists")
	cmd.Flags().StringVar(&tenant, "tenant", "", "tenant of the rows, in a schema without entities (default: none)")
	remote.AddFlags(cmd)
	return cmd
}

// openInput opens a file, or the standard input for "-". The size is 0 when it is unknown.
func openInput(c *cli.CLI, path string) (io.ReadCloser, int64, error) {
	if path == "-" {
		return io.NopCloser(c.Stdin), 0, nil
	}
	file, err := os.Open(path)
	if err != nil {
		return nil, 0, console.Invalid("import: %w", err)
	}
	info, err := file.Stat()
	if err == nil && info.IsDir() {
		err = fmt.Errorf("%s is a directory", path)
	}
	if err != nil {
		_ = file.Close()
		return nil, 0, console.Invalid("import: %w", err)
	}
	return file, info.Size(), nil
}

// imported is the document of `runner data import --json`.
type imported struct {
	Inserted int `json:"inserted"`
	Skipped  int `json:"skipped"`
}

func importFile(c *cli.CLI, ctx context.Context, node *admin.Client, path string, in io.Reader, size int64,
	format string, request admin.ImportRows) (err error) {
	bar := c.NewBar("importing "+request.Entity, size, progress.UnitsBytes)
	rows, err := rowfile.NewReader(io.TeeReader(in, bar), path, format)
	var done imported
	if err == nil {
		err = importAll(ctx, node, request, rows, &done)
	} else {
		err = console.Invalid("%w", err)
	}
	bar.End(err)
	if err != nil {
		if done.Inserted > 0 {
			c.Say("", fmt.Sprintf("%s imported before that; with --skip-existing rows with an id can be imported again",
				console.Plural(done.Inserted, "row")))
		}
		return err
	}
	if c.JSON {
		return c.PrintJSON(done)
	}
	text := fmt.Sprintf("imported %s", console.Plural(done.Inserted, "row"))
	if done.Skipped > 0 {
		text += fmt.Sprintf(", skipped %d", done.Skipped)
	}
	return c.Print(text + "\n")
}

// importAll imports all rows. While a batch is inserted, the next one is read.
func importAll(ctx context.Context, node *admin.Client, request admin.ImportRows, rows *rowfile.Reader,
	done *imported) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	for b := range readBatches(ctx, rows) {
		if len(b.rows) > 0 {
			request.Header, request.Rows, request.Cells = rows.Header, nil, nil
			for _, row := range b.rows {
				if rows.Header != nil {
					request.Cells = append(request.Cells, row.Cells)
				} else {
					request.Rows = append(request.Rows, row.Object)
				}
			}
			result, err := node.ImportRows(ctx, request)
			if err != nil {
				return err
			}
			if len(result.Refused) > 0 {
				return refusedRows(rows.Name, b.rows, result.Refused)
			}
			done.Inserted += result.Inserted
			done.Skipped += result.Skipped
		}
		if b.broken != nil {
			return console.Invalid("%w", b.broken)
		}
	}
	return context.Cause(ctx)
}

// batch is the rows of one transaction, and the error after them.
type batch struct {
	rows   []*rowfile.Row
	broken error
}

// readBatches reads rows until the end of the file, an error, or the end of ctx. A read of the
// standard input may never return, so nothing waits for the end of the goroutine.
func readBatches(ctx context.Context, rows *rowfile.Reader) <-chan batch {
	batches := make(chan batch)
	go func() {
		defer close(batches)
		for {
			all, broken := rows.Batch(admin.MaxImport, batchBytes)
			if len(all) == 0 && broken == nil {
				return
			}
			select {
			case batches <- batch{all, broken}:
			case <-ctx.Done():
				return
			}
			if broken != nil {
				return
			}
		}
	}()
	return batches
}

// maxRefused is the number of refused rows that are reported.
const maxRefused = 20

func refusedRows(name string, batch []*rowfile.Row, refused []admin.RefusedRow) error {
	var all []error
	for i, row := range refused {
		if i == maxRefused {
			all = append(all, console.Invalid("… and %d more", len(refused)-i))
			break
		}
		all = append(all, console.Invalid("%s:%d: %s", name, batch[row.Index].Line, row.Message))
	}
	return errors.Join(all...)
}
