package auth

import (
	"net/url"
	"slices"

	"runner.example/schema"
)

// crossOrigin reports whether a request with a session cookie comes from a page of another
// origin, by the rules of net/http.CrossOriginProtection. Safe methods pass, and requests
// that the browser calls same-origin or started by the user. Without Sec-Fetch-Site, Origin
// must match Host. A request with neither header is not from a browser. Origins that the
// schema trusts always pass. Two things that no browser sends are refused: one of the
// headers twice, and Origin without Host.
func crossOrigin(s *schema.Schema, p *Presented) bool {
	switch string(p.Method) {
	case "GET", "HEAD", "OPTIONS":
		return false
	}
	if p.OriginLines > 1 || p.FetchSiteLines > 1 {
		return true // it is unknown which line is right
	}
	switch string(p.FetchSite) {
	case "same-origin", "none":
		return false
	case "":
		if len(p.Origin) == 0 {
			return false
		}
		if u, err := url.Parse(string(p.Origin)); err == nil && len(p.Host) > 0 && u.Host == string(p.Host) {
			return false
		}
	}
	return len(p.Origin) == 0 || !slices.Contains(s.Auth.Origins, string(p.Origin))
}
