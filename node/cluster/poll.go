package cluster

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"runner.example/internal/clock"
	"runner.example/state/store"
)

// polls are the loops that ask the other nodes, one for each: a node that hangs delays what is known of no
// other one. One goroutine uses it.
type polls map[Peer]context.CancelFunc

// follow starts and ends loops, so that there is one for each peer. They end with ctx.
func (all polls) follow(ctx context.Context, n *Node, peers []Peer) {
	for p, end := range all {
		if !slices.Contains(peers, p) {
			end()
			delete(all, p)
		}
	}
	for _, p := range peers {
		if all[p] == nil {
			ctx, end := context.WithCancel(ctx)
			all[p] = end
			n.loops.Go(func() { n.poll(ctx, p) })
		}
	}
}

// end ends all loops.
func (all polls) end() {
	for _, end := range maps.All(all) {
		end()
	}
}

// poll asks one node for its state each second, until ctx ends. It compares the chain of the node with the own
// one, and passes on the clock.
func (n *Node) poll(ctx context.Context, p Peer) {
	tick := time.NewTicker(pollInterval)
	defer tick.Stop()
	for {
		h := n.ask(ctx, p)
		if ctx.Err() != nil {
			return
		}
		n.note(p, h)
		n.compareClocks()
		if h.err == nil {
			n.compareChain(ctx, h.State)
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}

// ask asks one node for its state.
func (n *Node) ask(ctx context.Context, p Peer) peerState {
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

// note keeps what a node has answered. Without an answer, the last one stays.
func (n *Node) note(p Peer, h peerState) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if !slices.Contains(n.id.Peers, p) { // removed meanwhile
		return
	}
	if before, ok := n.states[p.Name]; ok && h.err != nil {
		before.err = h.err
		h = before
	}
	n.states[p.Name] = h
}

// compareClocks passes on how far the clocks of the other nodes are from that of this one. Until each node
// was asked once it does nothing.
func (n *Node) compareClocks() {
	n.clocks.Lock() // so that the newest comparison counts
	defer n.clocks.Unlock()
	now, skews := clock.Mark(), map[string]time.Duration{}
	n.mu.Lock()
	for _, p := range n.id.Peers {
		h, asked := n.states[p.Name]
		if !asked {
			n.mu.Unlock()
			return
		}
		if h.answers(now) {
			skews[p.Name] = h.skew
		}
	}
	n.mu.Unlock()
	agrees := n.hooks.OnSkew(skews)
	if !agrees {
		n.store.Disown() // at once: the next owner may not be elected yet
	}
	n.agreement.set(agrees)
}

// compareChain stops this node if its rows differ from those of most nodes.
func (n *Node) compareChain(ctx context.Context, other State) {
	own, known, err := n.store.ChainAt(ctx, store.Seq(other.At.Seq))
	if err != nil || !known || bytes.Equal(own[:], other.At.Chain) || !n.chains.TryLock() {
		return
	}
	defer n.chains.Unlock()
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	peers := n.peers()
	answers := make([][]byte, len(peers))
	var asked sync.WaitGroup
	for i, p := range peers {
		asked.Go(func() {
			answer, err := call[chainAnswer](ctx, n.peerClient, p.Address, opChain, seqArgument{other.At.Seq})
			if err == nil {
				answers[i] = answer.Chain
			}
		})
	}
	asked.Wait()
	same, different := 1, 0
	for _, chain := range answers {
		switch {
		case chain == nil:
		case bytes.Equal(chain, own[:]):
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

// whileConnected returns a context that ends when a node does not answer any more. What is asked of a node
// that hangs would have no end otherwise. Call cancel.
func (n *Node) whileConnected(ctx context.Context, name string) (_ context.Context, cancel context.CancelFunc) {
	ctx, end := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer end()
		tick := time.NewTicker(pollInterval / 4)
		defer tick.Stop()
		for !n.isCutOff(name) {
			select {
			case <-tick.C:
			case <-ctx.Done():
				return
			}
		}
	}()
	return ctx, func() {
		end()
		<-done
	}
}
