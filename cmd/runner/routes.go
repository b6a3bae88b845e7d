package main

import (
	"cmp"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"runner.example/cmd/runner/cli"
	"runner.example/internal/settings"
	"runner.example/node/app"
	"runner.example/schema"
)

const routesHelp = `List the routes of the app, and the functions that have a URL, with their effective settings:
their own, those of their groups, or those of the configuration.`

// routeRow is one route, or one exposed function, of `runner routes --json`.
type routeRow struct {
	Method         string   `json:"method"`
	Path           string   `json:"path"`
	Handler        string   `json:"handler"`
	Auth           string   `json:"auth"`
	Verify         string   `json:"verify,omitempty"`
	RateLimit      []string `json:"rateLimit"`
	BodyBytes      int64    `json:"bodyBytes"`
	TimeoutSeconds float64  `json:"timeoutSeconds"`
	// Declared is the place of its declaration: "orders.schema:83:3".
	Declared string `json:"declared"`
}

func routesCommand(c *program) *cobra.Command {
	return &cobra.Command{
		Use:   "routes [dir]",
		Short: "list the routes with their auth and limits",
		Long:  routesHelp,
		Args:  cli.AtMost(1, "one directory"),
		RunE: func(cmd *cobra.Command, args []string) error {
			a, s, err := c.AppSchema(cmd, args)
			if err != nil {
				return err
			}
			return c.printRoutes(a, s)
		},
	}
}

func (c *program) printRoutes(a *app.App, s *schema.Schema) error {
	document := []routeRow{}
	var rows [][]string
	for _, r := range served(s) {
		body := cmp.Or(r.BodyBytes, a.Config.Runtime.BodyBytes)
		timeout := cmp.Or(r.Timeout, a.Config.Runtime.Timeout)
		limits := []string{}
		for _, l := range r.Limits {
			limits = append(limits, l.String())
		}
		auth, verify := r.Auth.String(), ""
		if r.Verify != nil { // its auth is none
			verify = r.Verify.String()
			auth = "verify: " + verify
		}
		document = append(document, routeRow{
			Method: r.Method, Path: r.Path, Handler: r.Handler, Auth: r.Auth.String(), Verify: verify, RateLimit: limits,
			BodyBytes: body, TimeoutSeconds: timeout.Seconds(), Declared: r.Span.String(),
		})
		rows = append(rows, []string{
			r.Method, r.Path, r.Handler, auth, cmp.Or(strings.Join(limits, ", "), "none"),
			settings.FormatSize(body), settings.FormatDuration(timeout),
		})
	}
	if c.JSON {
		return c.PrintJSON(document)
	}
	return c.PrintTable([]string{"METHOD", "PATH", "HANDLER", "AUTH", "RATE LIMIT", "BODY", "TIMEOUT"}, rows,
		"the schema declares no route")
}

// served returns the routes of a schema, and after them those of its exposed functions.
func served(s *schema.Schema) []schema.Route {
	routes := slices.Clone(s.Routes)
	for i := range s.Functions {
		if f := &s.Functions[i]; f.Exposed {
			routes = append(routes, *f.Route())
		}
	}
	return routes
}
