package cluster

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"time"

	"runner.example/store"
)

// Overview is the state of the cluster as one node sees it.
type Overview struct {
	// Cluster is the id of the cluster, and Node the name of the node that was asked.
	Cluster string `json:"cluster"`
	Node    string `json:"node"`
	// Owner is the node that does the background work, Leader the voter whose server orders commits;
	// empty: none, or not known.
	Owner  string `json:"owner"`
	Leader string `json:"leader"`
	// Quorum reports whether a majority of the voters can be reached, so that commits are possible.
	Quorum bool         `json:"quorum"`
	Nodes  []NodeStatus `json:"nodes"`
	// Secrets are the names of secrets whose values differ between nodes.
	Secrets []string `json:"differentSecrets"`
	// Vars are the names of variables whose values differ between nodes.
	Vars []string `json:"differentVars"`
}

// NodeStatus is what is known of one node.
type NodeStatus struct {
	State
	Connected bool `json:"connected"`
	// Joining: it is a voter that has no vote yet, because its server has not started or lacks a part of
	// the log.
	Joining bool `json:"joining"`
	// Heard is when the node has answered last; nil: it has not yet, or it is this one.
	Heard *time.Time `json:"heard"`
	// Lag is how many commits it has not applied that the node with the most commits has.
	Lag uint64 `json:"lag"`
	// Skew is by how much its clock differs from that of the node that was asked, at least, in
	// milliseconds.
	Skew int64 `json:"skewMs"`
	// Error is why it did not answer, or empty.
	Error string `json:"error"`
}

// statusTime limits the question for the leader.
const statusTime = 2 * time.Second

// Status returns the state of the cluster.
func (n *Node) Status(ctx context.Context) (Overview, error) {
	self := n.state()
	s := Overview{Cluster: n.id.Cluster, Node: n.id.Name, Nodes: []NodeStatus{{State: self, Connected: true}}, Secrets: []string{}, Vars: []string{}}
	var all []Peer
	err := n.store.View(ctx, func(tx *store.Tx) (err error) {
		all, err = nodesIn(tx)
		return err
	})
	if err != nil {
		return s, err
	}
	asked, cancel := context.WithTimeout(ctx, statusTime)
	defer cancel()
	var voting map[string]bool
	if owner, err := n.client.Owner(asked); err == nil { // a linearizable read: a majority has answered
		s.Quorum, s.Owner = true, owner
		voting, s.Leader = n.voters(asked, all)
	}
	now := time.Now()
	n.mu.Lock()
	for _, p := range all {
		if p.Name == n.id.Name {
			continue
		}
		h, ok := n.states[p.Name]
		if !ok {
			h.Peer = p
		}
		node := NodeStatus{State: h.State, Connected: h.connected(now), Skew: h.skew.Milliseconds()}
		if !h.at.IsZero() {
			node.Heard = new(h.at.UTC())
		}
		if h.err != nil {
			node.Error = h.err.Error()
		}
		s.Nodes = append(s.Nodes, node)
	}
	n.mu.Unlock()
	slices.SortFunc(s.Nodes, func(a, b NodeStatus) int { return cmp.Compare(a.Name, b.Name) })
	newest := slices.MaxFunc(s.Nodes, func(a, b NodeStatus) int { return cmp.Compare(a.Applied, b.Applied) }).Applied
	for i := range s.Nodes {
		s.Nodes[i].Joining = voting != nil && s.Nodes[i].Role == Voter && !voting[s.Nodes[i].Name]
		s.Nodes[i].Lag = newest - s.Nodes[i].Applied
	}
	s.Secrets = different(s.Nodes, func(n NodeStatus) map[string]string { return n.Secrets })
	s.Vars = different(s.Nodes, func(n NodeStatus) map[string]string { return n.Vars })
	return s, nil
}

// different returns the names that two nodes have different MACs for.
func different(nodes []NodeStatus, macs func(NodeStatus) map[string]string) []string {
	first, differ := map[string]string{}, map[string]bool{}
	for _, node := range nodes {
		for name, mac := range macs(node) {
			if other, ok := first[name]; ok && other != mac {
				differ[name] = true
			}
			first[name] = mac
		}
	}
	return slices.AppendSeq([]string{}, maps.Keys(differ))
}

// voters returns the names of the voters that have a vote by now, and of the one whose server orders
// commits; nil if that is not known, or etcd runs elsewhere.
func (n *Node) voters(ctx context.Context, all []Peer) (voting map[string]bool, leader string) {
	if len(n.id.Endpoints) > 0 {
		return nil, ""
	}
	members, err := n.client.Members(ctx)
	if err != nil {
		return nil, ""
	}
	id, _ := n.client.Leader(ctx) // 0 after an error: no member has it
	voting = map[string]bool{}
	for _, m := range members {
		i := slices.IndexFunc(all, func(p Peer) bool { return slices.Contains(m.Peers, serversOf(p.Address)) })
		if i < 0 {
			continue
		}
		voting[all[i].Name] = !m.Learner
		if m.ID == id {
			leader = all[i].Name
		}
	}
	return voting, leader
}
