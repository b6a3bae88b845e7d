package cluster

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"runner.example/internal/clock"
	"runner.example/internal/fault"
	"runner.example/internal/wait"
	"runner.example/state/store"
	"runner.example/state/store/etcdlog"
)

const (
	// pollInterval is the pause between two questions to the other nodes, callTimeout the limit of one.
	pollInterval = time.Second
	callTimeout  = 2 * time.Second
	// ownerTTL is after how long without its owner the background work gets another one.
	ownerTTL = 5 * time.Second
	// sampleEvery is how often the owner notes where the log is, to truncate it.
	sampleEvery = time.Minute
)

// follow asks the other nodes for their state, until ctx ends.
func (n *Node) follow(ctx context.Context) {
	tick := time.NewTicker(pollInterval)
	defer tick.Stop()
	for behind, removed, ended := false, false, false; ; {
		if err := n.serverEnded(); err != nil && !ended {
			ended = true
			n.logger.Error("etcd server of this voter ended", "cause", err.Detail)
			n.hooks.OnServerEnded(err)
		}
		if err := n.refreshPeers(ctx); err != nil && !removed {
			removed = true
			n.logger.Error("node removed from the cluster by another node", "node", n.id.Name)
			n.hooks.OnRemoved(err)
		}
		n.pollPeers(ctx)
		if err := n.store.Health().Reason; !behind && errors.Is(err, etcdlog.ErrTruncated) {
			behind = true
			n.hooks.OnBehind()
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}

// serverEnded returns why the etcd server of this voter has ended, and what to do; nil if it has not.
func (n *Node) serverEnded() *fault.Fault {
	if n.etcd == nil {
		return nil
	}
	err := n.etcd.ended()
	if err == nil {
		return nil
	}
	return fault.Wrap(err, fault.NotReady, "the etcd server of this voter does not run (%v): %s", err, n.remedy())
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

// pollPeers asks the other nodes, compares their chains with the own one, and passes on their clocks.
func (n *Node) pollPeers(ctx context.Context) {
	peers := n.peers()
	answers := make([]peerState, len(peers))
	var asked sync.WaitGroup
	for i, p := range peers {
		asked.Go(func() { answers[i] = n.pollPeer(ctx, p) })
	}
	asked.Wait()
	skews := map[string]time.Duration{}
	n.mu.Lock()
	for i, p := range peers {
		if before, ok := n.states[p.Name]; answers[i].err != nil && ok { // the last answer stays
			before.err = answers[i].err
			answers[i] = before
		}
		n.states[p.Name] = answers[i]
		if answers[i].err == nil {
			skews[p.Name] = answers[i].skew
		}
	}
	n.mu.Unlock()
	agrees := n.hooks.OnSkew(skews)
	if !agrees {
		n.store.Disown() // at once: the next owner may not be elected yet
	}
	n.agreement.set(agrees)
	for i := range answers {
		if answers[i].err == nil {
			n.compareChain(ctx, answers[i].State)
		}
	}
}

// pollPeer asks one node.
func (n *Node) pollPeer(ctx context.Context, p Peer) peerState {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	sent := n.now()
	s, err := call[State](ctx, n.peerClient, p.Address, opState, struct{}{})
	received := n.now()
	if err != nil {
		return peerState{State: State{Peer: p, Staleness: -1}, err: err}
	}
	// The other clock was read some time between the two: only what is outside of it is a difference.
	h := peerState{State: s, at: clock.Mark()}
	switch {
	case s.Time.Before(sent):
		h.skew = s.Time.Sub(sent)
	case s.Time.After(received):
		h.skew = s.Time.Sub(received)
	}
	return h
}

// compareChain stops this node if its rows differ from those of most nodes.
func (n *Node) compareChain(ctx context.Context, other State) {
	own, known, err := n.store.ChainAt(ctx, store.Seq(other.At.Seq))
	if err != nil || !known || bytes.Equal(own[:], other.At.Chain) {
		return
	}
	same, different := 1, 0
	for _, p := range n.peers() {
		ctx, cancel := context.WithTimeout(ctx, callTimeout)
		answer, err := call[chainAnswer](ctx, n.peerClient, p.Address, opChain, seqArgument{other.At.Seq})
		cancel()
		switch {
		case err != nil || answer.Chain == nil:
		case bytes.Equal(answer.Chain, own[:]):
			same++
		default:
			different++
		}
	}
	n.logger.Error("rows differ between nodes", "node", other.Name, "seq", other.At.Seq, "same", same,
		"different", different)
	if different >= same {
		n.store.StopDiverged(fmt.Sprintf("the commits up to %d are not those of node %q", other.At.Seq, other.Name))
	}
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
			synced = append(synced, n.states[p.Name].At.Revision) // 0: it was not heard yet
		}
	}
	n.mu.Unlock()
	until := t.Note(etcdlog.Sample{Time: clock.Mark(), Seq: uint64(seq), Revision: revision}, synced)
	if until == 0 {
		return nil
	}
	return n.log.Truncate(ctx, until)
}
