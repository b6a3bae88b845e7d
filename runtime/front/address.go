package front

import (
	"bytes"
	"net"
	"net/netip"
)

// peerOf returns the address of the peer; the zero Addr if it has none.
func peerOf(nc net.Conn) netip.Addr {
	if a, ok := nc.RemoteAddr().(*net.TCPAddr); ok {
		return a.AddrPort().Addr().Unmap().WithZone("")
	}
	return netip.Addr{}
}

// addressBucket returns the address or network that connections are counted by: of IPv6 the
// /64, which one customer has.
func addressBucket(a netip.Addr) netip.Addr {
	if a.Is6() {
		if p, err := a.Prefix(64); err == nil {
			return p.Addr()
		}
	}
	return a
}

func trusted(proxies []netip.Prefix, a netip.Addr) bool {
	for _, p := range proxies {
		if p.Contains(a) {
			return true
		}
	}
	return false
}

// clientOf reads the X-Forwarded-For lines from the right, the end that trusted proxies
// wrote. The first hop that is not a trusted proxy is the client. If a hop cannot be read,
// the client is the hop to its right.
func clientOf(peer netip.Addr, proxies []netip.Prefix, lines [][]byte) netip.Addr {
	client := peer
	for i := len(lines) - 1; i >= 0; i-- {
		for rest := lines[i]; rest != nil; {
			var hop []byte
			if comma := bytes.LastIndexByte(rest, ','); comma >= 0 {
				rest, hop = rest[:comma], rest[comma+1:]
			} else {
				rest, hop = nil, rest
			}
			a, ok := parseHop(trimBlanks(hop))
			if !ok {
				return client
			}
			client = a
			if !trusted(proxies, a) {
				return client
			}
		}
	}
	return client
}

// parseHop parses an address as proxies write it: bare, in brackets, or with a port.
func parseHop(b []byte) (netip.Addr, bool) {
	if len(b) > 64 {
		return netip.Addr{}, false
	}
	text := string(b)
	a, err := netip.ParseAddr(text)
	if err != nil {
		ap, err := netip.ParseAddrPort(text)
		if err != nil {
			if len(b) < 2 || b[0] != '[' || b[len(b)-1] != ']' {
				return netip.Addr{}, false
			}
			if a, err = netip.ParseAddr(text[1 : len(text)-1]); err != nil {
				return netip.Addr{}, false
			}
			return a.Unmap().WithZone(""), true
		}
		a = ap.Addr()
	}
	return a.Unmap().WithZone(""), true
}
