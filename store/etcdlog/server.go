package etcdlog

import (
	"context"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/server/v3/embed"
	"go.uber.org/zap"

	"runner.example/internal/fault"
)

const (
	// MaxEntryBytes is the length of the longest entry.
	MaxEntryBytes = 9 << 20
	// maxRequestBytes is what a server accepts: an entry with its key.
	maxRequestBytes = 10 << 20
	// quota limits the file of a server. A full server takes no entries until the log is truncated.
	quota = 2 << 30
	// snapshotEvery is after how many changes a server begins a new snapshot, and catchUp how many
	// of the changes before it stays in memory for servers that lag behind.
	snapshotEvery, catchUp = 1000, 200
	// tick is the part of the election time after which servers hear from their leader.
	tick = 10
)

// Member is a server of the cluster.
type Member struct {
	Name string
	// Peers is the address for the other servers, such as https://10.0.0.1:9444.
	Peers string
}

// ServerOptions configure a Server.
type ServerOptions struct {
	// Dir is its data directory.
	Dir string
	// Self is this server, and Members are all servers of a new cluster, with this one.
	Self    Member
	Members []Member
	// Clients is the address for nodes.
	Clients string
	// Joins: the server was added to a cluster that exists.
	Joins bool
	// Election is after how long without a leader the servers elect another one.
	Election time.Duration
	// ReadyWait is how long StartServer waits until the server has found the others.
	ReadyWait time.Duration
}

// Server is a server of etcd in this process.
type Server struct{ etcd *embed.Etcd }

// StartServer starts a server, and waits until it has found a majority of the servers. Close it.
func StartServer(ctx context.Context, opt ServerOptions) (*Server, error) {
	c := embed.NewConfig()
	c.Name, c.Dir = opt.Self.Name, opt.Dir
	var err error
	parse := func(text string) []url.URL {
		u, failed := url.Parse(text)
		if failed != nil || u.Host == "" {
			err = fault.New(fault.Invalid, "the address %q of a server of the log is not valid: it is http or https, a host and a port", text)
			return nil
		}
		return []url.URL{*u}
	}
	c.ListenPeerUrls, c.ListenClientUrls = parse(opt.Self.Peers), parse(opt.Clients)
	c.AdvertisePeerUrls, c.AdvertiseClientUrls = c.ListenPeerUrls, c.ListenClientUrls
	if err != nil {
		return nil, err
	}
	var members []string
	for _, m := range opt.Members {
		members = append(members, m.Name+"="+m.Peers)
	}
	slices.Sort(members)
	c.InitialCluster, c.InitialClusterToken = strings.Join(members, ","), "runner"
	if opt.Joins {
		c.ClusterState = embed.ClusterStateFlagExisting
	}
	c.TickMs, c.ElectionMs = uint(opt.Election.Milliseconds()/tick), uint(opt.Election.Milliseconds())
	c.MaxRequestBytes, c.MaxTxnOps, c.QuotaBackendBytes = maxRequestBytes, deleteBatch, quota
	c.SnapshotCount, c.SnapshotCatchUpEntries = snapshotEvery, catchUp
	c.EnableGRPCGateway = false
	c.ZapLoggerBuilder = embed.NewZapLoggerBuilder(zap.NewNop())
	e, err := embed.StartEtcd(c)
	if err != nil {
		return nil, fmt.Errorf("start the server of the log: %w", err)
	}
	s := &Server{e}
	late := time.NewTimer(opt.ReadyWait)
	defer late.Stop()
	select {
	case <-e.Server.ReadyNotify():
		return s, nil
	case err = <-e.Err():
	case <-late.C:
		err = fault.New(fault.Unavailable, "a majority of the servers of the log could not be reached in %s", opt.ReadyWait)
	case <-ctx.Done():
		err = context.Cause(ctx)
	}
	e.Server.Stop() // before Close, which else waits until the server is ready
	s.Close()
	return nil, err
}

// Stopped is closed when the server has ended.
func (s *Server) Stopped() <-chan struct{} { return s.etcd.Server.StopNotify() }

// Close stops the server.
func (s *Server) Close() { s.etcd.Close() }

// Dial returns a client of the servers at the addresses for nodes. Without a connection it tries
// again. Close it.
func Dial(addresses []string) (*clientv3.Client, error) {
	c, err := clientv3.New(clientv3.Config{
		Endpoints:            addresses,
		DialKeepAliveTime:    time.Second,
		DialKeepAliveTimeout: time.Second,
		MaxCallSendMsgSize:   maxRequestBytes,
		Logger:               zap.NewNop(),
	})
	if err != nil {
		return nil, fmt.Errorf("dial the servers of the log: %w", err)
	}
	return c, nil
}
