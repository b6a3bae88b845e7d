package etcdlog

import clientv3 "go.etcd.io/etcd/client/v3"

// Etcd returns etcd's own client.
func (c *Client) Etcd() *clientv3.Client { return c.etcd }
