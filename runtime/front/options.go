package front

import (
	"cmp"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"time"

	"runner.example/internal/netaddr"
	"runner.example/internal/settings"
	"runner.example/internal/system/process"
	"runner.example/internal/telemetry"
)

// Options configure a Server. The zero value of each field means its default; only Logger is
// required. Fields with a toml tag are settings (package settings).
type Options struct {
	// Listen is the address to listen on, host:port. Port 0 takes a free one. Flag:
	// --listen.
	Listen string `toml:"front.listen" default:"127.0.0.1:8080"`
	// Hosts are the accepted values of the Host header, such as ["api.example.com"] for
	// every port, or ["api.example.com:8443"] for one port. "*.example.com" accepts every name
	// with one more label: api.example.com, but not a.b.example.com and not example.com. Upper
	// and lower case are equal. Health checks are answered for every host. Empty: all.
	Hosts []string `toml:"front.hosts" reload:"true"`
	// TrustedProxies are the networks whose X-Forwarded-For and X-Forwarded-Proto are used, such
	// as ["10.0.0.0/8"].
	TrustedProxies []netip.Prefix `toml:"front.trusted_proxies" reload:"true"`
	// TLSCert is the path of a certificate chain in PEM form. With it and TLSKey the server
	// accepts only HTTPS, with TLS 1.2 or later. Relative paths start from the app directory.
	// Turning HTTPS on or off needs a restart.
	TLSCert string `toml:"front.tls_cert" reload:"true"`
	// TLSKey is the path of the private key of TLSCert, in PEM form.
	TLSKey string `toml:"front.tls_key" reload:"true"`
	// Certificate is what TLSCert and TLSKey contain; nil: the server speaks HTTP.
	Certificate *tls.Certificate

	// MaxHeaderBytes limits the header lines of a request together, MaxHeaderLines their
	// number; beyond that the answer is 431. MaxTargetBytes limits the path with its query;
	// beyond that it is 414.
	MaxHeaderBytes int `toml:"front.header_bytes" unit:"size" default:"16kb" min:"1kb" max:"1mb"`
	MaxHeaderLines int `toml:"front.header_lines" default:"100" min:"1" max:"10000"`
	MaxTargetBytes int `toml:"front.target_bytes" unit:"size" default:"8kb" min:"64b" max:"64kb"`

	// MaxBodyMemory limits the memory of all bodies that are read or served, beyond the
	// first 64kb of each. Beyond that the answer is 503.
	MaxBodyMemory int64 `toml:"front.body_memory" unit:"size" default:"256mb" min:"1mb" max:"1024gb"`

	// MaxAnswerMemory limits the memory of answers that wait for slow clients,
	// MaxAnswerMemoryPerIP that of the answers to one address (an IPv6 /64; 0b: three
	// quarters of MaxAnswerMemory). Beyond that the slowest client is disconnected. Behind
	// a trusted proxy the address is the client's that the proxy names; if it names none,
	// only the first limit applies. Answers of 16kb or less do not count.
	MaxAnswerMemory      int64 `toml:"front.answer_memory" unit:"size" default:"256mb" min:"1mb" max:"1024gb"`
	MaxAnswerMemoryPerIP int64 `toml:"front.answer_memory_per_ip" unit:"size" max:"1024gb"`

	// ReadTimeout limits the time from the first byte of a request to the last byte of its
	// body; beyond that the answer is 408. WriteTimeout limits the time in which a client
	// reads an answer, IdleTimeout the time that a connection waits for its first or next
	// request.
	ReadTimeout  time.Duration `toml:"front.read_timeout" default:"10s" min:"1ms" max:"1h"`
	WriteTimeout time.Duration `toml:"front.write_timeout" default:"30s" min:"1ms" max:"1h"`
	IdleTimeout  time.Duration `toml:"front.idle_timeout" default:"60s" min:"1ms" max:"24h"`

	// MaxConns limits the open connections, and is lowered when the process may open fewer
	// files; further ones wait in the kernel's queue. MaxConnsPerIP limits those of one
	// address (an IPv6 /64; 0: three quarters of MaxConns; not for trusted proxies);
	// further ones are closed.
	MaxConns      int `toml:"front.max_connections" default:"10000" min:"1"`
	MaxConnsPerIP int `toml:"front.max_connections_per_ip"`

	// ReservedFiles is how many open files connections must leave to the rest of the process; 0: 256, or half
	// of what the process may open.
	ReservedFiles int

	// Logger gets events of connections, panics, and the causes of refusals. It must
	// redact, because causes may quote requests.
	Logger *slog.Logger

	// Metrics counts refusals; nil: nothing is counted.
	Metrics *telemetry.Metrics

	// AnyHost is a path. Requests for it, and for paths below it, are served whatever their Host is.
	// Empty: there is none.
	AnyHost string

	// BeforeRefusal may add headers to the answer of a request that New's handle does not
	// see although its head could be read: its query is invalid. May be nil.
	BeforeRefusal func(*Exchange)
}

