package main

import (
	"context"
	"errors"

	"github.com/spf13/cobra"

	"runner.example/cmd/runner/cli"
	"runner.example/develop/toolchain"
	"runner.example/internal/console"
	"runner.example/internal/diag"
	"runner.example/node"
	"runner.example/node/admin"
	"runner.example/node/app"
	"runner.example/node/deploy"
)

const deployHelp = `Send the schema and the modules of an app to a running server, and activate them there: on the
node that --to names, or else on the server that runs on the app's data directory. Handlers that
are newer than their modules are built first, as "runner build" does, and before that the line
[build] command of runner.toml is run. --no-build deploys the app as it is.

Errors of the app are reported before anything is sent, and so are random values that a module draws
before its first request. Files that the node has are not sent again, so a deployment that was
interrupted can be repeated. Then the command shows the difference from the active release, and asks
whether to activate the new one. Without a terminal, --yes or --dry-run is needed. Requests in flight
finish on the release that they began with. "runner rollback" returns to the previous release.

The node is asked whether it would activate the release before anything is sent: it may have no
value for a secret, or not allow an address. --dry-run ends with the exit status of that answer.
A release of another app is refused unless --replace-app is given, and a schema that declares
nothing unless --allow-empty is given.

With --sign the release is signed, which a node with [release] trusted_keys needs. The file has an
Ed25519 private key in PEM form, as "openssl genpkey -algorithm ed25519" writes it, and only its
owner may have access to it. A signature is added to those that the node has.

Exit status 1: the key does not have the role deploy. 3: the app is not valid, the node cannot
activate it, or it needs another signature. 5: another release was activated meanwhile, the node
serves another app, or the answer was not yes. 6: the node cannot be reached.`

func deployCommand(c *program) *cobra.Command {
	remote := cli.Remote{UsesApp: true, Slow: true}
	var sign string
	var yes, noBuild bool
	var d deploy.Deployment
	cmd := &cobra.Command{
		Use:   "deploy [dir]",
		Short: "send an app to a running server and activate it",
		Long:  deployHelp,
		Example: "  runner deploy --to https://edge-1.example.com:9443 --key-file deploy.key\n" +
			"  runner deploy --sign release.pem --to https://edge-1.example.com:9443 --key-file deploy.key\n" +
			"  runner deploy --dry-run --json --to https://edge-1.example.com:9443 --key-file deploy.key",
		Args: cli.AtMost(1, "one directory"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := c.AppDir(cmd, args); err != nil {
				return err
			}
			if !yes && !d.DryRun && (c.JSON || !c.CanAsk()) {
				f := console.Misused("%s: the question needs a terminal", cmd.CommandPath())
				f.Hint = "--yes activates the release without a question, --dry-run shows what would change"
				return f
			}
			key, err := deploy.ReadKey(sign)
			if err != nil {
				return err
			}
			a, err := c.ReadAppOnly(cmd)
			if err != nil {
				return err
			}
			if !noBuild {
				if err := c.runBuildCommand(cmd.Context(), a); err != nil {
					return err
				}
			}
			if err := c.buildNewer(cmd.Context(), a, noBuild); err != nil {
				return err
			}
			if d.Upload, err = deploy.Read(cmd.Context(), a, key); err != nil {
				return err
			}
			if d.Node, err = c.DialRemote(cmd, remote); err != nil {
				return err
			}
			d.Console = &c.Console
			if !yes {
				d.Confirm = c.Confirm
			}
			return d.Run(cmd.Context())
		},
	}
	flags := cmd.Flags()
	flags.BoolVar(&yes, "yes", false, "activate the release without a question")
	flags.BoolVar(&d.DryRun, "dry-run", false, "show the difference and what would be sent; change nothing on the node")
	flags.BoolVar(&noBuild, "no-build", false, "deploy the app as it is: do not run [build] command, nor build sources that are newer than their modules")
	flags.BoolVar(&d.ReplaceApp, "replace-app", false, "replace the active release also if it is of another app")
	flags.BoolVar(&d.AllowEmpty, "allow-empty", false, "deploy also a schema that declares no route, function, job or entity")
	flags.BoolVar(&d.All, "send-all", false, "also send the files that the node has, because they may be damaged there")
	flags.StringVar(&sign, "sign", "", "PEM file with the Ed25519 private key that signs the release")
	cli.CompleteFlag(cmd, "sign", cli.AnyFile)
	remote.AddFlags(cmd)
	return cmd
}

// buildNewer builds the handlers if sources are newer than their modules, and says so.
func (c *program) buildNewer(ctx context.Context, a *app.App, noBuild bool) error {
	quiet := *a
	quiet.Unset = func([]diag.Source, diag.List) {}
	s, _, err := quiet.Compile()
	if err != nil {
		return nil // deploy.Read reports errors and warnings, with the errors of the modules
	}
	name, err := a.Name(s)
	if err != nil {
		return err
	}
	newer, err := toolchain.Newer(a.Dir, name)
	if err != nil || len(newer) == 0 {
		return err
	}
	for _, n := range newer {
		c.Say("", n.String())
	}
	if noBuild {
		c.Say("warning: ", "the modules are deployed as they are (--no-build)")
		return nil
	}
	c.Say("", "building the handlers first; --no-build deploys the modules as they are")
	_, err = c.buildModules(ctx, a, s)
	return err
}

const diffHelp = `Show what changes from one stored release to another: routes, functions, sessions, scopes and
their grants, entities and their fields, indexes and policies, types, secrets, variables, origins
and modules.
If the second release is not active, its schema is also compared with the rows and the keys of the
node, which needs a key with the role deploy.

Without an id it shows what the active release has changed, with one id what that release would
change, and with two ids what changes from the first to the second. The beginning of an id is
enough if no other id begins with it.`

func diffCommand(c *program) *cobra.Command {
	remote := cli.Remote{Slow: true}
	cmd := &cobra.Command{
		Use:   "diff [id] [id]",
		Short: "show what differs between two releases",
		Long:  diffHelp,
		Example: `  runner diff
  runner diff rel_7ebc rel_9f2j
  runner diff rel_7ebc --to https://edge-1.example.com:9443 --key-file read.key`,
		Args: cli.AtMost(2, "the ids of two releases"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return c.OnRemote(cmd, remote, node.Task{Do: func(ctx context.Context, node *admin.Client) error {
				d, err := deploy.Stored(ctx, node, args...)
				switch {
				case err != nil:
					return err
				case c.JSON:
					err = c.PrintJSON(d)
				default:
					err = d.Print(&c.Console)
				}
				return errors.Join(err, d.Refused())
			}})
		},
	}
	remote.AddFlags(cmd)
	return cmd
}
