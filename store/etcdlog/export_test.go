package etcdlog

import (
	"context"
	"log/slog"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap/zapcore"
)

// Etcd returns etcd's own client.
func (c *Client) Etcd() *clientv3.Client { return c.etcd }

// ReturnToPreferred uses the first address again, as FollowMembers does.
func (c *Client) ReturnToPreferred(ctx context.Context) { c.current.returnToPreferred(ctx) }

// WarningsTo returns what an etcd server logs to.
func WarningsTo(logger *slog.Logger) zapcore.Core { return newEtcdLog(logger) }
