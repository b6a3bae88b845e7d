package main

import (
	"github.com/spf13/cobra"
)

const auditHelp = `List the records of changes and of refused credentials, and check that none was changed.

The records form a hash chain. A server logs the head of the chain every minute. A head
that is kept elsewhere proves that no record up to it was changed, removed or inserted.

Counts of refused credentials expire after [audit] keep_refused. Records of changes do
not.`

func auditCommand(c *program) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "audit",
		Short: "list and verify the record of changes",
		Long:  auditHelp,
	}
	cmd.AddCommand(auditListCommand(c), auditVerifyCommand(c))
	c.OnlySubcommands(cmd)
	return cmd
}
