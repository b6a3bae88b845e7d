package main

import (
	"cmp"
	"strings"

	"github.com/spf13/cobra"

	"runner.example/schema"
)

const routesHelp = `List the routes of the app with the settings that hold for each: those of the
route itself, of its groups, or of the configuration.`

// routeRow is one route of `runner routes --json`.
type routeRow struct {
	Method         string   `json:"method"`
	Path           string   `json:"path"`
	Handler        string   `json:"handler"`
	Auth           string   `json:"auth"`
	RateLimit      []string `json:"rateLimit"`
	BodyBytes      int64    `json:"bodyBytes"`
	TimeoutSeconds float64  `json:"timeoutSeconds"`
	// Declared is the place of the route line: "orders.schema:83:3".
	Declared string `json:"declared"`
}

func (c *cli) routesCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "routes [dir]",
		Short: "list the routes with their auth and limits",
		Long:  routesHelp,
		Args:  atMost(1, "one folder"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := c.appFolder(cmd, args); err != nil {
				return err
			}
			a, err := c.readApp(cmd)
			if err != nil {
				return err
			}
			s, _, err := a.compile()
			if err != nil {
				return err
			}
			return c.printRoutes(a, s)
		},
	}
}

func (c *cli) printRoutes(a *app, s *schema.Schema) error {
	document := []routeRow{}
	var rows [][]string
	for _, r := range s.Routes {
		body := cmp.Or(r.BodyBytes, a.config.front.body)
		timeout := cmp.Or(r.Timeout, a.config.runtime.timeout)
		limits := []string{}
		for _, l := range r.Limits {
			limits = append(limits, l.String())
		}
		document = append(document, routeRow{
			Method: r.Method, Path: r.Path, Handler: r.Handler, Auth: r.Auth.String(), RateLimit: limits,
			BodyBytes: body, TimeoutSeconds: timeout.Seconds(), Declared: r.Span.String(),
		})
		rows = append(rows, []string{
			r.Method, r.Path, r.Handler, r.Auth.String(), cmp.Or(strings.Join(limits, ", "), "none"),
			formatSize(body), formatDuration(timeout),
		})
	}
	if c.json {
		return c.printJSON(document)
	}
	return c.printTable([]string{"METHOD", "PATH", "HANDLER", "AUTH", "RATE LIMIT", "BODY", "TIMEOUT"}, rows, "the schema declares no route")
}
