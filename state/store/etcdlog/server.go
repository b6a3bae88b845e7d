package etcdlog

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"go.etcd.io/etcd/client/pkg/v3/transport"
	"go.etcd.io/etcd/client/pkg/v3/types"
	"go.etcd.io/etcd/server/v3/embed"
	"go.etcd.io/etcd/server/v3/storage/wal"

	"runner.example/internal/fault"
	"runner.example/internal/netaddr"
	"runner.example/internal/settings"
	"runner.example/internal/wait"
)

const (
	// MaxEntryBytes is the length of the longest entry.
	MaxEntryBytes = 9 << 20
	// maxRequestBytes is what a server accepts: an entry with its key.
	maxRequestBytes = 10 << 20
	// snapshotEvery is after how many changes a server begins a new snapshot, and catchUp how many
	// of the changes before it stays in memory for servers that lag behind.
	snapshotEvery, catchUp = 1000, 200
	// tick is the part of the election time after which servers hear from their leader.
	tick = 10
	// startPause is the pause before a server that did not start is started again.
	startPause = time.Second
	// memberWait limits the wait for a member's answer before a server joins.
	memberWait = 5 * time.Second
	// stopWait limits the wait for a server that is stopped.
	stopWait = 10 * time.Second
)

// ErrRemoved means that the server was removed from the cluster. It does not start again.
var ErrRemoved = errors.New("the server was removed from the log's cluster")

// TLS names files in PEM: a certificate with its key, and the certificate of the authority that
// has signed those of all servers and nodes. The certificate and the key are read again for each
// connection, so they may be replaced; the one of the authority is read once.
type TLS struct{ CertFile, KeyFile, CAFile string }

func (t *TLS) info() transport.TLSInfo {
	return transport.TLSInfo{
		CertFile: t.CertFile, KeyFile: t.KeyFile, TrustedCAFile: t.CAFile,
		ClientCertAuth: true, SkipClientSANVerify: true, // a node may have another address behind NAT
	}
}

// Member is a server of the cluster.
type Member struct {
	Name string
	// PeerURL is the address for the other servers, such as https://10.0.0.1:9444.
	PeerURL string
}

// ServerOptions configure a Server.
type ServerOptions struct {
	// Dir is its data directory.
	Dir string
	// Self is this server, and Members are all servers of a new cluster, with this one; with Joins,
	// those that AddLearner returned. A server that has its data directory does not need them.
	Self    Member
	Members []Member
	// ClientURL is the address for nodes.
	ClientURL string
	// ListenPeers and ListenClients are the IP addresses with ports where the server listens; empty:
	// those in the addresses for others.
	ListenPeers, ListenClients string
	// TLS is required of the other servers and of nodes, whose certificates its authority has signed;
	// nil: connections are neither encrypted nor authenticated.
	TLS *TLS
	// Joins: the server was added to a cluster that exists.
	Joins bool
	// Election is after how long without a leader the servers elect another one.
	Election time.Duration
	// ReadyWait is how long StartServer waits until the server has found the others.
	ReadyWait time.Duration
	// QuotaBytes limits the file of the server. A full server takes no entries until the log is
	// truncated.
	QuotaBytes int64 `unit:"size" default:"2gb"`
	// Logger gets etcd's warnings and errors; nil: they are discarded.
	Logger *slog.Logger
}

// Server is an etcd server in this process. Any goroutine may call its methods.
type Server struct {
	opt     ServerOptions
	log     *etcdLog
	stop    context.CancelFunc
	ready   chan struct{}
	failed  chan struct{} // closed when an attempt failed
	stopped chan struct{}

	mu  sync.Mutex
	err error
}

// RunServer starts a server in the background, and tries again until it runs: with Joins it needs
// one of the others. The server is ready when a majority of all is there. Close it.
func RunServer(opt ServerOptions) (*Server, error) {
	settings.FillZero(&opt)
	if opt.Logger == nil {
		opt.Logger = slog.New(slog.DiscardHandler)
	}
	ctx, stop := context.WithCancel(context.Background())
	s := &Server{
		opt: opt, log: newEtcdLog(opt.Logger), stop: stop,
		ready: make(chan struct{}), failed: make(chan struct{}), stopped: make(chan struct{}),
	}
	if _, err := s.config(); err != nil {
		stop()
		return nil, err
	}
	go s.run(ctx)
	return s, nil
}

