// Package answer knows which answers the runner lets pass: the rules of the
// guest ABI for headers, statuses and sizes. The runner is the one that
// enforces them; here they are reported earlier, to a unit test, and afterwards, in
// the log line of an answer that was refused.
package answer

import (
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"

	"runner.example/sdk/go/internal/host"
)

// The bounds of an answer. MaxBody is the default of `response` under
// [sandbox] in runner.toml.
const (
	MaxHeaderLines = 100
	MaxHeaderBytes = 16 << 10
	MaxMessage     = 8 << 10
	MaxBody        = 8 << 20
)

// Header returns why the runner refuses one more header line behind those that
// are set already, nil when it takes it. The error's message is the reason.
func Header(set []host.Pair, name, value string) *host.Error {
	size := len(name) + len(value)
	for _, h := range set {
		size += len(h.Name) + len(h.Value)
	}
	switch why := denied(name, value); {
	case !utf8.ValidString(name) || !utf8.ValidString(value):
		return refuse("invalid", "names and values are UTF-8")
	case why != "":
		return refuse("denied", "%s", why)
	case single(name) && has(set, name):
		return refuse("invalid", "an answer has one of them")
	case len(set) >= MaxHeaderLines:
		return refuse("too_large", "an answer has at most %d header lines", MaxHeaderLines)
	case size > MaxHeaderBytes:
		return refuse("too_large", "the headers of an answer have at most %d KiB", MaxHeaderBytes>>10)
	}
	return nil
}

// Body returns why the runner refuses an answer with a body, nil when it takes
// it.
func Body(status, length int) *host.Error {
	switch {
	case status < 200 || status > 599:
		return refuse("invalid", "the status of an answer is 200 to 599")
	case length > 0 && (status == 204 || status == 304):
		return refuse("invalid", "204 and 304 have no body")
	case length > MaxBody:
		return refuse("too_large",
			"the body has %d bytes, more than a server takes unless its runner.toml says so ([sandbox] response)", length)
	}
	return nil
}

// Part returns why the runner refuses an answer with a part of the last result, nil
// when it takes it.
func Part(status int, part host.Part) *host.Error {
	if why := Body(status, 1); why != nil {
		return why
	}
	what := map[host.Part]string{host.All: "result", host.Rows: "rows", host.Row: "row"}[part]
	return refuse("invalid", "the result of the last operation has no %s: run the operation that returns it last, "+
		"or read the result into a variable and answer with that", what)
}

// Failure returns why the runner refuses an error answer, nil when it takes it.
func Failure(status int, message string) *host.Error {
	switch {
	case status < 400 || status > 599:
		return refuse("invalid", "the status of an error is 400 to 599")
	case !utf8.ValidString(message):
		return refuse("invalid", "a message is UTF-8")
	case len(message) > MaxMessage:
		return refuse("too_large", "a message has at most %d KiB", MaxMessage>>10)
	}
	return nil
}

func refuse(code, format string, args ...any) *host.Error {
	return &host.Error{Code: code, Message: fmt.Sprintf(format, args...)}
}

// hosts are the headers that the runner sets itself.
var hosts = []string{
	"connection", "transfer-encoding", "content-length", "date", "server", "trailer",
	"upgrade", "te", "keep-alive", "x-request-id",
}

// denied says why a handler may not send the header, empty when it may.
func denied(name, value string) string {
	lower := strings.ToLower(name)
	if name == "" || strings.ContainsFunc(name, func(r rune) bool { return !tokenRune(r) }) {
		return "a header's name is made of letters, digits and !#$%&'*+-.^_`|~"
	}
	for _, h := range hosts {
		if lower == h {
			return "the runner sets this header"
		}
	}
	switch {
	case strings.HasPrefix(lower, "proxy-"), strings.HasPrefix(lower, "ratelimit"):
		return "the runner sets this header"
	case strings.ContainsFunc(value, func(r rune) bool { return r != '\t' && r < ' ' || r == 0x7f }):
		return "a header's value has no control characters"
	case strings.Trim(value, " \t") != value:
		return "a header's value has no blanks around it"
	case lower == "location" && !location(value):
		return "a location is a URI reference that does not begin with //, without a tab, a backslash or a scheme that runs a script; the host of a URL is in ASCII, without a user name"
	}
	return ""
}

func tokenRune(r rune) bool {
	return 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9' ||
		strings.ContainsRune("!#$%&'*+-.^_`|~", r)
}

func location(value string) bool {
	if value == "" || strings.ContainsAny(value, "\t\\") || strings.HasPrefix(value, "//") {
		return false
	}
	scheme, rest, found := strings.Cut(value, ":")
	if !found || !isScheme(scheme) {
		return true
	}
	switch strings.ToLower(scheme) {
	case "javascript", "vbscript", "data":
		return false
	case "http", "https", "ftp", "ws", "wss":
		authority, ok := strings.CutPrefix(rest, "//")
		if end := strings.IndexAny(authority, "/?#"); end >= 0 {
			authority = authority[:end]
		}
		return ok && authorityTaken(authority)
	}
	return true
}

// isScheme reports whether s is the scheme of a URI (RFC 3986, section 3.1).
func isScheme(s string) bool {
	for i := range len(s) {
		c := s[i]
		letter := 'a' <= c|0x20 && c|0x20 <= 'z'
		if !letter && (i == 0 || (c < '0' || c > '9') && c != '+' && c != '-' && c != '.') {
			return false
		}
	}
	return s != ""
}

// authorityTaken reports whether the runner takes a host, and perhaps a port, in a location. It says yes to some
// addresses in brackets that the runner refuses.
func authorityTaken(authority string) bool {
	host, port := authority, ""
	if at := strings.LastIndexByte(authority, ':'); at > strings.LastIndexByte(authority, ']') {
		host, port = authority[:at], authority[at+1:]
	}
	if _, err := strconv.ParseUint(port, 10, 16); err != nil && port != "" {
		return false
	}
	if strings.HasPrefix(host, "[") {
		inner, closed := strings.CutSuffix(host[1:], "]")
		return closed && strings.Contains(inner, ":") && strings.Trim(inner, "0123456789ABCDEFabcdef:.") == ""
	}
	if host == "" || strings.ContainsFunc(host, func(r rune) bool { return !hostRune(r) }) {
		return false
	}
	return isAddress(host) || !endsInNumber(host)
}

func hostRune(r rune) bool {
	return 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9' || r == '-' || r == '.' || r == '_'
}

// isAddress reports whether the host is an IPv4 address in its usual form.
func isAddress(host string) bool {
	parts := strings.Split(host, ".")
	for _, part := range parts {
		if n, err := strconv.ParseUint(part, 10, 8); err != nil || strconv.FormatUint(n, 10) != part {
			return false
		}
	}
	return len(parts) == 4
}

// endsInNumber reports whether a browser reads the host as an IPv4 address.
func endsInNumber(host string) bool {
	host = strings.TrimSuffix(host, ".")
	last := strings.ToLower(host[strings.LastIndexByte(host, '.')+1:])
	if strings.HasPrefix(last, "0x") {
		return strings.Trim(last[2:], "0123456789abcdef") == ""
	}
	return last != "" && strings.Trim(last, "0123456789") == ""
}

func single(name string) bool {
	return strings.EqualFold(name, "content-type") || strings.EqualFold(name, "location")
}

func has(set []host.Pair, name string) bool {
	for _, h := range set {
		if strings.EqualFold(h.Name, name) {
			return true
		}
	}
	return false
}
