package main

import (
	"strings"

	"github.com/spf13/cobra"

	"runner.example/cmd/runner/cli"
	"runner.example/internal/console"
)

const reloadHelp = `Make the running server read the app's schema, modules, secrets and settings again, as
SIGHUP does. The command waits until they are in force, and prints what has changed.

These parts of runner.toml take effect: [telemetry], [secrets], [release] trusted_keys,
[admin] tls_cert and tls_key, and [front] hosts, trusted_proxies, tls_cert and tls_key. The
certificate files are read again too. If another setting has changed, or anything is invalid,
every error is reported. Then nothing changes, and the previous release keeps serving.

After "runner deploy" or "runner rollback" the app directory is not served: a reload applies
only settings and secrets to the active release.

Exit status 3: something is invalid or needs a restart. 6: no server runs on the data
directory.`

func reloadCommand(c *program) *cobra.Command {
	remote := cli.Remote{Slow: true}
	cmd := &cobra.Command{
		Use:   "reload",
		Short: "make the running server read the app and its settings again",
		Long:  reloadHelp,
		Example: "  runner reload\n  runner reload --app /srv/orders --data /var/lib/orders/data\n" +
			"  runner reload --to https://edge-1.example.com:9443 --key-file admin.key",
		Args: cli.AtMost(0, "flags alone"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			node, err := c.DialRemote(cmd, remote)
			if err != nil {
				return err
			}
			done, err := node.Reload(cmd.Context())
			if err != nil {
				return err
			}
			if c.JSON {
				return c.PrintJSON(done)
			}
			c.Say("", "reloaded: "+console.Plural(done.Routes, "route")+", "+console.Plural(done.Modules, "module"))
			if done.NotServed != "" {
				c.Say("", "the app directory is not served: the active release "+done.Release+
					" comes from runner deploy or runner rollback; runner deploy activates the app directory")
			}
			if len(done.Changed) == 0 {
				c.Say("", "nothing has changed")
				return nil
			}
			return c.Print(strings.Join(done.Changed, "\n") + "\n")
		},
	}
	remote.AddFlags(cmd)
	return cmd
}
