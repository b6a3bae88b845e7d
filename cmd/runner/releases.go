package main

import (
	"context"

	"github.com/spf13/cobra"

	"runner.example/cmd/runner/cli"
	"runner.example/node"
	"runner.example/node/admin"
	"runner.example/node/deploy"
)

const releasesHelp = `List the releases that the node keeps, the newest first, and which one is active.

A release is the schema files and the modules of an app, and the files that the schema gives the
modules; "files" is their number. Serving an app directory stores a release, and so does a
deployment. All public keys begin with the same 16 characters; "signed by" shows the 8 after them.
--json has the whole keys, and those that the node trusts.`

func releasesCommand(c *program) *cobra.Command {
	var remote cli.Remote
	cmd := &cobra.Command{
		Use:     "releases",
		Short:   "list the releases that are kept",
		Long:    releasesHelp,
		Example: "  runner releases\n  runner releases --to https://edge-1.example.com:9443 --key-file read.key",
		Args:    cli.AtMost(0, "flags alone"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return c.OnRemote(cmd, remote, node.Task{Do: func(ctx context.Context, node *admin.Client) error {
				list, err := node.Releases(ctx)
				if err != nil {
					return err
				}
				if c.JSON {
					return c.PrintJSON(list)
				}
				return deploy.PrintList(&c.Console, list)
			}})
		},
	}
	remote.AddFlags(cmd)
	return cmd
}

const rollbackHelp = `Activate a stored release on the running server, or on the node that --to names: the previous
one, or the one whose id is given. The beginning of an id is enough if no other id begins with it.
On a terminal the command asks first; --yes is for scripts.

Requests in flight finish on the release that they began with. If the release does not fit the rows
or the settings, or lacks a signature that the node needs, the active one is kept. The store keeps
what only newer releases declare.

The server serves this release from now on, also after a restart, until another one is
activated. "runner serve --from-folder" activates the app directory again.

Exit status 3: the release cannot be activated. 4: there is no such release. 5: another release was
activated meanwhile, it is of another app, or the answer was not yes. 6: no server runs on the data directory.`

func rollbackCommand(c *program) *cobra.Command {
	remote := cli.Remote{Slow: true}
	var yes, replaceApp bool
	cmd := &cobra.Command{
		Use:   "rollback [id]",
		Short: "activate the previous release, or another one that is kept",
		Long:  rollbackHelp,
		Example: "  runner rollback\n  runner rollback rel_7ebc\n" +
			"  runner rollback --yes --to https://edge-1.example.com:9443 --key-file deploy.key",
		Args: cli.AtMost(1, "the id of a release"),
		RunE: func(cmd *cobra.Command, args []string) error {
			node, err := c.DialRemote(cmd, remote)
			if err != nil {
				return err
			}
			r := deploy.Rollback{Node: node, Console: &c.Console, ReplaceApp: replaceApp}
			if !yes && !c.JSON && c.CanAsk() {
				r.Confirm = c.Confirm
			}
			return r.Run(cmd.Context(), args...)
		},
	}
	cmd.Flags().BoolVar(&yes, "yes", false, "activate the release without a question")
	cmd.Flags().BoolVar(&replaceApp, "replace-app", false, "replace the active release also if it is of another app")
	remote.AddFlags(cmd)
	return cmd
}
