package data

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/jedib0t/go-pretty/v6/progress"
	"github.com/spf13/cobra"

	"runner.example/cmd/runner/cli"
	"runner.example/cmd/runner/data/rowfile"
	"runner.example/internal/console"
	"runner.example/internal/diag"
	"runner.example/internal/system/process"
	"runner.example/node"
	"runner.example/node/admin"
	"runner.example/state/store"
)

const getHelp = `Show a row with all its fields, hidden ones included. With --file, write the contents of the file
that the row has in a field.`

func getCommand(c *cli.CLI) *cobra.Command {
	remote := cli.Remote{}
	var tenant, field, path string
	cmd := &cobra.Command{
		Use:               "get <entity> <id>",
		ValidArgsFunction: cli.FirstArg(c.SchemaNames(cli.EntityNames), cobra.NoFileCompletions),
		Short:             "show a row with all its fields, or write one of its files",
		Long:              getHelp,
		Example: `  runner data get Order 01k4x9m2v7q8r5s6t7u8v9w0x1
  runner data get Post 01k4x9m2v7q8r5s6t7u8v9w0x1 --file photo --out photo.png`,
		Args: cli.Exactly(2, "the name of an entity and the id of a row"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if path != "" && field == "" {
				return console.Misused("--out is for --file: name the field of the file")
			}
			return c.OnRemote(cmd, remote, node.Task{NeedsSchema: true, Do: func(ctx context.Context, node *admin.Client) error {
				row, err := node.Row(ctx, admin.RowID{Entity: args[0], ID: args[1], Tenant: orNone(tenant)})
				switch {
				case err != nil:
					return err
				case field != "":
					return getFile(c, ctx, node, args[0], row, field, path)
				case c.JSON:
					return c.PrintJSON(row)
				}
				names, values, err := rowfile.Members(row)
				if err != nil {
					return fmt.Errorf("read a row of %s: %w", args[0], err)
				}
				var lines [][2]string
				for i, name := range names {
					lines = append(lines, [2]string{name, rowfile.Cell(values[i])})
				}
				return c.Print(console.Pairs(lines))
			}})
		},
	}
	cmd.Flags().StringVar(&field, "file", "", "field whose file to write")
	cmd.Flags().StringVar(&path, "out", "", "with --file, new file to write, mode 0600 (default: stdout)")
	addTenant(cmd, &tenant)
	remote.AddFlags(cmd)
	return cmd
}

// gotFile is the document of `runner data get --file --out --json`.
type gotFile struct {
	File   string       `json:"file"`
	Bytes  int64        `json:"bytes"`
	SHA256 store.Digest `json:"sha256"`
}

// getFile writes the contents of a file of a row.
func getFile(c *cli.CLI, ctx context.Context, node *admin.Client, entity string, row json.RawMessage, field, path string) error {
	names, values, err := rowfile.Members(row)
	if err != nil {
		return fmt.Errorf("read a row of %s: %w", entity, err)
	}
	at := slices.Index(names, field)
	if at < 0 {
		return console.Invalid("--file %s: %s has no such field%s", field, entity, diag.DidYouMean(field, names))
	}
	var file struct {
		Type   string        `json:"type"`
		Size   int64         `json:"size"`
		SHA256 *store.Digest `json:"sha256"`
	}
	switch {
	case string(values[at]) == "null":
		return &console.Failure{Status: console.StatusFailed, Err: fmt.Errorf("the row has no file in %s", field)}
	case json.Unmarshal(values[at], &file) != nil || file.SHA256 == nil:
		return console.Invalid("--file %s: the field of %s is not a file", field, entity)
	}
	if path == "" {
		if out, ok := c.Stdout.(*os.File); ok && !strings.HasPrefix(file.Type, "text/") && process.Terminal(out) {
			return console.Misused("the file is of type %s: write it to a file with --out, or to a pipe", file.Type)
		}
		return node.ReadContents(ctx, *file.SHA256, c.Stdout)
	}
	bar := c.NewBar(field, file.Size, progress.UnitsBytes)
	err = writeNew(path, func(w io.Writer) error { return node.ReadContents(ctx, *file.SHA256, io.MultiWriter(w, bar)) })
	bar.End(err)
	if err != nil {
		return err
	}
	if c.JSON {
		return c.PrintJSON(gotFile{path, file.Size, *file.SHA256})
	}
	return c.Print(fmt.Sprintf("wrote %s to %s\n", console.Plural(int(file.Size), "byte"), path))
}
