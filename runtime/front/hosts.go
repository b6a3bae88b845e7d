package front

import (
	"bytes"
	"log/slog"
	"math"
	"net/netip"
	"strings"
	"sync"
)

// anyLabel begins an entry of Options.Hosts that stands for all names with one more label.
const anyLabel = "*."

// accepted reports whether one of the entries of Options.Hosts is for the host, which is valid.
func accepted(hosts []string, host []byte) bool {
	name := withoutPort(host)
	for _, h := range hosts {
		if rest, ok := strings.CutPrefix(h, anyLabel); ok {
			dot := bytes.IndexByte(name, '.')
			if dot > 0 && (equalFold(host[dot+1:], rest) || equalFold(name[dot+1:], rest)) {
				return true
			}
		} else if equalFold(host, h) || equalFold(name, h) {
			return true
		}
	}
	return false
}

// validHosts reports whether s can be an entry of Options.Hosts.
func validHosts(s string) bool {
	rest, isPattern := strings.CutPrefix(s, anyLabel)
	return ValidHost([]byte(rest)) && !(isPattern && (rest[0] == '[' || rest[0] == '.'))
}

// ValidHost reports whether b can be a Host: a name, an IPv4 address or an IPv6 address in
// brackets, with an optional port.
func ValidHost(b []byte) bool {
	name := withoutPort(b)
	port := b[len(name):]
	if len(port) > 6 || len(name) == 0 {
		return false
	}
	number := 0
	for _, c := range bytes.TrimPrefix(port, []byte{':'}) {
		if !isDigit(c) {
			return false
		}
		number = 10*number + int(c-'0')
	}
	if number > math.MaxUint16 {
		return false
	}
	if name[0] == '[' {
		_, ok := parseHop(name)
		return ok && name[len(name)-1] == ']'
	}
	for _, c := range name {
		if !isDigit(c) && (c|0x20 < 'a' || c|0x20 > 'z') && c != '.' && c != '-' && c != '_' {
			return false
		}
	}
	return true
}

// withoutPort cuts off the last colon outside of brackets and what follows it.
func withoutPort(b []byte) []byte {
	if i := bytes.LastIndexByte(b, ':'); i >= 0 && i > bytes.LastIndexByte(b, ']') {
		return b[:i]
	}
	return b
}

// servesAnyHost reports whether the path is AnyHost or below it.
func (o *Options) servesAnyHost(path []byte) bool {
	rest, ok := bytes.CutPrefix(path, []byte(o.AnyHost))
	return ok && o.AnyHost != "" && (len(rest) == 0 || rest[0] == '/')
}

const (
	// maxRefusedHosts limits how many hosts are logged, maxLoggedHost how much of each, in bytes.
	maxRefusedHosts = 100
	maxLoggedHost   = 255
)

// refusedHosts logs each host that is refused once, up to maxRefusedHosts. Any goroutine may call its methods.
type refusedHosts struct {
	mu   sync.Mutex
	seen map[string]bool
}

func (r *refusedHosts) log(logger *slog.Logger, host []byte, peer netip.Addr) {
	name := strings.ToLower(string(host[:min(len(host), maxLoggedHost)]))
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case r.seen[name] || len(r.seen) > maxRefusedHosts:
		return
	case r.seen == nil:
		r.seen = map[string]bool{}
	}
	r.seen[name] = true
	if len(r.seen) > maxRefusedHosts {
		logger.Warn("more hosts refused; not logged until the next reload", slog.Int("logged", maxRefusedHosts))
		return
	}
	logger.Warn("host refused: it is not in [front] hosts", slog.String("host", name), slog.String("address", peer.String()))
}
