package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"runner.example/cmd/runner/cli"
	"runner.example/internal/version"
)

func versionCommand(c *program) *cobra.Command {
	var licences bool
	cmd := &cobra.Command{
		Use:   "version",
		Short: "print version",
		Args:  cli.AtMost(0, "no argument"),
		RunE: func(*cobra.Command, []string) error {
			if !licences {
				return c.printVersion()
			}
			text, err := notices()
			if err != nil {
				return err
			}
			if c.JSON {
				return c.PrintJSON(text)
			}
			return c.Print(text)
		},
	}
	cmd.Flags().BoolVar(&licences, "notices", false,
		"print the licences of the runner, of its parts, and of parts of the modules that it builds")
	return cmd
}

// versionFlag makes `runner --version` the same as `runner version`.
func (c *program) versionFlag(root *cobra.Command) {
	var asked bool
	root.Flags().BoolVar(&asked, "version", false, "print version")
	otherwise := root.RunE
	root.RunE = func(cmd *cobra.Command, args []string) error {
		if asked && len(args) == 0 {
			return c.printVersion()
		}
		return otherwise(cmd, args)
	}
}

func (c *program) printVersion() error {
	v := version.Read()
	if c.JSON {
		return c.PrintJSON(v)
	}
	return c.Print(fmt.Sprintf("runner %s (commit %s, %s, %s, %s)\n", v.Version, v.Commit, v.Go, v.Platform, v.Levels))
}
