package main

import (
	"github.com/spf13/cobra"
)

const auditHelp = `List the records of changes and of refused credentials, and check that none was
changed.

The records form a chain: each hash covers all records before. A server logs the
chain's head every minute; a head kept elsewhere proves that no record up to it
was changed, removed or put in since.

Counts of refused credentials expire after [audit] keep_refused. Records of changes
do not.`

func auditCommand(c *cli) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "audit",
		Short: "list and verify the record of changes",
		Long:  auditHelp,
	}
	cmd.AddCommand(auditListCommand(c), auditVerifyCommand(c))
	c.onlySubcommands(cmd)
	return cmd
}
