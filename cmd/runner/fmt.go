package main

import (
	"bytes"
	"context"
	"fmt"
	"io"

	"github.com/rogpeppe/go-internal/diff"
	"github.com/spf13/cobra"

	"runner.example/internal/console"
	"runner.example/internal/diag"
	"runner.example/node/app"
	"runner.example/schema/format"
	"runner.example/schema/syntax"
)

const fmtHelp = `Format schema files: those named, all of a named directory, or all of the app. Files are
rewritten in place; "-" reads stdin and writes stdout. A file that cannot be parsed is not
changed.`

func fmtCommand(c *program) *cobra.Command {
	var check, show bool
	cmd := &cobra.Command{
		Use:   "fmt [file|dir|-]...",
		Short: "format schema files",
		Long:  fmtHelp,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 1 && args[0] == "-" {
				return c.formatStdin(cmd.Context(), check, show)
			}
			return c.formatFiles(args, check, show)
		},
	}
	cmd.Flags().BoolVar(&check, "check", false, "do not write; list the files that would change and exit with status 1")
	cmd.Flags().BoolVar(&show, "diff", false, "do not write; show the differences")
	return cmd
}

// formatStdin formats stdin to stdout.
func (c *program) formatStdin(ctx context.Context, check, show bool) error {
	text, err := c.readStdin(ctx)
	if err != nil {
		return err
	}
	src := diag.Source{Name: "stdin", Text: text}
	out, list := format.Format(src)
	switch {
	case list.HasErrors():
		return &console.Problems{
			What: "stdin was not formatted: " + console.Counted(list), Sources: []diag.Source{src}, List: list,
		}
	case check && !bytes.Equal(out, text):
		return &console.Failure{Status: console.StatusFailed, Err: fmt.Errorf("stdin is not in canonical form")}
	case check:
		return nil
	case show:
		return c.printDiff("stdin", text, out)
	}
	return c.Print(string(out))
}

// readStdin reads all of stdin. It returns when ctx ends, even if stdin stays open.
func (c *program) readStdin(ctx context.Context) ([]byte, error) {
	var text []byte
	read := make(chan error, 1)
	go func() {
		var err error
		text, err = io.ReadAll(c.Stdin)
		read <- err
	}()
	select {
	case <-ctx.Done():
		return nil, ctx.Err()
	case err := <-read:
		if err != nil {
			return nil, fmt.Errorf("read stdin: %w", err)
		}
		return text, nil
	}
}

// printDiff prints what formatting changes, as a unified diff.
func (c *program) printDiff(name string, old, formatted []byte) error {
	_, changes, _ := bytes.Cut(diff.Diff(name, old, name+" (formatted)", formatted), []byte("\n"))
	return c.Print(string(changes)) // without its first line, "diff a b"
}

// formatFiles formats all files before it writes one, so that the errors of all are
// reported at once.
func (c *program) formatFiles(args []string, check, show bool) error {
	if len(args) == 0 {
		args = []string{c.App}
	}
	files, err := app.SchemaFiles(args)
	if err != nil {
		return err
	}
	var broken console.Problems
	changed := []string{}
	for _, file := range files {
		text, err := syntax.ReadFile(file)
		if err != nil {
			return console.Invalid("%w", err)
		}
		src := diag.Source{Name: file, Text: text}
		out, list := format.Format(src)
		if list.HasErrors() {
			broken.Sources = append(broken.Sources, src)
			broken.List.Append(list)
			continue
		}
		if bytes.Equal(out, text) {
			continue
		}
		changed = append(changed, file)
		if err := c.deliver(file, text, out, check, show); err != nil {
			return err
		}
	}
	if c.JSON {
		if err := c.PrintJSON(map[string][]string{"changed": changed}); err != nil {
			return err
		}
	}
	switch {
	case len(broken.List) > 0:
		broken.What = console.Plural(len(broken.Sources), "file") + " not formatted: " + console.Counted(broken.List)
		return &broken
	case check && len(changed) > 0:
		f := &console.Failure{
			Status: console.StatusFailed, Err: fmt.Errorf("%s not in canonical form", console.Plural(len(changed), "file")),
		}
		f.Hint = "runner fmt rewrites them"
		return f
	}
	return nil
}

// deliver shows or writes one formatted file, and prints its name.
func (c *program) deliver(file string, old, formatted []byte, check, show bool) error {
	switch {
	case c.JSON && (check || show):
		return nil
	case show:
		return c.printDiff(file, old, formatted)
	case !check:
		if err := app.WriteFile(file, formatted); err != nil {
			return err
		}
	}
	if c.JSON {
		return nil
	}
	return c.Print(file + "\n")
}
