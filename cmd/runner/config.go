package main

import (
	"cmp"
	"errors"

	"github.com/spf13/cobra"

	"runner.example/cmd/runner/cli"
	"runner.example/internal/settings"
	"runner.example/node/admin"
	"runner.example/node/config"
)

const configHelp = `Show the configuration. "runner check --config <file>" checks a runner.toml.`

func configCommand(c *program) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "config",
		Short: "show the settings in force, and where each comes from",
		Long:  configHelp,
	}
	cmd.AddCommand(configShowCommand(c))
	c.OnlySubcommands(cmd)
	return cmd
}

const configShowHelp = `Show every setting of the running server with its value and where it comes from: a place in
runner.toml, an environment variable, a flag, the memory of the machine, or the default. Without a running
server, show the settings with which one would start here, in the environment of this command; if they are
invalid, every error is reported.

The values of secrets are never shown. With --changed, settings that are defaults are left out.

Exit status 3: no server runs, and the configuration is invalid.`

func configShowCommand(c *program) *cobra.Command {
	var remote cli.Remote
	var changed bool
	cmd := &cobra.Command{
		Use:   "show",
		Short: "show the settings in force, and where each comes from",
		Long:  configShowHelp,
		Example: "  runner config show --changed\n" +
			"  runner config show --to https://edge-1.example.com:9443 --key-file admin.key --json",
		Args: cli.AtMost(0, "flags alone"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			all, err := c.inForce(cmd, remote)
			if err != nil {
				return err
			}
			shown := []settings.Setting{}
			for _, s := range all {
				if !changed || s.From != settings.Default {
					shown = append(shown, s)
				}
			}
			return c.printSettings(shown)
		},
	}
	cmd.Flags().BoolVar(&changed, "changed", false, "only settings that are not defaults")
	remote.AddFlags(cmd)
	return cmd
}

// inForce returns the settings of the server that the flags name, or else of the app's; without a server
// those with which one would start.
func (c *program) inForce(cmd *cobra.Command, remote cli.Remote) ([]settings.Setting, error) {
	node, err := c.DialRemote(cmd, remote)
	if err == nil {
		return node.Config(cmd.Context())
	}
	if !errors.Is(err, admin.ErrNoServer) {
		return nil, err
	}
	limit, _ := config.MemoryLimit()
	a, _, err := c.serverApp(cmd, "", limit)
	switch {
	case err != nil:
		return nil, err
	case a.Problems.HasErrors():
		return nil, a.InvalidConfiguration()
	}
	c.Say("", "no server is running on this data directory: these are the settings with which one would start")
	return a.Config.InForce(), nil
}

func (c *program) printSettings(all []settings.Setting) error {
	if c.JSON {
		return c.PrintJSON(all)
	}
	var rows [][]string
	for _, s := range all {
		value := string(s.Value)
		if value == "null" {
			value = "(secret)"
		}
		rows = append(rows, []string{s.Name, value, cmp.Or(s.Place, string(s.From))})
	}
	return c.PrintTable([]string{"SETTING", "VALUE", "FROM"}, rows, "every setting is a default")
}
