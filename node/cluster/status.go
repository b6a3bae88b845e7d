package cluster

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	"runner.example/internal/clock"
	"runner.example/state/store"
	"runner.example/state/store/etcdlog"
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
	Quorum bool `json:"quorum"`
	// Level is the level in force; see package level.
	Level int          `json:"level"`
	Nodes []NodeStatus `json:"nodes"`
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
	// Leaving: it is being removed, or its removal was interrupted and must be repeated.
	Leaving bool `json:"leaving"`
	// Unlisted: it is not a node, but a member of etcd that counts for the majority and must be removed.
	Unlisted bool `json:"unlisted"`
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
	s := Overview{
		Cluster: n.id.Cluster, Node: n.id.Name, Level: n.store.Level(), Nodes: []NodeStatus{{State: self, Connected: true}},
		Secrets: []string{}, Vars: []string{},
	}
	var all []record
	err := n.store.View(ctx, func(tx *store.Tx) (err error) {
		all, err = recordsIn(tx)
		return err
	})
	if err != nil {
		return s, err
	}
	asked, cancel := context.WithTimeout(ctx, statusTime)
	defer cancel()
	var etcd servers
	if owner, err := n.client.Owner(asked); err == nil { // a linearizable read: a majority has answered
		s.Quorum, s.Owner = true, owner
		etcd = n.etcdServers(asked, all)
		s.Leader = etcd.leader
	}
	now := clock.Mark()
	n.mu.Lock()
	for _, r := range all {
		if r.Name == n.id.Name {
			s.Nodes[0].Leaving = r.Leaving
			continue
		}
		h, ok := n.states[r.Name]
		if !ok {
			h.State = State{Peer: r.Peer, Staleness: -1}
		}
		node := NodeStatus{State: h.State, Connected: h.connected(now), Skew: h.skew.Milliseconds(), Leaving: r.Leaving}
		if !h.at.IsZero() {
			node.Heard = new(h.at.UTC())
		}
		if h.err != nil {
			node.Error = h.err.Error()
		}
		s.Nodes = append(s.Nodes, node)
	}
	n.mu.Unlock()
	for name, m := range etcd.unlisted {
		p := Peer{Name: name, Role: Voter, Address: strings.TrimPrefix(strings.Join(m.PeerURLs, ","), "https://")}
		s.Nodes = append(s.Nodes, NodeStatus{State: State{Peer: p, Staleness: -1}, Unlisted: true})
	}
	slices.SortFunc(s.Nodes, func(a, b NodeStatus) int { return cmp.Compare(a.Name, b.Name) })
	newest := slices.MaxFunc(s.Nodes, func(a, b NodeStatus) int { return cmp.Compare(a.Applied, b.Applied) }).Applied
	for i := range s.Nodes {
		node := &s.Nodes[i]
		node.Joining = etcd.voting != nil && node.Role == Voter && !node.Leaving && !node.Unlisted && !etcd.voting[node.Name]
		node.Lag = newest - node.Applied
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
	return append([]string{}, slices.Sorted(maps.Keys(differ))...)
}

// servers is what etcd says of its members.
type servers struct {
	voting   map[string]bool // nodes whose server is a member, and whether it has a vote; nil: not known
	leader   string          // the node whose server orders commits
	unlisted map[string]etcdlog.MemberInfo
}

// etcdServers asks for the members of etcd. It knows nothing of an etcd that runs elsewhere.
func (n *Node) etcdServers(ctx context.Context, all []record) (s servers) {
	if len(n.id.Endpoints) > 0 {
		return s
	}
	members, err := n.client.Members(ctx)
	if err != nil {
		return s
	}
	id, _ := n.client.Leader(ctx) // 0 after an error: no member has it
	s.voting, s.unlisted = map[string]bool{}, unlisted(members, all)
	for _, m := range members {
		i := slices.IndexFunc(all, func(r record) bool { return slices.Contains(m.PeerURLs, etcdPeerURL(r.Address)) })
		if i < 0 {
			continue
		}
		s.voting[all[i].Name] = !m.Learner
		if m.ID == id {
			s.leader = all[i].Name
		}
	}
	return s
}
