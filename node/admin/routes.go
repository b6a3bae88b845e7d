package admin

import (
	"context"
	"slices"
	"time"

	"runner.example/schema"
)

// Route is a route, or a function that has a URL, with its effective settings.
type Route struct {
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

// RouteList has the routes of the active release.
type RouteList struct {
	Routes []Route `json:"routes"`
}

// RoutesOf returns the routes of a schema, and after them its functions that have a URL. Those without a
// limit or a timeout have bodyBytes and timeout.
func RoutesOf(s *schema.Schema, bodyBytes int64, timeout time.Duration) []Route {
	declared := slices.Clone(s.Routes)
	for i := range s.Functions {
		if f := &s.Functions[i]; f.Exposed {
			declared = append(declared, *f.Route())
		}
	}
	routes := []Route{}
	for _, r := range declared {
		limits := []string{}
		for _, l := range r.Limits {
			limits = append(limits, l.String())
		}
		verify := ""
		if r.Verify != nil { // its auth is none
			verify = r.Verify.String()
		}
		body, limit := bodyBytes, timeout
		if r.BodyBytes > 0 {
			body = r.BodyBytes
		}
		if r.Timeout > 0 {
			limit = r.Timeout
		}
		routes = append(routes, Route{
			Method: r.Method, Path: r.Path, Handler: r.Target(), Auth: r.Auth.String(), Verify: verify, RateLimit: limits,
			BodyBytes: body, TimeoutSeconds: limit.Seconds(), Declared: r.Span.String(),
		})
	}
	return routes
}

// Routes returns the routes of the release that is active on the node.
func (c *Client) Routes(ctx context.Context) ([]Route, error) {
	list, err := ask(ctx, c, OpListRoutes, none{})
	return list.Routes, err
}
