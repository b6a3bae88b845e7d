package main

import (
	"context"

	"github.com/spf13/cobra"

	"runner.example/cmd/runner/cli"
	"runner.example/node"
	"runner.example/node/admin"
)

const revokeLinksHelp = `Revoke all signed links to files that handlers have made until now, for example when links were
published by mistake. They answer 404 when the command has returned. Handlers make new links with
another key. One link ends when its row is deleted or gets another file.`

func filesCommand(c *program) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "files",
		Short: "revoke signed links to files",
		Long:  "Manage signed links to files, with or without a running server.",
	}
	cmd.AddCommand(filesRevokeLinksCommand(c))
	c.OnlySubcommands(cmd)
	return cmd
}

func filesRevokeLinksCommand(c *program) *cobra.Command {
	var remote cli.Remote
	cmd := &cobra.Command{
		Use:   "revoke-links",
		Short: "revoke all signed links to files",
		Long:  revokeLinksHelp,
		Example: `  runner files revoke-links
  runner files revoke-links --json`,
		Args: cli.AtMost(0, "flags alone"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return c.OnRemote(cmd, remote, node.Task{Do: func(ctx context.Context, node *admin.Client) error {
				revoked, err := node.RevokeLinks(ctx)
				if err != nil {
					return err
				}
				return c.PrintChanged("revoked", "all signed links", revoked, revoked.Nodes)
			}})
		},
	}
	remote.AddFlags(cmd)
	return cmd
}
