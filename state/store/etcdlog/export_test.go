package etcdlog

import (
	"context"
	"log/slog"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap/zapcore"
)

// Etcd returns etcd's own client.
func (c *Client) Etcd() *clientv3.Client { return c.etcd }

// Left is closed when the client uses another server than now.
func (c *Client) Left() <-chan struct{} {
	_, left := c.current.address()
	return left
}

// Lease is what the owner renews.
func (o *Ownership) Lease() clientv3.LeaseID { return o.session.Lease() }

// ReturnToPreferred uses the first address again, as FollowMembers does.
func (c *Client) ReturnToPreferred(ctx context.Context) { c.current.returnToPreferred(ctx) }

// WarningsTo returns what an etcd server logs to.
func WarningsTo(logger *slog.Logger) zapcore.Core { return newEtcdLog(logger) }
