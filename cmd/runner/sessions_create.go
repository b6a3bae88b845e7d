package main

import (
	"context"

	"github.com/spf13/cobra"

	"runner.example/cmd/runner/cli"
	"runner.example/internal/console"
	"runner.example/internal/settings"
	"runner.example/node"
	"runner.example/node/admin"
)

const createSessionHelp = `Create a session. Prints its id, user, tenant, roles and end, then its cookie as name=value
alone on the last line. The cookie is shown only this once.`

const createSessionExample = `  runner sessions create --user ada --tenant acme --role admin
  runner sessions create --user ada --ttl 15m --out cookie.txt`

func sessionsCreateCommand(c *program) *cobra.Command {
	var remote cli.Remote
	var request admin.CreateSession
	var ttl, out string
	cmd := &cobra.Command{
		Use:     "create --user <id>",
		Short:   "create a session and print its cookie once",
		Long:    createSessionHelp,
		Example: createSessionExample,
		Args:    cli.AtMost(0, "flags alone"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if request.UserID == "" {
				return console.Misused("runner sessions create: --user is missing")
			}
			if ttl != "" {
				d, err := settings.ParseLifetime(ttl, "h")
				if err != nil {
					return console.Invalid("--ttl: %v", err)
				}
				request.TTL = new(admin.SecondsOf(d))
			}
			return c.IssueSecret(cmd, remote, out, node.Task{NeedsSchema: true, Check: request.Check},
				func(ctx context.Context, node *admin.Client) (cli.IssuedSecret, error) {
					s, err := node.CreateSession(ctx, request)
					return c.newSession(s), err
				})
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&request.UserID, "user", "", "id of the user who is signed in (required)")
	flags.StringVar(&request.Tenant, "tenant", "", "the user's tenant")
	flags.StringArrayVar(&request.Roles, "role", nil, "a role of the user; may be repeated")
	flags.StringVar(&ttl, "ttl", "", "lifetime of the session, such as 12h (default: the maximum of the schema)")
	flags.StringVar(&out, "out", "", "write the cookie to this new file, mode 0600, and not to stdout")
	cli.CompleteFlag(cmd, "role", c.SchemaNames(cli.RoleNames))
	remote.AddFlags(cmd)
	return cmd
}
