package netaddr

import (
	"net/netip"
	"slices"
)

// Class says who may be at an address.
type Class int

const (
	// Denied: nothing that a handler may reach. These are link-local and multicast addresses, the metadata
	// services of clouds, reserved ranges, and addresses that are not valid or have a zone.
	Denied Class = iota
	// Private: a private network or this machine, which an operator may allow.
	Private
	// Public: a machine on the internet.
	Public
)

func prefixes(texts ...string) (list []netip.Prefix) {
	for _, text := range texts {
		list = append(list, netip.MustParsePrefix(text))
	}
	return list
}

var (
	private = prefixes(
		"10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", // RFC 1918
		"100.64.0.0/10", // RFC 6598, carrier-grade NAT
		"127.0.0.0/8", "::1/128",
		"fc00::/7", // RFC 4193
	)
	// metadata are the metadata services of clouds, with credentials of the machine, as far
	// as their addresses are not link-local.
	metadata = prefixes(
		"168.63.129.16/32", "100.100.100.200/32",
		"fd00:ec2::/32", "fd20:ce::254/128", "fd00:42::42/128", "fd00:c1::a9fe:a9fe/128",
	)
	// special are addresses that are not public (RFC 6890 and the registries that it
	// began), among them those that contain an IPv4 address.
	special = prefixes(
		"0.0.0.0/8", "169.254.0.0/16", "192.0.0.0/24", "192.0.2.0/24", "192.88.99.0/24",
		"198.18.0.0/15", "198.51.100.0/24", "203.0.113.0/24", "224.0.0.0/4", "240.0.0.0/4",
		"2001::/23", "2001:db8::/32", "2002::/16", "3fff::/20",
	)
	// public6 is the part of IPv6 that is assigned; NAT64 (64:ff9b::/96), link-local and
	// multicast addresses lie outside.
	public6 = netip.MustParsePrefix("2000::/3")
)

// ClassOf returns the class of an address. An IPv4 address in IPv6 form has the class of the IPv4 address.
func ClassOf(a netip.Addr) Class {
	a = a.Unmap()
	within := func(list []netip.Prefix) bool {
		return slices.ContainsFunc(list, func(p netip.Prefix) bool { return p.Contains(a) })
	}
	switch {
	case !a.IsValid() || a.Zone() != "" || within(metadata):
		return Denied
	case within(private):
		return Private
	case within(special) || a.Is6() && !public6.Contains(a):
		return Denied
	}
	return Public
}
