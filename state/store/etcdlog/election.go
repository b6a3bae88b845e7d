package etcdlog

import (
	"context"
	"fmt"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/concurrency"
)

const (
	// keyOwner is before the keys of the candidates.
	keyOwner = "owner"
	// campaignPause is the pause before a campaign that failed begins again.
	campaignPause = 500 * time.Millisecond
	// revokeWait limits the wait until a candidate has given up.
	revokeWait = 5 * time.Second
)

// Ownership is what the winner of an election has until it ends. The servers decide by their own
// clocks when a node that they do not hear from has lost it, and that node by its own; so for a moment
// two nodes may believe that they own it. Work that only one node may do must
// call store.Tx.CheckOwner.
type Ownership struct {
	session *concurrency.Session
	stop    context.CancelFunc
}

// Campaign waits until this node, with this name, is the owner, and retries after errors until ctx ends.
// ttl must be at least a second and is truncated to seconds. The servers elect another owner if they do
// not hear from a node for ttl.
func (c *Client) Campaign(ctx context.Context, name string, ttl time.Duration) (*Ownership, error) {
	for {
		o, err := c.campaign(ctx, name, ttl)
		if err == nil {
			return o, nil
		}
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("become the owner: %w", context.Cause(ctx))
		case <-c.etcd.Ctx().Done():
			return nil, fmt.Errorf("become the owner: %w", err)
		case <-time.After(campaignPause):
		}
	}
}

func (c *Client) campaign(ctx context.Context, name string, ttl time.Duration) (*Ownership, error) {
	// What the owner keeps must outlive ctx.
	session, stop := context.WithCancel(c.etcd.Ctx())
	unlink := context.AfterFunc(ctx, stop)
	s, err := concurrency.NewSession(c.etcd, concurrency.WithTTL(int(ttl/time.Second)), concurrency.WithContext(session))
	if err != nil {
		stop()
		return nil, err
	}
	o := &Ownership{s, stop}
	won := make(chan error, 1)
	c.tasks.Go(func() { // which may be unable to end with ctx
		won <- concurrency.NewElection(s, keyOwner).Campaign(clientv3.WithRequireLeader(s.Ctx()), name)
	})
	select {
	case err = <-won:
	case <-s.Done():
		err = context.Canceled
	}
	if err == nil && unlink() {
		return o, nil
	}
	c.tasks.Go(func() {
		ctx, cancel := context.WithTimeout(c.etcd.Ctx(), revokeWait)
		defer cancel()
		_ = o.Resign(ctx) // else it ends after ttl
	})
	if err == nil {
		err = context.Cause(ctx)
	}
	return nil, err
}

// Done is closed when this node is not the owner any more: after Resign, or because the servers could
// not be reached.
func (o *Ownership) Done() <-chan struct{} { return o.session.Done() }

// Resign ends the ownership, so that another node can be the owner. After an error that happens
// after the ttl. It may be called twice.
func (o *Ownership) Resign(ctx context.Context) error {
	o.session.Orphan()
	o.stop()
	if _, err := o.session.Client().Revoke(ctx, o.session.Lease()); err != nil {
		return fmt.Errorf("give up the ownership: %w", err)
	}
	return nil
}

// Owner returns the name of the owner, "" if there is none.
func (c *Client) Owner(ctx context.Context) (name string, err error) {
	got, err := c.etcd.Get(ctx, keyOwner+"/", clientv3.WithFirstCreate()...)
	if err != nil {
		return "", fmt.Errorf("ask for the owner: %w", err)
	}
	if len(got.Kvs) == 0 {
		return "", nil
	}
	return string(got.Kvs[0].Value), nil
}
