package etcdlog

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"

	"runner.example/internal/fault"
)

// keyCluster has the identity of the cluster.
const keyCluster = "cluster"

// ErrOtherCluster means that the log is that of another cluster.
var ErrOtherCluster error = fault.New(fault.Conflict, "the log belongs to another cluster")

// ErrRewound means that the log does not reach the revision that a node has applied: its servers have
// lost entries, or were replaced.
var ErrRewound = errors.New("the log ends before what this node has applied")

// Client is connected to etcd servers. Any goroutine may call its methods.
type Client struct {
	etcd    *clientv3.Client
	current *current
	tasks   sync.WaitGroup // in the background, until etcd is closed
}

// Dial returns a client of the servers at the addresses for nodes; tls is as in ServerOptions. The
// client uses one server at a time: the first one, and the next one if that hangs or does not run.
// Without a connection it tries again. The names in the addresses must be those in the servers'
// certificates. Close it.
func Dial(addresses []string, tls *TLS) (*Client, error) {
	config, err := dialConfig(addresses, tls)
	if err != nil {
		return nil, err
	}
	etcd, err := clientv3.New(clientv3.Config{
		Endpoints:            addresses[:1],
		TLS:                  config,
		DialKeepAliveTime:    time.Second,
		DialKeepAliveTimeout: time.Second,
		MaxCallSendMsgSize:   maxRequestBytes,
		Logger:               zap.NewNop(),
	})
	if err != nil {
		return nil, fmt.Errorf("dial the etcd servers: %w", err)
	}
	c := &Client{etcd: etcd, current: newCurrent(etcd, slices.Clone(addresses))}
	c.tasks.Go(c.current.probe)
	c.tasks.Go(c.current.connect)
	return c, nil
}

func dialConfig(addresses []string, files *TLS) (*tls.Config, error) {
	if len(addresses) == 0 {
		return nil, fault.New(fault.Invalid, "no address of an etcd server is known")
	}
	for _, a := range addresses {
		if _, err := parseAddress(a, files); err != nil {
			return nil, err
		}
	}
	if files == nil {
		return nil, nil
	}
	config, err := files.info().ClientConfig()
	if err != nil {
		return nil, fmt.Errorf("read the certificates for the log: %w", err)
	}
	config.MinVersion = tls.VersionTLS13
	return config, nil
}

// Close closes the connections, and ends what the client does in the background.
func (c *Client) Close() {
	_ = c.etcd.Close() // it was open
	c.tasks.Wait()
}

// Addresses returns the addresses of the servers that the client may use.
func (c *Client) Addresses() []string { return c.current.all() }

// Sync makes the client use the voters that the cluster has now.
func (c *Client) Sync(ctx context.Context) error {
	members, err := c.Members(ctx)
	if err != nil {
		return err
	}
	var addresses []string
	for _, m := range members {
		if m.Name != "" && !m.Learner {
			addresses = append(addresses, m.ClientURLs...)
		}
	}
	if len(addresses) > 0 {
		c.current.set(addresses)
	}
	return nil
}

// FollowMembers calls Sync at intervals until the client is closed, and then uses the server again whose
// address was the first one for Dial, if it works. It is not for a cluster whose
// servers do not know by which addresses the client reaches them. Call it once.
func (c *Client) FollowMembers(every time.Duration) {
	c.tasks.Go(func() {
		ticks := time.NewTicker(every)
		defer ticks.Stop()
		for {
			select {
			case <-c.etcd.Ctx().Done():
				return
			case <-ticks.C:
			}
			ctx, cancel := context.WithTimeout(c.etcd.Ctx(), every)
			_ = c.Sync(ctx) // the addresses that it has are kept
			c.current.returnToPreferred(ctx)
			cancel()
		}
	})
}

// Claim gives the log to the cluster with this identity, unless it belongs to one already. The error
// matches ErrOtherCluster if that is another one. On a node that has
// applied entries call Check first: Claim accepts an empty log.
func (c *Client) Claim(ctx context.Context, id string) error {
	got, err := c.etcd.Txn(ctx).
		If(clientv3.Compare(clientv3.CreateRevision(keyCluster), "=", 0)).
		Then(clientv3.OpPut(keyCluster, id)).
		Else(clientv3.OpGet(keyCluster)).
		Commit()
	if err != nil {
		return fmt.Errorf("read the identity of the log: %w", err)
	}
	if got.Succeeded {
		return nil
	}
	if kvs := got.Responses[0].GetResponseRange().Kvs; len(kvs) == 1 && string(kvs[0].Value) != id {
		return fmt.Errorf("%w: %q, and this node is of %q", ErrOtherCluster, kvs[0].Value, id)
	}
	return nil
}

// Check returns nil if a store that has applied a revision can follow the log. Otherwise the error
// matches ErrRewound or ErrTruncated.
func (c *Client) Check(ctx context.Context, applied uint64) error {
	tip, err := c.tip(ctx)
	switch {
	case err != nil:
		return err
	case tip < applied:
		return fmt.Errorf("%w: it ends at revision %d, and this node has applied %d", ErrRewound, tip, applied)
	case tip == applied:
		return nil
	}
	next := int64(applied) + 1
	if _, err = c.etcd.Get(ctx, keyTip, clientv3.WithRev(next)); err == nil {
		return nil
	}
	if errors.Is(err, rpctypes.ErrCompacted) {
		ctx, cancel := context.WithCancel(clientv3.WithRequireLeader(ctx))
		defer cancel()
		for part := range c.etcd.Watch(ctx, keyTip, clientv3.WithRev(next)) {
			if part.CompactRevision != 0 {
				return c.lacksNone(ctx, uint64(next), part.CompactRevision)
			}
			err = cmp.Or(part.Err(), err)
		}
		err = cmp.Or(context.Cause(ctx), err, errStopped)
	}
	return fmt.Errorf("look for old entries of the log: %w", err)
}

// lacksNone returns an error that matches ErrTruncated if entries from next on are before the revision
// at which the history begins.
func (c *Client) lacksNone(ctx context.Context, next uint64, begins int64) error {
	tip, err := c.tip(ctx, clientv3.WithRev(begins))
	if err == nil && tip >= next {
		return fmt.Errorf("%w: its history begins at revision %d, and the next one of this node is %d",
			ErrTruncated, begins, next)
	}
	return err
}

// tip returns the revision of the newest entry.
func (c *Client) tip(ctx context.Context, options ...clientv3.OpOption) (uint64, error) {
	got, err := c.etcd.Get(ctx, keyTip, options...)
	switch {
	case err != nil:
		return 0, fmt.Errorf("read the tip of the log: %w", err)
	case len(got.Kvs) == 0:
		return 0, nil
	}
	return uint64(got.Kvs[0].ModRevision), nil
}
