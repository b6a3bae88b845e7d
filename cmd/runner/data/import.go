package data

import (
	"context"
	"encoding/json"
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
is written, and every error of the batch is reported with its line.

The contents of files come from the directory that --files names, as an export has written it. They
must have the SHA-256 of the row, and the size and the type that the field allows. Batches are smaller
then: their files have at most 256 MiB together, or there is one row.`

// batchContents is the most bytes of files in one transaction of several rows. They are sent well within the hour that the
// node keeps them.
const batchContents = 256 << 20

// batchBytes is well below the largest transaction, indexes included.
const batchBytes = 2 << 20

func importCommand(c *cli.CLI) *cobra.Command {
	remote := cli.Remote{Slow: true}
	var format, tenant, files string
	var skip bool
	cmd := &cobra.Command{
		Use:               "import <entity> <file>",
		ValidArgsFunction: cli.FirstArg(c.SchemaNames(cli.EntityNames), cli.AnyFile),
		Short:             "import the rows of a file",
		Long:              importHelp,
		Example: `  runner data import Order orders.jsonl
  runner data import Order --format csv - < orders.csv
  runner data import Post posts.jsonl --files contents`,
		Args: cli.Exactly(2, "the name of an entity and a file, or - for the standard input"),
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			format, err := rowfile.FormatOf(format, args[1])
			if err != nil {
				return err
			}
			if files != "" {
				if err := contents(files).check(); err != nil {
					return err
				}
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
					i := importer{node: node, files: contents(files), request: admin.ImportRows{
						Entity: args[0], SkipExisting: skip, Tenant: tenant,
					}}
					return i.run(c, ctx, args[1], in, size, format)
				}})
		},
	}
	cmd.Flags().StringVar(&format, "format", "", "jsonl or csv (default: by the file's name)")
	cmd.Flags().BoolVar(&skip, "skip-existing", false, "ignore rows whose id exists")
	cmd.Flags().StringVar(&tenant, "tenant", "", "tenant of the rows, in a schema without entities (default: none)")
	cmd.Flags().StringVar(&files, "files", "", "directory with the contents of files, each named by its SHA-256")
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

// importer imports the rows of a file, and the contents of their files.
type importer struct {
	node    *admin.Client
	files   contents // empty: the node has the contents
	request admin.ImportRows
	bar     *console.Bar
	done    imported
}

func (i *importer) run(c *cli.CLI, ctx context.Context, path string, in io.Reader, size int64, format string) (err error) {
	if i.files != "" {
		size = 0 // what else is sent is not known
	}
	i.bar = c.NewBar("importing "+i.request.Entity, size, progress.UnitsBytes)
	rows, err := rowfile.NewReader(io.TeeReader(in, i.bar), path, format)
	if err == nil {
		err = i.importAll(ctx, rows)
	} else {
		err = console.Invalid("%w", err)
	}
	i.bar.End(err)
	if err != nil {
		if i.done.Inserted > 0 {
			c.Say("", fmt.Sprintf("%s imported before that; with --skip-existing rows with an id can be imported again",
				console.Plural(i.done.Inserted, "row")))
		}
		return err
	}
	if c.JSON {
		return c.PrintJSON(i.done)
	}
	text := fmt.Sprintf("imported %s", console.Plural(i.done.Inserted, "row"))
	if i.done.Skipped > 0 {
		text += fmt.Sprintf(", skipped %d", i.done.Skipped)
	}
	return c.Print(text + "\n")
}

// importAll imports all rows. While a batch is inserted, the next one is read.
func (i *importer) importAll(ctx context.Context, rows *rowfile.Reader) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	for b := range readBatches(ctx, rows) {
		if len(b.rows) > 0 {
			if err := i.importBatch(ctx, rows, b.rows); err != nil {
				return err
			}
		}
		if b.broken != nil {
			return console.Invalid("%w", b.broken)
		}
	}
	return context.Cause(ctx)
}

// importBatch imports rows that were read together, in several transactions if their files are large.
func (i *importer) importBatch(ctx context.Context, rows *rowfile.Reader, batch []*rowfile.Row) (err error) {
	request := i.request
	request.Header = rows.Header
	request.Rows, request.Cells = rowsOf(rows, batch)
	var files []admin.FileOfRow
	if i.files != "" {
		if files, err = i.node.FilesToImport(ctx, request); err != nil {
			return err
		}
	}
	for from := 0; from < len(batch); {
		to, ofPart := nextPart(files, from, len(batch))
		files = files[len(ofPart):]
		request.Rows, request.Cells = rowsOf(rows, batch[from:to])
		if request.Refused, err = i.sendContents(ctx, ofPart, from); err != nil {
			return err
		}
		result, err := i.node.ImportRows(ctx, request)
		if err != nil {
			return err
		}
		if len(result.Refused) > 0 {
			return refusedRows(rows.Name, batch[from:to], result.Refused)
		}
		i.done.Inserted += result.Inserted
		i.done.Skipped += result.Skipped
		from = to
	}
	return nil
}

// rowsOf returns rows as objects or, for CSV, as cells.
func rowsOf(rows *rowfile.Reader, batch []*rowfile.Row) (objects []json.RawMessage, cells [][]string) {
	for _, row := range batch {
		if rows.Header != nil {
			cells = append(cells, row.Cells)
		} else {
			objects = append(objects, row.Object)
		}
	}
	return objects, cells
}

// nextPart returns the end of the rows of the next transaction, which begin with from and end before end, and their files.
// files are those of the rows from there on.
func nextPart(files []admin.FileOfRow, from, end int) (to int, ofPart []admin.FileOfRow) {
	total := int64(0)
	for n := 0; n < len(files); {
		index, more, size := files[n].Index, n, int64(0)
		for ; more < len(files) && files[more].Index == index; more++ {
			size += files[more].Size
		}
		if total += size; total > batchContents && index > from {
			return index, files[:n]
		}
		n = more
	}
	return end, files
}

// sendContents sends the contents of files of rows, each once. It returns the rows that cannot be imported; their indexes are
// from the given one on.
func (i *importer) sendContents(ctx context.Context, files []admin.FileOfRow, from int) (refused []admin.RefusedRow, err error) {
	results := map[admin.Blob]string{}
	for _, f := range files {
		contents := admin.Blob{Digest: f.Digest, Size: f.Size}
		wrong, sent := results[contents]
		if !sent {
			if wrong, err = i.files.send(ctx, i.node, f, i.bar); err != nil {
				return nil, err
			}
			results[contents] = wrong
		}
		if wrong != "" {
			refused = append(refused, admin.RefusedRow{Index: f.Index - from, Message: wrong})
		}
	}
	return refused, nil
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
