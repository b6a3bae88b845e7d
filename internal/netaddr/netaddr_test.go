package netaddr_test

import (
	"net/netip"
	"testing"

	"runner.example/internal/netaddr"
)

func TestAddressesHaveAClass(t *testing.T) {
	for want, texts := range map[netaddr.Class][]string{
		netaddr.Public:  {"8.8.8.8", "192.0.1.1", "100.63.255.255", "100.128.0.0", "2606:4700::1111", "::ffff:8.8.8.8"},
		netaddr.Private: {"10.0.0.1", "172.31.255.255", "192.168.1.1", "100.64.0.1", "127.0.0.1", "::1", "fd00::1", "::ffff:10.0.0.1"},
		netaddr.Denied: {
			"0.0.0.0", "169.254.169.254", "100.100.100.200", "168.63.129.16", "192.0.2.1", "224.0.0.1", "255.255.255.255", "::",
			"fe80::1", "ff02::1", "64:ff9b::a00:1", "2002:a00:1::", "fd00:ec2::254", "::ffff:169.254.169.254", "fd00::1%eth0",
		},
	} {
		for _, text := range texts {
			if got := netaddr.ClassOf(netip.MustParseAddr(text)); got != want {
				t.Errorf("%s: class %d, want %d", text, got, want)
			}
		}
	}
	if got := netaddr.ClassOf(netip.Addr{}); got != netaddr.Denied {
		t.Errorf("no address: class %d", got)
	}
}

func TestPorts(t *testing.T) {
	for text, want := range map[string]bool{
		"1": true, "443": true, "65535": true, "": false, "0": false, "65536": false, "99999": false, "0443": false, "+1": false, "x": false,
	} {
		if got := netaddr.ValidPort(text); got != want {
			t.Errorf("%q: %v", text, got)
		}
	}
	for address, want := range map[string]bool{
		"127.0.0.1:0": true, ":8080": true, "[::1]:65535": true, "localhost:1": true,
		"127.0.0.1": false, "127.0.0.1:": false, "127.0.0.1:65536": false, "127.0.0.1:http": false, "::1:80": false,
	} {
		if err := netaddr.CheckListen(address, "127.0.0.1:8080"); (err == nil) != want {
			t.Errorf("%q: %v", address, err)
		}
	}
}
