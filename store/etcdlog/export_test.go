package etcdlog

import (
	"log/slog"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap/zapcore"
)

// Etcd returns etcd's own client.
func (c *Client) Etcd() *clientv3.Client { return c.etcd }

// WarningsTo returns what a server of etcd logs to.
func WarningsTo(logger *slog.Logger) zapcore.Core { return newEtcdLog(logger) }
