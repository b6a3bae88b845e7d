package cluster

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"runner.example/internal/fault"
)

// caughtUp is how old the newest state of a node may be that is said to have all commits. A node learns it
// each half second, and others ask it each second.
const caughtUp = 5 * time.Second

// NotSafe returns why the next step of an operator who works on a node, such as to stop another one, is not
// safe yet; "" if it is. It is safe when the node is ready, takes part if it is a voter, and has all commits,
// and when of three or more voters one may fail. Before the first deployment a node need not have a release. What is known from before since, measured until s was asked
// for, does not count: a node may have been stopped after it has answered. The error has the code
// fault.NotFound if there is no such node.
func (s *Overview) NotSafe(name string, since time.Duration) (why string, err error) {
	var node *NodeStatus
	old := func(n *NodeStatus) bool { return n.Seen >= since.Milliseconds() && n.Name != s.Node }
	var asked, missing []string // voters that were not asked again yet, and that do not take part
	for i := range s.Nodes {
		n := &s.Nodes[i]
		if n.Name == name {
			node = n
		}
		switch {
		case n.Role != Voter || n.Joining || n.Leaving:
		case !n.takesPart():
			missing = append(missing, n.Name)
		case old(n):
			asked = append(asked, n.Name)
		}
	}
	switch {
	case node == nil:
		return "", fault.New(fault.NotFound, "the cluster has no node with the name %q", name).
			WithHint("runner cluster status lists the nodes")
	case node.Unlisted:
		return name + " is not a node, but counts as a voter: run runner cluster leave " + name, nil
	case node.Leaving:
		return name + " is leaving", nil
	case !node.answers():
		return fmt.Sprintf("%s does not answer %s", name, s.Node), nil
	case old(node):
		return fmt.Sprintf("%s asks %s for its state", s.Node, name), nil
	case node.NotReady != "" && !(node.NoRelease && s.NoRelease()):
		return fmt.Sprintf("%s is not ready: %s", name, node.NotReady), nil
	case node.Joining:
		return name + " has no vote yet", nil
	case node.Staleness < 0 || node.Staleness > caughtUp.Milliseconds():
		return name + " does not have all commits yet", nil
	case !s.Quorum:
		return fmt.Sprintf("no majority of the voters answers %s", s.Node), nil
	case s.Voters >= 3 && s.MayFail == 0:
		return fmt.Sprintf("no other voter may fail: %d of %d take part, without %s", s.Voting, s.Voters, strings.Join(missing, ", ")), nil
	case len(asked) > 0 && s.MayFail >= 0:
		return fmt.Sprintf("%s asks %s for the state", s.Node, strings.Join(asked, ", ")), nil
	}
	return "", nil
}

// NoRelease reports whether no node serves a release, as far as is known: the cluster awaits its first one.
func (s *Overview) NoRelease() bool {
	return !slices.ContainsFunc(s.Nodes, func(n NodeStatus) bool { return n.Release != "" })
}

// takesPart reports whether the etcd server of a voter takes part in decisions, as far as is known.
func (n NodeStatus) takesPart() bool { return n.answers() && n.NotVoting == "" && !n.Unlisted }
