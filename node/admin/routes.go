package admin

import (
	"context"
	"slices"
	"time"

	"runner.example/schema"
)

// Route is a route, a function that has a URL, or a directory of assets, with its effective settings.
type Route struct {
	Method         string   `json:"method"`
	Path           string   `json:"path"`
	Handler        string   `json:"handler"`
	Auth           string   `json:"auth"`
	Verify         string   `json:"verify,omitempty"`
	RateLimit      []string `json:"rateLimit"`
	BodyBytes      int64    `json:"bodyBytes"`
	TimeoutSeconds float64  `json:"timeoutSeconds"`
	// Assets is the directory of assets; nil: it is a route or a function. It has no limit of a body and no timeout, and
	// its path ends with a star.
	Assets *Assets `json:"assets,omitempty"`
	// Declared is the place of its declaration: "orders.schema:83:3".
	Declared string `json:"declared"`
}

// Assets is a directory whose files are sent.
type Assets struct {
	Dir string `json:"dir"`
	// Files is the number of its files; nil: the directory cannot be read.
	Files *int `json:"files,omitempty"`
}

// RouteList has the routes of the active release.
type RouteList struct {
	Routes []Route `json:"routes"`
}

// RoutesOf returns the routes of a schema, after them its functions that have a URL, and after these its assets. Routes
// and functions without a limit or a timeout have bodyBytes and timeout. files has the number of files of each directory
// of assets.
func RoutesOf(s *schema.Schema, bodyBytes int64, timeout time.Duration, files map[string]int) []Route {
	declared := slices.Clone(s.Routes)
	for i := range s.Functions {
		if f := &s.Functions[i]; f.Exposed {
			declared = append(declared, *f.Route())
		}
	}
	routes := []Route{}
	for _, r := range declared {
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
			Method: r.Method, Path: r.Path, Handler: r.Target(), Auth: r.Auth.String(), Verify: verify, RateLimit: textsOf(r.Limits),
			BodyBytes: body, TimeoutSeconds: limit.Seconds(), Declared: r.Span.String(),
		})
	}
	for i := range s.Assets {
		a := &s.Assets[i]
		dir := &Assets{Dir: a.Dir}
		if n, known := files[a.Dir]; known {
			dir.Files = &n
		}
		routes = append(routes, Route{
			Method: "GET", Path: a.Route().Path, Handler: "assets(" + a.Dir + ")", Auth: a.Auth.String(), RateLimit: textsOf(a.Limits),
			Assets: dir, Declared: a.Span.String(),
		})
	}
	return routes
}

func textsOf(limits []schema.RateLimit) []string {
	texts := []string{}
	for _, l := range limits {
		texts = append(texts, l.String())
	}
	return texts
}

// Routes returns the routes of the release that is active on the node.
func (c *Client) Routes(ctx context.Context) ([]Route, error) {
	list, err := ask(ctx, c, OpListRoutes, none{})
	return list.Routes, err
}
