package cluster

import (
	"net"
	"net/netip"
	"strconv"
	"strings"
	"time"

	"runner.example/internal/fault"
	"runner.example/state/store/etcdlog"
)

// Options are the settings (package settings) of a node. They are ignored by a server that is standalone.
type Options struct {
	// Name is the name of the node in its cluster, used by `runner cluster init` and `join`. Empty:
	// the name of the machine.
	Name string `toml:"cluster.name"`
	// Listen is the address at which the other nodes reach this one, host:port. The two ports after
	// it are used too. Only `runner cluster init` and `join` read it. Empty: a free port of
	// 127.0.0.1, for nodes on one machine.
	Listen string `toml:"cluster.listen"`
	// Election is how long the voters wait for their leader before they elect another one. Set the same
	// value on all voters, at least ten times the round-trip time between them.
	Election time.Duration `toml:"cluster.election" default:"1s" min:"100ms" max:"50s"`
	// Endpoints are the URLs of etcd servers that run elsewhere, such as
	// https://etcd-1.example.com:2379. Empty: the voters run etcd themselves.
	Endpoints []string `toml:"cluster.endpoints"`
	// TLSCA is the path of the CA certificates of Endpoints, in PEM form. A relative path
	// starts from the app directory.
	TLSCA string `toml:"cluster.tls_ca"`
	// TLSCert is the path of the certificate with which nodes are clients of Endpoints, in PEM form.
	TLSCert string `toml:"cluster.tls_cert"`
	// TLSKey is the path of the private key of TLSCert, in PEM form.
	TLSKey string `toml:"cluster.tls_key"`
	// MaxStaleness is how long a node may be cut off from the cluster. After that it is not ready, and
	// StaleKeys applies.
	MaxStaleness time.Duration `toml:"cluster.max_staleness" default:"30s" min:"3s" max:"365d"`
	// StaleKeys is what then happens to requests with API keys and sessions: "refuse" answers 503,
	// because they may have been revoked; "serve" serves them.
	StaleKeys string `toml:"cluster.stale_keys" default:"refuse" oneof:"refuse|serve"`
}

// CheckSetting checks one setting.
func (o *Options) CheckSetting(key, value string) error {
	switch {
	case key == "cluster.endpoints":
		return etcdlog.CheckAddress(value)
	case value == "":
		return nil
	case key == "cluster.listen":
		return checkListen(value)
	case key == "cluster.name":
		return checkName(value)
	}
	return nil
}

// checkListen refuses addresses that other nodes cannot use: the host is an IP address of one machine or
// a name (RFC 1123), and the port has no leading zeros.
func checkListen(address string) error {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return fault.New(fault.Invalid, "%q is not an address: write host:port, such as 10.0.0.1:9400", address)
	}
	if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 || n > 65533 || port != strconv.FormatUint(n, 10) {
		return fault.New(fault.Invalid, "the port of %q is not between 1 and 65533", address)
	}
	ip, err := netip.ParseAddr(host)
	switch {
	case host == "" || err == nil && (ip.IsUnspecified() || ip.IsMulticast()):
		return fault.New(fault.Invalid,
			"%q is not an address of one machine: the other nodes connect to it, so write one that they reach", address)
	case err == nil && ip.Zone() != "" || err != nil && !isHostName(host):
		return fault.New(fault.Invalid,
			"the host of %q is neither an IP address without a zone nor a host name of letters, digits, hyphens and dots",
			address)
	}
	return nil
}

// isHostName reports whether a host is a name by RFC 1123. The last label of one is not a number.
func isHostName(host string) bool {
	labels := strings.Split(host, ".")
	for _, label := range labels {
		if checkName(strings.ToLower(label)) != nil {
			return false
		}
	}
	return len(host) <= 253 && strings.Trim(labels[len(labels)-1], "0123456789") != ""
}

// sameHost returns the same text for hosts that are certainly the same: forms of one IP address, upper and
// lower case, and localhost.
func sameHost(host string) string {
	if ip, err := netip.ParseAddr(host); err == nil {
		return ip.Unmap().String()
	}
	if host = strings.ToLower(host); host == "localhost" {
		return "127.0.0.1"
	}
	return host
}

// checkEndpoints refuses endpoints of etcd and files for TLS that a client cannot use.
func (o Options) checkEndpoints() error {
	if len(o.Endpoints) == 0 {
		return nil
	}
	client, err := etcdlog.Dial(o.Endpoints, o.etcdTLS()) // which does not wait for a connection
	if err != nil {
		return fault.Wrap(err, fault.Invalid, "[cluster] endpoints cannot be used: %v", err)
	}
	client.Close()
	return nil
}

// maxName limits the length of a node's name.
const maxName = 63

// checkName refuses names that cannot be part of a host name.
func checkName(name string) error {
	ok := len(name) > 0 && len(name) <= maxName && name[0] != '-' && name[len(name)-1] != '-'
	for i := range len(name) {
		c := name[i]
		ok = ok && (c == '-' || c >= '0' && c <= '9' || c >= 'a' && c <= 'z')
	}
	if !ok {
		return fault.New(fault.Invalid,
			"the name %q of a node is not valid: it has 1-%d small letters, digits and hyphens, and no hyphen at either end",
			name, maxName)
	}
	return nil
}

// nextPort returns address with a port that is higher by n.
func nextPort(address string, n int) string {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		panic("BUG: an address was not checked: " + err.Error())
	}
	p, _ := strconv.Atoi(port)
	return net.JoinHostPort(host, strconv.Itoa(p+n))
}

// etcdClientURL returns the URL at which clients reach the etcd server of the node at address.
func etcdClientURL(address string) string { return "https://" + nextPort(address, 1) }

// etcdPeerURL returns the URL at which other etcd servers reach that of the node at address.
func etcdPeerURL(address string) string { return "https://" + nextPort(address, 2) }
