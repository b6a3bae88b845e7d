package cluster

import (
	"context"
	"errors"
	"slices"
	"time"

	"runner.example/internal/fault"
	"runner.example/store"
)

// Leave removes a node from the cluster, for ever: this one, or another one, which may be out of
// order. It reports whether it was this one, whose server must end then. A node that was removed may
// join again with a new data directory.
func (n *Node) Leave(ctx context.Context, name string) (self bool, err error) {
	if name == "" {
		name = n.id.Name
	}
	var all []Peer
	err = n.store.View(ctx, func(tx *store.Tx) (err error) {
		all, err = nodesIn(tx)
		return err
	})
	if err != nil {
		return false, err
	}
	var leaving *Peer
	voters := 0
	for i, p := range all {
		if p.Name == name {
			leaving = &all[i]
		}
		if p.Role == Voter {
			voters++
		}
	}
	switch {
	case leaving == nil:
		return false, fault.New(fault.NotFound, "the cluster has no node with the name %q: runner cluster status lists them", name)
	case leaving.Role == Voter && voters == 1:
		return false, fault.New(fault.Invalid, "the node %q is the last voter, without which nothing can be stored: stop it, and make it alone with runner cluster dissolve", name)
	}
	self = name == n.id.Name
	if leaving.Role == Voter && len(n.id.Endpoints) == 0 {
		if err := n.removeServer(ctx, *leaving); err != nil {
			return false, err
		}
	}
	_, err = n.store.Update(ctx, func(tx *store.Tx) error {
		return tx.Delete([]byte(prefixNodes + name))
	})
	if err != nil {
		return false, err
	}
	n.logger.Info("node removed from the cluster", "node", name)
	if self {
		n.mu.Lock()
		defer n.mu.Unlock()
		n.id.Left = true
		err = n.id.write(n.data)
	}
	return self, err
}

// removeTime limits the removal of a server.
const removeTime = 20 * time.Second

// removeServer removes the server of a voter from the log. One that never began is not there.
func (n *Node) removeServer(ctx context.Context, p Peer) error {
	ctx, cancel := context.WithTimeout(ctx, removeTime)
	defer cancel()
	for {
		err := n.tryRemove(ctx, p)
		// A refusal is a fault. After another error the server may be removed: it ends in the middle of its
		// answer if it was asked itself.
		if _, refused := errors.AsType[*fault.Fault](err); err == nil || refused || !pause(ctx, askEvery/4) {
			return err
		}
	}
}

func (n *Node) tryRemove(ctx context.Context, p Peer) error {
	members, err := n.client.Members(ctx)
	if err != nil {
		return err
	}
	for _, m := range members {
		if slices.Contains(m.Peers, serversOf(p.Address)) {
			return n.client.Remove(ctx, m.ID)
		}
	}
	return nil
}