// StartServer starts a server, and waits until it has found a majority of the servers. Close it.
func StartServer(ctx context.Context, opt ServerOptions) (*Server, error) {
	s, err := RunServer(opt)
	if err != nil {
		return nil, err
	}
	late := time.NewTimer(opt.ReadyWait)
	defer late.Stop()
	select {
	case <-s.ready:
		return s, nil
	case <-s.failed:
		err = s.Err()
	case <-late.C:
		err = fault.New(fault.Unavailable, "a majority of the etcd servers could not be reached in %s", opt.ReadyWait)
	case <-ctx.Done():
		err = context.Cause(ctx)
	}
	s.Close()
	return nil, err
}

// Ready is closed when the server has found a majority of the servers for the first time.
func (s *Server) Ready() <-chan struct{} { return s.ready }

// Stopped is closed when the server has ended: after Close, or because it cannot run any more.
func (s *Server) Stopped() <-chan struct{} { return s.stopped }

// Err returns why the server does not run, nil if it runs or was closed. It matches ErrRemoved if
// the server was removed from its cluster, and syscall.ENOSPC or EDQUOT if the disk is full.
func (s *Server) Err() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.err
}

// Close stops the server, also one that is being started. It may be called twice. A server that does
// not end in 10 seconds is left behind: then its directory must not be used until the process ends.
func (s *Server) Close() {
	s.log.mute()
	s.stop()
	<-s.stopped
}

// setErr sets what Err returns, and reports whether it is another cause than before.
func (s *Server) setErr(err error) (changed bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	changed = err != nil && (s.err == nil || s.err.Error() != err.Error())
	s.err = err
	return changed
}

// HasLog reports whether a server has begun its log in the data directory dir. Before that etcd makes other files there: a
// server that ended in between would begin a log of its own with them, without the others.
func HasLog(dir string) bool { return wal.Exist(filepath.Join(dir, "member", "wal")) }

func (s *Server) run(ctx context.Context) {
	defer close(s.stopped)
	for {
		err := s.serve(ctx)
		if ctx.Err() != nil {
			s.setErr(nil)
			return
		}
		final := errors.Is(err, ErrRemoved) || errors.Is(err, errFatal)
		switch changed := s.setErr(err); {
		case final:
			s.opt.Logger.Error("etcd server stopped", "cause", err)
		case changed:
			s.opt.Logger.Warn("etcd server failed; retrying", "cause", err)
		}
		select {
		case <-s.failed:
		default:
			close(s.failed)
		}
		if final {
			return
		}
		_ = wait.For(ctx, startPause)
	}
}

// started is what an attempt to start a server ended with.
type started struct {
	etcd *embed.Etcd
	err  error
}

// serve starts the server and returns when it has ended, or why it could not be started.
func (s *Server) serve(ctx context.Context) error {
	c, err := s.config()
	hasLog := err == nil && HasLog(c.Dir)
	if err == nil && s.opt.Joins && !hasLog {
		err = findMember(ctx, c) // so that Close need not wait for etcd, which asks each for 10 s
	}
	if err != nil {
		return err
	}
	result := make(chan started, 1)
	go func() {
		r := started{err: errFatal} // etcd may end the goroutine: see etcdLog
		defer func() {
			if cause := recover(); cause != nil { // with damaged files
				s.log.end(fmt.Errorf("%w, its files are damaged: %v", errFatal, cause))
			}
			result <- r
		}()
		r.etcd, r.err = embed.StartEtcd(c)
	}()
	var e *embed.Etcd
	select {
	case r := <-result:
		if _, network := errors.AsType[*net.OpError](r.err); r.err != nil && hasLog && !network &&
			!errors.Is(r.err, errFatal) {
			r.err = fmt.Errorf("%w, its files are damaged: %w", errFatal, r.err) // and it keeps them locked
		}
		if r.err != nil {
			return fmt.Errorf("start the etcd server: %w", s.log.explain(r.err))
		}
		e = r.etcd
	case <-ctx.Done():
		stopWithin(func() {
			if r := <-result; r.etcd != nil {
				stopEtcd(r.etcd)
			}
		})
		return ctx.Err()
	}
	ready := e.Server.ReadyNotify()
	for {
		select {
		case <-ready:
			ready = nil
			s.setErr(nil)
			select {
			case <-s.ready:
			default:
				close(s.ready)
			}
			continue
		case err = <-e.Err():
			if err == nil { // the channel is closed
				err = errStopped
			}
		case <-e.Server.StopNotify():
			err = errStopped
		case <-s.log.fatal:
			err = errFatal
		case <-ctx.Done():
			err = ctx.Err()
		}
		break
	}
	stopWithin(func() { stopEtcd(e) })
	return fmt.Errorf("run the etcd server: %w", s.log.explain(err))
}

