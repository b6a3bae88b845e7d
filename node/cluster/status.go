package cluster

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strings"
	"sync/atomic"
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
	// Voters is how many voters count for the majority, and Voting how many of them take part now.
	Voters int `json:"voters"`
	Voting int `json:"voting"`
	// MayFail is how many voters may fail now, so that the others are a majority; negative: it is not known,
	// because etcd runs elsewhere.
	MayFail int `json:"mayFail"`
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
	// Heard is when the node has answered last, and all of State is from then; nil: it has not yet, or it is
	// this one.
	Heard *time.Time `json:"heard"`
	// Seen is how long ago that was, in milliseconds: 0 of this node; negative: it has not answered yet.
	Seen int64 `json:"seenMs"`
	// Lag is how many commits it has not applied that the node with the most commits has.
	Lag uint64 `json:"lag"`
	// Skew is by how much its clock differs from that of the node that was asked, at least, in
	// milliseconds.
	Skew int64 `json:"skewMs"`
	// Error is why it did not answer the last question, or empty.
	Error string `json:"error"`
}

// answers reports whether the node is connected, and has answered the last question.
func (n NodeStatus) answers() bool { return n.Connected && n.Error == "" }

// statusTimeout limits the questions to etcd.
const statusTimeout = 2 * time.Second

// Status returns the state of the cluster.
func (n *Node) Status(ctx context.Context) (Overview, error) {
	all, err := n.records(ctx)
	if err != nil {
		return Overview{}, err
	}
	known, quorum := n.known.last(), false
	if !n.store.Health().Silent() { // without a majority no server answers
		known, quorum = n.askServers(ctx, all)
	}
	return n.overview(all, known, quorum), nil
}

// records returns the records of all nodes by name.
func (n *Node) records(ctx context.Context) (all []record, err error) {
	err = n.store.View(ctx, func(tx *store.Tx) (err error) {
		all, err = recordsIn(tx)
		return err
	})
	return all, err
}

// overview returns what is known of the nodes in all.
func (n *Node) overview(all []record, etcd servers, quorum bool) Overview {
	s := Overview{
		Cluster: n.id.Cluster, Node: n.id.Name, Level: n.store.Level(), Nodes: []NodeStatus{{State: n.state(), Connected: true}},
		Quorum: quorum, Secrets: []string{}, Vars: []string{},
	}
	if quorum {
		s.Owner, s.Leader = etcd.owner, etcd.leader
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
		node := NodeStatus{State: h.State, Connected: h.connected(now), Skew: h.skew.Milliseconds(), Leaving: r.Leaving, Seen: -1}
		if !h.at.IsZero() {
			node.Heard, node.Seen = new(h.at.UTC()), now.Sub(h.at).Milliseconds()
			if node.Staleness >= 0 {
				node.Staleness += node.Seen // since then
			}
		}
		if h.err != nil {
			node.Error = h.err.Error()
		}
		s.Nodes = append(s.Nodes, node)
	}
	n.mu.Unlock()
	for name, m := range etcd.unlisted {
		p := Peer{Name: name, Role: Voter, Address: strings.TrimPrefix(strings.Join(m.PeerURLs, ","), "https://")}
		s.Nodes = append(s.Nodes, NodeStatus{State: State{Peer: p, Staleness: -1}, Unlisted: true, Seen: -1})
	}
	slices.SortFunc(s.Nodes, func(a, b NodeStatus) int { return cmp.Compare(a.Name, b.Name) })
	newest := slices.MaxFunc(s.Nodes, func(a, b NodeStatus) int { return cmp.Compare(a.Applied, b.Applied) }).Applied
	for i := range s.Nodes {
		node := &s.Nodes[i]
		node.Joining = etcd.voting != nil && node.Role == Voter && !node.Leaving && !node.Unlisted && !etcd.voting[node.Name]
		node.Lag = newest - node.Applied
	}
	s.countVoters(etcd)
	if len(n.id.Endpoints) > 0 {
		s.Voters, s.Voting, s.MayFail = 0, 0, -1
	}
	s.Secrets = different(s.Nodes, func(n NodeStatus) map[string]string { return n.Secrets })
	s.Vars = different(s.Nodes, func(n NodeStatus) map[string]string { return n.Vars })
	return s
}

// countVoters counts the voters. If it is not known which servers etcd has, each voter has one.
func (s *Overview) countVoters(etcd servers) {
	for _, node := range s.Nodes {
		switch {
		case node.Unlisted && !etcd.unlisted[node.Name].Learner:
			s.Voters++ // it is not known whether it takes part
		case etcd.voting == nil && node.Role == Voter && !node.Leaving, etcd.voting[node.Name]:
			s.Voters++
			if node.takesPart() {
				s.Voting++
			}
		}
	}
	if s.Quorum {
		s.MayFail = max(0, s.Voting-s.Needed())
	}
}

// Needed returns how many voters are a majority.
func (s *Overview) Needed() int { return s.Voters/2 + 1 }

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

// servers is what etcd has said of its members.
type servers struct {
	owner    string          // the node that does the background work
	voting   map[string]bool // nodes whose server is a member, and whether it has a vote; nil: not known
	leader   string          // the node whose server orders commits
	unlisted map[string]etcdlog.MemberInfo
}

// lastServers keeps what etcd has said last. Any goroutine may use it.
type lastServers struct{ said atomic.Pointer[servers] }

func (l *lastServers) last() servers {
	if s := l.said.Load(); s != nil {
		return *s
	}
	return servers{}
}

// watchServers asks etcd at intervals, for the metrics and for Status without a majority, until ctx ends.
func (n *Node) watchServers(ctx context.Context) {
	tick := time.NewTicker(serversEvery)
	defer tick.Stop()
	for {
		if all, err := n.records(ctx); err == nil && !n.store.Health().Silent() {
			n.askServers(ctx, all)
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}

// serversEvery is the pause between two questions of watchServers.
const serversEvery = 2 * time.Second

// askServers asks etcd for the owner, the members and the leader. quorum reports whether a majority has
// answered; without one it returns what etcd has said last. It knows no members of an etcd that runs elsewhere.
func (n *Node) askServers(ctx context.Context, all []record) (s servers, quorum bool) {
	ctx, cancel := context.WithTimeout(ctx, statusTimeout)
	defer cancel()
	s = n.known.last()
	owner, err := n.client.Owner(ctx) // a linearizable read
	if err != nil {
		return s, false
	}
	s.owner = owner
	if len(n.id.Endpoints) == 0 {
		if members, err := n.client.Members(ctx); err == nil {
			s.voting, s.unlisted = map[string]bool{}, unlisted(members, all)
			s.leader = ""
			id, _ := n.client.Leader(ctx) // 0 after an error: no member has it
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
		}
	}
	n.known.said.Store(&s)
	return s, true
}