// filled returns the options with their defaults.
func (o Options) filled() Options {
	settings.FillZero(&o)
	o.MaxAnswerMemoryPerIP = cmp.Or(o.MaxAnswerMemoryPerIP, max(1, o.MaxAnswerMemory/4*3))
	o.MaxConnsPerIP = cmp.Or(o.MaxConnsPerIP, max(1, o.MaxConns/4*3))
	return o
}

// CheckSetting checks an address to listen on and the accepted hosts.
func (o *Options) CheckSetting(key, value string) error {
	switch key {
	case "front.listen":
		return CheckListen(value)
	case "front.hosts":
		if !validHosts(value) {
			return fmt.Errorf("%q is not a host name: write it as in the Host header, such as api.example.com, or *.example.com for all names with one more label", value)
		}
	}
	return nil
}

// CheckListen returns an error if s is not host:port.
func CheckListen(s string) error { return netaddr.CheckListen(s, "127.0.0.1:8080") }

// Validate reports every invalid value under the name of its key.
func (o Options) Validate() error {
	o = o.filled()
	var all []error
	atLeast := func(key string, n, least int) {
		if n < least {
			all = append(all, fmt.Errorf("%s is %d, but must be at least %d", key, n, least))
		}
	}
	atLeast("header_bytes", o.MaxHeaderBytes, 256)
	atLeast("header_lines", o.MaxHeaderLines, 1)
	atLeast("target_bytes", o.MaxTargetBytes, 1)
	atLeast("max_connections", o.MaxConns, 1)
	atLeast("max_connections_per_ip", o.MaxConnsPerIP, 1)
	positive := func(key string, d time.Duration) {
		if d <= 0 {
			all = append(all, fmt.Errorf("%s is %s, but must be more than 0", key, d))
		}
	}
	positive("read_timeout", o.ReadTimeout)
	positive("write_timeout", o.WriteTimeout)
	positive("idle_timeout", o.IdleTimeout)
	for _, h := range o.Hosts {
		if !validHosts(h) {
			all = append(all, fmt.Errorf("hosts has %q, which is not a host name", h))
		}
	}
	if o.Logger == nil {
		all = append(all, errors.New("no logger"))
	}
	return errors.Join(all...)
}

// reservedFiles is ReservedFiles without an owner that knows how many it needs.
const reservedFiles = 256

// FilesPerConnection is how many files a connection takes at most: its socket, and the content that is sent or stored.
const FilesPerConnection = 2

// withinFiles lowers MaxConns to what the process's limit of open files allows. files is that limit; 0: it
// lowered nothing.
func (o Options) withinFiles() (_ Options, files uint64) {
	files, known, err := process.FileLimit()
	if err != nil || !known {
		return o, 0
	}
	reserved := cmp.Or(uint64(o.ReservedFiles), min(reservedFiles, files/2))
	room := (max(files, reserved+FilesPerConnection) - reserved) / FilesPerConnection
	if uint64(o.MaxConns) <= room {
		return o, 0
	}
	o.MaxConns = int(room)
	o.MaxConnsPerIP = min(o.MaxConnsPerIP, max(1, o.MaxConns/4*3))
	return o, files
}
