package main

import (
	"github.com/spf13/cobra"

	"runner.example/cmd/runner/cli"
	"runner.example/develop/languageserver"
	"runner.example/internal/diag"
	"runner.example/internal/version"
	"runner.example/node/app"
)

const lspHelp = `Serve an editor as the language server of the schema language, over stdin and stdout. Editors
start it; docs/editors.md has their settings.

The app of a file is its directory, so --app has no effect. Diagnostics are those of runner check,
while you type. The command writes no files: the editor applies changes. Failed requests are lines
on stderr.`

func lspCommand(c *program) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "lsp",
		Short: "serve editors as the language server of the schema",
		Long:  lspHelp,
		Example: "  runner lsp\n" +
			"  nvim -c \"lua vim.lsp.start_client({ cmd = { 'runner', 'lsp' }, root_dir = '.' })\" shop.schema",
		Args: cli.AtMost(0, "no argument"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return languageserver.Serve(cmd.Context(), c.Stdin, c.Stdout, languageserver.Options{
				Version: version.Read().Version,
				Check:   func(dir string, sources []diag.Source) diag.List { return c.checkSources(cmd, dir, sources) },
				HasRows: func(dir string) bool {
					a, err := c.appIn(cmd, dir)
					return err == nil && a.HasData()
				},
				Log: func(line string) { c.Say("error: ", line) },
			})
		},
	}
	cmd.Flags().Bool("stdio", true, "use stdin and stdout, as without the flag: some editors add it")
	return cmd
}

// appIn reads the app in a directory as `runner check` does.
func (c *program) appIn(cmd *cobra.Command, dir string) (*app.App, error) {
	in := *c.CLI
	in.App = dir
	a, _, err := in.ReadAppIn(cmd, "")
	return a, err
}

// checkSources returns the diagnostics of `runner check` for an app whose schema files may not be saved.
func (c *program) checkSources(cmd *cobra.Command, dir string, sources []diag.Source) (found diag.List) {
	a, err := c.appIn(cmd, dir)
	if err != nil {
		found.Errorf("", diag.Span{File: sources[0].Name}, "%v", err)
		return found
	}
	s, found := a.CheckSources(sources)
	found.Append(aroundSchema(a, s, false))
	return found
}
