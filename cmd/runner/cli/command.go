package cli

import (
	"github.com/spf13/cobra"

	"runner.example/internal/console"
	"runner.example/internal/diag"
	"runner.example/node/app"
	"runner.example/schema"
)

// OnlySubcommands makes a command that only has subcommands fail without one, with its help
// on stderr, and fail for an unknown one. The program alone shows its help.
func (c *CLI) OnlySubcommands(cmd *cobra.Command) {
	cmd.Args = cobra.ArbitraryArgs
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		switch {
		case len(args) > 0:
			return UnknownCommand(cmd, args[0])
		case !c.JSON && !cmd.HasParent():
			return cmd.Help()
		case !c.JSON:
			cmd.SetOut(c.Stderr)
			if err := cmd.Help(); err != nil {
				return err
			}
		}
		f := console.Misused("%s: a subcommand is missing", cmd.CommandPath())
		f.Hint = cmd.CommandPath() + " --help lists the commands"
		return f
	}
}

func UnknownCommand(parent *cobra.Command, word string) error {
	var names []string
	for _, sub := range parent.Commands() {
		if sub.IsAvailableCommand() {
			names = append(names, sub.Name())
		}
	}
	f := console.Misused("unknown command %q for %q%s", word, parent.CommandPath(), diag.DidYouMean(word, names))
	f.Hint = parent.CommandPath() + " --help lists the commands"
	return f
}

// AppDir sets --app to the directory that is the argument of serve, check and similar
// commands.
func (c *CLI) AppDir(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	if cmd.Flags().Changed("app") && c.App != args[0] {
		return console.Misused("%s: the directory is given twice, as %q and as --app %q", cmd.CommandPath(), args[0], c.App)
	}
	if args[0] == "" {
		return console.Invalid("%s: the directory must not be empty: omit it for the current one", cmd.CommandPath())
	}
	c.App = args[0]
	return nil
}

// AppSchema returns the app in the directory of a command, and its schema.
func (c *CLI) AppSchema(cmd *cobra.Command, args []string) (*app.App, *schema.Schema, error) {
	if err := c.AppDir(cmd, args); err != nil {
		return nil, nil, err
	}
	a, err := c.ReadAppOnly(cmd)
	if err != nil {
		return nil, nil, err
	}
	s, _, err := a.Compile()
	return a, s, err
}

// AtMost is cobra.MaximumNArgs with our error text.
func AtMost(n int, what string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) <= n {
			return nil
		}
		f := console.Misused("%s: unexpected argument %q: it takes %s", cmd.CommandPath(), args[n], what)
		f.Hint = cmd.CommandPath() + " --help explains it"
		return f
	}
}

// ExactlyOne is cobra.ExactArgs(1) with our error text.
func ExactlyOne(what string) cobra.PositionalArgs { return Exactly(1, what) }

// Exactly is cobra.ExactArgs with our error text.
func Exactly(n int, what string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) == n {
			return nil
		}
		f := console.Misused("%s: it takes %s", cmd.CommandPath(), what)
		f.Hint = cmd.UseLine()
		return f
	}
}
