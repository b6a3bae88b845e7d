package cluster

import (
	"context"
	"errors"
	"slices"
	"time"

	"runner.example/internal/fault"
	"runner.example/internal/wait"
	"runner.example/state/store"
	"runner.example/state/store/etcdlog"
)

// Leave removes a node from the cluster permanently: this one, or another one, which need not
// run. It reports whether it was this one, whose server must end then. A node that was removed may
// join again with a new data directory.
//
// A voter is marked as leaving, its etcd server is removed, and then its record. After a crash in
// between Status shows it as leaving, and Leave may be called again. A member of etcd without a record
// is removed by the name that Status shows.
func (n *Node) Leave(ctx context.Context, name string) (self bool, err error) {
	if name == "" {
		name = n.id.Name
	}
	if self = name == n.id.Name; self {
		n.setLeaving(true)
	}
	err = n.leave(ctx, name)
	switch {
	case err != nil && self:
		n.setLeaving(false)
	case err == nil:
		n.logger.Info("node removed from the cluster", "node", name)
		if self {
			err = n.markLeft()
		}
	}
	return self && err == nil, err
}

func (n *Node) leave(ctx context.Context, name string) error {
	var leaving record
	_, err := n.store.Update(ctx, func(tx *store.Tx) (err error) {
		if leaving, err = n.leaver(tx, name); err != nil || !n.hasServer(leaving) {
			return err
		}
		leaving.Leaving = true
		return putRecord(tx, leaving)
	})
	if errors.Is(err, store.ErrNotFound) {
		return n.removeUnlisted(ctx, name)
	}
	if err != nil {
		return err
	}
	if n.hasServer(leaving) {
		if err := n.removeServer(ctx, leaving.Peer); err != nil {
			return err
		}
	}
	_, err = n.store.Update(ctx, func(tx *store.Tx) error {
		now, err := recordOf(tx, name)
		if err != nil || !slices.Equal(now.Certificate, leaving.Certificate) {
			return ignoreNotFound(err) // another Leave was faster
		}
		return tx.Delete([]byte(prefixNodes + name))
	})
	return err
}

func ignoreNotFound(err error) error {
	if errors.Is(err, store.ErrNotFound) {
		return nil
	}
	return err
}

// leaver returns the record of a node that may leave.
func (n *Node) leaver(tx *store.Tx, name string) (leaving record, err error) {
	if err := n.checkSelf(tx); err != nil {
		return leaving, err
	}
	all, err := recordsIn(tx)
	if err != nil {
		return leaving, err
	}
	others := 0 // that vote
	for _, r := range all {
		switch {
		case r.Name == name:
			leaving = r
		case r.Role == Voter && !r.Leaving:
			others++
		}
	}
	switch {
	case leaving.Name == "":
		return leaving, store.ErrNotFound
	case leaving.Role == Voter && others == 0:
		return leaving, fault.New(fault.Invalid,
			"the node %q is the last voter: stop it, and run runner cluster dissolve", name)
	}
	return leaving, nil
}

// hasServer reports whether a node runs an etcd server of the cluster.
func (n *Node) hasServer(r record) bool { return r.Role == Voter && len(n.id.Endpoints) == 0 }

// removeServer removes the etcd server of a voter. One that was never added is not there. If etcd
// refuses it, the voter stays a node.
func (n *Node) removeServer(ctx context.Context, p Peer) error {
	err := n.removeMember(ctx, func(m etcdlog.MemberInfo) bool {
		return slices.Contains(m.PeerURLs, etcdPeerURL(p.Address))
	})
	if err == nil || errors.Is(err, errNotRemoved) {
		return err
	}
	_, failed := n.store.Update(ctx, func(tx *store.Tx) error {
		r, err := recordOf(tx, p.Name)
		if err != nil {
			return ignoreNotFound(err)
		}
		r.Leaving = false
		return putRecord(tx, r)
	})
	return errors.Join(err, failed)
}

// removeTimeout limits the removal of an etcd server.
const removeTimeout = 20 * time.Second

// errNotRemoved means that it is not known whether a member of etcd was removed.
var errNotRemoved = errors.New("the etcd servers have not confirmed the removal")

// removeMember removes a member of etcd if there is one. The error is that of etcd if it refuses, else
// it matches errNotRemoved.
func (n *Node) removeMember(ctx context.Context, is func(etcdlog.MemberInfo) bool) error {
	ctx, cancel := context.WithTimeout(ctx, removeTimeout)
	defer cancel()
	for {
		err := n.tryRemove(ctx, is)
		// A refusal is a fault. After another error the server may be removed: it ends in the middle of its
		// answer if it was asked itself.
		if _, refused := errors.AsType[*fault.Fault](err); err == nil || refused {
			return err
		}
		if wait.For(ctx, pollInterval/4) != nil {
			return fault.Wrap(errors.Join(errNotRemoved, err), fault.Unavailable,
				"a majority of the voters cannot be reached, so no voter can be removed: try again when it can")
		}
	}
}

func (n *Node) tryRemove(ctx context.Context, is func(etcdlog.MemberInfo) bool) error {
	members, err := n.client.Members(ctx)
	if err != nil {
		return err
	}
	if i := slices.IndexFunc(members, is); i >= 0 {
		return n.client.Remove(ctx, members[i].ID)
	}
	return nil
}

// removeUnlisted removes a member of etcd that is not the server of a node.
func (n *Node) removeUnlisted(ctx context.Context, name string) error {
	var all []record
	err := n.store.View(ctx, func(tx *store.Tx) (err error) {
		all, err = recordsIn(tx)
		return err
	})
	if err != nil {
		return err
	}
	if len(n.id.Endpoints) == 0 {
		members, err := n.client.Members(ctx)
		if err != nil {
			return fault.Wrap(err, fault.Unavailable, "a majority of the voters cannot be reached")
		}
		if m, ok := unlisted(members, all)[name]; ok {
			return n.removeMember(ctx, func(other etcdlog.MemberInfo) bool { return other.ID == m.ID })
		}
	}
	return fault.New(fault.NotFound, "the cluster has no node with the name %q", name).
		WithHint("runner cluster status lists the nodes")
}

func (n *Node) setLeaving(leaving bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.leaving = leaving
}

func (n *Node) isLeaving() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.leaving
}
