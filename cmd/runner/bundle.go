package main

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"runner.example/cmd/runner/cli"
	"runner.example/develop/toolchain"
	"runner.example/internal/console"
)

const bundleHelp = `Bundle a file in TypeScript or JavaScript and its imports into one script for browsers, or a file in
CSS into one style sheet. The result is minified. A script is a module: load it with
<script type="module" src="…">. Types are removed, not checked. If the script imports CSS, a style
sheet with the same name is written beside it.

No other tools are needed, so it can be the build command of a page without a framework:

  [build]
  command = "runner bundle web/page.ts --out public/page.js"

In a build command, "runner" is the program that runs it. The exit status is 3 if a source has an
error.`

func bundleCommand(c *program) *cobra.Command {
	var out string
	cmd := &cobra.Command{
		Use:     "bundle <file>",
		Short:   "bundle a script or a style sheet for browsers",
		Long:    bundleHelp,
		Example: "  runner bundle web/page.ts --out public/page.js",
		Args:    cli.Exactly(1, "the source file"),
		RunE: func(_ *cobra.Command, args []string) error {
			if out == "" {
				return console.Misused("--out is required: name the file to write, such as public/page.js")
			}
			dir, err := os.Getwd()
			if err != nil {
				return fmt.Errorf("find the working directory: %w", err)
			}
			written, warnings, err := toolchain.BundlePage(dir, filepath.ToSlash(args[0]), out)
			if err != nil {
				return c.buildFailure("the page", err)
			}
			if warnings != nil {
				if err := c.PrintDiagnostics(c.Stderr, warnings.Sources, warnings.List.Excerpt()); err != nil {
					return err
				}
			}
			if c.JSON {
				return c.PrintJSON(written)
			}
			for _, file := range written {
				if err := c.Print(file + "\n"); err != nil {
					return err
				}
			}
			return nil
		},
	}
	cmd.Flags().StringVar(&out, "out", "", "file to write")
	return cmd
}
