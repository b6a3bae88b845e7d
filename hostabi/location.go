package hostabi

import (
	"net/netip"
	"strconv"
	"strings"
)

// locationAllowed reports whether a redirect is a path of this server, or an absolute http(s) URL with a host
// that all clients read in the same way. Browsers read "\" as "/", remove tabs, and read "//host" as another
// server.
func locationAllowed(value string) bool {
	if strings.ContainsAny(value, "\t\\") {
		return false
	}
	if path, ok := strings.CutPrefix(value, "/"); ok {
		return !strings.HasPrefix(path, "/")
	}
	for _, scheme := range []string{"http://", "https://"} {
		if n := len(scheme); len(value) > n && strings.EqualFold(value[:n], scheme) {
			authority := value[n:]
			if end := strings.IndexAny(authority, "/?#"); end >= 0 {
				authority = authority[:end]
			}
			return authorityAllowed(authority)
		}
	}
	return false
}

// authorityAllowed reports whether an authority is a host, in ASCII, and perhaps a port. A user name is not
// allowed (RFC 9110, section 4.2.4). Browsers decode a host's escapes, and map its other characters.
func authorityAllowed(authority string) bool {
	host, port := authority, ""
	if at := strings.LastIndexByte(authority, ':'); at > strings.LastIndexByte(authority, ']') {
		host, port = authority[:at], authority[at+1:]
	}
	if _, err := strconv.ParseUint(port, 10, 16); err != nil && port != "" {
		return false
	}
	if inner, ok := strings.CutPrefix(host, "["); ok {
		address, err := netip.ParseAddr(strings.TrimSuffix(inner, "]"))
		return strings.HasSuffix(host, "]") && err == nil && address.Is6() && address.Zone() == ""
	}
	if host == "" || strings.ContainsFunc(host, func(r rune) bool { return !hostRune(r) }) {
		return false
	}
	address, err := netip.ParseAddr(host)
	return err == nil && address.Is4() || !endsInNumber(host)
}

func hostRune(r rune) bool {
	return 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9' || r == '-' || r == '.' || r == '_'
}

// endsInNumber reports whether a browser reads the host as an IPv4 address, also "0x7f.1" and "2130706433".
func endsInNumber(host string) bool {
	host = strings.TrimSuffix(host, ".")
	last := strings.ToLower(host[strings.LastIndexByte(host, '.')+1:])
	if hex, ok := strings.CutPrefix(last, "0x"); ok {
		return strings.Trim(hex, "0123456789abcdef") == ""
	}
	return last != "" && strings.Trim(last, "0123456789") == ""
}
