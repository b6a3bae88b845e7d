package main

import (
	"context"

	"github.com/spf13/cobra"

	"runner.example/cmd/runner/cli"
	"runner.example/node"
	"runner.example/node/admin"
)

const verifyHelp = `Compute the chain of the audit records again and print its head. With --head,
also check that a head written down earlier is on the chain. If counts of refused
credentials have expired, use a head from after that.`

func auditVerifyCommand(c *program) *cobra.Command {
	remote := cli.Remote{Slow: true}
	var request admin.VerifyAudit
	cmd := &cobra.Command{
		Use:     "verify",
		Short:   "check the chain of records and print its head",
		Long:    verifyHelp,
		Example: "  runner audit verify --head 12:9f86d081…",
		Args:    cli.AtMost(0, "flags alone"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return c.OnRemote(cmd, remote, node.Task{Do: func(ctx context.Context, node *admin.Client) error {
				head, err := node.VerifyAudit(ctx, request)
				if err != nil {
					return err
				}
				if c.JSON {
					return c.PrintJSON(head)
				}
				if request.Head != "" {
					c.Say("", "the chain is intact, and the given head is on it")
				}
				return c.Print(head.Head + "\n")
			}})
		},
	}
	cmd.Flags().StringVar(&request.Head, "head", "", "a head that was kept, as the log shows it: <count>:<hash>")
	remote.AddFlags(cmd)
	return cmd
}
