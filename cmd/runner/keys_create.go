package main

import (
	"context"

	"github.com/spf13/cobra"

	"runner.example/cmd/runner/cli"
	"runner.example/internal/console"
	"runner.example/internal/settings"
	"runner.example/keystore"
	"runner.example/node"
	"runner.example/node/admin"
	"runner.example/schema"
)

const createPlatformKeyHelp = `Create a platform key. Prints its id, name, role and expiry, then its token alone on the last
line. The token is shown only this once.

Each role may do what the one before it may:
  read     show the state of the node, and list its releases
  deploy   send and activate releases
  admin    everything that an operator may, including to create keys

With --data the data directory is created if it does not exist, even without an app.`

const createPlatformKeyExample = `  runner keys create --name ci --role deploy --expires 90d --out deploy.key
  runner keys create --name ops --role admin --data /var/lib/edge/data`

func keysCreateCommand(c *program) *cobra.Command {
	var request admin.CreatePlatformKey
	var remote cli.Remote
	var role, expires, out string
	cmd := &cobra.Command{
		Use:     "create --name <name> --role <role>",
		Short:   "create a platform key and print its token once",
		Long:    createPlatformKeyHelp,
		Example: createPlatformKeyExample,
		Args:    cli.AtMost(0, "flags alone"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			switch {
			case request.Name == "":
				return console.Misused("runner keys create: --name is missing")
			case role == "":
				return console.Misused("runner keys create: --role is missing")
			}
			request.Role = keystore.Role(role)
			if expires != "" {
				lifetime, err := settings.ParseLifetime(expires, "d")
				if err != nil {
					return console.Invalid("--expires: %v", err)
				}
				request.ExpiresIn = new(admin.SecondsOf(lifetime))
			}
			task := node.Task{
				Check:         func(*schema.Schema) error { return request.Check() },
				WithoutSchema: cmd.Flags().Changed("data"),
			}
			return c.IssueSecret(cmd, remote, out, task,
				func(ctx context.Context, node *admin.Client) (cli.IssuedSecret, error) {
					key, err := node.CreatePlatformKey(ctx, request)
					return c.newPlatformKey(admin.Changed[keystore.PlatformKey]{Item: key}), err
				})
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&request.Name, "name", "", "name of the key for people (required)")
	flags.StringVar(&role, "role", "", "what the key may do: read, deploy or admin (required)")
	flags.StringVar(&expires, "expires", "", "lifetime, such as 90d (default: it never expires)")
	flags.StringVar(&out, "out", "", "write the token to this new file, mode 0600, and not to stdout")
	remote.AddFlags(cmd)
	cli.CompleteFlag(cmd, "role", func(*cobra.Command, []string, string) (names []string, _ cobra.ShellCompDirective) {
		for _, role := range keystore.Roles() {
			names = append(names, string(role))
		}
		return names, cobra.ShellCompDirectiveNoFileComp
	})
	return cmd
}

// newPlatformKey returns the secret of a platform key that was just created or rotated.
func (c *program) newPlatformKey(issued admin.Changed[keystore.PlatformKey]) cli.IssuedSecret {
	key := issued.Item
	return cli.IssuedSecret{
		ID: key.ID, Secret: key.Token.Reveal(), Noun: "token", Remedy: "runner keys rotate " + key.ID, Nodes: issued.Nodes,
		Print: func(shown bool) error {
			if !shown {
				issued.Item.Token = keystore.PlatformKey{}.Token
			}
			if c.JSON {
				return c.PrintJSON(issued)
			}
			text := console.Pairs([][2]string{
				{"id", key.ID}, {"name", key.Name}, {"role", string(key.Role)}, {"expiresAt", exact(key.ExpiresAt, "never")},
			})
			if shown {
				text += key.Token.Reveal() + "\n"
			}
			return c.Print(text)
		},
	}
}
