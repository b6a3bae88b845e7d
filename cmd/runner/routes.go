package main

import (
	"cmp"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"runner.example/cmd/runner/cli"
	"runner.example/internal/console"
	"runner.example/internal/settings"
	"runner.example/node/admin"
)

const routesHelp = `List the routes of the app, the functions that have a URL, and the directories of assets with their
number of files. Each has its effective settings: its own, those of its groups, or those of the
configuration. With --to, list those of the release that is active on that node.`

func routesCommand(c *program) *cobra.Command {
	var remote cli.Remote
	cmd := &cobra.Command{
		Use:   "routes [dir]",
		Short: "list the routes with their auth and limits",
		Long:  routesHelp,
		Example: "  runner routes\n" +
			"  runner routes --to https://edge-1.example.com:9443 --key-file read.key",
		Args: cli.AtMost(1, "one directory"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if remote.Given() && len(args) > 0 {
				return console.Misused("runner routes: it lists the routes of a directory or of the node that --to names: omit one of them")
			}
			routes, err := c.routes(cmd, args, remote)
			if err != nil {
				return err
			}
			return c.printRoutes(routes)
		},
	}
	remote.AddFlags(cmd)
	return cmd
}

// routes returns the routes of a node on the network, or else of an app directory.
func (c *program) routes(cmd *cobra.Command, args []string, remote cli.Remote) ([]admin.Route, error) {
	if remote.Given() {
		node, err := c.DialRemote(cmd, remote)
		if err != nil {
			return nil, err
		}
		return node.Routes(cmd.Context())
	}
	if err := remote.NeedsTo(cmd); err != nil {
		return nil, err
	}
	a, s, err := c.AppSchema(cmd, args)
	if err != nil {
		return nil, err
	}
	return admin.RoutesOf(s, a.Config.Runtime.BodyBytes, a.Config.Runtime.Timeout, a.AssetFiles(s)), nil
}

func (c *program) printRoutes(routes []admin.Route) error {
	if c.JSON {
		return c.PrintJSON(routes)
	}
	var rows [][]string
	for _, r := range routes {
		auth := r.Auth
		if r.Verify != "" {
			auth = "verify: " + r.Verify
		}
		handler, body := r.Handler, settings.FormatSize(r.BodyBytes)
		timeout := settings.FormatDuration(time.Duration(r.TimeoutSeconds * float64(time.Second)).Round(time.Millisecond))
		if r.Assets != nil {
			body, timeout = "none", "none"
			if r.Assets.Files != nil {
				handler += ": " + console.Plural(*r.Assets.Files, "file")
			}
		}
		rows = append(rows, []string{
			r.Method, r.Path, handler, auth, cmp.Or(strings.Join(r.RateLimit, ", "), "none"), body, timeout,
		})
	}
	return c.PrintTable([]string{"METHOD", "PATH", "HANDLER", "AUTH", "RATE LIMIT", "BODY", "TIMEOUT"}, rows,
		"the schema declares no route")
}
