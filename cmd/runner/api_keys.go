package main

import (
	"cmp"
	"time"

	"github.com/spf13/cobra"

	"runner.example/cmd/runner/cli"
	"runner.example/internal/console"
	"runner.example/keystore"
	"runner.example/node/admin"
)

const apiKeysHelp = `Manage the API keys of the app, with or without a running server.

A token is shown once, when its key is created or rotated; it cannot be shown again.`

func apiKeysCommand(c *program) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "api-keys",
		Short: "create, list, show, revoke, rotate, disable and enable API keys",
		Long:  apiKeysHelp,
	}
	cmd.AddCommand(
		apiKeysCreateCommand(c), apiKeysListCommand(c), apiKeysShowCommand(c), apiKeysRotateCommand(c),
		apiKeysRevokeCommand(c), apiKeysDisableCommand(c), apiKeysEnableCommand(c),
	)
	c.OnlySubcommands(cmd)
	return cmd
}

// timeLayout is the format of times in JSON documents and in the output of commands about
// one key.
const timeLayout = "2006-01-02T15:04:05.000Z07:00"

func exact(t time.Time, none string) string {
	if t.IsZero() {
		return none
	}
	return t.UTC().Format(timeLayout)
}

// newKey returns the secret of a key that was just created or rotated.
func (c *program) newKey(issued admin.Changed[keystore.Key]) cli.IssuedSecret {
	key := issued.Item
	return cli.IssuedSecret{
		ID: key.ID, Secret: key.Token.Reveal(), Noun: "token", Remedy: "runner api-keys rotate " + key.ID, Nodes: issued.Nodes,
		Print: func(shown bool) error {
			if !shown {
				issued.Item.Token = keystore.Key{}.Token
			}
			if c.JSON {
				return c.PrintJSON(issued)
			}
			text := console.Pairs([][2]string{
				{"id", key.ID}, {"scope", key.Scope}, {"name", cmp.Or(key.Name, "-")}, {"expiresAt", exact(key.ExpiresAt, "never")},
			})
			if shown {
				text += key.Token.Reveal() + "\n"
			}
			return c.Print(text)
		},
	}
}
