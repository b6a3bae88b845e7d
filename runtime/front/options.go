package front

import (
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"syscall"
	"time"
)

// Options says where and how strictly to listen. The zero value of each field
// stands for the default its comment names; only Logger has to be set.
type Options struct {
	// Listen is host:port; port 0 takes a free one. Default 127.0.0.1:8080.
	Listen string
	// Hosts are the values of Host that are served, without regard to case: a
	// name stands for itself with any port, name:port for that port alone.
	// Default: all.
	Hosts []string
	// TrustedProxies are the peers whose X-Forwarded-For is believed. Default:
	// none.
	TrustedProxies []netip.Prefix

	// MaxHeaderBytes bounds the header lines of a request, MaxHeaderLines their
	// number, MaxTargetBytes the path with its query. Default 16 KiB, 100, 8 KiB.
	MaxHeaderBytes int
	MaxHeaderLines int
	MaxTargetBytes int

	// MaxBodyMemory bounds what the bodies of all requests that are being read or
	// served may take together, beyond the first 64 KiB of each. A body for which
	// there is no room is fault.Overloaded. Default 256 MiB.
	MaxBodyMemory int64

	// MaxAnswerMemory limits the memory of answers of more than 16 KiB that wait for
	// their readers, MaxAnswerMemoryPerIP that of the answers to one client address (one
	// /64 for IPv6). When a limit is exceeded, the slowest reader is disconnected. Behind
	// a trusted proxy the client is the one that the proxy names; if it names none, only
	// the first limit applies. Default 256 MiB, and three quarters of MaxAnswerMemory.
	MaxAnswerMemory      int64
	MaxAnswerMemoryPerIP int64

	// ReadTimeout is the time from the first byte of a request to the last of
	// its body; WriteTimeout the time to take an answer; IdleTimeout the time a
	// connection may wait for its next request. Default 10 s, 30 s, 60 s.
	ReadTimeout  time.Duration
	WriteTimeout time.Duration
	IdleTimeout  time.Duration

	// MaxConns are the connections open at a time, or fewer where the process may
	// not have as many files open: further ones wait in the kernel's queue. MaxConnsPerIP are those of one address (of one /64 for
	// IPv6, and of a trusted proxy any number): further ones are closed
	// unanswered. Default 10,000 and 7,500, so that no address has all of them.
	MaxConns      int
	MaxConnsPerIP int

	// Logger takes what happens to connections, panics, and the causes of
	// refusals. It has to redact: causes may quote anything.
	Logger *slog.Logger

	// BeforeRefusal may add headers to the answer of a request that New's handle will
	// not see, though its head could be read: its query is wrong. nil: nobody does.
	BeforeRefusal func(*Exchange)
}

// WithDefaults returns a copy with every zero field set to its default.
func (o Options) WithDefaults() Options {
	set(&o.Listen, "127.0.0.1:8080")
	set(&o.MaxHeaderBytes, 16<<10)
	set(&o.MaxHeaderLines, 100)
	set(&o.MaxTargetBytes, 8<<10)
	set(&o.MaxBodyMemory, 256<<20)
	set(&o.MaxAnswerMemory, 256<<20)
	set(&o.MaxAnswerMemoryPerIP, max(1, o.MaxAnswerMemory/4*3))
	set(&o.ReadTimeout, 10*time.Second)
	set(&o.WriteTimeout, 30*time.Second)
	set(&o.IdleTimeout, 60*time.Second)
	set(&o.MaxConns, 10_000)
	set(&o.MaxConnsPerIP, max(1, o.MaxConns/4*3))
	return o
}

func set[T comparable](field *T, value T) {
	var zero T
	if *field == zero {
		*field = value
	}
}

// Validate reports every value that cannot be, each under the name of its key.
// It is for options that have their defaults.
func (o Options) Validate() error {
	var all []error
	atLeast := func(key string, n, least int) {
		if n < least {
			all = append(all, fmt.Errorf("%s is %d, and has to be at least %d", key, n, least))
		}
	}
	atLeast("header_bytes", o.MaxHeaderBytes, 256)
	atLeast("header_lines", o.MaxHeaderLines, 1)
	atLeast("target_bytes", o.MaxTargetBytes, 1)
	atLeast("max_connections", o.MaxConns, 1)
	atLeast("max_connections_per_ip", o.MaxConnsPerIP, 1)
	positive := func(key string, d time.Duration) {
		if d <= 0 {
			all = append(all, fmt.Errorf("%s is %s, and has to be more than 0", key, d))
		}
	}
	positive("read_timeout", o.ReadTimeout)
	positive("write_timeout", o.WriteTimeout)
	positive("idle_timeout", o.IdleTimeout)
	for _, h := range o.Hosts {
		if !ValidHost([]byte(h)) {
			all = append(all, fmt.Errorf("hosts has %q, which is no host name", h))
		}
	}
	if o.Logger == nil {
		all = append(all, errors.New("no logger"))
	}
	return errors.Join(all...)
}

// reservedFiles stay free of connections: the store, the modules and the
// operators' socket need some.
const reservedFiles = 256

// withinFiles lowers MaxConns to what the process's limit of open files allows.
func (o Options) withinFiles() Options {
	var files syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &files); err != nil {
		return o
	}
	room := files.Cur - min(reservedFiles, files.Cur/2)
	if uint64(o.MaxConns) <= room {
		return o
	}
	o.Logger.Warn("fewer connections than max_connections: the process may not open more files",
		slog.Uint64("connections", room), slog.Int("max_connections", o.MaxConns), slog.Uint64("open_files", files.Cur))
	o.MaxConns = int(room)
	o.MaxConnsPerIP = min(o.MaxConnsPerIP, max(1, o.MaxConns/4*3))
	return o
}
