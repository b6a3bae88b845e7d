package main

import (
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"runner.example/cmd/runner/cli"
	"runner.example/develop/scaffold"
	"runner.example/internal/console"
	"runner.example/internal/diag"
)

const newHelp = `Create a directory with a complete small app: a schema, handlers, settings, a test, and a
README.md that says how to run them. The directory may contain other files, such as .git:
nothing is overwritten, and an existing README.md or .gitignore is kept.

  --lang ts     TypeScript, which the runner builds itself
  --lang python Python, which the runner builds itself
  --lang go     Go, with its toolchain
  --lang rust   Rust, with cargo
  --lang c      C, with clang
  --lang as     AssemblyScript, with Node.js and npm
  --lang nim    Nim, with nim and clang; handlers/greetings/build.sh builds it

If the language has an SDK, it is copied into the directory sdk. For TypeScript and
Python there are types for editors in the directory types.`

func newCommand(c *program) *cobra.Command {
	var lang string
	names := scaffold.Languages()
	cmd := &cobra.Command{
		Use:   "new <dir>",
		Short: "create a small app",
		Long:  newHelp,
		Args:  cli.ExactlyOne("the directory to create"),
		RunE: func(_ *cobra.Command, args []string) error {
			c.WritesApp()
			dir := args[0]
			if !slices.Contains(names, lang) {
				return console.Misused("runner new: --lang %s: it is one of %s%s",
					lang, strings.Join(names, ", "), diag.DidYouMean(lang, names))
			}
			if dir == "" {
				return console.Invalid("runner new: the directory must not be empty")
			}
			done, err := scaffold.Create(dir, lang)
			if err != nil {
				return err
			}
			for _, path := range done.Kept {
				c.Say("", "kept "+path)
			}
			if c.JSON {
				err = c.PrintJSON(done.Written)
			} else {
				err = c.Print(strings.Join(done.Written, "\n") + "\n")
			}
			first := done.First + "runner dev"
			if filepath.Clean(dir) != "." {
				first = "cd " + shellWord(dir) + ", then: " + first
			}
			c.Say("hint: ", first+"; see README.md")
			return err
		},
	}
	cmd.Flags().StringVar(&lang, "lang", "ts", "language of the handlers: "+strings.Join(names, ", "))
	cli.CompleteFlag(cmd, "lang", cobra.FixedCompletions(names, cobra.ShellCompDirectiveNoFileComp))
	return cmd
}
