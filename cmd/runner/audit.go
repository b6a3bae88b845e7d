package main

import (
	"github.com/spf13/cobra"
)

const auditHelp = `Read the record of every change of a key, and check that nobody changed it.

The records form a chain: each hash covers all records before. A server logs the
chain's head every minute; a head kept elsewhere proves that no record up to it
was changed, removed or put in since.`

func (c *cli) auditCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "audit",
		Short: "list and verify the record of changes",
		Long:  auditHelp,
	}
	cmd.AddCommand(c.auditListCommand(), c.auditVerifyCommand())
	c.onlySubcommands(cmd)
	return cmd
}
