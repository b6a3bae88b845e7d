package cluster

import (
	"context"
	"math"
	"time"
)

// addMetrics adds the metrics of the cluster, as this node sees it. They are computed when they are read, from
// what is known: no node is asked.
func (n *Node) addMetrics() {
	m := n.metrics
	one := func(read func(Overview) float64) func(func(string, float64)) {
		return func(set func(string, float64)) {
			if s, ok := n.seen(); ok {
				set("", read(s))
			}
		}
	}
	each := func(read func(Overview, NodeStatus) float64) func(func(string, float64)) {
		return func(set func(string, float64)) {
			s, _ := n.seen()
			for _, node := range s.Nodes {
				if !node.Unlisted {
					set(node.Name, read(s, node))
				}
			}
		}
	}
	m.Gauge("cluster_quorum", "1 if a majority of the voters answers this node, so that commits are possible.", "",
		one(func(s Overview) float64 { return truth(s.Quorum) }))
	m.Gauge("cluster_may_fail", "Voters that may fail now, so that the others are a majority; -1 if etcd runs elsewhere.", "",
		one(func(s Overview) float64 { return float64(s.MayFail) }))
	m.Gauge("cluster_members", "Nodes by role; joining are voters without a vote yet.", "role",
		func(set func(string, float64)) {
			s, ok := n.seen()
			roles := map[string]int{"voter": 0, "joining": 0, "edge": 0}
			for _, node := range s.Nodes {
				switch {
				case node.Unlisted:
				case node.Joining:
					roles["joining"]++
				default:
					roles[string(node.Role)]++
				}
			}
			for role, count := range roles {
				if ok {
					set(role, float64(count))
				}
			}
		})
	m.Gauge("cluster_leader", "1 for the voter that orders commits.", "node",
		each(func(s Overview, node NodeStatus) float64 { return truth(node.Name == s.Leader) }))
	m.Gauge("cluster_owner", "1 for the node that does the background work.", "node",
		each(func(s Overview, node NodeStatus) float64 { return truth(node.Name == s.Owner) }))
	m.Gauge("cluster_connected", "1 for each node that has answered this one in the last 3 seconds.", "node",
		each(func(_ Overview, node NodeStatus) float64 { return truth(node.Connected) }))
	m.Gauge("cluster_seen_seconds", "Time since a node has answered this one; +Inf before the first answer.", "node",
		each(func(_ Overview, node NodeStatus) float64 { return seconds(node.Seen) }))
	m.Gauge("cluster_staleness_seconds", "Time since a node last had all commits; +Inf if that is not known.", "node",
		each(func(_ Overview, node NodeStatus) float64 { return seconds(node.Staleness) }))
	m.Gauge("cluster_lag_commits", "Commits that a node lacks, of those that any node had when it was seen.", "node",
		each(func(_ Overview, node NodeStatus) float64 { return float64(node.Lag) }))
}

// seen returns the state of the cluster without a question to any node. It is not ok when the store is closed.
func (n *Node) seen() (s Overview, ok bool) {
	all, err := n.records(context.Background())
	if err != nil {
		return s, false
	}
	return n.overview(all, n.known.last(), !n.store.Health().Silent()), true
}

func truth(is bool) float64 {
	if is {
		return 1
	}
	return 0
}

// seconds returns milliseconds in seconds. Negative ones are not known.
func seconds(ms int64) float64 {
	if ms < 0 {
		return math.Inf(1)
	}
	return (time.Duration(ms) * time.Millisecond).Seconds()
}
