package hostabi

import (
	"net/netip"
	"strconv"
	"strings"

	"runner.example/hostabi/abi"
)

// locationAllowed reports whether the target of a redirect is a URI reference that all clients read in the same way:
// relative to this server, or with a scheme. Browsers read "\" as "/", remove tabs, and read "//host" as another server.
func locationAllowed(value string) bool {
	if value == "" || strings.ContainsAny(value, "\t\\") || strings.HasPrefix(value, "//") {
		return false
	}
	scheme, rest, absolute := cutScheme(value)
	if !absolute {
		return true
	}
	switch strings.ToLower(scheme) {
	case "javascript", "vbscript", "data": // they run a script
		return false
	case "http", "https", "ftp", "ws", "wss": // browsers read them without "//", too
		authority, ok := strings.CutPrefix(rest, "//")
		if end := strings.IndexAny(authority, "/?#"); end >= 0 {
			authority = authority[:end]
		}
		return ok && authorityAllowed(authority)
	}
	return true
}

// cutScheme cuts the scheme of a URI (RFC 3986, section 3.1).
func cutScheme(value string) (scheme, rest string, ok bool) {
	scheme, rest, ok = strings.Cut(value, ":")
	for i := range len(scheme) {
		c := scheme[i]
		letter := 'a' <= c|0x20 && c|0x20 <= 'z'
		if !letter && (i == 0 || (c < '0' || c > '9') && c != '+' && c != '-' && c != '.') {
			return "", "", false
		}
	}
	return scheme, rest, ok && scheme != ""
}

// encodeLocation returns a location in which each byte that a URI cannot have, and that is not a part of its syntax,
// is encoded: spaces, quotation marks, and all outside of ASCII, in UTF-8.
func encodeLocation(value []byte) []byte {
	if all(value, isURIByte) {
		return value
	}
	text := abi.HeaderText(value)
	out := make([]byte, 0, 3*len(text))
	for _, c := range text {
		if isURIByte(c) {
			out = append(out, c)
		} else {
			out = append(out, '%', "0123456789ABCDEF"[c>>4], "0123456789ABCDEF"[c&15])
		}
	}
	return out
}

func isURIByte(c byte) bool { return c > ' ' && c < 0x7f && strings.IndexByte("\"<>^`{|}", c) < 0 }

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
