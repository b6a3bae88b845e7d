package main

import (
	"cmp"
	"strings"

	"github.com/spf13/cobra"

	"runner.example/cmd/runner/cli"
	"runner.example/internal/console"
	"runner.example/keystore"
)

const sessionsHelp = `Manage the sessions of signed-in users, with or without a running server.

The runner does not sign users in. A session created here is for tests, and for operators who
need to see what a user sees. Its cookie is shown once.`

func sessionsCommand(c *program) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "sessions",
		Short: "create, list and revoke sessions of users",
		Long:  sessionsHelp,
	}
	cmd.AddCommand(sessionsCreateCommand(c), sessionsListCommand(c), sessionsRevokeCommand(c))
	c.OnlySubcommands(cmd)
	return cmd
}

// newSession returns the secret of a session that was just created.
func (c *program) newSession(s keystore.Session) cli.IssuedSecret {
	cookie := s.Cookie.Reveal()
	return cli.IssuedSecret{
		ID: s.ID, Secret: cookie, Noun: "cookie", Remedy: "runner sessions revoke " + s.ID + ", and create another",
		Print: func(shown bool) error {
			if !shown {
				s.Cookie = keystore.Session{}.Cookie
			}
			if c.JSON {
				return c.PrintJSON(s)
			}
			text := console.Pairs([][2]string{
				{"id", s.ID}, {"userId", s.UserID}, {"tenant", cmp.Or(s.Tenant, "-")}, {"roles", rolesText(s)},
				{"expiresAt", exact(s.ExpiresAt, "never")},
			})
			if shown {
				text += cookie + "\n"
			}
			return c.Print(text)
		},
	}
}

func rolesText(s keystore.Session) string { return cmp.Or(strings.Join(s.Roles, ", "), "-") }
