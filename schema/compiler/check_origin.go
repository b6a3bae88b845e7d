package compiler

import (
	"fmt"
	"net/netip"
	"net/url"
	"slices"
	"strings"

	"runner.example/internal/netaddr"
	"runner.example/schema/syntax"
)

// originChecker checks the origins that handlers call, and the origins of web pages.
type originChecker struct{ *app }

// checkOutbound checks the origins that handlers may call.
func (c *originChecker) checkOutbound() {
	for _, d := range c.decls {
		outbound, ok := d.(*syntax.OutboundDecl)
		if !ok {
			continue
		}
		c.settingsOnce(outbound.Settings)
		for _, s := range outbound.Settings {
			switch s.Name.Name {
			case "allow":
				for _, origin := range c.StringList(s.Value) {
					c.checkOrigin(origin)
				}
			case "public":
				if lit, ok := c.Literal(s.Value, syntax.BoolLit, "true or false"); ok {
					c.schema.OutboundPublic = lit.Bool
				}
			}
		}
	}
}

func (c *originChecker) checkOrigin(lit *syntax.Literal) {
	why, late := c.originFault(lit)
	switch {
	case why == "", c.Assumed[lit.Loc], c.opt.Unset == Ignored: // its text is not known, or the schema was checked before
	case late:
		c.errorIfNew("E520", lit.Loc, "%s: %s", lit.Shown(), why)
		if !c.opt.Accepted {
			return
		}
	default:
		c.Errorf("E520", lit.Loc, "%s: %s", lit.Shown(), why)
		return
	}
	if !slices.Contains(c.schema.Outbound, lit.Text) {
		c.schema.Outbound = append(c.schema.Outbound, lit.Text)
	}
}

// originFault says what is wrong with an origin that handlers call; empty: nothing. late: older versions accepted it.
func (c *originChecker) originFault(lit *syntax.Literal) (why string, late bool) {
	const form = "write an https URL with a host name and no path"
	u, err := url.Parse(lit.Text)
	if err != nil || u.Hostname() == "" || lit.Text != u.Scheme+"://"+u.Host {
		return form, false
	}
	class, named := hostKind(u.Hostname())
	switch {
	case !hasValidPort(u):
		return "it needs a port from 1 to 65535 after the colon", true
	case class == netaddr.Denied:
		return "handlers never reach this address: it is link-local, a metadata service or reserved", true
	case class == netaddr.Private && !c.opt.AllowPrivate:
		return "write an https URL with a host name; private addresses need `allow_private = true` under [outbound] in runner.toml", false
	case class == netaddr.Private && (u.Scheme == "https" || u.Scheme == "http"):
	case !named || u.Scheme != "https":
		return form, false
	}
	return "", false
}

// hasValidPort reports whether the URL has no port, or one that a client can connect to.
func hasValidPort(u *url.URL) bool {
	return !strings.HasSuffix(u.Host, ":") && (u.Port() == "" || netaddr.ValidPort(u.Port()))
}

// hostKind returns the class of a host, and whether it is a name and not an address. The addresses of
// a name are not known: it counts as public unless it means this machine.
func hostKind(host string) (class netaddr.Class, named bool) {
	if addr, err := netip.ParseAddr(host); err == nil {
		return netaddr.ClassOf(addr), false
	}
	host = strings.ToLower(strings.TrimSuffix(host, "."))
	if host == "localhost" || strings.HasSuffix(host, ".localhost") {
		return netaddr.Private, true
	}
	return netaddr.Public, isHostName(host)
}

// isHostName reports whether host consists of letters, digits, dots and hyphens and does not
// look like an address: its last label is not a number.
func isHostName(host string) bool {
	labels := strings.Split(host, ".")
	for _, label := range labels {
		if label == "" || strings.HasPrefix(label, "-") || strings.HasSuffix(label, "-") {
			return false
		}
		if strings.ContainsFunc(label, func(r rune) bool { return r != '-' && !syntax.IsLetter(r) && !syntax.IsDigit(r) }) {
			return false
		}
	}
	return !strings.HasPrefix(labels[len(labels)-1], "0x") && strings.ContainsFunc(labels[len(labels)-1], syntax.IsLetter)
}

// checkPageOrigin requires an origin in the form that browsers send (RFC 6454, section 6.1).
// Any other form would never match.
func (c *originChecker) checkPageOrigin(setting string, origin *syntax.Literal) {
	refuse := func(format string, args ...any) {
		c.Errorf("E427", origin.Loc, "%s: %s %s", setting, origin.Shown(), fmt.Sprintf(format, args...))
	}
	noOrigin := `is not an origin: write a scheme and a host, such as "https://app.example.com"`
	if setting == "cors" {
		noOrigin += `, or "*" for any`
	}
	u, err := url.Parse(origin.Text)
	if err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http" ||
		!strings.HasPrefix(origin.Text, u.Scheme+"://"+u.Host) {
		refuse("%s", noOrigin)
		return
	}
	switch {
	case strings.Contains(u.Host, "*"):
		refuse("has a wildcard, which no browser sends: list each origin")
	case strings.ContainsFunc(u.Host, func(r rune) bool { return r > '~' }):
		refuse(
			"has letters that browsers send as ASCII: write the host name in its xn-- form, as copied from the address bar")
	case origin.Text != strings.ToLower(u.Scheme+"://"+u.Host):
		refuse("%s", noOrigin)
	case !hasValidPort(u):
		refuse("needs a port from 1 to 65535 after the colon")
	case u.Scheme == "https" && u.Port() == "443" || u.Scheme == "http" && u.Port() == "80":
		refuse("has the scheme's default port, which browsers omit: write %q", strings.TrimSuffix(origin.Text, ":"+u.Port()))
	case !isOriginHost(u.Hostname()):
		refuse("%s", noOrigin)
	}
}

// isOriginHost reports whether host is a name or an address.
func isOriginHost(host string) bool {
	_, err := netip.ParseAddr(host)
	return err == nil || isHostName(host)
}

// anyOrigin lets pages of every origin read the responses.
const anyOrigin = "*"
