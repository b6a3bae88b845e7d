package main

import (
	"context"

	"github.com/spf13/cobra"

	"runner.example/cmd/runner/cli"
	"runner.example/node"
	"runner.example/node/admin"
)

func keysListCommand(c *program) *cobra.Command {
	var request admin.ListPlatformKeys
	var remote cli.Remote
	cmd := &cobra.Command{
		Use:   "list",
		Short: "list the platform keys, without their tokens",
		Args:  cli.AtMost(0, "flags alone"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return c.OnRemote(cmd, remote, node.Task{Do: func(ctx context.Context, node *admin.Client) error {
				keys, err := node.ListPlatformKeys(ctx, request)
				if err != nil {
					return err
				}
				if c.JSON {
					return c.PrintJSON(keys)
				}
				var rows [][]string
				for _, key := range keys {
					rows = append(rows, []string{
						key.ID, key.Name, string(key.Role), string(key.Status), key.Hint,
						readable(key.CreatedAt, "-"), readable(key.ExpiresAt, "never"), readable(key.LastUsedAt, "never"),
					})
				}
				return c.PrintTable([]string{"ID", "NAME", "ROLE", "STATUS", "HINT", "CREATED", "EXPIRES", "LAST USED"},
					rows, "there are no platform keys")
			}})
		},
	}
	cmd.Flags().BoolVar(&request.All, "all", false, "include expired and revoked keys")
	remote.AddFlags(cmd)
	return cmd
}
