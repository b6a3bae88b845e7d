package auth

import (
	"net/url"
	"slices"

	"runner.example/schema"
)

// crossOrigin reports whether a request that a cookie speaks for comes from a
// page of another origin, as net/http.CrossOriginProtection decides it: safe
// methods pass, and so does what the browser calls same-origin or a user's own
// doing; without its word Origin has to name the Host. What has neither header is
// no browser. Origins that the schema trusts pass always. It is stricter in two
// things that no browser sends: a header twice, and Origin without any Host.
func crossOrigin(s *schema.Schema, p *Presented) bool {
	switch string(p.Method) {
	case "GET", "HEAD", "OPTIONS":
		return false
	}
	if p.OriginLines > 1 || p.FetchSiteLines > 1 {
		return true // nobody knows which line to believe
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
