package main

import "github.com/spf13/cobra"

const keysHelp = `Manage the platform keys of the node, with or without a running server. With a platform key,
commands with --to reach the node over the network, at the address of [admin] listen.

A platform key belongs to the node and not to the app: it needs no schema, and no route accepts
it. "runner api-keys" manages the keys of the app.`

func keysCommand(c *program) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "keys",
		Short: "create, list, rotate and revoke platform keys, which operate the node over the network",
		Long:  keysHelp,
	}
	cmd.AddCommand(keysCreateCommand(c), keysListCommand(c), keysRotateCommand(c), keysRevokeCommand(c))
	c.OnlySubcommands(cmd)
	return cmd
}
