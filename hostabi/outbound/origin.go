package outbound

import (
	"fmt"
	"net/netip"
	"net/url"
	"slices"
	"strings"

	"runner.example/internal/netaddr"
)

// Origins are the origins that handlers may call. The zero value has none.
type Origins struct {
	all    []string
	public bool
}

// WithPublic returns the origins, and if public is true also every host with a public address, on the ports 80
// and 443.
func (o Origins) WithPublic(public bool) Origins {
	o.public = public
	return o
}

// PublicOnly returns the origins without the declared ones: only public hosts, if they are allowed at all.
func (o Origins) PublicOnly() Origins {
	o.all = nil
	return o
}

// AllowsPublic reports whether requests to public hosts are allowed.
func (o Origins) AllowsPublic() bool { return o.public }

// ParseOrigins parses origins as a schema declares them: a scheme, a host and an optional
// port, "https://api.example.com".
func ParseOrigins(texts []string) (Origins, error) {
	var o Origins
	for _, text := range texts {
		u, err := url.Parse(text)
		if err != nil {
			return Origins{}, fmt.Errorf("read origin %q: %w", text, err)
		}
		origin, ok := originOf(u)
		if !ok || u.User != nil || u.Path != "" || u.RawQuery != "" || u.Fragment != "" {
			return Origins{}, fmt.Errorf("read origin %q: it must be https://host or https://host:port", text)
		}
		o.all = append(o.all, origin)
	}
	return o, nil
}

// checkTarget checks the URL of a handler's request. Its origin must be declared, or else public.
func (o Origins) checkTarget(u *url.URL) (public bool, _ *Error) {
	origin, ok := originOf(u)
	public = ok && o.public && !slices.Contains(o.all, origin)
	return public, o.check(u, public)
}

// check refuses a URL whose origin is not declared, or which cannot be public if public is true. It normalizes the
// host and the query of the URL.
func (o Origins) check(u *url.URL, public bool) *Error {
	origin, ok := originOf(u)
	switch {
	case !ok:
		return refuse(Invalid, "the url must be absolute and begin with https://")
	case u.User != nil:
		return refuse(Invalid, "the url must not hold a name or a password: send a header")
	case public && !isPublic(u):
		return refuse(Denied,
			"%s is not declared, and not public (a public host has a public address and port 80 or 443): "+
				"add it to `outbound { allow: […] }` in the schema", shorten(origin))
	case !public && !slices.Contains(o.all, origin):
		shown := shorten(origin)
		return refuse(Denied, "%s is not declared (add it to `outbound { allow: […] }` in the schema)", shown)
	}
	_, u.Host, _ = strings.Cut(origin, "://")
	u.Fragment, u.RawFragment = "", ""
	u.RawQuery = escapeQuery(u.RawQuery)
	return nil
}

// isPublic reports whether the URL of an http or https origin may belong to a public host. The addresses of a name are
// checked later, when it is resolved.
func isPublic(u *url.URL) bool {
	addr, err := netip.ParseAddr(u.Hostname())
	port := u.Port()
	return (err != nil || netaddr.ClassOf(addr) == netaddr.Public) && (port == "" || port == "80" || port == "443")
}

// escapeQuery escapes what is not allowed in a request line, as browsers do. net/http escapes
// a path, but sends a query unchanged.
func escapeQuery(query string) string {
	var out strings.Builder
	for _, c := range []byte(query) {
		if c <= ' ' || c >= 0x7f || strings.IndexByte(`"<>#`, c) >= 0 {
			fmt.Fprintf(&out, "%%%02X", c)
			continue
		}
		out.WriteByte(c)
	}
	return out.String()
}

// originOf returns a URL's origin in canonical form: in lower case, without a dot at the end
// of the name, and without the scheme's default port.
func originOf(u *url.URL) (string, bool) {
	host := strings.TrimSuffix(strings.ToLower(u.Hostname()), ".")
	if u.Scheme != "https" && u.Scheme != "http" || host == "" || u.Opaque != "" {
		return "", false
	}
	if addr, err := netip.ParseAddr(host); err == nil && addr.Is6() {
		host = "[" + addr.String() + "]"
	}
	origin := u.Scheme + "://" + host
	if port := u.Port(); port != "" && port != map[string]string{"https": "443", "http": "80"}[u.Scheme] {
		origin += ":" + port
	}
	return origin, true
}

// shorten cuts a text of the guest for a message.
func shorten(s string) string {
	const most = 300
	if len(s) > most {
		return strings.ToValidUTF8(s[:most], "") + "…"
	}
	return s
}
