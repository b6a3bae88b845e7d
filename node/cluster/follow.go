package cluster

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"runner.example/internal/clock"
	"runner.example/internal/wait"
	"runner.example/state/store"
	"runner.example/state/store/etcdlog"
)

const (
	// pollInterval is the pause between two questions to another node, callTimeout the limit of one.
	pollInterval = time.Second
	callTimeout  = 2 * time.Second
	// ownerTTL is after how long without its owner the background work gets another one.
	ownerTTL = 5 * time.Second
	// sampleEvery is how often the owner notes where the log is, to truncate it.
	sampleEvery = time.Minute
)

// follow knows the other nodes and asks them for their state, until ctx ends.
func (n *Node) follow(ctx context.Context) {
	tick := time.NewTicker(pollInterval)
	defer tick.Stop()
	asking := polls{}
	defer asking.end()
	for {
		n.noteServer()
		if err := n.refreshPeers(ctx); err != nil {
			n.ends.Do(func() {
				n.logger.Error("node removed from the cluster by another node", "node", n.id.Name)
				n.hooks.OnUnusable(err)
			})
		}
		asking.follow(ctx, n, n.peers())
		n.compareClocks() // also those of no other node
		n.majority.note(n)
		if errors.Is(n.store.Health().Reason, etcdlog.ErrTruncated) {
			n.ends.Do(n.hooks.OnBehind)
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}

// refreshPeers reads the nodes in the store, and writes down those that changed: the next start needs
// them before it has a store. The error matches ErrRemoved if this node is not one of them any more.
func (n *Node) refreshPeers(ctx context.Context) error {
	var all []Peer
	err := n.store.View(ctx, func(tx *store.Tx) (err error) {
		if err := n.checkSelf(tx); err != nil {
			return err
		}
		all, err = nodesIn(tx)
		return err
	})
	if errors.Is(err, ErrRemoved) && !n.isLeaving() {
		return n.checkRemoved(ctx)
	}
	if err != nil { // damaged, or closed
		return nil
	}
	self := slices.IndexFunc(all, func(p Peer) bool { return p.Name == n.id.Name })
	n.hooks.OnMembership(self, len(all))
	others := slices.Delete(all, self, self+1)
	n.mu.Lock()
	defer n.mu.Unlock()
	if slices.Equal(others, n.id.Peers) {
		return nil
	}
	n.id.Peers = others
	for name := range n.states {
		if !slices.ContainsFunc(others, func(p Peer) bool { return p.Name == name }) {
			delete(n.states, name)
		}
	}
	if err := n.id.write(n.data); err != nil {
		n.logger.Warn("peer addresses not saved", "cause", err)
	}
	return nil
}

// campaign makes this node the owner of the background work whenever there is none, while its clock
// agrees with those of other nodes: an owner with a wrong clock would delete what has not expired.
func (n *Node) campaign(ctx context.Context) {
	for ctx.Err() == nil && n.agreement.wait(ctx, true) {
		n.ownOnce(ctx)
		_ = wait.For(ctx, pollInterval)
	}
}

// ownOnce waits until this node is the owner, and returns when it is not any more.
func (n *Node) ownOnce(ctx context.Context) {
	var watching sync.WaitGroup
	defer watching.Wait()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	watching.Go(func() {
		if n.agreement.wait(ctx, false) {
			cancel()
		}
	})
	won, err := n.client.Campaign(ctx, n.id.Name, ownerTTL)
	if err != nil {
		return // ctx has ended
	}
	if err := n.own(ctx, won.Done()); err != nil && ctx.Err() == nil {
		n.logger.Warn("cluster owner takeover failed; retrying", "cause", err)
	}
	resign, end := context.WithTimeout(context.WithoutCancel(ctx), callTimeout)
	defer end()
	_ = won.Resign(resign) // else it ends after ownerTTL
}

// own does the work of the owner until it is lost.
func (n *Node) own(ctx context.Context, lost <-chan struct{}) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		select {
		case <-lost:
			cancel()
		case <-ctx.Done():
		}
	}()
	if err := n.confirmSelf(ctx); err != nil { // a node that was removed may still win an election
		return err
	}
	if err := n.store.BecomeOwner(ctx); err != nil {
		return err
	}
	n.logger.Info("cluster ownership acquired", "node", n.id.Name)
	tick := time.NewTicker(sampleEvery)
	defer tick.Stop()
	var t etcdlog.Truncation
	for {
		if err := n.truncate(ctx, &t); err != nil && ctx.Err() == nil {
			n.logger.Warn("log truncation failed; retrying", "cause", err)
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return nil
		}
	}
}

// truncate deletes what a majority of the voters has synced from the log, if it is old.
func (n *Node) truncate(ctx context.Context, t *etcdlog.Truncation) error {
	seq, revision, _ := n.store.Position()
	synced := []uint64{}
	if n.id.Role == Voter {
		synced = append(synced, revision) // what is applied is synced
	}
	n.mu.Lock()
	for _, p := range n.id.Peers {
		if p.Role == Voter {
			synced = append(synced, n.states[p.Name].At.Revision) // 0: it has not answered yet
		}
	}
	n.mu.Unlock()
	until := t.Note(etcdlog.Sample{Time: clock.Mark(), Seq: uint64(seq), Revision: revision}, synced)
	if until == 0 {
		return nil
	}
	return n.log.Truncate(ctx, until)
}
