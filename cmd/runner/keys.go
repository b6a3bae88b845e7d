package main

import (
	"errors"

	"github.com/spf13/cobra"

	"runner.example/internal/console"
	"runner.example/internal/fault"
)

const keysHelp = `Manage the platform keys of the node, with or without a running server. With a platform key,
commands with --to reach the node over the network, at the address of [admin] listen.

A platform key belongs to the node and not to the app: it needs no schema, and no route accepts
it. "runner api-keys" manages the keys of the app.`

func keysCommand(c *program) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "keys",
		Short: "create, list and revoke platform keys, which operate the node over the network",
		Long:  keysHelp,
	}
	cmd.AddCommand(keysCreateCommand(c), keysListCommand(c), keysRevokeCommand(c))
	c.OnlySubcommands(cmd)
	return cmd
}

// unknownPlatformKey gives the error for an unknown id its hint.
func unknownPlatformKey(err error) error {
	if f, ok := errors.AsType[*fault.Fault](err); ok && f.Code == fault.NotFound {
		return &console.Failure{Status: console.StatusNotFound, Err: err, Hint: "runner keys list --all shows every platform key"}
	}
	return err
}