// findMember returns nil if another server answers.
func findMember(ctx context.Context, c *embed.Config) error {
	transport := &http.Transport{DisableKeepAlives: true}
	if !c.PeerTLSInfo.Empty() {
		config, err := c.PeerTLSInfo.ClientConfig()
		if err != nil {
			return fmt.Errorf("read the certificates for the log: %w", err)
		}
		transport.TLSClientConfig = config
	}
	client := &http.Client{
		Transport: transport, Timeout: memberWait,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	err := errors.New("it has no address of one")
	for _, member := range strings.Split(c.InitialCluster, ",") {
		name, address, _ := strings.Cut(member, "=")
		if name == c.Name {
			continue
		}
		var request *http.Request
		if request, err = http.NewRequestWithContext(ctx, http.MethodGet, address+"/members", nil); err != nil {
			continue
		}
		var answer *http.Response
		if answer, err = client.Do(request); err == nil {
			answer.Body.Close()
			return nil
		}
	}
	return fmt.Errorf("no etcd server answers: %w", err)
}

var errStopped = errors.New("it has stopped")

func stopEtcd(e *embed.Etcd) {
	stopped := make(chan struct{})
	go func() { // Close waits until a server is ready or stopped
		defer close(stopped)
		e.Server.Stop()
	}()
	e.Close() // the connections of nodes first, which a server that cannot stop must not keep
	<-stopped
}

// stopWithin waits for stop, but not longer than stopWait.
func stopWithin(stop func()) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		stop()
	}()
	select {
	case <-done:
	case <-time.After(stopWait):
	}
}

// config returns the configuration of etcd.
func (s *Server) config() (*embed.Config, error) {
	opt := s.opt
	c := embed.NewConfig()
	c.Name, c.Dir = opt.Self.Name, opt.Dir
	peers, err := parseAddress(opt.Self.PeerURL, opt.TLS)
	if err != nil {
		return nil, err
	}
	clients, err := parseAddress(opt.ClientURL, opt.TLS)
	if err != nil {
		return nil, err
	}
	listen := func(advertised url.URL, at string) []url.URL {
		if at != "" {
			advertised.Host = at
		}
		return []url.URL{advertised}
	}
	c.AdvertisePeerUrls, c.AdvertiseClientUrls = []url.URL{peers}, []url.URL{clients}
	c.ListenPeerUrls, c.ListenClientUrls = listen(peers, opt.ListenPeers), listen(clients, opt.ListenClients)
	var members []string
	for _, m := range opt.Members {
		if m.Name != opt.Self.Name {
			members = append(members, m.Name+"="+m.PeerURL)
		}
	}
	members = append(members, opt.Self.Name+"="+opt.Self.PeerURL)
	slices.Sort(members)
	c.InitialCluster, c.InitialClusterToken = strings.Join(members, ","), "runner"
	if opt.Joins {
		c.ClusterState = embed.ClusterStateFlagExisting
	}
	if opt.TLS != nil {
		c.PeerTLSInfo, c.ClientTLSInfo = opt.TLS.info(), opt.TLS.info()
		c.TlsMinVersion = "TLS1.3"
	}
	c.TickMs, c.ElectionMs = uint(opt.Election.Milliseconds()/tick), uint(opt.Election.Milliseconds())
	c.MaxRequestBytes, c.MaxTxnOps = maxRequestBytes, deleteBatch
	c.QuotaBackendBytes = opt.QuotaBytes
	c.SnapshotCount, c.SnapshotCatchUpEntries = snapshotEvery, catchUp
	c.EnableGRPCGateway = false
	c.ZapLoggerBuilder = embed.NewZapLoggerBuilder(s.log.zap())
	return c, nil
}

// parseAddress reads the address of an etcd server. It is https with TLS only.
func parseAddress(text string, tls *TLS) (url.URL, error) {
	scheme := "http"
	if tls != nil {
		scheme = "https"
	}
	u, err := url.Parse(text)
	if err == nil && u.Scheme == scheme {
		_, err = types.NewURLs([]string{text})
	}
	if err != nil || u.Scheme != scheme || u.Hostname() == "" || !netaddr.ValidPort(u.Port()) {
		return url.URL{}, invalidAddress(text, scheme)
	}
	return *u, nil
}

// invalidAddress is the error for the address of a server. It does not show a password in it.
func invalidAddress(text, scheme string) error {
	if i := strings.LastIndexByte(text, '@'); i >= 0 {
		text = "…" + text[i:]
	}
	return fault.New(fault.Invalid, "the address %q of an etcd server is not valid: it must be %s://, a host and a port", text, scheme)
}

// CheckAddress returns an error if text is not the address of an etcd server, with TLS or without.
func CheckAddress(text string) error {
	files := &TLS{}
	if strings.HasPrefix(text, "http://") {
		files = nil
	}
	_, err := parseAddress(text, files)
	return err
}
